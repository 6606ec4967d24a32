"""The sessions by name: each a shell that calls take turns in; what became of it is told in words."""

import errno
import os
from _thread import allocate_lock, start_new_thread
from time import monotonic, sleep

from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import secret_names
from toolroll.limits import CANCEL_S, OUTPUT_CHARS
from toolroll.log import Log
from toolroll.paths import show
from toolroll.tool import Answer
from toolroll_bash.folder import Folder
from toolroll_bash.modes import Force, Rules, in_force
from toolroll_bash.output import LINE_CHARS, Output, shown
from toolroll_bash.run import CANCELLED, DONE, ENDED, STUCK, TIMEOUT, Run
from toolroll_bash.shell import Order, Shell, drain, encoded, quoted, write
from toolroll_bash.syntax import GROUP_LINES, check, is_plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _thread import LockType
    from collections.abc import Mapping
    from typing import Any

    from toolroll.call import Call
    from toolroll_bash.policy import Policy

    Json = Any

SESSIONS = 8
IDLE_S = 1_800.0
RC_S = 30.0
CLOSE_S = 5.0
LATE_BYTES, LATE_CHARS = 32_768, 30_000
TICK_S, LONG_TICK_S, LISTEN_S = 0.25, 4.0, 0.02

QUIET = {
    "TERM": "dumb",
    "NO_COLOR": "1",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SYSTEMD_PAGER": "cat",
    "GH_PAGER": "cat",
    "AWS_PAGER": "",
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_ASKPASS": "true",
    "SSH_ASKPASS_REQUIRE": "never",
    "GCM_INTERACTIVE": "never",
    "DEBIAN_FRONTEND": "noninteractive",
    "PIP_NO_INPUT": "1",
    "PYTHONUNBUFFERED": "1",
    "HISTFILE": os.devnull,
    "VIMINIT": "silent! source ~/.vimrc | autocmd VimEnter * cquit",
}
"""Nobody is there to answer, to turn pages or to look at colours."""

DROPPED = """
SHELLOPTS BASHOPTS POSIXLY_CORRECT PROMPT_COMMAND PS0 PS1 PS2 PS4 TMOUT TIMEFORMAT ENV IGNOREEOF HISTFILE
HISTCONTROL MAIL MAILPATH MAILCHECK BASH_XTRACEFD LINES COLUMNS CDPATH GLOBIGNORE
""".split()  # noqa: SIM905 - as a list it would be 22 lines
"""Variables that would change how bash itself behaves."""


class Task:
    """What one call asks for."""

    __slots__ = ("background", "command", "input", "restart", "timeout_s")

    def __init__(
        self, command: str, timeout_s: float, background: bool, stdin: str | None, restart: bool
    ) -> None:
        self.command = command
        self.timeout_s = timeout_s
        self.background = background
        self.input = stdin
        self.restart = restart


class Sessions:
    """All shells of a server, and the policy that they are held to."""

    def __init__(self, options: "Mapping[str, Json]", policy: "Policy") -> None:
        self.options = options
        self.policy = policy
        self.most = options.get("max-sessions") or SESSIONS
        self._lock = allocate_lock()
        self._sessions: dict[str, Session] = {}
        self._folder: Folder | None = None
        self._saved = 0
        self._told: set[str] = set()
        self._force: Force | None = None
        allowed = options.get("env") or ()
        names = secret_names(os.environ, options.get("secret") or ())
        self.withheld = frozenset(name for name in names if name not in allowed)

    def run(self, name: str, task: Task, call: "Call") -> Answer:
        """The answer to one call in one session.

        Raises: ToolError.
        """
        self._inspect(task.command, call)
        encodable(task)
        session = self._session(name)
        with Turn(session, call):
            try:
                answer = session.run(task, call)
            except OSError as problem:
                if problem.errno not in (errno.EMFILE, errno.ENFILE):
                    raise
                what = "the server has as many files open as it may"
                hint = "End sessions by running 'exit' in them, or raise ulimit -n of the server"
                raise ToolError(ErrorCode.EXECUTION_ERROR, what, hint) from None
        answer.facts = [*answer.facts, *self._withholding(task.command)]
        return answer

    def _inspect(self, command: str, call: "Call") -> None:
        """Raises: ToolError BANNED_COMMAND, which names the mode in force."""
        try:
            self.policy.inspect(command)
        except ToolError:
            if self._force is not None:
                raise
            self.force(call)
            self.policy.inspect(command)

    def force(self, call: "Call") -> Force:
        """What is in force, found out at its first use and told on stderr.

        Raises: ToolError EXECUTION_ERROR when what the operator asked for cannot be.
        """
        with self._lock:
            first = self._force is None
            if self._force is None:
                self._force = in_force(self.options, self.policy)
                self.policy.mode = self._force.words
        force = self._force
        if first:
            log = Log("toolroll-bash", call.options.get("log-level") or "off", call.guard.mask)
            log("warning" if force.why or force.problem else "debug", str(force))
        if force.problem:
            hint = "Only the operator of this server can change that"
            raise ToolError(ErrorCode.EXECUTION_ERROR, force.problem, hint)
        return force

    def environment(self) -> "dict[str, str]":
        """What a shell gets to see of the server's environment."""
        dropped = self.withheld.union(DROPPED)
        kept = {name: value for name, value in os.environ.items() if name not in dropped}
        return {**kept, **QUIET}

    @property
    def folder(self) -> str:
        """The private folder of this server, made at its first use."""
        with self._lock:
            if self._folder is None:
                self._folder = Folder()
            return self._folder.path

    def file(self, session: str, kind: str) -> str:
        """The path of a new file that lives as long as the server."""
        folder = self.folder
        with self._lock:
            self._saved += 1
            return os.path.join(folder, f"{session}-{self._saved}.{kind}")

    def close(self) -> None:
        """End everything: safe in a signal handler, so without any lock."""
        sessions, self._sessions = self._sessions, {}
        shells = [one.shell for one in list(sessions.values()) if one.shell is not None]
        for shell in shells:
            shell.hang_up()
        deadline = monotonic() + CANCEL_S
        for shell in shells:
            shell.gone(deadline)
        if self._folder is not None:
            self._folder.remove()

    def _session(self, name: str) -> "Session":
        """Raises: ToolError INVALID_PARAMS when there are too many."""
        with self._lock:
            session = self._sessions.get(name)
            if session is not None:
                return session
            living = [one for one in self._sessions.values() if one.shell is not None or one.turns]
            if len(living) >= self.most:
                names = ", ".join(f"'{one.name}'" for one in living)
                what = f"there are {self.most} sessions already: {names}"
                hint = "Use one of them, or end one: end its jobs (restart=true does), then 'exit' in it"
                raise ToolError(ErrorCode.INVALID_PARAMS, what, hint)
            if not self._sessions:
                start_new_thread(self._keep, ())
            self._sessions[name] = Session(name, self)
            return self._sessions[name]

    def _withholding(self, command: str) -> "list[str]":
        """Once for each: that a variable which the command names is not in the shell."""
        names = [name for name in self.withheld if name in command and name not in self._told]
        self._told.update(names)
        return [f"{name} is withheld from the shell: --env {name} lets it in" for name in names]

    def _keep(self) -> None:
        """A thread's life: take what background jobs write between calls, close idle sessions."""
        pause_s = TICK_S
        while self._sessions:
            sleep(pause_s)
            busy = [session.tend() for session in list(self._sessions.values())]
            pause_s = LISTEN_S if any(busy) else min(2 * max(pause_s, TICK_S / 2), LONG_TICK_S)


class Turn:
    """The right to use a session, given in the order in which it was asked for."""

    __slots__ = ("_call", "_mine", "_session")

    def __init__(self, session: "Session", call: "Call") -> None:
        self._session = session
        self._call = call
        self._mine = allocate_lock()
        self._mine.acquire()

    def __enter__(self) -> None:
        """Raises: ToolError CANCELLED."""
        if self._session.queue(self._mine):
            return
        while not self._mine.acquire(True, 0.1):
            if self._call.cancelled:
                self._session.leave(self._mine)
                self._call.check()

    def __exit__(self, *_: object) -> None:
        self._session.leave(self._mine)


class Session:
    """One shell under a name, and what the next call has to be told of the last one."""

    def __init__(self, name: str, sessions: Sessions) -> None:
        self.name = name
        self.sessions = sessions
        self.shell: Shell | None = None
        self.turns: list[LockType] = []
        self.directory = ""
        self._door = allocate_lock()
        self._number = 0
        self._news: list[str] = []
        self._late = b""
        self._used_at = monotonic()

    # -- turns -----------------------------------------------------------------------------------

    def queue(self, turn: "LockType") -> bool:
        """Take a place; True when it is the first."""
        with self._door:
            self.turns.append(turn)
            return self.turns[0] is turn

    def leave(self, turn: "LockType") -> None:
        """Give the place up; the next one may go on."""
        with self._door:
            first = self.turns[0] is turn
            self.turns.remove(turn)
            self._used_at = monotonic()
            if first and self.turns:
                self.turns[0].release()

    def tend(self) -> bool:
        """Look after the session between calls; True when a job has written something."""
        turn = allocate_lock()
        turn.acquire()
        with self._door:
            if self.turns or self.shell is None:
                return False
            self.turns.append(turn)
            used_at = self._used_at
        try:
            heard = self._listen_to_jobs(self.shell)
            if monotonic() - used_at > IDLE_S and not self.shell.jobs():
                self._close()
                self._news.append(f"session '{self.name}' was idle for 30 minutes and was closed")
        finally:
            self.leave(turn)
            self._used_at = used_at
        return heard

    # -- one call --------------------------------------------------------------------------------

    def run(self, task: Task, call: "Call") -> Answer:
        """Run a command; the caller has the turn.

        Raises: ToolError INVALID_PARAMS for what bash cannot parse, TIMEOUT, CANCELLED,
        EXECUTION_ERROR when there is no shell to be had.
        """
        call.check()
        if task.restart:
            self._close()
            self.directory = ""
            self._news = [f"session '{self.name}' starts anew"]
        shell = self._ready(call)
        self._hear_jobs(shell)
        self._hear_stopped(shell, " meanwhile")
        if task.background:
            return self._start_job(shell, task, call)
        output = Output(_room(call), lambda: self.sessions.file(self.name, "txt"))
        run, fate = self._run(shell, task, call, output)
        if fate == CANCELLED:
            self._news.append(_stopped(task.command, run, output.save()))
            if lost := self._lost(run, fate):
                self._news.append(lost)
            call.check()
        return self._told(run, fate, task, call, output)

    def _ready(self, call: "Call") -> Shell:
        """The running shell, a new one if need be."""
        if self.shell is not None and self.shell.look():
            self._news.append(f"the shell had ended, this is a new one, {LOST}")
        if self.shell is not None and not self.shell.alive:
            self._close()
        fresh = self.shell is None
        if self.shell is None:
            folder = self.sessions.file(self.name, "session")
            rules = Rules(self.sessions.policy, self.sessions.force(call))
            environment = self.sessions.environment()
            self.shell = Shell(folder, self.sessions.folder, environment, rules)
        if fresh or self.shell.ended is not None:
            self.directory = self._start(self.shell, call)
            self._source_rc(self.shell, call)
        return self.shell

    def _start(self, shell: Shell, call: "Call") -> str:
        """Start bash where the last one was, else where sessions begin."""
        first = call.options.get("cwd") or call.roots.first or os.getcwd()
        directory = self.directory if os.path.isdir(self.directory) else first
        shell.start(directory)
        return str(directory)

    def _source_rc(self, shell: Shell, call: "Call") -> None:
        path = call.options.get("shell-rc")
        if not path:
            return
        task = Task(f". {quoted(os.path.abspath(path))}", RC_S, False, None, False)
        output = Output(LINE_CHARS, lambda: self.sessions.file(self.name, "txt"))
        run, fate = self._run(shell, task, call, output)
        if fate != DONE or run.status:
            why = f"exit {run.status}" if fate == DONE else fate
            self._news.append(f"{path}: {why}; {_last_line(output, call)}")
        if shell.ended is not None:
            shell.start(self.directory)

    def _run(self, shell: Shell, task: Task, call: "Call", output: Output) -> "tuple[Run, str]":
        """Run it as a group, which bash parses whole before any of it runs; else line by line.

        Line by line is for what can only be parsed once its beginning has run (`shopt -s extglob`)
        and for what bash forgives at the end of a script (an open here-document).
        """
        short = task.command.count("\n") <= GROUP_LINES
        if not short or not is_plain(task.command):
            self._check(shell, task.command, call)
        stdin = self._stdin(shell, task)
        run, fate = self._run_once(shell, task, call, output, stdin, whole=short)
        if run.words and not run.whole and fate == DONE:
            self._check(shell, task.command, call)
            if "v" not in run.flags:  # with set -v the words may be the command's own lines
                run, fate = self._run_once(shell, task, call, output, stdin, whole=False)
        return run, fate

    def _run_once(
        self, shell: Shell, task: Task, call: "Call", output: Output, stdin: str, whole: bool
    ) -> "tuple[Run, str]":
        self._number += 1
        order = Order(shell.folder, self._number, shell.after)
        run = Run(shell, order, output, call, task.timeout_s)
        call.on_cancel(shell.awake)
        try:
            return run, run.finish(order.lines(task.command, stdin, whole))
        finally:
            call.on_cancel(None)
            self._hear_stopped(shell)

    def _check(self, shell: Shell, command: str, call: "Call") -> None:
        path = os.path.join(shell.folder, "script")
        write(path, command)
        check(path, call)

    def _stdin(self, shell: Shell, task: Task) -> str:
        """The file that the command reads."""
        if not task.input:
            return os.devnull
        path = os.path.join(shell.folder, f"input-{self._number}" if task.background else "input")
        write(path, task.input)
        return path

    def _start_job(self, shell: Shell, task: Task, call: "Call") -> Answer:
        """Start a background job and answer at once."""
        self._check(shell, task.command, call)
        log = self.sessions.file(self.name, "log")
        write(log, "")
        self._number += 1
        order = Order(shell.folder, self._number, shell.after)
        output = Output(LINE_CHARS, lambda: self.sessions.file(self.name, "txt"))
        run = Run(shell, order, output, call, START_S)
        fate = run.finish(order.job(task.command, self._stdin(shell, task), log))
        if fate != DONE or not run.job:
            why = run.words.strip() or _last_line(output, call) or fate
            what = f"the job could not be started: {why}"
            raise ToolError(ErrorCode.EXECUTION_ERROR, what, "Try restart=true")
        text = (
            f"Started in the background: pid {run.job}, output in {log}\n"
            f"Look with View or tail; stop it and its children with kill -- -{run.job}"
        )
        data = {"pid": run.job, "file": log, "session": self.name, "cwd": self.directory}
        return Answer(text, self._take_news(), data)

    # -- the answer ------------------------------------------------------------------------------

    def _told(self, run: Run, fate: str, task: Task, call: "Call", output: Output) -> Answer:
        """What became of the command, as the model reads it.

        Raises: ToolError TIMEOUT.
        """
        taken_s = run.taken_s
        notes: list[str] = []
        text = output.text(lambda raw: _cleaned(raw, call, notes))
        lost = self._lost(run, fate)
        if fate == ENDED and os.WIFEXITED(run.shell.ended or 0):
            text = _without_exit(text)
        if fate == TIMEOUT:
            kept = lost or f"session '{self.name}' lives on with its state"
            raise ToolError(ErrorCode.TIMEOUT, _late(task.timeout_s, taken_s, kept, text))
        moved = self._move(run.shell)
        status = _exit_code(run)
        facts = [
            *([words] if (words := _exit_words(status, fate)) else []),
            *([f"{taken_s:.1f} s"] if taken_s >= 1 else []),
            *([f"cwd {moved}"] if moved else []),
            *([lost] if lost else []),
            *self._take_news(),
            *dict.fromkeys(notes),
        ]
        data: dict[str, Json] = {
            "exit_code": status,
            "duration_ms": round(taken_s * 1000),
            "cwd": self.directory,
            "session": self.name,
        }
        if output.path:
            data.update(truncated=True, file=output.path)
        late = self._take_late(call)
        return Answer(late + text if text else late + "(no output)", facts, data)

    def _lost(self, run: Run, fate: str) -> str:
        """What is gone with a shell that has ended, empty when it lives."""
        shell = run.shell
        if shell.ended is None:
            return ""
        why = "the shell ended"
        if fate == STUCK:
            why = "the shell took no further command and was ended"
        elif fate in (TIMEOUT, CANCELLED):
            why = "only ending the shell stopped it"
        if not shell.alive or not shell.jobs():
            self._close()
        return (
            f"{why}: the next call in session '{self.name}' starts a new one in its place, {LOST}"
        )

    def _move(self, shell: Shell) -> str:
        """The working directory when it is another than before, else nothing."""
        directory = shell.directory() if shell.ended is None else ""
        if not directory or directory == self.directory:
            return ""
        self.directory = directory
        return show(directory)

    def _take_news(self) -> list[str]:
        news, self._news = self._news, []
        return news

    # -- jobs ------------------------------------------------------------------------------------

    def _hear_jobs(self, shell: Shell) -> bool:
        """Take what background jobs have written to the output of commands that are over."""
        pieces = drain(shell.output)
        for piece in pieces:
            self._late = _latest(self._late + piece)
        return bool(pieces)

    def _hear_stopped(self, shell: Shell, when: str = "") -> None:
        """Take up which programs the policy has stopped: the model sees only that they failed."""
        if names := shell.take_stopped():
            shown_names = ", ".join(names[:STOPPED]) + (" …" if len(names) > STOPPED else "")
            mode = self.sessions.policy.mode
            self._news.append(f"stopped{when} by policy (ban mode {mode}): {shown_names}")

    def _listen_to_jobs(self, shell: Shell) -> bool:
        """The same for as long as they go on writing and no call wants the turn, at most TICK_S."""
        heard = self._hear_jobs(shell)
        until = monotonic() + TICK_S
        while heard and len(self.turns) == 1 and monotonic() < until:
            if shell.output not in shell.wait(LISTEN_S):
                break
            self._hear_jobs(shell)
        return heard

    def _take_late(self, call: "Call") -> str:
        late, self._late = self._late, b""
        if not late:
            return ""
        text = call.guard.clean(shown(late)).text.rstrip("\n")[-min(_room(call), LATE_CHARS) // 8 :]
        return f"[background jobs wrote since the last call:]\n{text}\n[end of that]\n"

    def _close(self) -> None:
        shell, self.shell = self.shell, None
        if shell is not None:
            shell.close(CLOSE_S)


LOST = "without its variables, functions, options and traps"
START_S = 20.0
STOPPED = 10


def encodable(task: Task) -> None:
    """Raises: ToolError INVALID_PARAMS for a text that no shell can be given."""
    for name, text in (("command", task.command), ("input", task.input or "")):
        if name == "command" and "\0" in text:
            what = "'command' holds a NUL character, which no shell command can"
            raise ToolError(
                ErrorCode.INVALID_PARAMS, what, "Write it as $'\\0' or \\x00 for printf"
            )
        try:
            encoded(text)
        except UnicodeEncodeError as problem:
            what = f"'{name}' holds half a character at position {problem.start}"
            raise ToolError(ErrorCode.INVALID_PARAMS, what) from None


def _room(call: "Call") -> int:
    return int(call.options.get("max-output") or OUTPUT_CHARS)


def _last_line(output: Output, call: "Call") -> str:
    return output.last_line(lambda text: call.guard.clean(text).text)


def _cleaned(text: str, call: "Call", notes: list[str]) -> str:
    cleaned = call.guard.clean(text)
    if cleaned.note:
        notes.append(cleaned.note)
    return cleaned.text


def _exit_code(run: Run) -> int:
    """The status as bash counts it: 128 and the number for a signal."""
    if run.status is not None:
        return run.status
    code = os.waitstatus_to_exitcode(run.shell.ended or 0)
    return code if code >= 0 else 128 - code


def _exit_words(status: int, fate: str) -> str:
    if fate == STUCK:
        return "exit status unknown"
    if not status:
        return ""
    if status <= 128 or status > 128 + 31:
        return f"exit {status}"
    from signal import Signals

    return f"exit {status}, {Signals(status - 128).name}"


def _latest(data: bytes) -> bytes:
    """The end of it; no torn line, as half a secret is not recognized as one."""
    if len(data) <= LATE_BYTES:
        return data
    return data[data.find(b"\n", len(data) - LATE_BYTES) + 1 :][-LATE_BYTES:]


def _without_exit(text: str) -> str:
    """Without the word that an interactive bash says when it runs `exit`; a trap's words follow it."""
    above, found, below = f"\n{text}".rpartition("\nexit\n")
    return f"{above}\n{below}"[1:] if found else text


def _late(limit_s: float, taken_s: float, kept: str, text: str) -> str:
    return (
        f"the command ran longer than {limit_s * 1000:.0f} ms and was stopped after {taken_s:.1f} s; "
        f"{kept}. Give a larger timeout, or background=true. Its output so far:\n{text or '(no output)'}"
    )


def _stopped(command: str, run: Run, path: str) -> str:
    line = command.strip().split("\n")[0][:80]
    return (
        f"the host cancelled '{line}', it was stopped after {run.taken_s:.1f} s; its output: {path}"
    )
