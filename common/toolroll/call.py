"""What a running tool may ask of its host: is it still wanted, how long may it take, and progress.

Knows nothing of the wire: progress goes to a function that the caller gave.
"""

from time import monotonic

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from toolroll.guard import Guard
    from toolroll.paths import Roots


class Call:
    """One call of a tool: made when it is started, shared with the thread that may cancel it.

    `deadline` is on the monotonic clock in seconds, None for none.  `options` holds the server's own
    command line by option name without dashes (`{"max-output": 30000, ...}`).
    """

    __slots__ = ("_listener", "_report", "cancelled", "deadline", "guard", "options", "roots")

    def __init__(
        self,
        roots: "Roots",
        guard: "Guard",
        options: "dict[str, Any] | None" = None,
        deadline_s: float | None = None,
        report: "Callable[[float, float | None, str], None] | None" = None,
    ) -> None:
        self.roots = roots
        self.guard = guard
        self.options = options or {}
        self.deadline = None if deadline_s is None else monotonic() + deadline_s
        self.cancelled = False
        self._report = report
        self._listener: Callable[[], None] | None = None

    @property
    def expired(self) -> bool:
        """True when the tool should answer now with what it has (the answer is then *incomplete*)."""
        return self.deadline is not None and monotonic() >= self.deadline

    @property
    def wants_progress(self) -> bool:
        """True when the host gave a progressToken."""
        return self._report is not None

    def check(self) -> None:
        """Return when the call is still wanted; to be asked at least every 0.1 s of work.

        Raises: ToolError CANCELLED.
        """
        if self.cancelled:
            raise ToolError(ErrorCode.CANCELLED, "the host cancelled this call")

    def progress(self, done: float, total: float | None = None, message: str = "") -> None:
        """Tell the host how far the work is; nothing happens when it did not ask."""
        if self._report is not None and not self.cancelled:
            self._report(done, total, message)

    def on_cancel(self, listener: "Callable[[], None] | None") -> None:
        """Have `listener` called from another thread when the call is cancelled; None takes it back.

        It must bear being called twice: cancelling and listening may cross.
        """
        self._listener = listener
        if self.cancelled and listener is not None:
            listener()

    def cancel(self) -> None:
        """Mark the call as no longer wanted and wake its work."""
        if self.cancelled:
            return
        self.cancelled = True
        if self._listener is not None:
            self._listener()
