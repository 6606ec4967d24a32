"""A real MCP session over stdio with every tool, on this very checkout: what `make demo` runs.

A new tool gets its steps in TOURS; one that has none fails the demo.  Prints what it does; exits 1
when a call does not end as its step says.
"""

import json
import os
import shutil
import sys
import textwrap
import tomllib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from io import TextIOWrapper
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from time import perf_counter
from typing import Any

from toolroll import __version__
from toolroll.errors import RpcError, ToolError
from toolroll.spawn import Server

CHECKOUT = Path(__file__).resolve().parent.parent
ANSWER_LINES = 14
ERAS = {"auto": "stateless", "handshake": "handshake"}


class Step:
    """One call: why it is made, its arguments, and what must be in its answer.

    With `fails` the answer is to be the error of that code.
    """

    def __init__(
        self, why: str, arguments: dict[str, Any], shows: str = "", fails: str = ""
    ) -> None:
        self.why = why
        self.arguments = arguments
        self.shows = shows
        self.fails = fails


class Tour:
    """The steps of one tool: first in the newest revision, then some after a handshake.

    With `copies` the tool works on copies of these files in a folder of its own.
    """

    def __init__(
        self, steps: Sequence[Step], older: Sequence[Step], copies: Sequence[str] = ()
    ) -> None:
        self.steps = steps
        self.older = older
        self.copies = copies


TOURS = {
    "ls": Tour(
        [
            Step(
                "this checkout two levels deep, without caches and dot files",
                {"path": ".", "depth": 2, "ignore": ["__pycache__", ".*"]},
                shows="common/",
            ),
            Step("a file is no directory", {"path": "Makefile"}, fails="NOT_A_DIRECTORY"),
        ],
        [
            Step(
                "a glob given as plain text", {"path": "scripts", "ignore": "*.md"}, shows="demo.py"
            )
        ],
    ),
    "view": Tour(
        [
            Step(
                "the first lines of a page",
                {"file_path": "README.md", "limit": 8},
                shows="toolroll",
            ),
            Step(
                "one function of a file",
                {"file_path": "common/toolroll/framing.py", "find_section": "enframe"},
                shows="def enframe",
            ),
            Step(
                "a name that is nearly right",
                {"file_path": "common/toolroll/framings.py"},
                shows="framing.py",
                fails="NOT_FOUND",
            ),
        ],
        [
            Step(
                "the last lines, with what the file is",
                {"file_path": "LICENSE", "offset": -3, "include_metadata": True},
                shows="SOFTWARE",
            )
        ],
    ),
    "edit": Tour(
        [
            Step(
                "one exact text, on a copy of this checkout's LICENSE",
                {
                    "file_path": "LICENSE",
                    "old_string": "MIT License",
                    "new_string": "The MIT License",
                },
                shows="+The MIT License",
            ),
            Step(
                "a text that occurs more than once",
                {"file_path": "LICENSE", "old_string": "Software", "new_string": "software"},
                fails="MULTIPLE_MATCHES",
            ),
        ],
        [
            Step(
                "an empty old_string creates a file, folders too",
                {"file_path": "notes/new.txt", "old_string": "", "new_string": "hello\n"},
                shows="notes/new.txt",
            )
        ],
        copies=["LICENSE"],
    ),
    "replace": Tour(
        [
            Step(
                "a new file, folders too",
                {"file_path": "notes/new.txt", "content": "hello\n"},
                shows="notes/new.txt",
            ),
            Step(
                "only if nobody has changed it since: another etag",
                {"file_path": "LICENSE", "content": "None.\n", "if_match": "000000000000"},
                fails="CONFLICT",
            ),
        ],
        [
            Step(
                "the same once more writes nothing",
                {"file_path": "notes/new.txt", "content": "hello\n"},
                shows="nchanged",
            )
        ],
        copies=["LICENSE"],
    ),
    "glob": Tour(
        [
            Step(
                "the newest Python files of the shared package",
                {"pattern": "common/**/*.py", "limit": 5},
                shows="of",
            ),
            Step(
                "nothing there, and why",
                {"pattern": "**/*.rs"},
                shows="No files",
            ),
        ],
        [Step("two kinds at once", {"pattern": "*.{md,toml}"}, shows="pyproject.toml")],
    ),
    "grep": Tour(
        [
            Step(
                "where framing is decided, with a line of context",
                {"pattern": r"def enframe\(", "context": 1, "include": "*.py"},
                shows="common/toolroll/framing.py",
            ),
            Step(
                "how often, file by file",
                {"pattern": "ToolError", "path": "common", "output_mode": "count", "limit": 5},
                shows="common/",
            ),
            Step(
                "nothing to the letter, something in another case",
                {"pattern": "TOOLERROR", "path": "common"},
                shows="case",
            ),
        ],
        [
            Step(
                "a pattern that does not close",
                {"pattern": "enframe("},
                fails="INVALID_PARAMS",
            )
        ],
    ),
    "bash": Tour(
        [
            Step("a variable and a directory", {"command": "greeting=hello; cd docs; pwd"}),
            Step(
                "both are still there",
                {"command": 'echo "$greeting from $(basename $PWD)"'},
                shows="hello from docs",
            ),
            Step(
                "and in the third call too",
                {"command": "greet() { echo $greeting $1; }; greet again"},
                shows="hello again",
            ),
            Step(
                "what was printed before a timeout is not lost",
                {"command": "echo first; sleep 30; echo never", "timeout": 300},
                shows="first",
                fails="TIMEOUT",
            ),
            Step(
                "a background job", {"command": "echo in the log", "background": True}, shows="pid"
            ),
        ],
        [
            Step(
                "a command that fails is no error of the tool",
                {"command": "ls /nowhere"},
                shows="exit 2",
            )
        ],
    ),
}


CODES = {"title": "1;36", "call": "1", "fine": "32", "meant": "33", "bad": "1;31", "dim": "2"}


class Paper:
    """What is printed: in colour on a terminal that wants it, plain elsewhere."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):  # an ASCII locale shows question marks
            sys.stdout.reconfigure(errors="replace")
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self.colour = sys.stdout.isatty() and not plain
        self.columns = min(shutil.get_terminal_size((100, 24)).columns, 120)

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """One line, cut at the edge."""
        room = self.columns - indent
        text = text if len(text) <= room else text[: room - 1] + "…"
        if self.colour and style:
            text = f"\033[{CODES[style]}m{text}\033[0m"
        print(" " * indent + text, flush=True)

    def answer(self, blocks: Sequence[dict[str, Any]]) -> None:
        """The blocks of a result: the first lines and the last one of texts, others by their kind."""
        texts = [block.get("text", f"({block['type']})") for block in blocks]
        lines = [row for text in texts for line in text.split("\n") for row in self.rows(line)]
        missing = len(lines) - ANSWER_LINES
        if missing > 0:
            lines[ANSWER_LINES - 2 : -1] = [f"… {missing + 1} more lines"]
        for line in lines:
            self.line(f"│ {line}", indent=4)

    def rows(self, line: str) -> list[str]:
        """A line as it fits between the edges."""
        line = line.expandtabs(4).rstrip()
        room = self.columns - 6
        return [line] if len(line) <= room else textwrap.wrap(line, room, replace_whitespace=False)


class Demo:
    """The whole session, and its totals."""

    def __init__(self, paper: Paper) -> None:
        self.paper = paper
        self.calls = self.meant = self.failed = self.sessions = 0

    def visit(self, folder: str, tour: Tour) -> None:
        """Take a tool's tour in both eras."""
        with workplace(tour) as root:
            command = [sys.executable, "-m", f"toolroll_{folder}", "--root", str(root)]
            for era, steps in (("auto", tour.steps), ("handshake", tour.older)):
                self.paper.line()
                # stderr is shown: a traceback there tells what went wrong
                server = Server(
                    command,
                    name=f"toolroll-{folder}",
                    era=era,
                    directory=str(root),
                    show_stderr=True,
                )
                self.speak(server, steps, era)

    def speak(self, server: Server, steps: Sequence[Step], era: str) -> None:
        """One session: start, list, the steps, end."""
        began = perf_counter()
        with server:
            tool = server.tools()[0]
            ready_ms = (perf_counter() - began) * 1000
            self.sessions += 1
            if era == "auto":
                self.paper.line(f"{tool['name']}  {tool['title']}", "title")
            name, version = server.info["name"], server.info["version"]
            spoken = f"MCP {server.revision}, {ERAS[era]}"
            self.paper.line(
                f"{name} {version} · {spoken} · started and listed in {ready_ms:.0f} ms", "dim", 2
            )
            for step in steps:
                self.take(server, tool["name"], step)

    def take(self, server: Server, tool: str, step: Step) -> None:
        """Make one call and show it."""
        paper = self.paper
        paper.line()
        paper.line(f"{step.why}:", indent=2)
        paper.line(f"{tool} {json.dumps(step.arguments, ensure_ascii=False)}", "call", indent=2)
        began = perf_counter()
        result = server.call(tool, step.arguments)
        taken_ms = (perf_counter() - began) * 1000
        paper.answer(result["content"])
        self.calls += 1
        complaint = judge(step, result)
        if complaint:
            self.failed += 1
            paper.line(f"✗ {complaint} · {taken_ms:.1f} ms", "bad", indent=4)
        elif step.fails:
            self.meant += 1
            paper.line(
                f"✓ the error that was asked for, {step.fails} · {taken_ms:.1f} ms",
                "meant",
                indent=4,
            )
        else:
            paper.line(f"✓ {taken_ms:.1f} ms", "fine", indent=4)


def judge(step: Step, result: dict[str, Any]) -> str:
    """What is wrong with the answer to a step; empty for nothing."""
    code = result.get("_meta", {}).get("toolroll/code", "an error") if result["isError"] else ""
    text = "\n".join(block.get("text", "") for block in result["content"])
    if code != step.fails:
        return f"unexpected: {code or 'no error'} instead of {step.fails or 'an answer'}"
    return "" if step.shows in text else f"unexpected: {step.shows!r} is not in the answer"


@contextmanager
def workplace(tour: Tour) -> Iterator[Path]:
    """The checkout; for a tool that writes, a folder with copies."""
    if not tour.copies:
        yield CHECKOUT
        return
    with TemporaryDirectory(prefix="toolroll-demo-") as folder:
        for name in tour.copies:
            shutil.copy(CHECKOUT / name, folder)
        yield Path(folder)


def tools() -> set[str]:
    """The folders of the tools that have a command of their own."""
    project = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]
    packages = [entry.split(".")[0] for entry in project["scripts"].values()]
    folders = [package.removeprefix("toolroll_") for package in packages]
    return {folder for folder in folders if (CHECKOUT / "tools" / folder).is_dir()}


def main() -> int:
    """The exit code: 0 when every call ended as its step says."""
    present = tools()
    paper = Paper()
    demo = Demo(paper)
    began = perf_counter()
    paper.line(f"toolroll {__version__} on Python {python_version()}: a session with every tool")
    for folder in [*(name for name in TOURS if name in present), *sorted(present - set(TOURS))]:
        try:
            if folder not in TOURS:
                raise LookupError(f"tools/{folder} has no steps in scripts/demo.py")
            demo.visit(folder, TOURS[folder])
        except (ToolError, RpcError, LookupError) as problem:
            demo.failed += 1
            for line in str(problem).split("\n"):
                paper.line(line, "bad", indent=2)
    failed = f"{demo.failed} failed" if demo.failed else "nothing failed"
    counts = f"{len(present)} tools, {demo.sessions} sessions, {demo.calls} calls"
    total = f"{counts}, {demo.meant} errors on purpose, {failed}, {perf_counter() - began:.2f} s"
    paper.line()
    paper.line(total, "bad" if demo.failed else "fine")
    return 1 if demo.failed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except BrokenPipeError:  # `| head`
        os._exit(1)
