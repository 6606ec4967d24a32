"""A text that can be paged: its bytes, encoding, line index and etag; knows no pages.

Files up to 8 MB are read whole, so that a page, its etag and its line numbers belong to one state.
"""

import os

from toolroll import textfile
from toolroll.limits import ETAG_WHOLE_BYTES
from toolroll.textfile import LATIN1, UTF8, Encoding
from toolroll_view.index import Index, index_of
from toolroll_view.lines import Feeds, decode
from toolroll_view.source import Disk, Memory, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll_view.lines import Source

HEAD_BYTES = 1 << 16
"""Looked at to tell text from binary and to find the encoding of a large file."""

COUNT_BYTES = 1 << 26
"""Files up to this size have their lines counted to the end, which takes about 30 ms."""


class Document:
    """`start` is the first byte of the text, behind a BOM; `line_end` is "", LF, CR, CRLF or mixed.

    `partial` says that only the beginning of a file without size was read.
    """

    __slots__ = (
        "encoding",
        "etag",
        "feeds",
        "index",
        "language",
        "line_end",
        "partial",
        "path",
        "samples",
        "source",
        "start",
        "status",
    )

    def __init__(
        self, source: "Source", encoding: Encoding, status: os.stat_result, etag: str, path: str
    ) -> None:
        self.source = source
        self.encoding = encoding
        self.status = status
        self.etag = etag
        self.path = path
        self.feeds = Feeds(encoding)
        self.start = len(encoding.bom)
        self.index = Index(self.feeds, self.start)
        self.language = ""
        self.line_end = ""
        self.partial = False
        self.samples: tuple[bytes, ...] = ()

    @property
    def countable(self) -> bool:
        """True when the lines may be counted to the end just to name their number."""
        return self.source.size <= COUNT_BYTES or self.index.total is not None

    def look_at(self, at: int) -> None:
        """Have the bytes at `at` speak for the encoding too, where the file is too large to read whole."""
        if self.samples and not self.start:
            sample = self.source.read(at, HEAD_BYTES)
            self.encoding = _encoding((*self.samples, sample), whole=False)

    def text(self, at: int, count: int) -> tuple[str, int]:
        """The text of at most `count` bytes at `at`, cut between characters, and the bytes it took."""
        data = self.source.read(at, count)
        return decode(self.encoding, data, final=len(data) < count)


def rendered(text: str, status: os.stat_result, etag: str, path: str) -> Document:
    """The document of a text that was made from a file: a notebook, a PDF."""
    made = Document(Memory(UTF8.encode(text)), UTF8, status, etag, path)
    made.line_end = "LF"
    return made


def document_of(disk: Disk, status: os.stat_result, path: str) -> Document:
    """The document of an open text file, as far as possible in the state of `status`."""
    if status.st_size <= ETAG_WHOLE_BYTES:
        data, more = read_whole(disk, ETAG_WHOLE_BYTES)
        if not (more and status.st_size):
            return _whole(data, more, status, path)
    head = disk.read(0, HEAD_BYTES)
    encoding = _encoding((head,), whole=False)
    made = Document(disk, encoding, status, textfile.etag(status, b""), path)
    made.samples = (head, disk.read(status.st_size // 2, HEAD_BYTES))
    made.index = index_of(status, made.feeds, made.start)
    made.line_end = _line_end(head, made.encoding)
    return made


def _whole(data: bytes, more: bool, status: os.stat_result, path: str) -> Document:
    encoding = _encoding((data,), whole=True)
    etag = "" if more else textfile.etag(status, data)
    made = Document(Memory(data), encoding, status, etag, path)
    made.line_end = _line_end(data, encoding)
    made.partial = more
    return made


def _encoding(samples: tuple[bytes, ...], whole: bool) -> Encoding:
    """The encoding that all samples of a text together speak for; the first begins the file.

    A NUL further in does not make a text binary here: a log with one is still to be read.
    """
    begin = samples[0][:HEAD_BYTES]
    found = textfile.detect(begin, whole and len(begin) == len(samples[0]))
    if found is not None and found.bom:
        return found
    strange = [data for data in samples if not data.isascii()]
    for data in strange:
        to_end = whole or len(data) < HEAD_BYTES  # then its last character is not cut
        if textfile.detect(data.replace(b"\0", b" "), to_end) is not LATIN1:
            return UTF8
    return LATIN1 if strange else UTF8


def _line_end(data: bytes, encoding: Encoding) -> str:
    if b"\r" not in data:
        return "LF" if b"\n" in data else ""
    text, _ = decode(encoding, data, final=False)
    names = {"": "", "\n": "LF", "\r": "CR", "\r\n": "CRLF", "mixed": "mixed"}
    return names[textfile.line_ends(text)]


def state(status: os.stat_result) -> tuple[int, ...]:
    """What differs after any change of a file."""
    return status.st_size, status.st_mtime_ns, status.st_ctime_ns
