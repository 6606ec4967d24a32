"""One call of GrepTool from its parameters to its answer: asked of the pool, told by the report."""

import os
from stat import S_ISDIR
from time import monotonic

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import OUTPUT_CHARS
from toolroll.paths import quoted, show
from toolroll.tool import Answer
from toolroll_grep.dialect import INSTEAD
from toolroll_grep.pattern import Plan, plan, variants
from toolroll_grep.pool import Found, Pool
from toolroll_grep.report import File, Report
from toolroll_grep.worker import included

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolroll.call import Call
    from toolroll.paths import Opened

    Json = Any

POOL = Pool()

SECOND_LOOK_S = 0.25
"""How long it may at least be looked for what was meant, when nothing was found; else this part of"""

SECOND_LOOK_PART = 0.25
"""the time that the first look took."""

SHOW_S = 0.15
"""How long lines may at least be fetched for what was found until the deadline."""

LINE_CHARS = 4
"""The shortest line there can be: what can never be shown is not fetched."""

MARGIN_CHARS = 1_024
"""So much at least is looked at around a cut, for secrets that it goes through."""

REASONS = (
    ("ignored", "ignored"),
    ("hidden", "hidden"),
    ("binary", "binary"),
    ("unreadable", "unreadable"),
    ("folders_unreadable", "unreadable folders"),
    ("vanished", "vanished"),
)


class Query:
    """The parameters of a call."""

    def __init__(self, pattern: str, **parameters: "Json") -> None:
        self.pattern = pattern
        self.path: str = parameters["path"]
        self.include: str = parameters["include"]
        self.context: int = parameters["context"]
        self.ignore_case: bool = parameters["ignore_case"]
        self.fixed_strings: bool = parameters["fixed_strings"]
        self.multiline: bool = parameters["multiline"]
        self.mode: str = parameters["output_mode"]
        self.limit: int = parameters["limit"]
        self.no_ignore: bool = parameters["no_ignore"]
        self.no_ignore_vcs: bool = parameters["no_ignore_vcs"]

    def plan(self) -> Plan:
        """How to search.  Raises: ToolError INVALID_PARAMS."""
        return plan(
            self.pattern,
            fixed_strings=self.fixed_strings,
            ignore_case=self.ignore_case,
            multiline=self.multiline,
        )

    @property
    def names_hidden(self) -> bool:
        """True when the path or the glob names a dotted part: hidden entries are meant then."""
        parts = (
            f"{self.path}/{self.include.lstrip('!')}".replace("{", "/").replace(",", "/").split("/")
        )
        return any(part.startswith(".") and part.strip(".") for part in parts)


def answer(query: Query, call: "Call") -> Answer:
    """The answer to a call.

    Raises: ToolError INVALID_PARAMS for a bad pattern or glob, TIMEOUT when the pattern did not get
    through and nothing was found, CANCELLED, and what `Roots` raises for the path.
    """
    made = query.plan()
    included(query.include)  # says what is wrong with it
    with call.roots.open_any(query.path) as opened:
        look = Look(query, opened, call)
        POOL.take(call)
        try:
            return look.answer(made)
        finally:
            POOL.give()


class Look:
    """A call at work on an open file or directory."""

    def __init__(self, query: Query, opened: "Opened", call: "Call") -> None:
        self._query = query
        self._opened = opened
        self._call = call
        self._is_file = not S_ISDIR(opened.status.st_mode)
        self._base = opened.path if self._is_file else opened.path.rstrip("/") + "/"
        self._start = (query.path.rstrip("/") + "/").removeprefix("./")

    def answer(self, made: Plan) -> Answer:
        """What was found, or why nothing was."""
        began = monotonic()
        found = self._find(made, self._query.mode)
        files = self._files(found)
        if not files:
            return self._nothing(found, monotonic() - began)
        most = self._call.options.get("max-output", OUTPUT_CHARS)
        limit = min(self._query.limit, max(most // LINE_CHARS, 1))
        report = Report(files, self._query.mode, limit, self._query.context > 0)
        if self._query.mode == "content":
            self._fetch(made, report)
        text = report.text(max(most - 600, most // 2))
        facts = [*report.facts, *_unsearched(found, self._shown)]
        return Answer(text, facts, {**report.data, **_structured(found)})

    def _find(self, made: Plan, mode: str, until: float | None = None, enough: int = 0) -> Found:
        query = self._query
        everything = until is not None and not enough
        request = {
            "plan": made.record(),
            "base": self._base,
            "is_file": self._is_file,
            "include": query.include,
            "mode": mode,
            "hidden": everything or query.names_hidden,
            "git": ".git" in query.path.split("/") or ".git/" in query.include,
            "no_ignore": everything or query.no_ignore,
            "no_ignore_vcs": query.no_ignore_vcs,
            "deadline": self._call.deadline if until is None else until,
            "enough": enough,
        }
        found = POOL.find(request, self._opened.fd, self._call)
        if self._call.roots.denies:  # not even the number of what is closed is told
            for path in [path for path in found.hits if self._denied(path)]:
                del found.hits[path]
            found.stuck = [path for path in found.stuck if not self._denied(path)]
        return found

    def _denied(self, path: str) -> bool:
        return not self._is_file and self._call.roots.denied(self._base + path) is not None

    def _files(self, found: Found) -> list[File]:
        """What has matches, newest first."""
        order = sorted((-mtime_ns, path, count) for path, (mtime_ns, count) in found.hits.items())
        return [File(path, self._shown(path), count) for _, path, count in order]

    def _shown(self, path: str) -> str:
        """A path as it is printed, in the way the call named its start."""
        return show(self._query.path if self._is_file else self._start + path)

    def _fetch(self, made: Plan, report: Report) -> None:
        """Fill in the lines of the files that are to be shown with lines."""
        wanted = [(file.path, file.quota) for file in report.files if file.quota]
        request = {
            "plan": made.record(),
            "base": self._base,
            "is_file": self._is_file,
            "files": wanted,
            "context": self._query.context,
            "deadline": self._call.deadline and max(self._call.deadline, monotonic() + SHOW_S),
            "margin": longest_secret(),
        }
        rows = POOL.show(request, self._opened.fd, self._call)
        for file in report.files:
            if file.path in rows:
                tag, encoding, nul, lines = rows[file.path]
                file.fill(tag, encoding, nul, [self._masked(*line) for line in lines])

    def _masked(self, number: int, column: int, text: str, *rest: "Json") -> "tuple[Json, ...]":
        """A line without the part of a secret that was cut through when the line was."""
        is_match, remark, before, behind = rest
        if remark:
            mask = self._call.guard.mask
            whole = mask(before + text + behind)
            if whole != mask(before) + mask(text) + mask(behind):
                text = whole[len(mask(before)) : len(whole) - len(mask(behind))]
        return number, column, text, is_match, remark

    # -- when there is nothing -------------------------------------------------------------------

    def _nothing(self, found: Found, taken_s: float) -> Answer:
        """Why there is nothing, and what a second look finds."""
        if found.stuck:
            others = max(sum(found.files.values()) - len(found.stuck), 0)
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"the pattern did not come to an end in {', '.join(map(quoted, found.stuck[:3]))}"
                f" and was stopped; nothing was found in {_number(others, 'other file')}",
                "Avoid repeats inside repeats, anchor the pattern, or leave these files out.",
            )
        searched = sum(found.files.values())
        lines = [f"No matches in {_number(searched, 'file')}."]
        if not searched and self._query.include:
            lines = [f"No files that fit include '{self._query.include}'."]
        if skipped := _skipped(found):
            lines.append(f"Skipped: {skipped}.")
        if not found.incomplete:
            until = monotonic() + max(SECOND_LOOK_S, taken_s * SECOND_LOOK_PART)
            if self._call.deadline is not None:
                until = min(until, self._call.deadline)
            lines += self._second_look(found, until)
        facts = list(_unsearched(found, self._shown, skipped=False))
        data = {"results": [], "files": 0, "total": 0, **_structured(found)}
        return Answer(" ".join(lines), facts, data)

    def _second_look(self, found: Found, until: float) -> "Iterator[str]":
        """Where there are matches, and whether it was looked everywhere."""
        query = self._query
        is_whole = True
        if sum(found.files.values()):
            for said, fixed, any_case in variants(
                query.pattern, fixed_strings=query.fixed_strings, ignore_case=query.ignore_case
            ):
                made = plan(
                    query.pattern,
                    fixed_strings=fixed,
                    ignore_case=any_case,
                    multiline=query.multiline,
                )
                files, whole = self._look_again(made, until, 1)
                is_whole &= whole
                if files:
                    yield f"With {said} there are matches, as in '{files[0].shown}'."
        passed_over = found.facts.get("ignored", 0) + found.facts.get("hidden", 0)
        if passed_over and not self._is_file:
            files, whole = self._look_again(query.plan(), until)
            is_whole &= whole
            yield from _among_skipped(files)
        if not is_whole:
            yield "A second look (other case, as text, ignored and hidden files) ran out of time."

    def _look_again(self, made: Plan, until: float, enough: int = 0) -> tuple[list[File], bool]:
        """What a look finds until then, and whether there can be no more that counts."""
        if monotonic() >= until:
            return [], False
        found = self._find(made, "files", until, enough)
        files = self._files(found)
        return files, not found.incomplete or len(files) >= enough > 0


def _among_skipped(files: list[File]) -> "Iterator[str]":
    """What matches among what was ignored or hidden."""
    hidden = [file for file in files if "/." in f"/{file.path}"]
    ignored = [file for file in files if file not in hidden]
    if ignored:
        yield f"Among the ignored {_matching(ignored)}: repeat with no_ignore=true."
    if hidden:
        yield f"Among the hidden {_matching(hidden)}: name it in path or include."


def longest_secret() -> int:
    """How many characters the longest variable can have, as it is or escaped for JSON or a URL."""
    longest = max(map(len, os.environb.values()), default=0)
    return max(MARGIN_CHARS, 3 * longest)  # a URL spells a byte `%C3`, JSON two of them `\\u00e9`


def _matching(files: list[File]) -> str:
    """How many files match, and the newest: `3 files match, the newest 'a.py'`."""
    newest = f"'{files[0].shown}'"
    return (
        f"{newest} matches" if len(files) == 1 else f"{len(files)} files match, the newest {newest}"
    )


def _number(count: int, what: str) -> str:
    return f"{count} {what}" + ("" if count == 1 else "s")


def _skipped(found: Found) -> str:
    named = [(found.facts.get(name, 0), word) for name, word in REASONS]
    return ", ".join(f"{count} {word}" for count, word in named if count)


def _unsearched(found: Found, shown: "Json", skipped: bool = True) -> "Iterator[str]":
    """The facts about what was not searched, and with what else it was."""
    if INSTEAD:
        yield INSTEAD
    if skipped and (named := _skipped(found)):
        yield f"skipped: {named}"
    if found.stuck:
        yield "incomplete: the pattern did not come to an end in " + ", ".join(
            f"'{shown(path)}'" for path in found.stuck
        )
    elif found.died:
        searched = sum(found.files.values())
        yield f"incomplete: a searching process ended or hung after {_number(searched, 'file')}; repeat"
    elif found.incomplete:
        searched = sum(found.files.values())
        at = f" at '{shown(found.at)}'" if found.at else ""
        yield f"incomplete: time ran out{at} after {_number(searched, 'file')}; narrow path or include"


def _structured(found: Found) -> "dict[str, Json]":
    data: dict[str, Json] = {}
    if counts := {name: count for name, count in found.facts.items() if count}:
        data["skipped"] = counts
    if found.incomplete or found.stuck:
        data["incomplete"] = True
    return data
