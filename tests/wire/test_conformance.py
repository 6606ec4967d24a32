"""Runs the conformance statement against real processes, and against the core cut into pieces."""

import json
import subprocess
import sys
from importlib.util import find_spec
from itertools import groupby
from pathlib import Path
from typing import Any

import pytest

from tests.wire.conformance import STATEMENT
from tests.wire.official import RESULTS, faults
from tests.wire.peer import peer
from tests.wire.script import (
    HANDSHAKE,
    STATELESS,
    End,
    Hear,
    Row,
    Say,
    Target,
    answer,
    initialize,
    notify,
)
from tests.wire.session import Core, Heard, Process

Json = Any

HERE = Path(__file__).parent
PEER = Target(
    "peer",
    (sys.executable, str(HERE / "peer.py")),
    "Peer",
    {"do": "echo"},
    {"do": "echo", "times": "x"},
)
TOOLS = [
    Target(module, (sys.executable, "-m", module), name, good, bad)
    for module, name, good, bad in (
        ("toolroll_ls", "LS", {"path": "."}, {"path": 5}),
        ("toolroll_view", "View", {"file_path": "page.txt"}, {"file_path": 5}),
        (
            "toolroll_edit",
            "Edit",
            {"file_path": "page.txt", "old_string": "page", "new_string": "page!"},
            {"file_path": 5},
        ),
        ("toolroll_bash", "Bash", {"command": "true"}, {"command": 5}),
        ("toolroll_glob", "GlobTool", {"pattern": "*"}, {"pattern": 5}),
        ("toolroll_grep", "GrepTool", {"pattern": "page"}, {"pattern": 5}),
        ("toolroll_dispatch_agent", "dispatch_agent", {"prompt": "page"}, {"prompt": 5}),
        ("toolroll_replace", "Replace", {"file_path": "new.txt", "content": "x"}, {"content": 5}),
    )
    if find_spec(f"{module}.__main__")
]
ROWS = [row for rows in STATEMENT.values() for row in rows]
VERSION_KEY = "io.modelcontextprotocol/protocolVersion"


class Play:
    """One row being played with one session."""

    def __init__(self, row: Row, target: Target, revision: str, session: Process | Core) -> None:
        self.row = row
        self.target = target
        self.revision = revision
        self.session = session
        self.asked: dict[
            str, tuple[str, str]
        ] = {}  # id -> the method and the revision it was asked in
        self.texts: dict[str, bytes] = {}  # id -> the answer

    def play(self) -> None:
        """Say and hear everything, then end the session; nothing may be left to be heard."""
        if self.revision in HANDSHAKE and not self.row.fresh:
            self._say(initialize(self.revision, key="handshake"))
            self._hear([answer("handshake", protocolVersion=self.revision)])
            self._say(notify("notifications/initialized"))
        for _, steps in groupby(self.row.script, type):
            self._take([*steps])
        if End() not in self.row.script:
            self.session.end(self.row.end)
        if self.row.end != "deaf":
            assert [heard.value for heard in self.session.rest()] == []
        assert len({self._without_id(key) for key in self.row.alike}) <= 1

    def _take(self, steps: list[Say | Hear | End]) -> None:
        """Steps of one kind."""
        self._hear([step for step in steps if isinstance(step, Hear)])
        for step in steps:
            if isinstance(step, Say):
                self._say(step)
            elif isinstance(step, End):
                self.session.end(self.row.end)

    def _without_id(self, key: Json) -> bytes:
        text = json.dumps(key)
        return self.texts[text].replace(f'"id":{text}'.encode(), b"", 1)

    def _say(self, step: Say) -> None:
        self._note(step.body(self.target, self.revision))
        self.session.say(step.render(self.target, self.revision))

    def _note(self, body: bytes) -> None:
        """Remember what is asked under which id, for the schema of the result."""
        try:
            value = json.loads(body)
        except (ValueError, RecursionError):
            return
        for one in value if isinstance(value, list) else [value]:
            if isinstance(one, dict) and "method" in one and one["method"] in RESULTS:
                own = STATELESS[0] if VERSION_KEY in str(one.get("params")) else HANDSHAKE[-1]
                spoken = own if self.revision in STATELESS else self.revision
                self.asked[json.dumps(one.get("id"))] = one["method"], spoken

    def _hear(self, wanted: list[Hear]) -> None:
        """Hear as many messages, each wanted by one of these."""
        while wanted:
            heard = self.session.hear()
            assert heard is not None, f"the server has ended instead of saying {wanted[0].pattern}"
            found = next((one for one in wanted if self._is_wanted(one, heard)), None)
            assert found, f"heard {heard.value}, not {wanted[0].pattern}"
            wanted.remove(found)
            self._check(heard)

    def _is_wanted(self, one: Hear, heard: Heard) -> bool:
        filled = Hear(self.target.fill(one.pattern), one.boxed)
        return filled.takes(heard.value, heard.boxed, self.row.no_id(self.revision))

    def _check(self, heard: Heard) -> None:
        for value in heard.value if isinstance(heard.value, list) else [heard.value]:
            key = json.dumps(value.get("id"))
            self.texts[key] = heard.text
            method, revision = self.asked.get(key, ("", self.revision))
            if value.get("id", 0) is not None:  # JSON-RPC's null id, which no schema of MCP allows
                assert faults(value, revision, method) == []


def cases(rows: list[Row], every_revision: bool) -> list[Any]:
    """The rows in each of their revisions, or in the newest of each era, as parameters of a test."""
    return [
        pytest.param(row, revision, id=f"{row.statement} [{revision}]")
        for row in rows
        for revision in (row.eras if every_revision else newest(row.eras))
    ]


def newest(eras: tuple[str, ...]) -> tuple[str, ...]:
    """What a process is tried in; how revisions differ is the core's affair, which is tried in all."""
    handshakes = [revision for revision in eras if revision in HANDSHAKE]
    return (*handshakes[-1:], *(revision for revision in eras if revision in STATELESS))


def every_tools(rows: list[Row]) -> list[Row]:
    """The rows that any tool can play."""
    return [row for row in rows if not row.peer]


def play_with_process(row: Row, target: Target, revision: str, folder: Path) -> None:
    (folder / "page.txt").write_text("a page\n")
    command = (*target.command, "--rate", "off", *row.options)
    with Process(command, folder, row.environ) as process:
        Play(row, target, revision, process).play()
        assert process.status() == 0
        aside = process.aside()
        assert row.stderr in aside
        assert "Traceback" not in aside or "BugError" in row.stderr


@pytest.mark.parametrize(("row", "revision"), cases(ROWS, every_revision=False))
def test_a_server_process_conforms(row: Row, revision: str, tmp_path: Path) -> None:
    play_with_process(row, PEER, revision, tmp_path)


@pytest.mark.parametrize(("row", "revision"), cases(every_tools(ROWS), every_revision=False))
def test_a_whole_tool_conforms(row: Row, revision: str, tmp_path: Path) -> None:
    play_with_process(row, TOOLS[0], revision, tmp_path)


@pytest.mark.parametrize("target", TOOLS[1:], ids=lambda target: target.tool)
@pytest.mark.parametrize(
    ("row", "revision"),
    cases(
        every_tools([*STATEMENT["Tools"], *STATEMENT["End of the process"]]), every_revision=False
    ),
)
def test_every_tool_conforms_where_it_has_a_say(
    row: Row, revision: str, target: Target, tmp_path: Path
) -> None:
    if target.tool == "dispatch_agent" and "before the end of input" in row.statement:
        pytest.skip(
            "ten tasks start forty servers: more than the grace has time for when it is busy"
        )
    play_with_process(row, target, revision, tmp_path)


@pytest.mark.parametrize("piece_bytes", [1, 1 << 20])
@pytest.mark.parametrize(
    ("row", "revision"), cases([row for row in ROWS if row.pure], every_revision=True)
)
def test_the_core_conforms_however_the_bytes_are_cut(
    row: Row, revision: str, piece_bytes: int, tmp_path: Path
) -> None:
    core = Core(peer, tmp_path, {"structured": "--structured" in row.options}, piece_bytes)
    Play(row, PEER, revision, core).play()
    assert core.closed


def test_every_statement_stands_once() -> None:
    statements = [row.statement for row in ROWS]
    assert len({*statements}) == len(statements)


def test_the_page_about_the_wire_holds_the_current_statement() -> None:
    script = HERE.parents[1] / "scripts" / "protocol_table.py"
    done = subprocess.run(
        [sys.executable, str(script), "--check"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "")
