"""A client's side of the wire without any I/O: requests become bytes, what a server says becomes events.

The same bytes cut anywhere give the same events.  Knows no processes, threads or clocks: whoever
holds it writes what it gives, feeds what comes and decides how long to wait.
"""

from toolroll import __version__, eras, jsonrpc
from toolroll.errors import ErrorCode, RpcCode, RpcError, ToolError
from toolroll.framing import Framer, enframe
from toolroll.jsonrpc import Answer, Malformed, Notification, Request
from toolroll.jsontext import dumps, loads
from toolroll.limits import MESSAGE_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from toolroll.framing import Frame
    from toolroll.jsonrpc import Id

    Json = Any
    Problem = RpcError | ToolError

AUTO, STATELESS, HANDSHAKE = "auto", "stateless", "handshake"
"""Which era a client speaks: the one the server answers to, or only the named one."""

ME = {"name": "toolroll", "version": __version__}

PAGES = 100
"""Pages of tools/list that are followed: the largest servers known fit into ten of them."""

NOISE_CHARS = 200
"""What is kept of something that is no message, enough to recognise a stray print."""

BLOCK_TEXTS = {
    "text": ("text",),
    "image": ("data", "mimeType"),
    "audio": ("data", "mimeType"),
    "resource_link": ("uri",),
}
"""The strings a content block must hold; blocks of other types are passed on as they are."""


class Send:
    """Write these bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Ready:
    """Requests may be sent: `revision`, `info` and `instructions` of the client are known."""

    __slots__ = ()


class Refused:
    """This server and this client cannot talk; nothing further will come of it."""

    __slots__ = ("problem",)

    def __init__(self, problem: "Problem") -> None:
        self.problem = problem


class Answered:
    """A request is over: `value` is what was asked for, or `problem` says why there is none."""

    __slots__ = ("key", "problem", "value")

    def __init__(self, key: int, value: "Json", problem: "Problem | None" = None) -> None:
        self.key = key
        self.value = value
        self.problem = problem


class Progressed:
    """How far a running call is, when it was asked to tell."""

    __slots__ = ("done", "key", "message", "total")

    def __init__(self, key: int, done: float, total: float | None, message: str) -> None:
        self.key = key
        self.done = done
        self.total = total
        self.message = message


class Noise:
    """Something came that belongs to nothing: a stray print, an error without an id."""

    __slots__ = ("text",)

    def __init__(self, text: str) -> None:
        self.text = text[:NOISE_CHARS]


if TYPE_CHECKING:
    Event = Send | Ready | Refused | Answered | Progressed | Noise


class Asked:
    """A request whose answer is awaited: `key` is its id, for tools/list the id of the first page."""

    __slots__ = ("cursors", "key", "method", "tools", "wants_progress")

    def __init__(self, method: str, wants_progress: bool = False) -> None:
        self.key = 0
        self.method = method
        self.wants_progress = wants_progress
        self.tools: dict[str, Json] = {}
        self.cursors: set[str] = set()


class Client:
    """What was asked of one server and is not answered yet.

    First `open`, then `receive` until `Ready` comes; `call` and `list_tools` after that.
    """

    def __init__(self, era: str = AUTO) -> None:
        if era not in (AUTO, STATELESS, HANDSHAKE):
            raise ValueError(f"era '{era}' is none of {AUTO}, {STATELESS}, {HANDSHAKE}")
        self.era = era
        self.revision = ""  # empty until `Ready`
        self.info: dict[str, Json] = {}
        self.instructions = ""
        self._framer = Framer()
        self._asked: dict[Id, Asked] = {}
        self._last_id = 0

    @property
    def probing(self) -> bool:
        """True while only the probe is out: a server of the older era may never answer it."""
        return [asked.method for asked in self._asked.values()] == ["server/discover"]

    def open(self) -> bytes:
        """The first message: the stateless era's probe, or the handshake when that era is named.

        MCP 2026-07-28 basic/versioning, "Backward compatibility".
        """
        if self.era == HANDSHAKE:
            return self._initialize(eras.HANDSHAKE[0])
        return self._ask(Asked("server/discover"), {})

    def fall_back(self) -> bytes:
        """The handshake, for a server that leaves the probe unanswered; empty when there is no need.

        The probe's answer still counts when it is the first of the two to come: a server that
        merely starts slowly answers both.
        """
        waits = self.probing and self.era == AUTO
        return self._initialize(eras.HANDSHAKE[0]) if waits else b""

    def list_tools(self) -> tuple[int, bytes]:
        """The key and the bytes of a request for all tools; further pages are asked for as they come."""
        asked = Asked("tools/list")
        data = self._ask(asked, {})
        return asked.key, data

    def call(
        self, tool: str, arguments: "dict[str, Json]", progress: bool = False
    ) -> tuple[int, bytes]:
        """The key and the bytes of a call; its answer is the result of tools/call, checked.

        Raises: ToolError INVALID_PARAMS or TOO_LARGE for arguments that cannot be sent.
        """
        asked = Asked("tools/call", progress)
        data = self._ask(asked, {"name": tool, "arguments": arguments})
        return asked.key, data

    def cancel(self, key: int, reason: str = "") -> bytes:
        """The notification that a request's answer is no longer wanted; empty when it has come."""
        number = next((number for number, asked in self._asked.items() if asked.key == key), None)
        if number is None:
            return b""
        del self._asked[number]
        params = {"requestId": number, **({"reason": reason} if reason else {})}
        return _line(jsonrpc.notification("notifications/cancelled", params))

    def receive(self, data: bytes) -> "Iterator[Event]":
        """The events in `data`; empty data is the end of what the server says."""
        frames = self._framer.feed(data) if data else self._framer.finish()
        for frame in frames:
            yield from self._framed(frame)

    # -- out -------------------------------------------------------------------------------------

    def _ask(self, asked: Asked, params: "dict[str, Json]") -> bytes:
        """Raises: ToolError."""
        number = self._last_id + 1
        meta: dict[str, Json] = {"progressToken": number} if asked.wants_progress else {}
        if self.revision == eras.STATELESS or asked.method == "server/discover":
            meta[eras.VERSION_KEY] = eras.STATELESS
            meta[eras.CLIENT_KEY] = ME
            meta[eras.CAPABILITIES_KEY] = {}
        if meta:
            params = {**params, "_meta": meta}
        data = _sendable(jsonrpc.request(number, asked.method, params))
        asked.key = asked.key or number
        self._asked[number] = asked
        self._last_id = number
        return data

    def _initialize(self, revision: str) -> bytes:
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": ME}
        return self._ask(Asked("initialize"), params)

    # -- in: one frame, one message --------------------------------------------------------------

    def _framed(self, frame: "Frame") -> "Iterable[Event]":
        if frame.oversize:
            text = f"the server sent {frame.size} bytes, at most {MESSAGE_BYTES} are read"
            problem = ToolError(ErrorCode.TOO_LARGE, text, "Ask for less at a time.")
            return self._over(jsonrpc.edge_id(frame.data, frame.tail), problem, text)
        try:
            value = loads(frame.data)
        except ValueError:
            return [Noise(frame.data[: 4 * NOISE_CHARS].decode("utf-8", "replace"))]
        values = value if isinstance(value, list) else [value]  # a batch, in MCP 2025-03-26
        return [event for one in values for event in self._handle(one)]

    def _handle(self, value: "Json") -> "Iterable[Event]":
        message = jsonrpc.message(value)
        if isinstance(message, Answer):
            return self._answered(message)
        if isinstance(message, Request):
            return [self._reply(message)]
        if isinstance(message, Notification):
            return self._notified(message)
        return self._malformed(message, value)

    def _answered(self, answer: Answer) -> "Iterable[Event]":
        key = answer.id
        if key is None and self.probing:  # the server could not even read the id of what it refuses
            key = next(iter(self._asked))
        if key is None:
            return [Noise(_shown(answer.error))]
        asked = self._asked.pop(key, None)
        if asked is None:  # cancelled meanwhile, or never asked
            return []
        try:
            return self._read(asked, _result(answer))
        except (RpcError, ToolError) as problem:
            return self._failed(asked, problem)

    def _malformed(self, message: Malformed, value: "Json") -> "Iterable[Event]":
        """Where it can only be meant as an answer, that request is over."""
        key = None if isinstance(value, dict) and "method" in value else message.id
        return self._over(key, _ill("neither a result nor an error"), _shown(value))

    def _over(self, key: "Id | None", problem: ToolError, text: str) -> "Iterable[Event]":
        """What becomes of something unusable: the request `key` fails, or it is mere noise."""
        asked = None if key is None else self._asked.pop(key, None)
        return [Noise(text)] if asked is None else self._failed(asked, problem)

    def _reply(self, request: Request) -> Send:
        """To a server's request: ping was one until 2025-11-25, we offer nothing that others could ask."""
        if request.method == "ping" and self.revision != eras.STATELESS:
            return Send(_line(jsonrpc.result(request.id, {})))
        text = f"Method not found: {request.method[:NOISE_CHARS]}"
        problem = RpcError(RpcCode.METHOD_NOT_FOUND, text)
        return Send(_line(jsonrpc.error(request.id, problem)))

    def _notified(self, note: Notification) -> "list[Event]":
        """Only progress is of interest; a token that is not one of ours or no number is ignored."""
        token: Json = note.params.get("progressToken")
        done: Json = note.params.get("progress")
        if note.method != "notifications/progress" or not jsonrpc.is_id(token):
            return []
        asked = self._asked.get(token)
        if asked is None or not asked.wants_progress or not _is_number(done):
            return []
        total, message = note.params.get("total"), note.params.get("message")
        text = message if isinstance(message, str) else ""
        return [Progressed(asked.key, done, total if _is_number(total) else None, text)]

    # -- answers ---------------------------------------------------------------------------------

    def _read(self, asked: Asked, result: "dict[str, Json]") -> "list[Event]":
        """Raises: ToolError for an ill-formed result."""
        if asked.method == "tools/call":
            return [Answered(asked.key, _called(result))]
        if asked.method == "tools/list":
            return self._listed(asked, result)
        if asked.method == "server/discover":
            return self._discovered(result)
        return self._initialized(result)

    def _failed(self, asked: Asked, problem: "Problem") -> "list[Event]":
        if asked.method == "server/discover":
            return self._unprobed(problem)
        if asked.method == "initialize":
            return self._refused(problem)
        return [Answered(asked.key, None, problem)]

    def _listed(self, asked: Asked, result: "dict[str, Json]") -> "list[Event]":
        """MCP 2026-07-28 server/utilities/pagination: a cursor is opaque, its absence the end."""
        for tool in _tools(result):
            if tool["name"] in asked.tools:
                raise _ill(f"two tools are called '{tool['name']}'")
            asked.tools[tool["name"]] = tool
        cursor = result.get("nextCursor")
        if cursor is None:
            return [Answered(asked.key, list(asked.tools.values()))]
        if not isinstance(cursor, str):
            raise _ill("nextCursor must be a string")
        if cursor in asked.cursors or len(asked.cursors) >= PAGES:
            raise _ill(f"tools/list does not end, cursor '{cursor[:NOISE_CHARS]}'")
        asked.cursors.add(cursor)
        return [Send(self._ask(asked, {"cursor": cursor}))]

    # -- the opening -----------------------------------------------------------------------------

    def _discovered(self, result: "dict[str, Json]") -> "list[Event]":
        """MCP 2026-07-28 server/discover."""
        spoken: Json = result.get("supportedVersions")
        if not _are_texts(spoken):
            raise _ill("supportedVersions must be an array of strings")
        if eras.STATELESS not in spoken:
            return self._meet(spoken)
        meta = _part(result, "_meta", dict, {})
        return self._opened(eras.STATELESS, _part(meta, eras.SERVER_KEY, dict, {}), result)

    def _unprobed(self, problem: "Problem") -> "list[Event]":
        """The probe failed: a server of the older era, unless it names what it speaks."""
        data = problem.data if isinstance(problem, RpcError) else None
        spoken = data.get("supported") if isinstance(data, dict) else None
        told = (
            isinstance(problem, RpcError) and problem.code == RpcCode.UNSUPPORTED_PROTOCOL_VERSION
        )
        if self.era == STATELESS:
            return self._refused(problem)
        if told and spoken and _are_texts(spoken):
            return self._meet(spoken)
        return self._meet(eras.HANDSHAKE)

    def _meet(self, spoken: "Iterable[str]") -> "list[Event]":
        """The handshake in the newest revision both speak, unless it is on its way already."""
        if self._asked:
            return []
        common = [revision for revision in eras.HANDSHAKE if revision in spoken]
        if common and self.era != STATELESS:
            return [Send(self._initialize(common[0]))]
        ours = [eras.STATELESS] if self.era == STATELESS else eras.REVISIONS
        theirs = ", ".join(spoken)[:NOISE_CHARS] or "none"
        text = f"no common protocol revision: the server speaks {theirs}, we {', '.join(ours)}"
        return self._refused(ToolError(ErrorCode.EXECUTION_ERROR, text))

    def _initialized(self, result: "dict[str, Json]") -> "list[Event]":
        """MCP 2025-11-25 basic/lifecycle: a client that does not speak the answered revision leaves."""
        revision: Json = result.get("protocolVersion")
        if revision not in eras.HANDSHAKE:
            raise _ill(f"protocolVersion {_shown(revision)} is not one with a handshake")
        events = self._opened(revision, _part(result, "serverInfo", dict), result)
        note = jsonrpc.notification("notifications/initialized", {})
        return [Send(_line(note)), *events]

    def _opened(
        self, revision: str, info: "dict[str, Json]", result: "dict[str, Json]"
    ) -> "list[Event]":
        self.instructions = _part(result, "instructions", str, "")
        self.revision, self.info = revision, info
        self._asked.clear()  # a probe or a handshake that is still out is no longer of interest
        return [Ready()]

    def _refused(self, problem: "Problem") -> "list[Event]":
        self._asked.clear()
        return [Refused(problem)]


# -- requests and what servers say to them, checked ----------------------------------------------------


def _line(value: "Json") -> bytes:
    return enframe(dumps(value), boxed=False)


def _sendable(request: "dict[str, Json]") -> bytes:
    """A request's bytes.

    Raises: ToolError INVALID_PARAMS or TOO_LARGE.
    """
    try:
        data = _line(request)
    except (ValueError, RecursionError) as problem:
        raise ToolError(
            ErrorCode.INVALID_PARAMS, f"the arguments are not JSON: {problem}"
        ) from None
    if len(data) > MESSAGE_BYTES:
        text = f"the request has {len(data)} bytes, at most {MESSAGE_BYTES} are sent"
        raise ToolError(ErrorCode.TOO_LARGE, text, "Pass less at a time.")
    return data


def _result(answer: Answer) -> "dict[str, Json]":
    """The result that an answer carries.

    Raises: RpcError when the server refused the request, ToolError for an ill-formed answer.
    """
    if answer.error is not None:
        raise _refusal(answer.error)
    if not isinstance(answer.result, dict):
        raise _ill("the result must be an object")
    kind = answer.result.get("resultType", "complete")  # absent before MCP 2026-07-28
    if kind != "complete":
        text = f"the server wants something first (resultType {_shown(kind)}), which is not offered"
        raise ToolError(ErrorCode.EXECUTION_ERROR, text)
    return answer.result


def _refusal(error: "Json") -> "Problem":
    fields = error if isinstance(error, dict) else {}
    code, message = fields.get("code"), fields.get("message")
    if isinstance(code, bool) or not isinstance(code, int) or not isinstance(message, str):
        return _ill("an error must have a code and a message")
    return RpcError(code, message, fields.get("data"))


def _called(result: "dict[str, Json]") -> "dict[str, Json]":
    """The result of tools/call with `isError` always there; null is taken for absent."""
    for block in _part(result, "content", list):
        kind = block.get("type") if isinstance(block, dict) else None
        if not isinstance(kind, str):
            raise _ill("a content block must be an object with a type")
        if not all(isinstance(block.get(name), str) for name in BLOCK_TEXTS.get(kind, ())):
            raise _ill(
                f"a content block of type '{kind}' must have {' and '.join(BLOCK_TEXTS[kind])}"
            )
    return {**result, "isError": _part(result, "isError", bool, False)}


def _tools(result: "dict[str, Json]") -> "list[dict[str, Json]]":
    """The tools of one page, each with what a model needs to call it."""
    tools: list[dict[str, Json]] = _part(result, "tools", list)
    for tool in tools:
        name = tool.get("name") if isinstance(tool, dict) else None
        if not isinstance(name, str) or not name:
            raise _ill("a tool must be an object with a name")
        schema = tool.get("inputSchema")
        if not isinstance(schema, dict) or schema.get("type") != "object":
            raise _ill(f"the tool '{name}' must have an inputSchema of type object")
        _part(tool, "description", str, "")
    return tools


def _part(value: "dict[str, Json]", name: str, kind: type, default: "Json" = None) -> "Json":
    """The member `name`, of the given type; the default, if there is one, when absent or null."""
    part = value.get(name)
    if part is None and default is not None:
        return default
    if not isinstance(part, kind):
        words = {dict: "an object", list: "an array", str: "a string", bool: "true or false"}
        raise _ill(f"{name} must be {words[kind]}")
    return part


def _ill(why: str) -> ToolError:
    """The fault of a server that does not keep to the protocol."""
    return ToolError(
        ErrorCode.EXECUTION_ERROR, f"the server's answer is ill-formed: {why[: 2 * NOISE_CHARS]}"
    )


def _are_texts(value: "Json") -> bool:
    return isinstance(value, list) and all(isinstance(one, str) for one in value)


def _is_number(value: "Json") -> bool:
    """True for a finite number; 1e999 is JSON and arrives as infinity."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return abs(value) < float("inf")


def _shown(value: "Json") -> str:
    """A value as JSON, short enough to be quoted."""
    try:
        return dumps(value)[:NOISE_CHARS].decode()
    except (ValueError, RecursionError):
        return type(value).__name__
