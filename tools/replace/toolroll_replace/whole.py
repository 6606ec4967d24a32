"""From the new text of a file to its bytes, in the form the old one had."""

from toolroll import diff, textfile
from toolroll.change import ABSENT, Target, refuse_markers
from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import quoted
from toolroll.tool import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll.textfile import Encoding


def write(file_path: str, content: str, if_match: str | None, call: "Call") -> Answer:
    """The answer to one call."""
    with Target(file_path, call, create=True) as target:
        _require(target, if_match)
        found = textfile.detect(target.data)
        encoding = found or textfile.UTF8
        old = encoding.decode(target.data) if found else ""
        refuse_markers(content, lambda: old, "content")
        new = _in_the_form_of(old, content, encoding)
        data = encoding.bom + textfile.encode_new(new, encoding, "content")
        created = target.status is None
        if not created and data == target.data:
            return _unchanged(target, old)
        target.write((data,))
    if created:
        return _created(target, new)
    return _replaced(target, old, new, call) if found else _replaced_binary(target, new)


def _require(target: Target, if_match: str | None) -> None:
    """Raises: ToolError CONFLICT, ALREADY_EXISTS."""
    if if_match is None or target.matches(if_match):
        return
    name = quoted(target.path)
    if if_match == ABSENT:
        raise ToolError(
            ErrorCode.ALREADY_EXISTS,
            f"{name} exists already (etag {target.etag})",
            "Nothing was changed. View it, then give its etag as if_match",
        )
    if target.status is None:
        raise ToolError(
            ErrorCode.CONFLICT,
            f"{name} does not exist any more",
            'Nothing was written. To create it, leave if_match out or give "absent"',
        )
    raise ToolError(
        ErrorCode.CONFLICT,
        f"{name} is not what it was: its etag is {target.etag}, not {if_match}",
        "Nothing was changed. View it again before overwriting it",
    )


def _in_the_form_of(old: str, content: str, encoding: "Encoding") -> str:
    """`content` with the line ends of the old text, where those are all alike, and without a second BOM."""
    if encoding.bom:
        content = content.removeprefix("\ufeff")
    ends = textfile.line_ends(old)
    return textfile.with_line_end(content, ends) if ends in ("\n", "\r\n") else content


def _unchanged(target: Target, text: str) -> Answer:
    lines = textfile.line_count(text)
    plural = "" if lines == 1 else "s"
    return Answer(
        f"Unchanged {quoted(target.path)}: it has this content already, "
        f"{lines} line{plural}, etag {target.etag}",
        data={"etag": target.etag, "added": 0, "removed": 0, "unchanged": True},
    )


def _created(target: Target, text: str) -> Answer:
    lines = textfile.line_count(text)
    plural = "" if lines == 1 else "s"
    return Answer(
        f"Created {quoted(target.path)}: {lines} line{plural}, etag {target.etag}",
        data={"etag": target.etag, "added": lines, "removed": 0, "unchanged": False},
    )


def _replaced_binary(target: Target, text: str) -> Answer:
    lines = textfile.line_count(text)
    plural = "" if lines == 1 else "s"
    return Answer(
        f"Replaced {quoted(target.path)}: a binary file of {len(target.data):,} bytes before, "
        f"{lines} line{plural} now, etag {target.etag}{target.warning}",
        data={"etag": target.etag, "added": lines, "removed": 0, "unchanged": False},
    )


def _replaced(target: Target, old: str, new: str, call: "Call") -> Answer:
    spans = diff.between(old, new)
    change = diff.unified(old, spans, lambda line: call.guard.clean(line).text)
    before = textfile.line_count(old)
    after = before + change.added - change.removed
    head = (
        f"Replaced {quoted(target.path)}: {before} lines before, {after} now "
        f"(+{change.added} -{change.removed}), etag {target.etag}{target.warning}"
    )
    return Answer(
        f"{head}\n{change.text}" if change.text else head,
        data={
            "etag": target.etag,
            "added": change.added,
            "removed": change.removed,
            "unchanged": False,
        },
    )
