"""Patterns of GlobTool: cut at their slashes they mean what wcmatch says of the whole path."""

import bracex
import pytest
from hypothesis import assume, given, reject, settings
from hypothesis import strategies as st
from wcmatch import glob as wcmatch

from toolroll.errors import ErrorCode, ToolError
from toolroll_glob.find import start_of
from toolroll_glob.pattern import Glob

FLAGS = wcmatch.GLOBSTAR | wcmatch.BRACE | wcmatch.EXTGLOB | wcmatch.FORCEUNIX

NAMES = st.from_regex("[abc-][abc.-]{0,3}", fullmatch=True)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PIECES = (
    "a b ab . - c * ? ** [ab] [!a] [a-c] [a [-a] [c-a] [!] [[:alpha:]] {a,b} {a,b.c,} {a,{b,c}} @(a|b) ?(a) "
    "*(a|b) +(ab|c) !(a) !(*.c) \\a"
)
PARTS = st.one_of(
    st.just("**"), st.lists(st.sampled_from(PIECES.split()), min_size=1, max_size=3).map("".join)
)
PATTERNS = st.lists(PARTS, min_size=1, max_size=4).map("/".join)
DOTTED = st.sampled_from((".a", ".ab", "a", "..b", ".git"))
ONE_PART = st.sampled_from(
    (".*", "*", ".a", "?a", "[.]a", ".?", "@(.a|b)", "?(.)a", "{.a,a}*", "..*", "a*")
)


def matches(pattern: str, path: str) -> bool:
    """What a walk along one path would say; dotted names must be named."""
    made = Glob(pattern)
    *folders, name = path.split("/")
    if tuple(folders[: len(made.fixed)]) != made.fixed:
        return False
    stage = made.stage
    for folder in folders[len(made.fixed) :]:
        inner = stage.below_dotted(folder) if folder.startswith(".") else stage.below(folder)
        if inner is None:
            return False
        stage = inner
    return (stage.dotted_files if name.startswith(".") else stage.files).has(name)


@settings(deadline=None, max_examples=500)
@given(PATTERNS, PATHS)
def test_a_pattern_matches_what_wcmatch_says_of_the_whole_path(pattern: str, path: str) -> None:
    try:
        assume(not any(set(choice) <= {"."} for choice in expand(pattern, "/")))  # no names
    except bracex.ExpansionLimitException:
        reject()
    assert matches(pattern, path) == wcmatch.globmatch(path, pattern, flags=FLAGS)


@settings(deadline=None)
@given(ONE_PART, DOTTED)
def test_a_part_names_a_dot_where_wcmatch_says_so(pattern: str, name: str) -> None:
    assert matches(pattern, name) == wcmatch.globmatch(name, pattern, flags=FLAGS)


def expand(pattern: str, separator: str) -> list[str]:
    """Every part of every pattern that the braces of one stand for."""
    return [part for one in bracex.expand(pattern) for part in one.split(separator)]


@settings(deadline=None, max_examples=300)
@given(st.text("ab/*?[]{}()!@+\\|,.^-", max_size=40), PATHS)
def test_any_text_is_a_pattern_or_refused(pattern: str, path: str) -> None:
    code = ""
    try:
        matches(pattern, path)
    except ToolError as problem:
        code = problem.code
    assert code in ("", ErrorCode.INVALID_PARAMS, ErrorCode.TIMEOUT)


@pytest.mark.parametrize(
    ("pattern", "place", "rest"),
    [
        ("/work/src/**/*.py", "/work/src", "**/*.py"),
        ("/work/a[b]/*.py", "/work", "a[b]/*.py"),
        ("/work/one.py", "/work", "one.py"),
        ("~/src/*.py", "~/src", "*.py"),
        ("/*.py", "/", "*.py"),
        ("src/*.py", "here", "src/*.py"),
    ],
)
def test_the_plain_head_of_an_absolute_pattern_is_where_it_starts(
    pattern: str, place: str, rest: str
) -> None:
    assert start_of(pattern, "here") == (place, rest)


@pytest.mark.parametrize(
    ("pattern", "fixed"),
    [
        ("src/app/**/*.py", ("src", "app")),
        ("src/{a,b}/*.py", ("src",)),
        ("{src/a,src/b}/*.py", ("src",)),
        ("{src,lib}/*.py", ()),
        ("src/app", ("src",)),
        ("src/**", ("src",)),
        ("**/src/*.py", ()),
    ],
)
def test_the_folders_that_every_match_lies_in_are_known(
    pattern: str, fixed: tuple[str, ...]
) -> None:
    assert Glob(pattern).fixed == fixed
