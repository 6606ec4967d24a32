"""The commands of `toolroll`: their declaration, from which parsing, `--help` and completion come."""

import os

from toolroll import __version__
from toolroll.cli import UsageError
from toolroll.errors import RpcError, ToolError
from toolroll.stdio import say
from toolroll.tool import Option
from toolroll_suite.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

ONE, ANY = None, "*"
"""How often a word may stand, in argparse's terms."""


class Word:
    """A word of a command that is no option; `choices` gives what it may be, for completion."""

    __slots__ = ("about", "choices", "count", "name")

    def __init__(
        self,
        name: str,
        about: str,
        choices: "Callable[[], Sequence[str]]" = tuple,
        count: str | None = ONE,
    ) -> None:
        self.name = name
        self.about = about
        self.choices = choices
        self.count = count

    def told(self) -> str:
        """What it is for, with all that it may be."""
        choices = ", ".join(self.choices())
        return f"{self.about} One of: {choices}." if choices else self.about


class Command:
    """A command: `run` is given its words and options by name, and gives the exit code."""

    __slots__ = ("about", "name", "options", "run", "words")

    def __init__(
        self,
        name: str,
        about: str,
        run: "Callable[[Mapping[str, Any]], int]",
        words: "Sequence[Word]" = (),
        options: "Sequence[Option]" = (),
    ) -> None:
        self.name = name
        self.about = about
        self.run = run
        self.words = words
        self.options = options

    def parse(self, argv: "Sequence[str]") -> "dict[str, Any]":
        """The words and options by name.

        Raises: SystemExit for `--help` and for a command line that makes no sense.
        """
        from argparse import ArgumentParser

        parser = ArgumentParser(f"toolroll {self.name}", description=self.about, allow_abbrev=False)
        asks = "--help" in argv or "-h" in argv
        for word in self.words:
            about = word.told() if asks else ""  # finding the choices takes a while
            parser.add_argument(word.name, nargs=word.count, help=about)
        for option in self.options:
            if option.kind is None:
                parser.add_argument(f"--{option.name}", action="store_true", help=option.help)
            else:
                parser.add_argument(
                    f"--{option.name}",
                    action="append" if option.many else "store",
                    default=[] if option.many else None,
                    metavar=option.value,
                    help=option.help + (" May be repeated." if option.many else ""),
                )
        return vars(parser.parse_intermixed_args(argv))


def _list(_: "Mapping[str, Any]") -> int:
    from toolroll_suite.installed import installed

    tools = installed()
    names = max(len(one.tool.name) for one in tools)
    programs = max(len(one.program) for one in tools)
    for one in tools:
        name, program = one.tool.name.ljust(names), one.program.ljust(programs)
        say(f"{name}  {program}  {__version__}  {one.about}")
    return 0


def _config(asked: "Mapping[str, Any]") -> int:
    from toolroll_suite import config

    return config.run(asked)


def _doctor(asked: "Mapping[str, Any]") -> int:
    from toolroll_suite import doctor

    return doctor.run(asked)


def _call(asked: "Mapping[str, Any]") -> int:
    from toolroll_suite import call

    return call.run(asked)


def _demo(_: "Mapping[str, Any]") -> int:
    from toolroll_suite import demo

    return demo.run()


def _completion(asked: "Mapping[str, Any]") -> int:
    from toolroll_suite import completion

    say(completion.script(asked["SHELL"], COMMANDS))
    return 0


def _hosts() -> list[str]:
    from toolroll_suite.hosts import HOSTS

    return [host.name for host in HOSTS]


def _tools() -> list[str]:
    from toolroll_suite.installed import installed

    return [one.short for one in installed()]


def _shells() -> list[str]:
    from toolroll_suite.completion import SHELLS

    return list(SHELLS)


PYZ = Option("pyz", "Take the zipapps in this directory instead of the commands.", str, "DIR")

COMMANDS = (
    Command("list", "Print the tools that are installed.", _list),
    Command(
        "config",
        "Print what wires tools into a host, or write it into the host's own file.",
        _config,
        [
            Word("HOST", "The host.", _hosts),
            Word("TOOL", "A tool; none for all.", _tools, ANY),
        ],
        [
            Option("root", "Directory the tools may touch.", str, "DIR", many=True),
            PYZ,
            Option("file", "Another file than the host's usual one.", str, "FILE"),
            Option("write", "Put it into the file; all else there stays as it is.", None),
            Option("undo", "Make the file what it was before the last --write.", None),
        ],
    ),
    Command(
        "doctor", "Start every tool in both eras of MCP and tell what works.", _doctor, (), [PYZ]
    ),
    Command(
        "call",
        "Call a tool once through MCP and print its answer.",
        _call,
        [
            Word("TOOL", "The tool.", _tools),
            Word("ARGUMENT", "name=value, a JSON object, or - for JSON on stdin.", count=ANY),
        ],
        [Option("root", "Directory the tool may touch.", str, "DIR", many=True)],
    ),
    Command("demo", "Take a real MCP session through every tool.", _demo),
    Command(
        "completion",
        "Print what completes these commands in a shell.",
        _completion,
        [Word("SHELL", "The shell.", _shells)],
    ),
)


def main(argv: "Sequence[str]") -> int:
    """The exit code: 0 done, 1 what was asked for failed, 2 a wrong command line."""
    try:
        return _main(argv)
    except KeyboardInterrupt:
        return 130
    except UsageError as problem:
        say(f"toolroll: {problem}\nTry 'toolroll --help'.", fd=2)
        return 2
    except BrokenPipeError:  # `| head`
        os._exit(1)
    except (ToolError, RpcError, OSError) as problem:
        say(f"toolroll: {problem}", fd=2)
        return 1


def _main(argv: "Sequence[str]") -> int:
    """Raises: UsageError, ToolError, RpcError, OSError."""
    first = argv[0] if argv else ""
    if first in ("--help", "-h", "help"):
        say(_help())
        return 0
    if first == "--version":
        say(f"toolroll {__version__}")
        return 0
    commands = {command.name: command for command in COMMANDS}
    if first not in commands:
        raise UsageError(f"there is no command '{first}'{nearest(first, commands)}")
    return commands[first].run(commands[first].parse(argv[1:]))


def _help() -> str:
    wide = max(len(command.name) for command in COMMANDS)
    return "\n".join(
        [
            "toolroll: wires the tools into hosts, tries them, shows them.",
            "",
            *(f"  toolroll {command.name:<{wide}}  {command.about}" for command in COMMANDS),
            "",
            "'toolroll COMMAND --help' tells the rest, 'toolroll --version' the version.",
        ]
    )
