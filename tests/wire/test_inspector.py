"""MCP Inspector's command line against a real server; runs where the Inspector is installed.

npm install --prefix DIR @modelcontextprotocol/inspector@2.12.0
TOOLROLL_INSPECTOR=DIR/node_modules/.bin/mcp-inspector make test
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

Json = Any

INSPECTOR = os.environ.get("TOOLROLL_INSPECTOR") or shutil.which("mcp-inspector")
PEER = Path(__file__).with_name("peer.py")

pytestmark = [
    pytest.mark.skipif(
        not INSPECTOR, reason="neither TOOLROLL_INSPECTOR nor PATH has mcp-inspector (needs Node)"
    ),
    pytest.mark.parametrize("era", ["legacy", "auto"]),
]


def inspect(folder: Path, era: str, method: str, *words: str) -> tuple[int, Json]:
    """The Inspector's exit status and what it printed."""
    server = {"type": "stdio", "command": sys.executable, "args": [str(PEER)]}
    config = folder / "mcp.json"
    config.write_text(json.dumps({"mcpServers": {"peer": server}}))
    fixed = ["--cli", "--config", str(config), "--server", "peer", "--protocol-era", era]
    command = [str(INSPECTOR), *fixed, "--method", method, *words]
    environ = {**os.environ, "MCP_INSPECTOR_SECRET_STORE": "memory"}
    done = subprocess.run(command, env=environ, capture_output=True, timeout=60, check=False)
    return done.returncode, json.loads(done.stdout or "null")


def call(folder: Path, era: str, **arguments: str) -> tuple[int, Json]:
    words = ("--tool-name", "Peer", "--tool-args-json", json.dumps(arguments))
    return inspect(folder, era, "tools/call", *words)


def test_the_inspector_lists(era: str, tmp_path: Path) -> None:
    status, seen = inspect(tmp_path, era, "tools/list")
    assert (status, [tool["name"] for tool in seen["tools"]]) == (0, ["Peer"])


def test_the_inspector_calls(era: str, tmp_path: Path) -> None:
    status, seen = call(tmp_path, era, do="echo", text="é")
    assert (status, seen["isError"], seen["content"]) == (0, False, [{"type": "text", "text": "é"}])


def test_the_inspector_sees_a_failure(era: str, tmp_path: Path) -> None:
    status, seen = call(tmp_path, era, do="fail", text="x")
    assert (status, seen["isError"], seen["_meta"]["toolroll/code"]) == (5, True, "NOT_FOUND")
