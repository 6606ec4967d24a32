"""Headings and definitions of a text with their lines; knows no files and no pages."""

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

ENTRIES = 40
ENTRY_CHARS = 100

MARKDOWN, PYTHON, BRACES = "markdown", "python", "braces"

_LANGUAGES = {
    MARKDOWN: "md markdown mdx mkd qmd",
    PYTHON: "py pyi pyw pyx",
    BRACES: (
        "bash c cc cjs cpp cs css cts cu cuh cxx dart ets go gradle groovy h hh hpp hxx java js jsx "
        "kt kts less m mjs mm mts php pl pm proto rs scala scss sh sol sv svelte swift tf thrift ts "
        "tsx v vue zig zsh"
    ),
}
_BY_ENDING = {ending: name for name, all_ in _LANGUAGES.items() for ending in all_.split()}

FENCE = re.compile(r"^ {0,3}(`{3,}|~{3,})")
UNDERLINE = re.compile(r"^ {0,3}(=+|-+)[ \t]*$")

PYTHON_DEFINITION = re.compile(r"^[ \t]*(?:async[ \t]+)?(?:def|class)[ \t]+(\w+)", re.MULTILINE)

DEFINITION = re.compile(
    r"^[ \t]*"
    r"(?:(?:export|default|declare|pub(?:\([^()\n]*\))?|public|private|protected|internal|open|"
    r"override|abstract|final|sealed|static|async|unsafe|const|extern|inline|partial|data|readonly|"
    r"suspend|virtual|local|typedef|case|companion)[ \t]+)*"
    r"(?:class|struct|enum|union|interface|trait|impl|type|func|function|fn|fun|def|module|mod|"
    r"namespace|object|protocol|extension|record|macro_rules!|message|service|contract)"
    r"(?:<[^<>\n]*>)?[ \t*]+(?:\([^()\n]*\)[ \t]*)?([\w$.:]+)",
    re.MULTILINE,
)
"""A line that declares something by a keyword, in any language with braces; its name is group 1."""


class Entry:
    """A heading or definition: `line` from 1, `depth` by level or indentation, `name`, the line's `text`."""

    __slots__ = ("depth", "line", "name", "text")

    def __init__(self, line: int, depth: int, name: str, text: str) -> None:
        self.line = line
        self.depth = depth
        self.name = name
        self.text = text


def language_of(path: str) -> str:
    """MARKDOWN, PYTHON, BRACES, or "" for a text without an outline, by the name's ending."""
    return _BY_ENDING.get(path.rpartition(".")[2].lower(), "")


def entries(text: str, language: str) -> "Iterator[Entry]":
    """Every heading or definition of a text, in order."""
    if language == MARKDOWN:
        return headings(text.split("\n"))
    return _definitions(text, PYTHON_DEFINITION if language == PYTHON else DEFINITION)


def headings(lines: list[str]) -> "Iterator[Entry]":
    """The headings of Markdown, not those inside fenced code (CommonMark 4.2, 4.3, 4.5)."""
    fence = ""
    for number, line in enumerate(lines, 1):
        mark = FENCE.match(line)
        if mark and not fence:
            fence = mark[1]
        elif fence:
            if mark and mark[1].startswith(fence) and not line.strip().strip(fence[0]):
                fence = ""
        elif line.lstrip().startswith("#"):
            depth, name = _heading(line)
            if depth:
                yield Entry(number, depth, name, line.rstrip())
        elif (found := UNDERLINE.match(line)) and number > 1 and _is_prose(lines[number - 2]):
            title = lines[number - 2]
            yield Entry(number - 1, 1 if found[1][0] == "=" else 2, title.strip(), title.rstrip())


def _heading(line: str) -> tuple[int, str]:
    """Level and text of a line that begins with `#`, level 0 for none."""
    bare = line.strip()
    depth = len(bare) - len(bare.lstrip("#"))
    text = bare[depth:]
    if depth > 6 or not line[:4].strip() or text[:1] not in ("", " ", "\t"):
        return 0, ""
    unclosed = text.rstrip("#")
    return depth, (unclosed if unclosed[-1:] in ("", " ", "\t") else text).strip()


def _is_prose(line: str) -> bool:
    """True for a line that an underline makes a heading: not blank, no heading, list, quote or table."""
    bare = line.strip()
    return bool(bare) and not bare.startswith(("#", "-", "*", "+", ">", "|", "```", "~~~", "<"))


def _definitions(text: str, pattern: "re.Pattern[str]") -> "Iterator[Entry]":
    number, done = 1, 0
    for found in pattern.finditer(text):
        start = found.start()
        number, done = number + text.count("\n", done, start), start
        end = text.find("\n", start)
        line = text[start : end if end >= 0 else len(text)].rstrip()
        yield Entry(number, indent(line), found[1], line)


def indent(line: str) -> int:
    """The columns before a line's text, with tabs of four."""
    bare = line.lstrip()
    return len(line[: len(line) - len(bare)].expandtabs(4))


def outline(text: str, language: str, first: int, chars: int) -> str:
    """The entries from line `first` on, at most ENTRIES and `chars` characters, the deepest left out first."""
    found = [entry for entry in entries(text, language) if entry.line >= first]
    left_out = 0
    while len(found) > ENTRIES:
        depths = sorted({entry.depth for entry in found})
        kept = [entry for entry in found if entry.depth < depths[-1]] or found[:ENTRIES]
        left_out += len(found) - len(kept)
        found = kept
    shown: list[str] = []
    for number, entry in enumerate(found):
        line = f"{entry.line}\t{entry.text[:ENTRY_CHARS]}"
        chars -= len(line) + 1
        if chars < 0:
            left_out += len(found) - number
            break
        shown.append(line)
    if shown and left_out:
        shown.append(f"… {left_out} more")
    return "\n".join(shown)
