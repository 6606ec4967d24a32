"""Bash: timeouts, cancelling, background jobs, sessions, secrets and the server's options."""

import os
import re
import resource
import signal
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from toolroll import saved
from toolroll.call import Call
from toolroll.tool import Outcome
from toolroll_bash import folder, session
from toolroll_bash.tool import Server, bash, close, start
from toolroll_bash.tree import below, processes

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pty.fork, 3.12

Sh = Callable[..., Outcome]
WAIT_S = 20.0


@pytest.fixture
def sh(make_call: Callable[..., Call], tmp_path: Path) -> Iterator[Sh]:
    """`sh(command, ...)`: the outcome of a call; what it started is ended after the test."""

    def run(
        command: str,
        /,
        options: "dict[str, object] | None" = None,
        call: "Call | None" = None,
        **arguments: object,
    ) -> Outcome:
        arguments = {"command": command, "timeout": 20_000, **arguments}
        return bash.call(arguments, call or make_call(tmp_path, **(options or {})))

    yield run
    close()


def said(outcome: Outcome) -> str:
    """The text without the closing line of facts."""
    assert not outcome.failed, outcome.text
    return re.sub(r"\n?\[[^\[\]\n]*\]\Z", "", outcome.text).removesuffix("\n")


def until(true: Callable[[], object]) -> bool:
    """True as soon as it holds, False when it does not come to hold."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return False


def gone(pid: int) -> bool:
    return pid not in processes()


def children() -> set[int]:
    """All processes below this one."""
    return {one.pid for one in below(os.getpid(), processes())}


class Background(threading.Thread):
    """A call on a thread of its own."""

    def __init__(self, run: Callable[[], Outcome]) -> None:
        super().__init__(daemon=True)
        self._run_it = run
        self.outcome: Outcome | None = None
        self.start()

    def run(self) -> None:
        self.outcome = self._run_it()

    def result(self) -> Outcome:
        self.join(WAIT_S)
        assert self.outcome is not None
        return self.outcome


# -- timeouts ----------------------------------------------------------------------------------------

STUBBORN = {
    "sleep": "sleep 100",
    "a loop of bash": "while :; do :; done",
    "a loop of sleeps": "while :; do sleep 0.01; done",
    "a function that calls itself": "f() { sleep 0.01; f; }; f",
    "a pipeline": "yes | sleep 100",
    "a subshell": "(sleep 100; echo no)",
    "commands behind it": "sleep 100; sleep 100; echo no",
    "a program that ignores INT": "bash -c 'trap \"\" INT; while :; do sleep 1; done'",
    "one that ignores INT and TERM": "bash -c 'trap \"\" INT TERM; while :; do sleep 1; done'",
    "a background process that is waited for": "sleep 100 & wait",
    "one in another session": "setsid sleep 100 & wait",
    "wait for a FIFO": "mkfifo p; cat <p",
    "read from a FIFO": "mkfifo p; read x <p",
    "a stopped child": "sleep 100 & kill -STOP $!; wait",
    "a python": "python3 -c 'import time; time.sleep(100)'",
    "a python that catches the interrupt": (
        "python3 -c '\nimport time\nwhile 1:\n try: time.sleep(9)\n except KeyboardInterrupt: pass'"
    ),
    "a read from a sleeping process": "x=$(sleep 100)",
    "a trap on INT": "trap 'echo int' INT; sleep 100; sleep 100",
}


@pytest.mark.parametrize("what", STUBBORN)
def test_a_timeout_ends_the_command_and_keeps_the_session(what: str, sh: Sh) -> None:
    sh("kept=1; cd /")
    before = children()
    outcome = sh(f"echo partial; {STUBBORN[what]}", timeout=300)
    assert outcome.code == "TIMEOUT"
    assert "partial" in outcome.text
    assert "lives on" in outcome.text
    assert said(sh("echo $kept; pwd")) == "1\n/"
    assert until(lambda: not children() - before)


@pytest.mark.parametrize(
    "command", ["trap '' INT; while :; do :; done", "kill -STOP $$", "exec sleep 100"]
)
def test_a_timeout_ends_whatever_the_shell_became(command: str, sh: Sh) -> None:
    outcome = sh(f"echo partial; {command}", timeout=300)
    assert outcome.code == "TIMEOUT"
    assert "partial" in outcome.text
    assert said(sh("echo alive")) == "alive"


def test_a_timeout_ends_what_a_shell_that_cannot_be_stopped_goes_on_to_start(sh: Sh) -> None:
    sh("mkfifo p; exec 7<>p")
    before = children()
    endless = "trap '' INT; while :; do sleep 100 & read -t 0.002 <&7; done"
    assert "only ending the shell stopped it" in sh(endless, timeout=100).text
    assert until(lambda: not children() - before)


def test_a_timeout_reports_much_output_in_bounds(sh: Sh) -> None:
    outcome = sh("seq 1 100000; sleep 100", timeout=1000)
    assert outcome.code == "TIMEOUT"
    assert "99999\n100000" in outcome.text
    assert len(outcome.text) <= 30_000


def test_a_timeout_that_is_too_long_is_cut_and_said(sh: Sh) -> None:
    assert "timeout cut to 600000 ms" in sh("true", timeout=900_000).text
    assert "timeout cut to 5000 ms" in sh("true", {"max_timeout": 5.0}, timeout=900_000).text


def test_the_default_timeout_is_an_option(sh: Sh) -> None:
    outcome = sh("sleep 100", {"default_timeout": 0.2}, timeout=None)
    assert outcome.code == "TIMEOUT"


@pytest.mark.parametrize("timeout", [0, -5, "soon", 1.5])
def test_a_timeout_must_be_a_number_of_milliseconds(timeout: object, sh: Sh) -> None:
    assert sh("true", timeout=timeout).code == "INVALID_PARAMS"


# -- cancelling --------------------------------------------------------------------------------------


@pytest.mark.parametrize("what", STUBBORN)
def test_a_cancelled_command_is_ended_and_told_of_next_time(
    what: str, sh: Sh, make_call: Callable[..., Call], tmp_path: Path
) -> None:
    call = make_call(tmp_path)
    sh("kept=1")
    before = children()
    running = Background(lambda: sh(f"echo partial; touch on; {STUBBORN[what]}", call=call))
    assert until((tmp_path / "on").exists)
    call.cancel()
    assert running.result().code == "CANCELLED"
    assert until(lambda: not children() - before)
    text = sh("echo $kept").text
    assert text.startswith("1\n") or "only ending the shell stopped it" in text
    assert "the host cancelled 'echo partial" in text
    path = text.split("its output: ")[1].split("]")[0].split(" ")[0]
    assert Path(path).read_text().startswith("partial\n")
    assert "cancelled" not in sh("true").text


def test_a_call_that_waits_for_its_turn_can_be_cancelled(
    sh: Sh, make_call: Callable[..., Call], tmp_path: Path
) -> None:
    running = Background(lambda: sh("touch on; cat p 2>/dev/null; mkfifo p; cat p"))
    assert until((tmp_path / "p").exists)
    call = make_call(tmp_path)
    waiting = Background(lambda: sh("touch never", call=call))
    call.cancel()
    assert waiting.result().code == "CANCELLED"
    (tmp_path / "p").write_text("go")
    assert said(running.result()) == "go"
    assert not (tmp_path / "never").exists()


def test_progress_tells_the_time_and_the_last_line(
    sh: Sh, make_call: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolroll_bash.run.PROGRESS_S", 0.1)
    reports: list[tuple[float, str]] = []
    call = make_call(tmp_path, report=lambda done, _total, words: reports.append((done, words)))
    running = Background(lambda: sh("echo step 1; mkfifo p; read x <p; echo $x", call=call))
    assert until(lambda: len(reports) >= 3)
    (tmp_path / "p").write_text("go\n")
    running.result()
    assert "step 1" in reports[-1][1]
    assert [done for done, _ in reports] == sorted({done for done, _ in reports})


# -- background jobs ---------------------------------------------------------------------------------

LEFT = {
    "a job": "sleep 300 & echo $! >pid",
    "a job that holds the output": "sleep 300 2>&1 & echo $! >pid",
    "nohup": "nohup sleep 300 >/dev/null 2>&1 & echo $! >pid",
    "disown": "sleep 300 & disown; echo $! >pid",
    "setsid": "setsid bash -c 'echo $$ >pid; exec sleep 300' & until [ -s pid ]; do :; done",
    "a daemon": "(setsid bash -c 'echo $$ >pid; exec sleep 300' &) ; until [ -s pid ]; do :; done",
    "one that ignores all": "bash -c 'trap \"\" INT TERM HUP; echo $$ >pid; while :; do sleep 1; done' & "
    "until [ -s pid ]; do :; done",
    "a double fork": (
        "python3 -c '\nimport os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0:\n"
        '  open("pid.new","w").write(str(os.getpid())); os.rename("pid.new","pid"); time.sleep(300)\n'
        " os._exit(0)'; until [ -s pid ]; do :; done"
    ),
}


@pytest.mark.parametrize("what", LEFT)
def test_what_is_left_behind_holds_no_call_and_lives_until_the_end(
    what: str, sh: Sh, tmp_path: Path
) -> None:
    assert not sh(LEFT[what]).failed
    pid = int((tmp_path / "pid").read_text())
    assert sh("sleep 100", timeout=200).code == "TIMEOUT"
    assert not gone(pid)
    close()
    assert until(lambda: gone(pid))


def test_a_background_job_writes_its_log_under_noclobber(sh: Sh) -> None:
    sh("set -C")
    log = Path(sh("echo ran", background=True).structured["file"])
    assert until(lambda: log.read_text() == "ran\n")


def test_a_background_job_answers_at_once(sh: Sh, tmp_path: Path) -> None:
    sh("mkdir d; cd d; x=1; f() { echo f $x; }")
    outcome = sh("f; pwd; mkfifo p; cat p; echo done", background=True)
    pid, log = outcome.structured["pid"], Path(outcome.structured["file"])
    assert str(pid) in outcome.text
    assert str(log) in outcome.text
    assert until((tmp_path / "d/p").exists)
    assert not gone(pid)
    (tmp_path / "d/p").write_text("go\n")
    assert until(lambda: log.read_text() == f"f 1\n{tmp_path}/d\ngo\ndone\n")
    assert until(lambda: gone(pid))


def test_a_background_job_is_stopped_with_its_children(sh: Sh) -> None:
    pid = sh("sleep 300; sleep 300", background=True).structured["pid"]
    assert until(lambda: any(one.parent == pid for one in processes().values()))
    family = {one.pid for one in below(pid, processes())}
    sh(f"kill -- -{pid}")
    assert until(lambda: all(map(gone, {pid, *family})))


def test_a_background_job_reads_its_input(sh: Sh) -> None:
    log = Path(sh("cat", background=True, input="words").structured["file"])
    assert until(lambda: log.read_text() == "words")


def test_a_background_job_that_bash_cannot_read_is_refused(sh: Sh) -> None:
    assert sh("if", background=True).code == "INVALID_PARAMS"


def test_a_background_job_changes_nothing_in_the_shell(sh: Sh) -> None:
    sh("x=2; cd /; set -u; exit", background=True)
    assert said(sh("echo ${x-none} $-")).startswith("none h")


def test_a_background_job_outlives_its_shell(sh: Sh) -> None:
    pid = sh("sleep 300", background=True).structured["pid"]
    sh("exit")
    assert said(sh("echo new")) == "new"
    assert not gone(pid)
    close()
    assert until(lambda: gone(pid))


def test_background_is_refused_in_a_one_shot_call(sh: Sh) -> None:
    assert sh("true", {"call": True}, background=True).code == "INVALID_PARAMS"


def test_what_jobs_write_between_calls_is_shown_with_the_next(sh: Sh, tmp_path: Path) -> None:
    sh("(mkfifo p; cat p; touch written) & until [ -p p ]; do :; done")
    (tmp_path / "p").write_text("late words\n")
    assert until((tmp_path / "written").exists)
    text = sh("echo now").text
    assert "background jobs wrote" in text
    assert text.index("late words") < text.index("now")


def test_a_job_that_writes_much_between_calls_is_not_held(sh: Sh, tmp_path: Path) -> None:
    sh("(seq 2000000; touch written) &")
    assert until((tmp_path / "written").exists)
    assert "2000000" in sh("true").text


# -- sessions ----------------------------------------------------------------------------------------


def test_sessions_are_separate(sh: Sh) -> None:
    sh("x=1; cd /", session="a")
    assert said(sh("echo ${x-none}; pwd", session="b")).startswith("none\n/")
    assert said(sh("echo $x; pwd", session="a")) == "1\n/"


def test_sessions_run_side_by_side(sh: Sh, tmp_path: Path) -> None:
    first = Background(lambda: sh("mkfifo p; cat p", session="a"))
    assert until((tmp_path / "p").exists)
    sh("echo go >p", session="b")
    assert said(first.result()) == "go"


def test_calls_of_one_session_wait_for_each_other(sh: Sh, tmp_path: Path) -> None:
    first = Background(lambda: sh("mkfifo p; cat p >/dev/null; echo 1 >>log"))
    assert until((tmp_path / "p").exists)
    others = []
    for number in (2, 3, 4):
        others.append(Background(lambda n=number: sh(f"echo {n} >>log")))  # type: ignore[misc]  # bound on purpose
        assert until(lambda n=number: len(main().turns) == n)  # type: ignore[misc]  # bound on purpose
    (tmp_path / "p").write_text("go")
    for one in (first, *others):
        one.result()
    assert (tmp_path / "log").read_text() == "1\n2\n3\n4\n"


def main() -> session.Session:
    """The session of that name."""
    assert Server.sessions is not None
    return Server.sessions._sessions["main"]


def test_a_ninth_session_is_refused_and_the_eight_are_named(sh: Sh) -> None:
    names = [f"s{number}" for number in range(8)]
    for name in names:
        sh("true", session=name)
    outcome = sh("true", session="ninth")
    assert outcome.failed
    assert all(f"'{name}'" in outcome.text for name in names)
    sh("exit", session="s3")
    assert not sh("true", session="ninth").failed


def test_an_ended_session_leaves_no_descriptor_open(sh: Sh) -> None:
    sh("exit", session="first")
    before = len(os.listdir("/proc/self/fd"))
    for number in range(4):
        sh("exit", session=f"s{number}")
    assert len(os.listdir("/proc/self/fd")) <= before


def test_a_session_that_the_server_has_no_descriptors_for_is_refused(sh: Sh) -> None:
    sh("true", session="first")
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    free = os.dup(0)
    os.close(free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (free + 1, limits[1]))
    try:
        outcome = sh("true", session="second")
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)
    assert outcome.code == "EXECUTION_ERROR"
    assert said(sh("echo ok", session="second")) == "ok"


def test_the_number_of_sessions_is_an_option(sh: Sh) -> None:
    sh("true", {"max_sessions": 1}, session="a")
    assert sh("true", {"max_sessions": 1}, session="b").failed


@pytest.mark.parametrize("name", ["", "a b", "../x", "é", "a/b", "x" * 65, ".", ".."])
def test_a_session_has_a_plain_name(name: str, sh: Sh) -> None:
    assert sh("true", session=name).code == "INVALID_PARAMS"


@pytest.mark.parametrize("name", ["a", "A.b_c-9", "x" * 64, "--", "_"])
def test_a_session_may_have_any_plain_name(name: str, sh: Sh) -> None:
    assert said(sh("echo ok", session=name)) == "ok"


def test_restart_ends_shell_and_jobs(sh: Sh, tmp_path: Path) -> None:
    sh("x=1; cd /; sleep 300 & echo $! >" + str(tmp_path / "pid"))
    pid = int((tmp_path / "pid").read_text())
    outcome = sh("echo ${x-none}; pwd", restart=True)
    assert said(outcome) == f"none\n{tmp_path}"
    assert "starts anew" in outcome.text
    assert gone(pid)


def test_restart_needs_no_command(sh: Sh) -> None:
    assert "starts anew" in sh("", restart=True).text


def test_an_idle_session_is_closed_and_told_of(sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    sh("x=1")
    monkeypatch.setattr(session, "IDLE_S", 0.0)
    assert until(lambda: main().shell is None)
    outcome = sh("echo ${x-none}")
    assert said(outcome) == "none"
    assert "was idle" in outcome.text


def test_a_session_with_a_job_is_not_idle(sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    sh("x=1; sleep 300 &")
    monkeypatch.setattr(session, "IDLE_S", 0.0)
    main().tend()
    assert said(sh("echo $x")) == "1"


# -- secrets and options -----------------------------------------------------------------------------


def test_secret_looking_variables_are_withheld_and_it_is_said_once(
    sh: Sh, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MY_API_KEY", "abcdefgh12345678")
    monkeypatch.setenv("MONKEY", "visible")
    outcome = sh("echo ${MY_API_KEY-withheld} $MONKEY; env | grep -c API_KEY")
    assert said(outcome).startswith("withheld visible\n0")
    assert "--env MY_API_KEY" in outcome.text
    assert "--env" not in sh("echo ${MY_API_KEY-none}").text


def test_a_named_variable_is_let_in(sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "abcdefgh12345678")
    assert said(sh("echo ${#MY_API_KEY}", {"env": ["MY_API_KEY"]})) == "16"


def test_a_variable_named_secret_is_withheld(sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PLAIN", "abcdefgh12345678")
    assert said(sh("echo ${PLAIN-none}", {"secret": ["PLAIN"]})).startswith("none")


def test_an_environment_cannot_change_the_shell(sh: Sh, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "SHELLOPTS": "noexec:xtrace",
        "PROMPT_COMMAND": "echo prompt",
        "PS4": "x",
        "BASH_ENV": "/nonexistent",
        "TMOUT": "1",
    }.items():
        monkeypatch.setenv(name, value)
    assert said(sh("echo ok; set -o | grep -c 'xtrace.*on'")).startswith("ok\n0")


def test_a_secret_in_the_output_is_masked(
    sh: Sh, make_call: Callable[..., Call], tmp_path: Path
) -> None:
    call = make_call(tmp_path, environ={"MY_TOKEN": "s3cr3t-value-1234"})
    text = sh("echo s3cr3t-value-1234; seq 20000", call=call).text
    assert text.startswith("[REDACTED:MY_TOKEN]")
    assert "redacted: MY_TOKEN" in text


def test_a_secret_in_a_progress_report_is_masked(
    sh: Sh, make_call: Callable[..., Call], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolroll_bash.run.PROGRESS_S", 0.1)
    reports: list[str] = []
    call = make_call(
        tmp_path,
        environ={"MY_TOKEN": "s3cr3t-value-1234"},
        report=lambda _done, _total, words: reports.append(words),
    )
    command = "echo s3cr3t-value-1234; mkfifo p; read x <p"
    running = Background(lambda: sh(command, call=call))
    assert until(lambda: any("REDACTED" in words for words in reports))
    (tmp_path / "p").write_text("go\n")
    running.result()
    assert not any("s3cr3t" in words for words in reports)


@pytest.mark.parametrize("column", range(285, 300, 3))
def test_no_part_of_a_secret_is_in_a_line_that_looks_like_an_error(
    column: int, sh: Sh, make_call: Callable[..., Call], tmp_path: Path
) -> None:
    call = make_call(tmp_path, environ={"MY_TOKEN": "s3cr3t-value-1234"})
    line = f"error{'x' * (column - 5)}s3cr3t-value-1234"
    text = sh(f"seq 20000; echo {line}; seq 20000", call=call).text
    assert "errorx" in text
    assert "xs3" not in text


def test_no_part_of_a_secret_is_in_what_jobs_wrote_late(
    sh: Sh, make_call: Callable[..., Call], tmp_path: Path
) -> None:
    call = make_call(tmp_path, environ={"MY_TOKEN": "s3cr3t-value-1234"}, max_output=100_000)
    sh("mkfifo p; (read x <p; yes s3cr3t-value-1234xx | head -5000; touch written) &")
    (tmp_path / "p").write_text("go\n")
    assert until((tmp_path / "written").exists)
    text = sh("true", call=call).text
    assert "REDACTED" in text
    assert "1234" not in text


def test_the_directory_of_new_sessions_is_an_option(sh: Sh) -> None:
    assert said(sh("pwd", {"cwd": "/"})) == "/"


def test_a_file_is_read_first_when_asked_for(sh: Sh, tmp_path: Path) -> None:
    (tmp_path / "rc").write_text(
        "greet() { echo hi; }\nPS1='$(sleep 50)'\nPROMPT_COMMAND='sleep 50'\n"
    )
    assert said(sh("greet", {"shell_rc": str(tmp_path / "rc")})) == "hi"


@pytest.mark.parametrize("text", ["exit 3\n", "if\n", "nosuchcommand\n"])
def test_a_bad_first_file_is_told_and_the_session_works(text: str, sh: Sh, tmp_path: Path) -> None:
    (tmp_path / "rc").write_text(text)
    outcome = sh("echo ok", {"shell_rc": str(tmp_path / "rc")})
    assert said(outcome) == "ok"
    assert "rc: " in outcome.text


@pytest.mark.parametrize(
    "options", [{"cwd": "/nonexistent"}, {"cwd": None, "shell-rc": "/nonexistent"}]
)
def test_options_that_cannot_work_are_refused_at_start(options: dict[str, object]) -> None:
    with pytest.raises(ValueError, match="/nonexistent"):
        start(options)


def test_an_unknown_parameter_runs_nothing(sh: Sh, tmp_path: Path) -> None:
    outcome = sh("touch ran", workdir="/")
    assert outcome.code == "INVALID_PARAMS"
    assert not (tmp_path / "ran").exists()


# -- the private folder ------------------------------------------------------------------------------


def test_the_folder_is_private_and_goes_away(sh: Sh) -> None:
    sh("true")
    assert Server.sessions is not None
    path = Path(Server.sessions.folder)
    assert path.parent == Path(saved.folder())
    assert path.stat().st_mode & 0o777 == 0o700
    assert {one.stat().st_mode & 0o077 for one in path.rglob("*")} == {0}
    close()
    assert not path.exists()


def test_the_folder_lies_in_the_users_own_runtime_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    tmp_path.chmod(0o700)
    assert saved.folder() == f"{tmp_path}/toolroll-{os.geteuid()}"
    tmp_path.chmod(0o777)
    assert not saved.folder().startswith(str(tmp_path))


def test_a_folder_that_is_open_to_others_is_not_used(
    sh: Sh, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    (tmp_path / f"toolroll-{os.geteuid()}").mkdir(mode=0o700)
    (tmp_path / f"toolroll-{os.geteuid()}").chmod(0o777)
    outcome = sh("true")
    assert outcome.code == "EXECUTION_ERROR"
    assert "TMPDIR" in outcome.text


def test_what_a_killed_server_left_is_swept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    living = folder.Folder()
    stale = Path(saved.folder()) / "bash-stale"
    (stale / "main-1.session").mkdir(parents=True)
    (stale / "lock").touch()
    (stale / "link").symlink_to("/")
    another = folder.Folder()
    assert not stale.exists()
    assert Path(living.path).is_dir()
    living.remove()
    another.remove()
    assert list(Path(saved.folder()).iterdir()) == []


def test_nothing_is_left_of_many_sessions(sh: Sh) -> None:
    before = children()
    for number in range(4):
        sh("sleep 300 & (setsid sleep 300 &)", session=f"s{number}")
    assert len(children() - before) >= 8
    close()
    assert until(lambda: not children() - before)


@pytest.mark.parametrize("end", [close, None])
def test_a_killed_launcher_leaves_nothing(
    end: "Callable[[], None] | None", sh: Sh, tmp_path: Path
) -> None:
    before = children()
    sh("(setsid bash -c 'echo $$ >pid; sleep 300' &); until [ -s pid ]; do :; done")
    pid = int((tmp_path / "pid").read_text())
    shell = main().shell
    assert shell is not None
    launcher, bash_pid = shell._child.pid, shell.pid
    os.kill(launcher, signal.SIGKILL)
    assert until(lambda: gone(launcher) and gone(bash_pid))
    if end is None:
        assert said(sh("echo alive")) == "alive"
    else:
        end()
    assert until(lambda: gone(pid))
    close()
    assert until(lambda: not children() - before)


def test_a_signal_to_the_launcher_ends_its_session(sh: Sh) -> None:
    sh("sleep 300 &")
    shell = main().shell
    assert shell is not None
    launcher = shell._child.pid
    pids = {launcher, *(one.pid for one in below(launcher, processes()))}
    os.kill(launcher, signal.SIGTERM)
    assert until(lambda: all(map(gone, pids)))
    assert said(sh("echo alive")) == "alive"
