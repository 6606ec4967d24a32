"""What a task's text names: paths, globs, quoted text, identifiers, phrases and words; opens nothing."""

import re

from toolroll_dispatch_agent.english import STOP_STEMS, WEAK_STEMS, stem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

QUOTED, NAME, PHRASE, WORD = "text", "name", "phrase", "word"

WEIGHTS = {QUOTED: 5.0, NAME: 3.0, PHRASE: 2.0, WORD: 1.0}
"""What a hit is worth: the more the task spells out, the more."""

MOST = {QUOTED: 4, NAME: 6, PHRASE: 4, WORD: 8}
MOST_PATHS = 6
FEW = 3  # with fewer terms, and nothing spelt out, weak words count too
TASK_CHARS = 20_000  # more is pasted material
TEXT_CHARS = 120  # the longest quoted text that is looked for

_ENDINGS = """
    adoc bash bat c cc cfg cjs clj cmake conf cpp cs css csv cxx dart el ex exs go gradle graphql h hcl
    hh hpp hs html ini ipynb java jinja js json jsonl jsx kt less lock lua m md mjs mk ml mm nix php pl
    png po properties proto ps1 py pyi pyx r rb rs rst sass scala scss sh sql svelte svg swift tf toml
    ts tsx txt vim vue xml yaml yml zig zsh
"""
ENDINGS = frozenset(_ENDINGS.split())
"""What makes a dotted word the name of a file and not an expression."""

_TESTS = re.compile(r"(?i)\b(?:tests?|tested|testing|fixtures?)\b")
_DOCS = re.compile(
    r"(?i)\b(?:readmes?|docs?|documented|documentation|changelog|licen[cs]e|guides?)\b"
)
_QUOTES = re.compile(
    r"```\w*\n?(.*?)```|`([^`\n]+)`|\"([^\"\n]+)\"|“([^”\n]+)”|(?<!\w)'([^'\n]+)'(?!\w)", re.DOTALL
)
_LINE = re.compile(r"(?::|#L)(\d+)(?:[-:]\w*)?$")
_EDGES = "\"'`,;:!?()[]<>“”\u2018\u2019…"
_BOLD = re.compile(r"(\*{1,2})(\w.*\w)\1")
# snake_case, camelCase, XMLParser, a.b, a::b, a->b, --flag, $VARIABLE, @decorator
_NAME = re.compile(
    r"(?=(?:--|[$@#]).|.*(?:_|[a-z0-9][A-Z]|[A-Z]{2}[a-z]|\.|::|->))(?=.*[^\W\d])"
    r"(?:--?|[$@#])?\w\w+(?:(?:\.|::|->|-|#)\w\w+)*"
)
_PARTS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")
JOINTS = re.compile(r"\.|::|->|#|/")
_AROUND = "-$@#.:>/"  # a name, not in it
_BREAK = "\0"  # between words that do not stand together


class Term:
    """Something to look for: `pattern` is a regular expression for the tools and for `re` alike.

    `parts` are the words it is made of, in lower case; of phrases and words their stems.
    """

    __slots__ = ("kind", "parts", "pattern", "text")

    def __init__(self, kind: str, text: str, pattern: str, parts: "Iterable[str]") -> None:
        self.kind = kind
        self.text = text
        self.pattern = pattern
        self.parts = tuple(part.lower() for part in parts)


class Task:
    """What was drawn from a task; `paths` with their lines, 0 for none."""

    def __init__(self) -> None:
        self.paths: dict[str, int] = {}
        self.globs: list[str] = []
        self.terms: dict[str, Term] = {}
        self.wants_tests = False
        self.wants_docs = False

    def add(self, term: "Term | None") -> None:
        """Take in a term, unless there is such a one or enough of its kind."""
        if term is None or term.text.lower() in self.terms:
            return
        if sum(one.kind == term.kind for one in self.terms.values()) < MOST[term.kind]:
            self.terms[term.text.lower()] = term


def draw(text: str) -> Task:
    """Everything in a task that can be looked for, in its order."""
    task = Task()
    text = re.sub(r"\b\w+://\S+", _BREAK, text[:TASK_CHARS])
    task.wants_tests = bool(_TESTS.search(text))
    task.wants_docs = bool(_DOCS.search(text))
    for found in _QUOTES.finditer(text):
        quoted = next(group for group in found.groups() if group is not None).strip()
        if re.fullmatch(r"\w\w+(?:\(\))?", quoted):
            task.add(name(quoted))
        elif not _take(task, quoted):
            task.add(literal(quoted))
    rest = _QUOTES.sub(f" {_BREAK} ", text)
    plain = [one for line in re.split(r"[.!?:;,]\s|\n", rest) for one in _plain(task, line)]
    spelt_out = bool(task.terms)
    for term, is_weak in words(plain):
        if not is_weak or (len(task.terms) < FEW and not spelt_out):
            task.add(term)
    return task


def _plain(task: Task, line: str) -> "Iterator[str]":
    """The words of a line that are nothing more."""
    for token in line.split():
        called = token.rstrip(".,;:!?").endswith("()")
        bare = token.strip(_EDGES).rstrip(".").removesuffix("'s").removesuffix("\u2019s")
        bare = _BOLD.sub(r"\2", bare)
        if called and re.fullmatch(r"\w\w+", bare):
            task.add(name(bare))
        elif bare and not _take(task, bare):
            yield from re.split(r"[^\w-]+", bare)
            continue
        yield _BREAK
    yield _BREAK


def _take(task: Task, token: str) -> bool:
    """Take in a token that is more than a word by its form; False for one that is not."""
    line = _LINE.search(token)
    bare = token[: line.start()] if line else token
    ending = bare.rpartition(".")[2].lower()
    if re.search(r"\s", token):
        return False
    if re.search(r"\*|\{[^{}]+,[^{}]+\}", token) and re.search(r"[./]", token):
        task.globs.append(token)
    elif token == f".{ending}" and ending in ENDINGS:
        task.globs.append(f"**/*{token}")
    elif _is_path(bare, ending) and len(task.paths) < MOST_PATHS:
        task.paths.setdefault(bare, int(line[1]) if line else 0)
        if "." in (last := bare.rpartition("/")[2]):
            task.add(name(last))
    elif _NAME.fullmatch(token):
        task.add(name(token))
        pieces = [piece for piece in JOINTS.split(token) if piece]
        if len(pieces) > 1 and len(task.paths) < MOST_PATHS:
            task.paths.setdefault(f"{'/'.join(pieces)}.*", 0)
    else:
        return False
    return True


def _is_path(text: str, ending: str) -> bool:
    """True for what may be a path: slashes, a file's ending, a leading dot."""
    if not re.fullmatch(r"[\w./~@+%-]*\w[\w./~@+%-]*", text):
        return False
    return "/" in text or ("." in text and ending in ENDINGS) or bool(re.match(r"\.\w\w", text))


def literal(text: str, gap: str = r"\s+") -> "Term | None":
    """Text as it stands but for its blanks, None when it is too short or too long to be looked for."""
    first = max((line.strip() for line in text.split("\n")), key=len)
    if not 2 <= len(first) <= TEXT_CHARS:
        return None
    pattern = gap.join(re.escape(one) for one in first.split())
    return Term(QUOTED, first, f"(?i:{pattern})", re.findall(r"\w{3,}", first))


def message(text: str) -> "Term | None":
    """The words of a text in a line of code, whatever is put in and quoted between them."""
    told = " ".join(re.findall(r"(?<![%\w{])\w{2,}(?!\})", text))
    found = literal(told, r"\b[^\n]{1,40}?\b") if " " in told else None
    return Term(QUOTED, f"{told} ...", found.pattern, found.parts) if found else None


def name(text: str) -> "Term | None":
    """An identifier, however its words are joined: `read_bytes` finds `readBytes` too."""
    pieces = [_PARTS.findall(piece) for piece in JOINTS.split(text.strip(_AROUND))]
    parts = [part for piece in pieces for part in piece]
    if len("".join(parts)) < 2:
        return None
    if len(parts) == 1:
        return Term(NAME, text, rf"(?i:\b{re.escape(text.strip(_AROUND))}\b)", parts)
    pattern = r"_*(?:\.|::|->|#|/)+_*".join(
        "[-_ ]*".join(map(re.escape, one)) for one in pieces if one
    )
    return Term(NAME, text, f"(?i:{pattern})", parts)


def words(plain: "Iterable[str]") -> "list[tuple[Term, bool]]":
    """Phrases and words, those that are said most often first; True for those that are only weak."""
    said: dict[str, int] = {}
    terms: dict[str, Term] = {}
    last = ""
    for one in plain:
        term = word(one)
        pair = phrase(last, one) if last and term else None
        for found in (pair, term):
            if found is not None:
                key = " ".join(found.parts)
                said[key] = said.get(key, 0) + 1
                terms.setdefault(key, found)
        last = one if term and term.kind == WORD else ""
    weak = {key: WEAK_STEMS.issuperset(term.parts) for key, term in terms.items()}
    return [
        (terms[key], weak[key]) for key in sorted(terms, key=lambda key: (weak[key], -said[key]))
    ]


def word(text: str) -> "Term | None":
    """A word that may tell a place, in all its endings; None for one that tells nothing.

    With hyphens it is a phrase.
    """
    if "-" in text.strip("-"):
        return phrase(*text.strip("-").split("-")[:3])
    bare = text.strip("-_")
    if bare.isdigit():
        return Term(WORD, bare, rf"(?<!\d){bare}(?!\d)", [bare]) if len(bare) > 2 else None
    if len(bare) < 3 or stem(bare) in STOP_STEMS:
        return None
    if bare not in (bare.lower(), bare.upper(), bare.capitalize()):
        return name(bare)
    return Term(WORD, bare, _begun(stem(bare)), [stem(bare)])


def phrase(*parts: str) -> "Term | None":
    """Words side by side, in whatever way they are joined: `rate limits`, `rateLimit`, `RATE_LIMIT`."""
    stems = [stem(part) for part in parts if part]
    if len(stems) < 2 or len("".join(stems)) < 6:
        return None
    pattern = r"[a-z]{0,5}[-_ .]?".join(map(re.escape, stems))
    return Term(PHRASE, " ".join(parts), f"(?i:{pattern})", stems)


def _begun(text: str) -> str:
    """A pattern for words of prose and of identifiers that begin with `text`."""
    if not (text.isascii() and text.isalpha()):
        return rf"(?i:(?<![^\W_]){re.escape(text)})"
    first, rest = text[0].upper(), text[1:]
    head = f"(?<![A-Za-z])[{text[0]}{first}]{rest}"
    return f"(?:{head}|(?<=[a-z0-9]){first}{rest}|(?<![A-Z]){text.upper()})"
