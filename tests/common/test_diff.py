"""The diff shows every change, and the real `patch` applies it."""

import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.diff import DIFF_LINES, SHOWN_CHARS, between, unified

TEXTS = st.lists(st.sampled_from(["a", "b", "c", "", "dd"]), max_size=12).map("\n".join)


def applied(text: str, spans: list[tuple[int, int, str]]) -> str:
    pieces, at = [], 0
    for start, end, new in spans:
        pieces += [text[at:start], new]
        at = end
    return "".join(pieces) + text[at:]


def lines(text: str) -> int:
    return text.count("\n") + (text != "" and not text.endswith("\n"))


@given(TEXTS, TEXTS)
@settings(deadline=None)
def test_the_spans_between_two_texts_make_one_of_the_other(old: str, new: str) -> None:
    assert applied(old, between(old, new)) == new


@given(TEXTS, TEXTS)
@settings(deadline=None)
def test_added_and_removed_account_for_the_difference_in_lines(old: str, new: str) -> None:
    diff = unified(old, between(old, new))
    assert diff.added - diff.removed == lines(new) - lines(old)
    assert (diff.text == "") == (old == new)


@given(TEXTS, st.integers(0, 40), st.integers(0, 40), TEXTS)
@settings(deadline=None)
def test_a_span_anywhere_in_a_line_gives_whole_lines(old: str, a: int, b: int, text: str) -> None:
    start, end = sorted((min(a, len(old)), min(b, len(old))))
    new = applied(old, [(start, end, text)])
    diff = unified(old, [(start, end, text)])
    assert diff.added - diff.removed == lines(new) - lines(old)


@pytest.mark.skipif(shutil.which("patch") is None, reason="patch(1) is not installed")
@given(st.data())
@settings(deadline=None, max_examples=40)
def test_patch_applies_the_diff(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    numbered = [f"line {number}" for number in range(data.draw(st.integers(3, 30)))]
    changed = list(numbered)
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(changed)))
        changed[at : at + data.draw(st.integers(0, 2))] = data.draw(
            st.lists(st.sampled_from(["x", "y"]), max_size=2)
        )
    old, new = ("".join(f"{line}\n" for line in one) for one in (numbered, changed))
    diff = unified(old, between(old, new)).text
    if not diff or not new:
        return
    file: Path = tmp_path_factory.mktemp("patch") / "file"
    file.write_text(old)
    subprocess.run(
        ["patch", "--silent", file],
        input=f"--- a\n+++ b\n{diff}\n",
        text=True,
        check=True,
        timeout=30,
    )
    assert file.read_text() == new


@pytest.mark.parametrize("new", ["", "x", "y\n" * 40_000])
def test_long_texts_differ_only_where_they_were_changed(new: str) -> None:
    head, tail = "a\nb\n" * 50_000, "c\nd\n" * 50_000
    old = head + "x\n" + tail
    spans = between(old, head + new + tail)
    assert applied(old, spans) == head + new + tail
    assert spans[0][0] == len(head)
    assert spans[-1][1] <= len(head) + 4


def test_a_long_diff_is_cut_and_says_so() -> None:
    old = "".join(f"{number}\n" for number in range(1000))
    new = "".join(f"{number if number % 20 else 'x'}\n" for number in range(1000))
    diff = unified(old, between(old, new))
    assert (diff.added, diff.removed) == (50, 50)
    assert len(diff.text.split("\n")) <= DIFF_LINES + 2
    assert "more hunks" in diff.text


def test_a_carriage_return_before_the_line_feed_is_not_shown() -> None:
    assert "\r" not in unified("a\r\nb\r\n", between("a\r\nb\r\n", "a\r\nc\r\n")).text


def test_a_long_line_is_cut_around_its_change_after_it_was_cleaned() -> None:
    old, new = ("a" * 1_000 + word + "secret" * 200 + "\n" for word in ("old", "new"))
    diff = unified(old, between(old, new), lambda line: line.replace("secret", "*"))
    assert "secret" not in diff.text
    lines = diff.text.split("\n")
    assert [("old" in line, "new" in line) for line in lines[1:]] == [(True, False), (False, True)]
    assert all(len(line) < SHOWN_CHARS + 60 for line in lines)
    assert lines[1].startswith("-[clipped: 803 characters]…aaa")


def test_lines_of_the_length_shown_are_whole() -> None:
    old = "a" * SHOWN_CHARS
    assert f"-{old}\n+b" in unified(old, between(old, "b")).text
