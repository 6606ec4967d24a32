"""What an agent said and did, as JSON lines in a file of the operator's; masked like all else."""

import os
from time import gmtime, strftime, time

from toolroll.errors import ErrorCode, ToolError
from toolroll.jsontext import dumps
from toolroll.paths import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolroll.guard import Guard

    Json = Any


class Transcript:
    """A new file of one task, readable by its owner alone; without a folder nothing is written."""

    def __init__(self, folder: str, guard: "Guard") -> None:
        """Raises: ToolError EXECUTION_ERROR when there can be no such file."""
        self._guard = guard
        self._fd = -1
        if not folder:
            return
        name = f"{strftime('%Y%m%dT%H%M%SZ', gmtime())}-{os.getpid()}-{os.urandom(3).hex()}.jsonl"
        try:
            os.makedirs(folder, 0o700, exist_ok=True)
            self._fd = os.open(f"{folder}/{name}", os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as problem:
            what = f"no transcript can be written to {quoted(folder)}: {problem.strerror}"
            raise ToolError(ErrorCode.EXECUTION_ERROR, what, "See --transcript") from None

    def write(self, kind: str, value: "Json") -> None:
        """Add a line; a full disk ends the transcript and not the task."""
        if self._fd < 0:
            return
        line = {"time": round(time(), 3), kind: self._guard.clean_value(value)}
        try:
            os.write(self._fd, dumps(line) + b"\n")
        except OSError:
            self.close()

    def close(self) -> None:
        """End it; a second time does nothing."""
        fd, self._fd = self._fd, -1
        if fd >= 0:
            os.close(fd)
