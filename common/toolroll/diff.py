"""What an edit changed, as a short unified diff; knows nothing of files.

A change is a list of spans, `(start, end, text)` in ascending order: what of the old text gives way
to what.  The diff is made around the spans only, so a small edit of a large file stays cheap.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Clean = Callable[[str], str]
    Span = tuple[int, int, str]

CONTEXT_LINES = 3
"""Whole lines above and below a span that are looked at, so that the others need not be there."""

DIFF_LINES = 60
SHOWN_CHARS = 400
"""Longest line shown whole: DIFF_LINES of them stay below the limit of an answer."""

BLOCK_CHARS = 1 << 16
"""Compared at once: slices of this size stay in the cache."""

MATCHED_LINES = 2_000
"""Changed lines up to which they are matched with each other: `difflib` is quadratic."""


class Diff:
    """Lines added and removed, the line numbers in the new text, and the diff cut to DIFF_LINES."""

    __slots__ = ("added", "removed", "text")

    def __init__(self, added: int, removed: int, text: str) -> None:
        self.added = added
        self.removed = removed
        self.text = text


class _Change:
    """Whole lines of the old text, `start` to `end`, from line `at` (from 0), and what they become."""

    __slots__ = ("at", "end", "new", "old", "start")

    def __init__(self, at: int, start: int, end: int, old: list[str], new: list[str]) -> None:
        self.at = at
        self.start = start
        self.end = end
        self.old = old
        self.new = new


def between(old: str, new: str) -> "list[Span]":
    """The spans that make `new` of `old`: one, or several where the changed part is small enough."""
    start = _common(old, new)
    end = _common_end(old, new, min(len(old), len(new)) - start)
    first = old.rfind("\n", 0, start) + 1
    last, last_new = len(old) - end, len(new) - end
    line_end = old.find("\n", last)
    tail = (line_end + 1 if line_end >= 0 else len(old)) - last
    left, right = old[first : last + tail], new[first : last_new + tail]
    if left == right:
        return []
    lines, others = left.split("\n"), right.split("\n")
    if len(lines) + len(others) > MATCHED_LINES:
        return [(first, last + tail, right)]
    return [(first + a, first + b, text) for a, b, text in _matched(lines, others)]


def _matched(lines: list[str], others: list[str]) -> "Iterator[Span]":
    from difflib import SequenceMatcher

    lines, others = _with_ends(lines), _with_ends(others)
    places = [0]
    for line in lines:
        places.append(places[-1] + len(line))
    for tag, a, b, c, d in SequenceMatcher(None, lines, others, autojunk=False).get_opcodes():
        if tag != "equal":
            yield places[a], places[b], "".join(others[c:d])


def _with_ends(lines: list[str]) -> list[str]:
    return [line + "\n" for line in lines[:-1]] + lines[-1:]


def _common(one: str, other: str) -> int:
    """How many characters both texts begin with alike; by blocks, as comparing slices is fast."""
    count, step, most = 0, BLOCK_CHARS, min(len(one), len(other))
    while step:
        at = count + step
        if at <= most and one[count:at] == other[count:at]:
            count = at
        else:
            step //= 2
    return count


def _common_end(one: str, other: str, most: int) -> int:
    """How many characters, at most `most`, both texts end with alike."""
    count, step = 0, BLOCK_CHARS
    while step:
        end, other_end = len(one) - count, len(other) - count
        if count + step <= most and one[end - step : end] == other[other_end - step : other_end]:
            count += step
        else:
            step //= 2
    return count


def unified(text: str, spans: "Sequence[Span]", clean: "Clean" = str, above: int = 0) -> Diff:
    """The diff of `text` for `spans`, in lines that end with LF (a CR before it is not shown).

    `above` says how many lines there are before `text`.  Long lines are `clipped` around their change.
    """
    added = removed = 0
    shown: list[str] = []
    left_out = 0
    for hunk in _hunks(_changes(text, spans, above)):
        if len(shown) < DIFF_LINES:
            shown += _hunk_lines(text, hunk, added - removed, clean)
        else:
            left_out += 1
        added += sum(len(change.new) for change in hunk)
        removed += sum(len(change.old) for change in hunk)
    if len(shown) > DIFF_LINES:
        shown[DIFF_LINES:] = [f"… {len(shown) - DIFF_LINES} more lines of this hunk"]
    if left_out:
        shown.append(f"… {left_out} more hunks")
    return Diff(added, removed, "\n".join(shown))


def _hunks(changes: "Iterable[_Change]") -> "Iterator[list[_Change]]":
    """Changes whose context lines would meet belong together."""
    hunk: list[_Change] = []
    for change in changes:
        if hunk and change.at - (hunk[-1].at + len(hunk[-1].old)) > 2 * CONTEXT_LINES:
            yield hunk
            hunk = []
        hunk.append(change)
    if hunk:
        yield hunk


def _hunk_lines(text: str, hunk: list[_Change], shift: int, clean: "Clean") -> list[str]:
    """The hunk as a unified diff has it; `shift` lines were added before it."""
    body = [(" ", line, "") for line in _lines(_back(text, hunk[0].start))]
    first = hunk[0].at - len(body) + 1
    reached = hunk[0].start
    for change in hunk:
        body += [(" ", line, "") for line in _lines(text[reached : change.start])]
        body += _facing("-", change.old, change.new) + _facing("+", change.new, change.old)
        reached = change.end
    body += [(" ", line, "") for line in _lines(_ahead(text, reached))]
    old = sum(sign != "+" for sign, _, _ in body)
    new = sum(sign != "-" for sign, _, _ in body)
    head = f"@@ -{_range(first, old)} +{_range(first + shift, new)} @@"
    shown = [sign + _shown(line, other, clean) for sign, line, other in body[:DIFF_LINES]]
    return [head, *shown, *(line for _, line, _ in body[DIFF_LINES:])]


def _facing(sign: str, lines: list[str], others: list[str]) -> list[tuple[str, str, str]]:
    """Each line with the one that it may have been changed from or to."""
    others = others + [""] * (len(lines) - len(others))
    return [(sign, line, other) for line, other in zip(lines, others, strict=False)]


def _shown(line: str, other: str, clean: "Clean") -> str:
    at = _common(line, other) if len(line) > SHOWN_CHARS else 0
    return clipped(line.removesuffix("\n").removesuffix("\r"), at, clean)


def clipped(line: str, at: int, clean: "Clean") -> str:
    """A line, or the part around column `at` (from 0) of a long one.

    `clean` has to hide what is secret before it is cut in two and cannot be recognised any more.
    """
    if len(line) <= SHOWN_CHARS:
        return line
    at, line = len(clean(line[:at])), clean(line)
    start = max(min(at - SHOWN_CHARS // 4, len(line) - SHOWN_CHARS), 0)
    end = start + SHOWN_CHARS
    before = f"[clipped: {start} characters]…" if start else ""
    behind = f"…[clipped: {len(line) - end} characters]" if end < len(line) else ""
    return f"{before}{line[start:end]}{behind}"


def _changes(text: str, spans: "Sequence[Span]", above: int) -> "Iterator[_Change]":
    line, counted = above, 0  # lines before the position `counted` of `text`
    for group in _groups(text, spans):
        first = text.rfind("\n", 0, group[0][0]) + 1
        last = _line_end(text, group[-1][1])
        line += text.count("\n", counted, first)
        counted = first
        yield from _trimmed(text, line, first, last, _changed(text, first, last, group))


def _groups(text: str, spans: "Sequence[Span]") -> "Iterator[list[Span]]":
    """Spans whose whole lines touch belong together."""
    group: list[Span] = []
    for span in spans:
        if group and text.find("\n", group[-1][1], span[0]) >= 0:
            yield group
            group = []
        group.append(span)
    if group:
        yield group


def _line_end(text: str, position: int) -> int:
    """Where the line that reaches `position` ends, behind its line feed; whole lines stay whole."""
    if position and text[position - 1 : position] == "\n":
        return position
    return text.find("\n", position) + 1 or len(text)


def _changed(text: str, first: int, last: int, group: "list[Span]") -> str:
    pieces, at = [], first
    for start, end, new in group:
        pieces += [text[at:start], new]
        at = end
    return "".join(pieces) + text[at:last]


def _trimmed(text: str, line: int, first: int, last: int, new: str) -> "Iterator[_Change]":
    """The change of these lines without the equal ones at its edges; none when nothing differs."""
    if new and not new.endswith("\n") and last < len(text):  # the new text joins the next line
        more = text.find("\n", last) + 1 or len(text)
        new, last = new + text[last:more], more
    old_lines, new_lines = _lines(text[first:last]), _lines(new)
    least = min(len(old_lines), len(new_lines))
    same = _alike(old_lines, new_lines, least)
    end = _alike(old_lines[::-1], new_lines[::-1], least - same)
    old_lines, tail = old_lines[: len(old_lines) - end], old_lines[len(old_lines) - end :]
    start = first + sum(map(len, old_lines[:same]))
    removed, added = old_lines[same:], new_lines[same : len(new_lines) - end]
    if removed or added:
        yield _Change(line + same, start, last - sum(map(len, tail)), removed, added)


def _alike(lines: list[str], others: list[str], most: int) -> int:
    """How many lines, at most `most`, both begin with alike."""
    count = 0
    while count < most and lines[count] == others[count]:
        count += 1
    return count


def _back(text: str, first: int) -> str:
    start = first
    for _ in range(CONTEXT_LINES):
        start = text.rfind("\n", 0, max(start - 1, 0)) + 1 if start else 0
    return text[start:first]


def _ahead(text: str, last: int) -> str:
    end = last
    for _ in range(CONTEXT_LINES):
        end = text.find("\n", end) + 1 or len(text)
    return text[last:end]


def _lines(text: str) -> list[str]:
    """The lines with their line feeds; an unended last one counts."""
    lines = text.split("\n")
    return [line + "\n" for line in lines[:-1]] + [line for line in lines[-1:] if line]


def _range(first: int, count: int) -> str:
    """Start and length as in a unified diff: the line before it when there is none."""
    return f"{first if count else first - 1},{count}"
