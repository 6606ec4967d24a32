"""Searches the content of one file with a plan: is there a match, how many lines, which lines.

Knows no file system.  Where bytes give the same answer as text, bytes are searched.
"""

from toolroll_grep.dialect import library as regex
from toolroll_grep.dialect import limit
from toolroll_grep.pattern import Plan

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any

    Line = tuple[
        int, int, int, str, bool
    ]  # number, column and length of the match (0: context), text

PATTERN_S = 1.0
"""How long one file may take a pattern that can run for ever; others need milliseconds."""

BYTES_PER_S = 5_000_000
"""How much of a large file may take a second more: the slowest patterns do ten times that."""

SHOWN_CHARS = 400
"""Longest line that is shown whole; the match of a longer one is shown with what is around it."""


class Finder:
    """A plan made ready to search."""

    def __init__(self, plan: Plan) -> None:
        self.plan = plan
        self.may_match = _needle_test(plan.needles)
        self._on_text = _compiled(plan.text, plan, "search")
        self._on_bytes = self._all_on_bytes = None
        if plan.text.isascii() and not plan.by_line:
            try:
                self._on_bytes = _compiled(plan.text.encode(), plan, "search")
            except (regex.error, ValueError):  # properties and (?u) have no meaning on bytes
                self._on_bytes = None
        counts = not (plan.by_line or plan.spans or plan.may_be_empty)
        self._core: Callable[..., Any] | None = None
        if plan.core and self._on_bytes and counts:
            import re

            self._core = re.compile(
                plan.core.encode()
            ).search  # its first bytes by memchr: 8 times as fast
        elif self._on_bytes and counts:
            whole = b"(?:" + plan.text.encode() + b")()[^\n]*"
            self._all_on_bytes = _compiled(whole, plan, "findall")

    def has(self, data: bytes, is_ascii: bool) -> bool:
        """True when there is a match.  Raises: TimeoutError, MemoryError."""
        return next(self.spans(data, is_ascii), None) is not None

    def count(self, data: bytes, is_ascii: bool, matches: bool = False) -> int:
        """How many lines hold a match, or with `matches` how many matches there are, where they span.

        Raises: TimeoutError, MemoryError.
        """
        if self._all_on_bytes is not None and (is_ascii or self.plan.exact):
            return len(self._all_on_bytes(data))
        if matches or not self.plan.spans:
            return sum(1 for _ in self.spans(data, is_ascii))
        subject = self._subject(data, is_ascii)
        return sum(1 for _ in _lines_of(subject, self._spans(subject)))

    def spans(self, data: bytes, is_ascii: bool) -> "Iterator[tuple[int, int]]":
        """Where the matches are, in bytes or characters; within lines only the first of each."""
        return self._spans(self._subject(data, is_ascii))

    def _subject(self, data: bytes, is_ascii: bool) -> "bytes | str":
        if self._on_bytes is not None and (is_ascii or self.plan.exact):
            return data
        return data.decode("utf-8", "surrogateescape")

    def _spans(self, subject: "Any") -> "Iterator[tuple[int, int]]":
        search = self._on_bytes if isinstance(subject, bytes) else self._on_text
        if self.plan.by_line:
            return _by_line(search, subject)
        if self._core is not None and isinstance(subject, bytes):
            return _around_core(self._core, search, subject)
        if self.plan.spans:
            return _across_lines(search, subject)
        return _in_lines(search, subject)

    def lines(self, data: bytes, most: int, context: int, before: int = 0) -> "Iterator[Line]":
        """The first `most` matching lines in order, with `context` lines around each.

        Line numbers start behind `before`.  Raises: TimeoutError, MemoryError.
        """
        text = data.decode("utf-8", "surrogateescape")
        places = _lines_of(text, self._spans(text))
        hits = [place for place, _ in zip(places, range(most), strict=False)]
        yield from _with_context(text, hits, context, before)


def _needle_test(needles: tuple[bytes, ...]) -> "Callable[[bytes], bool]":
    """A test that is False when none of the literals that a match needs is there."""
    if not needles:
        return lambda _: True
    if len(needles) == 1:
        needle = needles[0]
        return lambda data: needle in data
    if len({needle[0] for needle in needles}) > 1:
        return lambda data: any(needle in data for needle in needles)
    import re  # one scan, by memchr, where all begin alike: half the price of a scan for each

    search = re.compile(b"|".join(map(re.escape, needles))).search
    return lambda data: search(data) is not None


def _compiled(text: "Any", plan: Plan, method: str) -> "Callable[..., Any]":
    """A method of the compiled expression, with a time limit when it is risky."""
    run: Callable[..., Any] = getattr(regex.compile(text, plan.flags), method)
    if not plan.risky:
        return run
    return lambda subject, *pos: run(subject, *pos, **limit(PATTERN_S + len(subject) / BYTES_PER_S))


def _in_lines(search: "Any", subject: "Any") -> "Iterator[tuple[int, int]]":
    """The first match of each line, for a pattern that takes no newline."""
    newline = b"\n" if isinstance(subject, bytes) else "\n"
    at, end = 0, len(subject)
    while at < end:
        found = search(subject, at)
        if found is None or (found.start() >= end > 0 and subject[end - 1 :] == newline):
            return
        yield found.span()
        at = subject.find(newline, found.end()) + 1
        if not at:
            return


def _around_core(core: "Any", search: "Any", subject: bytes) -> "Iterator[tuple[int, int]]":
    """The first match of each line, looked for only in lines that hold the core."""
    at = 0
    while (part := core(subject, at)) is not None:
        start = subject.rfind(b"\n", at, part.start()) + 1 or at
        end = subject.find(b"\n", part.end())
        end = len(subject) if end < 0 else end
        found = search(subject, start, end)
        if found is not None:
            yield found.span()
        at = end + 1


def _by_line(search: "Any", subject: str) -> "Iterator[tuple[int, int]]":
    """The same for any pattern, asked line by line."""
    at = 0
    lines = subject.split("\n")
    if not lines[-1]:
        lines.pop()
    for line in lines:
        found = search(line)
        if found is not None:
            yield at + found.start(), at + found.end()
        at += len(line) + 1


def _across_lines(search: "Any", subject: "Any") -> "Iterator[tuple[int, int]]":
    """All matches that do not overlap; empty ones behind the last line are none."""
    at, end = 0, len(subject)
    while at < end:
        found = search(subject, at)
        if found is None or found.start() >= end:
            return
        yield found.span()
        at = max(found.end(), found.start() + 1)


def _lines_of(
    subject: "Any", spans: "Iterator[tuple[int, int]]"
) -> "Iterator[tuple[int, int, int, int, int]]":
    """Each line that a match touches once: number, start, end, column and length of the match in it."""
    newline = b"\n" if isinstance(subject, bytes) else "\n"
    number, counted, done = 1, 0, 0
    for first, last in spans:
        stop = max(last, first + 1)
        start = subject.rfind(newline, 0, first) + 1
        while start < stop:
            end = subject.find(newline, start)
            end = len(subject) if end < 0 else end
            if start >= done:
                number += subject.count(newline, counted, start)
                counted = start
                column = max(first - start, 0)
                yield number, start, end, column, max(min(last, end) - start - column, 0)
                done = end + 1
            start = end + 1


def _with_context(
    text: str, hits: "list[tuple[int, int, int, int, int]]", context: int, before: int
) -> "Iterator[Line]":
    """The lines `hits` and those around them, each once."""
    shown = 0  # the last number that was given out
    for index, (number, start, end, column, length) in enumerate(hits):
        first = max(number - context, shown + 1)
        for back, line in _lines_before(text, start, number - first):
            yield before + number - back, 0, 0, line, False
        yield before + number, column + 1, length, text[start:end], True
        shown = number
        following = hits[index + 1][0] if index + 1 < len(hits) else number + context + 1
        for line in _lines_after(text, end, min(context, following - number - 1)):
            shown += 1
            yield before + shown, 0, 0, line, False


def _lines_before(text: str, start: int, most: int) -> "list[tuple[int, str]]":
    """The `most` lines before `start` as (how far back, line), the farthest first."""
    found = []
    for back in range(1, most + 1):
        end = start - 1
        start = text.rfind("\n", 0, end) + 1
        found.append((back, text[start:end]))
    return found[::-1]


def _lines_after(text: str, end: int, most: int) -> "Iterator[str]":
    for _ in range(most):
        start = end + 1
        if start >= len(text):
            return
        end = text.find("\n", start)
        end = len(text) if end < 0 else end
        yield text[start:end]


def clipped(line: str, column: int, length: int) -> tuple[str, str]:
    """A line as it is shown, and a remark on what was cut: the part around the match."""
    line = line.removesuffix("\r")
    if len(line) <= SHOWN_CHARS:
        return line, ""
    start, end = window(line, column, length)
    return line[start:end], f"[clipped: columns {start + 1}-{end} of {len(line)}]"


def window(line: str, column: int, length: int) -> tuple[int, int]:
    """Where the part of a long line begins and ends that is shown."""
    at = max(column - 1, 0)
    start = max(min(at - (SHOWN_CHARS - min(length, SHOWN_CHARS)) // 2, len(line) - SHOWN_CHARS), 0)
    return start, start + SHOWN_CHARS
