"""LS: what it lists, in which order, what it says of the rest, and what it never shows."""

import contextlib
import os
import re
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.call import Call
from toolroll.errors import ErrorCode
from toolroll.status import iso_time
from toolroll.tool import Outcome
from toolroll_ls.tool import ls
from toolroll_ls.tree import BATCH_ENTRIES, Entry, Folder, first, readable, share

if TYPE_CHECKING:
    from tests.conftest import Wire

MakeCall = Callable[..., Call]
Ask = Callable[..., Outcome]
Listed = Callable[..., Outcome]


@pytest.fixture(autouse=True)
def no_git_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "root"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def listed(folder: Path, make_call: MakeCall, answer: Ask) -> Listed:
    """`listed(**arguments)`: LS of the folder, which is the only root."""

    def ask(path: str = ".", **arguments: Any) -> Outcome:
        return answer(ls, make_call(folder), path=path, **arguments)

    return ask


def fill(folder: Path, *names: str) -> None:
    """Make each of `names`: a directory where it ends in a slash, else an empty file."""
    for name in names:
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()


def names_in(outcome: Outcome) -> list[str]:
    """The first word of each line but the facts."""
    assert not outcome.failed, outcome.text
    lines = outcome.text.split("\n")
    return [line.split("  ")[0] for line in lines if not line.startswith("[")]


def facts_of(outcome: Outcome) -> str:
    last = outcome.text.split("\n")[-1]
    return last if last.startswith("[") else ""


# One level


def test_directories_come_first_and_both_are_in_natural_order(folder: Path, listed: Listed) -> None:
    fill(folder, "b10/", "b9/", "B1/", "a10", "a2", "A1", "a2b", ".hidden", ".config/", "zoë")
    assert names_in(listed()) == [
        *(".config/", "B1/", "b9/", "b10/"),
        *(".hidden", "A1", "a2", "a2b", "a10", "zoë"),
    ]


def test_the_whole_answer_is_its_lines_when_nothing_is_left_out(
    folder: Path, listed: Listed
) -> None:
    fill(folder, "src/")
    (folder / "README.md").write_bytes(b"x" * 1234)
    (folder / "logo.png").write_bytes(b"x" * 12_345)
    assert listed().text == "src/\nlogo.png  12.3 kB\nREADME.md  1234 B"


@pytest.mark.parametrize(
    ("size", "text"),
    [
        (0, "0 B"),
        (9_999, "9999 B"),
        (10_000, "10 kB"),
        (12_345, "12.3 kB"),
        (999_499, "999 kB"),
        (999_500, "1 MB"),
        (1_000_000_000, "1 GB"),
        (2**63 - 1, "9.22 EB"),
    ],
)
def test_sizes_are_exact_below_ten_kilobytes_and_short_above(size: int, text: str) -> None:
    assert readable(size) == text


def test_an_empty_directory_says_so(listed: Listed) -> None:
    assert listed().text == "(empty)"


def test_a_directory_is_named_in_any_way_a_path_can_be(folder: Path, listed: Listed) -> None:
    fill(folder, "sub/deep/file")
    (folder / "way").symlink_to("sub")
    for path in ("sub/deep", "./sub/deep/", f"{folder}/sub/deep", "sub/../sub/deep", "way/deep"):
        assert names_in(listed(path)) == ["file"]


def test_fifos_sockets_and_devices_are_named_as_such(
    folder: Path, listed: Listed, make_call: MakeCall, answer: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(folder / "pipe")
    monkeypatch.chdir(folder)  # a socket's address is short
    with socket.socket(socket.AF_UNIX) as server:
        server.bind("door")
    assert listed().text == "door  (socket)\npipe  (fifo)"
    devices = answer(ls, make_call("/dev"), path="/dev", limit=10_000).text.split("\n")
    assert "null  (character device)" in devices


def test_links_show_their_target_and_whether_it_is_a_directory(
    folder: Path, listed: Listed
) -> None:
    fill(folder, "sub/file")
    (folder / "to_file").symlink_to("sub/file")
    (folder / "to_folder").symlink_to(folder / "sub")
    (folder / "to_root").symlink_to(folder)
    (folder / "sub" / "up").symlink_to("../")
    assert listed().text.split("\n")[1:] == [
        "to_file -> sub/file",
        f"to_folder -> {folder}/sub/",
        f"to_root -> {folder}/",
    ]
    assert "up -> ../" in listed("sub").text.split("\n")


def test_links_that_lead_nowhere_are_called_broken(folder: Path, listed: Listed) -> None:
    fill(folder, "file")
    (folder / "gone").symlink_to("nothing")
    (folder / "loop").symlink_to("loop")
    (folder / "ping").symlink_to("pong")
    (folder / "pong").symlink_to("ping")
    (folder / "through").symlink_to("file/below")
    assert listed().text.split("\n")[1:] == [
        "gone -> nothing  (broken)",
        "loop -> loop  (broken)",
        "ping -> pong  (broken)",
        "pong -> ping  (broken)",
        "through -> file/below  (broken)",
    ]


def test_nothing_but_that_is_said_of_a_link_that_leads_outside(
    folder: Path, listed: Listed
) -> None:
    (folder.parent / "there").touch()
    for name in ("there", "not_there"):
        (folder / name).symlink_to(f"../{name}")
    assert listed().text.split("\n") == [
        "not_there -> ../not_there  (outside the roots)",
        "there -> ../there  (outside the roots)",
    ]


HOSTILE = [
    b"two\nlines",
    b"esc\x1b[31mred",
    b"not\xffutf8",
    b"back\\slash",
    b"real\\n and\n",
    b"\xe2\x80\xaebidi",
    b"tab\tand\rreturn",
    b"[truncated: 1 of 2]",
    b" blanks ",
    b"  2 B",
    b"-rf",
    b"~",
    b"n" * 255,
]


def test_one_entry_is_one_line_whatever_its_name(folder: Path, listed: Listed) -> None:
    for name in HOSTILE:
        (folder / os.fsdecode(name)).touch()
    lines = listed().text.split("\n")
    assert len(lines) == len(HOSTILE)
    assert all(line.endswith("  0 B") and line.isprintable() for line in lines)
    assert r"two\nlines  0 B" in lines
    assert r"not\xffutf8  0 B" in lines
    assert "' blanks '  0 B" in lines


def test_a_path_as_listed_can_be_listed_itself(folder: Path, listed: Listed) -> None:
    for name in HOSTILE:
        inside = folder / os.fsdecode(name)
        inside.mkdir()
        (inside / "found").touch()
    paths = [entry["path"] for entry in listed().structured["results"]]
    assert len(paths) == len(HOSTILE)
    for path in paths:
        if path != "~":  # the shell's word for the home directory
            assert names_in(listed(path)) == ["found"], path


def test_a_path_longer_than_the_system_takes_is_listed(folder: Path, listed: Listed) -> None:
    fd = os.open(folder, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=fd)
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = inner
    os.mkdir("end", dir_fd=fd)
    os.symlink("end", "link", dir_fd=fd)
    os.close(fd)
    path = "/".join(["d" * 250] * 20)
    assert listed(path, depth=2).text == "end/  (empty)\nlink -> end"


# What is asked wrongly


def test_a_file_is_refused_with_the_tool_to_use(folder: Path, listed: Listed) -> None:
    fill(folder, "file")
    outcome = listed("file")
    assert outcome.code == ErrorCode.NOT_A_DIRECTORY
    assert "View" in outcome.text


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"path": "nothing"}, ErrorCode.NOT_FOUND),
        ({"path": ".."}, ErrorCode.OUTSIDE_ROOTS),
        ({"path": "/"}, ErrorCode.OUTSIDE_ROOTS),
        ({"path": ""}, ErrorCode.INVALID_PARAMS),
        ({"depth": 0}, ErrorCode.INVALID_PARAMS),
        ({"depth": 6}, ErrorCode.INVALID_PARAMS),
        ({"limit": 0}, ErrorCode.INVALID_PARAMS),
        ({"ignore": [1]}, ErrorCode.INVALID_PARAMS),
        ({"ignore": "{" * 5000}, ErrorCode.INVALID_PARAMS),
    ],
)
def test_what_cannot_be_is_refused(listed: Listed, arguments: dict[str, Any], code: str) -> None:
    assert listed(**arguments).code == code


def test_unknown_parameters_are_told_and_do_no_harm(folder: Path, listed: Listed) -> None:
    fill(folder, "file")
    assert listed(recursive=True).text == "file  0 B\n[Ignored: 'recursive']"


# Several levels


def test_depth_shows_a_tree_with_what_is_empty_and_stops_there(
    folder: Path, listed: Listed
) -> None:
    fill(folder, "a/b/c/d/e/f/g", "a/x2", "a/x10", "empty/", "top")
    tree = "a/\n  b/\n  x2  0 B\n  x10  0 B\nempty/  (empty)\ntop  0 B"
    assert listed(depth=2).text == tree
    deepest = listed(depth=5).text.split("\n")
    assert "        e/" in deepest
    assert not any("f/" in line for line in deepest)


def test_linked_directories_are_not_entered(folder: Path, listed: Listed) -> None:
    fill(folder, "sub/file")
    (folder / "sub" / "up").symlink_to("..")
    (folder / "way").symlink_to("sub")
    assert listed(depth=5).text == "sub/\n  file  0 B\n  up -> ../\nway -> sub/"


def test_folders_of_one_level_share_what_the_levels_above_leave(
    folder: Path, listed: Listed
) -> None:
    fill(folder, *(f"big/{n}" for n in range(200)), *(f"large/{n}" for n in range(100)))
    fill(folder, "small/one", "small/two", "file")
    outcome = listed(depth=2, limit=14)
    assert outcome.text.split("\n") == [
        "big/",
        *(f"  {n}  0 B" for n in range(4)),
        "  … 196 more",
        "large/",
        *(f"  {n}  0 B" for n in range(4)),
        "  … 96 more",
        "small/",
        "  one  0 B",
        "  two  0 B",
        "file  0 B",
        "[truncated: 14 of 306 entries (limit 14)]",
    ]


def test_a_folder_that_gets_nothing_of_the_limit_still_says_how_much_it_holds(
    folder: Path, listed: Listed
) -> None:
    fill(folder, "a/1", "a/2", "b/1", "c")
    assert listed(depth=3, limit=3).text.split("\n") == [
        *("a/", "  … 2 more", "b/", "  … 1 more", "c  0 B"),
        "[truncated: 3 of 6 entries (limit 3)]",
    ]


@given(st.lists(st.integers(0, 30), max_size=8), st.integers(0, 100))
@settings(deadline=None)
def test_a_share_is_fair_and_wastes_nothing(sizes: list[int], left: int) -> None:
    folders = []
    for size in sizes:
        one = Folder("")
        one.entries = [Entry(str(n), "file", "", None) for n in range(size)]
        folders.append(one)
    rest = share(folders, left)
    given_out = [one.shown for one in folders]
    assert rest == left - sum(given_out) >= 0
    assert rest == max(left - sum(sizes), 0)
    cut = [shown for shown, size in zip(given_out, sizes, strict=True) if shown < size]
    assert max(given_out, default=0) <= min(cut, default=1000) + 1


NAMES = st.lists(
    st.text(st.characters(exclude_characters="/\0", codec=None), min_size=1, max_size=12)
)


@given(NAMES, st.integers(0, 20))
@settings(deadline=None)
def test_the_first_names_are_the_beginning_of_all_in_order(names: list[str], most: int) -> None:
    everything = first(names, len(names), lambda: None)
    assert sorted(everything) == sorted(names)
    assert first(names, most, lambda: None) == everything[:most]


@given(st.text("aB-_.é/", max_size=3), st.integers(0, 10**30), st.integers(0, 10**30))
@settings(deadline=None)
def test_numbers_in_names_count_as_numbers(stem: str, one: int, other: int) -> None:
    stem = stem.replace("/", "")
    small, large = sorted((one, other))
    names = [f"{stem}{large}.txt", f"{stem.upper()}{small:04}.txt"]
    ordered = first(names, 2, lambda: None)
    assert [int(re.sub("[^0-9]", "", name)) for name in ordered] == [small, large]


# What git ignores


def test_folders_that_git_ignores_are_counted_and_not_entered(folder: Path, listed: Listed) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("node_modules/\n*.log\n")
    fill(folder, "node_modules/a/x", "node_modules/b", "src/node_modules/one", "src/m.py", "e.log")
    (folder / "src" / ".gitignore").write_text("!node_modules/\ngen\n")
    fill(folder, "src/gen/made.py")
    lines = listed(depth=3).text.split("\n")
    assert re.fullmatch(r"\.git/  \(ignored, \d+ entries\)", lines[0])
    assert lines[1:] == [
        "node_modules/  (ignored, 2 entries)",
        "src/",
        "  gen/  (ignored, 1 entry)",
        "  node_modules/",
        "    one  0 B",
        "  .gitignore  19 B",
        "  m.py  0 B",
        ".gitignore  20 B",
        "e.log  0 B",
    ]


def test_an_ignored_folder_is_listed_when_it_is_asked_for(folder: Path, listed: Listed) -> None:
    subprocess.run(["git", "init", "-q", folder], check=True)
    (folder / ".gitignore").write_text("build/\n")
    fill(folder, "build/lib/x")
    assert listed("build", depth=2).text == "lib/\n  x  0 B"
    assert listed().text == ".git/\nbuild/\n.gitignore  7 B"


# What the model leaves out


@pytest.mark.parametrize(
    "arguments",
    [
        {"ignore": ["*.pyc", "/dist", "docs/*.txt"]},
        {"ignore": '["*.pyc", "/dist", "docs/*.txt"]'},
        {"ignore_pattern": ["*.pyc", "/dist", "docs/*.txt"]},
        {"ignore": "{*.pyc,/dist,docs/*.txt}"},
    ],
)
def test_globs_leave_entries_out_and_say_how_many(
    folder: Path, listed: Listed, arguments: dict[str, Any]
) -> None:
    fill(folder, "a.pyc", "dist/inner", "docs/n.txt", "docs/dist", "docs/x.pyc", "n.txt")
    outcome = listed(depth=2, **arguments)
    assert names_in(outcome) == ["docs/", "", "n.txt"]
    assert outcome.text.split("\n")[1] == "  dist  0 B"
    assert facts_of(outcome) == "[skipped: 4 by 'ignore']"
    assert outcome.structured["skipped"] == {"by 'ignore'": 4}


def test_a_single_glob_may_come_as_a_plain_text(folder: Path, listed: Listed) -> None:
    fill(folder, "a.pyc", "b.py")
    assert listed(ignore="*.pyc").text == "b.py  0 B\n[skipped: 1 by 'ignore']"


def test_a_directory_is_not_called_empty_when_all_of_it_was_left_out(
    folder: Path, listed: Listed
) -> None:
    fill(folder, "sub/a.o", "b.o")
    assert listed(depth=2, ignore="*.o").text == "sub/  (1 left out)\n[skipped: 2 by 'ignore']"
    assert listed(ignore="*").text == "(2 left out)\n[skipped: 2 by 'ignore']"


def test_places_closed_by_the_operator_are_not_shown(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "open/key.pem", "open/file", "vault/gold", "top.pem")
    (folder / "way").symlink_to("vault")
    (folder / "hole").symlink_to("vault/nothing")
    call = make_call(folder, deny=["*.pem", "vault/**"])
    outcome = answer(ls, call, path=".", depth=3)
    assert outcome.text.split("\n") == [
        *("open/", "  file  0 B"),
        "hole -> vault/nothing  (closed by --deny)",
        "way -> vault  (closed by --deny)",
        "[skipped: 3 closed by --deny]",
    ]


# Much, and too long


def test_a_big_folder_is_cut_at_the_limit_and_counted(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "file0", "sub/")
    for n in range(1, 5000):
        (folder / f"file{n}").hardlink_to(folder / "file0")
    told: list[float] = []
    call = make_call(folder, report=lambda done, *_: told.append(done))
    outcome = answer(ls, call, path=".")
    assert names_in(outcome) == ["sub/", *(f"file{n}" for n in range(199)), "… 4801 more"]
    assert facts_of(outcome) == "[truncated: 200 of 5001 entries (limit 200)]"
    assert outcome.structured["truncated"] is True
    assert outcome.structured["total"] == 5001
    assert told == [BATCH_ENTRIES * n for n in range(1, 5)]


def test_the_output_limit_shows_fewer_entries_and_cuts_no_line(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, *(f"{'long' * 10}{n}" for n in range(300)), *(f"sub/{n}" for n in range(300)))
    outcome = answer(ls, make_call(folder, max_output=2000), path=".", depth=2, limit=500)
    *lines, last = outcome.text.split("\n")
    assert len("\n".join(lines)) <= 2000
    assert "[truncated: " in last
    assert "of 601 entries (2000 characters)]" in last
    assert lines[:2] == ["sub/", "  … 300 more"]
    shown = len(outcome.structured["results"])
    assert f"… {301 - shown} more" == lines[-1]
    assert f"[truncated: {shown} of" in last


def test_when_time_runs_out_the_answer_says_so(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "file")
    outcome = answer(ls, make_call(folder, deadline_s=0), path=".", depth=2)
    assert outcome.text == "(not read)\n[incomplete: time ran out before everything was read]"
    assert outcome.structured["incomplete"] is True


def test_a_cancelled_call_stops(folder: Path, make_call: MakeCall, answer: Ask) -> None:
    call = make_call(folder)
    call.cancel()
    assert answer(ls, call, path=".").code == ErrorCode.CANCELLED


# What cannot be read, and what changes meanwhile


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Without root's right to read everything; files are opened by descriptor from before."""
    if os.geteuid():
        yield
        return
    try:
        os.seteuid(65534)
    except OSError as error:
        pytest.skip(f"root may not become another user here: {error}")
    try:
        yield
    finally:
        os.seteuid(0)


def test_unreadable_folders_are_said_and_the_rest_goes_on(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "closed/x", "open/y", "names_only/z/")
    call = make_call(folder)
    answer(ls, call, path=".", depth=3)  # modules are imported while they can be
    modes = {"closed": 0o000, "open": 0o755, "names_only": 0o444}
    for name, mode in modes.items():
        (folder / name).chmod(mode)
    try:
        with as_nobody():
            outcome = answer(ls, call, path=".", depth=3)
            refused = answer(ls, call, path="closed")
    finally:
        for name in modes:
            (folder / name).chmod(0o755)
    assert outcome.text.split("\n") == [
        "closed/  (unreadable: permission denied)",
        "names_only/",
        "  z/  (unreadable: permission denied)",
        "open/",
        "  y  0 B",
        "[skipped: 2 unreadable]",
    ]
    assert {"path": "names_only/z", "type": "directory"} in outcome.structured["results"]
    assert refused.code == ErrorCode.PERMISSION_DENIED


@contextlib.contextmanager
def meanwhile(change: Callable[[], None]) -> Iterator[None]:
    """Repeat `change` in another thread until the block is over."""
    over = threading.Event()

    def repeat() -> None:
        while not over.is_set():
            change()

    thread = threading.Thread(target=repeat)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join(20)


def test_entries_that_vanish_meanwhile_are_passed_over(folder: Path, listed: Listed) -> None:
    fill(folder, "stays", "sub/stays")

    def come_and_go() -> None:
        fill(folder, "guest/room", "sub/guest")
        (folder / "guest" / "room").unlink()
        (folder / "guest").rmdir()
        (folder / "sub" / "guest").unlink()

    with meanwhile(come_and_go):
        for _ in range(200):
            lines = listed(depth=3).text.split("\n")
            assert {"sub/", "  stays  0 B", "stays  0 B"} <= set(lines)


def fill_a_batch(folder: Path) -> None:
    """Make so many entries that LS reports progress just when it has read them all."""
    fill(folder, "0")
    for n in range(1, BATCH_ENTRIES):
        (folder / str(n)).hardlink_to(folder / "0")


def test_an_entry_that_vanishes_after_it_was_read_is_passed_over(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill_a_batch(folder)
    call = make_call(folder, report=lambda *_: (folder / "7").unlink())
    names = names_in(answer(ls, call, path=".", limit=10))
    assert names == [*"012345689", f"… {BATCH_ENTRIES - 10} more"]


def test_a_folder_that_vanishes_before_it_is_entered_is_passed_over(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill_a_batch(folder / "a")
    fill(folder, "b/", "c/")
    call = make_call(folder, report=lambda *_: (folder / "b").rmdir())
    lines = answer(ls, call, path=".", depth=2, limit=4).text.split("\n")
    assert lines[:4] == ["a/", "  0  0 B", f"  … {BATCH_ENTRIES - 1} more", "c/  (empty)"]


def test_a_folder_that_became_a_link_to_outside_is_not_entered(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    outside = folder.parent / "outside"
    fill(outside, "secret", "deep/secret")
    fill_a_batch(folder / "a")
    fill(folder, "door/deep/inside")

    def swap(*_: object) -> None:
        (folder / "door").rename(folder.parent / "gone")
        (folder / "door").symlink_to(outside)

    outcome = answer(ls, make_call(folder, report=swap), path=".", depth=3)
    assert (folder / "door").is_symlink()
    assert "secret" not in outcome.text
    assert "door" not in outcome.text


def test_nothing_outside_is_shown_while_links_are_swapped_in_a_loop(
    folder: Path, listed: Listed
) -> None:
    outside = folder.parent / "outside"
    fill(outside, "secret")
    fill(folder, "door/inside")

    def swap() -> None:
        (folder / "door").rename(folder / "kept")
        (folder / "door").symlink_to(outside)
        (folder / "door").unlink()
        (folder / "kept").rename(folder / "door")

    with meanwhile(swap):
        for _ in range(200):
            assert "secret" not in listed(depth=3).text
            assert "secret" not in listed("door").text


# The structured form


def test_the_structured_form_says_all_of_each_entry(folder: Path, listed: Listed) -> None:
    fill(folder, "sub/file")
    (folder / "sub" / "file").write_text("12345")
    (folder / "sub" / "file").chmod(0o640)
    os.utime(folder / "sub" / "file", (0, 1_700_000_000))
    (folder / "sub" / "link").symlink_to("file")
    structured = listed("./sub/").structured
    assert structured["results"][0] == {
        "path": "./sub/file",
        "type": "file",
        "size": 5,
        "modified": "2023-11-14T22:13:20Z",
        "permissions": "-rw-r-----",
    }
    assert structured["results"][1]["path"] == "./sub/link"
    assert structured["results"][1]["type"] == "link"
    assert structured["results"][1]["target"] == "file"
    assert set(structured) == {"results", "total"}


def test_the_structured_form_keeps_its_schema(folder: Path, listed: Listed) -> None:
    fill(folder, "a/b/c", *map(str, range(20)))
    (folder / "link").symlink_to("a")
    for arguments in ({}, {"depth": 5}, {"limit": 3}, {"ignore": "1*"}):
        jsonschema.validate(listed(**arguments).structured, ls.output_schema())


def test_paths_of_the_structured_form_lead_back(folder: Path, listed: Listed) -> None:
    fill(folder, "a/b/c/")
    for start in (".", "a", str(folder), "a/."):
        for entry in listed(start, depth=3).structured["results"]:
            assert not listed(entry["path"]).failed


def test_a_time_beyond_the_calendar_is_left_out() -> None:
    assert iso_time(0) == "1970-01-01T00:00:00Z"
    assert iso_time(-1) == "1969-12-31T23:59:59Z"
    assert iso_time(10**40) == ""


# The real process


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
def test_the_server_lists_in_both_eras(
    folder: Path, wire: "Callable[..., Wire]", revision: str
) -> None:
    fill(folder, "sub/two\nlines", "file")
    server = wire("toolroll_ls", "--root", folder).open(revision)
    (tool,) = server.request("tools/list")["result"]["tools"]
    assert tool["name"] == "LS"
    assert tool["inputSchema"]["required"] == ["path"]
    assert tool["annotations"]["readOnlyHint"] is True
    result = server.call("LS", path=".", depth=2)
    tree = "sub/\n  two\\nlines  0 B\nfile  0 B"
    assert result["content"] == [{"type": "text", "text": tree}]
    assert "structuredContent" not in result
    failed = server.call("LS", path="nothing")
    assert failed["isError"] is True
    assert failed["content"][0]["text"].startswith("Error [NOT_FOUND]: 'nothing' does not exist")
    assert failed["_meta"]["toolroll/code"] == "NOT_FOUND"
    assert server.close() == 0


def test_the_server_adds_the_structured_form_when_it_is_asked_to(
    folder: Path, wire: "Callable[..., Wire]"
) -> None:
    fill(folder, "file")
    server = wire("toolroll_ls", "--structured", folder=folder).open()
    result = server.call("LS", path=".")
    assert result["content"][0]["text"] == "file  0 B"
    assert result["structuredContent"]["results"][0]["path"] == "file"


def test_a_call_from_the_command_line_prints_the_listing(folder: Path) -> None:
    fill(folder, "a.py", "b.pyc")
    command = [sys.executable, "-m", "toolroll_ls", "--call", "path=.", "ignore=*.pyc"]
    done = subprocess.run(
        command, check=True, capture_output=True, text=True, timeout=60, cwd=folder
    )
    assert done.stdout == "a.py  0 B\n[skipped: 1 by 'ignore']\n"
    assert done.stderr == ""


# The declaration


def test_what_the_model_reads_is_short() -> None:
    assert len(ls.description) < 300
    assert sum(len(one.schema["description"]) for one in ls.parameters) < 250
