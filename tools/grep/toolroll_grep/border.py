"""Where two processes meet that search one tree from both its ends; knows the walk's order and no file.

Each says in shared memory how far it has come, and takes no directory that the other one has reached.
"""

import os

PLACE_BYTES = 1 << 20
"""Room for the path that a process has come to: of one with more than a quarter of that in characters the
folders around the border are searched by both."""

HEAD_BYTES = 4  # in front of a path: its length
FRONT, BACK = "", "\1"  # before and behind all keys


def key(path: str) -> str:
    """A path (`a/b/`) so that it compares in the order of the walk: what lies below follows at once."""
    return f"/{path}".replace("/", "\0")


class Border:
    """The paths two processes have come to; made before they are forked."""

    def __init__(self) -> None:
        from mmap import mmap

        self.fd = _memory()
        os.ftruncate(self.fd, 2 * PLACE_BYTES)
        self._memory = mmap(self.fd, 2 * PLACE_BYTES)

    def close(self) -> None:
        """Give the memory back."""
        self._memory.close()
        os.close(self.fd)

    def reset(self) -> None:
        """A search begins: nothing is taken."""
        self._write(0, FRONT)
        self._write(1, BACK)

    def take(self, share: int, path: str) -> bool:
        """True when a directory is the caller's: share 0 comes from the front, 1 from the back."""
        from fcntl import LOCK_EX, LOCK_UN, lockf

        mine = key(path)
        lockf(self.fd, LOCK_EX)  # given up by itself when a process is killed
        try:
            front, back = self._read(0), self._read(1)
            if mine <= front if share else mine >= back:
                return False
            self._write(share, min(mine, back) if share else max(mine, front))
        finally:
            lockf(self.fd, LOCK_UN)
        return True

    @property
    def met_at(self) -> str:
        """The first key that belongs to the process that came from the back."""
        return self._read(1)

    def _read(self, share: int) -> str:
        at = share * PLACE_BYTES
        size = int.from_bytes(self._memory[at : at + HEAD_BYTES], "little")
        text = self._memory[at + HEAD_BYTES : at + HEAD_BYTES + size]
        return text.decode("utf-8", "surrogatepass")

    def _write(self, share: int, text: str) -> None:
        data = text[: PLACE_BYTES // 4 - 1].encode("utf-8", "surrogatepass")
        data = len(data).to_bytes(HEAD_BYTES, "little") + data
        at = share * PLACE_BYTES
        self._memory[at : at + len(data)] = data


def _memory() -> int:
    """A descriptor of memory without a name; where there is no such thing, of a file without one."""
    if hasattr(os, "memfd_create"):
        return os.memfd_create("border")
    from tempfile import TemporaryFile

    with TemporaryFile() as file:
        return os.dup(file.fileno())
