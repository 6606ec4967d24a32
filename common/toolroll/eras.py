"""The protocol revisions and what each wants of a request and of a result; pure functions, no state.

Two eras: *handshake* (2024-11-05 to 2025-11-25: `initialize`, then requests) and *stateless*
(2026-07-28: every request carries its revision and capabilities in `_meta`).  A request belongs to
the stateless era when its `_meta` names a protocol version, whatever came before it.
"""

from toolroll.errors import RpcCode, RpcError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = Any

STATELESS = "2026-07-28"
HANDSHAKE = ("2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05")
REVISIONS = (STATELESS, *HANDSHAKE)

BATCHING = ("2025-03-26", "2024-11-05")
"""Revisions that take batches: 2025-03-26 by its own word, 2024-11-05 because JSON-RPC 2.0 does."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
LEVEL_KEY = "io.modelcontextprotocol/logLevel"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"
SUBSCRIPTION_KEY = "io.modelcontextprotocol/subscriptionId"

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
LIST_TTL_MS = 3_600_000
"""How long a client may keep tools/list and server/discover: they only change with a new process."""


def is_stateless(params: "dict[str, Json]") -> bool:
    """True when a request says of itself which revision it speaks."""
    meta = params.get("_meta")
    return isinstance(meta, dict) and VERSION_KEY in meta


def check_envelope(params: "dict[str, Json]") -> None:
    """Return when the request's `_meta` is complete (MCP 2026-07-28 basic, `RequestMetaObject`).

    Raises: RpcError -32602, or -32022 for a revision that is not spoken.
    """
    meta = params.get("_meta")
    if not isinstance(meta, dict):
        raise invalid("_meta is missing; a client of an older revision sends initialize first")
    version = meta.get(VERSION_KEY)
    if not isinstance(version, str):
        raise invalid(f"_meta must hold {VERSION_KEY}, a string")
    if version != STATELESS:
        spoken = [revision for revision in REVISIONS if revision != version]
        raise RpcError(
            RpcCode.UNSUPPORTED_PROTOCOL_VERSION,
            "Unsupported protocol version",
            {"supported": spoken, "requested": version},
        )
    if not isinstance(meta.get(CAPABILITIES_KEY), dict):
        raise invalid(f"_meta must hold {CAPABILITIES_KEY}, an object")
    if not isinstance(meta.get(CLIENT_KEY, {}), dict):
        raise invalid(f"{CLIENT_KEY} must be an object")
    if meta.get(LEVEL_KEY, "info") not in LEVELS:
        raise invalid(f"{LEVEL_KEY} must be one of {', '.join(LEVELS)}")


def negotiate(params: "dict[str, Json]") -> str:
    """The revision that answers an `initialize`: the one asked for, else the newest with a handshake.

    MCP 2025-11-25 basic/lifecycle, "Version Negotiation".

    Raises: RpcError -32602.
    """
    version = params.get("protocolVersion")
    if not isinstance(version, str):
        raise invalid("protocolVersion must be a string")
    return version if version in HANDSHAKE else HANDSHAKE[0]


def progress_token(params: "dict[str, Json]") -> "str | int | None":
    """The token progress is to be reported with, None when the host wants none."""
    meta = params.get("_meta")
    token = meta.get("progressToken") if isinstance(meta, dict) else None
    if isinstance(token, bool) or not isinstance(token, str | int):
        return None
    return token


def dress(
    result: "dict[str, Json]", server: "dict[str, Json]", cacheable: bool
) -> "dict[str, Json]":
    """A result as the stateless era wants it (MCP 2026-07-28 `Result`, `CacheableResult`)."""
    meta = {**result.get("_meta", {}), SERVER_KEY: server}
    dressed = {"resultType": "complete", **result, "_meta": meta}
    if cacheable:
        dressed.update(ttlMs=LIST_TTL_MS, cacheScope="private")
    return dressed


def invalid(why: str) -> RpcError:
    """The refusal of a request whose params are wrong."""
    return RpcError(RpcCode.INVALID_PARAMS, f"Invalid params: {why}")
