"""Run the examples in the documentation and keep their output real: `--check` or `--write`.

Behind `<!-- run -->` stands a block of commands, each behind `$ `, and what they print; behind a line
with nothing but a file's name, as in `shop.py`:, its content.  A page is played from its first line to its
last by one person, in a copy of this checkout: files stay, `cd` holds.
"""

import os
import re
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory

ROOT = Path(__file__).resolve().parent.parent
PROGRAMS = Path(sys.executable).parent
HOME = "/home/ann"
"""Whose home directory the copy is said to lie in; what is installed is in her ~/.local/bin."""

RUN = "<!-- run -->\n"
PIECE = re.compile(
    rf"^(?:{RUN}|`(?P<file>[^`\n]+)`:\n\n)(?P<fence>`{{3,}})\w*\n(?P<body>.*?)(?=^(?P=fence)$)",
    re.M | re.S,
)


class Person:
    """Somebody who follows a page in a fresh copy of this checkout, and where she is."""

    def __init__(self, scratch: str) -> None:
        self.home = Path(scratch).resolve() / "ann"
        self.here = copied(self.home / "toolroll")

    def play(self, block: str) -> str:
        """The commands of a block, each with what it prints now."""
        commands = [line for line in block.splitlines() if line.startswith("$ ")]
        return "".join(f"{line}\n{self.run(line[2:])}" for line in commands)

    def run(self, command: str) -> str:
        """What one command prints, as she would see it."""
        done = subprocess.run(
            ["bash", "-c", f"trap 'pwd >\"$HOME\"/../here' EXIT\n{command}"],
            cwd=self.here,
            env={
                "PATH": f"{PROGRAMS}{os.pathsep}{os.environ.get('PATH', os.defpath)}",
                "HOME": str(self.home),
            },
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            umask=0o022,
            timeout=60,
            check=False,
        )
        self.here = Path((self.home.parent / "here").read_text().rstrip("\n"))
        output = done.stdout.decode().replace(str(self.home), HOME)
        output = output.replace(str(PROGRAMS), f"{HOME}/.local/bin")
        return output + ("\n" if output and output[-1] != "\n" else "")


def documents() -> list[Path]:
    """Every page that may hold examples."""
    return [ROOT / "README.md", *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/*/README.md")]


def copied(into: Path) -> Path:
    """The files of this checkout that git knows or would take, copied."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        check=True,
    )
    for name in set(os.fsdecode(listed.stdout).split("\0")):
        if (ROOT / name).is_file():  # one that git still knows may be deleted by now
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(ROOT / name, target)
    return into


def renewed(text: str) -> str:
    """A page with all its examples played again, in order."""
    if RUN not in text:
        return text
    with TemporaryDirectory() as scratch:
        person = Person(scratch)

        def piece(found: re.Match[str]) -> str:
            head = text[found.start() : found.start("body")]
            if not found["file"]:
                return head + person.play(found["body"])
            (person.here / found["file"]).write_text(found["body"])
            return found[0]

        return PIECE.sub(piece, text)


def main(argv: list[str]) -> int:
    """The exit code: 1 when a page shows what is no longer printed."""
    pages = {path: path.read_text() for path in documents()}
    with ThreadPoolExecutor(2) as two:  # no page knows of another
        played = zip(pages, two.map(renewed, pages.values()), strict=True)
        stale = {path: now for path, now in played if now != pages[path]}
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
