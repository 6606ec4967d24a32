"""The smallest server on the official Python SDK: a tool that lists a directory, one that says it again."""

import os

from mcp.server.mcpserver import MCPServer

server = MCPServer("peer")


@server.tool()
def LS(path: str) -> str:  # noqa: N802 - the tool's name on the wire
    """List a directory."""
    return "\n".join(sorted(os.listdir(path)))


@server.tool()
def Echo(text: str) -> str:  # noqa: N802 - the tool's name on the wire
    """Say it again."""
    return text


server.run()
