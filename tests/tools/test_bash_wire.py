"""Bash over the wire: the real server, each way it can end, and that no process is left of it."""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolroll_bash.tree import below, processes

Json = Any
Start = Callable[..., Any]
WAIT_S = 20.0

LEAVING = (
    "sleep 301 & nohup sleep 302 >/dev/null 2>&1 & (setsid sleep 303 &) ; "
    "bash -c 'trap \"\" INT TERM HUP; while :; do sleep 1; done' & "
    "python3 -c '\nimport os,time\nif os.fork() == 0:\n os.setsid()\n if os.fork() == 0: time.sleep(304)\n"
    " os._exit(0)'; echo started"
)
"""A job, a nohup job, a process in a session of its own, one that ignores all, a daemon."""


def until(true: Callable[[], object]) -> bool:
    """True as soon as it holds, False when it does not come to hold."""
    deadline = time.monotonic() + WAIT_S
    while time.monotonic() < deadline:
        if true():
            return True
        time.sleep(0.01)
    return False


def family(wire: Any) -> set[int]:
    """All processes below the server."""
    return {one.pid for one in below(wire.process.pid, processes())}


def text_of(result: Json) -> str:
    """The text of a result."""
    text: str = result["content"][0]["text"]
    return text


@pytest.fixture
def server(wire: Start, tmp_path: Path) -> Iterator[Any]:
    """A Bash server with its temp folder in the test's own."""
    (tmp_path / "tmp").mkdir()
    python = os.environ.get("PYTHONPATH", "")
    environ = {"TMPDIR": str(tmp_path / "tmp"), "PYTHONPATH": python}
    started = wire("toolroll_bash", "--root", tmp_path, environ=environ, folder=tmp_path)
    yield started
    with contextlib.suppress(OSError):
        started.close()


def end_input(server: Any) -> None:
    server.end_input()


def interrupt(server: Any) -> None:
    server.process.send_signal(signal.SIGINT)


def terminate(server: Any) -> None:
    server.process.send_signal(signal.SIGTERM)


def kill(server: Any) -> None:
    server.process.kill()


def kill_with_launchers(server: Any) -> None:
    """As a host that signals the server and its children."""
    children = [one.pid for one in processes().values() if one.parent == server.process.pid]
    for pid in (*children, server.process.pid):
        os.kill(pid, signal.SIGTERM)


WAYS = [end_input, interrupt, terminate, kill, kill_with_launchers]


@pytest.mark.parametrize("busy", [False, True])
@pytest.mark.parametrize("way", WAYS)
def test_however_the_server_ends_nothing_is_left(
    way: Callable[[Any], None], busy: bool, server: Any, tmp_path: Path
) -> None:
    server.open()
    for session in ("main", "other"):
        assert "started" in text_of(server.call("Bash", command=LEAVING, session=session))
    if busy:
        arguments = {"command": "touch on; sleep 305 | cat", "session": "main"}
        server.post("tools/call", {"name": "Bash", "arguments": arguments})
        assert until((tmp_path / "on").exists)
    pids = family(server)
    assert len(pids) >= 14
    way(server)
    assert server.process.wait(WAIT_S) == (-signal.SIGKILL if way is kill else 0)
    assert until(lambda: not pids & set(processes()))
    assert until(lambda: not list((tmp_path / "tmp").glob("*/*")))


def test_a_session_over_the_wire_keeps_its_state(server: Any) -> None:
    server.open()
    server.call("Bash", command="x=1; cd /")
    assert text_of(server.call("Bash", command="echo $x; pwd")) == "1\n/\n"


def test_stdin_of_a_command_is_never_the_wire(server: Any) -> None:
    server.open()
    assert text_of(server.call("Bash", command="cat; wc -c </dev/stdin")) == "0\n"


def test_other_requests_are_answered_while_a_command_runs(server: Any, tmp_path: Path) -> None:
    server.open()
    number = server.post(
        "tools/call", {"name": "Bash", "arguments": {"command": "mkfifo p; cat p"}}
    )
    assert until((tmp_path / "p").exists)
    assert "result" in server.request("ping")
    (tmp_path / "p").write_text("go")
    answer = server.read()
    assert answer["id"] == number
    assert text_of(answer["result"]) == "go"


def test_a_cancelled_command_is_gone_and_the_server_goes_on(server: Any, tmp_path: Path) -> None:
    server.open()
    server.call("Bash", command="true")
    before = family(server)
    number = server.post(
        "tools/call", {"name": "Bash", "arguments": {"command": "touch on; sleep 300"}}
    )
    assert until((tmp_path / "on").exists)
    note = {"requestId": number, "reason": "test"}
    server.send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": note})
    assert "cancelled" in text_of(server.call("Bash", command="echo next"))
    assert until(lambda: family(server) == before)


def test_progress_is_reported_when_asked_for(server: Any) -> None:
    server.open()
    params = {"name": "Bash", "arguments": {"command": "echo step; sleep 3.5"}}
    server.request("tools/call", {**params, "_meta": {"progressToken": "t"}})
    notes = [note["params"] for note in server.notes if note["method"] == "notifications/progress"]
    assert notes
    assert "step" in notes[0]["message"]


def test_a_call_read_before_the_end_of_input_is_answered(server: Any) -> None:
    server.open()
    server.post("tools/call", {"name": "Bash", "arguments": {"command": "echo last"}})
    server.end_input()
    assert text_of(server.read()["result"]) == "last\n"
    assert server.process.wait(WAIT_S) == 0


def test_a_fork_storm_ends_with_the_server(server: Any) -> None:
    server.open()
    command = "f() { while sleep 0.01; do (sleep 300 &) ; done; }; f & f & f & echo on"
    assert "on" in text_of(server.call("Bash", command=command))
    assert until(lambda: len(family(server)) > 20)
    session = {one.session for one in processes().values() if one.pid in family(server)}
    server.process.kill()
    server.process.wait(WAIT_S)
    assert until(lambda: not any(one.session in session for one in processes().values()))


def one_shot(*words: str, folder: Path) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "toolroll_bash", *words],
        capture_output=True,
        text=True,
        cwd=folder,
        check=False,
        timeout=WAIT_S,
        stdin=subprocess.DEVNULL,
    )


def test_a_one_shot_call_prints_the_text(tmp_path: Path) -> None:
    done = one_shot("--call", "command=echo hi; pwd", folder=tmp_path)
    assert (done.returncode, done.stdout) == (0, f"hi\n{tmp_path}\n")


def test_a_one_shot_call_tells_the_status_in_json(tmp_path: Path) -> None:
    done = one_shot("--call", "--json", "command=false", folder=tmp_path)
    assert done.returncode == 0
    assert re.search(r'"exit_code": ?1\b', done.stdout)


def test_a_one_shot_call_of_a_tool_error_exits_1(tmp_path: Path) -> None:
    done = one_shot("--call", "command=sleep 9", "background=true", folder=tmp_path)
    assert done.returncode == 1


def test_a_bad_option_exits_2(tmp_path: Path) -> None:
    done = one_shot("--cwd", "/nonexistent", folder=tmp_path)
    assert done.returncode == 2
    assert "/nonexistent" in done.stderr
