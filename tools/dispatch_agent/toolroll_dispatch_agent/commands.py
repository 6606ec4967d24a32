"""Which programs serve an agent's tools, as the command line has it; starts none of them."""

import os
import sys

from toolroll import carried
from toolroll.jsontext import loads
from toolroll.limits import DEADLINE_S
from toolroll.saved import CACHE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from typing import Any

    Json = Any

OWN = {"View": "view", "GlobTool": "glob", "GrepTool": "grep", "LS": "ls"}
"""The tools an agent always has, and what their commands are called."""

INSIDE = "TOOLROLL_INSIDE_AGENT"
"""Set for every server an agent starts: where it is set, no agent starts."""

ME = "toolroll-dispatch-agent"

CACHES = (CACHE, "XDG_CACHE_HOME")
"""Where our own servers unpack what a zipapp carries: where the agent does."""

TIMEOUT_S = 30.0
"""How long a call of a tool may take, as in the reference system."""

RESULT_CHARS = 8_000
"""What a model gets to see of one result."""

MS_FROM = 1_000
"""A plain number from here on is milliseconds, as in the hosts' own files; below, seconds."""


class Command:
    """A server that can be started: `words` are the program and its arguments.

    `tool` is the one tool of a server of ours; the tools of others are all taken and `tool` is empty.
    `directory` None is that of the task.
    """

    __slots__ = ("directory", "environment", "name", "timeout_s", "tool", "words")

    def __init__(
        self,
        name: str,
        words: "Sequence[str]",
        tool: str = "",
        environment: "Mapping[str, str] | None" = None,
        directory: str | None = None,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        self.name = name
        self.words = [_rooted(words[0]), *words[1:]]
        self.tool = tool
        self.environment = {**(environment or {}), INSIDE: "1"}
        self.directory = directory
        self.timeout_s = timeout_s


def own(options: "Mapping[str, Json]", root: str, roots: "Sequence[str]") -> list[Command]:
    """The commands of View, GlobTool, GrepTool and LS, confined to `root`.

    `roots` are the agent's own, which `--deny /name` refers to.
    """
    limits = ["--root", root, "--structured", "--rate", "off"]
    limits += [
        "--max-output",
        str(_result_chars(options) * 9 // 10),
    ]  # room for the facts behind it
    limits += ["--deadline", f"{options.get('deadline') or DEADLINE_S:g}"]
    for pattern in denied(options.get("deny", ()), roots):
        limits += ["--deny", pattern]
    timeout_s = options.get("timeout") or TIMEOUT_S
    environment = {name: os.environ[name] for name in CACHES if name in os.environ}
    return [
        Command(
            f"toolroll-{name}",
            [*_program(options.get(f"{name}-path"), name), *limits],
            tool,
            environment,
            timeout_s=timeout_s,
        )
        for tool, name in OWN.items()
    ]


def added(options: "Mapping[str, Json]") -> list[Command]:
    """The commands that `--mcp-servers` names.

    Raises: ValueError for a file or list that cannot be read, a path with `..`, an agent in it.
    """
    text = options.get("mcp-servers")
    if not text:
        return []
    data = _content(text)
    timeout_s = options.get("timeout") or TIMEOUT_S
    commands = list(_listed(text, timeout_s) if data is None else _configured(data, timeout_s))
    names = [command.name for command in commands]
    for command in commands:
        check(command.words)
        if names.count(command.name) > 1:
            raise ValueError(f"--mcp-servers: two servers are called '{command.name}'")
    return commands


def check_options(options: "Mapping[str, Json]") -> None:
    """Refuse programs that are not to be started, and `--mcp-servers` that cannot be read.

    Raises: ValueError.
    """
    for name in OWN.values():
        if options.get(f"{name}-path"):
            check([options[f"{name}-path"]])
    added(options)


def check(words: "Sequence[str]") -> None:
    """Refuse a program that is not to be started.

    Raises: ValueError.
    """
    if ".." in words[0].split("/"):
        raise ValueError(f"'{words[0]}': the path of a command must not contain '..'")
    if any(os.path.basename(word).replace("_", "-").startswith(ME) for word in words):
        raise ValueError(f"'{' '.join(words)}': an agent is not started by an agent")


def refuse_recursion(environ: "Mapping[str, str]") -> None:
    """Refuse to start where an agent has started this process.

    Raises: ValueError.
    """
    if environ.get(INSIDE):
        raise ValueError(f"an agent is not started by an agent ({INSIDE} is set)")


def _rooted(program: str) -> str:
    """A path from where the agent was started: a server starts in the task's directory."""
    return os.path.abspath(program) if "/" in program and ".." not in program else program


def _program(chosen: str | None, name: str) -> list[str]:
    """The chosen executable, else the command beside this one, else the module."""
    if chosen:
        return [chosen]
    here = sys.argv[0]
    folder, file = os.path.split(here)
    beside = os.path.join(folder, file.replace(ME, f"toolroll-{name}"))
    if beside != here and os.access(beside, os.X_OK):
        return [os.path.abspath(beside)]
    return carried.command(f"toolroll_{name}")


def denied(patterns: "Sequence[str]", roots: "Sequence[str]") -> "Iterator[str]":
    """The patterns, and those of places in the agent's roots also as they are called from `/`."""
    for pattern in patterns:
        yield pattern
        if pattern.startswith("/"):
            for root in roots:
                yield (
                    "".join(f"\\{char}" if char in "\\*?[]{}" else char for char in root) + pattern
                )


def _result_chars(options: "Mapping[str, Json]") -> int:
    return int(options.get("result-chars") or RESULT_CHARS)


def _content(text: str) -> bytes | None:
    """What is in the file of that name, None when it is not meant as the name of a JSON file."""
    try:
        with open(text, "rb") as file:
            data = file.read()
    except OSError as problem:
        if text.endswith(".json"):
            raise ValueError(f"--mcp-servers: '{text}': {problem.strerror}") from None
        return None
    return data if text.endswith(".json") or data.lstrip().startswith(b"{") else None


def _listed(text: str, timeout_s: float) -> "Iterator[Command]":
    """The reference system's list: `./A;./B -flag`."""
    for part in text.split(";"):
        if words := part.split():
            name = os.path.basename(words[0]).split(".")[0]
            yield Command(name, words, timeout_s=timeout_s)


def _configured(data: bytes, timeout_s: float) -> "Iterator[Command]":
    """The servers of a file as the hosts have it: `{"mcpServers": {"name": {"command": ...}}}`."""
    try:
        value = loads(data)
    except ValueError as problem:
        raise ValueError(f"--mcp-servers: the file is {problem}") from None
    servers = _member(value, "mcpServers", dict, "the file")
    for name, fields in servers.items():
        where = f"server '{name}'"
        if not isinstance(fields, dict) or fields.get("disabled") is True:
            continue
        words = [_member(fields, "command", str, where), *_member(fields, "args", list, where, [])]
        if not words[0]:
            raise ValueError(f"--mcp-servers: {where}: its command is empty")
        environment = _member(fields, "env", dict, where, {})
        if not all(isinstance(one, str) for one in (*words, *environment.values())):
            raise ValueError(f"--mcp-servers: {where}: args and env must hold strings")
        directory = _member(fields, "cwd", str, where, "")
        limit_s = _seconds(fields.get("timeout"), where, timeout_s)
        yield Command(name, words, "", environment, directory or None, limit_s)


def _member(value: "Json", name: str, kind: type, where: str, default: "Json" = None) -> "Json":
    part = value.get(name) if isinstance(value, dict) else None
    if part is None and default is not None:
        return default
    if not isinstance(part, kind):
        kinds: dict[type, str] = {dict: "an object", list: "an array", str: "a string"}
        raise ValueError(f"--mcp-servers: {where} must have '{name}', {kinds[kind]}")
    return part


def _seconds(value: "Json", where: str, default: float) -> float:
    """A timeout: milliseconds, seconds when it is below MS_FROM, or a text as options have it."""
    from toolroll.cli import duration

    if value is None:
        return default
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = f"{value}ms" if value >= MS_FROM else f"{value}s"
    try:
        return duration(value)
    except (ValueError, AttributeError):
        raise ValueError(f"--mcp-servers: {where}: timeout {value!r} is no time") from None
