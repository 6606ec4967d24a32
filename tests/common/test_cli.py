"""The command line: options, variables, one-shot calls, and what goes to which stream."""

import json
import os
import re
import signal
import stat
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import __version__, cli
from toolroll.call import Call
from toolroll.cli import UsageError, duration, parse
from toolroll.limits import DEADLINE_S, OUTPUT_CHARS
from toolroll.tool import Mode, Option, tool

Json = Any

PEER = Path(__file__).parents[1] / "wire" / "peer.py"
SECRET = "s3cr3t-V4lue-77"


@tool(
    "Some",
    title="Some",
    options=[
        Option("deny", "Closed.", str, "GLOB", (".git/**",), many=True),
        Option("size", "N.", int, "N"),
    ],
)
def some(call: Call) -> str:
    """Do nothing."""
    return ""


def options(*argv: str, **environ: str) -> "dict[str, Json]":
    values, words = parse(some, argv, environ)
    assert words == []
    return values


def usage(*argv: str, **environ: str) -> str:
    with pytest.raises(UsageError) as caught:
        parse(some, argv, environ)
    return str(caught.value)


def run(
    *words: str,
    data: bytes = b"",
    cwd: Path | None = None,
    environ: Mapping[str, str] | None = None,
) -> "subprocess.CompletedProcess[str]":
    """The peer's process with this command line, run to its end."""
    done = subprocess.run(
        [sys.executable, str(PEER), *words],
        input=data,
        capture_output=True,
        cwd=cwd or PEER.parent,
        env={**os.environ, **(environ or {})},
        timeout=30,
        check=False,
    )
    out, err = done.stdout.decode(), done.stderr.decode()
    return subprocess.CompletedProcess(done.args, done.returncode, out, err)


def printed(*words: str, data: bytes = b"") -> str:
    """What a successful run prints, without its last newline."""
    done = run(*words, data=data)
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.removesuffix("\n")


# -- options ---------------------------------------------------------------------------------------------


def test_without_options_the_defaults_hold() -> None:
    values = options()
    assert values["deadline"] == DEADLINE_S
    assert values["max-output"] == OUTPUT_CHARS
    assert (values["rate"].per_s, values["rate"].burst) == (50, 100)
    assert (values["root"], values["secret"], values["structured"]) == ([], [], False)
    assert values["log-level"] == "warning"


def test_a_tools_own_option_stands_in_place_of_the_common_one() -> None:
    assert options()["deny"] == [".git/**"]
    assert options("--deny", "a")["deny"] == ["a"]
    assert options("--size", "3")["size"] == 3


@pytest.mark.parametrize(
    "argv", [("--max-output", "7"), ("--max-output=7",), ("-max-output", "7"), ("-max-output=7",)]
)
def test_an_option_takes_its_value_behind_a_space_or_an_equals_sign_and_one_dash_or_two(
    argv: tuple[str, ...],
) -> None:
    assert options(*argv)["max-output"] == 7


def test_a_repeatable_option_collects() -> None:
    assert options("--root", "a", "-root=b", "--root", "c")["root"] == ["a", "b", "c"]


def test_every_option_is_a_variable_and_the_command_line_wins() -> None:
    values = options(
        TOOLROLL_ROOTS=os.pathsep.join(["a", "", "b"]),
        TOOLROLL_DENY="x",
        TOOLROLL_MAX_OUTPUT="9",
        TOOLROLL_LOG_LEVEL="debug",
        TOOLROLL_STRUCTURED="1",
        TOOLROLL_DEADLINE="1500ms",
        TOOLROLL_RATE="off",
        TOOLROLL_SIZE="4",
    )
    assert values["root"] == ["a", "b"]
    assert values["deny"] == ["x"]
    assert (values["max-output"], values["size"], values["deadline"]) == (9, 4, 1.5)
    assert (values["log-level"], values["structured"], values["rate"].per_s) == ("debug", True, 0)
    assert options("--max-output", "8", TOOLROLL_MAX_OUTPUT="9")["max-output"] == 8
    assert options("--root", "c", TOOLROLL_ROOTS="a")["root"] == ["c"]


@pytest.mark.parametrize("text", ["", "0", "false", "False", "no"])
def test_a_switchs_variable_may_say_no(text: str) -> None:
    assert options(TOOLROLL_STRUCTURED=text)["structured"] is False


def test_an_action_is_no_variable() -> None:
    assert options(TOOLROLL_HELP="1", TOOLROLL_CALL="1")["help"] is False


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("30s", 30), ("2m", 120), ("1500ms", 1.5), ("20", 20), ("0.5", 0.5), ("1h", 3600)],
)
def test_durations_have_units(text: str, seconds: float) -> None:
    assert duration(text) == pytest.approx(seconds)


@settings(deadline=None)
@given(st.text())
def test_any_text_is_a_positive_duration_or_refused(text: str) -> None:
    try:
        seconds = duration(text)
    except ValueError:
        return
    assert 0 < seconds < float("inf")


@pytest.mark.parametrize(
    ("argv", "message"),
    [
        (["--nope"], "unknown option '--nope'"),
        (["--max-ouput", "3"], "did you mean '--max-output'?"),
        (["--max-output"], "--max-output needs a value"),
        (["--max-output", "many"], "--max-output N: 'many'"),
        (["--max-output", "0"], "--max-output N: '0'"),
        (["--deadline", "-3s"], "--deadline TIME: '-3s'"),
        (["--deadline", "soon"], "--deadline TIME: 'soon'"),
        (["--rate", "fast"], "'fast' is not a rate"),
        (["--log-level", "loud"], "one of debug, info, warning, error, off"),
        (["--structured=yes"], "--structured takes no value"),
        (["--root", ""], "--root needs a value"),
    ],
)
def test_a_wrong_option_is_named_with_what_is_wrong(argv: list[str], message: str) -> None:
    assert message in usage(*argv)


def test_a_wrong_variable_is_named() -> None:
    assert "TOOLROLL_MAX_OUTPUT N: 'x'" in usage(TOOLROLL_MAX_OUTPUT="x")


def test_words_behind_two_dashes_are_no_options() -> None:
    assert parse(some, ["--call", "--", "--x=1"], {})[1] == ["--x=1"]


@settings(deadline=None)
@given(
    st.lists(
        st.one_of(
            st.text(), st.sampled_from(["--", "-", "--root", "-rate", "--call", "=", "--help"])
        )
    )
)
def test_any_command_line_is_understood_or_refused(argv: list[str]) -> None:
    try:
        values, words = parse(some, argv, {})
    except UsageError:
        return
    assert {option.name for option in (*cli.declared(some), *cli.ACTIONS)} == {*values}
    assert all(word in argv for word in words)


# -- modes and the file of options -----------------------------------------------------------------------


def repeat(call: Call, words: Sequence[str]) -> int:
    sys.stdout.write(f"{' '.join(words)} {call.options['size']}\n")
    return 7


@tool(
    "Other",
    title="Other",
    options=[
        Option("config", "A file.", cli.settings, "FILE"),
        Option("size", "N.", int, "N", 3),
        Option("loud", "Shout.", None),
    ],
    modes=[Mode("repeat", "Say the words again.", repeat)],
)
def other(call: Call) -> str:
    """Do nothing."""
    return ""


def in_file(folder: Path, text: str, *argv: str, **environ: str) -> "dict[str, Json]":
    (folder / "options.toml").write_text(text)
    return parse(other, ["--config", f"{folder}/options.toml", *argv], environ)[0]


def test_a_mode_is_done_instead_of_serving_with_the_words_and_its_exit_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["x", "--repeat", "a", "--size", "5", "b", "--root", f"{tmp_path}"]
    )
    assert cli.main(other) == 7
    assert capsys.readouterr().out == "a b 5\n"


def test_a_mode_is_no_variable_and_stands_in_help(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert parse(other, [], {"TOOLROLL_REPEAT": "1"})[0]["repeat"] is False
    monkeypatch.setattr(sys, "argv", ["x", "--help"])
    assert cli.main(other) == 0
    serving, _, options = capfd.readouterr().out.partition("Options, ")
    assert "--repeat" in serving.partition("Instead of serving")[2]
    assert "--repeat" not in options


def test_a_file_gives_options_the_environment_goes_before_it_and_the_command_line_before_that(
    tmp_path: Path,
) -> None:
    text = 'size = 4\nloud = true\ndeny = ["a", "b"]\ndeadline = "2s"\n'
    found = in_file(tmp_path, text)
    assert (found["size"], found["loud"], found["deny"]) == (4, True, ["a", "b"])
    assert found["deadline"] == 2.0
    assert in_file(tmp_path, text, TOOLROLL_SIZE="5")["size"] == 5
    assert in_file(tmp_path, text, "--size", "6", TOOLROLL_SIZE="5")["size"] == 6
    assert in_file(tmp_path, "")["size"] == 3
    environ = {"TOOLROLL_CONFIG": f"{tmp_path}/options.toml"}
    (tmp_path / "options.toml").write_text("size = 8")
    assert parse(other, [], environ)[0]["size"] == 8


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("sise = 4", "--config: unknown option 'sise', did you mean '--size'?"),
        ('call = "x"', "--config: unknown option 'call'"),
        ('size = "x"', "--config: size N: 'x' does not fit"),
        ('loud = "yes"', "--config: loud must be true or false"),
        ("size = ", "--config FILE: '"),
    ],
)
def test_what_is_wrong_in_a_file_of_options_is_named(
    tmp_path: Path, text: str, message: str
) -> None:
    with pytest.raises(UsageError) as caught:
        in_file(tmp_path, text)
    assert str(caught.value).startswith(message)


def test_a_file_of_options_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"none\.toml' does not fit, No such file"):
        parse(other, ["--config", f"{tmp_path}/none.toml"], {})


# -- what a process says ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "argv",
    [("--nope",), ("word",), ("--max-output", "x"), ("--root", "/no/such/folder"), ("--call", "word"),
     ("--call", "{"), ("--call", "{}x"), ("--call", "-"), ("--trace", "/no/such/folder/trace")],
)  # fmt: skip
def test_a_usage_error_is_on_stderr_only_with_status_2(argv: tuple[str, ...]) -> None:
    done = run(*argv)
    assert (done.returncode, done.stdout) == (2, "")
    assert done.stderr.startswith("toolroll-peer: ")
    assert done.stderr.endswith("Try 'toolroll-peer --help'.\n")
    assert "Traceback" not in done.stderr


def test_version_and_schema_and_help_are_printed() -> None:
    assert printed("--version") == f"toolroll-peer {__version__}"
    definition = json.loads(printed("-schema"))
    assert definition["name"] == "Peer"
    assert "outputSchema" not in definition
    assert "outputSchema" in json.loads(printed("--schema", "--structured"))
    shown = printed("--help")
    for option in (*cli.OPTIONS, *cli.ACTIONS):
        assert f"--{option.name}" in shown
    assert all(len(text) <= 100 for text in shown.splitlines())


def test_a_one_shot_call_prints_its_text() -> None:
    assert printed("--call", "do=echo", "text=hi there", "times=2") == "hi therehi there"
    assert printed("--call", '{"do": "echo", "text": "é"}') == "é"
    assert printed("-call", "do=echo", "text=a=b") == "a=b"
    assert printed("--call", "do=echo", "words=a", "words=b") == " a b"


def test_a_one_shot_call_reads_json_from_stdin_in_both_forms() -> None:
    assert printed("--call", "-", data=b'{"do": "echo", "text": "x"}') == "x"
    whole = b'{"name": "Peer", "params": {"do": "echo", "text": "y"}}\n'
    assert printed("--call", "-", data=whole) == "y"


def test_a_one_shot_call_prints_its_structured_form() -> None:
    assert json.loads(printed("--call", "--json", "do=echo", "text=hi")) == {
        "result": "hi",
        "size": 2,
        "ratio": 1.0,
    }
    done = run("--call", "do=fail", "text=x", "--json")
    assert done.returncode == 1
    assert json.loads(done.stdout) == {
        "error": "'x' is not here. Look elsewhere.",
        "code": "NOT_FOUND",
    }


def test_a_one_shot_call_that_fails_has_status_1() -> None:
    done = run("--call", "do=fail", "text=x")
    assert (done.returncode, done.stderr) == (1, "")
    assert done.stdout == "Error [NOT_FOUND]: 'x' is not here. Look elsewhere.\n"
    missing = run("--call")
    assert missing.returncode == 1
    assert "'do' is missing" in missing.stdout


def test_a_bug_in_a_one_shot_call_has_its_traceback_on_stderr() -> None:
    done = run("--call", "do=bug", "text=hidden")
    assert done.returncode == 1
    assert done.stdout.startswith("Error [INTERNAL_ERROR]")
    assert "BugError: hidden" in done.stderr


def test_a_one_shot_calls_reader_may_go_away() -> None:
    shell = f"'{sys.executable}' '{PEER}' --call do=echo text=x times=100000 --max-output 100000 | head -c 1"
    done = subprocess.run(["sh", "-c", shell], capture_output=True, timeout=30, check=False)
    assert (done.stdout, done.stderr) == (b"x", b"")


def test_an_answer_is_cut_to_the_limit_that_was_set() -> None:
    shown = printed("--call", "do=echo", "text=x", "times=5000", "--max-output", "100")
    assert "[truncated: 4900 characters left out here.]" in shown


# -- the record of the wire, and the log -----------------------------------------------------------------

ASKED = (
    b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25"}}\n'
    b'{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"Peer","arguments":'
    b'{"do":"environ","text":"MY_TOKEN"}}}\n'
    b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"Peer","arguments":'
    b'{"do":"echo","text":"s3cr3t-V4lue-77"}}}\n'
)


def test_the_trace_is_private_masked_and_whole(tmp_path: Path) -> None:
    trace = tmp_path / "wire.jsonl"
    done = run("--trace", str(trace), data=ASKED, environ={"MY_TOKEN": SECRET})
    assert stat.S_IMODE(trace.stat().st_mode) == 0o600
    text = trace.read_text()
    assert SECRET not in text
    assert "[REDACTED:MY_TOKEN]" in text
    lines = [json.loads(line) for line in text.splitlines()]
    assert {line["way"] for line in lines} == {"in", "out"}
    answers = [line["data"] for line in lines if line["way"] == "out"]
    assert sorted(answers) == sorted(done.stdout.splitlines())
    assert len(lines) - len(answers) == 3


def test_a_secret_is_masked_in_the_answer_unless_that_is_turned_off() -> None:
    masked = run(data=ASKED, environ={"MY_TOKEN": SECRET})
    assert SECRET not in masked.stdout
    assert "[REDACTED:MY_TOKEN]" in masked.stdout
    assert SECRET in run("--no-redact", data=ASKED, environ={"MY_TOKEN": SECRET}).stdout


def test_a_variable_named_by_the_operator_is_masked_too() -> None:
    words = ("--call", "do=environ", "text=ORDINARY", "--secret", "ORDINARY")
    assert SECRET not in run(*words, environ={"ORDINARY": SECRET}).stdout


def test_debug_logs_a_line_when_a_call_comes_and_one_when_it_is_answered() -> None:
    done = run("--log-level", "debug", data=ASKED, environ={"MY_TOKEN": SECRET})
    received = [line for line in done.stderr.splitlines() if " received " in line]
    sent = [line for line in done.stderr.splitlines() if " sent " in line]
    assert len(received) == len(sent) == 2
    assert all("ms=" in line and "code='ok'" in line for line in sent)
    assert SECRET not in done.stderr


def test_without_debug_nothing_is_logged() -> None:
    assert run(data=ASKED).stderr == ""


# -- roots -----------------------------------------------------------------------------------------------


def test_the_instructions_name_the_roots_that_were_given(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "b").mkdir()
    done = run("--root", "a", "--root", "b", data=ASKED[: ASKED.index(b"\n") + 1], cwd=tmp_path)
    told = json.loads(done.stdout)["result"]["instructions"]
    assert str((tmp_path / "a").resolve()) in told
    assert str((tmp_path / "b").resolve()) in told


def test_in_the_home_directory_nothing_is_open_without_a_root(tmp_path: Path) -> None:
    done = run(data=ASKED[: ASKED.index(b"\n") + 1], cwd=tmp_path, environ={"HOME": str(tmp_path)})
    assert "--root" in json.loads(done.stdout)["result"]["instructions"]


def test_an_answer_that_cannot_be_written_is_said_and_fails() -> None:
    with open("/dev/full", "wb") as full:
        done = subprocess.run(
            [sys.executable, str(PEER), "--call", "do=echo", "text=x"],
            stdout=full,
            stderr=subprocess.PIPE,
            timeout=30,
            check=False,
        )
    assert done.returncode == 1
    assert b"No space left" in done.stderr


def test_a_signal_during_a_one_shot_call_is_its_exit_status(tmp_path: Path) -> None:
    child = subprocess.Popen(
        [sys.executable, str(PEER), "--log-level", "debug", "--call", "do=hold", "text=never"],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    status = Path(f"/proc/{child.pid}/status")
    while "SigCgt:\t0000000000000000" in status.read_text() or threads(status) < 3:
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    assert child.wait(timeout=30) == 128 + signal.SIGTERM
    assert child.stdout is not None
    child.stdout.close()


def threads(status: Path) -> int:
    """The main thread, the one that waits for signals, the call's."""
    return int(re.search(r"Threads:\t(\d+)", status.read_text())[1])  # type: ignore[index]  # it is there


def test_a_deny_of_the_operator_is_added_to_what_a_tool_closes(tmp_path: Path) -> None:
    (tmp_path / ".git").mkdir()
    command = [sys.executable, "-m", "toolroll_replace", "--root", str(tmp_path), "--deny", "x/**"]
    asked = ["--call", f"file_path={tmp_path}/.git/config", "content=evil"]
    refused = subprocess.run([*command, *asked], capture_output=True, timeout=30, check=False)
    assert b"PERMISSION_DENIED" in refused.stdout
    allowed = subprocess.run(
        [*command, "--allow-git", *asked], capture_output=True, timeout=30, check=False
    )
    assert allowed.returncode == 0


def test_a_deleted_working_directory_is_a_usage_error(tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = f"cd {gone}; rmdir {gone}; exec {sys.executable} {PEER} --call do=echo"
    done = subprocess.run(["bash", "-c", script], capture_output=True, timeout=30, check=False)
    assert done.returncode == 2
    assert b"--root" in done.stderr


def test_bad_json_is_said_without_the_interpreters_words() -> None:
    done = run("--call", '{"do": ')
    assert done.returncode == 2
    assert "Scanner" not in done.stderr
    assert "not JSON" in done.stderr
