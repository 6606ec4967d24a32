"""View: what a page shows, how it leads on, and what it never does to a large or strange file."""

import codecs
import json
import os
import re
import socket
import subprocess
import sys
import threading
import tracemalloc
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from toolroll import textfile
from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.limits import ETAG_WHOLE_BYTES, LINE_CHARS
from toolroll.paths import Roots
from toolroll.tool import Outcome
from toolroll_view import document, image, index, kinds, lines, place, source
from toolroll_view.tool import view

if TYPE_CHECKING:
    from tests.conftest import Wire

MakeCall = Callable[..., Call]
Ask = Callable[..., Outcome]
Shown = Callable[..., Outcome]

needs_proc = pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="no /proc here")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path.resolve()


@pytest.fixture
def shown(folder: Path, make_call: MakeCall, answer: Ask) -> Shown:
    """`shown(content, **arguments)`: View of a file `a.txt` (or `name=`) with that content."""

    def ask(content: "bytes | str | None", name: str = "a.txt", **arguments: Any) -> Outcome:
        if content is not None:
            data = content.encode() if isinstance(content, str) else content
            (folder / name).write_bytes(data)
        return answer(view, make_call(folder), file_path=name, **arguments)

    return ask


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Have files of more than 64 bytes count as large ones: read by position, through an index."""
    monkeypatch.setattr(textfile, "ETAG_WHOLE_BYTES", 64)
    monkeypatch.setattr(document, "ETAG_WHOLE_BYTES", 64)
    monkeypatch.setattr(document, "COUNT_BYTES", 64)
    monkeypatch.setattr(index, "SETTLED_NS", 0)


def facts_of(outcome: Outcome) -> str:
    assert not outcome.failed, outcome.text
    last = outcome.text.rpartition("\n")[2]
    assert last.startswith("["), outcome.text
    return last


def body_of(outcome: Outcome) -> str:
    assert not outcome.failed, outcome.text
    return outcome.text.rpartition("\n")[0]


def numbered(first: int, last: int) -> str:
    return "\n".join(f"{n}\tline {n}" for n in range(first, last + 1))


def many(count: int) -> str:
    return "".join(f"line {n}\n" for n in range(1, count + 1))


# Pages


def test_a_small_file_is_shown_whole_with_its_etag(shown: Shown) -> None:
    outcome = shown("one\ntwo\n")
    tag = outcome.structured["etag"]
    assert outcome.text == f"1\tone\n2\ttwo\n[2 lines · etag {tag}]"
    assert outcome.structured == {
        "result": outcome.text,
        "etag": textfile.etag(os.stat_result([0] * 10), b"one\ntwo\n"),
        "total_lines": 2,
    }


def test_a_page_says_where_it_lies_and_how_to_go_on(shown: Shown) -> None:
    outcome = shown(many(500), offset=201, limit=100)
    assert body_of(outcome) == numbered(201, 300)
    assert facts_of(outcome).startswith("[lines 201-300 of 500 · next: offset=301 · etag ")
    assert outcome.structured["next_offset"] == 301
    assert outcome.structured["total_lines"] == 500
    assert "truncated" not in outcome.structured


def test_the_last_page_does_not_lead_on(shown: Shown) -> None:
    outcome = shown(many(500), offset=499)
    assert body_of(outcome) == numbered(499, 500)
    assert "next" not in facts_of(outcome)
    assert "next_offset" not in outcome.structured


@pytest.mark.parametrize("offset", [0, 1])
def test_offsets_zero_and_one_are_the_first_line(shown: Shown, offset: int) -> None:
    assert body_of(shown(many(3), offset=offset, limit=1)) == "1\tline 1"


@pytest.mark.parametrize(("offset", "first"), [(-1, 500), (-3, 498), (-500, 1), (-9999, 1)])
def test_a_negative_offset_counts_from_the_end(shown: Shown, offset: int, first: int) -> None:
    assert body_of(shown(many(500), offset=offset, limit=2)) == numbered(first, min(first + 1, 500))


def test_an_offset_past_the_end_is_answered_with_the_number_of_lines(shown: Shown) -> None:
    outcome = shown(many(3), offset=4)
    assert body_of(outcome) == "No line 4: the file has 3 lines."
    assert outcome.structured["total_lines"] == 3


def test_an_empty_file_is_said(shown: Shown) -> None:
    assert body_of(shown("")) == "(empty file)"


def test_a_missing_newline_at_the_end_is_said(shown: Shown) -> None:
    assert "no newline at the end" in facts_of(shown("a\nb"))
    assert "no newline" not in facts_of(shown("a\nb\n"))
    assert "no newline" not in facts_of(shown("a\nb", limit=1))


def test_only_line_feeds_end_lines(shown: Shown) -> None:
    assert body_of(shown("a\fb\u2028c\x1dd\n")).startswith("1\ta\\x0cb")
    assert "[1 line " in facts_of(shown("a\fb\u2028c\x1dd\n"))


def test_line_numbers_can_be_left_out(shown: Shown) -> None:
    assert body_of(shown("a\n\tb\n", show_line_numbers=False)) == "a\n\tb"


def test_metadata_is_one_line_above(folder: Path, shown: Shown) -> None:
    (folder / "a.txt").write_bytes(b"a\r\nb\r\n")
    (folder / "a.txt").chmod(0o640)
    os.utime(folder / "a.txt", (0, 1_000_000_000))
    first = shown(None, include_metadata=True).text.split("\n")[0]
    expected = "6 bytes · -rw-r----- 0640 · modified 2001-09-09T01:46:40Z · UTF-8 · CRLF"
    assert first == f"[{expected}]"


def test_metadata_of_an_empty_file_stands_above_too(shown: Shown) -> None:
    assert shown("", include_metadata=True).text.startswith("[0 bytes · ")


def test_a_page_that_meets_the_output_limit_says_so(folder: Path, make_call: MakeCall) -> None:
    (folder / "a.txt").write_text(many(500))
    outcome = view.call({"file_path": "a.txt"}, make_call(folder, max_output=200))
    assert "truncated at the output limit" in facts_of(outcome)
    assert outcome.structured["truncated"] is True
    assert len(body_of(outcome)) <= 200
    following = outcome.structured["next_offset"]
    assert body_of(outcome) == numbered(1, following - 1)


def test_escapes_count_for_the_output_limit(folder: Path, make_call: MakeCall) -> None:
    (folder / "a.txt").write_text("\x01\x02\x03 x\n" * 100)
    outcome = view.call({"file_path": "a.txt"}, make_call(folder, max_output=400))
    assert "left out here" not in outcome.text
    assert len(body_of(outcome)) <= 400
    count = body_of(outcome).count("\n") + 1
    assert outcome.structured["next_offset"] == count + 1
    assert "escaped" in facts_of(outcome)


def test_secrets_are_masked_and_said(folder: Path, make_call: MakeCall) -> None:
    (folder / "a.env").write_text("API_KEY=x9Kq2LmZ77pQ\n")
    call = make_call(folder, environ={"API_KEY": "x9Kq2LmZ77pQ"})
    outcome = view.call({"file_path": "a.env"}, call)
    assert body_of(outcome) == "1\tAPI_KEY=[REDACTED:API_KEY]"
    assert "redacted: API_KEY" in facts_of(outcome)


@pytest.mark.parametrize(
    "arguments",
    [{}, *({"columns": [first, 2010]} for first in range(1985, 2010, 3)), {"columns": [1, 2000]}],
)
def test_no_part_of_a_secret_is_shown_where_columns_cut_it(
    folder: Path, make_call: MakeCall, arguments: dict[str, Any]
) -> None:
    secret = "x9Kq2LmZ77pQvR4tY8wB"
    (folder / "a.env").write_text("." * 1990 + secret + "." * 1000)
    call = make_call(folder, environ={"API_KEY": secret})
    outcome = view.call({"file_path": "a.env", **arguments}, call)
    body = body_of(outcome)
    assert not any(secret[at : at + 3] in body for at in range(len(secret) - 2))


@pytest.mark.parametrize("bad", [[1], [2, 1], [0, 5], [1, 2, 3]])
def test_columns_that_make_no_range_are_refused(shown: Shown, bad: list[int]) -> None:
    outcome = shown("abc", columns=bad)
    assert outcome.code == ErrorCode.INVALID_PARAMS
    assert "'columns'" in outcome.text


def test_a_limit_below_one_is_refused(shown: Shown) -> None:
    assert shown("abc", limit=0).code == ErrorCode.INVALID_PARAMS


def test_the_structured_form_follows_its_schema(shown: Shown) -> None:
    schema = view.definition(structured=True)["outputSchema"]
    for arguments in ({}, {"limit": 1}, {"offset": 9}, {"find_section": "line 2"}):
        jsonschema.validate(shown(many(3), **arguments).structured, schema)


# Long lines


def test_a_long_line_is_clipped_with_the_columns_to_go_on(shown: Shown) -> None:
    text = "".join(chr(0x3B1 + n % 20) for n in range(LINE_CHARS + 500))
    outcome = shown(text + "\nnext\n")
    mark = "… [clipped: 500 more characters; columns=[2001, 4000]]"
    assert body_of(outcome) == f"1\t{text[:LINE_CHARS]}{mark}\n2\tnext"
    rest = shown(None, columns=[2001, 4000])
    assert body_of(rest) == f"1\t{text[LINE_CHARS:]}\n2\t"


def test_a_line_of_exactly_the_limit_is_whole(shown: Shown) -> None:
    assert body_of(shown("x" * LINE_CHARS + "\r\n")) == "1\t" + "x" * LINE_CHARS


def test_columns_of_one_line_lead_on(shown: Shown) -> None:
    outcome = shown("abcdefghij", columns=[2, 4])
    assert body_of(outcome) == "1\tbcd"
    assert "next: columns=[5, 7]" in facts_of(outcome)
    assert "next: columns" not in facts_of(shown(None, columns=[8, 10]))


def test_columns_of_several_lines_say_how_many_go_on(shown: Shown) -> None:
    outcome = shown("abcdef\nab\nabcdefgh\n", columns=[2, 4])
    assert body_of(outcome) == "1\tbcd\n2\tb\n3\tbcd"
    assert "2 lines go on after column 4" in facts_of(outcome)


def test_columns_wider_than_the_output_are_clipped(folder: Path, make_call: MakeCall) -> None:
    (folder / "a.txt").write_text("x" * 5000)
    call = make_call(folder, max_output=1000)
    text = body_of(view.call({"file_path": "a.txt", "columns": [101, 5000]}, call))
    found = re.search(r"clipped: (\d+) more characters; columns=\[(\d+), \d+\]", text)
    assert found
    assert int(found[1]) == 5000 - int(found[2]) + 1
    assert text.count("x") == int(found[2]) - 101


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16-le", "utf-16-be"])
def test_a_line_longer_than_any_block_is_cut_at_the_same_characters(
    shown: Shown, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.setattr(lines, "WINDOW_BYTES", 64)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 32)
    bom = {"utf-16-le": codecs.BOM_UTF16_LE, "utf-16-be": codecs.BOM_UTF16_BE}.get(encoding, b"")
    text = "".join("aé€😀"[n % 4] for n in range(301))
    data = bom + f"{text}\r\nshort\n".encode(encoding)
    assert body_of(shown(data, columns=[99, 107])) == f"1\t{text[98:107]}\n2\t"
    assert body_of(shown(data, columns=[300, 400])) == f"1\t{text[299:]}\n2\t"
    assert body_of(shown(data)).split("\n")[1] == "2\tshort"


def test_half_a_gigabyte_in_one_line_is_clipped_in_constant_memory(
    folder: Path, make_call: MakeCall
) -> None:
    size = 500_000_000
    with (folder / "a.txt").open("wb") as file:
        file.write(b"x" * 100_000)  # text at its head, holes behind
        file.truncate(size)
    tracemalloc.start()
    outcome = view.call({"file_path": "a.txt", "limit": 1}, make_call(folder))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert f"clipped: {size - LINE_CHARS} more characters; columns=[2001, 4000]" in outcome.text
    assert peak < 8_000_000


# Encodings and line ends


@pytest.mark.parametrize(
    ("data", "text", "fact"),
    [
        ("größe\n".encode(), "größe", ""),
        (codecs.BOM_UTF8 + "größe\n".encode(), "größe", "UTF-8 with BOM"),
        ("größe\n".encode("latin-1"), "größe", "Latin-1"),
        (codecs.BOM_UTF16_LE + "größe\n".encode("utf-16-le"), "größe", "UTF-16 LE"),
        (codecs.BOM_UTF16_BE + "größe\n".encode("utf-16-be"), "größe", "UTF-16 BE"),
        ("größe ".encode() + b"\xff\n", "größe \\xff", "1 character escaped"),
        (b"a\r\n", "a", "CRLF"),
        (b"a\rb", "a\\rb", "CR"),
        (b"log \0 line\n", "log \\x00 line", ""),
    ],
)
def test_the_encoding_is_named_when_it_is_not_plain(
    shown: Shown, data: bytes, text: str, fact: str
) -> None:
    data = b"x" * 70_000 + b"\n" + data if b"\0 " in data else data  # NUL is binary at the head
    outcome = shown(data)
    assert body_of(outcome).split("\t")[-1] == text
    assert fact in facts_of(outcome)


def test_mixed_line_ends_are_said_and_not_shown(shown: Shown) -> None:
    outcome = shown(b"a\r\nb\nc\r\n")
    assert body_of(outcome) == "1\ta\n2\tb\n3\tc"
    assert "mixed line ends" in facts_of(outcome)


def test_a_feed_inside_utf16_characters_ends_no_line(shown: Shown) -> None:
    text = "\u0a0a\u0a00\u000b\u0a0d\n\u000a\u0a41"
    outcome = shown(codecs.BOM_UTF16_LE + text.encode("utf-16-le"))
    assert outcome.structured["total_lines"] == 3


@pytest.mark.usefixtures("large")
def test_a_large_latin1_file_is_told_by_the_page_that_has_the_bytes(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "HEAD_BYTES", 32)
    data = b"plain\n" * 1000 + "größe\n".encode("latin-1") + b"plain\n" * 2000
    outcome = shown(data, offset=1001, limit=1)
    assert body_of(outcome) == "1001\tgröße"
    assert "Latin-1" in facts_of(outcome)


# Large files: the same pages through the index


@pytest.mark.usefixtures("large")
def test_a_large_file_does_not_have_its_lines_counted(shown: Shown) -> None:
    outcome = shown(many(500), offset=201, limit=100)
    assert body_of(outcome) == numbered(201, 300)
    assert facts_of(outcome).startswith("[lines 201-300, more follow · next: offset=301 · etag ~")
    assert "total_lines" not in outcome.structured
    assert facts_of(shown(None, offset=400)).startswith("[lines 400-500 of 500 · etag ~")


@pytest.mark.usefixtures("large")
def test_the_end_of_a_large_file_is_numbered_from_the_end(shown: Shown) -> None:
    outcome = shown(many(500), offset=-3, limit=2)
    assert body_of(outcome) == "-3\tline 498\n-2\tline 499"
    assert "lines -3 to -2 counted from the end · next: offset=-1" in facts_of(outcome)
    outcome = shown(None, offset=-1)
    assert body_of(outcome) == "-1\tline 500"
    assert "next" not in facts_of(outcome)
    assert body_of(shown(None, offset=-501, limit=1)) == "1\tline 1"


@pytest.mark.usefixtures("large")
def test_the_next_page_of_a_large_file_is_found_without_a_scan(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    (folder / "a.txt").write_text(many(50_000))
    first = view.call({"file_path": "a.txt", "offset": 40_000, "limit": 10}, make_call(folder))
    assert body_of(first) == numbered(40_000, 40_009)

    def scan(*_: object) -> int:
        raise AssertionError("the file was scanned again")

    monkeypatch.setattr(source.Disk, "fill", scan)
    monkeypatch.setattr(source.Disk, "read", lambda disk, at, count: os.pread(disk._fd, count, at))
    second = view.call({"file_path": "a.txt", "offset": 40_010, "limit": 10}, make_call(folder))
    assert body_of(second) == numbered(40_010, 40_019)


@pytest.mark.usefixtures("large")
def test_a_changed_file_is_never_read_through_an_old_index(shown: Shown) -> None:
    assert body_of(shown(many(500), offset=300, limit=2)) == numbered(300, 301)
    longer = many(500).replace("line", "a longer line")
    assert body_of(shown(longer, offset=302, limit=1)) == "302\ta longer line 302"


def test_an_index_of_a_file_just_written_is_not_kept(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "SETTLED_NS", 1 << 62)
    (folder / "a.txt").write_text(many(5))
    status = (folder / "a.txt").stat()
    feeds = lines.Feeds(textfile.UTF8)
    assert index.index_of(status, feeds, 0) is not index.index_of(status, feeds, 0)


def test_only_so_many_files_keep_an_index(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index, "SETTLED_NS", -(1 << 62))
    feeds = lines.Feeds(textfile.UTF8)
    for number in range(index.FILES + 5):
        file = folder / str(number)
        file.touch()
        kept = index.index_of(file.stat(), feeds, 0)
        assert index.index_of(file.stat(), feeds, 0) is kept
    assert len(index._kept) == index.FILES


def test_an_index_forgets_every_second_entry_rather_than_grow(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "COUNTS", 8)
    monkeypatch.setattr(index, "STRIDE_BYTES", 64)
    monkeypatch.setattr(index, "BLOCK_BYTES", 64)
    data = many(2000).encode()
    made = index.Index(lines.Feeds(textfile.UTF8), 0)
    call = make_call(folder)
    memory = source.Memory(data)
    for line in (1999, 3, 700, 701, 1500, 2, 2000):
        at = made.locate(line, memory, call)
        assert at is not None
        assert data[at:].startswith(f"line {line}\n".encode())
    assert len(made._counts) <= 8
    assert made.locate(2001, memory, call) is None
    assert made.total == 2000


def test_a_gigabyte_is_paged_from_both_ends(folder: Path, make_call: MakeCall) -> None:
    size = 1_000_000_000
    with (folder / "a.log").open("wb") as file:
        file.write(many(10_000).encode())
        file.truncate(size)
        file.seek(0, os.SEEK_END)
        file.write(b"\nthe end\n")
    call = make_call(folder)
    first = view.call({"file_path": "a.log", "limit": 1000}, call)
    assert body_of(first) == numbered(1, 1000)
    assert "more follow" in facts_of(first)
    last = view.call({"file_path": "a.log", "offset": -1}, call)
    assert body_of(last) == "-1\tthe end"


# Time and cancelling


@pytest.mark.usefixtures("large")
def test_a_search_that_runs_out_of_time_says_how_far_it_came(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "BLOCK_BYTES", 64)
    (folder / "a.txt").write_text(many(500))
    call = make_call(folder, deadline_s=0.0)
    outcome = view.call({"file_path": "a.txt", "offset": 400}, call)
    assert body_of(outcome).startswith("Line 400 was not reached in time: the search came to line ")
    assert "incomplete" in facts_of(outcome)
    assert outcome.structured["incomplete"] is True


def test_a_line_that_runs_out_of_time_is_incomplete(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lines, "WINDOW_BYTES", 64)
    monkeypatch.setattr(lines, "BLOCK_BYTES", 64)
    (folder / "a.txt").write_text("x" * 5000 + "\nnext\n")
    outcome = view.call({"file_path": "a.txt"}, make_call(folder, deadline_s=0.0))
    assert "time ran out before the end of the line" in body_of(outcome)
    assert outcome.structured["incomplete"] is True


@pytest.mark.parametrize(
    "arguments", [{"offset": 400}, {"offset": -3}, {"find_section": "nowhere"}]
)
@pytest.mark.usefixtures("large")
def test_a_cancelled_call_stops(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, arguments: dict[str, Any]
) -> None:
    monkeypatch.setattr(index, "BLOCK_BYTES", 16)
    monkeypatch.setattr(place, "SECTION_BYTES", 64)
    (folder / "a.txt").write_text(many(500))
    call = make_call(folder)
    call.cancel()
    assert view.call({"file_path": "a.txt", **arguments}, call).code == ErrorCode.CANCELLED


def test_a_long_search_reports_progress(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(index, "REPORT_BYTES", source.BLOCK_BYTES)
    size = ETAG_WHOLE_BYTES + 1
    with (folder / "a.txt").open("wb") as file:
        file.write(b"x\n" * 40_000)
        file.truncate(size)
    reports: list[tuple[float, float | None, str]] = []
    call = make_call(folder, report=lambda *what: reports.append(what))
    view.call({"file_path": "a.txt", "offset": 50_000}, call)
    assert reports
    assert [done for done, _, _ in reports] == sorted(done for done, _, _ in reports)
    assert {total for _, total, _ in reports} == {size}


# Files that are no ordinary files


def test_a_directory_is_refused_and_ls_named(folder: Path, shown: Shown) -> None:
    (folder / "sub").mkdir()
    outcome = shown(None, name="sub")
    assert outcome.code == ErrorCode.NOT_A_FILE
    assert "Use LS" in outcome.text


def test_a_missing_file_is_answered_with_the_nearest_names(folder: Path, shown: Shown) -> None:
    (folder / "readme.md").touch()
    outcome = shown(None, name="readme.txt")
    assert outcome.code == ErrorCode.NOT_FOUND
    assert "'readme.md'" in outcome.text


def test_a_fifo_and_a_socket_are_refused_at_once(folder: Path, shown: Shown) -> None:
    os.mkfifo(folder / "fifo")
    assert shown(None, name="fifo").code == ErrorCode.NOT_A_FILE
    here = os.getcwd()
    os.chdir(folder)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as made:
            made.bind("sock")
            assert shown(None, name="sock").code == ErrorCode.NOT_A_FILE
    finally:
        os.chdir(here)


def test_outside_the_roots_nothing_is_shown(folder: Path, shown: Shown) -> None:
    (folder / "link").symlink_to("/etc/passwd")
    for name in ("/etc/passwd", "../x", "link"):
        assert shown(None, name=name).code == ErrorCode.OUTSIDE_ROOTS


@needs_proc
def test_a_file_of_proc_without_size_is_read_to_its_end(make_call: MakeCall) -> None:
    outcome = view.call({"file_path": "/proc/self/status"}, make_call("/proc"))
    assert "\tVmPeak:" in outcome.text or "\tPid:" in outcome.text
    assert "etag" in outcome.structured


@needs_proc
def test_an_endless_file_without_size_is_read_in_part(
    make_call: MakeCall, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(document, "ETAG_WHOLE_BYTES", 50)
    outcome = view.call({"file_path": "/proc/self/status"}, make_call("/proc"))
    assert "incomplete: a file without size" in facts_of(outcome)


@needs_proc
def test_memory_of_a_process_is_an_error_and_no_crash(make_call: MakeCall) -> None:
    outcome = view.call({"file_path": "/proc/self/mem"}, make_call("/proc"))
    assert outcome.code in (ErrorCode.EXECUTION_ERROR, ErrorCode.PERMISSION_DENIED)


@pytest.mark.parametrize("whole", [True, False])
def test_a_file_that_shrinks_while_read_is_read_again_or_said(
    folder: Path, make_call: MakeCall, monkeypatch: pytest.MonkeyPatch, whole: bool
) -> None:
    file = folder / "a.txt"
    file.write_text(many(500))
    if not whole:
        monkeypatch.setattr(document, "ETAG_WHOLE_BYTES", 64)
    sizes = iter([400, 300, 200])
    read = source.Disk.read

    def shrink(disk: source.Disk, at: int, count: int) -> bytes:
        data = read(disk, at, count)
        if at == 0:
            os.truncate(file, next(sizes, 100))
        return data

    monkeypatch.setattr(source.Disk, "read", shrink)
    outcome = view.call({"file_path": "a.txt"}, make_call(folder))
    assert not outcome.failed
    assert "changed while it was read" in facts_of(outcome)


def test_a_file_that_grows_all_the_time_is_still_shown(folder: Path, shown: Shown) -> None:
    file = folder / "a.log"
    file.write_text(many(100))
    over = threading.Event()

    def grow() -> None:
        with file.open("a") as out:
            while not over.is_set():
                out.write("more\n")
                out.flush()

    writer = threading.Thread(target=grow)
    writer.start()
    try:
        for _ in range(20):
            assert body_of(shown(None, name="a.log", limit=100)) == numbered(1, 100)
    finally:
        over.set()
        writer.join()


# Binary files


def test_a_binary_file_is_named_and_its_bytes_offered(shown: Shown) -> None:
    outcome = shown(b"\x7fELF\0\0\0" * 10)
    expected = "ELF program or library, 70 bytes. Not text: include_hex_dump=true shows its bytes."
    assert body_of(outcome) == expected
    assert outcome.structured["etag"]


def test_the_bytes_of_a_binary_file_are_paged_by_rows(shown: Shown) -> None:
    data = bytes(range(256)) * 10
    outcome = shown(data, include_hex_dump=True)
    rows = body_of(outcome).split("\n")[1:]
    assert len(rows) == 64
    assert rows[2] == (
        "00000020  20 21 22 23 24 25 26 27 28 29 2a 2b 2c 2d 2e 2f   !\"#$%&'()*+,-./"
    )
    assert "bytes 0-1023 of 2560 · next: offset=65" in facts_of(outcome)
    dumped = "".join(row[10:57] for row in rows)
    offset = outcome.structured["next_offset"]
    while offset:
        outcome = shown(None, include_hex_dump=True, offset=offset)
        dumped += "".join(row[10:57] for row in body_of(outcome).split("\n")[1:])
        offset = outcome.structured.get("next_offset")
    assert bytes.fromhex(dumped) == data


def test_rows_past_the_end_are_said(shown: Shown) -> None:
    outcome = shown(b"\0" * 20, include_hex_dump=True, offset=3)
    assert "No row 3: it has 2 rows of 16 bytes." in body_of(outcome)
    assert "00000010" in body_of(shown(None, include_hex_dump=True, offset=-1))


def test_a_text_is_shown_with_its_first_bytes_on_request(shown: Shown) -> None:
    text = body_of(shown("\ufeffa\r\n", include_hex_dump=True))
    assert text.startswith("1\ta\n\nFirst bytes:\n00000000  ef bb bf 61 0d 0a ")


@pytest.mark.parametrize(
    "around",
    [(b"\0\1", b"\0" * 40), (b"\0" * 1015 + b"\1", b"\0" * 20), (b"key = ", b"\n")],
    ids=["within", "over the end", "in a text"],
)
@pytest.mark.parametrize("codec", ["utf-8", "utf-16-le", "latin-1"])
def test_the_bytes_of_a_secret_are_stars_in_a_dump(
    folder: Path, make_call: MakeCall, around: tuple[bytes, bytes], codec: str
) -> None:
    value = "s3cr\u00e9t-value-123"
    (folder / "a").write_bytes(around[0] + value.encode(codec) + around[1])
    call = make_call(folder, environ={"API_TOKEN": value})
    dumps = [
        view.call({"file_path": "a", "include_hex_dump": True, "offset": offset}, call).text
        for offset in ([1, 65] if len(around[0]) > 1000 else [1])
    ]
    rows = re.findall(r"(?m)^[0-9a-f]{8}  (.{47})", "\n".join(dumps))
    dumped = bytes.fromhex("".join(rows))
    stars = b"*" * len(value.encode(codec))
    assert dumped == around[0] + stars + around[1]
    assert all("redacted bytes are shown as *" in dump for dump in dumps)


# Put together


CONTENT = st.one_of(
    st.binary(max_size=400),
    st.lists(st.sampled_from([b"a", b"\n", b"\r\n", b"\xc3\xa9", b"\xff", b"\n\n", b"xyz"])).map(
        b"".join
    ),
    st.text(alphabet="aé€😀\n\r\u0a0a\u0a00", max_size=200).map(
        lambda text: codecs.BOM_UTF16_LE + text.encode("utf-16-le")
    ),
)


def is_shown_as_text(data: bytes) -> bool:
    """True unless the bytes are, or begin like, something that is shown otherwise."""
    named = data.startswith(b"%PDF-") or image.recognise(data) is not None
    return textfile.detect(data) is not None and not named


def expected_lines(data: bytes) -> list[str]:
    encoding = textfile.detect(data)
    assert encoding is not None
    text = encoding.decode(data)
    parts = text.split("\n")
    fed, last = parts[:-1], parts[-1:]
    return [part.removesuffix("\r") for part in fed] + [part for part in last if part]


@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.too_slow],  # on a loaded machine
)
@example(data=b"\xff\xfe", offset=1, limit=1, columns=1, small=8)
@example(data=b"a\nb", offset=-1, limit=1, columns=1, small=8)
@example(data=b"\1" * 8 + b"\xc2", offset=0, limit=1, columns=1, small=8)
@given(
    data=CONTENT.filter(is_shown_as_text),
    offset=st.integers(-40, 40),
    limit=st.integers(1, 12),
    columns=st.integers(1, 9),
    small=st.sampled_from([8, 64, 1 << 20]),
)
def test_pages_put_together_are_the_file(
    data: bytes, offset: int, limit: int, columns: int, small: int
) -> None:
    """Whatever the bytes, the sizes of blocks, and whether the file counts as large."""
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        for module in (source, lines, index):
            patch.setattr(module, "BLOCK_BYTES", small)
        patch.setattr(lines, "WINDOW_BYTES", small)
        patch.setattr(index, "STRIDE_BYTES", small)
        patch.setattr(index, "COUNTS", 4)
        patch.setattr(index, "SETTLED_NS", 0)
        patch.setattr(lines, "SAMPLE_BYTES", small)
        patch.setattr(document, "ETAG_WHOLE_BYTES", small)
        patch.setattr(document, "COUNT_BYTES", small)
        patch.setattr(kinds, "READS", 1)
        (Path(name) / "a").write_bytes(data)
        call = Call(Roots([name]), Guard({}))
        wanted = expected_lines(data)
        start = max(len(wanted) + offset, 0) if offset < 0 else max(offset - 1, 0)
        got = pages(call, offset, limit)
        assert got == [escaped(call, line) for line in wanted[start:]]
        assert in_columns(call, columns, len(wanted)) == [escaped(call, line) for line in wanted]


def escaped(call: Call, line: str) -> str:
    """`line` as it is shown; a return at its end would be taken for a part of the line's end."""
    return call.guard.clean(line).text.replace("\r", "\\r")


def pages(call: Call, offset: int | None, limit: int) -> list[str]:
    """All lines from `offset` on, page by page, without their numbers."""
    got: list[str] = []
    while offset is not None:
        outcome = view.call({"file_path": "a", "offset": offset, "limit": limit}, call)
        body = body_of(outcome)
        if body != "(empty file)" and not body.startswith("No line "):
            shown = [line.partition("\t") for line in body.split("\n")]
            assert [int(number) for number, _, _ in shown] == list(
                range(int(shown[0][0]), int(shown[0][0]) + len(shown))
            )
            got += [line.replace("\r", "\\r") for _, _, line in shown]
        offset = outcome.structured.get("next_offset")
    return got


def in_columns(call: Call, width: int, count: int) -> list[str]:
    """All lines again, a few columns at a time; characters whose cleaning needs neighbours do not occur."""
    got = [""] * count
    first = 1
    while count:
        asked = {"file_path": "a", "columns": [first, first + width - 1], "limit": 2000}
        outcome = view.call(asked, call)
        body = body_of(outcome).replace("\r", "\\r")
        parts = [line.partition("\t")[2] for line in body.split("\n")]
        got = [done + part for done, part in zip(got, parts, strict=True)]
        if not re.search(r"next: columns|go on after", facts_of(outcome)):
            break
        first += width
    return got


# The real process


def test_the_server_answers_on_the_wire(folder: Path, wire: "Callable[..., Wire]") -> None:
    (folder / "a.py").write_text("def f() -> None:\n    pass\n")
    server = wire("toolroll_view", "--root", folder).open()
    result = server.call("View", file_path="a.py")
    assert result["content"][0]["text"].startswith("1\tdef f() -> None:\n2\t    pass\n[2 lines")
    assert "structuredContent" not in result
    missing = server.call("View", file_path="b.py")
    assert missing["isError"] is True
    assert missing["content"][0]["text"].startswith("Error [NOT_FOUND]: 'b.py' does not exist")


def test_pages_of_one_large_file_can_be_asked_for_at_once(
    folder: Path, wire: "Callable[..., Wire]"
) -> None:
    with (folder / "a.txt").open("w") as file:
        file.writelines(f"line {n:0100}\n" for n in range(1, 100_001))
    server = wire("toolroll_view", "--root", folder).open()
    offsets = [99_000, 50_000, 1, 75_000, -2, 10_000, 99_999, 50_001]
    wanted = {}
    for offset in offsets:
        arguments = {"file_path": "a.txt", "offset": offset, "limit": 1}
        number = server.post("tools/call", {"name": "View", "arguments": arguments})
        wanted[number] = offset if offset > 0 else 100_001 + offset
    for _ in offsets:
        message = server.read()
        line = wanted.pop(message["id"])
        assert message["result"]["content"][0]["text"].startswith(f"{line}\tline {line:0100}\n")


def test_one_call_from_the_command_line_prints_json(folder: Path) -> None:
    (folder / "a.txt").write_text("a\n")
    done = subprocess.run(
        [sys.executable, "-m", "toolroll_view", "--json", "--call", "file_path=a.txt", "limit=1"],
        cwd=folder,
        capture_output=True,
        check=True,
        timeout=60,
    )
    answer = json.loads(done.stdout)
    assert answer["result"].startswith("1\ta\n[1 line · etag ")
    assert answer["total_lines"] == 1


def test_the_tool_declares_that_it_only_reads() -> None:
    assert view.annotations["readOnlyHint"] is True
    assert len(view.description) <= 450
    texts = [str(one.schema["description"]) for one in view.parameters]
    assert sum(map(len, texts)) <= 650
    assert {one.name: one.schema.get("default") for one in view.parameters} == {
        "file_path": None,
        "offset": 1,
        "limit": 2000,
        "columns": None,
        "show_line_numbers": True,
        "include_metadata": False,
        "include_hex_dump": False,
        "find_section": "",
    }


@pytest.fixture(autouse=True)
def no_kept_index() -> Iterator[None]:
    yield
    index._kept.clear()


@pytest.mark.usefixtures("large")
def test_a_system_without_preadv_shows_the_same(
    shown: Shown, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = shown(many(500), offset=300, limit=10).text
    index._kept.clear()
    monkeypatch.delattr(os, "preadv")
    assert shown(None, offset=300, limit=10).text == expected


def test_an_unreadable_place_on_disk_is_an_error() -> None:
    with pytest.raises(ToolError, match=r"'x' could not be read"):
        source.Disk(-1, 10, "'x'").read(0, 5)
