"""The declaration of Bash: what the model sees; the work is done in `session`, imported at the first call."""

import os

from toolroll.call import Call
from toolroll.cli import count, duration
from toolroll.errors import ErrorCode, ToolError
from toolroll.schema import Annotated
from toolroll.tool import Answer, Option, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolroll_bash.policy import Policy
    from toolroll_bash.session import Sessions

    Json = Any

TIMEOUT_S, MOST_S = 120.0, 600.0

FIELDS = {
    "exit_code": {"type": "integer", "description": "128 and the signal's number for a signal."},
    "duration_ms": {"type": "integer", "description": "From start to answer."},
    "cwd": {"type": "string", "description": "Working directory behind the command."},
    "session": {"type": "string", "description": "The shell it ran in."},
    "truncated": {"type": "boolean", "description": "A part of the output was left out."},
    "file": {"type": "string", "description": "Where the whole output lies."},
    "pid": {"type": "integer", "description": "Of a background job."},
}

MODES = ("auto", "kernel", "shims", "text")


def mode(text: str) -> str:
    """One of the ban modes."""
    if text not in MODES:
        raise ValueError(f"one of {', '.join(MODES)}")
    return text


OPTIONS = (
    Option("env", "Secret-looking variable that the shell may see.", str, "NAME", many=True),
    Option("cwd", "Directory where sessions start (default: the first root).", str, "DIR"),
    Option("shell-rc", "File that every new shell reads first.", str, "FILE"),
    Option("max-sessions", "Sessions at once.", count, "N", "8"),
    Option("default-timeout", "Time of a command that names none.", duration, "TIME", "120s"),
    Option("max-timeout", "Longest time a command may ask for.", duration, "TIME", "600s"),
    Option("ban", "Another program that may not be run.", str, "NAME", many=True),
    Option("allow", "A banned program that may be run.", str, "NAME", many=True),
    Option("ban-file", "More of them: names, one a line.", str, "FILE"),
    Option("allow-only", "The only programs that may be run: names, one a line.", str, "FILE"),
    Option(
        "ban-mode", f"What stops programs at run time: {', '.join(MODES)}.", mode, "MODE", "auto"
    ),
    Option("no-network", "Sessions have no network, or do not start.", None),
)


class Server:
    """What this process has of its own: what may run, and the sessions, made at the first call."""

    policy: "Policy | None" = None
    sessions: "Sessions | None" = None


def start(options: "dict[str, Json]") -> None:
    """Raises: ValueError for options that cannot work."""
    if options["cwd"] and not os.path.isdir(options["cwd"]):
        raise ValueError(f"--cwd '{options['cwd']}' is no directory")
    if options["shell-rc"] and not os.path.isfile(options["shell-rc"]):
        raise ValueError(f"--shell-rc '{options['shell-rc']}' is no file")
    if any(options[name] for name in ("ban", "allow", "ban-file", "allow-only")):
        Server.policy = _policy(options)


def status(options: "dict[str, Json]") -> str:
    """What stands behind the text of commands here, found out by trying."""
    from toolroll_bash.modes import in_force

    return str(in_force(options))


def close() -> None:
    """End every process that was started here."""
    sessions, Server.sessions, Server.policy = Server.sessions, None, None
    if sessions is not None:
        sessions.close()


@tool(
    "Bash",
    title="Run shell commands",
    destructive=True,
    open_world=True,
    aliases={"cmd": "command", "stdin": "input", "run_in_background": "background"},
    fields=FIELDS,
    options=OPTIONS,
    start=start,
    close=close,
    status=status,
    warm=("toolroll_bash.session", "toolroll_bash.policy", "toolroll_bash.wrappers"),
)
def bash(  # noqa: PLR0913 - the reference system's parameters
    command: Annotated[str, "Bash code, many lines too."],
    timeout: Annotated[int | None, "Milliseconds (120000, at most 600000).", {"minimum": 1}] = None,
    session: Annotated[
        str, "Name of the shell: letters, digits and `_.-`; others run side by side."
    ] = "main",
    background: Annotated[bool, "Start it, return its pid and log file at once."] = False,
    input: Annotated[str | None, "Text on stdin."] = None,  # noqa: A002 - its name on the wire
    restart: Annotated[bool, "End the session first, jobs too; `command` may be empty."] = False,
    *,
    call: Call,
) -> Answer:
    """Run a command in a persistent bash: directory, variables, functions and options stay.

    Sessions are separate shells. There is no terminal: stdin is `input` or empty, nothing can ask, so
    give flags like -y. stdout and stderr come together; long output is cut in the middle and kept in a
    file. A timeout stops the command and keeps the session. Jobs started with & or `background` live
    until the server ends. Not confined to any directory.
    """
    from toolroll_bash.session import Task

    sessions = _sessions(call)
    limit_s, note = _limit(timeout, call)
    if background and call.options.get("call"):
        what = "background=true makes no sense in a one-shot call: all ends with it"
        raise ToolError(ErrorCode.INVALID_PARAMS, what)
    answer = sessions.run(_name(session), Task(command, limit_s, background, input, restart), call)
    answer.facts = [*answer.facts, *note]
    return answer


def _sessions(call: Call) -> "Sessions":
    if Server.sessions is None:
        from toolroll_bash.session import Sessions

        Server.policy = Server.policy or _policy(call.options)
        Server.sessions = Sessions(call.options, Server.policy)
    return Server.sessions


def _policy(options: "dict[str, Json]") -> "Policy":
    """Raises: ValueError."""
    from toolroll_bash.policy import Policy

    return Policy.of(options)


def _limit(timeout_ms: int | None, call: Call) -> tuple[float, list[str]]:
    """The seconds a command may run, and what is to be said of it."""
    most_s = call.options.get("max-timeout") or MOST_S
    if timeout_ms is None:
        return min(call.options.get("default-timeout") or TIMEOUT_S, most_s), []
    if timeout_ms <= most_s * 1000:
        return timeout_ms / 1000, []
    return most_s, [f"timeout cut to {most_s * 1000:.0f} ms"]


def _name(session: str) -> str:
    """Raises: ToolError INVALID_PARAMS."""
    plain = session.replace("_", "").replace(".", "").replace("-", "")
    if (
        len(session) > 64
        or not session.strip(".")
        or not (plain.isascii() and (plain + "x").isalnum())
    ):
        what = f"'session' must be 1 to 64 letters, digits, '_', '.' or '-', not {session!r}"
        raise ToolError(ErrorCode.INVALID_PARAMS, what)
    return session
