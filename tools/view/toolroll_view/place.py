"""Where a page begins: by line number, from the end, or at a section; knows no output."""

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import LINE_CHARS
from toolroll_view.index import DeadlineError, from_end
from toolroll_view.outline import entries
from toolroll_view.page import OUTLINE_BYTES, Place, Wish
from toolroll_view.section import Section, find

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll_view.document import Document

SECTION_BYTES = 1 << 21
"""Searched at once for a section: a call that was cancelled in between stops in time."""


def place_of(document: "Document", wish: Wish, call: "Call") -> Place | str:
    """Where the page begins, or the sentence that says why there is none.

    Raises: DeadlineError, ToolError.
    """
    if document.source.size <= document.start:
        return "(empty file)"
    if wish.section:
        return _section(document, wish, call)
    if wish.offset < 0:
        return _from_end(document, wish, call)
    number = max(wish.offset, 1)
    at = document.index.locate(number, document.source, call)
    if at is None:
        total = document.index.total
        return f"No line {number}: the file has {total} line{'s' if total != 1 else ''}."
    return Place(number, at, wish.limit)


def _from_end(document: "Document", wish: Wish, call: "Call") -> Place:
    """The place of a negative offset; its number is positive where the lines can be counted."""
    lines = -wish.offset
    source, index = document.source, document.index
    if document.countable:
        number = max(index.count(source, call) - lines + 1, 1)
        return Place(number, index.locate(number, source, call) or document.start, wish.limit)
    at, whole = from_end(lines, source, document.feeds, document.start, call)
    return Place(1 if whole else wish.offset, at, min(wish.limit, lines))


def _section(document: "Document", wish: Wish, call: "Call") -> Place:
    hit = _search(document, wish, call)
    if hit is None:
        raise _no_section(document, wish)
    found, at, before = hit
    number = found.start + before
    document.index.mark(number, at)
    facts = [f"section '{found.name}'" if found.name else "paragraph"]
    if found.also:
        facts.append(f"also at line {', '.join(str(line + before) for line in found.also)}")
    if found.column > LINE_CHARS:
        facts.append(f"found in line {found.hit + before} at column {found.column}")
    return Place(number, at, wish.limit, found.end - found.start + 1, tuple(facts))


def _search(document: "Document", wish: Wish, call: "Call") -> tuple[Section, int, int] | None:
    """The section, the byte where it starts, and the lines before the piece in which it was found.

    Large files are searched piece by piece; a name anywhere wins over a paragraph before it.
    """
    wanted = wish.section.partition("\n")[0].strip()
    paragraph: tuple[Section, int, int] | None = None
    line_at = at = document.start  # a line that fills a piece begins in an earlier one
    before, column = 0, 0
    while True:
        text, used = _piece(document, at)
        if not used:
            return paragraph
        first = max(wish.offset - before, 1)
        found = find(text, wanted, document.language, document.path, first)
        if found is not None and (found.name or paragraph is None):
            start = _start_of(found, text, document, at, line_at)
            if found.name and start > at and _is_cut(found, text, at + used, document):
                line_at, at, before, column = start, start, before + found.start - 1, 0
                continue
            found.column += column if found.hit == 1 else 0
            paragraph = found, start, before
            if found.name:
                return paragraph
        at, before = at + used, before + text.count("\n")
        column = 0 if "\n" in text else column + len(text)
        line_at = at if "\n" in text else line_at
        call.check()
        if call.expired:
            raise DeadlineError(before + 1)


def _piece(document: "Document", at: int) -> tuple[str, int]:
    """The next text to search, up to a line's end where it has one, and its bytes."""
    text, used = document.text(at, SECTION_BYTES)
    if at + used >= document.source.size - document.feeds.width or "\n" not in text:
        return text, used
    text = text[: text.rindex("\n") + 1]
    return text, len(document.encoding.encode(text))


def _is_cut(found: Section, text: str, end: int, document: "Document") -> bool:
    """True when a section reaches to the end of its piece, and the file goes on."""
    return found.end > text.rstrip().count("\n") and document.feeds.follow(end, document.source)


def _start_of(found: Section, text: str, document: "Document", at: int, line_at: int) -> int:
    if found.start == 1:
        return line_at
    lead = "\n".join(text.split("\n", found.start - 1)[: found.start - 1])
    return at + len(document.encoding.encode(lead + "\n"))


def _no_section(document: "Document", wish: Wish) -> ToolError:
    text, _ = document.text(document.start, OUTLINE_BYTES)
    names = [
        entry.name for _, entry in zip(range(10), entries(text, document.language), strict=False)
    ]
    hint = "Its first headings or definitions: " + ", ".join(f"'{name}'" for name in names)
    after = f" from line {wish.offset} on" if wish.offset > 1 else ""
    return ToolError(
        ErrorCode.NO_MATCH,
        f"no heading, definition or paragraph contains '{wish.section}'{after}",
        hint if document.language and names else "Search with GrepTool, or view the file by lines.",
    )
