"""Why a loop ends, each reason an exception of its own, and the limits that make it; asks no clock."""

from toolroll_dispatch_agent.commands import RESULT_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    Json = Any

TURNS, CALLS, SECONDS, REPEATS = 20, 60, 120.0, 3
CONTEXT_TOKENS = 128_000

LAST_TURN_S = 30.0
"""What is kept of the time for the last turn, but never more than a quarter of it."""


class Stop(Exception):  # noqa: N818 - a reason to stop, which is seldom an error
    """Why the loop ended; its text says it in words, `status` in one."""

    status = ""


class Finished(Stop):
    """The model has written its report, which is the text."""

    status = "done"


class TurnLimit(Stop):
    """The model was asked as often as it may be."""

    status = "max_turns"


class CallLimit(Stop):
    """The model wanted another call than it may make."""

    status = "max_calls"


class TimeLimit(Stop):
    """The time is used up, but for the last turn."""

    status = "max_seconds"


class Repetition(Stop):
    """The model made the same call again and again."""

    status = "repeated"


class ModelFailed(Stop):
    """The model cannot be asked any more."""

    status = "model_failed"


class Limits:
    """What one task may take, from the command line."""

    __slots__ = ("calls", "context_tokens", "repeats", "result_chars", "seconds", "turns")

    def __init__(self, options: "Mapping[str, Json]") -> None:
        self.turns: int = options.get("max-turns") or TURNS
        self.calls: int = options.get("max-calls") or CALLS
        self.seconds: float = options.get("max-seconds") or SECONDS
        self.repeats: int = options.get("max-repeats") or REPEATS
        self.result_chars: int = options.get("result-chars") or RESULT_CHARS
        self.context_tokens: int = options.get("context-tokens") or CONTEXT_TOKENS

    @property
    def work_s(self) -> float:
        """The time before the last turn."""
        return self.seconds - min(LAST_TURN_S, self.seconds / 4)
