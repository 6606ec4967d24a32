"""The only module that touches descriptors 0 and 1: claims the wire, reads, runs calls, writes, ends.

Knows nothing of what a message means: it carries out the acts of a `Connection`.
"""

import os
from _queue import Empty, SimpleQueue
from _signal import (  # type: ignore[import-not-found]  # signal without its enums: 4 ms
    SIGINT,
    SIGTERM,
    set_wakeup_fd,
    signal,
)
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

from toolroll.connection import Cancel, Close, Connection, Send, Start
from toolroll.errors import ErrorCode, ToolError
from toolroll.hold import settled
from toolroll.limits import CANCEL_S, GRACE_S, WORKERS
from toolroll.tool import BUG, REPLACED, Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    import select
    from collections.abc import Callable, Iterable
    from typing import Any, NoReturn

    from toolroll.call import Call
    from toolroll.connection import Act
    from toolroll.log import Log, Trace

    Json = Any
    Report = Callable[[float, float | None, str], None]

READ_BYTES = 65_536  # a pipe's whole capacity on Linux
DRAIN_S = 10.0  # for a slow reader behind the end of input; hosts kill sooner
LOOK_S, LOOKS = (
    0.002,
    25,
)  # a call that keeps the reader so long is relieved; idle so often: no looks
PIPE_BYTES = 4_096  # PIPE_BUF: what poll() promises a pipe takes at once when it says writable


class Service:
    """What a server asks of the tool it serves; the command line makes one.

    `admit` gives the seconds a call must wait for the rate limit, 0.0 to go on.  `make` makes the
    call's own record, given the function its progress goes to; `run` is the tool.  `close` ends what
    the tool has started.  `warm` imports what the first call needs.
    """

    __slots__ = ("admit", "close", "log", "make", "run", "trace", "warm")

    def __init__(  # noqa: PLR0913 - a record
        self,
        *,
        admit: "Callable[[], float]",
        make: "Callable[[Report | None], Call]",
        run: "Callable[[dict[str, Json], Call], Outcome]",
        close: "Callable[[], None]",
        log: "Log",
        trace: "Trace | None" = None,
        warm: "Callable[[], None]" = lambda: None,
    ) -> None:
        self.admit = admit
        self.make = make
        self.run = run
        self.close = close
        self.log = log
        self.trace = trace
        self.warm = warm


def fill_gaps() -> None:
    """Open /dev/null for a standard descriptor that is closed, before anything else takes its number."""
    while (fd := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(fd, True)
    os.close(fd)


def claim() -> tuple[int, int]:
    """The wire's two descriptors, moved away from 0 and 1.

    Reading 0 then gives nothing and writing 1 goes to stderr, so that a stray print or a child
    process cannot touch the wire.
    """
    null = os.open(os.devnull, os.O_RDWR)
    source, sink = os.dup(0), os.dup(1)  # dup gives descriptors that no child inherits
    os.dup2(null, 0)
    os.dup2(2, 1)
    os.close(null)
    return source, sink


def leave(service: Service, status: int = 0) -> "NoReturn":
    """End the process at once: what the tool started is ended, a write in progress is waited for.

    Without the interpreter's own finish, which would wait for nothing we need and cost 5 ms.
    """
    try:
        service.close()
    except BaseException as problem:  # a bug in a tool does not keep the process either
        service.log.traceback(problem)
    settled(CANCEL_S)
    if service.trace is not None:
        service.trace.close()
    os._exit(status)


def on_signals(service: Service, status: "Callable[[int], int]" = lambda _: 0) -> None:
    """End on INT and TERM without grace: Claude Code sends the one, opencode and Gemini the other.

    A thread waits for them: a handler alone would only run when the main thread comes back from a
    read, and a signal just before that read would be lost until the next input.  `status` makes the
    exit code of the signal's number.
    """
    waiting, signalled = os.pipe()
    os.set_blocking(signalled, False)
    set_wakeup_fd(signalled)
    for number in (SIGINT, SIGTERM):
        signal(number, lambda *_: None)
    start_new_thread(lambda: leave(service, status(os.read(waiting, 1)[0])), ())


class Outbox:
    """What is to be written, in order; whoever finds nobody writing writes.

    The reading thread never blocks on a full pipe: a client that first writes all its requests and
    only then reads would otherwise wait for ever, and so would a ping behind a large answer.
    """

    def __init__(self, fd: int, broken: "Callable[[], None]", trace: "Trace | None") -> None:
        self._fd = fd
        self._broken = broken
        self._trace = trace
        self._waiting: list[bytes] = []
        self._turn = allocate_lock()
        self._poller: select.poll | None = None

    def put(self, data: bytes) -> None:
        """Take one message; it is written by the next `flush` of any thread."""
        if self._trace is not None:
            self._trace("out", data)
        self._waiting.append(data)

    def flush(self, patient: bool) -> None:
        """Write what waits; when not `patient`, only as long as the pipe takes it at once."""
        while self._waiting and self._turn.acquire(False):
            try:
                done = self._write_all(patient)
            finally:
                self._turn.release()
            if not done:
                if _started(self.flush, True):
                    return
                patient = True

    def drain(self, deadline: float) -> None:
        """Return when everything has been written, by whatever thread, or at the deadline."""
        while self._waiting and monotonic() < deadline:
            self.flush(patient=False)
            if self._turn.acquire(True, max(deadline - monotonic(), 0.0)):
                self._turn.release()

    def _write_all(self, patient: bool) -> bool:
        while self._waiting:
            if rest := self._write(self._waiting[0], patient):
                self._waiting[0] = bytes(rest)
                return False
            del self._waiting[0]
        return True

    def _write(self, data: "bytes | memoryview", patient: bool) -> "bytes | memoryview":
        """What of `data` is still to be written, which is nothing for the patient."""
        while data:
            if not patient and not self._takes_more():
                return data
            try:
                size = os.write(self._fd, data if patient else data[:PIPE_BYTES])
                data = memoryview(data)[size:] if size < len(data) else b""
            except BlockingIOError:  # the host made its end of the pipe non-blocking
                poller(self._fd, writing=True).poll()
            except OSError:  # EPIPE: nobody reads any more
                self._broken()
        return data

    def _takes_more(self) -> bool:
        """True when PIPE_BYTES can be written without waiting."""
        if self._poller is None:
            self._poller = poller(self._fd, writing=True)
        return bool(self._poller.poll(0))


def poller(fd: int, writing: bool) -> "select.poll":
    """What waits for `fd` to take or give something; `select` is not needed before."""
    from select import POLLIN, POLLOUT, poll

    waits = poll()
    waits.register(fd, POLLOUT if writing else POLLIN)
    return waits


def read(fd: int) -> bytes:
    """The next piece of input, empty at its end."""
    while True:
        try:
            return os.read(fd, READ_BYTES)
        except BlockingIOError:
            poller(fd, writing=False).poll()
        except OSError:  # a terminal that went away says EIO
            return b""


class Server:
    """One connection being served by threads that take turns in reading.

    Who reads also runs what was read, call by call: handing a small call to another thread costs more
    than the call.  A second thread looks on, and takes over the reading when a call keeps the first one
    for longer than a look; that one then only runs calls.  So input is read whatever runs, and at most
    WORKERS calls run at once.
    """

    def __init__(self, connection: Connection, service: Service) -> None:
        self.connection = connection
        self.service = service
        self._lock = allocate_lock()  # around the connection, the outbox's order and all below
        self._calls: dict[Start, Call] = {}  # running or waiting
        self._waiting: list[tuple[Start, Call]] = []
        self._running = 0
        self._begun = 0  # calls so far
        self._term = 0  # of the thread that reads; the next one has the next
        self._kept = 0  # which call that thread is running, 0 when it reads
        self._idle = 0  # threads that wait for the bell, less how often it was rung for them
        self._watched = False
        self._bell: SimpleQueue[None] = SimpleQueue()
        self._ended = False  # the input, at the time behind it
        self._ended_at = 0.0
        self._status = 0
        self._warmed = False
        self._done: SimpleQueue[None] = SimpleQueue()  # an item for each call that ends by then
        source, sink = claim()
        self._source = source
        self._poller: select.poll | None = None
        self._outbox = Outbox(sink, lambda: leave(service), service.trace)
        on_signals(service)

    def serve(self) -> "NoReturn":
        """Serve until the input ends and what was read before it is answered."""
        self._live(leading=True)

    def _live(self, leading: bool = False) -> "NoReturn":
        """A thread's life: to look on, to read, to run calls, and so on.

        A bug of our own ends the process too, with its traceback: the interpreter's own finish would
        wait for the threads of calls that nobody answers any more.
        """
        try:
            while True:
                term = 0 if leading else self._look_on()
                leading = False
                self._lead(term)
                while self._run_next(term):
                    pass
        except BaseException as problem:
            self.service.log.traceback(problem)
        leave(self.service, 1)

    def _lead(self, term: int) -> None:
        """Read and run what was read, until another thread has taken over."""
        while term == self._term:
            if self._waiting and not self._has_more() and self._run_next(term):
                continue
            if self._ended:
                self._end()
            self._take(read(self._source))

    def _has_more(self) -> bool:
        """True when there is something to read, so that reading would not wait."""
        if self._ended:
            return False
        if self._poller is None:
            self._poller = poller(self._source, writing=False)
        return bool(self._poller.poll(0))

    def _take(self, data: bytes) -> None:
        """Carry out what `data` asks for."""
        if self.service.trace is not None and data:
            self.service.trace("in", data)
        with self._lock:
            if not self._carry_out(self.connection.receive(data)):
                self._ended, self._ended_at = True, monotonic()
        self._outbox.flush(patient=False)
        if self.connection.listed and not self._warmed:
            self._warmed = True
            _started(self.service.warm)

    def _end(self) -> "NoReturn":
        self._await_calls(None if self.connection.bare else self._ended_at + GRACE_S)
        with self._lock:
            self._carry_out(self.connection.abandon())
        self._await_calls(monotonic() + CANCEL_S)
        self._outbox.drain(monotonic() + DRAIN_S)
        leave(self.service, self._status)

    def _carry_out(self, acts: "Iterable[Act]") -> bool:
        for act in acts:
            if isinstance(act, Send):
                self._outbox.put(act.data)
            elif isinstance(act, Start):
                self._begin(act)
            elif isinstance(act, Cancel):
                self._cancel(act.start)
            elif isinstance(act, Close):
                self._status = act.status
                return False
        return True

    # -- taking turns ----------------------------------------------------------------------------

    def _look_on(self) -> int:
        """Wait until the thread that reads is kept by a call; the term in which we do in its place.

        When nothing has been asked for a while there is nothing to look at until the bell rings.
        """
        while True:
            with self._lock:
                self._idle += 1
            self._bell.get()
            looks, begun, kept = 0, 0, 0
            while looks < LOOKS:
                sleep(LOOK_S)
                with self._lock:
                    if self._kept and self._kept == kept:
                        self._term += 1
                        self._kept = 0
                        self._watched = False
                        return self._term
                    looks = looks + 1 if self._begun == begun else 0
                    begun, kept = self._begun, self._kept
                    if looks == LOOKS:
                        self._watched = False

    def _ring(self) -> None:
        """Have somebody look on, if a thread is to be had; without one, calls only run in a row."""
        if self._idle <= 0 and not _started(self._live):
            return
        self._idle -= 1
        self._watched = True
        self._bell.put(None)

    # -- calls -----------------------------------------------------------------------------------

    def _begin(self, start: Start) -> None:
        if self.service.log.detailed:
            self.service.log("debug", "received", id=start.id)
        wait_s = self.service.admit()
        if wait_s:
            self._carry_out(self.connection.finish(start, _too_fast(wait_s)))
            return
        wants = start.token is not None
        call = self.service.make((lambda *what: self._progress(start, *what)) if wants else None)
        self._calls[start] = call
        self._waiting.append((start, call))

    def _cancel(self, start: Start) -> None:
        call = self._calls.get(start)
        if call is not None:
            self.service.log("debug", "cancelled", id=start.id)
            call.cancel()

    def _run_next(self, term: int) -> bool:
        """Run the call that waits longest; False when none does, or WORKERS run already."""
        with self._lock:
            if not self._waiting or self._running == WORKERS:
                return False
            start, call = self._waiting.pop(0)
            self._running += 1
            self._begun += 1
            if term == self._term:
                self._kept = self._begun
                if not self._watched:
                    self._ring()
        outcome = None if call.cancelled else self._run(start, call)
        self._answer(lambda: self._finish(start, outcome))
        with self._lock:
            self._running -= 1
            if term == self._term:
                self._kept = 0
            if self._ended:
                self._done.put(None)
        return True

    def _finish(self, start: Start, outcome: Outcome | None) -> "list[Act]":
        del self._calls[start]
        if outcome is None:
            return []
        try:
            return self.connection.finish(start, outcome)
        except Exception as problem:  # a structured form that is no JSON
            self.service.log.traceback(problem)
            return self.connection.finish(start, _bug())

    def _run(self, start: Start, call: "Call") -> Outcome:
        began = monotonic()
        try:
            outcome = self.service.run(start.arguments, call)
        except BaseException as problem:  # a bug in a tool never ends the server
            self.service.log.traceback(problem)
            outcome = _bug()
        if self.service.log.detailed:
            taken_ms = round((monotonic() - began) * 1000, 3)
            self.service.log("debug", "sent", id=start.id, ms=taken_ms, code=outcome.code or "ok")
        return outcome

    def _progress(self, start: Start, done: float, total: float | None, message: str) -> None:
        self._answer(lambda: self.connection.progress(start, done, total, message))

    def _answer(self, acts: "Callable[[], list[Act]]") -> None:
        with self._lock:
            going_on = self._carry_out(acts())
        self._outbox.flush(patient=True)
        if not going_on:
            self._outbox.drain(monotonic() + DRAIN_S)  # another thread may be writing it
            leave(self.service, self._status)

    def _await_calls(self, deadline: float | None) -> None:
        """Return when no call runs or waits, or at the deadline, None for no limit."""
        while self._calls:
            try:
                self._done.get(True, None if deadline is None else max(deadline - monotonic(), 0.0))
            except Empty:
                return


def _started(work: "Callable[..., object]", *arguments: object) -> bool:
    """True when the work goes on in a thread of its own, False where none is to be had."""
    try:
        start_new_thread(work, arguments)
    except RuntimeError:
        return False
    return True


def _too_fast(wait_s: float) -> Outcome:
    """As in the reference system; a JSON-RPC error would end some hosts' agents."""
    text = "Rate limit exceeded. Please try again later."
    hint = f"Wait {max(wait_s, 0.1):.1f} s, or start the server with --rate"
    return Outcome.of_error(ToolError(ErrorCode.RATE_LIMITED, text, hint))


def once(service: Service, arguments: "dict[str, Json]") -> Outcome:
    """The outcome of one call without any wire, on a thread of its own like every call."""
    outcomes: list[Outcome] = []
    over = allocate_lock()
    over.acquire()

    def work() -> None:
        try:
            outcomes.append(service.run(arguments, service.make(None)))
        except BaseException as problem:
            service.log.traceback(problem)
        over.release()

    on_signals(service, lambda number: 128 + number)
    start_new_thread(work, ())
    over.acquire()
    return outcomes[0] if outcomes else _bug()


def _bug() -> Outcome:
    """What the host is told of a bug."""
    from toolroll.carried import replaced

    return Outcome.of_error(REPLACED if replaced() else BUG)


def say(text: str, fd: int = 1) -> None:
    """Write a text for people, its last line whole; a reader that has gone away (`| head`) is no error.

    Raises: OSError for anything else, as a full disk.
    """
    end = "" if text.endswith("\n") else "\n"
    data = memoryview((text + end).encode("utf-8", "backslashreplace"))
    while data:
        try:
            data = data[os.write(fd, data) :]
        except BlockingIOError:
            poller(fd, writing=True).poll()
        except BrokenPipeError:
            return


def ask() -> bytes:
    """Everything on stdin."""
    pieces = []
    while piece := read(0):
        pieces.append(piece)
    return b"".join(pieces)
