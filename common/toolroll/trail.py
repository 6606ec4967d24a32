"""What a walk met and may meet again: every directory as it was, the rules in it, and what was found there.

Where all directories and ignore files are as they were, the same would be met: so no name need be looked at
again.  Nothing is taken for true that is not asked for anew.  Knows neither names nor patterns.
"""

import os
from _thread import allocate_lock

from toolroll.listing import BATCH_ENTRIES, FOLDER_FLAGS, identity

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterator
    from typing import Any

    from toolroll.listing import Listing, Stamp

    Rules = Any  # of toolroll.walk, which stands above
    Entered = tuple[Rules, str, Rules]

TRAILS = 8
"""So many walks are kept."""

DIRECTORY_BYTES, RULES_BYTES, NAME_BYTES = 300, 300, 80
"""What keeping a directory costs besides its path, one with rules, and a name that was found."""

PATH_CHARS = 1_000
"""Longer paths are walked down quicker than they are opened whole."""

RULED = 150
"""Rules compare as long as they are kept compiled, which so many surely are."""

RULE_FILES = frozenset((".gitignore", ".ignore", ".git"))
"""What gives a directory rules of its own."""


class Trail:
    """A walk below one directory under `rules`; it keeps at most `most` bytes.

    `is_whole` turns False when it cannot be kept.  All paths are relative to the start and end in a slash
    (empty for the start).
    """

    __slots__ = ("_most", "_paths", "_ruled", "_rules", "_stamps", "_stops", "is_whole", "size")

    def __init__(self, rules: "Rules", most: int) -> None:
        self._rules = rules
        self._most = most
        self._paths: list[str] = []
        self._stamps: list[Stamp] = []
        self._ruled: list[tuple[str, Entered, Collection[str]]] = []
        self._stops: list[tuple[str, Stamp, Any]] = []
        self.is_whole = True
        self.size = 0

    def enter(self, path: str, listing: "Listing", entered: "Entered | None" = None) -> None:
        """Tell a directory that is gone into, and how: from outer rules, by its name, into its own."""
        has_rules = entered is not None and not RULE_FILES.isdisjoint(listing.dotted)
        self.size += DIRECTORY_BYTES + len(path) + RULES_BYTES * has_rules
        stamp = listing.stamp
        if self.size > self._most or len(path) > PATH_CHARS or len(self._ruled) > RULED:
            self.is_whole = False
        if stamp is None or not self.is_whole:
            self.is_whole = False
            return
        self._paths.append(path[:-1] or ".")
        self._stamps.append(stamp)
        if entered is not None and has_rules:
            self._ruled.append((path[:-1], entered, RULE_FILES.intersection(listing.dotted)))

    def find(self, path: str, stamp: "Stamp | None", count: int, what: "Any") -> None:
        """Tell what was found in a directory, `count` names or so."""
        self.size += NAME_BYTES * count
        if self.is_whole and stamp is not None:
            self._stops.append((path, stamp, what))

    def holds(self, fd: int, rules: "Rules", goes_on: "Callable[[], bool]") -> bool:
        """True when all is as it was below the open directory, which is under `rules` now."""
        if rules.stacks != self._rules.stacks:
            return False
        stat = os.stat
        try:
            for at in range(0, len(self._paths), BATCH_ENTRIES):
                if not goes_on():
                    return False
                paths = self._paths[at : at + BATCH_ENTRIES]
                now = [identity(stat(path, dir_fd=fd, follow_symlinks=False)) for path in paths]
                if now != self._stamps[at : at + BATCH_ENTRIES]:
                    return False
            return all(_rule_as_before(fd, *ruled) for ruled in self._ruled)
        except OSError:
            return False

    def stops(
        self, fd: int, refused: "Callable[[OSError], None]"
    ) -> "Iterator[tuple[str, int, Any]]":
        """Each directory in which something was found: its path, its descriptor until the next step, and what.

        One that is no longer there, or is another by now, is left out; `refused` is told the error.
        """
        for path, stamp, what in self._stops:
            try:
                here = os.open(path[:-1] or ".", FOLDER_FLAGS, dir_fd=fd)
            except OSError as error:
                refused(error)
                continue
            try:
                # What was opened is asked: the way to it may have led through a link.
                if identity(os.fstat(here))[:2] == stamp[:2]:
                    yield path, here, what
                else:
                    refused(FileNotFoundError(2, "another directory"))
            finally:
                os.close(here)


def _rule_as_before(fd: int, path: str, entered: "Entered", dotted: "Collection[str]") -> bool:
    """True when the ignore files of a directory make the rules they made.  Raises: OSError."""
    before, name, rules = entered
    here = os.open(path, FOLDER_FLAGS, dir_fd=fd)
    try:
        return bool(before.enter(name, here, dotted).stacks == rules.stacks)
    finally:
        os.close(here)


class Trails:
    """The last trails by what was walked; calls side by side may share them.

    With each lies what its owner wants to know again; `most` bytes are kept in all.
    """

    __slots__ = ("_kept", "_lock", "size")

    def __init__(self) -> None:
        self._kept: dict[Hashable, tuple[Trail, Any]] = {}
        self._lock = allocate_lock()
        self.size = 0

    def of(self, walk: "Hashable") -> "tuple[Trail, Any] | None":
        """The trail of a walk, which is the last one now, and what lies with it."""
        with self._lock:
            kept = self._kept.pop(walk, None)
            if kept is not None:
                self._kept[walk] = kept
        return kept

    def keep(self, walk: "Hashable", trail: Trail, with_it: "Any", most: int) -> None:
        """Keep a trail instead of the walk's last one, and no more of the oldest than `most` bytes allow."""
        with self._lock:
            self._kept.pop(walk, None)
            if trail.is_whole:
                self._kept[walk] = trail, with_it
            self.size = sum(kept.size for kept, _ in self._kept.values())
            while len(self._kept) > TRAILS or self.size > most:
                oldest, _ = self._kept.pop(next(iter(self._kept)))
                self.size -= oldest.size
