"""What files hold, as UTF-8 and ready to be searched, kept warm from call to call within a bound.

Nothing kept is ever trusted without the file's status of now, and nothing that was read so soon
after a change that a second change could hide behind the same time stamp.  What searches found in
unchanged files is kept too.  Knows no pattern.
"""

import os
from codecs import BOM_UTF8, BOM_UTF16_BE, BOM_UTF16_LE, getincrementaldecoder
from operator import attrgetter
from stat import S_ISREG
from time import time_ns

from toolroll.listing import Listings
from toolroll.textfile import LATIN1, UTF8_BOM, detect, etag
from toolroll.trail import Trails

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    Stamp = tuple[int, int, int, int]
    Known = dict[tuple[str, int], "Part"]  # by folder, and the number of the first file

READ_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC

BLOCK_BYTES = 1 << 16
"""Files are looked at for NUL in blocks of this size, as by ripgrep."""

WHOLE_BYTES, HEAD_BYTES = 1 << 16, 1 << 14
"""Of files larger than the one so much as the other is read first: it tells most binary ones."""

PIECE_BYTES = 32 * 1024 * 1024
"""Larger files are searched piece by piece, each cut at a line's end, and not kept."""

YOUNG_NS = 2_000_000_000
"""How long after a change a file's time stamp may still stand for two contents (FAT: 2 s)."""

IDLE_CALLS = 8
"""What was not searched in so many calls makes room for what is."""

QUERIES = 8
"""Of so many searches it is kept what they found."""

LISTINGS_PART, TRAILS_PART = 8, 16
"""At most these parts of the room are for listings of directories and for what walks met, and"""

PARTS_PART = 12
"""this part is not for contents: with what searches found, files that have no room are not read again.
Half of it is for knowing which files are binary."""

GONE_FILES = 16
"""So many files of a folder that are no longer there may stay kept, and once more those that are."""

LARGE_PART = 16
"""Of the room that is left one file may take this part."""

ENTRY_BYTES = 470
"""What keeping a file costs besides its bytes."""

PART_BYTES, NAME_BYTES, STAMP_BYTES, HIT_BYTES = 400, 24, 200, 120
"""What keeping a part costs, for each name in it, for each stamp of a file that is not kept, for each hit."""

NEVER = (-1, -1, -1, -1)  # the stamp of a file that is to be read again

stamp = attrgetter("st_mtime_ns", "st_ctime_ns", "st_size", "st_ino")
"""What is the same in a file's status only as long as the file is what it was."""


class Content:
    """What one file held: `data` up to where it turns binary, None for nothing to be searched.

    `ascii` data is the same as text and as bytes; `nul` is where the first NUL stands, -1 for none;
    `encoding` is named when it is not UTF-8.
    """

    __slots__ = ("ascii", "data", "encoding", "etag", "mtime_ns", "nul", "stamp")

    def __init__(
        self, status: os.stat_result, data: bytes | None, nul: int = -1, encoding: str = ""
    ) -> None:
        self.data = data
        self.nul = nul
        self.encoding = encoding
        self.ascii = data is not None and data.isascii()
        self.etag = ""
        self.mtime_ns = status.st_mtime_ns
        settled = abs(time_ns() - status.st_ctime_ns) > YOUNG_NS
        self.stamp: Stamp = stamp(status) if settled else NEVER

    @property
    def is_plain(self) -> bool:
        """True for a text without NUL and for what has no text: each query may count them alike."""
        return self.nul < 0 or self.data is None

    @property
    def size(self) -> int:
        """What keeping it costs, in bytes."""
        return ENTRY_BYTES + (len(self.data) if self.data else 0)


def stamps(names: "Sequence[str]", directory_fd: int) -> "list[Stamp | None]":
    """The stamps that files have now, None for what is not there."""
    stat = os.stat
    try:
        return [stamp(stat(name, dir_fd=directory_fd, follow_symlinks=False)) for name in names]
    except OSError:
        return [_stamp_of(name, directory_fd) for name in names]


def _stamp_of(name: str, directory_fd: int) -> "Stamp | None":
    try:
        found: Stamp = stamp(os.stat(name, dir_fd=directory_fd, follow_symlinks=False))
    except OSError:
        return None
    return found


class Part:
    """What a search found in some files of a folder: `hits` as (mtime_ns, name, count), and binary files."""

    __slots__ = ("binary", "hits", "names", "size", "stamps")

    def __init__(self, names: tuple[str, ...]) -> None:
        self.names = names
        self.size = 0
        self.stamps: list[Stamp] = []  # of the contents that were searched
        self.hits: list[tuple[int, str, int]] = []
        self.binary = 0

    @property
    def is_sure(self) -> bool:
        """True when all files were searched, and can be told from what they become."""
        return len(self.stamps) == len(self.names) and NEVER not in self.stamps

    def weigh(self, kept: "dict[str, Content]") -> None:
        """Reckon what keeping it costs beside the contents that are kept, in bytes."""
        lone = sum(name not in kept for name in self.names)
        names, hits = len(self.names) * NAME_BYTES, len(self.hits) * HIT_BYTES
        self.size = PART_BYTES + names + hits + lone * STAMP_BYTES


class Batch:
    """Some files of a folder, all kept: their stamps, the texts by name, and the number of binary ones."""

    __slots__ = ("binary", "names", "stamps", "texts")

    def __init__(self, names: tuple[str, ...], contents: "Sequence[Content]") -> None:
        self.names = names
        self.stamps = [content.stamp for content in contents]
        self.texts = [
            (name, content, content.data)
            for name, content in zip(names, contents, strict=True)
            if content.data is not None
        ]
        self.binary = len(names) - len(self.texts)


class Kept:
    """What is kept of a folder: contents by name, batches by their first file; and the last call that asked."""

    __slots__ = ("batches", "contents", "used")

    def __init__(self) -> None:
        self.contents: dict[str, Content] = {}
        self.batches: dict[int, Batch] = {}
        self.used = 0

    def gather(
        self, first: int, names: tuple[str, ...], now: "Sequence[Stamp | None] | None"
    ) -> None:
        """Make a batch of files whose stamps are `now`, when they are all kept and the same for every query."""
        self.batches.pop(first, None)
        contents: list[Content] = []
        for name, current in zip(names, now or (), strict=False):
            content = self.contents.get(name)
            if content is None or content.stamp != current or not content.is_plain:
                return
            contents.append(content)
        if now:
            self.batches[first] = Batch(names, contents)


class Store:
    """Contents by folder and name, listings, and what the last searches found: in all at most `most` bytes."""

    def __init__(self, most: int) -> None:
        self.listings = Listings()
        self.trails = Trails()
        self._most = most
        self._contents_most = most - most // PARTS_PART - most // TRAILS_PART
        self._bytes = 0
        self._calls = 0
        self._folders: dict[str, Kept] = {}
        self._known: dict[Hashable, Known] = {}

    @property
    def trail_bytes(self) -> int:
        """The room for trails."""
        return self._most // TRAILS_PART

    @property
    def _room(self) -> int:
        return self._most - self._bytes - self.listings.size - self.trail_bytes

    def folder(self, path: str) -> Kept:
        """What is kept of a folder."""
        found = self._folders.get(path)
        if found is None:
            found = self._folders[path] = Kept()
        found.used = self._calls
        return found

    def keep(self, folder: Kept, name: str, content: Content) -> None:
        """Keep what a file holds, if there is room: a large one takes that of many, each as dear to read."""
        if name in folder.contents:
            self._bytes -= folder.contents.pop(name).size
            folder.batches.clear()  # which may hold it
        room = self._contents_most - self._bytes - self.listings.size
        size = content.size
        most = room // LARGE_PART if content.data else room + self._most // PARTS_PART // 2
        if size <= most and content.stamp is not NEVER:
            folder.contents[name] = content
            self._bytes += size

    def drop_gone(self, folder: Kept, names: "Sequence[str]") -> None:
        """Forget the contents of files that are not among `names`, when there are many."""
        if len(folder.contents) <= 2 * len(names) + GONE_FILES:
            return
        folder.batches.clear()
        for name in folder.contents.keys() - set(names):
            self._bytes -= folder.contents.pop(name).size

    def known(self, query: "Hashable") -> "Known":
        """What is known of a query; `learn` adds to it."""
        known = self._known[query] = self._known.pop(query, {})  # the last one now
        if len(self._known) > QUERIES:
            self._forget_oldest()
        return known

    def learn(
        self, known: "Known", place: tuple[str, int], part: Part, kept: "dict[str, Content]"
    ) -> None:
        """Keep what a query found in a part of a folder, instead of what older queries found."""
        old = known.pop(place, None)
        self._bytes -= old.size if old else 0
        part.weigh(kept)
        while part.size > self._room and len(self._known) > 1:
            self._forget_oldest()
        if part.size <= self._room:
            known[place] = part
            self._bytes += part.size

    def _forget_oldest(self) -> None:
        known = self._known.pop(next(iter(self._known)))
        self._bytes -= sum(part.size for part in known.values())

    def tidy(self) -> None:
        """Between two calls: when it is half full, forget what has not been searched for long."""
        self._calls += 1
        self.listings.begin(self._most // LISTINGS_PART)
        if self._bytes < self._most // 2 or self._calls % IDLE_CALLS:
            return
        oldest = self._calls - IDLE_CALLS
        for path in [path for path, folder in self._folders.items() if folder.used < oldest]:
            gone = self._folders.pop(path).contents.values()
            self._bytes -= sum(content.size for content in gone)

    def read(self, name: str, directory_fd: int) -> Content | None:
        """What the file `name` holds; None for no regular file or one to be read in pieces.

        Raises: OSError.
        """
        fd = os.open(name, READ_FLAGS, dir_fd=directory_fd)
        try:
            return self.read_open(fd)
        finally:
            os.close(fd)

    def read_open(self, fd: int) -> Content | None:
        """The same for an open file."""
        status = os.fstat(fd)  # before reading: what is read may be newer, never older
        if not S_ISREG(status.st_mode):
            return Content(status, None)
        size = status.st_size
        if size > WHOLE_BYTES:
            head = os.pread(fd, HEAD_BYTES, 0)
            if b"\0" in head and not head.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
                return content_of(head, status)
        if size > PIECE_BYTES:
            return None
        raw = os.pread(fd, size + 1, 0)
        if len(raw) > size:  # it grew, or tells no size, as in /proc
            raw += b"".join(_blocks(fd, len(raw)))
        return content_of(raw, status)


def _blocks(fd: int, at: int) -> "Iterator[bytes]":
    while at <= PIECE_BYTES and (block := os.pread(fd, BLOCK_BYTES, at)):
        yield block
        at += len(block)


def content_of(raw: bytes, status: os.stat_result) -> Content:
    """What the bytes of a whole file are as UTF-8."""
    nul = raw.find(b"\0")
    if raw.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
        encoding = detect(raw)
        if encoding is None:
            return Content(status, None, nul)
        text = encoding.decode(raw)
        made = Content(status, text.encode("utf-8", "surrogatepass"), -1, encoding.name)
    elif nul >= 0:
        return Content(status, raw[: _searched_until(raw, nul)] or None, nul)
    else:
        made = _plain(raw, status)
    if made.encoding:
        made.etag = etag(status, raw)
    return made


def _plain(raw: bytes, status: os.stat_result) -> Content:
    """What bytes without NUL are."""
    made = Content(status, raw)
    if made.ascii:
        return made
    encoding = detect(raw)
    if encoding is UTF8_BOM:
        return Content(status, raw[len(BOM_UTF8) :], -1, UTF8_BOM.name)
    if encoding is LATIN1:
        return Content(status, raw.decode("latin-1").encode(), -1, LATIN1.name)
    return made


def _searched_until(raw: bytes, nul: int) -> int:
    """How far ripgrep searches a file with its first NUL at `nul`: to the lines' end of the block before.

    Its blocks begin where the last whole line of the one before ended.
    """
    if nul < 3:
        return 0
    start = raw.rfind(b"\n", 0, 3) + 1  # it reads three bytes first, to see a byte order mark
    end = start + BLOCK_BYTES
    while end <= nul:
        after = raw.rfind(b"\n", start, end) + 1
        if after:
            start = after
            end = start + BLOCK_BYTES
        else:
            end += max(end - start, BLOCK_BYTES)
    return start


def pieces(fd: int) -> "Iterator[bytes]":
    """A file too large to be kept, in pieces that end with a line; up to a NUL.

    Raises: OSError.
    """
    rest, is_first = b"", True
    for block in _text_blocks(fd):
        nul = block.find(b"\0")
        if nul >= 0:
            if not is_first:
                yield rest + block[: block.rfind(b"\n", 0, nul) + 1]
            return
        is_first = False
        cut = block.rfind(b"\n") + 1
        if cut or len(rest) > PIECE_BYTES:
            yield rest + block[:cut]
            rest = block[cut:]
        else:
            rest += block
    if rest:
        yield rest


def _text_blocks(fd: int) -> "Iterator[bytes]":
    """A file in blocks; what begins with the byte order mark of UTF-16 is made UTF-8."""
    at = 0
    decoder = None
    while block := os.pread(fd, PIECE_BYTES, at):
        if not at and block.startswith((BOM_UTF16_LE, BOM_UTF16_BE)):
            decoder = getincrementaldecoder("utf-16")("replace")
        at += len(block)
        yield block if decoder is None else decoder.decode(block).encode()
