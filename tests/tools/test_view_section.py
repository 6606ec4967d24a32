"""Outlines and sections: what counts as a heading or definition, and where it ends."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.call import Call
from toolroll.errors import ErrorCode
from toolroll_view import document, place
from toolroll_view.outline import ENTRIES, entries, language_of, outline
from toolroll_view.section import PARAGRAPH_LINES, find
from toolroll_view.tool import view

MakeCall = Callable[..., Call]

PYTHON = '''\
import os


@decorated
@twice(
def first(
    one: int,
) -> None:
    """Text
at the margin
    """
    if one:
        call("(", '#')  # )

        return

# a comment at the margin
    done()


class Second:
    async def run(self): return [
        1,
]
    x = 1


print(first)
'''

RUST = """\
/// Says what it is.
#[derive(Debug)]
pub struct Point<'a> {
    name: &'a str, // {
}

impl<'a> Point<'a> {
    pub fn show(&self) -> char
    where
        Self: Sized,
    {
        let open = '{';
        "}".chars().next().unwrap()
    }
}

pub struct Unit;
type Pair = (i32, i32);
fn call() { Point::show(); }
"""

C = """\
#include <stdio.h>

int add(int a, int b);

/* Adds. */
static int
add_all(const int *list, int count)
{
    for (int i = 0; i < count; i++) { add(list[i], '}'); }
    return add(1, 2);
}

int add(int a, int b) { return a + b; }
"""

JAVASCRIPT = """\
export const handler = async (event) => {
  const text = '} not the end';
  return text;
};

class Shop extends Place {
  open(hour) {
    if (hour) { this.close(hour) }
  }
}
"""

MARKDOWN = """\
# Top

Setext
------

text

```sh
# no heading
```

## Install it

Run `make`.

### From source

Here.

## Use

More to install.
"""


def section(text: str, name: str, language: str, path: str = "") -> str | None:
    """The lines of the section, as one text."""
    found = find(text, name, language, path)
    if found is None:
        return None
    return "\n".join(text.split("\n")[found.start - 1 : found.end])


@pytest.mark.parametrize(
    ("text", "ending", "name", "first", "last"),
    [
        (PYTHON, "py", "first", "@decorated", "    done()"),
        (PYTHON, "py", "def first", "@decorated", "    done()"),
        (PYTHON, "py", "Second", "class Second:", "    x = 1"),
        (PYTHON, "py", "run", "    async def run(self): return [", "]"),
        (RUST, "rs", "Point", "/// Says what it is.", "}"),
        (RUST, "rs", "show", "    pub fn show(&self) -> char", "    }"),
        (RUST, "rs", "Unit", "pub struct Unit;", "pub struct Unit;"),
        (RUST, "rs", "Pair", "type Pair = (i32, i32);", "type Pair = (i32, i32);"),
        (RUST, "rs", "call", "fn call() { Point::show(); }", "fn call() { Point::show(); }"),
        (C, "c", "add", "int add(int a, int b) { return a + b; }", None),
        (C, "c", "add_all", "add_all(const int *list, int count)", "}"),
        (JAVASCRIPT, "js", "handler", "export const handler = async (event) => {", "};"),
        (JAVASCRIPT, "js", "open", "  open(hour) {", "  }"),
        (JAVASCRIPT, "js", "Shop", "class Shop extends Place {", "}"),
        (MARKDOWN, "md", "install", "## Install it", "Here."),
        (MARKDOWN, "md", "## Install", "## Install it", "Here."),
        (MARKDOWN, "md", "From source", "### From source", "Here."),
        (MARKDOWN, "md", "setext", "Setext", "```"),
        (MARKDOWN, "md", "Top", "# Top", "More to install."),
    ],
)
def test_a_section_begins_and_ends_where_a_reader_would_say(
    text: str, ending: str, name: str, first: str, last: str | None
) -> None:
    path = f"file.{ending}"
    shown = section(text, name, language_of(path), path)
    assert shown is not None
    assert shown.split("\n")[0] == first
    assert shown.split("\n")[-1] == (first if last is None else last)


def test_a_heading_inside_fenced_code_is_none() -> None:
    names = [entry.name for entry in entries(MARKDOWN, "markdown")]
    assert names == ["Top", "Setext", "Install it", "From source", "Use"]


def test_an_equal_name_wins_over_one_that_contains_it() -> None:
    text = "def run_all(): pass\ndef Run(): pass\ndef run(): pass\n"
    assert section(text, "run", "python") == "def run(): pass"
    assert section(text, "Run", "python") == "def Run(): pass"
    found = find(text, "run", "python")
    assert found is not None
    assert found.also == [1, 2]


def test_a_name_wins_over_an_earlier_paragraph() -> None:
    assert section("x = run()\n\ndef run():\n    pass\n", "run", "python") == "def run():\n    pass"


def test_a_paragraph_reaches_from_blank_line_to_blank_line() -> None:
    text = "one\n\ntwo\nwith needle\nthree\n \nfour\n"
    assert section(text, "needle", "") == "two\nwith needle\nthree"
    assert section(text, "NEEDLE", "") == "two\nwith needle\nthree"
    assert section(text, "nothing", "") is None


def test_a_paragraph_without_end_is_shown_around_the_hit() -> None:
    text = "\n".join(f"line {n}" for n in range(1, 1000))
    found = find(text, "line 500", "")
    assert found is not None
    assert found.start <= 500 <= found.end
    assert found.end - found.start < PARAGRAPH_LINES


@settings(deadline=None)
@given(
    st.lists(
        st.sampled_from(
            ["def f(", "class A", "{", "}", "(", ")", '"', "'", '"""', "#", "# f", "f", "=>"]
        )
        | st.sampled_from(["    ", "\n", "/*", "*/", ";", "```", "---", "fn f", "é", "İ"]),
        max_size=40,
    ).map("".join),
    st.sampled_from(["py", "rs", "js", "md", "txt"]),
    st.sampled_from(["f", "A", "é", "{", "i"]),
)
def test_any_text_has_a_section_with_the_name_or_none(text: str, ending: str, name: str) -> None:
    path = f"x.{ending}"
    found = find(text, name, language_of(path), path)
    lines = text.split("\n")
    if found is None:
        assert name not in text
        return
    assert 1 <= found.start <= found.hit <= found.end <= len(lines)
    assert name.lower() in lines[found.hit - 1].lower()


# Outlines


def test_an_outline_names_lines_and_stays_short() -> None:
    text = "".join(f"class C{n}:\n    def run(self): pass\n" for n in range(30))
    shown = outline(text, "python", 11, 10_000).split("\n")
    assert shown[0] == "11\tclass C5:"
    assert len(shown) == 26
    assert shown[-1] == "… 25 more"
    text = "".join(f"def f{n}(): pass\n" for n in range(100))
    assert len(outline(text, "python", 1, 10_000).split("\n")) == ENTRIES + 1
    assert len(outline(text, "python", 1, 200)) <= 200 + len("\n… 100 more")


def test_the_first_page_of_code_ends_with_an_outline_of_the_rest(
    tmp_path: Path, make_call: MakeCall
) -> None:
    (tmp_path / "a.py").write_text(PYTHON)
    outcome = view.call({"file_path": "a.py", "limit": 3}, make_call(tmp_path))
    assert outcome.text.split("\n")[3:-1] == [
        "",
        "Outline of the rest:",
        "6\tdef first(",
        "21\tclass Second:",
        "22\t    async def run(self): return [",
    ]
    second = view.call({"file_path": "a.py", "limit": 3, "offset": 4}, make_call(tmp_path))
    assert "Outline" not in second.text


def test_the_outline_shares_the_output_with_the_page(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.py").write_text("".join(f"def f{n}(): pass\n" for n in range(500)))
    outcome = view.call({"file_path": "a.py"}, make_call(tmp_path, max_output=2000))
    body = outcome.text.rpartition("\n")[0]
    assert len(body) <= 2000
    following = outcome.structured["next_offset"]
    assert f"\n\nOutline of the rest:\n{following}\tdef f{following - 1}()" in body
    assert len(body) > 1700


# Through the tool


def test_a_section_is_shown_alone_with_its_lines(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    call = make_call(tmp_path)
    outcome = view.call({"file_path": "a.md", "find_section": "from source"}, call)
    body, _, last = outcome.text.rpartition("\n")
    assert body == "16\t### From source\n17\t\n18\tHere."
    assert last.startswith("[section 'From source' · lines 16-18 of 22 · etag ")
    assert "next_offset" not in outcome.structured


def test_a_section_longer_than_the_limit_leads_on(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    asked = {"file_path": "a.md", "find_section": "Install", "limit": 2}
    outcome = view.call(asked, make_call(tmp_path))
    assert outcome.structured["next_offset"] == 14


def test_the_search_starts_at_the_offset(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    asked = {"file_path": "a.md", "find_section": "install", "offset": 15}
    assert view.call(asked, make_call(tmp_path)).text.startswith("22\tMore to install.")


def test_a_section_that_is_not_there_is_no_match(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.md").write_text(MARKDOWN)
    outcome = view.call({"file_path": "a.md", "find_section": "deploy"}, make_call(tmp_path))
    assert outcome.code == ErrorCode.NO_MATCH
    assert "'deploy'" in outcome.text
    assert "'Install it'" in outcome.text


def test_a_hit_beyond_the_clipped_columns_is_located(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "a.txt").write_text("one\n" + "x" * 5000 + "needle\n")
    outcome = view.call({"file_path": "a.txt", "find_section": "needle"}, make_call(tmp_path))
    assert "found in line 2 at column 5001" in outcome.text


@pytest.mark.parametrize("piece", [256, 1000, 5000])
def test_a_large_file_is_searched_in_pieces(
    tmp_path: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, piece: int
) -> None:
    monkeypatch.setattr(place, "SECTION_BYTES", piece)
    monkeypatch.setattr(document, "ETAG_WHOLE_BYTES", 64)
    long = "y" * 3000 + "hidden é needle"
    text = "".join(f"# Part {n}\n\nabout part {n}\n\n" for n in range(200)) + long + "\nend\n"
    (tmp_path / "a.md").write_text(text)
    call = make_call(tmp_path)
    found = view.call({"file_path": "a.md", "find_section": "Part 150"}, call)
    assert found.text.startswith("601\t# Part 150\n602\t\n603\tabout part 150\n[section 'Part 150'")
    found = view.call({"file_path": "a.md", "find_section": "é needle"}, call)
    assert found.text.startswith("801\tyyy")
    assert "line 801 at column 3008" in found.text
    assert view.call({"file_path": "a.md", "offset": 801, "limit": 1}, call).text.startswith(
        "801\tyy"
    )
    assert view.call({"file_path": "a.md", "offset": 802}, call).text.startswith("802\tend\n")


def test_a_search_that_runs_out_of_time_says_so(
    tmp_path: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(place, "SECTION_BYTES", 64)
    (tmp_path / "a.txt").write_text("x\n" * 1000)
    call = make_call(tmp_path, deadline_s=0.0)
    outcome = view.call({"file_path": "a.txt", "find_section": "needle"}, call)
    assert outcome.structured["incomplete"] is True
    assert "time ran out" in outcome.text
