"""dispatch_agent with a scripted model on loopback: real servers of tools, real sockets, no network."""

import contextlib
import json
import os
import signal
import stat
import sys
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.tools import model_server as play
from tests.tools.model_server import Act, Handler, ModelServer, Request
from toolroll.tool import Outcome
from toolroll_dispatch_agent import task
from toolroll_dispatch_agent.tool import dispatch_agent

pytest.importorskip("openai", reason="the extra toolroll[agent] is not installed")

Json = Any
Ask = Callable[..., Outcome]
WAIT_S = 20.0
KEY = "sk-Zk81PqLw93xTn5Vb"
OTHER_KEY = "AIza-7Hq2Rm48Ns01Lp"
FOREIGN = Path(__file__).parent / "foreign_server.py"
SOURCE = "import os\n\n\ndef find(name):\n    return os.path.join('/srv', name)\n"


@pytest.fixture(autouse=True)
def _no_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key or model of whoever runs the tests."""
    for name in list(os.environ):
        if name.endswith(("_API_KEY", "_TOKEN")) or name.startswith(("TOOLROLL_", "OPENAI_")):
            monkeypatch.delenv(name)
    monkeypatch.setenv("NO_PROXY", "127.0.0.1")


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A folder with two files."""
    folder = tmp_path / "project"
    (folder / "src").mkdir(parents=True)
    (folder / "src/app.py").write_text(SOURCE)
    (folder / "README.md").write_text("# Shop\n")
    return folder


@pytest.fixture
def ask(make_call: Callable[..., Any], answer: Callable[..., Outcome], project: Path) -> Ask:
    """`ask(server, ...)`: the outcome of a task; `report` takes its progress, all else is an option."""

    def run(
        server: ModelServer, prompt: str = "Where is find?", path: str = ".", **options: Json
    ) -> Outcome:
        named = {"agent_base_url": server.address, "agent_model": "m", **options}
        call = make_call(project, environ=os.environ, **named)
        return answer(dispatch_agent, call, prompt=prompt, path=path)

    return run


def foreign(folder: Path, **fields: Json) -> str:
    """A configuration file with the foreign server."""
    server = {"command": sys.executable, "args": [str(FOREIGN), str(folder)], **fields}
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": {"far": server}}))
    return str(path)


def until(true: Callable[[], object]) -> bool:
    """True as soon as it holds, False when it does not come to hold."""
    deadline = monotonic() + WAIT_S
    while not true():
        if monotonic() > deadline:
            return False
        sleep(0.01)
    return True


SEARCH = play.call(("GrepTool", {"pattern": "def find"}))
REPORT = play.say("It is defined in src/app.py:4.")


# -- a task as it should go ----------------------------------------------------------------------------


def test_a_task_ends_in_a_report_whose_places_are_checked(ask: Ask, model: Any) -> None:
    server = model(SEARCH, play.say("In `src/app.py:4`, not in src/none.py:1 or src/app.py:99."))
    outcome = ask(server)
    assert not outcome.failed
    report, _, facts = outcome.text.rpartition("\n")
    assert report == (
        "In `src/app.py:4` ✓, not in src/none.py:1 ✗ (no such file) or "
        "src/app.py:99 ✗ (it has 5 lines)."
    )
    assert facts.startswith(
        "[status: done · citations verified: 1 of 3 · 2 turns · 1 call · 220 tokens · model m · "
    )
    assert "4: def find(name):" in server.requests[1].results[0]
    assert outcome.structured["citations"][0] == {"path": "src/app.py", "line": 4, "verified": True}
    assert [
        outcome.structured[name] for name in ("status", "turns", "calls", "tokens", "model")
    ] == [
        "done",
        2,
        1,
        220,
        "m",
    ]


def test_the_model_is_offered_the_four_tools(ask: Ask, model: Any) -> None:
    server = model(REPORT)
    ask(server)
    offered = [one["function"] for one in server.requests[0].body["tools"]]
    assert [one["name"] for one in offered] == ["View", "GlobTool", "GrepTool", "LS"]
    assert offered[0]["parameters"]["required"] == ["file_path"]
    assert [one["role"] for one in server.requests[0].messages] == ["system", "user"]


def test_a_report_without_places_is_said_to_have_none(ask: Ask, model: Any) -> None:
    outcome = ask(model(play.say("It is somewhere.")))
    assert "cites no path:line, so nothing in it was checked" in outcome.text
    assert "citations verified: 0 of 0" in outcome.text


def test_tools_are_confined_to_the_path_of_the_task(ask: Ask, model: Any, project: Path) -> None:
    outside = play.call(
        ("View", {"file_path": "../README.md"}), ("View", {"file_path": str(project / "README.md")})
    )
    server = model(outside, play.say("app.py:1 and ../README.md:1"))
    outcome = ask(server, path="src")
    assert all("OUTSIDE_ROOTS" in text for text in server.requests[1].results)
    assert "app.py:1 ✓ and ../README.md:1 ✗ (outside the task's directory)" in outcome.text
    assert f"paths are relative to {project}/src" in outcome.text


def test_what_the_operator_closed_stays_closed_below(
    ask: Ask, model: Any, project: Path, make_call: Any
) -> None:
    server = model(play.call(("View", {"file_path": "app.py"})), play.say("See app.py:1"))
    call = make_call(
        project, deny=[], agent_base_url=server.address, agent_model="m", **{"deny-": None}
    )
    call.options["deny"] = ["/src/app.py"]
    outcome = dispatch_agent.call({"prompt": "Read it", "path": "src"}, call)
    assert "PERMISSION_DENIED" in server.requests[1].results[0]
    assert "app.py:1 ✗ (cannot be read)" in outcome.text


def test_a_path_that_is_no_directory_is_an_error(ask: Ask, model: Any) -> None:
    assert ask(model(REPORT), path="README.md").code == "NOT_A_DIRECTORY"


def test_calls_of_one_turn_run_side_by_side(ask: Ask, model: Any, tmp_path: Path) -> None:
    both = [("mcp_far_gather", {"text": text, "count": 2}) for text in ("one", "two")]
    server = model(play.call(*both), REPORT)
    ask(server, mcp_servers=foreign(tmp_path))
    assert server.requests[1].results == ["one", "two"]


def test_each_step_is_told_to_the_host(ask: Ask, model: Any, make_call: Any, project: Path) -> None:
    server = model(SEARCH, REPORT)
    steps: list[tuple[float, float | None, str]] = []
    call = make_call(
        project,
        report=lambda *step: steps.append(step),
        agent_base_url=server.address,
        agent_model="m",
    )
    dispatch_agent.call({"prompt": "Where?"}, call)
    assert [text for _, _, text in steps] == [
        "turn 1: m",
        'GrepTool {"pattern": "def find"}',
        "turn 2: m",
    ]
    assert [done for done, _, _ in steps] == [1, 2, 3]


def test_a_transcript_holds_the_whole_task(ask: Ask, model: Any, tmp_path: Path) -> None:
    folder = tmp_path / "new" / "transcripts"
    ask(model(SEARCH, REPORT), transcript=str(folder))
    (path,) = folder.iterdir()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert lines[0]["task"]["prompt"] == "Where is find?"
    roles = [line["message"]["role"] for line in lines if "message" in line]
    assert roles == ["user", "assistant", "tool", "assistant"]
    assert lines[-1]["end"]["status"] == "done"


def test_a_transcript_that_cannot_be_written_is_an_error(
    ask: Ask, model: Any, project: Path
) -> None:
    outcome = ask(model(REPORT), transcript=str(project / "README.md" / "below"))
    assert outcome.code == "EXECUTION_ERROR"
    assert "transcript" in outcome.text


# -- models that err -----------------------------------------------------------------------------------


def test_what_a_model_gets_wrong_goes_back_to_it(ask: Ask, model: Any) -> None:
    wrong = play.call(
        ("View", '{"file_path": '),
        ("View", '["src/app.py"]'),
        ("Nothing", {}),
        ("View", {"file": 5}),
        ("View", {"file_path": "src/ap.py"}),
        ("LS", ""),
    )
    server = model(wrong, REPORT)
    outcome = ask(server)
    results = server.requests[1].results
    assert "must be one JSON object" in results[0]
    assert '{"file_path": ' in results[0]
    assert "no object" in results[1]
    assert "there is no tool 'Nothing'. Tools: View, GlobTool, GrepTool, LS." in results[2]
    assert "INVALID_PARAMS" in results[3]
    assert "NOT_FOUND" in results[4]
    assert "'path' is missing" in results[5]
    assert outcome.structured["status"] == "done"


def test_arguments_that_are_no_json_are_not_sent_again(ask: Ask, model: Any) -> None:
    server = model(play.call(("View", "{oh")), REPORT)
    ask(server)
    made = server.requests[1].messages[2]["tool_calls"][0]
    assert made["function"]["arguments"] == "{}"


def test_a_call_goes_back_as_it_came(ask: Ask, model: Any) -> None:
    signed = {"google": {"thought_signature": "c2ln"}}
    server = model(play.call(("LS", {"path": "."}), extra_content=signed), REPORT)
    ask(server)
    assert server.requests[1].messages[2]["tool_calls"][0]["extra_content"] == signed


def test_an_empty_answer_is_asked_for_again(ask: Ask, model: Any) -> None:
    server = model(play.say(""), REPORT)
    outcome = ask(server)
    assert "src/app.py:4 ✓" in outcome.text
    assert server.requests[1].messages[-1]["role"] == "user"


def test_an_answer_that_the_provider_cut_says_so(ask: Ask, model: Any) -> None:
    outcome = ask(model(play.say("See src/app.py:4, and", reason="length")))
    assert "See src/app.py:4 ✓, and\n[truncated: the provider's own limit" in outcome.text


def test_a_refusal_of_the_model_is_its_report(ask: Ask, model: Any) -> None:
    refused = {"role": "assistant", "content": None, "refusal": "I must not."}
    assert "I must not." in ask(model(play.answer(refused, "stop"))).text


def test_what_is_answered_in_parts_is_one_text(ask: Ask, model: Any) -> None:
    parts = [{"type": "text", "text": "See src/"}, {"type": "text", "text": "app.py:4"}]
    assert "See src/app.py:4 ✓" in ask(model(play.answer({"content": parts}, "stop"))).text


def test_tokens_that_are_not_told_are_unknown(ask: Ask, model: Any) -> None:
    outcome = ask(model(play.say("See src/app.py:4", usage=False)))
    assert "tokens unknown" in outcome.text
    assert "tokens" not in outcome.structured


TROUBLES = {
    "429 with Retry-After": play.refuse(429, "slow down", retry_after="0.01"),
    "429 in milliseconds": play.refuse(429, "slow down", retry_after_ms="5"),
    "500": play.refuse(500, retry_after="0"),
    "503 without JSON": play.raw(503, b"<html>busy</html>"),
    "an error under 200": play.raw(200, b'{"error": {"code": 502, "message": "upstream"}}'),
    "a dropped connection": play.drop,
    "a connection dropped in the middle": play.break_off,
}


@pytest.mark.parametrize("trouble", TROUBLES.values(), ids=TROUBLES)
def test_trouble_that_passes_is_not_seen_in_the_report(trouble: Act, ask: Ask, model: Any) -> None:
    server = model(trouble, SEARCH, trouble, REPORT)
    outcome = ask(server)
    assert len(server.requests) == 4
    assert outcome.structured["status"] == "done"
    assert outcome.structured["turns"] == 2


REFUSALS = {
    "a bad key": play.refuse(401, f"Incorrect API key provided: {KEY}"),
    "nothing left to spend": play.refuse(429, "quota", code="insufficient_quota"),
    "a wait longer than the task": play.refuse(429, "later", retry_after="3600"),
    "no such model": play.refuse(404, "no such model"),
}


@pytest.mark.parametrize("refusal", REFUSALS.values(), ids=REFUSALS)
def test_a_refusal_for_good_is_answered_by_lookup(
    refusal: Act, ask: Ask, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TOOLROLL_AGENT_API_KEY", KEY)
    server = model(refusal)
    outcome = ask(server, prompt="Where is `def find` defined?")
    assert len(server.requests) == 1
    assert outcome.structured["status"] == "model_failed"
    assert "No model answered. The model failed: the provider says" in outcome.text
    assert "src/app.py" in outcome.text
    assert KEY not in outcome.text


def test_a_refusal_is_masked_before_it_is_cut(
    ask: Ask, model: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    key = KEY * 50
    monkeypatch.setenv("TOOLROLL_AGENT_API_KEY", key)
    outcome = ask(model(play.refuse(401, f"Incorrect API key provided: {key}")))
    assert "provided: [REDACTED:TOOLROLL_AGENT_API_KEY]" in outcome.text
    assert KEY not in outcome.text


def test_a_model_that_fails_in_the_middle_leaves_its_trace(ask: Ask, model: Any) -> None:
    outcome = ask(model(SEARCH, play.refuse(400, "too long")))
    assert outcome.structured["status"] == "model_failed"
    assert "The model wrote no report. The model failed: the provider says" in outcome.text
    assert 'GrepTool {"pattern": "def find"}' in outcome.text
    assert "4: def find(name):" in outcome.text


# -- limits --------------------------------------------------------------------------------------------


def never_stops(server_calls: int = 1) -> Act:
    """A model that searches for something else in each turn, while it has tools."""

    def act(handler: Handler, request: Request) -> None:
        number = len(request.messages)
        calls = [("GrepTool", {"pattern": f"x{number}_{one}"}) for one in range(server_calls)]
        answer = play.call(*calls) if "tools" in request.body else REPORT
        answer(handler, request)

    return act


LIMITS = {
    "max_turns": ({"max_turns": 3}, never_stops(), 4, 3),
    "max_calls": ({"max_calls": 5}, never_stops(2), 4, 5),
    "repeated": ({"max_repeats": 3}, SEARCH, 4, 2),
}


@pytest.mark.parametrize("status", LIMITS)
def test_at_a_limit_the_model_is_asked_once_more_for_its_report(
    status: str, ask: Ask, model: Any
) -> None:
    options, act, turns, calls = LIMITS[status]

    def without_end(handler: Handler, request: Request) -> None:
        (act if "tools" in request.body else REPORT)(handler, request)

    server = model(without_end)
    outcome = ask(server, **options)
    assert outcome.structured["status"] == status
    assert outcome.structured["turns"] == turns
    assert outcome.structured["calls"] == calls
    assert "src/app.py:4 ✓" in outcome.text
    assert "The work was stopped early." in outcome.text
    assert "tools" not in server.requests[-1].body
    last = server.requests[-1].messages
    made = [one["id"] for message in last for one in message.get("tool_calls", ())]
    answered = [one["tool_call_id"] for one in last if one["role"] == "tool"]
    assert made == answered


def test_a_silent_model_is_left_in_time_for_the_last_turn(ask: Ask, model: Any) -> None:
    server = model(SEARCH, play.wait, REPORT)
    outcome = ask(server, max_seconds=4.0)
    assert outcome.structured["status"] == "max_seconds"
    assert "src/app.py:4 ✓" in outcome.text
    assert server.hung_up.wait(WAIT_S)


def test_a_provider_that_wants_tools_in_the_last_turn_gets_them(ask: Ask, model: Any) -> None:
    server = model(SEARCH, SEARCH, SEARCH, play.refuse(400, "tools are missing"), REPORT)
    outcome = ask(server)
    assert server.requests[-1].body["tool_choice"] == "none"
    assert "src/app.py:4 ✓" in outcome.text


def test_where_the_last_turn_fails_too_the_trace_is_the_report(ask: Ask, model: Any) -> None:
    outcome = ask(model(SEARCH, SEARCH, SEARCH, play.refuse(400)))
    assert outcome.structured["status"] == "repeated"
    assert "The model wrote no report. The same call came 3 times in a row." in outcome.text
    assert "src/app.py  etag" in outcome.text


def test_a_long_result_is_cut(ask: Ask, model: Any, tmp_path: Path) -> None:
    server = model(play.call(("mcp_far_long", {"count": 50_000})), REPORT)
    ask(server, mcp_servers=foreign(tmp_path))
    (result,) = server.requests[1].results
    assert 7_900 < len(result) < 8_200
    assert "truncated" in result


def test_old_results_are_dropped_before_the_context_is_full(
    ask: Ask, model: Any, tmp_path: Path
) -> None:
    acts = [play.call(("mcp_far_long", {"text": letter, "count": 3_000})) for letter in "abcdefgh"]
    server = model(*acts, REPORT)
    ask(server, mcp_servers=foreign(tmp_path), context_tokens=4_000)
    last = server.requests[-1].results
    assert "an old result of 3000 characters was dropped" in last[0]
    assert last[-1] == "h" * 3_000
    sizes = [sum(len(str(one)) for one in request.messages) for request in server.requests]
    assert max(sizes) < 4_000 * 5


# -- secrets -------------------------------------------------------------------------------------------


def test_secrets_in_files_are_masked_before_a_model_sees_them(
    ask: Ask, model: Any, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GEMINI_API_KEY", OTHER_KEY)
    (project / ".env").write_text(f"GEMINI_API_KEY={OTHER_KEY}\n")
    server = model(play.call(("View", {"file_path": ".env"})), play.say(f"{OTHER_KEY} in .env:1"))
    outcome = ask(server, prompt=f"Where is {OTHER_KEY}?", no_redact=True)
    assert "[REDACTED:GEMINI_API_KEY]" in server.requests[1].results[0]
    assert OTHER_KEY not in json.dumps(server.requests[1].body)
    assert OTHER_KEY not in outcome.text


def test_no_key_leaves_the_agent_but_to_its_provider(
    wire: Any, model: Any, project: Path, tmp_path: Path
) -> None:
    server = model(play.call(("mcp_far_dump", {})), play.say("See src/app.py:1."))
    environ = {
        "TOOLROLL_AGENT_BASE_URL": server.address,
        "TOOLROLL_AGENT_MODEL": "m",
        "TOOLROLL_AGENT_API_KEY_CMD": f"printf {KEY[:8]}; printf {KEY[8:]}",
        "OPENAI_API_KEY": OTHER_KEY,
        "OPENAI_CUSTOM_HEADERS": f"X-Other: {OTHER_KEY}\nauthorization: Bearer {OTHER_KEY}",
        "OPENAI_ORG_ID": "org-other",
        "NO_PROXY": "127.0.0.1",
    }
    options = ["--mcp-servers", foreign(tmp_path), "--transcript", tmp_path / "said"]
    options += ["--trace", tmp_path / "trace", "--log-level", "debug"]
    agent = wire("toolroll_dispatch_agent", "--root", project, *options, environ=environ)
    agent.open()
    result = agent.call("dispatch_agent", prompt="Where?")
    assert agent.close() == 0
    written = [path.read_text() for path in (tmp_path / "said").iterdir()]
    seen = [json.dumps(request.body) for request in server.requests]
    seen += [json.dumps(result), (tmp_path / "trace").read_text(), agent.errors, *written]
    seen.append((tmp_path / "environment").read_text())
    assert len(server.requests) == 2
    assert all(KEY not in text and OTHER_KEY not in text for text in seen)
    sent = server.requests[0].headers
    assert sent["authorization"] == f"Bearer {KEY}"
    assert OTHER_KEY not in str(sent)
    assert "org-other" not in str(sent)
    started = json.loads((tmp_path / "environment").read_text())
    assert set(started["environment"]) <= {
        *("HOME", "LANG", "LC_ALL", "LC_CTYPE", "PATH", "SHELL", "TERM", "TMPDIR", "USER"),
        "TOOLROLL_INSIDE_AGENT",
    }
    assert started["folder"] == str(project)


# -- ends ----------------------------------------------------------------------------------------------


def test_a_cancelled_task_lets_go_of_the_model_and_the_server_goes_on(
    wire: Any, model: Any, project: Path
) -> None:
    server = model(play.wait, REPORT)
    environ = {"TOOLROLL_AGENT_BASE_URL": server.address, "TOOLROLL_AGENT_MODEL": "m"}
    agent = wire("toolroll_dispatch_agent", "--root", project, environ=environ).open()
    number = agent.post("tools/call", {"name": "dispatch_agent", "arguments": {"prompt": "Where?"}})
    assert server.waiting.wait(WAIT_S)
    agent.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
    )
    assert server.hung_up.wait(WAIT_S)
    again = agent.call("dispatch_agent", prompt="Where?")
    assert "src/app.py:4 ✓" in again["content"][0]["text"]


def test_a_cancelled_task_ends_its_tools(
    wire: Any, model: Any, project: Path, tmp_path: Path
) -> None:
    server = model(play.call(("mcp_far_hang", {})), REPORT)
    environ = {"TOOLROLL_AGENT_BASE_URL": server.address, "TOOLROLL_AGENT_MODEL": "m"}
    options = ("--root", project, "--mcp-servers", foreign(tmp_path))
    agent = wire("toolroll_dispatch_agent", *options, environ=environ).open()
    number = agent.post("tools/call", {"name": "dispatch_agent", "arguments": {"prompt": "Where?"}})
    assert until((tmp_path / "hanging").exists)
    agent.send(
        {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": number}}
    )
    assert until((tmp_path / "cancelled").exists)
    assert until(lambda: not children(agent.process.pid))
    assert len(server.requests) == 1


def test_an_agent_that_may_write_does_not_say_that_it_only_reads(
    wire: Any, project: Path, tmp_path: Path
) -> None:
    options = ("--root", project, "--mcp-servers", foreign(tmp_path), "--allow-writes")
    (tool,) = (
        wire("toolroll_dispatch_agent", *options).open().request("tools/list")["result"]["tools"]
    )
    assert tool["annotations"]["readOnlyHint"] is False
    assert "changes nothing" not in tool["description"]
    (tool,) = (
        wire("toolroll_dispatch_agent", "--root", project)
        .open()
        .request("tools/list")["result"]["tools"]
    )
    assert tool["annotations"]["readOnlyHint"] is True
    assert "changes nothing" in tool["description"]


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGKILL])
def test_no_server_is_left_when_the_agent_ends(
    number: signal.Signals, wire: Any, model: Any, project: Path
) -> None:
    server = model(SEARCH, play.wait)
    environ = {"TOOLROLL_AGENT_BASE_URL": server.address, "TOOLROLL_AGENT_MODEL": "m"}
    agent = wire("toolroll_dispatch_agent", "--root", project, environ=environ).open()
    agent.post("tools/call", {"name": "dispatch_agent", "arguments": {"prompt": "Where?"}})
    assert server.waiting.wait(WAIT_S)
    servers = children(agent.process.pid)
    assert len(servers) == 4
    agent.process.send_signal(number)
    agent.process.wait(WAIT_S)
    assert until(lambda: not any(map(lives, servers)))
    agent.close()


def children(pid: int) -> list[int]:
    """The processes that a process has started; asked of /proc."""
    found: list[int] = []
    for thread in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(OSError):  # a thread that has ended meanwhile
            found += map(int, (thread / "children").read_text().split())
    return found


def lives(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_tool_server_that_is_killed_is_there_for_the_next_call(ask: Ask, model: Any) -> None:
    def kill_view(handler: Handler, request: Request) -> None:
        (tools,) = task.RUNNING
        view = tools._servers[0]
        assert view._child is not None
        os.kill(view._child._process.pid, signal.SIGKILL)
        play.call(("View", {"file_path": "README.md"}))(handler, request)

    server = model(SEARCH, kill_view, REPORT)
    outcome = ask(server)
    assert "# Shop" in server.requests[2].results[1]
    assert outcome.structured["status"] == "done"


def test_a_call_whose_server_crashes_under_it_is_made_once_more(
    ask: Ask, model: Any, tmp_path: Path
) -> None:
    server = model(play.call(("mcp_far_crash_once", {})), REPORT)
    ask(server, mcp_servers=foreign(tmp_path))
    assert server.requests[1].results == ["alive again"]


def test_a_server_that_cannot_be_started_is_named_and_the_others_work(
    ask: Ask, model: Any, tmp_path: Path
) -> None:
    server = model(SEARCH, REPORT)
    outcome = ask(server, view_path=str(tmp_path / "nothing"))
    offered = [one["function"]["name"] for one in server.requests[0].body["tools"]]
    assert offered == ["GlobTool", "GrepTool", "LS"]
    assert "Not available: toolroll-view cannot be started" in outcome.text
    assert "src/app.py:4 ✓" in outcome.text
