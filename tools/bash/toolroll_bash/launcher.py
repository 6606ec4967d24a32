"""The process between the server and one session's shell: starts bash, reaps, and ends with all below.

It lives on a terminal of its own whose other end only the server holds.  When that goes away, for
whatever reason, everything below is killed.  As subreaper (prctl(2)) it inherits daemons, so it is
done exactly when it has no child left.  It also is where the policy's run-time layer and the lack of a
network begin, for all that it starts.  Knows nothing of commands.

On the terminal: a line `start` asks for a shell in the directory that the file `cwd` names; said are
`started PID`, `ended PID STATUS` (a wait status), and `unable WHY` before it ends when what the file
`rules` asks for cannot be.
"""

import os
import signal
import sys
from time import monotonic, sleep

from toolroll_bash.folder import clear, clear_abandoned
from toolroll_bash.tree import adopting, below, processes, signal_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from toolroll_bash.kernel import Supervisor

PR_SET_PDEATHSIG = 1
KILL_S = 5.0
"""How long what cannot be killed (a setuid program, a dead disk) is tried again."""

SHELL = ["bash", "--norc", "--noprofile", "--noediting", "-i"]
SHELL += ["+m", "+o", "history", "+o", "histexpand"]
"""Interactive, so that an interrupt ends the command and not the shell, which ignores TERM besides."""


class Launcher:
    """One session's process tree; `folder` holds its pipes, `server` is the folder of all sessions."""

    def __init__(self, folder: str, server: str) -> None:
        self.folder = folder
        self.server = server
        self.shell = 0
        self.supervisor: Supervisor | None = None
        self.libc = adopting()
        self.wake, wake = os.pipe()
        os.set_blocking(self.wake, False)
        os.set_blocking(wake, False)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGCHLD, signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: None)  # a handler, as ignoring would be inherited

    def run(self) -> None:
        """Serve until the server's end of the terminal is closed or a signal asks to end."""
        from select import POLLIN, poll

        poller = poll()
        poller.register(0, POLLIN)
        poller.register(self.wake, POLLIN)
        if self.supervisor is not None:
            poller.register(self.supervisor.fd, POLLIN)
        while True:
            ready = [fd for fd, _ in poller.poll()]
            if self.supervisor is not None and self.supervisor.fd in ready:
                self.supervisor.answer()
                if len(ready) == 1:
                    continue
            if self.wake in ready and set(_read(self.wake)) - {signal.SIGCHLD}:
                return
            self._reap()
            if 0 in ready:
                asked = _read(0)
                if not asked:
                    return
                self._start()

    def obey(self, inside: bool) -> bool:
        """Put the rules in force, as the server has found that they can be; `inside` of bubblewrap.

        False when they cannot, which is told.
        """
        try:
            self._obey(inside)
        except OSError as problem:
            _say(f"unable {problem.strerror or problem}")
            return False
        return True

    def _obey(self, inside: bool) -> None:
        """Raises: OSError."""
        from toolroll.jsontext import loads

        with open(os.path.join(self.folder, "rules"), "rb") as file:
            rules = loads(file.read())
        if rules["network"] and not inside:
            from toolroll_bash.network import leave

            leave(rules["network"])
        if rules["mode"] == "kernel":
            from toolroll_bash.kernel import Supervisor
            from toolroll_bash.policy import Policy

            policy = Policy(rules["banned"], rules["only"])
            self.supervisor = Supervisor(policy.refuses, self._tell)

    def _tell(self, stopped: str) -> None:
        """Name a stopped program to the server; one too many for the FIFO is dropped."""
        try:
            fd = os.open(os.path.join(self.folder, "stopped"), os.O_WRONLY | os.O_NONBLOCK)
        except OSError:
            return
        try:
            os.write(fd, stopped.encode() + b"\n")
        except BlockingIOError:
            return
        finally:
            os.close(fd)

    def _start(self) -> None:
        with open(os.path.join(self.folder, "cwd"), "rb") as file:
            directory = file.read()
        pid = os.fork()
        if pid == 0:
            self._become_shell(directory)
        self.shell = pid
        if self.supervisor is not None:
            self.supervisor.exempt = pid
        _say(f"started {pid}")

    def _become_shell(self, directory: bytes) -> "NoReturn":
        """Bash in a new session: our pipes, no signal ignored or blocked, no controlling terminal.

        It keeps ours in a descriptor that nothing inherits: it sets its modes when a program was
        killed, and complains where it cannot.
        """
        try:
            os.setsid()
            if self.libc is not None:
                self.libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
            signal.set_wakeup_fd(-1)
            for number in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(number, signal.SIG_DFL)
            signal.pthread_sigmask(signal.SIG_SETMASK, ())
            source = os.open(os.path.join(self.folder, "in"), os.O_RDONLY)
            sink = os.open(os.path.join(self.folder, "out"), os.O_WRONLY)
            for fd, place in ((1, 2), (source, 0), (sink, 1)):
                os.dup2(fd, place)
            os.closerange(3, 64)
            os.chdir(directory)
            os.execv(_found(SHELL[0]), SHELL)  # noqa: S606 - it is a shell that is wanted
        finally:
            os._exit(127)

    def _reap(self) -> bool:
        """Bury the dead; False when there is no child, so nothing at all below us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return False
            if pid == 0:
                return True
            if pid == self.shell:
                _say(f"ended {pid} {status}")

    def end(self) -> None:
        """Kill everything below, again and again until nothing is left, and remove the folder."""
        deadline = monotonic() + KILL_S
        while self._reap() and monotonic() < deadline:
            doomed = [one.pid for one in below(os.getpid(), processes())]
            signal_all(doomed, signal.SIGKILL)
            sleep(0.001)
        clear(self.folder)
        clear_abandoned(self.server)


def _read(fd: int) -> bytes:
    """What is there to read; nothing at the end, which a terminal tells by an error."""
    try:
        return os.read(fd, 4096)
    except OSError:
        return b""


def _found(program: str) -> str:
    """Its path, so that a single call starts it."""
    paths = (os.path.join(folder, program) for folder in os.get_exec_path())
    return next((path for path in paths if os.access(path, os.X_OK)), program)


def _say(text: str) -> None:
    """Tell the server, on a line of its own: bash's first prompt may stand there."""
    try:
        os.write(1, f"\n{text}\n".encode())
    except OSError:  # the server is gone; the next read tells
        return


def main() -> None:
    """Run on the folders named by the command line."""
    launcher = Launcher(sys.argv[3], sys.argv[4])
    try:
        if launcher.obey(inside=len(sys.argv) > 5):
            launcher.run()
    finally:
        launcher.end()
