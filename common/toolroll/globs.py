"""Glob patterns, as git and as operators write them, compiled to matchers of names; reads no files.

A pattern is cut at its slashes and each piece matches one name, so no regular expression ever spans
a path: going down into a directory is a step of a small automaton (`Patterns.below`), and what is left
to ask there is whether one name is in a set, starts or ends with a text, or matches a small expression.
"""

from itertools import pairwise
from os import fsencode

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence

    Piece = tuple[int, tuple[str, ...]]  # how to compare, and with what
    Parts = tuple["Piece | None", ...]  # the pieces of one pattern; None for `**`
    Live = tuple[tuple["Rule", int], ...]  # rules that may still match, each from its n-th part on
    Atom = tuple[str, str]  # the characters that fit (when few), and the same as an expression
    Runs = tuple[tuple["Names", bool], ...]

PATTERN_CHARS = 4096
"""Longest pattern that is looked at: PATH_MAX, no path is longer for the system calls of the user."""

LIST_PATTERNS = 1000
"""Most patterns in an operator's list once braces are expanded, and most expressions of an ignore file:
a thousand alternatives cost 0.3 ms a name, so a hostile file slows a walk but cannot stop it."""

CHOICES = 16
"""A piece with classes is spelled out up to this many literal names: `*.py[cod]` is three endings."""

EXACT, START, END, WILD = range(4)
ANY_NAME: "Piece" = (END, ("",))
STAR: "Atom" = ("", "*")
ONE: "Atom" = ("", ".")

# git's own tables (ASCII only; its isspace knows no vertical tab and no form feed).
CLASSES = {
    "alnum": "0-9A-Za-z",
    "alpha": "A-Za-z",
    "blank": " \t",
    "cntrl": "\0-\x1f\x7f",
    "digit": "0-9",
    "graph": "!-~",
    "lower": "a-z",
    "print": " -~",
    "punct": "!-/:-@[-`{-~",
    "space": " \t\n\r",
    "upper": "A-Z",
    "xdigit": "0-9A-Fa-f",
}


class Rule:
    """One pattern: what it says, whether of directories only, and its parts."""

    __slots__ = ("directory_only", "ignored", "parts")

    def __init__(self, ignored: bool, directory_only: bool, parts: "Parts") -> None:
        self.ignored = ignored
        self.directory_only = directory_only
        self.parts = parts


class Names:
    """Names that any of some pieces match, laid out for the fewest steps a name.

    A walk asks in line, so the fields are public.  (A set of extensions instead of the tuple of
    endings was measured: slower for the 16 endings of a usual ignore file.)
    """

    __slots__ = ("ends", "exact", "starts", "wild", "wilds")

    def __init__(
        self,
        exact: "Iterable[str]" = (),
        starts: "Iterable[str]" = (),
        ends: "Iterable[str]" = (),
        wilds: "Iterable[Callable[[str], object]]" = (),
    ) -> None:
        self.exact = frozenset(exact)
        self.starts = tuple(dict.fromkeys(starts))
        self.ends = tuple(dict.fromkeys(ends))
        self.wilds = tuple(wilds)
        self.wild = _either(self.wilds)

    def has(self, name: str) -> bool:
        """True when one of the pieces matches `name`."""
        return (
            name in self.exact
            or name.endswith(self.ends)
            or name.startswith(self.starts)
            or (self.wild is not None and bool(self.wild(name)))
        )


class Verdicts:
    """What ordered runs of patterns say of the names in one directory; `named` are all they speak of."""

    __slots__ = ("named", "runs")

    def __init__(self, runs: "Sequence[tuple[Names, bool]]") -> None:
        self.runs = tuple(_joined(runs))
        self.named = _union([names for names, _ in self.runs])

    def of(self, name: str) -> bool | None:
        """True for ignored, False for taken back in by a `!` pattern, None for no opinion."""
        for names, ignored in self.runs:
            if names.has(name):
                return ignored
        return None


class Patterns:
    """The patterns of one file or list as they are seen from one directory."""

    __slots__ = ("_doors", "_elsewhere", "_live", "_pool", "_runs")

    def __init__(self, live: "Live", pool: "dict[Live, Patterns]") -> None:
        self._live = live
        self._pool = pool
        self._runs: list[Runs | None] = [None, None]
        self._doors: Names | None = None
        self._elsewhere: Patterns | None = None

    @property
    def is_still(self) -> bool:
        """True when they look the same from every directory below."""
        return all(rule.parts[at] is None and len(rule.parts) - at <= 2 for rule, at in self._live)

    def runs(self, is_directory: bool) -> "Runs":
        """Neighbouring patterns of one opinion as one set of names; what is written last comes first."""
        runs = self._runs[is_directory]
        if runs is None:
            said = [
                (piece, rule.ignored)
                for rule, at in reversed(self._live)
                if (is_directory or not rule.directory_only) and (piece := _last(rule.parts, at))
            ]
            runs = self._runs[is_directory] = tuple(_grouped(said))
        return runs

    def below(self, name: str) -> "Patterns | None":
        """The patterns as seen from the child directory `name`; None when nothing can match there."""
        if self._doors is None:
            self._elsewhere = self._made(_stepped(self._live, None))
            self._doors = _names(_doors(self._live))
        if self._doors.has(name):
            return self._made(_stepped(self._live, name))
        return self._elsewhere

    def verdict(self, path: str, is_directory: bool) -> bool | None:
        """What the last pattern that matches `path` itself says: ignored, taken back in, or nothing.

        Nothing is asked of the directories above it: a path below an ignored one is the caller's.
        """
        *folders, name = path.split("/")
        here: Patterns | None = self
        for folder in folders:
            here = here.below(folder) if here else None
        return Verdicts(here.runs(is_directory)).of(name) if here else None

    def _made(self, live: "Live") -> "Patterns | None":
        if not live:
            return None
        if live == self._live:
            return self
        if len(self._pool) > 200:
            self._pool.clear()
        return self._pool.setdefault(live, Patterns(live, self._pool))


def ignore_patterns(content: bytes) -> Patterns | None:
    """The patterns of an ignore file's bytes, None when it has none; gitignore(5), as git 2.39 reads it.

    git compares bytes (`?` is half an `é`), so names that are not ASCII go through `octets` first.
    """
    text = content.removeprefix(b"\xef\xbb\xbf").decode("latin-1")
    rules: list[Rule] = []
    wild = 0
    for line in text.split("\n"):
        for rule in _ignore_rules(line):
            wild += (is_wild := any(part and part[0] == WILD for part in rule.parts))
            if not is_wild or wild <= LIST_PATTERNS:
                rules.append(rule)
    return _patterns(rules)


def octets(name: str) -> str:
    """The bytes of `name` as one character each: the form that `ignore_patterns` compares."""
    return name if name.isascii() else fsencode(name).decode("latin-1")


def matcher(patterns: "Sequence[str]") -> "Callable[[str, bool], bool]":
    """A test of (relative path, is it a directory): does any pattern of an operator's list cover it.

    `*.log` is a name at any depth, `docs/*.log` a path at any depth, `/docs` only the one at the top,
    `docs/` only a directory.  Braces hold choices (`*.{c,h}`).  What matches a directory covers
    everything below it, and so `docs/**` covers `docs` itself too: a closed place has no visible
    inside.  There are no comments and no `!`; a `[` that is never closed is itself.

    Raises: ToolError INVALID_PARAMS for a pattern that is too long or stands for too many.
    """
    globs = [glob for pattern in patterns for glob in _expanded(pattern)]
    rules = [rule for glob in globs if (rule := _list_rule(glob))]
    if len(rules) > LIST_PATTERNS:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"{len(patterns)} patterns stand for {len(rules)}, more than {LIST_PATTERNS}",
            "Use fewer patterns or braces.",
        )
    top = _patterns(rules)

    def covers(path: str, is_directory: bool) -> bool:
        here = top
        names = [name for name in path.split("/") if name not in {"", "."}]
        for depth, name in enumerate(names, 1):
            if here is None:
                return False
            if any(run.has(name) for run, _ in here.runs(is_directory or depth < len(names))):
                return True
            here = here.below(name)
        return False

    return covers


# ---- from lines to rules ----


def _ignore_rules(line: str) -> "Iterator[Rule]":
    line = _trimmed(line.removesuffix("\r").partition("\0")[0])
    if not line or line[0] == "#" or len(line) > PATTERN_CHARS:
        return
    ignored = line[0] != "!"
    glob = line if ignored else line[1:]
    directory_only = glob.endswith("/")
    glob = glob.removesuffix("/")
    if "/" not in glob:
        glob = "**/" + _single_stars(glob)
    for variant in _variants(glob.removeprefix("/")):
        parts = _parts(variant, strict=True)
        if parts:
            yield Rule(ignored, directory_only, parts)


def _list_rule(glob: str) -> Rule | None:
    names = [name for name in glob.split("/") if name]
    anchored = glob.startswith("/")
    parts = _parts("/".join(names if anchored else ["**", *names]), strict=False)
    while len(parts) > 1 and parts[-1] is None:
        parts = parts[:-1]
    return Rule(True, glob.endswith("/"), parts) if names and parts else None


def _trimmed(line: str) -> str:
    """`line` without its trailing blanks, of which an escaped one is not one."""
    bare = line.rstrip(" ")
    escapes = len(bare) - len(bare.rstrip("\\"))
    return bare + " " if escapes % 2 and len(bare) < len(line) else bare


def _single_stars(glob: str) -> str:
    while "**" in glob:
        glob = glob.replace("**", "*")
    return glob


def _variants(glob: str) -> "Iterator[str]":
    """`glob` in forms where `**` stands for whole directories only.

    git compares the text before the first special character by itself and then takes a `**` that
    follows for one at a start: `foo**/bar` is `foobar` and everything like `foo*/**/bar`.
    """
    at = next((i for i, char in enumerate(glob) if char in "*?[\\"), len(glob))
    rest = glob[at:].lstrip("*")
    joined = at == 0 or glob[at - 1] == "/" or not glob.startswith("**", at)
    if joined or (rest and not rest.startswith(("/", "\\/"))):
        yield glob
        return
    if rest.startswith("/"):
        yield from _variants(glob[:at] + rest[1:])
    elif not rest:
        yield glob[:at] + "*"
    yield glob[:at] + "*/**" + rest.removeprefix("\\")


def _expanded(pattern: str) -> list[str]:
    """`pattern` with its braces spelled out, as a shell would: `{a,b}` nests, `{a}` is itself."""
    if len(pattern) > PATTERN_CHARS:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"the pattern '{pattern[:40]}...' has {len(pattern)} characters, more than {PATTERN_CHARS}",
            "Use a shorter pattern.",
        )
    waiting, done = [pattern], []
    while waiting:
        text = waiting.pop()
        braces = _braces(text)
        if braces is None:
            done.append(text)
            continue
        start, end, choices = braces
        waiting += [text[:start] + choice + text[end:] for choice in reversed(choices)]
        if len(waiting) + len(done) > LIST_PATTERNS:
            raise ToolError(
                ErrorCode.INVALID_PARAMS,
                f"the braces of '{pattern}' stand for more than {LIST_PATTERNS} patterns",
                "Use fewer choices, or a star.",
            )
    return done


def _braces(text: str) -> tuple[int, int, list[str]] | None:
    """Where the first group of choices starts and ends, and its choices."""
    open_at: list[list[int]] = []  # for each open brace: its place, then those of its commas
    found: tuple[int, int, list[str]] | None = None
    at = 0
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "{":
            open_at.append([at])
        elif char == "," and open_at:
            open_at[-1].append(at)
        elif char == "}" and open_at:
            cuts = [*open_at.pop(), at]
            if len(cuts) > 2:
                choices = [text[start + 1 : end] for start, end in pairwise(cuts)]
                found = (cuts[0], at + 1, choices)
                if not open_at:
                    return found
        at += 1
    return found


# ---- from globs to parts ----


def _parts(glob: str, *, strict: bool) -> "Parts":
    """The pieces of a pattern; empty when nothing can match (strict: as git reads a broken one)."""
    parts: list[Piece | None] = []
    at = 0
    while at <= len(glob):
        stars, after = _directories(glob, at)
        if stars:
            parts += stars if not parts or parts[-1] is not None else stars[:-1]
            at = after
            continue
        atoms, at = _atoms(glob, at, strict=strict)
        if not atoms:
            return ()
        parts.append(_piece(atoms))
    return tuple(parts)


def _directories(glob: str, at: int) -> "tuple[list[Piece | None], int]":
    """The parts of a `**` that fills the place between two slashes, and where the next part starts."""
    end = at
    while glob.startswith("*", end):
        end += 1
    if end - at < 2:
        return [], at
    if end == len(glob) or glob[end] == "/":
        return [None], end + 1
    if glob.startswith("\\/", end):  # git wants at least one directory before an escaped slash
        return [ANY_NAME, None], end + 2
    return [], at


def _atoms(glob: str, at: int, *, strict: bool) -> "tuple[list[Atom], int]":
    """The atoms up to the next slash, and the place behind it; none for a piece that cannot match."""
    atoms: list[Atom] = []
    broken = False
    while at < len(glob) and glob[at] != "/":
        char = glob[at]
        at += 1
        if char == "*":
            if atoms[-1:] != [STAR]:
                atoms.append(STAR)
        elif char == "?":
            atoms.append(ONE)
        elif char == "[" and (found := _class(glob, at)):
            atom, at = found
            atoms.append(atom)
        elif char == "\\" and glob[at : at + 1] == "/":
            break
        elif char == "\\" and at < len(glob):
            atoms.append(_literal(glob[at]))
            at += 1
        else:
            broken |= char in "[\\"
            atoms.append(_literal(char))
    return [] if broken and strict else atoms, at + 1


def _literal(char: str) -> "Atom":
    return char, char if char.isalnum() or not char.isascii() else "\\" + char


def _class(glob: str, at: int) -> "tuple[Atom, int] | None":
    """The class whose inside starts at `at` and the place behind it, None when it is not one."""
    negated = glob[at : at + 1] in {"!", "^"}
    at += negated
    ranges: list[tuple[str, str]] = []
    low = ""  # what a `-` that follows would make a range with
    first = True
    while first or glob[at : at + 1] != "]":
        first = False
        char = glob[at : at + 1]
        if char == "[" and glob[at + 1 : at + 2] == ":":
            end = glob.find("]", at + 2)
            if end < 0:
                return None
            if end > at + 2 and glob[end - 1] == ":":
                known = CLASSES.get(glob[at + 2 : end - 1])
                if known is None:
                    return None
                ranges += _class_ranges(known)
                low, at = "", end + 1
                continue
        if char == "-" and low and glob[at + 1 : at + 2] not in {"", "]"}:
            char, at = _member(glob, at + 1)
            ranges += [(low, char)] * (low <= char)
            low = ""
        else:
            low = char
            if char == "\\":
                low, at = _member(glob, at)
            else:
                at += 1
            char = low
            ranges.append((low, low))
        if not char:
            return None
    return _set(ranges, negated=negated), at + 1


def _member(glob: str, at: int) -> tuple[str, int]:
    """The character at `at` that ends a range or follows a backslash, and the place behind it."""
    at += glob[at] == "\\"
    return glob[at : at + 1], at + 1


def _class_ranges(spelled: str) -> "Iterator[tuple[str, str]]":
    at = 0
    while at < len(spelled):
        width = 3 if spelled[at + 1 : at + 2] == "-" else 1
        yield spelled[at], spelled[at + width - 1]
        at += width


def _set(ranges: list[tuple[str, str]], *, negated: bool) -> "Atom":
    size = sum(ord(high) - ord(low) + 1 for low, high in ranges)
    few = ""
    if not negated and size <= CHOICES:
        few = "".join(
            dict.fromkeys(chr(n) for low, high in ranges for n in range(ord(low), ord(high) + 1))
        ).replace("/", "")
    inside = "".join(f"{_literal(low)[1]}-{_literal(high)[1]}" for low, high in ranges)
    return few, f"[{'^' * negated}{inside}]"


def _piece(atoms: "list[Atom]") -> "Piece":
    """One part as the cheapest comparison that says the same."""
    inner = [chars for chars, _ in atoms if chars]
    texts = _spelled(inner)
    if texts and len(inner) == len(atoms):
        return EXACT, texts
    if texts and len(inner) == len(atoms) - 1 and STAR in {atoms[0], atoms[-1]}:
        return (END if atoms[0] == STAR else START), texts
    return WILD, (_expression(atoms),)


def _spelled(sets: list[str]) -> tuple[str, ...]:
    """Every text with one character of each set in turn; none when there are too many."""
    texts = [""]
    for chars in sets:
        if len(texts) * len(chars) > CHOICES:
            return ()
        texts = [text + char for text in texts for char in chars]
    return tuple(texts)


def _expression(atoms: "list[Atom]") -> str:
    """The piece as a regular expression whose work is at most name times pattern.

    Between two stars the first fit is as good as any other, so it is atomic and never tried again
    (`*a*a*a*b` would otherwise take every way to place them).
    """
    texts = [""]
    for atom in atoms:
        if atom == STAR:
            texts.append("")
        else:
            texts[-1] += atom[1]
    if len(texts) == 1:
        return texts[0]
    head, *between, tail = texts
    return head + "".join(f"(?>.*?{text})" for text in between) + ".*" + tail


# ---- from rules to sets of names ----


def _patterns(rules: list[Rule]) -> Patterns | None:
    return Patterns(tuple((rule, 0) for rule in rules), {}) if rules else None


def _last(parts: "Parts", at: int) -> "Piece | None":
    """The piece that a name must match for the whole pattern to match; None when more is to come."""
    rest = len(parts) - at
    if rest == 1:
        return parts[at] or ANY_NAME
    return parts[at + 1] if rest == 2 and parts[at] is None else None


def _doors(live: "Live") -> "Iterator[Piece]":
    """The pieces that change what is live when a directory's name matches them."""
    for rule, at in live:
        at += rule.parts[at] is None  # noqa: PLW2901 - the piece behind `**` is the door
        if at + 1 < len(rule.parts) and (piece := rule.parts[at]):
            yield piece


def _stepped(live: "Live", name: str | None) -> "Live":
    """What is live below the directory `name`, or below any that matches no door."""
    after: dict[tuple[Rule, int], None] = {}
    for rule, at in live:
        door = at
        if rule.parts[at] is None:
            after[rule, at] = None
            door += 1
        if name is None or door + 1 >= len(rule.parts):
            continue
        if (piece := rule.parts[door]) and _fits(piece, name):
            after[rule, door + 1] = None
    return tuple(after)


def _fits(piece: "Piece", name: str) -> bool:
    kind, texts = piece
    if kind == WILD:
        return bool(_compiled(texts[0])(name))
    if kind == EXACT:
        return name in texts
    return name.startswith(texts) if kind == START else name.endswith(texts)


def _grouped(said: "list[tuple[Piece, bool]]") -> "Iterator[tuple[Names, bool]]":
    start = 0
    for end in range(1, len(said) + 1):
        if end == len(said) or said[end][1] != said[start][1]:
            yield _names(piece for piece, _ in said[start:end]), said[start][1]
            start = end


def _joined(runs: "Sequence[tuple[Names, bool]]") -> "Iterator[tuple[Names, bool]]":
    start = 0
    for end in range(1, len(runs) + 1):
        if end == len(runs) or runs[end][1] != runs[start][1]:
            yield _union([names for names, _ in runs[start:end]]), runs[start][1]
            start = end


def _names(pieces: "Iterable[Piece]") -> Names:
    texts: tuple[list[str], ...] = ([], [], [], [])
    for kind, values in pieces:
        texts[kind].extend(values)
    wilds = [_compiled("|".join(dict.fromkeys(texts[WILD])))] if texts[WILD] else []
    return Names(texts[EXACT], texts[START], texts[END], wilds)


def _compiled(expression: str) -> "Callable[[str], object]":
    import re  # 6 ms that most ignore files do not need

    return re.compile(expression, re.DOTALL).fullmatch


def _union(parts: list[Names]) -> Names:
    if len(parts) == 1:
        return parts[0]
    return Names(
        (name for names in parts for name in names.exact),
        (text for names in parts for text in names.starts),
        (text for names in parts for text in names.ends),
        (wild for names in parts for wild in names.wilds),
    )


def _either(wilds: "tuple[Callable[[str], object], ...]") -> "Callable[[str], object] | None":
    if len(wilds) < 2:
        return wilds[0] if wilds else None
    return lambda name: any(wild(name) for wild in wilds)
