"""What lies in a directory and below it, fitted to a number of entries and printed; knows no wire.

Level by level: the folders of one level share what the levels above have left of the limit, the small
ones wholly shown, the others to equal parts.  Everything is reached by descriptor from the start and
never through a link.
"""

import os
import stat
from errno import EINVAL, ELOOP, ENOENT, ENOTDIR
from heapq import nsmallest
from itertools import islice

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import OUTPUT_CHARS
from toolroll.paths import LIST, STEP, Held, quoted, show
from toolroll.status import iso_time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import Any

    from toolroll.call import Call
    from toolroll.paths import Opened
    from toolroll.walk import Rules

    Json = Any

BATCH_ENTRIES = 1024
"""Entries between two looks at the call: 4 ms, or 0.3 s with the most expensive globs allowed."""

GONE = (ENOENT, ENOTDIR, ELOOP)
"""What the system says of a directory that is no more, or something else by now."""

LINE_CHARS = 3
"""The shortest line, `a/` and its end: what can never be shown is not looked at."""

PATH_BYTES = os.pathconf("/", "PC_PATH_MAX")
"""From this length on the system follows no path."""

EXACT_BYTES = 10_000
"""Smaller sizes are told to the byte."""

TYPES = {
    stat.S_IFREG: "file",
    stat.S_IFDIR: "directory",
    stat.S_IFLNK: "link",
    stat.S_IFIFO: "fifo",
    stat.S_IFSOCK: "socket",
    stat.S_IFCHR: "character device",
    stat.S_IFBLK: "block device",
}


class Entry:
    """One name in a directory: `tail` is what its line says behind the name.

    `status` is its own, not that of what a link leads to; None when it could not be had.  `inside` is
    the folder when it was looked into.
    """

    __slots__ = ("inside", "name", "status", "tail", "target", "type")

    def __init__(self, name: str, kind: str, tail: str, status: os.stat_result | None) -> None:
        self.name = name
        self.type = kind
        self.tail = tail
        self.status = status
        self.target: str | None = None
        self.inside: Folder | None = None

    @property
    def line(self) -> str:
        """The entry on one line; a name with outer blanks stands in quotes, so that they are seen."""
        name = show(self.name)
        quoted = f"'{name}'" if name != name.strip() else name
        return quoted + self.tail + (self.inside.remark if self.inside else "")


class Folder:
    """A directory that was looked into: `entries` are its first ones in order, `rest` counts the others.

    `place` is its path from the start with a closing slash; `shown` entries are to be printed, and
    `left_out` ones are not counted at all.  `broken_off` says that time ran out while it was read.
    """

    __slots__ = ("broken_off", "entries", "left_out", "place", "rest", "shown")

    def __init__(self, place: str) -> None:
        self.place = place
        self.entries: list[Entry] = []
        self.rest = self.shown = self.left_out = 0
        self.broken_off = False

    @property
    def total(self) -> int:
        """How many entries it has, without those left out."""
        return len(self.entries) + self.rest

    @property
    def remark(self) -> str:
        """Why there is nothing to print of it; empty when there is something."""
        if self.total:
            return ""
        if self.broken_off:
            return "  (not read)"
        return f"  ({self.left_out} left out)" if self.left_out else "  (empty)"

    @property
    def visible(self) -> "list[Entry]":
        """The entries to be printed."""
        return self.entries[: self.shown]

    @property
    def folders(self) -> "list[Folder]":
        """The folders among them that were looked into."""
        return [entry.inside for entry in self.visible if entry.inside]

    def drop(self, entry: Entry) -> None:
        """Forget an entry that has vanished."""
        self.entries.remove(entry)
        self.shown -= 1


class Listing:
    """A listing ready to be answered: the text, the facts of its last line, what makes the structured form."""

    __slots__ = ("data", "facts", "text")

    def __init__(
        self, text: str, facts: "list[str]", data: "Callable[[], dict[str, Json]]"
    ) -> None:
        self.text = text
        self.facts = facts
        self.data = data


def listing(
    start: "Opened", ignore: "Sequence[str]", depth: int, limit: int, call: "Call"
) -> Listing:
    """The tree below `start`, `depth` levels and `limit` entries of it at most.

    Raises: ToolError INVALID_PARAMS for impossible globs, CANCELLED; and what `Roots` raises when the
    directory itself cannot be read.
    """
    scan = Scan(start, ignore, call)
    most = call.options.get("max-output", OUTPUT_CHARS)
    possible = min(limit, max(most // LINE_CHARS, 1))
    top = scan.look(depth, possible)
    text, fitting = fitted(top, possible, most)
    shown, total = counts(top)
    why = f"limit {limit}" if fitting == limit else f"{most} characters"
    facts = list(_facts(scan, shown, total, why))
    return Listing(text, facts, lambda: _data(scan, top, prefix(start.text), shown, total))


def _data(scan: "Scan", top: "Folder", before: str, shown: int, total: int) -> "dict[str, Json]":
    data: dict[str, Json] = {"results": list(results(top, before)), "total": total}
    if shown < total:
        data["truncated"] = True
    if skipped := {reason: count for reason, count in scan.skipped.items() if count}:
        data["skipped"] = skipped
    if scan.incomplete:
        data["incomplete"] = True
    return data


def _facts(scan: "Scan", shown: int, total: int, why: str) -> "Iterator[str]":
    if shown < total:
        yield f"truncated: {shown} of {total} entries ({why})"
    if reasons := [f"{count} {reason}" for reason, count in scan.skipped.items() if count]:
        yield f"skipped: {', '.join(reasons)}"
    if scan.incomplete:
        yield "incomplete: time ran out before everything was read"


# -- looking -----------------------------------------------------------------------------------------


class Scan:
    """One call's way through the directories, with what it left out and whether time was enough."""

    def __init__(self, start: "Opened", ignore: "Sequence[str]", call: "Call") -> None:
        self._start = start
        self._base = start.path.rstrip("/")
        self._call = call
        self._covers: Callable[[str, bool], bool] | None = None
        if ignore:
            from toolroll.globs import matcher

            self._covers = matcher(ignore)
        self._seen = 0
        self.skipped = {"by 'ignore'": 0, "closed by --deny": 0, "unreadable": 0}
        self.incomplete = False

    def look(self, depth: int, limit: int) -> Folder:
        """The start, with as much of what is below it as `depth` and `limit` allow."""
        top = Folder("")
        try:
            self._read(top, self._start.fd, limit)
        except OSError as error:
            code = ErrorCode.NOT_FOUND if error.errno == ENOENT else ErrorCode.EXECUTION_ERROR
            why = os.strerror(error.errno or 0).lower()
            raise ToolError(code, f"{quoted(self._start.text)} cannot be read: {why}") from None
        left = share([top], limit)
        if depth > 1:
            self._descend(top, depth - 1, left)
        return top

    def _descend(self, top: Folder, depth: int, left: int) -> None:
        """Look into what is shown, `depth` levels down, while time allows."""
        from toolroll.walk import Rules

        level = [(top, Rules.at(self._start.path))]
        for _ in range(depth):
            level = [below for folder, rules in level for below in self._below(folder, rules, left)]
            left = share([folder for folder, _ in level], left)

    def _below(self, folder: Folder, rules: "Rules", most: int) -> "Iterator[tuple[Folder, Rules]]":
        """The folders shown in `folder`, looked into (`most` entries of each), with their rules."""
        for entry in folder.visible:
            if entry.type != "directory" or entry.status is None:
                continue
            if not self._goes_on():
                return
            try:
                inner = self._enter(folder, entry, rules, most)
            except OSError as error:
                if error.errno in GONE:
                    folder.drop(entry)
                else:
                    entry.tail = "/" + self._unreadable(error)
                continue
            if entry.inside is not None:
                yield entry.inside, inner

    def _enter(self, folder: Folder, entry: Entry, rules: "Rules", most: int) -> "Rules":
        """Look into the folder `entry`, or, when git ignores it, only count what it holds.

        Returns the rules in force inside.  Raises: OSError.
        """
        inside = Folder(f"{folder.place}{entry.name}/")
        with descent(self._start.fd, inside.place.split("/")[:-1]) as held:
            if entry.name == ".git" or rules.ignores(entry.name, True):
                count = sum(map(len, self._batches(held.fd)))
                entry.tail = f"/  (ignored, {count} {'entry' if count == 1 else 'entries'})"
                return rules
            inner = rules.enter(entry.name, held.fd)
            self._read(inside, held.fd, most)
        entry.inside = inside
        return inner

    def _read(self, folder: Folder, fd: int, most: int) -> None:
        """Fill `folder` with its first `most` entries, and count the others.  Raises: OSError."""
        directories: list[str] = []
        others: list[str] = []
        for batch in self._batches(fd):
            self._sort(batch, folder, directories, others)
        for names, is_directory in ((directories, True), (others, False)):
            firsts = first(names, most - len(folder.entries), self._call.check)
            folder.rest += len(names) - len(firsts)
            for name in firsts:
                if not self._goes_on():
                    folder.rest += 1
                elif entry := self._entry(fd, folder.place, name, is_directory):
                    folder.entries.append(entry)
        folder.broken_off = self.incomplete

    def _goes_on(self) -> bool:
        self._call.check()
        self.incomplete |= self._call.expired
        return not self.incomplete

    def _batches(self, fd: int) -> "Iterator[list[os.DirEntry[str]]]":
        """The entries of a directory, until time runs out.  Raises: OSError."""
        with os.scandir(fd) as found:
            while self._goes_on() and (batch := list(islice(found, BATCH_ENTRIES))):
                yield batch
                self._seen += len(batch)
                if len(batch) == BATCH_ENTRIES:
                    self._call.progress(self._seen, message=f"{self._seen} entries read")

    def _sort(
        self,
        batch: "Sequence[os.DirEntry[str]]",
        folder: Folder,
        directories: list[str],
        others: list[str],
    ) -> None:
        """Put each name where it belongs, unless it is left out."""
        covers, denied = self._covers, self._call.roots.denied
        for entry in batch:
            is_directory = _is_directory(entry)
            path = folder.place + entry.name
            if covers is not None and covers(path, is_directory):
                self.skipped["by 'ignore'"] += 1
                folder.left_out += 1
            elif denied(f"{self._base}/{path}", is_directory):
                self.skipped["closed by --deny"] += 1
                folder.left_out += 1
            else:
                (directories if is_directory else others).append(entry.name)

    def _entry(self, fd: int, place: str, name: str, is_directory: bool) -> Entry | None:
        """The entry `name` of the directory `fd`, None when it has vanished."""
        try:
            status = os.stat(name, dir_fd=fd, follow_symlinks=False)
            target = os.readlink(name, dir_fd=fd) if stat.S_ISLNK(status.st_mode) else None
        except OSError as error:
            if error.errno in (ENOENT, EINVAL):  # EINVAL: a link no more
                return None
            kind, slash = ("directory", "/") if is_directory else ("unknown", "")
            return Entry(name, kind, slash + self._unreadable(error), None)
        kind = TYPES.get(stat.S_IFMT(status.st_mode), "unknown")
        entry = Entry(name, kind, _tail(kind, status.st_size), status)
        if target is not None:
            entry.target = target
            entry.tail = f" -> {show(target)}{self._behind(place + name, target)}"
        return entry

    def _behind(self, path: str, target: str) -> str:
        """What is to be said of a link by where it leads; of a place outside nothing but that."""
        roots = self._call.roots
        real = os.path.realpath(f"{self._base}/{path}")
        root = next((root for root in roots.folders if is_below(real, root)), None)
        if root is None:
            return "  (outside the roots)"
        if roots.denied(real, is_directory=True):  # whatever it is
            return "  (closed by --deny)"
        names = [name for name in real[len(root) :].split("/") if name]
        try:
            with Held(os.open(root, STEP)) as held, descent(held.fd, names[:-1]) as parent:
                status = os.stat((names or ["."])[-1], dir_fd=parent.fd, follow_symlinks=False)
        except OSError as error:
            return "  (broken)" if error.errno in GONE else ""
        if stat.S_ISLNK(
            status.st_mode
        ):  # it leads round in a circle, or is too long to be followed
            return "  (broken)" if len(os.fsencode(real)) < PATH_BYTES else ""
        return "/" if stat.S_ISDIR(status.st_mode) and not target.endswith("/") else ""

    def _unreadable(self, error: OSError) -> str:
        self.skipped["unreadable"] += 1
        return f"  (unreadable: {os.strerror(error.errno or 0).lower()})"


def _is_directory(entry: "os.DirEntry[str]") -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:  # a file system that does not tell, in a directory that may not be searched
        return False


def descent(fd: int, names: "Iterable[str]") -> Held:
    """The directory that `names` lead to from `fd`, never through a link.  Raises: OSError."""
    here = Held(os.dup(fd))
    for name in names:
        with here:
            here = Held(os.open(name, LIST, dir_fd=here.fd))
    return here


def is_below(path: str, folder: str) -> bool:
    """True when `path` is `folder` or lies in it; both absolute and real."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def first(names: "Sequence[str]", most: int, check: "Callable[[], None]") -> list[str]:
    """The first `most` of `names` in natural order: a2 before a10, capitals among small letters."""
    if not names:
        return []
    return [name for _, name in nsmallest(most, zip(_keys(names, check), names, strict=True))]


def _keys(names: "Sequence[str]", check: "Callable[[], None]") -> "Iterator[str]":
    """What to compare instead of each name: in small letters, runs of digits led by their length.

    One substitution for thousands of names, joined by the one character that none of them holds.
    """
    import re

    runs = re.compile("0*([0-9]+)")
    for at in range(0, len(names), BATCH_ENTRIES):
        check()
        joined = "/".join(names[at : at + BATCH_ENTRIES]).lower()
        yield from runs.sub(lambda run: f"0{chr(256 + len(run[1]))}{run[1]}", joined).split("/")


# -- sharing the limit -------------------------------------------------------------------------------


def share(folders: "Sequence[Folder]", left: int) -> int:
    """What remains of `left` when each folder has its part: the small ones all, the others alike."""
    waiting = sorted(folders, key=lambda folder: folder.total)
    for at, folder in enumerate(waiting):
        folder.shown = min(len(folder.entries), left // (len(waiting) - at))
        left -= folder.shown
    return left


def fitted(top: Folder, limit: int, most: int) -> tuple[str, int]:
    """The tree as text of at most `most` characters, and the limit on entries that this took."""
    while True:
        text = "\n".join(lines(top))
        if len(text) <= most or limit == 1:
            return text or top.remark.strip(), limit
        limit = max(1, min(limit - 1, limit * most // len(text)))
        level, left = [top], limit
        while level:
            left = share(level, left)
            level = [inside for folder in level for inside in folder.folders]


def counts(folder: Folder) -> tuple[int, int]:
    """How many entries are shown and how many there are, in the folder and those looked into below."""
    below = [counts(inside) for inside in folder.folders]
    shown = folder.shown + sum(part[0] for part in below)
    return shown, folder.total + sum(part[1] for part in below)


# -- printing ----------------------------------------------------------------------------------------


def lines(folder: Folder, indent: str = "") -> "Iterator[str]":
    """The folder's entries, a line each, those below indented."""
    for entry in folder.visible:
        yield indent + entry.line
        if entry.inside:
            yield from lines(entry.inside, indent + "  ")
    if folder.shown < folder.total:
        yield f"{indent}… {folder.total - folder.shown} more"


def results(folder: Folder, before: str) -> "Iterator[dict[str, Json]]":
    """The entries in their structured form; `before` leads each path."""
    for entry in folder.visible:
        path = before + entry.name
        yield {"path": show(path), "type": entry.type, **_details(entry)}
        if entry.inside:
            yield from results(entry.inside, path + "/")


def _details(entry: Entry) -> "dict[str, Json]":
    status = entry.status
    if status is None:
        return {}
    details: dict[str, Json] = {"size": status.st_size}
    if modified := iso_time(status.st_mtime_ns):
        details["modified"] = modified
    details["permissions"] = stat.filemode(status.st_mode)
    if entry.target is not None:
        details["target"] = show(entry.target)
    return details


def prefix(text: str) -> str:
    """What leads a name so that it becomes a path again, for a directory asked for as `text`."""
    plain = text.rstrip("/")
    return "" if plain == "." else plain + "/"


def _tail(kind: str, size: int) -> str:
    if kind == "directory":
        return "/"
    return f"  {readable(size)}" if kind == "file" else f"  ({kind})"


def readable(size: int) -> str:
    """A size for people: exact below 10 kB, then three digits, decimal units."""
    if size < EXACT_BYTES:
        return f"{size} B"
    units = iter(("kB", "MB", "GB", "TB", "PB", "EB"))
    value, unit = size / 1000, next(units)
    while value >= 999.5:
        value, unit = value / 1000, next(units)
    return f"{value:.3g} {unit}"
