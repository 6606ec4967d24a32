"""Prints the conformance statement as the Markdown tables of docs/reference/protocol.md.

python scripts/protocol_table.py           print them
python scripts/protocol_table.py --write   put them into docs/reference/protocol.md
python scripts/protocol_table.py --check   exit with 1 when the file holds others
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "reference" / "protocol.md"
FIRST, LAST = "<!-- made by scripts/protocol_table.py -->\n", "<!-- end -->\n"

sys.path.insert(0, str(ROOT))
from tests.wire.conformance import STATEMENT  # noqa: E402 - found by the path above
from tests.wire.script import BOTH, HANDSHAKE, STATELESS, Row  # noqa: E402 - the same

ERAS = {BOTH: "all", HANDSHAKE: "handshake", STATELESS: "stateless"}


def tables() -> str:
    """All sections, each a heading and a table."""
    return "\n".join(section(title, rows) for title, rows in STATEMENT.items())


def section(title: str, rows: tuple[Row, ...]) -> str:
    """One section's heading and table."""
    head = f"### {title}\n\n| Statement | Revisions | Level | Source |\n|---|---|---|---|\n"
    return head + "".join(
        f"| {row.statement} | {eras(row)} | {row.level} | {row.source} |\n" for row in rows
    )


def eras(row: Row) -> str:
    """The revisions of a row in a word or by name."""
    return ERAS.get(row.eras) or ", ".join(row.eras)


def page() -> str:
    """The whole file with the current tables between the markers."""
    before, _, rest = PAGE.read_text().partition(FIRST)
    _, _, behind = rest.partition(LAST)
    return f"{before}{FIRST}\n{tables()}\n{LAST}{behind}"


def main(words: list[str]) -> int:
    """The exit status for these words of the command line."""
    if words == ["--write"]:
        PAGE.write_text(page())
    elif words == ["--check"]:
        if PAGE.read_text() != page():
            print(
                "docs/reference/protocol.md is not current: python scripts/protocol_table.py --write"
            )
            return 1
    elif words:
        print(__doc__, file=sys.stderr)
        return 2
    else:
        print(tables(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
