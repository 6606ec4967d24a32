"""Spans of work that the end of the process waits for; knows nothing of what happens inside."""

from _thread import allocate_lock, get_ident
from time import monotonic

from toolroll.errors import ErrorCode, ToolError


class Gate:
    """The open spans of a process, and whether new ones may still begin.

    It uses no lock of its own, so a signal handler that interrupts one of its methods cannot
    deadlock: a span is listed before it looks whether the gate is closed, and the gate is closed
    before the list is read, so one of the two always sees the other.
    """

    __slots__ = ("closed", "spans")

    def __init__(self) -> None:
        self.closed = False
        self.spans: set[Span] = set()

    def hold(self) -> "Span":
        """A span to be entered with `with`; the process ends before or after it, not inside.

        Raises: on entering, ToolError CANCELLED once the process is ending.
        """
        return Span(self)

    def settled(self, timeout_s: float) -> bool:
        """Close the gate for good and return True when no span is open any more.

        A span of the calling thread itself (a signal handler on top of it) cannot end while this
        waits: the answer is then False at once.
        """
        self.closed = True
        deadline = monotonic() + timeout_s
        return all(span.ended(deadline) for span in list(self.spans))


class Span:
    """One piece of work that must not be cut in two."""

    __slots__ = ("_gate", "_running", "_thread")

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._running = allocate_lock()
        self._thread = 0

    def __enter__(self) -> None:
        self._thread = get_ident()
        self._running.acquire()
        self._gate.spans.add(self)
        if self._gate.closed:
            self.__exit__()
            raise ToolError(ErrorCode.CANCELLED, "the server is ending", "Nothing was changed.")

    def __exit__(self, *_: object) -> None:
        self._gate.spans.discard(self)
        self._running.release()

    def ended(self, deadline: float) -> bool:
        """True when the span is over before `deadline` (monotonic seconds)."""
        if self._thread == get_ident():
            return False
        over = self._running.acquire(True, max(deadline - monotonic(), 0.0))
        if over:
            self._running.release()
        return over


_PROCESS = Gate()
hold = _PROCESS.hold
settled = _PROCESS.settled
