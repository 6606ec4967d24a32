"""What can be found for a task without a model: its terms are looked up, the best places shown.

Knows the four tools by their answers alone, and nothing of models.
"""

import re
from time import monotonic

from toolroll.limits import OUTPUT_CHARS, clip
from toolroll_dispatch_agent.places import DOCS, TESTS, Hits, Place, Ranking, best, defining
from toolroll_dispatch_agent.servers import together
from toolroll_dispatch_agent.terms import (
    JOINTS,
    NAME,
    PHRASE,
    QUOTED,
    WORD,
    Task,
    Term,
    draw,
    literal,
    message,
    name,
    word,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolroll.call import Call
    from toolroll.tool import Outcome
    from toolroll_dispatch_agent.servers import Tools

    Json = Any

RESULT_CHARS = 100_000
"""What an answer of a tool should hold at least: lists of files and lines are read whole here."""

WRITTEN = "!*.{csv,lock,map,min.css,min.js,mo,po,snap,svg}"
"""Files that somebody may have written."""

LOOKUP_S = 20.0
"""When no further question is asked: hosts give up after 60 s."""

TERMS, FILES, PLACES, LISTS = 10, 12, 10, 3
COUNTED_FILES, DEFINITIONS, FILE_LINES = 1_000, 100, 300
LIST_FILES, LISTED_ENTRIES = 30, 60
HEAD_LINES = 24
LINE_CHARS = 200
PLACE_CHARS = 2_000

HEAD = (
    "A lookup by rule, without a model: the paths, names and words of the task were searched for. "
    "These are places to read, not an answer."
)


class Findings:
    """What a lookup brought: the text to show, how many calls it took, the places as (path, line)."""

    __slots__ = ("calls", "places", "text")

    def __init__(self, text: str, calls: int, places: "list[tuple[str, int]]") -> None:
        self.text = text
        self.calls = calls
        self.places = places


def findings(task: str, tools: "Tools", call: "Call") -> Findings:
    """What the tools find for the words of a task.

    Raises: ToolError CANCELLED, or what `Tools.call` raises.
    """
    return Lookup(draw(task), tools, call).findings()


class Lookup:
    """One task's questions to the tools, and what they brought."""

    def __init__(self, task: Task, tools: "Tools", call: "Call") -> None:
        self._task = task
        self._tools = tools
        self._call = call
        self._stop_at = monotonic() + LOOKUP_S
        self._calls = 0
        self._cut = False
        self._files = 1  # in the whole tree
        self._hits: dict[str, Hits] = {}
        self._favoured: set[str] = set()
        self._absent: list[str] = []  # paths that are not there
        self._modules: list[str] = []  # dotted names that are no files

    def findings(self) -> Findings:
        """Everything, in rounds of questions asked side by side."""
        self._files = self._results("GlobTool", pattern="**/*", limit=1).get("total") or 1
        listed = together(self._listing, self._task.globs[:LISTS])
        named = [one for found in together(self._named, self._task.paths.items()) for one in found]
        self._search(list(self._task.terms.values())[:TERMS])
        self._search(self._instead())
        self._search(self._instead())
        places = [one for one in self._places() if not any(block.shows(one) for block in named)]
        blocks = named + together(self._block, best(places, PLACES - len(named)))
        blocks = blocks or self._overview()
        parts = [HEAD, *_numbered(blocks), *listed, *self._lists(), self._queries()]
        text = "\n\n".join(parts)
        points = [(block.path, block.line) for block in blocks if block.line]
        return Findings(clip(text, OUTPUT_CHARS - 2_000), self._calls, points)

    # -- asking ------------------------------------------------------------------------------------

    def _ask(self, tool: str, **arguments: "Json") -> "Outcome | None":
        """A tool's answer, None when it failed or there is no time left.

        Raises: ToolError CANCELLED, or what `Tools.call` raises.
        """
        self._call.check()
        if self._call.expired or monotonic() > self._stop_at:
            self._cut = True
            return None
        self._calls += 1
        outcome = self._tools.call(tool, arguments)
        return None if outcome.failed else outcome

    def _results(self, tool: str, **arguments: "Json") -> "dict[str, Json]":
        """The structured form of an answer, empty when there is none."""
        outcome = self._ask(tool, **arguments)
        results = outcome.structured if outcome else {}
        self._cut = self._cut or bool(results.get("incomplete"))
        return results

    # -- what the task names -----------------------------------------------------------------------

    def _listing(self, glob: str) -> str:
        """The files that a glob of the task stands for."""
        pattern = glob if "/" in glob else f"**/{glob}"
        found = self._results("GlobTool", pattern=pattern, limit=LIST_FILES)
        paths = [one["path"] for one in found.get("results", ())]
        return _list(f"Files like `{glob}`", paths, found.get("total", 0))

    def _named(self, item: tuple[str, int]) -> "list[Block]":
        """What stands at a path of the task: its lines, or what is in the directory."""
        path, line = item
        if "*" not in path and (block := self._there(path.rstrip("/") or "/", line)):
            return [block]
        pattern = path.strip("/").removeprefix("./")
        found = self._results("GlobTool", pattern=f"**/{pattern}", limit=3).get("results", ())
        if found:
            return [block for one in found if (block := self._there(one["path"], line))]
        if path.endswith(".*"):
            self._modules.append(path)
            return []
        inside = self._results("GlobTool", pattern=f"**/{pattern}/**", limit=1).get("results", ())
        for one in inside:
            before = f"/{one['path']}".partition(f"/{pattern}/")[0]
            block = self._there(f"{before}/{pattern}"[1:], 0)
            return [block] if block else []
        self._absent.append(path)
        return []

    def _there(self, path: str, line: int) -> "Block | None":
        """The file or directory of exactly that path, which is then favoured."""
        first = max(line - HEAD_LINES // 3, 1)
        found = self._ask("View", file_path=path, offset=first, limit=HEAD_LINES)
        at = max(line, 1) if found else 0
        found = found or self._ask("LS", path=path, depth=2, limit=LISTED_ENTRIES)
        if found is None:
            return None
        self._favoured.add(path.removeprefix(f"{self._tools.root}/").removeprefix("./"))
        return Block(path, at, "named in the task", found.text)

    # -- terms -------------------------------------------------------------------------------------

    def _search(self, terms: "list[Term]") -> None:
        """Find out where the terms stand, what is defined by such names, and which files have them."""
        hits = [Hits(term) for term in terms]
        together(self._count, hits)
        together(self._define, [one for one in hits if one.files and one.term.kind in (NAME, WORD)])
        self._hits.update((one.term.text, one) for one in hits)
        names = [name for one in hits if one.term.kind != QUOTED for name in _file_names(one.term)]
        if names:
            found = self._results(
                "GlobTool", pattern=f"**/*{{{','.join(names)}}}*", limit=LIST_FILES
            )
            for path in (file["path"] for file in found.get("results", ())):
                for one in hits:
                    if one.matcher.search(path.rpartition("/")[2]):
                        one.by_file.setdefault(path, 0)

    def _count(self, one: Hits) -> None:
        """How often a term stands where; in files that nobody writes only when there are no others."""
        ask = {"pattern": one.term.pattern, "output_mode": "count", "limit": COUNTED_FILES}
        found = self._results("GrepTool", **ask, include=WRITTEN)
        if not found.get("files"):
            found = self._results("GrepTool", **ask)
        one.files, one.lines = found.get("files", 0), found.get("total", 0)
        one.by_file = {file["path"]: file["count"] for file in found.get("results", ())}

    def _define(self, one: Hits) -> None:
        found = self._results(
            "GrepTool", pattern=defining(one.term.pattern), include=WRITTEN, limit=DEFINITIONS
        )
        for line in found.get("results", ()):
            one.define(line["path"], line.get("text", ""))

    def _instead(self) -> "list[Term]":
        """What to look for in place of what is not there: the parts of names, the words of texts."""
        absent = [
            one.term for one in self._hits.values() if not one.files and one.term.kind != WORD
        ]
        terms = [name(piece) for path in self._modules for piece in path[:-2].split("/")[::-1]]
        terms += map(literal, self._absent)
        terms += [one for term in absent for one in self._in_place_of(term)]
        terms += [word(part) for path in self._absent for part in re.findall(r"\w+", path)]
        known = {one.term.pattern for one in self._hits.values()}
        return [term for term in terms if term and term.pattern not in known][:TERMS]

    def _in_place_of(self, term: Term) -> "list[Term | None]":
        """For a text its words in one line, whatever stands between them; then the words alone."""
        told = message(term.text) if term.kind == QUOTED else None
        asked = self._hits.get(told.text) if told else None
        if told and asked is None:
            return [told]
        if asked is None and re.search(f"{JOINTS.pattern}| ", term.text):
            return []  # its words are among the terms
        return [] if asked and asked.files else [word(part) for part in term.parts]

    # -- places ------------------------------------------------------------------------------------

    def _places(self) -> "list[Place]":
        """Every line of the best files that has to do with the terms."""
        task = self._task
        hits = [one for one in self._hits.values() if one.by_file]
        kinds = {
            kind for kind, wanted in ((TESTS, task.wants_tests), (DOCS, task.wants_docs)) if wanted
        }
        ranking = Ranking(hits, self._files, self._favoured, kinds)
        files = ranking.files()[:FILES]
        pattern = "|".join(one.term.pattern for one in hits)
        found = together(lambda path: self._lines(path, pattern), files)
        pairs = zip(files, found, strict=True)
        return [place for path, lines in pairs for place in ranking.places(path, lines)]

    def _lines(self, path: str, pattern: str) -> "list[tuple[int, str]]":
        found = self._results("GrepTool", pattern=pattern, path=path, limit=FILE_LINES)
        return [(line["line"], line["text"]) for line in found.get("results", ()) if "line" in line]

    def _block(self, place: Place) -> "Block":
        """A place with the lines around it."""
        count = place.last - place.first + 1
        outcome = self._ask("View", file_path=place.path, offset=place.first, limit=count)
        lines = outcome.text.split("\n") if outcome else []
        shown = [line[:LINE_CHARS] for line in lines if line.partition("\t")[0].isdigit()]
        why = f"defines {place.defines}; " if place.defines else ""
        return Block(place.path, place.line, why + ", ".join(place.terms), "\n".join(shown[:count]))

    def _overview(self) -> "list[Block]":
        """The tree and what its README says, for a task without anything to look for."""
        found = [self._there(".", 0), self._there("README.md", 0)]
        return [block for block in found if block]

    # -- words -------------------------------------------------------------------------------------

    def _lists(self) -> "Iterator[str]":
        """The files of each thing that is spelt out, and those that hold the most of the terms."""
        hits = [one for one in self._hits.values() if one.lines and one.term.kind != PHRASE]
        for one in hits:
            if one.files <= LIST_FILES and (one.term.kind != WORD or len(hits) == 1):
                paths = sorted(path for path, count in one.by_file.items() if count)
                yield _list(f"Files with `{one.term.text}`", paths, one.files)
        hits.sort(key=lambda one: -one.weight(self._files))
        for count in range(min(len(hits), 4), 1, -1):
            both = set.intersection(*(set(one.by_file) for one in hits[:count]))
            if both:
                title = "Files with all of " + ", ".join(
                    f"`{one.term.text}`" for one in hits[:count]
                )
                yield _list(title, sorted(both), len(both))
                return

    def _queries(self) -> str:
        """What was looked for and how much of it there is."""
        found = [
            f"`{one.term.text}` ({one.term.kind}): {one.lines} lines in {one.files} files"
            for one in self._hits.values()
            if one.files
        ]
        absent = [f"`{one.term.text}`" for one in self._hits.values() if not one.files]
        absent += [f"`{path}`" for path in self._absent]
        lines = [f"Looked for in {self._files} files, with {self._calls} calls:", *found]
        lines += [f"Nothing found for: {', '.join(absent)}"] if absent else []
        lines += ["Incomplete: time ran out before everything was asked."] if self._cut else []
        return "\n".join(lines)


class Block:
    """A place as it is shown; line 0 for a directory."""

    __slots__ = ("line", "path", "text", "why")

    def __init__(self, path: str, line: int, why: str, text: str) -> None:
        self.path = path
        self.line = line
        self.why = why
        self.text = text

    def shows(self, other: Place) -> bool:
        """True when this, which the task names, makes the other superfluous."""
        return self.path == other.path and abs(self.line - other.line) < HEAD_LINES // 2


def _numbered(blocks: "list[Block]") -> "Iterator[str]":
    for number, block in enumerate(blocks, 1):
        where = f"{block.path}:{block.line}" if block.line else f"{block.path}/"
        yield f"{number}. {where}  ({block.why})\n{clip(block.text, PLACE_CHARS)}"


def _list(title: str, paths: "list[str]", total: int) -> str:
    """Paths in a line."""
    if not paths:
        return f"{title}: none"
    more = f", and {total - LIST_FILES} more" if total > LIST_FILES else ""
    return f"{title} ({total}): {', '.join(paths[:LIST_FILES])}{more}"


def _file_names(term: Term) -> "list[str]":
    """How a file may be called after a term, as parts of a glob."""
    if not all(part.isalnum() for part in term.parts):
        return []
    plain = [joint.join(term.parts) for joint in ("_", "-", "")[: len(term.parts) * 3 - 2]]
    return [*plain, "".join(part.capitalize() for part in term.parts)]
