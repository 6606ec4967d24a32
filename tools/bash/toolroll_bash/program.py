"""Which programs a process is about to run, read from its own memory and seen from its own root.

Behind one path there may be several: what a symbolic link leads to, what a script's first line names,
what a dynamic loader is told to load, which part a multi-call program is to play.  Knows no list of
names.  Paths are bytes, as the kernel takes them.
"""

import errno
import os
import stat
import sys
from itertools import chain

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

PATH_BYTES = 4_096
"""PATH_MAX: the kernel takes no longer path."""

LINKS, INTERPRETERS = 40, 8
"""How many links are followed (path_resolution(7)), and how many interpreters in a row: more than the
five of execve(2), as a loader may stand among them."""

LINE_BYTES = 256
"""BINPRM_BUF_SIZE: how much of a script's first line the kernel reads."""

LOADER_TAKES = frozenset(
    (
        *(b"--library-path", b"--inhibit-rpath", b"--audit", b"--preload", b"--argv0"),
        *(b"--glibc-hwcaps-prepend", b"--glibc-hwcaps-mask"),
    )
)
"""Options of ld.so(8) that have a value behind them."""

LOADER_LOOKS = frozenset((b"--list", b"--verify", b"--list-diagnostics", b"--list-tunables"))
"""Options of ld.so(8) with which nothing is run."""

MULTIPLE = frozenset(
    (
        *(b"busybox", b"busybox-extras", b"busybox-static", b"busybox.static"),
        *(b"busybox.nosuid", b"busybox.suid", b"toybox"),
    )
)


class UnreadableError(Exception):
    """What a process is about to run cannot be found out."""


class Program:
    """One program by its `names`: what it is called by and, where that is another, that of the file.

    `real` is where links lead, empty for a part of another program.
    """

    __slots__ = ("names", "real")

    def __init__(self, name: bytes, real: bytes = b"") -> None:
        self.real = real
        file = base(real)
        self.names = [one for one in ((name,) if name == file else (name, file)) if one]


class Start:
    """A process at the moment when it wants to become another program (execve(2), execveat(2))."""

    def __init__(self, pid: int, path_at: int, words_at: int, width: int) -> None:
        """Open its memory, until `close`; `width` is that of its pointers in bytes.

        Raises: UnreadableError; OSError.
        """
        self.pid = pid
        self._root = b"/proc/%d/root" % pid
        self._words_at = words_at
        self._width = width
        self._memory = os.open(f"/proc/{pid}/mem", os.O_RDONLY | os.O_CLOEXEC)
        self.path = self._text(path_at)

    def close(self) -> None:
        """Let go of its memory."""
        os.close(self._memory)

    def programs(self, directory: int, empty: bool) -> "Iterator[Program]":
        """All programs that would run; `directory` is the descriptor that the path is relative to.

        With `empty`, an empty path means the descriptor itself.  A path that leads nowhere is a program
        too, by its name: the kernel will say that there is none.

        Raises: UnreadableError; OSError.
        """
        place = b"/proc/%d/" % self.pid + (b"fd/%d" % directory if directory >= 0 else b"cwd")
        path = self.path
        if not path and empty:
            place, path = os.path.split(place)
        real = self._resolved(place, path)
        return self._behind(Program(base(self.path), real), self._words(), INTERPRETERS)

    def _behind(
        self, program: Program, words: "Iterator[bytes]", depth: int
    ) -> "Iterator[Program]":
        yield program
        if depth == 0:
            raise UnreadableError
        if not MULTIPLE.isdisjoint(program.names):
            yield from _parts(words)
            return
        if any(map(_is_loader, program.names)):
            words = _loaded(words)
        elif interpreter := _interpreter(program.real):
            next(words, None)
            words = chain(interpreter, [self.path], words)
        else:
            return
        if path := next(words, b""):
            again = chain([path], words)
            yield from self._behind(Program(base(path), self._from_here(path)), again, depth - 1)

    def _from_here(self, path: bytes) -> bytes:
        return self._resolved(b"/proc/%d/cwd" % self.pid, path)

    def _resolved(self, place: bytes, path: bytes) -> bytes:
        """Where a path leads this process, with its own root and its own `/proc/self`, as we reach it."""
        names = self._names(path)
        place = self._root if path.startswith(b"/") else place
        links = 0
        while names:
            name = names.pop()
            if name == b"..":
                place = self._above(place)
            elif place == self._root + b"/proc" and name in (b"self", b"thread-self"):
                place = b"/proc/%d" % self.pid
            elif (target := _link(place + b"/" + name)) is None:
                place += b"/" + name
            elif links == LINKS:
                raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))
            else:
                links += 1
                names += self._names(target)
                place = self._root if target.startswith(b"/") else place
        return place

    def _names(self, path: bytes) -> "list[bytes]":
        """The components, the first one last."""
        return [name for name in reversed(path.split(b"/")) if name not in (b"", b".")]

    def _above(self, place: bytes) -> bytes:
        """The folder above: by its name below the root, where no link is left; by `..` elsewhere."""
        if place == self._root:
            return place
        return os.path.dirname(place) if place.startswith(self._root) else place + b"/.."

    def _text(self, address: int) -> bytes:
        """Raises: OSError for what is too long to be a path; UnreadableError."""
        text, end, _ = self._read(address, PATH_BYTES).partition(b"\0")
        if not end:
            raise OSError(errno.ENAMETOOLONG, os.strerror(errno.ENAMETOOLONG))
        return text

    def _words(self) -> "Iterator[bytes]":
        """The words that the program is given, its own name first; long ones are cut."""
        at = self._words_at
        while at and (pointer := int.from_bytes(self._read(at, self._width), sys.byteorder)):
            yield self._read(pointer, PATH_BYTES).partition(b"\0")[0]
            at += self._width

    def _read(self, address: int, most: int) -> bytes:
        if address >= 1 << 63:
            raise UnreadableError
        return os.pread(self._memory, most, address)


def base(path: bytes) -> bytes:
    """The last component."""
    return path.rstrip(b"/").rpartition(b"/")[2]


def _link(path: bytes) -> bytes | None:
    """What a symbolic link says, None for anything else and for nothing."""
    try:
        return os.readlink(path)
    except OSError as problem:
        if problem.errno in (errno.EINVAL, errno.ENOENT, errno.ENOTDIR, errno.ENAMETOOLONG):
            return None
        raise


def _is_loader(name: bytes) -> bool:
    """True for a dynamic loader of glibc or musl."""
    return (
        name == b"ld.so"
        or name.startswith(b"libc.musl")
        or (name.startswith(b"ld-") and b".so" in name)
    )


def _loaded(words: "Iterator[bytes]") -> "Iterator[bytes]":
    """The words from the program on that a loader is told to run, none when it is to run none."""
    next(words, None)
    for word in words:
        if word in LOADER_LOOKS:
            return
        if word in LOADER_TAKES:
            next(words, None)
        elif not word.startswith(b"--"):
            yield word
            yield from words


def _parts(words: "Iterator[bytes]") -> "Iterator[Program]":
    """The part that a multi-call program plays: by its own name, else by its first argument."""
    name = base(next(words, b"")).removeprefix(b"-")  # of a login shell
    while name and not name.startswith(b"-"):
        yield Program(name)
        if name not in MULTIPLE:
            return
        name = base(next(words, b""))


def _interpreter(path: bytes) -> "list[bytes]":
    """The interpreter of a script and its argument (execve(2)), empty for any other file.

    Raises: UnreadableError for a file of our own that we cannot read: the kernel reads it nevertheless.
    """
    try:
        status = os.stat(path)
        if not stat.S_ISREG(status.st_mode):
            return []
        file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except PermissionError:
        if status.st_uid == os.geteuid():
            raise UnreadableError from None
        return []
    except FileNotFoundError:
        return []
    try:
        head = os.read(file, LINE_BYTES)
    finally:
        os.close(file)
    if not head.startswith(b"#!"):
        return []
    line = head[2:].partition(b"\n")[0].partition(b"\0")[0].strip(b" \t").replace(b"\t", b" ")
    return [word.strip(b" ") for word in line.split(b" ", 1)]
