"""The hosts: which file each reads, how a server is written there, and what a user must know.

Verified with real hosts, except Claude Desktop, Cursor, VS Code and Zed: those by their manuals.
Must not know: how a file is changed.
"""

import os
import sys

from toolroll_suite import jsonc, toml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any, Protocol

    Json = Any

    class Language(Protocol):
        """How a host's file is read and spliced."""

        def loads(self, text: str) -> Json:
            """The values of a text."""

        def put(self, text: str, path: tuple[str, ...], value: dict[str, Json]) -> str:
            """The text with a value."""

        def remove(self, text: str, path: tuple[str, ...]) -> str:
            """The text without a value."""


ANYWHERE, HERE, WORKSPACE = "", ".", "${workspaceFolder}"
"""The root of a server when none is named: where the host starts it, which is the project; this
directory, for hosts that start it nowhere in particular; what the host puts in for the project."""


class Server:
    """A server as hosts are told of it; `timeout_s` is what its longest call takes."""

    __slots__ = ("arguments", "command", "name", "timeout_s")

    def __init__(
        self, name: str, command: str, arguments: "Sequence[str]", timeout_s: float
    ) -> None:
        self.name = name
        self.command = command
        self.arguments = list(arguments)
        self.timeout_s = timeout_s

    @property
    def plain(self) -> "dict[str, Json]":
        """What nearly every host wants."""
        return {"command": self.command, "args": self.arguments}


class Host:
    """A host: `file` finds the path, `keys` lead to its servers in it, `entry` writes one of them."""

    __slots__ = ("entry", "file", "keys", "language", "name", "notes", "root", "title")

    def __init__(  # noqa: PLR0913 - a row of the table below
        self,
        name: str,
        title: str,
        file: "Callable[[], str]",
        keys: "Sequence[str]",
        entry: "Callable[[Server], dict[str, Json]]",
        notes: str,
        *,
        root: str = ANYWHERE,
        language: "Language" = jsonc,
    ) -> None:
        self.name = name
        self.title = title
        self.file = file
        self.keys = tuple(keys)
        self.entry = entry
        self.notes = notes
        self.root = root
        self.language = language

    def path(self, server: str) -> tuple[str, ...]:
        """Where a server's entry is."""
        return (*self.keys, server)


def _project(name: str) -> "Callable[[], str]":
    return lambda: os.path.join(os.getcwd(), name)


def _user(name: str, variable: str = "", default: str = "~") -> "Callable[[], str]":
    """A file below the directory that a variable names, if it is set."""

    def path() -> str:
        folder = os.environ.get(variable, "") if variable else ""
        return os.path.join(folder or os.path.expanduser(default), name)

    return path


def _opencode() -> str:
    """The first of the names it reads that is there."""
    of = _user("opencode", "XDG_CONFIG_HOME", "~/.config")()
    names = [os.path.join(of, name) for name in ("opencode.json", "opencode.jsonc")]
    return next((name for name in names if os.path.exists(name)), names[0])


def _desktop() -> str:
    name = "Claude/claude_desktop_config.json"
    if sys.platform == "darwin":
        return _user(name, default="~/Library/Application Support")()
    return _user(name, "XDG_CONFIG_HOME", "~/.config")()


def _codex_entry(server: Server) -> "dict[str, Json]":
    entry = {**server.plain, "required": True}
    if server.timeout_s > 60:  # its own default
        entry["tool_timeout_sec"] = int(server.timeout_s)
    return entry


def _opencode_entry(server: Server) -> "dict[str, Json]":
    return {
        "type": "local",
        "command": [server.command, *server.arguments],
        "enabled": True,
        "timeout": int(server.timeout_s * 1000),
    }


def _typed_entry(server: Server) -> "dict[str, Json]":
    return {"type": "stdio", **server.plain}


def _plain_entry(server: Server) -> "dict[str, Json]":
    return server.plain


def _zed_entry(server: Server) -> "dict[str, Json]":
    return {"source": "custom", **server.plain}


MCP_SERVERS = ("mcpServers",)

HOSTS = (
    Host(
        "claude",
        "Claude Code",
        _project(".mcp.json"),
        MCP_SERVERS,
        _plain_entry,
        "It asks once whether this project's servers may run.",
    ),
    Host(
        "codex",
        "Codex",
        _user("config.toml", "CODEX_HOME", "~/.codex"),
        ["mcp_servers"],
        _codex_entry,
        "It passes on HOME, LANG, PATH, SHELL, TERM, TMPDIR and USER alone; other variables go into "
        "[mcp_servers.NAME.env].",
        language=toml,
    ),
    Host(
        "opencode",
        "opencode",
        _opencode,
        ["mcp"],
        _opencode_entry,
        'Variables go into an entry\'s own "environment".',
    ),
    Host(
        "gemini",
        "Gemini CLI",
        _user(".gemini/settings.json"),
        MCP_SERVERS,
        _plain_entry,
        'It asks before every call, unless an entry says "trust": true.',
    ),
    Host(
        "qwen",
        "Qwen Code",
        _user(".qwen/settings.json"),
        MCP_SERVERS,
        _plain_entry,
        'It asks before every call, unless an entry says "trust": true.',
    ),
    Host(
        "vscode",
        "VS Code",
        _project(".vscode/mcp.json"),
        ["servers"],
        _typed_entry,
        "It asks whether the server is trusted when it is first started.",
        root=WORKSPACE,
    ),
    Host(
        "cursor",
        "Cursor",
        _project(".cursor/mcp.json"),
        MCP_SERVERS,
        _plain_entry,
        "New servers are off until they are switched on in its settings.",
        root=WORKSPACE,
    ),
    Host(
        "claude-desktop",
        "Claude Desktop",
        _desktop,
        MCP_SERVERS,
        _plain_entry,
        "It reads the file when it starts: quit it, and start it again.",
        root=HERE,
    ),
    Host(
        "zed",
        "Zed",
        _user("zed/settings.json", "XDG_CONFIG_HOME", "~/.config"),
        ["context_servers"],
        _zed_entry,
        "The servers show up in the agent panel's settings.",
        root=HERE,
    ),
    Host(
        "inspector",
        "MCP Inspector",
        _project("mcp.json"),
        MCP_SERVERS,
        _typed_entry,
        "mcp-inspector --cli --config mcp.json --server NAME --protocol-era auto --method tools/list",
    ),
)
