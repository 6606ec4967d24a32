"""A conversation with a model that has tools: question by question, kept in a file where that is wanted.

Knows no terminal: whoever shows it is told what is said and done.
"""

import os
import sys
from asyncio import CancelledError
from time import monotonic

from toolroll import stdio, writer
from toolroll.cli import UsageError
from toolroll.errors import ErrorCode, ToolError
from toolroll.jsontext import dumps, loads
from toolroll.paths import quoted, show
from toolroll_dispatch_agent import providers
from toolroll_dispatch_agent.instructions import CHAT
from toolroll_dispatch_agent.stops import Finished, Limits
from toolroll_dispatch_agent.task import guard_for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Self

    from toolroll.call import Call
    from toolroll_dispatch_agent.models import Model
    from toolroll_dispatch_agent.servers import Tools
    from toolroll_dispatch_agent.stops import Stop

    Json = Any
    Message = dict[str, Json]

ROLES = ("user", "assistant", "tool")
REMEMBERED = 0.5
"""What earlier questions and answers may fill of the context, when the next question comes."""


class Answered:
    """What came of a question: the text, why the loop ended, and a line of facts."""

    __slots__ = ("facts", "stop", "text")

    def __init__(self, text: str, stop: "Stop", facts: str) -> None:
        self.text = text
        self.stop = stop
        self.facts = facts


class Conversation:
    """Questions and answers that know of each other, in the first root, until it is closed.

    `on_text` is given pieces of the model's text as they come, `on_message` each message, `on_retry`
    why a model is asked again.
    """

    def __init__(
        self,
        call: "Call",
        *,
        on_text: "Callable[[str], None] | None" = None,
        on_message: "Callable[[Message], None]" = lambda _: None,
        on_retry: "Callable[[str], None]" = lambda _: None,
    ) -> None:
        """Raises: UsageError."""
        self._call = call
        self._listeners = on_text, on_message, on_retry
        self._choice = _choice(call)
        self.label = self._choice.label
        self.guard = guard_for(call, self._choice.key)
        self._limits = Limits(call.options)
        fields = {"temperature": "temperature", "max-tokens": "max_tokens"}
        given = {fields[name]: call.options.get(name) for name in fields}
        self._settings = {name: value for name, value in given.items() if value is not None}
        self._root = _root(call)
        self._system = _instructions(call.options.get("system") or "", self._root)
        self._file = call.options.get("history") or ""
        self.messages = load(self._file) if self._file else []
        self._model: Model | None = None
        self._tools: Tools | None = None
        self._stopping = False
        try:
            self._keep()  # now, before anything is said that could not be kept
        except ToolError as problem:
            raise UsageError(str(problem)) from None

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        if self._tools is not None:
            self._tools.close()

    @property
    def tools(self) -> "Tools":
        """What the model can call; new ones after a question was stopped."""
        if self._tools is None:
            from toolroll_dispatch_agent.servers import Tools

            self._tools = Tools(self._root, self._call.options, self._call, self.guard)
        return self._tools

    def answer(self, question: str) -> Answered | None:
        """What came of a question; None when it was stopped.

        What has no answer is forgotten.

        Raises: ToolError when no tools can be started, or the history cannot be written.
        """
        from toolroll_dispatch_agent.loop import CHARS_PER_TOKEN, Agent
        from toolroll_dispatch_agent.models import Model

        began = monotonic()
        on_text, on_message, on_retry = self._listeners
        chars = int(self._limits.context_tokens * CHARS_PER_TOKEN * REMEMBERED)
        with Model(self._choice, self._settings, on_retry, self._clean) as model:
            agent = Agent(
                model,
                self.tools,
                self._limits,
                self._system,
                on_step=lambda _: None,
                on_message=on_message,
                on_text=on_text,
            )
            agent.messages += newest(self.messages, chars)
            self._model = model
            if self._stopping:
                model.stop()
            try:
                stop, text = agent.run(self._clean(question))
            except CancelledError:
                return None
            finally:
                self._settle()
        if text.strip():
            self.messages = agent.messages[1:]
            self._keep()
        facts = [_counted(agent.turns, "turn"), _counted(agent.calls, "call")]
        facts += [] if agent.tokens is None else [f"{agent.tokens:,} tokens"]
        facts += [f"{self.label}", f"{monotonic() - began:.1f} s"]
        return Answered(self._clean(text), stop, " · ".join(facts))

    def stop(self) -> None:
        """Have the running answer end at once; from any thread."""
        self._stopping = True
        if self._tools is not None:
            self._tools.stop()
        if self._model is not None:
            self._model.stop()

    def clear(self) -> None:
        """Forget all that was said.  Raises: ToolError."""
        self.messages = []
        self._keep()

    def _clean(self, text: str) -> str:
        return self.guard.clean(text).text

    def _settle(self) -> None:
        self._model = None
        if self._stopping:
            self._tools, self._stopping = None, False

    def _keep(self) -> None:
        if self._file:
            save(self._file, self.messages)


def ask(call: "Call", words: "Sequence[str]") -> int:
    """The exit code of one question, given as words or on stdin: 0 answered, 1 not.

    Raises: UsageError.
    """
    question = " ".join(words) or stdio.ask().decode("utf-8", "replace").strip()
    if not question:
        raise UsageError("--ask: there is no question on stdin")
    verbose = call.options.get("verbose")
    with Conversation(call, on_message=_tell if verbose else lambda _: None) as conversation:
        try:
            answered = conversation.answer(question)
        except ToolError as problem:
            stdio.say(str(problem), fd=2)
            return 1
    if answered is None:
        return 1
    if answered.text.strip():
        stdio.say(answered.text.strip())
    if isinstance(answered.stop, Finished):
        return 0
    stdio.say(conversation.guard.clean(str(answered.stop)).text, fd=2)
    return 1


def calls_of(message: "Message") -> "list[str]":
    """The calls in a message, as they are shown."""
    made = [call["function"] for call in message.get("tool_calls", ())]
    return [f"{one['name']} {one['arguments']}" for one in made]


def newest(messages: "list[Message]", chars: int) -> "list[Message]":
    """The last questions with all that came of them, at most `chars` together, but the last one always."""
    starts = [at for at, message in enumerate(messages) if message["role"] == "user"]
    for start in starts:
        if start == starts[-1] or sum(len(str(one)) for one in messages[start:]) <= chars:
            return messages[start:]
    return []


def load(path: str) -> "list[Message]":
    """The messages in a file, none when there is no such file.

    Raises: UsageError.
    """
    try:
        with open(path, "rb") as file:
            value = loads(file.read())
    except FileNotFoundError:
        return []
    except (OSError, ValueError) as problem:
        why = problem.strerror if isinstance(problem, OSError) else f"it is {problem}"
        raise UsageError(f"--history {quoted(path)}: {why}") from None
    messages = value.get("messages") if isinstance(value, dict) else None
    if not isinstance(messages, list) or not all(map(_is_message, messages)):
        raise UsageError(f"--history {quoted(path)}: it holds no conversation")
    return messages


def save(path: str, messages: "list[Message]") -> None:
    """Make them a file's content, which its owner alone may read; there is the old or the new, never half.

    Raises: ToolError.
    """
    folder, name = os.path.split(os.path.realpath(path))
    try:
        at = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    except OSError as problem:
        text = f"--history {quoted(path)}: {problem.strerror}"
        raise ToolError(ErrorCode.EXECUTION_ERROR, text) from None
    try:
        with writer.locked(at, path) as place:
            status = _there(name, place.descriptor, path)
            data = dumps({"messages": messages}) + b"\n"
            writer.write(place, name, [data], expect=status, shown=path)
    finally:
        os.close(at)


def _there(name: str, folder: int, path: str) -> os.stat_result:
    """The status of a file that is there from here on.  Raises: ToolError."""
    flags = os.O_RDONLY | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        fd = os.open(name, flags, 0o600, dir_fd=folder)
    except OSError as problem:
        text = f"--history {quoted(path)}: {problem.strerror}"
        raise ToolError(ErrorCode.EXECUTION_ERROR, text) from None
    try:
        return os.fstat(fd)
    finally:
        os.close(fd)


def _is_message(value: "Json") -> bool:
    """True for what can be sent to a model again."""
    if not isinstance(value, dict) or value.get("role") not in ROLES:
        return False
    calls = value.get("tool_calls", [])
    return isinstance(value.get("content"), str | None) and isinstance(calls, list)


def _choice(call: "Call") -> providers.Choice:
    """The model to ask.  Raises: UsageError."""
    try:
        choice = providers.choose(call.options, os.environ, call.check)
        providers.library()
    except providers.NoModelError as problem:
        raise UsageError(str(problem)) from None
    return choice


def _root(call: "Call") -> str:
    try:
        with call.roots.open_directory(".") as opened:
            return opened.path
    except ToolError as problem:
        raise UsageError(str(problem)) from None


def _instructions(given: str, root: str) -> str:
    """The given text, what is in a file of that name, or ours.  Raises: UsageError."""
    if not given:
        return CHAT.format(root=show(root))
    if not os.path.isfile(given):
        return given
    try:
        with open(given, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError as problem:
        raise UsageError(f"--system {quoted(given)}: {problem.strerror}") from None


def _tell(message: "Message") -> None:
    for text in calls_of(message):
        print(text, file=sys.stderr, flush=True)  # noqa: T201 - for a person


def _counted(number: int, what: str) -> str:
    return f"{number} {what}" + ("" if number == 1 else "s")
