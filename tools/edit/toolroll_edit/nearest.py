"""Why a text was not found, said so that the next try succeeds; nothing found here is ever edited.

old_string is read again in the ways models get it wrong (line numbers copied along, other white space,
other quotes), each a pair of functions that make file and old_string alike.  The first reading under
which it occurs shows the place; failing all, the most similar lines do.

Whatever is cut out of a line passes the guard before: half a secret is not recognised any more.
"""

from toolroll import diff, guard, textfile
from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import LINE_CHARS
from toolroll.paths import quoted
from toolroll_edit.match import is_sole, occurrences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolroll.call import Call

    Change = Callable[[str], str]
    Reading = tuple[str, Change, Change]

SHOWN_LINES = 40
COMPARED_CHARS = 2_000_000
"""How much of a file is searched for what was meant: no step of that takes 0.2 s."""

COMPARED_LINES = 20_000
"""Lines that are compared one by one with old_string's longest one: 1.5 s where all are a bit alike."""

SIMILAR = 0.6
"""Ratio from which lines are worth showing: difflib's own cut-off."""

AROUND = 3
BLANKS = " \t"
QUOTES = {
    **dict.fromkeys("‘’‚‛′`´", "'"),  # noqa: RUF001 - the characters people and programs mix up
    **dict.fromkeys("“”„‟″«»", '"'),
    **dict.fromkeys("‐‑‒–—―−", "-"),  # noqa: RUF001 - the same
    "…": "...",
    "\u00a0": " ",
}
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&"))


UNSHOWN = (
    "\nNo old_string can hold it as it is shown, as a secret or characters that cannot be seen are "
    "in it: choose a text beside them."
)


class _Place:
    """Where old_string is nearest to: lines `first` to `last` (from 0, end excluded), in `words` why.

    `span` is what it stands for there, in characters of the file; None where only lines are known.
    """

    __slots__ = ("first", "last", "span", "words")

    def __init__(
        self, words: str, first: int, last: int, span: tuple[int, int] | None = None
    ) -> None:
        self.words = words
        self.first = first
        self.last = last
        self.span = span


def no_match(file_path: str, text: str, old: str, new: str, call: "Call") -> ToolError:
    """The answer when old_string does not occur."""
    name = quoted(file_path)
    message = f"old_string does not occur in {name}"
    if not text:
        return ToolError(ErrorCode.NO_MATCH, f"{message}, which is empty", "Write it with Replace")
    notes = [*_marked(old, text), *_already(text, new)]
    if len(text) > COMPARED_CHARS:
        notes.append(f"Only the first {COMPARED_CHARS:,} characters were searched for the like.")
    place = _place(text[:COMPARED_CHARS], old, call)
    if place is None:
        notes.append("Nothing similar is in it. Read the file again with View.")
        return ToolError(ErrorCode.NO_MATCH, message, " ".join(notes))
    first, last = place.first, place.last
    where = f"lines {first + 1}-{last}" if last > first + 1 else f"line {last}"
    notes += [place.words, f"The nearest text is {where}:"]
    hint = (
        " ".join(note for note in notes if note) + "\n" + _excerpt(text, place, first, last, call)
    )
    differences = _differences(text, old, place, call)
    if differences:
        hint += "\nDifferences:\n" + "\n".join(f"  {one}" for one in differences)
    return ToolError(ErrorCode.NO_MATCH, message, hint + _use(text, old, place, call))


def conflict(file_path: str, text: str, old: str, wanted: str, tag: str, call: "Call") -> ToolError:
    """The answer when the file is not the one whose etag was given, with the text around the target."""
    message = f"{quoted(file_path)} is not what it was: its etag is {tag}, not {wanted}"
    span = next(occurrences(text, old), None)
    if span:
        line = textfile.line_number(text, span[0]) - 1
        place: _Place | None = _Place("", line, line + old.count("\n") + 1, span)
        here = f"old_string still occurs at line {line + 1}:"
    else:
        place = _place(text[:COMPARED_CHARS], old, call)
        here = "old_string is gone; the nearest text is:"
    if place is None:
        gone = "old_string is gone. Read the file again with View."
        return ToolError(ErrorCode.CONFLICT, message, gone)
    last = min(place.last + AROUND, textfile.line_count(text))
    around = _excerpt(text, place, max(place.first - AROUND, 0), last, call)
    return ToolError(
        ErrorCode.CONFLICT,
        message,
        f"Nothing was changed. If this is still right, use the new etag. {here}\n{around}",
    )


def _marked(old: str, text: str) -> list[str]:
    """What View shows instead of the file's own characters, where old_string has it."""
    names = sorted(guard.markers(old) - guard.markers(text))
    if names:
        return [
            f"old_string holds [REDACTED:{names[0]}], but the file holds the value itself: "
            "choose a text without it."
        ]
    import re

    escaped = re.search(r"\\(?:x[0-9a-f]{2}|u[0-9a-f]{4}|U[0-9a-f]{8})", old)
    if escaped is not None and escaped[0] not in text:
        return [
            f"old_string holds {escaped[0]}, which View shows in place of a character that cannot "
            "be seen: choose a text without it."
        ]
    return []


def _already(text: str, new: str) -> list[str]:
    if not new.strip() or not is_sole(text, new):
        return []
    line = textfile.line_number(text, next(occurrences(text, new))[0])
    return [f"new_string is there already (line {line}), so the edit may have been made before."]


# -- the place --------------------------------------------------------------------------------------


def _place(text: str, old: str, call: "Call") -> _Place | None:
    """Where old_string is nearest to, the call being asked between all steps."""
    _, of_old, of_text = READINGS[-1]
    loosest = of_old(old).strip()
    exact = bool(loosest) and loosest in of_text(text)
    for reading in READINGS if exact else READINGS[:UNFOLDED]:
        call.check()
        found = _read_as(text, old, reading, call)
        if found is not None:
            return found
    similar = _similar(text.split("\n"), old.strip("\n").split("\n"), call)
    return similar and _Place("", *similar)


def _read_as(text: str, old: str, reading: "Reading", call: "Call") -> _Place | None:
    """The first place where old_string occurs when it is read so; line ends at its edges do not count."""
    words, of_old, of_text = reading
    wanted = of_old(old).strip("\n")
    if not wanted.strip():
        return None
    like = of_text(text)
    at = like.find(wanted)
    if at < 0:
        return None
    first = like.count("\n", 0, at)
    last = first + wanted.count("\n") + 1
    return _Place(words, first, last, _span(text, old, first, last, reading, call))


def _span(
    text: str, old: str, first: int, last: int, reading: "Reading", call: "Call"
) -> tuple[int, int] | None:
    """The shortest part of these lines that old_string stands for, its line ends at the edges included."""
    _, of_old, of_text = reading
    lead, trail = (len(old) - len(rest) for rest in (old.lstrip("\n"), old.rstrip("\n")))
    start, end = _bounds(text, max(first - lead, 0), last + trail)
    whole = of_old(old)
    step = 4 * len(old) + 1_000  # a line may be long
    for wanted in (whole, whole.strip("\n")):
        for at in range(start, end, step):
            call.check()
            part = text[at : min(at + 2 * step, end)]
            if wanted in of_text(part):
                inner = _shortest(part, wanted, of_text)
                return _with_blanks(text, at + inner[0], at + inner[1], old, of_text)
    return None


def _shortest(part: str, wanted: str, of_text: "Change") -> tuple[int, int]:
    from bisect import bisect_left

    every = range(len(part) + 1)
    start = bisect_left(every, True, key=lambda start: wanted not in of_text(part[start:])) - 1
    end = bisect_left(every, True, lo=start, key=lambda end: wanted in of_text(part[start:end]))
    return start, end


def _with_blanks(text: str, start: int, end: int, old: str, of_text: "Change") -> tuple[int, int]:
    """The span with the blanks at its edges, where old_string has some that the reading drops."""
    if old[0] in BLANKS and of_text(" x") == "x":
        while start and text[start - 1] in BLANKS:
            start -= 1
    if old[-1] in BLANKS and of_text("x ") == "x":
        while text[end : end + 1] and text[end] in BLANKS:
            end += 1
    return start, end


def _bounds(text: str, first: int, last: int) -> tuple[int, int]:
    """Where lines `first` to `last` (from 0, end excluded) begin and end, the last line end left out."""
    start = 0
    for _ in range(first):
        start = text.find("\n", start) + 1
    end = start - 1
    for _ in range(last - first):
        feed = text.find("\n", end + 1)
        if feed < 0:
            return start, len(text)
        end = feed
    return start, end


def _same(text: str) -> str:
    return text.replace("\r\n", "\n")


def _each(change: "Change") -> "Change":
    """The same change made to every line."""
    return lambda text: "\n".join(map(change, text.split("\n")))


def _without_numbers(text: str) -> str:
    import re

    return re.sub(r"(?m)^ *\d+\t", "", _same(text))


def _unescaped(text: str) -> str:
    return text.replace("\\n", "\n").replace("\\t", "\t").replace('\\"', '"').replace("\\\\", "\\")


def _without_entities(text: str) -> str:
    for entity, char in ENTITIES:
        text = text.replace(entity, char)
    return _same(text)


def _folded(text: str) -> str:
    """Quotes and dashes made plain, what cannot be seen left out, white space made one blank."""
    import re
    from unicodedata import normalize

    plain = normalize("NFC", text)
    # Of the characters that occur, which are few: to ask for each of a long text takes seconds.
    changed = {char: "" for char in set(plain) if char not in "\t\n\r" and guard.invisible(char)}
    changed.update((char, QUOTES[char]) for char in set(plain) & QUOTES.keys())
    if changed:
        anyone = re.compile(f"[{re.escape(''.join(changed))}]")
        plain = anyone.sub(lambda found: changed[found[0]], plain)
    return _each(lambda line: " ".join(line.split()))(plain)


READINGS: "Sequence[Reading]" = (
    ("Leave out the line numbers that View puts in front.", _without_numbers, _same),
    ("It is there with line ends and tabs in place of \\n and \\t.", _unescaped, _same),
    ("It is there with < > & \" ' in place of their HTML entities.", _without_entities, _same),
    ("Only blanks at the ends of lines differ.", _each(str.rstrip), _each(str.rstrip)),
    ("Only the indentation differs.", _each(str.strip), _each(str.strip)),
    ("Only white space, quotes, dashes or invisible characters differ.", _folded, _folded),
    (
        "Only upper and lower case differ.",
        lambda text: _folded(text).casefold(),
        lambda text: _folded(text).casefold(),
    ),
)


UNFOLDED = 3
"""The first readings; where old_string occurs by any of the others, it does by the last one too."""


def _similar(lines: list[str], wanted: list[str], call: "Call") -> tuple[int, int] | None:
    """The lines that most of `wanted` lines up with, or that resemble it enough."""
    start = _voted(lines, wanted, call)
    if start is None:
        start = _resembling(lines, wanted, call)
    if start is None:
        return None
    first = max(start, 0)
    return first, min(first + len(wanted), len(lines))


def _voted(lines: list[str], wanted: list[str], call: "Call") -> int | None:
    """Where the window begins in which most lines are those of `wanted`, indentation aside."""
    places: dict[str, int] = {}
    for number, line in enumerate(wanted):
        if len(line.strip()) > AROUND:
            places.setdefault(line.strip(), number)
    votes: dict[int, int] = {}
    for number, line in enumerate(lines):
        call.check()
        offset = places.get(line.strip())
        if offset is not None:
            votes[number - offset] = votes.get(number - offset, 0) + 1
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _resembling(lines: list[str], wanted: list[str], call: "Call") -> int | None:
    """Where the window begins whose line is most like the longest of `wanted`."""
    from difflib import SequenceMatcher

    longest = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()))
    matcher = SequenceMatcher(None, b=wanted[longest].strip()[:200], autojunk=False)
    best, found = SIMILAR, None
    for number, line in enumerate(lines[:COMPARED_LINES]):
        call.check()
        matcher.set_seq1(line.strip()[:200])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, found = ratio, number - longest
    return found


# -- what differs -----------------------------------------------------------------------------------


def _differences(text: str, old: str, place: _Place, call: "Call") -> list[str]:
    """A line for each line that differs, naming how; at most ten."""
    start, end = place.span or _bounds(text, place.first, place.last)
    lines = text[start:end].split("\n")
    wanted = (old if lines[0].rstrip("\r") == "" else old.lstrip("\n")).split("\n")
    first = textfile.line_number(text, start)
    notes = []
    for number, pair in enumerate(zip(lines, wanted, strict=False), first):
        line, other = (call.guard.mask(one.removesuffix("\r")) for one in pair)
        if other not in line:
            notes.append(f"line {number}: {_difference(line, other)}")
    return notes[:10]


def _difference(line: str, other: str) -> str:
    """How a line of the file differs from old_string's."""
    notes = []
    if _indent(line) != _indent(other):
        indents = _blanks(_indent(line)), _blanks(_indent(other))
        notes.append(f"the file indents with {indents[0]}, old_string with {indents[1]}")
    bare, other_bare = line.strip(), other.strip()
    if bare != other_bare:
        pairs = enumerate(zip(bare, other_bare, strict=False))
        at = next((i for i, (a, b) in pairs if a != b), min(len(bare), len(other_bare)))
        notes.append(
            f"the file has {_named(bare, at)} where old_string has {_named(other_bare, at)}"
        )
    elif line[len(line.rstrip()) :] != other[len(other.rstrip()) :]:
        ends = _blanks(line[len(line.rstrip()) :]), _blanks(other[len(other.rstrip()) :])
        notes.append(f"the file ends it with {ends[0]}, old_string with {ends[1]}")
    return "; ".join(notes)


def _indent(line: str) -> str:
    return line[: len(line) - len(line.lstrip())]


def _blanks(blanks: str) -> str:
    """White space in words: `2 tabs and 4 spaces`."""
    from itertools import groupby

    names = {" ": "space", "\t": "tab"}
    runs = [(char, len(list(run))) for char, run in groupby(blanks)]
    words = [
        f"{count} {names.get(char) or guard.invisible(char) or ascii(char)}{'s' * (count > 1)}"
        for char, count in runs
    ]
    return " and ".join(words) or "nothing"


def _named(text: str, at: int) -> str:
    """A character and a little behind it; named where the eye cannot tell it."""
    if at >= len(text):
        return "its end"
    char, excerpt = text[at], text[at : at + 20]
    name = guard.invisible(char)
    if not name and not char.isascii():
        from unicodedata import name as unicode_name

        name = unicode_name(char, f"U+{ord(char):04X}")
    return f"'{excerpt}'" + (f" ({name})" if name else "")


def _excerpt(text: str, place: _Place, first: int, last: int, call: "Call") -> str:
    """Lines `first` to `last` as View shows them, a long one around the place."""
    start, end = _bounds(text, first, min(last, first + SHOWN_LINES))
    shown = []
    for number, line in enumerate(text[start:end].split("\n"), first + 1):
        at = max(place.span[0] - start, 0) if place.span else 0
        line_text = line.removesuffix("\r")
        shown.append(
            f"{number}\t{diff.clipped(line_text, at, lambda one: call.guard.clean(one).text)}"
        )
        start += len(line) + 1
    more = last - first - SHOWN_LINES
    return "\n".join(shown + ([f"… {more} more lines"] if more > 0 else []))


def _use(text: str, old: str, place: _Place, call: "Call") -> str:
    """The exact old_string that would be found, where one would be found once."""
    start, end = _bounds(text, place.first, place.last)
    lines = start, end + (old.endswith("\n") and end < len(text))
    whole = "These are whole lines, so new_string must hold what is to stay of them. "
    problem = ""
    for span, words in ((place.span, ""), (lines, whole)):
        if span is None or place.last - place.first > SHOWN_LINES:
            continue
        exact = text[slice(*span)].replace("\r\n", "\n").removesuffix("\r")
        if len(exact) > LINE_CHARS or not exact.strip():
            continue
        if call.guard.clean(exact).text != exact:
            return problem or UNSHOWN
        if is_sole(text, exact):
            ended = "The line end after it belongs to it. " if exact.endswith("\n") else ""
            return f"\n{words}{ended}Use this old_string:\n{exact}"
        problem = "\nThat text occurs several times: add surrounding lines."
    return problem
