"""One line an event on stderr, and the optional record of the wire; knows neither messages nor tools.

Whatever is written goes through a mask first, so that no secret reaches a log.
"""

import os
from time import gmtime, strftime, time

from toolroll.jsontext import dumps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PIPE_BYTES = 4_096  # PIPE_BUF: what poll() promises a pipe takes at once when it says writable
LEVELS = ("debug", "info", "warning", "error", "off")


class Log:
    """Events on stderr from `level` upwards; a line that cannot be written is dropped, never waited for."""

    __slots__ = ("_from", "detailed", "mask", "name")

    def __init__(self, name: str, level: str, mask: "Callable[[str], str]") -> None:
        self.name = name
        self.mask = mask
        self._from = LEVELS.index(level)
        self.detailed = level == LEVELS[0]  # to be asked before what is only said then is gathered

    def __call__(self, level: str, event: str, **values: object) -> None:
        """Write one event as `time name level event key=value ...`."""
        if LEVELS.index(level) < self._from:
            return
        pairs = "".join(f" {key}={value!r}" for key, value in values.items())
        now = strftime("%H:%M:%S", gmtime())
        self._write(f"{now} {self.name} {level} {event}{pairs}\n")

    def traceback(self, problem: BaseException) -> None:
        """Write where a bug is; always, whatever the level."""
        from traceback import format_exception, walk_tb

        try:
            text = "".join(format_exception(problem))
        except Exception:  # source lines may be out of reach: of a zipapp that was replaced
            codes = [(frame.f_code, line) for frame, line in walk_tb(problem.__traceback__)]
            text = "".join(f"{code.co_filename}:{line} {code.co_name}\n" for code, line in codes)
            text += f"{type(problem).__name__}: {problem}\n"
        self._write(text)

    def _write(self, text: str) -> None:
        data = self.mask(text).encode("utf-8", "backslashreplace")
        try:
            while data and _takes_more():
                data = data[os.write(2, data[:PIPE_BYTES]) :]
        except OSError:  # a full or closed stderr is no reason to fail a call
            return


def _takes_more() -> bool:
    """True when stderr takes PIPE_BYTES at once: a host that does not read it stops nothing."""
    from select import POLLOUT, poll

    waits = poll()  # one for each look: a poll object is not for several threads
    waits.register(2, POLLOUT)
    return bool(waits.poll(0))


class Trace:
    """The record of the wire: a JSON line for each line read or written, appended to a file of mode 0600.

    Whole lines only, so that no secret is cut in two and gets past the mask.
    """

    __slots__ = ("_fd", "_rest", "mask")

    def __init__(self, path: str, mask: "Callable[[str], str]") -> None:
        """Raises: OSError when the file cannot be opened."""
        self.mask = mask
        self._rest = {"in": b"", "out": b""}
        self._fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)

    def __call__(self, way: str, data: bytes) -> None:
        """Record what was read ("in") or written ("out")."""
        *lines, self._rest[way] = (self._rest[way] + data).split(b"\n")
        for line in lines:
            self._write(way, line)

    def close(self) -> None:
        """Record what came without a newline behind it."""
        for way, rest in self._rest.items():
            if rest:
                self._write(way, rest)

    def _write(self, way: str, data: bytes) -> None:
        if self._fd < 0:
            return
        text = self.mask(data.decode("utf-8", "backslashreplace"))
        line = {"time": round(time(), 6), "way": way, "data": text}
        try:
            os.write(self._fd, dumps(line) + b"\n")
        except OSError as problem:  # a full disk ends the record, never the server
            self._fd = -1
            os.write(2, f"--trace stops: {problem.strerror}\n".encode())
