"""The bytes of a file and the text they stand for: encoding, line ends, offsets, etag.

Must not know: paths, and how a file is written.
"""

import codecs
import os
import stat

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import EDIT_BYTES, ETAG_WHOLE_BYTES
from toolroll.status import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

BLOCK_BYTES = 1 << 16
HASH_BYTES = 1 << 20
READS = 3


class Encoding:
    """How a file stores its text: `name` is for people, `bom` the bytes in front of the text."""

    __slots__ = ("_codec", "_errors", "_unit_bytes", "bom", "name")

    def __init__(self, name: str, codec: str, errors: str, bom: bytes = b"", unit: int = 1) -> None:
        self.name = name
        self.bom = bom
        self._codec = codec
        self._errors = errors
        self._unit_bytes = unit

    def __repr__(self) -> str:
        return f"Encoding({self.name})"

    def decode(self, data: bytes, start: int = 0, end: int | None = None) -> str:
        """The text of a file, or of its bytes `start` to `end`, without BOM and without `remainder`."""
        text = memoryview(data)[: len(data) - len(self.remainder(data))]
        return str(text[max(start, len(self.bom)) : end], self._codec, self._errors)

    def encode(self, text: str) -> bytes:
        """The bytes behind text that `decode` gave, or behind any part of it; without BOM."""
        return text.encode(self._codec, self._errors)

    def encode_strictly(self, text: str) -> bytes:
        """The bytes of new text, without BOM.

        Raises: UnicodeEncodeError, also for a lone surrogate.
        """
        return text.encode(self._codec)

    def remainder(self, data: bytes) -> bytes:
        """The odd last byte of UTF-16 data: it is no text, an edit leaves it where it is."""
        return data[len(data) - (len(data) - len(self.bom)) % self._unit_bytes :]


UTF8 = Encoding("UTF-8", "utf-8", "surrogateescape")
UTF8_BOM = Encoding("UTF-8 with BOM", "utf-8", "surrogateescape", codecs.BOM_UTF8)
UTF16_LE = Encoding("UTF-16 LE", "utf-16-le", "surrogatepass", codecs.BOM_UTF16_LE, 2)
UTF16_BE = Encoding("UTF-16 BE", "utf-16-be", "surrogatepass", codecs.BOM_UTF16_BE, 2)
LATIN1 = Encoding("Latin-1", "latin-1", "strict")


def detect(data: bytes, whole: bool = True) -> Encoding | None:
    """The encoding of a file, or None when it is binary: when its text holds a NUL.

    As in ripgrep that is a NUL byte, or after a UTF-16 BOM a U+0000.  `whole` is False for the
    head of a file, whose last character may be cut.
    """
    for encoding in (UTF16_LE, UTF16_BE):
        if data.startswith(encoding.bom):
            return None if "\0" in encoding.decode(data) else encoding
    if b"\0" in data:
        return None
    if data.startswith(UTF8_BOM.bom):
        return UTF8_BOM
    return UTF8 if _is_utf8(data, whole) else LATIN1


def _is_utf8(data: bytes, whole: bool) -> bool:
    """True unless there are bytes beyond ASCII and no multi-byte sequence among them is valid."""
    if data.isascii():
        return True
    view = memoryview(data)
    stray = False
    at = 0
    while at < len(data):
        last = whole and at + BLOCK_BYTES >= len(data)
        text, used = codecs.utf_8_decode(view[at : at + BLOCK_BYTES], "surrogateescape", last)
        if len(text) < used:  # only a valid sequence makes fewer characters than bytes
            return True
        if not used:
            break
        stray = stray or not text.isascii()
        at += used
    return not stray


def encode_new(text: str, encoding: Encoding, parameter: str) -> bytes:
    """The bytes of the text that a call gave as `parameter`, in the encoding of its file.

    Raises: ToolError INVALID_PARAMS naming the first character that the file cannot hold.
    """
    at = text.find("\0")
    if at >= 0:
        raise _cannot_hold(text, at, "a text file", parameter)
    try:
        return encoding.encode_strictly(text)
    except UnicodeEncodeError as error:
        raise _cannot_hold(text, error.start, encoding.name, parameter) from error


def _cannot_hold(text: str, at: int, holder: str, parameter: str) -> ToolError:
    import unicodedata

    character = text[at]
    what = f"U+{ord(character):04X}"
    if character.isprintable():
        what = f"'{character}' ({what})"
    name = unicodedata.name(character, "")
    hint = "Convert the file to UTF-8 first, or write the character as an escape."
    if "\ud800" <= character <= "\udfff":
        name, hint = "half of a surrogate pair", "Send well-formed Unicode text."
    if character == "\0":
        name, hint = "NUL", "Write it as an escape such as \\0."
    what = f"{what} {name}".rstrip()
    where = f"line {line_number(text, at)} of {parameter}"
    return ToolError(
        ErrorCode.INVALID_PARAMS, f"{where} has {what}, which {holder} cannot hold", hint
    )


def byte_offsets(
    text: str, positions: "Iterable[int]", encoding: Encoding, start: int
) -> list[int]:
    """Where in the file each of the ascending `positions` lies in the text that begins at `start`."""
    if text.isascii() and encoding in (UTF8, UTF8_BOM, LATIN1):
        return [start + position for position in positions]
    offsets = []
    offset, done = start, 0
    for position in positions:
        offset += len(encoding.encode(text[done:position]))
        done = position
        offsets.append(offset)
    return offsets


def line_ends(text: str) -> str:
    """What ends the lines: LF, CR LF, "mixed" for both, CR when there is no LF, "" for nothing."""
    if "\r" not in text:  # a count takes ten times as long
        return "\n" if "\n" in text else ""
    feeds, pairs = text.count("\n"), text.count("\r\n")
    if not feeds:
        return "\r"
    if not pairs:
        return "\n"
    return "\r\n" if pairs == feeds else "mixed"


def line_end_at(text: str, position: int) -> str:
    """The LF or CR LF of the line at `position`; when it has none, of the line before; else LF."""
    feed = text.find("\n", position)
    if feed < 0:
        feed = text.rfind("\n", 0, position)
    return "\r\n" if feed > 0 and text[feed - 1] == "\r" else "\n"


def with_line_end(text: str, line_end: str) -> str:
    """`text` with each LF and CR LF in it written as `line_end`."""
    plain = text.replace("\r\n", "\n") if "\r" in text else text
    return plain.replace("\n", line_end)


def line_number(text: str, position: int) -> int:
    """The number, from 1, of the line at `position`; only LF ends a line."""
    return text.count("\n", 0, position) + 1


def line_count(text: str) -> int:
    """How many lines there are; a last one without line end counts."""
    return text.count("\n") + (text != "" and not text.endswith("\n"))


def etag(status: os.stat_result, data: "bytes | int | Iterable[bytes | memoryview]") -> str:
    """The etag of a file: of its bytes up to 8 MB, of its status above.

    `data` is all its bytes, in one piece or several, or its open descriptor.
    """
    if status.st_size > ETAG_WHOLE_BYTES:
        return _status_etag(status)
    return _content_etag(data)


def matches(if_match: str, status: os.stat_result, data: bytes | int) -> bool:
    """True when either form of etag fits the file, whatever its size.

    Raises: ToolError INVALID_PARAMS when `if_match` has the form of no etag.
    """
    wanted = if_match.strip().strip('"').lower()
    digits = wanted.removeprefix("~")
    if len(digits) != 12 or not set(digits) <= set("0123456789abcdef"):
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"if_match '{if_match}' is no etag",
            "Give the 12 hex digits (with '~' in front where shown) that the last answer printed.",
        )
    return wanted == (_status_etag(status) if wanted[0] == "~" else _content_etag(data))


def _status_etag(status: os.stat_result) -> str:
    return "~" + _hex_digits((" ".join(map(str, state(status))).encode(),))


def _content_etag(data: "bytes | int | Iterable[bytes | memoryview]") -> str:
    if isinstance(data, int):
        return _hex_digits(_blocks(data))
    return _hex_digits((data,) if isinstance(data, bytes) else data)


def _hex_digits(blocks: "Iterable[bytes | memoryview]") -> str:
    """12 hex digits of BLAKE2b, the same as of `b2sum --length=48`."""
    try:
        from _blake2 import blake2b  # a tenth of the time hashlib takes to import
    except ImportError:
        from hashlib import blake2b
    digest = blake2b(digest_size=6)
    for block in blocks:
        digest.update(block)
    return digest.hexdigest()


def _blocks(descriptor: int) -> "Iterable[bytes]":
    at = 0
    while block := os.pread(descriptor, HASH_BYTES, at):
        yield block
        at += len(block)


def read(descriptor: int, shown: str, most: int = EDIT_BYTES) -> tuple[bytes, os.stat_result]:
    """All bytes of an open regular file, and the status they belong to.

    `shown` is the path in errors.

    Raises: ToolError NOT_A_FILE, TOO_LARGE above `most` bytes, EXECUTION_ERROR when the disk fails,
    CONFLICT when the file keeps changing while it is read.
    """
    for _ in range(READS):
        before = os.fstat(descriptor)
        if not stat.S_ISREG(before.st_mode):
            raise ToolError(ErrorCode.NOT_A_FILE, f"'{shown}' is not a regular file")
        try:
            data = _read(descriptor, before.st_size, most)
        except OSError as error:
            why = f"'{shown}' could not be read: {error.strerror}"
            raise ToolError(ErrorCode.EXECUTION_ERROR, why) from error
        if max(before.st_size, len(data)) > most:
            raise _too_large(shown, max(before.st_size, len(data)), most)
        if state(before) == state(os.fstat(descriptor)):
            return data, before
    raise ToolError(
        ErrorCode.CONFLICT,
        f"'{shown}' changed each of the {READS} times it was read",
        "Another program is writing it: call again when that is done.",
    )


def _read(descriptor: int, size: int, most: int) -> bytes:
    """Everything up to the end, but at most a block above `most`: /proc tells no size."""
    pieces: list[bytes] = []
    done = 0
    while size <= most and done <= most:
        piece = os.pread(descriptor, max(size + 1 - done, BLOCK_BYTES), done)
        if not piece:
            break
        pieces.append(piece)
        done += len(piece)
    return pieces[0] if len(pieces) == 1 else b"".join(pieces)


def _too_large(shown: str, size: int, most: int) -> ToolError:
    return ToolError(
        ErrorCode.TOO_LARGE,
        f"'{shown}' has {size:,} bytes, above the {most:,} that are worked on at once",
        "Use a program that streams the file, such as sed.",
    )
