"""A file held for changing: read, judged and written under one lock, for Edit and Replace alike.

Knows nothing of what is changed in it.
"""

import os

from toolroll import textfile, writer
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import markers
from toolroll.paths import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Self

    from toolroll.call import Call

ABSENT = "absent"
"""The if_match of a file that must not exist."""


class Target:
    """The file at `path` from `with` to its end; nobody else writes in its directory meanwhile.

    Inside, `data` are its bytes and `status` what they belong to, or b"" and None for a new file.
    Raises, on entering: ToolError of the path, of the lock (CONFLICT after 5 s), TOO_LARGE.
    """

    __slots__ = (
        "_call",
        "_lock",
        "_parent",
        "_place",
        "data",
        "etag",
        "in_place",
        "path",
        "status",
    )

    def __init__(self, path: str, call: "Call", create: bool = False) -> None:
        self.path = path
        self.data = b""
        self.status: os.stat_result | None = None
        self.etag = ""
        self.in_place = ""
        self._call = call
        if not create:
            call.roots.open_file(path).close()  # NOT_FOUND with the nearest names is its answer
        self._parent = call.roots.open_parent(path, create=create)
        self._lock = writer.locked(self._parent.fd, path, call.check)

    def __enter__(self) -> "Self":
        try:
            self._place = self._lock.__enter__()
        except BaseException:
            self._parent.close()
            raise
        try:
            self._read()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._lock.__exit__()
        self._parent.close()

    def _read(self) -> None:
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
        try:
            fd = os.open(self._parent.name, flags, dir_fd=self._parent.fd)
        except FileNotFoundError:
            if self._parent.status is None:
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
        self.etag = textfile.etag(self.status, self.data)

    def matches(self, if_match: str) -> bool:
        """True when the file is (still) the one that `if_match` names, ABSENT for none.

        Raises: ToolError INVALID_PARAMS for what is no etag.
        """
        if if_match == ABSENT:
            return self.status is None
        return self.status is not None and textfile.matches(if_match, self.status, self.data)

    def write(self, chunks: "Sequence[bytes | memoryview]") -> None:
        """Make `chunks` the file's content; `etag` is then the new one, `in_place` why not atomic.

        Raises: ToolError of `writer.write`; nothing is changed then.
        """
        self._call.check()
        name, expect = self._parent.name, self.status
        written = writer.write(self._place, name, chunks, expect=expect, shown=self.path)
        self.etag = textfile.etag(written.status, chunks)
        self.in_place = written.in_place

    @property
    def warning(self) -> str:
        """What the model should know of how it was written; empty for the usual way."""
        return f"\nWritten in place, not atomically: {self.in_place}." if self.in_place else ""


def _moved(path: str, why: str) -> ToolError:
    message = f"{quoted(path)} is not what it was a moment ago: {why}"
    return ToolError(ErrorCode.CONFLICT, message, "Nothing was changed. Call again")


def refuse_markers(new: str, text: str, parameter: str) -> None:
    """Return unless new text holds a `[REDACTED:NAME]` that would overwrite the value it stands for.

    Raises: ToolError INVALID_PARAMS.
    """
    named = markers(new)
    names = sorted(named - markers(text)) if named else []
    if names:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"{parameter} holds [REDACTED:{names[0]}], which stands for a value that was not shown",
            "Leave that part of the file out of the edit, so that the real value stays",
        )
