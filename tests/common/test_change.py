"""A target is held, judged and written; what was made for a file that cannot be written goes again."""

import os
import resource
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.conftest import open_descriptors
from toolroll import textfile
from toolroll.call import Call
from toolroll.change import ABSENT, Target
from toolroll.errors import ErrorCode, ToolError

MakeCall = Callable[..., Call]

TOO_LONG = "x" * 300


def create(path: str, call: Call) -> None:
    with Target(path, call, create=True) as target:
        target.write((b"x" * 5000,))


def test_directories_are_made_by_writing(tmp_path: Path, make_call: MakeCall) -> None:
    with Target("a/b/file", make_call(tmp_path), create=True) as target:
        assert target.status is None
        assert target.matches(ABSENT)
        assert not (tmp_path / "a").exists()
        target.write((b"new",))
    assert (tmp_path / "a/b/file").read_bytes() == b"new"


def test_an_etag_is_that_of_what_was_read_and_then_of_what_was_written(
    tmp_path: Path, make_call: MakeCall
) -> None:
    (tmp_path / "file").write_bytes(b"old")
    with Target("file", make_call(tmp_path)) as target:
        assert target.status is not None
        assert target.etag == textfile.etag(target.status, b"old")
        target.write((b"ne", memoryview(b"w")))
    assert target.etag == textfile.etag((tmp_path / "file").stat(), b"new")


@pytest.fixture
def small() -> Iterator[None]:
    """No file may have more than 4096 bytes, as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, hard))
    yield
    resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@pytest.mark.usefixtures("small")
@pytest.mark.parametrize("path", ["a/b/file", "a/./b//file", "kept/a/file", "kept/file"])
def test_directories_made_for_nothing_go_again_and_no_others(
    tmp_path: Path, make_call: MakeCall, path: str
) -> None:
    (tmp_path / "kept").mkdir()
    with pytest.raises(ToolError) as caught:
        create(path, make_call(tmp_path))
    assert caught.value.code == ErrorCode.TOO_LARGE
    assert os.listdir(tmp_path) == ["kept"]
    assert os.listdir(tmp_path / "kept") == []


@pytest.mark.usefixtures("small")
def test_an_empty_directory_behind_a_link_stays(tmp_path: Path, make_call: MakeCall) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "link").symlink_to("kept/new")
    with pytest.raises(ToolError):
        create("link/a/file", make_call(tmp_path))
    assert sorted(os.listdir(tmp_path)) == ["kept", "link"]
    assert not (tmp_path / "kept/new/a").exists()


def test_a_file_that_came_meanwhile_is_not_overwritten(tmp_path: Path, make_call: MakeCall) -> None:
    with Target("a/file", make_call(tmp_path), create=True) as target:
        (tmp_path / "a").mkdir()
        (tmp_path / "a/file").write_bytes(b"theirs")
        with pytest.raises(ToolError) as caught:
            target.write((b"ours",))
    assert caught.value.code == ErrorCode.ALREADY_EXISTS
    assert (tmp_path / "a/file").read_bytes() == b"theirs"


def test_a_refused_target_leaves_no_descriptor_open(tmp_path: Path, make_call: MakeCall) -> None:
    call = make_call(tmp_path)
    (tmp_path / "fifo").mkdir()

    def refused(path: str, create: bool) -> None:
        with pytest.raises(ToolError), Target(path, call, create=create) as target:
            target.write((b"new",))

    refused("missing", False)
    before = open_descriptors()
    for _ in range(3):
        refused("missing", False)
        refused("fifo", True)
        refused(f"a/{TOO_LONG}", True)
    assert open_descriptors() == before
