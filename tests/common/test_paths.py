"""Roots: what they let in, what they keep out, and how names come back."""

import contextlib
import os
import shutil
import socket
import stat
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.conftest import open_descriptors
from toolroll import paths
from toolroll.errors import ErrorCode, ToolError
from toolroll.paths import Held, Opened, Roots, show

needs_proc = pytest.mark.skipif(
    not os.path.exists("/proc/self/fd"), reason="this system has no /proc"
)

PORTABLE_STEP = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW


@pytest.fixture(params=["O_PATH", "portable"])
def place(tmp_path: Path, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with `root` and, beside it, `outside` and `root-evil`, each holding secret.txt."""
    if request.param == "portable":
        monkeypatch.setattr(paths, "STEP", PORTABLE_STEP)
    place = tmp_path.resolve()
    (place / "root" / "sub" / "deep").mkdir(parents=True)
    (place / "root" / "a.txt").write_text("inside")
    (place / "root" / "sub" / "b.txt").write_text("inside b")
    for name in ("outside", "root-evil"):
        (place / name).mkdir()
        (place / name / "secret.txt").write_text("secret")
    return place


@pytest.fixture
def root(place: Path) -> Path:
    return place / "root"


@pytest.fixture
def roots(root: Path) -> Roots:
    return Roots([str(root)])


def read(opened: Opened) -> bytes:
    with opened:
        return os.read(opened.fd, 1000)


def names_in(opened: Opened) -> set[str]:
    with opened, os.scandir(opened.fd) as entries:
        return {entry.name for entry in entries}


def refused(code: str, way_in: Callable[..., Held], *arguments: object) -> ToolError:
    """The error with which a way in is closed, after checking its code."""
    with pytest.raises(ToolError) as caught, way_in(*arguments):
        pass
    assert caught.value.code == code, str(caught.value)
    return caught.value


def ways_in(roots: Roots) -> list[Callable[[str], Held]]:
    return [roots.open_file, roots.open_directory, roots.open_any, roots.open_parent]


# What is let in


def test_a_file_is_opened_by_relative_absolute_and_roundabout_paths(
    root: Path, roots: Roots
) -> None:
    for text in ("sub/b.txt", f"{root}/sub/b.txt", "./sub//./b.txt", "sub/deep/../b.txt"):
        opened = roots.open_file(text)
        assert (opened.path, opened.text) == (f"{root}/sub/b.txt", text)
        assert opened.status.st_ino == (root / "sub" / "b.txt").stat().st_ino
        assert read(opened) == b"inside b"


def test_a_directory_can_be_listed_and_the_root_is_one(root: Path, roots: Roots) -> None:
    for text in (".", str(root), f"{root}/", "sub/.."):
        opened = roots.open_directory(text)
        assert opened.path == str(root)
        assert names_in(opened) == {"a.txt", "sub"}
    assert names_in(roots.open_directory("sub")) == {"deep", "b.txt"}


def test_open_any_takes_files_and_directories(roots: Roots) -> None:
    assert read(roots.open_any("a.txt")) == b"inside"
    assert names_in(roots.open_any("sub")) == {"deep", "b.txt"}


def test_links_inside_the_root_are_followed_and_the_real_path_is_told(
    root: Path, roots: Roots
) -> None:
    (root / "relative").symlink_to("sub/../sub/b.txt")
    (root / "absolute").symlink_to(root / "sub")
    (root / "sub" / "up").symlink_to("../a.txt")
    (root / "chain").symlink_to("absolute/up")
    for text, path in {
        "relative": "sub/b.txt",
        "absolute/b.txt": "sub/b.txt",
        "absolute/../a.txt": "a.txt",
        "absolute/deep/../up": "a.txt",
        "chain": "a.txt",
    }.items():
        with roots.open_file(text) as opened:
            assert opened.path == f"{root}/{path}"


def test_a_link_that_leaves_the_root_and_comes_back_is_followed(place: Path, roots: Roots) -> None:
    (place / "outside" / "back").symlink_to(place / "root")
    (place / "root" / "trip").symlink_to(place / "outside" / "back" / "a.txt")
    assert read(roots.open_file("trip")) == b"inside"
    assert read(roots.open_file("../root/a.txt")) == b"inside"
    assert read(roots.open_file(f"{place}/outside/back/a.txt")) == b"inside"


def test_a_root_that_is_a_link_means_its_target(place: Path) -> None:
    (place / "alias").symlink_to("root")
    roots = Roots([str(place / "alias")])
    assert roots.folders == (str(place / "root"),)
    assert roots.first == str(place / "root")
    assert read(roots.open_file("a.txt")) == b"inside"
    assert read(roots.open_file(f"{place}/alias/a.txt")) == b"inside"


def test_every_root_is_open_and_the_first_one_takes_relative_paths(place: Path) -> None:
    roots = Roots([str(place / "outside"), str(place / "root"), str(place / "outside")])
    assert roots.folders == (str(place / "outside"), str(place / "root"))
    assert read(roots.open_file("secret.txt")) == b"secret"
    assert read(roots.open_file("../root/a.txt")) == b"inside"


def test_the_root_of_the_file_system_contains_everything(place: Path) -> None:
    roots = Roots(["/"])
    assert read(roots.open_file(f"{place}/root/a.txt")) == b"inside"
    assert read(roots.open_file(f"../..{place}/root/a.txt")) == b"inside"
    with roots.open_directory("/") as opened:
        assert opened.path == "/"


def test_a_tilde_is_the_home_directory(
    root: Path, roots: Roots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(root))
    assert read(roots.open_file("~/a.txt")) == b"inside"
    assert Roots(["~"]).folders == (str(root),)
    refused(ErrorCode.OUTSIDE_ROOTS, roots.open_file, "~root/x/y")
    (root / "~nobody-of-that-name").write_text("literal")
    assert read(roots.open_file("~nobody-of-that-name")) == b"literal"


def test_a_root_that_was_moved_away_stays_the_same_directory(place: Path, roots: Roots) -> None:
    (place / "root").rename(place / "moved")
    (place / "root").symlink_to("outside")
    assert read(roots.open_file("a.txt")) == b"inside"
    refused(ErrorCode.NOT_FOUND, roots.open_file, "secret.txt")


# What is kept out


def test_outside_is_outside_by_every_way_and_method(place: Path, roots: Roots) -> None:
    root = place / "root"
    (root / "file").symlink_to(place / "outside" / "secret.txt")
    (root / "folder").symlink_to("../outside")
    (root / "sub" / "hop").symlink_to("../folder")
    for text in (
        f"{place}/root-evil/secret.txt",
        "../outside/secret.txt",
        "../root-evil",
        "sub/../../outside/secret.txt",
        "file",
        "folder",
        "folder/secret.txt",
        "sub/hop/secret.txt",
        "folder/../outside/secret.txt",
        "..",
        "/",
        "/etc/passwd",
    ):
        for way_in in ways_in(roots):
            error = refused(ErrorCode.OUTSIDE_ROOTS, way_in, text)
            assert str(root) in error.message
            assert "--root" in error.hint


def test_outside_nothing_tells_present_from_absent(place: Path, roots: Roots) -> None:
    outside = place / "outside"
    (outside / "loop").symlink_to("loop")
    (outside / "fifo").write_text("")
    (place / "root" / "present").symlink_to(outside / "secret.txt")
    (place / "root" / "absent").symlink_to(outside / "nothing.txt")
    for names in (
        [
            f"{outside}/{n}"
            for n in ("secret.txt", "nothing.txt", "loop", "secret.txt/x", "n" * 300)
        ],
        ["present", "absent"],
    ):
        for way_in in ways_in(roots):
            texts = {
                str(refused(ErrorCode.OUTSIDE_ROOTS, way_in, name)).replace(name, "NAME")
                for name in names
            }
            assert len(texts) == 1
    for text in (f"{outside}/../root/a.txt", f"{outside}/nothing/../../root/a.txt"):
        assert read(roots.open_file(text)) == b"inside"


def test_without_roots_everything_is_outside_and_the_flag_is_named(place: Path) -> None:
    roots = Roots([])
    assert roots.first is None
    for text in ("a.txt", ".", str(place), "/"):
        for way_in in ways_in(roots):
            error = refused(ErrorCode.OUTSIDE_ROOTS, way_in, text)
            assert "--root" in error.hint


def test_a_root_without_a_name_is_not_the_working_directory() -> None:
    with pytest.raises(ValueError, match="''"):
        Roots([""])


@pytest.mark.parametrize("name", ["missing", "a.txt", "a.txt/x"])
def test_a_root_must_be_a_directory_that_exists(root: Path, name: str) -> None:
    with pytest.raises(ValueError, match=name):
        Roots([str(root), str(root / name)])


@needs_proc
def test_magic_links_of_proc_lead_nowhere_but_to_their_text(root: Path, roots: Roots) -> None:
    with Held(os.open(root.parent / "outside" / "secret.txt", os.O_RDONLY)) as held:
        proc = Roots(["/proc"])
        for text in ("self/root/etc/passwd", "self/cwd", f"self/fd/{held.fd}", "self/root"):
            refused(ErrorCode.OUTSIDE_ROOTS, proc.open_any, text)
        refused(ErrorCode.OUTSIDE_ROOTS, roots.open_file, f"/proc/self/fd/{held.fd}")
    end, other_end = os.pipe()
    with Held(end), Held(other_end):
        refused(ErrorCode.NOT_FOUND, proc.open_file, f"self/fd/{end}")


# Races

SWAP_FILE = """
import os
n = 0
print("ready", flush=True)
while True:
    os.symlink("../outside/secret.txt", "link.tmp"); os.replace("link.tmp", "f")
    with open("file.tmp", "w") as f: f.write("inside")
    os.replace("file.tmp", "f")
"""

SWAP_DIRECTORY = """
import os
os.symlink("../outside", "link")
os.mkdir("d")
open("d/secret.txt", "w").write("inside")
print("ready", flush=True)
while True:
    os.rename("d", "away"); os.rename("link", "d")
    os.rename("d", "link"); os.rename("away", "d")
"""


@contextlib.contextmanager
def running(script: str, folder: Path) -> Iterator[None]:
    """`script` in a process of its own, from its first line of output to the end of the block."""
    command = [sys.executable, "-I", "-c", script]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield
        finally:
            process.kill()


def race(naive: Callable[[], str], guarded: Callable[[], str], rounds: int = 2000) -> set[str]:
    """What `guarded` met in at least `rounds` rounds, and until `naive` fell for the swap 20 times."""
    met: set[str] = set()
    fell = done = 0
    limit = time.monotonic() + 60
    while done < rounds or fell < 20 or "inside" not in met:
        assert time.monotonic() < limit, (done, fell, met)
        done += 1
        with contextlib.suppress(OSError):
            fell += naive() == "secret"
        try:
            met.add(guarded())
        except ToolError as error:
            met.add(error.code)
    return met


def test_a_file_swapped_for_a_link_never_shows_what_lies_outside(root: Path, roots: Roots) -> None:
    with running(SWAP_FILE, root):
        met = race((root / "f").read_text, lambda: read(roots.open_file("f")).decode())
    assert met <= {"inside", ErrorCode.OUTSIDE_ROOTS, ErrorCode.CONFLICT, ErrorCode.NOT_FOUND}


def test_a_directory_swapped_for_a_link_never_shows_what_lies_outside(
    root: Path, roots: Roots
) -> None:
    with running(SWAP_DIRECTORY, root):
        met = race(
            (root / "d" / "secret.txt").read_text,
            lambda: read(roots.open_file("d/secret.txt")).decode(),
        )
    assert met <= {"inside", ErrorCode.OUTSIDE_ROOTS, ErrorCode.CONFLICT, ErrorCode.NOT_FOUND}


@pytest.mark.parametrize("way", ["open_directory", "open_parent"])
def test_a_directory_opened_while_it_is_swapped_is_never_the_one_outside(
    root: Path, roots: Roots, way: str
) -> None:
    outside = (root.parent / "outside").stat().st_ino
    text = "d" if way == "open_directory" else "d/new.txt"

    def where(inode: int) -> str:
        return "secret" if inode == outside else "inside"

    def guarded() -> str:
        with getattr(roots, way)(text) as held:
            return where(os.fstat(held.fd).st_ino)

    with running(SWAP_DIRECTORY, root):
        met = race(lambda: where((root / "d").stat().st_ino), guarded)
    assert met <= {"inside", ErrorCode.OUTSIDE_ROOTS, ErrorCode.CONFLICT, ErrorCode.NOT_FOUND}


# What is no file or no directory


def test_special_files_are_refused_at_once_and_named(root: Path, roots: Roots) -> None:
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        with Held(os.open(root, os.O_RDONLY)) as held:
            listener.bind(f"/proc/self/fd/{held.fd}/sock" if sys.platform == "linux" else "sock")
        for name, kind in (("pipe", "FIFO"), ("sock", "socket")):
            for way_in in (roots.open_file, roots.open_any, roots.open_parent):
                error = refused(ErrorCode.NOT_A_FILE, way_in, name)
                assert kind in error.message
            refused(ErrorCode.NOT_A_DIRECTORY, roots.open_directory, name)
            refused(ErrorCode.NOT_A_DIRECTORY, roots.open_file, f"{name}/x")


def test_devices_are_refused(root: Path, roots: Roots) -> None:
    error = refused(ErrorCode.NOT_A_FILE, Roots(["/dev"]).open_file, "null")
    assert "character device" in error.message
    (root / "null").symlink_to("/dev/null")
    refused(ErrorCode.OUTSIDE_ROOTS, roots.open_file, "null")


def test_a_directory_is_no_file_and_a_file_no_directory(roots: Roots) -> None:
    error = refused(ErrorCode.NOT_A_FILE, roots.open_file, "sub")
    assert "a directory" in error.message
    assert "LS" in error.hint
    error = refused(ErrorCode.NOT_A_DIRECTORY, roots.open_directory, "a.txt")
    assert "View" in error.hint
    for way_in in ways_in(roots):
        error = refused(ErrorCode.NOT_A_DIRECTORY, way_in, "a.txt/x/y")
        assert "a.txt' is not a directory" in error.message
    refused(ErrorCode.NOT_A_FILE, roots.open_parent, ".")
    refused(ErrorCode.NOT_A_FILE, roots.open_parent, "sub")


def test_an_empty_file_can_be_read(root: Path, roots: Roots) -> None:
    (root / "empty").write_text("")
    assert read(roots.open_file("empty")) == b""


@needs_proc
def test_files_of_proc_are_read_although_their_size_is_zero() -> None:
    with Roots(["/proc"]).open_file("self/status") as opened:
        assert opened.status.st_size == 0
        assert b"Pid:" in os.read(opened.fd, 4000)


def test_a_file_whose_reader_would_wait_is_refused(root: Path) -> None:
    """A pipe with the status of an empty file is what /proc/kmsg looks like, for every user."""
    (root / "empty").write_text("")
    end, other_end = os.pipe()
    with Held(other_end):
        waiting = Opened(end, "/proc/kmsg", "/proc/kmsg", (root / "empty").stat())
        refused(ErrorCode.NOT_A_FILE, paths._with_something_to_read, waiting)
        assert waiting.fd == -1


@needs_proc
def test_the_log_of_the_kernel_is_refused_or_open_without_waiting() -> None:
    codes = (ErrorCode.NOT_A_FILE, ErrorCode.PERMISSION_DENIED, ErrorCode.NOT_FOUND)
    try:
        opened = Roots(["/proc"]).open_file("kmsg")
    except ToolError as error:
        assert error.code in codes  # noqa: PT017 - which of the two it is depends on the machine
    else:
        with opened:
            assert not os.get_blocking(opened.fd)


# What does not exist, and what cannot


def test_a_missing_file_is_told_with_the_nearest_names(root: Path, roots: Roots) -> None:
    (root / "sub" / "README.md").write_text("")
    error = refused(ErrorCode.NOT_FOUND, roots.open_file, "sub/raedme.md")
    assert error.message == "'sub/raedme.md' does not exist"
    assert error.hint == f"Nearest names in '{root}/sub': 'README.md'."
    error = refused(ErrorCode.NOT_FOUND, roots.open_file, "sbu/b.txt")
    assert error.message == f"'sbu/b.txt' does not exist: there is no '{root}/sbu'"
    assert error.hint == f"Nearest names in '{root}': 'sub'."
    error = refused(ErrorCode.NOT_FOUND, roots.open_directory, "x9/y/z")
    assert error.hint == f"The nearest directory that exists is '{root}'."


def test_a_dangling_link_inside_does_not_exist(root: Path, roots: Roots) -> None:
    (root / "dangling").symlink_to("sub/gone.txt")
    refused(ErrorCode.NOT_FOUND, roots.open_file, "dangling")
    with roots.open_parent("dangling") as parent:
        assert (parent.path, parent.name) == (f"{root}/sub/gone.txt", "gone.txt")
        assert parent.status is None


def test_links_in_a_circle_are_told(root: Path, roots: Roots) -> None:
    (root / "self").symlink_to("self")
    (root / "one").symlink_to("sub/two")
    (root / "sub" / "two").symlink_to("../one")
    (root / "grow").symlink_to("grow/grow")
    for text in ("self", "self/x", "one", "sub/two/x", "grow"):
        for way_in in ways_in(roots):
            error = refused(ErrorCode.NOT_FOUND, way_in, text)
            assert "circle" in error.message


@pytest.mark.parametrize(
    "text", ["", "a\0b", "~\0", "\ud800", "n" * 300, "sub/" + "n" * 300 + "/x", "x/" * 20_000]
)
def test_what_cannot_be_a_path_is_refused(roots: Roots, text: str) -> None:
    for way_in in ways_in(roots):
        error = refused(ErrorCode.INVALID_PARAMS, way_in, text)
        str(error).encode()


def test_dots_above_a_missing_name_take_it_away(roots: Roots) -> None:
    for text in ("gone/../a.txt", "gone/far/../../a.txt", "a.txt/../a.txt", "../../" * 30 + "x"):
        if text.endswith("x"):
            refused(ErrorCode.OUTSIDE_ROOTS, roots.open_file, text)
        else:
            assert read(roots.open_file(text)) == b"inside"


def test_a_path_longer_than_the_system_takes_is_walked(root: Path, roots: Roots) -> None:
    name = "d" * 250
    with roots.open_parent("/".join([name] * 20 + ["f.txt"]), create=True) as parent:
        assert len(parent.path) > 4096
        with Held(os.open("f.txt", os.O_CREAT | os.O_WRONLY, dir_fd=parent.fd)) as held:
            os.write(held.fd, b"deep")
        os.symlink("f.txt", "link", dir_fd=parent.fd)
        path = parent.path
    assert read(roots.open_file(path)) == b"deep"
    with roots.open_file(path.removesuffix("f.txt") + "link") as opened:
        assert opened.path == path
    error = refused(ErrorCode.NOT_FOUND, roots.open_file, path + "x")
    assert "Nearest names" in error.hint


def test_a_path_with_thousands_of_dots_ends(roots: Roots) -> None:
    assert read(roots.open_file("sub/../" * 2000 + "a.txt")) == b"inside"
    refused(ErrorCode.OUTSIDE_ROOTS, roots.open_file, "../" * 5000 + "a.txt")


def test_names_of_255_bytes_are_files_like_others(root: Path, roots: Roots) -> None:
    for name in ("n" * 255, "é" * 127):
        (root / name).write_text("long")
        assert read(roots.open_file(name)) == b"long"


AS_ORDINARY_USER = """
import os, sys
from toolroll.errors import ToolError
from toolroll.paths import Roots
import difflib
roots = Roots([sys.argv[1]])
if os.geteuid() == 0:
    os.setgroups([]); os.setgid(65534); os.setuid(65534)
for way, text in (word.split(":") for word in sys.argv[2:]):
    try:
        with getattr(roots, way)(text) as held:
            print("ok")
    except ToolError as error:
        print(error.code)
"""


def test_what_the_user_may_not_read_is_said(root: Path) -> None:
    for folder in ("closed", "blind", "fixed"):
        (root / folder).mkdir()
        (root / folder / "f").write_text("text")
    (root / "unreadable").write_text("text")
    modes = {"": 0o755, "unreadable": 0, "closed": 0, "blind": 0o311, "fixed": 0o555}
    for name, mode in modes.items():
        (root / name).chmod(mode)
    expected = {
        "open_file:a.txt": "ok",
        "open_file:unreadable": "PERMISSION_DENIED",
        "open_any:unreadable": "PERMISSION_DENIED",
        "open_directory:closed": "PERMISSION_DENIED",
        "open_file:closed/f": "PERMISSION_DENIED",
        "open_file:closed/missing": "PERMISSION_DENIED",
        "open_parent:closed/f": "PERMISSION_DENIED",
        "open_file:blind/f": "ok",
        "open_file:blind/missing": "NOT_FOUND",
        "open_directory:blind": "PERMISSION_DENIED",
        "open_file:fixed/f": "ok",
    }
    command = [sys.executable, "-c", AS_ORDINARY_USER, str(root), *expected]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    for name in modes:
        (root / name).chmod(0o700)
    assert done.stderr == ""
    assert dict(zip(expected, done.stdout.split(), strict=True)) == expected


# Where files are written


def test_the_parent_of_an_existing_and_of_a_new_file(root: Path, roots: Roots) -> None:
    with roots.open_parent("sub/b.txt") as parent:
        assert (parent.path, parent.name) == (f"{root}/sub/b.txt", "b.txt")
        assert parent.status is not None
        assert parent.status.st_ino == (root / "sub" / "b.txt").stat().st_ino
        assert os.fstat(parent.fd).st_ino == (root / "sub").stat().st_ino
        os.fsync(parent.fd)
    with roots.open_parent("new.txt") as parent:
        assert (parent.path, parent.status) == (f"{root}/new.txt", None)


def test_the_parent_of_a_link_is_that_of_its_target(root: Path, roots: Roots) -> None:
    (root / "link").symlink_to("sub/b.txt")
    with roots.open_parent("link") as parent:
        assert parent.path == f"{root}/sub/b.txt"


def test_missing_directories_are_made_only_when_asked(root: Path, roots: Roots) -> None:
    refused(ErrorCode.NOT_FOUND, roots.open_parent, "new/er/f.txt")
    assert not (root / "new").exists()
    (root / "way").symlink_to("sub")
    with roots.open_parent("way/new/er/f.txt", create=True) as parent:
        assert parent.path == f"{root}/sub/new/er/f.txt"
        assert os.fstat(parent.fd).st_ino == (root / "sub" / "new" / "er").stat().st_ino
    umask = os.umask(0)
    os.umask(umask)
    assert stat.S_IMODE((root / "sub" / "new").stat().st_mode) & 0o777 == 0o777 & ~umask


def test_nothing_is_made_for_a_path_that_is_refused(root: Path, roots: Roots) -> None:
    (root / "out").symlink_to("../outside")
    for text, code in {
        "../outside/new/f": ErrorCode.OUTSIDE_ROOTS,
        "out/new/f": ErrorCode.OUTSIDE_ROOTS,
        "new/f/": ErrorCode.NOT_A_FILE,
        "new/" + "n" * 300: ErrorCode.INVALID_PARAMS,
        "a.txt/new/f": ErrorCode.NOT_A_DIRECTORY,
    }.items():
        refused(code, roots.open_parent, text, True)
    assert not (root / "new").exists()
    assert os.listdir(root.parent / "outside") == ["secret.txt"]


def test_read_only_folders_are_read_and_never_written(place: Path) -> None:
    roots = Roots([str(place / "root")], read_only=[str(place / "outside")])
    assert roots.folders == (str(place / "root"),)
    assert read(roots.open_file(f"{place}/outside/secret.txt")) == b"secret"
    assert names_in(roots.open_directory(f"{place}/outside")) == {"secret.txt"}
    for text in (f"{place}/outside/secret.txt", "../outside/new/f"):
        error = refused(ErrorCode.PERMISSION_DENIED, roots.open_parent, text, True)
        assert "not written" in error.message


def test_a_read_only_folder_inside_a_root_stays_read_only(root: Path) -> None:
    roots = Roots([str(root)], read_only=[str(root / "sub")])
    assert read(roots.open_file("sub/b.txt")) == b"inside b"
    refused(ErrorCode.PERMISSION_DENIED, roots.open_parent, "sub/b.txt")
    (root / "link").symlink_to("sub/b.txt")
    refused(ErrorCode.PERMISSION_DENIED, roots.open_parent, "link")


def test_a_read_only_folder_counts_from_the_moment_it_exists(place: Path) -> None:
    later = place / "later"
    roots = Roots([str(place / "root")], read_only=[str(later)])
    error = refused(ErrorCode.NOT_FOUND, roots.open_file, f"{later}/f")
    assert error.hint == ""
    later.mkdir()
    (later / "f").write_text("saved")
    assert read(roots.open_file(f"{later}/f")) == b"saved"
    (later / "f").unlink()
    later.rmdir()
    later.symlink_to("outside")
    refused(ErrorCode.NOT_A_DIRECTORY, roots.open_file, f"{later}/secret.txt")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give a folder away")
def test_a_read_only_folder_of_another_user_is_refused(place: Path) -> None:
    os.chown(place / "outside", 65534, -1)
    roots = Roots([str(place / "root")], read_only=[str(place / "outside")])
    refused(ErrorCode.PERMISSION_DENIED, roots.open_file, f"{place}/outside/secret.txt")


def test_a_root_that_was_removed_and_made_again_is_found_again(place: Path) -> None:
    roots = Roots([str(place / "root")])
    shutil.rmtree(place / "root")
    (place / "root").mkdir()
    (place / "root/new.txt").write_text("new")
    with roots.open_file("new.txt") as held:
        assert os.read(held.fd, 9) == b"new"


# Descriptors


def test_no_descriptor_is_left_open(root: Path, roots: Roots) -> None:
    (root / "link").symlink_to("sub")
    (root / "loop").symlink_to("loop")
    texts = ["a.txt", "link/b.txt", "sub", "loop", "none/x", "../x", "a.txt/x", "", "link/../.."]
    before = open_descriptors()
    for text in texts:
        for way_in in ways_in(roots):
            with contextlib.suppress(ToolError), way_in(text) as held:
                assert not os.get_inheritable(held.fd)
    assert open_descriptors() == before


# Names


def test_names_are_shown_as_they_are_unless_they_hide_something() -> None:
    for name, shown in (
        ("plain name.txt", "plain name.txt"),
        ("é日本\u3000👨\u200d👩", "é日本\u3000👨\u200d👩"),
        (r"back\slash", r"back\slash"),
        ("two\nlines", r"two\nlines"),
        ("\x1b[31m", r"\x1b[31m"),
        ("\x85", r"\u0085"),
        ("gpj\u202e.exe", r"gpj\u202e.exe"),
        ("\U000e0041", r"\U000e0041"),
        ("\udcff", r"\xff"),
        ("\ud800", r"\ud800"),
        ("a\\b\t", r"a\\b\t"),
        ("a\\b/c\t", r"a\b/c\t"),
    ):
        assert show(name) == shown


def test_a_shown_path_is_taken_back_for_files_directories_and_roots(place: Path) -> None:
    folder = os.fsencode(place) + b"/r\xff"
    os.makedirs(folder + b"/d\n\\n")
    with open(folder + b"/d\n\\n/f\x1b", "wb") as file:
        file.write(b"odd")
    roots = Roots([os.fsdecode(folder)])
    assert roots.first is not None
    for shown in (r"d\n\\n/f\x1b", show(roots.first) + r"/d\n\\n/f\x1b"):
        opened = roots.open_file(shown)
        assert os.fsencode(opened.path) == folder + b"/d\n\\n/f\x1b"
        assert show(opened.path) == show(roots.first) + r"/d\n\\n/f\x1b"
        assert read(opened) == b"odd"
    with roots.open_parent(r"d\n\\n/new", create=True) as parent:
        assert os.listdir(parent.fd) == ["f\x1b"]


def test_a_long_row_of_shown_names_is_taken_back(roots: Roots) -> None:
    with roots.open_parent("\n/" * 60 + "f", create=True) as parent:
        pass
    with roots.open_parent(r"\n/" * 60 + "f") as again:
        assert again.path == parent.path


def test_a_literal_name_comes_before_the_one_it_would_show(root: Path, roots: Roots) -> None:
    (root / "a\nb").write_text("newline")
    assert read(roots.open_file(r"a\nb")) == b"newline"
    (root / r"a\nb").write_text("backslash")
    assert read(roots.open_file(r"a\nb")) == b"backslash"
    with roots.open_parent(r"c\nd") as parent:
        assert parent.name == r"c\nd"


def test_escapes_are_taken_for_what_may_be_hidden_and_for_nothing_else(
    root: Path, roots: Roots
) -> None:
    (root / "a\u200db").write_text("joined")
    assert read(roots.open_file(r"a\u200db")) == b"joined"
    ordinary = (r"\x61.txt", r"\u0061.txt", r"sub\x2fb.txt", r"\x2e\x2e\x2fx", r"\x2e\x2e")
    for text in (*ordinary, r"a.txt\x00", r"\ud800", r"\U00110000", r"\q", "\\"):
        refused(ErrorCode.NOT_FOUND, roots.open_file, text)


ODD_BYTES = st.sampled_from(list(b"\\nxu0aef\n\x1b\xff\xc3\xa9\xe2\x80\xae\x85"))
ANY_NAME = st.one_of(st.lists(ODD_BYTES, max_size=40).map(bytes), st.binary(max_size=255)).filter(
    lambda name: name not in (b"", b".", b"..") and not {0, 0x2F} & set(name)
)


@pytest.fixture(scope="module")
def names(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("names").resolve()


@settings(deadline=None, max_examples=200)
@given(ANY_NAME)
@example(b"\xff" * 255)
@example("\u202e\\u202e".encode())
@example(b"\xed\xb3\xbf")
@pytest.mark.skipif(sys.platform == "darwin", reason="names are UTF-8 there")
def test_any_name_is_shown_safely_and_opens_the_same_file(names: Path, name: bytes) -> None:
    path = os.fsencode(names) + b"/" + name
    with open(path, "wb") as file:
        file.write(b"this one")
    try:
        shown = show(os.fsdecode(name))
        assert not set(shown.encode().decode()) & set("\n\r\x1b\x7f\x85\u202e\u2066\U000e0041")
        with Roots([str(names)]).open_file(f"{names}/{shown}") as opened:
            assert os.fsencode(opened.path) == path
            assert os.read(opened.fd, 100) == b"this one"
    finally:
        os.unlink(path)


# What the operator closed


@pytest.fixture
def closed(root: Path) -> Roots:
    (root / ".git" / "hooks").mkdir(parents=True)
    (root / ".git" / "hooks" / "pre-commit").write_text("secret")
    (root / "secrét.txt").write_text("secret")
    (root / "keys").mkdir()
    (root / "keys" / "id_rsa").write_text("secret")
    (root / "keys" / "id_rsb").write_text("open")
    (root / "link").symlink_to("keys/id_rsa")
    (root / "git").symlink_to(".git")
    return Roots([str(root)], deny=[".git/**", "secrét*", "id_rsa"])


@pytest.mark.parametrize(
    ("text", "pattern"),
    [
        (".git", ".git/**"),
        (".git/hooks/pre-commit", ".git/**"),
        ("git/hooks/pre-commit", ".git/**"),
        ("sub/.git/new", ".git/**"),
        ("keys/id_rsa", "id_rsa"),
        ("keys/../keys/id_rsa", "id_rsa"),
        ("link", "id_rsa"),
        ("secrét.txt", "secrét*"),
        ("secr\udcc3\udca9t.txt", "secrét*"),
        (r"secr\xc3\xa9t.txt", "secrét*"),
    ],
)
def test_what_is_denied_is_closed_by_every_way_and_method(
    closed: Roots, text: str, pattern: str
) -> None:
    for way_in in ways_in(closed):
        error = refused(ErrorCode.PERMISSION_DENIED, way_in, text)
        assert f"--deny {pattern}" in error.message


def test_what_is_not_denied_stays_open_and_denied_names_are_not_told(
    root: Path, closed: Roots
) -> None:
    assert read(closed.open_file("keys/id_rsb")) == b"open"
    error = refused(ErrorCode.NOT_FOUND, closed.open_file, "keys/id_rsc")
    assert error.hint == f"Nearest names in '{root}/keys': 'id_rsb'."
    assert closed.denied(f"{root}/keys/id_rsa") == "id_rsa"
    assert closed.denied(f"{root}/keys/id_rsb") is None


def test_nothing_is_made_below_what_is_denied(root: Path, closed: Roots) -> None:
    text = ".git/new/folder/f"
    refused(ErrorCode.PERMISSION_DENIED, closed.open_parent, text, True)
    assert not (root / ".git" / "new").exists()


def test_a_denied_path_from_the_top_is_meant_from_either_top(place: Path) -> None:
    for pattern in ("/sub", f"{place}/root/sub", "sub/", "/s*/**"):
        roots = Roots([str(place / "outside"), str(place / "root")], deny=[pattern])
        refused(ErrorCode.PERMISSION_DENIED, roots.open_directory, "../root/sub")
        refused(ErrorCode.PERMISSION_DENIED, roots.open_parent, "../root/sub/new/f", True)
        assert read(roots.open_file("../root/a.txt")) == b"inside"


def test_names_are_folded_where_the_file_system_folds_them(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (root / "KEY.pem").write_text("secret")
    roots = Roots([str(root)], deny=["*.PEM", "caf\u00e9"])
    assert read(roots.open_file("KEY.pem")) == b"secret"
    monkeypatch.setattr(paths, "FOLDS_NAMES", True)
    roots = Roots([str(root)], deny=["*.PEM", "caf\u00e9"])
    refused(ErrorCode.PERMISSION_DENIED, roots.open_file, "KEY.pem")
    refused(ErrorCode.PERMISSION_DENIED, roots.open_file, "Cafe\u0301")


# The price at the start


def test_importing_paths_loads_nothing_slow() -> None:
    script = "import sys, toolroll.paths; print(*sys.modules)"
    command = [sys.executable, "-S", "-c", script]
    environment = {**os.environ, "PYTHONPATH": os.path.dirname(os.path.dirname(paths.__file__))}
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, env=environment, check=True
    )
    loaded = set(done.stdout.split())
    assert "toolroll.paths" in loaded
    assert not loaded & {"re", "typing", "difflib", "ctypes", "pathlib", "select", "toolroll.globs"}
