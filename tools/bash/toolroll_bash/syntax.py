"""Whether bash can read a text, asked of bash itself without running anything."""

import os

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call

CHECK_S = 20.0


GROUP_LINES = 1_000
"""Longest group: bash walks through the lines of one by recursion, 50,000 overflow its stack."""


def is_plain(text: str) -> bool:
    """True when bash, given the text as a group, surely runs nothing of it unless it can read all.

    A `}` where a command can stand may close the group; behind an error inside of a substitution bash
    goes on with the next line.
    """
    if any(opening in text for opening in ("$(", "<(", ">(")):
        return False
    if "}" not in text:
        return True
    import re

    return re.search(r"(?<![^\s;&|()])\}(?![^\s;&|()<>\\])", text) is None


def check(path: str, call: "Call") -> None:
    """Return when the text in a file can be read by bash, with or without extended patterns.

    Raises: ToolError INVALID_PARAMS with bash's own words; CANCELLED.
    """
    words = _complaint(path, (), call)
    if words and _complaint(path, ("-O", "extglob"), call):
        what = "\n".join(line.removeprefix(f"{path}: ") for line in words.splitlines())
        raise ToolError(ErrorCode.INVALID_PARAMS, f"nothing was run, bash cannot read it: {what}")


def _complaint(path: str, options: tuple[str, ...], call: "Call") -> str:
    """What `bash -n` has against the text, empty when nothing."""
    source, sink = os.pipe()
    try:
        redirects = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, os.devnull, os.O_WRONLY, 0),
            (os.POSIX_SPAWN_DUP2, sink, 2),
        ]
        environment = {"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"}
        command = ["bash", "--norc", "-n", *options, "--", path]
        pid = os.posix_spawnp("bash", command, environment, file_actions=redirects)
        os.close(sink)
        sink = -1
        words = _listen(source, pid, call)
    finally:
        os.close(source)
        if sink >= 0:
            os.close(sink)
    _, status = os.waitpid(pid, 0)
    return words if status else ""


def _listen(source: int, pid: int, call: "Call") -> str:
    """All that is said until the end; the process is killed when it takes too long or is not wanted."""
    from select import POLLIN, poll
    from signal import SIGKILL
    from time import monotonic

    poller = poll()
    poller.register(source, POLLIN)
    deadline = monotonic() + CHECK_S
    words = b""
    while True:
        if poller.poll(100):
            piece = os.read(source, 4096)
            if not piece:
                return words.decode("utf-8", "replace")[:2000].strip()
            words += piece
        elif call.cancelled or monotonic() > deadline:
            os.kill(pid, SIGKILL)
