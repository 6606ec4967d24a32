"""One ignore-and-walk engine: the rules in force in a directory, and the files below it by descriptor.

Knows no tool and no root: it never follows a link and never leaves the directory it was given.
The rules are git's and ripgrep's: `.ignore` counts everywhere; `.gitignore`, `info/exclude` and the
user's global excludes only inside a repository; a nested repository starts anew.
"""

import os
from errno import ELOOP, ENOENT, ENOTDIR
from os import O_CLOEXEC, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY
from stat import S_ISREG

from toolroll.globs import Patterns, Verdicts, ignore_patterns, octets
from toolroll.listing import BATCH_ENTRIES, FOLDER_FLAGS, Listing, Listings
from toolroll.trail import RULE_FILES, Trail

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence

    from toolroll.call import Call
    from toolroll.listing import Stamp

    Folder = tuple[str, int, Sequence[str]]
    Shown = tuple[Sequence[str], Sequence[str], int, int]
    Stacks = tuple[tuple[Patterns, ...], tuple[Patterns, ...] | None]

IGNORE_BYTES = 512 * 1024
"""How much of an ignore file is read: a hundred times the largest seen; the rest has no effect."""

OPEN_LEVELS = 64
"""Directories of one branch kept open at once: 8 walks side by side stay below the usual 1024."""

INCLUDE_LEVELS = 10
"""How deep git configuration files may include each other, as in git."""

ALIKE_RULES = 200
"""Compiled ignore files, and sets of rules of one walk, that are kept for the directories to come."""

FILE_FLAGS = O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC

_compiled: "dict[bytes, Patterns | None]" = {}  # by content, so never stale; many files are alike


class Skipped:
    """What a walk did not show, in entries: a directory left out is one, whatever it holds.

    `incomplete` is True when time ran out before the end.
    """

    __slots__ = ("hidden", "ignored", "incomplete", "unreadable", "vanished")

    def __init__(self) -> None:
        self.ignored = self.hidden = self.unreadable = self.vanished = 0
        self.incomplete = False


# ---- the rules in force ----


class Rules:
    """The ignore rules in force for the names of one directory.

    Two stacks, the strongest first: the `.ignore` files from here upwards, then git's: `.gitignore`
    from here up to the repository's top, its `info/exclude`, the global excludes; None for git's
    outside any repository.  Equal `stacks` mean the same.
    """

    __slots__ = ("_alike", "_is_still", "_uses_files", "_uses_git", "_verdicts", "stacks")

    def __init__(
        self,
        stacks: "Stacks" = ((), None),
        *,
        uses_files: bool = True,
        uses_git: bool = True,
        alike: "dict[Stacks, Rules] | None" = None,
    ) -> None:
        own, git = self.stacks = stacks
        self._uses_files = uses_files
        self._uses_git = uses_git
        self._is_still = all(patterns.is_still for patterns in own + (git or ()))
        self._verdicts: list[Verdicts | None] = [None, None]
        self._alike = {} if alike is None else alike  # one object for all directories with the same

    @classmethod
    def at(cls, path: str, *, no_ignore: bool = False, no_ignore_vcs: bool = False) -> "Rules":
        """The rules in force in the directory `path` (absolute, real), those of its parents included.

        As for ripgrep, a start that is itself ignored is looked into all the same.
        """
        if no_ignore:
            return cls(uses_files=False)
        uses_git = not no_ignore_vcs
        place = "/"
        stacks = _found(((), None), place, None, None, uses_git=uses_git)
        for name in path.split("/"):
            if name:
                place += name + "/"
                stacks = _found(_passed(stacks, name), place, None, None, uses_git=uses_git)
        return cls(stacks, uses_git=uses_git)

    def enter(
        self, name: str, directory_fd: int, names: "Collection[str] | None" = None
    ) -> "Rules":
        """The rules in force in the child directory `name`, which is open as `directory_fd`.

        `names` are the child's entries, when they are known already: it saves asking for the files.
        """
        if not self._uses_files:
            return self
        stacks = self.stacks if self._is_still else _passed(self.stacks, name)
        if names is None or not RULE_FILES.isdisjoint(names):
            stacks = _found(stacks, "", directory_fd, names, uses_git=self._uses_git)
        return self if stacks == self.stacks else self._with(stacks)

    def _with(self, stacks: "Stacks") -> "Rules":
        known = self._alike.get(stacks)
        if known is None:
            if len(self._alike) > ALIKE_RULES:
                self._alike.clear()
            known = Rules(stacks, uses_git=self._uses_git, alike=self._alike)
            self._alike[stacks] = known
        return known

    def verdict(self, name: str, is_directory: bool) -> bool | None:
        """True for ignored, False for taken back in by a `!` line, None for not named by any rule."""
        return self.verdicts(is_directory).of(octets(name))

    def ignores(self, name: str, is_directory: bool) -> bool:
        """True when the entry `name` of this directory is ignored (links count as files)."""
        return bool(self.verdict(name, is_directory))

    def verdicts(self, is_directory: bool) -> Verdicts:
        """What all the rules together say here of directories, or of all else."""
        made = self._verdicts[is_directory]
        if made is None:
            own, git = self.stacks
            runs = [run for patterns in own + (git or ()) for run in patterns.runs(is_directory)]
            made = self._verdicts[is_directory] = Verdicts(runs)
        return made


def _passed(stacks: "Stacks", name: str) -> "Stacks":
    """The rules as seen from below the directory `name`, before its own files are read."""
    own, git = stacks
    key = octets(name)
    own = tuple(seen for patterns in own if (seen := patterns.below(key)))
    if git is not None:
        git = tuple(seen for patterns in git if (seen := patterns.below(key)))
    return own, git


def _found(
    stacks: "Stacks",
    place: str,
    directory_fd: int | None,
    names: "Collection[str] | None",
    *,
    uses_git: bool,
) -> "Stacks":
    """The rules with those of the ignore files in `place` (absolute, or relative to the descriptor)."""
    own, git = stacks
    if names is None or ".ignore" in names:
        own = _file_patterns(place + ".ignore", directory_fd) + own
    if uses_git and (names is None or ".git" in names):
        repository = _repository(place, directory_fd)
        git = git if repository is None else repository
    if git is not None and (names is None or ".gitignore" in names):
        git = _file_patterns(place + ".gitignore", directory_fd) + git
    return own, git


def _file_patterns(
    path: str, directory_fd: int | None = None, *, follow: bool = False
) -> tuple[Patterns, ...]:
    content = _content(path, directory_fd, follow=follow)
    if not content:
        return ()
    if content not in _compiled:
        if len(_compiled) > ALIKE_RULES:
            _compiled.clear()
        _compiled[content] = ignore_patterns(content)
    patterns = _compiled[content]
    return (patterns,) if patterns else ()


def _content(path: str, directory_fd: int | None = None, *, follow: bool = False) -> bytes | None:
    """The bytes of a regular file, None for anything else.

    git does not follow a link in the place of a `.gitignore` (gitignore(5)), so neither does this.
    """
    try:
        fd = os.open(path, FILE_FLAGS | (0 if follow else O_NOFOLLOW), dir_fd=directory_fd)
    except (OSError, ValueError):  # ValueError: a NUL in a name that a configuration file gave
        return None
    try:
        if not S_ISREG(os.fstat(fd).st_mode):
            return None
        content = os.read(fd, IGNORE_BYTES + 1)
    except OSError:
        return None
    finally:
        os.close(fd)
    return content if len(content) <= IGNORE_BYTES else content[: content.rfind(b"\n") + 1]


# ---- git's own files ----


def _repository(place: str, directory_fd: int | None) -> tuple[Patterns, ...] | None:
    """info/exclude and global excludes of the repository whose top is `place`, None when there is none."""
    dot_git = place + ".git"
    if not os.access(dot_git, os.F_OK, dir_fd=directory_fd):
        return None
    common = _common_directory(place, dot_git, directory_fd)
    exclude = _file_patterns(f"{common}/info/exclude", directory_fd, follow=True)
    excludes = _excludes_file(f"{common}/config", directory_fd)
    if not excludes:
        return exclude
    return exclude + _file_patterns(os.path.join(place, excludes), directory_fd, follow=True)


def _common_directory(place: str, dot_git: str, directory_fd: int | None) -> str:
    """Where the repository keeps what its work trees share (gitrepository-layout(5))."""
    pointer = _content(dot_git, directory_fd, follow=True)
    if pointer is None or not pointer.startswith(b"gitdir:"):
        return dot_git
    git_dir = os.path.join(place, os.fsdecode(pointer[len(b"gitdir:") :].strip(b" \r\n")))
    common = _content(f"{git_dir}/commondir", directory_fd, follow=True)
    return os.path.join(git_dir, os.fsdecode(common.strip(b" \r\n"))) if common else git_dir


def _excludes_file(repository_config: str, directory_fd: int | None) -> str:
    """`core.excludesFile`: the last one of system, user and repository; git-config(1) FILES."""
    environ = os.environ
    xdg = environ.get("XDG_CONFIG_HOME") or os.path.expanduser("~/.config")
    files = [xdg + "/git/config", os.path.expanduser("~/.gitconfig")]
    if "GIT_CONFIG_GLOBAL" in environ:
        files = [environ["GIT_CONFIG_GLOBAL"]]
    if environ.get("GIT_CONFIG_NOSYSTEM", "").lower() in {"", "0", "false", "no", "off"}:
        files.insert(0, environ.get("GIT_CONFIG_SYSTEM", "/etc/gitconfig"))
    found = xdg + "/git/ignore"
    for config in [*files, repository_config]:
        for key, value in _settings(config, directory_fd):
            found = os.path.expanduser(value) if key == "core.excludesfile" else found
    return found


def _settings(path: str, directory_fd: int | None, level: int = 0) -> "Iterator[tuple[str, str]]":
    """The settings of a git configuration file and of what it includes (`includeIf` is not read)."""
    content = _content(path, directory_fd, follow=True)
    if content is None:
        return
    for key, value in git_settings(os.fsdecode(content.removeprefix(b"\xef\xbb\xbf"))):
        yield key, value
        if key == "include.path" and level < INCLUDE_LEVELS:
            included = os.path.join(os.path.dirname(path), os.path.expanduser(value))
            yield from _settings(included, directory_fd, level + 1)


def git_settings(text: str) -> "Iterator[tuple[str, str]]":
    """`section.key` in small letters (a subsection between them as written) and value, in their order.

    git-config(1) SYNTAX.  A line that git would refuse is passed over.
    """
    section = ""
    lines = iter(text.replace("\r\n", "\n").split("\n"))
    for line in lines:
        rest = line.strip()
        if rest.startswith("["):
            head, rest = _section(rest)
            section = head or section
        key, _, value = rest.partition("=")
        key = key.rstrip()
        if not key or key[0] in "#;" or not key.replace("-", "").isalnum():
            continue
        plain, goes_on = _value(value)
        while goes_on:
            more, goes_on = _value(next(lines, ""), begun=plain != "")
            plain += more
        yield f"{section}.{key.lower()}", plain


def _section(line: str) -> tuple[str, str]:
    """The name in a `[section "subsection"]` head, and what follows the head on its line."""
    at, quoted = 1, False
    while at < len(line) and (quoted or line[at] != "]"):
        at += quoted and line[at] == "\\"
        quoted ^= line[at : at + 1] == '"'
        at += 1
    name, _, sub = line[1:at].partition(" ")
    sub = sub.strip().strip('"')
    return name.lower() + (f".{sub}" if sub else ""), line[at + 1 :].strip()


def _value(text: str, begun: bool = False) -> tuple[str, bool]:
    """A value without quotes, escapes and comment, and whether it goes on in the next line.

    Blanks in front do not count, unless the value has `begun` in a line before.
    """
    kept = ""  # up to the last character that is not an outer blank
    blanks = ""
    quoted = False
    chars = iter(text)
    for char in chars:
        if char == '"':
            quoted = not quoted
            kept, blanks = kept + blanks, ""
        elif char in "#;" and not quoted:
            break
        elif char in " \t" and not quoted:
            blanks += char if kept or begun else ""
        elif char == "\\":
            escaped = next(chars, None)
            if escaped is None:
                return kept + blanks, True
            kept += blanks + {"n": "\n", "t": "\t", "b": "\b"}.get(escaped, escaped)
            blanks = ""
        else:
            kept, blanks = kept + blanks + char, ""
    return kept, False


# ---- the walk ----


class Branch:
    """The way down to the current directory: names, and descriptors of its lowest levels only.

    A level that was closed on the way down is opened again by name from the top on the way up,
    together with its neighbours, so that the depth of a tree costs neither descriptors nor time.
    """

    __slots__ = ("_fds", "_names")

    def __init__(self, directory_fd: int) -> None:
        self._fds = [directory_fd]  # -1 for a closed level; the caller's own is never closed
        self._names: list[str] = []

    @property
    def path(self) -> str:
        """The current directory relative to the top, with a closing slash; empty at the top."""
        return "/".join([*self._names, ""])

    def down(self, name: str) -> int:
        """Go into the child `name` and return its descriptor.  Raises: OSError."""
        fd = os.open(name, FOLDER_FLAGS, dir_fd=self.fd)
        self._names.append(name)
        self._fds.append(fd)
        if len(self._fds) > OPEN_LEVELS:
            self._close(len(self._fds) - OPEN_LEVELS)
        return fd

    @property
    def fd(self) -> int:
        """The descriptor of the current directory.  Raises: OSError."""
        if self._fds[-1] < 0:
            self._reopen()
        return self._fds[-1]

    def up(self) -> None:
        """Go back to the parent; at the top do nothing."""
        if not self._names:
            return
        self._names.pop()
        fd = self._fds.pop()
        if fd >= 0:
            os.close(fd)

    def close(self) -> None:
        """Close everything that is open."""
        for level in range(1, len(self._fds)):
            self._close(level)

    def _close(self, level: int) -> None:
        if level > 0 and self._fds[level] >= 0:
            os.close(self._fds[level])
            self._fds[level] = -1

    def _reopen(self) -> None:
        for level, name in enumerate(self._names, 1):
            if self._fds[level] < 0:
                self._fds[level] = os.open(name, FOLDER_FLAGS, dir_fd=self._fds[level - 1])
            self._close(level - OPEN_LEVELS)


def walk(
    directory_fd: int,
    rules: Rules,
    sieve: "Sieve",
    listings: Listings,
    *,
    claim: "Callable[[str], bool] | None" = None,
    backwards: bool = False,
) -> "Iterator[Folder]":
    """Each directory with files to show: (path, descriptor, names of its regular files).

    `path` is relative to the start and ends in a slash (empty for the start); the descriptor is open
    until the next step.  `rules` are those of the start.  A directory comes before its folders, and
    they come in the order of their names; `backwards` is exactly the reverse.  `claim(path)` is asked
    when the turn of a directory has come, with files or without; the first False ends the walk.
    Raises: OSError when the start cannot be listed, ToolError CANCELLED.
    """
    branch = Branch(directory_fd)
    listing = listings.of(directory_fd, sieve.goes_on)
    levels = [sieve.level("", listing, rules, backwards=backwards)]
    try:
        while levels:
            level = levels[-1]
            if not level.is_done and not (backwards and level.folders):
                level.is_done = True
                if claim is not None and not claim(level.path):
                    return
                sieve.count(level)
                if level.files and (fd := sieve.open(branch)) is not None:
                    yield level.path, fd, level.files
            elif not level.folders:
                levels.pop()
                branch.up()
            elif not sieve.goes_on():
                return
            else:
                name = level.folders.pop()
                path = level.path + name
                if sieve.prunes(path):
                    continue
                try:
                    fd, listing = _entered(branch, name, listings, sieve)
                except OSError as error:
                    if claim is not None and not claim(path + "/"):
                        return
                    sieve.refused(error)
                    continue
                inner = level.rules.enter(name, fd, listing.dotted)
                entered = level.rules, name, inner
                levels.append(sieve.level(path + "/", listing, inner, entered, backwards=backwards))
    finally:
        branch.close()


def _entered(branch: Branch, name: str, listings: Listings, sieve: "Sieve") -> tuple[int, Listing]:
    """The child `name`, which is gone into, and what lies in it.  Raises: OSError."""
    fd = branch.down(name)
    try:
        return fd, listings.of(fd, sieve.goes_on)
    except OSError:
        branch.up()
        raise


class Level:
    """A directory on the way: its rules and files, the folders to enter, and how many are left out."""

    __slots__ = ("files", "folders", "hidden", "ignored", "is_done", "path", "rules", "stamp")

    def __init__(self, path: str, rules: Rules) -> None:
        self.path = path
        self.rules = rules
        self.files: Sequence[str] = ()
        self.folders: list[str] = []  # the next one to enter is the last
        self.ignored = self.hidden = 0
        self.is_done = False
        self.stamp: Stamp | None = None


class Sieve:
    """What a walk leaves out, counted in `skipped`; `call` may stop it.

    A dotted entry is shown with `hidden`, or when a `!` line takes it in (but `.git` only with `hidden`).
    `prune(path)` is True for a directory that need not be entered.  `trail` is told what is met.
    """

    __slots__ = ("_call", "_hidden", "_prune", "_skipped", "_trail")

    def __init__(
        self,
        skipped: Skipped,
        *,
        hidden: bool = False,
        prune: "Callable[[str], bool] | None" = None,
        call: "Call | None" = None,
        trail: Trail | None = None,
    ) -> None:
        self._trail = trail
        self._skipped = skipped
        self._hidden = hidden
        self._prune = prune
        self._call = call

    def goes_on(self) -> bool:
        """False when time ran out.  Raises: ToolError CANCELLED."""
        if self._call is None:
            return True
        self._call.check()
        self._skipped.incomplete |= self._call.expired
        return not self._skipped.incomplete

    def prunes(self, path: str) -> bool:
        """True for a directory that need not be entered."""
        return self._prune is not None and self._prune(path)

    def refused(self, error: OSError) -> None:
        """Count a directory that could not be opened or read."""
        if error.errno in {ENOENT, ENOTDIR, ELOOP}:  # gone, or something else by now
            self._skipped.vanished += 1
        else:
            self._skipped.unreadable += 1

    def open(self, branch: Branch) -> int | None:
        """The descriptor of the current directory; None, and counted, when it has gone meanwhile."""
        try:
            return branch.fd
        except OSError as error:
            self.refused(error)
            return None

    def count(self, level: Level) -> None:
        """Count what a directory leaves out, as its turn has come."""
        self._skipped.ignored += level.ignored
        self._skipped.hidden += level.hidden
        found = level.files, level.ignored, level.hidden
        if self._trail is not None and any(found):
            self._trail.find(level.path, level.stamp, len(level.files), found)

    def again(
        self, trail: Trail, directory_fd: int, claim: "Callable[[str], bool] | None" = None
    ) -> "Iterator[Folder]":
        """What a walk below the directory met that was told to `trail`, which still holds.

        `claim` is asked as by `walk`, but not for directories without anything of interest.
        Raises: ToolError CANCELLED.
        """
        for path, fd, (files, ignored, hidden) in trail.stops(directory_fd, self.refused):
            if not self.goes_on() or (claim is not None and not claim(path)):
                return
            self._skipped.ignored += ignored
            self._skipped.hidden += hidden
            if files:
                yield path, fd, files

    def level(
        self,
        path: str,
        listing: Listing,
        rules: Rules,
        entered: "tuple[Rules, str, Rules] | None" = None,
        *,
        backwards: bool,
    ) -> Level:
        """A directory without what is left out; it was `entered` from outer rules, by name, into its own."""
        if self._trail is not None:
            self._trail.enter(path, listing, entered)
        reason = rules.stacks, self._hidden
        if listing.shown is None or listing.shown[0] != reason:
            shown = reason, *self._sieved(listing, rules)
            listing.shown = None if self._skipped.incomplete else shown
        else:
            shown = listing.shown
        _, files, folders, ignored, hidden = shown
        level = Level(path, rules)
        level.files, level.folders = files, [*folders] if backwards else [*reversed(folders)]
        level.ignored, level.hidden = ignored, hidden
        level.stamp = listing.stamp
        return level

    def _sieved(self, listing: Listing, rules: Rules) -> "Shown":
        """Files, folders in order, and how many are ignored and hidden."""
        files = self._passed(listing.files, rules.verdicts(False), listing.is_ascii)
        folders = self._passed(listing.folders, rules.verdicts(True), listing.is_ascii)
        ignored = len(listing.files) + len(listing.folders) - len(files) - len(folders)
        if not listing.dotted:
            return files, folders, ignored, 0
        hidden = 0
        files, folders = [*files], [*folders]
        for name, is_folder in listing.dotted.items():
            verdict = rules.verdict(name, bool(is_folder))
            if verdict:
                ignored += 1
            elif not self._hidden and (verdict is None or name == ".git"):
                hidden += 1
            elif is_folder is not None:
                (folders if is_folder else files).append(name)
        return files, sorted(folders), ignored, hidden

    def _passed(
        self, names: "Sequence[str]", verdicts: Verdicts, is_ascii: bool
    ) -> "Sequence[str]":
        if len(names) <= BATCH_ENTRIES or not verdicts.runs:
            return not_ignored(names, verdicts, is_ascii)
        batches = (names[at : at + BATCH_ENTRIES] for at in range(0, len(names), BATCH_ENTRIES))
        return [
            name
            for batch in batches
            if self.goes_on()
            for name in not_ignored(batch, verdicts, is_ascii)
        ]


def not_ignored(names: "Sequence[str]", verdicts: Verdicts, is_ascii: bool) -> "Sequence[str]":
    """Those of the names in a directory that no rule ignores; `is_ascii` when all of them are."""
    if not verdicts.runs:
        return names
    named, of = verdicts.named, verdicts.of
    exact, starts, ends, wild = named.exact, named.starts, named.ends, named.wild
    keys = names if is_ascii else list(map(octets, names))
    return [
        name
        for name, key in zip(names, keys, strict=True)
        if not (
            (
                key in exact
                or key.endswith(ends)
                or key.startswith(starts)
                or (wild is not None and wild(key))
            )
            and of(key)
        )
    ]
