"""A session of the official Python SDK's 1.x client with the server named on the command line.

Run by test_sdk.py in a process whose PYTHONPATH has that client; prints what it saw as JSON.
"""

import asyncio
import json
import sys
from importlib import import_module
from importlib.metadata import version
from typing import Any

mcp: Any = import_module("mcp")  # by name: the type checker sees the other major version
stdio: Any = import_module("mcp.client.stdio")


async def run(arguments: list[str]) -> dict[str, Any]:
    """What was seen of the server, by what was tried."""
    server = mcp.StdioServerParameters(command=sys.executable, args=arguments)
    async with stdio.stdio_client(server) as pipes, mcp.ClientSession(*pipes) as session:
        greeting = await session.initialize()
        listed = await session.list_tools()
        answer = await session.call_tool("Peer", {"do": "echo", "text": "hi"})
        failed = await session.call_tool("Peer", {"do": "fail", "text": "x"})
        return {
            "client": version("mcp"),
            "revision": greeting.protocolVersion,
            "server": greeting.serverInfo.name,
            "tools": [tool.name for tool in listed.tools],
            "answer": answer.content[0].text,
            "failed": [failed.isError, failed.content[0].text],
            "unknown tool": await refused(session),
            "progress": await steps(session),
            "ping": (await session.send_ping()).model_dump(exclude_none=True),
        }


async def refused(session: Any) -> int:
    """The code with which an unknown tool is refused."""
    try:
        await session.call_tool("Other", {})
    except mcp.McpError as problem:
        return int(problem.error.code)
    return 0


async def steps(session: Any) -> list[float]:
    """The progress that was reported."""
    seen: list[float] = []

    async def note(done: float, *_: object) -> None:
        seen.append(done)

    await session.call_tool("Peer", {"do": "report", "times": 2}, progress_callback=note)
    return seen


if __name__ == "__main__":
    sys.stdout.write(json.dumps(asyncio.run(run(sys.argv[1:]))))
