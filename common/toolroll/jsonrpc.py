"""JSON values to JSON-RPC 2.0 messages and back; knows nothing of MCP."""

from toolroll.errors import RpcCode, RpcError
from toolroll.jsontext import WHITE, loads, scan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = Any
    Id = str | int


class Request:
    """A message that wants an answer: `id` is a string or an integer, `params` a dict."""

    __slots__ = ("id", "method", "params")

    def __init__(self, id: "Id", method: str, params: "dict[str, Json]") -> None:  # noqa: A002 - the wire's word
        self.id = id
        self.method = method
        self.params = params


class Notification:
    """A message that is never answered, whatever is wrong with it."""

    __slots__ = ("method", "params")

    def __init__(self, method: str, params: "dict[str, Json]") -> None:
        self.method = method
        self.params = params


class Answer:
    """A response or an error that the peer sends: exactly one of `result` and `error` is set."""

    __slots__ = ("error", "id", "result")

    def __init__(self, id: "Id | None", result: "Json", error: "Json") -> None:  # noqa: A002 - the wire's word
        self.id = id
        self.result = result
        self.error = error


class Malformed:
    """Something that is to be refused: with `id` where one could be read, else None."""

    __slots__ = ("error", "id")

    def __init__(self, id: "Id | None", error: RpcError) -> None:  # noqa: A002 - the wire's word
        self.id = id
        self.error = error


if TYPE_CHECKING:
    Message = Request | Notification | Answer | Malformed


def message(value: "Json") -> "Message":
    """The message that a JSON value is; JSON-RPC 2.0 sections 4 and 5."""
    if not isinstance(value, dict):
        return _invalid(None, "a message is an object")
    key = value.get("id")
    known = key if is_id(key) else None
    if "method" not in value and ("result" in value or "error" in value):
        return Answer(known, value.get("result"), value.get("error"))
    method, params = value.get("method"), value.get("params", {})
    if "id" not in value and isinstance(method, str):
        # also when malformed: nothing may be sent for a notification
        return Notification(method, params if isinstance(params, dict) else {})
    if value.get("jsonrpc") != "2.0":
        return _invalid(known, 'jsonrpc must be "2.0"')
    if not isinstance(method, str):
        return _invalid(known, "method must be a string")
    if known is None:
        return _invalid(None, "id must be a string or an integer")
    if not isinstance(params, dict | None):
        return _invalid(known, "params must be an object")
    return Request(known, method, params or {})


def is_id(key: object) -> bool:
    """True for what MCP takes as a request's id: a string or an integer, never null or a boolean."""
    return isinstance(key, str) or (isinstance(key, int) and not isinstance(key, bool))


def _invalid(key: "Id | None", why: str) -> Malformed:
    return Malformed(key, RpcError(RpcCode.INVALID_REQUEST, f"Invalid Request: {why}"))


def edge_id(head: bytes, tail: bytes) -> "Id | None":
    """The id of a message of which only both ends were kept, None where neither shows one.

    It counts only where it surely belongs to the message itself: among the scalars before the first
    nested value, or as the very last member.
    """
    text = head.decode("utf-8", "replace").lstrip(WHITE)
    at = 1 if text.startswith("{") else len(text)
    while at < len(text):
        try:
            key, at = scan(text, _skip(text, at, ","))
            value, at = scan(text, _skip(text, at, ":"))
        except Exception:  # the value does not end within what was kept
            break
        if key == "id":
            return value if is_id(value) else None
        if isinstance(value, dict | list):
            break
    return _last_id(tail.decode("utf-8", "replace").rstrip(WHITE))


def _skip(text: str, at: int, mark: str) -> int:
    while at < len(text) and text[at] in WHITE + mark:
        at += 1
    return at


def _last_id(text: str) -> "Id | None":
    at = text.rfind('"id"')
    if at < 0 or not text.endswith("}"):
        return None
    try:
        value = loads(b"{" + text[at:].encode("utf-8", "replace"))
    except ValueError:
        return None
    return value["id"] if is_id(value["id"]) and len(value) == 1 else None


def request(key: "Id", method: str, params: "dict[str, Json]") -> "dict[str, Json]":
    """A request as a JSON value."""
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def notification(method: str, params: "dict[str, Json]") -> "dict[str, Json]":
    """A notification as a JSON value."""
    return {"jsonrpc": "2.0", "method": method, "params": params}


def result(key: "Id", value: "Json") -> "dict[str, Json]":
    """A successful answer as a JSON value."""
    return {"jsonrpc": "2.0", "id": key, "result": value}


def error(key: "Id | None", problem: RpcError, null_id: bool = False) -> "dict[str, Json]":
    """A refusal as a JSON value.

    Without an id, JSON-RPC 2.0 section 5 wants `"id": null`, which the schemas of MCP never allow;
    since 2025-11-25 they let it be left out.  `null_id` chooses the former.
    """
    answer: dict[str, Json] = {"jsonrpc": "2.0"}
    if key is not None or null_id:
        answer["id"] = key
    answer["error"] = {"code": problem.code, "message": problem.message}
    if problem.data is not None:
        answer["error"]["data"] = problem.data
    return answer
