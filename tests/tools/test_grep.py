"""GrepTool as a host sees it: what is found, how it is shown, what is said of the rest."""

import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest

from tests.conftest import tick
from toolroll.call import Call
from toolroll.errors import ToolError
from toolroll.textfile import etag
from toolroll.tool import Outcome
from toolroll_grep import pool, search, worker
from toolroll_grep.border import BACK, Border
from toolroll_grep.pattern import plan
from toolroll_grep.tool import grep

Ask = Callable[..., Outcome]
Wire = Any


@pytest.fixture(autouse=True)
def no_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture(autouse=True, scope="module")
def no_process_outlives_the_tests() -> Iterator[None]:
    yield
    search.POOL.close()


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "root"
    folder.mkdir()
    return folder


@pytest.fixture
def found(folder: Path, make_call: Callable[..., Call], answer: Ask) -> Ask:
    """`found(pattern, **parameters)`: GrepTool in the folder, which is the only root."""

    def ask(pattern: str, *, options: "dict[str, Any] | None" = None, **parameters: Any) -> Outcome:
        return answer(grep, make_call(folder, **(options or {})), pattern=pattern, **parameters)

    return ask


def write(folder: Path, files: "dict[str, str | bytes]") -> None:
    """Write the files, the first one the newest, all old enough to be trusted."""
    for age, (name, text) in enumerate(files.items()):
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))


def body(outcome: Outcome) -> str:
    """The answer without its facts, and without etags."""
    assert not outcome.failed, outcome.text
    text = re.sub(r"  etag ~?[0-9a-f]{12}", "", outcome.text)
    return re.sub(r"\n?\[[^\n]*\]$", "", text)


def facts(outcome: Outcome) -> str:
    last = outcome.text.split("\n")[-1]
    return last if last.startswith("[") else ""


# What is shown


def test_matches_are_shown_under_their_file_newest_first(folder: Path, found: Ask) -> None:
    write(folder, {"new.py": "def one\nx\ndef two\n", "sub/old.py": "# def\n", "none.py": "x\n"})
    assert body(found("def")) == "new.py\n1: def one\n3: def two\n\nsub/old.py\n1: # def"
    assert facts(found("def")) == "[3 lines in 2 files]"


def test_the_etag_behind_a_path_is_that_of_its_bytes(folder: Path, found: Ask) -> None:
    for data in (b"def one\n", "é def".encode("latin-1"), "def".encode("utf-16")):
        write(folder, {"a.py": data})
        tag = etag((folder / "a.py").stat(), data)
        assert f"a.py  etag {tag}" in found("def").text


def test_context_is_marked_by_a_dash_and_gaps_by_two(folder: Path, found: Ask) -> None:
    write(folder, {"a": "1\n2 x\n3\n4\n5\n6 x\n7 x\n8\n"})
    assert body(found("x", context=1)) == ("a\n1- 1\n2: 2 x\n3- 3\n--\n5- 5\n6: 6 x\n7: 7 x\n8- 8")
    assert body(found("x", context=2)).count("--") == 0


def test_paths_are_printed_so_that_they_can_be_used_again(folder: Path, found: Ask) -> None:
    write(folder, {"src/deep/a.py": "x\n"})
    for path, shown in {
        ".": "src/deep/a.py",
        "src": "src/deep/a.py",
        "./src/": "src/deep/a.py",
        "src/deep/a.py": "src/deep/a.py",
        str(folder): f"{folder}/src/deep/a.py",
        "src/../src": "src/../src/deep/a.py",
    }.items():
        assert body(found("x", path=path)) == f"{shown}\n1: x"
        assert body(found("x", path=shown, output_mode="files")) == shown


def test_count_and_files_modes_are_a_line_for_each_file(folder: Path, found: Ask) -> None:
    write(folder, {"a": "x x\nx\n", "b": "y\n", "c/d": "x"})
    assert body(found("x", output_mode="count")) == "a: 2\nc/d: 1"
    assert body(found("x", output_mode="files")) == "a\nc/d"
    assert facts(found("x", output_mode="count")) == "[3 in 2 files]"


def test_a_long_line_is_clipped_around_the_match_and_the_columns_are_said(
    folder: Path, found: Ask
) -> None:
    write(folder, {"a": "a" * 5000 + "needle" + "b" * 5000})
    line = body(found("needle")).split("\n")[1]
    assert re.fullmatch(r"1: a+needleb+ \[clipped: columns 4804-5203 of 10006\]", line)


def test_the_matched_text_is_exactly_that_of_the_file(folder: Path, found: Ask) -> None:
    write(folder, {"a": "\t  x = 'é' # **x**  \r\n"})
    assert body(found("x =")).split("\n")[1] == "1: \t  x = 'é' # **x**  "


def test_the_structured_form_names_line_column_and_kind(folder: Path, found: Ask) -> None:
    write(folder, {"a": "é x\ny\n"})
    assert found("x", context=1).structured == {
        "results": [
            {"path": "a", "line": 1, "column": 3, "text": "é x", "kind": "match"},
            {"path": "a", "line": 2, "text": "y", "kind": "context"},
        ],
        "files": 1,
        "total": 1,
    }


# What does not fit


def test_every_file_gets_its_share_of_the_limit(folder: Path, found: Ask) -> None:
    write(folder, {"many": "x\n" * 500, "few": "x\nx\n", "more": "x\n" * 50})
    outcome = found("x", limit=20)
    assert [body(outcome).count(f"{name}  ") for name in ("many", "few", "more")] == [1, 0, 1]
    assert "many  9 of 500 lines" in body(outcome)
    assert "more  9 of 50 lines" in body(outcome)
    assert facts(outcome).startswith("[truncated: 20 of 552 lines in 3 files")
    assert outcome.structured["truncated"] is True
    assert outcome.structured["total"] == 552


def test_over_the_limit_files_without_lines_are_counted(folder: Path, found: Ask) -> None:
    write(folder, {f"f{n}": "x\n" * (n + 1) for n in range(6)})
    assert body(found("x", limit=3)) == (
        "f0\n1: x\n\nf1  1 of 2 lines\n1: x\n\nf2  1 of 3 lines\n1: x\n\nf3: 4\nf4: 5\nf5: 6"
    )


def test_over_the_budget_context_goes_first_then_lines_then_all_but_counts(
    folder: Path, found: Ask
) -> None:
    lines = "".join(f"{'x' if n % 5 == 0 else 'y'} {'z' * 60}\n" for n in range(80))
    write(folder, {f"f{n:02}": lines for n in range(5)})
    whole = found("x", context=2, limit=1000)
    assert "- y" in body(whole)
    assert facts(whole) == "[80 lines in 5 files]"
    slim = found("x", context=2, limit=1000, options={"max_output": 10_000})
    assert "- y" not in body(slim)
    assert facts(slim) == "[80 lines in 5 files]"
    slimmer = found("x", context=2, limit=1000, options={"max_output": 4_000})
    assert all(f"f{n:02}  " in body(slimmer) for n in range(5))
    slimmest = found("x", limit=1000, options={"max_output": 900})
    assert all(f"f{n:02}" in body(slimmest) for n in range(5))
    for outcome, most in ((slim, 10_000), (slimmer, 4_000), (slimmest, 900)):
        assert len(outcome.text) <= most
        assert "left out here" not in outcome.text


def test_the_last_files_are_numbered_when_there_is_no_room_for_names(
    folder: Path, found: Ask
) -> None:
    write(folder, {f"{n:04}{'n' * 100}": "x\n" for n in range(300)})
    outcome = found("x", options={"max_output": 5_000})
    shown = body(outcome).count("nnn\n") + body(outcome).count("nnn: 1")
    unnamed = int(re.findall(r"(\d+) more files not named", facts(outcome))[0])
    assert len(re.findall("n{100}", body(outcome))) + unnamed == 300
    assert shown
    assert "of 300 lines in 300 files" in facts(outcome)
    for mode in ("files", "count"):
        assert "of 300 files" in facts(found("x", output_mode=mode, limit=7))
        assert len(body(found("x", output_mode=mode, limit=7)).split("\n")) == 7


# Nothing


def test_a_zero_tells_what_was_skipped_and_where_there_are_matches(
    folder: Path, found: Ask
) -> None:
    write(folder, {"a.py": "Needle\n", "b.o": "\0", ".ignore": "*.log\n", "x.log": "needle(\n"})
    text = found("needle").text
    assert text.startswith("No matches in 2 files. Skipped: 1 ignored, 1 hidden, 1 binary.")
    assert "With ignore_case=true there are matches, as in 'a.py'." in text
    assert "Among the ignored 'x.log' matches: repeat with no_ignore=true." in text
    assert body(found("needle", no_ignore=True)) == "x.log\n1: needle("


def test_a_zero_tells_that_the_pattern_as_text_matches(folder: Path, found: Ask) -> None:
    write(folder, {"a.py": "call(x)[0]\n"})
    assert "With fixed_strings=true there are matches, as in 'a.py'." in found("call(x)[0]").text
    assert body(found("call(x)[0]", fixed_strings=True)) == "a.py\n1: call(x)[0]"


def test_a_zero_names_the_hidden_file_that_matches(folder: Path, found: Ask) -> None:
    write(folder, {".github/ci.yml": "needle\n", "a": "x\n"})
    assert "Among the hidden '.github/ci.yml' matches" in found("needle").text
    assert body(found("needle", path=".github")) == ".github/ci.yml\n1: needle"
    assert body(found("needle", include=".github/**")) == ".github/ci.yml\n1: needle"


def test_a_second_look_has_only_a_part_of_the_time(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"a": "Foo\n", ".b": "foo\n"})
    assert "ignore_case=true" in found("foo").text
    monkeypatch.setattr(search, "SECOND_LOOK_S", 0.0)
    monkeypatch.setattr(search, "SECOND_LOOK_PART", 0.0)
    outcome = found("foo")
    assert outcome.text == (
        "No matches in 1 file. Skipped: 1 hidden."
        " A second look (other case, as text, ignored and hidden files) ran out of time."
    )
    assert "incomplete" not in outcome.structured


def test_an_include_that_fits_no_file_is_said(folder: Path, found: Ask) -> None:
    write(folder, {"a.py": "x\n"})
    assert found("x", include="*.rs").text.startswith("No files that fit include '*.rs'.")


# Which files


@pytest.mark.parametrize(
    ("include", "names"),
    [
        ("*.py", ["a.py", "sub/b.py"]),
        ("*.{py,md}", ["a.py", "c.md", "sub/b.py"]),
        ("sub/**", ["sub/b.py", "sub/d.txt"]),
        ("sub/*.py", ["sub/b.py"]),
        ("!*.py", ["c.md", "sub/d.txt"]),
        ("", ["a.py", "c.md", "sub/b.py", "sub/d.txt"]),
    ],
)
def test_include_chooses_files(folder: Path, found: Ask, include: str, names: list[str]) -> None:
    write(folder, {"a.py": "x", "sub/b.py": "x", "c.md": "x", "sub/d.txt": "x"})
    assert sorted(body(found("x", include=include, output_mode="files")).split("\n")) == names


def test_ignore_rules_hold_as_for_git(folder: Path, found: Ask) -> None:
    (folder / ".git").mkdir()
    write(
        folder, {".gitignore": "out/\n", ".ignore": "*.tmp\n", "out/a": "x", "b.tmp": "x", "c": "x"}
    )
    assert body(found("x", output_mode="files")) == "c"
    assert body(found("x", output_mode="files", no_ignore_vcs=True)) == "out/a\nc"
    assert body(found("x", output_mode="files", no_ignore=True)) == "out/a\nb.tmp\nc"


def test_a_named_file_is_searched_whatever_is_ignored(folder: Path, found: Ask) -> None:
    write(folder, {".ignore": "*\n", "a": "x\n"})
    assert body(found("x", path="a")) == "a\n1: x"


def test_a_named_file_that_is_binary_is_said_to_be(folder: Path, found: Ask) -> None:
    write(folder, {"a": "\0x\n"})
    assert found("x", path="a").text == "No matches in 1 file. Skipped: 1 binary."


def test_encodings_are_searched_as_text_and_named(folder: Path, found: Ask) -> None:
    write(
        folder,
        {
            "u8": "é1\n",
            "bom": b"\xef\xbb\xbf" + "é2\n".encode(),
            "u16": "é3\n".encode("utf-16"),
            "latin": "é4\n".encode("latin-1"),
        },
    )
    text = body(found(r"^é\d$"))
    assert text == (
        "u8\n1: é1\n\nbom  UTF-8 with BOM\n1: é2\n\nu16  UTF-16 LE\n1: é3\n\nlatin  Latin-1\n1: é4"
    )


def test_a_binary_file_is_skipped_and_one_that_turns_binary_late_is_searched_till_there(
    folder: Path, found: Ask
) -> None:
    write(folder, {"soon": b"x 234\n\0", "late": b"x 234567\n" * 9_000 + b"\0x\n"})
    outcome = found("x", limit=1)
    assert "late" in outcome.text
    assert "binary from byte 81000" in outcome.text
    assert "skipped: 1 binary" in facts(outcome)
    assert outcome.structured["total"] == 7281
    assert "Skipped: 2 binary." in found("x", output_mode="count").text


def test_names_that_are_not_text_are_shown_so_that_they_can_be_used(
    folder: Path, found: Ask
) -> None:
    name = os.fsdecode(b"a\xff\n\x1b[31m.py")
    (folder / name).write_text("x\n")
    shown = body(found("x", output_mode="files"))
    assert shown == r"a\xff\n\x1b[31m.py"
    assert body(found("x", path=shown)) == f"{shown}\n1: x"


def test_links_are_not_followed_and_special_files_not_opened(folder: Path, found: Ask) -> None:
    write(folder, {"sub/a": "x\n"})
    (folder / "loop").symlink_to(folder)
    (folder / "sub/broken").symlink_to("nowhere")
    os.mkfifo(folder / "pipe")
    assert body(found("x")) == "sub/a\n1: x"


def test_what_cannot_be_read_is_counted(folder: Path, found: Ask) -> None:
    if os.geteuid() == 0:
        pytest.skip("root reads everything")
    write(folder, {"a": "x\n", "b": "x\n", "sub/c": "x\n"})
    (folder / "a").chmod(0)
    (folder / "sub").chmod(0)
    try:
        outcome = found("x")
    finally:
        (folder / "sub").chmod(0o755)
    assert body(outcome) == "b\n1: x"
    assert "1 unreadable, 1 unreadable folders" in facts(outcome)


def test_a_tree_deeper_than_a_path_may_be_long_is_searched(folder: Path, found: Ask) -> None:
    name = "d" * 200
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(30):
        os.mkdir(name, dir_fd=fd)
        fd, above = os.open(name, os.O_RDONLY, dir_fd=fd), fd
        os.close(above)
    file = os.open("a", os.O_CREAT | os.O_WRONLY, dir_fd=fd)
    os.write(file, b"x\n")
    os.close(file)
    os.close(fd)
    assert body(found("x")).endswith("/a\n1: x")
    subprocess.run(["rm", "-rf", str(folder)], check=True)


def test_places_that_the_operator_closed_are_not_even_counted(
    folder: Path, make_call: Callable[..., Call], answer: Ask
) -> None:
    write(folder, {"secret/a": "x\n", "b": "x\n"})
    call = make_call(folder, deny=["secret/**"])
    outcome = answer(grep, call, pattern="x")
    assert "secret" not in outcome.text
    assert facts(outcome) == "[1 line in 1 file]"


def test_a_path_outside_the_roots_is_refused(found: Ask) -> None:
    assert found("x", path="/etc").code == "OUTSIDE_ROOTS"


# Never stale


def test_a_changed_file_is_searched_anew_however_it_was_changed(folder: Path, found: Ask) -> None:
    write(folder, {"a": "old\n", "b": "old\n"})
    (folder / ".ignore").write_text("")

    def state() -> list[str]:
        return body(found("new", output_mode="files")).replace("No matches", "").split("\n")

    assert not any(line in {"a", "b"} for line in state())
    status = (folder / "a").stat()
    (folder / "a").write_text("new\n")  # same size, and the time stamp put back
    os.utime(folder / "a", ns=(status.st_atime_ns, status.st_mtime_ns))
    assert state() == ["a"]
    (folder / "c").write_text("new\n")
    os.rename(folder / "c", folder / "b")
    assert sorted(state()) == ["a", "b"]
    (folder / "sub").mkdir()
    (folder / "sub/d").write_text("new\n")
    assert sorted(state()) == ["a", "b", "sub/d"]
    (folder / ".ignore").write_text("sub/\n")
    assert sorted(state()) == ["a", "b"]
    (folder / "a").unlink()
    assert state() == ["b"]


def test_a_second_change_within_one_tick_of_the_clock_is_seen(folder: Path, found: Ask) -> None:
    for n in range(50):
        (folder / "a").write_text(f"{n:03}\n")
        assert body(found(f"{n:03}", output_mode="files")) == "a"


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """New processes that keep what they read, and listings, however young: so that they might be stale."""
    search.POOL.close()
    monkeypatch.setattr("toolroll.listing.SETTLED_NS", -(10**12))
    monkeypatch.setattr("toolroll_grep.contents.YOUNG_NS", -(10**18))
    yield
    search.POOL.close()


def changed(folder: Path) -> "Iterator[tuple[str, set[str]]]":
    """Change a tree in one way after the other; the files with matches after each."""
    yield "as it was", {"d0/f0", "d9/f9"}
    status = (folder / "d5/f5").stat()
    (folder / "d5/f5").write_text("x\n")
    os.utime(folder / "d5/f5", ns=(status.st_atime_ns, status.st_mtime_ns))
    yield "same size, and the old time put back", {"d0/f0", "d5/f5", "d9/f9"}
    (folder / "new").write_text("x\n")
    os.utime(folder / "new", ns=(status.st_atime_ns, status.st_mtime_ns))
    (folder / "new").rename(folder / "d5/f6")
    yield "another file renamed over it", {"d0/f0", "d5/f5", "d5/f6", "d9/f9"}
    (folder / "d5/f5").write_text("y\n")
    (folder / "d9/f9").unlink()
    yield "changed and removed", {"d0/f0", "d5/f6"}
    (folder / "d3/deep/er").mkdir(parents=True)
    (folder / "d3/deep/er/f").write_text("x\n")
    yield "a new directory", {"d0/f0", "d5/f6", "d3/deep/er/f"}
    (folder / "d3/deep").rename(folder / "a")
    (folder / "d5").rename(folder / "z")
    yield "directories that moved", {"d0/f0", "z/f6", "a/er/f"}
    (folder / ".ignore").write_text("/z\n")
    yield "a new rule", {"d0/f0", "a/er/f"}
    (folder / ".ignore").write_text("/d0")
    yield "a changed rule", {"z/f6", "a/er/f"}
    (folder / ".ignore").unlink()
    (folder / "z/f6").unlink()
    (folder / "z/f6").symlink_to("../d0/f0")
    yield "a link in the place of a file", {"d0/f0", "a/er/f"}
    (folder / "a").rename(folder / "b")
    (folder / "a").symlink_to("b")
    yield "a link in the place of a directory", {"d0/f0", "b/er/f"}
    (folder / "d0/.ignore").write_text("f1")
    yield "a new rule below", {"d0/f0", "b/er/f"}
    (folder / "d0/.ignore").write_text("f0")
    yield "a changed rule below", {"b/er/f"}


@pytest.mark.usefixtures("settled")
def test_nothing_stale_is_ever_answered(folder: Path, found: Ask) -> None:
    for part in range(10):
        (folder / f"d{part}").mkdir()
        for n in range(120):
            (folder / f"d{part}/f{n}").write_text("x\n" if part == n and n in {0, 9} else "y\n")
    for step, (what, names) in enumerate(changed(folder), 1):
        tick(folder)
        rows = found("(" * step + "x" + ")" * step).structured["results"]
        assert {row["path"] for row in rows} == names, (what, "asked for the first time")
        for mode in ("files", "count", "content"):
            for _ in range(2):
                rows = found("x", output_mode=mode).structured["results"]
                assert {row["path"] for row in rows} == names, (what, mode)
        assert facts(found("y", output_mode="count", limit=1)).startswith("[truncated: 1 of ")
        tick(folder)
    assert all(search.POOL._places)


@pytest.mark.usefixtures("settled")
def test_a_tree_is_searched_once_whatever_part_of_it_was_asked_for_before(
    folder: Path, found: Ask
) -> None:
    for part in range(12):
        (folder / f"d{part}").mkdir()
        for n in range(110):
            (folder / f"d{part}/f{n}").write_text("y\n")
    tick(folder)
    for _ in range(2):
        assert found("x", include="f0").text.startswith("No matches in 12 files.")
        assert found("x").text.startswith("No matches in 1320 files.")


@pytest.mark.parametrize(
    ("shares", "cut", "large", "kept"),
    [(1, None, 1_000, 1), (1, None, 0, 0), (2, None, 1_000, 0), (2, BACK, 1_000, 1)],
)
@pytest.mark.usefixtures("settled")
def test_a_walk_that_may_end_where_another_is_met_is_not_kept(
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    shares: int,
    cut: str | None,
    large: int,
    kept: int,
) -> None:
    monkeypatch.setattr(worker, "LARGE_FILES", large)
    write(folder, {"a/b": "x\n", "c": "x\n"})
    tick(folder)
    end, other = socket.socketpair()
    searcher = worker.Searcher(worker.Wire(end), 1 << 20, Border())
    searcher.border.reset()
    made = plan("x", fixed_strings=False, ignore_case=False, multiline=False)
    request: dict[str, Any] = {
        **dict.fromkeys(("include", "mode"), ""),
        **dict.fromkeys(("is_file", "hidden", "git", "no_ignore", "no_ignore_vcs"), False),
        "plan": made.record(),
        "base": f"{folder}/",
        "deadline": None,
        "enough": 0,
        "skip": [],
        "share": 0,
        "shares": shares,
        "may_split": shares == 1,
        "cut": cut,
    }
    fd = os.open(folder, os.O_RDONLY)
    try:
        _, hits, _ = searcher.find({**request, "mode": "files"}, fd)
    finally:
        os.close(fd)
        end.close()
        other.close()
    assert len(hits) == 2
    assert len(searcher.store.trails._kept) == kept


# Patterns


def test_a_bad_pattern_is_explained_and_its_literal_form_given(found: Ask) -> None:
    outcome = found("foo(bar")
    assert outcome.code == "INVALID_PARAMS"
    assert "missing ) at position 7" in outcome.text
    assert r"foo\(bar" in outcome.text
    assert "fixed_strings=true" in outcome.text


def test_a_pattern_that_runs_for_ever_is_stopped_and_its_file_named(
    folder: Path, found: Ask
) -> None:
    write(folder, {"bad": "a" * 40 + "b\n"})
    outcome = found("(a|a)+$")
    assert outcome.code == "TIMEOUT"
    assert "'bad'" in outcome.text
    write(folder, {"good": "aaa\n", "bad": "a" * 40 + "b\n"})
    outcome = found("(a|a)+$")
    assert body(outcome) == "good\n1: aaa"
    assert "incomplete: the pattern did not come to an end in 'bad'" in facts(outcome)
    assert body(found("b$", output_mode="files")) == "bad"


def test_a_search_that_hangs_is_ended_from_outside(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With the first guard out of reach: a single line that takes quadratic time."""
    monkeypatch.setattr("toolroll_grep.pool.SILENT_S", 0.5)
    write(folder, {"huge": "a" * 3_000_000})
    outcome = found("a*[cd]")
    assert outcome.code == "TIMEOUT"
    assert "'huge'" in outcome.text
    write(folder, {"huge": "a" * 3_000_000, "small": "ad\n"})
    outcome = found("a*[cd]")
    assert body(outcome) == "small\n1: ad"
    assert "did not come to an end in 'huge'" in facts(outcome)
    assert body(found("^a", output_mode="files")) == "huge\nsmall"


def test_time_that_runs_out_makes_the_answer_incomplete(folder: Path, found: Ask) -> None:
    write(folder, {f"d{n}/f": "x\n" for n in range(50)})
    outcome = found("x", options={"deadline_s": 1e-9})
    assert "incomplete: time ran out" in outcome.text
    assert outcome.structured["incomplete"] is True


def test_a_cancelled_search_stops(
    folder: Path, make_call: Callable[..., Call], answer: Ask
) -> None:
    write(folder, {"a": "x"})
    call = make_call(folder)
    call.cancel()
    assert answer(grep, call, pattern="x").code == "CANCELLED"
    assert not answer(grep, make_call(folder), pattern="x").failed


def test_a_searching_process_that_was_killed_is_replaced(folder: Path, found: Ask) -> None:
    write(folder, {"a": "x\n"})
    assert body(found("x")) == "a\n1: x"
    process = search.POOL._places[0]
    assert process is not None
    os.kill(process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, process.pid, os.WEXITED | os.WNOWAIT)
    assert body(found("x")) == "a\n1: x"


# What a review found


def test_a_call_that_is_left_early_leaves_nothing_to_the_next_one(
    folder: Path,
    make_call: Callable[..., Call],
    answer: Ask,
    found: Ask,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("toolroll_grep.pool.PROGRESS_S", 0.0)
    write(folder, {"good": "x\n", "bad": "a" * 40 + "b\n"})

    def broken(*_: object) -> None:
        raise RuntimeError

    with suppress(RuntimeError):
        answer(grep, make_call(folder, report=broken), pattern="(a|a)+$")
    assert body(found("x")) == "good\n1: x"
    assert facts(found("x")) == "[1 line in 1 file]"


def test_without_room_for_a_second_process_one_searches_all(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search.POOL.close()
    start = pool.Process.__init__

    def only_one(process: pool.Process, share: int, *rest: Any) -> None:
        if share:
            raise BlockingIOError
        start(process, share, *rest)

    monkeypatch.setattr(pool.Process, "__init__", only_one)
    for part in range(40):
        (folder / f"d{part}").mkdir()
        for n in range(50):
            (folder / f"d{part}/{n}").write_text("x\n" if n % 10 == 0 else "y\n")
    for _ in range(2):
        assert facts(found("x", output_mode="count", limit=10_000)) == "[200 in 200 files]"


def test_a_search_whose_process_died_is_said_to_be_incomplete(
    folder: Path, make_call: Callable[..., Call], answer: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("toolroll_grep.pool.PROGRESS_S", 0.0)
    write(folder, {"bad": "a" * 40 + "b\n"})
    killed: list[int] = []

    def kill(*_: object) -> None:
        process = search.POOL._places[0]
        if process is not None and not killed:
            killed.append(process.pid)
            os.kill(process.pid, signal.SIGKILL)

    outcome = answer(grep, make_call(folder, report=kill), pattern="(a|a)+$")
    assert killed
    assert "a searching process ended" in outcome.text
    assert "time ran out" not in outcome.text


def test_a_folder_that_cannot_be_entered_is_refused(
    folder: Path, make_call: Callable[..., Call]
) -> None:
    """A file taken for a folder: that is refused to root, too."""
    write(folder, {"sub": "x\n"})
    call = make_call(folder)
    names = ("include", "context", "ignore_case", "fixed_strings", "multiline", "no_ignore")
    query = search.Query(
        "x",
        path="sub",
        output_mode="files",
        limit=1,
        no_ignore_vcs=False,
        **dict.fromkeys(names, ""),
    )
    with call.roots.open_any("sub") as opened:
        look = search.Look(query, opened, call)
        look._is_file = False
        with pytest.raises(ToolError, match="cannot be entered") as problem:
            look.answer(query.plan())
    assert problem.value.code == "PERMISSION_DENIED"


def test_a_secret_that_a_cut_goes_through_is_not_shown_in_part(
    folder: Path, make_call: Callable[..., Call], answer: Ask
) -> None:
    secret = "Zq7" + "kW4t9Xv2" * 5
    line = "." * 4_790 + secret + "." * (5_000 - 4_790 - len(secret)) + "needle"
    line += "." * (5_190 - len(line)) + secret + "." * 3_000
    write(folder, {"a": line})
    call = make_call(folder, environ={"API_TOKEN": secret})
    outcome = answer(grep, call, pattern="needle")
    for shown in (outcome.text, str(outcome.structured)):
        assert "needle" in shown
        assert "clipped" in outcome.text
        assert not any(secret[at : at + 4] in shown for at in range(len(secret) - 4))


def test_no_more_lines_are_fetched_than_can_be_shown(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    write(folder, {"a": "x\n" * 50_000})
    wanted = []
    show = search.POOL.show

    def spy(request: "dict[str, Any]", *rest: Any) -> Any:
        wanted.append(sum(most for _, most in request["files"]))
        return show(request, *rest)

    monkeypatch.setattr(search.POOL, "show", spy)
    assert not found("x", limit=10**9, options={"max_output": 2_000}).failed
    assert wanted == [500]


def test_closed_files_are_not_read_and_not_counted(
    folder: Path, make_call: Callable[..., Call], answer: Ask
) -> None:
    write(folder, {"secret/a": "x\n", "b.key": "\0", "c": "x\n", "secret/deep/d": "\0"})
    call = make_call(folder, deny=["secret/**", "*.key"])
    text = answer(grep, call, pattern="nowhere").text
    assert text.startswith("No matches in 1 file.")
    assert "Skipped" not in text


def test_a_pattern_that_ends_nowhere_is_said_with_what_was_searched(
    folder: Path, found: Ask
) -> None:
    write(folder, {"bad": "a" * 40 + "b\n", "other": "x\n"})
    assert "nothing was found in 1 other file" in found("(a|a)+$").text


def test_a_large_file_that_hangs_is_tried_once(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search.POOL.close()
    monkeypatch.setattr("toolroll_grep.pool.SILENT_S", 0.5)
    for module in ("contents", "worker"):
        monkeypatch.setattr(f"toolroll_grep.{module}.PIECE_BYTES", 1 << 20)
    write(folder, {"huge": "a" * 3_000_000, "small": "ad\n"})
    outcome = found("a*[cd]")
    search.POOL.close()
    assert body(outcome) == "small\n1: ad"
    assert facts(outcome).count("huge") == 1


def test_a_file_is_not_blamed_for_what_comes_after_it(folder: Path, found: Ask) -> None:
    write(folder, {"a": "x\n"})
    found("x")
    process = search.POOL._places[0]
    assert process is not None
    assert not process.where()


def test_large_utf_16_is_searched(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search.POOL.close()
    for module in ("contents", "worker"):
        monkeypatch.setattr(f"toolroll_grep.{module}.PIECE_BYTES", 1 << 20)
    lines = "".join(f"liné {n}\n" for n in range(200_000))
    for encoding in ("utf-16-le", "utf-16-be"):
        write(folder, {"large": ("\ufeff" + lines).encode(encoding)})
        assert body(found("^liné (0|199999)$")) == "large\n1: liné 0\n200000: liné 199999"
    search.POOL.close()


# Large trees


def test_a_large_tree_is_shared_and_nothing_is_lost_or_doubled(folder: Path, found: Ask) -> None:
    for part in range(40):
        (folder / f"d{part}").mkdir()
        for n in range(100):
            (folder / f"d{part}/{n}").write_text("x\n" if n % 10 == 0 else "y\n")
        (folder / f"d{part}/bin").write_bytes(b"\0")
    for _ in range(3):
        outcome = found("x", output_mode="count", limit=10_000)
        assert len(body(outcome).split("\n")) == 400
        assert facts(outcome) == "[400 in 400 files · skipped: 40 binary]"
        assert facts(found("x")).startswith("[truncated: 100 of 400 lines in 400 files")
    assert all(search.POOL._places)


def test_a_file_larger_than_a_piece_is_searched_whole(
    folder: Path, found: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    search.POOL.close()
    for module in ("contents", "worker"):
        monkeypatch.setattr(f"toolroll_grep.{module}.PIECE_BYTES", 1 << 20)
    lines = "".join(f"line {n}\n" for n in range(300_000))
    write(folder, {"large": lines})
    text = body(found("line 1234$|line 299999", context=1))
    assert text == (
        "large\n1234- line 1233\n1235: line 1234\n1236- line 1235\n--\n"
        "299999- line 299998\n300000: line 299999"
    )
    assert body(found("^line", output_mode="count")) == "large: 300000"
    assert body(found("line 7$", path="large", output_mode="count")) == "large: 1"
    search.POOL.close()


# The real process


@pytest.fixture
def large(folder: Path) -> Path:
    """A tree that two processes search."""
    for part in range(20):
        (folder / f"d{part}").mkdir()
        for n in range(100):
            (folder / f"d{part}/{n}").write_text("x\n")
    return folder


def test_a_killed_server_leaves_no_process(large: Path, wire: Wire) -> None:
    server = wire("toolroll_grep", "--root", large).open()
    assert "2000 files" in server.call("GrepTool", pattern="x")["content"][0]["text"]
    children = children_of(server.process.pid)
    assert len(children) == 2
    os.kill(server.process.pid, signal.SIGKILL)
    assert server.close() == -signal.SIGKILL
    assert all(gone(pid) for pid in children)


def test_a_server_whose_input_ends_leaves_no_process(large: Path, wire: Wire) -> None:
    server = wire("toolroll_grep", "--root", large).open()
    server.call("GrepTool", pattern="x")
    children = children_of(server.process.pid)
    assert len(children) == 2
    assert server.close() == 0
    assert all(gone(pid) for pid in children)


def test_the_server_answers_a_ping_while_a_pattern_hangs(folder: Path, wire: Wire) -> None:
    write(folder, {"bad": "a" * 40 + "b\n"})
    server = wire("toolroll_grep", "--root", folder).open()
    call = server.post("tools/call", {"name": "GrepTool", "arguments": {"pattern": "(a|a)+$"}})
    assert server.request("ping")["result"] == {}
    while (message := server.read()).get("id") != call:
        pass
    assert "TIMEOUT" in message["result"]["content"][0]["text"]
    assert not server.call("GrepTool", pattern="b$").get("isError")


def test_one_call_from_the_command_line(folder: Path) -> None:
    write(folder, {"a.py": "def main\n"})
    command = [sys.executable, "-m", "toolroll_grep", "--root", str(folder)]
    done = subprocess.run(
        [*command, "--call", "pattern=def main"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert "a.py  etag" in done.stdout
    assert done.stderr == ""


def children_of(pid: int) -> list[int]:
    task = Path(f"/proc/{pid}/task/{pid}/children")
    found = subprocess.run(["ps", "-eo", "pid=,ppid="], capture_output=True, text=True, check=False)
    if found.returncode:
        return [int(one) for one in task.read_text().split()]
    pairs = [line.split() for line in found.stdout.splitlines()]
    return [int(child) for child, parent in pairs if int(parent) == pid]


def gone(pid: int) -> bool:
    """True when a process ends within a few seconds."""
    until = monotonic() + 10
    while monotonic() < until:
        try:
            os.kill(pid, 0)
            state = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (ProcessLookupError, FileNotFoundError):
            return True
        if state == "Z":
            return True
        sleep(0.01)
    return False
