"""A glob pattern cut at its slashes into tests of single names; reads no files.

Every directory is asked only what may lie in it and which of its folders lead on, so that no expression
ever sees more than one name and the walk goes nowhere in vain.  Parts of letters and stars are compared
by text methods; for all others wcmatch translates, and `regex` matches under a time limit.
"""

from toolroll import carried
from toolroll.errors import ErrorCode, ToolError
from toolroll.globs import PATTERN_CHARS, Names
from toolroll.paths import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Parts = tuple["Part | None", ...]  # None for `**`
    Live = tuple[
        tuple[Parts, int], ...
    ]  # patterns that may still match, each from its n-th part on
    Test = Callable[[str], object]
    Chars = tuple[str, bool]  # characters, and whether it must be one of them

CHOICES = 1000
"""Most patterns that the braces of one may stand for: wcmatch's own limit."""

EXPANDED_CHARS = 64 * 1024
"""Most characters of all of them together: `regex` compiles 40 kB of the worst in 0.1 s."""

NAME_S = 0.1
"""How long one name may take; usual ones take 2 microseconds.  A name has 255 bytes, and at that length
the limit of `regex` was never late by more than as much again."""

STAGES = 1000
"""Kept stages of one pattern: a usual one has two or three."""

EXACT, START, END, STARRED, WILD, MIXED = range(6)
ANY: "Chars" = ("", False)


class Part:
    """What stands between two slashes: how to compare, with what, and the text it came from."""

    __slots__ = ("_tests", "kind", "texts")

    def __init__(self, kind: int, texts: "tuple[str, ...]") -> None:
        self.kind = kind
        self.texts = texts
        self._tests: list[Names | None] = [None, None]

    @property
    def names_a_dot(self) -> bool:
        """True when it can match a dotted name as a shell would (for WILD wcmatch decides)."""
        return self.kind == WILD or (self.kind != END and self.texts[0].startswith("."))

    @property
    def is_slow(self) -> bool:
        """True when one name might take for ever: three stars take 30 ms at worst, groups any time."""
        text = self.texts[0]
        return self.kind == WILD and ("(" in text or text.count("*") > 3)

    def fits(self, name: str, *, dotted: bool) -> bool:
        """True when it matches `name`."""
        test = self._tests[dotted]
        if test is None:
            test = self._tests[dotted] = names((self,), dotted=dotted)
        return test.has(name)


class Stage:
    """A pattern as it is seen from one directory.

    `files` and `dotted_files` test the names of files there, those that begin with a dot apart; `others`
    is what is seen below a folder that no part names, None when nothing can match there, and `has_doors`
    says that some folders are named.  `is_slow` tests may take up to NAME_S for a name.
    """

    __slots__ = (
        "_beyond",
        "_doors",
        "_dotted_doors",
        "_live",
        "_longest",
        "_only",
        "_pool",
        "_texts",
        "dotted_files",
        "files",
        "has_doors",
        "is_slow",
        "others",
    )

    def __init__(self, live: "Live", pool: "dict[Live, Stage | None]") -> None:
        self._live = live
        self._pool = pool
        last = [part for parts, at in live if (part := _last(parts, at))]
        doors = [part for parts, at in live if (part := _door(parts, at))]
        self.is_slow = any(part.is_slow for part in last)
        self.has_doors = bool(doors)
        self.files, self.dotted_files = names(last), names(last, dotted=True)
        self._only = _kind_of(last)
        self._longest = max(last[0].texts, key=len) if self._only == STARRED else ""
        self._texts = tuple(part.texts[0] for part in last)
        self._doors, self._dotted_doors = names(doors), names(doors, dotted=True)
        self._beyond: dict[str, Stage | None] = {}
        self.others = self._made(_passed(live))

    def matching(self, names: "Sequence[str]") -> "list[str]":
        """Those of `names` that are files that match here."""
        kind, texts = self._only, self._texts
        if kind == END:
            return [name for name in names if name.endswith(texts)]
        if kind == EXACT:
            return [name for name in names if name in texts]
        has = self.files.wild if kind in (STARRED, WILD) else None
        if has is None:
            return [name for name in names if self.files.has(name)]
        longest = self._longest
        return [name for name in names if longest in name and has(name)]

    def below(self, name: str) -> "Stage | None":
        """The stage in the folder `name`; None when nothing can match there."""
        if not self._doors.has(name):
            return self.others
        if name not in self._beyond:
            if len(self._beyond) > STAGES:
                self._beyond.clear()
            self._beyond[name] = self._made(_passed(self._live) + _entered(self._live, name))
        return self._beyond[name]

    def below_dotted(self, name: str) -> "Stage | None":
        """The same for a dotted name, which a part must name; `**` does not."""
        if not self._dotted_doors.has(name):
            return None
        return self._made(_entered(self._live, name, dotted=True))

    def _made(self, live: "Live") -> "Stage | None":
        live = tuple(dict.fromkeys(live))
        if live == self._live:
            return self
        if live not in self._pool:
            if len(self._pool) > STAGES:
                self._pool.clear()
            self._pool[live] = Stage(live, self._pool) if live else None
        return self._pool[live]


class Glob:
    """A whole pattern: `fixed` are the folders that every match lies in, `stage` is what is seen from there.

    Raises: ToolError INVALID_PARAMS for what cannot be a pattern.
    """

    __slots__ = ("fixed", "stage")

    def __init__(self, pattern: str) -> None:
        if len(pattern) > PATTERN_CHARS:
            raise _invalid(pattern, f"it has {len(pattern)} characters, more than {PATTERN_CHARS}")
        choices = list(dict.fromkeys(_choices(pattern)))
        if sum(map(len, choices)) > EXPANDED_CHARS:
            raise _invalid(pattern, f"its braces stand for more than {EXPANDED_CHARS} characters")
        try:
            patterns = [parts for choice in choices if (parts := _parts(choice, pattern))]
            if not patterns:
                raise _invalid(pattern, "it names nothing", "'**' stands for every file.")
            depth = _common(patterns)
            self.fixed = tuple(part.texts[0] for part in patterns[0][:depth] if part)
            self.stage = Stage(tuple((parts, depth) for parts in patterns), {})
        except RecursionError:
            raise _invalid(pattern, "it is nested too deeply") from None


# ---- from text to parts ----


def _choices(pattern: str) -> "Iterable[str]":
    """`pattern` with its braces spelled out as bash does."""
    if "{" not in pattern:
        return [pattern]
    plain = _plain_choices(pattern)
    if plain is not None:
        return plain
    from bracex import ExpansionLimitException, expand

    try:
        return expand(pattern, keep_escapes=True, limit=CHOICES)
    except ExpansionLimitException:
        raise _invalid(pattern, f"its braces stand for more than {CHOICES} patterns") from None
    except RecursionError:
        raise _invalid(pattern, "its braces are nested too deeply") from None


def _plain_choices(pattern: str) -> list[str] | None:
    """The same for lists in single braces only, which need no import; None for all else."""
    if "\\" in pattern or ".." in pattern or "$" in pattern:
        return None
    first, *groups = pattern.split("{")
    done = [first]
    if "}" in first:
        return None
    for group in groups:
        inside, closed, after = group.partition("}")
        choices = inside.split(",")
        if not closed or "}" in after or len(choices) < 2 or len(done) * len(choices) > CHOICES:
            return None
        done = [text + choice + after for text in done for choice in choices]
    return done


def _parts(glob: str, pattern: str) -> "Parts":
    """The parts of one of the choices of `pattern`; none for one that names nothing."""
    parts: list[Part | None] = []
    for text in _cut(glob, pattern):
        if text == "..":
            raise _invalid(pattern, "'..' has no place in it", "Give the folder above as path.")
        if text == "**" and parts[-1:] != [None]:
            parts.append(None)
        elif text not in ("", ".", "**"):
            parts.append(_part(text))
    if glob.endswith("/") and parts and parts[-1]:
        parts.append(None)  # what lies in a folder, as only files are found
    return tuple(parts)


def _cut(glob: str, pattern: str) -> "Iterator[str]":
    """What stands between the slashes of `glob`."""
    start = at = 0
    while at < len(glob):
        if glob[at] == "/":
            yield glob[start:at]
            start = at + 1
        elif glob[at] == "\\":
            at += glob[at + 1 : at + 2] not in ("/", "")
        elif glob[at] == "[":
            at = _class_end(glob, at)
        elif glob[at] in "?*+@!" and glob[at + 1 : at + 2] == "(":
            end = _group_end(glob, at + 1)
            if "/" in glob[at : end + 1]:
                hint = "Use braces: {a,b/c}."
                raise _invalid(
                    pattern, "a group like @(a|b) holds for one name, not across '/'", hint
                )
            at = max(at, end)
        at += 1
    yield glob[start:]


def _class_end(glob: str, at: int) -> int:
    """The place of the bracket that closes the one at `at`; `at` itself when none does in this part."""
    end = at + 1 + (glob[at + 1 : at + 2] in ("!", "^"))
    end += glob[end : end + 1] == "]"
    while end < len(glob) and glob[end] not in "]/":
        closing = glob.find(":]", end + 2) if glob.startswith("[:", end) else -1
        end = closing + 2 if closing > 0 else end + 1 + (glob[end] == "\\")
    return end if glob[end : end + 1] == "]" else at


def _group_end(glob: str, at: int) -> int:
    """The place of the parenthesis that closes the one at `at`; -1 when none does."""
    depth = 0
    while at < len(glob):
        if glob[at] == "\\":
            at += 1
        elif glob[at] == "[":
            at = _class_end(glob, at)
        elif glob[at] == "(":
            depth += 1
        elif glob[at] == ")":
            depth -= 1
            if not depth:
                return at
        at += 1
    return -1


def _part(text: str) -> Part:
    if any(char in text for char in "?[\\") or any(f"{mark}(" in text for mark in "*+@!"):
        return Part(WILD, (text,))
    pieces = text.split("*")
    if len(pieces) == 1:
        return Part(EXACT, (text,))
    head, tail = pieces[0], pieces[-1]
    between = tuple(piece for piece in pieces[1:-1] if piece)
    if between or (head and tail):
        return Part(STARRED, (head, *between, tail))
    return Part(START, (head,)) if head else Part(END, (tail,))


def _common(patterns: "Sequence[Parts]") -> int:
    """How many parts at the start are plain names of folders, the same in all the patterns."""
    depth = 0
    while all(len(parts) > depth + 1 for parts in patterns):
        heads = {_plain_name(parts[depth]) for parts in patterns}
        if len(heads) > 1 or "" in heads:
            break
        depth += 1
    return depth


def _plain_name(part: Part | None) -> str:
    return part.texts[0] if part and part.kind == EXACT else ""


# ---- from parts to tests of names ----


def names(parts: "Iterable[Part]", *, dotted: bool = False) -> Names:
    """A test of names by any of the parts; with `dotted` only by those that name the dot."""
    texts: tuple[list[str], ...] = ([], [], [], [], [])
    tests: list[Test] = []
    for part in parts:
        if dotted and not part.names_a_dot:
            continue
        if part.kind == STARRED:
            tests.append(_starred(part.texts))
        else:
            texts[part.kind].append(part.texts[0])
    globs = dict.fromkeys(texts[WILD])
    plain = {glob: test for glob in globs if (test := _plain_test(glob, dotted=dotted))}
    tests += plain.values()
    if len(plain) < len(globs):
        tests.append(_guarded([glob for glob in globs if glob not in plain], dotted=dotted))
    return Names(texts[EXACT], texts[START], texts[END], tests)


def _starred(texts: "tuple[str, ...]") -> "Test":
    """A test of names that begin with the first text, end with the last, and hold the others in order."""
    head, *between, tail = texts
    least = sum(map(len, texts))

    def fits(name: str) -> bool:
        if len(name) < least or not name.startswith(head) or not name.endswith(tail):
            return False
        at, end = len(head), len(name) - len(tail)
        for text in between:  # the first place is as good as any other
            at = name.find(text, at, end) + len(text)
            if at < len(text):
                return False
        return True

    return fits


def _guarded(globs: "list[str]", *, dotted: bool) -> "Test":
    """A test of names by wcmatch's expressions for `globs`, each name within its time."""
    tails = tuple(map(_tail, globs))
    is_slow = any(Part(WILD, (one,)).is_slow for one in globs)
    limit = {"timeout": NAME_S} if is_slow else {}
    match: Callable[..., object] | None = None

    def fits(name: str) -> object:
        nonlocal match
        if not name.endswith(tails):  # a tenth of the price of an expression
            return False
        if match is None:
            match = _compiled(globs, dotted=dotted, is_slow=is_slow)
        try:
            return match(name, **limit)
        except TimeoutError:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"the pattern takes too long on the name {quoted(name)} (more than {NAME_S} s)",
                "Use a simpler one: fewer stars, and no group that repeats inside another.",
            ) from None

    return fits


def _tail(glob: str) -> str:
    """The plain text that every match of `glob` ends with."""
    last = max(map(glob.rfind, "*?[]()|\\!@+"))
    return glob[last + 1 + (glob[last] == "\\") :]


def _compiled(globs: "list[str]", *, dotted: bool, is_slow: bool) -> "Callable[..., object]":
    """The matcher of names: that of `regex`, which knows a time limit, only where one is needed."""
    from wcmatch import glob

    flags = glob.EXTGLOB | glob.FORCEUNIX | (0 if dotted else glob.DOTMATCH)
    try:
        found = [text for one in globs for text in glob.translate(one, flags=flags)[0]]
        expression = "|".join(found)
        if not is_slow:
            import re

            return re.compile(expression).fullmatch
        return _limited(expression, globs[0])
    except RecursionError:
        raise _invalid(globs[0], "it is nested too deeply") from None


def _limited(expression: str, glob: str) -> "Callable[..., object]":
    try:
        import regex
    except ImportError as missing:
        why = "; ".join(carried.problems) or str(missing)
        raise ToolError(
            ErrorCode.EXECUTION_ERROR,
            f"{quoted(glob)} could run for ever, and what would stop it cannot be had: {why}",
            "Use a simpler one: no group that repeats inside another.",
        ) from None
    return regex.compile(expression).fullmatch


def _plain_test(glob: str, *, dotted: bool) -> "Test | None":
    """A test of names for stars, question marks, plain sets and plain text; None for all else.

    They are common, and the import of wcmatch and `re` would cost a small tree's whole search twice.
    """
    spans: list[list[Chars]] = [[]]
    at = 0
    while at < len(glob):
        char = glob[at]
        end = glob.find("]", at)
        if char == "*":
            spans.append([])
        elif char == "[":
            found = _plain_set(glob[at + 1 : max(end, at + 1)])
            if found is None:
                return None
            spans[-1].append(found)
            at = end
        elif char == "?" or char.isalnum() or char in "_-.":
            spans[-1].append(ANY if char == "?" else (char, True))
        else:
            return None
        at += 1
    if dotted and glob[0] in "*?[":
        return lambda _: False
    return _spanned(spans)


def _plain_set(inside: str) -> "Chars | None":
    """The characters that stand between brackets, when they are letters, digits and their ranges."""
    negated = inside[:1] == "!"
    rest = inside[negated:]
    chars = ""
    while rest:
        is_range = rest[1:2] == "-"
        low, high = rest[0], rest[2:3] if is_range else rest[0]
        if not (low + high).isalnum() or not rest.isascii() or low > high:
            return None
        chars += "".join(map(chr, range(ord(low), ord(high) + 1)))
        rest = rest[1 + 2 * is_range :]
    return (chars, not negated) if chars else None


def _spanned(spans: "list[list[Chars]]") -> "Test":
    """A test of names that the spans follow one another in, the first at the start and the last at the end."""
    head, *between, tail = spans if len(spans) > 1 else (spans[0], [])
    least = sum(map(len, spans))
    is_exact = len(spans) == 1
    outer = [*_checks(tail, -len(tail)), *_checks(head, 0)]
    inner = [(len(span), _checks(span, 0)) for span in between]

    def fits(name: str) -> bool:
        if len(name) < least or (is_exact and len(name) > least):
            return False
        for at, chars, wanted in outer:
            if (name[at] in chars) is not wanted:
                return False
        at, end = len(head), len(name) - len(tail)
        for size, checks in inner:  # the first place is as good as any other
            while at + size <= end and not _stands(name, at, checks):
                at += 1
            at += size
        return at <= end

    return fits


def _checks(span: "list[Chars]", first: int) -> "list[tuple[int, str, bool]]":
    """What is to be looked at, with the places counted from `first`."""
    return [(at, *chars) for at, chars in enumerate(span, first) if chars != ANY]


def _stands(name: str, at: int, checks: "list[tuple[int, str, bool]]") -> bool:
    return all((name[at + place] in chars) is wanted for place, chars, wanted in checks)


# ---- one step down ----


def _kind_of(parts: "Sequence[Part]") -> int:
    """How names are compared when one comparison does it for all of `parts`; MIXED when none does."""
    kinds = {part.kind for part in parts}
    if not kinds:
        return EXACT
    kind = kinds.pop()
    return MIXED if kinds or kind == START or (kind == STARRED and len(parts) > 1) else kind


def _last(parts: "Parts", at: int) -> Part | None:
    """The part that a file's name must match here; None when more is to come."""
    rest = len(parts) - at
    if rest == 1:
        return parts[at] or Part(END, ("",))
    return parts[at + 1] if rest == 2 and parts[at] is None else None


def _door(parts: "Parts", at: int) -> Part | None:
    """The part that a folder's name must match for the pattern to go on behind it."""
    at += parts[at] is None
    return parts[at] if at + 1 < len(parts) else None


def _passed(live: "Live") -> "Live":
    """What goes on below any folder: the patterns that stand at `**`."""
    return tuple((parts, at) for parts, at in live if parts[at] is None)


def _entered(live: "Live", name: str, *, dotted: bool = False) -> "Live":
    """What goes on below `name` because a part matches it."""
    return tuple(
        (parts, at + 1 + (parts[at] is None))
        for parts, at in live
        if (part := _door(parts, at)) and part.fits(name, dotted=dotted)
    )


def _invalid(pattern: str, why: str, hint: str = "") -> ToolError:
    shown = pattern if len(pattern) <= 80 else pattern[:77] + "..."
    return ToolError(
        ErrorCode.INVALID_PARAMS, f"the pattern {quoted(shown)} cannot be used: {why}", hint
    )
