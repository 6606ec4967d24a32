"""The answer for a text: its page between what is known about the file; knows no kinds of files."""

import os
import stat
from time import gmtime, strftime

from toolroll.limits import OUTPUT_CHARS
from toolroll.textfile import UTF8
from toolroll.tool import Answer
from toolroll_view.index import DeadlineError
from toolroll_view.page import LEAST_CHARS, Page, Wish, fitted
from toolroll_view.place import place_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from toolroll.call import Call
    from toolroll_view.document import Document


def page_answer(document: "Document", wish: Wish, call: "Call", extra: str = "") -> Answer:
    """The page that `wish` asks for, `extra` below it.

    Raises: ToolError NO_MATCH for a section that is not there.
    """
    above = metadata(document) if wish.metadata else ""
    try:
        place = place_of(document, wish, call)
    except DeadlineError as stop:
        return _out_of_time(document, wish, stop, above)
    if isinstance(place, str):
        return Answer(_join(above, place, extra), _closing(document), data(document))
    document.look_at(place.at)
    most = call.options.get("max-output", OUTPUT_CHARS) - len(above) - len(extra)
    page, rest = fitted(document, place, wish, call, max(most, LEAST_CHARS))
    if place.number > 0 and page.more and not page.incomplete:
        document.index.mark(page.next, page.at)
    facts = [*place.facts, *_facts(document, page, wish, call), *_closing(document)]
    return Answer(_join(above, page.text, rest, extra), facts, data(document, page))


def _join(*parts: str) -> str:
    return "\n".join(part for part in parts if part)


def data(document: "Document", page: Page | None = None) -> "dict[str, Any]":
    """The fields of the structured form."""
    fields: dict[str, Any] = {"etag": document.etag} if document.etag else {}
    if document.index.total is not None:
        fields["total_lines"] = document.index.total
    if page is not None and page.more and not page.complete:
        fields["next_offset"] = page.next
    if page is not None and page.cut:
        fields["truncated"] = True
    if page is not None and page.incomplete:
        fields["incomplete"] = True
    return fields


def metadata(document: "Document") -> str:
    """Size, permissions, time, encoding and line ends in one line."""
    ends = {"": "no line ends", "mixed": "mixed line ends"}.get(
        document.line_end, document.line_end
    )
    return f"[{file_facts(document.status)} · {document.encoding.name} · {ends}]"


def file_facts(status: os.stat_result) -> str:
    """Size, permissions and time of a file."""
    mode = f"{stat.filemode(status.st_mode)} {stat.S_IMODE(status.st_mode):04o}"
    changed = strftime("%Y-%m-%dT%H:%M:%SZ", gmtime(status.st_mtime))
    return f"{status.st_size:,} bytes · {mode} · modified {changed}"


def _closing(document: "Document") -> list[str]:
    """The facts about the file that stand in every last line."""
    facts = [f"etag {document.etag}"] if document.etag else []
    if document.encoding is not UTF8:
        facts.append(document.encoding.name)
    if document.line_end not in ("", "LF"):
        facts.append({"mixed": "mixed line ends"}.get(document.line_end, document.line_end))
    if document.partial:
        facts.append("incomplete: a file without size, only its first 8 MB were read")
    return facts


def _facts(document: "Document", page: Page, wish: Wish, call: "Call") -> list[str]:
    total = _total(document, page, call)
    facts = [_extent(page, total)]
    if page.cut:
        facts.append("truncated at the output limit")
    if page.incomplete:
        facts.append("incomplete: time ran out")
    if page.goes_on and wish.columns:
        facts.append(_going_on(page, wish.columns))
    if page.more and not page.complete:
        facts.append(f"next: offset={page.next}")
    if page.open_end and not page.more:
        facts.append("no newline at the end")
    return facts


def _total(document: "Document", page: Page, call: "Call") -> int | None:
    """The number of lines, where it is known or quickly found."""
    if page.first > 0 and not page.more and not page.incomplete:
        document.index.total = page.next - 1
    elif page.first > 0 and document.countable:
        try:
            return document.index.count(document.source, call)
        except DeadlineError:
            page.incomplete = True
    return document.index.total


def _extent(page: Page, total: int | None) -> str:
    """Which lines of how many are shown."""
    last = page.next - 1
    if page.count == total:
        return f"{total} line{'s' if total != 1 else ''}"
    lines = f"line {last}" if page.count == 1 else f"lines {page.first}-{last}"
    if page.first < 0:
        lines = f"line {last}" if page.count == 1 else f"lines {page.first} to {last}"
        return f"{lines} counted from the end"
    return f"{lines} of {total}" if total is not None else f"{lines}, more follow"


def _going_on(page: Page, columns: tuple[int, int]) -> str:
    first, last = columns
    if page.count == 1:
        return f"next: columns=[{last + 1}, {2 * last - first + 1}]"
    return f"{page.goes_on} lines go on after column {last}"


def _out_of_time(document: "Document", wish: Wish, stop: DeadlineError, above: str) -> Answer:
    what = f"find_section '{wish.section}'" if wish.section else f"Line {wish.offset}"
    text = (
        f"{what} was not reached in time: the search came to line {stop.line}.\n"
        "Call again to go on from there."
    )
    if wish.section:
        text = f"{what}: not found up to line {stop.line}, where time ran out."
    facts = ["incomplete: time ran out", *_closing(document)]
    return Answer(_join(above, text), facts, {**data(document), "incomplete": True})
