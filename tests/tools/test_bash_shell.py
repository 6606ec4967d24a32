"""Bash: what persists, what a command may be, what is shown of its output, and that nothing asks."""

import os
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.call import Call
from toolroll.tool import Outcome
from toolroll_bash.output import Output, folded, plain
from toolroll_bash.syntax import is_plain
from toolroll_bash.tool import bash, close

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pty.fork, 3.12

Sh = Callable[..., Outcome]
LOST = "starts a new one"


@pytest.fixture
def sh(make_call: Callable[..., Call], tmp_path: Path) -> Iterator[Sh]:
    """`sh(command, ...)`: the outcome of a call; what it started is ended after the test."""

    def run(
        command: str, /, options: "dict[str, object] | None" = None, **arguments: object
    ) -> Outcome:
        arguments = {"command": command, "timeout": 20_000, **arguments}
        return bash.call(arguments, make_call(tmp_path, **(options or {})))

    yield run
    close()


def said(outcome: Outcome) -> str:
    """The text without the closing line of facts."""
    assert not outcome.failed, outcome.text
    return re.sub(r"\n?\[[^\[\]\n]*\]\Z", "", outcome.text).removesuffix("\n")


# -- state -------------------------------------------------------------------------------------------

STATE = {
    "a variable": ("x=1", "echo $x", "1"),
    "an exported variable": ("export X=1", "bash -c 'echo $X'", "1"),
    "an unset variable": ("unset HOME", "echo ${HOME-none}", "none"),
    "an array": ("a=(1 'two three' 4)", 'echo "${a[1]}" ${#a[@]}', "two three 3"),
    "an associative array": ("declare -A m=([k]=v)", "echo ${m[k]}", "v"),
    "an integer": ("declare -i n=2; n+=3", "echo $n", "5"),
    "a readonly variable": ("readonly r=1", "echo $r", "1"),
    "a function": ("f() { echo f $1; }", "f 2", "f 2"),
    "a function that calls itself": ("c() { (($1)) && c $(($1 - 1)) || echo end; }", "c 9", "end"),
    "an option": ("set -o pipefail", "false | true; echo $?", "1"),
    "set -f": ("set -f", "echo *", "*"),
    "set -x": ("set -x", "echo a 2>/dev/null; set +x", "++ echo a\na\n++ set +x"),
    "a shell option": ("shopt -s nullglob", "echo *.nothing", ""),
    "extglob": ("shopt -s extglob; touch a b", "echo !(a)", "b"),
    "a trap": ("trap 'echo hit' USR1", "kill -USR1 $$", "hit"),
    "umask": ("umask 027", "umask", "0027"),
    "a limit": ("ulimit -n 100", "ulimit -n", "100"),
    "the working directory": ("mkdir d; cd d", "basename $PWD", "d"),
    "the previous directory": ("mkdir d; cd d; cd ..", "basename $OLDPWD", "d"),
    "the directory stack": ("mkdir d; pushd d >/dev/null", "popd >/dev/null; dirs -p | wc -l", "1"),
    "an open descriptor": ("echo in >f; exec 7<f", "cat <&7", "in"),
    "a positional parameter": ("set -- a b", "echo $2", "b"),
    "the exit status": ("(exit 7)", "echo $?", "7"),
    "the status of a failing file": ("nosuchcommand 2>/dev/null", "echo $?", "127"),
    "a hash table entry": ("hash -p /bin/echo myecho", "myecho x", "x"),
    "a process id": ("echo $$ >pid", "[[ $$ == $(<pid) ]] && echo same", "same"),
    "TIMEFORMAT": ("TIMEFORMAT=mine", "time true", "mine"),
    "a background job": ("sleep 50 & echo >/dev/null", "kill $! && echo killed", "killed"),
    "no alias": (
        "alias greet='echo hi'",
        "type greet >/dev/null 2>&1; greet 2>/dev/null; echo $?",
        "127",
    ),
}


@pytest.mark.parametrize("what", STATE)
def test_state_persists_between_calls(what: str, sh: Sh) -> None:
    first, second, expected = STATE[what]
    sh(first)
    assert said(sh(second)) == expected


def test_a_trap_on_debug_sees_the_next_command(sh: Sh) -> None:
    sh("trap 'echo at $BASH_COMMAND' DEBUG")
    assert "at echo one\none" in sh("echo one").text


# -- commands ----------------------------------------------------------------------------------------

COMMANDS = {
    "empty": ("", "(no output)"),
    "blank lines": ("\n\n  \n", "(no output)"),
    "only a comment": ("# nothing", "(no output)"),
    "a comment at the end": ("echo a # b", "a"),
    "a comment in the first line": ("# first\necho a", "a"),
    "a backslash at the end": ("echo a \\", "a"),
    "a continued line": ("echo a \\\n  b", "a b"),
    "many lines": ("for i in 1 2\ndo\n  echo $i\ndone", "1\n2"),
    "a here-document": ("cat <<E\n$((1+1))\nE", "2"),
    "a quoted here-document": ("cat <<'E'\n$x `y` \\\nE", "$x `y` \\"),
    "a here-document with tabs": ("cat <<-E\n\ta\n\tE", "a"),
    "two here-documents": ("cat <<A <<B\n1\nA\n2\nB", "2"),
    "a here-string": ("cat <<<'a  b'", "a  b"),
    "single quotes": ("echo 'a'\\''b'", "a'b"),
    "a line feed in quotes": ("echo 'a\nb'", "a\nb"),
    "a history mark": ("echo 'a!b' !x", "a!b !x"),
    "a tab": ("echo 'a\tb'", "a\tb"),
    "a bell": ("printf '%d' \"'\x07\"", "7"),
    "control-C as text": ("printf '%d' \"'\x03\"", "3"),
    "control-D as text": ("printf '%d' \"'\x04\"", "4"),
    "an escape": ("printf '%d' \"'\x1b\"", "27"),
    "non-ASCII": ("echo 'naïve 漢字 🎉'", "naïve 漢字 🎉"),
    "a byte that is no UTF-8": ("printf '%s' \"\udce9\" | od -An -tx1 | tr -d ' '", "e9"),
    "a closing brace": ("f() {\n  echo f\n}\nf", "f"),
    "braces as words": ("echo } {", "} {"),
    "a group": ("{ echo a; echo b; } | wc -l", "2"),
    "a subshell that exits": ("(exit 3); echo $?", "3"),
    "its own marker": (
        "echo '7 0 himBHs -'; echo _toolroll_status",
        "7 0 himBHs -\n_toolroll_status",
    ),
    "a case": ("case a in (a) echo 1;; b) echo 2;; esac", "1"),
    "arithmetic": ("((x = 3)); echo $((x ** 2))", "9"),
    "a process substitution": ("cat <(echo a) <(echo b)", "a\nb"),
    "a coprocess": ("coproc cat; echo a >&${COPROC[1]}; read -r x <&${COPROC[0]}; echo $x", "a"),
    "a pipeline": ("seq 10 | tail -1", "10"),
    "extglob turned on by itself": ("shopt -s extglob\ntouch a b\necho !(a)", "b"),
    "local in a function": ("f() { local x=1; echo $x; }; f; echo ${x-none}", "1\nnone"),
    "declare stays global": ("declare g=1; { declare h=2; }; echo $g $h", "1 2"),
}


@pytest.mark.parametrize("what", COMMANDS)
def test_a_command_runs_as_written(what: str, sh: Sh) -> None:
    command, expected = COMMANDS[what]
    text = said(sh(command))
    assert re.sub(r"(bash: line|\[\d+\]) .*\n", "", text) == expected


@pytest.mark.parametrize("length", [3_000, 30_000, 70_000, 2_000_000])
def test_a_command_may_be_long(length: int, sh: Sh) -> None:
    assert said(sh(f"x='{'é' * (length // 2)}'\necho ${{#x}}")) == str(length // 2)


def test_a_script_of_many_lines_runs_to_its_end(sh: Sh) -> None:
    assert said(sh("\n".join(f"x={number}" for number in range(50_000)) + "\necho $x")) == "49999"


SYNTAX = [
    "echo 'a",
    'echo "a',
    "if true",
    "echo a; fi",
    "echo ran\nfi",
    "echo ran\n}\necho outside\n{ echo b",
    "echo ran; (",
    "echo ran\nfor x in",
    "echo `",
    "echo ran $(",
    "echo ran $(}\necho outside",
    "echo ran; case x in",
    "echo ran; ;; echo",
    "f() {",
    "echo ran &&",
    "echo ran |",
]


@pytest.mark.parametrize("command", SYNTAX)
def test_a_syntax_error_is_told_before_anything_runs(command: str, sh: Sh) -> None:
    outcome = sh(f"touch mark\n{command}")
    assert outcome.code == "INVALID_PARAMS"
    assert "nothing was run" in outcome.text
    assert "toolroll" not in outcome.text
    assert said(sh("ls mark 2>/dev/null; echo alive")) == "alive"


def test_a_here_document_may_lack_its_end(sh: Sh) -> None:
    assert said(sh("cat <<E\na")).splitlines()[-1] == "a"


def test_a_nul_is_refused(sh: Sh) -> None:
    outcome = sh("echo a\0b")
    assert outcome.code == "INVALID_PARAMS"
    assert "NUL" in outcome.text


def test_half_a_character_is_refused(sh: Sh) -> None:
    assert sh("echo \ud83d").code == "INVALID_PARAMS"


SURVIVED = {
    "set -u and an unset variable": ("set -u; echo $nothing; echo no", "echo ok"),
    "a failed expansion": ("echo ${x:?gone}; echo no", "echo ok"),
    "an error in arithmetic": ("echo $((1/0)); echo no", "echo ok"),
    "set -n": ("set -n", "echo ok"),
    "set -v": ("set -v", "set +v; echo ok"),
    "kill 0": ("kill 0", "echo ok"),
    "INT to itself": ("kill -INT $$; echo no", "echo ok"),
    "TERM to itself": ("kill $$", "echo ok"),
    "HUP ignored": ("trap '' HUP INT TERM", "echo ok"),
    "a failed exec": ("exec /nonexistent", "echo ok"),
    "exec with redirections": ("exec >/dev/null 2>&1 </dev/null", "echo ok"),
    "standard descriptors closed": ("exec 0<&- 1>&- 2>&-", "echo ok"),
    "descriptors 0 to 9 closed": ('for n in {0..9}; do eval "exec $n>&-"; done', "echo ok"),
    "stty": ("stty -echo 2>/dev/null; stty raw", "echo ok"),
    "a prompt": ("PS1='$(sleep 50)> ' PS2=? PS4=@", "echo ok"),
    "a prompt command": ("PROMPT_COMMAND='echo prompt'", "echo ok"),
    "an array of prompt commands": ("PROMPT_COMMAND=('echo a' 'echo b')", "echo ok"),
    "IFS": ("IFS=0123456789/", "echo ok"),
    "no PATH": ("PATH=", "echo ok"),
    "POSIX mode": ("set -o posix", "echo ok"),
    "noclobber": ("set -C", "echo ok"),
    "allexport": ("set -a", "echo ok"),
    "read as a function": ("read() { echo fake; }", "echo ok"),
    "printf as a function": ("printf() { :; }; exit() { :; }", "echo ok"),
    "builtins as functions": (
        "source() { :; }; .() { :; }; builtin() { :; }; command() { :; }",
        "echo ok",
    ),
    "more builtins as functions": (
        "set() { :; }; trap() { :; }; unset() { :; }; test() { :; }",
        "echo ok",
    ),
    "eval passed on": ('eval() { builtin eval "$@"; }', "echo ok"),
    "builtins disabled": ("enable -n printf read trap exit source .", "echo ok"),
    "nocasematch and others": ("shopt -s nocasematch failglob xpg_echo lastpipe", "echo ok"),
    "a removed directory": ("mkdir d; cd d; rmdir ../d", "echo ok"),
    "TIMEFORMAT unset": ("unset TIMEFORMAT", "echo ok"),
    "return": ("return 3", "echo ok"),
    "break": ("break; continue", "echo ok"),
    "an ERR trap": ("trap 'echo err >&2' ERR", "echo ok"),
    "a variable of ours": ("_toolroll_status=9; _toolroll_format=x", "echo ok"),
}


@pytest.mark.parametrize("what", SURVIVED)
def test_a_session_survives(what: str, sh: Sh) -> None:
    command, then = SURVIVED[what]
    sh("kept=1")
    outcome = sh(command)
    assert LOST not in outcome.text
    assert said(sh(f'{then} "$kept"')).splitlines()[-1] == "ok 1"


ENDED = {
    "exit": ("exit 3", 3),
    "exit in a function": ("f() { exit 4; }; f", 4),
    "exec": ("exec true", 0),
    "exec that fails": ("exec bash -c 'exit 5'", 5),
    "set -e": ("set -e; false; echo no", 1),
    "KILL to itself": ("kill -9 $$", 137),
    "its launcher killed": ("kill -9 $PPID; sleep 50", None),
    "logout of all": ("kill -9 -$$", 137),
    "eval taken away": ("eval() { :; }; enable -n eval; true", None),
    "restricted": ("set -r", None),
    "all descriptors closed": ('for n in {0..250}; do eval "exec $n>&-"; done', None),
    "no descriptors": ("ulimit -n 3", None),
}


@pytest.mark.parametrize("what", ENDED)
def test_an_ended_shell_is_told_and_replaced(what: str, sh: Sh) -> None:
    command, status = ENDED[what]
    sh("mkdir d; cd d; lost=1")
    outcome = sh(f"echo before; {command}")
    after = sh("echo after ${lost-lost}; pwd")
    told = outcome.text + after.text
    assert "a new one" in told  # by this answer; by the next when the shell ended behind its report
    assert "before" in outcome.text
    if status is not None:
        assert outcome.structured["exit_code"] == status
    third = sh("echo after ${lost-lost}; basename $PWD")
    assert said(third).endswith("after lost\nd")


def test_an_exit_trap_is_heard(sh: Sh) -> None:
    assert said(sh("trap 'echo bye' EXIT; exit 3")) == "bye"


def test_set_e_lets_a_failure_pass_that_was_asked_about(sh: Sh) -> None:
    sh("set -e; kept=1")
    sh("if false; then :; fi; false || true; ! true; false && true")
    assert said(sh("echo $kept")) == "1"


def test_a_failure_traps_err_once(sh: Sh) -> None:
    sh("n=0; trap 'n=$((n + 1))' ERR")
    sh("false")
    assert said(sh("echo $n")) == "1"


def test_the_exit_status_persists_whatever_splits_words(sh: Sh) -> None:
    sh("IFS=1")
    sh("(exit 113)")
    assert said(sh('echo "$?"')) == "113"


def test_no_time_ends_a_shell_that_waits_for_its_next_command(sh: Sh) -> None:
    sh("TMOUT=1")
    assert said(sh("echo [$TMOUT]")) == "[]"


def test_the_word_exit_is_kept_when_the_shell_was_killed(sh: Sh) -> None:
    assert "exit\n" in said(sh("echo exit; kill -9 $$")) + "\n"


# -- output ------------------------------------------------------------------------------------------


def test_stdout_and_stderr_come_in_the_order_of_writing(sh: Sh) -> None:
    assert said(sh("for i in 1 2 3; do echo o$i; echo e$i >&2; done")) == "o1\ne1\no2\ne2\no3\ne3"


def test_python_is_not_buffered(sh: Sh) -> None:
    code = "import os; print('a'); os.write(2, b'b\\n'); print('c')"
    assert said(sh(f'python3 -c "{code}"')) == "a\nb\nc"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("printf 'a\\033[31mred\\033[0m'", "ared"),
        ("printf '\\033]0;title\\007x'", "x"),
        ("printf '\\033]8;;http://x\\033\\\\link\\033]8;;\\033\\\\'", "link"),
        ("printf 'a\\033]b\\nc\\033\\\\d'", "ab\ncd"),
        ("printf '\\033(Bx\\033=y'", "xy"),
        ("printf '\\302\\2331mx'", "x"),
        ("printf 'H\\bHE\\bE'", "HE"),
        ("printf '10%%\\r20%%\\r30%%\\n'", "30%"),
        ("printf 'a\\nb 1\\rb 2\\rb 3\\nc\\n'", "a\nb 3\nc"),
        ("printf 'busy\\rdone\\r'", "done"),
        ("printf 'a\\r\\nb\\r\\n'", "a\r\nb\r"),
        ("printf 'no newline'", "no newline"),
        ("printf '\\n'", ""),
        ("printf 'caf\\351'", "caf\\xe9"),
        ("printf 'a\\000b'", "a\\x00b"),
        ("printf '\\360\\237\\216\\211'", "🎉"),
        ("true", "(no output)"),
    ],
)
def test_output_is_shown_clean(command: str, expected: str, sh: Sh) -> None:
    assert said(sh(command)) == expected


def test_a_failure_is_no_error_result_and_tells_its_status(sh: Sh) -> None:
    outcome = sh("echo a; false")
    assert not outcome.failed
    assert outcome.text == "a\n\n[exit 1]"


def test_a_signal_is_named(sh: Sh) -> None:
    assert "[exit 137, SIGKILL]" in sh("bash -c 'kill -9 $$'").text


def test_a_new_directory_is_told_once(sh: Sh) -> None:
    assert "[cwd /]" in sh("cd /").text
    assert "cwd" not in sh("true").text


def test_long_output_keeps_head_tail_and_errors_and_lies_in_a_file(sh: Sh) -> None:
    outcome = sh("seq 1 40000; echo 'src/x.c:3: error: broken'; seq 40001 80000")
    text = outcome.text
    assert text.startswith("1\n2\n3\n")
    assert text.endswith("79999\n80000\n")
    assert "40001: src/x.c:3: error: broken" in text
    assert len(text) <= 30_000
    path = Path(outcome.structured["file"])
    whole = path.read_text().split("\n")
    assert len(whole) == 80_002
    assert outcome.structured["truncated"] is True
    first = int(re.search(r"offset=(\d+)", text)[1])  # type: ignore[index]  # it must be there
    assert whole[first - 2] in text.split("[truncated")[0].split("\n")
    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


@pytest.mark.parametrize("most", [200, 2_000, 5_000, 30_000])
def test_an_answer_is_never_longer_than_asked_for(most: int, sh: Sh) -> None:
    outcome = sh("head -c 300000 /dev/zero | tr '\\0' 'x'; echo; seq 10000", {"max_output": most})
    assert len(outcome.text) <= most + 300
    assert "truncated" in outcome.text


def test_a_long_line_without_an_end_is_cut_between_characters(sh: Sh) -> None:
    text = sh("for i in {1..9}; do printf '漢%.0s' {1..30000}; done").text
    assert "\\x" not in text
    assert "�" not in text


def test_huge_output_takes_little_memory(sh: Sh) -> None:
    sh("true")
    before = resident_mb()
    outcome = sh("yes 'a line of a log' | head -c 300000000", timeout=100_000)
    assert resident_mb() - before < 60
    assert os.path.getsize(outcome.structured["file"]) == 64 * 1024 * 1024
    assert "the first 67108864 bytes" in outcome.text


def resident_mb() -> float:
    """The memory of this process."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmRSS:")[1].split()[0]) / 1024


@given(
    st.lists(st.binary(max_size=30), max_size=30).map(b"\n".join),
    st.integers(1, 20),
)
@settings(deadline=None)
def test_however_output_is_cut_into_pieces_it_looks_the_same(data: bytes, size: int) -> None:
    def shown(pieces: list[bytes]) -> str:
        output = Output(10_000, lambda: os.devnull)
        for piece in pieces:
            output.add(piece)
        output.end()
        return output.text(lambda text: text)

    assert shown([data[at : at + size] for at in range(0, len(data), size)]) == shown([data])


@given(st.text(alphabet="ab\r\n", max_size=60))
def test_folding_leaves_no_line_that_was_written_over(text: str) -> None:
    lines = folded(text.encode()).decode().replace("\r\n", "\n").split("\n")
    assert not any("\r" in line.rstrip("\r") for line in lines)


def test_folding_a_long_line_takes_no_longer_than_reading_it() -> None:
    assert folded(b"x" * 10_000_000 + b"\r\n") == b"x" * 10_000_000 + b"\r\n"


@given(st.text(max_size=80))
def test_plain_text_is_a_fixed_point(text: str) -> None:
    once = plain(text.replace("\x08", ""))
    assert "\x1b[" not in plain(once)


@pytest.mark.parametrize(
    "text", ["}", "a\n}", "a; }", "a; }\\\n", "a;}", "}<x", "$(", "a <(b)", "f() {\na\n}"]
)
def test_a_text_that_could_get_out_of_its_group_is_seen(text: str) -> None:
    assert not is_plain(text)


@pytest.mark.parametrize("text", ["", "true", "${x}", "a}", "echo {}", "((1))", "{a,b}", "'$ ('"])
def test_a_plain_text_is_not_looked_at_twice(text: str) -> None:
    assert is_plain(text)


# -- nothing asks ------------------------------------------------------------------------------------

ASKING = {
    "cat": "cat; echo $?",
    "read": "read x; echo $?",
    "read from the terminal": "read x </dev/tty; echo $?",
    "python": "python3; echo $?",
    "a password by python": "python3 -c 'import getpass; getpass.getpass()' ; echo $?",
    "git over https": "git ls-remote https://user@localhost:1/x.git; echo $?",
    "git commit without a message": "git init -q r; cd r; git commit --allow-empty; echo $?",
    "git log": "git init -q r; cd r; git -c user.name=a -c user.email=b commit --allow-empty -qm m; git log",
    "sudo": "sudo -k true; sudo -n true; echo $?",
    "ssh": "ssh -o ConnectTimeout=1 localhost -p 1; echo $?",
    "passwd": "passwd </dev/null; echo $?",
    "less": "seq 1000 | less | tail -1",
    "more": "seq 1000 | more | tail -1",
    "man": "man bash | head -1; echo $?",
    "vi": "vi x; echo $?",
    "ed": "ed; echo $?",
    "top": "top; echo $?",
    "an editor by name": "$EDITOR x; $VISUAL x; $GIT_EDITOR x; echo $?",
    "bash": "bash; sh; echo $?",
    "bash -i": "bash -i; echo $?",
    "mesg": "mesg; tty; echo $?",
    "select": "select x in a b; do :; done; echo $?",
    "apt": "apt-get --help >/dev/null; echo $?",
    "bc": "bc; echo $?",
    "xargs": "xargs echo; echo $?",
}


@pytest.mark.parametrize("what", ASKING)
def test_nothing_waits_for_an_answer(what: str, sh: Sh) -> None:
    outcome = sh(ASKING[what])
    assert not outcome.failed, outcome.text
    assert said(sh("echo alive")).endswith("alive")


def test_a_command_has_no_terminal(sh: Sh) -> None:
    assert said(sh("(: </dev/tty) 2>/dev/null || echo none; ps -o tty= -p $$")) == "none\n?"


@pytest.mark.parametrize("text", ["", "one line\n", "no end", "é\n" * 70_000, "a\0b"])
def test_input_is_read_from_stdin(text: str, sh: Sh) -> None:
    assert said(sh("wc -c", input=text)) == str(len(text.encode()))


def test_input_is_there_for_one_command_only(sh: Sh) -> None:
    assert said(sh("cat", input="a")) == "a"
    assert said(sh("cat")) == "(no output)"


def test_a_cancelled_call_never_starts(make_call: Callable[..., Call], tmp_path: Path) -> None:
    call = make_call(tmp_path)
    call.cancel()
    assert bash.call({"command": "touch x"}, call).code == "CANCELLED"
    assert not (tmp_path / "x").exists()
    close()


def test_time_is_told_when_it_is_long(sh: Sh) -> None:
    began = time.monotonic()
    outcome = sh("sleep 1.1")
    assert time.monotonic() - began >= 1.1
    assert re.search(r"\[\d+\.\d s\]", outcome.text)
