"""TOML, spliced: a table's keys are set or the table is taken out, every other character stays.

Grammar: TOML 1.0 as `tomllib` reads it.  On top of that only statements are told apart: a text is lines
of `[table]`, `[[array]]` and `key = value`, where a value may go over several lines.

Pure functions from text to text.  Must not know: files, byte order marks, hosts.
"""

import json
import re
import tomllib

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Toml = Any
    Path = tuple[str, ...]

PAIR, TABLE, ARRAY = "key = value", "[table]", "[[array of tables]]"

_bare = re.compile(r"[A-Za-z0-9_-]+")
_gap = re.compile(r"(?:[ \t\r\n]+|#[^\r\n]*)*")
_key = re.compile(r"""(?:[^"'=\]]|"(?:[^"\\]|\\.)*"|'[^']*')*""")
_text = re.compile(
    r'''"""(?:[^\\]|\\.)*?"{3,5}(?!")|\'\'\'.*?'{3,5}(?!')|"(?:[^"\\]|\\.)*"|'[^']*\'''', re.DOTALL
)
_plain = re.compile(r"""[^"'#\[\]{}\r\n]+""")


def loads(text: str) -> "dict[str, Toml]":
    """The tables of a text, its floats as they are written (nan equals itself then).

    Raises: ValueError with line and column for what is not TOML.
    """
    return tomllib.loads(text, parse_float=str)


def put(text: str, path: "Path", value: "dict[str, Toml]") -> str:
    """The text with the keys of `value` in the table at `path`, which is made at the end if missing.

    A value that is there is replaced in its place, an equal one left as it is written.

    Raises: ValueError as `loads`, and for a table that is written inline or is none.
    """
    before = loads(text)
    table = _table(before, path)
    wanted = {name: one for name, one in value.items() if not _same(table.get(name), one)}
    missing = {name: one for name, one in wanted.items() if name not in table}
    for name, one in wanted.items():
        if name in table:
            text = _replaced(text, (*path, name), one)
    if missing:
        text = _extended(text, path, missing)
    table.update(wanted)
    return _checked(text, before, path)


def remove(text: str, path: "Path") -> str:
    """The text without the table at `path` and all below it; comments outside of it stay.

    Raises: ValueError as `put`.
    """
    before = loads(text)
    *above, name = path
    there = _table(before, tuple(above))
    if name not in there:
        return text
    for start, end in reversed(list(_spans(text, path))):
        text = text[:start] + text[end:]
    del there[name]
    if not there and above:  # it was there because of this one, or is still there
        after = _table(loads(text), tuple(above[:-1]))
        if above[-1] not in after:
            del _table(before, tuple(above[:-1]))[above[-1]]
    return _checked(text, before, path)


def _table(tables: "dict[str, Toml]", path: "Path") -> "dict[str, Toml]":
    """The table at a path, made when it is missing.  Raises: ValueError."""
    for name in path:
        tables = tables.setdefault(name, {})
        if not isinstance(tables, dict):
            raise ValueError(f"{_dotted(path)}: '{name}' is no table")
    return tables


def _checked(text: str, expected: "dict[str, Toml]", path: "Path") -> str:
    """The text when it says what is expected of it: an inline table takes no keys from outside.

    Raises: ValueError.
    """
    try:
        done = _same(loads(text), expected)
    except ValueError:
        done = False
    if not done:
        raise ValueError(
            f"{_dotted(path)} is written inline; write it as a table of its own, [{_dotted(path)}]"
        )
    return text


# -- reading -----------------------------------------------------------------------------------------


class Statement:
    """A line that says something, from `start` to the end of its `value`.

    `path` is where it leads from the root, `section` the table it stands in; a header's own.
    """

    __slots__ = ("end", "kind", "path", "section", "start", "value")

    def __init__(self, kind: str, start: int, path: "Path", section: "Path") -> None:
        self.kind = kind
        self.start = start
        self.path = path
        self.section = section
        self.value = self.end = start


def _statements(text: str) -> "Iterator[Statement]":
    """All statements of a valid text, in order."""
    section: Path = ()
    at = _matched(_gap, text, 0)
    while at < len(text):
        brackets = 2 if text.startswith("[[", at) else int(text.startswith("[", at))
        end = _matched(_key, text, at + brackets)
        names = _names(text[at + brackets : end])
        if brackets:
            section = names
        kind = (PAIR, TABLE, ARRAY)[brackets]
        statement = Statement(kind, at, names if brackets else (*section, *names), section)
        statement.end = end + brackets
        if kind == PAIR:
            statement.value = _matched(_gap, text, end + 1)
            statement.end = _end_of_value(text, statement.value)
        yield statement
        at = _matched(_gap, text, statement.end)


def _matched(pattern: "re.Pattern[str]", text: str, at: int) -> int:
    """Where a match ends that begins here."""
    found = pattern.match(text, at)
    return found.end() if found else at


def _names(key: str) -> "Path":
    """The names of a dotted key; tomllib knows what its quotes mean."""
    tables: Toml = tomllib.loads(f"{key.strip()} = 0")
    names = []
    while isinstance(tables, dict):
        ((name, tables),) = tables.items()
        names.append(name)
    return tuple(names)


def _end_of_value(text: str, start: int) -> int:
    """Where a value ends: with its line, unless a bracket is open."""
    at, depth = start, 0
    while at < len(text):
        if text[at] in "#\r\n":
            if not depth:
                break
            at = _matched(_gap, text, at)
            continue
        depth += (text[at] in "[{") - (text[at] in "]}")
        at = max(_matched(_text, text, at), _matched(_plain, text, at), at + 1)
    return len(text[:at].rstrip(" \t"))


# -- writing -----------------------------------------------------------------------------------------


def _replaced(text: str, path: "Path", value: "Toml") -> str:
    """The text with another value for a key that is written out."""
    for one in _statements(text):
        if one.kind == PAIR and one.path == path:
            return text[: one.value] + shown(value) + text[one.end :]
    return text


def _extended(text: str, path: "Path", values: "dict[str, Toml]") -> str:
    """The text with further keys: behind the last one of the table, or as a table at the end."""
    newline = "\r\n" if "\r\n" in text else "\n"
    last = None
    for one in _statements(text):
        if _leads_into(one, path):
            last = one
    if last is None:
        return _with_table(text, path, values, newline)
    indent = text[text.rfind("\n", 0, last.start) + 1 : last.start]
    end = _end_of_line(text, last.end)
    lines = [f"{indent}{_pair(path[len(last.section) :], *one)}{newline}" for one in values.items()]
    gap = "" if text[:end].endswith("\n") else newline
    return text[:end] + gap + "".join(lines) + text[end:]


def _leads_into(one: Statement, path: "Path") -> bool:
    """True for the header of the table and for a key in it that is written out."""
    if one.kind != PAIR:
        return one.kind == TABLE and one.path == path
    depth = len(path)
    return len(one.section) <= depth < len(one.path) and one.path[:depth] == path


def _with_table(text: str, path: "Path", values: "dict[str, Toml]", newline: str) -> str:
    lines = [f"[{_dotted(path)}]", *(_pair((), *one) for one in values.items())]
    gap = newline if text and not text.endswith("\n") else ""
    gap += newline if text.strip() else ""
    return text + gap + newline.join(lines) + newline


def _spans(text: str, path: "Path") -> "Iterator[tuple[int, int]]":
    """The whole lines that a table and all below it are written in."""
    depth = len(path)
    start = end = -1
    for one in _statements(text):
        if one.path[:depth] != path:
            if start >= 0:
                yield _with_blank_line(text, start, end)
            start = -1
            continue
        if start >= 0 and one.kind != PAIR:
            yield _with_blank_line(text, start, end)
            start = -1
        if start < 0:
            start = text.rfind("\n", 0, one.start) + 1
        end = _end_of_line(text, one.end)
    if start >= 0:
        yield _with_blank_line(text, start, end)


def _with_blank_line(text: str, start: int, end: int) -> tuple[int, int]:
    """A span together with the empty line before it, when one is behind it or nothing is."""
    for newline in ("\r\n", "\n"):
        behind = end == len(text) or text.startswith(newline, end)
        if behind and text[:start].endswith(newline * 2):
            return start - len(newline), end
    return start, end


def _end_of_line(text: str, at: int) -> int:
    return text.find("\n", at) + 1 or len(text)


def _pair(path: "Path", name: str, value: "Toml") -> str:
    return f"{_dotted((*path, name))} = {shown(value)}"


def _dotted(path: "Path") -> str:
    return ".".join(name if _bare.fullmatch(name) else _quoted(name) for name in path)


def shown(value: "Toml") -> str:
    """A value as TOML writes it: text, number, true or false, a list of such.

    Raises: ValueError for anything else.
    """
    if isinstance(value, str):
        return _quoted(value)
    if isinstance(value, list):
        return f"[{', '.join(map(shown, value))}]"
    if isinstance(value, bool | int):
        return str(value).lower()
    raise ValueError(f"{type(value).__name__} is not written here")


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")


def _same(one: "Toml", other: "Toml") -> bool:
    """True for equal values of equal kinds; the order of keys means nothing."""
    if isinstance(one, dict) and isinstance(other, dict):
        return one.keys() == other.keys() and all(_same(one[name], other[name]) for name in one)
    if isinstance(one, list) and isinstance(other, list):
        return len(one) == len(other) and all(map(_same, one, other))
    return type(one) is type(other) and bool(one == other)
