"""Prints what each ban mode stops, as the Markdown table of docs/security.md.

python scripts/ban_table.py           print it
python scripts/ban_table.py --write   put it into docs/security.md
python scripts/ban_table.py --check   exit with 1 when the file holds another
"""

import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "security.md"
FIRST, LAST = "<!-- banned: begin -->\n", "<!-- banned: end -->\n"

sys.path.insert(0, str(ROOT))
from tests.tools.banned_corpus import EVASIONS, INNOCENTS, MODES, Evasion  # noqa: E402 - by the path above


def table() -> str:
    """A row for each technique, and a line about the innocent commands."""
    head = f"| technique | example | {' | '.join(MODES)} |\n|---|---|{'---|' * len(MODES)}\n"
    rows = "".join(row(technique, entries) for technique, entries in EVASIONS.items())
    innocent = sum(map(len, INNOCENTS.values()))
    return f"{head}{rows}\nOf {innocent} commands that only look like one, no mode touches any.\n"


def row(technique: str, entries: tuple[Evasion, ...]) -> str:
    """A technique, its first evasion and how many of them each mode stops."""
    cells = [technique, code(entries[0].text), *(stopped(entries, mode) for mode in MODES)]
    return f"| {' | '.join(cells)} |\n"


def stopped(entries: tuple[Evasion, ...], mode: str) -> str:
    """How many of them the mode stops."""
    count = sum(mode not in entry.passes for entry in entries)
    if count in (0, len(entries)):
        return f"all {count}" if count else f"none of {len(entries)}"
    return f"{count} of {len(entries)}"


def code(text: str) -> str:
    """A command as code in a cell of a table, in one line."""
    text = text.replace("\n", " ⏎ ").replace("|", "\\|")
    return f"`` {text} ``" if "`" in text else f"`{text}`"


def page() -> str:
    """The whole file with the current table between the markers."""
    before, _, rest = PAGE.read_text().partition(FIRST)
    _, _, behind = rest.partition(LAST)
    return f"{before}{FIRST}\n{table()}\n{LAST}{behind}"


def main(words: list[str]) -> int:
    """The exit status for these words of the command line."""
    if words == ["--write"]:
        PAGE.write_text(page())
    elif words == ["--check"]:
        if PAGE.read_text() != page():
            print("docs/security.md is not current: python scripts/ban_table.py --write")
            return 1
    elif words:
        print(__doc__, file=sys.stderr)
        return 2
    else:
        print(table(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
