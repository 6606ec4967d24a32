"""The searching process: walks, reads and searches for its parent, and keeps what it read warm.

It is forked at the first call, told everything over one socket, and ends when that socket does: a
killed server leaves nothing behind.  A pattern that does not come to an end is ended with it.
"""

import os
from _queue import SimpleQueue
from _thread import allocate_lock, start_new_thread
from itertools import repeat
from marshal import dumps, loads
from sys import byteorder
from time import monotonic

from toolroll.call import Call
from toolroll.errors import ToolError
from toolroll.globs import matcher
from toolroll.listing import BATCH_ENTRIES
from toolroll.textfile import etag
from toolroll.trail import Trail
from toolroll.walk import Rules, Sieve, Skipped, walk
from toolroll_grep.border import Border, key
from toolroll_grep.contents import (
    PIECE_BYTES,
    Batch,
    Content,
    Kept,
    Part,
    Store,
    pieces,
    stamp,
    stamps,
)
from toolroll_grep.engine import Finder, clipped, window
from toolroll_grep.pattern import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from _socket import socket
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any

    from toolroll.paths import Roots
    from toolroll.walk import Folder
    from toolroll_grep.contents import Stamp

    Json = Any
    Hit = tuple[int, str, int]  # mtime_ns, path, count
    Shown = tuple[int, int, str, bool, str, str, str]
    # line, column, text, is it a match, remark, and what stands before and behind what was cut out

BEAT_S = 0.2
"""How often the parent hears of a search; it thinks of a silent one that it hangs."""

PROCESSES = 2
"""How many share a large tree, one from either end: a third gained nothing on two cores, and costs memory."""

LARGE_FILES = 1_000
"""From this many files on, a second process pays."""

STUCK_FILES = 3
"""After so many files that the pattern did not get through, the rest is not tried."""

MEMORY_BYTES = 4 << 30
"""What a search may take before it is stopped for eating memory."""

HEAD = 4  # bytes in front of a message that tell its length
COUNTED = ("files", "binary", "unreadable", "vanished")
BINARY = -1  # in the place of a number of matches
WALK = ("base", "hidden", "git", "no_ignore", "no_ignore_vcs", "share", "cut")
"""What of a request must be the same for the same directories and files to be met."""

REQUESTS = ("find", "show")  # what a descriptor comes with


class Task(Call):
    """The part of a call that the walk needs: may it go on."""

    def __init__(self, deadline: float | None) -> None:
        self.cancelled = False
        self.deadline = deadline
        self.pulse: Callable[[], None] | None = None

    def check(self) -> None:
        """The same; the walk asks at every folder, so a long one is heard of too."""
        super().check()
        if self.pulse is not None:
            self.pulse()


class Wire:
    """The socket to the parent: whole messages in and out, descriptors with them."""

    def __init__(self, end: "socket") -> None:
        self._end = end
        self._turn = allocate_lock()
        self._data = b""
        self._fds: list[int] = []

    def send(self, *message: "Json", fd: int | None = None) -> None:
        """Send one message, with a descriptor.  Raises: OSError when the other side has gone."""
        data = dumps(message)
        data = len(data).to_bytes(HEAD, "little") + data
        with self._turn:
            if fd is not None:
                from _socket import SCM_RIGHTS, SOL_SOCKET

                note = (SOL_SOCKET, SCM_RIGHTS, fd.to_bytes(4, byteorder))
                data = data[self._end.sendmsg([data], [note]) :]
            self._end.sendall(data)

    def receive(self) -> "list[tuple[Json, ...]] | None":
        """The messages that are there, waiting for more data once; None when the other side ended.

        A descriptor that came with a message is its last item.  Raises: OSError.
        """
        from _socket import CMSG_SPACE

        data, notes, _, _ = self._end.recvmsg(1 << 20, CMSG_SPACE(4))
        if not data:
            return None
        self._fds += [int.from_bytes(note[2][:4], byteorder) for note in notes]
        self._data += data
        return list(self._messages())

    def _messages(self) -> "Iterator[tuple[Json, ...]]":
        while len(self._data) >= HEAD:
            end = HEAD + int.from_bytes(self._data[:HEAD], "little")
            if len(self._data) < end:
                return
            message: tuple[Json, ...] = loads(self._data[HEAD:end])  # noqa: S302 - our own process wrote it
            self._data = self._data[end:]
            yield (*message, self._fds.pop(0)) if message[0] in REQUESTS else message


def live(end: "socket", cache_bytes: int, border: Border, roots: "Roots | None" = None) -> None:
    """The process's life: one request after another until the socket ends.

    `roots` tell what is closed to it; None when nothing is.
    """
    import gc

    gc.disable()  # nothing here makes cycles, and a pass over a full cache takes 50 ms
    _bound_memory(cache_bytes)
    wire = Wire(end)
    searcher = Searcher(wire, cache_bytes, border, roots)
    requests: SimpleQueue[tuple[Json, ...]] = SimpleQueue()
    start_new_thread(_listen, (wire, searcher, requests))
    while True:
        kind, request, fd = requests.get()
        try:
            if not request["is_file"]:  # an offset of its own: reading a directory moves it
                try:
                    start, fd = fd, os.open(".", os.O_RDONLY | os.O_DIRECTORY, dir_fd=fd)
                except OSError as error:  # it may be read, and not be entered
                    wire.send("refused", error.strerror)
                    continue
                os.close(start)
            wire.send(*(searcher.find if kind == "find" else searcher.show)(request, fd))
        except ToolError:
            wire.send("stopped")
        finally:
            os.close(fd)


def _listen(wire: Wire, searcher: "Searcher", requests: "SimpleQueue[tuple[Json, ...]]") -> None:
    """Take requests while a search runs; it need not be looked at: searching leaves the interpreter."""
    try:
        while (messages := wire.receive()) is not None:
            for message in messages:
                if message[0] == "stop":
                    searcher.task.cancelled = True
                elif message[0] == "where":
                    wire.send("at", searcher.at)
                else:
                    searcher.task = Task(None)
                    requests.put(message)
    except OSError:
        pass
    os._exit(0)


def _bound_memory(cache_bytes: int) -> None:
    import resource

    most = cache_bytes + MEMORY_BYTES
    _, hard = resource.getrlimit(resource.RLIMIT_AS)
    if hard in (resource.RLIM_INFINITY, -1) or hard > most:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


class Searcher:
    """What a searching process knows from call to call: `at` is the file it is at."""

    def __init__(
        self, wire: Wire, cache_bytes: int, border: Border, roots: "Roots | None" = None
    ) -> None:
        self.store = Store(cache_bytes)
        self.border = border
        self.denied = None if roots is None else roots.denied
        self.task = Task(None)
        self.at = ""
        self._wire = wire
        self._finders: dict[tuple[Json, ...], Finder] = {}

    def finder(self, record: "tuple[Json, ...]") -> Finder:
        """A plan made ready, the last few kept."""
        found = self._finders.get(record)
        if found is None:
            if len(self._finders) > 20:
                self._finders.clear()
            found = self._finders[record] = Finder(Plan.of_record(record))
        return found

    def find(self, request: "dict[str, Json]", fd: int) -> "tuple[Json, ...]":
        """The hits of a whole search, and what is to be said of it.  Raises: ToolError CANCELLED."""
        self.store.tidy()
        self.task.deadline = request["deadline"]
        search = Search(self, request, fd, self._wire.send)
        try:
            if request["is_file"]:
                search.file()
            else:
                search.tree()
        except OSError:
            search.skipped.unreadable += 1
        return ("done", search.hits, search.report())

    def show(self, request: "dict[str, Json]", fd: int) -> "tuple[Json, ...]":
        """The lines of some files: (path, etag, encoding, where binary, lines) each.

        Files that cannot be read any more are left out.  Raises: ToolError CANCELLED.
        """
        finder = self.finder(request["plan"])
        self.task.deadline = request["deadline"]
        shown: list[tuple[Json, ...]] = []
        beat_at = monotonic() + BEAT_S
        for path, most in request["files"]:
            self.task.check()
            if self.task.expired:
                break
            if monotonic() > beat_at:
                self._wire.send("rows", shown)
                shown, beat_at = [], monotonic() + BEAT_S
            self.at = path
            try:
                shown.append(self._show(finder, request, fd, (path, most)))
            except (OSError, TimeoutError, MemoryError):
                continue
        self.at = ""
        return ("shown", shown)

    def _show(
        self, finder: Finder, request: "dict[str, Json]", fd: int, wanted: tuple[str, int]
    ) -> "tuple[Json, ...]":
        path, most = wanted
        context = request["context"]
        folder, _, name = path.rpartition("/")
        file = os.dup(fd) if request["is_file"] else open_below(fd, path)
        try:
            status = os.fstat(file)
            content = None
            if not request["is_file"]:
                kept = self.store.folder(request["base"] + folder + "/" * bool(folder))
                content = kept.contents.get(name)
            if content is None or content.stamp != stamp(status):
                content = self.store.read_open(file)
            if content is None:
                tag = etag(status, file)
                lines = _shown(_large_lines(finder, file, most, context), request["margin"])
                return path, tag, "", -1, lines
            data = content.data or b""
            tag = content.etag or etag(status, file if content.nul >= 0 else data)
            content.etag = tag
            lines = _shown(finder.lines(data, most, context), request["margin"])
            return path, tag, content.encoding, content.nul, lines
        finally:
            os.close(file)


def _shown(lines: "Iterator[tuple[int, int, int, str, bool]]", margin: int) -> "list[Shown]":
    return [
        (number, column, *_cut(line, column, length, is_match, margin))
        for number, column, length, line, is_match in lines
    ]


def _cut(
    line: str, column: int, length: int, is_match: bool, margin: int
) -> tuple[str, bool, str, str, str]:
    text, remark = clipped(line, column, length)
    if not remark:
        return _printable(text), is_match, "", "", ""
    start, end = window(line.removesuffix("\r"), column, length)
    before, behind = line[max(start - margin, 0) : start], line[end : end + margin]
    return _printable(text), is_match, remark, _printable(before), _printable(behind)


def _printable(text: str) -> str:
    return text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")


def _large_lines(
    finder: Finder, fd: int, most: int, context: int
) -> "Iterator[tuple[int, int, int, str, bool]]":
    """The lines of a file in pieces; context ends with its piece."""
    before = 0
    for piece in pieces(fd):
        if finder.may_match(piece):
            for line in finder.lines(piece, most, context, before):
                most -= line[4]
                yield line
        if most <= 0:
            return
        before += piece.count(b"\n")


def open_below(fd: int, path: str) -> int:
    """A file below the directory `fd`, opened without passing any link.  Raises: OSError."""
    *folders, name = path.split("/")
    here = os.dup(fd)
    try:
        for folder in folders:
            down = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=here)
            os.close(here)
            here = down
        return os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=here)
    finally:
        os.close(here)


class Search:
    """One search for one request: what was found (`hits`), and what was not looked at (`skipped`)."""

    def __init__(
        self, searcher: Searcher, request: "dict[str, Json]", fd: int, send: "Callable[..., None]"
    ) -> None:
        self._searcher = searcher
        self._task = searcher.task
        self._store = searcher.store
        self._finder = searcher.finder(request["plan"])
        self._request = request
        self._fd = fd
        self._send = send
        self._beat_at = monotonic() + BEAT_S
        self._task.pulse = self._pulse
        self._denied = searcher.denied
        self.skipped = Skipped()
        self.hits: list[Hit] = []
        self._tally = dict.fromkeys(COUNTED, 0)
        self._known = self._store.known(self._measure)
        self.stuck: list[str] = []
        self.incomplete = False
        self._is_alone = request["shares"] == 1
        self.stopped_at = ""

    @property
    def _measure(self) -> "tuple[Json, ...]":
        """What tells apart whose numbers are not the same: the plan and, where it counts, the mode."""
        mode = self._request["mode"]
        counts_lines = mode == "content" or (mode == "count" and not self._finder.plan.spans)
        return self._request["plan"], "lines" if counts_lines else mode

    def report(self) -> "dict[str, Json]":
        """What is to be said of the search besides its hits."""
        skipped = self.skipped
        return {
            **self._tally,
            "ignored": skipped.ignored,
            "hidden": skipped.hidden,
            "folders_unreadable": skipped.unreadable,
            "stuck": self.stuck,
            "incomplete": self.incomplete or skipped.incomplete,
            "at": self.stopped_at or self._searcher.at,
        }

    def file(self) -> None:
        """Search the one file that is open as the start."""
        name = self._request["base"]
        self._tally["files"] = 1
        content = self._store.read_open(self._fd)
        if content is not None:
            part = Part((name,))
            self._take("", name, content, self._search(name, content), part)
            self._tally["binary"] = part.binary
        else:
            self._searcher.at = name
            self._search_large(name, self._fd)

    def tree(self) -> None:
        """Search all files below the start that are this process's share.

        Raises: OSError when the start cannot be listed, ToolError CANCELLED.
        """
        request = self._request
        covers = included(request["include"])
        may_split = request["may_split"]
        for path, fd, files in self._folders():
            if may_split and self._tally["files"] > LARGE_FILES:  # another comes from the back
                may_split = False
                self._is_alone = False
                self._send("large")
            self.stopped_at = path
            if self._denied is not None:
                files = [name for name in files if not self._closed(path + name)]  # noqa: PLW2901
            if covers is not None:
                files = [name for name in files if covers(path + name)]  # noqa: PLW2901
            if not self._folder(path, fd, files) or 0 < request["enough"] <= len(self.hits):
                return

    def _folders(self) -> "Iterator[Folder]":
        """The directories of this process's share, from an earlier walk when that still holds."""
        request, store = self._request, self._store
        asked = tuple(request[name] for name in WALK)
        rules = Rules.at(
            request["base"], no_ignore=request["no_ignore"], no_ignore_vcs=request["no_ignore_vcs"]
        )
        prune = self._prune if request["hidden"] or self._denied else None
        trail = Trail(rules, store.trail_bytes)
        hidden = request["hidden"]
        sieve = Sieve(self.skipped, hidden=hidden, prune=prune, call=self._task, trail=trail)
        known = store.trails.of(asked)
        if known is not None and known[0].holds(self._fd, rules, sieve.goes_on):
            claim = self._claim if request["cut"] is None else None
            yield from sieve.again(known[0], self._fd, claim)
            return
        is_second = request["share"] == 1
        yield from walk(
            self._fd, rules, sieve, store.listings, claim=self._claim, backwards=is_second
        )
        skipped = self.skipped
        trail.is_whole &= request["cut"] is not None or self._is_alone
        trail.is_whole &= not (skipped.incomplete or skipped.unreadable or skipped.vanished)
        store.trails.keep(asked, trail, None, store.trail_bytes)

    def _claim(self, path: str) -> bool:
        """True when the directory whose turn has come is this process's."""
        share = self._request["share"]
        cut: str | None = self._request["cut"]
        if cut is not None:
            return (key(path) >= cut) == bool(share)
        return self._searcher.border.take(share, path)

    def _closed(self, path: str, is_directory: bool = False) -> bool:
        """True for what the operator closed: not even its number is told."""
        if self._denied is None:
            return False
        return self._denied(self._request["base"] + path, is_directory) is not None

    def _prune(self, path: str) -> bool:
        """True for a folder that need not be entered."""
        if not self._request["git"] and (path == ".git" or path.endswith("/.git")):
            return True
        return self._closed(path, True)

    def _folder(self, path: str, fd: int, files: "Sequence[str]") -> bool:
        """Search the files of one folder; False when the search is to end."""
        place = self._request["base"] + path
        folder = self._store.folder(place)
        if not self._request["include"] and self._denied is None:
            self._store.drop_gone(folder, files)
        for first in range(0, len(files), BATCH_ENTRIES):
            names = tuple(files[first : first + BATCH_ENTRIES])
            known = self._known.get((place, first))
            batch = folder.batches.get(first)
            now = stamps(names, fd) if folder.contents or known is not None else None
            if known is not None and known.names == names and known.stamps == now:
                self._recall(path, known)
            else:
                part = Part(names)
                if batch is not None and batch.names == names and batch.stamps == now:
                    goes_on = self._warm(path, batch, part)
                else:
                    goes_on = self._files(path, fd, folder, part, now)
                    folder.gather(first, names, now)
                self._tally["binary"] += part.binary
                if not goes_on:
                    return False
                if part.is_sure:
                    self._store.learn(self._known, (place, first), part, folder.contents)
            if self._is_due and not self._beat():
                return False
        return True

    def _recall(self, path: str, part: Part) -> None:
        """Take what an earlier search found."""
        self._tally["files"] += len(part.names)
        self._tally["binary"] += part.binary
        self.hits += [(mtime_ns, path + name, count) for mtime_ns, name, count in part.hits]

    def _warm(self, path: str, batch: Batch, part: Part) -> bool:
        """Search files that are all kept; False when the search is to end."""
        part.binary = batch.binary
        may_match = self._finder.may_match
        likely = []
        for name, content, data in batch.texts:
            if may_match(data):
                likely.append((name, content, data))
            elif monotonic() > self._beat_at and not self._beat():
                return False
        self._tally["files"] += len(batch.names) - len(likely)
        for name, content, data in likely:
            self._tally["files"] += 1
            self._take(path, name, content, self._searched(path + name, data, content.ascii), part)
            if self.incomplete:
                return False
        if len(part.stamps) == len(likely):
            part.stamps = batch.stamps
        return True

    def _files(
        self, path: str, fd: int, folder: Kept, part: Part, now: "list[Stamp | None] | None"
    ) -> bool:
        """Search the files of a part, whose stamps are `now`; False when the search is to end."""
        tally, may_match = self._tally, self._finder.may_match
        for name, current in zip(part.names, now or repeat(None), strict=False):
            tally["files"] += 1
            content = folder.contents.get(name)
            if content is None or content.stamp != current:
                content = self._read(folder, name, path, fd)
            if content is None:
                if self.incomplete:
                    return False
            elif content.data is None or (content.nul < 0 and not may_match(content.data)):
                part.stamps.append(content.stamp)  # most files end here
                part.binary += content.data is None
                if monotonic() > self._beat_at and not self._beat():
                    return False
            else:
                self._take(path, name, content, self._search(path + name, content), part)
                if self.incomplete:
                    return False
        return True

    def _take(self, path: str, name: str, content: Content, count: int | None, part: Part) -> None:
        """Tell what was found in a file, None when it was not searched to its end."""
        if count is None:
            return
        if content.nul < 0 or content.data is None:  # else other modes find something else
            part.stamps.append(content.stamp)
        if count == BINARY:
            part.binary += 1
        elif count:
            self.hits.append((content.mtime_ns, path + name, count))
            part.hits.append((content.mtime_ns, name, count))

    @property
    def _is_due(self) -> bool:
        return monotonic() > self._beat_at

    def _read(self, folder: Kept, name: str, path: str, fd: int) -> Content | None:
        """A file's content, read anew and kept; None for one that is searched here, or cannot be read."""
        if monotonic() > self._beat_at and not self._beat():
            return None
        try:
            content = self._store.read(name, fd)
            if content is not None:
                self._store.keep(folder, name, content)
                return content
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK, dir_fd=fd)
        except OSError as error:
            self._refused(error)
            return None
        try:
            self._searcher.at = path + name
            self._search_large(path + name, file)
        except OSError as error:
            self._refused(error)
        finally:
            self._searcher.at = ""
            os.close(file)
        return None

    def _search(self, path: str, content: Content) -> int | None:
        """The matches of one file, or BINARY; None when it was not searched to its end."""
        data = content.data
        if data is None or (content.nul >= 0 and self._request["mode"] == "count"):
            return BINARY  # as ripgrep: what is counted is whole text files
        return self._searched(path, data, content.ascii) if self._finder.may_match(data) else 0

    def _searched(self, path: str, data: bytes, is_ascii: bool) -> int | None:
        """The matches in what may match; None when it was not searched to its end."""
        if path in self._request["skip"] or (self._is_due and not self._beat()):
            return None
        return self._count(path, data, is_ascii)

    def _count(self, path: str, data: bytes, is_ascii: bool) -> int | None:
        """How often a file matches, in the numbers of the mode; None when the pattern got stuck."""
        finder = self._finder
        mode = self._request["mode"]
        self._searcher.at = path
        try:
            if mode == "files":
                return int(finder.has(data, is_ascii))
            return finder.count(data, is_ascii, mode == "count")
        except (TimeoutError, MemoryError):
            self.stuck.append(path)
            self.incomplete |= len(self.stuck) >= STUCK_FILES
            return None
        finally:
            self._searcher.at = ""  # what comes now is no longer that file's fault

    def _search_large(self, path: str, fd: int) -> None:
        """Search a file piece by piece."""
        status = os.fstat(fd)
        if status.st_size <= PIECE_BYTES or path in self._request["skip"]:
            return
        count = 0
        for piece in pieces(fd):
            count += self._count(path, piece, piece.isascii()) or 0
            if (count and self._request["mode"] == "files") or path in self.stuck:
                break
            if not self._beat():
                self.stopped_at = path
                break
        if count:
            self.hits.append((status.st_mtime_ns, path, count))

    def _refused(self, error: OSError) -> None:
        from errno import ELOOP, ENOENT, ENXIO

        gone = error.errno in {ENOENT, ELOOP, ENXIO}
        self._tally["vanished" if gone else "unreadable"] += 1

    def _beat(self) -> bool:
        """Tell the parent how far the search is; False when time ran out.

        Raises: ToolError CANCELLED.
        """
        self._task.check()
        if self._task.expired:
            self.incomplete = True
            return False
        return True

    def _pulse(self) -> None:
        """The telling, when it is time for it."""
        if self._is_due:
            self._beat_at = monotonic() + BEAT_S
            self._send("part", self.hits, self._tally["files"])
            self.hits = []


def included(include: str) -> "Callable[[str], bool] | None":
    """A test of paths for the glob `include`; one behind a `!` leaves out instead of taking in."""
    if not include:
        return None
    negated = include.startswith("!")
    covers = matcher([include.removeprefix("!")])
    return lambda path: covers(path, False) != negated
