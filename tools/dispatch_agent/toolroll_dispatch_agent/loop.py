"""An agent: ask the model, make the calls it wants, again, until it reports or a limit stops it.

Knows neither provider nor wire nor disk: a model and tools are given, messages are plain dicts.
"""

from time import monotonic

from toolroll.errors import ErrorCode
from toolroll.jsontext import loads
from toolroll.limits import clip
from toolroll_dispatch_agent.instructions import DROPPED, EMPTY, GO_ON, LAST
from toolroll_dispatch_agent.models import ModelError, OutOfTimeError
from toolroll_dispatch_agent.servers import together
from toolroll_dispatch_agent.stops import (
    CallLimit,
    Finished,
    ModelFailed,
    Repetition,
    Stop,
    TimeLimit,
    TurnLimit,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from toolroll_dispatch_agent.models import Model, Reply
    from toolroll_dispatch_agent.servers import Tools
    from toolroll_dispatch_agent.stops import Limits

    Json = Any
    Message = dict[str, Json]

FULL, ROOMY = 0.7, 0.5
"""Old results are dropped when the context is filled so far, until it is no more than half full:
each drop makes the provider read everything anew, so there should be few."""

SMALL_CHARS = 200
"""A result that is not dropped: the word that it was would hardly be shorter."""

CHARS_PER_TOKEN = 4.0
MOST_PER_TOKEN = 5.0
"""A guess until the provider says how many tokens it has read, and how far that is believed: some
do not count what they have cached."""


class Agent:
    """A conversation with a model that has tools.

    `on_step` is told each step in a few words, `on_message` is given each message, `on_text` pieces
    of the model's text as they come.
    """

    def __init__(  # noqa: PLR0913 - who takes part, and who listens
        self,
        model: "Model",
        tools: "Tools",
        limits: "Limits",
        system: str,
        *,
        on_step: "Callable[[str], None]",
        on_message: "Callable[[Message], None]",
        on_text: "Callable[[str], None] | None" = None,
    ) -> None:
        self.model = model
        self.tools = tools
        self.limits = limits
        self.messages: list[Message] = [{"role": "system", "content": system}]
        self.turns = self.calls = 0
        self.tokens: int | None = None
        self._on_step, self._on_message, self._on_text = on_step, on_message, on_text
        self._chars_per_token = CHARS_PER_TOKEN
        self._fresh = 0  # where the messages begin that the model has not seen
        self._last_call, self._repeats = ("", ""), 0
        self._until = self._work_until = float("inf")

    def run(self, prompt: str) -> tuple[Stop, str]:
        """Why it ended, and the report; empty when the model could not be brought to write one.

        Raises: ToolError CANCELLED; asyncio.CancelledError after the model was stopped.
        """
        self._until = monotonic() + self.limits.seconds
        self._work_until = self.tools.deadline = monotonic() + self.limits.work_s
        self.turns = self.calls = self._repeats = 0
        self._add({"role": "user", "content": prompt})
        try:
            while True:
                self._turn()
        except Finished as report:
            return report, str(report)
        except Stop as stop:
            return stop, self._last_words(stop)

    def _turn(self) -> None:
        """Raises: Stop."""
        if self.turns >= self.limits.turns:
            raise TurnLimit(f"All {self.limits.turns} turns are used up.")
        message = self._ask({"tools": self.tools.schemas()}, self._work_until)
        if "tool_calls" in message:
            self._work(message["tool_calls"])
        elif (message["content"] or "").strip():
            raise Finished(message["content"])
        else:
            message["content"] = EMPTY
            self._add({"role": "user", "content": GO_ON})

    def _ask(self, fields: "Mapping[str, Json]", until: float) -> "Message":
        """The model's next message.  Raises: TimeLimit, ModelFailed."""
        self._drop_old()
        self._on_step(f"turn {self.turns + 1}: {self.model.label}")
        sent = self._chars()
        try:
            reply = self.model.ask(self.messages, fields, until - monotonic(), self._on_text)
        except OutOfTimeError:
            raise TimeLimit(f"The {self.limits.seconds:g} s are used up.") from None
        except ModelError as problem:
            raise ModelFailed(f"The model failed: {problem}.") from None
        self._count(reply, sent)
        self._add(reply.message)
        return reply.message

    def _work(self, calls: "list[Message]") -> None:
        """Make the calls of one turn, all at once.  Raises: CallLimit, Repetition."""
        self._fresh = len(self.messages)
        jobs = [(call, self._refusal(call)) for call in calls]
        self._on_step("; ".join(_shown(call) for call in calls))
        for call, text in zip(calls, together(self._result, jobs), strict=True):
            content = clip(text, self._room(len(calls)), "Ask for less at a time.")
            self._add({"role": "tool", "tool_call_id": call["id"], "content": content})
        for _, stop in jobs:
            if stop is not None:
                raise stop

    def _last_words(self, stop: Stop) -> str:
        """The report that the model writes when it must; empty when that fails too.

        Some providers refuse a conversation with calls in it and no tools beside it.
        """
        if isinstance(stop, ModelFailed):
            return ""
        self._add({"role": "user", "content": LAST.format(why=stop)})
        for fields in ({}, {"tools": self.tools.schemas(), "tool_choice": "none"}):
            try:
                return str(self._ask(fields, self._until)["content"] or "")
            except TimeLimit:
                break
            except ModelFailed:
                continue
        return ""

    # -- one call ----------------------------------------------------------------------------------

    def _refusal(self, call: "Message") -> Stop | None:
        """Why a call is not made; None when it is."""
        this = (call["function"]["name"], call["function"]["arguments"])
        self._repeats = self._repeats + 1 if this == self._last_call else 1
        self._last_call = this
        if self._repeats >= self.limits.repeats:
            return Repetition(f"The same call came {self._repeats} times in a row.")
        if self.calls >= self.limits.calls:
            return CallLimit(f"All {self.limits.calls} calls are used up.")
        self.calls += 1
        return None

    def _result(self, job: "tuple[Message, Stop | None]") -> str:
        """What a call gives, or why it gives nothing; both are for the model."""
        call, stop = job
        if stop is not None:
            return f"Error [{ErrorCode.RATE_LIMITED}]: not made. {stop}"
        function = call["function"]
        try:
            arguments = loads(function["arguments"].encode("utf-8", "surrogatepass"))
            problem = "" if isinstance(arguments, dict) else "they are no object"
        except ValueError as error:
            problem = f"they are {error}"
        if not problem:
            return self.tools.call(function["name"], arguments).text
        written, function["arguments"] = function["arguments"], "{}"  # providers read them too
        what = f"the arguments must be one JSON object, {problem}: {clip(written, 400)}"
        return f"Error [{ErrorCode.INVALID_PARAMS}]: {what}"

    # -- what is said, and how much ----------------------------------------------------------------

    def _add(self, message: "Message") -> None:
        self.messages.append(message)
        self._on_message(message)

    def _count(self, reply: "Reply", sent_chars: int) -> None:
        self.turns += 1
        if reply.tokens is not None:
            self.tokens = (self.tokens or 0) + reply.tokens
        if reply.sent_tokens:
            self._chars_per_token = min(sent_chars / reply.sent_tokens, MOST_PER_TOKEN)

    def _chars(self) -> int:
        return sum(len(str(message)) for message in self.messages)

    def _filled(self) -> float:
        return self._chars() / self._chars_per_token / self.limits.context_tokens

    def _room(self, results: int) -> int:
        """How long each of the results of one turn may be: all together half of what is not yet full."""
        chars = self.limits.context_tokens * CHARS_PER_TOKEN * FULL / 2
        return min(self.limits.result_chars, int(chars / results))

    def _drop_old(self) -> None:
        if self._filled() <= FULL:
            return
        for message in self.messages[: self._fresh]:
            chars = len(message["content"] or "")
            if message["role"] == "tool" and chars > SMALL_CHARS and self._filled() > ROOMY:
                message["content"] = DROPPED.format(chars=chars)


def _shown(call: "Message") -> str:
    return f"{call['function']['name']} {call['function']['arguments']}"
