"""A server whose tool does what the wire's tests need to see: wait, fail, report, print, break.

Run as a program it serves like every tool; the tests of the core import its tool.  It knows no test.
"""

import os
import sys
from threading import Event, Lock

from toolroll.call import Call
from toolroll.cli import main
from toolroll.errors import ErrorCode, ToolError
from toolroll.schema import Annotated
from toolroll.tool import Answer, tool

_gates: dict[str, Event] = {}
_making = Lock()


class BugError(Exception):
    """What a bug in a tool may raise."""


def gate(name: str) -> Event:
    """The gate of that name: calls wait before it until another call opens it."""
    with _making:
        return _gates.setdefault(name, Event())


def echo(text: str, times: int, _call: Call) -> str:
    """The text, so often."""
    return text * times


def fail(text: str, _times: int, _call: Call) -> str:
    """A failure of the tool."""
    raise ToolError(ErrorCode.NOT_FOUND, f"'{text}' is not here", "Look elsewhere")


def bug(text: str, _times: int, _call: Call) -> str:
    """A failure of the programmer."""
    raise BugError(text)


def leave(_text: str, _times: int, _call: Call) -> str:
    """What a tool may try that thinks it is a program."""
    sys.exit(3)


def stray(_text: str, _times: int, _call: Call) -> str:
    """Write to stdout and read from stdin in every way a careless tool may."""
    print("a stray print", flush=True)  # noqa: T201 - what is to be seen
    os.write(1, b"stray bytes\n")
    os.system("echo a child says so; cat")
    return f"printed, read {len(sys.stdin.read())}"


def report(_text: str, times: int, call: Call) -> str:
    """Tell the host of each step, and of one that is no advance."""
    for step in range(1, times + 1):
        call.progress(step, times, f"step {step}")
        call.progress(step, times, "the same again")
    return f"{times} steps"


def hold(text: str, _times: int, call: Call) -> str:
    """Wait for a gate or for the end of the call, which opens the gate `stopped:NAME`.

    A path is a gate that opens from outside, when the file is made.
    """
    call.progress(0, None, "holding")
    while not (gate(text).wait(0.005) or (text.startswith("/") and os.path.exists(text))):
        if call.cancelled:
            gate(f"stopped:{text}").set()
            call.progress(1, None, "too late")
            call.check()
    return f"passed {text}"


def deaf(text: str, _times: int, call: Call) -> str:
    """Wait for a gate whatever the host says meanwhile."""
    call.progress(0, None, "holding")
    gate(text).wait()
    return f"passed {text}"


def unlock(text: str, _times: int, _call: Call) -> str:
    """Open a gate."""
    gate(text).set()
    return f"opened {text}"


def environ(text: str, _times: int, _call: Call) -> str:
    """The value of a variable."""
    return os.environ.get(text, "")


def odd(_text: str, _times: int, _call: Call) -> str:
    """An answer whose structured form is no JSON."""
    return "odd"


DEEDS = (echo, odd, fail, bug, leave, stray, report, hold, deaf, unlock, environ)


@tool(
    "Peer",
    title="Peer",
    read_only=True,
    fields={"size": {"type": "integer", "description": "Characters of the text."}},
    aliases={"word": "text"},
)
def peer(
    do: Annotated[str, "What to do.", {"enum": [deed.__name__ for deed in DEEDS]}],
    text: Annotated[str, "What to answer, or the name of a gate."] = "",
    times: Annotated[int, "How often.", {"minimum": 0, "maximum": 20_000_000}] = 1,
    ratio: Annotated[float, "A number."] = 1.0,
    loud: Annotated[bool, "Answer in capitals."] = False,
    words: Annotated[list[str], "More text."] = (),  # type: ignore[assignment]  # what `tool` takes as no default
    *,
    call: Call,
) -> Answer:
    """Do one of the things that a test of the wire asks for.

    Nothing that a model would want.
    """
    deed = next(deed for deed in DEEDS if deed.__name__ == do)
    answer = deed(" ".join([text, *words]), times, call)
    size: object = object() if do == "odd" else len(answer)
    return Answer(answer.upper() if loud else answer, data={"size": size, "ratio": ratio})


if __name__ == "__main__":
    sys.exit(main(peer))
