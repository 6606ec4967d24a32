"""The one way a file is changed: a durable write after which there is the new content or the old.

Must not know: text, paths (a file is a name in an open directory), and what the bytes are for.

What holds after `write`, whenever the process is killed or the disk fails:
* The name holds the whole old or the whole new content, and the new one is on disk on return.
* A replaced file keeps owner, group, all mode bits (setuid, setgid and sticky too) and, where the
  system permits, ACLs and extended attributes.  Where owner or mode cannot be kept, on a file with
  several hard links and on a mount point, the old file is written in place instead: not atomic,
  but undone when it fails, and told in the result.
* Nothing else is left.  Only KILL between the two adjacent system calls that name and rename the
  new file leaves a `.toolroll-PID-RANDOM`; the next write in that directory removes it.  (Without
  O_TMPFILE that holds for KILL at any time of the write.)
"""

import errno
import os
import stat
from _thread import allocate_lock
from time import monotonic, sleep

from toolroll.errors import ErrorCode, ToolError
from toolroll.hold import hold
from toolroll.status import state

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    Chunks = Sequence[bytes | memoryview]

LOCK_WAIT_S = 5.0
LOCK_POLL_S = 0.002
SLICES = 1024
"""Most slices of one writev: IOV_MAX of Linux and macOS."""

DESCRIPTORS = "/proc/self/fd"
"""Where an unnamed file can be linked from; without it the new file has a name from the start."""

MARK = ".toolroll-"
NO_UNNAMED_FILES = (errno.EOPNOTSUPP, errno.EISDIR, errno.EINVAL, errno.ENOSYS)
NO_HARD_LINKS = (errno.EPERM, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK)
NO_RESERVING = (errno.EOPNOTSUPP, errno.EINVAL, errno.ENOSYS)
NOT_COPIED = (errno.EPERM, errno.EACCES, errno.EOPNOTSUPP, errno.EINVAL, errno.ENODATA)
OF_OLD_BYTES = frozenset(("security.ima", "security.evm"))
"""Attributes that sign the content, so they must not move on to another."""

_threads_only = allocate_lock()


class Written:
    """What a write did: the file's new `status`, and why it was written in place (or "")."""

    __slots__ = ("in_place", "status")

    def __init__(self, status: os.stat_result, in_place: str = "") -> None:
        self.status = status
        self.in_place = in_place


class Directory:
    """A directory that is one writer's alone while it is entered; made by `locked`."""

    __slots__ = ("_check", "_given", "_shown", "_wait_s", "descriptor", "exclusive")

    def __init__(
        self, given: int, shown: str, check: "Callable[[], None] | None", wait_s: float
    ) -> None:
        self._given = given
        self._shown = shown
        self._check = check
        self._wait_s = wait_s
        self.descriptor = -1
        self.exclusive = False

    def __enter__(self) -> "Directory":
        # A description of its own: flock then excludes the threads of this process as well.
        flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
        try:
            self.descriptor = os.open(".", flags, dir_fd=self._given)
        except OSError as error:
            raise _refusal(error, self._shown) from error
        try:
            self._wait()
        except BaseException:
            os.close(self.descriptor)
            raise
        try:
            if not os.fstat(self.descriptor).st_nlink:
                raise _conflict(f"the directory of '{self._shown}' has been removed")
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)  # unlocks
        if not self.exclusive:
            _threads_only.release()

    def _wait(self) -> None:
        deadline = monotonic() + self._wait_s
        while not self._taken():
            if self._check:
                self._check()
            if monotonic() >= deadline:
                raise ToolError(
                    ErrorCode.CONFLICT,
                    f"another writer has held the directory of '{self._shown}' "
                    f"for {self._wait_s:g} seconds",
                    "Nothing was changed. Call again.",
                )
            sleep(LOCK_POLL_S)

    def _taken(self) -> bool:
        from fcntl import LOCK_EX, LOCK_NB, flock

        try:
            flock(self.descriptor, LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        except OSError:  # a file system without flock: the threads of one server still take turns
            return _threads_only.acquire(False)
        self.exclusive = True
        return True


def locked(
    directory: int,
    shown: str,
    check: "Callable[[], None] | None" = None,
    wait_s: float = LOCK_WAIT_S,
) -> Directory:
    """The directory of an open descriptor, to be entered around read, change and `write`.

    `shown` is the path of the file for errors; `check` is asked while waiting and may raise.
    Locks do not nest.

    Raises: on entering, ToolError CONFLICT after `wait_s`, PERMISSION_DENIED, what `check` raises.
    """
    return Directory(directory, shown, check, wait_s)


def write(
    directory: Directory,
    name: str,
    chunks: "Chunks",
    *,
    expect: os.stat_result | None,
    shown: str = "",
) -> Written:
    """Write `chunks`, one behind the other, as the whole content of `name`, atomically and durably.

    `expect` is the status of the file when it was read, None for a file that must not exist.  A new
    file gets mode 0666 less the umask.  A file without any write bit is refused, for root as well.

    Raises: ToolError CONFLICT (changed, vanished), ALREADY_EXISTS, NOT_A_FILE, PERMISSION_DENIED,
    TOO_LARGE, INVALID_PARAMS (name too long), EXECUTION_ERROR (disk full, quota, I/O); CANCELLED
    when the process is ending.  The old content is then intact, unless the message says otherwise.
    """
    shown = shown or name
    try:
        _sweep(directory)
        if expect is None:
            return _create(directory.descriptor, name, chunks, shown)
        return _change(directory.descriptor, name, chunks, expect, shown)
    except OSError as error:
        raise _refusal(error, shown) from error


class _Unkept(Exception):  # noqa: N818 - a reason to write in place, not an error
    """A rename would lose something of the target; the text completes 'because'."""


def _create(directory: int, name: str, chunks: "Chunks", shown: str) -> Written:
    if _look(directory, name, shown):
        raise FileExistsError(errno.EEXIST, "exists")
    with _Draft(directory, 0o666, shown) as draft:
        _write_all(draft.descriptor, chunks)
        os.fsync(draft.descriptor)
        with hold():
            draft.claim(name)
        status = os.fstat(draft.descriptor)
    _sync(directory, shown)
    return Written(status)


def _change(
    directory: int, name: str, chunks: "Chunks", expect: os.stat_result, shown: str
) -> Written:
    _require_writable(directory, name, expect, shown)
    try:
        if expect.st_nlink > 1:
            raise _Unkept(f"it has {expect.st_nlink} hard links")
        return _exchange(directory, name, chunks, expect, shown)
    except _Unkept as reason:
        with hold():
            _require_unchanged(directory, name, expect, shown)
            return Written(_overwrite(directory, name, chunks, expect, shown), str(reason))


def _exchange(
    directory: int, name: str, chunks: "Chunks", expect: os.stat_result, shown: str
) -> Written:
    with _Draft(directory, 0o600, shown) as draft:
        _keep_owner(draft.descriptor, expect)
        _write_all(draft.descriptor, chunks)
        # After the bytes: writing takes setuid, setgid and capabilities away.
        _keep_attributes(draft.descriptor, directory, name)
        _keep_mode(draft.descriptor, expect)
        os.fsync(draft.descriptor)
        with hold():
            _require_unchanged(directory, name, expect, shown)
            draft.rename(name)
        status = os.fstat(draft.descriptor)
    _sync(directory, shown)
    return Written(status)


class _Draft:
    """The new file until it is published: without a name where the system can do that."""

    __slots__ = ("_directory", "_name", "descriptor")

    def __init__(self, directory: int, mode: int, shown: str) -> None:
        self._directory = directory
        self._name = ""
        try:
            self.descriptor = _unnamed_file(directory, mode)
            if self.descriptor < 0:
                self._name = _draft_name()
                flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
                self.descriptor = os.open(self._name, flags, mode, dir_fd=directory)
        except PermissionError as error:
            raise ToolError(
                ErrorCode.PERMISSION_DENIED,
                f"'{shown}' cannot be written: its directory takes no new file, "
                "which a safe write needs",
                "Nothing was changed. Make the directory writable (chmod u+w) if that is wanted.",
            ) from error

    def __enter__(self) -> "_Draft":
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.descriptor)
        if self._name:
            _discard(self._name, self._directory)

    def claim(self, name: str) -> None:
        """Publish under a name that must be free.  Raises: FileExistsError."""
        if not self._name:
            self._link(name)
            return
        try:
            os.link(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except OSError as error:
            if error.errno not in NO_HARD_LINKS:
                raise
            self._claim_without_links(name)
            return
        os.unlink(self._name, dir_fd=self._directory)
        self._name = ""

    def _claim_without_links(self, name: str) -> None:
        """Make sure by an empty file that nothing is overwritten, as on FAT, then replace that."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        os.close(os.open(name, flags, 0o600, dir_fd=self._directory))
        try:
            self.rename(name)
        except BaseException:
            _discard(name, self._directory)
            raise

    def rename(self, name: str) -> None:
        """Publish in place of the file of that name.  Raises: _Unkept for a mount point."""
        if not self._name:
            self._name = _draft_name()
            self._link(self._name)
        try:
            os.rename(self._name, name, src_dir_fd=self._directory, dst_dir_fd=self._directory)
        except OSError as error:
            if error.errno == errno.EBUSY:
                raise _Unkept("it is a mount point") from error
            raise
        self._name = ""

    def _link(self, name: str) -> None:
        """Give the unnamed file a name (open(2), O_TMPFILE)."""
        source = f"{DESCRIPTORS}/{self.descriptor}"
        os.link(source, name, dst_dir_fd=self._directory, follow_symlinks=True)


def _unnamed_file(directory: int, mode: int) -> int:
    """The descriptor of a new file without a name; -1 where there is no such thing."""
    if not hasattr(os, "O_TMPFILE") or not os.access(DESCRIPTORS, os.X_OK):
        return -1
    try:
        return os.open(".", os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, mode, dir_fd=directory)
    except OSError as error:
        if error.errno in NO_UNNAMED_FILES:
            return -1
        raise


def _draft_name() -> str:
    """A new temporary name: short, as the target's own may have all 255 bytes."""
    return f"{MARK}{os.getpid()}-{os.urandom(6).hex()}"


def _is_draft_name(name: str) -> bool:
    pid, _, random = name.removeprefix(MARK).partition("-")
    return name.startswith(MARK) and pid.isdecimal() and len(random) == 12


def _discard(name: str, directory: int) -> None:
    try:
        os.unlink(name, dir_fd=directory)
    except OSError as error:
        # Never made, or not ours to remove; the failure that led here is the one to report.
        if error.errno not in (errno.ENOENT, errno.EPERM, errno.EACCES, errno.EROFS, errno.EISDIR):
            raise


def _sweep(directory: Directory) -> None:
    """Remove what killed writers left: with the lock in hand, every draft's writer is dead."""
    if not directory.exclusive:
        return
    for name in os.listdir(directory.descriptor):
        if _is_draft_name(name):
            _discard(name, directory.descriptor)


def _look(directory: int, name: str, shown: str) -> os.stat_result | None:
    """The status of a regular file, None when there is nothing.

    Raises: ToolError NOT_A_FILE for other kinds, CONFLICT for a symbolic link.
    """
    try:
        status = os.stat(name, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return None
    if stat.S_ISLNK(status.st_mode):
        raise _conflict(f"'{shown}' has become a symbolic link")
    if not stat.S_ISREG(status.st_mode):
        raise ToolError(
            ErrorCode.NOT_A_FILE,
            f"'{shown}' is {_kind(status.st_mode)}, not a regular file",
            "It was not touched. Give the path of a regular file.",
        )
    return status


def _kind(mode: int) -> str:
    if stat.S_ISDIR(mode):
        return "a directory"
    if stat.S_ISFIFO(mode):
        return "a FIFO"
    return "a socket" if stat.S_ISSOCK(mode) else "a device"


def _require_unchanged(directory: int, name: str, expect: os.stat_result, shown: str) -> None:
    now = _look(directory, name, shown)
    if now is None:
        raise _conflict(f"'{shown}' has vanished since it was read")
    if state(now) != state(expect):
        raise _conflict(f"'{shown}' has changed since it was read")


def _conflict(message: str) -> ToolError:
    return ToolError(ErrorCode.CONFLICT, message, "Nothing was written. Read it again, then retry.")


def _require_writable(directory: int, name: str, expect: os.stat_result, shown: str) -> None:
    """Return when the file as it was read is there and may be written."""
    _require_unchanged(directory, name, expect, shown)
    if not expect.st_mode & 0o222:
        raise ToolError(
            ErrorCode.PERMISSION_DENIED,
            f"'{shown}' is read-only (mode {stat.S_IMODE(expect.st_mode):04o})",
            "It was not touched. If it is meant to be changed, make it writable first: chmod u+w.",
        )
    # Asked first, as to open for writing makes an overlay copy the file, which then looks changed.
    if not os.access(name, os.W_OK, dir_fd=directory):
        os.close(_open(directory, name, os.O_RDWR))  # fails, and tells why


def _open(directory: int, name: str, access: int) -> int:
    flags = access | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    return os.open(name, flags, dir_fd=directory)


def _keep_owner(draft: int, wanted: os.stat_result) -> None:
    """Give the draft the target's owner and group.  Raises: _Unkept."""
    now = os.fstat(draft)
    if (now.st_uid, now.st_gid) == (wanted.st_uid, wanted.st_gid):
        return
    try:
        os.fchown(draft, wanted.st_uid, wanted.st_gid)
    except OSError as error:
        raise _Unkept("its owner and group can only be kept so") from error


def _keep_mode(draft: int, wanted: os.stat_result) -> None:
    """Give the draft all of the target's mode bits.  Raises: _Unkept."""
    mode = stat.S_IMODE(wanted.st_mode)
    if stat.S_IMODE(os.fstat(draft).st_mode) == mode:
        return
    os.fchmod(draft, mode)
    if stat.S_IMODE(os.fstat(draft).st_mode) != mode:  # setgid of a group that is not ours
        raise _Unkept("its mode can only be kept so")


def _keep_attributes(draft: int, directory: int, name: str) -> None:
    """Give the draft the target's extended attributes and no others, as far as permitted."""
    if not hasattr(os, "listxattr"):
        return
    target = _open(directory, name, os.O_RDONLY)
    try:
        wanted = set(os.listxattr(target)) - OF_OLD_BYTES
        for attribute in wanted.union(os.listxattr(draft)):
            _keep_attribute(draft, target, attribute, attribute in wanted)
    except OSError as error:
        _require_known(error)
    finally:
        os.close(target)


def _keep_attribute(draft: int, target: int, attribute: str, wanted: bool) -> None:
    try:
        if wanted:
            os.setxattr(draft, attribute, os.getxattr(target, attribute))
        else:
            os.removexattr(draft, attribute)
    except OSError as error:
        _require_known(error)


def _require_known(error: OSError) -> None:
    if error.errno not in NOT_COPIED:
        raise error


def _write_all(descriptor: int, chunks: "Chunks") -> None:
    for first in range(0, len(chunks), SLICES):
        batch = chunks[first : first + SLICES]
        done = os.writev(descriptor, batch)
        if done == sum(map(len, batch)):
            continue
        rest = memoryview(b"".join(batch))[done:]  # a full disk or a limit: the next one tells
        while rest:
            rest = rest[os.write(descriptor, rest) :]


def _overwrite(
    directory: int, name: str, chunks: "Chunks", expect: os.stat_result, shown: str
) -> os.stat_result:
    """Write in place; the old bytes stay in memory until the new ones are on disk."""
    target = _open(directory, name, os.O_RDWR)
    try:
        now = os.fstat(target)  # of a copy, on an overlay: with another inode and ctime
        if (now.st_size, now.st_mtime_ns) != (expect.st_size, expect.st_mtime_ns):
            raise _conflict(f"'{shown}' has changed since it was read")
        old = _all_bytes(target)
        try:
            _put(target, old, chunks)
        except OSError:
            _restore(target, old, shown)
            raise
        return os.fstat(target)
    finally:
        os.close(target)


def _put(target: int, old: bytes, chunks: "Chunks") -> None:
    total = sum(map(len, chunks))
    if total > len(old):
        _reserve(target, len(old), total - len(old))
    start = kept = 0
    for chunk in chunks:
        if not old.startswith(chunk, start):
            break
        start += len(chunk)
        kept += 1
    os.lseek(target, start, os.SEEK_SET)
    _write_all(target, chunks[kept:])
    os.ftruncate(target, total)
    os.fsync(target)


def _reserve(target: int, start: int, length: int) -> None:
    """Have the space before the first byte is written, so that a full disk costs nothing."""
    if not hasattr(os, "posix_fallocate"):
        return
    try:
        os.posix_fallocate(target, start, length)
    except OSError as error:
        if error.errno not in NO_RESERVING:
            raise


def _restore(target: int, old: bytes, shown: str) -> None:
    try:
        os.ftruncate(target, len(old))
        os.lseek(target, 0, os.SEEK_SET)
        _write_all(target, (old,))
        os.fsync(target)
    except OSError as error:
        raise ToolError(
            ErrorCode.EXECUTION_ERROR,
            f"'{shown}' is damaged: writing it in place failed, and so did putting its old content "
            f"back ({error.strerror})",
            "Restore it from version control or a backup.",
        ) from error


def _all_bytes(descriptor: int) -> bytes:
    pieces: list[bytes] = []
    at = 0
    while piece := os.pread(descriptor, os.fstat(descriptor).st_size + 1, at):
        pieces.append(piece)
        at += len(piece)
    return b"".join(pieces)


def _sync(directory: int, shown: str) -> None:
    """Make the new name durable."""
    try:
        os.fsync(directory)
    except OSError as error:
        if error.errno == errno.EINVAL:  # a file system that cannot sync directories
            return
        raise ToolError(
            ErrorCode.EXECUTION_ERROR,
            f"'{shown}' has its new content, but may lose it in a power failure: "
            f"its directory could not be synced ({error.strerror})",
            "Check the disk.",
        ) from error


def _refusal(error: OSError, shown: str) -> ToolError:
    """The answer to a failed write: that nothing was changed, why, and what helps."""
    code, why, hint = _FAILURES.get(error.errno or 0, (ErrorCode.EXECUTION_ERROR, "", ""))
    why = why or error.strerror or str(error)
    message = f"'{shown}' was not written: {why}"
    return ToolError(code, message, f"Nothing was changed. {hint}".strip())


_FAILURES = {
    errno.ENOSPC: (ErrorCode.EXECUTION_ERROR, "the disk is full", "Free some space, call again."),
    errno.EDQUOT: (ErrorCode.EXECUTION_ERROR, "the disk quota is used up", "Free some space."),
    errno.EFBIG: (
        ErrorCode.TOO_LARGE,
        "the new content is larger than a file may be here",
        "Write less, or raise the limit (ulimit -f).",
    ),
    errno.EROFS: (ErrorCode.PERMISSION_DENIED, "the file system is read-only", ""),
    errno.EACCES: (ErrorCode.PERMISSION_DENIED, "permission denied", "Look at it with ls -l."),
    errno.EPERM: (
        ErrorCode.PERMISSION_DENIED,
        "the system does not permit it",
        "It may be immutable or append-only (lsattr), or belong to someone else (ls -l).",
    ),
    errno.EMFILE: (ErrorCode.EXECUTION_ERROR, "too many files are open", "Call again."),
    errno.ENFILE: (ErrorCode.EXECUTION_ERROR, "too many files are open", "Call again."),
    errno.ENAMETOOLONG: (
        ErrorCode.INVALID_PARAMS,
        "its name is too long",
        "Most file systems allow 255 bytes.",
    ),
    errno.ENOENT: (ErrorCode.CONFLICT, "it or its directory has vanished", "Call again."),
    errno.EEXIST: (ErrorCode.ALREADY_EXISTS, "it exists already", "Read it, then change it."),
    errno.ELOOP: (ErrorCode.CONFLICT, "it has become a symbolic link", "Call again."),
    errno.ETXTBSY: (ErrorCode.EXECUTION_ERROR, "it is a program that runs", "Stop it first."),
}
