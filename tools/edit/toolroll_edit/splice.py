"""From a found place to the file's new bytes: nothing outside of it is decoded and encoded again."""

from toolroll import diff, textfile
from toolroll.change import ABSENT, Target, refuse_markers
from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import quoted
from toolroll.tool import Answer
from toolroll_edit import nearest
from toolroll_edit.match import apart, occurrences

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll.diff import Span
    from toolroll.textfile import Encoding

LISTED = 20
"""Line numbers that are listed; more do not help to choose."""

MATCHES = 100_000
"""Most occurrences that are counted or replaced: each takes some 400 bytes until it is written."""

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
    refuse_markers(content, "", "new_string")
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
        encoding = textfile.detect(target.data)
        if encoding is None:
            raise ToolError(
                ErrorCode.BINARY_FILE,
                f"{quoted(file_path)} is binary: it holds NUL bytes",
                "Edit changes text files only",
            )
        text = encoding.decode(target.data)
        current = if_match is None or target.matches(if_match)
        found = _chosen(file_path, text, old, new, everywhere, call) if current else []
        spans = _spans(text, found, new)
        if spans:
            target.write(_chunks(target.data, text, spans, encoding))
    # To find out what was meant takes its time: only now, when others may write again.
    if not current:
        raise nearest.conflict(file_path, text, old, f"{if_match}", target.etag, call)
    if not found:
        raise nearest.no_match(file_path, text, old, new, call)
    return _edited(target, text, spans, call) if spans else _unchanged(target)


def _chosen(
    file_path: str, text: str, old: str, new: str, everywhere: bool, call: "Call"
) -> list[tuple[int, int]]:
    """The places to replace, if any.  Raises: ToolError MULTIPLE_MATCHES, TOO_LARGE, INVALID_PARAMS."""
    refuse_markers(new, text, "new_string")
    found: list[tuple[int, int]] = []
    for place in occurrences(text, old):
        found.append(place)
        if len(found) > MATCHES:
            break
        if not len(found) % CHECKED:
            call.check()
    if len(found) <= 1:
        return found
    count = f"more than {MATCHES:,}" if len(found) > MATCHES else f"{len(found)}"
    if not everywhere:
        raise ToolError(
            ErrorCode.MULTIPLE_MATCHES,
            f"old_string occurs {count} times in {quoted(file_path)} "
            f"(lines {_numbers(text, found)})",
            "Add surrounding lines, or set replace_all",
        )
    if len(found) > MATCHES:
        raise ToolError(
            ErrorCode.TOO_LARGE,
            f"old_string occurs {count} times in {quoted(file_path)}, above what is replaced at once",
            "Nothing was changed. Give a longer old_string, or use a program such as sed",
        )
    return apart(found)


def _numbers(text: str, found: list[tuple[int, int]]) -> str:
    """The lines of the first few places."""
    numbers: list[int] = []
    line, counted = 1, 0
    for start, _ in found:
        line += text.count("\n", counted, start)
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
    data: bytes, text: str, spans: "list[Span]", encoding: "Encoding"
) -> list[bytes | memoryview]:
    """The new file: untouched slices of the old bytes, and the new texts between them."""
    positions = [position for start, end, _ in spans for position in (start, end)]
    offsets = iter(textfile.byte_offsets(text, positions, encoding))
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


def _edited(target: Target, text: str, spans: "list[Span]", call: "Call") -> Answer:
    change = diff.unified(text, spans, lambda line: call.guard.clean(line).text)
    plural = "" if len(spans) == 1 else "s"
    head = (
        f"Edited {quoted(target.path)}: {len(spans)} replacement{plural}, {_where(text, spans)} "
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


def _where(text: str, spans: "list[Span]") -> str:
    """The lines of the new text that were written."""
    ranges, shift, counted, line = [], 0, 0, 1
    for start, end, new in spans:
        line += text.count("\n", counted, start)
        counted = start
        first = line + shift
        last = first + new.removesuffix("\n").count("\n")
        ranges.append(f"{first}-{last}" if last > first else f"{first}")
        shift += new.count("\n") - text.count("\n", start, end)
    listed = list(dict.fromkeys(ranges))
    more = f" and {len(listed) - LISTED} more" if len(listed) > LISTED else ""
    word = "line" if len(listed) == 1 and "-" not in listed[0] else "lines"
    return f"{word} {', '.join(listed[:LISTED])}{more}"
