"""Bash's kernel mode: each start of a program is asked about, and nothing that a session does ends that."""

import errno
import os
import platform
import signal
import struct
import subprocess
import sys
from functools import partial

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.conftest import readable
from tests.tools.bash_server import Hosts, ask, hosts
from toolroll_bash import kernel, seccomp
from toolroll_bash.seccomp import ALLOW, I386, NOTIFY, REFUSE, X32_BIT, X86_64, Rule, assembled

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # fork, 3.12
needs_kernel_mode = pytest.mark.usefixtures("kernel_mode")
needs_x86_64 = pytest.mark.skipif(platform.machine() != "x86_64", reason="machine code of x86-64")

__all__ = ["hosts"]

SUPERVISED = f"""
import os
from toolroll_bash.seccomp import *
machines = ARCHITECTURES[os.uname().machine]
os.set_inheritable(install(assembled({{one: [Rule(999, NOTIFY)] for one in machines}}), {8}), True)
"""
"""What a server finds that runs below another supervisor."""


@pytest.fixture(scope="session")
def kernel_mode() -> None:
    """Skip where the kernel does not have it."""
    if why := kernel.problem():
        pytest.skip(f"no kernel mode: {why}")


# -- what is stopped ---------------------------------------------------------------------------------


@needs_kernel_mode
def test_a_stopped_program_fails_with_126_and_the_answer_says_why(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    text = ask(wire, "x=curl; $x; echo $?; plain")
    assert "Permission denied\n126\n" in text
    assert text.endswith("[stopped by policy (ban mode kernel): curl]")
    assert hosts.ran.read_text() == "plain\n"
    assert "policy" not in ask(wire, "plain")


@needs_kernel_mode
def test_what_nobody_banned_starts(hosts: Hosts) -> None:
    ask(hosts.start("--ban-mode", "kernel", "--allow", "curl"), "x=curl; $x; x=plain; ./bin/$x")
    assert hosts.ran.read_text() == "curl\nplain\n"


@needs_kernel_mode
def test_only_what_is_approved_starts(hosts: Hosts) -> None:
    (hosts.folder / "names").write_text("plain\nsh\nln\n")
    wire = hosts.start("--ban-mode", "kernel", "--allow-only", str(hosts.folder / "names"))
    text = ask(wire, "x=plain; $x; x=wget; $x; ln -s bin/wget other; x=./other; $x; x=ls; $x")
    assert hosts.ran.read_text() == "plain\n"
    assert "kernel): wget, other (wget), ls]" in text


QUIRKS = {
    "a NUL in an interpreter line": (r"printf '#!/bin/sh\0x\n' >s; chmod +x s; ./s; echo on", "on"),
    "a file among the folders of PATH": ("PATH=/etc/passwd:$PATH env nosuch; echo $?", "127"),
    "links in a circle": ("ln -s l l; env ./l; echo $?", "Too many levels"),
    "a path that is too long": (
        'python3 -c \'import os\ntry: os.execv("x" * 9000, ["x"])\nexcept OSError as e: print(e)\'',
        "File name too long",
    ),
    "a banned program that is not installed": (
        'python3 -c \'import subprocess\ntry: subprocess.run(["xh"])\n'
        'except FileNotFoundError: print("not there")\'',
        "not there",
    ),
    "a script that is called like busybox": (
        r"printf '#!/bin/sh\necho $1\n' >toybox-test; chmod +x toybox-test; ./toybox-test links",
        "links",
    ),
}


@needs_kernel_mode
def test_what_is_odd_or_leads_nowhere_fails_as_without_a_policy(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    for name, (command, expected) in QUIRKS.items():
        text = ask(wire, command)
        assert expected in text, (name, text)
        assert "policy" not in text, (name, text)
        assert "the shell ended" not in text, (name, text)


PLAYS = "python3 -c 'import os, sys; os.execv(\"./busybox\", sys.argv[1:])'"
WAYS = {
    "by a link": "ln -s bin/curl x; x=./x; $x",
    "by a link of a link": "ln -s bin a; ln -s a/curl x; x=./x; $x",
    "from another directory": 'cd bin; python3 -c \'import os; os.execv("./curl", ["x"])\'',
    "by a descriptor": 'python3 -c \'import os; os.execve(os.open("bin/curl", 0), ["x"], {})\'',
    "by a descriptor's path": "exec 7<bin/curl; x=/proc/self/fd/7; $x",
    "by a process's directory": "cd bin; x=/proc/self/cwd/curl; $x",
    "from a thread": (
        "python3 -c 'import os, threading; t = threading.Thread(target=os.execv, "
        'args=("bin/curl", ["x"])); t.start(); t.join()\''
    ),
    "by posix_spawn": 'python3 -c \'import os; os.posix_spawn("bin/curl", ["x"], {})\'',
    "as an interpreter": "cp bin/curl bin/x; printf '#!bin/curl' >y; chmod +x y; ./y",
    "as an interpreter's interpreter": (
        "for i in 1 2 3 4; do printf \"#!./y$((i - 1))\" >y$i; done; printf '#!bin/curl' >y0;"
        " chmod +x y?; ./y4"
    ),
    "as a part of a program": "cp $(type -P cat) busybox; x=wget; ./busybox $x",
    "as a part by its own name": f"cp $(type -P cat) busybox; {PLAYS} wget x",
    "by a loader": (
        "cp /bin/true curl; x=curl; for l in /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.1; do"
        " $l --library-path /lib --inhibit-cache ./$x; done"
    ),
    "by a loader as interpreter": (
        "cp /bin/true curl; for l in /lib64/ld-linux-*.so.2 /lib/ld-linux-*.so.1; do"
        ' printf "#!$l ./curl\\n" >y; done; chmod +x y; ./y'
    ),
}


@needs_kernel_mode
@pytest.mark.parametrize("way", WAYS)
def test_a_banned_program_is_found_behind(way: str, hosts: Hosts) -> None:
    text = ask(hosts.start("--ban-mode", "kernel"), WAYS[way])
    assert "stopped by policy" in text
    assert not hosts.ran.read_text()


INNOCENT = {
    "a name as an argument": "env plain curl wget",
    "an argument of a part": f"cp $(type -P echo) busybox; {PLAYS} ls wget",
    "a look at libraries": "for l in /lib64/ld-linux-*.so.2; do $l --list bin/curl; done",
    "a name as argument zero": "(exec -a curl true)",
    "a program that is not there": "no-such-program",
    "a folder of that name": "mkdir wget; cp bin/plain wget; wget/plain",
}


@needs_kernel_mode
@pytest.mark.parametrize("what", INNOCENT)
def test_innocent_is(what: str, hosts: Hosts) -> None:
    text = ask(hosts.start("--ban-mode", "kernel"), INNOCENT[what])
    assert "policy" not in text


@needs_kernel_mode
def test_a_program_that_nobody_can_read_does_not_start(hosts: Hosts) -> None:
    command = "printf '#!bin/curl' >x; chmod 111 x; ./x"
    text = ask(hosts.start("--ban-mode", "kernel"), command)
    assert "stopped by policy" in text
    assert not hosts.ran.read_text()


@needs_kernel_mode
def test_a_process_with_a_root_of_its_own_is_seen_from_there(hosts: Hosts) -> None:
    if hosts.ordinary:
        pytest.skip("chroot is for root")
    code = (
        "import os, sys; os.mkdir('jail'); os.mkdir('jail/d'); os.symlink('/d/curl', 'jail/x');"
        "open('jail/d/curl', 'w').close(); os.chmod('jail/d/curl', 0o755); os.chroot('jail');"
        "os.chdir('/d'); os.execv(sys.argv[1], ['x'])"
    )
    wire = hosts.start("--ban-mode", "kernel")
    assert "x (curl)" in ask(wire, f'python3 -c "{code}" /../x')
    assert "x (curl)" in ask(wire, f'rm -r jail; python3 -c "{code}" ../x')


# -- other ways into the kernel ----------------------------------------------------------------------


def program(bits: int, code: bytes) -> bytes:
    """An ELF file whose only segment is itself, at 0x10000."""
    base = 0x10000
    if bits == 32:
        head = struct.pack(
            "<16sHHIIIIIHHHHHH", b"\x7fELF\1\1\1", 2, 3, 1, base + 84, 52, 0, 0, *HEAD
        )
        size = 84 + len(code)
        return head + struct.pack("<8I", 1, 0, base, base, size, size, 7, 4096) + code
    head = struct.pack("<16sHHIQQQIHHHHHH", b"\x7fELF\2\1\1", 2, 62, 1, base + 120, 64, 0, 0, *WIDE)
    size = 120 + len(code)
    return head + struct.pack("<IIQQQQQQ", 1, 7, 0, base, base, size, size, 4096) + code


HEAD = (52, 32, 1, 0, 0, 0)
WIDE = (64, 56, 1, 0, 0, 0)
PATH = b"bin/curl\0"


def starts(number: int, at: bool) -> bytes:
    """A 32-bit program that starts bin/curl by execve or execveat and ends with the error's number."""
    first = 0x10000 + 84
    length = 43 if at else 33
    path, words = first + length, first + length + len(PATH)
    registers = [b"\xbb", b"\xb9", b"\xba"]  # mov ebx, ecx, edx
    values = [0xFFFFFF9C, path, words] if at else [path, words, 0]
    code = b"".join(
        move + struct.pack("<I", one) for move, one in zip(registers, values, strict=True)
    )
    code += (b"\xbe" + bytes(4) + b"\xbf" + bytes(4)) if at else b""  # mov esi, edi
    code += b"\xb8" + struct.pack("<I", number) + b"\xcd\x80"  # mov eax; int 0x80
    code += b"\x89\xc3\xf7\xdb\xb8\1\0\0\0\xcd\x80"  # exit(-eax)
    assert len(code) == length
    return program(32, code + PATH + struct.pack("<II", path, 0))


def starts_x32() -> bytes:
    """The same for x32: execve is 520 there."""
    first = 0x10000 + 120
    length = 40
    path, words = first + length, first + length + len(PATH)
    code = b"\xbf" + struct.pack("<I", path) + b"\xbe" + struct.pack("<I", words)  # mov edi, esi
    code += (
        b"\x31\xd2\xb8" + struct.pack("<I", 520 | X32_BIT) + b"\x0f\x05"
    )  # xor edx; mov eax; syscall
    code += b"\x89\xc7\xf7\xdf\xb8\x3c\0\0\0\x0f\x05"  # exit(-eax)
    return program(64, code.ljust(length, b"\x90") + PATH + struct.pack("<II", path, 0))


@needs_kernel_mode
@needs_x86_64
@pytest.mark.parametrize(("number", "at"), [(11, False), (358, True)])
def test_a_32_bit_program_is_asked_about_too(number: int, at: bool, hosts: Hosts) -> None:
    binary = hosts.folder / "old"
    binary.write_bytes(starts(number, at))
    binary.chmod(0o755)
    try:
        proof = subprocess.run([binary], cwd=hosts.folder, timeout=20, check=False)
    except OSError as problem:
        pytest.skip(f"this kernel runs no 32-bit programs: {problem.strerror}")
    assert proof.returncode == 0
    assert hosts.ran.read_text() == "curl\n"
    hosts.ran.write_text("")
    text = ask(hosts.start("--ban-mode", "kernel"), "./old; echo status $?")
    assert f"status {errno.EACCES}\n" in text
    assert "stopped by policy (ban mode kernel): curl" in text
    assert not hosts.ran.read_text()


@needs_kernel_mode
@needs_x86_64
def test_an_x32_program_starts_nothing_either(hosts: Hosts) -> None:
    binary = hosts.folder / "odd"
    binary.write_bytes(starts_x32())
    binary.chmod(0o755)
    text = ask(hosts.start("--ban-mode", "kernel"), "./odd; echo status $?")
    assert f"status {errno.EACCES}\n" in text or f"status {errno.ENOSYS}\n" in text
    assert not hosts.ran.read_text()


def verdict(steps: bytes, data: bytes) -> int:
    """What a filter says of a call: the kernel's own machine, as far as filters use it."""
    at, value = 0, 0
    while True:
        code, yes, no, k = struct.unpack_from("=HBBI", steps, 8 * at)
        at += 1
        if code == 0x06:
            return int(k)
        if code == 0x20:
            (value,) = struct.unpack_from("=I", data, k)
        elif code == 0x54:
            value &= k
        else:
            assert code == 0x15
            at += yes if value == k else no


@settings(deadline=None)
@given(
    st.sampled_from([X86_64, I386, 0x1234]),
    st.sampled_from([0, 11, 41, 59, 520, 999]),
    st.booleans(),
    st.sampled_from([1, 2, 16, 2 + (1 << 32)]),
)
def test_a_filter_says_what_its_rules_say(arch: int, number: int, x32: bool, first: int) -> None:
    rules = {
        X86_64: [Rule(59, NOTIFY), Rule(520, NOTIFY), Rule(41, REFUSE, (1, 16), ALLOW)],
        I386: [Rule(11, NOTIFY)],
    }
    nr = number | X32_BIT if x32 else number
    data = struct.pack("=IIQQ", nr, arch, 0, first)
    expected = {(X86_64, 59): NOTIFY, (X86_64, 520): NOTIFY, (I386, 11): NOTIFY}
    if (arch, number) == (X86_64, 41):
        wanted = ALLOW if first & 0xFFFFFFFF in (1, 16) else REFUSE
    elif arch == 0x1234:
        wanted = 0x00050000 | errno.ENOSYS
    else:
        wanted = expected.get((arch, number), ALLOW)
        if arch == I386 and x32:
            wanted = ALLOW
    assert verdict(assembled(rules), data) == wanted


# -- it stays ----------------------------------------------------------------------------------------


@needs_kernel_mode
def test_a_storm_of_starts_and_kills_is_survived(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    storm = (
        "(for i in {1..60}; do (x=curl; $x; exec true) & kill -9 $!; (exec true) & done; wait)"
        " >/dev/null 2>&1; echo done"
    )
    assert ask(wire, storm).startswith("done\n")
    assert "policy" in ask(wire, "x=curl; $x")
    assert not hosts.ran.read_text()


def starting() -> int:
    """A child that wants to become another program and ends when it may not or cannot."""
    pid = os.fork()
    if pid == 0:
        try:
            os.execv("/.none", ["none"])
        finally:
            os._exit(1)
    return pid


@needs_kernel_mode
def test_who_is_killed_while_it_waits_is_no_matter() -> None:
    def kill_before_the_look() -> None:
        supervisor = kernel.Supervisor(lambda _: False, lambda _: None)
        pid = starting()
        assert readable(supervisor.fd, 10)
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        supervisor.answer()

    def kill_during_the_look(stopped: bool) -> None:
        told: list[str] = []

        def look(_: str) -> bool:
            os.kill(pid, signal.SIGKILL)
            os.waitpid(pid, 0)
            return stopped

        supervisor = kernel.Supervisor(look, told.append)
        pid = starting()
        supervisor.answer()
        assert not told

    assert seccomp.trial(kill_before_the_look) == ""
    for stopped in (True, False):
        assert seccomp.trial(partial(kill_during_the_look, stopped)) == ""


@needs_kernel_mode
def test_interrupted_starts_are_survived(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    loop = "while :; do x=curl; $x; /bin/true; done 2>/dev/null"
    assert "TIMEOUT" in ask(wire, loop, timeout=300)
    text = ask(wire, "x=curl; $x; plain")
    assert "curl]" in text
    assert hosts.ran.read_text() == "plain\n"


@needs_kernel_mode
def test_a_new_shell_of_the_session_is_held_to_it_too(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    ask(wire, "exit")
    assert "curl]" in ask(wire, "x=curl; $x")
    assert "curl]" in ask(wire, "x=curl; $x", restart=True)
    assert not hosts.ran.read_text()


@needs_kernel_mode
def test_a_job_whose_program_is_stopped_later_is_told_with_the_next_answer(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel")
    ask(wire, "mkfifo go gone; (read <go; x=curl; $x 2>/dev/null; : >gone) &")
    with (hosts.folder / "go").open("w") as go:
        go.write("\n")
    with (hosts.folder / "gone").open() as gone:
        assert not gone.read()
    assert ask(wire, "true").endswith("[stopped meanwhile by policy (ban mode kernel): curl]")


@needs_kernel_mode
def test_banned_builtins_are_none(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel", "--ban", "compgen")
    text = ask(wire, "x=alias; builtin $x a=b; shopt -s expand_aliases; BASH_ALIASES[p]=plain")
    assert "not a shell builtin" in text
    assert "127" in ask(wire, "p\necho $?")
    assert "not a shell builtin" in ask(wire, "x=compgen; builtin $x -b")
    assert not hosts.ran.read_text()


# -- which mode --------------------------------------------------------------------------------------


@needs_kernel_mode
def test_auto_is_the_kernels_where_it_can_be_and_the_log_says_so(hosts: Hosts) -> None:
    wire = hosts.start("--log-level", "debug")
    assert "policy (ban mode kernel)" in ask(wire, "x=curl; $x")
    assert wire.errors.count("debug ban mode kernel") == 1
    quiet = hosts.start()
    ask(quiet, "true")
    assert not quiet.errors


@needs_kernel_mode
def test_auto_leaves_a_sudo_that_works_alone(hosts: Hosts) -> None:
    (hosts.bin / "sudo").write_text("#!/bin/sh\nexit 0\n")
    (hosts.bin / "sudo").chmod(0o755)
    wire = hosts.start()
    if not hosts.ordinary:
        assert "ban mode: kernel" in ask(wire, "curl")
        return
    for _ in range(2):
        assert "ban mode: shims, as sudo works" in ask(wire, "curl")
        assert "ban mode shims, as sudo works" in ask(wire, "x=curl; $x")
    assert wire.errors.count("warning ban mode shims, as sudo works") == 1


@needs_kernel_mode
def test_below_another_supervisor_auto_takes_shims_and_says_why_once(hosts: Hosts) -> None:
    wire = hosts.start(code=SUPERVISED)
    assert "shims" in ask(wire, "x=curl; $x")
    assert "shims" in ask(wire, "x=curl; $x", session="other")
    assert not hosts.ran.read_text()
    assert wire.errors.count("warning ban mode shims, as kernel mode is not possible") == 1
    assert "supervises" in wire.errors


@needs_kernel_mode
def test_a_kernel_mode_that_cannot_be_had_is_no_session(hosts: Hosts) -> None:
    wire = hosts.start("--ban-mode", "kernel", code=SUPERVISED)
    for _ in range(2):
        text = ask(wire, "plain")
        assert text.startswith("Error [EXECUTION_ERROR]: --ban-mode kernel: kernel mode is not")
    assert not hosts.ran.read_text()
    assert wire.errors.count("kernel mode is not possible") == 1


def test_a_trial_tells_what_went_wrong_and_never_hangs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(seccomp, "TRIAL_S", 0.2)

    def refused() -> None:
        raise OSError(errno.EPERM, "no right to it")

    assert seccomp.trial(lambda: None) == ""
    assert seccomp.trial(refused) == "no right to it"
    assert seccomp.trial(lambda: os.kill(os.getpid(), 9)) == "the attempt was killed"
    assert seccomp.trial(signal.pause) == "the attempt hung"


def test_help_says_which_mode_is_in_force() -> None:
    for mode in ("shims", "text"):
        done = subprocess.run(
            [sys.executable, "-m", "toolroll_bash", "--ban-mode", mode, "--help"],
            capture_output=True,
            text=True,
            timeout=60,
            check=True,
        )
        assert done.stdout.endswith(f"\n\nIn force here: ban mode {mode}.\n")
