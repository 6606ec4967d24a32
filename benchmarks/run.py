"""Run the benchmarks named on the command line, or all, and put their tables into README.md."""

import re
import sys
from importlib import import_module
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from benchmarks.measure import ENVIRONMENTS

SECTIONS = ("startup", "roundtrip", "view", "edit", "bash", "bans", "glob", "grep")
README = Path(__file__).with_name("README.md")


def main(names: list[str]) -> int:
    """The exit code; unknown names are said."""
    unknown = [name for name in names if name not in SECTIONS]
    if unknown:
        print(f"unknown benchmark {unknown[0]!r}; there are {', '.join(SECTIONS)}", file=sys.stderr)
        return 2
    ENVIRONMENTS.mkdir(exist_ok=True)
    for name in names or SECTIONS:
        table = import_module(f"benchmarks.{name}").section().markdown()
        print(table, flush=True)
        keep(name, table)
    return 0


def keep(name: str, table: str) -> None:
    """Replace one section of the README, between its own markers."""
    text = README.read_text()
    marked = rf"(<!-- {name} -->\n).*?(<!-- /{name} -->)"
    README.write_text(re.sub(marked, lambda found: found[1] + table + found[2], text, flags=re.S))


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
