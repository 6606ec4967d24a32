"""The writer: atomic, durable, nothing lost and nothing left, on real files and in real processes."""

import errno
import fcntl
import os
import re
import shutil
import socket
import stat
import struct
import subprocess
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path
from threading import Thread

import pytest

import toolroll
from toolroll import writer
from toolroll.errors import ErrorCode, ToolError
from toolroll.hold import Gate
from toolroll.status import state
from toolroll.writer import Written

ROOT = os.geteuid() == 0
needs_root = pytest.mark.skipif(not ROOT, reason="needs root")
needs_unnamed = pytest.mark.skipif(not hasattr(os, "O_TMPFILE"), reason="needs O_TMPFILE")
STRANGER = 54321
OLD = b"old content\n" * 100
NEW = b"new content, longer\n" * 100
ACL = "system.posix_acl_access"
DEFAULT_ACL = "system.posix_acl_default"

PREAMBLE = """
import fcntl, os, random, resource, signal, sys, time
from toolroll import textfile, writer
from toolroll.errors import ToolError

folder = os.open(sys.argv[1], os.O_RDONLY | os.O_DIRECTORY)

def write(name, *chunks, new=False, wait_s=60.0):
    with writer.locked(folder, name, wait_s=wait_s) as place:
        expect = None if new else os.stat(name, dir_fd=folder, follow_symlinks=False)
        return writer.write(place, name, chunks, expect=expect)

def report(name, *chunks, new=False):
    try:
        written = write(name, *chunks, new=new)
        print("written", written.in_place)
    except ToolError as error:
        print(error.code, error.message)
"""


@pytest.fixture(autouse=True, params=["unnamed", "named"])
def drafts(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """Every test runs twice: with O_TMPFILE, and as where there is none or no /proc."""
    if request.param == "named":
        monkeypatch.setattr(writer, "DESCRIPTORS", "/nonexistent")
    elif not hasattr(os, "O_TMPFILE"):
        pytest.skip("needs O_TMPFILE")
    return str(request.param)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


@pytest.fixture
def path(folder: Path) -> Path:
    path = folder / "file"
    path.write_bytes(OLD)
    return path


def write(path: Path, *chunks: bytes, expect: os.stat_result | None = None) -> Written:
    """Write as Edit does; without `expect` the file as it is now is what was read."""
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with writer.locked(directory, path.name) as place:
            return writer.write(place, path.name, chunks, expect=expect or path.lstat())
    finally:
        os.close(directory)


def create(path: Path, *chunks: bytes) -> Written:
    directory = os.open(path.parent, os.O_RDONLY | os.O_DIRECTORY)
    try:
        with writer.locked(directory, path.name) as place:
            return writer.write(place, path.name, chunks, expect=None)
    finally:
        os.close(directory)


def refusal(act: Callable[[], object]) -> ToolError:
    with pytest.raises(ToolError) as caught:
        act()
    return caught.value


def assert_untouched(path: Path) -> None:
    assert path.read_bytes() == OLD
    assert os.listdir(path.parent) == [path.name]


def child(
    folder: Path,
    drafts: str,
    code: str,
    before: tuple[str, ...] = (),
    allowed: tuple[int, ...] = (0, -9, 137),
) -> str:
    """The output of a process of its own that has `folder` open and runs `code`."""
    switch = "writer.DESCRIPTORS = '/nonexistent'\n" if drafts == "named" else ""
    script = PREAMBLE + switch + textwrap.dedent(code)
    common = str(Path(toolroll.__file__).parents[1])
    done = subprocess.run(
        [*before, sys.executable, "-c", script, str(folder)],
        env={**os.environ, "PYTHONPATH": common, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert done.returncode in allowed, done.stderr
    return done.stdout


# --- what is written


def test_a_file_gets_its_new_content_and_nothing_is_left(path: Path) -> None:
    written = write(path, NEW[:7], b"", NEW[7:])
    assert state(written.status) == state(path.stat())
    assert path.read_bytes() == NEW
    assert written.in_place == ""
    assert os.listdir(path.parent) == ["file"]


def test_a_file_may_become_empty(path: Path) -> None:
    assert write(path).status.st_size == 0
    assert path.read_bytes() == b""


def test_thousands_of_slices_are_written_in_order(path: Path) -> None:
    slices = [b"%d " % number for number in range(3 * writer.SLICES + 1)]
    write(path, *slices)
    assert path.read_bytes() == b"".join(slices)


def test_a_partial_write_is_continued(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "writev", lambda fd, chunks: os.write(fd, b"".join(chunks)[:5]))
    write(path, NEW[:3], NEW[3:])
    assert path.read_bytes() == NEW


def test_a_new_file_gets_the_mode_that_the_umask_leaves(folder: Path) -> None:
    before = os.umask(0o027)
    try:
        written = create(folder / "new", NEW)
    finally:
        os.umask(before)
    assert (folder / "new").read_bytes() == NEW
    assert stat.S_IMODE(written.status.st_mode) == 0o640
    assert state(written.status) == state((folder / "new").stat())
    assert os.listdir(folder) == ["new"]


def test_a_name_of_255_bytes_can_be_created_and_replaced(folder: Path) -> None:
    path = folder / ("é" * 127 + "x")
    create(path, OLD)
    write(path, NEW)
    assert path.read_bytes() == NEW
    assert refusal(lambda: create(folder / ("x" * 256), NEW)).code == ErrorCode.INVALID_PARAMS
    assert len(os.listdir(folder)) == 1


def test_a_name_that_is_not_utf8_is_written(folder: Path) -> None:
    path = folder / os.fsdecode(b"\xff\n")
    create(path, OLD)
    write(path, NEW)
    assert path.read_bytes() == NEW


@pytest.mark.parametrize("mode", [0o600, 0o777, 0o4755, 0o2755, 0o1644, 0o6711, 0o206])
def test_all_mode_bits_are_kept(path: Path, mode: int) -> None:
    if not ROOT and mode == 0o206:
        pytest.skip("needs root to read such a file")
    path.chmod(mode)
    write(path, NEW)
    assert stat.S_IMODE(path.stat().st_mode) == mode


@needs_root
def test_owner_and_group_are_kept(path: Path) -> None:
    os.chown(path, STRANGER, STRANGER + 1)
    path.chmod(0o6755)
    write(path, NEW)
    status = path.stat()
    assert (status.st_uid, status.st_gid) == (STRANGER, STRANGER + 1)
    assert stat.S_IMODE(status.st_mode) == 0o6755


@needs_root
def test_a_new_file_in_a_setgid_directory_gets_its_group(folder: Path) -> None:
    os.chown(folder, -1, STRANGER)
    folder.chmod(0o2775)
    assert create(folder / "new", NEW).status.st_gid == STRANGER


def set_attribute(path: Path, name: str, value: bytes) -> None:
    try:
        os.setxattr(path, name, value)
    except OSError as error:
        pytest.skip(f"this file system has no {name} ({error.strerror})")


def acl(*entries: tuple[int, int, int]) -> bytes:
    """A POSIX ACL as the kernel stores it: (tag, permissions, id)."""
    return struct.pack("<I", 2) + b"".join(struct.pack("<HHI", *entry) for entry in entries)


NOBODY = 0xFFFFFFFF
SHARED = acl((1, 6, NOBODY), (2, 6, STRANGER), (4, 4, NOBODY), (16, 6, NOBODY), (32, 4, NOBODY))


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_extended_attributes_are_kept(path: Path) -> None:
    set_attribute(path, "user.origin", b"\0any bytes")
    write(path, NEW)
    assert path.read_bytes() == NEW
    assert os.getxattr(path, "user.origin") == b"\0any bytes"


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_the_access_list_is_kept(path: Path) -> None:
    set_attribute(path, ACL, SHARED)
    mode = path.stat().st_mode
    write(path, NEW)
    assert os.getxattr(path, ACL) == SHARED
    assert path.stat().st_mode == mode


@pytest.mark.skipif(not hasattr(os, "setxattr"), reason="needs extended attributes")
def test_the_default_access_list_of_the_directory_is_for_new_files_only(path: Path) -> None:
    set_attribute(path.parent, DEFAULT_ACL, SHARED)
    write(path, NEW)
    assert ACL not in os.listxattr(path)
    create(path.with_name("new"), NEW)
    assert ACL in os.listxattr(path.with_name("new"))


# --- in place


@pytest.mark.parametrize("new", [NEW, b"", OLD[:50], OLD + b"more", OLD[:-1] + b"?"])
def test_a_file_with_several_names_is_written_in_place(path: Path, new: bytes) -> None:
    other = path.with_name("other")
    other.hardlink_to(path)
    inode = path.stat().st_ino
    written = write(path, new[:20], new[20:])
    assert "2 hard links" in written.in_place
    assert path.read_bytes() == other.read_bytes() == new
    assert path.stat().st_ino == inode
    assert state(written.status) == state(path.stat())


def test_a_file_in_place_that_may_not_grow_keeps_its_content(path: Path, drafts: str) -> None:
    path.with_name("other").hardlink_to(path)
    code = f"""
    resource.setrlimit(resource.RLIMIT_FSIZE, ({len(OLD) + 10},) * 2)
    report("file", b"x" * 5000)
    """
    assert child(path.parent, drafts, code).startswith("TOO_LARGE")
    assert path.read_bytes() == OLD


@needs_root
def test_a_file_whose_owner_cannot_be_kept_is_written_in_place(path: Path, drafts: str) -> None:
    path.parent.chmod(0o777)
    path.chmod(0o666)
    code = f"os.setgid({STRANGER}); os.setuid({STRANGER}); report('file', b'new')"
    assert "owner" in child(path.parent, drafts, code)
    assert path.read_bytes() == b"new"
    assert path.stat().st_uid == 0
    assert os.listdir(path.parent) == ["file"]


# --- what is refused


@pytest.mark.parametrize("mode", [0o444, 0o555, 0o400])
def test_a_read_only_file_is_refused_for_everyone(path: Path, mode: int) -> None:
    path.chmod(mode)
    error = refusal(lambda: write(path, NEW))
    assert error.code == ErrorCode.PERMISSION_DENIED
    assert f"mode 0{mode:o}" in error.message
    assert "chmod u+w" in error.hint
    assert_untouched(path)


def test_a_read_only_directory_is_refused(path: Path, drafts: str) -> None:
    path.chmod(0o666)
    path.parent.chmod(0o555)
    drop = f"os.setgid({STRANGER}); os.setuid({STRANGER})" if ROOT else ""
    code = f"{drop}\nreport('file', b'new')\nreport('new', b'new', new=True)"
    lines = child(path.parent, drafts, code).splitlines()
    path.parent.chmod(0o755)
    assert [line.split()[0] for line in lines] == ["PERMISSION_DENIED"] * 2
    assert "its directory takes no new file" in lines[0]
    assert_untouched(path)


def make_directory(path: Path) -> None:
    path.mkdir()


def make_fifo(path: Path) -> None:
    os.mkfifo(path)


def make_socket(path: Path) -> None:
    directory = os.open(path.parent, os.O_RDONLY)
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(f"/proc/self/fd/{directory}/{path.name}")  # a short path: 108 bytes at most
    os.close(directory)


def make_device(path: Path) -> None:
    if not ROOT:
        pytest.skip("needs root to make a device")
    os.mknod(path, stat.S_IFCHR | 0o666, os.makedev(1, 3))


@pytest.mark.skipif(not os.path.exists("/proc/self/fd"), reason="needs /proc")
@pytest.mark.parametrize("make", [make_directory, make_fifo, make_socket, make_device])
def test_what_is_no_regular_file_is_refused_untouched(
    folder: Path, make: Callable[[Path], None]
) -> None:
    path = folder / "special"
    make(path)
    before = path.lstat()
    assert refusal(lambda: write(path, NEW)).code == ErrorCode.NOT_A_FILE
    assert refusal(lambda: create(path, NEW)).code == ErrorCode.NOT_A_FILE
    assert path.lstat() == before
    assert os.listdir(folder) == ["special"]


def test_a_new_file_never_replaces_one_that_exists(path: Path) -> None:
    assert refusal(lambda: create(path, NEW)).code == ErrorCode.ALREADY_EXISTS
    assert_untouched(path)


def while_syncing(monkeypatch: pytest.MonkeyPatch, act: Callable[[], object]) -> None:
    """Have `act` done once while the new content goes to disk: just before it is published."""
    waiting = [act]
    fsync = os.fsync

    def meddle(descriptor: int) -> None:
        fsync(descriptor)
        if waiting:
            waiting.pop()()

    monkeypatch.setattr(os, "fsync", meddle)


@pytest.mark.parametrize("links", [True, False])
def test_a_file_that_appears_during_a_creation_is_kept(
    path: Path, monkeypatch: pytest.MonkeyPatch, drafts: str, links: bool
) -> None:
    content = path.read_bytes()
    path.unlink()
    while_syncing(monkeypatch, lambda: path.write_bytes(content))
    if not links:
        if drafts == "unnamed":
            pytest.skip("where files can be unnamed they can be linked")
        monkeypatch.setattr(os, "link", no_links)
    assert refusal(lambda: create(path, NEW)).code == ErrorCode.ALREADY_EXISTS
    assert_untouched(path)


def no_links(*_: object, **__: object) -> None:
    raise OSError(errno.EPERM, "no hard links on this file system")


def test_a_new_file_is_made_where_there_are_no_hard_links(
    folder: Path, monkeypatch: pytest.MonkeyPatch, drafts: str
) -> None:
    if drafts == "unnamed":
        pytest.skip("where files can be unnamed they can be linked")
    monkeypatch.setattr(os, "link", no_links)
    create(folder / "new", NEW)
    assert (folder / "new").read_bytes() == NEW
    assert os.listdir(folder) == ["new"]
    monkeypatch.setattr(os, "rename", no_links)
    assert refusal(lambda: create(folder / "other", NEW)).code == ErrorCode.PERMISSION_DENIED
    assert os.listdir(folder) == ["new"]


def test_where_o_tmpfile_is_unknown_to_the_file_system_a_name_is_used(
    path: Path, monkeypatch: pytest.MonkeyPatch, drafts: str
) -> None:
    if drafts == "named":
        pytest.skip("has a name already")
    real = os.open

    def refuse(name: str, flags: int, mode: int = 0o777, *, dir_fd: int | None = None) -> int:
        if flags & os.O_TMPFILE == os.O_TMPFILE:
            raise OSError(errno.EOPNOTSUPP, "not supported")
        return real(name, flags, mode, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    write(path, NEW)
    assert path.read_bytes() == NEW
    assert os.listdir(path.parent) == ["file"]


# --- others who write the same file


def test_a_file_changed_since_it_was_read_is_a_conflict(path: Path) -> None:
    seen = path.stat()
    path.write_bytes(b"of another\n")
    assert refusal(lambda: write(path, NEW, expect=seen)).code == ErrorCode.CONFLICT
    assert path.read_bytes() == b"of another\n"


def test_another_file_of_the_same_name_is_a_conflict(path: Path) -> None:
    seen = path.stat()
    path.rename(path.with_name("moved"))
    path.write_bytes(OLD)
    os.utime(path, ns=(seen.st_atime_ns, seen.st_mtime_ns))
    assert refusal(lambda: write(path, NEW, expect=seen)).code == ErrorCode.CONFLICT
    assert path.read_bytes() == OLD


def test_a_vanished_file_is_a_conflict(path: Path) -> None:
    seen = path.stat()
    path.unlink()
    error = refusal(lambda: write(path, NEW, expect=seen))
    assert error.code == ErrorCode.CONFLICT
    assert "vanished" in error.message
    assert os.listdir(path.parent) == []


def test_a_symbolic_link_in_its_place_is_a_conflict(path: Path, tmp_path: Path) -> None:
    seen = path.stat()
    outside = tmp_path / "outside"
    path.rename(outside)
    path.symlink_to(outside)
    assert refusal(lambda: write(path, NEW, expect=seen)).code == ErrorCode.CONFLICT
    assert outside.read_bytes() == OLD
    assert path.is_symlink()


@pytest.mark.parametrize("there", [b"of another\n", None])
def test_a_change_during_the_write_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch, there: bytes | None
) -> None:
    seen = path.stat()
    while_syncing(monkeypatch, lambda: path.write_bytes(there) if there else path.unlink())
    assert refusal(lambda: write(path, NEW, expect=seen)).code == ErrorCode.CONFLICT
    assert [one.read_bytes() for one in path.parent.iterdir()] == ([there] if there else [])


def test_a_change_before_a_write_in_place_is_a_conflict(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def busy(*_: object, **__: object) -> None:
        path.write_bytes(b"of another\n")
        raise OSError(errno.EBUSY, "a mount point")

    monkeypatch.setattr(os, "rename", busy)
    assert refusal(lambda: write(path, NEW)).code == ErrorCode.CONFLICT
    assert path.read_bytes() == b"of another\n"
    assert os.listdir(path.parent) == ["file"]


def test_a_removed_directory_is_a_conflict(folder: Path) -> None:
    directory = os.open(folder, os.O_RDONLY)
    folder.rmdir()
    try:
        place = writer.locked(directory, "new")
        assert refusal(place.__enter__).code == ErrorCode.CONFLICT
    finally:
        os.close(directory)


@pytest.fixture
def taken(folder: Path) -> Iterator[int]:
    """A directory that another writer has locked."""
    other = os.open(folder, os.O_RDONLY)
    fcntl.flock(other, fcntl.LOCK_EX)
    mine = os.open(folder, os.O_RDONLY)
    yield mine
    os.close(mine)
    os.close(other)


def test_a_lock_that_is_not_given_back_is_a_conflict(taken: int) -> None:
    place = writer.locked(taken, "file", wait_s=0.02)
    error = refusal(place.__enter__)
    assert error.code == ErrorCode.CONFLICT
    assert "'file'" in error.message


def test_a_cancelled_call_stops_waiting_for_the_lock(taken: int) -> None:
    def check() -> None:
        raise ToolError(ErrorCode.CANCELLED, "cancelled")

    place = writer.locked(taken, "file", check, wait_s=60)
    assert refusal(place.__enter__).code == ErrorCode.CANCELLED


def no_flock(*_: object) -> None:
    raise OSError(errno.ENOLCK, "no locks")


def test_without_flock_the_threads_of_a_server_take_turns(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", no_flock)
    directory = os.open(path.parent, os.O_RDONLY)
    try:
        with writer.locked(directory, "file"):
            second = writer.locked(directory, "file", wait_s=0.0)
            assert refusal(second.__enter__).code == ErrorCode.CONFLICT
    finally:
        os.close(directory)
    perhaps_alive = path.with_name(f"{writer.MARK}4711-0123456789ab")
    perhaps_alive.touch()
    write(path, NEW)
    assert path.read_bytes() == NEW
    assert perhaps_alive.exists()


def test_without_flock_a_failed_lock_blocks_no_later_one(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(fcntl, "flock", no_flock)
    gone = path.parent / "gone"
    gone.mkdir()
    directory = os.open(gone, os.O_RDONLY)
    gone.rmdir()
    try:
        assert refusal(writer.locked(directory, "file").__enter__).code == ErrorCode.CONFLICT
    finally:
        os.close(directory)
    write(path, NEW)
    assert path.read_bytes() == NEW


def test_two_threads_lose_no_edit(path: Path) -> None:
    path.write_bytes(b"")
    directory = os.open(path.parent, os.O_RDONLY)

    def append(letter: bytes) -> None:
        for _ in range(15):
            with writer.locked(directory, "file", wait_s=60.0) as place:
                old, seen = path.read_bytes(), path.stat()
                writer.write(place, "file", (old, letter), expect=seen)

    threads = [Thread(target=append, args=(letter,)) for letter in (b"a", b"b")]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    os.close(directory)
    assert sorted(path.read_bytes()) == sorted(b"a" * 15 + b"b" * 15)


def test_eight_processes_lose_no_edit(path: Path, drafts: str) -> None:
    path.write_bytes(b"")
    code = """
    children = []
    for letter in b"abcdefgh":
        if pid := os.fork():
            children.append(pid)
            continue
        for _ in range(4):
            with writer.locked(folder, "file", wait_s=60.0) as place:
                descriptor = os.open("file", os.O_RDONLY, dir_fd=folder)
                old, seen = textfile.read(descriptor, "file")
                writer.write(place, "file", (old, bytes([letter])), expect=seen)
                os.close(descriptor)
        os._exit(0)
    print([os.waitpid(pid, 0)[1] for pid in children])
    """
    assert child(path.parent, drafts, code).strip() == str([0] * 8)
    assert sorted(path.read_bytes()) == sorted(b"abcdefgh" * 4)
    assert os.listdir(path.parent) == ["file"]


# --- the end of the process


def test_nothing_is_written_once_the_process_is_ending(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    gate.settled(0.0)
    monkeypatch.setattr(writer, "hold", gate.hold)
    assert refusal(lambda: write(path, NEW)).code == ErrorCode.CANCELLED
    assert refusal(lambda: create(path.with_name("new"), NEW)).code == ErrorCode.CANCELLED
    assert_untouched(path)


def test_the_process_does_not_end_between_link_and_rename(
    path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    gate = Gate()
    monkeypatch.setattr(writer, "hold", gate.hold)
    rename = os.rename
    settled: list[bool] = []

    def observe(source: str, target: str, *, src_dir_fd: int, dst_dir_fd: int) -> None:
        other = Thread(target=lambda: settled.append(gate.settled(0.0)))
        other.start()
        other.join(60)
        rename(source, target, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)

    monkeypatch.setattr(os, "rename", observe)
    write(path, NEW)
    assert settled == [False]
    assert gate.settled(0.0)
    assert path.read_bytes() == NEW


def test_a_storm_of_kills_finds_the_old_or_the_new_file(path: Path, drafts: str) -> None:
    code = """
    contents = (b"a" * 300_000, b"b" * 400_000)
    write("file", contents[0])
    for _ in range(60):
        pid = os.fork()
        if not pid:
            while True:
                for content in contents:
                    write("file", content)
        time.sleep(random.uniform(0, 0.012))  # so that the kill meets any phase of a write
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        for name in os.listdir(folder):
            descriptor = os.open(name, os.O_RDONLY, dir_fd=folder)
            whole = os.read(descriptor, 500_000) in contents
            os.close(descriptor)
            if not whole and (name == "file" or writer.DESCRIPTORS == "/proc/self/fd"):
                print("torn", name)
    write("file", contents[0])
    print(os.listdir(folder))
    """
    assert child(path.parent, drafts, code).strip() == "['file']"


def test_what_dead_writers_left_is_removed_by_the_next_write(path: Path) -> None:
    left = path.with_name(f"{writer.MARK}4711-0123456789ab")
    left.write_bytes(b"")
    own = [path.with_name(name) for name in (".toolroll-1-2", ".toolroll-x-0123456789ab", ".t-1")]
    for one in own:
        one.touch()
    left.with_name(f"{writer.MARK}4711-ba9876543210").mkdir()
    write(path, NEW)
    assert not left.exists()
    assert all(one.exists() for one in own)
    assert len(os.listdir(path.parent)) == 5


# --- with strace: the order of the calls, and calls that fail


@pytest.fixture
def strace(tmp_path: Path) -> Callable[..., tuple[str, ...]]:
    if not shutil.which("strace"):
        pytest.skip("needs strace")
    if subprocess.run(["strace", "-o", "/dev/null", "true"], check=False).returncode:
        pytest.skip("strace is not permitted here")
    return lambda *arguments: ("strace", "-f", "-o", str(tmp_path / "trace"), *arguments)


def test_the_content_is_on_disk_before_it_is_published_and_the_name_after(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]], tmp_path: Path
) -> None:
    calls = "trace=/^(writev|fsync|fchmod|linkat|renameat2?|unlinkat)$"
    child(path.parent, drafts, "report('file', b'new')", before=strace("-e", calls))
    trace = (tmp_path / "trace").read_text()
    found = re.findall(r"^\d+ +([a-z]+)\d?\((\w+)", trace, re.MULTILINE)
    names = [name for name, _ in found]
    publish = ["linkat", "renameat"] if drafts == "unnamed" else ["renameat"]
    assert names == ["writev", "fchmod", "fsync", *publish, "fsync"]
    draft, directory = found[0][1], found[-1][1]
    assert found[2][1] == draft
    assert directory != draft
    assert "AT_SYMLINK_FOLLOW" in trace or drafts == "named"


@pytest.mark.parametrize(
    ("fault", "code"),
    [
        ("writev:error=ENOSPC", ErrorCode.EXECUTION_ERROR),
        ("writev:error=EDQUOT", ErrorCode.EXECUTION_ERROR),
        ("fsync:error=EIO", ErrorCode.EXECUTION_ERROR),
        ("fsync:error=ENOSPC", ErrorCode.EXECUTION_ERROR),
        ("fchmod:error=EROFS", ErrorCode.PERMISSION_DENIED),
        ("linkat:error=ENOSPC", ErrorCode.EXECUTION_ERROR),
        ("linkat:error=EDQUOT", ErrorCode.EXECUTION_ERROR),
        ("/^renameat:error=EPERM", ErrorCode.PERMISSION_DENIED),
        ("/^renameat:error=ENOSPC", ErrorCode.EXECUTION_ERROR),
    ],
)
def test_a_call_that_fails_leaves_the_old_file_and_nothing_else(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]], fault: str, code: str
) -> None:
    if fault.startswith("linkat") and drafts == "named":
        pytest.skip("makes no link")
    run = "report('file', b'new')"
    output = child(path.parent, drafts, run, before=strace("-e", f"inject={fault}"))
    assert output.split()[0] == code, output
    assert "was not written" in output
    assert_untouched(path)


@pytest.mark.parametrize(
    ("fault", "answer"),
    [("EIO", "EXECUTION_ERROR 'file' has its new content, but"), ("EINVAL", "written")],
)
def test_a_directory_that_cannot_be_synced_is_told_unless_it_never_can(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]], fault: str, answer: str
) -> None:
    before = strace("-e", f"inject=fsync:error={fault}:when=2")
    assert child(path.parent, drafts, "report('file', b'new')", before=before).startswith(answer)
    assert path.read_bytes() == b"new"


def test_a_mount_point_is_written_in_place(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]]
) -> None:
    before = strace("-e", "inject=/^renameat:error=EBUSY")
    assert "mount point" in child(path.parent, drafts, "report('file', b'new')", before=before)
    assert path.read_bytes() == b"new"
    assert os.listdir(path.parent) == ["file"]


@pytest.mark.parametrize(
    "fault", ["fallocate:error=ENOSPC", "writev:error=ENOSPC:when=1", "fsync:error=EIO:when=1"]
)
def test_a_failed_write_in_place_is_undone(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]], fault: str
) -> None:
    path.with_name("other").hardlink_to(path)
    before = strace("-e", f"inject={fault}")
    output = child(path.parent, drafts, "report('file', b'new' * 1000)", before=before)
    assert output.startswith("EXECUTION_ERROR"), output
    assert path.read_bytes() == OLD


def test_a_file_that_could_not_be_restored_is_told(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]]
) -> None:
    path.with_name("other").hardlink_to(path)
    before = strace("-e", "inject=fsync:error=EIO")
    output = child(path.parent, drafts, "report('file', b'new' * 1000)", before=before)
    assert output.startswith("EXECUTION_ERROR 'file' is damaged"), output


def test_a_kill_right_before_the_rename_leaves_one_draft_that_the_next_write_removes(
    path: Path, drafts: str, strace: Callable[..., tuple[str, ...]]
) -> None:
    before = strace("-e", "inject=/^renameat:signal=SIGKILL")
    child(path.parent, drafts, "report('file', b'new')", before=before)
    assert path.read_bytes() == OLD
    left = [name for name in os.listdir(path.parent) if name != "file"]
    assert [writer._is_draft_name(name) for name in left] == [True]
    write(path, NEW)
    assert os.listdir(path.parent) == ["file"]
    assert path.read_bytes() == NEW


# --- limits and full disks


def test_a_limit_on_file_sizes_is_told(path: Path, drafts: str) -> None:
    code = """
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, 4096))
    report("file", b"x" * 3000, b"x" * 3000)
    report("new", b"x" * 6000, new=True)
    """
    lines = child(path.parent, drafts, code).splitlines()
    assert [line.split()[0] for line in lines] == ["TOO_LARGE"] * 2
    assert_untouched(path)


@pytest.mark.parametrize("free", [0, 1, 2])
def test_too_many_open_files_are_told(path: Path, drafts: str, free: int) -> None:
    code = f"""
    spare = [os.dup(0) for _ in range(200)]
    resource.setrlimit(resource.RLIMIT_NOFILE, (spare[-1] + 1, 1000))
    for one in spare[len(spare) - {free}:]:
        os.close(one)
    report("file", b"new")
    """
    output = child(path.parent, drafts, code)
    assert output.startswith("EXECUTION_ERROR"), output
    assert "too many files are open" in output
    assert_untouched(path)


MOUNTED = """
import subprocess
def sh(line):
    subprocess.run(line, shell=True, check=True, cwd=f"/proc/{os.getpid()}/fd/{folder}")
def content(name):
    with open(os.open(name, os.O_RDONLY, dir_fd=folder), "rb") as file:
        return file.read()
mount = sys.argv[1] + "/mount"
os.mkdir(mount)
subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", mount], check=True)
folder = os.open(mount, os.O_RDONLY)
"""


@pytest.fixture
def namespace() -> tuple[str, ...]:
    """Runs a program with mounts of its own, which vanish with it."""
    if not ROOT or not shutil.which("unshare"):
        pytest.skip("needs root and unshare")
    probe = "mount -t tmpfs tmpfs /mnt"
    if subprocess.run(["unshare", "--mount", "sh", "-c", probe], check=False).returncode:
        pytest.skip("mounts are not permitted here")
    return ("unshare", "--mount", "--propagation", "private")


def test_a_full_disk_leaves_the_old_file(
    folder: Path, drafts: str, namespace: tuple[str, ...]
) -> None:
    code = MOUNTED + textwrap.dedent("""
    write("file", b"old" * 30_000, new=True)
    write("twice", b"old" * 20_000, new=True)
    os.link("twice", "other", src_dir_fd=folder, dst_dir_fd=folder)
    report("file", b"new" * 70_000)
    report("new", b"new" * 70_000, new=True)
    report("twice", b"new" * 80_000)
    print(content("file") == b"old" * 30_000, content("twice") == b"old" * 20_000)
    print(sorted(os.listdir(folder)))
    """)
    lines = child(folder, drafts, code, before=namespace).splitlines()
    assert all("the disk is full" in line for line in lines[:3])
    assert lines[3:] == ["True True", "['file', 'other', 'twice']"]


def test_a_read_only_file_system_and_a_real_mount_point(
    folder: Path, drafts: str, namespace: tuple[str, ...]
) -> None:
    code = MOUNTED + textwrap.dedent("""
    for name in ("file", "over", "mounted"):
        write(name, b"old", new=True)
    subprocess.run(["mount", "--bind", mount + "/over", mount + "/mounted"], check=True)
    report("mounted", b"new")
    print(content("over"))
    subprocess.run(["mount", "-o", "remount,ro", mount], check=True)
    report("file", b"new")
    report("new", b"new", new=True)
    print(content("file"), sorted(os.listdir(folder)))
    """)
    lines = child(folder, drafts, code, before=namespace).splitlines()
    assert "mount point" in lines[0]
    assert lines[1] == "b'new'"
    assert all(line.startswith("PERMISSION_DENIED") for line in lines[2:4])
    assert all("the file system is read-only" in line for line in lines[2:4])
    assert lines[4] == "b'old' ['file', 'mounted', 'over']"


def test_a_file_of_a_lower_layer_is_written_on_an_overlay(
    folder: Path, drafts: str, namespace: tuple[str, ...]
) -> None:
    code = MOUNTED + textwrap.dedent("""
    sh("mkdir low up work all; echo old >low/one; echo old >low/two; ln low/two low/three")
    if subprocess.call("mount -t overlay o -o lowerdir=low,upperdir=up,workdir=work all",
                       shell=True, cwd=f"/proc/{os.getpid()}/fd/{folder}"):
        sys.exit("overlay is not permitted here")
    folder = os.open("all", os.O_RDONLY, dir_fd=folder)
    for name in ("one", "two", "one", "two"):
        report(name, b"new")
    print(content("one"), content("two"), sorted(os.listdir(folder)))
    written = write("one", b"newer")
    from toolroll.status import state
    print(state(written.status) == state(os.stat("one", dir_fd=folder)))
    """)
    lines = child(folder, drafts, code, before=namespace, allowed=(0, 1)).splitlines()
    if not lines:
        pytest.skip("overlay mounts are not permitted here")
    assert [line.split()[0] for line in lines[:4]] == ["written"] * 4
    assert lines[4:] == ["b'new' b'new' ['one', 'three', 'two']", "True"]


@needs_root
@pytest.mark.parametrize("flag", ["i", "a"])
def test_an_immutable_file_is_refused(path: Path, flag: str) -> None:
    if not shutil.which("chattr"):
        pytest.skip("needs chattr")
    if subprocess.run(["chattr", f"+{flag}", path], check=False, stderr=-3).returncode:
        pytest.skip("this file system has no immutable files")
    try:
        error = refusal(lambda: write(path, NEW))
    finally:
        subprocess.run(["chattr", f"-{flag}", path], check=True)
    assert error.code == ErrorCode.PERMISSION_DENIED
    assert "immutable" in error.hint
    assert_untouched(path)
