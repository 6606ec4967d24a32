"""From a found place to the file's new bytes: nothing outside of it is decoded and encoded again."""

from toolroll import diff, textfile
from toolroll.change import ABSENT, Target, refuse_markers
from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import quoted
from toolroll.tool import Answer
from toolroll_edit import nearest
from toolroll_edit.match import occurrences
from toolroll_edit.part import Part, part_with

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll.diff import Span
    from toolroll.textfile import Encoding

LISTED = 20
"""Line numbers that are listed; more do not help to choose."""

MATCHES = 100_000
"""Most occurrences that are counted or replaced: each takes some 400 bytes until it is written."""

COUNTED_CHARS = 50_000_000
"""Characters of occurrences that are counted, which may overlap: some 0.1 s."""

CHECKED = 1_000
"""Occurrences after which it is asked whether the call is still wanted."""


def create(file_path: str, content: str, if_match: str | None, call: "Call") -> Answer:
    """The answer to an edit with an empty old_string: a new file, its parents too."""
    if if_match not in (None, ABSENT):
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            "a new file has no etag, so if_match cannot be given with an empty old_string",
            "Leave if_match out, or give the text to replace in old_string",
        )
    refuse_markers(content, str, "new_string")
    data = textfile.encode_new(content, textfile.UTF8, "new_string")
    with Target(file_path, call, create=True) as target:
        if target.status is not None:
            raise ToolError(
                ErrorCode.ALREADY_EXISTS,
                f"{quoted(file_path)} exists already, and old_string is empty",
                "Give the text to replace in old_string, or overwrite the file with Replace",
            )
        target.write((data,))
    lines = textfile.line_count(content)
    plural = "" if lines == 1 else "s"
    text = f"Created {quoted(file_path)}: {lines} line{plural}, etag {target.etag}"
    return Answer(
        text, data={"etag": target.etag, "added": lines, "removed": 0, "unchanged": False}
    )


def replace(
    file_path: str, old: str, new: str, everywhere: bool, if_match: str | None, call: "Call"
) -> Answer:
    """The answer to an edit of an existing file."""
    with Target(file_path, call) as target:
        encoding = _encoding(target)
        refuse_markers(new, lambda: encoding.decode(target.data), "new_string")
        current = if_match is None or target.matches(if_match)
        part = part_with(old, target.data, encoding)
        found = _chosen(file_path, part, old, everywhere, call) if current else []
        spans = _spans(part.text, found, new)
        if spans:
            target.write(_chunks(target.data, part, spans, encoding))
    # To find out what was meant takes its time: only now, when others may write again.
    if not current:
        text = encoding.decode(target.data)
        raise nearest.conflict(file_path, text, old, f"{if_match}", target.etag, call)
    if not found:
        raise nearest.no_match(file_path, encoding.decode(target.data), old, new, call)
    return _edited(target, part, spans, call) if spans else _unchanged(target)


def _encoding(target: Target) -> "Encoding":
    """Raises: ToolError BINARY_FILE."""
    encoding = textfile.detect(target.data)
    if encoding is None:
        raise ToolError(
            ErrorCode.BINARY_FILE,
            f"{quoted(target.path)} is binary: it holds NUL bytes",
            "Edit changes only files without any, also where View shows their text",
        )
    return encoding


def _chosen(
    file_path: str, part: Part, old: str, everywhere: bool, call: "Call"
) -> list[tuple[int, int]]:
    """The places to replace, if any.  Raises: ToolError MULTIPLE_MATCHES, TOO_LARGE."""
    most = MATCHES if everywhere else min(MATCHES, COUNTED_CHARS // len(old) + 1)
    found: list[tuple[int, int]] = []
    for place in occurrences(part.text, old, overlapping=not everywhere):
        found.append(place)
        if len(found) > most:
            break
        if not len(found) % CHECKED:
            call.check()
    count = f"more than {most:,}" if len(found) > most else f"{len(found)}"
    if len(found) > 1 and not everywhere:
        raise ToolError(
            ErrorCode.MULTIPLE_MATCHES,
            f"old_string occurs {count} times in {quoted(file_path)} "
            f"(lines {_numbers(part, found)})",
            "Add surrounding lines, or set replace_all",
        )
    if len(found) > most:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"old_string occurs {count} times in {quoted(file_path)}, above what is replaced at once",
            "Nothing was changed. Give a longer old_string, or use a program such as sed",
        )
    return found


def _numbers(part: Part, found: list[tuple[int, int]]) -> str:
    """The lines of the first few places."""
    numbers: list[int] = []
    line, counted = part.above + 1, 0
    for start, _ in found:
        line += part.text.count("\n", counted, start)
        counted = start
        if line in numbers[-1:]:
            continue
        if len(numbers) == LISTED:
            return f"{', '.join(map(str, numbers))} and more"
        numbers.append(line)
    return ", ".join(map(str, numbers))


def _spans(text: str, found: list[tuple[int, int]], new: str) -> "list[Span]":
    """Each place that changes with its new text, which takes the line end of where it goes to."""
    ends = textfile.line_ends(text) if "\n" in new else ""
    if ends == "mixed":
        forms = {end: textfile.with_line_end(new, end) for end in ("\n", "\r\n")}
        spans = [(start, end, forms[textfile.line_end_at(text, start)]) for start, end in found]
    else:
        new = textfile.with_line_end(new, ends) if ends in ("\n", "\r\n") else new
        spans = [(start, end, new) for start, end in found]
    return [span for span in spans if text[span[0] : span[1]] != span[2]]


def _chunks(
    data: bytes, part: Part, spans: "list[Span]", encoding: "Encoding"
) -> list[bytes | memoryview]:
    """The new file: untouched slices of the old bytes, and the new texts between them."""
    positions = [position for start, end, _ in spans for position in (start, end)]
    offsets = iter(textfile.byte_offsets(part.text, positions, encoding, part.start))
    encoded: dict[str, bytes] = {}
    view, at = memoryview(data), 0
    chunks: list[bytes | memoryview] = []
    for _, _, new in spans:
        start, end = next(offsets), next(offsets)
        if new not in encoded:
            encoded[new] = textfile.encode_new(new, encoding, "new_string")
        chunks += [view[at:start], encoded[new]]
        at = end
    return [*chunks, view[at:]]


def _unchanged(target: Target) -> Answer:
    return Answer(
        f"Unchanged {quoted(target.path)}: new_string differs from old_string in line ends only, "
        f"and those follow the file, etag {target.etag}",
        data={"etag": target.etag, "added": 0, "removed": 0, "unchanged": True},
    )


def _edited(target: Target, part: Part, spans: "list[Span]", call: "Call") -> Answer:
    change = diff.unified(part.text, spans, lambda line: call.guard.clean(line).text, part.above)
    plural = "" if len(spans) == 1 else "s"
    head = (
        f"Edited {quoted(target.path)}: {len(spans)} replacement{plural}, {_where(part, spans)} "
        f"(+{change.added} -{change.removed}), etag {target.etag}{target.warning}"
    )
    body = f"{head}\n{change.text}" if change.text else head
    return Answer(
        body,
        data={
            "etag": target.etag,
            "added": change.added,
            "removed": change.removed,
            "unchanged": False,
        },
    )


def _where(part: Part, spans: "list[Span]") -> str:
    """The lines of the new text that were written."""
    ranges, shift, counted, line = [], 0, 0, part.above + 1
    for start, end, new in spans:
        line += part.text.count("\n", counted, start)
        counted = start
        first = line + shift
        last = first + new.removesuffix("\n").count("\n")
        ranges.append(f"{first}-{last}" if last > first else f"{first}")
        shift += new.count("\n") - part.text.count("\n", start, end)
    listed = list(dict.fromkeys(ranges))
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    word = "line" if len(listed) == 1 and "-" not in listed[0] else "lines"
    return f"{word} {', '.join(listed[:LISTED])}{more}"
