"""The tools that are installed: their declarations and the programs that serve them; starts none."""

import os
from importlib import import_module
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from shutil import which

from toolroll.cli import UsageError
from toolroll.limits import DEADLINE_S
from toolroll.paths import quoted
from toolroll.tool import Tool
from toolroll_suite.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

MARK = "toolroll-"
"""What every console script of a tool begins with."""

PATIENCE_S = 630.0
"""What is waited for a tool that runs programs or asks models: ten minutes and its end."""


class Installed:
    """A tool and its console script, `program`; `command` is the absolute path that serves it."""

    __slots__ = ("command", "program", "tool")

    def __init__(self, program: str, tool: Tool, command: str) -> None:
        self.program = program
        self.tool = tool
        self.command = command

    @property
    def short(self) -> str:
        """Its name as people type it."""
        return self.program.removeprefix(MARK)

    @property
    def about(self) -> str:
        """The first sentence of what a model reads."""
        first = self.tool.description.split("\n\n")[0].replace("\n", " ")
        return first.split(". ")[0].rstrip(".") + "."

    @property
    def timeout_s(self) -> float:
        """What its longest call takes, with room to spare."""
        return PATIENCE_S if self.tool.annotations["openWorldHint"] else DEADLINE_S + 10


def installed(pyz: str | None = None) -> list[Installed]:
    """All tools by their programs' names; with `pyz`, served by the zipapps in that directory.

    Raises: UsageError where nothing is installed.
    """
    found = _distribution()
    return [
        Installed(
            program,
            _declared(package),
            _script(program, found) if pyz is None else os.path.abspath(f"{pyz}/{program}.pyz"),
        )
        for program, package in sorted(_packages(found).items())
    ]


def programs() -> "frozenset[str]":
    """The names of all tools' programs; no other name is ours, whatever it begins with.

    Raises: UsageError where nothing is installed.
    """
    return frozenset(_packages(_distribution()))


def chosen(names: "Sequence[str]", tools: "Sequence[Installed]") -> list[Installed]:
    """The tools of these names, on the wire or as commands; all for no names.

    Raises: UsageError for a name that none has, and for a program that is not there or cannot be run.
    """
    by_name = {key: one for one in tools for key in (one.short, _plain(one.tool.name), one.program)}
    for name in names:
        if _plain(name) not in by_name:
            raise UsageError(f"there is no tool '{name}'{nearest(_plain(name), by_name)}")
    found = list(dict.fromkeys(by_name[_plain(name)] for name in names)) or list(tools)
    for one in found:
        _require_program(one.command)
    return found


def _require_program(path: str) -> None:
    if not os.path.isfile(path):
        raise UsageError(f"{quoted(path)} is not there")
    if not os.access(path, os.X_OK):
        raise UsageError(f"{quoted(path)} cannot be run; try: chmod +x {quoted(path)}")


def _plain(name: str) -> str:
    return name.lower().replace("_", "-")


def _distribution() -> Distribution:
    """Raises: UsageError."""
    try:
        return distribution("toolroll")
    except PackageNotFoundError:
        raise UsageError("toolroll is not installed here; try: pip install toolroll") from None


def _packages(found: Distribution) -> dict[str, str]:
    """The package of every tool by its program's name."""
    return {
        point.name: point.module.split(".")[0]
        for point in found.entry_points
        if point.group == "console_scripts" and point.name.startswith(MARK)
    }


def _declared(package: str) -> Tool:
    module = import_module(f"{package}.tool")
    return next(one for one in vars(module).values() if isinstance(one, Tool))


def _script(program: str, found: Distribution) -> str:
    """The absolute path of a console script: as it was recorded, else wherever PATH has it."""
    for file in found.files or ():
        if file.name == program:
            return os.path.abspath(str(found.locate_file(file)))
    return os.path.abspath(which(program) or program)
