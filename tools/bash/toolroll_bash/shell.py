"""One bash behind its pipes: starting it, handing it commands, telling it and its children to stop.

Nothing of a command's text is ever recognized in its output: bash reads commands from one FIFO, the
command's output comes out of a second, the status out of a third.  Each is opened by name for each
command, so no program inherits them and no command can close them for good.  What bash is told is made
of syntax as far as it goes (groups, redirections, assignments, `time`): a function named like a builtin
changes nothing.  Knows nothing of calls and deadlines.
"""

import errno
import os
import sys
from _thread import allocate_lock
from fcntl import fcntl, ioctl
from select import POLLIN, poll
from signal import SIGINT, SIGKILL
from time import monotonic, sleep

from toolroll.errors import ErrorCode, ToolError
from toolroll_bash.folder import clear
from toolroll_bash.tree import Mark, adopting, below, processes, signal_all, stop

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from toolroll_bash.modes import Rules

FIONREAD = 0x541B if sys.platform == "linux" else 0x4004667F
F_SETPIPE_SZ = 1031
PIPE_BYTES = 1 << 20
"""What an unprivileged user may ask for (pipe(7)); fewer and longer reads."""

PROC = os.path.exists("/proc/self/syscall")
"""Whether `idles` can tell; where not, each command is followed by a second report at once."""

START_S = 20.0
LOOK_S = 0.01
INLINE_BYTES = 32_768
"""Longest command that goes down the FIFO itself: half of what that holds unread."""

LAUNCHING = allocate_lock()
LAUNCHERS: "set[int]" = set()
ADOPTING: "list[bool]" = []
"""The launchers there are, which nobody starts meanwhile; whether the orphans of a killed one come here."""

LAUNCH = "import sys; sys.path[:0] = sys.argv[1:3]; from toolroll_bash.launcher import main; main()"


class Shell:
    """A launcher, its shell (`pid`, 0 when none runs) and their FIFOs in `folder`."""

    def __init__(
        self, folder: str, server: str, environment: "Mapping[str, str]", rules: "Rules"
    ) -> None:
        """Start the launcher; `start` then starts bash."""
        self.folder = folder
        self.pid = 0
        self._unable = ""
        self.ended: int | None = None
        self._words = b""
        self._pipes: list[int] = []
        os.mkdir(folder, 0o700)
        self.source = self._pipe("in")
        self.output = self._pipe("out")
        self.status = self._pipe("status")
        self.stopped = self._pipe("stopped")
        write(os.path.join(folder, "rules"), rules.text)
        self._first, self.after = rules.told(folder)
        """What bash is told at its start, and behind each command."""
        self._idle_link = os.path.join(folder, "in")
        _enlarge(self.output)
        self._wake, self._alarm = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._pipes += (self._wake, self._alarm)
        with LAUNCHING:
            self._child = _launch(folder, server, environment)
            LAUNCHERS.add(self._child.pid)
        self.terminal: int = self._child.child_fd
        self._poller = poll()
        for fd in (self.output, self.status, self.terminal, self._wake):
            self._poller.register(fd, POLLIN)

    def _pipe(self, name: str) -> int:
        """A FIFO, open both ways so that it never ends."""
        path = os.path.join(self.folder, name)
        os.mkfifo(path, 0o600)
        fd = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        self._pipes.append(fd)
        return fd

    def start(self, directory: str) -> None:
        """Start a new bash there.

        Raises: ToolError EXECUTION_ERROR.
        """
        for fd in (self.source, self.status, self._wake):
            drain(fd)
        try:
            write(os.path.join(self.folder, "cwd"), directory)
        except FileNotFoundError:
            what = "the session is being ended from outside"
            raise ToolError(ErrorCode.EXECUTION_ERROR, what, "Repeat the call") from None
        self.pid, self.ended = 0, None
        os.write(self.terminal, b"start\n")
        deadline = monotonic() + START_S
        while not self.pid and self.alive and monotonic() < deadline:
            self.wait(deadline - monotonic())
            self.listen()
        if not self.pid:
            what = f"no shell could be started{f': {self._unable}' if self._unable else ''}"
            hint = "" if self._unable else "Is bash on the PATH of the server?"
            raise ToolError(ErrorCode.EXECUTION_ERROR, what, hint)
        self.send(encoded(f"{FIRST}; {self._first}{self.after}\n"))

    @property
    def alive(self) -> bool:
        """True while the launcher is there."""
        return self.terminal >= 0

    def awake(self) -> None:
        """End a `wait`: called by another thread when the call is cancelled."""
        try:
            os.write(self._alarm, b"!")
        except BlockingIOError:
            return

    def wait(self, timeout_s: float) -> "list[int]":
        """The descriptors that have something to read, within that time."""
        return [fd for fd, _ in self._poller.poll(max(timeout_s, 0.0) * 1000)]

    def look(self) -> bool:
        """True when the shell has ended since it was last looked at."""
        before = self.ended
        while self.alive and self.terminal in self.wait(0):
            self.listen()
        return before is None and self.ended is not None

    def listen(self) -> None:
        """Take in what the launcher says: `pid` of a started shell, `ended` with a wait status."""
        try:
            data = os.read(self.terminal, 4096)
        except OSError:  # EIO: the launcher is gone
            data = b""
        if not data:
            self._poller.unregister(self.terminal)
            self.terminal = -1
            self._bury()
            return
        *lines, self._words = (self._words + data).split(b"\n")
        for line in lines:
            word, *numbers = line.split() or [b""]
            if word == b"started":
                self.pid = int(numbers[0])
            elif word == b"ended" and int(numbers[0]) == self.pid:
                self.ended = int(numbers[1])
            elif word == b"unable":
                self._unable = b" ".join(numbers).decode("utf-8", "replace")

    def _bury(self) -> None:
        """The launcher was killed: end what can still be known to be of the shell's session."""
        shell, self.pid = self.pid, 0
        self.ended = SIGKILL
        if shell:
            signal_all([one.pid for one in processes().values() if one.session == shell], SIGKILL)

    def send(self, data: bytes) -> None:
        """Write to the shell's input; what it does not take within START_S is lost, and it is stuck."""
        deadline = monotonic() + START_S
        while data and monotonic() < deadline:
            try:
                data = data[os.write(self.source, data) :]
            except BlockingIOError:
                sleep(LOOK_S)

    def take_stopped(self) -> "list[str]":
        """The programs that the policy has stopped since it was last asked, each once."""
        said = b"".join(drain(self.stopped)).decode("utf-8", "replace")
        return list(dict.fromkeys(said.splitlines()))

    def directory(self) -> str:
        """The working directory of bash, empty when it cannot be known."""
        try:
            return os.readlink(f"/proc/{self.pid}/cwd")
        except OSError:
            return ""

    def idles(self) -> bool:
        """True when bash waits for a command: none is left to be read, and its input is in place.

        While a command runs, descriptor 0 is the command's own.
        """
        if unread(self.source):
            return False
        try:
            if os.readlink(f"/proc/{self.pid}/fd/0") != self._idle_link:
                return False
            with open(f"/proc/{self.pid}/syscall") as file:  # proc(5): number, arguments
                return file.read().split()[1:2] == ["0x0"]
        except OSError:
            return False

    # -- stopping --------------------------------------------------------------------------------

    def below(self, mark: Mark) -> "list[int]":
        """The processes that were started behind the mark, but not by ones that are older."""
        table = processes()
        mine: list[int] = []
        old: set[int] = set()
        for one in below(self._child.pid, table):
            if one.pid == self.pid:
                continue
            if one.parent in old or not mark.before(one):
                old.add(one.pid)
            else:
                mine.append(one.pid)
        return mine

    def jobs(self) -> bool:
        """True when anything runs besides the shell."""
        return any(one.pid != self.pid for one in below(self._child.pid, processes()))

    def nudge(self) -> None:
        """Have bash drop what it does and come back for the next line."""
        if self.pid:
            stop([self.pid], SIGINT)

    def kill(self) -> None:
        """End bash itself."""
        if self.pid:
            signal_all([self.pid], SIGKILL)

    def hang_up(self) -> None:
        """Let go of the terminal, at which the launcher ends all below it; lock-free."""
        process, self.terminal = self._child.ptyproc, -1
        if not process.closed:
            process.closed = self._child.closed = True  # pexpect would wait, and close it once more
            process.fileobj.close()

    def gone(self, deadline: float) -> bool:
        """True once the launcher has ended behind `hang_up`, so nothing is left; waits that long."""
        while True:
            try:
                pid, status = os.waitpid(self._child.pid, os.WNOHANG)
                if pid:
                    LAUNCHERS.discard(pid)
                    if os.WIFSIGNALED(status):
                        end_orphans(deadline)
                    return True
            except ChildProcessError:
                return True
            if monotonic() >= deadline:
                return False
            sleep(0.001)

    def close(self, timeout_s: float) -> None:
        """End all of the session and wait for it, then remove its pipes."""
        self.hang_up()
        if not self.gone(monotonic() + timeout_s):
            signal_all([self._child.pid], SIGKILL)
            self.gone(monotonic() + timeout_s)
        clear(self.folder)

    def __del__(self) -> None:
        """Close the FIFOs, once no thread can use them any more."""
        for fd in self._pipes:
            os.close(fd)


def end_orphans(deadline: float) -> None:
    """Kill what this process inherited from a killed launcher: children in sessions not its own."""
    if not ADOPTING or not LAUNCHING.acquire(True, 0.5):  # a signal handler may have interrupted it
        return
    try:
        mine, server = os.getsid(0), os.getpid()
        doomed: list[int] = []
        while monotonic() < deadline:
            table = processes()
            orphans = [
                one.pid
                for one in table.values()
                if one.parent == server and one.session != mine and one.pid not in LAUNCHERS
            ]
            if not orphans:
                break
            orphans += [one.pid for pid in orphans for one in below(pid, table)]
            signal_all(orphans, SIGKILL)
            doomed += orphans
            sleep(0.001)
    finally:
        LAUNCHING.release()
    _reap(doomed)


def _reap(pids: "Iterable[int]") -> None:
    for pid in set(pids):
        try:
            os.waitpid(pid, os.WNOHANG)
        except ChildProcessError:
            continue


def _launch(folder: str, server: str, environment: "Mapping[str, str]") -> "Any":
    """The launcher on a terminal of its own."""
    from pexpect import (
        ExceptionPexpect,
        spawn,
    )

    package = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    common = os.path.dirname(
        os.path.dirname(os.path.abspath(sys.modules["toolroll"].__file__ or ""))
    )
    arguments = ["-I", "-S", "-c", LAUNCH, package, common, folder, server]
    if not ADOPTING and adopting() is not None:
        ADOPTING.append(True)
    try:
        return spawn(sys.executable, arguments, env=environment, echo=False, cwd="/")
    except (ExceptionPexpect, OSError) as problem:
        what = f"no shell could be started: {problem}"
        raise ToolError(ErrorCode.EXECUTION_ERROR, what) from None


def _enlarge(fd: int) -> None:
    try:
        fcntl(fd, F_SETPIPE_SZ, PIPE_BYTES)
    except OSError as problem:  # EPERM past the user's share; EINVAL where there is no such thing
        if problem.errno not in (errno.EPERM, errno.EINVAL):
            raise


def unread(fd: int) -> int:
    """How many bytes lie in a pipe."""
    return int.from_bytes(ioctl(fd, FIONREAD, bytes(4)), sys.byteorder)


def drain(fd: int, most: int = 1 << 30) -> "Sequence[bytes]":
    """What lies in a pipe now, in pieces."""
    left = min(unread(fd), most)
    pieces = []
    while left > 0:
        piece = os.read(fd, min(left, PIPE_BYTES))
        pieces.append(piece)
        left -= len(piece)
    return pieces


# -- what bash is told ---------------------------------------------------------------------------------

_FORMAT = "$'\\nreal\\t%3lR\\nuser\\t%3lU\\nsys\\t%3lS'"  # bash(1): used when TIMEFORMAT is not set
CALM = "PROMPT_COMMAND=() PS1= PS2= PS0= TMOUT="
"""What bash runs and expands between lines: nothing; it waits for the next one without end."""

STATUS = '[[ $_toolroll_status == 0 ]] || (exit "$_toolroll_status") && [[ 1 ]]'
"""Makes `$?` what the command left; what stands before `&&` neither ends the shell nor traps ERR."""

FIRST = (
    f"_toolroll_status=0; exec 2>/dev/null; TIMEFORMAT={_FORMAT} {CALM}; shopt -u expand_aliases"
)


def quoted(text: str) -> str:
    """The text as one word of bash."""
    return "'" + text.replace("'", "'\\''") + "'"


class Order:
    """What bash is told for one command: `number` comes back with its status, `after` is run last."""

    def __init__(self, folder: str, number: int, after: str = "") -> None:
        self.folder = folder
        self.number = number
        self._after = after
        self._status = quoted(f"{folder}/status")

    def lines(self, text: str, stdin: str, whole: bool = True) -> bytes:
        """Run `text` with a file as its input.

        As a group it is parsed to its end before anything of it runs (a group of its own, so that no
        `&&` at its end reaches out); not `whole`, line by line, as in a script.  Either way it runs in
        the shell itself.
        """
        body = f"{{ {{\n{text}\n\n}}\n" if whole else f"{{ eval {quoted(text)}\n"
        output = quoted(f"{self.folder}/out")
        return self._told(f"{body}{self._report()}\n}} <{quoted(stdin)} >{output} 2>&1")

    def job(self, text: str, stdin: str, log: str) -> bytes:
        """Start `text` as a background job, in a process group of its own."""
        group = f"{{\n{text}\n\n}} <{quoted(stdin)} >|{quoted(log)} 2>&1 &"
        return self._told(f"{{ set -m; {group} set +m\n{self._report()}\n}} >/dev/null 2>&1")

    def again(self) -> bytes:
        """Report once more: for a command that bash left on its way, by an error or an interrupt."""
        number = self.number
        seen = f'[[ ${{TIMEFORMAT-}} == "{number} "* ]]'
        mine = "_toolroll_status=$_toolroll_last _toolroll_format=${TIMEFORMAT-}"
        report = f"eval 'TIMEFORMAT=\"{number} $_toolroll_status $- 0 again\"; {{ time; }}'"
        body = f"_toolroll_last=$?; {seen} || {mine}; {report}; TIMEFORMAT=$_toolroll_format"
        # The empty line: behind an unclosed quote the next line's first word is not taken as syntax.
        end = f"{self._after}{CALM}; {STATUS}"
        return encoded(f"\n{{ {body}; }} >/dev/null 2>{self._status}; {end}\n")

    def _report(self) -> str:
        """Send the status: `time` is syntax and prints TIMEFORMAT, so no builtin is needed."""
        form = f'TIMEFORMAT="{self.number} $? $- ${{!-0}}"'
        keep = "_toolroll_status=$? _toolroll_format=${TIMEFORMAT-}"
        back = "TIMEFORMAT=$_toolroll_format"
        return f"{{ {keep} {form}; time; {back}; }} >/dev/null 2>{self._status}"

    def _told(self, body: str) -> bytes:
        """The lines for bash; a body too long for the FIFO goes into a file.

        bash writes what it cannot parse to the status FIFO, before anything runs.  Its own standard
        error, where a trace of these lines goes, is nowhere; its own output is the command's, for
        traps that run at its exit.
        """
        word = quoted(body)
        if len(word) > INLINE_BYTES:
            path = os.path.join(self.folder, "command")
            write(path, body)
            word = f'"$(<{quoted(path)})"'
        line = encoded(f"eval {word} 2>{self._status}; {self._after}{CALM}; {STATUS}\n")
        return line if PROC else line + self.again()


def write(path: str, text: str) -> None:
    """Write a text into a private file, over what it held."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(fd, "wb") as file:
        file.write(encoded(text))


def encoded(text: str) -> bytes:
    """The bytes of a text; the halves of characters that stand for stray bytes become those."""
    return text.encode("utf-8", "surrogateescape")
