"""The private folder of a server's pipes and saved outputs; knows nothing of what they are for."""

import os

from toolroll.errors import ErrorCode, ToolError
from toolroll.saved import folder, is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

LOCK = "lock"
TRIES = 10


class Folder:
    """A directory of mode 0700 for as long as this process lives; its lock says that it does."""

    __slots__ = ("_lock", "path")

    def __init__(self) -> None:
        """Raises: ToolError EXECUTION_ERROR when there is no safe place for it."""
        above = folder()
        try:
            os.makedirs(above, 0o700, exist_ok=True)
            if not is_ours(above):
                raise PermissionError("it belongs to another user or is open to others")
            _sweep(above)
            self.path, self._lock = _claim(above)
        except OSError as problem:
            what = f"no private folder can be made at '{above}': {problem.strerror or problem}"
            hint = "Set XDG_RUNTIME_DIR or TMPDIR to a directory of your own"
            raise ToolError(ErrorCode.EXECUTION_ERROR, what, hint) from None

    def remove(self) -> None:
        """Give the folder up and remove it; safe in a signal handler, and twice."""
        lock, self._lock = self._lock, -1
        if lock >= 0:
            os.close(lock)
        clear(self.path)


def _claim(above: str) -> tuple[str, int]:
    """A new folder and its held lock."""
    for _ in range(TRIES):
        path = os.path.join(above, f"bash-{os.urandom(4).hex()}")
        os.mkdir(path, 0o700)
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        if _taken(lock, path):
            return path, lock
        os.close(lock)  # another server's sweep was quicker
    raise PermissionError("other processes keep removing it")


def _taken(lock: int, path: str) -> bool:
    """True when the open lock is now ours, and still the one in the folder."""
    from fcntl import LOCK_EX, LOCK_NB, flock

    try:
        flock(lock, LOCK_EX | LOCK_NB)
        return os.path.samestat(os.fstat(lock), os.stat(os.path.join(path, LOCK)))
    except OSError:
        return False


def _sweep(above: str) -> None:
    """Remove what servers left that were killed together with all their launchers."""
    for name in os.listdir(above):
        if name.startswith("bash-"):
            clear_abandoned(os.path.join(above, name))


def clear_abandoned(path: str) -> None:
    """Remove a server's folder if that server is gone: nobody holds its lock."""
    try:
        lock = os.open(os.path.join(path, LOCK), os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW)
    except OSError:  # being made, or gone already
        return
    try:
        if _taken(lock, path):
            clear(path)
    finally:
        os.close(lock)


def clear(path: str) -> None:
    """Remove a folder of ours and all in it; what is gone already or cannot go is no matter."""
    for place, folders, files in os.walk(path, topdown=False):
        for name in files:
            _quietly(os.unlink, os.path.join(place, name))
        for name in folders:
            child = os.path.join(place, name)
            _quietly(os.unlink if os.path.islink(child) else os.rmdir, child)
    _quietly(os.rmdir, path)


def _quietly(act: "Callable[[str], None]", path: str) -> None:
    try:
        act(path)
    except OSError:
        return
