"""The command line of `toolroll` itself: what it says, and when it says that it makes no sense."""

import shutil
import subprocess
from collections.abc import Callable

import pytest

from tests.suite.conftest import Done
from toolroll import __version__
from toolroll_suite.commands import COMMANDS
from toolroll_suite.completion import SHELLS, script
from toolroll_suite.hosts import HOSTS
from toolroll_suite.installed import installed

Toolroll = Callable[..., Done]


def test_help_names_every_command_and_the_version_is_the_suites(toolroll: Toolroll) -> None:
    done = toolroll("--help")
    assert done.returncode == 0
    assert all(f"  toolroll {command.name} " in done.stdout for command in COMMANDS)
    assert toolroll("--version").stdout == f"toolroll {__version__}\n"


@pytest.mark.parametrize("command", COMMANDS, ids=lambda one: one.name)
def test_every_command_explains_itself(toolroll: Toolroll, command: object) -> None:
    name = getattr(command, "name")  # noqa: B009
    done = toolroll(name, "--help")
    assert done.returncode == 0
    assert done.stdout.startswith(f"usage: toolroll {name}")


def test_help_lists_the_hosts(toolroll: Toolroll) -> None:
    words = toolroll("config", "--help").stdout.replace(",", " ").replace(".", " ").split()
    assert {host.name for host in HOSTS} <= set(words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["lits"], "did you mean 'list'?"),
        ([], "there are list, config, doctor, call, demo, completion"),
        (["xyzzy"], "there are list"),
        (["--wirte"], "there is no command '--wirte'"),
        (["config"], "HOST"),
        (["config", "claude", "--wirte"], "--wirte"),
        (["list", "more"], "more"),
        (["completion", "fsh"], "did you mean 'fish'?"),
        (["call", "greptol"], "did you mean 'greptool'?"),
    ],
)
def test_a_command_line_that_makes_no_sense_is_told_so(
    toolroll: Toolroll, words: list[str], said: str
) -> None:
    done = toolroll(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert said in done.stderr


def test_the_list_has_every_tools_names_version_and_purpose(toolroll: Toolroll) -> None:
    lines = toolroll("list").stdout.splitlines()
    for one, line in zip(installed(), lines, strict=True):
        assert line.split(maxsplit=3) == [one.tool.name, one.program, __version__, one.about]


# -- completion --------------------------------------------------------------------------------------


def completed(*words: str) -> list[str]:
    """What bash offers for the last of the words, after it has read the script."""
    code = (
        f"{script('bash', COMMANDS)}\n"
        'COMP_WORDS=("$@") COMP_CWORD=$(($# - 1))\n'
        'complete -p toolroll >/dev/null && { _toolroll; printf "%s\\n" "${COMPREPLY[@]}"; }'
    )
    done = subprocess.run(
        ["bash", "-c", code, "bash", "toolroll", *words],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        cwd="/",
    )
    assert done.stderr == ""
    return done.stdout.split()


def test_bash_completes_commands_hosts_tools_and_options() -> None:
    assert completed("co") == ["config", "completion"]
    assert completed("config", "cl") == ["claude", "claude-desktop"]
    assert completed("config", "claude", "gr") == ["grep"]
    assert completed("config", "claude", "grep", "--r") == ["--root"]
    assert completed("call", "dis") == ["dispatch-agent"]
    assert completed("completion", "") == [*SHELLS, "--help"]
    assert "usr" in completed("config", "claude", "--root", "us")
    assert completed("list", "x") == []


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_that_is_here_takes_its_script(shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not here")
    text = script(shell, COMMANDS)
    done = subprocess.run(
        [program, "-n"], input=text, capture_output=True, text=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize("shell", SHELLS)
def test_a_script_offers_every_command_host_tool_and_option(shell: str) -> None:
    text = script(shell, COMMANDS)
    words = {host.name for host in HOSTS} | {one.short for one in installed()}
    for command in COMMANDS:
        words |= {command.name, *(option.name for option in command.options)}
    assert not {word for word in words if word not in text}
