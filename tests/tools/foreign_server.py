"""An MCP server on nothing but json whose tools do what an agent must bear; knows no agent.

Run with a folder as its argument: there it leaves `environment` at its start.
"""

import json
import os
import sys
import time
from typing import Any

Json = Any

READS = ("dump", "gather", "crash_once", "hang", "long")
WRITES = ("scribble",)


def say(**message: Json) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


def texts(key: Json, text: str) -> None:
    say(id=key, result={"content": [{"type": "text", "text": text}]})


def tools() -> list[Json]:
    names = {**dict.fromkeys(READS, True), **dict.fromkeys(WRITES, False)}
    return [
        {
            "name": name,
            "description": name,
            "inputSchema": {"type": "object"},
            "annotations": {"readOnlyHint": reads},
        }
        for name, reads in names.items()
    ]


def main(folder: str) -> None:
    with open(f"{folder}/environment", "w") as file:
        json.dump({"environment": dict(os.environ), "folder": os.getcwd()}, file)
    waiting: list[tuple[Json, str]] = []
    for line in sys.stdin:
        message = json.loads(line)
        method, key, params = message.get("method"), message.get("id"), message.get("params", {})
        if method == "initialize":
            info = {"name": os.environ.get("CALLED", "foreign"), "version": "1"}
            say(
                id=key,
                result={"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": info},
            )
        elif method == "tools/list":
            say(id=key, result={"tools": tools()})
        elif method == "notifications/cancelled":
            with open(f"{folder}/cancelled", "a") as file:
                file.write("cancelled\n")
        elif method == "tools/call":
            called(folder, key, params["name"], params["arguments"], waiting)
        elif key is not None:
            say(id=key, error={"code": -32601, "message": "Method not found"})


def called(
    folder: str, key: Json, name: str, arguments: Json, waiting: list[tuple[Json, str]]
) -> None:
    """Answer one call, or do not."""
    if name == "dump":
        texts(key, json.dumps(dict(os.environ)))
    elif name == "gather":
        waiting.append((key, str(arguments["text"])))
        while len(waiting) == arguments["count"]:
            for pair in reversed(waiting):
                texts(*pair)
            waiting.clear()
    elif name == "crash_once":
        if not os.path.exists(f"{folder}/crashed"):
            with open(f"{folder}/crashed", "w"):
                os._exit(3)
        texts(key, "alive again")
    elif name == "hang":
        with open(f"{folder}/hanging", "w"):
            time.sleep(0)
    elif name == "long":
        texts(key, str(arguments.get("text", "x")) * int(arguments["count"]))
    elif name == "scribble":
        texts(key, "written")


if __name__ == "__main__":
    main(sys.argv[1])
