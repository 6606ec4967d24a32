"""Where a text occurs in another, to the letter; a line feed also matches the file's CR LF."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator


def occurrences(text: str, wanted: str, overlapping: bool = True) -> "Iterator[tuple[int, int]]":
    """Start and end of every occurrence in ascending order; or of those that replacing all takes.

    A line end is found whole or not at all, where `wanted` has any.
    """
    if "\n" not in wanted or ("\r\n" not in text and "\r\n" not in wanted):
        return _literal(text, wanted, overlapping)
    plain, wanted = (one.replace("\r\n", "\n") for one in (text, wanted))
    return _moved(_literal(plain, wanted, overlapping), plain, text)


def is_sole(text: str, wanted: str) -> bool:
    """True when there is exactly one occurrence."""
    found = occurrences(text, wanted)
    return next(found, None) is not None and next(found, None) is None


def _literal(text: str, wanted: str, overlapping: bool) -> "Iterator[tuple[int, int]]":
    step = 1 if overlapping else len(wanted)
    at = text.find(wanted)
    while at >= 0:
        yield at, at + len(wanted)
        at = text.find(wanted, at + step)


def _moved(
    spans: "Iterator[tuple[int, int]]", plain: str, text: str
) -> "Iterator[tuple[int, int]]":
    """The same places in `text`, whose lines differ from those of `plain` in their ends only."""
    from bisect import bisect_right

    starts, moved = _line_starts(plain), _line_starts(text)
    for span in spans:
        lines = [bisect_right(starts, at) - 1 for at in span]
        start, end = (at - starts[line] + moved[line] for at, line in zip(span, lines, strict=True))
        yield start, end


def _line_starts(text: str) -> list[int]:
    from itertools import accumulate

    return [0, *accumulate(len(line) + 1 for line in text.split("\n")[:-1])]
