"""Bash's --no-network: nothing outside is reached, in each of the ways there are."""

import os
import platform
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tests.conftest import readable
from tests.tools.bash_server import Hosts, ask, hosts
from tests.tools.test_bash_kernel import program
from toolroll_bash import network

__all__ = ["hosts"]

WAIT_S = 10.0
REACHED = "reached"

SENDS = r"""
import socket, sys
kind, family, host, port = sys.argv[1], getattr(socket, sys.argv[2]), sys.argv[3], int(sys.argv[4])
try:
    with socket.socket(family, getattr(socket, kind)) as s:
        s.settimeout(5)
        s.connect((host, port))
        s.sendall(bytes.fromhex(sys.argv[5]))
        print(s.recv(100).decode())
except OSError as problem:
    print("failed", problem.errno)
"""

QUERY = "1234010000010000000000000461626364047465737400000100 01".replace(" ", "")
"""What a resolver asks for the address of abcd.test (RFC 1035)."""


class Outside:
    """A server outside of all sessions, which answers the first thing it is sent."""

    def __init__(self, kind: str, family: str, host: str) -> None:
        self.kind, self.family, self.host = kind, family, host
        self.socket = socket.socket(getattr(socket, family), getattr(socket, kind))
        self.socket.bind((host, 0))
        if kind == "SOCK_STREAM":
            self.socket.listen()
        self.port = self.socket.getsockname()[1]

    def heard(self, timeout_s: float) -> bool:
        """True when somebody came; who did gets an answer."""
        if not readable(self.socket.fileno(), timeout_s):
            return False
        if self.kind == "SOCK_STREAM":
            peer, _ = self.socket.accept()
            peer.recv(100)
            peer.sendall(REACHED.encode())
            peer.close()
            return True
        _, sender = self.socket.recvfrom(100)
        self.socket.sendto(REACHED.encode(), sender)
        return True

    @property
    def command(self) -> str:
        return f"python3 send.py {self.kind} {self.family} {self.host} {self.port} {QUERY}"


SERVERS = {
    "TCP": ("SOCK_STREAM", "AF_INET", "127.0.0.1"),
    "UDP": ("SOCK_DGRAM", "AF_INET", "127.0.0.1"),
    "TCP over IPv6": ("SOCK_STREAM", "AF_INET6", "::1"),
    "UDP over IPv6": ("SOCK_DGRAM", "AF_INET6", "::1"),
}


@pytest.fixture(params=SERVERS)
def outside(request: pytest.FixtureRequest) -> Iterator[Outside]:
    """One server of each kind; UDP is what a resolver speaks."""
    try:
        server = Outside(*SERVERS[request.param])
    except OSError as problem:
        pytest.skip(f"no {request.param} here: {problem.strerror}")
    yield server
    server.socket.close()


def only(way: str) -> str:
    """Python that leaves a server one way."""
    return f"import toolroll_bash.network as it; it.WAYS[:] = [{way!r}]"


def possible(hosts: Hosts, way: str) -> None:
    """Skip where the system does not have it for this user."""
    done = ask(hosts.start("--no-network", code=only(way)), "true")
    if "EXECUTION_ERROR" in done:
        pytest.skip(done.splitlines()[0])


# -- nothing outside ---------------------------------------------------------------------------------


def test_with_a_network_each_server_is_reached(hosts: Hosts, outside: Outside) -> None:
    (hosts.folder / "send.py").write_text(SENDS)
    wire = hosts.start()
    ask(wire, outside.command, background=True)
    assert outside.heard(WAIT_S)


@pytest.mark.parametrize("way", network.WAYS)
def test_without_one_none_is(hosts: Hosts, outside: Outside, way: str) -> None:
    possible(hosts, way)
    (hosts.folder / "send.py").write_text(SENDS)
    wire = hosts.start("--no-network", code=only(way))
    assert "failed" in ask(wire, outside.command)
    tcp = "tcp" if outside.kind == "SOCK_STREAM" else "udp"
    ask(wire, f"echo x >/dev/{tcp}/{outside.host}/{outside.port}", restart=True)
    ask(wire, "exit")
    assert "failed" in ask(wire, outside.command)
    assert not outside.heard(0)


@pytest.mark.parametrize("way", [network.NAMESPACE, network.BUBBLEWRAP])
def test_inside_of_a_namespace_a_server_of_the_session_is_reached(hosts: Hosts, way: str) -> None:
    possible(hosts, way)
    code = (
        "import socket; s = socket.create_server(('127.0.0.1', 0)); "
        "c = socket.create_connection(s.getsockname()); print('reached', c.getpeername()[0])"
    )
    assert "reached 127.0.0.1" in ask(
        hosts.start("--no-network", code=only(way)), f'python3 -c "{code}"'
    )


def test_jobs_and_a_new_shell_of_a_session_share_their_network(hosts: Hosts) -> None:
    possible(hosts, network.NAMESPACE)
    wire = hosts.start("--no-network", code=only(network.NAMESPACE))
    before = ask(wire, "sleep 100 & readlink /proc/self/ns/net; exit").split("\n")[-3]
    assert before.startswith("net:[")
    assert before in ask(wire, "readlink /proc/self/ns/net")
    assert before != os.readlink("/proc/self/ns/net")


@pytest.mark.parametrize("way", network.WAYS)
def test_files_look_owned_by_their_user_and_programs_stay_banned(hosts: Hosts, way: str) -> None:
    possible(hosts, way)
    wire = hosts.start("--no-network", "--log-level", "debug", code=only(way))
    text = ask(wire, "touch f; [[ -O f ]] && echo owned; x=curl; $x; stat -c %u f; id -u")
    assert text.startswith("owned\n")
    assert len(set(text.split("\n")[-4:-2])) == 1, text
    assert not hosts.ran.read_text()
    assert f"no network ({way})" in wire.errors


# -- the filter --------------------------------------------------------------------------------------


def test_the_filter_leaves_sockets_of_unix_and_of_the_kernel(hosts: Hosts) -> None:
    possible(hosts, network.SECCOMP)
    code = (
        "import socket as s\n"
        "for f in (s.AF_UNIX, s.AF_NETLINK): s.socket(f, s.SOCK_DGRAM).close(); print('made')\n"
        "s.socketpair(); print('paired')\n"
        "for f in (s.AF_INET, s.AF_INET6, s.AF_PACKET, 40):\n"
        " try: s.socket(f, s.SOCK_DGRAM)\n"
        " except PermissionError: print('refused')"
    )
    wire = hosts.start("--no-network", code=only(network.SECCOMP))
    wanted = "made\nmade\npaired\nrefused\nrefused\nrefused\nrefused"
    assert wanted in ask(wire, f'python3 -c "{code}"')


def test_the_filter_leaves_no_rings(hosts: Hosts) -> None:
    possible(hosts, network.SECCOMP)
    code = (
        "import ctypes; c = ctypes.CDLL(None, use_errno=True); "
        "print(c.syscall(425, 4, (ctypes.c_char * 120)()), ctypes.get_errno())"
    )
    wire = hosts.start("--no-network", code=only(network.SECCOMP))
    assert "-1 13\n" in ask(wire, f"python3 -c '{code}'") + "\n"


@pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")
@pytest.mark.parametrize("through", ["socket", "socketcall"])
def test_the_filter_holds_32_bit_programs_too(hosts: Hosts, through: str) -> None:
    possible(hosts, network.SECCOMP)
    binary = hosts.folder / "old"
    binary.write_bytes(makes_socket(through))
    binary.chmod(0o755)
    try:
        proof = subprocess.run([binary], timeout=20, check=False)
    except OSError as problem:
        pytest.skip(f"this kernel runs no 32-bit programs: {problem.strerror}")
    assert proof.returncode == 0
    wire = hosts.start("--no-network", code=only(network.SECCOMP))
    assert "status 13" in ask(wire, "./old; echo status $?")


def makes_socket(through: str) -> bytes:
    """A 32-bit program that makes a TCP socket and ends with the error's number."""
    words = 0x10000 + 84 + 43
    number, registers = (359, (2, 1, 0)) if through == "socket" else (102, (1, words, 0))
    moves = zip((b"\xbb", b"\xb9", b"\xba"), registers, strict=True)  # mov ebx, ecx, edx
    code = b"".join(move + struct.pack("<I", one) for move, one in moves)
    code += b"\xb8" + struct.pack("<I", number) + b"\xcd\x80"  # mov eax; int 0x80
    code += b"\x31\xdb\x85\xc0\x79\x04\x89\xc3\xf7\xdb"  # ebx = eax < 0 ? -eax : 0
    code += b"\xb8\1\0\0\0\xcd\x80"  # exit(ebx)
    return program(32, code.ljust(43, b"\x90") + struct.pack("<III", 2, 1, 0))


# -- no way ------------------------------------------------------------------------------------------


def test_where_there_is_no_way_no_session_starts(hosts: Hosts) -> None:
    wire = hosts.start("--no-network", code=f"{only('bubblewrap')}; it.WRAP = ('/none',)")
    for _ in range(2):
        text = ask(wire, "plain")
        assert text.startswith("Error [EXECUTION_ERROR]: --no-network is not possible here (bubble")
    assert not hosts.ran.read_text()
    assert wire.errors.count("--no-network is not possible here") == 1


def test_help_says_how_there_is_no_network() -> None:
    code = f"{only(network.SECCOMP)}\nfrom toolroll_bash.__main__ import run; run()"
    done = subprocess.run(
        [sys.executable, "-c", code, "--no-network", "--ban-mode", "text", "--help"],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert done.stdout.endswith("\nIn force here: ban mode text; no network (seccomp).\n")
