"""JSON with comments, spliced: a member is set or taken out, every other character stays.

Grammar: RFC 8259, where `// to the end of the line` and `/* */` may stand wherever whitespace may, and
one comma behind the last member or element.  Nothing but whitespace and comments is an empty object.

Pure functions from text to text.  Must not know: files, byte order marks, hosts.
"""

import json
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any, NoReturn

    Json = Any
    Path = tuple[str, ...]
    Span = tuple[int, int]

BLANKS = " \t\r\n"
UNIT = "  "
"""The indentation of a text that shows none of its own."""

_gap = re.compile(r"(?:[ \t\r\n]+|//[^\r\n]*|/\*.*?\*/)*", re.DOTALL)


def loads(text: str) -> "Json":
    """The value of a text, an empty dict for an empty one.

    Raises: ValueError with line and column for what is not in the grammar.
    """
    root = _parsed(text)
    return {} if root is None else root.value


def put(text: str, path: "Path", value: "Json") -> str:
    """The text with `value` at `path`, where objects that are missing are made.

    An object goes member by member into the object that is there; anything else replaces what is there.

    Raises: ValueError as `loads`, for a name on the path that occurs twice or holds no object, and for a
    value that would not be read back as it is.
    """
    return _checked(_spliced(text, path, value), path, value)


def _spliced(text: str, path: "Path", value: "Json") -> str:
    """Raises: ValueError."""
    root = _parsed(text)
    if root is None:
        style = Style(text, None)
        gap = "" if text.endswith(("\n", "\r")) or not text else style.newline
        return f"{text}{gap}{style.shown(_nested(path, value), '')}{style.newline}"
    node, missing = _found(root, path)
    if missing:
        return _with_member(text, Style(text, root), node, missing[0], _nested(missing[1:], value))
    if isinstance(value, dict) and node.members is not None:
        for name, one in value.items():
            text = _spliced(text, (*path, name), one)
        return text
    if _same(node.value, value):
        return text
    indent = _indent(text, node.start)
    style = Style(text, root)
    fresh = style.shown(value, indent if _breaks(text[node.start : node.end]) else None)
    return text[: node.start] + fresh + text[node.end :]


def _checked(text: str, path: "Path", value: "Json") -> str:
    """The text when it has the value at the path.  Raises: ValueError."""
    root = _parsed(text)
    node, missing = (None, path) if root is None else _found(root, path)
    if node is None or missing or not _holds(node.value, value):
        raise ValueError(f"{'.'.join(path)} could not be put where it would be read")
    return text


def remove(text: str, path: "Path") -> str:
    """The text without the member at `path`, if it is there; comments around it stay.

    Raises: ValueError as `put`.
    """
    root = _parsed(text)
    if root is None:
        return text
    node, missing = _found(root, path[:-1])
    index = -1 if missing else node.index(path[-1])
    if index < 0:
        return text
    cuts = _cuts(text, node, index)
    inside = (node.start + 1, node.end - 1)
    if not _cut(text[: inside[1]], cuts)[inside[0] :].strip(BLANKS):
        cuts = [inside]
    return _cut(text, cuts)


# -- reading -----------------------------------------------------------------------------------------


class Member:
    """A name with its place and its value's node."""

    __slots__ = ("name", "node", "start")

    def __init__(self, name: str, start: int, node: "Node") -> None:
        self.name = name
        self.start = start
        self.node = node


class Node:
    """A value and its span; `members` are an object's, None for anything else."""

    __slots__ = ("_value", "end", "members", "start")

    def __init__(
        self, start: int, end: int, value: "Json", members: "list[Member] | None" = None
    ) -> None:
        self.start = start
        self.end = end
        self.members = members
        self._value = value

    @property
    def value(self) -> "Json":
        """As Python has it; of a name that occurs twice the last, as in every reader."""
        if self.members is None:
            return self._value
        return {member.name: member.node.value for member in self.members}

    def index(self, name: str) -> int:
        """Where a member of that name is; -1 for nowhere.

        Raises: ValueError.
        """
        if self.members is None:
            raise ValueError(f"'{name}' cannot be in what is no object")
        places = [place for place, member in enumerate(self.members) if member.name == name]
        if len(places) > 1:
            raise ValueError(f"'{name}' occurs {len(places)} times in one object")
        return places[0] if places else -1


def _parsed(text: str) -> Node | None:
    """The text's value, None when there is none.  Raises: ValueError."""
    start = _skip(text, 0)
    if start == len(text):
        return None
    try:
        root = _value(text, start)
    except RecursionError:
        raise ValueError("nested too deep") from None
    end = _skip(text, root.end)
    if end != len(text):
        _fail(text, end, "more text behind the value")
    return root


def _skip(text: str, at: int) -> int:
    """Where the next token begins."""
    gap = _gap.match(text, at)
    return gap.end() if gap else at


def _value(text: str, start: int) -> Node:
    if text.startswith("{", start):
        return _object(text, start)
    if text.startswith("[", start):
        return _array(text, start)
    value, end = _scalar(text, start)
    return Node(start, end, value)


def _object(text: str, start: int) -> Node:
    members: list[Member] = []
    at = _skip(text, start + 1)
    while not text.startswith("}", at):
        if not text.startswith('"', at):
            _fail(text, at, "a name in double quotes or '}' is missing")
        name, end = _scalar(text, at)
        colon = _skip(text, end)
        if not text.startswith(":", colon):
            _fail(text, colon, "':' is missing")
        member = Member(name, at, _value(text, _skip(text, colon + 1)))
        members.append(member)
        at = _next(text, member.node.end, "}")
    return Node(start, at + 1, None, members)


def _array(text: str, start: int) -> Node:
    values = []
    at = _skip(text, start + 1)
    while not text.startswith("]", at):
        element = _value(text, at)
        values.append(element.value)
        at = _next(text, element.end, "]")
    return Node(start, at + 1, values)


def _next(text: str, at: int, close: str) -> int:
    """Where the next member or element begins, or the closing bracket is."""
    at = _skip(text, at)
    if text.startswith(",", at):
        return _skip(text, at + 1)
    if not text.startswith(close, at):
        _fail(text, at, f"',' or '{close}' is missing")
    return at


def _scalar(text: str, start: int) -> "tuple[Json, int]":
    try:
        return _decoder.raw_decode(text, start)
    except json.JSONDecodeError as problem:
        what = "a value is missing" if problem.msg == "Expecting value" else problem.msg
        _fail(text, problem.pos, what)


def _refuse(constant: str) -> "NoReturn":
    raise ValueError(f"{constant} is not JSON")


_decoder = json.JSONDecoder(parse_constant=_refuse)


def _fail(text: str, at: int, what: str) -> "NoReturn":
    before = text[:at]
    line = before.count("\n") + 1
    raise ValueError(f"line {line}, column {at - before.rfind(chr(10))}: {what}")


def _found(root: Node, path: "Path") -> "tuple[Node, Path]":
    """The deepest node on the path that is there, and the names that are missing below it.

    Raises: ValueError.
    """
    node = root
    for depth, name in enumerate(path):
        index = node.index(name)
        if index < 0:
            return node, path[depth:]
        node = _members(node)[index].node
    return node, ()


def _members(node: Node) -> list[Member]:
    return node.members or []


# -- writing -----------------------------------------------------------------------------------------


class Style:
    """How a text is laid out, so that what is added looks the same."""

    __slots__ = ("newline", "one_line", "unit")

    def __init__(self, text: str, root: Node | None) -> None:
        members = [] if root is None else _members(root)
        own = _own_indent(text, members[0].start) if members else None
        self.newline = next((end for end in ("\r\n", "\n", "\r") if end in text), "\n")
        self.unit = UNIT if own is None else own
        self.one_line = (
            bool(members) and root is not None and not _breaks(text[root.start : root.end])
        )

    def shown(self, value: "Json", indent: str | None) -> str:
        """A value as text: objects over several lines from `indent` on, in one line for None."""
        if indent is None or not isinstance(value, dict) or not value:
            return json.dumps(value, ensure_ascii=False)
        deeper = indent + self.unit
        lines = [f"{deeper}{_key(name)}{self.shown(one, deeper)}" for name, one in value.items()]
        body = f",{self.newline}".join(lines)
        return f"{{{self.newline}{body}{self.newline}{indent}}}"


def _with_member(text: str, style: Style, node: Node, name: str, value: "Json") -> str:
    """The text with a new last member in an object."""
    members = _members(node)
    close = node.end - 1
    last = members[-1].node.end if members else node.start + 1
    comma = bool(members) and text.startswith(",", _skip(text, last))
    point = last + len(text[last:close].rstrip(BLANKS))
    if _on_one_line(text, style, node):
        before = " " if members else ""
        indent, after = None, ""
    else:
        indent = _member_indent(text, style, node)
        before = style.newline + indent
        after = ""
        if not members and not _breaks(text[point:close]):
            point, after = close, style.newline + _indent(text, node.start)
    member = _key(name) + style.shown(value, indent) + ("," if comma else "")
    between = text[last:point] if comma or not members else "," + text[last:point]
    return text[:last] + between + before + member + after + text[point:]


def _on_one_line(text: str, style: Style, node: Node) -> bool:
    members = _members(node)
    if not members:
        return style.one_line
    gaps = text[node.start : members[0].start] + text[members[-1].node.end : node.end]
    return not _breaks(gaps)


def _member_indent(text: str, style: Style, node: Node) -> str:
    members = _members(node)
    own = _own_indent(text, members[-1].start) if members else None
    return _indent(text, node.start) + style.unit if own is None else own


def _cuts(text: str, node: Node, index: int) -> "list[Span]":
    """What goes with a member: the whitespace before it, and its comma or else the one before.

    That whitespace stays where it ends a comment that would swallow what follows.
    """
    members = _members(node)
    member = members[index]
    start, end = len(text[: member.start].rstrip(BLANKS)), member.node.end
    comma = _skip(text, end)
    cuts = [(start, end)]
    if text.startswith(",", comma):
        cuts.append((comma, comma + 1))
    elif index:
        before = _skip(text, members[index - 1].node.end)
        cuts.append((before, before + 1))
    follows = _cut(text, [cut for cut in cuts if cut[0] > end])[end:]
    if text.startswith(",", end):
        end, follows = end + 1, text[end + 1 :]
    blanks = len(follows) - len(follows.lstrip(" \t"))
    if _breaks(text[start : member.start]) and not follows[blanks:].startswith(("\n", "\r")):
        cuts[0] = (member.start, member.node.end)
        cuts.append((end, end + blanks))
    return cuts


def _cut(text: str, cuts: "Iterable[Span]") -> str:
    for start, end in sorted(cuts, reverse=True):
        text = text[:start] + text[end:]
    return text


def _nested(path: "Path", value: "Json") -> "Json":
    for name in reversed(path):
        value = {name: value}
    return value


def _key(name: str) -> str:
    return f"{json.dumps(name, ensure_ascii=False)}: "


def _indent(text: str, at: int) -> str:
    """The whitespace that the line of a place begins with."""
    line = text[_line_start(text, at) :]
    return line[: len(line) - len(line.lstrip(" \t"))]


def _own_indent(text: str, at: int) -> str | None:
    """The whitespace before a place that is the first of its line; None when it is not."""
    start = _line_start(text, at)
    before = text[start:at]
    return None if before.strip(" \t") or not start else before


def _line_start(text: str, at: int) -> int:
    """Where the line of a place begins: a lone CR ends a line too, as it ends a comment."""
    return max(text.rfind("\n", 0, at), text.rfind("\r", 0, at)) + 1


def _breaks(text: str) -> bool:
    """True when a line ends in the text."""
    return "\n" in text or "\r" in text


def _holds(found: "Json", value: "Json") -> bool:
    """True when a value is there, where objects may have more members."""
    if isinstance(found, dict) and isinstance(value, dict):
        return all(name in found and _holds(found[name], one) for name, one in value.items())
    return _same(found, value)


def _same(one: "Json", other: "Json") -> bool:
    """True for equal values of equal kinds: 1 is not true."""
    return json.dumps(one) == json.dumps(other)
