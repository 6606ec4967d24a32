"""The servers of an agent's tools: which are started, how, and what of them a model is offered."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from toolroll.call import Call
from toolroll_dispatch_agent.commands import INSIDE, added, check_options, own
from toolroll_dispatch_agent.servers import Tools

Json = Any
FOREIGN = Path(__file__).parent / "foreign_server.py"
READS = [f"mcp_far_{name}" for name in ("dump", "gather", "crash_once", "hang", "long")]
OWN = ["View", "GlobTool", "GrepTool", "LS"]


@pytest.fixture
def tools(make_call: Callable[..., Call], tmp_path: Path) -> Iterator[Callable[..., Tools]]:
    """`tools(option=...)`: the tools of a task in the test's folder, closed with it."""
    made: list[Tools] = []

    def make(**options: Json) -> Tools:
        named = {name.replace("_", "-"): value for name, value in options.items()}
        made.append(Tools(str(tmp_path), named, make_call(tmp_path)))
        return made[-1]

    yield make
    for one in made:
        one.close()


def names(tools: Tools) -> list[str]:
    return [one["function"]["name"] for one in tools.schemas()]


def configuration(folder: Path, servers: Json) -> str:
    path = folder / "servers.json"
    path.write_text(json.dumps({"mcpServers": servers}))
    return str(path)


def far(folder: Path, **fields: Json) -> Json:
    return {"command": sys.executable, "args": [str(FOREIGN), str(folder)], **fields}


def test_nothing_is_started_before_it_is_needed(tools: Callable[..., Tools]) -> None:
    made = tools()
    assert not any(server.alive for server in made._servers)
    assert names(made) == OWN
    assert all(server.alive for server in made._servers)


def test_a_structured_result_is_there_beside_the_text(
    tools: Callable[..., Tools], tmp_path: Path
) -> None:
    (tmp_path / "a.py").write_text("one\n")
    outcome = tools().call("GrepTool", {"pattern": "one"})
    assert outcome.structured["results"][0]["line"] == 1
    assert "1: one" in outcome.text
    assert not outcome.failed


def test_an_error_of_a_tool_keeps_its_code(tools: Callable[..., Tools]) -> None:
    outcome = tools().call("View", {"file_path": "nothing"})
    assert outcome.failed
    assert outcome.code == "NOT_FOUND"


def test_only_tools_that_read_are_taken_from_others(
    tools: Callable[..., Tools], tmp_path: Path
) -> None:
    path = configuration(tmp_path, {"far": far(tmp_path)})
    assert names(tools(mcp_servers=path)) == [*OWN, *READS]
    assert names(tools(mcp_servers=path, allow_writes=True)) == [*OWN, *READS, "mcp_far_scribble"]


ODD = """
import json, sys
sys.path.insert(0, sys.argv[1])
import foreign_server as far
tool = {"name": "dump", "inputSchema": {"type": "object"}, "annotations": json.loads(sys.argv[3])}
failed = {"content": [{"type": "text", "text": "failed"}], "isError": True, "_meta": ["odd"]}
far.tools = lambda: [tool]
far.texts = lambda key, text: far.say(id=key, result=failed)
far.main(sys.argv[2])
"""


def odd(folder: Path, annotations: Json) -> str:
    """A server with one tool of these annotations, which fails with a `_meta` that is no object."""
    words = ["-c", ODD, str(FOREIGN.parent), str(folder), json.dumps(annotations)]
    return configuration(folder, {"far": far(folder, args=words)})


WRONG: list[Json] = [["readOnlyHint"], "readOnlyHint", 7, {"readOnlyHint": "false"}, None]


@pytest.mark.parametrize("annotations", WRONG)
def test_only_a_true_hint_counts_and_a_wrong_one_breaks_nothing(
    annotations: Json, tools: Callable[..., Tools], tmp_path: Path
) -> None:
    path = odd(tmp_path, annotations)
    assert names(tools(mcp_servers=path)) == OWN
    assert names(tools(mcp_servers=path, allow_writes=True)) == [*OWN, "mcp_far_dump"]


def test_a_code_in_a_wrong_place_is_no_code(tools: Callable[..., Tools], tmp_path: Path) -> None:
    made = tools(mcp_servers=odd(tmp_path, {"readOnlyHint": True}))
    outcome = made.call("mcp_far_dump", {})
    assert (outcome.text, outcome.code) == ("failed", "EXECUTION_ERROR")


def test_our_own_servers_unpack_where_the_agent_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("TOOLROLL_CACHE", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    assert own({}, "/srv", ["/srv"])[0].environment == {INSIDE: "1"}
    cache = {"TOOLROLL_CACHE": str(tmp_path), "XDG_CACHE_HOME": "/var/cache"}
    for name, value in cache.items():
        monkeypatch.setenv(name, value)
    assert all(one.environment == {**cache, INSIDE: "1"} for one in own({}, "/srv", ["/srv"]))
    assert added({"mcp-servers": "far"})[0].environment == {INSIDE: "1"}


def test_names_fit_what_providers_take(tools: Callable[..., Tools], tmp_path: Path) -> None:
    path = configuration(tmp_path, {"fär away" + "y" * 80: far(tmp_path)})
    assert names(tools(mcp_servers=path))[4:] == [f"mcp_f_r_away{'y' * 52}"]


def test_a_server_has_its_own_environment_folder_and_time(
    tools: Callable[..., Tools], tmp_path: Path
) -> None:
    (tmp_path / "elsewhere").mkdir()
    fields = {"env": {"COLOUR": "red"}, "cwd": str(tmp_path / "elsewhere"), "timeout": "200ms"}
    made = tools(mcp_servers=configuration(tmp_path, {"far": far(tmp_path, **fields)}))
    dumped = json.loads(made.call("mcp_far_dump", {}).text)
    assert (dumped["COLOUR"], dumped[INSIDE]) == ("red", "1")
    started = json.loads((tmp_path / "environment").read_text())
    assert started["folder"] == str(tmp_path / "elsewhere")
    assert made.call("mcp_far_hang", {}).code == "TIMEOUT"


TIMES = [(None, 30.0), (5, 5.0), (60_000, 60.0), ("2m", 120.0), (0.5, 0.5)]


@pytest.mark.parametrize(("given", "seconds"), TIMES)
def test_a_timeout_may_be_written_as_in_the_hosts_files(
    given: Json, seconds: float, tmp_path: Path
) -> None:
    path = configuration(tmp_path, {"far": {"command": "far", "timeout": given}})
    assert added({"mcp-servers": path})[0].timeout_s == seconds


def test_the_reference_systems_list_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    commands = added({"mcp-servers": "./A;./B -flag x; ;C"})
    assert [command.words for command in commands] == [
        [f"{tmp_path}/A"],
        [f"{tmp_path}/B", "-flag", "x"],
        ["C"],
    ]
    assert [command.name for command in commands] == ["A", "B", "C"]


REFUSED = {
    "a path upwards": "../A",
    "a path upwards inside": "/usr/bin/../A",
    "an agent": "/usr/bin/toolroll-dispatch-agent",
    "an agent as a module": "python -m toolroll_dispatch_agent",
    "the same name twice": "./A;/b/A",
    "a file that is not there": "nothing.json",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_what_is_not_to_be_started_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        check_options({"mcp-servers": text})


FILES = {
    "no JSON": "{",
    "no servers": "{}",
    "no command": '{"mcpServers": {"far": {"args": []}}}',
    "an empty command": '{"mcpServers": {"far": {"command": ""}}}',
    "arguments that are no list": '{"mcpServers": {"far": {"command": "x", "args": "y"}}}',
    "a number among arguments": '{"mcpServers": {"far": {"command": "x", "args": [1]}}}',
    "no time": '{"mcpServers": {"far": {"command": "x", "timeout": true}}}',
}


@pytest.mark.parametrize("content", FILES.values(), ids=FILES)
def test_a_file_that_cannot_be_meant_is_refused(content: str, tmp_path: Path) -> None:
    path = tmp_path / "servers.json"
    path.write_text(content)
    with pytest.raises(ValueError, match="--mcp-servers"):
        added({"mcp-servers": str(path)})


def test_a_program_for_a_tool_may_not_lie_upwards() -> None:
    with pytest.raises(ValueError, match="must not contain"):
        check_options({"view-path": "../view"})


def test_a_server_turned_off_in_the_file_is_left_out(tmp_path: Path) -> None:
    path = configuration(tmp_path, {"far": {"command": "far", "disabled": True}})
    assert added({"mcp-servers": path}) == []


def test_tools_are_the_commands_beside_the_agents_own(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("toolroll-dispatch-agent", "toolroll-view"):
        (tmp_path / name).write_text("")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setattr(sys, "argv", [str(tmp_path / "toolroll-dispatch-agent")])
    view, glob, *_ = own({"glob-path": "/opt/glob"}, "/srv", ["/srv"])
    assert view.words[:3] == [str(tmp_path / "toolroll-view"), "--root", "/srv"]
    assert glob.words[0] == "/opt/glob"
    monkeypatch.setattr(sys, "argv", ["/nowhere/__main__.py"])
    assert own({}, "/srv", ["/srv"])[0].words[:4] == [sys.executable, "-P", "-m", "toolroll_view"]


def test_a_module_in_the_tasks_folder_is_not_run(
    tools: Callable[..., Tools], tmp_path: Path
) -> None:
    for name in ("toolroll_ls", "os", "posixpath"):
        (tmp_path / f"{name}.py").write_text(f"open({str(tmp_path / 'ran')!r}, 'w')\n")
    made = tools()
    assert not made.call("LS", {"path": "."}).failed
    assert not (tmp_path / "ran").exists()


def test_an_agent_under_another_name_is_not_offered(
    tools: Callable[..., Tools], tmp_path: Path
) -> None:
    fields = {"env": {"CALLED": "toolroll-dispatch-agent"}}
    made = tools(mcp_servers=configuration(tmp_path, {"far": far(tmp_path, **fields)}))
    assert names(made) == OWN
    assert made.problems == ["far is left out: it is an agent itself"]


def test_an_agent_does_not_start_inside_an_agent(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "toolroll_dispatch_agent", "--call", "prompt=x"],
        env={**os.environ, INSIDE: "1"},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
        timeout=30,
    )
    assert done.returncode == 2
    assert "an agent is not started by an agent" in done.stderr
