"""From the command line to a served or called tool; the only place with argv and exit codes.

Exit codes: 0 done, 1 the tool's error, 2 a wrong command line.
"""

import os
import sys
from time import monotonic

from toolroll import __version__, stdio
from toolroll.call import Call
from toolroll.connection import Connection
from toolroll.errors import sentence
from toolroll.guard import Guard, Rate
from toolroll.jsontext import dumps, loads
from toolroll.limits import DEADLINE_S, OUTPUT_CHARS, RATE_BURST, RATE_PER_S
from toolroll.log import LEVELS, Log, Trace
from toolroll.paths import Roots, show
from toolroll.tool import Option

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    from toolroll.tool import Tool

    Json = Any


class UsageError(Exception):
    """A command line that makes no sense; its text goes to stderr and the exit code is 2."""


def duration(text: str) -> float:
    """The seconds in "30s", "2m", "1500ms" or a plain number of seconds."""
    for unit, seconds in (("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)):
        if text.endswith(unit):
            return _positive(float(text.removesuffix(unit)) * seconds)
    return _positive(float(text))


def count(text: str) -> int:
    """A whole number of at least one."""
    return int(_positive(int(text)))


def _positive(number: float) -> float:
    if not 0 < number < float("inf"):
        raise ValueError("must be more than zero")
    return number


def level(text: str) -> str:
    """One of the log's levels."""
    if text not in LEVELS:
        raise ValueError(f"one of {', '.join(LEVELS)}")
    return text


OPTIONS = (
    Option(
        "root",
        "Directory the tool may touch (default: where it is started).",
        str,
        "DIR",
        many=True,
    ),
    Option("deny", "Places inside the roots that stay closed.", str, "GLOB", many=True),
    Option(
        "deadline", "When a read-only tool answers with what it has.", duration, "TIME", DEADLINE_S
    ),
    Option("max-output", "Longest answer in characters.", count, "N", OUTPUT_CHARS),
    Option("structured", "Answer with structuredContent too, and declare its schema.", None),
    Option("secret", "Another variable whose value is never shown.", str, "NAME", many=True),
    Option("no-redact", "Show the values of secret-looking variables.", None),
    Option(
        "rate",
        "Calls a second and burst above it, or off.",
        Rate.parse,
        "N/BURST",
        f"{RATE_PER_S:g}/{RATE_BURST}",
    ),
    Option("trace", "Append everything on the wire to a file.", str, "FILE"),
    Option(
        "log-level", f"How much goes to stderr: {', '.join(LEVELS)}.", level, "LEVEL", "warning"
    ),
)
ACTIONS = (
    Option(
        "call", "Call the tool once: name=value ..., a JSON object, or - for JSON on stdin.", None
    ),
    Option("json", "With --call: print the structured form.", None),
    Option("schema", "Print the tool's definition.", None),
    Option("help", "Print this.", None),
    Option("version", "Print the version.", None),
)


def main(tool: "Tool") -> int:
    """The exit code of a server's process: it serves, or does what the command line asks instead."""
    stdio.fill_gaps()
    try:
        return _main(tool, sys.argv[1:], os.environ)
    except KeyboardInterrupt:  # before the server's own way with INT
        return 130
    except UsageError as problem:
        stdio.say(f"{program(tool)}: {problem}\nTry '{program(tool)} --help'.", fd=2)
        return 2
    except OSError as problem:  # the answer for a person could not be written
        os.write(2, f"{program(tool)}: {problem.strerror}\n".encode())
        return 1


def program(tool: "Tool") -> str:
    """The name of a tool's console script and of its server on the wire."""
    names = {"GlobTool": "glob", "GrepTool": "grep", "dispatch_agent": "dispatch-agent"}
    return f"toolroll-{names.get(tool.name, tool.name.lower())}"


def _main(tool: "Tool", argv: "Sequence[str]", environ: "Mapping[str, str]") -> int:
    """Raises: UsageError."""
    options, words = parse(tool, argv, environ)
    if options["version"]:
        stdio.say(f"{program(tool)} {__version__}")
        return 0
    if options["help"]:
        from toolroll.help import text

        status = tool.status(options) if tool.status is not None else ""
        stdio.say(text(tool, program(tool), declared(tool), actions(tool), status))
        return 0
    if options["schema"]:
        stdio.say(_pretty(tool.definition(options["structured"])))
        return 0
    if options["json"] and not options["call"]:
        raise UsageError("--json goes with --call")
    mode = next((one for one in tool.modes if options[one.option.name]), None)
    if words and not options["call"] and mode is None:
        raise UsageError(f"unexpected argument '{words[0]}'; a call is made with --call")
    service, roots = _service(tool, options, environ)
    if mode is not None:
        return mode.run(service.make(None), words)
    if options["call"]:
        return _call(tool, service, words, options["json"])
    server = {"name": program(tool), "title": tool.title, "version": __version__}
    connection = Connection(tool, server, instructions(tool, roots), options["structured"])
    return stdio.Server(connection, service).serve()


def instructions(tool: "Tool", roots: Roots) -> str:
    """What a host may put into the model's context: where the tool works."""
    if not roots.folders:
        return f"{tool.name} has no root directory: the server needs --root DIR."
    also = ", ".join(show(folder) for folder in roots.folders)
    return f"{tool.name}: relative paths start at {show(roots.folders[0])}. Allowed roots: {also}."


def _service(
    tool: "Tool", options: "dict[str, Json]", environ: "Mapping[str, str]"
) -> "tuple[stdio.Service, Roots]":
    """What a server needs of its command line; the tool's own `start` has the last word.

    Raises: UsageError.
    """
    try:
        if tool.start is not None:
            tool.start(options)
        folders = options["root"] or default_roots()
        roots = Roots(folders, options["deny"], options.get("also-read", ()))
        guard = Guard(environ, options["secret"], not options["no-redact"])
        trace = Trace(options["trace"], guard.mask) if options["trace"] else None
    except ValueError as problem:
        raise UsageError(str(problem)) from None
    except OSError as problem:
        raise UsageError(f"--trace {options['trace']}: {problem.strerror}") from None
    deadline_s = options["deadline"] if tool.read_only else None
    rate: Rate = options["rate"]

    def make(report: "stdio.Report | None") -> Call:
        return Call(roots, guard, options, deadline_s, report)

    def warm() -> None:
        for name in tool.warm:
            __import__(name)

    service = stdio.Service(
        admit=lambda: rate.take(monotonic()),
        make=make,
        run=tool.call,
        close=tool.close or (lambda: None),
        log=Log(program(tool), options["log-level"], guard.mask),
        trace=trace,
        warm=warm,
    )
    return service, roots


def default_roots() -> list[str]:
    """Where the server was started, unless that is everything: `/` or the home directory."""
    try:
        here = os.getcwd()
    except OSError:
        raise ValueError(
            "the directory this was started in is gone; name one with --root"
        ) from None
    return [] if here in ("/", os.path.realpath(os.path.expanduser("~"))) else [here]


# -- one call from the command line ------------------------------------------------------------------


def _call(tool: "Tool", service: stdio.Service, words: "Sequence[str]", as_json: bool) -> int:
    outcome = stdio.once(service, arguments(tool, words))
    stdio.say(dumps(outcome.structured).decode() if as_json else outcome.text)
    return stdio.leave(service, 1 if outcome.failed else 0)


def arguments(tool: "Tool", words: "Sequence[str]") -> "dict[str, Json]":
    """The arguments of a one-shot call: `name=value` words, or one JSON object, or `-` for stdin.

    Raises: UsageError.
    """
    if list(words) == ["-"]:
        return _from_json(tool, stdio.ask(), "standard input")
    if len(words) == 1 and words[0].lstrip().startswith("{"):
        return _from_json(tool, os.fsencode(words[0]), "the argument")
    arguments: dict[str, Json] = {}
    for word in words:
        name, equals, value = word.partition("=")
        if not equals:
            raise UsageError(f"'{word}' is not name=value")
        if name in arguments:
            earlier = arguments[name]
            value = [*(earlier if isinstance(earlier, list) else [earlier]), value]  # type: ignore[assignment]  # a repeated name makes a list
        arguments[name] = value
    return arguments


def _from_json(tool: "Tool", data: bytes, where: str) -> "dict[str, Json]":
    """Bare arguments, or the reference system's `{"name": ..., "params": {...}}`."""
    try:
        value = loads(data)
    except ValueError as problem:
        raise UsageError(f"{where} is {problem}") from None
    if not isinstance(value, dict):
        raise UsageError(f"{where} must hold a JSON object")
    if value.get("name") == tool.name and isinstance(value.get("params"), dict):
        return value["params"]  # type: ignore[no-any-return]  # a JSON object's keys are strings
    return value


def _pretty(value: "Json") -> str:
    from json import dumps as pretty

    return pretty(value, indent=2, ensure_ascii=False)


# -- options -----------------------------------------------------------------------------------------


def declared(tool: "Tool") -> "list[Option]":
    """The options of a tool's server: the common ones, its own in place of those of the same name."""
    own = {option.name: option for option in tool.options}
    common = [own.pop(option.name, option) for option in OPTIONS]
    return [*own.values(), *common]


def actions(tool: "Tool") -> "list[Option]":
    """What a tool's command can be told to do instead of serving."""
    return [*ACTIONS, *(mode.option for mode in tool.modes)]


def settings(text: str) -> "dict[str, Json]":
    """The options in a TOML file, by name; the `kind` of an option called `config`."""
    import tomllib

    try:
        with open(text, "rb") as file:
            return tomllib.load(file)
    except OSError as problem:
        raise ValueError(problem.strerror) from None


def parse(
    tool: "Tool", argv: "Sequence[str]", environ: "Mapping[str, str]"
) -> "tuple[dict[str, Json], list[str]]":
    """The options by name and the remaining words.

    The command line wins over the environment, that over the file that an option `config` names.

    Raises: UsageError.
    """
    options = declared(tool)
    known = {option.name: option for option in (*options, *actions(tool))}
    values: dict[str, Json] = {name: [] if option.many else None for name, option in known.items()}
    words = _read_words(iter(argv), known, values)
    file: dict[str, Json] = {}
    if "config" in known:
        file = values["config"] or _from_environment(known["config"], environ, {}) or {}
        _require_known(file, options)
    for option in options:
        if values[option.name] in (None, []):
            values[option.name] = _from_environment(option, environ, file)
    for option in actions(tool):
        values[option.name] = bool(values[option.name])
    return values, words


def _read_words(
    argv: "Iterator[str]", known: "Mapping[str, Option]", values: "dict[str, Json]"
) -> "list[str]":
    words: list[str] = []
    for word in argv:
        if word == "--":
            return [*words, *argv]
        if word == "-" or not word.startswith("-"):
            words.append(word)
            continue
        name, equals, text = word.lstrip("-").partition("=")
        option = known.get(name)
        if option is None:
            raise UsageError(_unknown(word, name, known))
        if option.kind is None and equals:
            raise UsageError(f"--{name} takes no value")
        if option.kind is not None and not equals:
            text = next(argv, "")
            if not text:
                raise UsageError(f"--{name} needs a value: --{name} {option.value}")
        value = True if option.kind is None else _value(option, text, f"--{name}")
        values[name] = [*values[name], value] if option.many else value
    return words


def _value(option: Option, text: str, where: str) -> "Json":
    try:
        return option.kind(text) if option.kind else text
    except ValueError as problem:
        raise UsageError(
            sentence(f"{where} {option.value}: '{text}' does not fit, {problem}")
        ) from None


def variable(option: Option) -> str:
    """The environment variable of an option."""
    return "TOOLROLL_ROOTS" if option.name == "root" else f"TOOLROLL_{_upper(option.name)}"


def _upper(name: str) -> str:
    return name.replace("-", "_").upper()


def _from_environment(
    option: Option, environ: "Mapping[str, str]", file: "Mapping[str, Json]"
) -> "Json":
    """An option's value when the command line does not give it."""
    name = variable(option)
    text = environ.get(name, "")
    if not text and option.name in file:
        return _from_file(option, file[option.name])
    if option.kind is None:
        return text.lower() not in ("", "0", "false", "no")
    if option.many:
        given = [part for part in text.split(os.pathsep) if part]
        return [_value(option, part, name) for part in given] or list(option.default or ())
    if text:
        return _value(option, text, name)
    return option.kind(option.default) if isinstance(option.default, str) else option.default


def _from_file(option: Option, value: "Json") -> "Json":
    where = f"--config: {option.name}"
    if option.kind is None:
        if not isinstance(value, bool):
            raise UsageError(f"{where} must be true or false")
        return value
    if option.many:
        parts = value if isinstance(value, list) else [value]
        return [_value(option, str(part), where) for part in parts]
    return _value(option, str(value), where)


def _require_known(file: "Mapping[str, Json]", options: "Sequence[Option]") -> None:
    known = {option.name: option for option in options}
    for name in file:
        if name not in known:
            raise UsageError(f"--config: {_unknown(name, name, known)}")


def _unknown(word: str, name: str, known: "Mapping[str, Option]") -> str:
    from difflib import get_close_matches

    near = get_close_matches(name, known, 1)
    return f"unknown option '{word}'" + (f", did you mean '--{near[0]}'?" if near else "")
