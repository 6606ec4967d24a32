"""Why a text was not found, said so that the next try succeeds; nothing found here is ever edited.

old_string is read again in the ways models get it wrong (line numbers copied along, other white space,
other quotes), each a pair of functions that make file and old_string alike.  The first reading under
which it occurs shows the place; failing all, the most similar lines do.
"""

from toolroll import guard, textfile
from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import quoted
from toolroll_edit.match import occurrences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from toolroll.call import Call

SHOWN_LINES = 40
COMPARED_LINES = 20_000
"""Lines that are compared one by one with old_string's longest one: 0.2 s at most."""

SIMILAR = 0.6
"""Ratio from which lines are worth showing: difflib's own cut-off."""

AROUND = 3
QUOTES = str.maketrans(
    {
        **dict.fromkeys("‘’‚‛′`´", "'"),  # noqa: RUF001 - the characters people and programs mix up
        **dict.fromkeys("“”„‟″«»", '"'),
        **dict.fromkeys("‐‑‒–—―−", "-"),  # noqa: RUF001 - the same
        "…": "...",
        "\u00a0": " ",
    }
)
ENTITIES = (("&lt;", "<"), ("&gt;", ">"), ("&quot;", '"'), ("&#39;", "'"), ("&amp;", "&"))


def no_match(file_path: str, text: str, old: str, new: str, call: "Call") -> ToolError:
    """The answer when old_string does not occur."""
    name = quoted(file_path)
    message = f"old_string does not occur in {name}"
    if not text:
        return ToolError(ErrorCode.NO_MATCH, f"{message}, which is empty", "Write it with Replace")
    notes = [*_marked(old, text), *_already(text, new)]
    call.check()
    place = _place(text, old)
    call.check()
    if place is None:
        notes.append("Nothing similar is in it. Read the file again with View.")
        return ToolError(ErrorCode.NO_MATCH, message, " ".join(notes))
    reading, first, last = place
    lines = text.split("\n")[first:last]
    where = f"lines {first + 1}-{last}" if last > first + 1 else f"line {last}"
    notes += [reading, f"The nearest text is {where}:"]
    hint = " ".join(note for note in notes if note) + "\n" + _numbered(lines, first)
    differences = _differences(lines, old.split("\n"), first)
    if differences:
        hint += "\nDifferences:\n" + "\n".join(f"  {one}" for one in differences)
    return ToolError(ErrorCode.NO_MATCH, message, hint + _use(text, lines))


def conflict(file_path: str, text: str, old: str, wanted: str, tag: str) -> ToolError:
    """The answer when the file is not the one whose etag was given, with the text around the target."""
    message = f"{quoted(file_path)} is not what it was: its etag is {tag}, not {wanted}"
    found = occurrences(text, old)
    if found:
        line = textfile.line_number(text, found[0][0]) - 1
        last = line + old.count("\n") + 1
        here = f"old_string still occurs at line {line + 1}:"
    else:
        place = _place(text, old)
        if place is None:
            return ToolError(
                ErrorCode.CONFLICT, message, "old_string is gone. Read the file again with View."
            )
        _, line, last = place
        here = "old_string is gone; the nearest text is:"
    lines = text.removesuffix("\n").split("\n")
    first = max(line - AROUND, 0)
    around = _numbered(lines[first : last + AROUND], first)
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
    found = occurrences(text, new) if new.strip() else []
    if len(found) != 1:
        return []
    line = textfile.line_number(text, found[0][0])
    return [f"new_string is there already (line {line}), so the edit may have been made before."]


# -- the place --------------------------------------------------------------------------------------


def _place(text: str, old: str) -> tuple[str, int, int] | None:
    """What is wrong with old_string in words, and the lines (from 0, end excluded) it is nearest to."""
    for words, of_old, of_text in READINGS:
        wanted = of_old(old)
        line = _line_of(of_text(text), wanted) if wanted.strip() else -1
        if line >= 0:
            return words, line, line + wanted.strip("\n").count("\n") + 1
    similar = _similar(text.split("\n"), old.strip("\n").split("\n"))
    return similar and ("", *similar)


def _line_of(text: str, wanted: str) -> int:
    """The line (from 0) where `wanted` begins, -1 for none; line ends at its edges do not count."""
    stripped = wanted.strip("\n")
    at = text.find(stripped)
    return text.count("\n", 0, at) if at >= 0 else -1


def _same(text: str) -> str:
    return text.replace("\r\n", "\n")


def _each(change: "Callable[[str], str]") -> "Callable[[str], str]":
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
    from unicodedata import normalize

    plain = normalize("NFC", text).translate(QUOTES)
    if not plain.isascii():
        plain = "".join(char for char in plain if char in " \t\n\r" or not guard.invisible(char))
    return _each(lambda line: " ".join(line.split()))(plain)


READINGS: "Sequence[tuple[str, Callable[[str], str], Callable[[str], str]]]" = (
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


def _similar(lines: list[str], wanted: list[str]) -> tuple[int, int] | None:
    """The lines that most of `wanted` lines up with, or that resemble it enough."""
    start = _voted(lines, wanted)
    if start is None:
        start = _resembling(lines, wanted)
    if start is None:
        return None
    first = max(start, 0)
    return first, min(first + len(wanted), len(lines))


def _voted(lines: list[str], wanted: list[str]) -> int | None:
    """Where the window begins in which most lines are those of `wanted`, indentation aside."""
    places: dict[str, list[int]] = {}
    for number, line in enumerate(wanted):
        if len(line.strip()) > AROUND:
            places.setdefault(line.strip(), []).append(number)
    votes: dict[int, int] = {}
    for number, line in enumerate(lines):
        for offset in places.get(line.strip(), ()):
            votes[number - offset] = votes.get(number - offset, 0) + 1
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _resembling(lines: list[str], wanted: list[str]) -> int | None:
    """Where the window begins whose line is most like the longest of `wanted`."""
    from difflib import SequenceMatcher

    longest = max(range(len(wanted)), key=lambda number: len(wanted[number].strip()))
    matcher = SequenceMatcher(None, b=wanted[longest].strip()[:200], autojunk=False)
    best, found = SIMILAR, None
    for number, line in enumerate(lines[:COMPARED_LINES]):
        matcher.set_seq1(line.strip()[:200])
        if matcher.real_quick_ratio() > best and matcher.quick_ratio() > best:
            ratio = matcher.ratio()
            if ratio > best:
                best, found = ratio, number - longest
    return found


# -- what differs -----------------------------------------------------------------------------------


def _differences(lines: list[str], wanted: list[str], first: int) -> list[str]:
    """A line for each line that differs, naming how; at most ten."""
    notes = []
    for number, pair in enumerate(zip(lines, wanted, strict=False), first + 1):
        line, other = (one.removesuffix("\r") for one in pair)
        if other not in line:
            notes.append(f"line {number}: {_difference(line, other)}")
    return notes[:10]


def _difference(line: str, other: str) -> str:
    """How a line of the file differs from old_string's."""
    indent, other_indent = _indent(line), _indent(other)
    if line.strip() == other.strip():
        if indent != other_indent:
            return (
                f"the file indents with {_blanks(indent)}, old_string with {_blanks(other_indent)}"
            )
        return (
            f"the file ends it with {_blanks(line[len(line.rstrip()) :])}, "
            f"old_string with {_blanks(other[len(other.rstrip()) :])}"
        )
    line, other = line.strip(), other.strip()
    at = next((i for i, (a, b) in enumerate(zip(line, other, strict=False)) if a != b), None)
    if at is None:
        at = min(len(line), len(other))
    return f"the file has {_named(line, at)} where old_string has {_named(other, at)}"


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


def _numbered(lines: list[str], first: int) -> str:
    """Lines as View shows them."""
    shown = [
        f"{number}\t{line.removesuffix(chr(13))}" for number, line in enumerate(lines, first + 1)
    ]
    more = len(shown) - SHOWN_LINES
    return "\n".join(shown[:SHOWN_LINES] + ([f"… {more} more lines"] if more > 0 else []))


def _use(text: str, lines: list[str]) -> str:
    """The exact old_string that would be found, where it would be found once."""
    exact = "\n".join(line.removesuffix("\r") for line in lines)
    if len(lines) > SHOWN_LINES or not exact.strip():
        return ""
    count = len(occurrences(text, exact))
    if count != 1:
        return f"\nThat text occurs {count} times: add surrounding lines."
    return f"\nUse this old_string:\n{exact}"
