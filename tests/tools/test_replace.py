"""Replace writes whole files and keeps the form of the old one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import ERAS, Wire
from toolroll.call import Call
from toolroll.tool import Outcome
from toolroll_replace.tool import replace as declared

Replace = Callable[..., Outcome]


@pytest.fixture
def replace(tmp_path: Path, make_call: Callable[..., Call]) -> Replace:
    """`replace(file_path=..., content=...)`: the outcome in tmp_path."""

    def run(**arguments: Any) -> Outcome:
        arguments.setdefault("file_path", "a.txt")
        return declared.call(arguments, make_call(tmp_path))

    return run


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "a.txt"


def test_a_new_file_is_created_with_its_parents(replace: Replace, tmp_path: Path) -> None:
    done = replace(file_path="x/y/a.txt", content="one\ntwo")
    assert (tmp_path / "x/y/a.txt").read_bytes() == b"one\ntwo"
    assert done.text.startswith("Created 'x/y/a.txt': 2 lines, etag ")


def test_an_existing_file_is_overwritten_with_a_diff(replace: Replace, file: Path) -> None:
    file.write_bytes(b"one\ntwo\nthree\n")
    file.chmod(0o640)
    done = replace(content="one\n2\nthree\n")
    assert file.read_bytes() == b"one\n2\nthree\n"
    assert file.stat().st_mode & 0o777 == 0o640
    assert "3 lines before, 3 now (+1 -1)" in done.text
    assert "-two\n+2" in done.text


def test_the_same_content_is_not_written(replace: Replace, file: Path) -> None:
    file.write_bytes(b"one\n")
    before = file.stat()
    done = replace(content="one\n")
    assert done.text.startswith("Unchanged")
    assert done.structured["unchanged"]
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


@pytest.mark.parametrize(
    ("before", "content", "after"),
    [
        (b"a\r\nb\r\n", "x\ny\n", b"x\r\ny\r\n"),
        (b"a\nb\n", "x\r\ny\r\n", b"x\ny\n"),
        (b"a\r\nb\n", "x\ny\r\n", b"x\ny\r\n"),
        (b"\xef\xbb\xbfa\n", "x\n", b"\xef\xbb\xbfx\n"),
        (b"\xef\xbb\xbfa\n", "\ufeffx\n", b"\xef\xbb\xbfx\n"),
        (b"\xff\xfe" + "a\n".encode("utf-16-le"), "x\n", b"\xff\xfe" + "x\n".encode("utf-16-le")),
        (b"", "x\r\n", b"x\r\n"),
        (b"bin\0ary", "text\n", b"text\n"),
    ],
    ids=["crlf", "lf", "mixed", "bom", "bom twice", "utf-16", "empty", "binary"],
)
def test_the_form_of_the_old_file_is_kept(
    replace: Replace, file: Path, before: bytes, content: str, after: bytes
) -> None:
    file.write_bytes(before)
    assert not replace(content=content).failed
    assert file.read_bytes() == after


def test_a_symbolic_link_stays_one_and_its_target_is_written(
    replace: Replace, tmp_path: Path
) -> None:
    (tmp_path / "real").write_bytes(b"old")
    (tmp_path / "a.txt").symlink_to("real")
    assert not replace(content="new").failed
    assert (tmp_path / "real").read_bytes() == b"new"
    assert (tmp_path / "a.txt").is_symlink()


def test_a_hard_linked_file_is_written_in_place_and_that_is_said(
    replace: Replace, file: Path
) -> None:
    file.write_bytes(b"old")
    os.link(file, file.with_name("b.txt"))
    done = replace(content="new")
    assert "in place" in done.text
    assert file.with_name("b.txt").read_bytes() == b"new"


@pytest.mark.parametrize(
    ("exists", "if_match", "code"),
    [
        (True, "absent", "ALREADY_EXISTS"),
        (True, "0123456789ab", "CONFLICT"),
        (True, "~0123456789ab", "CONFLICT"),
        (True, "nonsense", "INVALID_PARAMS"),
        (False, "absent", ""),
        (False, "0123456789ab", "CONFLICT"),
        (False, "nonsense", "INVALID_PARAMS"),
    ],
)
def test_if_match_guards_the_file(
    replace: Replace, file: Path, exists: bool, if_match: str, code: str
) -> None:
    if exists:
        file.write_bytes(b"old")
    assert replace(content="new", if_match=if_match).code == code
    assert file.exists() == (exists or not code)
    if exists:
        assert file.read_bytes() == b"old"


def test_both_forms_of_an_etag_are_taken(replace: Replace, file: Path) -> None:
    tag = replace(content="one").structured["etag"]
    assert not replace(content="two", if_match=tag).failed


def test_a_marker_that_stands_for_a_secret_is_refused(replace: Replace, file: Path) -> None:
    file.write_bytes(b"key = value\n")
    assert replace(content="key = [REDACTED:API_KEY]\n").code == "INVALID_PARAMS"
    assert file.read_bytes() == b"key = value\n"


def test_content_that_no_text_file_holds_makes_no_directories(
    replace: Replace, tmp_path: Path
) -> None:
    assert replace(file_path="d/a", content="\0").code == "INVALID_PARAMS"
    assert not (tmp_path / "d").exists()


@pytest.mark.parametrize(
    "arguments",
    [
        {"content": "x", "if_match": "0123456789ab"},
        {"content": "x", "if_match": "nonsense"},
        {"content": "[REDACTED:FOO]"},
    ],
    ids=["etag", "no etag", "marker"],
)
def test_a_refused_call_makes_no_directories(
    replace: Replace, tmp_path: Path, arguments: dict[str, str]
) -> None:
    assert replace(file_path="d/e/a", **arguments).failed
    assert not (tmp_path / "d").exists()


def test_a_binary_file_is_told_by_its_size(replace: Replace, file: Path) -> None:
    file.write_bytes(b"bin\0ary\n\xff")
    done = replace(content="text\n")
    assert done.text.startswith(
        "Replaced 'a.txt': a binary file of 9 bytes before, 1 line now, etag "
    )
    assert "\n" not in done.text


@pytest.mark.parametrize("era", ERAS)
def test_a_file_is_written_over_the_wire(
    wire: Callable[..., Wire], tmp_path: Path, era: str
) -> None:
    server = wire("toolroll_replace", "--root", tmp_path).open(era)
    done = server.call("Replace", file_path="a.txt", content="x\n")
    assert not done["isError"], done
    assert (tmp_path / "a.txt").read_bytes() == b"x\n"
