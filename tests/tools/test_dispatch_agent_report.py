"""Reports checked against the disk."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from toolroll.paths import Roots
from toolroll_dispatch_agent.report import BARE, NO_CITATION, Report, bare, trace


@pytest.fixture
def roots(tmp_path: Path) -> Roots:
    (tmp_path / "src").mkdir()
    (tmp_path / "src/app.py").write_text("one\ntwo\nthree\nfour\nfive")
    (tmp_path / "src/[id].tsx").write_text("one\n")
    (tmp_path / "my notes.md").write_text("one\n")
    (tmp_path / "Makefile").write_text("all:\n")
    (tmp_path / "empty.txt").write_text("")
    return Roots([str(tmp_path)])


MARKED = {
    "bare": ("See src/app.py:5.", "See src/app.py:5 ✓."),
    "in brackets": ("(src/app.py:5)", "(src/app.py:5 ✓)"),
    "in backquotes": ("`src/app.py:5`, then", "`src/app.py:5` ✓, then"),
    "bold": ("**src/app.py:5**", "**src/app.py:5 ✓**"),
    "a range": ("src/app.py:2-5", "src/app.py:2-5 ✓"),
    "a range with a dash": ("src/app.py:2\u20135", "src/app.py:2\u20135 ✓"),
    "a range too long": ("src/app.py:2-6", "src/app.py:2-6 ✗ (it has 5 lines)"),
    "a range backwards": ("src/app.py:4-2", "src/app.py:4-2 ✗ (no such lines)"),
    "a column": ("src/app.py:2:7", "src/app.py:2:7 ✓"),
    "line 0": ("src/app.py:0", "src/app.py:0 ✗ (no such lines)"),
    "too far": ("src/app.py:6", "src/app.py:6 ✗ (it has 5 lines)"),
    "an empty file": ("empty.txt:1", "empty.txt:1 ✗ (it has 0 lines)"),
    "no file": ("src/none.py:6", "src/none.py:6 ✗ (no such file)"),
    "a directory": ("./src:1", "./src:1 ✗ (no file)"),
    "outside": ("/etc/passwd:1", "/etc/passwd:1 ✗ (outside the task's directory)"),
    "upwards": ("../x.py:1", "../x.py:1 ✗ (outside the task's directory)"),
    "without a dot": ("Makefile:1", "Makefile:1 ✓"),
    "a blank in the path": ("`my notes.md:1`", "`my notes.md:1` ✓"),
    "a bracket in the path": ("src/[id].tsx:1", "src/[id].tsx:1 ✓"),
    "a command": ("`vi src/app.py:5`", "`vi src/app.py:5 ✓`"),
    "a link": ("[src/app.py:5](src/app.py:5)", "[src/app.py:5 ✓](src/app.py:5)"),
    "a mark of its own": ("src/app.py:9 ✓", "src/app.py:9 ✗ (it has 5 lines)"),
    "two": ("src/app.py:1, src/app.py:2", "src/app.py:1 ✓, src/app.py:2 ✓"),
    "two in backquotes": ("`src/app.py:1` `src/app.py:2`", "`src/app.py:1` ✓ `src/app.py:2` ✓"),
}


@pytest.mark.parametrize(("text", "marked"), MARKED.values(), ids=MARKED)
def test_a_place_is_marked(text: str, marked: str, roots: Roots) -> None:
    assert Report(text, roots).text == marked


OTHERS = [
    "http://example.com:80/x",
    "localhost:8080",
    "127.0.0.1:8080",
    "at 10:30",
    "std::vector:3",
    "Note:1",
    "a `b` c",
    f"src/app.py:{'9' * 5000}",
]


@pytest.mark.parametrize("text", OTHERS)
def test_what_is_no_place_is_left_alone(text: str, roots: Roots) -> None:
    report = Report(text, roots)
    assert report.text == f"{text}\n\n{NO_CITATION}"
    assert report.citations == []


def test_each_place_counts_once(roots: Roots) -> None:
    report = Report("src/app.py:1 src/app.py:1 src/app.py:9", roots)
    assert report.note == "citations verified: 1 of 2"
    assert [one.data for one in report.citations] == [
        {"path": "src/app.py", "line": 1, "verified": True},
        {"path": "src/app.py", "line": 9, "verified": False, "fault": "it has 5 lines"},
    ]


def test_of_excerpts_only_the_given_places_are_marked(roots: Roots) -> None:
    report = Report("src/app.py:1\n12\tsee src/app.py:2", roots, [("src/app.py", 1)])
    assert report.text == "src/app.py:1 ✓\n12\tsee src/app.py:2"


def test_a_closed_place_is_not_looked_into(tmp_path: Path, roots: Roots) -> None:
    closed = Roots([str(tmp_path)], ["*.py"])
    assert Report("src/app.py:5", closed).text == "src/app.py:5 ✗ (cannot be read)"


@given(st.text(alphabet="a./:`-0123 ✓[]()\n", max_size=40))
def test_without_its_marks_a_report_is_what_was_written(text: str) -> None:
    report = Report(text, Roots([]))
    bare = report.text.removesuffix(NO_CITATION).rstrip("\n")
    for citation in report.citations:
        bare = bare.replace(f" ✗ ({citation.fault})", "")
    assert bare.replace("✓", "").split() == text.replace("✓", "").split()


@given(st.text(alphabet="a./:`-01 ✓[]()=\u2013,", max_size=40))
def test_places_are_those_of_the_expression(text: str) -> None:
    assert [one.span() for one in bare(text)] == [one.span() for one in BARE.finditer(text)]


@pytest.mark.parametrize("part", ["a=", "a", "=", "a:", "a=:1x", "`", "`a"])
def test_a_long_text_without_places_is_soon_read(part: str) -> None:
    code = (
        "from toolroll.paths import Roots; from toolroll_dispatch_agent.report import Report; "
        f"Report({part!r} * 200_000, Roots([]))"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


def test_a_trace_shows_calls_in_order_even_where_ids_come_again() -> None:
    def made(name: str) -> dict[str, object]:
        function = {"name": name, "arguments": "{}"}
        calls = [{"id": "call_0", "function": function}]
        return {"role": "assistant", "content": None, "tool_calls": calls}

    def result(text: str) -> dict[str, object]:
        return {"role": "tool", "tool_call_id": "call_0", "content": text}

    said = [made("LS"), result("one\ntwo"), made("View"), result("three")]
    assert trace(said) == "LS {}\n  one\n  two\n\nView {}\n  three"
