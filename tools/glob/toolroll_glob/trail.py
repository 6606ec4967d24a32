"""What searches met and may meet again: every directory as it was, and the names that matched in it.

A search whose directories and ignore rules are all as they were need not look at a name again; only the
files that matched are asked for their sizes and times.  Nothing is taken for true that is not asked for
anew in every call.  Knows no pattern.
"""

import os
from _thread import allocate_lock

from toolroll.listing import BATCH_ENTRIES, identity
from toolroll.walk import FOLDER_FLAGS, RULE_FILES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Sequence

    from toolroll.listing import Listing, Stamp
    from toolroll.walk import Rules
    from toolroll_glob.find import Skipped

    Entered = tuple[Rules, str, Rules]  # the parent's rules, the directory's name, its own rules
    Stop = tuple[str, Stamp, Sequence[str], Entered | None, Collection[str]]

TRAILS = 8
"""Of so many searches it is kept what they met."""

DIRECTORY_BYTES, NAME_BYTES = 500, 80
"""What keeping a directory costs besides its path, and a name that matched."""


class Trail:
    """One search from its start; `skipped` is what it left out, `is_whole` false when it cannot be kept."""

    __slots__ = ("_most", "_places", "_rules", "_stamps", "_stops", "is_whole", "size", "skipped")

    def __init__(self, rules: "Rules", most: int) -> None:
        self._rules = rules
        self._most = most
        self._places: list[str] = []  # nothing matched in these, and they hold no rules
        self._stamps: list[Stamp] = []
        self._stops: list[Stop] = []
        self.is_whole = True
        self.size = 0
        self.skipped: Skipped | None = None

    def add(
        self, place: str, listing: "Listing", names: "Sequence[str]", entered: "Entered | None"
    ) -> None:
        """Tell the next directory, by its path from the start, and which of its names matched."""
        self.size += DIRECTORY_BYTES + len(place) + NAME_BYTES * len(names)
        if not self.is_whole or listing.stamp is None or self.size > self._most:
            self.is_whole = False
            return
        has_rules = entered is not None and not RULE_FILES.isdisjoint(listing.dotted)
        path = place[:-1] or "."
        if names or has_rules:
            rules = entered if has_rules else None
            self._stops.append((path, listing.stamp, names, rules, listing.dotted))
        else:
            self._places.append(path)
            self._stamps.append(listing.stamp)

    def follow(
        self,
        fd: int,
        rules: "Rules",
        goes_on: "Callable[[], bool]",
        look: "Callable[[str, int, Sequence[str]], None]",
    ) -> bool:
        """True when all is as it was; False, perhaps late, when anything is not.

        `look` is given each directory in which names matched: its path with a closing slash, open
        descriptor, and names.  Nothing more is done when `goes_on` says no.
        """
        if rules.stacks != self._rules.stacks:
            return False
        try:
            if not self._holds(fd, goes_on):
                return False
            for path, stamp, names, entered, dotted in self._stops:
                here = os.open(path, FOLDER_FLAGS, dir_fd=fd)
                try:
                    # What was opened is asked: the way to it may have led through a link.
                    if identity(os.fstat(here)) != stamp or _differ(entered, here, dotted):
                        return False
                    if not goes_on():
                        break
                    look("" if path == "." else path + "/", here, names)
                finally:
                    os.close(here)
        except OSError:
            return False
        return True

    def _holds(self, fd: int, goes_on: "Callable[[], bool]") -> bool:
        """True when the directories without a match are as they were.  Raises: OSError."""
        stat = os.stat
        for at in range(0, len(self._places), BATCH_ENTRIES):
            if not goes_on():
                return False
            places = self._places[at : at + BATCH_ENTRIES]
            now = [identity(stat(path, dir_fd=fd, follow_symlinks=False)) for path in places]
            if now != self._stamps[at : at + BATCH_ENTRIES]:
                return False
        return True


def _differ(entered: "Entered | None", fd: int, dotted: "Collection[str]") -> bool:
    """True when the files in an open directory make other rules than they did."""
    if entered is None:
        return False
    before, name, rules = entered
    return before.enter(name, fd, dotted).stacks != rules.stacks


class Trails:
    """The last trails by what was searched; calls side by side may share them."""

    __slots__ = ("_kept", "_lock")

    def __init__(self) -> None:
        self._kept: dict[Hashable, Trail] = {}
        self._lock = allocate_lock()

    def of(self, search: "Hashable") -> Trail | None:
        """The trail of a search, which is the last one now."""
        with self._lock:
            trail = self._kept.pop(search, None)
            if trail is not None:
                self._kept[search] = trail
        return trail

    def keep(self, search: "Hashable", trail: Trail, most: int) -> None:
        """Keep a finished trail, and no more of the oldest ones than `most` bytes allow."""
        with self._lock:
            self._kept.pop(search, None)
            if not trail.is_whole:
                return
            self._kept[search] = trail
            while len(self._kept) > TRAILS or self.size > most:
                del self._kept[next(iter(self._kept))]

    @property
    def size(self) -> int:
        """About how many bytes all of them take."""
        return sum(trail.size for trail in self._kept.values())
