"""A server as a child process for the client: cleared environment, pipes, restart, kill.

Knows nothing of what a message means: it carries bytes between a `Client` and the process, and
answers to the threads that wait for them.  Never on a server's own way to its first answer.

A server of ours ends when its input does, however we end.  PR_SET_PDEATHSIG would do the same for
others, but it fires when the *thread* that started them ends, and calls come from any thread.
"""

import os
import signal
from queue import Empty, SimpleQueue
from select import POLLIN, POLLOUT, poll
from subprocess import PIPE, Popen, TimeoutExpired
from threading import Event as Flag
from threading import Lock, Thread
from time import monotonic, sleep

from toolroll.client import (
    AUTO,
    HANDSHAKE,
    STATELESS,
    Answered,
    Client,
    Noise,
    Progressed,
    Ready,
    Refused,
    Send,
)
from toolroll.eras import STATELESS as STATELESS_REVISION
from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import MESSAGE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import IO, Any

    from toolroll.client import Event

    Json = Any
    Listener = Callable[[float, float | None, str], None]

ENVIRONMENT = ("HOME", "LANG", "LC_ALL", "PATH", "SHELL", "TERM", "TMPDIR", "USER")
"""What a server inherits: no key or token of ours.  Nearly what Codex and the Python SDK pass on."""

CALL_S = 30.0
"""How long a call may take unless its caller says otherwise."""

OPEN_S = 30.0
"""From a server's start to its first answer: `npx` and `uvx` fetch packages meanwhile."""

PROBE_S = 3.0
"""After this long a silent server is offered the handshake too; a slow one still answers the probe."""

CLOSE_S = 0.5
"""How long a server may take to end after each of: the end of its input, TERM, KILL."""

CRASHES = 3
"""Ends in a row without an answer in between, after which a server is not started again."""

STDERR_BYTES = 4_096
"""What is kept of the end of stderr, for error messages."""

READ_BYTES = 65_536  # a pipe's whole capacity on Linux
UNREAD_BYTES = 2 * MESSAGE_BYTES
"""What may wait for a server that does not read; past that, calls fail at once."""

UNSEEN_REPORTS = 1_000
"""Reports of progress that may wait for a slow listener; further ones are dropped."""


class Server:
    """A server that is there when it is needed: started at first use, again after a crash.

    Any number of threads may call at once.  `command` is the program and its arguments;
    `environment` is added to the few variables that are passed on; `directory` is where it starts.
    `name` stands in errors instead of the program: arguments may hold secrets.  Its stderr is kept
    for error messages, or goes where ours goes with `show_stderr`.
    """

    def __init__(  # noqa: PLR0913 - all but the command by keyword
        self,
        command: "Sequence[str]",
        *,
        name: str = "",
        era: str = AUTO,
        environment: "Mapping[str, str] | None" = None,
        directory: str | None = None,
        show_stderr: bool = False,
        open_s: float = OPEN_S,
        probe_s: float = PROBE_S,
    ) -> None:
        self.command = list(command)
        self.environment = dict(environment or {})
        self.directory = directory
        self.show_stderr = show_stderr
        self.open_s = open_s
        self.probe_s = probe_s
        self.name = name or os.path.basename(self.command[0])
        self._era = era
        self._child: Child | None = None
        self._starting = Lock()
        self._closed = False
        self._crashes = 0

    def __enter__(self) -> "Server":
        """The server, started."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def alive(self) -> bool:
        """True while its process may be asked; False before the first start and after a crash."""
        return self._child is not None and self._child.alive

    @property
    def revision(self) -> str:
        """The protocol revision spoken; empty before the first start."""
        return self._child.client.revision if self._child else ""

    @property
    def info(self) -> "dict[str, Json]":
        """What the server says it is: name, version, title; empty when it does not say."""
        return self._child.client.info if self._child else {}

    @property
    def instructions(self) -> str:
        """What the server wants a model to know; empty for nothing."""
        return self._child.client.instructions if self._child else ""

    def start(self) -> None:
        """Start the server and agree on a revision, unless it runs.

        Raises: ToolError EXECUTION_ERROR when it cannot be started or talked to, CANCELLED once closed.
        """
        self._running()

    def tools(self, timeout_s: float = CALL_S) -> "list[dict[str, Json]]":
        """The tools of all pages, as the server describes them.

        Raises: as `call`.
        """
        tools: list[dict[str, Json]] = self._running().list_tools().answer(timeout_s)
        return tools

    def call(
        self,
        tool: str,
        arguments: "dict[str, Json]",
        timeout_s: float = CALL_S,
        on_progress: "Listener | None" = None,
    ) -> "dict[str, Json]":
        """The result of tools/call: `content`, `isError` and whatever else the server says.

        Raises: as `start` and `Pending.answer`.
        """
        pending = self.begin(tool, arguments, progress=on_progress is not None)
        result: dict[str, Json] = pending.answer(timeout_s, on_progress)
        return result

    def begin(self, tool: str, arguments: "dict[str, Json]", progress: bool = False) -> "Pending":
        """A call on its way: `answer` waits for it, `cancel` takes it back from any thread.

        Raises: as `start`; ToolError INVALID_PARAMS or TOO_LARGE for arguments that cannot be sent.
        """
        return self._running().call(tool, arguments, progress)

    def close(self) -> None:
        """End the process and fail what is still asked; it is not started again."""
        self._closed = True
        if self._child is not None:  # also ends an opening, which holds the lock
            self._child.close()
        with self._starting:
            if self._child is not None:
                self._child.close()

    def _running(self) -> "Child":
        """The process to talk to, a new one in place of one that has ended.

        Raises: ToolError.
        """
        with self._starting:
            child = self._child
            if child is not None and child.alive:
                return child
            if child is not None:
                child.join()
                self._crashes = 1 if child.answered else self._crashes + 1
            if child is not None and self._crashes >= CRASHES:
                raise child.fault()
            return self._opened()

    def _opened(self) -> "Child":
        """A new process that answers.

        Raises: ToolError.
        """
        child = self._spawn(self._era)
        if not child.alive and child.probed and self._era == AUTO:
            child = self._spawn(HANDSHAKE)  # some servers end at any first message but initialize
        if not child.alive:
            child.join()
            raise child.fault()
        stateless = child.client.revision == STATELESS_REVISION
        self._era = STATELESS if stateless else HANDSHAKE
        return child

    def _spawn(self, era: str) -> "Child":
        """A new process after its opening, whatever came of it.

        Raises: ToolError.
        """
        if self._closed:
            raise ToolError(ErrorCode.CANCELLED, f"{self.name} was closed")
        child = self._child = Child(self, Client(era))
        if self._closed:  # meanwhile: whoever closes has not seen this one
            child.close()
        try:
            child.open(self.probe_s, self.open_s)
        except BaseException:  # an interrupt
            child.close()
            raise
        return child


class Pending:
    """A request that has been sent and not been waited for."""

    def __init__(self, child: "Child", key: int, inbox: "SimpleQueue[Event]") -> None:
        self._child = child
        self._key = key
        self._inbox = inbox

    def answer(self, timeout_s: float = CALL_S, on_progress: "Listener | None" = None) -> "Json":
        """What was asked for; whatever else ends the wait cancels the request.

        `on_progress` is called on this thread with done, total and message.

        Raises: ToolError TIMEOUT or CANCELLED, EXECUTION_ERROR when the server ended or is at fault;
        RpcError when it refused the request.
        """
        try:
            over = self._wait(monotonic() + timeout_s, on_progress)
        except Empty:
            self.cancel()
            text = f"{self._child.name} did not answer within {timeout_s:g} s"
            raise ToolError(ErrorCode.TIMEOUT, text) from None
        except BaseException:  # the listener's, or an interrupt
            self.cancel()
            raise
        if over.problem is not None:
            raise over.problem
        return over.value

    def cancel(self) -> None:
        """Tell the server to stop and end the wait, unless the answer has come already."""
        self._child.cancel(self._key)

    def _wait(self, deadline: float, on_progress: "Listener | None") -> Answered:
        """Raises: Empty at the deadline."""
        while True:
            event = self._inbox.get(timeout=max(deadline - monotonic(), 0.0))
            if isinstance(event, Answered):
                return event
            if isinstance(event, Progressed) and on_progress is not None:
                on_progress(event.done, event.total, event.message)


class Child:
    """One process from its start to its end: a thread of its own reads, whoever asks writes.

    The thread alone ends it: when its output ends, when it reads no more, or some time after `close`.
    """

    def __init__(self, server: Server, client: Client) -> None:
        """Raises: ToolError when it cannot be started."""
        self.name = server.name
        self.client = client
        self.answered = False  # whether anything asked of it was ever answered
        self._fault = ("", "")  # code and text, once nothing can be asked any more
        self._words = b""  # the end of its stderr
        self._noise = ""  # what it last printed that was no message
        self._lock = Lock()  # around the client, the outbox, the inboxes and the fault
        self._outbox = bytearray()
        self._inboxes: dict[int, SimpleQueue[Event]] = {}
        self._settled = Flag()  # set when the opening is over, well or not
        self._stop_at = float("inf")  # monotonic: when its output is no longer listened to
        self._gone = False  # True once the thread has closed everything
        self._process = _popen(server)
        self._stdin: IO[bytes] = self._process.stdin  # type: ignore[assignment]  # PIPE makes it a file
        self._stdout: IO[bytes] = self._process.stdout  # type: ignore[assignment]  # PIPE makes it a file
        self._stderr = self._process.stderr  # None when it is shown, or at its end
        self._wake_out, self._wake_in = os.pipe()
        os.set_blocking(self._wake_in, False)
        os.set_blocking(self._stdin.fileno(), False)
        if self._stderr is not None:
            os.set_blocking(self._stderr.fileno(), False)
        self._thread = Thread(target=self._run, name=f"mcp {self.name}", daemon=True)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """True while it may be asked."""
        return self._stop_at == float("inf")

    @property
    def probed(self) -> bool:
        """True when it has answered nothing but was only asked what it speaks."""
        return self.client.probing

    def open(self, probe_s: float, open_s: float) -> None:
        """Return when requests may be sent, or it is not `alive`."""
        with self._lock:
            self._write(self.client.open())
        if self._settled.wait(min(probe_s, open_s)):
            return
        with self._lock:
            self._write(self.client.fall_back())
        if self._settled.wait(open_s - min(probe_s, open_s)):
            return
        self._stop(ErrorCode.EXECUTION_ERROR, f"{self.name} said nothing within {open_s:g} s")

    def list_tools(self) -> Pending:
        """A request for all tools, on its way.

        Raises: ToolError.
        """
        with self._lock:
            return self._asked(*self.client.list_tools())

    def call(self, tool: str, arguments: "dict[str, Json]", progress: bool) -> Pending:
        """A call, on its way.

        Raises: ToolError.
        """
        with self._lock:
            return self._asked(*self.client.call(tool, arguments, progress))

    def cancel(self, key: int) -> None:
        """Take a request back, unless it is over."""
        with self._lock:
            self._write(self.client.cancel(key))
            self._over(
                Answered(key, None, ToolError(ErrorCode.CANCELLED, "the call was cancelled"))
            )

    def close(self) -> None:
        """Return when the process is gone."""
        self._stop(ErrorCode.CANCELLED, f"{self.name} was closed")
        self.join()

    def join(self) -> None:
        """Return when the thread has ended what it is ending."""
        self._thread.join(8 * CLOSE_S)

    def fault(self) -> ToolError:
        """Why nothing can be asked any more, with the last it said to stderr."""
        code, text = self._fault
        said = self._words.decode("utf-8", "replace").strip()
        words = [f"Its stderr ends with:\n{said}"] if said else []
        if self._noise:
            words.append(f"It printed what is no message: {self._noise!r}.")
        return ToolError(code, text, "\n".join(words) if code != ErrorCode.CANCELLED else "")

    def _stop(self, code: str, text: str) -> None:
        with self._lock:
            self._fail(code, text)

    # -- with the lock held ----------------------------------------------------------------------

    def _asked(self, key: int, data: bytes) -> Pending:
        """Raises: ToolError."""
        if len(self._outbox) + len(data) > UNREAD_BYTES:
            self.client.cancel(key)
            raise ToolError(ErrorCode.EXECUTION_ERROR, f"{self.name} does not read its input")
        inbox = self._inboxes[key] = SimpleQueue()
        if self._fault[0]:  # it ended since it was looked at
            self._over(Answered(key, None, self.fault()))
        self._write(data)
        return Pending(self, key, inbox)

    def _over(self, answered: Answered) -> None:
        inbox = self._inboxes.pop(answered.key, None)
        if inbox is not None:
            inbox.put(answered)

    def _write(self, data: bytes) -> None:
        """What does not fit into the pipe is left to the thread; nobody waits for a server to read."""
        if self._stdin.closed:
            return
        self._outbox += data
        try:
            while self._outbox:
                written = os.write(self._stdin.fileno(), self._outbox[:READ_BYTES])
                del self._outbox[:written]
        except BlockingIOError:
            self._wake()
        except OSError:  # it closed its input: what it still has to say is listened to for a moment
            self._hang_up()

    def _hang_up(self) -> None:
        """End its input, and in a moment its output."""
        self._stdin.close()
        self._outbox.clear()
        self._stop_at = min(self._stop_at, monotonic() + CLOSE_S)
        self._wake()

    def _wake(self) -> None:
        if self._gone:
            return
        try:
            os.write(self._wake_in, b"!")
        except BlockingIOError:  # it has not even looked at the last 65,536
            return

    def _deliver(self, event: "Event") -> None:
        if isinstance(event, Send):
            if len(self._outbox) + len(event.data) <= UNREAD_BYTES:
                self._write(event.data)
        elif isinstance(event, Answered):
            self.answered = True
            self._over(event)
        elif isinstance(event, Progressed):
            inbox = self._inboxes.get(event.key)
            if inbox is not None and inbox.qsize() < UNSEEN_REPORTS:
                inbox.put(event)
        elif isinstance(event, Noise):
            self._noise = event.text
        elif isinstance(event, Ready):
            self._settled.set()
        elif isinstance(event, Refused):
            self._fail(
                ErrorCode.EXECUTION_ERROR, f"{self.name} cannot be talked to: {event.problem}"
            )

    def _fail(self, code: str, text: str) -> None:
        """Let go of all who wait, and hang up."""
        if not self._fault[0]:
            self._fault = (code, text)
        for key in list(self._inboxes):
            self._over(Answered(key, None, self.fault()))
        self._hang_up()
        self._settled.set()

    # -- the thread ------------------------------------------------------------------------------

    def _run(self) -> None:
        try:
            self._listen()
        finally:
            self._bury()

    def _listen(self) -> None:
        """Return when its output ends or is no longer wanted."""
        while (wait_s := self._stop_at - monotonic()) > 0:
            for fd in self._ready(wait_s):
                if fd == self._stdout.fileno() and not self._hear():
                    return
                if fd == self._wake_out:
                    os.read(fd, READ_BYTES)
                elif self._stderr is not None and fd == self._stderr.fileno():
                    self._note()
            with self._lock:
                self._write(b"")

    def _ready(self, wait_s: float) -> list[int]:
        """The descriptors that have something to say, or room for what waits."""
        poller = poll()
        for pipe in (self._stdout, self._stderr):
            if pipe is not None:
                poller.register(pipe, POLLIN)
        poller.register(self._wake_out, POLLIN)
        with self._lock:
            if self._outbox:
                poller.register(self._stdin, POLLOUT)
        return [fd for fd, _ in poller.poll(None if wait_s == float("inf") else wait_s * 1000)]

    def _hear(self) -> bool:
        """Take in what it printed; False at the end."""
        data = os.read(self._stdout.fileno(), READ_BYTES)
        with self._lock:
            for event in self.client.receive(data):
                self._deliver(event)
        return bool(data)

    def _note(self) -> None:
        """Keep the end of what it says to stderr."""
        if self._stderr is None:
            return
        data = self._stderr.read(READ_BYTES)
        if data == b"":
            self._stderr.close()
            self._stderr = None
        self._words = (self._words + (data or b""))[-STDERR_BYTES:]

    def _bury(self) -> None:
        """End the process, tell all who wait what became of it, close everything."""
        with self._lock:
            self._hang_up()
        fate = self._end()
        self._note()
        with self._lock:
            self._fail(ErrorCode.EXECUTION_ERROR, f"{self.name} {fate}")
            self._gone = True
        self._stdout.close()
        if self._stderr is not None:
            self._stderr.close()
        os.close(self._wake_in)
        os.close(self._wake_out)

    def _end(self) -> str:
        """How the process ended, by itself or not."""
        by_itself = self._ends(self._stop_at - monotonic())
        if not by_itself:
            self._signal(signal.SIGTERM)
            self._ends(CLOSE_S)
        self._signal(signal.SIGKILL)  # also what it has left behind in its group
        try:
            status = self._process.wait(CLOSE_S)
        except TimeoutExpired:  # in the hands of the kernel: a dead disk, a debugger
            return "cannot be killed"
        if not by_itself:
            return "closed its input or output and was ended"
        return f"ended with status {status}" if status >= 0 else f"ended by signal {-status}"

    def _ends(self, timeout_s: float) -> bool:
        """True when the process is over within that time."""
        deadline = monotonic() + timeout_s
        pause_s = 0.0005
        while not self._is_over():
            if monotonic() >= deadline:
                return False
            sleep(pause_s)
            pause_s = min(2 * pause_s, 0.01)
        return True

    def _is_over(self) -> bool:
        """True once it has ended; not reaped where the system allows: its group keeps its number."""
        if not hasattr(os, "waitid"):  # macOS before Python 3.13
            return self._process.poll() is not None
        how = os.WEXITED | os.WNOHANG | os.WNOWAIT
        try:
            return os.waitid(os.P_PID, self._process.pid, how) is not None
        except ChildProcessError:  # whoever started us ignores SIGCHLD: there is nothing to reap
            return True

    def _signal(self, number: int) -> None:
        """To its whole group, which is its own."""
        try:
            os.killpg(self._process.pid, number)
        except OSError:  # nobody is left in it
            return


def _popen(server: Server) -> "Popen[bytes]":
    """Raises: ToolError."""
    environment = {name: os.environ[name] for name in ENVIRONMENT if name in os.environ}
    try:
        return Popen(
            server.command,
            bufsize=0,
            stdin=PIPE,
            stdout=PIPE,
            stderr=None if server.show_stderr else PIPE,
            cwd=server.directory,
            env={**environment, **server.environment},
            start_new_session=True,  # a Ctrl-C at our terminal is ours to handle, and groups can be killed
        )
    except (OSError, ValueError) as problem:  # ValueError: a NUL in the command
        text = f"{server.name} cannot be started: {problem}"
        raise ToolError(ErrorCode.EXECUTION_ERROR, text, "Check the command and its PATH") from None
