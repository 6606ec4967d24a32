"""The run-time layer of the policy on Linux: each start of a program in a session asks here first.

A filter on execve and execveat (seccomp_unotify(2), Linux 5.5) that every descendant inherits and none
can take off.  Whoever starts is stopped until the answer, which is to go on or EACCES.  It holds names,
not deeds: copies, renamed programs and interpreters pass, and a process that rewrites the path in its
memory between our look and the kernel's own passes too.  Needs a readable /proc/PID/mem, and
CAP_SYS_ADMIN or no_new_privs.  Knows no shell.
"""

import errno
import os
from struct import Struct

from toolroll_bash.program import Start, UnreadableError
from toolroll_bash.seccomp import (
    AARCH64,
    ARCHITECTURES,
    ARM,
    I386,
    NEW_LISTENER,
    NOTIFY,
    SPEC_ALLOW,
    WAIT_KILLABLE,
    X32_BIT,
    X86_64,
    Rule,
    assembled,
    install,
    trial,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolroll_bash.program import Program

    Refuses = Callable[[str], bool]

EXECVE = {X86_64: (59, 520), I386: (11,), AARCH64: (221,), ARM: (11,)}
EXECVEAT = {X86_64: (322, 545), I386: (358,), AARCH64: (281,), ARM: (387,)}
"""Numbers of the calls; 520 and 545 are those of x32."""

AT_EMPTY_PATH = 0x1000

RECEIVE, SEND, VALID = 0xC0502100, 0xC0182101, 0x40082102
"""Requests of ioctl(2): SECCOMP_IOCTL_NOTIF_RECV, _SEND and _ID_VALID."""

NOTICE = Struct("=QIIiIQ6Q")
"""struct seccomp_notif: id, pid, flags, then the call: number, architecture, address, six arguments."""

REPLY = Struct("=QqiI")
"""struct seccomp_notif_resp: id, value, error, flags."""

CONTINUE = 1

NOWHERE = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP, errno.ENAMETOOLONG)

NOBODY = 65534


class Supervisor:
    """The listener at which starts of programs wait: of this process's children and all below them.

    `refuses` tells by a program's name; `tell` is given the words for each that was stopped.
    """

    def __init__(self, refuses: "Refuses", tell: "Callable[[str], None]") -> None:
        """Begin: from here on no program starts below this process but by `answer`.

        Raises: OSError when the kernel does not have it.
        """
        self.exempt = 0
        """A process whose next start is not asked about: the shell itself."""
        self.fd = _listener()
        self._refuses = refuses
        self._tell = tell

    def answer(self) -> None:
        """Take one start that waits, and let it go on or fail.

        Raises: OSError when the kernel does not take the answer.
        """
        from fcntl import ioctl

        notice = bytearray(NOTICE.size)
        try:
            ioctl(self.fd, RECEIVE, notice)
        except OSError as problem:  # who waited was killed meanwhile
            if problem.errno in (errno.ENOENT, errno.EINTR):
                return
            raise
        number = notice[:8]
        stopped = self._judged(*NOTICE.unpack(notice)[1:])
        try:
            if stopped:
                self._ask(VALID, number)  # else another process of that number was read
                self._tell(stopped)
            reply = (-errno.EACCES, 0) if stopped is not None else (0, CONTINUE)
            self._ask(SEND, REPLY.pack(int.from_bytes(number, "little"), 0, *reply))
        except OSError as problem:
            if problem.errno != errno.ENOENT:
                raise

    def _ask(self, request: int, data: bytes | bytearray) -> None:
        """Raises: OSError."""
        from fcntl import ioctl

        while True:
            try:
                ioctl(self.fd, request, data)
                return
            except InterruptedError:  # a child has ended meanwhile
                continue

    def _judged(
        self, pid: int, _flags: int, number: int, machine: int, _at: int, *arguments: int
    ) -> str | None:
        """None to go on, else what is stopped; empty where there is nothing to tell of that."""
        if pid == self.exempt:
            self.exempt = 0
            return None
        width = 8 if machine in (X86_64, AARCH64) and not number & X32_BIT else 4
        directory, empty = -1, False
        if number & ~X32_BIT in EXECVEAT[machine]:
            directory, empty = _signed(arguments[0]), bool(arguments[4] & AT_EMPTY_PATH)
            arguments = arguments[1:]
        try:
            start = Start(pid, arguments[0], arguments[1], width)
        except (UnreadableError, OSError) as problem:
            return None if _leads_nowhere(problem) else unknown(pid)
        try:
            stopped = next(filter(self._is_refused, start.programs(directory, empty)), None)
        except (UnreadableError, ValueError):  # a name that no file can have
            return unknown(pid)
        except OSError as problem:  # nor can the process reach it
            return None if _leads_nowhere(problem) else ""
        finally:
            start.close()
        if stopped is None or (stopped.real and not os.path.lexists(stopped.real)):
            return None  # what is not there is not run; who looks for it hears so from the kernel
        return words(stopped)

    def _is_refused(self, program: "Program") -> bool:
        return any(self._refuses(os.fsdecode(name)) for name in program.names)


def _leads_nowhere(problem: Exception) -> bool:
    """True for a path at which the kernel will say itself what is wrong with it."""
    return isinstance(problem, OSError) and problem.errno in NOWHERE


def unknown(pid: int) -> str:
    """What is said of a start that cannot be looked at: by whom it was."""
    try:
        with open(f"/proc/{pid}/comm", "rb") as file:
            name = file.read().strip().decode("utf-8", "backslashreplace")
    except OSError:
        return "(a program that cannot be read)"
    return f"(a program that cannot be read, started by {name})"


def words(program: "Program") -> str:
    """A program's names in a line of text."""
    name, *real = (one.decode("utf-8", "backslashreplace") for one in program.names)
    return (f"{name} ({real[0]})" if real else name).replace("\n", "\\n")


def _signed(argument: int) -> int:
    """A descriptor, of which the kernel looks at 32 bits; negative for AT_FDCWD."""
    low = argument & 0xFFFFFFFF
    return low - (1 << 32) if low >> 31 else low


def _listener() -> int:
    machines = ARCHITECTURES.get(os.uname().machine, ())
    program = assembled(
        {
            one: [Rule(number, NOTIFY) for number in (*EXECVE[one], *EXECVEAT[one])]
            for one in machines
        }
    )
    try:
        return install(program, NEW_LISTENER | SPEC_ALLOW | WAIT_KILLABLE)
    except OSError as problem:
        if problem.errno != errno.EINVAL:  # WAIT_KILLABLE came with Linux 5.19
            raise
    return install(program, NEW_LISTENER | SPEC_ALLOW)


def problem() -> str:
    """Why starts cannot be supervised here, empty when they can."""
    why = trial(_supervise_one)
    if not why and os.geteuid() == 0 and trial(_supervise_another):
        return "starts of other users cannot be looked at: this root has no CAP_SYS_PTRACE"
    if why == os.strerror(errno.EBUSY):
        return "another program supervises all that runs here already"
    return why


def _supervise_another() -> None:
    """The same round with a start by another user, as `su` makes; nothing where that is not possible.

    Raises: OSError.
    """
    _supervise_one(NOBODY)


def _supervise_one(user: int = 0) -> None:
    """A whole round: a start that is asked about, looked at and let go on.

    Raises: OSError.
    """
    supervisor = Supervisor(lambda _: False, lambda _: None)
    pid = os.fork()
    if pid == 0:
        try:
            if user:
                _become(user)
            os.execv("/.no such program", ["none"])  # noqa: S606 - a start that leads nowhere
        except OSError as failed:
            os._exit(failed.errno or 0)
    supervisor.answer()
    _, status = os.waitpid(pid, 0)
    if os.waitstatus_to_exitcode(status) != errno.ENOENT:
        raise OSError(errno.EACCES, "the memory of other processes cannot be read")


def _become(user: int) -> None:
    try:
        os.setgid(user)
        os.setuid(user)
    except OSError:  # then nothing in a session can either
        return
