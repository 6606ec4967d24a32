"""The parts of GrepTool by themselves: patterns rewritten for whole files, contents, reports."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.errors import ToolError
from toolroll_grep import contents
from toolroll_grep.border import Border, key
from toolroll_grep.contents import Content, Part, Store, stamp
from toolroll_grep.dialect import escaped
from toolroll_grep.engine import Finder, clipped
from toolroll_grep.pattern import Plan, plan
from toolroll_grep.report import shared

PATTERNS = [
    *(
        "foo",
        "foo|bar",
        r"\bfoo\b",
        r"def \w+_test\(",
        "[A-Z]{2,}_[0-9]+",
        r"\s",
        r"\s+$",
        r"^\s*$",
    ),
    *(
        "^$",
        "x*",
        "$",
        "a.b",
        "a[^b]c",
        r"a\Wb",
        r"\D+",
        "[^a]+",
        r"[\s,]b",
        "é",
        "é+",
        "(?i)É",
        "(?s)a.b",
    ),
    *(
        r"(a)(b)?\1",
        "a++b",
        "(?>a+)b",
        "(?<!a)b",
        r"(?<=\s)b",
        r"(?<!\s)b",
        r"foo(?!\s)",
        r"foo(?!\S)",
    ),
    *(
        r"\Afoo",
        r"foo\Z",
        r"[[:space:]]b",
        r"\p{Lu}",
        r"\P{L}",
        "(foo|ba+r)_",
        "(?i:foo)_",
        r"\Xb",
        r"[^]a]b",
    ),
    *(
        "_[0-9]",
        "__?[a-c]",
        "(?x) a b ",
        r"\d{2}",
        "[^-a]",
        r"[^\]]b",
        "a{2}",
        "a{,2}b",
        "{a}",
        "a{b",
        "}",
    ),
]
TEXTS = st.text(alphabet=st.sampled_from("ab_AB 0\nfoé\t\r(:,]-{}\u00a0É日\u2028x"), max_size=40)


def by_definition(pattern: str, text: str) -> list[int]:
    """The numbers of the lines that match, asked line by line."""
    loose = pattern if pattern != "{a}" else r"\{a}"
    lines = text.split("\n")
    lines = lines[:-1] if not lines[-1] else lines
    compiled = regex.compile(loose, regex.MULTILINE)
    return [number for number, line in enumerate(lines, 1) if compiled.search(line)]


@pytest.mark.parametrize("pattern", PATTERNS)
@settings(max_examples=60, deadline=None)
@given(text=TEXTS)
def test_a_whole_file_is_searched_as_if_line_by_line(pattern: str, text: str) -> None:
    finder = Finder(plan(pattern))
    data = text.encode()
    expected = by_definition(pattern, text)
    if expected:
        assert finder.may_match(data)
    numbers = [line[0] for line in finder.lines(data, 1000, 0)]
    assert numbers == expected
    assert finder.count(data, data.isascii()) == len(expected)
    assert finder.has(data, data.isascii()) == bool(expected)


@settings(max_examples=200, deadline=None)
@given(
    text=st.text(
        alphabet=st.characters(codec="utf-8", exclude_characters="\n\r"), min_size=1, max_size=20
    ),
    other=TEXTS,
)
def test_fixed_strings_are_found_as_they_are(text: str, other: str) -> None:
    data = f"{other}{text}{other}\n".encode("utf-8", "surrogatepass")
    finder = Finder(plan(text, fixed_strings=True))
    assert finder.may_match(data)
    assert finder.has(data, data.isascii())
    assert finder.has(data, data.isascii()) == Finder(plan(escaped(text))).has(data, data.isascii())


@settings(max_examples=100, deadline=None)
@given(
    text=TEXTS,
    pattern=st.sampled_from([r"a\s*b", r"[^a]b", r"o\n", r"(?s)a.*b", r"\n\n", "f", r"\W"]),
)
def test_across_lines_every_line_of_a_match_is_shown(text: str, pattern: str) -> None:
    made = plan(pattern, multiline=True)
    finder = Finder(made)
    expected: list[int] = []
    for found in regex.finditer(pattern, text, regex.MULTILINE):
        first = text.count("\n", 0, found.start()) + 1
        last = text.count("\n", 0, max(found.end() - 1, found.start())) + 1
        expected += range(first, last + 1)
    lines = [line[0] for line in finder.lines(text.encode(), 1000, 0)]
    assert lines == list(dict.fromkeys(expected))
    assert Finder(Plan.of_record(made.record())).count(text.encode(), False) == len(lines)


def test_a_pattern_that_names_a_newline_spans_lines() -> None:
    assert plan(r"a\nb").spans
    assert plan("a\nb", fixed_strings=True).spans
    assert not plan(r"[^\n]*a").spans


@pytest.mark.parametrize(
    ("pattern", "needles"),
    [
        ("foo", (b"foo",)),
        ("foo|barr", (b"foo", b"barr")),
        ("x(?:foo|bar)|xfun", (b"foo", b"bar", b"fun")),
        ("ENOENT|EACCES", (b"ENOENT", b"EACCES")),
        (r"\bfoo\b.*quux", (b"quux",)),
        ("(?:hello)*", ()),
        ("(?:hello)+", (b"hello",)),
        ("(?i)hello", ()),
        ("(?i:hello)x", (b"x",)),
        ("h(?=ello)", (b"h",)),
        ("hell[oO]", (b"hell",)),
        ("é日", ("é日".encode(),)),
        (r"\p{Lu}foo", ()),
    ],
)
def test_needles_are_literals_that_every_match_holds(
    pattern: str, needles: tuple[bytes, ...]
) -> None:
    assert plan(pattern).needles == needles


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("(?:hello){e<=1}", "approximate"),
        ("x{i}", "approximate"),
        ("a" * 5000, "4,096"),
        ("(" * 60 + ")" * 60, "nested"),
        ("((a{1000}){1000}){1000}", "repetitions"),
        ("a{100000000}", "repetitions"),
        ("[a", "unterminated character set"),
        ("*a", "nothing to repeat"),
    ],
)
def test_what_cannot_be_searched_is_refused_with_the_reason(pattern: str, why: str) -> None:
    with pytest.raises(ToolError) as raised:
        plan(pattern)
    assert raised.value.code == "INVALID_PARAMS"
    assert why in str(raised.value)


def test_braces_that_count_nothing_stand_for_themselves() -> None:
    for pattern in ("{name}", "${x}", "f{x", "{}", "{ }"):
        assert Finder(plan(pattern)).has(pattern.replace("$", "$").encode(), True) or "$" in pattern


@given(
    counts=st.lists(st.integers(1, 50), min_size=1, max_size=30),
    limit=st.integers(1, 200),
)
def test_shares_use_the_limit_and_no_file_gets_more_than_it_has(
    counts: list[int], limit: int
) -> None:
    quotas = shared(counts, limit)
    assert sum(quotas) == min(limit, sum(counts))
    assert all(0 <= quota <= count for quota, count in zip(quotas, counts, strict=True))
    if limit >= len(counts):
        assert all(quotas)


@given(line=st.text(max_size=900), column=st.integers(1, 900), length=st.integers(0, 900))
def test_a_clipped_line_holds_the_start_of_its_match(line: str, column: int, length: int) -> None:
    if column > len(line):
        return
    text, remark = clipped(line, column, length)
    assert text in line
    if remark:
        assert len(text) == 400
        first = int(remark.split()[2].split("-")[0])
        assert first <= column < first + 400 or line.endswith("\r")


# Two processes in one tree

PATHS = st.lists(st.sampled_from(["a", "a.b", "b", "é", "\udcff", "\U0001f600"]), max_size=4).map(
    lambda names: "".join(name + "/" for name in names)
)


@given(st.sets(PATHS, min_size=1), st.lists(st.booleans(), min_size=40, max_size=40))
@settings(deadline=None)
def test_what_two_take_from_both_ends_is_taken_once(paths: set[str], turns: list[bool]) -> None:
    border = Border()
    border.reset()
    order = sorted(paths, key=lambda path: path.split("/"))
    assert order == sorted(paths, key=key)
    ways = [iter(order), reversed(order)]
    taken: list[list[str]] = [[], []]
    going = [True, True]
    for share in [*turns, *[0, 1] * len(order)]:
        path = next(ways[share], None) if going[share] else None
        going[share] = path is not None and border.take(share, path)
        if going[share]:
            taken[share].append(str(path))
    assert sorted(taken[0] + taken[1]) == sorted(paths)
    assert all((key(path) >= border.met_at) == share for share in (0, 1) for path in taken[share])
    border.close()


def test_a_path_that_has_no_room_is_known_by_its_start() -> None:
    border = Border()
    border.reset()
    assert border.take(0, "a/" * 1_000_000)
    assert not border.take(1, "a/" * 10)
    assert border.take(1, "b/")
    border.close()


@contextmanager
def opened(folder: Path) -> Iterator[int]:
    fd = os.open(folder, os.O_RDONLY)
    try:
        yield fd
    finally:
        os.close(fd)


def read(store: Store, fd: int, name: str) -> Content:
    content = store.read(name, fd)
    assert content is not None
    return content


def part_of(names: tuple[str, ...], fd: int) -> Part:
    part = Part(names)
    part.stamps = [stamp(os.stat(name, dir_fd=fd)) for name in names]
    return part


def test_a_file_that_may_change_within_this_tick_is_not_kept(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = Store(10_000)
    kept = store.folder("")
    with opened(tmp_path) as fd:
        content = read(store, fd, "a")
        assert content.stamp != stamp(os.stat("a", dir_fd=fd))
    store.keep(kept, "a", content)
    assert not kept.contents
    part = Part(("a",))
    part.stamps.append(content.stamp)
    assert not part.is_sure


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files are kept however young they are."""
    monkeypatch.setattr(contents, "YOUNG_NS", -(10**18))


@pytest.mark.usefixtures("settled")
def test_what_is_kept_is_bounded_and_goes_when_it_is_not_searched(tmp_path: Path) -> None:
    store = Store(50_000)
    kept = store.folder("")
    sizes = [2_000, *[500] * 100, 20, 2_000, 20]
    with opened(tmp_path) as fd:
        for number, size in enumerate(sizes):
            (tmp_path / str(number)).write_bytes(b"x" * size)
            content = read(store, fd, str(number))
            assert content.stamp == stamp(os.stat(str(number), dir_fd=fd))
            store.keep(kept, str(number), content)
    names = list(map(int, kept.contents))
    assert names[:10] == list(range(10))
    assert names[-2:] == [101, 103]  # small ones take less of what is left
    assert sum(one.size for one in kept.contents.values()) == store._bytes < 50_000
    for _ in range(2 * contents.IDLE_CALLS):
        store.tidy()
    assert not store.folder("").contents


@pytest.mark.usefixtures("settled")
def test_nothing_of_a_file_that_was_replaced_or_has_gone_stays_kept(tmp_path: Path) -> None:
    names = tuple(map(str, range(100)))
    store = Store(1 << 20)
    kept = store.folder("")
    with opened(tmp_path) as fd:
        for name in names:
            (tmp_path / name).write_bytes(b"x")
            store.keep(kept, name, read(store, fd, name))
        kept.gather(0, names, contents.stamps(names, fd))
        assert kept.batches[0].names == names
        store.keep(kept, "7", read(store, fd, "7"))
        assert not kept.batches
    store.drop_gone(kept, names[:90])
    assert len(kept.contents) == 100  # a few cost less than looking for them
    store.drop_gone(kept, names[:9])
    assert set(kept.contents) == set(names[:9])
    assert sum(one.size for one in kept.contents.values()) == store._bytes


@pytest.mark.usefixtures("settled")
def test_what_was_found_has_room_where_contents_have_none(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 10_000)
    store = Store(10_000)
    kept = store.folder("")
    with opened(tmp_path) as fd:
        store.keep(kept, "a", read(store, fd, "a"))
        known = store.known("query")
        store.learn(known, ("", 0), part_of(("a",), fd), kept.contents)
    assert not kept.contents
    assert list(store.known("query")) == [("", 0)]


@pytest.mark.usefixtures("settled")
def test_what_older_queries_found_makes_room_for_what_newer_ones_find(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x")
    store = Store(3 * contents.PART_BYTES)
    with opened(tmp_path) as fd:
        part = part_of(("a",), fd)
        for query in range(3):
            store.learn(store.known(query), ("", 0), part, {})
    assert not store.known(0)
    assert store.known(2)


def test_of_the_queries_only_the_last_ones_are_known() -> None:
    store = Store(1_000_000)
    for query in range(contents.QUERIES + 1):
        store.learn(store.known(query), ("", 0), Part(()), {})
    assert store.known(1)
    assert not store.known(0)
