"""The searching processes: started when needed, asked, stopped, and ended with the server.

Searches follow one another; each may use all processes.  Knows no file.
"""

import os
from _signal import (  # type: ignore[import-not-found]  # signal without its enums
    SIG_DFL,
    SIG_IGN,
    SIGINT,
    SIGKILL,
    SIGTERM,
    signal,
)
from _thread import allocate_lock
from time import monotonic

from toolroll.errors import ErrorCode, ToolError
from toolroll_grep.border import BACK, Border, key
from toolroll_grep.worker import PROCESSES, STUCK_FILES, Wire, live

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolroll.call import Call
    from toolroll.paths import Roots

    Json = Any

SILENT_S = 3.0
"""A process that was not heard of for so long hangs in one file."""

STOP_S = 0.3
"""How long a cancelled search may take to stop by itself, and an answer to come late."""

WAIT_MS = 40
"""How long a process is waited for between two looks at the call."""

CACHE_MB = 256
"""What both processes together keep of what they read."""

ENDINGS = ("done", "shown", "stopped", "refused")

PROGRESS_S = 0.5
"""How often the host is told how far a search is."""

REMEMBERED = 100
"""Most start folders of which it is known where they are best cut in two."""

UNEQUAL_S = 0.1
"""Where one process has to wait so long for the other, and a third of the time, the cut is in a bad place."""


class Found:
    """What a search found so far: `hits` by path as (mtime_ns, count), and what is to be said of it."""

    def __init__(self) -> None:
        self.hits: dict[str, tuple[int, int]] = {}
        self.facts: dict[str, int] = {}
        self.stuck: list[str] = []
        self.incomplete = False
        self.at = ""
        self.files: dict[int, int] = {}  # searched, by share
        self.lost: list[int] = []  # shares whose process hung in a file that is known
        self.died = False  # did a process end, or hang where it could not say

    def add(self, hits: "list[tuple[int, str, int]]") -> None:
        """Take hits in; what two processes found counts once."""
        for mtime_ns, path, count in hits:
            self.hits[path] = (mtime_ns, count)

    def close(self, share: int, report: "dict[str, Json]") -> None:
        """Take in what a process said at the end of its share."""
        self.stuck += [path for path in report["stuck"] if path not in self.stuck]
        self.files[share] = report["files"]
        if report["incomplete"]:
            self.incomplete = True
            self.at = self.at or report["at"]
        for name in ("binary", "unreadable", "vanished", "ignored", "hidden", "folders_unreadable"):
            self.facts[name] = self.facts.get(name, 0) + report[name]


class Process:
    """One searching process in its place, and the socket to it."""

    def __init__(self, share: int, cache_bytes: int, border: Border, roots: "Roots | None") -> None:
        """Start it; `roots` tell what is closed to it.  Raises: OSError when there is no room."""
        from _socket import AF_UNIX, SOCK_STREAM, socketpair

        ours, theirs = socketpair(AF_UNIX, SOCK_STREAM)
        self.pid = _fork(theirs, cache_bytes, border, roots)
        self.roots = roots
        theirs.close()
        self.share = share
        self.fd = ours.fileno()
        self.heard = 0.0
        self._socket = ours
        self._wire = Wire(ours)

    def ask(self, kind: str, request: "dict[str, Json]", fd: int) -> None:
        """Send a request.  Raises: OSError when the process has gone."""
        self.heard = monotonic()
        self._wire.send(kind, request, fd=fd)

    def tell(self, kind: str) -> None:
        """Send a word, if there is somebody to take it."""
        try:
            self._wire.send(kind)
        except OSError:
            return

    def receive(self) -> "list[tuple[Json, ...]] | None":
        """What it has said, after waiting for something; None when it has gone."""
        try:
            self.heard = monotonic()
            return self._wire.receive()
        except OSError:
            return None

    def where(self) -> str:
        """The file it is at, when it can still say so."""
        self.tell("where")
        until = monotonic() + STOP_S
        while monotonic() < until:
            for process in ready([self], WAIT_MS):
                messages = process.receive()
                if messages is None:
                    return ""
                for kind, *rest in messages:
                    if kind == "at":
                        return str(rest[0])
        return ""

    def end(self, wait: bool = True) -> None:
        """End it at once and give up the socket; safe in a signal handler, and more than once."""
        pid, self.pid = self.pid, 0
        if not pid:
            return
        os.kill(pid, SIGKILL)
        self._socket.close()
        if wait:
            os.waitpid(pid, 0)


def _fork(end: "Json", cache_bytes: int, border: Border, roots: "Roots | None") -> int:
    """Start a searching process on its end of the socket."""
    from warnings import catch_warnings, simplefilter

    with catch_warnings():
        # Python warns of forking beside threads, whose locks stay locked: the child uses none of them.
        simplefilter("ignore", DeprecationWarning)
        pid = os.fork()
    if pid:
        return pid
    try:
        _settle(end.fileno(), border.fd)
        live(end, cache_bytes, border, roots)
    except BaseException:
        from sys import exc_info, excepthook

        excepthook(*exc_info())
    finally:
        os._exit(1)


def _settle(*kept: int) -> None:
    """Give up what belongs to the server: its signal handlers, and all descriptors but stderr and `kept`."""
    signal(SIGTERM, SIG_DFL)
    signal(SIGINT, SIG_IGN)  # a terminal sends it to both; the server decides
    at = 3
    for fd in sorted(kept):
        os.closerange(at, fd)
        at = fd + 1
    os.closerange(at, min(os.sysconf("SC_OPEN_MAX"), 65_536))


class Pool:
    """The processes of one server, each in its place; a place is filled when it is needed."""

    def __init__(self) -> None:
        self._places: list[Process | None] = [None] * PROCESSES
        self._turn = allocate_lock()
        self._border: Border | None = None
        self._cuts: dict[
            str, str | None
        ] = {}  # by large start: the first key of the second's share

    def close(self) -> None:
        """End all processes without waiting for it; safe in a signal handler."""
        for process in self._places:
            if process is not None:
                process.end(wait=False)
        self._places = [None] * PROCESSES
        border, self._border = self._border, None
        if border is not None:
            border.close()

    def take(self, call: "Call") -> None:
        """Wait for the turn of a call; to be given back by `give`.

        Raises: ToolError CANCELLED, TIMEOUT when other searches took all the time.
        """
        while not self._turn.acquire(True, WAIT_MS / 1000):
            call.check()
            if call.expired:
                why = "the time was used up by other searches of this server"
                raise ToolError(ErrorCode.TIMEOUT, why, "Repeat the call.")

    def give(self) -> None:
        """Let the next call have its turn."""
        self._turn.release()

    def find(self, request: "dict[str, Json]", fd: int, call: "Call") -> Found:
        """What a search finds; a large folder is shared out.

        Raises: ToolError CANCELLED, EXECUTION_ERROR, PERMISSION_DENIED.
        """
        asked: list[Process] = []
        try:
            return self._find(request, fd, call, asked)
        except BaseException:
            self._abandon(asked)
            raise

    def _find(
        self, request: "dict[str, Json]", fd: int, call: "Call", asked: "list[Process]"
    ) -> Found:
        found = Found()
        request = {**request, **self._split(request, call), "skip": []}
        for share in range(request["shares"]):
            asked.append(self._ask(share, "find", request, fd, call))
        began = told_at = monotonic()
        taken_s: list[float] = []
        while asked:
            for process, (kind, *rest) in self._heard(asked, found, call):
                if process not in asked:  # ended since
                    continue
                if kind == "large":
                    if self._ready(1, call):
                        request = {**request, "shares": PROCESSES, "may_split": False}
                        asked.append(self._ask(1, "find", request, fd, call))
                    continue
                found.add(rest[0])
                if kind == "part":
                    found.files[process.share] = rest[1]
                else:
                    found.close(process.share, rest[1])
                    asked.remove(process)
                    taken_s.append(monotonic() - began)
            self._again(request, found, fd, call, asked)
            if call.wants_progress and monotonic() - told_at > PROGRESS_S:
                told_at = monotonic()
                done = sum(found.files.values())
                call.progress(done, None, f"{done} files searched, {len(found.hits)} with matches")
        if request["shares"] > 1 and not request["enough"]:
            self._remember(request, taken_s)
        return found

    def _split(self, request: "dict[str, Json]", call: "Call") -> "dict[str, Json]":
        """How a search is shared out: by the known cut, or up to where the processes will meet."""
        base = request["base"]
        if request["is_file"] or (os.cpu_count() or 1) < PROCESSES:
            return {"shares": 1, "may_split": False, "cut": BACK}
        if base in self._cuts and self._ready(1, call):
            how = {"shares": PROCESSES, "may_split": False, "cut": self._cuts[base]}
        else:
            how = {"shares": 1, "may_split": True, "cut": None}
        if how["cut"] is None:
            self._met().reset()
        return how

    def _remember(self, request: "dict[str, Json]", taken_s: list[float]) -> None:
        """Where the processes met, or that they should meet anew."""
        base, cut = request["base"], request["cut"]
        if cut is None:
            if len(self._cuts) >= REMEMBERED:
                self._cuts.clear()
            self._cuts[base] = self._met().met_at
        elif len(taken_s) == PROCESSES and taken_s[1] - taken_s[0] > max(UNEQUAL_S, taken_s[1] / 3):
            self._cuts[base] = None

    def _met(self) -> Border:
        """Where the processes of this server meet."""
        if self._border is None:
            self._border = Border()
        return self._border

    def _again(
        self,
        request: "dict[str, Json]",
        found: Found,
        fd: int,
        call: "Call",
        asked: "list[Process]",
    ) -> None:
        """What hung in a file is asked again without that file, as long as that makes sense."""
        lost, found.lost = found.lost, []
        if len(found.stuck) >= STUCK_FILES or call.expired:
            return
        for share in lost:
            request = {**request, "skip": found.stuck, "may_split": False}
            asked.append(self._ask(share, "find", request, fd, call))

    def show(
        self, request: "dict[str, Json]", fd: int, call: "Call"
    ) -> "dict[str, tuple[Json, ...]]":
        """The lines of `request["files"]` (path, most) by path.

        Raises: ToolError CANCELLED, EXECUTION_ERROR, PERMISSION_DENIED.
        """
        asked: list[Process] = []
        try:
            return self._show(request, fd, call, asked)
        except BaseException:
            self._abandon(asked)
            raise

    def _show(
        self, request: "dict[str, Json]", fd: int, call: "Call", asked: "list[Process]"
    ) -> "dict[str, tuple[Json, ...]]":
        cut = self._cuts.get(request["base"])
        parts: list[list[Json]] = [[] for _ in range(PROCESSES)]
        for path, most in request["files"]:
            is_second = cut is not None and key(path[: path.rfind("/") + 1]) >= cut
            parts[is_second and self._ready(1, call)].append((path, most))
        for share, part in enumerate(parts):
            if part:
                asked.append(self._ask(share, "show", {**request, "files": part}, fd, call))
        shown: dict[str, tuple[Json, ...]] = {}
        while asked:
            for process, (kind, rows) in self._heard(asked, Found(), call):
                shown.update((row[0], row[1:]) for row in rows)
                if kind == "shown":
                    asked.remove(process)
        return shown

    # -- processes -------------------------------------------------------------------------------

    def _ask(
        self, share: int, kind: str, request: "dict[str, Json]", fd: int, call: "Call"
    ) -> Process:
        """The process in a place, having been asked; one that has died since is replaced."""
        problem = None
        for _ in range(2):
            try:
                process = self._filled(share, call)
                process.ask(kind, {**request, "share": share}, fd)
                return process
            except OSError as error:
                problem = error
                self._end(share)
        why = f"a searching process cannot be started: {problem}"
        raise ToolError(
            ErrorCode.EXECUTION_ERROR, why, "Repeat the call when there is memory for it."
        )

    def _filled(self, share: int, call: "Call") -> Process:
        """The process in a place, which knows what is closed to the call.  Raises: OSError."""
        roots = call.roots if call.roots.denies else None
        process = self._places[share]
        if process is not None and process.roots is not roots:
            self._end(share)
            process = None
        if process is None:
            cache_bytes = call.options.get("cache-mb", CACHE_MB) * (1 << 20) // PROCESSES
            process = self._places[share] = Process(share, cache_bytes, self._met(), roots)
        return process

    def _ready(self, share: int, call: "Call") -> bool:
        """True when a place is filled, or can be."""
        try:
            self._filled(share, call)
        except OSError:
            return False
        return True

    def _abandon(self, asked: "list[Process]") -> None:
        """End what still works for a call that is left: it would answer the next one."""
        for process in asked:
            self._end(process.share)

    def _end(self, share: int) -> None:
        process, self._places[share] = self._places[share], None
        if process is not None:
            process.end()

    def _heard(
        self, asked: "list[Process]", found: Found, call: "Call"
    ) -> "list[tuple[Process, tuple[Json, ...]]]":
        """What the processes in `asked` have to say, after waiting a little.

        One that hangs or died is ended, said in `found`, and leaves `asked`.
        Raises: ToolError CANCELLED, PERMISSION_DENIED when the start cannot be entered.
        """
        heard = []
        for process in ready(asked, WAIT_MS):
            messages = process.receive()
            if messages is None:
                found.died = True
                self._lose(process, asked, found, "")
                continue
            for message in messages:
                if message[0] == "refused":
                    asked.remove(process)
                    raise ToolError(
                        ErrorCode.PERMISSION_DENIED,
                        f"the directory cannot be entered: {message[1]}",
                        "Search another path, or have its permissions changed (r and x).",
                    )
                heard.append((process, message))
        if call.cancelled:
            self._stop(asked)
        call.check()
        now = monotonic()
        late = call.deadline is not None and now > call.deadline + STOP_S
        for process in list(asked):
            if (now - process.heard > SILENT_S or late) and not any(
                one is process for one, _ in heard
            ):
                at = process.where()
                found.died |= not (at or late)
                self._lose(process, asked, found, at)
        return heard

    def _lose(self, process: Process, asked: "list[Process]", found: Found, at: str) -> None:
        asked.remove(process)
        self._end(process.share)
        found.incomplete = True
        if at and at not in found.stuck:
            found.stuck.append(at)
            found.lost.append(process.share)

    def _stop(self, asked: "list[Process]") -> None:
        """Stop what runs: kindly, as what is kept warm lives on; else by force."""
        until = monotonic() + STOP_S
        for process in asked:
            process.tell("stop")
        running = list(asked)
        while running and monotonic() < until:
            for process in ready(running, WAIT_MS):
                messages = process.receive()
                if messages is None or any(kind in ENDINGS for kind, *_ in messages):
                    running.remove(process)
        for process in running:
            self._end(process.share)
        asked.clear()


def ready(processes: "list[Process]", timeout_ms: int) -> "list[Process]":
    """The processes that have said something, after waiting for one."""
    from select import POLLIN, poll

    poller = poll()
    for process in processes:
        poller.register(process.fd, POLLIN)
    by_fd = {process.fd: process for process in processes}
    return [by_fd[fd] for fd, _ in poller.poll(timeout_ms)]
