"""The processes of this machine as a tree: who is below whom, and since when.  Knows no shell."""

import os
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator
    from ctypes import CDLL

PR_SET_CHILD_SUBREAPER = 36
TICKS_PER_S = os.sysconf("SC_CLK_TCK")
CLOCK = getattr(time, "CLOCK_BOOTTIME", None)


class Process:
    """A process as the system lists it; `started` counts clock ticks since boot (proc(5))."""

    __slots__ = ("parent", "pid", "session", "started", "state")

    def __init__(self, pid: int, parent: int, session: int, started: int, state: str) -> None:
        self.pid = pid
        self.parent = parent
        self.session = session
        self.started = started
        self.state = state


def processes() -> "dict[int, Process]":
    """All processes by number; zombies are left out."""
    found = _from_proc() if os.path.exists("/proc/self/stat") else _from_ps()
    return {one.pid: one for one in found if one.state != "Z"}


def _from_proc() -> "Iterator[Process]":
    for name in os.listdir("/proc"):
        if not name.isdigit():
            continue
        try:
            fd = os.open(f"/proc/{name}/stat", os.O_RDONLY)
        except OSError:  # it ended meanwhile
            continue
        try:
            yield _process(os.read(fd, 4096))
        except OSError:
            continue
        finally:
            os.close(fd)


def _process(line: bytes) -> Process:
    """From /proc/PID/stat, whose second field is a name in parentheses that may hold anything."""
    pid, _, rest = line.partition(b" ")
    fields = rest[rest.rindex(b")") + 2 :].split()
    return Process(int(pid), int(fields[1]), int(fields[3]), int(fields[19]), fields[0].decode())


def _from_ps() -> "Iterator[Process]":
    """Where there is no /proc (macOS); everything seems to have started just now."""
    from subprocess import run

    columns = "pid=,ppid=,state="
    listed = run(["ps", "-A", "-o", columns], capture_output=True, check=False)
    for line in listed.stdout.splitlines():
        pid, parent, state = line.split()[:3]
        yield Process(int(pid), int(parent), 0, 1 << 62, state[:1].decode())


def below(root: int, table: "dict[int, Process]") -> "list[Process]":
    """All descendants of `root`, parents before their children."""
    children: dict[int, list[Process]] = {}
    for one in table.values():
        children.setdefault(one.parent, []).append(one)
    found = list(children.get(root, ()))
    for one in found:
        found += children.get(one.pid, ())
    return found


def signal_all(pids: "Iterable[int]", number: int) -> None:
    """Send a signal; who is gone or not ours (setuid) is left alone."""
    for pid in pids:
        try:
            os.kill(pid, number)
        except OSError:
            continue


def adopting() -> "CDLL | None":
    """The C library where it has prctl (Linux), once this process is to inherit orphans below it."""
    try:
        from ctypes import CDLL

        library = CDLL(None)
        library.prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    except (ImportError, OSError, AttributeError):
        return None
    return library


def stop(pids: "Collection[int]", number: int) -> None:
    """Send a signal that is to end them; who is stopped hears nothing but KILL, so they go on first."""
    from signal import SIGCONT

    signal_all(pids, number)
    signal_all(pids, SIGCONT)


class Mark:
    """A point in time that tells later which processes started behind it.

    A clock tick is long; within it the order of the process numbers decides.
    """

    __slots__ = ("last", "tick")

    def __init__(self) -> None:
        self.tick, self.last = _tick(), _last_pid()

    def before(self, one: Process) -> bool:
        """True when the process started behind the mark."""
        if one.started == self.tick:
            return one.pid > self.last
        return one.started > self.tick


def _tick() -> int:
    """Now, in clock ticks since boot; 0, before everything, where the system has no such clock."""
    return 0 if CLOCK is None else time.clock_gettime_ns(CLOCK) * TICKS_PER_S // 1_000_000_000


def _last_pid() -> int:
    """The number of the process that was started last: the end of /proc/loadavg."""
    return int(os.pread(LOAD, 100, 0).split()[-1]) if LOAD >= 0 else 0


def _open_load() -> int:
    try:
        return os.open("/proc/loadavg", os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return -1


LOAD = _open_load()
"""Kept open: it is read before each command."""
