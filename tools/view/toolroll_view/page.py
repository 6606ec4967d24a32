"""The lines that fit on one page, as the model reads them; knows no facts about the file."""

from toolroll.limits import LINE_CHARS
from toolroll_view.lines import Reader
from toolroll_view.outline import outline

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll_view.document import Document
    from toolroll_view.lines import Line

OUTLINE_BYTES = 1 << 21
"""Looked through for the outline of a text, from its beginning."""

MARK_CHARS = 80
"""Room for the marker of a clipped line."""

SECRET_CHARS = 512
"""Read beyond the columns shown, to see the whole of a secret that they would cut."""

LEAST_CHARS = 64
"""Room of a page, however little the output limit leaves."""


class Wish:
    """What a call asks to see; `columns` is None or first and last column from 1."""

    __slots__ = ("columns", "hex", "limit", "metadata", "numbered", "offset", "section")

    def __init__(  # noqa: PLR0913 - the parameters of the tool, as one thing
        self,
        *,
        offset: int,
        limit: int,
        columns: tuple[int, int] | None,
        numbered: bool,
        metadata: bool,
        hex_dump: bool,
        section: str,
    ) -> None:
        self.offset = offset
        self.limit = limit
        self.columns = columns
        self.numbered = numbered
        self.metadata = metadata
        self.hex = hex_dump
        self.section = section


class Page:
    """Lines as shown: `count` of them from number `first`; what follows starts at the byte `at`.

    `more` says that there is something, `cut` that only the output limit kept it out, `open_end`
    that the last line of the file has no feed, `complete` that it shows a whole section.
    """

    __slots__ = (
        "at",
        "complete",
        "count",
        "cut",
        "first",
        "goes_on",
        "incomplete",
        "more",
        "open_end",
        "text",
    )

    def __init__(self, first: int, at: int) -> None:
        self.first = first
        self.at = at
        self.text = ""
        self.count = 0
        self.goes_on = 0
        self.more = self.cut = self.incomplete = self.open_end = self.complete = False

    @property
    def next(self) -> int:
        """The number of the line behind the page."""
        return self.first + self.count


class Place:
    """Where a page begins: line `number` (negative: from the end) at the byte `at`.

    Of a section `length` is the number of lines and `facts` what is to be said of it.
    """

    __slots__ = ("at", "facts", "length", "limit", "number")

    def __init__(
        self, number: int, at: int, limit: int, length: int = 0, facts: tuple[str, ...] = ()
    ) -> None:
        self.number = number
        self.at = at
        self.limit = min(limit, length or limit)
        self.length = length
        self.facts = facts


def fitted(
    document: "Document", place: Place, wish: Wish, call: "Call", most: int
) -> tuple[Page, str]:
    """The longest page whose cleaned text fits, and the outline of what follows a first page.

    Escapes and redaction markers may make a text longer than it is in the file.
    """
    room = most
    while True:
        page = _take(document, place, wish, call, room)
        rest = ""
        if page.more and place.number == 1 and document.language and not place.length:
            rest = _outline(document, page, most // 10)
        size = len(call.guard.clean(page.text + rest).text)
        if size <= most or room <= LEAST_CHARS:
            return page, rest
        room = max(min(room - len(rest) - 1, room * most // size - 1), LEAST_CHARS)


def _outline(document: "Document", page: Page, chars: int) -> str:
    """The headings and definitions behind a page that begins the file."""
    text, used = document.text(document.start, page.at - document.start + OUTLINE_BYTES)
    entries = outline(text, document.language, page.next, chars)
    if not entries:
        return ""
    whole = document.start + used >= document.source.size
    to = "the rest" if whole else f"lines {page.next}-{text.count(chr(10))}"
    return f"\nOutline of {to}:\n{entries}"


def _take(document: "Document", place: Place, wish: Wish, call: "Call", room: int) -> Page:
    """As many lines as the limit and the room in characters allow, at least one."""
    page = Page(place.number, place.at)
    reader = Reader(document.source, document.encoding, place.at, call)
    first, last = wish.columns or (1, LINE_CHARS)
    shown: list[str] = []
    left = room
    while page.count < place.limit:
        label = f"{page.next}\t" if wish.numbered else ""
        line, fits = _read(reader, first, last, room - len(label), call)
        if line is None:
            break
        text = label + _marked(line, first, fits and wish.columns is not None)
        if shown and len(text) > left:
            page.cut = page.more = True
            break
        shown.append(text)
        left -= len(text) + 1
        page.count += 1
        page.at, page.open_end = line.end, not line.fed
        page.goes_on += line.length is None or line.length > last
        if line.length is None:
            page.incomplete = True
            break
        if page.count % 64 == 0:
            call.check()
    page.complete = 0 < place.length <= page.count
    page.more = page.more or document.feeds.follow(page.at, document.source)
    page.text = "\n".join(shown)
    return page


def _read(
    reader: Reader, first: int, last: int, room: int, call: "Call"
) -> tuple["Line | None", bool]:
    """The next line with the columns to show as its text, and whether they all fit into the room."""
    lead = min(first - 1, SECRET_CHARS)
    most = min(last, first + max(room, 1) - 1)
    line = reader.line(first - lead, most + SECRET_CHARS)
    if line is None:
        return None, True
    fits = most == last or (line.length is not None and line.length <= most)
    shown_to = most if fits else max(most - MARK_CHARS, first)
    line.text = _without_parts(line.text, lead, lead + shown_to - first + 1, call)
    return line, fits


def _without_parts(text: str, start: int, end: int, call: "Call") -> str:
    """`text[start:end]`, with stars for the part of a secret whose rest lies beyond.

    The guard knows secrets only whole; a cut through one would show what is left of it.
    """
    mask = call.guard.mask
    end = min(end, len(text))
    if end - start == len(text) or mask(text) == text:
        return text[start:end]

    def is_cut(at: int) -> bool:
        return mask(text) != mask(text[:at]) + mask(text[at:])

    right = next((at for at in range(start, end) if not is_cut(at)), end)
    left = next((at for at in range(end, right, -1) if not is_cut(at)), right)
    return "*" * (right - start) + text[right:left] + "*" * (end - left)


def _marked(line: "Line", first: int, asked: bool) -> str:
    """The columns of a line, with a marker where it was shortened without having been asked."""
    shown_to = first + len(line.text) - 1
    if asked or (line.length is not None and line.length <= shown_to):
        return line.text
    if line.length is None:
        return f"{line.text}… [clipped: time ran out before the end of the line]"
    step = f"columns=[{shown_to + 1}, {shown_to + LINE_CHARS}]"
    return f"{line.text}… [clipped: {line.length - shown_to} more characters; {step}]"
