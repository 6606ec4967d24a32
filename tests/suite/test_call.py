"""`toolroll call`: one call through a real server, for people and scripts."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.suite.conftest import Done

Toolroll = Callable[..., Done]


def test_the_answers_text_is_printed(toolroll: Toolroll, project: Path) -> None:
    (project / "a.txt").write_text("one\ntwo\n")
    words = toolroll("call", "View", "file_path=a.txt", "limit=1")
    assert words.returncode == 0, words.stderr
    assert words.stdout.startswith("1\tone\n[line 1 of 2")
    as_json = json.dumps({"file_path": "a.txt", "limit": 1})
    assert toolroll("call", "view", as_json).stdout == words.stdout
    assert toolroll("call", "toolroll-view", "-", stdin=as_json).stdout == words.stdout


def test_an_error_is_printed_too_and_the_exit_code_is_one(toolroll: Toolroll) -> None:
    done = toolroll("call", "View", "file_path=gone")
    assert done.returncode == 1
    assert done.stdout.startswith("Error [NOT_FOUND]: 'gone'")


@pytest.mark.parametrize("words", [["file_path"], ["{"], ["-"], ["[]"]])
def test_arguments_that_are_none_are_a_wrong_command_line(
    toolroll: Toolroll, words: list[str]
) -> None:
    done = toolroll("call", "View", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert "toolroll: " in done.stderr


def test_roots_are_passed_on(toolroll: Toolroll, project: Path) -> None:
    (project / "in").mkdir()
    (project / "in/a.txt").write_text("x\n")
    assert toolroll("call", "ls", "path=.", "--root", "in").stdout.startswith("a.txt")
    assert "OUTSIDE_ROOTS" in toolroll("call", "--root", "in", "ls", f"path={project}").stdout


def test_a_server_that_does_not_start_is_an_error_with_what_it_said(toolroll: Toolroll) -> None:
    done = toolroll("call", "ls", "path=.", "--root", "gone")
    assert (done.returncode, done.stdout) == (1, "")
    assert "gone" in done.stderr


def test_a_call_has_the_callers_own_environment(toolroll: Toolroll) -> None:
    done = toolroll("call", "bash", "command=echo $GREETING", GREETING="hello")
    assert done.stdout.strip() == "hello"
