"""Every ceiling with its unit and where the number comes from; knows nothing but numbers and text."""

MESSAGE_BYTES = 10 * 1024 * 1024
"""Longest message read: the official TypeScript SDK's limit (it exits there; we refuse and go on)."""

OUTPUT_CHARS = 30_000
"""Longest answer: passes unharmed in every measured host but Codex (11,000) and Qwen Code (25,000)."""

DEADLINE_S = 20.0
"""When a read-only tool answers with what it has: a third of the 60 s after which many hosts give up."""

GRACE_S = 1.5
"""How long calls read before the end of input may still run."""

CANCEL_S = 0.5
"""How long a cancelled call may take to stop its work before the process ends without it."""

WORKERS = 8
"""Calls that run side by side; further ones wait their turn."""

WAITING_CALLS = 1_000
"""Calls that may wait for a worker; past that they are refused, so that memory stays bounded."""

RATE_PER_S, RATE_BURST = 50.0, 100
"""Sustained calls a second and the burst above it, as in the reference system."""

ETAG_WHOLE_BYTES = 8 * 1024 * 1024
"""Files up to this size have an etag of their bytes (6 ms at 1.3 GB/s); larger ones of their stat."""

IMAGE_BYTES = 5 * 1024 * 1024
"""Largest image sent as a block: the smallest limit among the model providers' own."""

LINE_CHARS = 2_000
"""Longest line shown whole; a longer one is clipped and the column to go on with is named."""

EDIT_BYTES = 100 * 1000 * 1000
"""Largest file that is edited or replaced in memory."""

SECRET_CHARS = 8
"""Shortest value of a secret-looking variable that is worth hiding: shorter ones occur by chance."""


def clip(text: str, most: int, how: str = "") -> str:
    """`text` in at most about `most` characters: head and tail, with a marker that says what is missing.

    `how` tells the reader how to get the rest.
    """
    if len(text) <= most:
        return text
    tail = most // 4
    head = most - tail
    start = text.rfind("\n", head - 400, head) + 1 or head
    end = text.find("\n", len(text) - tail, len(text) - tail + 400) + 1 or len(text) - tail
    missing = text[start:end]
    lines = missing.count("\n")
    what = f"{len(missing)} characters" + (f", {lines} lines," if lines else "")
    more = f" {how}" if how else ""
    return f"{text[:start].rstrip()}\n[truncated: {what} left out here.{more}]\n{text[end:]}"
