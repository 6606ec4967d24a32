"""What a command printed: bytes in, a text of bounded size out, all of it in a file when it is long.

Memory stays the same however much comes.  Knows nothing of processes.
"""

import os

from toolroll.limits import clip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

FILE_BYTES = 64 * 1024 * 1024
LINE_CHARS = 300
ERROR_LINES, ERRORS_KEPT = 20, 200
"""Lines that look like errors: how many are shown, and how many are kept to choose from."""

ERROR_BYTES = 4_096
"""How much of such a line is kept; what is shown of it is cut once it is clean of secrets."""

SEARCHED_BYTES = 16 * 1024 * 1024
"""How much is searched for them: eight searches take longer than all else together."""

MARKER_CHARS = 1_000
"""Room for the words about what is left out."""

HELD_BYTES = 65_536
"""How much of an unfinished line waits for its end where a line is written over and over."""

ERRORS = (b"rror", b"ERROR", b"FAIL", b"ailed", b"atal", b"Traceback", b"anic", b"xception")
"""Parts of lines that look like errors, without the letter that is written either way."""

ESCAPES = (
    r"\x1b\[[0-?]*[ -/]*[@-~]"  # ECMA-48 5.4: control sequences
    # 5.6: control strings, as titles and links are; one without an end must not swallow output
    r"|\x1b[\]PX^_][^\x07\x1b\x9c\n]{0,4096}(?:\x07|\x1b\\|\x9c)"
    r"|\x1b[ -/]*[0-~]"  # ECMA-35 13.2: all others
    r"|\x9b[0-?]*[ -/]*[@-~]"
    r"|[\x80-\x9f]"
    r"|[^\n\x08]\x08"  # overstrike, as man(1) makes letters bold
)


class Output:
    """Head, tail and error lines of a stream, of which `most` characters are to be shown.

    `name` gives the path of the file for the whole, when one is needed.
    """

    def __init__(self, most: int, name: "Callable[[], str]") -> None:
        self.most = most
        self.total = 0
        self.path = ""
        self._name = name
        self._size = 4 * most  # of head and of tail: a character has at most four bytes
        self._head = self._tail = self._held = b""
        self._dropped = self._lines = self._saved = 0
        self._errors: list[tuple[int, bytes]] = []
        self._file = -1

    def add(self, data: bytes) -> None:
        """Take the next piece."""
        self.total += len(data)
        if self._file < 0 and not self.path and self.total > self._size:
            self._open()
        self._save(data)
        self._take(self._fold(self._held + data))

    def end(self) -> None:
        """Nothing more will come."""
        held, self._held = self._held, b""
        self._take(held.rstrip(b"\r"))

    def last_line(self, clean: "Callable[[str], str]") -> str:
        """The end of the last line that is not blank, through `clean`, for a progress report."""
        recent = ((self._tail or self._head)[-4096:] + self._held).decode("utf-8", "replace")
        lines = clean(plain(recent)).split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "")[-LINE_CHARS:]

    def save(self) -> str:
        """The path of the file that holds all of it, up to FILE_BYTES; empty when the disk is full."""
        if not self.path:
            self._open()
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        return self.path

    def text(self, clean: "Callable[[str], str]") -> str:
        """What is shown of it, through `clean`: at most `most` characters."""
        if not self._head:
            return ""
        if not self._dropped:
            whole = clean(shown(self._head + self._tail))
            if len(whole) <= self.most:
                return whole
            return self._cut(whole, whole, clean)
        head, tail = (
            clean(shown(_without_last(self._head))),
            clean(shown(_without_first(self._tail))),
        )
        return self._cut(head, tail, clean)

    # -- in --------------------------------------------------------------------------------------

    def _take(self, data: bytes) -> None:
        if not data:
            return
        if len(self._errors) < ERRORS_KEPT and self.total <= SEARCHED_BYTES:
            self._errors += error_lines(data, self._lines + 1, ERRORS_KEPT - len(self._errors))
        self._lines += data.count(b"\n")
        room = self._size - len(self._head)
        if room > 0:
            self._head += data[:room]
            data = data[room:]
        self._tail += data
        if len(self._tail) > 2 * self._size:
            self._dropped += len(self._tail) - self._size
            self._tail = self._tail[-self._size :]

    def _fold(self, data: bytes) -> bytes:
        """`data` with each line in its last state; a last line without end is held back."""
        end = data.rfind(b"\n") + 1
        if len(data) - end > HELD_BYTES:
            end = len(data)
        held = data[end:]
        last = held.rstrip(b"\r").rfind(b"\r") + 1
        self._held = held[last:]
        return folded(data[:end]) if b"\r" in data else data[:end]

    def _open(self) -> None:
        self.path = self._name()
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC
        try:
            self._file = os.open(self.path, flags, 0o600)
        except OSError:  # a full disk costs the file, not the command
            self.path = ""
            return
        self._save(self._head + self._tail + self._held)

    def _save(self, data: bytes) -> None:
        if self._file < 0 or self._saved >= FILE_BYTES:
            return
        piece = memoryview(data)[: FILE_BYTES - self._saved]
        try:
            while piece:
                written = os.write(self._file, piece)
                self._saved += written
                piece = piece[written:]
        except OSError:
            self._saved = FILE_BYTES

    # -- out -------------------------------------------------------------------------------------

    def _cut(self, head: str, tail: str, clean: "Callable[[str], str]") -> str:
        """The head's beginning, a marker, error lines, the tail's end."""
        path = self.save()
        room = self.most - MARKER_CHARS - self.most // 6
        if room < MARKER_CHARS:
            return clip(head, self.most, f"All of it: {path}")
        start = head.rfind("\n", room * 2 // 5 - 400, room * 2 // 5) + 1 or room * 2 // 5
        first = len(tail) - room * 3 // 5
        first = tail.find("\n", first, first + 400) + 1 or first
        above, below = head[:start], tail[first:]
        next_line = above.count("\n") + 1
        last_line = self._lines - below.count("\n")
        errors = [
            f"{number}: {clean(shown(line))[:LINE_CHARS]}"
            for number, line in self._errors
            if next_line <= number <= last_line
        ]
        marker = _marker(next_line, last_line, self.total, path, self._saved < self.total)
        listed = _errors_shown(errors, self.most // 6)
        return f"{above.rstrip()}\n{marker}{listed}\n{below}"


def _marker(first: int, last: int, total: int, path: str, partly: bool) -> str:
    """What is left out, and how to read it."""
    what = f"lines {first}-{last}" if last >= first else "a part of one line"
    if not path:
        return f"[truncated: {what} of {total} bytes left out here; no disk space to keep them]"
    whole = f"the first {FILE_BYTES} bytes of the output" if partly else "the whole output"
    read = f"View file_path=\"{path}\" offset={first}, or sed -n '{first},{first + 199}p' {path}"
    return f"[truncated: {what} of {total} bytes left out here; {whole}: {read}]"


def _errors_shown(lines: "list[str]", most: int) -> str:
    """The lines that look like errors, as many as fit."""
    listed = ""
    for line in lines[:ERROR_LINES]:
        if len(listed) + len(line) >= most:
            break
        listed += "\n" + line
    return (
        f"\n[lines in there that look like errors:]{listed}\n[end of these lines]" if listed else ""
    )


def error_lines(data: bytes, number: int, most: int) -> "list[tuple[int, bytes]]":
    """Lines that look like errors with their numbers, when `data` begins in line `number`."""
    spans: dict[int, int] = {}
    for word in ERRORS:
        found = 0
        at = data.find(word)
        while at >= 0 and found < most:
            start, end = data.rfind(b"\n", 0, at) + 1, data.find(b"\n", at)
            end = len(data) if end < 0 else end
            spans[start] = end
            found += 1
            at = data.find(word, end)
    lines = []
    counted = 0
    for start in sorted(spans)[:most]:
        number += data.count(b"\n", counted, start)
        counted = start
        lines.append((number, data[start : min(spans[start], start + ERROR_BYTES)]))
    return lines


def folded(data: bytes) -> bytes:
    r"""`data` with lines that were written over (`\r` in their middle) as they looked at the end."""
    lines = data.split(b"\n")
    return b"\n".join(line[line.rstrip(b"\r").rfind(b"\r") + 1 :] for line in lines)


def shown(data: bytes) -> str:
    """The bytes as text without escape sequences; what is no UTF-8 stays recognizable."""
    return plain(data.decode("utf-8", "surrogateescape"))


def plain(text: str) -> str:
    """`text` without escape sequences and overstrikes."""
    if text.isascii() and "\x1b" not in text and "\x08" not in text:
        return text
    import re

    return re.sub(ESCAPES, "", text)


def _without_last(data: bytes) -> bytes:
    """Without a last line cut in two, or at least without half a character."""
    end = data.rfind(b"\n", len(data) - LINE_CHARS) + 1
    return data[:end] if end else data.decode("utf-8", "ignore").encode() if _torn(data) else data


def _torn(data: bytes) -> bool:
    return any(byte >= 0xC0 for byte in data[-3:])


def _without_first(data: bytes) -> bytes:
    """Without a first line cut in two, or at least without half a character."""
    start = data.find(b"\n", 0, LINE_CHARS) + 1
    return data[start:] if start else data[:4].lstrip(bytes(range(0x80, 0xC0))) + data[4:]
