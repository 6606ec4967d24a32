"""The walk lists what git and ripgrep would list, whatever the tree looks like."""

import os
import resource
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import open_descriptors
from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.listing import BATCH_ENTRIES, Listings
from toolroll.paths import Roots
from toolroll.walk import OPEN_LEVELS, Rules, Sieve, Skipped, git_settings, walk


@pytest.fixture(autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home of its own, so that no configuration of this machine counts."""
    folder = tmp_path_factory.mktemp("home")
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(folder / "xdg"))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    return folder


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    git(tmp_path, "init", "--quiet")
    return tmp_path


def git(top: Path, *words: str) -> bytes:
    return subprocess.run(
        ["git", *words], cwd=top, capture_output=True, timeout=60, check=True
    ).stdout


def grow(top: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        path = top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)


@contextmanager
def opened(top: Path) -> Iterator[int]:
    fd = os.open(top, os.O_RDONLY | os.O_DIRECTORY)
    try:
        yield fd
    finally:
        os.close(fd)


def listed(
    top: Path,
    skipped: Skipped | None = None,
    *,
    hidden: bool = False,
    no_ignore: bool = False,
    no_ignore_vcs: bool = False,
) -> set[str]:
    rules = Rules.at(str(top), no_ignore=no_ignore, no_ignore_vcs=no_ignore_vcs)
    sieve = Sieve(skipped or Skipped(), hidden=hidden)
    with opened(top) as fd:
        return {
            path + name for path, _, files in walk(fd, rules, sieve, Listings()) for name in files
        }


def as_git_lists(top: Path) -> set[str]:
    names = git(top, "ls-files", "--cached", "--others", "--exclude-standard", "-z").split(b"\0")
    return {os.fsdecode(name) for name in names if name}


def as_we_list(top: Path) -> set[str]:
    sieve = Sieve(Skipped(), hidden=True, prune=lambda path: path == ".git")
    with opened(top) as fd:
        folders = walk(fd, Rules.at(str(top)), sieve, Listings())
        return {path + name for path, _, files in folders for name in files}


# ---- which rules count ----


def test_nested_rules_list_what_git_lists(repository: Path, home: Path) -> None:
    grow(
        repository,
        {
            ".gitignore": "*.o\n/build\n!keep.o\ndeep/**/x\n**/cache/\nlogs/*\n!logs/keep\n",
            "src/.gitignore": "!*.o\n/local\n",
            "src/sub/.gitignore": "*.o\n",
            ".git/info/exclude": "*.mine\n!forced.swp\n",
            "a.o": "",
            "keep.o": "",
            "build/keep.o": "",
            "src/a.o": "",
            "src/build/b": "",
            "src/local": "",
            "src/sub/a.o": "",
            "src/sub/local": "",
            "deep/x": "",
            "deep/a/b/x": "",
            "deep/a/cache/y": "",
            "logs/keep": "",
            "logs/other": "",
            "own.mine": "",
            "a.swp": "",
            "forced.swp": "",
            "grün": "",
            ".hidden/x": "",
        },
    )
    grow(home, {".gitconfig": "[core]\n  excludesFile = ~/ignored\n", "ignored": "*.swp\n"})
    assert as_we_list(repository) == as_git_lists(repository)
    assert "forced.swp" in listed(repository)
    assert "a.swp" not in listed(repository)


PIECES = ["a", "b", "ab", "*", "**", "?", "[ab]", "!", "/", "\\", " ", "**/", "/**", ".", "*.", "#"]
IGNORE_FILES = (".gitignore", "a/.gitignore", "a/b/.gitignore", ".git/info/exclude")
rules_text = st.lists(
    st.lists(st.sampled_from(PIECES), min_size=1, max_size=5).map("".join), max_size=4
).map("\n".join)


def grow_everywhere(top: Path, prefix: str = "", levels: int = 3) -> None:
    for place, name in enumerate(["a", "b", "ab", "a.b", ".a", "a b"]):
        if levels > 1 and place < 3:
            (top / prefix / name).mkdir()
            grow_everywhere(top, f"{prefix}{name}/", levels - 1)
        else:
            (top / prefix / name).touch()


@pytest.fixture(scope="module")
def grown(tmp_path_factory: pytest.TempPathFactory) -> Path:
    top = tmp_path_factory.mktemp("grown")
    git(top, "init", "--quiet")
    grow_everywhere(top)
    return top


@settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    written=st.fixed_dictionaries(dict.fromkeys(IGNORE_FILES, rules_text)),
    everywhere=rules_text,
)
def test_any_rules_in_all_places_list_what_git_lists(
    grown: Path, home: Path, written: dict[str, str], everywhere: str
) -> None:
    grow(grown, written)
    grow(home, {"xdg/git/ignore": everywhere})
    assert as_we_list(grown) == as_git_lists(grown)


def test_ignore_files_beat_git_and_deeper_ones_beat_those_above(repository: Path) -> None:
    grow(
        repository,
        {
            ".gitignore": "*.log\n*.tmp\n",
            ".ignore": "!a.log\n*.gen\n",
            "sub/.gitignore": "a.log\n!b.tmp\n",
            "sub/.ignore": "!b.gen\n",
            "a.log": "",
            "sub/a.log": "",
            "sub/b.tmp": "",
            "sub/a.gen": "",
            "sub/b.gen": "",
        },
    )
    assert listed(repository) == {"a.log", "sub/a.log", "sub/b.tmp", "sub/b.gen"}
    assert listed(repository, no_ignore_vcs=True) == {
        "a.log",
        "sub/a.log",
        "sub/b.tmp",
        "sub/b.gen",
    }
    assert "sub/a.gen" in listed(repository, no_ignore=True)


def test_without_git_rules_only_ignore_files_count(repository: Path) -> None:
    grow(repository, {".gitignore": "a\n", ".ignore": "b\n", "a": "", "b": "", "c": ""})
    assert listed(repository) == {"c"}
    assert listed(repository, no_ignore_vcs=True) == {"a", "c"}
    assert listed(repository, no_ignore=True) == {"a", "b", "c"}


def test_outside_a_repository_gitignore_means_nothing(tmp_path: Path, home: Path) -> None:
    grow(tmp_path, {".gitignore": "a\n", ".ignore": "b\n", "a": "", "b": "", "g": ""})
    grow(home, {"xdg/git/ignore": "g\n"})
    assert listed(tmp_path) == {"a", "g"}


def test_rules_above_the_start_count_up_to_the_repositorys_top(repository: Path) -> None:
    top = repository / "inner"
    grow(
        repository,
        {".gitignore": "*.up\nmid/x\n", ".ignore": "*.far\n", "inner/.gitignore": "/mid/y\n"},
    )
    grow(top / "mid", {"a.up": "", "x": "", "y": "", "z": "", "a.far": ""})
    assert listed(top / "mid") == {"x", "z"}  # `mid/x` is only the one at the top, as in git
    git(top, "init", "--quiet")
    assert listed(top / "mid") == {"a.up", "x", "z"}


def test_an_ignored_start_is_looked_into(repository: Path) -> None:
    grow(repository, {".gitignore": "vendor\n", "vendor/lib/a": "", "vendor/vendor/b": ""})
    assert listed(repository / "vendor") == {"lib/a"}


def test_a_nested_repository_starts_anew_for_git_only(repository: Path) -> None:
    grow(repository, {".gitignore": "*.o\n", ".ignore": "*.far\n", ".git/info/exclude": "mine\n"})
    grow(repository / "module", {"a.o": "", "a.far": "", "mine": "", "theirs": "", "b": ""})
    git(repository / "module", "init", "--quiet")
    grow(repository / "module", {".git/info/exclude": "theirs\n"})
    assert listed(repository) == {"module/a.o", "module/mine", "module/b"}


def test_a_work_tree_shares_the_excludes_of_its_repository(tmp_path: Path) -> None:
    main = tmp_path / "main"
    grow(main, {"committed": ""})
    git(main, "init", "--quiet")
    git(main, "add", "committed")
    who = ("-c", "user.name=n", "-c", "user.email=e@example.org")
    git(main, *who, "commit", "--quiet", "--message=m")
    git(main, "worktree", "add", "--quiet", "../side")
    grow(main, {".git/info/exclude": "mine\n"})
    side = tmp_path / "side"
    grow(side, {"mine": "", "other": ""})
    assert (side / ".git").is_file()
    assert listed(side) == as_git_lists(side) - {".git"} == {"committed", "other"}


def test_the_excludes_file_of_the_repository_beats_the_users(repository: Path, home: Path) -> None:
    grow(repository, {"u": "", "r": "", "x": "", "relative": "r\n"})
    grow(home, {"xdg/git/ignore": "x\n", "more": '[core]\n\texcludesfile = "~/user" ; mine\n'})
    grow(home, {"user": "u\n"})
    assert listed(repository) == {"u", "r", "relative"}
    grow(home, {".gitconfig": "[include]\npath = more\n"})
    assert listed(repository) == as_git_lists(repository) == {"r", "x", "relative"}
    git(repository, "config", "core.excludesFile", "relative")
    assert listed(repository) == as_git_lists(repository) == {"u", "x", "relative"}
    git(repository, "config", "core.excludesFile", "")
    assert listed(repository) == as_git_lists(repository) == {"u", "r", "x", "relative"}


def test_the_named_global_configuration_replaces_the_users(
    repository: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(repository, {"u": "", "g": ""})
    grow(home, {".gitconfig": "[core]\nexcludesFile = ~/user\n", "user": "u\n", "named": "g\n"})
    grow(home, {"config": "[core]\nexcludesFile = ~/named\n"})
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / "config"))
    assert listed(repository) == as_git_lists(repository) == {"u"}


@settings(
    deadline=None,
    max_examples=100,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@given(
    st.lists(
        st.sampled_from(
            [
                *(
                    "[core]\n",
                    '[Core "Sub x"]\n',
                    "[core] k = v\n",
                    "key = ",
                    "Key=",
                    "=",
                    "b",
                    " ",
                ),
                # no tab: git before 2.45 makes a blank of one inside a value, later ones keep it
                *("a b", '"', "\\\n", "\\n", "\\\\", '\\"', ";", "#c", "\n", "\r\n", "é"),
            ]
        ),
        max_size=12,
    ).map("".join)
)
@example("key = key = \\\n [core]\n")  # blanks that lead a continued line count
def test_a_configuration_that_git_takes_reads_as_git_reads_it(home: Path, text: str) -> None:
    (home / "tried").write_text("[s]\n" + text, newline="")
    words = ["git", "config", "--file", str(home / "tried"), "--list", "-z"]
    done = subprocess.run(words, capture_output=True, timeout=60, check=False)
    if done.returncode:
        return
    expected = [line.partition("\n") for line in done.stdout.decode().split("\0") if line]
    assert list(git_settings("[s]\n" + text)) == [(key, value) for key, _, value in expected]


def test_a_link_or_a_pipe_in_the_place_of_an_ignore_file_is_no_rule(repository: Path) -> None:
    grow(repository, {"rules": "a\n", "a": "", "sub/a": ""})
    (repository / ".gitignore").symlink_to("rules")
    os.mkfifo(repository / "sub" / ".gitignore")
    assert (
        listed(repository) == {"rules", "a", "sub/a"} == as_git_lists_without_specials(repository)
    )


def as_git_lists_without_specials(top: Path) -> set[str]:
    (top / "sub" / ".gitignore").unlink()
    return as_git_lists(top) - {".gitignore"}


def test_a_link_to_a_directory_is_not_one_to_a_rule(repository: Path) -> None:
    grow(repository, {".gitignore": "out/\n", "real/out/a": "", "real/b": ""})
    (repository / "out").symlink_to("real")
    skipped = Skipped()
    assert listed(repository, skipped) == {"real/b"}
    assert skipped.ignored == 1
    assert not Rules.at(str(repository)).ignores("out", False)


# ---- one directory at a time ----


def test_rules_are_entered_one_directory_at_a_time(repository: Path) -> None:
    grow(repository, {".gitignore": "/a/b/skip\n*.o\n", "a/.ignore": "x\n", "a/b/c": ""})
    rules = Rules.at(str(repository))
    assert rules.ignores("m.o", False)
    assert rules.verdict("m.c", False) is None
    with opened(repository / "a") as a, opened(repository / "a" / "b") as b:
        inner = rules.enter("a", a).enter("b", b, ["c"])
    assert inner.ignores("skip", True)
    assert inner.ignores("x", False)
    assert not rules.ignores("skip", True)


def test_a_child_without_ignore_files_shares_the_rules_of_its_parent(repository: Path) -> None:
    grow(repository, {".gitignore": "*.o\nbuild\n", "a/b": ""})
    rules = Rules.at(str(repository))
    with opened(repository / "a") as fd:
        assert rules.enter("a", fd) is rules


# ---- hidden, pruned, counted ----


def test_hidden_entries_are_left_out_unless_wanted_or_taken_in(repository: Path) -> None:
    grow(repository, {".x": "", ".d/y": "", ".github/z": "", "a": ""})
    skipped = Skipped()
    assert listed(repository, skipped) == {"a"}
    assert skipped.hidden == 4
    grow(repository, {".gitignore": "!.*\n.x\n"})
    assert listed(repository) == {"a", ".d/y", ".github/z", ".gitignore"}
    assert {".d/y", ".git/HEAD"} <= listed(repository, hidden=True)


def test_what_is_skipped_is_counted_once_an_entry(repository: Path) -> None:
    grow(repository, {".gitignore": "out/\n*.o\n.env\n", "out/a": "", "out/b": "", "m.o": ""})
    grow(repository, {"sub/n.o": "", "sub/.env": "", "sub/.x": "", "c": ""})
    skipped = Skipped()
    assert listed(repository, skipped) == {"c"}
    assert (skipped.ignored, skipped.hidden) == (4, 3)
    assert (skipped.unreadable, skipped.vanished, skipped.incomplete) == (0, 0, False)


def test_a_pruned_directory_is_not_entered(tmp_path: Path) -> None:
    grow(tmp_path, {"a/b/x": "", "a/c/y": "", "d/z": ""})
    asked = []

    def prune(path: str) -> bool:
        asked.append(path)
        return path == "a/b"

    with opened(tmp_path) as fd:
        sieve = Sieve(Skipped(), prune=prune)
        found = [path for path, *_ in walk(fd, Rules(), sieve, Listings())]
    assert sorted(found) == ["a/c/", "d/"]
    assert sorted(asked) == ["a", "a/b", "a/c", "d"]


# ---- the order, and two walks that meet ----


def test_a_directory_comes_before_its_folders_and_backwards_is_the_reverse(tmp_path: Path) -> None:
    grow(tmp_path, {"f": "", "a/f": "", "a/b/f": "", "a.b/f": "", "c/d/f": "", "e/f": ""})
    with opened(tmp_path) as fd:
        there = [path for path, *_ in walk(fd, Rules(), Sieve(Skipped()), Listings())]
        back = walk(fd, Rules(), Sieve(Skipped()), Listings(), backwards=True)
        assert [path for path, *_ in back] == there[::-1]
    assert there == ["", "a/", "a/b/", "a.b/", "c/d/", "e/"]


@pytest.mark.parametrize("most", range(9))
def test_two_walks_that_share_claims_show_and_count_everything_once(
    repository: Path, most: int
) -> None:
    grow(repository, {".gitignore": "*.o\n", "f": "", "a/f": "", "a/x.o": "", "a/b/f": ""})
    grow(repository, {"c/y.o": "", "c/d/f": "", "e/.h": "", "e/f": ""})
    claimed: list[str] = []
    counts = []
    with opened(repository) as fd:
        for backwards, room in ((False, most), (True, 99)):
            until = len(claimed) + room

            def claim(path: str, until: int = until) -> bool:
                if path in claimed or len(claimed) >= until:
                    return False
                claimed.append(path)
                return True

            skipped = Skipped()
            sieve = Sieve(skipped)
            rules = Rules.at(str(repository))
            shown = walk(fd, rules, sieve, Listings(), claim=claim, backwards=backwards)
            counts.append((skipped, [path for path, *_ in shown]))
    (one, first), (two, second) = counts
    assert sorted(first + second) == ["", "a/", "a/b/", "c/d/", "e/"]
    assert (one.ignored + two.ignored, one.hidden + two.hidden) == (2, 3)


# ---- any tree ----


def test_names_of_any_bytes_are_listed(tmp_path: Path) -> None:
    names = [b"line\nbreak", b"\xff\xfe", "é".encode(), b" ", b"*", b"x" * 255]
    for name in names:
        with open(os.path.join(os.fsencode(tmp_path), name), "wb"):
            pass
    assert {os.fsencode(name) for name in listed(tmp_path)} == set(names)


def test_links_are_neither_shown_nor_followed(tmp_path: Path) -> None:
    grow(tmp_path, {"top/a/f": "", "outside/secret": ""})
    top = tmp_path / "top"
    (top / "up").symlink_to("..")
    (top / "a" / "loop").symlink_to(".")
    (top / "broken").symlink_to("nowhere")
    assert listed(top) == {"a/f"}


def test_files_can_be_stated_by_descriptor(tmp_path: Path) -> None:
    grow(tmp_path, {"a/b/f": "12345"})
    with opened(tmp_path) as fd:
        for _, folder, (name,) in walk(fd, Rules(), Sieve(Skipped()), Listings()):
            assert os.stat(name, dir_fd=folder).st_size == 5


DEEPER = "d" * 40


def grow_deep(top: Path, levels: int) -> None:
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        for name in (DEEPER, "e"):
            os.mkdir(name, dir_fd=fd)
        for name in ("f", "e/l"):
            os.close(os.open(name, os.O_CREAT | os.O_WRONLY, dir_fd=fd))
        fd = moved(fd, DEEPER)
    os.close(fd)


def fell_deep(top: Path, levels: int) -> None:
    """Remove it again, which is more than pytest can do."""
    fd = os.open(top, os.O_RDONLY)
    for _ in range(levels):
        for name in ("f", "e/l"):
            os.unlink(name, dir_fd=fd)
        os.rmdir("e", dir_fd=fd)
        fd = moved(fd, DEEPER)
    for _ in range(levels):
        fd = moved(fd, "..")
        os.rmdir(DEEPER, dir_fd=fd)
    os.close(fd)


def moved(fd: int, name: str) -> int:
    inner = os.open(name, os.O_RDONLY, dir_fd=fd)
    os.close(fd)
    return inner


@contextmanager
def few_descriptors(more: int) -> Iterator[None]:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (open_descriptors() + more, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("backwards", [False, True])
def test_a_tree_deeper_than_path_max_needs_few_descriptors(tmp_path: Path, backwards: bool) -> None:
    levels = 5 * OPEN_LEVELS
    assert levels * len(DEEPER) > 4096
    grow_deep(tmp_path, levels)
    skipped = Skipped()
    try:
        with few_descriptors(OPEN_LEVELS + 8), opened(tmp_path) as top:
            folders = walk(top, Rules(), Sieve(skipped), Listings(), backwards=backwards)
            found = [name for _, fd, (name,) in folders if os.stat(name, dir_fd=fd)]
    finally:
        fell_deep(tmp_path, levels)
    assert sorted(found) == ["f"] * levels + ["l"] * levels
    assert (skipped.unreadable, skipped.vanished) == (0, 0)


def test_a_walk_left_half_way_closes_what_it_opened(tmp_path: Path) -> None:
    grow(tmp_path, {"a/b/c/d/f": "", "a/b/c/e/f": ""})
    with opened(tmp_path) as fd:
        before = open_descriptors()
        folders = walk(fd, Rules(), Sieve(Skipped()), Listings())
        next(folders)
        assert open_descriptors() > before
        folders.close()  # type: ignore[attr-defined]  # an iterator to callers, a generator here
        assert open_descriptors() == before


@contextmanager
def ordinary_user() -> Iterator[None]:
    """The test as a user for whom permissions count, also when it runs as root."""
    if os.geteuid() != 0:
        yield
        return
    os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0)


def test_an_unreadable_directory_is_counted_and_the_rest_goes_on(tmp_path: Path) -> None:
    grow(tmp_path, {"a/f": "", "closed/g": "", "z/h": ""})
    tmp_path.chmod(0o755)
    (tmp_path / "closed").chmod(0)
    skipped = Skipped()
    try:
        with opened(tmp_path) as fd, ordinary_user():
            found = {path for path, *_ in walk(fd, Rules(), Sieve(skipped), Listings())}
    finally:
        (tmp_path / "closed").chmod(0o755)
    assert found == {"a/", "z/"}
    assert skipped.unreadable == 1


def test_a_directory_that_vanishes_or_becomes_a_link_is_counted(tmp_path: Path) -> None:
    top = tmp_path / "top"
    grow(top, {"f": "", "gone/x": "", "swapped/y": "", "stays/z": ""})
    grow(tmp_path, {"outside/secret": ""})
    skipped = Skipped()
    with opened(top) as fd:
        folders = walk(fd, Rules(), Sieve(skipped), Listings())
        assert next(folders)[0] == ""
        (top / "gone").rename(tmp_path / "gone")
        (top / "swapped").rename(tmp_path / "swapped")
        (top / "swapped").symlink_to("../outside")
        assert [path for path, *_ in folders] == ["stays/"]
    assert skipped.vanished == 2


def test_a_folder_of_many_files_is_read_to_its_end(tmp_path: Path) -> None:
    grow(tmp_path, {".ignore": "*7\n"})
    names = {f"f{n}" for n in range(3 * BATCH_ENTRIES - 1)}
    for name in names:
        (tmp_path / name).touch()
    assert listed(tmp_path) == {name for name in names if not name.endswith("7")}


def test_a_start_that_cannot_be_listed_is_an_error(tmp_path: Path) -> None:
    grow(tmp_path, {"f": ""})
    fd = os.open(tmp_path / "f", os.O_RDONLY)
    try:
        with pytest.raises(NotADirectoryError):
            list(walk(fd, Rules(), Sieve(Skipped()), Listings()))
    finally:
        os.close(fd)


# ---- the call ----


def test_a_cancelled_call_stops_the_walk(tmp_path: Path) -> None:
    grow(tmp_path, {"f": "", "a/f": "", "b/f": ""})
    call = Call(Roots([str(tmp_path)]), Guard({}))
    with opened(tmp_path) as fd:
        before = open_descriptors()
        folders = walk(fd, Rules(), Sieve(Skipped(), call=call), Listings())
        next(folders)
        call.cancel()
        with pytest.raises(ToolError) as stopped:
            next(folders)
        assert stopped.value.code == ErrorCode.CANCELLED
        assert open_descriptors() == before


def test_a_call_out_of_time_leaves_the_walk_incomplete(tmp_path: Path) -> None:
    grow(tmp_path, {"f": "", "a/f": "", "b/f": ""})
    call = Call(Roots([str(tmp_path)]), Guard({}))
    skipped = Skipped()
    with opened(tmp_path) as fd:
        folders = walk(fd, Rules(), Sieve(skipped, call=call), Listings())
        assert next(folders)[0] == ""
        call.deadline = 0.0
        assert list(folders) == []
    assert skipped.incomplete
