"""One ignore-and-walk engine: the rules in force in a directory, and the files below it by descriptor.

Knows no tool and no root: it never follows a link and never leaves the directory it was given.
The rules are git's and ripgrep's: `.ignore` counts everywhere; `.gitignore`, `info/exclude` and the
user's global excludes only inside a repository; a nested repository starts anew.
"""

import os
from errno import ELOOP, ENOENT, ENOTDIR
from itertools import islice
from os import O_CLOEXEC, O_DIRECTORY, O_NOCTTY, O_NOFOLLOW, O_NONBLOCK, O_RDONLY
from stat import S_ISREG

from toolroll.globs import Patterns, Verdicts, ignore_patterns, octets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Iterator

    from toolroll.call import Call

    Entry = os.DirEntry[str]
    Folder = tuple[str, int, list[Entry], list[Entry]]
    Stacks = tuple[tuple[Patterns, ...], tuple[Patterns, ...] | None]

IGNORE_BYTES = 512 * 1024
"""How much of an ignore file is read: a hundred times the largest seen; the rest has no effect."""

OPEN_LEVELS = 64
"""Directories of one branch kept open at once: 8 walks side by side stay below the usual 1024."""

BATCH_ENTRIES = 1024
"""Entries between two looks at the call: 0.3 s with the most expensive patterns allowed."""

INCLUDE_LEVELS = 10
"""How deep git configuration files may include each other, as in git."""

ALIKE_RULES = 200
"""Compiled ignore files, and sets of rules of one walk, that are kept for the directories to come."""

FOLDER_FLAGS = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC
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
    outside any repository.
    """

    __slots__ = ("_alike", "_is_still", "_stacks", "_uses_files", "_uses_git", "_verdicts")

    def __init__(
        self,
        stacks: "Stacks" = ((), None),
        *,
        uses_files: bool = True,
        uses_git: bool = True,
        alike: "dict[Stacks, Rules] | None" = None,
    ) -> None:
        own, git = self._stacks = stacks
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
        stacks = self._stacks if self._is_still else _passed(self._stacks, name)
        if names is None or ".gitignore" in names or ".ignore" in names or ".git" in names:
            stacks = _found(stacks, "", directory_fd, names, uses_git=self._uses_git)
        return self if stacks == self._stacks else self._with(stacks)

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
            own, git = self._stacks
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
        if self._fds[-1] < 0:
            self._reopen()
        fd = os.open(name, FOLDER_FLAGS, dir_fd=self._fds[-1])
        self._names.append(name)
        self._fds.append(fd)
        if len(self._fds) > OPEN_LEVELS:
            self._close(len(self._fds) - OPEN_LEVELS)
        return fd

    def up(self) -> None:
        """Go back to the parent."""
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
    skipped: Skipped,
    *,
    hidden: bool = False,
    prune: "Callable[[str], bool] | None" = None,
    call: "Call | None" = None,
) -> "Iterator[Folder]":
    """Each directory with anything to show: (path, descriptor, regular files, links and special files).

    `path` is relative to the start and ends in a slash (empty for the start); the descriptor is open,
    and the entries' `stat` works, until the next step.  The order is the file system's.  `rules` are
    those of the start; `prune(path)` is True for a directory that need not be entered.  A dotted entry
    is shown with `hidden`, or when a `!` line takes it in (but `.git` only with `hidden`).
    Raises: OSError when the start cannot be listed, ToolError CANCELLED.
    """
    sieve = _Sieve(skipped, hidden=hidden, call=call)
    branch = Branch(directory_fd)
    try:
        files, others, folders = sieve.sort(sieve.entries(directory_fd), rules)
        if files or others:
            yield "", directory_fd, files, others
        levels = [(rules, folders)]
        while sieve.goes_on():
            if not folders:
                levels.pop()
                if not levels:
                    return
                branch.up()
                rules, folders = levels[-1]
                continue
            name = folders.pop()
            if prune is not None and prune(branch.path + name):
                continue
            try:
                fd = branch.down(name)
            except OSError as error:
                sieve.refused(error)
                continue
            entries = sieve.listed(fd)
            rules = rules.enter(name, fd, entries)
            files, others, folders = sieve.sort(entries, rules)
            if files or others:
                yield branch.path, fd, files, others
            levels.append((rules, folders))
    finally:
        branch.close()


class _Sieve:
    """Reads directories and sorts their entries, counting what is left out."""

    __slots__ = ("_call", "_hidden", "_skipped")

    def __init__(self, skipped: Skipped, *, hidden: bool, call: "Call | None") -> None:
        self._skipped = skipped
        self._hidden = hidden
        self._call = call

    def goes_on(self) -> bool:
        """False when time ran out.  Raises: ToolError CANCELLED."""
        if self._call is None:
            return True
        self._call.check()
        self._skipped.incomplete |= self._call.expired
        return not self._skipped.incomplete

    def entries(self, fd: int) -> "dict[str, Entry]":
        """All entries of a directory by name.  Raises: OSError."""
        with os.scandir(fd) as found:
            entries = {entry.name: entry for entry in islice(found, BATCH_ENTRIES)}
            goal = BATCH_ENTRIES
            while len(entries) == goal and self.goes_on():
                goal += BATCH_ENTRIES
                entries.update((entry.name, entry) for entry in islice(found, BATCH_ENTRIES))
        return entries

    def listed(self, fd: int) -> "dict[str, Entry]":
        """All entries of a directory by name; none, and counted, when it cannot be read."""
        try:
            return self.entries(fd)
        except OSError as error:
            self.refused(error)
            return {}

    def refused(self, error: OSError) -> None:
        """Count a directory that could not be opened or read."""
        if error.errno in {ENOENT, ENOTDIR, ELOOP}:  # gone, or something else by now
            self._skipped.vanished += 1
        else:
            self._skipped.unreadable += 1

    def sort(
        self, entries: "dict[str, Entry]", rules: Rules
    ) -> "tuple[list[Entry], list[Entry], list[str]]":
        """The regular files, the links and special files, the names of the directories to enter."""
        found: tuple[list[Entry], list[Entry], list[str]] = ([], [], [])
        try:
            if len(entries) <= BATCH_ENTRIES:
                self._sort(entries.items(), rules, *found)
                return found
            left = iter(entries.items())
            while self.goes_on() and (batch := list(islice(left, BATCH_ENTRIES))):
                self._sort(batch, rules, *found)
        except OSError as error:  # where a file system does not tell kinds, asking for one can fail
            self.refused(error)
        return found

    def _sort(
        self,
        batch: "Iterable[tuple[str, Entry]]",
        rules: Rules,
        files: "list[Entry]",
        others: "list[Entry]",
        folders: list[str],
    ) -> None:
        of_files, of_folders = rules.verdicts(False), rules.verdicts(True)
        named = of_files.named
        exact, starts, ends, wild = named.exact, named.starts, named.ends, named.wild
        for name, entry in batch:
            if name[0] == "." and not self._shows(name, entry, rules):
                continue
            if entry.is_file(follow_symlinks=False):
                key = name if name.isascii() else octets(name)
                if (
                    key in exact
                    or (ends and key.endswith(ends))
                    or (starts and key.startswith(starts))
                    or (wild is not None and wild(key))
                ) and of_files.of(key):
                    self._skipped.ignored += 1
                else:
                    files.append(entry)
                continue
            is_directory = entry.is_dir(follow_symlinks=False)
            if (of_folders if is_directory else of_files).of(octets(name)):
                self._skipped.ignored += 1
            elif is_directory:
                folders.append(name)
            else:
                others.append(entry)

    def _shows(self, name: str, entry: "Entry", rules: Rules) -> bool:
        """What becomes of a dotted name; git never shows its own directory, whatever a `!` line says."""
        verdict = rules.verdict(name, entry.is_dir(follow_symlinks=False))
        if verdict:
            self._skipped.ignored += 1
            return False
        if self._hidden or (verdict is False and name != ".git"):
            return True
        self._skipped.hidden += 1
        return False
