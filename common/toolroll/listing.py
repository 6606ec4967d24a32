"""What lies in a directory, read once and kept while the directory's own times stand still.

Only names and their kinds are kept: a file's size and time change without its directory's, so they are
asked for anew every time.  Knows neither patterns nor ignore rules.
"""

import os
import time
from _thread import allocate_lock
from itertools import islice
from operator import attrgetter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    Stamp = tuple[int, int, int, int]

BATCH_ENTRIES = 1024
"""Entries between two looks at the call: 2 ms, or 0.3 s with the most expensive ignore patterns allowed."""

SETTLED_NS = 3_000_000_000
"""How long a directory must have been left alone before its listing is kept: a change within one tick of
the file system's clock leaves no trace in its times, and the slowest clock (FAT) ticks every 2 s."""

NAME_BYTES = 64
LISTING_BYTES = 800
"""What a kept name takes besides its characters, and a listing besides its names."""

identity: "Callable[[os.stat_result], Stamp]" = attrgetter(
    "st_dev", "st_ino", "st_mtime_ns", "st_ctime_ns"
)
"""What is the same in a directory's status only as long as the same names lie in it."""

FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
"""How a directory is opened to be listed."""

NOTHING: "dict[str, bool | None]" = {}


class Listing:
    """A directory's names: `files`, `folders` in order; those with a leading dot apart: is each a folder.

    `shown` is the place for what some rules left of them; `stamp` tells whether they are all still, None
    when they were too young to be told.
    In `dotted` None stands for links and special files, of which `links` counts the undotted links.
    """

    __slots__ = ("dotted", "files", "folders", "is_ascii", "links", "shown", "stamp", "used")

    def __init__(
        self,
        files: "Sequence[str]" = (),
        folders: "Sequence[str]" = (),
        dotted: "dict[str, bool | None] | None" = None,
        links: int = 0,
    ) -> None:
        self.files = tuple(files)  # tuples of texts cost the garbage collector nothing
        self.folders = tuple(sorted(folders))
        self.dotted = dotted or NOTHING
        self.links = links
        self.is_ascii = "".join(self.files).isascii() and "".join(self.folders).isascii()
        self.shown: Any = None
        self.stamp: Stamp | None = None
        self.used = 0

    @property
    def size(self) -> int:
        """About how many bytes of memory it takes."""
        names = (*self.files, *self.folders, *self.dotted)
        return LISTING_BYTES + len(names) * NAME_BYTES + sum(map(len, names))


class Listings:
    """Listings by directory (device and inode) in bounded memory; calls side by side may share it.

    `size` is about how many bytes all of them take.
    """

    __slots__ = ("_call", "_devices", "_kept", "_lock", "_most", "_tidied", "size")

    def __init__(self) -> None:
        self._most = 0
        self._kept: dict[tuple[int, int], Listing] = {}
        self.size = 0
        self._call = self._tidied = 0
        self._devices: dict[int, bool] = {}
        self._lock = allocate_lock()

    def begin(self, most: int) -> None:
        """A new call begins: what it does not ask for may go when more than `most` bytes are kept."""
        self._most = most
        self._call += 1

    def of(self, fd: int, goes_on: "Callable[[], bool]") -> Listing:
        """The listing of an open directory; a part of it when `goes_on` says no.  Raises: OSError."""
        status = os.fstat(fd)
        stamp = identity(status)
        kept = self._kept.get(stamp[:2])
        if kept is not None and kept.stamp == stamp:
            kept.used = self._call
            return kept
        settled = time.time_ns() - max(stamp[2:]) > SETTLED_NS
        listing, whole = read(fd, goes_on)
        if settled and whole and self._keeps_times(fd, status.st_dev):
            listing.stamp = stamp
            self._keep(stamp[:2], listing)
        return listing

    def _keep(self, key: tuple[int, int], listing: Listing) -> None:
        listing.used = self._call
        with self._lock:
            earlier = self._kept.pop(key, None)
            self.size += listing.size - (earlier.size if earlier else 0)
            self._kept[key] = listing
            if self.size > self._most:
                self._make_room()
                if self.size > self._most:
                    del self._kept[key]
                    self.size -= listing.size

    def _make_room(self) -> None:
        """Drop what this call has not used; a walk that is larger than the room keeps what it has."""
        if self._tidied == self._call:
            return
        self._tidied = self._call
        for key in [key for key, one in self._kept.items() if one.used != self._call]:
            self.size -= self._kept.pop(key).size

    def _keeps_times(self, fd: int, device: int) -> bool:
        """False for what only looks like a file system (/proc, /sys): its times tell nothing."""
        if device not in self._devices:
            self._devices[device] = os.fstatvfs(fd).f_blocks > 0
        return self._devices[device]


def read(fd: int, goes_on: "Callable[[], bool]") -> tuple[Listing, bool]:
    """The listing of an open directory, and whether it is whole.  Raises: OSError."""
    files: list[str] = []
    folders: list[str] = []
    dotted: dict[str, bool | None] = {}
    links = 0
    is_whole = True
    with os.scandir(fd) as entries:
        while is_whole and (batch := list(islice(entries, BATCH_ENTRIES))):
            for entry in batch:
                name = entry.name
                if name[0] == ".":
                    dotted[name] = _is_folder(entry)
                elif entry.is_file(follow_symlinks=False):
                    files.append(name)
                elif entry.is_dir(follow_symlinks=False):
                    folders.append(name)
                else:
                    links += entry.is_symlink()
            is_whole = len(batch) < BATCH_ENTRIES or goes_on()
    return Listing(files, folders, dotted, links), is_whole


def _is_folder(entry: "os.DirEntry[str]") -> bool | None:
    """True for a directory, False for a regular file, None for all else."""
    if entry.is_dir(follow_symlinks=False):
        return True
    return False if entry.is_file(follow_symlinks=False) else None
