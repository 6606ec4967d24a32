"""Patterns mean what git means by them, and an operator's list means what it says."""

import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import toolroll
from toolroll.errors import ErrorCode, ToolError
from toolroll.globs import LIST_PATTERNS, PATTERN_CHARS, ignore_patterns, matcher, octets

NAMES = [
    "a",
    "b",
    "ab",
    "ba",
    "a b",
    "a ",
    "!a",
    "#b",
    "[a]",
    "a-",
    "\\",
    "*",
    "é",
    ".a",
    "a]",
    "-",
]
PIECES = [
    *("a", "b", "ab", "*", "**", "?", "[", "[!", "]", "!", "/", "\\", " ", "-", "é", "#", "[^a]"),
    *(
        "[[:alpha:]]",
        "[[:foo:]]",
        "[a-b]",
        "[]-a]",
        "**/",
        "/**",
        "[:",
        ":]",
        "\t",
        ".",
        "\r",
        "a**/",
    ),
]
lines = st.lists(st.sampled_from(PIECES), min_size=1, max_size=7).map("".join)


def verdict(content: str, path: str, is_directory: bool = False) -> bool | None:
    patterns = ignore_patterns(content.encode())
    return patterns.verdict(octets(path), is_directory) if patterns else None


def verdict_from_the_top(content: bytes, path: str, is_directory: bool) -> bool | None:
    """What git tells of a path: what is below an ignored directory is ignored."""
    patterns = ignore_patterns(content)
    if patterns is None:
        return None
    names = octets(path).split("/")
    if any(patterns.verdict("/".join(names[:n]), True) for n in range(1, len(names))):
        return True
    return patterns.verdict(octets(path), is_directory)


class Repository:
    """A repository of git's own with a fixed tree, asked what it ignores under other lines."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.environ = {"PATH": os.environ["PATH"], "HOME": str(top), "GIT_CONFIG_NOSYSTEM": "1"}
        self.paths: list[tuple[str, bool]] = []
        self.run("init", "--quiet")
        self.grow("", NAMES, 2)

    def grow(self, prefix: str, names: Sequence[str], levels: int) -> None:
        for place, name in enumerate(names):
            is_directory = levels > 0 and place % 2 == 0
            self.paths.append((prefix + name, is_directory))
            if is_directory:
                (self.top / prefix / name).mkdir()
                self.grow(f"{prefix}{name}/", names[:6], levels - 1)
            else:
                (self.top / prefix / name).touch()

    def run(self, *words: str, sent: bytes = b"") -> bytes:
        return subprocess.run(
            ["git", *words],
            cwd=self.top,
            env=self.environ,
            input=sent,
            stdout=subprocess.PIPE,
            timeout=60,
            check=False,  # check-ignore says with its status whether anything is ignored
        ).stdout

    def verdicts(self, content: bytes) -> list[bool | None]:
        (self.top / ".gitignore").write_bytes(content)
        sent = b"".join(os.fsencode(path) + b"\0" for path, _ in self.paths)
        words = ("check-ignore", "--no-index", "--verbose", "--non-matching", "-z", "--stdin")
        fields = self.run(*words, sent=sent).split(b"\0")
        assert len(fields) == 4 * len(self.paths) + 1
        found = zip(fields[0:-1:4], fields[2::4], strict=True)
        return [not line.startswith(b"!") if file else None for file, line in found]


@pytest.fixture(scope="module")
def repository(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    return Repository(tmp_path_factory.mktemp("repository"))


@settings(deadline=None, max_examples=100, suppress_health_check=[HealthCheck.too_slow])
@given(
    written=st.lists(lines, min_size=1, max_size=4),
    end=st.sampled_from(["\n", "\r\n"]),
    mark=st.sampled_from(["", "", "\ufeff"]),
)
def test_any_ignore_file_means_what_git_means(
    repository: Repository, written: list[str], end: str, mark: str
) -> None:
    content = (mark + end.join(written)).encode()
    ours = [verdict_from_the_top(content, path, is_dir) for path, is_dir in repository.paths]
    assert dict(zip(repository.paths, ours, strict=True)) == dict(
        zip(repository.paths, repository.verdicts(content), strict=True)
    )


@pytest.mark.parametrize(
    ("content", "path", "is_directory", "expected"),
    [
        ("*.o\n!keep.o", "keep.o", False, False),
        ("!keep.o\n*.o", "keep.o", False, True),
        ("*.o", "c.h", False, None),
        ("build/", "build", False, None),
        ("build/", "x/build", True, True),
        ("/top", "x/top", False, None),
        ("a/**/b", "a/b", False, True),
        ("a/**/b", "a/x/y/b", False, True),
        ("a/**", "a", True, None),
        ("\\#x\n\\!y", "!y", False, True),
        ("# comment", "# comment", False, None),
        ("end\\ ", "end ", False, True),
        ("end   ", "end", False, True),
        ("\ufefffirst", "first", False, True),
        ("crlf\r\n", "crlf", False, True),
        ("[[:digit:]]x", "7x", False, True),
        ("[!a]x", "ax", False, None),
        ("*.py[cod]", "m.pyc", False, True),
        ("[open", "[open", False, None),
        ("??", "é", False, True),
        ("a*\n.*", ".x\ny", False, True),
    ],
)
def test_a_line_of_an_ignore_file(
    content: str, path: str, is_directory: bool, expected: bool | None
) -> None:
    assert verdict(content, path, is_directory) is expected


def test_a_file_of_blanks_and_comments_has_no_patterns() -> None:
    assert ignore_patterns(b"\n   \n# only words\n\n") is None


def test_a_line_longer_than_any_path_has_no_effect() -> None:
    assert ignore_patterns(b"a" * (PATTERN_CHARS + 1)) is None


def test_a_name_that_is_not_utf8_is_compared_by_its_bytes() -> None:
    patterns = ignore_patterns(b"*\xff\n")
    assert patterns is not None
    assert patterns.verdict(octets(os.fsdecode(b"x\xff")), False) is True
    assert patterns.verdict(octets("xÿ"), False) is None


@pytest.mark.parametrize(
    ("pattern", "path", "is_directory", "expected"),
    [
        ("*.log", "a/b/x.log", False, True),
        ("*.log", "x.logs", False, False),
        ("node_modules", "a/node_modules/b/c.js", False, True),
        ("docs/*.md", "x/docs/a.md", False, True),
        ("/docs/*.md", "x/docs/a.md", False, False),
        ("/docs/*.md", "docs/a.md", False, True),
        ("/docs", "x/docs", True, False),
        (".git/**", ".git", True, True),
        (".git/**", "sub/.git/hooks/pre-commit", False, True),
        (".git/**", ".github/x", False, False),
        ("build/", "build", False, False),
        ("build/", "build", True, True),
        ("build/", "build/x", False, True),
        ("*.{c,h}", "src/a.h", False, True),
        ("{a,b{c,d}}/x", "bd/x", False, True),
        ("{a,b{c,d}}/x", "b/x", False, False),
        ("{a}", "{a}", False, True),
        ("\\{a,b}", "{a,b}", False, True),
        ("a{,b}", "ab", False, True),
        ("{a,b", "{a,b", False, True),
        ("{a{b,c}", "{ac", False, True),
        ("[id", "[id", False, True),
        ("[ab]", "b", False, True),
        ("?", "é", False, True),
        ("!x", "!x", False, True),
        ("#x", "#x", False, True),
        ("a//b", "a/b", False, True),
        ("a/b", "./a/b", False, True),
        ("**", "x/y", False, True),
        ("**/x", "x", False, True),
        ("", "x", False, False),
        ("/", "x", True, False),
        ("a\\", "a\\", False, True),
    ],
)
def test_a_pattern_of_an_operators_list(
    pattern: str, path: str, is_directory: bool, expected: bool
) -> None:
    assert matcher([pattern])(path, is_directory) is expected


def test_an_empty_list_covers_nothing() -> None:
    assert not matcher([])("x", False)


@pytest.mark.parametrize(
    "patterns",
    [
        ["a" * (PATTERN_CHARS + 1)],
        ["{a,b}" * 20],
        ["{a,b,c,d,e,f,g,h,i,j}{a,b,c,d,e,f,g,h,i,j}"] * 11,
        [str(n) for n in range(LIST_PATTERNS + 1)],
    ],
)
def test_a_list_that_stands_for_too_much_is_refused(patterns: list[str]) -> None:
    with pytest.raises(ToolError) as refused:
        matcher(patterns)
    assert refused.value.code == ErrorCode.INVALID_PARAMS
    assert refused.value.hint


@given(pattern=st.text("ab*?[]!{},/\\-:", max_size=12), path=st.text("ab/-", max_size=6))
@settings(deadline=None)
def test_any_pattern_is_taken_and_a_covered_directory_covers_what_is_below(
    pattern: str, path: str
) -> None:
    covers = matcher([pattern])
    if covers(path, True):
        assert covers(path + "/x", False)


def run_apart(code: str) -> str:
    """The output of `code` in a fresh interpreter, killed when it runs for ever."""
    place = os.path.dirname(os.path.dirname(toolroll.__file__))
    start = f"import sys; sys.path.insert(0, {place!r}); from toolroll.globs import *\n"
    words = [sys.executable, "-I", "-S", "-c", start + code]
    done = subprocess.run(words, capture_output=True, text=True, timeout=60, check=True)
    return done.stdout.strip()


@pytest.mark.parametrize(
    "pattern",
    [
        "*a" * 40 + "*b",
        "*a*" * 40 + "b",
        "*[ab]" * 40 + "c",
        "*?" * 60 + "c",
        "**/" * 40 + "x",
        "/".join(["**/a"] * 20) + "/b",
        "*" * 200 + "b",
    ],
)
def test_no_pattern_runs_for_ever(pattern: str) -> None:
    code = (
        f"name = 'a' * 255; path = '/'.join(['a'] * 60); pattern = {pattern!r}\n"
        "seen = ignore_patterns(pattern.encode())\n"
        "covers = matcher([pattern])\n"
        "print(seen.verdict(name, False), seen.verdict(path, False))\n"
        "print(covers(name, False), covers(path, False))"
    )
    assert run_apart(code).split() == ["None", "None", "False", "False"]


def test_a_hostile_file_of_many_expressions_is_bounded() -> None:
    content = (
        b"".join(b"*%d?a*b\n" % n for n in range(LIST_PATTERNS)) + b"*never?looked?at*x\nliteral"
    )
    patterns = ignore_patterns(content)
    assert patterns is not None
    assert patterns.verdict("1xaxb", False) is True
    assert patterns.verdict("never.looked.at.x", False) is None
    assert patterns.verdict("literal", False) is True


def test_re_is_imported_only_where_a_pattern_needs_it() -> None:
    plain = "p = ignore_patterns(b'build/\\n*.py[cod]\\n/a/b*\\n!keep'); p.verdict('a/bc', False)\n"
    assert run_apart(plain + "print('re' in sys.modules)") == "False"
    assert (
        run_apart("ignore_patterns(b'a*b').verdict('a', False); print('re' in sys.modules)")
        == "True"
    )
