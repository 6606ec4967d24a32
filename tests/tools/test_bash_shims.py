"""Bash's shims mode: what it stops without the kernel, and that the shell stays what it is."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import Wire
from tests.tools.bash_server import Hosts, ask, hosts
from tests.tools.test_bash_shell import STATE, said
from toolroll.call import Call
from toolroll.tool import Outcome
from toolroll_bash.policy import Policy
from toolroll_bash.shims import builtins
from toolroll_bash.tool import bash, close

__all__ = ["hosts"]

pytestmark = pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")  # pty.fork, 3.12

Sh = Callable[..., Outcome]


@pytest.fixture
def sh(make_call: Callable[..., Call], tmp_path: Path) -> Iterator[Sh]:
    """`sh(command)`: the outcome of a call in shims mode."""

    def run(command: str) -> Outcome:
        call = make_call(tmp_path, ban_mode="shims")
        return bash.call({"command": command, "timeout": 20_000}, call)

    yield run
    close()


def shimmed(hosts: Hosts, *options: str) -> Wire:
    """A server in shims mode."""
    return hosts.start("--ban-mode", "shims", *options)


# -- what is stopped ---------------------------------------------------------------------------------

STOPPED = {
    "a name that a variable holds": "x=curl; $x",
    "a path that a variable holds": "x=$PWD/bin/curl; $x",
    "one with braces": "x=$PWD/bin/curl; ${x} y",
    "the first word of several": "x='bin/curl -s y'; $x",
    "a pattern": "bin/c?rl",
    "a name in quotes": 'x=rl; ./bin/cu"$x"',
    "behind assignments": "A=1 B=$HOME bin/cu*",
    "behind command": "x=bin/curl; command $x",
    "behind command -p": "x=bin/curl; command -p $x",
    "behind exec": "x=bin/curl; (exec -a ls $x)",
    "a link": "ln -s bin/curl x; ./x",
    "a link on PATH": "mkdir d; ln -s $PWD/bin/curl d/x; PATH=$PATH:$PWD/d; x",
    "a hashed name": "hash -p bin/c?rl x; x",
    "in a function": "f() { x=bin/curl; $x; }; f",
    "in a subshell": "(x=bin/curl; $x)",
    "in a substitution": "x=bin/curl; echo $($x)",
    "in a pipeline": "x=bin/curl; : | $x",
    "in a job": "x=bin/curl; $x & wait",
    "behind another PATH": "PATH=$PWD/bin:$PATH; x=curl; $x",
    "started by another program": "x=curl; env $x",
    "started by a script": "printf 'cu''rl\\n' >f; sh f",
}


@pytest.mark.parametrize("way", STOPPED)
def test_a_banned_program_is_stopped(way: str, hosts: Hosts) -> None:
    wire = shimmed(hosts)
    text = ask(wire, STOPPED[way])
    assert "curl may not be run here" in text
    assert "stopped by policy (ban mode shims): curl" in text
    assert not hosts.ran.read_text()
    assert "policy" not in ask(wire, "plain")
    assert hosts.ran.read_text() == "plain\n"


@pytest.mark.parametrize("word", ["curl", "bin/curl", "command bin/curl", "command curl"])
def test_a_stopped_program_fails_with_126(word: str, hosts: Hosts) -> None:
    text = ask(shimmed(hosts), f"x='{word}'; eval '$x; echo $?; $x || echo failed'")
    assert "\n126\n" in text
    assert "\nfailed\n" in text


def test_only_what_is_approved_starts(hosts: Hosts) -> None:
    (hosts.folder / "names").write_text("plain\nsh\n")
    wire = shimmed(hosts, "--allow-only", str(hosts.folder / "names"))
    text = ask(wire, "x=plain; $x; x=wget; $x; x=bin/wget; $x; x=ls; $x; x=bin/plain; $x")
    assert hosts.ran.read_text() == "plain\nplain\n"
    assert "shims): wget]" in text


def test_a_stop_in_a_job_is_told_with_the_next_answer(hosts: Hosts) -> None:
    wire = shimmed(hosts)
    ask(wire, "mkfifo go gone; (read <go; x=bin/curl; $x 2>/dev/null; : >gone) &")
    with (hosts.folder / "go").open("w") as go:
        go.write("\n")
    with (hosts.folder / "gone").open() as gone:
        assert not gone.read()
    assert ask(wire, "true").endswith("[stopped meanwhile by policy (ban mode shims): curl]")


def test_a_new_shell_has_shims_too(hosts: Hosts) -> None:
    wire = shimmed(hosts)
    ask(wire, "exit")
    assert "shims): curl" in ask(wire, "x=bin/curl; $x")


# -- the shell stays what it is ----------------------------------------------------------------------


@pytest.mark.parametrize("what", [name for name in STATE if name != "set -x"])
def test_state_persists_between_calls(what: str, sh: Sh) -> None:
    first, second, expected = STATE[what]
    sh(first)
    assert said(sh(second)) == expected


SAME = {
    "the status": ("false; echo $?; (exit 7); echo $?", "1\n7"),
    "the last argument": ("true a b; echo $_", "b"),
    "positional parameters": ("set -- 1 2; echo $1 $#; echo $@", "1 2\n1 2"),
    "a match": ("[[ abc =~ b(.) ]]; echo ${BASH_REMATCH[1]}", "c"),
    "set -e": ("(set -e; true; x=y; [[ $x ]]; false; echo no); echo $?", "1"),
    "set -u": ("set -u; x=1; echo $x; set +u", "1"),
    "set -f": ("set -f; echo *.none; ec''ho *.none; set +f", "*.none\n*.none"),
    "a trap on ERR": ("trap 'echo err' ERR; true; false; trap - ERR", "err"),
    "IFS": ("IFS=x; a=1x2; printf '%s ' $a; unset IFS; echo", "1 2 "),
    "an expansion with an effect": ("i=1; echo $((i++)); ${x:=echo} $i", "1\n2"),
    "a substitution with an effect": ("$(echo x >>f; echo cat) f", "x"),
    "a function": ("f() { return 3; }; f; echo $?", "3"),
    "a word with spaces": ("mkdir 'a b'; cp $(type -P echo) 'a b/c'; 'a b/c' in it", "in it"),
    "a look": ("command -v curl >/dev/null; echo $?; type -t plain-nothing", "0"),
    "a user's command": ('command() { builtin command "$@"; }; command echo mine', "mine"),
    "a long command": (f"x='{'a' * 300_000}'; echo ${{#x}}", "300000"),
    "options in $-": ("[[ $- == *T* ]] && echo traced", "traced"),
}


@pytest.mark.parametrize("what", SAME)
def test_nothing_is_changed_for(what: str, sh: Sh) -> None:
    command, expected = SAME[what]
    assert said(sh(command)).rstrip("\n") == expected.rstrip("\n")


def test_a_trap_on_debug_holds_to_the_end_of_its_call(sh: Sh) -> None:
    assert "at echo one\none" in sh("trap 'echo at $BASH_COMMAND' DEBUG\necho one").text
    assert "at echo two" not in sh("echo two").text


# -- builtins ----------------------------------------------------------------------------------------


def test_builtins_are_disabled_but_for_those_we_need() -> None:
    first, after = builtins(Policy(["alias", "curl", "eval", "compgen"]))
    assert first.split() == ["enable", "-n", "alias", "compgen;"]
    assert after == "unalias -a; "
    assert builtins(Policy(["curl", "eval"])) == ("", "")


def test_strange_names_are_banned_as_far_as_it_goes(hosts: Hosts) -> None:
    names = ("..", "-x", "a;b", "$(x)", "é", ".")
    wire = shimmed(hosts, *(word for name in names for word in ("--ban", name)))
    (hosts.bin / "é").symlink_to("plain")
    (hosts.bin / "a;b").symlink_to("plain")
    text = ask(wire, "x=é; $x; x='a;b'; $x")
    assert "shims): é, a;b" in text
    assert not hosts.ran.read_text()


def test_the_folder_of_shims_goes_with_the_session(hosts: Hosts) -> None:
    wire = shimmed(hosts)
    place = ask(wire, "echo ${PATH%%:*}").split("\n")[0]
    assert os.path.islink(f"{place}/curl")
    wire.close()
    assert not os.path.exists(place)
