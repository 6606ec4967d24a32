"""The part of a text that belongs to a heading, a definition or a word; knows no files and no pages."""

import re
from itertools import accumulate

from toolroll_view.outline import BRACES, MARKDOWN, PYTHON, Entry, entries, indent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

PARAGRAPH_LINES = 100
"""Longest paragraph shown whole: a log without blank lines is one of millions."""

BEFORE_LINES = 20
ALSO = 5
HEADER_LINES = 20
"""Lines in which the brace of a definition must open."""

CANDIDATES = 1000
CODE_CHARS = 1000
"""Longest line in which a function is looked for: longer ones are made by machines."""

_DECLARES = re.compile(r"\s*(?:(?:export|pub|declare|typedef)\s+)*(?:type|struct|class|mod|enum)\b")
"""What may be declared without braces: `type Name = ...`, `struct Name;`."""

# What is not closed ends with its line or the text: no expression here looks twice at a character.
_PYTHON_TOKEN = re.compile(
    r'"""(?:\\.|[^\\])*?(?:"""|\Z)|'
    r"'''(?:\\.|[^\\])*?(?:'''|\Z)|"
    r'"(?:\\.|[^"\\\n])*"?|'
    r"'(?:\\.|[^'\\\n])*'?|"
    r"#[^\n]*|[()\[\]{}]|\\\n|\n",
    re.DOTALL,
)
_QUOTED = r"'(?:\\[^\n][^'\n]{0,12}|[^'\\\n])'"
_BRACE_TOKEN = re.compile(
    r"//[^\n]*|/\*.*?(?:\*/|\Z)|"
    r'"(?:\\.|[^"\\\n])*"?|`(?:\\.|[^`\\])*`?|'
    rf"{_QUOTED}|"
    r"[()\[\]{};]|\n",
    re.DOTALL,
)
_SCRIPT_TOKEN = re.compile(
    _BRACE_TOKEN.pattern.replace(_QUOTED, r"'(?:\\.|[^'\\\n])*'?"), re.DOTALL
)
"""Scripts have whole texts between single quotes, the others one character (and Rust lifetimes)."""

_HEAD = re.compile(r"^(?:#+|(?:async\s+def|def|class|func|function|fn|type|struct)(?=\s))\s*")
"""What a model may write before a name: it asks for `## Install` or `def main`."""

_SCRIPTS = frozenset(
    ("js", "jsx", "mjs", "cjs", "ts", "tsx", "mts", "cts", "php", "vue", "svelte", "sh", "bash")
)
_ABOVE = {
    PYTHON: re.compile(r"\s*@"),
    BRACES: re.compile(r"\s*(?://|/\*|\*|@|#\[)"),
}
_NO_NAMES = frozenset(
    (
        *("if", "for", "while", "switch", "return", "else", "catch", "new", "throw", "await"),
        *("do", "case", "yield", "delete", "sizeof"),
    )
)


class Section:
    """Lines `start` to `end` (from 1, both included), what they are, and where else it was found.

    `name` is empty for a paragraph; `hit` is the line that holds the text, `column` where in it.
    """

    __slots__ = ("also", "column", "end", "hit", "name", "start")

    def __init__(self, start: int, end: int, name: str, hit: int, column: int) -> None:
        self.start = start
        self.end = end
        self.name = name
        self.hit = hit
        self.column = column
        self.also: list[int] = []


def find(text: str, wanted: str, language: str, path: str = "", first: int = 1) -> Section | None:
    """The section whose heading or name contains `wanted`, else the paragraph that does.

    An equal name wins over one that contains it, the same case over another.  Looks from line
    `first` on.  None when nothing contains it.
    """
    name = _HEAD.sub("", wanted).rstrip("(){: ") or wanted
    if name.lower() not in text.lower():
        return None
    body = _Body(text, path)
    named = [entry for entry in _named(body, name.lower(), language) if entry.line >= first]
    for entry in sorted(named, key=lambda entry: _rank(entry.name, name))[:CANDIDATES]:
        span = _span(body, entry, language)
        if span:
            found = Section(*span, entry.name, entry.line, 1)
            found.also = [other.line for other in named if other is not entry][:ALSO]
            return found
    return _paragraph(body.lines, wanted, first)


class _Body:
    """A text, its lines, and where each of them starts."""

    __slots__ = ("lines", "script", "starts", "text")

    def __init__(self, text: str, path: str) -> None:
        self.text = text
        self.lines = text.split("\n")
        self.starts = [0, *accumulate(len(line) + 1 for line in self.lines)]
        self.script = path.rpartition(".")[2].lower() in _SCRIPTS

    def tokens(self, pattern: "re.Pattern[str]", line: int) -> "Iterator[tuple[str, int]]":
        """The tokens from the start of a line on, each with the line where it ends."""
        for found in pattern.finditer(self.text, self.starts[line - 1]):
            line += found[0].count("\n")
            yield found[0], line


def _rank(name: str, wanted: str) -> int:
    """How badly a name fits, 0 the best."""
    if name == wanted:
        return 0
    if name.lower() == wanted.lower():
        return 1
    return 2 if wanted in name else 3


def _named(body: _Body, folded: str, language: str) -> list[Entry]:
    """The headings and definitions whose name contains the text, in order."""
    if not language:
        return []
    found = {
        entry.line: entry for entry in entries(body.text, language) if folded in entry.name.lower()
    }
    if language == BRACES:
        for entry in _functions(body.lines, folded):
            found.setdefault(entry.line, entry)
    return [found[line] for line in sorted(found)]


def _functions(lines: "Sequence[str]", folded: str) -> "Iterator[Entry]":
    """Lines that look like the head of a function without a keyword: C, Java, methods, arrows."""
    token = re.compile(rf"[\w$~]*{re.escape(folded)}[\w$]*", re.IGNORECASE)
    for number, line in enumerate(lines, 1):
        if len(line) > CODE_CHARS or folded not in line.lower():
            continue
        for found in token.finditer(line):
            if _is_head(line[: found.start()], found[0], line[found.end() :].lstrip()):
                yield Entry(number, 0, found[0], line)
                break


def _is_head(before: str, name: str, after: str) -> bool:
    if _NO_NAMES.intersection((name, *re.findall(r"\w+", before))):
        return False
    if after.startswith("("):
        return re.fullmatch(r"[\w\s<>\[\],&*:~?@]*", before) is not None
    return after.startswith(("=", ":")) and bool(re.search(r"=>|\bfunction\b|\bclass\b", after))


def _span(body: _Body, entry: Entry, language: str) -> tuple[int, int] | None:
    """First and last line of what an entry begins, None when it only looked like a definition."""
    if language == MARKDOWN:
        return entry.line, _markdown_end(body, entry)
    end = _python_end(body, entry) if language == PYTHON else _brace_end(body, entry.line)
    if end is None:
        return None
    start = entry.line
    while start > 1 and _ABOVE[language].match(body.lines[start - 2]):
        start -= 1
    return start, end


def _markdown_end(body: _Body, entry: Entry) -> int:
    """The line before the next heading of the same or a higher level, without blank ones."""
    later = (one for one in entries(body.text, MARKDOWN) if one.line > entry.line)
    end = next((one.line - 1 for one in later if one.depth <= entry.depth), len(body.lines))
    while end > entry.line and not body.lines[end - 1].strip():
        end -= 1
    return end


def _python_end(body: _Body, entry: Entry) -> int:
    """The last line of the block: the next statement is indented no deeper than its head."""
    last, depth = entry.line, 0
    for mark, line in body.tokens(_PYTHON_TOKEN, entry.line):
        if mark in "([{":
            depth += 1
        elif mark in ")]}":
            depth = max(depth - 1, 0)
        elif mark == "\n" and not depth:
            statement = body.lines[line - 1]
            if not statement.strip() or statement.lstrip().startswith("#"):
                continue
            if indent(statement) <= entry.depth:
                return last
        if not mark.startswith("#"):
            last = line
    return last


def _brace_end(body: _Body, start: int) -> int | None:
    """The line where the braces of a definition close, or its semicolon stands; None if it is none."""
    tokens = body.tokens(_SCRIPT_TOKEN if body.script else _BRACE_TOKEN, start)
    line, opened = _head_end(tokens, body.lines, start)
    if not opened:
        return line if _DECLARES.match(body.lines[start - 1]) else None
    depth = 1
    for mark, line in tokens:
        depth += (mark == "{") - (mark == "}")
        if not depth:
            return line
    return len(body.lines)


def _head_end(
    tokens: "Iterator[tuple[str, int]]", lines: "Sequence[str]", start: int
) -> tuple[int, bool]:
    """The line where the head of a definition ends, and whether a brace opens there."""
    line, depth = start, 0
    for mark, line in tokens:
        if mark in "{}":
            return line, mark == "{"
        depth = max(depth + (mark in "([") - (mark in ")]"), 0)
        if mark == ";" and not depth:
            return line, False
        if line - start > HEADER_LINES or (
            mark == "\n" and not depth and not _goes_on(lines, line)
        ):
            return line - 1, False
    return line, False


def _goes_on(lines: "Sequence[str]", line: int) -> bool:
    """True when a definition without brace so far may still open one on this line."""
    following, ended = lines[line - 1].strip(), lines[line - 2].rstrip()
    begins = ("{", "where", "throws", ":", "->", "=>", ",", "+")
    return following.startswith(begins) or ended.endswith((",", "=", ">", "where", "|"))


def _paragraph(lines: "Sequence[str]", wanted: str, first: int) -> Section | None:
    """The lines around the text up to blank ones, the same case first."""
    folded = wanted.lower()
    numbers = range(first, len(lines) + 1)
    hit = next((n for n in numbers if wanted in lines[n - 1]), 0)
    hit = hit or next((n for n in numbers if folded in lines[n - 1].lower()), 0)
    if not hit:
        return None
    start = end = hit
    while start > 1 and lines[start - 2].strip():
        start -= 1
    while end < len(lines) and lines[end].strip():
        end += 1
    if end - start >= PARAGRAPH_LINES:
        start = max(start, hit - BEFORE_LINES)
        end = min(end, start + PARAGRAPH_LINES - 1)
    return Section(start, end, "", hit, lines[hit - 1].lower().find(folded) + 1)
