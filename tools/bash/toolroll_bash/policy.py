"""Which programs a session may run: the list, the options that change it, and the words of a refusal.

Layer 1 is `Policy.inspect`: it judges the text of a command before anything runs.  `Policy.refuses` is
what every other layer asks of a program's name.  Knows nothing of how programs are stopped.
"""

import os
import sys

from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import quoted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from toolroll_bash.reader import Command

    Json = Any

BANNED = """
alias curl curlie wget axel aria2c nc telnet lynx w3m links httpie xh http-prompt chrome firefox safari
""".split()  # noqa: SIM905 - as a list it would be 19 lines
"""The list as the reference system has it."""

CHROME = ("google-chrome", "google-chrome-stable", "google-chrome-beta", "google-chrome-unstable")
ALSO = {
    "chrome": (*CHROME, "Google Chrome", "chromium", "chromium-browser", "Chromium"),
    "firefox": ("firefox-bin", "firefox-esr", "Firefox"),
    "links": ("links2",),
    "nc": ("netcat", "ncat", "nc.openbsd", "nc.traditional"),
    "safari": ("Safari",),
    "telnet": ("telnet.netkit", "inetutils-telnet"),
    "xh": ("xhs",),
}
"""What programs of the list are called where they are installed; an entry stands for these too."""

TYPED = {"httpie": ("http", "https")}
"""The same for names that other programs have too, so that only who types them can mean the entry:
apt runs /usr/lib/apt/methods/https."""

BUILTINS = frozenset(
    """
    : . [ alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs
    disown echo enable eval exec exit export false fc fg getopts hash help history jobs kill let local
    logout mapfile popd printf pushd pwd read readarray readonly return set shift shopt source suspend
    test times trap true type typeset ulimit umask unalias unset wait
    """.split()  # noqa: SIM905 - as a list it would be 60 lines
)
"""Builtins of bash, which no list of approved names has to name: they run nothing (what `eval`, `exec`,
`command`, `builtin` and `trap` are given is judged by itself)."""

STEPS, STEPS_PER_CHAR = 200_000, 4
"""The work of reading a command; scripts take 0.1 to 1.4 steps a character, a step takes a microsecond."""

LEVELS = 8
"""Code within code: `bash -c "eval '...'"`."""

EXCERPT_CHARS = 60

FOLDS_NAMES = sys.platform == "darwin"


class Policy:
    """What may run: `banned` names; with `only`, nothing but these and what is built into bash.

    Names are base names; those `typed` are banned in a command's text only, and with no path before
    them.  `functions` were defined by earlier commands.  `mode` says what else stands
    behind the text: kernel, shims, or text for nothing; who puts it in force sets it.
    """

    def __init__(
        self,
        banned: "Iterable[str]",
        only: "Iterable[str] | None" = None,
        typed: "Iterable[str]" = (),
    ) -> None:
        self.banned = frozenset(map(_folded, banned))
        self.only = None if only is None else frozenset(map(_folded, only))
        self.typed = frozenset(typed)
        self.mode = "text"
        self.functions: set[str] = set()

    @classmethod
    def of(cls, options: "Mapping[str, Json]") -> "Policy":
        """The policy that a command line asks for.

        Raises: ValueError for a file that cannot be read and for what is no name.
        """
        banned = _checked(options.get("ban") or (), "--ban")
        allowed = _checked(options.get("allow") or (), "--allow")
        if both := sorted(set(banned).intersection(allowed)):
            raise ValueError(f"'{both[0]}' is named by --ban and by --allow")
        listed = [*BANNED, *_listed(options.get("ban-file"), "--ban-file")]
        only: frozenset[str] | None = None
        if path := options.get("allow-only"):
            approved = _with_kin([*_listed(path, "--allow-only"), *allowed])
            only = approved | _targets(approved)
        kept = _with_kin(listed) - (only or _with_kin(allowed)) | _with_kin(banned)
        typed = {one for name in kept for one in TYPED.get(name, ())}
        return cls(kept, only, typed.difference(allowed, only or ()))

    def refuses(self, name: str) -> bool:
        """True when a program of this base name may not run."""
        name = _folded(name)
        if name in self.banned:
            return True
        return self.only is not None and name not in self.only and name not in BUILTINS

    def refuses_typed(self, word: str) -> bool:
        """The same of a program as a command names it."""
        return word in self.typed or self.refuses(word.rpartition("/")[2])

    def inspect(self, command: str) -> None:
        """Return when nothing in the text surely runs what may not run.

        Raises: ToolError BANNED_COMMAND.
        """
        if self.banned or self.only is not None:
            Inspection(self, len(command)).judge(command)

    def refusal(self, name: str, where: str) -> ToolError:
        """The error of a refused program; `where` is the text that shows it."""
        what = f"{quoted(name)} (in `{where}`) may not be run here"
        return ToolError(ErrorCode.BANNED_COMMAND, what, self.advice(name))

    def advice(self, name: str) -> str:
        """What can be done about a refusal, and how far it reaches."""
        unlisted = self.only is not None and name not in self.banned
        how = "add it to the file of --allow-only" if unlisted else f"start it with --allow {name}"
        return (
            f"This is the policy of this server (ban mode: {self.mode}), not a failure: do without, "
            f"or ask its operator, who can {how}"
        )


class Inspection:
    """The judgement of one command: the work that is left for it, and the functions that it defines."""

    __slots__ = ("_functions", "_policy", "_steps")

    def __init__(self, policy: Policy, chars: int) -> None:
        self._policy = policy
        self._steps = STEPS + STEPS_PER_CHAR * chars
        self._functions = set(policy.functions)

    def judge(self, text: str, where: str = "", level: int = 0) -> None:
        """Judge a text, and the code in its words; `where` stands for the place if it is such code.

        Raises: ToolError BANNED_COMMAND.
        """
        from toolroll_bash.reader import Reader

        reader = Reader(text, self._steps).read()
        self._steps -= reader.steps
        for command in reader.commands:
            if command.function:
                self._define(command.function)
            else:
                self._judge(command, where or excerpt(text, *command.place), level)

    def _define(self, name: str) -> None:
        self._functions.add(name)
        if name not in self._policy.banned:
            self._policy.functions.add(name)

    def _judge(self, command: "Command", where: str, level: int) -> None:
        from toolroll_bash.wrappers import runs

        words = command.texts
        if words[:1] == ["unset"]:
            self._functions.difference_update(words)
        if not self._functions.isdisjoint(words[:1]):
            return
        for is_code, text in runs(words, command.here.text if command.here else ""):
            if is_code and level < LEVELS:
                self.judge(text, where, level + 1)
            elif not is_code and self._policy.refuses_typed(text):
                raise self._policy.refusal(text.rpartition("/")[2], where)


def excerpt(text: str, start: int, end: int) -> str:
    """A word with the line before it; no word is torn, as half a secret is not known for one."""
    before = text[text.rfind("\n", 0, start) + 1 : start].lstrip()
    before = before if len(before) <= EXCERPT_CHARS else "… "
    word = text[start:end] if end - start <= EXCERPT_CHARS else "…"
    return f"{before}{word} …" if text[end:].strip() else before + word


def _folded(name: str) -> str:
    """The name as it is compared: `curl.exe` is curl where Linux runs on Windows, `CURL` on macOS."""
    name = name.removesuffix(".exe")
    return name.lower() if FOLDS_NAMES else name


def _with_kin(names: "Iterable[str]") -> "frozenset[str]":
    """The names and what else they stand for."""
    return frozenset(one for name in names for one in (name, *ALSO.get(name, ())))


def _targets(names: "Iterable[str]") -> "frozenset[str]":
    """What approved names are links to: python3 is python3.11, awk is mawk."""
    folders = os.get_exec_path()
    paths = (os.path.join(folder, name) for folder in folders for name in names)
    return frozenset(
        os.path.basename(os.path.realpath(one)) for one in paths if os.path.islink(one)
    )


def _listed(path: str | None, option: str) -> "list[str]":
    """The names in a file, one a line; `#` begins a comment."""
    if not path:
        return []
    try:
        with open(path, encoding="utf-8") as file:
            lines = file.read().splitlines()
    except (OSError, ValueError) as problem:
        why = getattr(problem, "strerror", None) or "it is not UTF-8 text"
        raise ValueError(f"{option} '{path}' cannot be read: {why}") from None
    names = (line.partition("#")[0].strip() for line in lines)
    return _checked(filter(None, names), f"{option} '{path}'")


def _checked(names: "Iterable[str]", where: str) -> "list[str]":
    """Raises: ValueError for what no program is called."""
    names = list(names)
    for name in names:
        if "/" in name or not name or any(one.isspace() for one in name):
            raise ValueError(f"{where}: '{name}' must be the name of a program, no path or command")
    return names
