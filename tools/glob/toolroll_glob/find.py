"""The files below a directory that match a pattern, with what was left out; knows no wire and prints nothing.

Everything is reached by descriptor from the start and never through a link.
"""

import os
from errno import ELOOP, ENOENT, ENOTDIR
from heapq import nsmallest
from stat import S_IFMT, S_IFREG, S_ISLNK
from time import monotonic

from toolroll.globs import matcher
from toolroll.listing import BATCH_ENTRIES, Listing, Listings
from toolroll.paths import quoted
from toolroll.trail import Trail, Trails
from toolroll.walk import Branch, Rules, not_ignored
from toolroll_glob.pattern import Glob

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Hashable, Iterator, Sequence

    from toolroll.call import Call
    from toolroll.globs import Verdicts
    from toolroll.paths import Opened
    from toolroll_glob.pattern import Stage

    Found = tuple[int, str, int, int]
    Way = tuple[str, Stage, bool]  # a folder to enter: name, what is looked for there, dots lifted

LOOK_S = 0.02
"""Time between two looks at the call: a clock costs less than what is asked of it."""

PROGRESS_S = 0.5
"""Time between two words to the host."""

MAGIC = frozenset("*?[]{}()!@+\\")
"""A name in a pattern that holds one of these may not be a plain one."""

CACHE_MB = 256
FORMAT = S_IFMT(0o177777)
GONE = (ENOENT, ENOTDIR, ELOOP)

TRAILS_PART = 8
"""This part of the room is for what searches met, the rest for listings."""

listings = Listings()
trails = Trails()
"""Shared by all calls of a server."""


def start_of(pattern: str, path: str) -> tuple[str, str]:
    """The directory to start in and the pattern from there: an absolute pattern brings its own."""
    if not pattern.startswith(("/", "~/")):
        return path, pattern
    names = pattern.split("/")
    depth = 1
    while depth < len(names) - 1 and not MAGIC.intersection(names[depth]):
        depth += 1
    return "/".join(names[:depth]) or "/", "/".join(names[depth:])


class Skipped:
    """What was not looked at, in entries by reason: a directory left out is one, whatever it holds."""

    __slots__ = (
        "denied",
        "excluded",
        "hidden",
        "ignored",
        "links",
        "unlisted",
        "unreadable",
        "vanished",
    )

    def __init__(self) -> None:
        self.ignored = self.hidden = self.links = self.unreadable = self.vanished = 0
        self.excluded = self.denied = self.unlisted = 0

    def become(self, other: "Skipped") -> "Skipped":
        """The same numbers as another's."""
        for reason in self.__slots__:
            setattr(self, reason, getattr(other, reason))
        return self

    @property
    def by_reason(self) -> dict[str, int]:
        """The counts that are not zero."""
        reasons = {
            "ignored": self.ignored,
            "hidden": self.hidden,
            "links": self.links,
            "by 'exclude'": self.excluded,
            "closed by --deny": self.denied,
            "outside --include": self.unlisted,
            "unreadable": self.unreadable,
            "vanished": self.vanished,
        }
        return {reason: count for reason, count in reasons.items() if count}


class Gate:
    """What `exclude`, `--deny` and `--include` leave of the matches, by paths from the start.

    `--include` is read from the root around the start, as `--deny` is.
    Raises: ToolError INVALID_PARAMS for impossible globs.
    """

    __slots__ = ("_base", "_below_root", "_denied", "_excluded", "_included", "_skipped")

    def __init__(
        self, start: str, exclude: "Sequence[str]", call: "Call", skipped: Skipped
    ) -> None:
        include = call.options.get("include")
        self._excluded = matcher(exclude) if exclude else None
        self._included = matcher(include) if include else None
        self._denied = call.roots.denied if call.roots.denies else None
        self._base = start.rstrip("/") + "/"
        self._below_root = below_root(start, call)
        self._skipped = skipped

    def entered(self, place: str, names: "Sequence[str]") -> "Sequence[str]":
        """Those of the folders `names` that may be entered; the others are counted."""
        names = self._open(place, names, is_directory=True)
        excluded = self._excluded
        if excluded is None:
            return names
        wanted = [name for name in names if not excluded(place + name, True)]
        self._skipped.excluded += len(names) - len(wanted)
        return wanted

    def listed(self, place: str, names: "Sequence[str]") -> "Sequence[str]":
        """Those of the files `names` that may be listed; the others are counted."""
        names = self._open(place, names, is_directory=False)
        if self._excluded is None and self._included is None:
            return names
        return [name for name in names if self._is_wanted(place + name)]

    def _open(self, place: str, names: "Sequence[str]", *, is_directory: bool) -> "Sequence[str]":
        """Those of `names` that the operator has not closed."""
        denied = self._denied
        if denied is None:
            return names
        here = self._base + place
        kept = [name for name in names if denied(here + name, is_directory) is None]
        self._skipped.denied += len(names) - len(kept)
        return kept

    def _is_wanted(self, path: str) -> bool:
        if self._excluded is not None and self._excluded(path, False):
            self._skipped.excluded += 1
        elif self._included is not None and not self._included(self._below_root + path, False):
            self._skipped.unlisted += 1
        else:
            return True
        return False


def below_root(path: str, call: "Call") -> str:
    """A real path from its root, with a closing slash; empty for the root itself."""
    for root in call.roots.folders:
        top = root.rstrip("/") + "/"
        if (path + "/").startswith(top):
            return (path + "/")[len(top) :]
    return ""


class Search:
    """One search below a directory; `run` does it.

    `total` counts the matches, `incomplete` is where it stopped when time ran out, else None, and
    `missing` says why the folders that the pattern begins with could not be entered.
    """

    __slots__ = (
        "_exclude",
        "_found",
        "_gate",
        "_lifted",
        "_limit",
        "_look_at",
        "_oldest_ns",
        "_place",
        "_told_at",
        "_trail",
        "call",
        "glob",
        "incomplete",
        "missing",
        "no_ignore",
        "opened",
        "pattern",
        "skipped",
        "total",
    )

    def __init__(
        self,
        opened: "Opened",
        pattern: str,
        exclude: "Sequence[str]",
        call: "Call",
        *,
        no_ignore: bool = False,
        lifted: bool = False,
    ) -> None:
        self.opened = opened
        self.pattern = pattern
        self.glob = Glob(pattern)
        self.call = call
        self.no_ignore = no_ignore
        self.skipped = Skipped()
        self.total = 0
        self.incomplete: str | None = None
        self.missing = ""
        self._exclude = exclude
        self._gate = Gate(opened.path, exclude, call, self.skipped)
        self._lifted = lifted or "/." in f"/{below_root(opened.path, call)}"
        self._limit = 0
        self._oldest_ns = -(1 << 127)  # of what is still of interest
        self._found: list[Found] = []
        self._place = ""
        self._trail: Trail | None = None
        self._look_at = 0.0
        self._told_at = monotonic()

    def again(
        self, pattern: str = "", *, no_ignore: bool = False, lifted: bool = False
    ) -> "Search":
        """The same search for another pattern, or with ignored or hidden entries looked at."""
        return Search(
            self.opened,
            pattern or self.pattern,
            self._exclude,
            self.call,
            no_ignore=no_ignore or self.no_ignore,
            lifted=lifted,
        )

    def run(self, limit: int) -> "list[Found]":
        """The newest `limit` matches, each (minus mtime in ns, path from the start, size, mode).

        With a limit of 0 they are only counted.
        Raises: ToolError CANCELLED, or TIMEOUT for a pattern that does not come to an end.
        """
        self._limit = limit
        most = self.call.options.get("cache-mb", CACHE_MB) * 1_000_000
        listings.begin(most - most // TRAILS_PART)
        rules = Rules.at(self.opened.path, no_ignore=self.no_ignore)
        branch = Branch(self.opened.fd)
        try:
            top = self._go_to_start(branch, rules)
            if top is not None and not self._follow(top[1]):
                self._trail = Trail(top[1], most // TRAILS_PART)
                self._walk(branch, *top)
                self._keep(self._trail, most // TRAILS_PART)
        finally:
            branch.close()
        return nsmallest(limit, self._found)

    @property
    def _asked(self) -> "Hashable":
        """What must be the same for a trail to be this search's."""
        include = tuple(self.call.options.get("include") or ())
        how = self.no_ignore, self._lifted, tuple(self._exclude), include
        return self.call.roots, self.opened.path, self.pattern, how

    def _follow(self, rules: Rules) -> bool:
        """True when an earlier search met the same: what matched was looked at, and all else is known."""
        known = trails.of(self._asked)
        if known is None:
            return False
        trail, skipped = known
        if not trail.holds(self.opened.fd, rules, self._goes_on):
            return False
        self.skipped.become(skipped)
        for place, fd, names in trail.stops(self.opened.fd, self._refused):
            if not self._goes_on():
                break
            self._look(place, fd, names)
        return True

    def _keep(self, trail: Trail, most: int) -> None:
        """Keep the trail of a walk that saw everything."""
        lost = self.skipped.unreadable or self.skipped.vanished
        trail.is_whole &= self.incomplete is None and not lost
        trails.keep(self._asked, trail, Skipped().become(self.skipped), most)

    def _go_to_start(self, branch: Branch, rules: Rules) -> "tuple[int, Rules] | None":
        """The directory all matches lie in and the rules there; None when there is no way to it."""
        fd = self.opened.fd
        for name in self.glob.fixed:
            path = branch.path + name
            if rules.ignores(name, True):
                self.skipped.ignored += 1
                return None
            if not self._gate.entered(branch.path, [name]):
                return None
            try:
                child = branch.down(name)
            except OSError as error:
                self.missing = why_not(path, fd, name, error)
                return None
            rules = rules.enter(name, child)
            fd = child
            self._lifted |= name.startswith(".")
        return fd, rules

    def _walk(self, branch: Branch, fd: int, rules: Rules) -> None:
        place = branch.path
        listing = self._listing(fd, place)
        ways = self._visit(fd, listing, rules, ("", self.glob.stage, self._lifted))
        levels = [(place, rules, ways)]
        while True:
            if not ways:
                levels.pop()
                if not levels:
                    return
                branch.up()
                place, rules, ways = levels[-1]
                continue
            if not self._goes_on():
                return
            way = ways.pop()
            name = way[0]
            try:
                fd = branch.down(name)
            except OSError as error:
                self._refused(error)
                continue
            place = f"{place}{name}/"
            listing = self._listing(fd, place)
            outer, rules = rules, rules.enter(name, fd, listing.dotted)
            ways = self._visit(fd, listing, rules, way, outer)
            levels.append((place, rules, ways))

    def _listing(self, fd: int, place: str) -> "Listing":
        self._place = place
        try:
            return listings.of(fd, self._goes_on)
        except OSError as error:
            self._refused(error)
            return Listing()

    def _visit(
        self, fd: int, listing: "Listing", rules: Rules, way: "Way", outer: Rules | None = None
    ) -> "list[Way]":
        """The folders to enter from one directory; its matches are taken.

        `outer` are the rules of the directory that it was entered from.
        """
        name, stage, lifted = way
        files = listing.files
        if stage.is_slow or len(files) > BATCH_ENTRIES:
            matched = self._matching(files, stage)
        else:
            matched = stage.matching(files)
        if matched:
            matched = self._not_ignored(matched, rules.verdicts(False), listing.is_ascii)
        ways: list[Way] = []
        if listing.folders and (stage.others or stage.has_doors):
            ways = self._ways(listing, rules.verdicts(True), stage, lifted)
        if listing.dotted:
            dotted, more = self._dotted(listing, rules, stage, lifted)
            matched = [*matched, *dotted]
            ways += more
        self.skipped.links += listing.links
        if matched:
            matched = self._listed(matched)
            self._look(self._place, fd, matched)
        if self._trail is not None:
            entered = None if outer is None else (outer, name, rules)
            self._trail.enter(self._place, listing, entered)
            if matched:
                self._trail.find(self._place, listing.stamp, len(matched), matched)
        return ways

    def _matching(self, files: "Sequence[str]", stage: "Stage") -> "Sequence[str]":
        if stage.is_slow:
            return [name for name in files if self._goes_on() and stage.files.has(name)]
        return [name for batch in self._batches(files) for name in stage.matching(batch)]

    def _not_ignored(
        self, names: "Sequence[str]", verdicts: "Verdicts", is_ascii: bool
    ) -> "Sequence[str]":
        if not verdicts.runs:
            return names
        kept: list[str] = []
        seen = 0
        for batch in self._batches(names):
            seen += len(batch)
            kept += not_ignored(batch, verdicts, is_ascii)
        self.skipped.ignored += seen - len(kept)
        return kept

    def _ways(
        self, listing: "Listing", verdicts: "Verdicts", stage: "Stage", lifted: bool
    ) -> "list[Way]":
        below = None if stage.has_doors else stage.others
        names: Sequence[str] = listing.folders
        if below is None:
            names = [
                name
                for batch in self._batches(names)
                for name in batch
                if stage.below(name) is not None
            ]
        return [
            (name, inner, lifted)
            for batch in self._batches(self._not_ignored(names, verdicts, listing.is_ascii))
            for name in self._gate.entered(self._place, batch)
            if (inner := below or stage.below(name))
        ]

    def _dotted(
        self, listing: "Listing", rules: Rules, stage: "Stage", lifted: bool
    ) -> "tuple[list[str], list[Way]]":
        """The matches and the folders to enter among the entries with a leading dot."""
        files: list[str] = []
        ways: list[Way] = []
        for name, is_folder in listing.dotted.items():
            if is_folder is None or not self._goes_on():
                continue
            verdict = rules.verdict(name, is_folder)
            is_plain = lifted or (verdict is False and name != ".git")
            named = stage.below_dotted(name) if is_folder else None
            inner = stage.below(name) if is_folder else None
            if is_folder:
                shown, wanted = bool(named or (is_plain and inner)), bool(named or inner)
            else:
                wanted = stage.files.has(name)
                shown = stage.dotted_files.has(name) or (is_plain and wanted)
            if verdict:
                self.skipped.ignored += shown or wanted
            elif not shown:
                self.skipped.hidden += wanted
            elif not is_folder:
                files.append(name)
            elif (here := inner if is_plain else named) and self._gate.entered(self._place, [name]):
                ways.append((name, here, lifted or named is not None))
        return files, ways

    def _listed(self, matched: "Sequence[str]") -> "Sequence[str]":
        """Those of the matches that may be listed."""
        if len(matched) <= BATCH_ENTRIES:
            return self._gate.listed(self._place, matched)
        batches = self._batches(matched)
        return [name for batch in batches for name in self._gate.listed(self._place, batch)]

    def _look(self, place: str, fd: int, names: "Sequence[str]") -> None:
        """Look at each match in an open directory and remember it, unless enough newer ones are known."""
        self._place = place
        if not self._limit:
            self.total += len(names)
            return
        found, stat, oldest = self._found, os.stat, self._oldest_ns
        for batch in self._batches(names):
            gone = 0
            for name in batch:
                try:
                    status = stat(name, dir_fd=fd, follow_symlinks=False)
                except OSError as error:
                    self._refused(error)
                    gone += 1
                    continue
                mode, time_ns = status.st_mode, status.st_mtime_ns
                if mode & FORMAT != S_IFREG:
                    gone += 1
                elif time_ns >= oldest:
                    found.append((-time_ns, place + name, status.st_size, mode))
            self.total += len(batch) - gone
            if len(found) > 2 * self._limit + BATCH_ENTRIES:
                found[:] = nsmallest(self._limit, found)
                oldest = self._oldest_ns = -found[-1][0]

    # -- while it runs

    def _batches(self, names: "Sequence[str]") -> "Iterator[Sequence[str]]":
        """`names` in pieces small enough to look at the call in between."""
        if len(names) <= BATCH_ENTRIES:
            yield names
            return
        for at in range(0, len(names), BATCH_ENTRIES):
            if at and not self._goes_on():
                return
            yield names[at : at + BATCH_ENTRIES]

    def _goes_on(self) -> bool:
        """False when time ran out.  Raises: ToolError CANCELLED."""
        now = monotonic()
        if now < self._look_at:
            return True
        call = self.call
        call.check()
        if self.incomplete is None and call.expired:
            self.incomplete = self._place
        if self.incomplete is not None:
            return False
        self._look_at = now + LOOK_S
        if call.wants_progress and now - self._told_at > PROGRESS_S:
            self._told_at = now
            place = quoted(self._place or ".")
            call.progress(self.total, message=f"{self.total} files match, now in {place}")
        return True

    def _refused(self, error: OSError) -> None:
        if error.errno in GONE:
            self.skipped.vanished += 1
        else:
            self.skipped.unreadable += 1


def why_not(path: str, fd: int, name: str, error: OSError) -> str:
    """Why the folder `name` of `fd` could not be entered, as a sentence."""
    if error.errno in GONE:
        try:
            mode = os.stat(name, dir_fd=fd, follow_symlinks=False).st_mode
        except OSError:
            return f"there is no {quoted(path)}"
        if S_ISLNK(mode):
            return f"{quoted(path)} is a link, which is not entered: give it as path"
        return f"{quoted(path)} is not a directory"
    return f"{quoted(path)} cannot be opened: {os.strerror(error.errno or 0).lower()}"
