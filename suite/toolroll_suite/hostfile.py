"""A host's file: our servers put into it and taken out again, everything else byte for byte as it was.

Before a file is changed it is copied beside itself, as `FILE.toolroll-backup`.  `undo` puts that copy
back.  When the file was changed since, or there was none before, only our own entries go.  A copy is never
deleted while it may be the only one: not when its file is gone, not when it was not put back.
"""

import os
from contextlib import contextmanager, suppress
from tempfile import mkstemp

from toolroll.call import Call
from toolroll.change import Target
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.paths import Roots, quoted
from toolroll_suite.installed import MARK, programs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from typing import Any

    from toolroll_suite.hosts import Host, Server

    Entries = dict[str, dict[str, Any]]

BACKUP = ".toolroll-backup"
BOM = b"\xef\xbb\xbf"


def snippet(host: "Host", servers: "Sequence[Server]") -> str:
    """What a file of the host holds that has these servers and nothing else."""
    return _merged(host, "", {server.name: host.entry(server) for server in servers})


def write(host: "Host", path: str, servers: "Sequence[Server]") -> str:
    """Put the servers into the file and tell what was done; nothing is written when nothing changes.

    Raises: ToolError for a file that cannot be parsed, read or written; it is then as it was.  CONFLICT
    for one that is gone while its copy is there.
    """
    with _target(path) as target:
        if target.status is None:
            _refuse_copy(path)
        old = target.data
        text = _text(old, path)
        try:
            new = _bytes(_merged(host, text, {one.name: host.entry(one) for one in servers}), old)
        except ValueError as problem:
            raise _left_alone(path, str(problem)) from None
        names = ", ".join(server.name for server in servers)
        if new == old:
            return f"Unchanged: {quoted(path)} has {names} already."
        if target.status is None:
            target.write((new,))
            return f"Created {quoted(path)} with {names}."
        with _backed_up(path, old, target.status.st_mode):
            target.write((new,))
        return f"Wrote {names} into {quoted(path)}; it was copied to {quoted(path + BACKUP)}."


def undo(host: "Host", path: str) -> str:
    """Make the file what it was before `write`, or take our entries out, and tell which.

    Raises: ToolError when there is nothing to undo, or it would take away what others wrote.
    """
    with _target(path) as target:
        if target.status is None:
            raise ToolError(ErrorCode.NOT_FOUND, f"{quoted(path)} is not there: nothing to undo")
        copy = _backup(path)
        before = copy or b""
        try:
            text = _text(target.data, path)
            known = programs()
            ours = {name: e for name, e in _entries(host, text).items() if name in known}
            if not ours and copy is None:
                raise ValueError("it holds no entry of ours")
            if _rebuilt(host, before, ours) == target.data:
                return _restore(target, path, copy)
            target.write((_bytes(_taken_out(host, text, before, ours), target.data),))
        except ValueError as problem:
            raise _left_alone(path, str(problem)) from None
        kept = "" if copy is None else f" Its copy stays: {quoted(path + BACKUP)}."
        return f"Took {', '.join(ours)} out of {quoted(path)}, which was changed since.{kept}"


# -- texts -------------------------------------------------------------------------------------------


def _merged(host: "Host", text: str, entries: "Entries") -> str:
    """Raises: ValueError."""
    for name, entry in entries.items():
        text = host.language.put(text, host.path(name), entry)
    return text


def _entries(host: "Host", text: str) -> "Entries":
    """The servers of a text by name.  Raises: ValueError."""
    found = host.language.loads(text)
    for key in host.keys:
        found = found.get(key, {}) if isinstance(found, dict) else {}
    return found if isinstance(found, dict) else {}


def _rebuilt(host: "Host", before: bytes, ours: "Entries") -> bytes | None:
    """What `write` makes of the file as it was, given the entries of today; None for nothing."""
    try:
        return _bytes(_merged(host, _text(before, ""), ours), before)
    except ValueError:
        return None


def _taken_out(host: "Host", text: str, before: bytes, ours: "Entries") -> str:
    """Raises: ValueError, ToolError."""
    kept = _entries(host, _text(before, ""))
    older = [name for name in ours if name in kept]
    if older:
        raise ValueError(f"it was changed since, and {', '.join(older)} had another entry before")
    if not ours:
        raise ValueError("it holds no entry of ours")
    for name in ours:
        text = host.language.remove(text, host.path(name))
    return text


def _text(data: bytes, path: str) -> str:
    """Raises: ToolError."""
    try:
        return data.removeprefix(BOM).decode()
    except UnicodeDecodeError as problem:
        raise _left_alone(path, f"byte {problem.start} is not UTF-8") from None


def _bytes(text: str, like: bytes) -> bytes:
    """A text as UTF-8, with a byte order mark if the other bytes have one."""
    return (BOM if like.startswith(BOM) else b"") + text.encode()


def _left_alone(path: str, why: str) -> ToolError:
    return ToolError(ErrorCode.INVALID_PARAMS, f"{quoted(path)} was left alone: {why}")


# -- files -------------------------------------------------------------------------------------------


def _target(path: str) -> Target:
    """The file at an absolute path, wherever its links lead."""
    return Target(path, Call(Roots(["/"]), Guard({})), create=True)


@contextmanager
def _backed_up(path: str, data: bytes, mode: int) -> "Iterator[None]":
    """Copy the file beside itself around its change; without that, no copy takes the last one's place.

    Nobody else may read the copy before it has the file's mode.
    """
    fd, draft = mkstemp(dir=os.path.dirname(path), prefix=MARK)
    try:
        with open(fd, "wb") as copy:
            copy.write(data)
            os.fchmod(fd, mode & 0o7777)
            os.fsync(fd)
        yield
        os.replace(draft, path + BACKUP)
    except BaseException:
        os.unlink(draft)
        raise


def _backup(path: str) -> bytes | None:
    """The file as it was before the last change; None when it was not there."""
    try:
        with open(path + BACKUP, "rb") as copy:
            return copy.read()
    except FileNotFoundError:
        return None


def _refuse_copy(path: str) -> None:
    """Return unless there is a copy of the file, which is gone.  Raises: ToolError."""
    copy = path + BACKUP
    if os.path.lexists(copy):
        raise ToolError(
            ErrorCode.CONFLICT,
            f"{quoted(path)} is gone, and {quoted(copy)} may be the only copy of it",
            "Move that copy back, or somewhere else, and call again",
        )


def _forget(path: str) -> None:
    with suppress(FileNotFoundError):
        os.unlink(path + BACKUP)


def _restore(target: Target, path: str, copy: bytes | None) -> str:
    if copy is None:
        os.unlink(os.path.realpath(path))
        return f"Removed {quoted(path)}, which was not there before."
    target.write((copy,))
    _forget(path)
    return f"Restored {quoted(path)} to what it was."
