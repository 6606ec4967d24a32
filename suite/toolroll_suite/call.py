"""`toolroll call`: one call of a tool the whole way through MCP, for people and scripts."""

import os

from toolroll import cli
from toolroll.spawn import Server
from toolroll.stdio import say
from toolroll_suite.installed import chosen, installed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any


def run(asked: "Mapping[str, Any]") -> int:
    """Print the answer's text; 1 when it is an error.

    The server is started with the whole environment: this is a person's call, not a host's.

    Raises: UsageError, ToolError, RpcError.
    """
    (one,) = chosen([asked["TOOL"]], installed())
    arguments = cli.arguments(one.tool, asked["ARGUMENT"])
    command = [one.command, *(word for root in asked["root"] for word in ("--root", root))]
    with Server(command, name=one.program, environment=os.environ, show_stderr=True) as server:
        result = server.call(one.tool.name, arguments, one.timeout_s)
    say("\n".join(block.get("text", f"({block['type']})") for block in result["content"]))
    return 1 if result["isError"] else 0
