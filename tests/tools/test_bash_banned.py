"""Banned commands: the whole corpus against real processes, in each mode, as root and as an ordinary user.

The programs of banned names are fakes that write down that they ran.  That an evasion works is
proven first, with nothing banned: what nobody could run is not stopped by anything.
"""

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wire
from tests.tools.banned_corpus import (
    EVASIONS,
    INNOCENTS,
    MODES,
    PROBES,
    Evasion,
    Innocent,
)

Json = Any

BANNED = (
    *("alias", "curl", "curlie", "wget", "axel", "aria2c", "nc", "telnet", "lynx", "w3m", "links"),
    *("httpie", "xh", "http-prompt", "chrome", "firefox", "safari"),
)
STRANGER = 65534
ROOT = os.geteuid() == 0
OFF = "off"
TIMEOUT_MS = 15_000

WRAPPERS = {
    "sudo": 'while case $1 in -u) shift 2;; *=*) shift;; *) false;; esac; do :; done; exec "$@"',
    "doas": 'exec "$@"',
    "watch": 'shift 2; exec sh -c "$*"',
    "parallel": 'exec "$1" "$3"',
}
"""Stand-ins for programs that run another and are rarely installed, or need a terminal or rights."""

SPEAKERS = ("npm", "pip", "docker", "kubectl", "apt-get")
"""Stand-ins that print their name and their arguments."""

LOADERS = ("/lib64/ld-linux-x86-64.so.2", "/lib/ld-linux-aarch64.so.1")

NEEDED = os.pathsep.join((sys.base_prefix, sys.prefix, str(Path(__file__).resolve().parents[2])))
"""Where Python and the checkout lie."""

AS_STRANGER = f"""
import ctypes, os, sys
libc = ctypes.CDLL(None)

def closed(path):
    parts = path.split("/")
    ways = ["/".join(parts[:n]) for n in range(2, len(parts) + 1)]
    return next((way for way in ways if os.path.exists(way) and not os.stat(way).st_mode & 1), "")

needed = sys.argv[1].split(os.pathsep)
if any(map(closed, needed)):  # others may not enter: show them what is needed, in mounts of our own
    libc.unshare(0x20000)  # CLONE_NEWNS
    libc.mount(None, b"/", None, 0x44000, None)  # MS_PRIVATE | MS_REC
    places = {{path: os.open(path, os.O_PATH) for path in needed}}
    for path, fd in places.items():
        if closed(path):
            libc.mount(b"none", closed(path).encode(), b"tmpfs", 0, b"mode=755")
        os.makedirs(path, exist_ok=True)
        libc.mount(b"/proc/self/fd/%d" % fd, path.encode(), None, 0x5000, None)  # MS_BIND | MS_REC
os.setgroups([])
os.setgid({STRANGER})
os.setuid({STRANGER})
os.execv(sys.executable, [sys.executable, *sys.argv[2:]])
"""
"""Runs Python as nobody, even where it lies in the folder of root."""

ORDINARY = [sys.executable, "-c", AS_STRANGER, NEEDED]


def script(path: Path, body: str) -> None:
    """An executable shell script."""
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)


class Stage:
    """A server in a folder of its own with the fakes on its PATH."""

    def __init__(self, mode: str, ordinary: bool) -> None:
        self.mode = mode
        self.folder = Path(tempfile.mkdtemp(prefix="toolroll-banned-")).resolve()
        self.folder.chmod(0o755)
        self.ran = self.folder / "ran"
        self.ran.touch()
        self.work = self.folder / "work"
        self.work.mkdir()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.ordinary = ordinary
        self.has: dict[str, bool] = {}
        self._fill()
        for path in (self.folder, self.ran, self.work) if ordinary else ():
            os.chown(path, STRANGER, STRANGER)
        allowed = [word for name in BANNED for word in ("--allow", name)]
        arguments = allowed if mode == OFF else ["--ban-mode", mode]
        server = ["-m", "toolroll_bash", "--structured", "--rate", "off", *arguments]
        start = ORDINARY if ordinary else [sys.executable]
        self.wire = Wire([*start, *server], self._environment(), self.folder)
        self.wire.open()

    def _fill(self) -> None:
        for name in BANNED:
            script(self.bin / name, f"echo {name} >>'{self.ran}'")
        for name in ("busybox", "toybox"):
            listed = "|".join(BANNED)
            body = f'case $1 in {listed}) echo "$1" >>\'{self.ran}\';; *) echo "$@";; esac'
            script(self.bin / name, body)
        for name, body in WRAPPERS.items():
            script(self.bin / name, body)
        for name in SPEAKERS:
            script(self.bin / name, f'echo {name} "$@"')
        script(self.bin / "record", f"echo \"$1\" >>'{self.ran}'")
        (self.bin / "lynx").unlink()
        shutil.copy(os.path.realpath(shutil.which("bash") or "bash"), self.bin / "lynx")

    def _environment(self) -> dict[str, str]:
        path = (str(self.bin), os.path.dirname(sys.executable), os.environ["PATH"])
        return {
            "PATH": os.pathsep.join(path),
            "BIN": str(self.bin),
            "LOADER": next(filter(os.path.exists, LOADERS), ""),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONDONTWRITEBYTECODE": "1",
            "GIT_CONFIG_GLOBAL": os.devnull,
            "GIT_CONFIG_NOSYSTEM": "1",
            **{
                f"GIT_{who}_{what}": "a@b"
                for who in ("AUTHOR", "COMMITTER")
                for what in ("NAME", "EMAIL")
            },
        }

    def run(self, entry: Evasion | Innocent) -> tuple[str, int, set[str]]:
        """What a command answered, its exit status and the banned programs that it ran."""
        folder = self.work / entry.name
        folder.mkdir()
        for name, text in entry.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
        for path in (folder, *folder.rglob("*")) if self.ordinary else ():
            os.chown(path, STRANGER, STRANGER)
        text, status = self.call(f"cd '{folder}'\n{entry.text}")
        ran = set(self.ran.read_text().split())
        self.ran.write_text("")
        shutil.rmtree(folder)
        return text, status, ran

    def can_run(self, entry: Evasion | Innocent) -> bool:
        """True when the machine has what the command needs."""
        for need in entry.needs:
            if need not in self.has:
                probe = PROBES.get(need, f"type -P {need}")
                self.has[need] = self.call(probe)[1] == 0
        return all(self.has[need] for need in entry.needs)

    def call(self, command: str) -> tuple[str, int]:
        """What a command answered and its exit status, -1 when it was not run."""
        result = self.wire.call("Bash", command=command, timeout=TIMEOUT_MS)
        status = (result.get("structuredContent") or {}).get("exit_code", -1)
        return result["content"][0]["text"], status

    def close(self) -> None:
        """End the server."""
        self.wire.close()
        shutil.rmtree(self.folder)


STAGES = [(OFF, "user"), *((mode, user) for mode in MODES for user in ("root", "user"))]


@pytest.fixture(scope="module", params=STAGES, ids="-".join)
def stage(request: pytest.FixtureRequest) -> Iterator[Stage]:
    """A server for all commands; what one leaves behind in the shell is there for the next."""
    mode, user = request.param
    if user == "root" and not ROOT:
        pytest.skip("not run as root")
    ordinary = ROOT and user == "user"
    if ordinary and subprocess.run([*ORDINARY, "-c", ""], check=False, timeout=60).returncode:
        pytest.skip("Python cannot be run by an ordinary user")
    started = Stage(mode, ordinary)
    text, _ = started.call("true")
    if "is not possible here" in text:
        started.close()
        pytest.skip(text)
    yield started
    started.close()


def evasions(stage: Stage) -> list[Evasion]:
    """Those that can be run here."""
    listed = [entry for entries in EVASIONS.values() for entry in entries]
    return [entry for entry in listed if stage.can_run(entry)]


def told(wrong: dict[str, str]) -> str:
    """The names and what was wrong, a line each."""
    return "".join(f"\n{name}: {what}" for name, what in wrong.items())


def test_evasions_do_what_they_say(stage: Stage) -> None:
    """Each runs its program when nothing is banned, and else in the modes that it is said to pass."""
    wrong = {}
    tried = evasions(stage)
    for entry in tried:
        text, _, ran = stage.run(entry)
        passes = stage.mode == OFF or stage.mode in entry.passes
        if ran != ({entry.program} if passes else set()):
            wrong[entry.name] = f"ran {ran or 'nothing'}, answered {text!r}"
        elif not passes and not ("BANNED_COMMAND" in text or "policy" in text):
            wrong[entry.name] = f"stopped without a word: {text!r}"
    assert not wrong, told(wrong)
    assert len(tried) > 200


def test_innocent_commands_are_not_touched(stage: Stage) -> None:
    wrong = {}
    for entry in (entry for entries in INNOCENTS.values() for entry in entries):
        if not stage.can_run(entry):
            continue
        text, status, ran = stage.run(entry)
        printed = text.rpartition("\n[")[0] if text.endswith("]") else text
        expected = entry.prints or "(no output)"
        if (printed.rstrip("\n"), status, ran) != (expected.rstrip("\n"), entry.status, set()):
            wrong[entry.name] = f"status {status}, ran {ran or 'nothing'}, answered {text!r}"
    assert not wrong, told(wrong)


def test_every_entry_has_a_name_of_its_own() -> None:
    for corpus in (EVASIONS, INNOCENTS):
        names = [entry.name for entries in corpus.values() for entry in entries]
        assert len(names) == len(set(names))
