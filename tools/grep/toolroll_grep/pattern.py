"""A pattern as the model wrote it -> how to search whole files with it; reads no files.

A line search is done over whole files, so the pattern is first rewritten so that no part of it can
take a newline: what it then finds is what it would find line by line, at a tenth of the price.
"""

from toolroll.errors import ErrorCode, ToolError
from toolroll_grep.dialect import INSTEAD, escaped
from toolroll_grep.dialect import library as regex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    Nodes = Iterable[tuple[Any, Any]]  # of re's own parser

PATTERN_CHARS = 4_096
"""Longest pattern: as for globs; what people and models write has a hundred."""

NESTING = 50
"""Deepest groups: the compiler recurses, and nobody reads more than five."""

REPEATS = 100_000
"""Most repetitions that counts may ask for, those of nested groups multiplied."""

NEEDLE_CHOICES = 32
"""Most literals of which one must occur: each is a scan of the file."""

SHORT_NEEDLE = 2
"""Literals of up to so many bytes are everywhere; what follows them makes them rarer."""

TOKEN = regex.compile(
    r"""(?sx)
    (?P<escape>\\(?:x[0-9A-Fa-f]{2}|u[0-9A-Fa-f]{4}|U[0-9A-Fa-f]{8}|[pPN]\{[^}]*\}|[pP][A-Za-z]
               |[gL]<[^>]*>|0[0-7]{0,2}|[0-7]{3}|[0-9]{1,2}|.))
    |(?P<comment>\(\?\#[^)]*\))
    |(?P<look>\(\?<?[=!])
    |(?P<flags>\(\?[-+a-zA-Z01]+[:)])
    |(?P<open>\((?:\?(?:P?<[^\W\d]\w*>|[:>|]))?)
    |(?P<set>\[\^?\]?(?:\[:\^?\w+:\]|\\.|[^\]\\])*\])
    |(?P<repeat>(?:[*+?]|\{(?:\d+(?:,\d*)?|,\d+)\})[+?]?)
    |(?P<fuzzy>\{[^{}\n]*\})
    |(?P<char>.)
    """
)
FUZZY = regex.compile(
    r"\s*(?:\d+\s*<=?\s*)?[eids]\s*(?:<=?\s*\d+\s*)?(?::.*)?"
    r"|[\s\d+]*[ids](?:\s*\+\s*\d*\s*[ids])*\s*<=?\s*\d+\s*(?::.*)?"
)
TAKES_NEWLINE = frozenset("sWD")
PLAIN_ESCAPES = frozenset("bBdDsSwWAZzafrtvhmMntxuUgpPN0123456789")
NEWLINES = frozenset(("\\n", "\n", "\\\n", "\\x0a", "\\x0A", "\\u000a", "\\u000A", "\\012"))


class Plan:
    """How to search: everything is plain data, as it goes to another process.

    `text` is the expression to compile, `by_line` when it must be asked line by line, `spans` when a
    match may hold newlines.  `needles`: no match without one of these (UTF-8).  `exact` means that on
    bytes it finds in any UTF-8 what it finds in text.  `may_be_empty` matches may have no length.
    `core` finds a part that every match on ASCII holds, where there is no better literal;
    `risky` ones are given a time limit each file.
    """

    __slots__ = (
        "by_line",
        "core",
        "exact",
        "ignore_case",
        "may_be_empty",
        "needles",
        "risky",
        "spans",
        "text",
    )

    def __init__(self, text: str, ignore_case: bool) -> None:
        self.text = text
        self.ignore_case = ignore_case
        self.by_line = self.spans = self.exact = False
        self.risky = self.may_be_empty = True
        self.needles: tuple[bytes, ...] = ()
        self.core = ""

    def record(self) -> "tuple[Any, ...]":
        """All of it, in a form that `marshal` takes."""
        return tuple(getattr(self, name) for name in self.__slots__)

    @classmethod
    def of_record(cls, record: "Iterable[Any]") -> "Plan":
        """The plan that `record` gave."""
        plan = cls("", False)
        for name, value in zip(cls.__slots__, record, strict=True):
            setattr(plan, name, value)
        return plan

    @property
    def flags(self) -> int:
        """The flags to compile `text` with."""
        return int(regex.MULTILINE | (regex.IGNORECASE if self.ignore_case else 0))


def plan(
    pattern: str, *, fixed_strings: bool = False, ignore_case: bool = False, multiline: bool = False
) -> Plan:
    """How to search for `pattern`.  One that names a newline is multiline whatever is said.

    Raises: ToolError INVALID_PARAMS saying where and why, and how to search for the text as it is.
    """
    if len(pattern) > PATTERN_CHARS:
        raise _refused(f"it has {len(pattern):,} characters, more than {PATTERN_CHARS:,}", pattern)
    source = escaped(pattern) if fixed_strings else pattern
    flags = regex.MULTILINE | (regex.IGNORECASE if ignore_case else 0)
    reading = _Reading(source)
    if INSTEAD and not fixed_strings and (reading.odd or "[:" in source):
        raise _bad(pattern, "Python's re reads it otherwise")
    try:
        regex.compile(source if fixed_strings else reading.loose, flags)
    except regex.error as error:
        raise _bad(pattern, str(error)) from None
    except (OverflowError, RecursionError, MemoryError, ValueError) as error:
        raise _refused(str(error) or "it is too large", pattern) from None
    made = Plan(reading.loose, ignore_case)
    made.spans = reading.names_newline or (multiline and reading.takes_newline)
    made.by_line = reading.odd and not made.spans
    if not made.spans and not made.by_line:
        made.text = reading.confined
    made.risky = reading.risky
    if not reading.odd:
        _look_inside(made)
    return made


def _refused(why: str, pattern: str) -> ToolError:
    hint = "Use a simpler pattern, or fixed_strings=true to search for the text as it is."
    shown = pattern if len(pattern) <= 80 else pattern[:77] + "..."
    return ToolError(ErrorCode.INVALID_PARAMS, f"pattern '{shown}' is refused: {why}", hint)


def _bad(pattern: str, why: str) -> ToolError:
    why = f"{why} ({INSTEAD})" if INSTEAD else why
    return ToolError(
        ErrorCode.INVALID_PARAMS,
        f"pattern '{pattern}' is no regular expression: {why}",
        f"To search for it as text: fixed_strings=true, or pattern '{escaped(pattern)}'.",
    )


# ---- reading the source ----


class _Reading:
    """A pattern read token by token: `loose` is its source as it is compiled, `confined` within lines.

    `odd` patterns hold what is not understood here well enough to be rewritten.
    """

    def __init__(self, source: str) -> None:
        self.source = source
        self.odd = self.names_newline = self.takes_newline = False
        self.risky = False
        self._unbounded = 0
        self._groups = [_Group()]
        self._last: _Group | None = None
        tokens = list(TOKEN.finditer(source))
        flags = "".join(found[0] for found in tokens if found.lastgroup == "flags")
        self._dot_takes_newline = "s" in flags
        self.odd = bool(set(flags) - set("(?-:)imsau")) or "-" in flags
        loose, confined = [], []
        for found in tokens:
            kind, text = str(found.lastgroup), found[0]
            self._count(kind, text)
            own, inside = self._forms(kind, text)
            loose.append(own)
            confined.append(inside)
        self.loose, self.confined = "".join(loose), "".join(confined)

    def _forms(self, kind: str, text: str) -> tuple[str, str]:
        """A token as it is compiled, and so that it takes no newline."""
        if text in NEWLINES:
            self.names_newline = True
        if kind == "escape":
            return text, self._escape(text)
        if kind == "set":
            return text, self._set(text)
        if kind == "fuzzy":
            self._check_fuzzy(text)
            return "\\" + text, "\\" + text
        if text == "{":
            return "\\{", "\\{"
        if text == "." and self._dot_takes_newline:
            self.takes_newline = True
            return text, "[^\\n]"
        if text == "(" or kind == "comment":
            return text, text
        return text, text

    def _escape(self, text: str) -> str:
        letter = text[1]
        if letter.isalnum() and letter.isascii() and letter not in PLAIN_ESCAPES:
            self.odd = True
        if letter in "AZz":
            return "^" if letter == "A" else "$"
        if letter in "pPN":
            self.takes_newline = True
            return f"(?:(?!\\n){text})"
        if letter in TAKES_NEWLINE:
            self.takes_newline = True
            return {"s": "[^\\S\\n]", "W": "[^\\w\\n]", "D": "[^\\d\\n]"}[letter]
        return text

    def _set(self, text: str) -> str:
        if text.startswith("[^"):
            self.takes_newline = True
            body = text[2:]
            return f"[^\\n\\{body}" if body[0] in "]-^" else f"[^\\n{body}"
        if not regex.search(r"\\[^wdtS\]\[\\.^$*+?(){}|/\"'-]|\[:|[\0-\x1f]|\\-", text):
            return text
        self.takes_newline = True
        return f"(?:(?!\\n){text})"

    def _check_fuzzy(self, text: str) -> None:
        if any(FUZZY.fullmatch(part) for part in text[1:-1].split(",")):
            why = f"'{text}' would mean an approximate match, which is not offered"
            hint_text = text.replace("{", "\\{").replace("}", "\\}")
            raise ToolError(
                ErrorCode.INVALID_PARAMS,
                f"pattern '{self.source}' is refused: {why}",
                f"To search for the braces themselves write '{hint_text}', or set fixed_strings=true.",
            )

    def _count(self, kind: str, text: str) -> None:
        """Keep account of nesting and repetition."""
        here = self._groups[-1]
        if kind in {"open", "look"} or (kind == "flags" and text.endswith(":")):
            self._groups.append(_Group())
            if len(self._groups) > NESTING:
                raise _refused(f"its groups are nested deeper than {NESTING}", self.source)
        elif text == ")" and len(self._groups) > 1:
            self._last = self._groups.pop()
            self._groups[-1].absorb(self._last)
            return
        elif kind == "char" and text == "|":
            here.loops = True
        elif kind == "repeat":
            self._repeat(here, text)
        elif kind == "escape" and text[1] in "123456789g":
            self.risky = True
        self._last = None

    def _repeat(self, here: "_Group", text: str) -> None:
        counts = [int(count) for count in regex.findall(r"\d+", text)]
        inner = self._last.times if self._last else 1
        times = max([*counts, 1]) * inner
        if times > REPEATS:
            raise _refused(f"its counts ask for more than {REPEATS:,} repetitions", self.source)
        here.times = max(here.times, times)
        if text[0] in "*+" or text.rstrip("+?").endswith(",}") or times > 1:
            self._unbounded += 1
            self.risky |= self._unbounded > 1 or (self._last is not None and self._last.loops)
            here.loops = True


class _Group:
    """What is known of a group: the repetitions inside, and whether it can match in several ways."""

    __slots__ = ("loops", "times")

    def __init__(self) -> None:
        self.times = 1
        self.loops = False

    def absorb(self, inner: "_Group") -> None:
        self.times = max(self.times, inner.times)
        self.loops |= inner.loops


# ---- what re's own parser tells ----


def _look_inside(made: Plan) -> None:
    """Fill in what the syntax tree tells, where `re` reads the expression as `regex` does."""
    from re import _constants as kinds  # type: ignore[attr-defined]  # the parser re itself uses
    from re import _parser as parser  # type: ignore[attr-defined]  # not in typeshed
    from warnings import catch_warnings, simplefilter

    try:
        with catch_warnings():
            simplefilter("error")
            tree = parser.parse(made.text, made.flags & regex.IGNORECASE)
    except (Warning, ValueError, OverflowError, RecursionError, kinds.error):
        return
    if tree.state.flags & ~made.flags & int(regex.IGNORECASE):
        made.ignore_case = True
    ignore_case = bool(tree.state.flags & regex.IGNORECASE)
    made.may_be_empty = tree.getwidth()[0] == 0
    inside = _Inside(kinds)
    made.needles = () if ignore_case else (inside.needles(tree) or ())
    made.exact = not ignore_case and made.text.isascii() and inside.is_exact(tree)
    if len(made.needles) == 1 and len(made.needles[0]) <= SHORT_NEEDLE and not made.spans:
        made.core = inside.core(tree)


class _Inside:
    """Questions to a syntax tree of `re`; node kinds that are not listed here answer the safe way."""

    def __init__(self, kinds: "Any") -> None:
        self.kinds = kinds
        self._repeats = {kinds.MAX_REPEAT, kinds.MIN_REPEAT, kinds.POSSESSIVE_REPEAT}

    def needles(self, nodes: "Nodes") -> tuple[bytes, ...] | None:
        """Literals of which one is in every match, None when there is no such set."""
        kinds = self.kinds
        found: list[tuple[bytes, ...]] = []
        run: list[str] = []
        for kind, value in nodes:
            if kind is kinds.LITERAL:
                run.append(chr(value))
                continue
            if kind is kinds.AT:
                continue
            found.append((_encoded(run),))
            inner = self._inner_needles(kind, value)
            if kind is kinds.BRANCH and inner:  # `re` takes the beginning that branches share out
                inner = self._with_prefix(run, value[1]) or inner
            run = []
            if inner:
                found.append(inner)
        found.append((_encoded(run),))
        return max((one for one in found if all(one)), key=_worth, default=None)

    def _with_prefix(self, run: "list[str]", branches: "Any") -> tuple[bytes, ...]:
        """`run` and each branch as one literal, when the branches are nothing but literals."""
        literal = self.kinds.LITERAL
        if not all(kind is literal for branch in branches for kind, _ in branch):
            return ()
        return tuple(_encoded([*run, *(chr(code) for _, code in branch)]) for branch in branches)

    def _inner_needles(self, kind: "Any", value: "Any") -> tuple[bytes, ...] | None:
        kinds = self.kinds
        if kind is kinds.SUBPATTERN:
            return None if value[1] else self.needles(value[3])
        if kind is kinds.ATOMIC_GROUP:
            return self.needles(value)
        if kind in self._repeats:
            return self.needles(value[2]) if value[0] else None
        if kind is kinds.BRANCH:
            choices = [self.needles(branch) for branch in value[1]]
            flat = tuple(dict.fromkeys(one for choice in choices for one in choice or ()))
            return flat if all(choices) and len(flat) <= NEEDLE_CHOICES else None
        return None

    def core(self, nodes: "Nodes") -> str:
        """The first literals of a sequence that a character of a set follows, as an expression."""
        kinds = self.kinds
        run = ""
        for kind, value in nodes:
            if kind is kinds.LITERAL and value < 0x80:
                run += regex.escape(chr(value))
                continue
            if kind in self._repeats and value[0] and len(value[2]) == 1:
                kind, value = value[2][0]  # noqa: PLW2901 - its first round
            if run and kind is kinds.IN and self._is_exact_set(value, False):
                return run + self._class(value)
            run = ""
        return ""

    def _class(self, items: "Nodes") -> str:
        spelled = ""
        for kind, value in items:
            first, last = (value, value) if kind is self.kinds.LITERAL else value
            spelled += f"\\x{first:02x}-\\x{last:02x}"
        return f"[{spelled}]"

    def is_exact(self, nodes: "Nodes", repeated: bool = False) -> bool:
        """True when bytes of UTF-8 give the same matches as the text; `repeated`: any number of times."""
        return all(self._is_exact(kind, value, repeated) for kind, value in nodes)

    def _is_exact(self, kind: "Any", value: "Any", repeated: bool) -> bool:
        kinds = self.kinds
        if kind is kinds.LITERAL:
            return bool(value < 0x80)
        if kind is kinds.AT:
            return value in {kinds.AT_BEGINNING, kinds.AT_END}
        if kind is kinds.SUBPATTERN:
            return not value[1] and not value[2] and self.is_exact(value[3])
        if kind is kinds.BRANCH:
            return all(self.is_exact(branch) for branch in value[1])
        if kind in self._repeats:
            least, most, body = value
            return self.is_exact(body, most is kinds.MAXREPEAT and least <= 1 and len(body) == 1)
        if kind in {kinds.ANY, kinds.NOT_LITERAL}:  # a character beyond ASCII is several bytes
            return repeated
        return kind is kinds.IN and self._is_exact_set(value, repeated)

    def _is_exact_set(self, items: "Nodes", repeated: bool) -> bool:
        kinds = self.kinds
        for kind, value in items:
            if kind is kinds.NEGATE:
                if not repeated:
                    return False
            elif kind is kinds.LITERAL:
                if value >= 0x80:
                    return False
            elif kind is not kinds.RANGE or value[1] >= 0x80:
                return False
        return True


def _encoded(run: "list[str]") -> bytes:
    return "".join(run).encode("utf-8", "surrogatepass")


def _worth(needles: tuple[bytes, ...]) -> tuple[int, int]:
    """The longest is the rarest, and fewer choices are fewer scans."""
    return min(map(len, needles)), -len(needles)


def variants(
    pattern: str, *, fixed_strings: bool, ignore_case: bool
) -> "Iterator[tuple[str, bool, bool]]":
    """What a second look may try instead, as (what is said of it, fixed_strings, ignore_case)."""
    if not ignore_case and pattern.lower() != pattern.upper():
        yield "ignore_case=true", fixed_strings, True
    if not fixed_strings and escaped(pattern) != pattern:
        yield "fixed_strings=true", True, ignore_case
