"""Bytes to frames and back: one JSON text a line, or a Content-Length block; knows nothing of JSON-RPC.

MCP wants newlines (MCP 2026-07-28 basic/transports/stdio); clients written for language servers
send `Content-Length: N` blocks, and are answered in kind.  Which of the two a frame is shows at the
start of its line, so both may be mixed on one wire.
"""

from toolroll.limits import MESSAGE_BYTES

HEADER = b"content-length:"

EDGE_BYTES = 512
"""What is kept of each end of an oversize message, to find the id it is refused with."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


class Frame:
    """One message as it came: `data` its JSON text, `boxed` whether in a Content-Length block.

    An oversize message has `size` over MESSAGE_BYTES; then `data` is its head and `tail` its end,
    EDGE_BYTES each.
    """

    __slots__ = ("boxed", "data", "size", "tail")

    def __init__(self, data: bytes, boxed: bool, size: int = 0, tail: bytes = b"") -> None:
        self.data = data
        self.boxed = boxed
        self.size = size or len(data)
        self.tail = tail

    @property
    def oversize(self) -> bool:
        """True when the message was drained instead of kept."""
        return self.size > MESSAGE_BYTES


def enframe(data: bytes, boxed: bool) -> bytes:
    """The bytes that carry the JSON text `data`, which holds no newline."""
    return b"Content-Length: %d\r\n\r\n%s" % (len(data), data) if boxed else data + b"\n"


class Framer:
    """Cuts what arrives into frames; the same bytes cut anywhere give the same frames.

    Holds at most one incomplete message.  Blank lines carry nothing and are passed over.
    """

    __slots__ = ("_announced", "_awaited", "_buffer", "_drained", "_head", "_scanned")

    def __init__(self) -> None:
        self._buffer = bytearray()
        self._scanned = 0  # bytes of the buffer known to hold no newline
        self._announced = -1  # length of a body whose header lines are being read; -1 outside
        self._awaited = -1  # bytes of a body still to come; -1 outside of a body
        self._head = b""  # of an oversize message; empty when none is being drained
        self._drained = 0  # bytes of it let go so far

    def feed(self, data: bytes) -> "Iterator[Frame]":
        """The frames that `data` completes."""
        self._buffer += data
        while True:
            boxed = self._awaited >= 0
            end = self._body_end() if boxed else self._buffer.find(b"\n", self._scanned)
            if end < 0:
                break
            frame = self._frame(self._take(end), boxed)
            if frame is not None:
                yield frame
        if self._awaited < 0:
            self._drain(MESSAGE_BYTES)
            self._scanned = len(self._buffer)

    def finish(self) -> "Iterator[Frame]":
        """The last line when the input ended without a newline; half a block is dropped."""
        if self._awaited < 0 and self._buffer:
            yield from self.feed(b"\n")

    def _body_end(self) -> int:
        """Where the awaited body ends in the buffer, -1 when it is incomplete."""
        if len(self._buffer) >= self._awaited:
            return self._awaited
        if self._drained + self._awaited > MESSAGE_BYTES:
            self._awaited -= self._drain(EDGE_BYTES)
        return -1

    def _drain(self, most: int) -> int:
        """How many bytes were let go of a message that has grown past `most`, but for its edges."""
        surplus = len(self._buffer) - EDGE_BYTES
        if surplus <= 0 or not (self._head or len(self._buffer) > most):
            return 0
        self._head = self._head or bytes(self._buffer[:EDGE_BYTES])
        self._drained += surplus
        del self._buffer[:surplus]
        return surplus

    def _take(self, end: int) -> bytes:
        """The first `end` bytes, taken out of the buffer together with the newline of a line."""
        data = bytes(self._buffer[:end])
        del self._buffer[: end if self._awaited >= 0 else end + 1]
        self._scanned, self._awaited = 0, -1
        return data

    def _frame(self, data: bytes, boxed: bool) -> Frame | None:
        """What the taken bytes are: a message, or None for a header line or a blank one."""
        size, head = self._drained + len(data), self._head
        self._drained, self._head = 0, b""
        if size > MESSAGE_BYTES:
            return Frame((head or data)[:EDGE_BYTES], boxed, size, data[-EDGE_BYTES:])
        if boxed:
            return Frame(data, boxed)
        line = data.strip(b" \t\r")
        if self._reads_header(line) or not line:
            return None
        return Frame(line, boxed)

    def _reads_header(self, line: bytes) -> bool:
        """True when `line` belongs to a block's header; the blank line behind it starts the body."""
        value = line[len(HEADER) :].strip()
        if line[: len(HEADER)].lower() == HEADER and value.isdigit() and len(value) < 20:
            self._announced = int(value)
            return True
        if self._announced < 0:
            return False
        if line.startswith((b"{", b"[")):  # no header: the client writes lines after all
            self._announced = -1
            return False
        if not line:
            self._awaited, self._announced = self._announced, -1
        return True
