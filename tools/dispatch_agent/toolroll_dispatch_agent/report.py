"""A report checked against the disk: every `path:line` in it is looked up and marked.

Knows nothing of how the report came about.
"""

import os
import re

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import clip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence
    from typing import Any

    from toolroll.paths import Roots

    Json = Any

THERE, NOT_THERE = "✓", "✗"

_LINES = r":(?P<first>\d{1,9})(?:[-\u2013](?P<last>\d{1,9}))?(?::\d+)?"
_START = r"(?<![\w/:.`])(?<!\]\()[\w./~@+]"
_CHAR = r"[^\s:`\"'<>|*,;{}]"
BARE = re.compile(rf"(?P<path>{_START}{_CHAR}*){_LINES}(?![\w/])(?: [✓✗])?")
"""A place as models write it: a column may follow, and a mark of their own is taken off.

Not the host of an address, and not the target of a Markdown link.
"""

START, RUN = re.compile(_START), re.compile(f"{_CHAR}+")
"""Where a path may begin, and what it lies in."""

QUOTED = re.compile(rf"`(?P<path>[^`\n:]+){_LINES}`(?: [✓✗])?")
"""The same in backquotes, where a path may hold blanks."""

FAULTS = {
    ErrorCode.NOT_FOUND: "no such file",
    ErrorCode.NOT_A_FILE: "no file",
    ErrorCode.OUTSIDE_ROOTS: "outside the task's directory",
}
"""What is said of a path that cannot be opened; others cannot be read."""

NO_CITATION = "This report cites no path:line, so nothing in it was checked."

TRACE_CHARS = 800
"""What is shown of each result where the trace itself is the report."""

READ_BYTES = 1 << 20


class Citation:
    """A place that a report names; `fault` says what is wrong with it, empty when it is there."""

    __slots__ = ("fault", "first", "last", "path")

    def __init__(self, path: str, first: int, last: int, fault: str) -> None:
        self.path = path
        self.first = first
        self.last = last
        self.fault = fault

    @property
    def data(self) -> "dict[str, Json]":
        """The structured form."""
        data: dict[str, Json] = {"path": self.path, "line": self.first}
        if self.last != self.first:
            data["last_line"] = self.last
        data["verified"] = not self.fault
        return {**data, "fault": self.fault} if self.fault else data


class Report:
    """A text whose places are looked up below `roots`: `text` has a mark behind each of them.

    With `places`, only what names one of them (path and line) is meant: all else is an excerpt.
    """

    def __init__(
        self,
        text: str,
        roots: "Roots",
        places: "Collection[tuple[str, int]] | None" = None,
    ) -> None:
        self._roots = roots
        self._places = places
        self._cited: dict[tuple[str, int, int], Citation] = {}
        # Quoted places first; what is left between them cannot hold another one's backquotes.
        pieces: list[str] = []
        at = 0
        for found in QUOTED.finditer(text):
            pieces.append(self._unquoted(text[at : found.start()]))
            pieces.append(self._quoted(found))
            at = found.end()
        self.text = "".join([*pieces, self._unquoted(text[at:])])
        self.citations = list(self._cited.values())
        if not self.citations:
            self.text = f"{self.text}\n\n{NO_CITATION}".lstrip()

    @property
    def note(self) -> str:
        """How many of the places are there."""
        good = sum(1 for one in self.citations if not one.fault)
        return f"citations verified: {good} of {len(self.citations)}"

    def _quoted(self, found: "re.Match[str]") -> str:
        """In backquotes there may also be a whole command, with a place in it."""
        if " " in found["path"] and self._citation(found).fault:
            return self._unquoted(found[0])
        return self._marked(found)

    def _unquoted(self, text: str) -> str:
        pieces: list[str] = []
        at = 0
        for found in bare(text):
            pieces += (text[at : found.start()], self._marked(found))
            at = found.end()
        return "".join([*pieces, text[at:]])

    def _marked(self, found: "re.Match[str]") -> str:
        if self._places is not None and (found["path"], int(found["first"])) not in self._places:
            return found[0]
        citation = self._citation(found)
        if citation.fault and not _looks_like_a_path(citation.path):
            return found[0]
        self._cited[(citation.path, citation.first, citation.last)] = citation
        mark = f"{NOT_THERE} ({citation.fault})" if citation.fault else THERE
        return f"{found[0].rstrip(f' {THERE}{NOT_THERE}')} {mark}"

    def _citation(self, found: "re.Match[str]") -> Citation:
        """The place, looked up."""
        path, first = found["path"], int(found["first"])
        last = int(found["last"] or first)
        return Citation(path, first, last, self._fault(path, first, last))

    def _fault(self, path: str, first: int, last: int) -> str:
        try:
            with self._roots.open_file(path) as opened:
                lines = lines_of(opened.fd, last)
        except ToolError as problem:
            return FAULTS.get(problem.code, "cannot be read")
        except OSError:
            return "cannot be read"
        if lines < last:
            return f"it has {lines} lines"
        return "" if 1 <= first <= last else "no such lines"


def bare(text: str) -> "Iterator[re.Match[str]]":
    """What `BARE` finds in the text, in time that grows with its length and not with its square.

    What follows a run decides about all paths in it: only the first is tried.
    """
    at = 0
    for run in RUN.finditer(text):
        start = START.search(text, max(at, run.start()), run.end())
        found = BARE.match(text, start.start()) if start else None
        if found:
            yield found
            at = found.end()


def lines_of(fd: int, enough: int) -> int:
    """How many lines a file has; it is read until there are `enough`."""
    lines = 0
    end = b"\n"
    while lines < enough and (data := os.read(fd, READ_BYTES)):
        lines += data.count(b"\n")
        end = data[-1:]
    return lines + (end != b"\n")


def trace(messages: "Sequence[dict[str, Json]]") -> str:
    """What was called and how each result begins, for where the model wrote no report."""
    parts = []
    calls: dict[str, str] = {}
    for message in messages:
        for call in message.get("tool_calls", ()):
            calls[call["id"]] = f"{call['function']['name']} {call['function']['arguments']}"
        if message["role"] == "assistant" and message["content"]:
            parts.append(message["content"].strip())
        elif message["role"] == "tool":
            lines = clip(message["content"], TRACE_CHARS).split("\n")
            parts.append("\n  ".join([calls[message["tool_call_id"]], *lines]))
    return "\n\n".join(parts)


def _looks_like_a_path(text: str) -> bool:
    """True where a file was meant that is not there: not for `localhost:80`, `10:30`, `1.2.3.4:5`."""
    name = text.rpartition("/")[2]
    return bool(text.strip("0123456789.")) and ("/" in text or "." in name[1:-1])
