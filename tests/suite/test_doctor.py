"""`toolroll doctor`: what it finds out by starting every tool."""

import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.conftest import ERAS
from tests.suite.conftest import Done
from toolroll import __version__
from toolroll_suite.installed import installed

Toolroll = Callable[..., Done]


@pytest.fixture
def zipapps(tmp_path: Path) -> Path:
    """A directory with a program for every tool, under the names that `--pyz` asks for."""
    folder = tmp_path / "dist"
    folder.mkdir()
    for one in installed():
        (folder / f"{one.program}.pyz").symlink_to(one.command)
    return folder


def test_every_installed_tool_works_in_both_eras(toolroll: Toolroll, project: Path) -> None:
    done = toolroll("doctor")
    assert done.returncode == 0, done.stdout
    for one in installed():
        (line,) = [text for text in done.stdout.splitlines() if f"✓ {one.tool.name} " in text]
        assert f"{one.program} {__version__}" in line
        assert all(re.search(rf"{era}: \d+ ms", line) for era in ERAS)
    assert re.search(r"✓ Bash .*ban mode (kernel|shims)", done.stdout)
    assert f"Allowed roots: {project}" in done.stdout
    assert f"{len(installed())} of {len(installed())} work." in done.stdout
    assert "\033" not in done.stdout


def test_tools_that_do_not_work_are_told_with_the_reason(toolroll: Toolroll, zipapps: Path) -> None:
    (zipapps / "toolroll-ls.pyz").unlink()
    other = zipapps / "toolroll-view.pyz"
    other.unlink()
    other.symlink_to(zipapps / "toolroll-grep.pyz")
    broken = zipapps / "toolroll-glob.pyz"
    broken.unlink()
    broken.write_text("#!/bin/sh\necho no luck >&2\nexit 3\n")
    broken.chmod(0o755)
    done = toolroll("doctor", "--pyz", zipapps)
    assert done.returncode == 1
    assert f"{len(installed()) - 3} of {len(installed())} work." in done.stdout
    assert "no luck" in done.stdout
    assert "it offers GrepTool" in done.stdout
    assert "cannot be started" in done.stdout


def test_at_home_it_says_that_a_root_is_missing(toolroll: Toolroll, home: Path) -> None:
    assert "the server needs --root DIR" in toolroll("doctor", folder=home).stdout.replace(
        "\n", " "
    )


def test_a_terminal_gets_colours_unless_it_wants_none(zipapps: Path) -> None:
    assert b"\033[32m" in on_a_terminal(zipapps, {})
    assert b"\033" not in on_a_terminal(zipapps, {"NO_COLOR": "1"})


def on_a_terminal(zipapps: Path, environ: dict[str, str]) -> bytes:
    """What the command prints on a terminal."""
    ours, theirs = pty.openpty()
    environment = {"PATH": os.environ["PATH"], "HOME": "/", "TERM": "xterm", **environ}
    command = [sys.executable, "-m", "toolroll_suite", "doctor", "--pyz", str(zipapps)]
    with subprocess.Popen(command, stdout=theirs, stderr=theirs, env=environment) as process:
        os.close(theirs)
        said = b""
        while piece := _piece(ours):
            said += piece
        assert process.wait(60) == 0, said
    os.close(ours)
    return said


def _piece(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65_536)
    except OSError:  # how Linux tells that nobody has it open any more
        return b""
