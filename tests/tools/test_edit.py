"""Edit changes what it was asked to, no byte besides, or says exactly why not."""

import fcntl
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.conftest import ERAS, Wire
from toolroll import textfile
from toolroll.call import Call
from toolroll.diff import unified
from toolroll.tool import Outcome
from toolroll_edit.match import occurrences
from toolroll_edit.part import part_with
from toolroll_edit.splice import COUNTED_CHARS, MATCHES
from toolroll_edit.tool import edit as declared

Edit = Callable[..., Outcome]

SECRET = "abcdEFGH12345678"


@pytest.fixture
def edit(tmp_path: Path, make_call: Callable[..., Call]) -> Edit:
    """`edit(file_path=..., ...)`: the outcome in tmp_path, where API_TOKEN is a secret."""

    def run(**arguments: Any) -> Outcome:
        arguments.setdefault("file_path", "a.txt")
        call = make_call(tmp_path, deny=[".git/**"], environ={"API_TOKEN": SECRET})
        return declared.call(arguments, call)

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


# -- what is changed --------------------------------------------------------------------------------


def test_one_occurrence_is_replaced(edit: Edit, file: Path) -> None:
    file.write_bytes(b"one\ntwo\nthree\n")
    done = edit(old_string="two", new_string="2\n2b")
    assert file.read_bytes() == b"one\n2\n2b\nthree\n"
    assert done.text.startswith("Edited 'a.txt': 1 replacement, lines 2-3 (+2 -1), etag ")
    assert "-two\n+2\n+2b" in done.text
    assert done.structured["added"] == 2


def test_a_place_far_down_is_told_by_its_own_lines(edit: Edit, file: Path) -> None:
    file.write_text("".join(f"line {number}\n" for number in range(1, 1_001)))
    done = edit(old_string="line 500\nline 501\n", new_string="x\ny\nz\n")
    assert "1 replacement, lines 500-502 (+3 -2)" in done.text
    assert "@@ -497,8 +497,9 @@\n line 497\n" in done.text
    assert done.text.endswith("\n line 504")


def test_two_occurrences_are_refused_with_their_lines(edit: Edit, file: Path) -> None:
    file.write_bytes(b"x\ny\nx\n")
    done = edit(old_string="x", new_string="z")
    assert done.code == "MULTIPLE_MATCHES"
    assert "2 times" in done.text
    assert "lines 1, 3" in done.text
    assert file.read_bytes() == b"x\ny\nx\n"


def test_overlapping_occurrences_count(edit: Edit, file: Path) -> None:
    file.write_bytes(b"aaa")
    assert edit(old_string="aa", new_string="b").code == "MULTIPLE_MATCHES"


def test_replace_all_replaces_all_from_the_left(edit: Edit, file: Path) -> None:
    file.write_bytes(b"aaa b aaa")
    done = edit(old_string="aa", new_string="x", replace_all=True)
    assert file.read_bytes() == b"xa b xa"
    assert "2 replacements" in done.text


def test_an_empty_new_string_takes_text_away(edit: Edit, file: Path) -> None:
    file.write_bytes(b"one\ntwo\n")
    assert not edit(old_string="two\n", new_string="").failed
    assert file.read_bytes() == b"one\n"


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (b"a\r\nb\r\nc\r\n", "a\nb", "x\ny\nz", b"x\r\ny\r\nz\r\nc\r\n"),
        (b"a\r\nb\nc\r\n", "b\n", "x\ny\n", b"a\r\nx\ny\nc\r\n"),
        (b"a\nb\n", "a\r\nb", "x\r\ny", b"x\ny\n"),
        (b"a\r\nb\r\n", "\nb", "\nc", b"a\r\nc\r\n"),
        (b"a\r\n\r\nb", "\n\n", "\n", b"a\r\nb"),
        (b"one line", "one", "1\r\n2", b"1\r\n2 line"),
    ],
    ids=[
        "crlf",
        "mixed",
        "crlf given, lf file",
        "starts with a line end",
        "blank line",
        "no line end",
    ],
)
def test_new_text_takes_the_line_end_of_its_place(
    edit: Edit, file: Path, before: bytes, old: str, new: str, after: bytes
) -> None:
    file.write_bytes(before)
    assert not edit(old_string=old, new_string=new).failed
    assert file.read_bytes() == after


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"\xef\xbb\xbfkey = old\n\xff\xfe tail", b"\xef\xbb\xbfkey = n\xc3\xa9w\n\xff\xfe tail"),
        (
            b"\xff\xfe" + "key = old\n".encode("utf-16-le"),
            b"\xff\xfe" + "key = néw\n".encode("utf-16-le"),
        ),
        (
            b"\xfe\xff" + "key = old\n".encode("utf-16-be"),
            b"\xfe\xff" + "key = néw\n".encode("utf-16-be"),
        ),
        ("key = old ä\n".encode("latin-1"), "key = néw ä\n".encode("latin-1")),
        (b"key = old \xc3\xa4 \xe9 \x80\n", b"key = n\xc3\xa9w \xc3\xa4 \xe9 \x80\n"),
    ],
    ids=["utf-8 with bom and stray bytes", "utf-16 le", "utf-16 be", "latin-1", "stray bytes"],
)
def test_new_text_is_written_in_the_files_encoding(
    edit: Edit, file: Path, before: bytes, after: bytes
) -> None:
    file.write_bytes(before)
    assert not edit(old_string="old", new_string="néw").failed
    assert file.read_bytes() == after


def test_a_character_the_encoding_cannot_hold_is_named(edit: Edit, file: Path) -> None:
    file.write_bytes("old ä\n".encode("latin-1"))
    done = edit(old_string="old", new_string="€")
    assert done.code == "INVALID_PARAMS"
    assert "EURO SIGN" in done.text
    assert "Latin-1" in done.text


@given(
    st.binary(max_size=60),
    st.text(st.sampled_from("ab\n\r\té€"), min_size=1, max_size=6),
    st.integers(0, 60),
)
@settings(
    deadline=None, max_examples=150, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
def test_an_edit_and_its_inverse_restore_every_byte(
    tmp_path: Path, make_call: Callable[..., Call], data: bytes, new: str, at: int
) -> None:
    """For arbitrary bytes around the place; a marker makes sure that there is one."""
    if b"\0" in data or data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return
    before = data[:at] + b"<<old>>" + data[at:]
    path = tmp_path / "any"
    path.write_bytes(before)
    call = make_call(tmp_path)
    new = f"<<{new}>>"
    first = declared.call({"file_path": "any", "old_string": "<<old>>", "new_string": new}, call)
    if first.failed:  # the file is Latin-1 and cannot hold the new text
        assert first.code == "INVALID_PARAMS"
        assert path.read_bytes() == before
        return
    again = {"file_path": "any", "old_string": new, "new_string": "<<old>>"}
    assert not declared.call(again, call).failed
    assert path.read_bytes() == before


@given(
    st.text(st.sampled_from("ab\n"), max_size=12),
    st.text(st.sampled_from("ab\n"), min_size=1, max_size=3),
)
@settings(deadline=None)
def test_occurrences_in_crlf_text_are_those_of_lf_text(text: str, wanted: str) -> None:
    plain = list(occurrences(text, wanted))
    found = occurrences(text.replace("\n", "\r\n"), wanted)
    assert [text[:start].count("\n") for start, _ in plain] == [
        text.replace("\n", "\r\n")[:start].count("\n") for start, _ in found
    ]
    assert text.count(wanted) == len(list(occurrences(text, wanted, overlapping=False)))


@pytest.mark.parametrize(
    ("text", "wanted", "found"),
    [
        ("a\r\nb\nc", "a\nb\nc", [(0, 6)]),
        ("a\nb\r\nc", "a\nb\nc", [(0, 6)]),
        ("a\r\r\nb", "\nb", [(2, 5)]),
        ("a\r\r\nb", "a\nb", []),
        ("\r\n\r\n\r\n", "\n\n", [(0, 4), (2, 6)]),
        ("a\r\nb\r\n", "a\nb\r", []),
        ("a\r\nb\rc", "a\nb\rc", [(0, 6)]),
    ],
)
def test_line_ends_are_found_whole_or_not_at_all(
    text: str, wanted: str, found: list[tuple[int, int]]
) -> None:
    assert list(occurrences(text, wanted)) == found


# Few kinds, so that texts occur again; stray and cut bytes beside those that only look like them.
PIECES = [b"a", b"bb", b"\n", b"\n", b"\r\n", b"\r", "\u00e9".encode(), b"\xc3", b"\xa9", b"\xff"]
BODIES = st.lists(st.sampled_from(PIECES), min_size=20, max_size=60).map(b"".join)
FILES = st.one_of(
    st.builds(bytes.__add__, st.sampled_from([b"", b"\xef\xbb\xbf"]), BODIES),
    BODIES.map(lambda data: b"\xff\xfe" + data.decode("latin-1").encode("utf-16-le")),
    BODIES.map(lambda data: b"\xfe\xff" + data.decode("latin-1").encode("utf-16-be") + b"x"),
)


@given(FILES, st.data())
@settings(deadline=None, max_examples=150)
def test_a_part_of_a_file_is_as_good_as_the_whole(data: bytes, draw: st.DataObject) -> None:
    """The same is found in it, at the same bytes, lines and line ends, and its diffs are the same."""
    encoding = textfile.detect(data)
    assert encoding is not None
    text = encoding.decode(data)
    start = draw.draw(st.integers(0, len(text)))
    taken = text[start : start + draw.draw(st.integers(1, 8))]
    others = st.text(st.sampled_from("ab\n\r\u00e9\u20ac\udca9\ud800"), min_size=1, max_size=4)
    near = st.sampled_from([taken, taken.replace("\r\n", "\n")])
    wanted = draw.draw(near | others) or draw.draw(others)
    part = part_with(wanted, data, encoding)
    found, whole = (list(occurrences(one, wanted)) for one in (part.text, text))
    for here, there in zip(zip(*found, strict=True), zip(*whole, strict=True), strict=True):
        at = textfile.byte_offsets(part.text, here, encoding, part.start)
        assert at == textfile.byte_offsets(text, there, encoding, len(encoding.bom))
    lines = [part.above + textfile.line_number(part.text, start) for start, _ in found]
    assert lines == [textfile.line_number(text, start) for start, _ in whole]
    new = draw.draw(others)
    for one, other in zip(found, whole, strict=True):
        diff = unified(part.text, [(*one, new)], above=part.above)
        assert diff.text == unified(text, [(*other, new)]).text
        ends = [textfile.line_end_at(*it) for it in ((part.text, one[0]), (text, other[0]))]
        assert ends[0] == ends[1]


def test_a_part_of_a_large_file_is_small() -> None:
    data = b"".join(b"line %d\n" % number for number in range(1_000))
    part = part_with("line 500\n", data, textfile.UTF8)
    assert part.text.count("\n") < 20
    assert part.above > 490
    data = data.replace(b"\n", b"\r\n")
    assert part_with("500\nline 501", data, textfile.UTF8).text.count("\n") < 20


# -- creation ---------------------------------------------------------------------------------------


def test_an_empty_old_string_creates_a_file_and_its_parents(edit: Edit, tmp_path: Path) -> None:
    done = edit(file_path="new/deep/a.py", old_string="", new_string="x\n")
    assert (tmp_path / "new/deep/a.py").read_bytes() == b"x\n"
    assert done.text.startswith("Created 'new/deep/a.py': 1 line, etag ")


def test_an_existing_file_is_not_created_again(edit: Edit, file: Path) -> None:
    file.write_bytes(b"")
    assert edit(old_string="", new_string="x").code == "ALREADY_EXISTS"
    assert file.read_bytes() == b""


def test_a_refused_creation_makes_no_directories(edit: Edit, tmp_path: Path) -> None:
    assert edit(file_path="d/a", old_string="", new_string="\0").code == "INVALID_PARAMS"
    assert not (tmp_path / "d").exists()


# -- refusals ---------------------------------------------------------------------------------------


def test_an_edit_that_changes_nothing_is_refused(edit: Edit, file: Path) -> None:
    file.write_bytes(b"x")
    assert edit(old_string="x", new_string="x").code == "INVALID_PARAMS"


def test_a_binary_file_is_refused(edit: Edit, file: Path) -> None:
    file.write_bytes(b"x\0y")
    assert edit(old_string="x", new_string="y").code == "BINARY_FILE"


@pytest.mark.parametrize("kind", ["directory", "fifo", "missing", "outside", "git"])
def test_what_is_no_file_of_ours_is_refused_untouched(
    edit: Edit, tmp_path: Path, kind: str
) -> None:
    path = {"git": ".git/config", "outside": "/etc/hostname"}.get(kind, "x")
    if kind == "directory":
        (tmp_path / "x").mkdir()
    if kind == "fifo":
        os.mkfifo(tmp_path / "x")
    if kind == "git":
        (tmp_path / ".git").mkdir()
        (tmp_path / ".git/config").write_text("x")
    codes = {
        "directory": "NOT_A_FILE",
        "fifo": "NOT_A_FILE",
        "missing": "NOT_FOUND",
        "outside": "OUTSIDE_ROOTS",
        "git": "PERMISSION_DENIED",
    }
    assert edit(file_path=path, old_string="x", new_string="y").code == codes[kind]


def test_a_marker_never_overwrites_the_value_it_stands_for(edit: Edit, file: Path) -> None:
    file.write_bytes(b"key = s3cr3t-value\n")
    done = edit(old_string="key = ", new_string="key = [REDACTED:API_KEY]")
    assert done.code == "INVALID_PARAMS"
    assert "REDACTED" in done.text
    assert file.read_bytes() == b"key = s3cr3t-value\n"


def test_a_marker_that_the_file_holds_literally_may_be_written(edit: Edit, file: Path) -> None:
    file.write_bytes(b"log =\n" + b"\n" * 20 + b"[REDACTED:API_KEY]\n")
    assert not edit(old_string="log =", new_string="logs = [REDACTED:API_KEY] #").failed


# -- if_match ---------------------------------------------------------------------------------------


def test_an_etag_from_the_last_answer_is_taken(edit: Edit, file: Path) -> None:
    file.write_bytes(b"one")
    tag = edit(old_string="one", new_string="two").structured["etag"]
    assert not edit(old_string="two", new_string="three", if_match=tag).failed


def test_another_content_is_a_conflict_that_shows_the_place(edit: Edit, file: Path) -> None:
    file.write_bytes(b"a\nb\nc\nd\ntarget\ne\nf\ng\nh\n")
    done = edit(old_string="target", new_string="x", if_match="0123456789ab")
    assert done.code == "CONFLICT"
    assert "5\ttarget" in done.text
    assert "2\tb" in done.text
    assert "1\ta" not in done.text
    assert file.read_bytes().count(b"target") == 1


# -- NO_MATCH that the next try can use -------------------------------------------------------------


@pytest.mark.parametrize(
    ("content", "old", "says"),
    [
        (
            "def f():\n\treturn 1\n",
            "def f():\n    return 1\n",
            "indents with 1 tab, old_string with 4 spaces",
        ),
        ("a = 1  \nb = 2\n", "a = 1\nb = 2", "Only blanks at the ends of lines"),
        ("say(\u201chi\u201d)\n", 'say("hi")', "LEFT DOUBLE QUOTATION MARK"),
        ("a\u00a0b\n", "a b", "NO-BREAK SPACE"),
        ("x = 1\ny = 2\n", "1\tx = 1\n2\ty = 2", "line numbers that View puts in front"),
        ("x\ny\n", "x\\ny", "line ends and tabs in place of \\n"),
        ("if a < b:\n", "if a &lt; b:", "HTML entities"),
        ("Hello World\n", "hello world", "upper and lower case"),
        (
            "def total(items):\n    return sum(items)\n",
            "def totals(items):\n    return sum(items)",
            "The nearest text",
        ),
    ],
)
def test_no_match_names_what_differs_and_gives_the_exact_text(
    edit: Edit, file: Path, content: str, old: str, says: str
) -> None:
    file.write_text("# first\n" + content + "# last\n")
    done = edit(old_string=old, new_string="new")
    assert done.code == "NO_MATCH"
    assert says in done.text
    assert not edit(old_string=suggested(done), new_string="new").failed


def suggested(done: Outcome) -> str:
    """The old_string that a NO_MATCH says would be found."""
    exact: str = done.structured["error"].split("Use this old_string:\n")[1]
    return exact


@pytest.mark.parametrize(
    ("before", "old", "new", "after"),
    [
        (
            "def f(x):\n\treturn x + 1\n",
            "def f(x):\n    return x",
            "def g(x):\n\treturn y",
            "def g(x):\n\treturn y + 1\n",
        ),
        ("if x:\n\tgo()\nend\n", "if x:\n    go()\n", "go()\n", "go()\nend\n"),
        ("if x:\r\n\tgo()\r\nend\r\n", "if x:\n    go()\n", "go()\n", "go()\r\nend\r\n"),
        ("a\n\tb = 1; c = 2\n", "    b = 1;", "\tb = 3;", "a\n\tb = 3; c = 2\n"),
        ("x = f( a )  # why\n", "f( a  )", "g(a)", "x = g(a)  # why\n"),
        ("say(\u201chi\u201d) + 1\n", '("hi")', "(1)", "say(1) + 1\n"),
        (
            "x = " + "\u00e9" * 9_000 + " + Old + 1\n",
            "+ old +",
            "+ new +",
            "x = " + "\u00e9" * 9_000 + " + new + 1\n",
        ),
    ],
    ids=["middle of a line", "line end", "crlf", "indentation", "blanks", "quotes", "long line"],
)
def test_a_retry_with_what_was_suggested_keeps_the_rest_of_the_line(
    edit: Edit, file: Path, before: str, old: str, new: str, after: str
) -> None:
    file.write_bytes(before.encode())
    exact = suggested(edit(old_string=old, new_string=new))
    assert not edit(old_string=exact, new_string=new).failed
    assert file.read_bytes().decode() == after


def test_whole_lines_are_suggested_with_a_word_about_their_rest(edit: Edit, file: Path) -> None:
    file.write_text("def total(items):\n\treturn sum(items)\n")
    done = edit(old_string="    return sums(items)", new_string="x")
    assert "whole lines, so new_string must hold what is to stay" in done.text
    assert "indents with 1 tab, old_string with 4 spaces; the file has '(items)'" in done.text
    assert suggested(done) == "\treturn sum(items)"


def test_whole_lines_are_suggested_where_less_occurs_several_times(edit: Edit, file: Path) -> None:
    file.write_text("one Text\nanother Text\nText\n")
    done = edit(old_string="other text", new_string="x")
    assert suggested(done) == "other Text"
    done = edit(old_string="text", new_string="x")
    assert "whole lines" in done.text
    assert suggested(done) == "one Text"


def test_what_the_answer_would_show_otherwise_is_not_suggested(edit: Edit, file: Path) -> None:
    file.write_text("a\u200bb\n")
    done = edit(old_string="ab", new_string="x")
    assert "ZERO WIDTH SPACE" in done.text
    assert "characters that cannot be seen" in done.text
    assert "Use this old_string" not in done.text


@pytest.mark.parametrize(
    "old", ["# the key", "tok = 'abcd'  # the key!", "TOK =", f'"{SECRET[8:]}"']
)
@pytest.mark.parametrize("width", [1, 2_000], ids=["short line", "long line"])
def test_no_part_of_a_secret_is_in_a_refusal(edit: Edit, file: Path, old: str, width: int) -> None:
    file.write_text(f'tok = "{SECRET}"  # the   key{" and more" * width}\n')
    done = edit(old_string=old, new_string="x")
    assert done.code == "NO_MATCH"
    refusal = done.text.replace(old, "")
    assert not [at for at in range(13) if SECRET[at : at + 4] in refusal]


def test_no_part_of_a_secret_is_in_the_diff_of_a_long_line(edit: Edit, file: Path) -> None:
    for blanks in range(280, 310):
        file.write_text(f"{' ' * 500}old{'-' * blanks}{SECRET}{'-' * 500}\n")
        done = edit(old_string="old", new_string="new")
        assert not [at for at in range(13) if SECRET[at : at + 4] in done.text]


def test_a_long_line_is_shown_around_its_change(edit: Edit, file: Path) -> None:
    file.write_text("x" * 300_000 + " old " + "y" * 300_000 + "\n")
    refused = edit(old_string="x Old y", new_string="z")
    assert len(refused.text) < 2_000
    assert "x old y" in refused.text
    done = edit(old_string="old", new_string="new")
    assert len(done.text) < 2_000
    assert "x old y" in done.text
    assert "x new y" in done.text
    assert "…[clipped: 299" in done.text


def test_a_hundred_thousand_matches_are_refused_with_the_first_lines(
    edit: Edit, file: Path
) -> None:
    file.write_text("a line of the log\n" * 100_000)
    done = edit(old_string="line", new_string="x")
    assert done.code == "MULTIPLE_MATCHES"
    assert "occurs 100000 times" in done.text
    assert "19, 20 and more)" in done.text


def test_more_matches_than_are_held_are_too_large(edit: Edit, file: Path) -> None:
    file.write_text("x " * (MATCHES + 1))
    done = edit(old_string=" ", new_string="", replace_all=True)
    assert done.code == "TOO_LARGE"
    assert "more than 100,000 times" in done.text
    assert "more than 100,000" in edit(old_string=" ", new_string="").text
    assert file.stat().st_size == 2 * (MATCHES + 1)


def test_long_texts_that_overlap_are_counted_up_to_a_limit(edit: Edit, file: Path) -> None:
    """To count all of them would take the product of both lengths, with the lock in hand."""
    file.write_text("a" * 30_000)
    done = edit(old_string="a" * 10_000, new_string="b")
    assert done.code == "MULTIPLE_MATCHES"
    assert f"occurs more than {COUNTED_CHARS // 10_000 + 1:,} times" in done.text
    assert not edit(old_string="a" * 10_000, new_string="b", replace_all=True).failed
    assert file.read_text() == "bbb"


def test_a_large_file_that_is_not_ascii_is_searched_in_part_and_that_is_said(
    edit: Edit, file: Path
) -> None:
    file.write_text(
        "\u043e\u0447\u0435\u043d\u044c \u0434\u043b\u0438\u043d\u043d\u043e\n" * 200_000
    )
    done = edit(old_string="nothing of the kind", new_string="x")
    assert "Only the first 2,000,000 characters were searched" in done.text


def test_the_search_for_what_was_meant_can_be_cancelled(
    file: Path, make_call: Callable[..., Call]
) -> None:
    """It asks often: cancelled at any of the times it asks, it ends there."""
    file.write_text("".join(f"line {number} of many\n" for number in range(50)))

    class Impatient(Call):
        __slots__ = ("left",)
        left: int

        def check(self) -> None:
            self.left -= 1
            self.cancelled = self.left <= 0
            super().check()

    asked = {"file_path": "a.txt", "old_string": "line of few words", "new_string": "x"}
    for count in (1, 3, 5, 7, 20, 60, 100):
        plain = make_call(file.parent)
        call = Impatient(plain.roots, plain.guard)
        call.left = count
        assert declared.call(asked, call).code == "CANCELLED"


@pytest.mark.parametrize("if_match", [None, "0123456789ab"])
def test_others_may_write_while_the_meant_text_is_searched(
    file: Path, make_call: Callable[..., Call], if_match: str | None
) -> None:
    file.write_text("one line\n")
    other = os.open(file.parent, os.O_RDONLY)
    free: list[bool] = []

    class Watching(Call):
        __slots__ = ()

        def check(self) -> None:
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except BlockingIOError:
                return
            fcntl.flock(other, fcntl.LOCK_UN)
            free.append(True)

    plain = make_call(file.parent)
    call = Watching(plain.roots, plain.guard)
    asked = {
        "file_path": "a.txt",
        "old_string": "one lime",
        "new_string": "x",
        "if_match": if_match,
    }
    assert declared.call(asked, call).failed
    os.close(other)
    assert free


def test_an_edit_of_line_ends_alone_is_told_to_change_nothing(edit: Edit, file: Path) -> None:
    file.write_bytes(b"a\r\nb\r\n")
    before = file.stat()
    done = edit(old_string="a\r\nb", new_string="a\nb")
    assert done.text.startswith("Unchanged 'a.txt'")
    assert done.structured["unchanged"]
    assert file.stat().st_ino == before.st_ino


def test_no_match_tells_when_the_edit_was_made_before(edit: Edit, file: Path) -> None:
    file.write_text("new text\n")
    assert (
        "new_string is there already (line 1)" in edit(old_string="old", new_string="new text").text
    )


def test_no_match_names_redaction_and_escapes(edit: Edit, file: Path) -> None:
    file.write_text("key = abc\x1b[0m\n")
    assert "holds the value itself" in edit(old_string="[REDACTED:KEY]", new_string="x").text
    assert "\\x1b" in edit(old_string="abc\\x1b[0m", new_string="x").text


def test_no_match_in_an_empty_file_or_with_nothing_similar_says_so(edit: Edit, file: Path) -> None:
    file.write_text("")
    assert "is empty" in edit(old_string="x", new_string="y").text
    file.write_text("completely\ndifferent\n")
    assert "Nothing similar" in edit(old_string="0123456789", new_string="y").text


def test_what_is_nearest_is_never_edited(edit: Edit, file: Path) -> None:
    file.write_text("value = 1\n")
    edit(old_string="value  =  1", new_string="x")
    assert file.read_text() == "value = 1\n"


def test_a_large_file_is_searched_in_bounded_time(edit: Edit, file: Path) -> None:
    file.write_text("".join(f"line {number} of many\n" for number in range(200_000)))
    assert edit(old_string="line of few words", new_string="x").code == "NO_MATCH"


# -- several at once --------------------------------------------------------------------------------

WORKER = """
import sys
from toolroll.call import Call
from toolroll.guard import Guard
from toolroll.paths import Roots
from toolroll_edit.tool import edit
root, name = sys.argv[1:]
call = Call(Roots([root]), Guard({}))
for step in range(25):
    asked = {"file_path": "log", "old_string": "END", "new_string": f"{name}-{step}\\nEND"}
    done = edit.call(asked, call)
    assert not done.failed, done.text
"""


def test_eight_processes_editing_one_file_lose_no_edit(tmp_path: Path) -> None:
    (tmp_path / "log").write_text("END\n")
    workers = [
        subprocess.Popen([sys.executable, "-c", WORKER, tmp_path, str(number)])
        for number in range(8)
    ]
    assert [worker.wait(timeout=100) for worker in workers] == [0] * 8
    lines = (tmp_path / "log").read_text().split("\n")
    assert sorted(lines[:-2]) == sorted(
        f"{number}-{step}" for number in range(8) for step in range(25)
    )
    assert os.listdir(tmp_path) == ["log"]


# -- the real process -------------------------------------------------------------------------------


@pytest.mark.parametrize("era", ERAS)
def test_an_edit_over_the_wire(wire: Callable[..., Wire], tmp_path: Path, era: str) -> None:
    (tmp_path / "a.txt").write_bytes(b"one\r\ntwo\r\n")
    server = wire("toolroll_edit", "--root", tmp_path).open(era)
    done = server.call("Edit", file_path="a.txt", old_string="one\ntwo", new_string="1\n2")
    assert not done["isError"], done
    assert (tmp_path / "a.txt").read_bytes() == b"1\r\n2\r\n"
    refused = server.call("Edit", file_path="a.txt", old_string="x", new_string="y", backup=True)
    assert refused["isError"]
    assert "'backup' is not a parameter" in refused["content"][0]["text"]


def test_hooks_of_git_are_closed_by_default(wire: Callable[..., Wire], tmp_path: Path) -> None:
    (tmp_path / ".git/hooks").mkdir(parents=True)
    server = wire("toolroll_edit", "--root", tmp_path).open()
    done = server.call("Edit", file_path=".git/hooks/pre-commit", old_string="", new_string="x")
    assert done["_meta"]["toolroll/code"] == "PERMISSION_DENIED"
    assert not (tmp_path / ".git/hooks/pre-commit").exists()
