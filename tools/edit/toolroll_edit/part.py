"""The part of a file that an edit needs as text: decoding all of a large one takes longer than the rest."""

from toolroll.diff import CONTEXT_LINES
from toolroll.textfile import UTF16_BE, UTF16_LE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.textfile import Encoding


class Part:
    """Whole lines of a file: their `text` from byte `start` on, behind `above` other lines."""

    __slots__ = ("above", "start", "text")

    def __init__(self, text: str, start: int, above: int) -> None:
        self.text = text
        self.start = start
        self.above = above


def part_with(wanted: str, data: bytes, encoding: "Encoding") -> Part:
    """The lines in which `wanted` has all its occurrences, if any, and those that a diff shows around."""
    start, end = _bounds(wanted, data, encoding)
    start = max(start, len(encoding.bom))
    return Part(encoding.decode(data, start, end), start, data.count(b"\n", 0, start))


def _bounds(wanted: str, data: bytes, encoding: "Encoding") -> tuple[int, int]:
    """Around the one place where the bytes of `wanted` are; to the end where there are several."""
    try:
        sought = _sought(wanted, data, encoding)
    except UnicodeEncodeError:  # the file cannot hold it
        return 0, 0
    at = data.find(sought)
    if at < 0:
        return 0, 0
    lines = wanted.count("\n") + CONTEXT_LINES
    again = data.find(sought, at + 1) >= 0
    end = len(data) if again else _below(data, at + len(sought), lines)
    return _above(data, at, lines), end


def _sought(wanted: str, data: bytes, encoding: "Encoding") -> bytes:
    """Bytes that are in each occurrence; none in UTF-16, where they may lie across characters too."""
    if encoding in (UTF16_LE, UTF16_BE):
        return b""
    wanted = wanted.replace("\r\n", "\n")
    if "\n" in wanted and b"\r" in data:  # its line feeds may stand for CR LF
        wanted = max(wanted.split("\n"), key=len)
    return encoding.encode(wanted)


def _above(data: bytes, at: int, lines: int) -> int:
    """Where the line begins that is so many above the one of `at`."""
    for _ in range(lines + 1):
        at = data.rfind(b"\n", 0, at)
        if at < 0:
            break
    return at + 1


def _below(data: bytes, at: int, lines: int) -> int:
    """Where the line ends that is so many below the one of `at`."""
    for _ in range(lines + 1):
        at = data.find(b"\n", at) + 1
        if not at:
            return len(data)
    return at
