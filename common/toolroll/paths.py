"""Text from the model -> open descriptors inside the allowed roots; knows nothing of their use.

Nothing is checked by path and then used by path.  Every path is walked from its root's own
descriptor, one directory at a time and never through a link: a link is read and spelled out by
hand, and the walk starts again.  So whatever is opened was reached through real directories below
the root, however fast links are swapped meanwhile, and no path is too long.  (openat2 with
RESOLVE_BENEATH holds no better, as the kernel is never asked for `..`; it is Linux only, and
ctypes costs 2 ms at its first use.)
"""

import errno
import os
import stat
import sys

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Self

STEP = getattr(os, "O_PATH", 0) | os.O_DIRECTORY | os.O_NOFOLLOW
"""How a directory is opened to go on from; with O_PATH (Linux) it need not be readable."""

READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY
LIST = os.O_RDONLY | os.O_NOFOLLOW | os.O_DIRECTORY

HOPS = 40
"""Links followed for one path: Linux's own limit (path_resolution(7))."""

TRIES = 20
"""How often an entry that changes under our hands is looked up again."""

PATH_CHARS = 16_384
"""Longest text that is taken for a path: four times PATH_MAX, as deeper trees can be walked."""

NEAR_NAMES = 10_000
"""Directory entries that are compared with a name that does not exist."""

FOLDS_NAMES = sys.platform == "darwin"

CHANGED = (errno.ENOENT, errno.ELOOP, errno.ENOTDIR, errno.ENXIO, errno.ESTALE)
"""What the system says of an entry that is no longer what it was a moment ago."""

KINDS = {
    stat.S_IFREG: "a file",
    stat.S_IFDIR: "a directory",
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a character device",
    stat.S_IFBLK: "a block device",
}


class Held:
    """A descriptor that is closed when the `with` block ends; -1 when there is none (any more)."""

    __slots__ = ("fd",)

    def __init__(self, fd: int) -> None:
        self.fd = fd

    def close(self) -> None:
        """Close the descriptor; a second time does nothing."""
        fd, self.fd = self.fd, -1
        if fd >= 0:
            os.close(fd)

    def __enter__(self) -> "Self":
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


class Opened(Held):
    """A file or directory open for reading: real `path`, `text` as it was asked for.

    `status` is the descriptor's own.  Reading never waits: where there is nothing to read yet (a
    few files of /proc) it raises BlockingIOError, which a reader takes for the end.
    """

    __slots__ = ("path", "status", "text")

    def __init__(self, fd: int, path: str, text: str, status: os.stat_result) -> None:
        super().__init__(fd)
        self.path = path
        self.text = text
        self.status = status


class Parent(Held):
    """The open directory where a file is to be written as `name`; `path` is that file's real path.

    `status` is that of the regular file which is there now, None for a new file.
    """

    __slots__ = ("name", "path", "status", "text")

    def __init__(self, fd: int, path: str, text: str, status: os.stat_result | None) -> None:
        super().__init__(fd)
        self.name = path[path.rindex("/") + 1 :]
        self.path = path
        self.text = text
        self.status = status


class Roots:
    """The folders that may be touched; relative paths start in the first one.

    `folders` are their real paths.  `read_only` folders may be read and not written; they need not
    exist yet, count only while they belong to this user, and are not named to the model.  `deny`
    are globs of places inside the roots that are closed for reading and writing.

    Every method takes a path as text: absolute, from the first root, or with `~`; literally, or as
    `show` printed it.  Links are resolved; `..` takes away the name before it, even a missing one.

    Raises: ToolError OUTSIDE_ROOTS (the same whether the path exists or not), NOT_FOUND,
    PERMISSION_DENIED, NOT_A_FILE, NOT_A_DIRECTORY, INVALID_PARAMS for what cannot be a path,
    CONFLICT for what changes faster than it can be opened.
    """

    __slots__ = ("_deny", "_rules", "_trees", "first", "folders")

    def __init__(
        self, folders: "Sequence[str]", deny: "Sequence[str]" = (), read_only: "Sequence[str]" = ()
    ) -> None:
        """Open the folders.

        Raises: ValueError naming the folder that does not exist or is no directory.
        """
        trees = [_Tree(*_open_root(folder)) for folder in folders]
        self.folders: tuple[str, ...] = tuple(dict.fromkeys(tree.path for tree in trees))
        self.first: str | None = self.folders[0] if trees else None
        trees += [_Tree(os.path.realpath(folder)) for folder in read_only]
        # The deepest tree around a path decides, of two equal ones the first: sorted() is stable.
        self._trees = sorted(trees, key=lambda tree: -len(tree.parts))
        self._deny = tuple(deny)
        self._rules: list[tuple[str, Callable[[str, bool], bool]]] | None = None

    def open_file(self, text: str) -> Opened:
        """A regular file, open for reading; anything else is refused without being opened."""
        return self._open(text, (stat.S_IFREG,))

    def open_directory(self, text: str) -> Opened:
        """A directory, open for `os.scandir` and as `dir_fd`."""
        return self._open(text, (stat.S_IFDIR,))

    def open_any(self, text: str) -> Opened:
        """A regular file or a directory, open for reading; `status` tells which."""
        return self._open(text, (stat.S_IFREG, stat.S_IFDIR))

    def open_parent(self, text: str, create: bool = False) -> Parent:
        """The directory of a file that is to be written; for a link, that of the file it leads to.

        `create` makes the directories that are missing (0777 & ~umask).
        """
        for _ in range(TRIES):
            with self._locate(text, writing=True) as spot:
                self._check_writable(text, spot, create)
                try:
                    if spot.missing > 1:
                        _make_directories(spot)
                    fd = os.open(".", LIST, dir_fd=spot.fd)
                except OSError as error:
                    if error.errno in CHANGED:
                        continue
                    raise self._refusal(text, spot, error) from None
                return Parent(fd, spot.path, text, spot.status)
        raise _conflict(text)

    @property
    def denies(self) -> bool:
        """False when no place inside the roots is closed, so that nothing need be asked of `denied`."""
        return bool(self._deny)

    def denied(self, path: str, is_directory: bool = False) -> str | None:
        """The `deny` pattern that closes a real absolute path or a folder above it, else None.

        A pattern that starts with `/` is read both ways: from `/`, and from each root.
        """
        if not self._deny:
            return None
        if self._rules is None:
            from toolroll.globs import matcher

            self._rules = [(pattern, matcher([_folded(pattern)])) for pattern in self._deny]
        parts = [part for part in path.split("/") if part]
        depths = {0, *(len(tree.parts) for tree in self._trees if tree.holds(parts))}
        views = [_folded("/".join(parts[depth:])) for depth in depths]
        for pattern, covers in self._rules:
            if any(covers(view, is_directory) for view in views):
                return pattern
        return None

    def _open(self, text: str, kinds: "Sequence[int]") -> Opened:
        for _ in range(TRIES):
            with self._locate(text) as spot:
                kind = self._check_kind(text, spot, kinds)
                try:
                    fd = os.open(spot.name, LIST if kind == stat.S_IFDIR else READ, dir_fd=spot.fd)
                except OSError as error:
                    if error.errno in CHANGED:
                        continue
                    raise self._refusal(text, spot, error) from None
                opened = Opened(fd, spot.path, text, os.fstat(fd))
            if stat.S_IFMT(opened.status.st_mode) == kind:
                return _with_something_to_read(opened)
            opened.close()
        raise _conflict(text)

    def _locate(self, text: str, writing: bool = False) -> "_Spot":
        """The place that `text` names, existing or not: inside a root, and not denied."""
        spot = self._walk(self._spell_out(text))
        tree = self._tree_of(spot.parts)
        closed_by = self.denied(spot.path, spot.is_directory) if tree else None
        if tree is not None and closed_by is None and not (writing and tree.read_only):
            return spot
        spot.close()
        if tree is None:
            raise self._outside(text)
        if closed_by is None:
            raise ToolError(
                ErrorCode.PERMISSION_DENIED,
                f"{quoted(text)} lies in {quoted(tree.path)}, which can be read but not written",
            )
        raise ToolError(
            ErrorCode.PERMISSION_DENIED,
            f"{quoted(text)} is closed by the operator of this server (--deny {closed_by})",
            "This is policy: do not look for another way to it.",
        )

    def _spell_out(self, text: str) -> list[str]:
        """The names of the absolute path that `text` means, with its `..`."""
        if not text:
            raise _impossible("the path is empty")
        if len(text) > PATH_CHARS:
            raise _impossible(f"the path has {len(text):,} characters, more than {PATH_CHARS:,}")
        try:
            path = _as_listed(os.path.expanduser(text) if text.startswith("~") else text)
        except ValueError:
            raise _impossible(f"{quoted(text)} contains what no file name can contain") from None
        if not path.startswith("/"):
            if self.first is None:
                raise self._outside(text)
            path = f"{self.first}/{path}"
        return [part for part in path.split("/") if part not in ("", ".")]

    def _tree_of(self, parts: list[str]) -> "_Tree | None":
        for tree in self._trees:
            if tree.holds(parts):
                return tree
        return None

    def _walk(self, parts: list[str]) -> "_Spot":
        """Where `parts` lead, links and `..` resolved, as far as that exists.

        A walk that begins outside gets into a root only by a link or `..`: then it begins again,
        from the descriptor of that root.
        """
        hops = 0
        while True:
            spot = self._descend(parts)
            detour = _detour(spot)
            if detour is None:
                return spot
            # `..` and escapes make the path shorter; what never ends must make up for that.
            hops += sum(map(len, detour)) >= sum(map(len, parts))
            if hops > HOPS:
                spot.status = None
                spot.problem = OSError(errno.ESTALE if detour is parts else errno.ELOOP, "")
                return spot
            spot.close()
            parts = detour

    def _descend(self, parts: list[str]) -> "_Spot":
        """As far down as real directories lead, at most to the first `..` or the last name."""
        tree = self._tree_of(parts)
        spot = _Spot(parts)
        stop = parts.index("..") if ".." in parts else len(parts) - 1
        top = len(tree.parts) if tree else 0
        try:
            spot.at = max(top - 1, 0)
            spot.fd = tree.open() if tree else os.open("/", STEP)
            spot.at = top
            while spot.at < stop:
                spot.go_down(os.open(parts[spot.at], STEP, dir_fd=spot.fd))
            if spot.name != "..":
                spot.status = os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False)
        except OSError as error:
            spot.problem = error
        return spot

    def _check_kind(self, text: str, spot: "_Spot", kinds: "Sequence[int]") -> int:
        """The kind (S_IFMT) of what is there, when it is one of `kinds`."""
        if spot.status is None:
            raise self._refusal(text, spot, spot.problem)
        kind = stat.S_IFMT(spot.status.st_mode)
        if kind in kinds:
            return kind
        what = f"{quoted(text)} is {KINDS.get(kind, 'a special file')}"
        if stat.S_IFREG not in kinds:
            hint = "Use View to read it." if kind == stat.S_IFREG else ""
            raise ToolError(ErrorCode.NOT_A_DIRECTORY, f"{what}, not a directory", hint)
        hint = "Use LS to list it." if kind == stat.S_IFDIR else ""
        raise ToolError(ErrorCode.NOT_A_FILE, f"{what}, not a regular file", hint)

    def _check_writable(self, text: str, spot: "_Spot", create: bool) -> None:
        """Return when a file may be written there: a regular one, or none yet."""
        if spot.status is not None or not spot.missing or (spot.missing > 1 and not create):
            self._check_kind(text, spot, (stat.S_IFREG,))
        elif text.endswith(("/", "/.", "/..")):
            raise ToolError(
                ErrorCode.NOT_A_FILE,
                f"{quoted(text)} names a directory, not a file",
                "Leave out what follows the file's name.",
            )

    def _outside(self, text: str) -> ToolError:
        if not self.folders:
            return ToolError(
                ErrorCode.OUTSIDE_ROOTS,
                f"{quoted(text)} cannot be reached: this server has no allowed root",
                "Its operator has to start it inside a project or with --root DIR.",
            )
        folders = ", ".join(map(quoted, self.folders))
        return ToolError(
            ErrorCode.OUTSIDE_ROOTS,
            f"{quoted(text)} lies outside the allowed roots ({folders})",
            "Use a path inside them; the operator of this server adds others with --root DIR.",
        )

    def _refusal(self, text: str, spot: "_Spot", error: OSError | None) -> ToolError:
        """What the system's `error` at `spot` means to the model."""
        number = (error and error.errno) or errno.ENOENT
        what = quoted(text)
        here = "" if spot.missing == 1 else f" at {quoted(spot.here)}"
        if number == errno.ENOENT:
            why = "" if spot.missing == 1 else f": there is no {quoted(spot.here)}"
            return ToolError(ErrorCode.NOT_FOUND, f"{what} does not exist{why}", self._near(spot))
        if number == errno.ENOTDIR:
            why = f"{quoted(spot.here)} is not a directory"
            return ToolError(ErrorCode.NOT_A_DIRECTORY, f"{what} does not exist: {why}")
        if number == errno.ELOOP:
            why = f"links lead round in a circle{here}"
            return ToolError(ErrorCode.NOT_FOUND, f"{what} leads nowhere: {why}")
        if number == errno.ENAMETOOLONG:
            why = f"the name {quoted(spot.name)} is too long for this file system"
            return _impossible(f"{what} cannot exist: {why}")
        if number == errno.ESTALE:
            return _conflict(text)
        why = os.strerror(number).lower()
        code = ErrorCode.EXECUTION_ERROR
        if number in (errno.EACCES, errno.EPERM, errno.EROFS):
            code = ErrorCode.PERMISSION_DENIED
        return ToolError(code, f"{what} cannot be opened: {why}{here}")

    def _near(self, spot: "_Spot") -> str:
        """A hint: the names most like the missing one, in the last directory that exists."""
        if spot.fd < 0:
            return ""
        import difflib

        folder = "/" + "/".join(spot.parts[: spot.at])
        names: dict[str, str] = {}
        try:
            with Held(os.open(".", LIST, dir_fd=spot.fd)) as held, os.scandir(held.fd) as entries:
                for _, entry in zip(range(NEAR_NAMES), entries, strict=False):
                    names.setdefault(entry.name.lower(), entry.name)
        except OSError:
            names.clear()
        alike = difflib.get_close_matches(spot.name.lower(), names, n=12)
        near = [names[n] for n in alike if not self.denied(f"{folder}/{names[n]}", True)]
        if near:
            return f"Nearest names in {quoted(folder)}: {', '.join(map(quoted, near[:3]))}."
        if spot.missing == 1:
            return ""
        return f"The nearest directory that exists is {quoted(folder)}."


class _Tree:
    """One allowed folder: open from the start (`fd`), or, when read-only, opened each time."""

    __slots__ = ("fd", "parts", "path")

    def __init__(self, path: str, fd: int | None = None) -> None:
        self.path = path
        self.parts = [part for part in path.split("/") if part]
        self.fd = fd

    def __del__(self) -> None:
        if self.fd is not None:
            os.close(self.fd)

    @property
    def read_only(self) -> bool:
        return self.fd is None

    def holds(self, parts: list[str]) -> bool:
        """True for the folder itself and all below it, name by name: `/x/root-evil` is not in `/x/root`."""
        return parts[: len(self.parts)] == self.parts

    def open(self) -> int:
        """A descriptor of its own to go down from.

        A read-only folder may lie where others can make one of that name (/tmp): that is refused.
        """
        if self.fd is not None and os.fstat(self.fd).st_nlink:
            return os.dup(self.fd)
        fd = os.open(self.path, STEP)
        if (
            self.fd is not None
        ):  # the folder was removed and made again: the operator named its path
            os.dup2(fd, self.fd, inheritable=False)
            return fd
        if os.fstat(fd).st_uid == os.geteuid():
            return fd
        os.close(fd)
        raise PermissionError(errno.EACCES, "belongs to another user")


class _Spot(Held):
    """How far a walk along `parts` came: `fd` is the directory `parts[:at]`, all of them real.

    `status` is that of the last name when the walk came there, `problem` what stopped it before.
    """

    __slots__ = ("at", "parts", "problem", "status")

    def __init__(self, parts: list[str]) -> None:
        super().__init__(-1)
        self.parts = parts
        self.at = 0
        self.status: os.stat_result | None = None
        self.problem: OSError | None = None

    @property
    def path(self) -> str:
        return "/" + "/".join(self.parts)

    @property
    def here(self) -> str:
        """The path up to the name where the walk ended."""
        return "/" + "/".join(self.parts[: self.at + 1])

    @property
    def name(self) -> str:
        """The name where the walk ended; `.` for a root itself."""
        return self.parts[self.at] if self.at < len(self.parts) else "."

    @property
    def is_directory(self) -> bool:
        return self.status is not None and stat.S_ISDIR(self.status.st_mode)

    @property
    def missing(self) -> int:
        """How many names at the end of the path do not exist."""
        absent = self.problem is not None and self.problem.errno == errno.ENOENT
        return len(self.parts) - self.at if absent else 0

    def go_down(self, fd: int) -> None:
        """Make `fd` the directory the walk came to."""
        self.close()
        self.fd = fd
        self.at += 1


def _open_root(folder: str) -> tuple[str, int]:
    """The real path of a root, and its descriptor."""
    if not folder:  # `--root "$UNSET"`; realpath would take it for the working directory
        raise ValueError("the root '' cannot be used: it has no name")
    try:
        path = os.path.realpath(os.path.expanduser(folder), strict=True)
        return path, os.open(path, STEP)
    except OSError as error:
        raise ValueError(f"the root {quoted(folder)} cannot be used: {error.strerror}") from None


def _detour(spot: _Spot) -> list[str] | None:
    """The parts to walk instead of those of `spot`, None when the walk ends there.

    The very same list means that the place changed while it was looked at.
    """
    parts, at = spot.parts, spot.at
    if spot.name == "." or spot.fd < 0:
        return None
    number = spot.problem.errno if spot.problem else 0
    is_link = spot.status is not None and stat.S_ISLNK(spot.status.st_mode)
    if is_link or number in (errno.ENOTDIR, errno.ELOOP):
        detour = _follow(spot)
        if detour is not None:
            return detour
    absent = number in (errno.ENOENT, errno.ENAMETOOLONG)
    if absent and (other := _unshown(spot.name)) and not _problem_with(other, spot.fd):
        return [*parts[:at], other, *parts[at + 1 :]]
    if ".." in parts[at:]:
        up = parts.index("..", at)
        return parts[: max(up - 1, 0)] + parts[up + 1 :]
    return None


def _follow(spot: _Spot) -> list[str] | None:
    """The parts with the link at `spot` spelled out; the same ones when it is a link no more.

    None for what is no directory either: there the walk ends.
    """
    parts, at = spot.parts, spot.at
    try:
        mode = os.stat(spot.name, dir_fd=spot.fd, follow_symlinks=False).st_mode
        target = os.readlink(spot.name, dir_fd=spot.fd) if stat.S_ISLNK(mode) else None
    except OSError:
        return parts
    if target is None:
        return parts if spot.status or stat.S_ISDIR(mode) else None
    names = [part for part in target.split("/") if part not in ("", ".")]
    return ([] if target.startswith("/") else parts[:at]) + names + parts[at + 1 :]


def _problem_with(name: str, fd: int) -> int:
    """The errno of looking `name` up in a directory, 0 when it is there."""
    try:
        os.stat(name, dir_fd=fd, follow_symlinks=False)
    except OSError as error:
        return error.errno or errno.EIO
    return 0


def _make_directories(spot: _Spot) -> None:
    """Make the missing directories above the last name of `spot`, and go down into them.

    Raises: OSError before anything is made when one of the names is impossible.
    """
    for name in spot.parts[spot.at :]:
        if _problem_with(name, spot.fd) == errno.ENAMETOOLONG:
            raise OSError(errno.ENAMETOOLONG, "")
    while spot.missing > 1:
        try:
            os.mkdir(spot.name, dir_fd=spot.fd)
        except OSError as error:
            if error.errno != errno.EEXIST:
                raise
        spot.go_down(os.open(spot.name, STEP, dir_fd=spot.fd))


def _with_something_to_read(opened: Opened) -> Opened:
    """`opened`, unless it is a file whose reader would have to wait (/proc/kmsg, trace_pipe).

    They look like empty regular files; real ones are always ready to be read.
    """
    if opened.status.st_size or not stat.S_ISREG(opened.status.st_mode):
        return opened
    import select

    poll = select.poll()
    poll.register(opened.fd, select.POLLIN)
    if poll.poll(0):
        return opened
    opened.close()
    raise ToolError(
        ErrorCode.NOT_A_FILE, f"{quoted(opened.text)} is a stream of the system, not a regular file"
    )


def _impossible(why: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, why)


def _conflict(text: str) -> ToolError:
    return ToolError(
        ErrorCode.CONFLICT, f"{quoted(text)} kept changing while it was opened", "Try again."
    )


def quoted(path: str) -> str:
    """`path` as messages name it: shown, between single quotes."""
    return f"'{show(path)}'"


def show(path: str) -> str:
    r"""`path` as it may be printed anywhere; `Roots` takes it back.

    Bytes that are no text become `\xNN`; control characters, line and paragraph separators,
    direction marks, invisible and tag characters become `\n`, `\x1b`, `\u202e`, `\U000e0041`.
    A backslash is doubled in a name in which anything was escaped.
    """
    return path if path.isprintable() else "/".join(map(_show_name, path.split("/")))


def _show_name(name: str) -> str:
    if not any(map(_is_hidden, name)):
        return name
    return "".join(_escape(char) if char == "\\" or _is_hidden(char) else char for char in name)


def _is_hidden(char: str) -> bool:
    return (
        char < " "
        or "\x7f" <= char <= "\x9f"
        or "\ud800" <= char <= "\udfff"
        or "\U000e0000" <= char <= "\U000e0fff"
        or char in "\u061c\u180e\u200b\u200e\u200f\u2028\u2029\u202a\u202b\u202c\u202d\u202e"
        or "\u2060" <= char <= "\u206f"
        or char == "\ufeff"
    )


def _escape(char: str) -> str:
    code = ord(char)
    if char in "\\\n\t\r":
        return {"\\": "\\\\", "\n": "\\n", "\t": "\\t", "\r": "\\r"}[char]
    if code < 0x80:
        return f"\\x{code:02x}"
    if 0xDC80 <= code <= 0xDCFF:  # surrogateescape: a byte that is no text
        return f"\\x{code - 0xDC00:02x}"
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def _unshown(name: str) -> str | None:
    """The name that is shown as `name`, None when there is no other.

    Escapes of any character that may be hidden are taken, as later stages of an answer hide more.
    """
    if "\\" not in name:
        return None
    import re

    digit = "[0-9a-fA-F]"
    pattern = rf"\\(\\|[ntr]|x{digit}{{2}}|u{digit}{{4}}|U00(?:0{digit}|10){digit}{{4}})"
    try:
        other = _as_listed(re.sub(pattern, lambda found: _unescape(found[1]) or found[0], name))
    except ValueError:
        return None
    return None if other == name else other


def _unescape(code: str) -> str | None:
    """The character behind a backslash and `code`, None for one that is never hidden."""
    if len(code) == 1:
        return {"\\": "\\", "n": "\n", "t": "\t", "r": "\r"}[code]
    number = int(code[1:], 16)
    if number == 0 or 0x20 <= number < 0x7F:
        return None
    return chr(number + 0xDC00 if code[0] == "x" and number >= 0x80 else number)


def _as_listed(path: str) -> str:
    """`path` spelled as the system lists it: one string for each sequence of bytes.

    Two lone surrogates may stand for the bytes of one letter; rules about names must see the letter.

    Raises: ValueError when no file can have that name.
    """
    if "\0" in path:
        raise ValueError("NUL")
    return os.fsdecode(os.fsencode(path))


def _folded(path: str) -> str:
    """`path` as a file system compares it that takes `A` and `a`, and both spellings of `é`, for one."""
    if not FOLDS_NAMES:
        return path
    import unicodedata

    return unicodedata.normalize("NFC", path).casefold()
