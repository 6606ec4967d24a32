"""Put the numbers of benchmarks/README.md into the top README's comparison: `--check` or `--write`.

The benchmarks are the only place where a number is measured; here its cell is looked up.
"""

import re
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
PAGE, MEASURED = ROOT / "README.md", ROOT / "benchmarks/README.md"
FIRST, LAST = "<!-- compared -->\n", "<!-- /compared -->"


class Cell(NamedTuple):
    """A number as it was printed, and what it is called here."""

    name: str
    text: str

    @property
    def value(self) -> float:
        """The number."""
        return float(self.text.replace(",", ""))


class Table:
    """One section of benchmarks/README.md."""

    def __init__(self, text: str, section: str) -> None:
        found = re.search(rf"<!-- {section} -->\n(.*?)<!-- /{section} -->", text, re.S)
        lines = [line for line in (found[1] if found else "").splitlines() if line.startswith("|")]
        rows = [[cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]] for line in lines]
        if len(rows) < 3:
            raise LookupError(f"benchmarks/README.md has no table {section!r}")
        self.header, self.rows = rows[0], rows[2:]

    def cell(self, column: str, name: str, pattern: str) -> Cell:
        """The cell of the last row with a label that begins as `pattern` says.

        Raises: LookupError.
        """
        at = self.header.index(column)
        for row in reversed(self.rows):
            if any(re.match(pattern, cell) for cell in row):
                return Cell(name, row[at])
        raise LookupError(f"benchmarks/README.md has no row {pattern!r}")

    def spread(self, column: str, behind: int = 0) -> str:
        """The least, the greatest and the median number of a column, `behind` columns further on."""
        at = self.header.index(column) + behind
        numbers = [float(row[at]) for row in self.rows if row[0] != "**median**"]
        return f"{min(numbers):.2f} to {max(numbers):.2f}, median {median(numbers):.2f}"


def rows(text: str) -> Iterator[str]:
    """The rows of the comparison, those where others are ahead too."""
    start, call, bash, view, edit = (
        Table(text, name).cell for name in ("startup", "roundtrip", "bash", "view", "edit")
    )
    sdk, ls = ("the official Python SDK", "official"), ("toolroll-ls", "toolroll(-ls)?$")
    yield row("start until tools/list is answered, ms", "ms", start, ls, sdk)
    yield row("memory when idle, MB", "idle RSS MB", start, ls, sdk)
    yield row("a small call, µs", "p50 µs", call, ls, sdk)
    with suppress(LookupError):  # npm is not everywhere
        node = ("the node filesystem server", "server-filesystem")
        yield row("a small call, µs", "p50 µs", call, ls, node)
    yield row("calls a second, 32 in flight", "calls/s, 32 in flight", call, ls, sdk)
    ours, rex = ("toolroll-bash", "toolroll"), ("SWE-ReX", "SWE-ReX")
    anew = ("`bash -c` each time", "`bash -c`")
    yield row("`true` in a persistent shell, ms", "`true`, p50 ms", bash, ours, rex)
    yield row("`true` in a persistent shell, ms", "`true`, p50 ms", bash, ours, anew)
    yield row("output of a command, MB/s", "output MB/s", bash, ours, rex)
    yield row("output of a command, MB/s", "output MB/s", bash, ours, anew)
    page = ("toolroll-view", "View, first page")
    yield row("100 lines at line 1,000,000 of 1 GB, ms", "ms", view, page, ("`sed -n`", "`sed"))
    change = ("toolroll-edit, with fsync", "Edit")
    yield row("a replacement in 10 MB, ms", "ms", edit, change, ("`sed -i`, no fsync", "`sed"))


def row(
    what: str,
    column: str,
    cell: Callable[..., Cell],
    ours: tuple[str, str],
    theirs: tuple[str, str],
) -> str:
    """One comparison, of a name here and a pattern of the label there each; rates may be large.

    Raises: LookupError.
    """
    mine, other = cell(column, *ours), cell(column, *theirs)
    times = mine.value / other.value if "/s" in column else other.value / mine.value
    verdict = f"{short(times)} x better" if times >= 1 else f"**{short(1 / times)} x worse**"
    numbers = " | ".join(f"{one.name}: {one.text}" for one in (mine, other))
    return f"| {what} | {numbers} | {verdict} |"


def short(number: float) -> str:
    """Two digits, or all before the point."""
    return f"{number:.1f}" if number < 10 else f"{number:.0f}"


def comparison(text: str) -> str:
    """The whole generated part."""
    glob, grep = Table(text, "glob"), Table(text, "grep")
    trees, patterns = ({row[at] for row in glob.rows} for at in (0, 1))
    cases = f"{len(patterns)} patterns on {len(trees)} trees"
    queries = f"{len(grep.rows) - 1} queries"  # the last one is their median
    return "\n".join(
        [
            "| what | toolroll | the other | toolroll is |",
            "|---|---|---|---|",
            *rows(text),
            "",
            "Against ripgrep, which is a fresh process each time. 1.00 is its time, more is slower:",
            "",
            "| what | times ripgrep |",
            "|---|---|",
            f"| GlobTool, {cases}, a server's first call | {glob.spread('cold ms', 1)} |",
            f"| GlobTool, any later call | {glob.spread('warm ms', 1)} |",
            f"| GrepTool, {queries}, a server's first call | {grep.spread('cold')} |",
            f"| GrepTool, a later call with a new query | {grep.spread('all counts, new query')} |",
            f"| GrepTool, the same query again | {grep.spread('first 100 lines')} |",
            "",
        ]
    )


def page() -> str:
    """The top README with the comparison as it should be."""
    before, first, rest = PAGE.read_text().partition(FIRST)
    _, last, after = rest.partition(LAST)
    return f"{before}{first}{comparison(MEASURED.read_text())}{last}{after}"


def main(argv: list[str]) -> int:
    """The exit code: 1 when the README is not current and is not written."""
    now = page()
    if now == PAGE.read_text():
        return 0
    if argv == ["--write"]:
        PAGE.write_text(now)
        return 0
    print("README.md is not current: python scripts/comparison.py --write", file=sys.stderr)
    return 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
