"""Programs that run other programs or code: the table of them, and where in their words that stands.

`runs` follows them as far as the words are known.  Knows no policy and reads no code itself.
"""

from toolroll_bash.reader import UNKNOWN

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    Words = Sequence[str]
    Found = Iterator[tuple[bool, str]]
    Handler = Callable[[Words, str, int], Found]

LEVELS = 20
"""Programs within each other's words: `find -exec find -exec ...`."""

STDIN = ("/dev/stdin", "/dev/fd/0", "/proc/self/fd/0", "-")
EXECS = ("-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X", "--exec-batch")
"""Of find and of fd."""


class Wrapper:
    """How the words of one lead to the program that it runs.

    `values` are the letters and `longs` the long options that take the next word; then `operands` stand
    before the program; with an option of `ends` nothing is run.
    """

    __slots__ = ("ends", "longs", "operands", "values")

    def __init__(
        self, values: str = "", longs: str = "", operands: int = 0, ends: str = ""
    ) -> None:
        self.values = values
        self.longs = tuple(longs.split())
        self.operands = operands
        self.ends = frozenset(ends.split())


PLAIN = Wrapper()
LOADER = Wrapper(
    longs="library-path preload argv0 audit inhibit-rpath glibc-hwcaps-prepend glibc-hwcaps-mask",
    ends="list verify list-tunables list-diagnostics help version",
)
"""The dynamic loader, `ld-linux-x86-64.so.2`: named differently everywhere."""

STRACE = Wrapper("abeEIoOpPsSuUX", "attach trace output user env")
WRAPPERS = {
    "arch": Wrapper("de"),
    "builtin": PLAIN,
    "caffeinate": Wrapper("tw"),
    "catchsegv": PLAIN,
    "choom": Wrapper("n", "adjust", ends="p pid"),
    "chronic": PLAIN,
    "chroot": Wrapper("", "userspec groups", 1),
    "chrt": Wrapper("TPD", "sched-runtime sched-period sched-deadline", 1, "p pid m max"),
    "command": Wrapper(ends="v V"),
    "dbus-run-session": Wrapper("", "config-file dbus-daemon"),
    "doas": Wrapper("uCa", ends="s L"),
    "dumb-init": PLAIN,
    "exec": Wrapper("a"),
    "fakeroot": Wrapper("lisb", "lib faked"),
    "faketime": Wrapper("p", "", 1),
    "gosu": Wrapper(operands=1),
    "ionice": Wrapper("cnpPu", "class classdata pid pgid uid", ends="p pid P pgid u uid"),
    "linux32": PLAIN,
    "linux64": PLAIN,
    "ltrace": STRACE,
    "nice": Wrapper("n", "adjustment"),
    "nohup": PLAIN,
    "nsenter": Wrapper("tSG", "target setuid setgid"),
    "pkexec": Wrapper("", "user"),
    "proxychains": Wrapper("f"),
    "proxychains4": Wrapper("f"),
    "setarch": Wrapper(operands=1),
    "setsid": PLAIN,
    "stdbuf": Wrapper("ioe", "input output error"),
    "strace": STRACE,
    "su-exec": Wrapper(operands=1),
    "sudo": Wrapper(
        "CDRTUghpurt",
        "close-from chdir chroot command-timeout other-user group host prompt user role type",
        ends="l list e edit v validate K remove-timestamp V version",
    ),
    "systemd-run": Wrapper("pEuMH", "property setenv unit description slice uid gid machine host"),
    "taskset": Wrapper(operands=1, ends="p pid"),
    "time": Wrapper("fo", "format output"),
    "timeout": Wrapper("ks", "kill-after signal", 1),
    "tini": Wrapper("pe"),
    "torify": PLAIN,
    "torsocks": Wrapper("uaP", "user pass address port"),
    "unbuffer": PLAIN,
    "unshare": Wrapper("SGRw", "root wd setuid setgid map-user map-group propagation"),
    "valgrind": PLAIN,
    "xargs": Wrapper("adEILnPsJRS", "arg-file delimiter max-args max-procs max-chars"),
    "xvfb-run": Wrapper(
        "efnpsw", "auth-file error-file server-num xauth-protocol server-args wait"
    ),
}


def runs(words: "Words", stdin: str = "", level: int = 0) -> "Found":
    """What a command of these words runs, itself first: (False, program as it is named) or (True, code).

    `stdin` is its here-document.  What is not known, or further in than LEVELS, is left out.
    """
    at = 0
    while at < len(words):
        name = words[at].rpartition("/")[2]
        if not name or UNKNOWN in name or "{}" in name:
            return
        yield False, words[at]
        at += 1
        handler = HANDLERS.get(name)
        if handler:
            if level < LEVELS:
                yield from handler(words[at:], stdin, level + 1)
            return
        wrapper = WRAPPERS.get(name) or (LOADER if name.startswith("ld-") else None)
        if wrapper is None:
            return
        at, given = options(words, at, wrapper.values, wrapper.longs)
        if not wrapper.ends.isdisjoint(given):
            return
        at = _past_assignments(words, at) if name in ("sudo", "doas") else at + wrapper.operands


def options(
    words: "Words", at: int, values: str, longs: "tuple[str, ...]" = ()
) -> "tuple[int, dict[str, str]]":
    """Where the operands begin, and the options before them with their values, without dashes."""
    given: dict[str, str] = {}
    while at < len(words) and len(words[at]) > 1 and words[at].startswith("-"):
        word = words[at]
        at += 1
        if word == "--":
            break
        name, equals, value = word[2:].partition("=")
        if not word.startswith("--"):
            name, value = _letters(word, values, given)
            equals = value
        takes = name in values if len(name) == 1 else name in longs
        if takes and not equals:
            value = words[at] if at < len(words) else ""
            at += 1
        given[name] = value
    return at, given


def _letters(word: str, values: str, given: "dict[str, str]") -> "tuple[str, str]":
    """The last option of a cluster and what of its value is part of the word."""
    for end, letter in enumerate(word[1:-1], 2):
        if letter in values:
            return letter, word[end:]
        given[letter] = ""
    return word[-1], ""


def _past_assignments(words: "Words", at: int) -> int:
    while at < len(words) and "=" in words[at]:
        at += 1
    return at


# -- programs with ways of their own: each is given the words behind its name ----------------------


def _shell(words: "Words", stdin: str, _: int) -> "Found":
    at, is_code, reads = 0, False, False
    while at < len(words) and len(words[at]) > 1 and words[at][0] in "-+" and words[at] != "--":
        word = words[at]
        if word.startswith("--"):
            at += word in ("--rcfile", "--init-file")
        else:
            is_code = is_code or (word[0] == "-" and "c" in word)
            reads = reads or "s" in word
            at += word.count("o") + word.count("O")
        at += 1
    at += words[at : at + 1] == ["--"]
    if is_code:
        yield from _code(words[at : at + 1])
    elif reads or at >= len(words) or words[at] in STDIN:
        yield True, stdin


def _code(words: "Words") -> "Found":
    if words:
        yield True, " ".join(words)


def _eval(words: "Words", _: str, __: int) -> "Found":
    yield from _code(words[words[:1] == ["--"] :])


def _trap(words: "Words", _: str, __: int) -> "Found":
    at, given = options(words, 0, "")
    if not given and len(words) > at + 1:
        yield True, words[at]


def _source(words: "Words", stdin: str, _: int) -> "Found":
    if words and words[0] in STDIN:
        yield True, stdin


def _env(words: "Words", stdin: str, level: int) -> "Found":
    at, given = options(words, 0, "uSCPa", ("unset", "split-string", "chdir", "argv0"))
    split = given.get("S") or given.get("split-string")
    if split:
        parts = split.replace("'", "").replace('"', "").split()
        yield from _env([*parts, *words[at:]], stdin, level) if level < LEVELS else ()
        return
    at = _past_assignments(words, at + (words[at : at + 1] == ["-"]))
    yield from runs(words[at:], stdin, level)


def _find(words: "Words", _: str, level: int) -> "Found":
    at = 0
    while at < len(words):
        at += 1
        if words[at - 1] in EXECS:
            start = at
            while at < len(words) and words[at] not in (";", "+"):
                at += 1
            yield from runs(words[start:at], "", level)


def _watch(words: "Words", _: str, __: int) -> "Found":
    at, _given = options(words, 0, "nq", ("interval", "equexit"))
    yield from _code(words[at:])


def _parallel(words: "Words", _: str, __: int) -> "Found":
    longs = (
        "jobs arg-file sshlogin max-args delay colsep results joblog timeout retries halt tagstring"
    )
    at, _given = options(words, 0, "jaSNnLsIdEPCX", tuple(longs.split()))
    end = at
    while end < len(words) and not words[end].startswith(":::"):
        end += 1
    if end > at:
        yield True, " ".join(words[at:end])
    else:
        yield from ((True, word) for word in words[end + 1 :])


def _su(words: "Words", stdin: str, level: int) -> "Found":
    """These take their options behind operands too; `runuser -u` runs a program."""
    at, given = options(words, 0, "ucgGsTw", ("user", "command", "group", "shell"))
    if given.keys() & {"u", "user"}:
        yield from runs(words[at:], stdin, level)
        return
    while at < len(words):
        at, more = options(words, at, "cgGsTw", ("command", "group", "shell"))
        given.update(more)
        at += 1
    yield True, given.get("c") or given.get("command") or stdin


def _script(words: "Words", _: str, level: int) -> "Found":
    at, given = options(words, 0, "cEIOBTmo", ("command", "echo", "log-in", "log-out", "log-io"))
    yield from _code([given[one] for one in ("c", "command") if one in given])
    yield from runs(words[at + 1 :], "", level)  # macOS: file, program


def _flock(words: "Words", stdin: str, level: int) -> "Found":
    at, _given = options(words, 0, "wE", ("timeout", "wait", "conflict-exit-code"))
    if words[at + 1 : at + 2] in (["-c"], ["--command"]):
        yield from _code(words[at + 2 : at + 3])
    else:
        yield from runs(words[at + 1 :], stdin, level)


def _applet(words: "Words", stdin: str, level: int) -> "Found":
    if words and not words[0].startswith("-"):
        yield from runs(words, stdin, level)


def _hash(words: "Words", _: str, __: int) -> "Found":
    yield False, options(words, 0, "p")[1].get("p", "")


def _enable(words: "Words", _: str, __: int) -> "Found":
    """A builtin that is enabled may be run, one that is loaded from a file too."""
    at, given = options(words, 0, "f")
    if given.keys() <= {"f"}:
        yield from ((False, word) for word in words[at:])


HANDLERS: "dict[str, Handler]" = {
    **dict.fromkeys(("sh", "bash", "dash", "zsh", "ksh", "mksh", "ash", "rbash", "fish"), _shell),
    **dict.fromkeys(("find", "gfind", "fd", "fdfind"), _find),
    **dict.fromkeys(("busybox", "toybox"), _applet),
    **dict.fromkeys(("su", "sg", "runuser"), _su),
    **dict.fromkeys((".", "source"), _source),
    "enable": _enable,
    "env": _env,
    "eval": _eval,
    "flock": _flock,
    "hash": _hash,
    "parallel": _parallel,
    "script": _script,
    "trap": _trap,
    "watch": _watch,
}
