"""Where the lines of a large file start: found by counting, remembered sparsely between calls.

Knows nothing of text.  An index belongs to one state of one file and is never used for another.
"""

import os
from _bisect import bisect_left
from _thread import allocate_lock
from time import time_ns

from toolroll_view.source import BLOCK_BYTES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll_view.lines import Feeds, Source

STRIDE_BYTES = 1 << 20
COUNTS = 4096
"""Entries of one index; past that every second one is forgotten: 1 MB apart up to 4 GB."""

MARKS = 64
FILES = 16

SETTLED_NS = 100_000_000
"""A file that changed more recently may change again within the same tick of its clock, unseen."""

REPORT_BYTES = 1 << 26


class DeadlineError(Exception):
    """The deadline passed during a search; `line` is how far it came."""

    def __init__(self, line: int) -> None:
        super().__init__()
        self.line = line


class Index:
    """The number of feeds before each stride of a file, and the exact start of a few lines.

    `start` is the byte of the first line.  `total` is the number of lines, None while unknown.
    """

    __slots__ = ("_counts", "_feeds", "_lock", "_marks", "_start", "_stride", "total")

    def __init__(self, feeds: "Feeds", start: int) -> None:
        self.total: int | None = None
        self._feeds = feeds
        self._start = start
        self._counts = [0]
        self._stride = STRIDE_BYTES
        self._marks: dict[int, int] = {1: start}
        self._lock = allocate_lock()

    def locate(self, line: int, source: "Source", call: "Call") -> int | None:
        """The byte where `line` starts, None when the file has fewer; sets `total` at the end.

        Raises: DeadlineError; the next search goes on from there.  ToolError CANCELLED.
        """
        if self.total is not None and line > self.total:
            return None
        wanted = line - 1
        at, before = self._nearest(line)
        if before == wanted and at == self._marks.get(line):
            return at
        buffer = bytearray(BLOCK_BYTES)
        view = memoryview(buffer)
        while got := source.fill(view[: BLOCK_BYTES - (at - self._start) % BLOCK_BYTES], at):
            here = self._feeds.count(buffer, got)
            if before + here >= wanted:
                found = at + self._feeds.nth(buffer, got, wanted - before)
                if self._feeds.follow(found, source):
                    return found
                before, at = wanted, found  # the end: what follows the last feed is no line
                break
            at, before = at + got, before + here
            self._record(at, before)
            call.check()
            if call.wants_progress and (at - self._start) % REPORT_BYTES == 0:
                call.progress(at, source.size, f"at line {before + 1}")
            if call.expired:
                raise DeadlineError(before + 1)
        self.total = before + self._tail_is_open(at, source)
        return None

    def count(self, source: "Source", call: "Call") -> int:
        """The number of lines; counts what was not counted yet.

        Raises: as `locate`.
        """
        if self.total is None:
            self.locate(1 << 62, source, call)
        return self.total or 0

    def mark(self, line: int, at: int) -> None:
        """Remember where a line starts, to go on there."""
        with self._lock:
            self._marks[line] = at
            while len(self._marks) > MARKS:
                del self._marks[next(key for key in self._marks if key > 1)]

    def _nearest(self, line: int) -> tuple[int, int]:
        """A known byte at or before the start of `line`, and the feeds before it."""
        with self._lock:
            passed = max(bisect_left(self._counts, line - 1) - 1, 0)
            near = self._start + passed * self._stride, self._counts[passed]
            marks = [(at, known - 1) for known, at in self._marks.items() if known <= line]
        return max(near, *marks)

    def _record(self, at: int, before: int) -> None:
        with self._lock:
            if at - self._start != len(self._counts) * self._stride:
                return
            self._counts.append(before)
            if len(self._counts) > COUNTS:
                self._counts = self._counts[::2]
                self._stride *= 2

    def _tail_is_open(self, at: int, source: "Source") -> bool:
        """True when text follows the last feed before the end `at`."""
        width = self._feeds.width
        last = self._start + (at - self._start) // width * width
        return last > self._start and source.read(last - width, width) != self._feeds.mark


def from_end(
    lines: int, source: "Source", feeds: "Feeds", start: int, call: "Call"
) -> tuple[int, bool]:
    """The byte where the last `lines` lines start, and whether that is the start of the file.

    Raises: DeadlineError, ToolError CANCELLED.
    """
    end = start + (source.size - start) // feeds.width * feeds.width
    wanted = lines + (source.read(end - feeds.width, feeds.width) == feeds.mark)
    buffer = bytearray(BLOCK_BYTES)
    view = memoryview(buffer)
    while end > start:
        begin = max(start, end - BLOCK_BYTES)
        got = source.fill(view[: end - begin], begin)
        here = feeds.count(buffer, got)
        if here >= wanted:
            return begin + feeds.nth(buffer, got, here - wanted + 1), False
        wanted, end = wanted - here, begin
        call.check()
        if call.expired:
            raise DeadlineError(0)
    return start, True


_kept: "dict[tuple[int, int], tuple[tuple[int, ...], Index]]" = {}
_kept_lock = allocate_lock()


def index_of(status: os.stat_result, feeds: "Feeds", start: int) -> Index:
    """The index of a file in the state of `status`, from an earlier call or new."""
    key = status.st_dev, status.st_ino
    state = status.st_size, status.st_mtime_ns, status.st_ctime_ns, feeds.width, start
    with _kept_lock:
        found = _kept.pop(key, None)
        if found is None or found[0] != state:
            found = state, Index(feeds, start)
        if time_ns() - status.st_ctime_ns > SETTLED_NS:
            _kept[key] = found
        while len(_kept) > FILES:
            del _kept[next(iter(_kept))]
    return found[1]
