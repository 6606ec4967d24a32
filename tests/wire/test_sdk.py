"""The official clients against real servers: Python SDK 2.x in its three modes, and 1.x."""

import json
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import anyio
import pytest
from mcp import Client, StdioServerParameters
from mcp.shared.exceptions import MCPError

from tests.wire.session import PATIENCE_S

Json = Any
Body = Callable[[Client], Awaitable[None]]

HERE = Path(__file__).parent
PEER = StdioServerParameters(command=sys.executable, args=[str(HERE / "peer.py")])
MODES = {"legacy": "2025-11-25", "auto": "2026-07-28", "2026-07-28": "2026-07-28"}
SDK1 = Path(sys.prefix) / "sdk1"


def session(mode: str, body: Body) -> None:
    """Run `body` with a client of that mode, connected to a new server."""

    async def run() -> None:
        with anyio.fail_after(PATIENCE_S):
            async with Client(PEER, mode=mode) as client:
                assert client.protocol_version == MODES[mode]
                await body(client)

    anyio.run(run)


every_mode = pytest.mark.parametrize("mode", MODES)


@every_mode
def test_the_sdk_lists_and_calls(mode: str) -> None:
    async def body(client: Client) -> None:
        listed = await client.list_tools()
        assert [tool.name for tool in listed.tools] == ["Peer"]
        result = await client.call_tool("Peer", {"do": "echo", "text": "é𝄞"})
        assert not result.is_error
        assert [block.model_dump()["text"] for block in result.content] == ["é𝄞"]
        assert result.structured_content is None

    session(mode, body)


@every_mode
def test_the_sdk_sees_failures_as_results_and_unknown_tools_as_errors(mode: str) -> None:
    async def body(client: Client) -> None:
        failed = await client.call_tool("Peer", {"do": "fail", "text": "x"})
        assert failed.is_error
        assert "Error [NOT_FOUND]" in failed.content[0].model_dump()["text"]
        wrong = await client.call_tool("Peer", {"do": "echo", "times": "often"})
        assert wrong.is_error
        with pytest.raises(MCPError) as caught:
            await client.call_tool("Other", {})
        assert caught.value.code == -32602

    session(mode, body)


@every_mode
def test_the_sdk_is_told_of_progress(mode: str) -> None:
    async def body(client: Client) -> None:
        seen: list[tuple[float, float | None, str | None]] = []

        async def note(progress: float, total: float | None, message: str | None) -> None:
            seen.append((progress, total, message))

        result = await client.call_tool(
            "Peer", {"do": "report", "times": 3}, progress_callback=note
        )
        assert not result.is_error
        assert seen == [(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")]

    session(mode, body)


@every_mode
def test_a_call_that_the_sdk_gives_up_is_stopped(mode: str) -> None:
    async def body(client: Client) -> None:
        async with anyio.create_task_group() as group:

            async def began(progress: float, total: float | None, message: str | None) -> None:
                group.cancel_scope.cancel()

            await client.call_tool("Peer", {"do": "hold", "text": "gate"}, progress_callback=began)
        stopped = await client.call_tool("Peer", {"do": "hold", "text": "stopped:gate"})
        assert not stopped.is_error

    session(mode, body)


@every_mode
def test_the_sdk_may_call_side_by_side(mode: str) -> None:
    async def body(client: Client) -> None:
        async with anyio.create_task_group() as group:
            for _ in range(5):
                group.start_soon(client.call_tool, "Peer", {"do": "hold", "text": "gate"})
            await client.call_tool("Peer", {"do": "unlock", "text": "gate"})

    session(mode, body)


@every_mode
def test_the_sdk_finds_structured_answers_to_be_as_declared(mode: str) -> None:
    async def run() -> None:
        structured = StdioServerParameters(command=PEER.command, args=[*PEER.args, "--structured"])
        with anyio.fail_after(PATIENCE_S):
            async with Client(structured, mode=mode) as client:
                await client.list_tools()  # so that the client checks against the schema
                result = await client.call_tool("Peer", {"do": "echo", "text": "hi"})
                assert result.structured_content == {"result": "hi", "size": 2, "ratio": 1.0}

    anyio.run(run)


def test_sdk_1_lists_calls_and_is_told_of_progress() -> None:
    if not SDK1.is_dir():
        pytest.skip(f"{SDK1} is missing; `make env` puts the SDK's 1.x client there")
    done = subprocess.run(
        [sys.executable, str(HERE / "sdk1_session.py"), *PEER.args],
        env={**os.environ, "PYTHONPATH": str(SDK1)},
        capture_output=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.returncode == 0, done.stderr.decode()
    seen = json.loads(done.stdout)
    assert seen.pop("client").startswith("1.")
    assert seen == {
        "revision": "2025-11-25",
        "server": "toolroll-peer",
        "tools": ["Peer"],
        "answer": "hi",
        "failed": [True, "Error [NOT_FOUND]: 'x' is not here. Look elsewhere."],
        "unknown tool": -32602,
        "progress": [1, 2],
        "ping": {},
    }
