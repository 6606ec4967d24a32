"""A file held for changing: read, judged and written under one lock, for Edit and Replace alike.

Knows nothing of what is changed in it.
"""

import os

from toolroll import textfile, writer
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import markers
from toolroll.paths import Held, quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Self

    from toolroll.call import Call
    from toolroll.paths import Parent, Roots
    from toolroll.writer import Chunks

ABSENT = "absent"
"""The if_match of a file that must not exist."""

NOWHERE = os.stat_result((0,) * 10)
"""The status of no file: an if_match has its form judged first, whatever is there."""


class Target:
    """The file at `path` from `with` to its end; nobody else writes in its directory meanwhile.

    Inside, `data` are its bytes and `status` what they belong to, or b"" and None for a new file.
    With `create`, directories that are missing are made by `write`, and taken away when it fails.
    Raises, on entering: ToolError of the path, of the lock (CONFLICT after 5 s), TOO_LARGE.
    """

    __slots__ = (
        "_call",
        "_create",
        "_etag",
        "_latest",
        "_parent",
        "_place",
        "data",
        "in_place",
        "path",
        "status",
    )

    def __init__(self, path: str, call: "Call", create: bool = False) -> None:
        self.path = path
        self.data = b""
        self.status: os.stat_result | None = None
        self.in_place = ""
        self._call = call
        self._create = create
        self._etag = ""
        self._latest: tuple[os.stat_result, Chunks] = NOWHERE, ()
        self._parent: Parent | None = None
        self._place: writer.Directory | None = None

    def __enter__(self) -> "Self":
        roots = self._call.roots
        if not self._create:
            roots.open_file(self.path).close()  # NOT_FOUND with the nearest names is its answer
        try:
            self._parent = roots.open_parent(self.path)
        except ToolError as error:
            if self._create and error.code == ErrorCode.NOT_FOUND:
                return self  # its directories are missing too, or cannot be: `write` will tell
            raise
        try:
            self._place = self._locked(self._parent)
            self._read(self._parent)
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        if self._place is not None:
            self._place.__exit__()
        if self._parent is not None:
            self._parent.close()

    def _locked(self, parent: "Parent") -> writer.Directory:
        return writer.locked(parent.fd, self.path, self._call.check).__enter__()

    def _read(self, parent: "Parent") -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(parent.name, flags, dir_fd=parent.fd)
        except FileNotFoundError:
            if parent.status is None:
                return
            raise _moved(self.path, "it has vanished") from None
        except PermissionError:
            why = f"{quoted(self.path)} may not be read"
            raise ToolError(ErrorCode.PERMISSION_DENIED, why, "Look at it with ls -l") from None
        except OSError as error:
            raise _moved(self.path, error.strerror or str(error)) from None
        try:
            self.data, self.status = textfile.read(fd, self.path)
        finally:
            os.close(fd)
        self._latest = self.status, (self.data,)

    @property
    def etag(self) -> str:
        """The etag of the file as it was read or, behind `write`, as it was written."""
        if not self._etag:
            self._etag = textfile.etag(*self._latest)
        return self._etag

    def matches(self, if_match: str) -> bool:
        """True when the file is (still) the one that `if_match` names, ABSENT for none.

        Raises: ToolError INVALID_PARAMS for what is no etag.
        """
        if if_match == ABSENT:
            return self.status is None
        matches = textfile.matches(if_match, self.status or NOWHERE, self.data)
        return matches and self.status is not None

    def write(self, chunks: "Chunks") -> None:
        """Make `chunks` the file's content; `in_place` then says why not atomically, if so.

        Raises: ToolError of `writer.write`; nothing is changed then.
        """
        self._call.check()
        if self._parent is not None and self._place is not None:
            written = self._written(self._parent, self._place, chunks)
        else:
            written = self._written_in_new_directories(chunks)
        self._latest, self._etag = (written.status, chunks), ""
        self.in_place = written.in_place

    def _written(
        self, parent: "Parent", place: writer.Directory, chunks: "Chunks"
    ) -> writer.Written:
        return writer.write(place, parent.name, chunks, expect=self.status, shown=self.path)

    def _written_in_new_directories(self, chunks: "Chunks") -> writer.Written:
        """Nothing was there; what was made for the file goes again when it cannot be written."""
        missing = _missing(self.path, self._call.roots)
        with missing:
            try:
                self._parent = self._call.roots.open_parent(self.path, create=True)
                self._place = self._locked(self._parent)
                return self._written(self._parent, self._place, chunks)
            except BaseException:
                missing.remove()
                raise

    @property
    def warning(self) -> str:
        """What the model should know of how it was written; empty for the usual way."""
        return f"\nWritten in place, not atomically: {self.in_place}." if self.in_place else ""


class _Missing(Held):
    """The directory that exists above a new file, open, and the names of those missing below it."""

    __slots__ = ("names",)

    def __init__(self, fd: int, names: list[str]) -> None:
        super().__init__(fd)
        self.names = names

    def remove(self) -> None:
        """Take away what has been made of them meanwhile and is empty."""
        for count in range(len(self.names), 0, -1):
            try:
                os.rmdir("/".join(self.names[:count]), dir_fd=self.fd)
            except OSError:  # never made, or in use by now
                continue


def _missing(path: str, roots: "Roots") -> _Missing:
    """What is missing above a file; no names where `..` or what cannot be read obscures that."""
    folder, names = os.path.dirname(path), list[str]()
    while ".." not in folder.split("/"):
        try:
            with roots.open_directory(folder or ".") as there:
                return _Missing(os.dup(there.fd), names)
        except ToolError as error:
            if error.code != ErrorCode.NOT_FOUND or not folder.strip("/"):
                break
        folder, name = os.path.split(folder)
        names[:0] = [name] if name not in ("", ".") else []
    return _Missing(-1, [])


def _moved(path: str, why: str) -> ToolError:
    message = f"{quoted(path)} is not what it was a moment ago: {why}"
    return ToolError(ErrorCode.CONFLICT, message, "Nothing was changed. Call again")


def refuse_markers(new: str, text: "Callable[[], str]", parameter: str) -> None:
    """Return unless new text holds a `[REDACTED:NAME]` that would overwrite the value it stands for.

    `text` gives the whole text of the file, and is only asked when there is any.
    Raises: ToolError INVALID_PARAMS.
    """
    named = markers(new)
    names = sorted(named - markers(text())) if named else []
    if names:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"{parameter} holds [REDACTED:{names[0]}], which stands for a value that was not shown",
            "Leave that part of the file out of the edit, so that the real value stays",
        )
