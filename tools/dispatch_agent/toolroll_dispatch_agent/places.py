"""Which lines of which files are worth reading for some terms; knows no tools and opens nothing."""

import re
from bisect import bisect
from math import log

from toolroll_dispatch_agent.terms import NAME, PHRASE, QUOTED, WEIGHTS, WORD, Term

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Iterator, Sequence

NEAR_LINES = 12
"""Further apart, two terms have nothing to do with each other."""

NAMED = {QUOTED: 1.0, NAME: 2.5, PHRASE: 2.0, WORD: 1.5}
"""What a definition of a name counts, besides the hit."""

OTHER_SPELLING = 0.6
FURTHER = 0.8
"""What each further place in a file counts."""

_KEYWORDS = (
    r"\b(?:class|def|func|function|fn|fun|type|interface|struct|enum|union|trait|impl|module|mod|namespace|"
    r"protocol|record|macro_rules!|const|let|var|val|object|package|service|message|define|proc)"
    r"[ \t*&]+(?:\([^()\n]*\)[ \t]*)?[\w.:$]*"
)
_VALUE = r"[ \t]*(?::[^=\n]*)?=(?![=~])"
_BODY = r"\([^();\n]*\)[^;(){}\n]*\{[ \t]*$"
_NO_NAME = (
    r"(?!(?:if|for|while|switch|catch|return|else|with|when|match|elif|assert|not|and|or|in|raise|throw|"
    r"yield|await|new|print|del|echo)\b)"
)
_C_HEAD = rf"^{_NO_NAME}\w[^;=()\n]*[ \t*]"

_DEFINITIONS = (
    (1.0, rf"{_C_HEAD}{_NO_NAME}(\w+)\([^;\n]*(?<![:,])$"),
    (1.0, rf"{_KEYWORDS}(?<![\w$])([\w$-]+)"),
    (1.0, rf"^[ \t]*(?:[\w<>\[\]]+[ \t])*{_NO_NAME}(\w+){_BODY}"),
    (0.8, rf"^(\w+){_VALUE}"),
    (0.5, r"^\[+([\w.\"-]+)\]|^([\w.-]+):(?:[ \t]|$)"),
    (0.2, rf"^[ \t]+(?:self\.|this\.)?(\w+){_VALUE}"),
)
_DEFINED = [(strength, re.compile(pattern)) for strength, pattern in _DEFINITIONS]
_HEADING = re.compile(r"^#{1,6}[ \t]+(.*)")
_BESIDE = re.compile(r"^\s*(?:import|from|#\s*include|use|using|export \{|@import|//|#|\*|\"\"\")")


def defining(pattern: str) -> str:
    """The pattern, in the syntax of `regex`, where it is in a name that is being defined.

    It begins with what is looked for and looks behind from there: many times faster than reading every
    line from its start.
    """
    return rf"{pattern}(?:(?<={_KEYWORDS})|(?<=^\w*)\w*{_VALUE}|\w*{_BODY}|(?<={_C_HEAD}\w*)\w*\([^;\n]*$)"


def defined(line: str, path: str) -> tuple[str, float]:
    """The name or heading that a line defines, in most languages, and how surely it does."""
    if kind_of(path) == DOCS:
        heading = _HEADING.match(line)
        return (heading[1], 0.6) if heading else ("", 0.0)
    for strength, pattern in _DEFINED:
        if found := pattern.search(line):
            return found[found.lastindex or 0], strength
    return "", 0.0


GENERATED, TESTS, DOCS, SOURCE, ASKED = 0.15, 0.4, 0.5, 1.0, 1.5
_KINDS = (
    (
        GENERATED,
        r"\.(?:lock|min\.\w+|map|po|pot|svg|csv|snap|sum)$|(?:^|/)(?:package-lock\.json|vendor|dist"
        r"|node_modules|locale|__snapshots__)(?:/|$)",
    ),
    (
        TESTS,
        r"(?:^|/)(?:tests?|testing|spec|__tests__|fixtures|testdata|bench(?:marks?)?|examples?)/"
        r"|(?:^|/)(?:test_|conftest)[^/]*$|[._-](?:tests?|spec)\.\w+$",
    ),
    (DOCS, r"\.(?:md|mdx|rst|txt|adoc)$|(?:^|/)docs?/"),
)
_KIND = [(kind, re.compile(pattern)) for kind, pattern in _KINDS]


def kind_of(path: str) -> float:
    """GENERATED, TESTS, DOCS or SOURCE, by the name: what a hit in such a file is worth."""
    return next((kind for kind, pattern in _KIND if pattern.search(path)), SOURCE)


class Hits:
    """Where a term stands: how many lines of each file, and the files that define such a name."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.matcher = re.compile(term.pattern)
        self.by_file: dict[str, int] = {}
        self.defined: dict[str, float] = {}
        self.lines = 0
        self.files = 0

    def weight(self, all_files: int) -> float:
        """The worth of one hit: the rarer the more."""
        rarity = log(1 + all_files / (self.files + 0.5)) / log(1 + 2 * all_files)
        return WEIGHTS[self.term.kind] * rarity

    def share(self, text: str) -> float:
        """How much of a name the term is: 1 for the same word, 0 when it does not occur."""
        found = self.matcher.search(text)
        if not found:
            return 0.0
        return min((len(found[0]) + 1) / (len(text) + 1), 1.0) * self.exactness(text)

    def exactness(self, text: str) -> float:
        """Less than 1 for a name that stands there in another spelling."""
        return 1.0 if self.term.kind != NAME or self.term.text in text else OTHER_SPELLING

    def told_by(self, path: str) -> float:
        """How much of a name of several words is in a path: GlobTool's home may be `tools/glob/find.py`."""
        parts = self.term.parts if self.term.kind == NAME else ()
        return sum(part in path.lower() for part in parts) / len(parts) if len(parts) > 1 else 0.0

    def define(self, path: str, line: str) -> None:
        """Take in that a line of the file may define what is called so."""
        name, strength = defined(line, path)
        self.defined[path] = max(self.defined.get(path, 0.0), strength * self.share(name))


class Place:
    """A line worth reading; `first` to `last` are worth showing."""

    __slots__ = ("defines", "first", "last", "line", "path", "score", "terms")

    def __init__(
        self, path: str, line: int, score: float, terms: "Sequence[str]", defines: str = ""
    ) -> None:
        self.path = path
        self.line = line
        self.score = score
        self.terms = terms
        self.defines = defines
        self.first = max(line - (2 if defines else 5), 1)
        self.last = line + (15 if defines else 7)

    def shows(self, other: "Place") -> bool:
        """True when the other, in the same file, would show hardly more than this."""
        return self.first <= other.line <= self.last


class Ranking:
    """What stands where, for the terms of one task in a tree of `files` files.

    `favoured` are the folders and files that the task speaks of; `kinds` those of GENERATED, TESTS and
    DOCS that it asks for.
    """

    def __init__(
        self,
        hits: "Sequence[Hits]",
        files: int,
        favoured: "Collection[str]",
        kinds: "Collection[float]",
    ) -> None:
        self.hits = hits
        self.favoured = favoured
        self.kinds = kinds
        self.weights = {one: one.weight(files) for one in hits}

    def files(self) -> list[str]:
        """All files with hits, the best first."""
        paths = {path for one in self.hits for path in (*one.by_file, *one.defined)}
        return sorted(paths, key=lambda path: (-self.factor(path) * self.held(path), path))

    def factor(self, path: str) -> float:
        """What a place counts because of the file it is in."""
        kind = kind_of(path)
        favoured = any(path == one or path.startswith(f"{one}/") for one in self.favoured)
        return (ASKED if kind in self.kinds else kind) * (3.0 if favoured else 1.0)

    def held(self, path: str) -> float:
        """How much of what is looked for a file holds, defines and is called after."""
        folders, _, name = path.rpartition("/")
        score = self._called(_stem(name)) / 2 + self._called(folders.rpartition("/")[2]) / 4
        for one, weight in self.weights.items():
            count = one.by_file.get(path, 0)
            score += weight * (
                count / (count + 1) + one.defined.get(path, 0.0) + one.told_by(path) / 2
            )
        return score

    def _called(self, name: str) -> float:
        """The worth of something that is called so."""
        return sum(
            weight * NAMED[one.term.kind] * one.share(name) for one, weight in self.weights.items()
        )

    def places(self, path: str, lines: "Sequence[tuple[int, str]]") -> "Iterator[Place]":
        """Every line with hits as a place, and the head of a file that is called like a term."""
        standing = {
            one: [
                (number, one.exactness(text)) for number, text in lines if one.matcher.search(text)
            ]
            for one in self.hits
        }
        factor, held = self.factor(path), self.held(path)
        for number, text in lines:
            near, terms = self._near(number, standing)
            name, strength = defined(text, path)
            bonus = strength * self._called(name)
            near *= 0.5 if _BESIDE.match(text) else 1.0
            score = factor * (near + bonus + 0.4 * held)
            yield Place(path, number, score, terms, name if bonus and strength > 0.2 else "")
        stem = _stem(path.rpartition("/")[2])
        terms = [one.term.text for one in self.hits if one.share(stem) > 0.5]
        if terms:
            near = sum(weight for one, weight in self.weights.items() if one.term.text in terms)
            yield Place(path, 1, factor * (near + self._called(stem) + 0.4 * held), terms)

    def _near(
        self, line: int, standing: "dict[Hits, list[tuple[int, float]]]"
    ) -> tuple[float, list[str]]:
        """The worth of what stands around a line, and the terms."""
        near, terms = 0.0, []
        for one, places in standing.items():
            start = bisect(places, (line - NEAR_LINES, 0.0))
            around = [
                exactness / (1 + abs(line - number) / 4)
                for number, exactness in places[start : bisect(places, (line + NEAR_LINES, 2.0))]
            ]
            if around:
                near += self.weights[one] * max(around)
                terms.append(one.term.text)
        return near, terms


def best(places: "Iterable[Place]", most: int) -> list[Place]:
    """The best ones, none within what another shows, further ones of a file counting less and less."""
    left = sorted(places, key=lambda place: (-place.score, place.path, place.line))
    chosen: list[Place] = []
    taken: dict[str, int] = {}
    while left and len(chosen) < most:
        place = max(left, key=lambda one: one.score * FURTHER ** taken.get(one.path, 0))
        chosen.append(place)
        taken[place.path] = taken.get(place.path, 0) + 1
        left = [one for one in left if one.path != place.path or not place.shows(one)]
    return chosen


def _stem(name: str) -> str:
    return name.rpartition(".")[0] or name
