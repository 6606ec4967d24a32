"""`toolroll doctor`: starts every tool as a host would and tells what works."""

import platform
import subprocess
from time import perf_counter

from toolroll import __version__
from toolroll.client import HANDSHAKE, STATELESS
from toolroll.errors import RpcError, ToolError
from toolroll.spawn import Server
from toolroll_suite.installed import Installed, installed
from toolroll_suite.paper import Paper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

HELP_S = 30.0
IN_FORCE = "In force here: "
"""How the line of `--help` begins that tells what a tool found out about this machine."""


class Findings:
    """What is known of one tool: facts in the order they were found, and what is wrong with it."""

    __slots__ = ("facts", "problems", "roots")

    def __init__(self) -> None:
        self.facts: list[str] = []
        self.problems: list[str] = []
        self.roots = ""


def run(asked: "Mapping[str, Any]") -> int:
    """Print the findings; 1 when a tool does not work.

    Raises: UsageError.
    """
    tools = installed(asked["pyz"])
    paper = Paper()
    paper.line(
        f"toolroll {__version__}, Python {platform.python_version()}, {platform.platform()}",
        "title",
    )
    paper.block(
        "From start to tools listed, in both eras of MCP, with no more environment than Codex gives:"
    )
    wide = max(len(one.tool.name) for one in tools)
    works, roots = 0, set()
    for one in tools:
        found = examine(one)
        works += not found.problems
        roots.add(found.roots)
        mark, style = ("✗", "bad") if found.problems else ("✓", "fine")
        paper.block(f"{mark} {one.tool.name:<{wide}}  {', '.join(found.facts)}", style)
        for problem in found.problems:
            paper.block(problem, "bad", indent=4)
    for root in sorted(roots - {""}):
        paper.block(f"Here a tool {root}" if root.startswith("has no") else f"Here: {root}", "dim")
    paper.line(f"{works} of {len(tools)} work.", "fine" if works == len(tools) else "bad")
    return 0 if works == len(tools) else 1


def examine(one: Installed) -> Findings:
    """Start a tool in both eras, with no more environment than the strictest host gives."""
    found = Findings()
    for era in (STATELESS, HANDSHAKE):
        try:
            _speak(one, era, found)
        except (ToolError, RpcError) as problem:
            found.problems.append(f"{era}: {problem}")
    if one.tool.status is not None:
        _ask_status(one, found)
    return found


def _speak(one: Installed, era: str, found: Findings) -> None:
    """Raises: ToolError, RpcError."""
    began = perf_counter()
    with Server([one.command], name=one.program, era=era) as server:
        names = [tool["name"] for tool in server.tools()]
        took_ms = (perf_counter() - began) * 1000
        if names != [one.tool.name]:
            found.problems.append(f"{era}: it offers {', '.join(names) or 'nothing'}")
        if not found.facts:
            found.facts.append(f"{server.info.get('name')} {server.info.get('version')}")
        found.facts.append(f"{server.revision}: {took_ms:.0f} ms")
        found.roots = server.instructions.removeprefix(one.tool.name).removeprefix(": ").lstrip()


def _ask_status(one: Installed, found: Findings) -> None:
    """Add what the tool's `--help` says is in force on this machine."""
    try:
        done = subprocess.run(
            [one.command, "--help"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            timeout=HELP_S,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as problem:
        found.problems.append(f"--help: {problem}")
        return
    for line in done.stdout.splitlines():
        if line.startswith(IN_FORCE):
            found.facts.append(line.removeprefix(IN_FORCE).rstrip("."))
