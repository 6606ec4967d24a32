"""Ways to start programs without a network; knows no session.

In a namespace of its own there is an empty network with a loopback interface; a filter refuses every
socket but those of Unix and of the kernel itself; bubblewrap(1) makes a namespace where only it may.
What other programs do on request over a Unix socket (a container engine, a resolver) is beyond all three.
"""

import os
import sys

from toolroll_bash.seccomp import (
    AARCH64,
    ALLOW,
    ARCHITECTURES,
    ARM,
    I386,
    REFUSE,
    X86_64,
    Rule,
    assembled,
    install,
    trial,
)

NAMESPACE, SECCOMP, BUBBLEWRAP = "namespace", "seccomp", "bubblewrap"
WAYS = [NAMESPACE, SECCOMP, BUBBLEWRAP]
"""In the order in which they are tried."""

CLONE_NEWUSER, CLONE_NEWNET = 0x10000000, 0x40000000
SIOCSIFFLAGS, IFF_UP = 0x8914, 1

SOCKET = {X86_64: 41, I386: 359, AARCH64: 198, ARM: 281}
SOCKETCALL, SYS_SOCKET = 102, 1
"""Of 32-bit programs: a call that begins what its first argument says, with a family we cannot see."""

IO_URING_SETUP = 425
"""On every architecture; a ring makes sockets without socket(2)."""

AF_UNIX, AF_NETLINK = 1, 16

WRAP = ("bwrap", "--dev-bind", "/", "/", "--unshare-net", "--")


def choose() -> tuple[str, str]:
    """The first way that works here; without one, empty and why."""
    from functools import partial

    reasons = []
    for way in WAYS:
        why = trial(partial(_try, way))
        if not why:
            return way, ""
        reasons.append(f"{way}: {why}")
    return "", "; ".join(reasons)


def leave(way: str) -> None:
    """Have no network from here on, nor has what is started; bubblewrap starts this process once more.

    Raises: OSError.
    """
    if way == BUBBLEWRAP:
        os.execvp(WRAP[0], [*WRAP, *sys.orig_argv, BUBBLEWRAP])  # noqa: S606 - no shell is wanted
    _try(way)


def _try(way: str) -> None:
    """Raises: OSError."""
    if way == NAMESPACE:
        _enter_namespace()
        _bring_loopback_up()
    elif way == SECCOMP:
        install(_refusing())
    elif os.spawnlp(os.P_WAIT, WRAP[0], *WRAP, "true"):  # noqa: S606 - no shell is wanted
        raise OSError("it is not installed, or may not work here")


def _enter_namespace() -> None:
    """A network namespace; without the right to one, inside of a user namespace where we stay who we are."""
    import ctypes

    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(CLONE_NEWNET) == 0:
        return
    user, group = os.geteuid(), os.getegid()
    if libc.unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    maps = {"setgroups": "deny", "uid_map": f"{user} {user} 1", "gid_map": f"{group} {group} 1"}
    for name, text in maps.items():  # user_namespaces(7)
        with open(f"/proc/self/{name}", "w") as file:
            file.write(text)


def _bring_loopback_up() -> None:
    from fcntl import ioctl
    from socket import AF_INET, SOCK_DGRAM, socket
    from struct import pack

    with socket(AF_INET, SOCK_DGRAM) as any_socket:
        ioctl(any_socket, SIOCSIFFLAGS, pack("=16sh22x", b"lo", IFF_UP))


def _refusing() -> bytes:
    """The filter."""
    rules = {}
    for one in ARCHITECTURES.get(os.uname().machine, ()):
        rules[one] = [
            Rule(SOCKET[one], REFUSE, (AF_UNIX, AF_NETLINK), ALLOW),
            Rule(IO_URING_SETUP, REFUSE),
        ]
        if one in (I386, ARM):
            rules[one].append(Rule(SOCKETCALL, ALLOW, (SYS_SOCKET,), REFUSE))
    return assembled(rules)
