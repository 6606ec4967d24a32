"""The official JSON Schemas of the five revisions, and what each message must fit.  Knows no server."""

import json
from functools import cache, lru_cache
from pathlib import Path
from typing import Any

from jsonschema.protocols import Validator
from jsonschema.validators import validator_for

Json = Any

SCHEMAS = Path(__file__).parent / "schemas"
RESULTS = {
    "initialize": "InitializeResult",
    "server/discover": "DiscoverResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "ping": "EmptyResult",
}
NOTIFICATIONS = {
    "notifications/progress": "ProgressNotification",
    "notifications/subscriptions/acknowledged": "SubscriptionsAcknowledgedNotification",
}


@cache
def _schema(revision: str) -> dict[str, Json]:
    schema: dict[str, Json] = json.loads((SCHEMAS / f"{revision}.json").read_text())
    return schema


@cache
def _validator(revision: str, name: str) -> Validator:
    schema = _schema(revision)
    definitions = "$defs" if "$defs" in schema else "definitions"
    return validator_for(schema)({**schema, "$ref": f"#/{definitions}/{name}"})


def faults(value: Json, revision: str, method: str = "") -> list[str]:
    """What the schema of the revision has against a message of the server; `method` is what it answers."""
    key = {"id": "text" if isinstance(value["id"], str) else 0} if "id" in value else {}
    return _faults(json.dumps({**value, **key}), revision, method)


@lru_cache(maxsize=256)
def _faults(text: str, revision: str, method: str) -> list[str]:
    value = json.loads(text)
    parts = [(_envelope(value, revision), value)]
    if "method" in value:
        parts.append((NOTIFICATIONS[value["method"]], value))
    if "result" in value and method:
        parts.append((RESULTS[method], value["result"]))
    return [
        problem.message
        for name, part in parts
        for problem in _validator(revision, name).iter_errors(part)
    ]


def _envelope(value: Json, revision: str) -> str:
    newer = revision >= "2025-11-25"
    if "method" in value:
        return "JSONRPCNotification"
    if "error" in value:
        return "JSONRPCErrorResponse" if newer else "JSONRPCError"
    return "JSONRPCResultResponse" if newer else "JSONRPCResponse"
