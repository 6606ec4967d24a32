"""`toolroll demo`: a real MCP session over stdio with every tool, on the checkout where there is one.

A new tool gets its steps in `tours`; one that has none fails the demo.
"""

import json
import shutil
from contextlib import contextmanager
from importlib.metadata import distribution
from pathlib import Path
from platform import python_version
from tempfile import TemporaryDirectory
from time import perf_counter

import toolroll
from toolroll.client import AUTO, HANDSHAKE
from toolroll.errors import RpcError, ToolError
from toolroll.spawn import Server
from toolroll_suite.installed import Installed, installed
from toolroll_suite.paper import Paper
from toolroll_suite.tours import TOURS, Step, Tour

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

ERAS = {AUTO: "stateless", HANDSHAKE: "handshake"}


class Demo:
    """The whole session, and its totals."""

    def __init__(self, paper: Paper, tree: Path) -> None:
        self.paper = paper
        self.tree = tree
        self.calls = self.meant = self.failed = self.sessions = 0

    def visit(self, one: Installed) -> None:
        """Take a tool's tour in both eras.

        Raises: ToolError, RpcError; LookupError for a tool that has none.
        """
        tour = TOURS.get(one.short)
        if tour is None:
            raise LookupError(f"{one.program} has no steps in toolroll_suite/tours.py")
        with workplace(tour, self.tree) as root:
            for era, steps in ((AUTO, tour.steps), (HANDSHAKE, tour.older)):
                self.paper.line()
                # stderr is shown: a traceback there tells what went wrong
                server = Server(
                    [one.command, "--root", str(root)],
                    name=one.program,
                    era=era,
                    directory=str(root),
                    show_stderr=True,
                )
                self.speak(server, steps, era)

    def speak(self, server: Server, steps: "Sequence[Step]", era: str) -> None:
        """One session: start, list, the steps, end."""
        began = perf_counter()
        with server:
            tool = server.tools()[0]
            ready_ms = (perf_counter() - began) * 1000
            self.sessions += 1
            if era == AUTO:
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


def judge(step: Step, result: "dict[str, Any]") -> str:
    """What is wrong with the answer to a step; empty for nothing."""
    code = result.get("_meta", {}).get("toolroll/code", "an error") if result["isError"] else ""
    text = "\n".join(block.get("text", "") for block in result["content"])
    if code != step.fails:
        return f"unexpected: {code or 'no error'} instead of {step.fails or 'an answer'}"
    return "" if step.shows in text else f"unexpected: {step.shows!r} is not in the answer"


@contextmanager
def workplace(tour: Tour, tree: Path) -> "Iterator[Path]":
    """The tree; for a tool that writes, a folder with copies."""
    if not tour.copies:
        yield tree
        return
    with TemporaryDirectory(prefix="toolroll-demo-") as folder:
        for name in tour.copies:
            shutil.copy(tree / name, folder)
        yield Path(folder)


@contextmanager
def sources() -> "Iterator[Path]":
    """The checkout this runs from, else a folder with what of one is installed."""
    package = Path(toolroll.__file__).resolve().parent
    checkout = package.parent.parent
    if (checkout / "pyproject.toml").is_file():
        yield checkout
        return
    about = distribution("toolroll")
    with TemporaryDirectory(prefix="toolroll-demo-") as scratch:
        tree = Path(scratch)
        shutil.copytree(
            package, tree / "common/toolroll", ignore=shutil.ignore_patterns("__pycache__")
        )
        (tree / "README.md").write_text(str(about.metadata.json["description"]))
        (tree / "LICENSE").write_text(about.read_text("licenses/LICENSE") or "")
        yield tree


def run() -> int:
    """The exit code: 0 when every call ended as its step says.

    Raises: UsageError.
    """
    tools = {one.short: one for one in installed()}
    paper = Paper()
    began = perf_counter()
    paper.line(
        f"toolroll {toolroll.__version__} on Python {python_version()}: a session with every tool"
    )
    with sources() as tree:
        demo = Demo(paper, tree)
        for name in sorted(tools, key=[*TOURS, *tools].index):
            try:
                demo.visit(tools[name])
            except (ToolError, RpcError, LookupError) as problem:
                demo.failed += 1
                paper.block(str(problem), "bad", indent=2)
    failed = f"{demo.failed} failed" if demo.failed else "nothing failed"
    counts = f"{len(tools)} tools, {demo.sessions} sessions, {demo.calls} calls"
    total = f"{counts}, {demo.meant} errors on purpose, {failed}, {perf_counter() - began:.2f} s"
    paper.line()
    paper.line(total, "bad" if demo.failed else "fine")
    return 1 if demo.failed else 0
