"""Servers as real child processes: good ones, foreign ones and bad ones."""

import os
import select
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import run
from threading import Barrier, Thread
from typing import Any

import pytest

from toolroll.errors import ErrorCode, RpcError, ToolError
from toolroll.limits import MESSAGE_BYTES
from toolroll.spawn import CRASHES, Server

WAIT_S = 30.0

OWN = '''
import sys
from toolroll.cli import main
from toolroll.tool import tool

@tool("Echo", title="Echo", read_only=True)
def echo(text: str, call: "Call") -> str:
    """Give a text back."""
    call.progress(1, 2, "half")
    while text == "for ever":
        call.check()
    return text

sys.exit(main(echo))
'''

FOREIGN = '''
from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("foreign", instructions="Be kind.")

@server.tool()
async def echo(text: str, ctx: Context) -> str:
    """Give a text back."""
    await ctx.report_progress(1, 2, "half")
    return text

server.run()
'''

LEGACY = """
import json, os, signal, sys

def say(**message):
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\\n")
    sys.stdout.flush()

def texts(key, text):
    say(id=key, result={"content": [{"type": "text", "text": str(text)}]})

with open("starts", "a") as starts:
    starts.write("start\\n")
mode = sys.argv[1] if len(sys.argv) > 1 else ""
if mode == "stubborn":
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
alive = os.open("alive", os.O_WRONLY | os.O_NONBLOCK) if os.path.exists("alive") else None
waiting, cancelled = [], []
for line in sys.stdin:
    message = json.loads(line)
    method, key, params = message.get("method"), message.get("id"), message.get("params", {})
    if method == "server/discover":
        if mode == "dies":
            sys.exit("I want initialize")
        if mode == "slow":
            slow = key
        elif mode != "deaf":
            say(id=key, error={"code": -32601, "message": "Method not found"})
    elif method == "initialize":
        if mode == "slow":
            say(id=slow, result={"supportedVersions": ["2026-07-28"], "capabilities": {}})
        info = {"name": "legacy", "version": "1"}
        say(id=key, result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info})
    elif method == "notifications/cancelled":
        cancelled.append(params["requestId"])
    elif method == "tools/list":
        page = int(params.get("cursor", 1))
        tools = [{"name": f"tool{page}", "inputSchema": {"type": "object"}}]
        say(id=key, result={"tools": tools, **({"nextCursor": str(page + 1)} if page < 3 else {})})
    elif method == "tools/call":
        name, arguments = params["name"], params["arguments"]
        if name == "echo":
            texts(key, arguments["text"])
        elif name == "here":
            texts(key, json.dumps({"cwd": os.getcwd(), "env": dict(os.environ), "pid": os.getpid()}))
        elif name == "gather":
            waiting.append((key, arguments["text"]))
            while len(waiting) == arguments["count"]:
                for pair in reversed(waiting):
                    texts(*pair)
                waiting = []
        elif name == "ping":
            say(id="s", method="ping")
            texts(key, sys.stdin.readline())
        elif name == "hang":
            print("hanging", file=sys.stderr)
        elif name == "progress":
            token = params["_meta"]["progressToken"]
            for done in range(5000):
                say(method="notifications/progress", params={"progressToken": token, "progress": done})
        elif name == "cancelled":
            texts(key, cancelled)
        elif name == "crash":
            sys.exit("x" * 10_000 + "I crashed")
        elif name == "kill":
            os.kill(os.getpid(), signal.SIGKILL)
        elif name == "deafen":
            os.close(0)
            texts(key, "")
            signal.pause()
        elif name == "mute":
            os.close(1)
            signal.pause()
        elif name == "garbage":
            os.write(1, b"Loading \\xff ...\\n\\n{]\\n")
            texts(key, "fine")
        elif name == "huge":
            texts(key, "x" * arguments["size"])
        elif name == "block":
            while True:
                signal.pause()
        elif name == "child":
            import subprocess
            subprocess.Popen(["sleep", "1000"], pass_fds=[alive])
            texts(key, "")
while mode == "stubborn":
    signal.pause()
"""


@pytest.fixture
def legacy(tmp_path: Path) -> Iterator[Callable[..., Server]]:
    """A server on nothing but json that does on request what servers must not do."""
    script = tmp_path / "legacy.py"
    script.write_text(LEGACY)
    servers: list[Server] = []

    def make(mode: str = "", **settings: Any) -> Server:
        command = [sys.executable, "-I", "-S", str(script), *([mode] if mode else [])]
        servers.append(Server(command, **{"directory": str(tmp_path), **settings}))
        return servers[-1]

    yield make
    for server in servers:
        server.close()


def text(result: dict[str, Any]) -> str:
    block = result["content"][0]
    assert block["type"] == "text"
    return str(block["text"])


def command(tmp_path: Path, source: str) -> list[str]:
    script = tmp_path / "server.py"
    script.write_text(source)
    return [sys.executable, str(script)]


def starts(tmp_path: Path) -> int:
    return (tmp_path / "starts").read_text().count("start")


SILENT = ["sh", "-c", "exec 3> alive; while read line; do echo >&3; done"]
"""A program that reads all it gets and never says anything."""


class Lifeline:
    """Tells when every process that holds the other end of a FIFO has ended."""

    def __init__(self, folder: Path) -> None:
        os.mkfifo(folder / "alive")
        self._fd = os.open(folder / "alive", os.O_RDONLY | os.O_NONBLOCK)

    def is_cut(self) -> bool:
        """True when the last writer is gone; waits for it."""
        poller = select.poll()
        poller.register(self._fd, select.POLLIN)
        while poller.poll(WAIT_S * 1000):
            if not os.read(self._fd, 65_536):
                return True
        return False

    def close(self) -> None:
        os.close(self._fd)


@pytest.fixture
def lifeline(tmp_path: Path) -> Iterator[Lifeline]:
    line = Lifeline(tmp_path)
    yield line
    line.close()


# -- servers as they should be -----------------------------------------------------------------------


SESSIONS = {
    "ours": (OWN, "Echo", "auto", "2026-07-28"),
    "ours, stateless": (OWN, "Echo", "stateless", "2026-07-28"),
    "ours, handshake": (OWN, "Echo", "handshake", "2025-11-25"),
    "official SDK": (FOREIGN, "echo", "auto", "2026-07-28"),
    "official SDK, handshake": (FOREIGN, "echo", "handshake", "2025-11-25"),
}


@pytest.mark.parametrize(("source", "tool", "era", "revision"), SESSIONS.values(), ids=SESSIONS)
def test_a_session_works_in_every_era(
    tmp_path: Path, source: str, tool: str, era: str, revision: str
) -> None:
    reports: list[Any] = []
    with Server(command(tmp_path, source), era=era, directory=str(tmp_path)) as server:
        assert server.revision == revision
        assert server.info["name"] in ("toolroll-echo", "foreign")
        assert server.instructions
        assert [one["name"] for one in server.tools()] == [tool]
        result = server.call(
            tool, {"text": "hello"}, WAIT_S, lambda *report: reports.append(report)
        )
        assert text(result) == "hello"
        assert result["isError"] is False
        assert server.call(tool, {"txt": 1}, WAIT_S)["isError"] is True
    assert reports == [(1, 2, "half")]


def test_an_unknown_tool_is_refused(tmp_path: Path) -> None:
    with Server(command(tmp_path, OWN)) as server, pytest.raises(RpcError) as caught:
        server.call("Nope", {})
    assert caught.value.code == -32602


def test_a_server_starts_at_its_first_use(legacy: Callable[..., Server], tmp_path: Path) -> None:
    server = legacy()
    assert (server.revision, server.info, server.instructions) == ("", {}, "")
    assert not (tmp_path / "starts").exists()
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    assert (server.revision, server.info["name"]) == ("2025-11-25", "legacy")
    assert starts(tmp_path) == 1


def test_all_pages_of_tools_are_listed(legacy: Callable[..., Server]) -> None:
    assert [one["name"] for one in legacy().tools()] == ["tool1", "tool2", "tool3"]


def test_a_servers_ping_is_answered(legacy: Callable[..., Server]) -> None:
    assert '"result":{}' in text(legacy().call("ping", {}))


def test_a_server_gets_a_few_variables_and_the_given_ones_only(
    legacy: Callable[..., Server], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-secret")
    monkeypatch.setenv("PYTHONPATH", "/no/where")
    monkeypatch.setenv("HOME", "/home/of/nobody")
    seen = text(legacy(environment={"MY_OPTION": "5", "TERM": "dumb"}).call("here", {}))
    assert "sk-secret" not in seen
    assert "PYTHONPATH" not in seen
    assert '"HOME": "/home/of/nobody"' in seen
    assert '"MY_OPTION": "5"' in seen
    assert '"TERM": "dumb"' in seen
    assert f'"cwd": "{os.path.realpath(tmp_path)}"' in seen


def test_calls_of_several_threads_run_side_by_side(legacy: Callable[..., Server]) -> None:
    """The server answers only when all have arrived, the last first."""
    server, count = legacy(), 8
    answers: dict[str, str] = {}

    def call(name: str) -> None:
        answers[name] = text(server.call("gather", {"text": name, "count": count}, WAIT_S))

    threads = [Thread(target=call, args=(f"call {number}",)) for number in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert answers == {f"call {number}": f"call {number}" for number in range(count)}


def test_threads_that_come_at_once_start_one_server(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server, gate = legacy(), Barrier(4)

    def call() -> None:
        gate.wait(WAIT_S)
        server.start()

    threads = [Thread(target=call) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(WAIT_S)
    assert starts(tmp_path) == 1


def test_a_message_larger_than_a_pipe_goes_both_ways(legacy: Callable[..., Server]) -> None:
    large = "\u00e9" * 700_000
    assert text(legacy().call("echo", {"text": large}, WAIT_S)) == large


# -- cancelling --------------------------------------------------------------------------------------


def test_a_call_is_cancelled_from_another_thread(legacy: Callable[..., Server]) -> None:
    server = legacy()
    pending = server.begin("hang", {})
    other = Thread(target=pending.cancel)
    other.start()
    with pytest.raises(ToolError) as caught:
        pending.answer(WAIT_S)
    other.join(WAIT_S)
    assert caught.value.code == ErrorCode.CANCELLED
    assert text(server.call("cancelled", {})) == "[3]"


def test_a_tool_of_ours_stops_when_it_is_cancelled(tmp_path: Path) -> None:
    with Server(command(tmp_path, OWN)) as server:
        for _ in range(20):  # more than there are workers
            server.begin("Echo", {"text": "for ever"}).cancel()
        assert text(server.call("Echo", {"text": "hello"}, WAIT_S)) == "hello"


def test_a_timeout_cancels_the_call_and_leaves_the_server(legacy: Callable[..., Server]) -> None:
    server = legacy()
    server.start()
    with pytest.raises(ToolError, match=r"did not answer within 0\.05 s") as caught:
        server.call("hang", {}, timeout_s=0.05)
    assert caught.value.code == ErrorCode.TIMEOUT
    assert text(server.call("cancelled", {})) == "[3]"


def test_a_call_that_is_over_cannot_be_cancelled(legacy: Callable[..., Server]) -> None:
    server = legacy()
    pending = server.begin("echo", {"text": "hello"})
    assert text(pending.answer()) == "hello"
    pending.cancel()
    assert text(server.call("cancelled", {})) == "[]"


def test_a_listener_that_fails_cancels_the_call(legacy: Callable[..., Server]) -> None:
    server = legacy()

    def fail(*_: object) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        server.call("progress", {}, WAIT_S, fail)
    assert text(server.call("cancelled", {})) == "[3]"


# -- servers that fail -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("how", "fate"), [("crash", "ended with status 1"), ("kill", "ended by signal 9")]
)
def test_a_crash_fails_the_call_and_the_next_one_starts_the_server_again(
    legacy: Callable[..., Server], tmp_path: Path, how: str, fate: str
) -> None:
    server = legacy()
    other = server.begin("hang", {})
    with pytest.raises(ToolError, match=fate) as caught:
        server.call(how, {}, WAIT_S)
    assert caught.value.code == ErrorCode.EXECUTION_ERROR
    with pytest.raises(ToolError, match=fate):
        other.answer(WAIT_S)
    assert text(server.call("echo", {"text": "again"})) == "again"
    assert starts(tmp_path) == 2


def test_the_last_words_of_a_server_are_told_in_bounds(legacy: Callable[..., Server]) -> None:
    with pytest.raises(ToolError) as caught:
        legacy().call("crash", {}, WAIT_S)
    assert caught.value.hint.endswith("xxxI crashed")
    assert 4_000 < len(caught.value.hint) < 4_200


def test_a_server_that_only_crashes_is_not_started_for_ever(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy()
    for _ in range(CRASHES + 2):
        with pytest.raises(ToolError, match="ended with status 1"):
            server.call("crash", {}, WAIT_S)
    assert starts(tmp_path) == CRASHES


def test_a_server_that_works_in_between_may_crash_often(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy()
    for number in range(CRASHES + 1):
        assert text(server.call("echo", {"text": "hello"})) == "hello"
        with pytest.raises(ToolError, match="ended with status 1"):
            server.call("crash", {}, WAIT_S)
        assert starts(tmp_path) == number + 1


def test_a_server_that_closes_its_input_is_replaced(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy()
    server.call("deafen", {})
    with pytest.raises(ToolError, match="closed its input or output and was ended"):
        server.call("echo", {"text": "hello"}, WAIT_S)
    assert text(server.call("echo", {"text": "again"})) == "again"
    assert starts(tmp_path) == 2


def test_a_server_that_closes_its_output_is_replaced(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy()
    with pytest.raises(ToolError, match="closed its input or output and was ended"):
        server.call("mute", {}, WAIT_S)
    assert text(server.call("echo", {"text": "again"})) == "again"
    assert starts(tmp_path) == 2


def test_a_server_that_cannot_be_started_says_why(tmp_path: Path) -> None:
    missing = str(tmp_path / "missing")
    for server in (Server([missing]), Server([sys.executable], directory=missing), Server(["\0"])):
        with pytest.raises(ToolError, match="cannot be started") as caught:
            server.start()
        assert caught.value.code == ErrorCode.EXECUTION_ERROR
        server.close()


def test_a_program_that_is_no_server_is_told_with_what_it_said() -> None:
    script = "echo Usage: give me a file; echo bad option >&2; exit 2"
    with pytest.raises(ToolError, match="ended with status 2") as caught:
        Server(["sh", "-c", script]).start()
    assert "bad option" in caught.value.hint
    assert "'Usage: give me a file'" in caught.value.hint


def test_a_program_that_says_nothing_is_ended(tmp_path: Path, lifeline: Lifeline) -> None:
    server = Server(SILENT, directory=str(tmp_path), open_s=0.2, probe_s=0.1)
    with pytest.raises(ToolError, match=r"said nothing within 0\.2 s"):
        server.start()
    assert lifeline.is_cut()


def test_a_server_that_refuses_the_handshake_too_is_ended(
    tmp_path: Path, lifeline: Lifeline
) -> None:
    script = """exec 3> alive; while read line; do
    echo '{"jsonrpc": "2.0", "id": '$((id += 1))', "error": {"code": -32603, "message": "never"}}'
    done"""
    server = Server(["sh", "-c", script], directory=str(tmp_path))
    with pytest.raises(ToolError, match="never"):
        server.start()
    assert lifeline.is_cut()


def test_a_server_that_ends_at_the_probe_is_started_with_the_handshake(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy("dies")
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    assert starts(tmp_path) == 2
    with pytest.raises(ToolError):
        server.call("crash", {}, WAIT_S)
    server.start()
    assert starts(tmp_path) == 3  # what it speaks is known by now


def test_a_server_that_ignores_the_probe_gets_the_handshake(legacy: Callable[..., Server]) -> None:
    server = legacy("deaf", probe_s=0.05)
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    assert server.revision == "2025-11-25"


def test_a_server_that_starts_slowly_is_still_taken_for_what_it_is(
    legacy: Callable[..., Server],
) -> None:
    """It answers the probe only after it has got the handshake."""
    server = legacy("slow", probe_s=0.05)
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    assert server.revision == "2026-07-28"


def test_garbage_on_stdout_is_passed_over(legacy: Callable[..., Server]) -> None:
    assert text(legacy().call("garbage", {})) == "fine"


def test_a_huge_answer_is_refused_and_the_server_goes_on(
    legacy: Callable[..., Server], tmp_path: Path
) -> None:
    server = legacy()
    with pytest.raises(ToolError) as caught:
        server.call("huge", {"size": MESSAGE_BYTES}, WAIT_S)
    assert caught.value.code == ErrorCode.TOO_LARGE
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    assert starts(tmp_path) == 1


def test_calls_to_a_server_that_does_not_read_fail_instead_of_waiting(
    legacy: Callable[..., Server],
) -> None:
    server = legacy()
    server.begin("block", {})
    large = {"text": "x" * (MESSAGE_BYTES - 1000)}
    server.begin("echo", large)
    server.begin("echo", large)
    with pytest.raises(ToolError, match="does not read its input"):
        server.begin("echo", large)
    with pytest.raises(ToolError) as caught:
        server.call("echo", {"text": "hello"}, timeout_s=0.05)
    assert caught.value.code == ErrorCode.TIMEOUT


# -- the end -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["", "stubborn"])
def test_no_process_is_left_when_a_server_is_closed(
    legacy: Callable[..., Server], lifeline: Lifeline, mode: str
) -> None:
    server = legacy(mode)
    server.call("child", {})
    server.close()
    assert lifeline.is_cut()


def test_a_system_without_waitid_ends_servers_too(
    legacy: Callable[..., Server], lifeline: Lifeline, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delattr(os, "waitid")
    server = legacy("stubborn")
    with pytest.raises(ToolError, match="ended by signal 9"):
        server.call("kill", {}, WAIT_S)
    assert text(server.call("echo", {"text": "hello"})) == "hello"
    server.close()
    assert lifeline.is_cut()


def test_closing_ends_what_is_waited_for_and_what_comes_later(
    legacy: Callable[..., Server],
) -> None:
    server = legacy()
    pending = server.begin("block", {})
    server.close()
    server.close()
    for ask in (pending.answer, server.start, server.tools):
        with pytest.raises(ToolError, match="was closed") as caught:
            ask()
        assert caught.value.code == ErrorCode.CANCELLED


def test_closing_cuts_an_opening_short(tmp_path: Path, lifeline: Lifeline) -> None:
    """The program writes to the FIFO when it has read: that is the sign that the opening runs."""
    server = Server(SILENT, directory=str(tmp_path))
    problems: list[ToolError] = []

    def start() -> None:
        with pytest.raises(ToolError) as caught:
            server.start()
        problems.append(caught.value)

    opening = Thread(target=start)
    opening.start()
    assert select.select([lifeline._fd], [], [], WAIT_S)[0]
    server.close()
    opening.join(WAIT_S)
    assert [problem.code for problem in problems] == [ErrorCode.CANCELLED]


def test_a_server_ends_with_a_program_that_forgot_to_close_it(
    tmp_path: Path, lifeline: Lifeline
) -> None:
    (tmp_path / "legacy.py").write_text(LEGACY)
    program = "import sys; from toolroll.spawn import Server; Server(sys.argv[1:]).start()"
    child = [sys.executable, "-c", program, sys.executable, "legacy.py"]
    done = run(child, cwd=tmp_path, timeout=WAIT_S, capture_output=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")
    assert starts(tmp_path) == 1
    assert lifeline.is_cut()


def test_stderr_is_shown_when_that_is_wanted(
    legacy: Callable[..., Server], capfd: pytest.CaptureFixture[str]
) -> None:
    for show in (True, False):
        server = legacy(show_stderr=show)
        server.begin("hang", {})
        server.call("echo", {"text": "hello"})
        server.close()
        assert capfd.readouterr().err == ("hanging\n" if show else "")
