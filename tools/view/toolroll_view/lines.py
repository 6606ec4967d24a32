"""Lines in encoded bytes: where they end, and one after another in constant memory.

Knows nothing of pages, numbers and files.  Only LF ends a line, as for sed, git and editors.
"""

import codecs

from toolroll.textfile import LATIN1, UTF8, UTF8_BOM, UTF16_BE, UTF16_LE, Encoding
from toolroll_view.source import BLOCK_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolroll.call import Call
    from toolroll_view.source import Disk, Memory

    Bytes = bytes | bytearray
    Source = Disk | Memory
    Decoder = Callable[[bytes, str, bool], tuple[str, int]]

WINDOW_BYTES = 1 << 16
"""Read ahead for lines: a page of the usual 30,000 characters is one read."""

LEAP_BYTES = 40
SAMPLE_BYTES = 4096
"""From lines of this many bytes on counting by `replace` wins; 2.5 times at 100, 20 times at 1,000."""

DECODERS: "dict[Encoding, tuple[Decoder, str]]" = {
    UTF8: (codecs.utf_8_decode, "surrogateescape"),
    UTF8_BOM: (codecs.utf_8_decode, "surrogateescape"),
    UTF16_LE: (codecs.utf_16_le_decode, "surrogatepass"),
    UTF16_BE: (codecs.utf_16_be_decode, "surrogatepass"),
    LATIN1: (lambda data, errors, _: codecs.latin_1_decode(data, errors), "strict"),
}


class Feeds:
    """The line feeds of an encoding: `mark` is one, `width` its bytes, aligned to `width`."""

    __slots__ = ("mark", "width")

    def __init__(self, encoding: Encoding) -> None:
        self.mark = encoding.encode("\n")
        self.width = len(self.mark)

    def count(self, data: "Bytes", end: int) -> int:
        """How many feeds there are before `end`."""
        if self.width == 1:
            return _count(data, end)
        feeds, at = 0, self.find(data, 0, end)
        while at >= 0:
            feeds, at = feeds + 1, self.find(data, at, end)
        return feeds

    def find(self, data: "Bytes", start: int, end: int) -> int:
        """Where the line behind the next feed starts, -1 without one."""
        at = data.find(self.mark, start, end)
        while at >= 0 and at % self.width:  # the halves of two characters
            at = data.find(self.mark, at + 1, end)
        return at + self.width if at >= 0 else -1

    def follow(self, at: int, source: "Source") -> bool:
        """True when a line begins at `at`: there is a whole character, not just UTF-16's odd byte."""
        return len(source.read(at, self.width)) == self.width

    def nth(self, data: "Bytes", end: int, number: int) -> int:
        """Where the line behind the feed of that number starts; there must be so many."""
        at = 0
        for _ in range(number):
            at = self.find(data, at, end)
        return at


def _count(data: "Bytes", end: int) -> int:
    """`bytes.count` looks at each byte, `replace` leaps from feed to feed: faster in longer lines."""
    if data.count(b"\n", 0, SAMPLE_BYTES) * LEAP_BYTES > SAMPLE_BYTES:
        return data.count(b"\n", 0, end)
    part = data if end == len(data) else data[:end]
    return end - len(part.replace(b"\n", b""))


def decode(encoding: Encoding, data: bytes, final: bool) -> tuple[str, int]:
    """The text of a piece and how many bytes it took: a character cut at the end is left over.

    `final` leaves nothing over but the odd last byte of UTF-16.
    """
    decoder, errors = DECODERS[encoding]
    if encoding in (UTF16_LE, UTF16_BE):
        data = data[: len(data) & ~1]
    return decoder(data, errors, final)


class Line:
    """The columns asked for of one line, which lies at the bytes `start` to `end`.

    `length` is that of the whole line in characters, None when time ran out before its end.
    """

    __slots__ = ("end", "fed", "length", "start", "text")

    def __init__(self, text: str, length: int | None, start: int, end: int, fed: bool) -> None:
        self.text = text
        self.length = length
        self.start = start
        self.end = end
        self.fed = fed


class Reader:
    """The lines of a source from the byte `at` on."""

    __slots__ = ("_call", "_data", "_encoding", "_feeds", "_from", "_return", "_source", "at")

    def __init__(self, source: "Source", encoding: Encoding, at: int, call: "Call") -> None:
        self.at = at
        self._source = source
        self._encoding = encoding
        self._feeds = Feeds(encoding)
        self._return = encoding.encode("\r")
        self._call = call
        self._data = b""
        self._from = at

    def line(self, first: int, last: int) -> Line | None:
        """Columns `first` to `last` of the next line, None at the end."""
        found = self._next(first, last)
        if found is not None:
            self.at = found.end
        return found

    def _next(self, first: int, last: int) -> Line | None:
        start = self.at - self._from
        end = self._feeds.find(self._data, start, len(self._data))
        if end < 0:
            self._data, self._from, start = self._source.read(self.at, WINDOW_BYTES), self.at, 0
            end = self._feeds.find(self._data, 0, len(self._data))
            if end < 0 and len(self._data) == WINDOW_BYTES:
                return self._long(first, last)
        fed = end >= 0
        raw = self._data[start : end - self._feeds.width] if fed else self._data[start:]
        if not fed and len(raw) < self._feeds.width:
            return None
        text, _ = decode(self._encoding, raw, final=True)
        if fed and text.endswith("\r"):
            text = text[:-1]
        end = self.at + len(raw) + (self._feeds.width if fed else 0)
        return Line(text[first - 1 : last], len(text), self.at, end, fed)

    def _long(self, first: int, last: int) -> Line:
        """A line of any length, in blocks of which only the columns are kept."""
        pieces: list[str] = []
        column, at, held, fed, returned = 0, self.at, b"", False, False
        over = False
        while not over:
            self._call.check()
            if self._call.expired:
                return Line("".join(pieces), None, self.at, at, fed=False)
            block = self._source.read(at, BLOCK_BYTES)
            feed = self._feeds.find(block, 0, len(block))
            fed = feed >= 0
            over = fed or len(block) < BLOCK_BYTES
            at += feed if fed else len(block)
            body = held + (block[: feed - self._feeds.width] if fed else block)
            returned = body.endswith(self._return) or (not body and returned)
            if column >= last and self._feeds.width == 1 and body.isascii():
                column, held = column + len(body), b""  # as many characters as bytes
                continue
            text, used = decode(self._encoding, body, over)
            held = body[used:]
            if column < last and column + len(text) >= first:
                pieces.append(text[max(first - 1 - column, 0) : last - column])
            column += len(text)
        column -= fed and returned
        return Line("".join(pieces)[: max(column - first + 1, 0)], column, self.at, at, fed)
