"""Where a text occurs in another, to the letter; a line feed also matches the file's CR LF."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterator

NEWLINE = r"(?:\r\n|(?<!\r)\n)"
"""A line end of either kind, never the second half of one."""


def occurrences(text: str, wanted: str) -> "Iterator[tuple[int, int]]":
    """Start and end of every occurrence, overlapping ones too, in ascending order."""
    if "\n" in wanted and ("\r\n" in text or "\r\n" in wanted):
        return _by_pattern(text, _pattern(wanted))
    return _literal(text, wanted)


def is_sole(text: str, wanted: str) -> bool:
    """True when there is exactly one occurrence."""
    found = occurrences(text, wanted)
    return next(found, None) is not None and next(found, None) is None


def apart(found: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """The occurrences that replacing all of them from left to right takes: none overlaps another."""
    chosen: list[tuple[int, int]] = []
    for start, end in found:
        if not chosen or start >= chosen[-1][1]:
            chosen.append((start, end))
    return chosen


def _literal(text: str, wanted: str) -> "Iterator[tuple[int, int]]":
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + 1)


def _pattern(wanted: str) -> "re.Pattern[str]":
    import re

    lines = wanted.replace("\r\n", "\n").split("\n")
    return re.compile(NEWLINE.join(map(re.escape, lines)))


def _by_pattern(text: str, pattern: "re.Pattern[str]") -> "Iterator[tuple[int, int]]":
    found = pattern.search(text)
    while found is not None:
        yield found.span()
        found = pattern.search(text, found.start() + 1)
