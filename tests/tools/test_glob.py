"""GlobTool: what it finds, in which order, what it says of the rest, and what it never shows."""

import contextlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from time import monotonic
from typing import TYPE_CHECKING, Any

import jsonschema
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.conftest import tick
from toolroll.call import Call
from toolroll.errors import ErrorCode
from toolroll.guard import Guard
from toolroll.listing import SETTLED_NS, Listings
from toolroll.paths import Roots
from toolroll.tool import Outcome
from toolroll.trail import TRAILS, Trail, Trails
from toolroll_glob import find
from toolroll_glob.tool import glob, start

if TYPE_CHECKING:
    from tests.conftest import Wire

MakeCall = Callable[..., Call]
Ask = Callable[..., Outcome]
Found = Callable[..., Outcome]

LONG_AGO_S = 1_000_000_000


@pytest.fixture(autouse=True)
def no_git_settings_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")


@pytest.fixture(autouse=True)
def cache(monkeypatch: pytest.MonkeyPatch) -> Listings:
    listings = Listings()
    monkeypatch.setattr(find, "listings", listings)
    monkeypatch.setattr(find, "trails", Trails())
    return listings


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path.resolve() / "root"
    folder.mkdir()
    folder.chmod(0o755)
    return folder


@pytest.fixture
def found(folder: Path, make_call: MakeCall, answer: Ask) -> Found:
    """`found(pattern, **arguments)`: GlobTool below the folder, which is the only root."""
    roots = make_call(folder).roots  # one for all calls, as in a server

    def ask(pattern: str, **arguments: Any) -> Outcome:
        call = make_call(folder)
        call.roots = roots
        return answer(glob, call, pattern=pattern, **arguments)

    return ask


def fill(folder: Path, *names: str) -> None:
    """Make each of `names`, every file one second older than the one before."""
    for age, name in enumerate(names):
        path = folder / name
        (path if name.endswith("/") else path.parent).mkdir(parents=True, exist_ok=True)
        if not name.endswith("/"):
            path.touch()
            path.chmod(0o644)
            os.utime(path, (0, LONG_AGO_S - age))


def repository(folder: Path, *rules: str) -> None:
    (folder / ".git").mkdir()
    (folder / ".gitignore").write_text("\n".join(rules))


def paths_in(outcome: Outcome) -> list[str]:
    """The paths of an answer in its order."""
    assert not outcome.failed, outcome.text
    return [one["path"] for one in outcome.structured["results"]]


def last_line(outcome: Outcome) -> str:
    return outcome.text.split("\n")[-1]


# What matches


TREE = (
    "a.py", "b.txt", "src/a.py", "src/a.pyc", "src/deep/er/a.py", "src/deep/test_a.py", "docs/a.md", "[id].ts",
    "lib/x1.c", "lib/x2.h", "lib/y.c", "é.py",
)  # fmt: skip


@pytest.mark.parametrize(
    ("pattern", "paths"),
    [
        ("*.py", "a.py é.py"),
        ("./*.py", "a.py é.py"),
        ("**.py", "a.py é.py"),
        ("**/*.py", "a.py src/a.py src/deep/er/a.py src/deep/test_a.py é.py"),
        ("**/**/a.py", "a.py src/a.py src/deep/er/a.py"),
        ("src/**", "src/a.py src/a.pyc src/deep/er/a.py src/deep/test_a.py"),
        ("src/", "src/a.py src/a.pyc src/deep/er/a.py src/deep/test_a.py"),
        ("src/**/a.py", "src/a.py src/deep/er/a.py"),
        ("*/*.py", "src/a.py"),
        ("**/deep/**/*.py", "src/deep/er/a.py src/deep/test_a.py"),
        ("src/a.py", "src/a.py"),
        ("src//a.py", "src/a.py"),
        ("{src,docs}/*.{py,md}", "src/a.py docs/a.md"),
        ("{src/deep,lib}/*.{py,c}", "src/deep/test_a.py lib/x1.c lib/y.c"),
        ("lib/x{1..3}.?", "lib/x1.c lib/x2.h"),
        ("**/x[12].[ch]", "lib/x1.c lib/x2.h"),
        ("lib/[!x]*", "lib/y.c"),
        ("**/test_*.py", "src/deep/test_a.py"),
        ("**/*e*t*_*.py", "src/deep/test_a.py"),
        ("**/*.@(c|h)", "lib/x1.c lib/x2.h lib/y.c"),
        ("src/!(*.pyc)", "src/a.py"),
        (r"\[id\].ts", "[id].ts"),
        ("?.py", "a.py é.py"),
        ("[[:alpha:]].txt", "b.txt"),
        ("*/de?p/*", "src/deep/test_a.py"),
        ("?rc/**/er/*", "src/deep/er/a.py"),
        ("**", " ".join(TREE)),
    ],
)
def test_a_pattern_is_one_of_the_whole_path(
    folder: Path, found: Found, pattern: str, paths: str
) -> None:
    fill(folder, *TREE)
    assert sorted(paths_in(found(pattern))) == sorted(paths.split())


@pytest.mark.parametrize(
    ("pattern", "why"),
    [
        ("../*.py", "'..' has no place"),
        ("./", "names nothing"),
        ("@(a/b|c).py", "across '/'"),
        ("x" * 5000, "5000 characters"),
        ("{1..100000000}", "more than 1000 patterns"),
        ("{a,b}" * 40, "more than 1000 patterns"),
        ("{{1..999},{1..999}}{1..999}", "more than 1000 patterns"),
        ("{" * 2000, "nested too deeply"),
        ("{a,b}{1..400}" + "x" * 2000, "more than 65536 characters"),
    ],
)
def test_an_impossible_pattern_is_refused_with_the_reason(
    folder: Path, found: Found, pattern: str, why: str
) -> None:
    fill(folder, "a.py")
    outcome = found(pattern)
    assert outcome.code == ErrorCode.INVALID_PARAMS
    assert why in outcome.text


@pytest.mark.parametrize("pattern", ["@(" * 1500 + "a", "@(" * 1300 + "a" + ")" * 1300])
def test_groups_nested_beyond_reason_do_no_harm(folder: Path, found: Found, pattern: str) -> None:
    fill(folder, "a")
    outcome = found(pattern)
    assert outcome.code in ("", ErrorCode.INVALID_PARAMS)


def test_an_absolute_pattern_brings_its_own_start(folder: Path, found: Found) -> None:
    fill(folder, *TREE)
    assert sorted(paths_in(found(f"{folder}/src/**/a.py"))) == [
        f"{folder}/src/a.py",
        f"{folder}/src/deep/er/a.py",
    ]
    assert found("/etc/*.conf").code == ErrorCode.OUTSIDE_ROOTS


def test_the_path_leads_every_line_and_can_be_read_by_other_tools(
    folder: Path, found: Found
) -> None:
    fill(folder, *TREE)
    assert paths_in(found("**/test*", path="src")) == ["src/deep/test_a.py"]
    assert paths_in(found("test*", path="./src/deep/")) == ["src/deep/test_a.py"]
    assert paths_in(found("**/test*", path=f"{folder}/src")) == [f"{folder}/src/deep/test_a.py"]
    assert paths_in(found("**/test*", path="src", absolute=True)) == [
        f"{folder}/src/deep/test_a.py"
    ]


# Order, lines, totals


def test_the_newest_come_first_and_equal_times_are_ordered_by_path(
    folder: Path, found: Found
) -> None:
    fill(folder, *(f"d{number % 7}/f{number:03d}" for number in range(300)))
    for name in ("d1/f001", "d2/f296"):
        os.utime(folder / name, ns=(0, LONG_AGO_S * 10**9 + 5))
    paths = paths_in(found("**/f*", limit=4))
    assert paths == ["d1/f001", "d2/f296", "d0/f000", "d2/f002"]


def test_the_true_newest_are_shown_however_many_match(folder: Path, found: Found) -> None:
    fill(folder, *(f"{number:05d}" for number in reversed(range(4000))))  # the last is the newest
    for number in range(4000):
        os.utime(folder / f"{number:05d}", (0, LONG_AGO_S + number))
    assert paths_in(found("*", limit=3)) == ["03999", "03998", "03997"]


def test_a_line_tells_path_size_time_and_permissions(folder: Path, found: Found) -> None:
    fill(folder, "a b.py")
    (folder / "a b.py").write_bytes(b"x" * 12_345)
    (folder / "a b.py").chmod(0o640)
    os.utime(folder / "a b.py", (0, LONG_AGO_S))
    assert found("*.py").text == (
        "a b.py  12345 B  2001-09-09T01:46:40Z  -rw-r-----\n[1 of 1 files]"
    )


def test_the_total_is_true_when_fewer_are_shown(folder: Path, found: Found) -> None:
    fill(folder, *(f"{number}.py" for number in range(30)))
    outcome = found("*.py", limit=10)
    assert last_line(outcome) == "[truncated: 10 of 30 files (limit 10)]"
    assert outcome.structured["total"] == 30
    assert outcome.structured["truncated"] is True
    assert last_line(found("*.py")) == "[30 of 30 files]"


def test_no_line_is_cut_by_the_output_limit(folder: Path, make_call: MakeCall, answer: Ask) -> None:
    fill(folder, *(f"{number:04d}.py" for number in range(200)))
    outcome = answer(glob, make_call(folder, max_output=2000), pattern="*.py", limit=500)
    lines = outcome.text.split("\n")
    assert len(outcome.text) <= 2000
    assert all(line.endswith("-rw-r--r--") for line in lines[:-1])
    assert lines[-1] == f"[truncated: {len(lines) - 1} of 200 files (2000 characters)]"
    assert len(outcome.structured["results"]) == len(lines) - 1


def test_the_structured_form_keeps_to_its_schema(folder: Path, found: Found) -> None:
    fill(folder, *TREE, ".hidden/a.py")
    (folder / "link.py").symlink_to("a.py")
    outcome = found("**/*.py", limit=2)
    jsonschema.validate(outcome.structured, glob.output_schema())
    assert outcome.structured["results"][0] == {
        "path": "a.py",
        "size": 0,
        "modified": "2001-09-09T01:46:40Z",
        "permissions": "-rw-r--r--",
    }
    assert outcome.structured["skipped"] == {"hidden": 1, "links": 1}


def test_times_beyond_the_calendar_do_no_harm(folder: Path, found: Found) -> None:
    fill(folder, "old", "new")
    try:
        os.utime(folder / "old", ns=(0, -(2**62)))
        os.utime(folder / "new", ns=(0, 2**63 - 1))
    except OSError:
        pass  # a file system with a smaller calendar; what it made of them is shown
    assert paths_in(found("*")) == ["new", "old"]


# What is left out


def test_git_decides_what_is_ignored_and_no_ignore_overrules_it(folder: Path, found: Found) -> None:
    repository(folder, "*.log", "/build/", "node_modules")
    fill(folder, "a.py", "a.log", "build/a.py", "src/build/a.py", "src/node_modules/m/a.py")
    (folder / "src" / ".ignore").write_text("c.py")
    fill(folder / "src", "c.py")
    outcome = found("**/*.py")
    assert paths_in(outcome) == ["a.py", "src/build/a.py"]
    assert last_line(outcome) == "[2 of 2 files · skipped: 3 ignored, 1 hidden]"
    assert len(paths_in(found("**/*.py", no_ignore=True))) == 5


def test_an_ignored_folder_is_looked_into_when_it_is_the_path(folder: Path, found: Found) -> None:
    repository(folder, "build/")
    fill(folder, "build/a.py", "build/sub/b.py")
    assert paths_in(found("**/*.py", path="build")) == ["build/a.py", "build/sub/b.py"]


def test_a_dotted_entry_is_found_by_a_part_that_names_the_dot(folder: Path, found: Found) -> None:
    fill(folder, "a.yml", ".b.yml", ".github/c.yml", ".github/w/.d.yml", "x/.github/e.yml")
    fill(folder, ".git/f.yml", ".venv/g.yml")
    cases = {
        "**/*.yml": ["a.yml"],
        "*": ["a.yml"],
        ".*": [".b.yml"],
        "**/.*.yml": [".b.yml"],
        ".github/**": [".github/c.yml", ".github/w/.d.yml"],
        "**/.github/*": [".github/c.yml", "x/.github/e.yml"],
        "@(.github|.venv)/*": [".github/c.yml", ".venv/g.yml"],
        "{.github,.venv}/*.yml": [".github/c.yml", ".venv/g.yml"],
        ".gi?/*": [".git/f.yml"],
        "**/.*hub/**": [".github/c.yml", ".github/w/.d.yml", "x/.github/e.yml"],
        "[.]venv/*": [],  # a class does not name the dot, as in a shell
    }
    assert {pattern: sorted(paths_in(found(pattern))) for pattern in cases} == cases


def test_dotted_entries_are_shown_below_a_path_that_names_the_dot(
    folder: Path, found: Found
) -> None:
    fill(folder, ".config/a", ".config/.b", ".config/.c/d", ".e")
    assert paths_in(found("**", path=".config")) == [
        ".config/a",
        ".config/.b",
        ".config/.c/d",
    ]


def test_a_dotted_entry_that_git_takes_back_in_is_not_hidden(folder: Path, found: Found) -> None:
    repository(folder, ".*", "!.tools", "!.git")
    fill(folder, ".tools/a.py", ".other/b.py", ".git/c.py")
    assert paths_in(found("**/*.py")) == [".tools/a.py"]


def test_exclude_takes_one_glob_or_a_list_in_any_form(folder: Path, found: Found) -> None:
    fill(folder, "a.py", "b.py", "test/c.py", "src/test/d.py")
    for exclude in ("test", ["test"], '["test"]', "test/", "**/test/**"):
        outcome = found("**/*.py", exclude=exclude)
        assert paths_in(outcome) == ["a.py", "b.py"]
        assert last_line(outcome) == "[2 of 2 files · skipped: 2 by 'exclude']"
    assert paths_in(found("**/*.py", exclude='["/test", "b.*"]')) == ["a.py", "src/test/d.py"]
    assert found("*", exclude="{a,b}" * 12).code == ErrorCode.INVALID_PARAMS


def test_what_the_operator_closed_is_never_listed(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "a.py", "secret/b.py", "src/key.pem", "src/c.py")
    call = make_call(folder, deny=["secret/**", "*.pem"])
    outcome = answer(glob, call, pattern="**")
    assert paths_in(outcome) == ["a.py", "src/c.py"]
    assert last_line(outcome) == "[2 of 2 files · skipped: 2 closed by --deny]"
    assert "No files. Skipped: 1 closed by --deny" in answer(glob, call, pattern="secret/*").text


def test_include_narrows_what_is_ever_listed(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "a.py", "a.md", "src/b.py", "docs/c.txt")
    call = make_call(folder, include=["*.py", "/docs"])
    assert paths_in(answer(glob, call, pattern="**")) == ["a.py", "src/b.py", "docs/c.txt"]
    assert paths_in(answer(glob, call, pattern="*", path="docs")) == ["docs/c.txt"]
    outcome = answer(glob, call, pattern="*.md")
    assert outcome.text == "No files. Skipped: 1 outside --include."
    with pytest.raises(ValueError, match="--include"):
        start({"include": ["{a,b}" * 12]})


def test_links_are_neither_shown_nor_entered(folder: Path, found: Found) -> None:
    fill(folder, "real/a.py")
    (folder / "loop").symlink_to(".")
    (folder / "way").symlink_to("real")
    (folder / "real" / "b.py").symlink_to("a.py")
    (folder / "c.py").symlink_to("/etc/passwd")
    outcome = found("**/*.py")
    assert paths_in(outcome) == ["real/a.py"]
    assert last_line(outcome) == "[1 of 1 files · skipped: 4 links]"
    assert found("way/*.py").text == (
        "No files. 'way' is a link, which is not entered: give it as path."
    )
    assert paths_in(found("*.py", path="way")) == ["way/a.py"]


# Zeros


def test_a_zero_explains_itself(folder: Path, found: Found) -> None:
    repository(folder, "*.log", "build/")
    fill(folder, "a.py", "x.log", "build/y.log", "src/z.txt", ".hid/w.md", ".hid/build/v.rs")
    assert found("**/*.log").text == (
        "No files. Skipped: 2 ignored, 2 hidden. 2 match among them: repeat with no_ignore=true."
    )
    assert found("**/*.md").text == (
        "No files. Skipped: 1 ignored, 2 hidden. 1 match in hidden places: "
        "name the dotted part in the pattern, as '.github/**' does."
    )
    assert found("**/*.rs").text.endswith("as '.github/**' does, and set no_ignore=true.")
    assert found("*.txt").text == "No files. 1 match at other depths: use '**/*.txt'."
    assert found("**/*.nope").text == "No files. Skipped: 1 ignored, 2 hidden."
    assert found("srk/*.txt").text == "No files. There is no 'srk'."
    assert found("a.py/*").text == "No files. 'a.py' is not a directory."
    assert found("build/*.log").text == (
        "No files. Skipped: 1 ignored. 1 match among them: repeat with no_ignore=true."
    )
    assert found("**/*.nope").structured == {
        "results": [],
        "total": 0,
        "skipped": {"ignored": 1, "hidden": 2},
    }


# Any names, any trees


def test_names_of_any_bytes_are_shown_on_one_line_and_lead_back(folder: Path, found: Found) -> None:
    for name in (b"bad\xff.py", b"two\nlines.py", b" blank.py ", b"esc\x1b[0m.py"):
        (folder / os.fsdecode(name)).touch()
    outcome = found("*py*")
    assert len(outcome.text.split("\n")) == 5
    assert "' blank.py '  0 B" in outcome.text
    assert set(paths_in(outcome)) == {
        "bad\\xff.py", "two\\nlines.py", " blank.py ", "esc\\x1b[0m.py",
    }  # fmt: skip
    (folder / os.fsdecode(b"d\xff")).mkdir()
    fill(folder / os.fsdecode(b"d\xff"), "x")
    assert paths_in(found("*", path="d\\xff")) == ["d\\xff/x"]


def test_ignore_rules_reach_names_that_are_not_ascii(folder: Path, found: Found) -> None:
    repository(folder, "é*", "ü/")
    fill(folder, "étage.py", "ü/a.py", "à.py")
    assert paths_in(found("**/*.py")) == ["à.py"]


@contextlib.contextmanager
def as_nobody() -> Iterator[None]:
    """Whoever runs the tests, for the block no root: root reads everything."""
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


def test_unreadable_folders_are_counted_and_the_rest_goes_on(
    folder: Path, make_call: MakeCall, answer: Ask
) -> None:
    fill(folder, "a.py", "closed/b.py", "c/d.py", "names_only/e.py")
    call = make_call(folder)
    answer(glob, call, pattern="**/*.py")  # modules are imported while they can be
    (folder / "closed").chmod(0)
    (folder / "names_only").chmod(0o444)
    try:
        with as_nobody():
            outcome = answer(glob, call, pattern="**/*.py")
    finally:
        (folder / "closed").chmod(0o755)
        (folder / "names_only").chmod(0o755)
    assert paths_in(outcome) == ["a.py", "c/d.py"]
    assert last_line(outcome) == "[2 of 2 files · skipped: 2 unreadable]"


def test_a_tree_deeper_than_any_path_is_searched_to_its_end(folder: Path, found: Found) -> None:
    name, depth = "d" * 200, 60
    fds = [os.open(folder, os.O_RDONLY)]
    for _ in range(depth):
        os.mkdir(name, dir_fd=fds[-1])
        fds.append(os.open(name, os.O_RDONLY, dir_fd=fds[-1]))
    try:
        os.close(os.open("end.py", os.O_CREAT | os.O_WRONLY, dir_fd=fds[-1]))
        for _ in range(2):
            outcome = found("**/*.py", path=".")
            assert outcome.structured["results"][0]["path"] == f"{name}/" * depth + "end.py"
    finally:
        os.unlink("end.py", dir_fd=fds[-1])
        for fd in reversed(fds):
            os.close(fd)
        for level in reversed(range(depth)):
            top = os.open(folder, os.O_RDONLY)
            for _ in range(level):
                top, last = os.open(name, os.O_RDONLY, dir_fd=top), top
                os.close(last)
            os.rmdir(name, dir_fd=top)
            os.close(top)


def test_files_that_vanish_while_they_are_looked_at_are_counted(
    folder: Path, found: Found, cache: Listings, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, "a.py", "b.py")
    listed = cache.of

    def listed_then_removed(fd: int, goes_on: Callable[[], bool]) -> Any:
        listing = listed(fd, goes_on)
        (folder / "b.py").unlink()
        return listing

    monkeypatch.setattr(Listings, "of", lambda _, fd, goes_on: listed_then_removed(fd, goes_on))
    outcome = found("*.py")
    assert last_line(outcome) == "[1 of 1 files · skipped: 1 vanished]"


# Time, cancelling, progress


@pytest.fixture
def many(folder: Path) -> Path:
    for number in range(20):
        (folder / f"d{number}").mkdir()
    for number in range(3000):
        (folder / "d7" / f"{number}.py").touch()
    return folder


def test_a_search_that_has_no_time_left_says_where_it_stopped(
    many: Path, make_call: MakeCall, answer: Ask
) -> None:
    call = make_call(many, deadline_s=0.0)
    outcome = answer(glob, call, pattern="**/*.py")
    assert outcome.structured["incomplete"] is True
    assert "ncomplete: time ran out in '" in outcome.text


def test_a_cancelled_search_stops(many: Path, make_call: MakeCall, answer: Ask) -> None:
    call = make_call(many)
    call.cancel()
    assert answer(glob, call, pattern="**/*.py").code == ErrorCode.CANCELLED


def test_progress_is_told_when_it_is_wanted(
    many: Path, make_call: MakeCall, answer: Ask, monkeypatch: pytest.MonkeyPatch
) -> None:
    told: list[str] = []
    call = make_call(many, report=lambda _done, _total, message: told.append(message))
    monkeypatch.setattr(find, "LOOK_S", 0.0)
    monkeypatch.setattr(find, "PROGRESS_S", 0.0)
    answer(glob, call, pattern="**/*.py")
    assert told
    assert all("files match, now in '" in message for message in told)


EVIL = (
    ("*(*(a|aa)*)c", "a" * 240 + "cd"),
    ("*(a|aa)b", "a" * 240 + "ba"),
    ("!(*(a|aa))b", "a" * 240 + "bd"),
    ("*(*(*(*(a|b)|ab)|ba)*)c", "ab" * 120 + "ca"),
    ("+(*a|*b|*ab)c", "ab" * 120 + "cx"),
)


@pytest.mark.parametrize(("pattern", "name"), EVIL)
def test_a_pattern_that_does_not_end_is_stopped_and_the_name_is_told(
    folder: Path, found: Found, pattern: str, name: str
) -> None:
    fill(folder, name, "b")
    for variant in (pattern + "*", f"{pattern}?/x"):
        if variant.endswith("/x"):
            fill(folder, f"sub/{name}/")
            variant = f"sub/{variant}"  # noqa: PLW2901 - the same pattern asked of a folder
        outcome = found(variant)
        assert outcome.code in ("", ErrorCode.TIMEOUT)
    assert paths_in(found("b")) == ["b"]


def test_the_usual_evil_pattern_times_out(folder: Path, found: Found) -> None:
    fill(folder, "a" * 240 + "cd")
    outcome = found("*(*(a|aa)*)c")
    assert outcome.code in ("", ErrorCode.TIMEOUT)
    outcome = found("*(*(a|aa)*)[c]")
    assert outcome.code == ErrorCode.TIMEOUT
    assert "aaaa" in outcome.text


@pytest.mark.parametrize("pattern", ["*a" * 40 + "*b", "?*" * 60 + "c", "*[ab]" * 40 + "[c]"])
def test_many_stars_take_no_time(folder: Path, found: Found, pattern: str) -> None:
    fill(folder, "a" * 250, "ab" * 120 + "ca")
    assert found(pattern).code in ("", ErrorCode.TIMEOUT)


# What is kept between calls


@pytest.fixture
def settled(monkeypatch: pytest.MonkeyPatch) -> None:
    """Listings are kept at once, as they are a moment later in real life."""
    monkeypatch.setattr("toolroll.listing.SETTLED_NS", -(10**12))


def change(folder: Path) -> Iterator[tuple[str, list[str]]]:
    """Change the tree in one way after the other; what is to be found after each."""
    yield "as it was", ["a.py", "d/b.py"]
    (folder / "c.py").touch()
    os.utime(folder / "c.py", (0, LONG_AGO_S - 100))
    yield "a new file", ["a.py", "d/b.py", "c.py"]
    os.utime(folder / "d" / "b.py", (0, LONG_AGO_S + 100))
    yield "a newer time", ["d/b.py", "a.py", "c.py"]
    (folder / "e").mkdir()
    (folder / "e" / "f.py").touch()
    os.utime(folder / "e" / "f.py", (0, LONG_AGO_S - 200))
    yield "a new directory", ["d/b.py", "a.py", "c.py", "e/f.py"]
    (folder / "c.py").rename(folder / "e" / "g.py")
    yield "a moved file", ["d/b.py", "a.py", "e/g.py", "e/f.py"]
    (folder / "e" / "f.py").unlink()
    (folder / "e" / "f.py").symlink_to("g.py")
    yield "a link in the place of a file", ["d/b.py", "a.py", "e/g.py"]
    (folder / ".ignore").write_text("g.py")
    yield "a new rule", ["d/b.py", "a.py"]
    (folder / ".ignore").write_text("b.py")
    os.utime(folder / ".ignore", (0, 0))
    yield "a changed rule", ["a.py", "e/g.py"]
    (folder / "e" / ".gitignore").write_text("x.py")
    (folder / ".git").mkdir()
    yield "a repository", ["a.py", "e/g.py"]
    (folder / "e" / ".gitignore").write_text("g.py")
    yield "a changed rule below", ["a.py"]
    (folder / "e" / ".gitignore").unlink()
    (folder / ".git").rmdir()
    yield "no repository", ["a.py", "e/g.py"]
    (folder / ".ignore").unlink()
    (folder / "d").rename(folder / "old")
    (folder / "e").rename(folder / "d")
    yield "directories that changed places", ["old/b.py", "a.py", "d/g.py"]
    os.utime(folder, (0, 0))
    (folder / "h.py").touch()
    os.utime(folder / "h.py", (0, 1))
    os.utime(folder, (0, 0))
    yield "a directory with a forged time", ["old/b.py", "a.py", "d/g.py", "h.py"]


@pytest.mark.usefixtures("settled")
def test_nothing_stale_is_ever_answered(folder: Path, found: Found, cache: Listings) -> None:
    fill(folder, "a.py", "d/b.py")
    for what, paths in change(folder):
        tick(folder)
        assert paths_in(found("**/*.py")) == paths, what
        assert paths_in(found("**/*.py")) == paths, what
    assert cache._kept


PLACES = st.sampled_from(["a", "b", "a/c", "b/c", "a/c/d"])
STEP = st.one_of(
    st.tuples(st.just("fill"), PLACES, st.sampled_from(["x.py", ".h.py", "y.txt"])),
    st.tuples(st.just("rule"), PLACES, st.sampled_from(["x.py", "c", "!x.py", "*.py", ""])),
    st.tuples(st.just("remove"), PLACES, st.just("x.py")),
    st.tuples(st.just("move"), PLACES, PLACES),
    st.tuples(st.just("link"), PLACES, PLACES),
    st.tuples(st.just("repository"), PLACES, st.just("")),
)
QUESTIONS: list[tuple[str, dict[str, Any]]] = [
    ("**/*.py", {}),
    ("**", {"no_ignore": True}),
    ("a/**/x.py", {}),
    ("*", {"path": "b"}),
]


def take(folder: Path, step: tuple[str, str, str]) -> None:
    """One change of a tree, if it can be made."""
    what, place, other = step
    with contextlib.suppress(OSError):
        if what == "fill":
            (folder / place).mkdir(parents=True, exist_ok=True)
            (folder / place / other).touch()
        elif what == "rule":
            (folder / place / ".gitignore").write_text(other)
        elif what == "remove":
            (folder / place / other).unlink()
        elif what == "move":
            (folder / place).rename(folder / other)
        elif what == "link":
            (folder / place).symlink_to(folder / other)
        else:
            (folder / place / ".git").mkdir()


@settings(deadline=None, max_examples=25, suppress_health_check=list(HealthCheck))
@example(steps=[("fill", "a", "x.py"), ("rule", "a", "c"), ("rule", "a", "x.py")])
@given(steps=st.lists(STEP, max_size=12))
@pytest.mark.usefixtures("settled")
def test_what_is_remembered_changes_no_answer(steps: list[tuple[str, str, str]]) -> None:
    with TemporaryDirectory() as name, pytest.MonkeyPatch.context() as patch:
        folder = Path(name).resolve() / "root"
        (folder / "b").mkdir(parents=True)
        (folder / ".git").mkdir()
        kept = Listings(), Trails()
        roots = Roots([str(folder)])

        def answers() -> list[str]:
            calls = [Call(roots, Guard({})) for _ in QUESTIONS]
            return [
                glob.call({"pattern": pattern, **how}, call).text
                for call, (pattern, how) in zip(calls, QUESTIONS, strict=True)
            ]

        for step in steps:
            take(folder, step)
            tick(folder)
            patch.setattr(find, "listings", Listings())
            patch.setattr(find, "trails", Trails())
            anew = answers()
            patch.setattr(find, "listings", kept[0])
            patch.setattr(find, "trails", kept[1])
            assert answers() == anew
            assert answers() == anew


@pytest.mark.usefixtures("settled")
def test_what_did_not_change_is_not_walked_again(
    folder: Path, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, "a.py", "d/b.py", "d/e/c.txt", "f/.ignore", "f/g.py", ".h.py")
    ways: list[dict[str, Any]] = [{}, {"exclude": "a.py"}, {"no_ignore": True}, {"path": "d"}]
    first = [found("**/*.py", **how).text for how in ways]
    assert "1 hidden" in first[0]
    with monkeypatch.context() as patch:
        patch.setattr(find.Search, "_walk", None)
        assert [found("**/*.py", **how).text for how in ways] == first
    (folder / "d" / "e" / "c.py").touch()
    assert "d/e/c.py" in paths_in(found("**/*.py"))


@pytest.mark.usefixtures("settled")
def test_a_link_in_the_way_to_what_is_kept_leads_nowhere(
    folder: Path, found: Found, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill(folder, "a.py", "d/e/b.py")
    fill(folder.parent / "outside", "e/b.py")
    found("**/*.py")
    monkeypatch.setattr(Trail, "holds", lambda *_: True)  # as if swapped right after it was asked
    (folder / "d").rename(folder.parent / "gone")
    (folder / "d").symlink_to(folder.parent / "outside")
    outcome = found("**/*.py")
    assert paths_in(outcome) == ["a.py"]
    assert "1 vanished" in outcome.text


@pytest.mark.usefixtures("settled")
def test_the_dotted_names_of_a_folder_with_rules_are_not_kept_for_them(
    folder: Path, found: Found
) -> None:
    fill(folder, "d/a.py", "d/.gitignore", "d/.git/HEAD", *(f"d/.{number}" for number in range(50)))
    found("**/*.py")
    (kept,) = find.trails._kept.values()
    ((_, _, names),) = kept[0]._ruled
    assert names == {".gitignore", ".git"}


@pytest.mark.usefixtures("settled")
def test_a_path_too_long_to_be_opened_at_once_leaves_no_trail(folder: Path, found: Found) -> None:
    deep = folder.joinpath(*["d" * 200] * 6)
    deep.mkdir(parents=True)
    (deep / "a.py").touch()
    for _ in range(2):
        assert found("**/*.py").structured["total"] == 1
    assert not find.trails._kept


@pytest.mark.usefixtures("settled")
def test_only_the_last_searches_are_kept(folder: Path, found: Found) -> None:
    fill(folder, "a.py")
    for number in range(2 * TRAILS):
        found(f"**/{number}.py")
    assert len(find.trails._kept) == TRAILS


def test_a_directory_that_was_just_changed_is_not_kept(
    folder: Path, found: Found, cache: Listings
) -> None:
    fill(folder, "a.py")
    found("*.py")
    assert not cache._kept
    assert not find.trails._kept
    assert SETTLED_NS > 2_000_000_000


@pytest.mark.usefixtures("settled")
def test_what_is_kept_stays_within_its_bounds(
    folder: Path, make_call: MakeCall, answer: Ask, cache: Listings
) -> None:
    for number in range(40):
        (folder / f"d{number}").mkdir()
        for name in range(600):
            (folder / f"d{number}" / f"{name}{'x' * 40}.py").touch()
    call = make_call(folder, cache_mb=1)
    for _ in range(2):
        assert answer(glob, call, pattern="**/*.py", limit=1).structured["total"] == 24_000
        assert 0 < cache.size + find.trails.size <= 1_000_000
        assert cache.size == sum(one.size for one in cache._kept.values())
    (folder / "other").mkdir()
    fill(folder / "other", "y.py")
    answer(glob, call, pattern="*.py", path="other")
    assert paths_in(answer(glob, call, pattern="*.py", path="other")) == ["other/y.py"]


def test_the_kernels_own_file_systems_are_never_kept(cache: Listings) -> None:
    if not os.path.isdir("/proc/self"):
        pytest.skip("no /proc here")
    fd = os.open("/proc/self", os.O_RDONLY)
    try:
        cache.begin(10**6)
        cache.of(fd, lambda: True)
    finally:
        os.close(fd)
    assert not cache._kept


# The real server


def test_the_server_answers_over_its_pipes_and_stays_awake(
    folder: Path, wire: "Callable[..., Wire]"
) -> None:
    fill(folder, "a.py", "sub/b.py", *("a" * 200 + f"{number:03d}cd" for number in range(30)))
    server = wire("toolroll_glob", "--root", folder).open()
    result = server.call("GlobTool", pattern="**/*.py")
    assert [line.split("  ")[0] for line in result["content"][0]["text"].split("\n")[:-1]] == [
        "a.py",
        "sub/b.py",
    ]
    evil = server.post(
        "tools/call", {"name": "GlobTool", "arguments": {"pattern": "*(*(a|aa)*)[0-9]*[c]"}}
    )
    ping = server.post("ping")
    answers = [server.read(), server.read()]
    assert {one["id"] for one in answers} == {evil, ping}
    text = next(one for one in answers if one["id"] == evil)["result"]["content"][0]["text"]
    assert text.startswith("Error [TIMEOUT]: the pattern takes too long on the name 'aaa")
    assert not server.call("GlobTool", pattern="a.py")["isError"]


def test_calls_side_by_side_share_what_is_kept(
    folder: Path, make_call: MakeCall, answer: Ask, settled: None
) -> None:
    fill(folder, *(f"d{number}/{number}.py" for number in range(200)))
    totals: list[int] = []

    def search() -> None:
        for _ in range(5):
            outcome = answer(glob, make_call(folder), pattern="**/*.py")
            totals.append(outcome.structured["total"])

    threads = [threading.Thread(target=search) for _ in range(4)]
    for thread in threads:
        thread.start()
    until = monotonic() + 60
    for thread in threads:
        thread.join(max(until - monotonic(), 0))
    assert totals == [200] * 20
