"""Run the examples in the documentation and keep their output real: `--check` or `--write`.

A block between `<!-- run -->` and `<!-- /run -->` holds commands, each behind `$ `, and what they print.
They are run in a copy of this checkout, so that an example may change files.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
SHOWN = "/home/ann/toolroll"
"""Where the copy is said to be."""

START, END = "<!-- run -->\n```console\n", "```\n<!-- /run -->"


def documents() -> list[Path]:
    """Every page that may hold examples."""
    return [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/*/README.md")]


def copied(into: Path) -> Path:
    """The files of this checkout that git knows, copied."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    for name in filter(None, os.fsdecode(listed.stdout).split("\0")):
        target = into / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    return into


def played(block: str, folder: Path) -> str:
    """The commands of a block, each with what it prints now."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ.get('PATH', os.defpath)}"
    pieces = []
    for line in block.splitlines():
        if line.startswith("$ "):
            done = subprocess.run(
                ["bash", "-c", line[2:]],
                cwd=folder,
                env={"PATH": path, "HOME": str(folder.parent)},
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                timeout=60,
                check=False,
            )
            output = done.stdout.decode().replace(str(folder), SHOWN)
            pieces.append(f"{line}\n{output}" + ("\n" if output and output[-1] != "\n" else ""))
    return "".join(pieces)


def renewed(text: str) -> str:
    """A page with all its examples played again, in order, in one fresh copy."""
    before, *rest = text.split(START)
    if not rest:
        return text
    pieces = [before]
    with TemporaryDirectory() as scratch:
        folder = copied(Path(scratch).resolve() / "checkout")
        for part in rest:
            block, end, after = part.partition(END)
            pieces += [START, played(block, folder), end, after]
    return "".join(pieces)


def main(argv: list[str]) -> int:
    """The exit code: 1 when a page shows what is no longer printed."""
    stale = {}
    for path in documents():
        text = path.read_text()
        if (now := renewed(text)) != text:
            stale[path] = now
    for path, text in stale.items():
        if argv == ["--write"]:
            path.write_text(text)
        print(
            f"{path.relative_to(ROOT)} was not current: python scripts/examples.py --write",
            file=sys.stderr,
        )
    return 1 if stale and argv != ["--write"] else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
