"""A server's side of the wire without any I/O: bytes in, acts out; the end of input is an input.

The same bytes cut anywhere give the same acts.  Knows no descriptors, threads or clocks: whoever
holds it carries the acts out and reports what became of each started call with `finish`.
"""

from toolroll import eras, jsonrpc
from toolroll.errors import ErrorCode, RpcCode, RpcError, ToolError
from toolroll.framing import Framer, enframe
from toolroll.jsonrpc import Answer, Malformed, Notification, Request
from toolroll.jsontext import dumps, loads
from toolroll.limits import MESSAGE_BYTES, WAITING_CALLS
from toolroll.tool import Outcome

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from toolroll.framing import Frame
    from toolroll.jsonrpc import Id, Message
    from toolroll.tool import Tool

    Json = Any


class Send:
    """Write these bytes."""

    __slots__ = ("data",)

    def __init__(self, data: bytes) -> None:
        self.data = data


class Start:
    """Run the tool with these arguments, then report with `Connection.finish`."""

    __slots__ = ("arguments", "form", "id", "reported", "route", "token")

    def __init__(
        self,
        id: "Id",  # noqa: A002 - the wire's word
        arguments: "dict[str, Json]",
        route: "Route",
        form: str,
        token: "str | int | None" = None,
    ) -> None:
        self.id = id
        self.arguments = arguments
        self.route = route
        self.form = form  # how the answer is dressed: one of the three below
        self.token = token
        self.reported = float("-inf")  # the progress last sent; the next must be higher


HANDSHAKE, STATELESS, BARE = "handshake", "stateless", "bare"
"""The forms of an answer: of either era, or without JSON-RPC around it."""


class Cancel:
    """Stop the work of a started call; its answer is no longer wanted."""

    __slots__ = ("start",)

    def __init__(self, start: Start) -> None:
        self.start = start


class Close:
    """Nothing further is read; the process ends, with `status`, when the started calls are answered."""

    __slots__ = ("status",)

    def __init__(self, status: int = 0) -> None:
        self.status = status


if TYPE_CHECKING:
    Act = Send | Start | Cancel | Close


class Route:
    """The way back: `boxed` answers a Content-Length block in kind, `batch` gathers what was asked together."""

    __slots__ = ("batch", "boxed")

    def __init__(self, boxed: bool, batch: "Batch | None" = None) -> None:
        self.boxed = boxed
        self.batch = batch


class Batch:
    """The answers of one batch, sent as one array when none is outstanding."""

    __slots__ = ("answers", "outstanding")

    def __init__(self, outstanding: int) -> None:
        self.answers: list[dict[str, Json]] = []
        self.outstanding = outstanding

    def settle(self, answer: "dict[str, Json] | None") -> "list[dict[str, Json]]":
        """Take one answer, None for a call that gets none; the whole array once it is complete."""
        if answer is not None:
            self.answers.append(answer)
        self.outstanding -= 1
        return [] if self.outstanding else self.answers


class Connection:
    """What one client has said so far and what it is still owed."""

    def __init__(
        self, tool: "Tool", server: "dict[str, Json]", instructions: str, structured: bool = False
    ) -> None:
        self.tool = tool
        self.server = server
        self.instructions = instructions
        self.structured = structured
        self.revision = ""  # of the handshake; empty before it
        self.running: dict[Id, Start] = {}
        self._subscriptions: set[Id] = set()
        self._framer = Framer()
        self._fresh = True  # no message has come so far
        self.listed = False  # the client has asked for the tool, so a call is to be expected
        self.bare = False  # a one-shot call has come: nothing behind it is read

    def receive(self, data: bytes) -> "Iterator[Act]":
        """The acts that `data` asks for; empty data is the end of input."""
        frames = self._framer.feed(data) if data else self._framer.finish()
        for frame in frames:
            if not self.bare:
                yield from self._framed(frame)
        if not data:
            yield Close()

    def finish(self, start: Start, outcome: "Outcome") -> "list[Act]":
        """The acts that answer a started call; none when it was cancelled meanwhile.

        Raises: whatever a bug in the outcome raises (TypeError, ValueError where it is no JSON); the
        call is then still to be finished.
        """
        if self.running.get(start.id) is not start:
            return []
        acts: list[Act]
        if start.form == BARE:
            acts = [Send(dumps(outcome.structured) + b"\n"), Close(int(outcome.failed))]
        else:
            acts = self._reply(start.route, jsonrpc.result(start.id, self._result(start, outcome)))
        del self.running[start.id]
        return acts

    def progress(self, start: Start, done: float, total: float | None, message: str) -> "list[Act]":
        """The notification of a started call's progress, if it is wanted, running and has advanced.

        MCP 2026-07-28 basic/patterns/progress: strictly increasing, none after the answer.
        """
        if start.token is None or self.running.get(start.id) is not start or done <= start.reported:
            return []
        start.reported = done
        params: dict[str, Json] = {"progressToken": start.token, "progress": done}
        if total is not None:
            params["total"] = total
        if message:
            params["message"] = message
        note = jsonrpc.notification("notifications/progress", params)
        return [Send(enframe(dumps(note), start.route.boxed))]

    def abandon(self) -> "list[Act]":
        """Cancel whatever still runs, when the time after the end of input is over."""
        acts: list[Act] = []
        for start in self.running.values():
            acts += [Cancel(start), *self._unanswered(start.route)]
        self.running.clear()
        return acts

    # -- one frame, one message ------------------------------------------------------------------

    def _framed(self, frame: "Frame") -> "Iterable[Act]":
        route = Route(frame.boxed)
        fresh, self._fresh = self._fresh, False
        if frame.oversize:
            problem = f"Invalid Request: {frame.size} bytes, at most {MESSAGE_BYTES} are read"
            key = jsonrpc.edge_id(frame.data, frame.tail)
            return self._refuse(route, key, RpcError(RpcCode.INVALID_REQUEST, problem))
        try:
            value = loads(frame.data)
        except ValueError:
            return self._refuse(route, None, RpcError(RpcCode.PARSE_ERROR, "Parse error"))
        if fresh and _is_bare_call(value):
            return self._one_shot(value, route)
        if isinstance(value, list):
            return self._batched(value, route)
        return self._handle(jsonrpc.message(value), route)

    def _one_shot(self, value: "dict[str, Json]", route: Route) -> "list[Act]":
        """A call as the reference system's tools took it: answered bare, then the process ends."""
        self.bare = True
        if value["name"] == self.tool.name:
            return [self._start("", value["params"], route, BARE)]
        text = f"Unknown tool: {value['name']}; this server has {self.tool.name}"
        return [Send(dumps({"error": text, "code": ErrorCode.INVALID_PARAMS}) + b"\n"), Close(1)]

    def _batched(self, values: "list[Json]", route: Route) -> "Iterable[Act]":
        """JSON-RPC 2.0 section 6, where the negotiated revision has batches (MCP 2025-03-26 basic)."""
        if self.revision not in eras.BATCHING or not values:
            problem = RpcError(RpcCode.INVALID_REQUEST, "Invalid Request: no batch is taken here")
            return self._refuse(route, None, problem)
        messages = [jsonrpc.message(value) for value in values]
        owed = sum(isinstance(message, Request | Malformed) for message in messages)
        gathered = Route(route.boxed, Batch(owed))
        return [act for message in messages for act in self._handle(message, gathered)]

    def _handle(self, message: "Message", route: Route) -> "Iterable[Act]":
        if isinstance(message, Malformed):
            return self._refuse(route, message.id, message.error)
        if isinstance(message, Notification):
            return self._notified(message)
        if isinstance(message, Answer):  # to a request we never sent
            return []
        try:
            return self._requested(message, route)
        except RpcError as problem:
            return self._refuse(route, message.id, problem)

    # -- requests --------------------------------------------------------------------------------

    def _requested(self, request: Request, route: Route) -> "list[Act]":
        """Raises: RpcError."""
        if request.id in self.running or request.id in self._subscriptions:
            raise RpcError(RpcCode.INVALID_REQUEST, "Invalid Request: this id is still in use")
        if eras.is_stateless(request.params) or not self._may_be_bare(request.method):
            eras.check_envelope(request.params)
            return self._stateless(request, route)
        return self._handshake(request, route)

    def _may_be_bare(self, method: str) -> bool:
        """True for a request that needs no envelope: the handshake itself, ping, all behind it."""
        if method == "server/discover":
            return False
        return bool(self.revision) or method in ("initialize", "ping")

    def _stateless(self, request: Request, route: Route) -> "list[Act]":
        """MCP 2026-07-28: nothing is inferred from earlier requests."""
        if request.method == "tools/call":
            return self._called(request, route, STATELESS)
        if request.method == "subscriptions/listen":
            return self._subscribed(request, route)
        if request.method == "server/discover":
            result = self._discovered()
        elif request.method == "tools/list":
            result = self._listed(request.params)
        else:
            raise _unknown(request.method)
        dressed = eras.dress(result, self.server, cacheable=True)
        return self._reply(route, jsonrpc.result(request.id, dressed))

    def _handshake(self, request: Request, route: Route) -> "list[Act]":
        """MCP 2024-11-05 to 2025-11-25: `initialize` first; ping is always answered."""
        if request.method == "initialize":
            result = self._initialized(request.params, route)
        elif request.method == "ping":
            result = {}
        elif request.method == "tools/call":
            return self._called(request, route, HANDSHAKE)
        elif request.method == "tools/list":
            result = self._listed(request.params)
        else:
            raise _unknown(request.method)
        return self._reply(route, jsonrpc.result(request.id, result))

    def _initialized(self, params: "dict[str, Json]", route: Route) -> "dict[str, Json]":
        if route.batch is not None:  # MCP 2025-03-26 basic/lifecycle
            raise RpcError(RpcCode.INVALID_REQUEST, "Invalid Request: initialize in a batch")
        self.revision = eras.negotiate(params)
        return {
            "protocolVersion": self.revision,
            "capabilities": {"tools": {}},
            "serverInfo": self.server,
            "instructions": self.instructions,
        }

    def _discovered(self) -> "dict[str, Json]":
        return {
            "supportedVersions": list(eras.REVISIONS),
            "capabilities": {"tools": {}},
            "instructions": self.instructions,
        }

    def _listed(self, params: "dict[str, Json]") -> "dict[str, Json]":
        if "cursor" in params:  # none was ever given: the list is one page
            raise eras.invalid("cursor is not one of this server's")
        self.listed = True
        return {"tools": [self.tool.definition(self.structured)]}

    def _called(self, request: Request, route: Route, form: str) -> "list[Act]":
        name, arguments = request.params.get("name"), request.params.get("arguments", {})
        if not isinstance(name, str):
            raise eras.invalid("name must be a string")
        if name != self.tool.name:
            raise RpcError(RpcCode.INVALID_PARAMS, f"Unknown tool: {name[:100]}")
        if not isinstance(arguments, dict):
            raise eras.invalid("arguments must be an object")
        token = eras.progress_token(request.params)
        start = self._start(request.id, arguments, route, form, token)
        if len(self.running) <= WAITING_CALLS:
            return [start]
        text = f"{WAITING_CALLS} calls are waiting already"
        problem = ToolError(ErrorCode.RATE_LIMITED, text, "Wait for their answers")
        return self.finish(start, Outcome.of_error(problem))

    def _start(
        self,
        key: "Id",
        arguments: "dict[str, Json]",
        route: Route,
        form: str,
        token: "str | int | None" = None,
    ) -> Start:
        start = self.running[key] = Start(key, arguments, route, form, token)
        return start

    def _subscribed(self, request: Request, route: Route) -> "list[Act]":
        """The stream stays open and silent: nothing this server has ever changes.

        MCP 2026-07-28 basic/patterns/subscriptions: acknowledged with what is honoured.
        """
        if not isinstance(request.params.get("notifications"), dict):
            raise eras.invalid("notifications must be an object")
        self._subscriptions.add(request.id)
        meta = {eras.SUBSCRIPTION_KEY: request.id}
        note = jsonrpc.notification(
            "notifications/subscriptions/acknowledged", {"_meta": meta, "notifications": {}}
        )
        return [Send(enframe(dumps(note), route.boxed)), *self._unanswered(route)]

    def _notified(self, note: Notification) -> "list[Act]":
        """Only cancellation asks for anything; whatever else a notification says is ignored."""
        key: Json = note.params.get("requestId")
        if note.method != "notifications/cancelled" or not jsonrpc.is_id(key):
            return []
        self._subscriptions.discard(key)
        start = self.running.pop(key, None)
        if start is None:  # unknown, or answered already: opencode sends one for every call
            return []
        return [Cancel(start), *self._unanswered(start.route)]

    # -- answers ---------------------------------------------------------------------------------

    def _result(self, start: Start, outcome: "Outcome") -> "dict[str, Json]":
        result: dict[str, Json] = {"content": outcome.content, "isError": outcome.failed}
        if outcome.failed:
            result["_meta"] = {"toolroll/code": outcome.code}
        elif self.structured:
            # there and back: what is no JSON is found out before anything is settled
            result["structuredContent"] = loads(dumps(outcome.structured))
        if start.form == STATELESS:
            result = eras.dress(result, self.server, cacheable=False)
        return result

    def _refuse(self, route: Route, key: "Id | None", problem: RpcError) -> "list[Act]":
        # JSON-RPC wants a null id where none could be read; the schemas since 2025-11-25 want none
        null_id = self.revision not in ("", eras.HANDSHAKE[0])
        return self._reply(route, jsonrpc.error(key, problem, null_id))

    def _reply(self, route: Route, answer: "dict[str, Json]") -> "list[Act]":
        if route.batch is not None:
            return self._gathered(route, route.batch.settle(answer))
        return [Send(enframe(dumps(answer), route.boxed))]

    def _unanswered(self, route: Route) -> "list[Act]":
        """What is sent when a request gets no answer: its batch, if it was the last one awaited."""
        return self._gathered(route, route.batch.settle(None)) if route.batch else []

    def _gathered(self, route: Route, answers: "list[dict[str, Json]]") -> "list[Act]":
        return [Send(enframe(dumps(answers), route.boxed))] if answers else []


def _is_bare_call(value: "Json") -> bool:
    """True for `{"name": ..., "params": {...}}` without JSON-RPC around it."""
    return (
        isinstance(value, dict)
        and "jsonrpc" not in value
        and isinstance(value.get("name"), str)
        and isinstance(value.get("params"), dict)
    )


def _unknown(method: str) -> RpcError:
    return RpcError(RpcCode.METHOD_NOT_FOUND, f"Method not found: {method[:100]}")
