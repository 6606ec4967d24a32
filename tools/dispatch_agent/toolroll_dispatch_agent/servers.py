"""The tools of one task: servers started at first use, all at once, and ended with it.

Knows no model: a tool is called by its name, and what comes back is safe to show.
"""

from concurrent.futures import ThreadPoolExecutor
from threading import Lock, Thread
from time import monotonic

from toolroll.errors import ErrorCode, RpcError, ToolError
from toolroll.limits import WORKERS
from toolroll.spawn import Server
from toolroll.tool import Outcome
from toolroll_dispatch_agent.commands import ME, OWN, Command, added, own

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Self

    from toolroll.call import Call
    from toolroll.guard import Guard
    from toolroll.spawn import Pending

    Json = Any

NAME_CHARS = 64
"""Longest name of a function in the chat-completions API."""


class Offered:
    """A tool of a running server under the name a model calls it by."""

    __slots__ = ("command", "definition", "name", "read_only", "server")

    def __init__(self, command: Command, server: Server, definition: "dict[str, Json]") -> None:
        self.command = command
        self.server = server
        self.definition = definition
        self.read_only = _member(definition, "annotations", "readOnlyHint") is True
        self.name = definition["name"] if command.tool else _prefixed(command, definition["name"])

    @property
    def schema(self) -> "dict[str, Json]":
        """The tool as the chat-completions API describes functions."""
        function = {
            "name": self.name,
            "description": self.definition.get("description") or "",
            "parameters": self.definition["inputSchema"],
        }
        return {"type": "function", "function": function}


class Tools:
    """What an agent may call, confined to the directory `root`.

    `problems` says what is missing and why, once anything was asked for.  Results are masked by
    `guard`, the call's own unless another is given.  No call waits beyond `deadline` (monotonic).
    """

    def __init__(
        self, root: str, options: "Mapping[str, Json]", call: "Call", guard: "Guard | None" = None
    ) -> None:
        """Raises: ValueError for `--mcp-servers` that cannot be read."""
        self.root = root
        self.problems: list[str] = []
        self.deadline = float("inf")
        self._writes = bool(options.get("allow-writes"))
        self._call = call
        self._guard = guard or call.guard
        self._commands = [*own(options, root, call.roots.folders), *added(options)]
        self._servers = [self._server(command) for command in self._commands]
        self._offered: dict[str, Offered] | None = None
        self._pending: set[Pending] = set()
        self._opening = Lock()
        self._closed = False

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def schemas(self) -> "list[dict[str, Json]]":
        """All tools, as the chat-completions API describes functions.

        Raises: ToolError as `call`.
        """
        return [offered.schema for offered in self._all().values()]

    def call(self, name: str, arguments: "dict[str, Json]") -> Outcome:
        """The outcome of one call; whatever goes wrong with it is an outcome too.

        A server that crashes is started again, and a call that only reads made once more.

        Raises: ToolError CANCELLED, or EXECUTION_ERROR when none of our own servers can be started.
        """
        offered = self._all().get(name)
        if offered is None:
            names = ", ".join(self._all())
            problem = ToolError(
                ErrorCode.INVALID_PARAMS, f"there is no tool '{name}'", f"Tools: {names}"
            )
            return self._failure(problem)
        try:
            return self._outcome(self._answer(offered, arguments))
        except RpcError as refusal:
            return self._failure(ToolError(ErrorCode.EXECUTION_ERROR, refusal.message))
        except ToolError as problem:
            self._call.check()
            return self._failure(problem)

    def stop(self) -> None:
        """End what runs, without waiting for it; from any thread."""
        Thread(target=self.close, name="stop", daemon=True).start()

    def close(self) -> None:
        """End all servers; return when they are gone."""
        self._closed = True
        for pending in list(self._pending):
            pending.cancel()
        together(Server.close, self._servers)

    # -- servers -----------------------------------------------------------------------------------

    def _server(self, command: Command) -> Server:
        return Server(
            command.words,
            name=command.name,
            environment=command.environment,
            directory=command.directory or self.root,
        )

    def _all(self) -> dict[str, Offered]:
        """What can be called by name; the first time, all servers are started.

        Raises: ToolError.
        """
        with self._opening:
            if self._offered is None:
                self._offered = self._open()
        return self._offered

    def _open(self) -> dict[str, Offered]:
        """Raises: ToolError."""
        offered: dict[str, Offered] = {}
        for tools in together(self._tools, zip(self._commands, self._servers, strict=True)):
            for tool in tools:
                if offered.setdefault(tool.name, tool) is not tool:
                    self.problems.append(f"a second tool called {tool.name} is left out")
        self._call.check()
        if not OWN.keys() & offered.keys():
            raise ToolError(ErrorCode.EXECUTION_ERROR, "; ".join(self.problems))
        return offered

    def _tools(self, pair: tuple[Command, Server]) -> list[Offered]:
        """What a server offers and may be called; empty, with a problem noted, when it cannot start."""
        command, server = pair
        try:
            tools = [Offered(command, server, one) for one in server.tools(command.timeout_s)]
        except (ToolError, RpcError) as problem:
            self.problems.append(self._guard.clean(str(problem)).text)
            return []
        if server.info.get("name") == ME:
            self.problems.append(f"{command.name} is left out: it is an agent itself")
            return []
        if command.tool:
            return [tool for tool in tools if tool.name == command.tool]
        return [tool for tool in tools if tool.read_only or self._writes]

    # -- calls -------------------------------------------------------------------------------------

    def _answer(self, offered: Offered, arguments: "dict[str, Json]") -> "dict[str, Json]":
        """The result of tools/call.

        Raises: ToolError or RpcError.
        """
        try:
            return self._ask(offered, arguments)
        except ToolError:
            if self._closed or offered.server.alive or not offered.read_only:
                raise
            return self._ask(offered, arguments)

    def _ask(self, offered: Offered, arguments: "dict[str, Json]") -> "dict[str, Json]":
        """Raises: ToolError or RpcError."""
        pending = offered.server.begin(offered.definition["name"], arguments)
        self._pending.add(pending)
        try:
            if self._closed:  # meanwhile
                pending.cancel()
            left_s = max(self.deadline - monotonic(), 0.0)
            result: dict[str, Json] = pending.answer(min(offered.command.timeout_s, left_s))
            return result
        finally:
            self._pending.discard(pending)

    def _outcome(self, result: "dict[str, Json]") -> Outcome:
        texts = [block.get("text", f"({block['type']} left out)") for block in result["content"]]
        text = self._guard.clean("\n".join(map(str, texts))).text
        code = "" if not result["isError"] else _code(result)
        structure: Json = result.get("structuredContent") or {"result": text}
        return Outcome(text, lambda: self._guard.clean_value(structure), code=code)

    def _failure(self, problem: ToolError) -> Outcome:
        clean = self._guard.clean
        return Outcome.of_error(
            ToolError(problem.code, clean(problem.message).text, clean(problem.hint).text)
        )


def together(function: "Callable[[Json], Json]", items: "Iterable[Json]") -> "list[Json]":
    """What the function makes of each item, all worked on at the same time."""
    with ThreadPoolExecutor(WORKERS) as pool:
        return list(pool.map(function, items))


def _prefixed(command: Command, tool: str) -> str:
    """The name of another server's tool, in the characters that model providers take."""
    name = f"mcp_{command.name}_{tool}"
    plain = "".join(
        char if char.isascii() and (char.isalnum() or char in "_-") else "_" for char in name
    )
    return plain[:NAME_CHARS]


def _code(result: "dict[str, Json]") -> str:
    code = _member(result, "_meta", "toolroll/code")
    return code if isinstance(code, str) else ErrorCode.EXECUTION_ERROR


def _member(value: "dict[str, Json]", part: str, name: str) -> "Json":
    """What lies in an optional object of a server's answer; None where it is no object."""
    inner = value.get(part)
    return inner.get(name) if isinstance(inner, dict) else None
