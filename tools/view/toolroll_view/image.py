"""Images by their own bytes: format, size in pixels, content block; knows no files.

Only what is whole goes out: a broken image makes the model's provider refuse the conversation.
"""

from binascii import b2a_base64
from struct import unpack_from

from toolroll.errors import ErrorCode, ToolError

SIDE_PIXELS = 8000
"""Longest side that Anthropic's interface takes; it refuses the whole request above."""

JPEG_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
"""Markers of segments that hold the size (ITU-T T.81 table B.1)."""

JPEG_BARE = frozenset({0x01, 0xFF, *range(0xD0, 0xD8)})
"""Markers without a segment; 0xFF fills."""


def recognise(head: bytes) -> tuple[str, str] | None:
    """The name and media type of an image, None for anything else."""
    if head.startswith(b"\x89PNG\r\n\x1a\n"):
        return "PNG", "image/png"
    if head.startswith(b"\xff\xd8\xff"):
        return "JPEG", "image/jpeg"
    if head.startswith((b"GIF87a", b"GIF89a")):
        return "GIF", "image/gif"
    if head.startswith(b"RIFF") and head[8:12] == b"WEBP":
        return "WebP", "image/webp"
    return None


def pixels(data: bytes, mime: str) -> tuple[int, int] | None:
    """Width and height, None for an image that is damaged or ends too early."""
    read = {"image/png": _png, "image/jpeg": _jpeg, "image/gif": _gif, "image/webp": _webp}[mime]
    size = read(data)
    return size if size and all(size) else None


def block(data: bytes, mime: str) -> dict[str, str]:
    """The content block of an image."""
    text = b2a_base64(data, newline=False).decode("ascii")
    return {"type": "image", "data": text, "mimeType": mime}


def too_large(shown: str, name: str, size: str, most: str) -> ToolError:
    """The error for an image that no host may be sent."""
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"{shown} is a {name} image of {size}, above the {most} that can be shown",
        "Make a smaller copy and view that.",
    )


def _png(data: bytes) -> tuple[int, int] | None:
    if len(data) < 33 or data[12:16] != b"IHDR" or b"IEND" not in data[-4096:]:
        return None
    width, height = unpack_from(">II", data, 16)
    return width, height


def _gif(data: bytes) -> tuple[int, int] | None:
    if len(data) < 14 or not data.rstrip(b"\0").endswith(b";"):
        return None
    width, height = unpack_from("<HH", data, 6)
    return width, height


def _jpeg(data: bytes) -> tuple[int, int] | None:
    if b"\xff\xd9" not in data:
        return None
    at = 2
    while at + 9 <= len(data) and data[at] == 0xFF:
        marker = data[at + 1]
        if marker in JPEG_FRAMES:
            height, width = unpack_from(">HH", data, at + 5)
            return width, height
        if marker in JPEG_BARE:
            at += 1 if marker == 0xFF else 2
        else:
            at += 2 + int(unpack_from(">H", data, at + 2)[0])
    return None


def _webp(data: bytes) -> tuple[int, int] | None:
    if len(data) < 30 or unpack_from("<I", data, 4)[0] + 8 > len(data):
        return None
    form = data[12:16]
    if form == b"VP8X":
        width, height = data[24:27] + b"\0", data[27:30] + b"\0"
        return unpack_from("<I", width)[0] + 1, unpack_from("<I", height)[0] + 1
    if form == b"VP8L":
        bits = unpack_from("<I", data, 21)[0]
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if form == b"VP8 ":
        width, height = unpack_from("<HH", data, 26)
        return width & 0x3FFF, height & 0x3FFF
    return None
