"""The words in which the conformance statement is written, and what they mean as bytes.

Knows neither processes nor the server's code: `Say` renders to bytes, `Hear` judges a JSON value.
"""

import json
from dataclasses import dataclass, field
from typing import Any

Json = Any

HANDSHAKE = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = ("2026-07-28",)
BOTH = HANDSHAKE + STATELESS
WITHOUT_NULL_ID = ("2025-11-25", "2026-07-28")
"""Revisions whose schema lets the id of an error be left out; JSON-RPC's null fits none of them."""

ENVELOPE: dict[str, Json] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS[0],
    "io.modelcontextprotocol/clientInfo": {"name": "conformance", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
TOOL, GOOD, BAD = "<tool>", "<good arguments>", "<bad arguments>"
"""Stand for the tool that the server has, arguments it takes and arguments it refuses."""

ABSENT, NO_ID = object(), object()
"""In a pattern: the key is missing; the id of an error that has none, as the revision wants it."""


@dataclass(frozen=True)
class Target:
    """A server under test: its command line, its tool, and arguments for it."""

    name: str
    command: tuple[str, ...]
    tool: str
    good: dict[str, Json]
    bad: dict[str, Json]

    def fill(self, value: Json) -> Json:
        """`value` with the server's own words in place of TOOL, GOOD and BAD."""
        if isinstance(value, dict):
            return {key: self.fill(item) for key, item in value.items()}
        if isinstance(value, list):
            return [self.fill(item) for item in value]
        if isinstance(value, str):
            return {TOOL: self.tool, GOOD: self.good, BAD: self.bad}.get(value, value)
        return value


@dataclass(frozen=True)
class Say:
    """What the client writes: a JSON value that gets the era's envelope, or a text as it is.

    In a text `<M>` stands for the envelope as the first member of params.  `bare` values get no
    envelope, `peer` ones are for the tool of `peer.py` only, `header` makes a Content-Length block.
    """

    value: Json
    bare: bool = False
    peer: bool = False
    header: str = ""
    end: str = "\n"

    def render(self, target: Target, revision: str) -> bytes:
        """The bytes on the wire."""
        body = self.body(target, revision)
        if self.header:
            return self.header.format(len(body)).encode() + body
        return body + self.end.encode()

    def body(self, target: Target, revision: str) -> bytes:
        """The bytes of the message alone."""
        modern = revision in STATELESS
        if isinstance(self.value, bytes):
            return self.value
        if isinstance(self.value, str):
            envelope = json.dumps(ENVELOPE if modern else {})
            return self.value.replace("<M>", f'"_meta":{envelope}').encode()
        value = target.fill(self.value)
        if modern and not self.bare and isinstance(value, dict) and "id" in value:
            params = value.get("params", {})
            meta = {**ENVELOPE, **params.get("_meta", {})}
            value = {**value, "params": {**params, "_meta": meta}}
        return json.dumps(value, ensure_ascii=False).encode()


@dataclass(frozen=True)
class Hear:
    """What the server must write: a JSON value that has at least what the pattern has."""

    pattern: Json
    boxed: bool = False

    def takes(self, value: Json, boxed: bool, no_id: Json) -> bool:
        """True when this is it; `no_id` is what NO_ID stands for."""
        return boxed == self.boxed and _matches(self.pattern, value, no_id)


def _matches(pattern: Json, value: Json, no_id: Json) -> bool:
    if callable(pattern):
        return bool(pattern(value))
    if isinstance(pattern, dict):
        return isinstance(value, dict) and all(
            _member(item, value, key, no_id) for key, item in pattern.items()
        )
    if isinstance(pattern, list):
        return isinstance(value, list) and _same_items(pattern, value, no_id)
    return type(pattern) is type(value) and bool(pattern == value)


def _member(pattern: Json, value: dict[str, Json], key: str, no_id: Json) -> bool:
    pattern = no_id if pattern is NO_ID else pattern
    if pattern is ABSENT:
        return key not in value
    return key in value and _matches(pattern, value[key], no_id)


def _same_items(pattern: list[Json], value: list[Json], no_id: Json) -> bool:
    """Each pattern takes one item and each item is taken; their order is free."""
    left = list(value)
    for one in pattern:
        found = [item for item in left if _matches(one, item, no_id)]
        if not found:
            return False
        left.remove(found[0])
    return not left


@dataclass(frozen=True)
class End:
    """The client ends its side here, not behind the script."""


@dataclass(frozen=True)
class Row:
    """One line of the statement: level, revisions, where it is asked for, the statement, the script."""

    level: str
    eras: tuple[str, ...]
    source: str
    statement: str
    script: tuple[Say | Hear | End, ...] = ()
    fresh: bool = False  # the script starts before the handshake
    threads: bool = False  # calls must run side by side, which needs a process
    end: str = "eof"  # what ends the session: eof, TERM, INT or deaf (the client reads no more)
    alike: tuple[Json, ...] = ()  # ids whose answers are the same bytes but for the id
    options: tuple[str, ...] = ()
    environ: dict[str, str] = field(default_factory=dict)
    stderr: str = ""  # to be found there; a traceback is allowed only where one is asked for

    @property
    def peer(self) -> bool:
        """True when only the server of `peer.py` can play the script."""
        return any(isinstance(step, Say) and step.peer for step in self.script)

    @property
    def pure(self) -> bool:
        """True when the bytes say it all, so that the core can play the script without a process."""
        return not (self.threads or self.environ or self.stderr)

    def no_id(self, revision: str) -> Json:
        """What the revision has in place of an id that could not be read."""
        return ABSENT if self.fresh or revision in WITHOUT_NULL_ID else None


# -- rows ----------------------------------------------------------------------------------------------


def must(
    source: str,
    statement: str,
    *script: Say | Hear | End,
    eras: tuple[str, ...] = BOTH,
    **more: Json,
) -> Row:
    """A row for what the specification demands."""
    return Row("MUST", eras, source, statement, script, **more)


def should(
    source: str,
    statement: str,
    *script: Say | Hear | End,
    eras: tuple[str, ...] = BOTH,
    **more: Json,
) -> Row:
    """A row for what the specification recommends."""
    return Row("SHOULD", eras, source, statement, script, **more)


def robust(
    source: str,
    statement: str,
    *script: Say | Hear | End,
    eras: tuple[str, ...] = BOTH,
    **more: Json,
) -> Row:
    """A row for what no specification asks for, but hosts need."""
    return Row("ROBUST", eras, source, statement, script, **more)


# -- what is said --------------------------------------------------------------------------------------


def request(key: Json, method: str, /, **params: Json) -> Say:
    """A request, in the words of the row's revision."""
    value: dict[str, Json] = {"jsonrpc": "2.0", "id": key, "method": method}
    return Say({**value, "params": params} if params else value)


def plain(key: Json, method: str, /, **params: Json) -> Say:
    """A request without the stateless envelope, whatever the revision."""
    return Say(request(key, method, **params).value, bare=True)


def modern(key: Json, method: str, /, meta: Json = ENVELOPE, **params: Json) -> Say:
    """A request with the stateless envelope, or with `meta` in its place, whatever the revision."""
    return plain(key, method, _meta=meta, **params)


def initialize(version: Json = HANDSHAKE[-1], key: Json = 1, **more: Json) -> Say:
    client = {"name": "conformance", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client, **more}
    return plain(key, "initialize", **params)


def notify(method: str, /, **params: Json) -> Say:
    return Say({"jsonrpc": "2.0", "method": method, "params": params})


def cancel(key: Json) -> Say:
    return notify("notifications/cancelled", requestId=key, reason="a test")


def call(key: Json, **more: Json) -> Say:
    """A call that any server answers."""
    return request(key, "tools/call", name=TOOL, arguments=GOOD, **more)


def do(key: Json, deed: str, text: str = "", token: Json = None, **more: Json) -> Say:
    """A call of the tool of `peer.py`; `token` asks for progress."""
    meta = {} if token is None else {"_meta": {"progressToken": token}}
    arguments = {"do": deed, "text": text, **more}
    value = request(key, "tools/call", name=TOOL, arguments=arguments, **meta).value
    return Say(value, peer=True)


def line(text: str | bytes, end: str = "\n") -> Say:
    return Say(text, end=end)


# -- what is heard -------------------------------------------------------------------------------------


def answer(key: Json, boxed: bool = False, /, **result: Json) -> Hear:
    """A result that has at least these members."""
    return Hear({"jsonrpc": "2.0", "id": key, "error": ABSENT, "result": result}, boxed)


def error(key: Json, code: int, /, **more: Json) -> Hear:
    problem = {"code": code, "message": lambda text: isinstance(text, str) and bool(text), **more}
    return Hear({"jsonrpc": "2.0", "id": key, "result": ABSENT, "error": problem})


def says(key: Json, *texts: str, failed: bool = False, **more: Json) -> Hear:
    """The result of a call whose text holds all of these."""
    block = {"type": "text", "text": lambda text: all(part in text for part in texts)}
    return answer(key, content=[block], isError=failed, **more)


def progress(token: Json, done: float, **more: Json) -> Hear:
    params = {"progressToken": token, "progress": done, **more}
    return Hear({"id": ABSENT, "method": "notifications/progress", "params": params})


def acknowledged(key: Json) -> Hear:
    meta = {"io.modelcontextprotocol/subscriptionId": key}
    params = {"_meta": meta, "notifications": lambda honoured: honoured == {}}
    method = "notifications/subscriptions/acknowledged"
    return Hear({"jsonrpc": "2.0", "id": ABSENT, "method": method, "params": params})
