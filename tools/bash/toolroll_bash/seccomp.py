"""Filters of system calls (seccomp(2)) assembled and installed by ctypes; knows nothing of what they are for.

A filter is made of rules for each architecture whose calls the kernel takes: a 64-bit kernel runs 32-bit
programs too, and any program may make 32-bit calls.
"""

import errno
import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

SET_MODE_FILTER = 1
NEW_LISTENER, SPEC_ALLOW, WAIT_KILLABLE = 8, 4, 32
"""Flags: return a listener; leave speculation as it is (it would slow every program down); a process
whose call is being looked at is woken by KILL only."""

PR_SET_NO_NEW_PRIVS = 38
NUMBER_OF_SECCOMP = {"x86_64": 317, "aarch64": 277}

X86_64, I386, AARCH64, ARM = 0xC000003E, 0x40000003, 0xC00000B7, 0x40000028
ARCHITECTURES = {"x86_64": (X86_64, I386), "aarch64": (AARCH64, ARM)}
X32_BIT = 0x40000000
"""In a call's number on x86-64: pointers of 32 bits.  Filters look at the number without it."""

NOTIFY, ALLOW = 0x7FC00000, 0x7FFF0000
REFUSE = 0x00050000 | errno.EACCES
_UNKNOWN = 0x00050000 | errno.ENOSYS

_LOAD, _EQUAL, _AND, _RETURN = 0x20, 0x15, 0x54, 0x06  # BPF_LD|W|ABS, BPF_JMP|JEQ|K, BPF_ALU|AND|K
_NUMBER, _ARCHITECTURE, _FIRST_ARGUMENT = 0, 4, 16  # offsets in struct seccomp_data


class Rule:
    """What becomes of a call by its number; of one whose first argument is among `values`, `then`."""

    __slots__ = ("number", "otherwise", "then", "values")

    def __init__(
        self, number: int, otherwise: int, values: "Sequence[int]" = (), then: int = ALLOW
    ) -> None:
        self.number = number
        self.otherwise = otherwise
        self.values = values
        self.then = then


def assembled(rules: "Mapping[int, Sequence[Rule]]") -> bytes:
    """The filter that applies to each architecture its rules; calls of any other do not exist."""
    program = _step(_LOAD, _ARCHITECTURE)
    for architecture, its in rules.items():
        block = _step(_LOAD, _NUMBER)
        if architecture == X86_64:
            block += _step(_AND, 0xFFFFFFFF ^ X32_BIT)
        block += b"".join(map(_ruled, its)) + _step(_RETURN, ALLOW)
        program += _unless_equal(architecture, block)
    return program + _step(_RETURN, _UNKNOWN)


def _ruled(rule: Rule) -> bytes:
    body = _step(_LOAD, _FIRST_ARGUMENT) if rule.values else b""
    for value in rule.values:
        body += _unless_equal(value, _step(_RETURN, rule.then))
    return _unless_equal(rule.number, body + _step(_RETURN, rule.otherwise))


def _unless_equal(value: int, block: bytes) -> bytes:
    """The block, jumped over when the accumulator holds something else."""
    return _step(_EQUAL, value, len(block) // 8) + block


def _step(code: int, value: int, otherwise: int = 0) -> bytes:
    from struct import pack

    return pack("=HBBI", code, 0, otherwise, value)


def install(program: bytes, flags: int = 0) -> int:
    """Install a filter on this thread and all it will start, for ever; the listener if one is asked for.

    Without CAP_SYS_ADMIN this takes no_new_privs: setuid programs start without their rights from then on.

    Raises: OSError.
    """
    import ctypes
    from struct import pack

    system = os.uname()
    number = NUMBER_OF_SECCOMP.get(system.machine)
    if number is None or system.sysname != "Linux":
        raise OSError(errno.ENOSYS, f"{system.sysname} on {system.machine} has no known filters")
    libc = ctypes.CDLL(None, use_errno=True)
    code = ctypes.create_string_buffer(program, len(program))
    described = pack("@HP", len(program) // 8, ctypes.addressof(code))  # struct sock_fprog

    def attempt() -> int:
        made: int = libc.syscall(number, SET_MODE_FILTER, flags, described)
        return made

    made = attempt()
    if made < 0 and ctypes.get_errno() == errno.EACCES:
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        made = attempt()
    if made < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return made


TRIAL_S = 10.0


def trial(act: "Callable[[], None]") -> str:
    """Why something cannot be done here, empty when it can: a child tries it, as it cannot be undone."""
    source, sink = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.write(sink, _why_not(act).encode() + b"\n")
        finally:
            os._exit(0)
    os.close(sink)
    try:
        return _heard(source, pid)
    finally:
        os.close(source)
        os.waitpid(pid, 0)


def _why_not(act: "Callable[[], None]") -> str:
    try:
        act()
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _heard(source: int, pid: int) -> str:
    from select import POLLIN, poll
    from signal import SIGKILL

    poller = poll()
    poller.register(source, POLLIN)
    if not poller.poll(TRIAL_S * 1000):
        os.kill(pid, SIGKILL)
        return "the attempt hung"
    said = os.read(source, 4096)
    return said.decode().strip() if said else "the attempt was killed"
