"""The zipapps: alone in an empty environment, on every Python, and what they unpack."""

import ast
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.pyz.conftest import CHECKOUT, build
from toolroll import __version__
from toolroll.spawn import Server

PATIENCE_S = 120
SCRIPTS = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]["scripts"]
TOOLS = tuple(name.removeprefix("toolroll-") for name in SCRIPTS if name != "toolroll")
CARRYING = ("dispatch-agent", "glob", "grep")
VERSIONS = ("3.11", "3.12", "3.13")


def pythons() -> dict[str, str]:
    """The Pythons of this machine by version: this one, those of pyenv, those on PATH."""
    found = {}
    for version in VERSIONS:
        homes = sorted(
            Path(os.environ.get("PYENV_ROOT", "~/.pyenv"))
            .expanduser()
            .glob(f"versions/{version}.*")
        )
        here = sys.executable if sys.version.startswith(f"{version}.") else ""
        path = here or (
            str(homes[-1] / "bin/python") if homes else shutil.which(f"python{version}")
        )
        if path:
            found[version] = path
    return found


PYTHONS = pythons()


@pytest.fixture(params=VERSIONS)
def python(request: pytest.FixtureRequest) -> str:
    """A Python of each version."""
    version: str = request.param
    if version not in PYTHONS:
        pytest.skip(f"there is no Python {version} here")
    return PYTHONS[version]


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with something to find."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("def needle(x):\n    return x\n")
    return tmp_path / "work"


def call(
    command: list[str], tree: Path, *words: str, **environ: str
) -> "subprocess.CompletedProcess[str]":
    """A one-shot call with nothing in the environment but `environ`."""
    return subprocess.run(
        [*command, "--root", str(tree), "--call", *words],
        env=environ,
        cwd="/",
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )


def calls(tree: Path) -> Iterator[tuple[str, list[str], str]]:
    """A call of each tool, and what is in its answer."""
    file = str(tree / "a.py")
    yield "ls", ["path=."], "a.py"
    yield "view", [f"file_path={file}"], "needle"
    yield "glob", ["pattern=**/*.{py,c}"], "a.py"
    yield "grep", [r"pattern=needle\(\p{Ll}\)"], "1: def needle(x):"
    yield "edit", [f"file_path={file}", "old_string=return x", "new_string=return 2"], "Edited"
    yield "replace", [f"file_path={tree / 'b'}", "content=x"], "Created"
    yield "bash", ["command=echo hello; exit 3"], "exit 3"
    yield "dispatch-agent", ["prompt=Where is `needle` defined?"], "a.py:1"


def test_every_tool_works_alone_on_every_python(dist: Path, python: str, tree: Path) -> None:
    """Nothing in the environment, a home that does not exist, no library installed (-I -S)."""
    cache = str(tree.parent / "cache")
    os.mkdir(cache, 0o700)
    for tool, words, expected in calls(tree):
        alone = tree.parent / f"{tool}.pyz"
        shutil.copy(dist / f"toolroll-{tool}.pyz", alone)
        done = call([python, "-S", str(alone)], tree, *words, HOME="/none", TOOLROLL_CACHE=cache)
        assert done.returncode == 0, (tool, done)
        assert expected.lower() in done.stdout.lower(), (tool, done)
        assert done.stderr == ""


@pytest.mark.parametrize("tool", TOOLS)
def test_an_archive_is_a_program_and_a_server_of_both_eras(
    tool: str, dist: Path, tree: Path
) -> None:
    path = str(dist / f"toolroll-{tool}.pyz")
    folder = os.path.dirname(PYTHONS.get("3.11") or sys.executable)
    environ = {"PATH": f"{folder}{os.pathsep}{os.defpath}"}
    said = subprocess.run(
        [path, "--version"],
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert said.stdout == f"toolroll-{tool} {__version__}\n"
    for era in ("auto", "handshake"):
        with Server([path], era=era, environment=environ, directory=str(tree)) as server:
            assert len(server.tools()) == 1


def test_an_archive_may_be_called_by_a_relative_path(dist: Path, tree: Path) -> None:
    environ = {
        "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.defpath}",
        "TOOLROLL_CACHE": str(tree.parent / "cache"),
    }
    command = ["./toolroll-grep.pyz", "--root", str(tree), "--call", r"pattern=\p{Ll}eedle"]
    done = subprocess.run(
        command,
        cwd=dist,
        env=environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert "1: def needle(x):" in done.stdout, done


def test_an_archive_starts_the_first_python_on_path(python: str, dist: Path, tree: Path) -> None:
    environ = {
        "PATH": f"{os.path.dirname(python)}{os.pathsep}{os.defpath}",
        "TOOLROLL_CACHE": str(tree.parent / "cache"),
    }
    for tool in ("bash", "ls"):
        path = str(dist / f"toolroll-{tool}.pyz")
        with Server([path], environment=environ, directory=str(tree)) as server:
            (listed,) = server.tools()
            arguments = {"command": "ls"} if tool == "bash" else {"path": "."}
            answer = server.call(listed["name"], arguments)["content"][0]["text"]
            assert answer.startswith("a.py"), answer


def test_a_server_whose_archive_was_replaced_says_so_and_lives(
    dist: Path, tree: Path, tmp_path: Path
) -> None:
    alone, other = tmp_path / "toolroll-ls.pyz", tmp_path / "other"
    shutil.copy(dist / "toolroll-ls.pyz", alone)
    other.write_bytes(b"PK")
    with Server([sys.executable, str(alone)], directory=str(tree)) as server:
        server.start()
        os.replace(other, alone)
        for _ in range(2):
            result = server.call("LS", {"path": "."})
            assert "replaced or removed while it ran. Restart" in result["content"][0]["text"]


def test_the_same_input_gives_the_same_bytes(dist: Path, tmp_path: Path) -> None:
    build(tmp_path, "ls", "grep")
    for name in ("toolroll-ls.pyz", "toolroll-grep.pyz"):
        assert (tmp_path / name).read_bytes() == (dist / name).read_bytes()


@pytest.mark.parametrize("tool", TOOLS)
def test_an_archive_holds_its_version_and_all_licences(tool: str, dist: Path) -> None:
    with zipfile.ZipFile(dist / f"toolroll-{tool}.pyz") as archive:
        names = archive.namelist()
        assert archive.read("VERSION") == f"toolroll {__version__}\n".encode()
        assert b"MIT" in archive.read("LICENSE")
        infos = {name.partition("/")[0] for name in names if ".dist-info/" in name}
        for info in infos:
            assert any("LICEN" in name.upper() for name in names if name.startswith(info)), info
        for wheel in (name for name in names if name.endswith(".whl")):
            with archive.open(wheel) as file, zipfile.ZipFile(file) as inner:
                assert any("LICEN" in name.upper() for name in inner.namelist()), wheel


def test_an_older_python_gets_one_clear_line(dist: Path) -> None:
    path = dist / "toolroll-grep.pyz"
    pretend = (
        "import sys; sys.version_info = (3, 9, 2); sys.path[0] = sys.argv[1];"
        "from toolroll_start import start; start()"
    )
    done = subprocess.run(
        [sys.executable, "-c", pretend, path],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert done.stderr == "toolroll-grep needs Python 3.11 or newer, this is 3.9\n"
    assert done.returncode == 1
    with zipfile.ZipFile(path) as archive:
        for name in ("__main__.py", "toolroll_start.py"):
            ast.parse(archive.read(name), feature_version=(3, 4))


# -- what another Python compiles -------------------------------------------------------------------


def others() -> list[str]:
    """The Pythons that did not build the archives."""
    return [path for version, path in PYTHONS.items() if not sys.version.startswith(f"{version}.")]


@pytest.fixture
def another() -> str:
    """One of them."""
    found = others()
    if not found:
        pytest.skip("there is one Python here")
    return found[-1]


def importer(python: str, dist: Path, cache: Path) -> str:
    """What imported a module of LS in a process of its own."""
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolroll_start import start\n"
        "try: start()\n"
        "except SystemExit: print(type(sys.modules['toolroll.cli'].__spec__.loader).__name__)"
    )
    command = [python, "-S", "-c", code, str(dist / "toolroll-ls.pyz"), "--version"]
    environ = {"TOOLROLL_CACHE": str(cache)}
    done = subprocess.run(
        command, env=environ, capture_output=True, text=True, timeout=PATIENCE_S, check=True
    )
    assert done.stderr == ""
    return done.stdout.splitlines()[-1]


def test_another_python_compiles_an_archive_once(another: str, dist: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    assert importer(another, dist, cache) == "Importer"
    (kept,) = cache.iterdir()
    first = kept.stat()
    assert first.st_mode & 0o777 == 0o600
    assert importer(another, dist, cache) == "Importer"
    assert kept.stat().st_mtime_ns == first.st_mtime_ns


def test_the_builders_python_compiles_nothing(dist: Path, tmp_path: Path) -> None:
    assert importer(sys.executable, dist, tmp_path / "cache") == "zipimporter"
    assert not (tmp_path / "cache").exists()


def test_code_has_its_source_lines_in_tracebacks(another: str, dist: Path, tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); from toolroll_start import start\n"
        "try: start()\n"
        "except SystemExit: pass\n"
        "from toolroll.paths import show\n"
        "from traceback import print_exc\n"
        "try: show(7)\n"
        "except AttributeError: print_exc()"
    )
    done = subprocess.run(
        [another, "-c", code, str(dist / "toolroll-ls.pyz"), "--version"],
        env={"TOOLROLL_CACHE": str(tmp_path)},
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert re.search(r'File "toolroll/paths.py", line \d+, in show\n    \S', done.stderr), done


def test_damaged_code_is_compiled_again(another: str, dist: Path, tmp_path: Path) -> None:
    importer(another, dist, tmp_path)
    (kept,) = tmp_path.iterdir()
    whole = kept.read_bytes()
    kept.write_bytes(whole[:-100] + b"x" * 100)
    assert importer(another, dist, tmp_path) == "Importer"
    assert kept.read_bytes() == whole


def test_code_that_others_could_have_written_is_not_run(
    another: str, dist: Path, tmp_path: Path
) -> None:
    tmp_path.chmod(0o700)
    importer(another, dist, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.chmod(0o666)
    importer(another, dist, tmp_path)
    assert kept.stat().st_mode & 0o777 == 0o600  # a new one
    tmp_path.chmod(0o777)
    kept.unlink()
    assert importer(another, dist, tmp_path) == "Importer"
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("kind", ["link", "fifo", "folder"])
def test_what_is_no_file_in_the_place_of_code_is_passed_over(
    another: str, dist: Path, tmp_path: Path, kind: str
) -> None:
    importer(another, dist, tmp_path)
    (kept,) = tmp_path.iterdir()
    kept.rename(tmp_path / "other")
    if kind == "link":
        kept.symlink_to("other")
    elif kind == "fifo":
        os.mkfifo(kept)
    else:
        kept.mkdir()
    assert importer(another, dist, tmp_path) == "Importer"
    assert kept.is_dir() if kind == "folder" else not kept.is_symlink() and kept.is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"other", kept.name}


def test_without_a_place_for_code_it_is_compiled_each_time(
    another: str, dist: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    assert importer(another, dist, tmp_path / "file/cache") == "Importer"


# -- what is unpacked --------------------------------------------------------------------------------


def search(dist: Path, tree: Path, **environ: str) -> "subprocess.CompletedProcess[str]":
    command = [sys.executable, "-S", str(dist / "toolroll-grep.pyz")]
    return call(command, tree, r"pattern=\p{Ll}eedle", HOME="/none", **environ)


def test_two_that_start_at_once_unpack_one_whole_folder(dist: Path, tree: Path) -> None:
    cache = tree.parent / "cache"
    command = [sys.executable, "-S", str(dist / "toolroll-grep.pyz"), "--root", str(tree)]
    environ = {"TOOLROLL_CACHE": str(cache)}
    running = [
        subprocess.Popen(
            [*command, "--call", r"pattern=\p{Ll}eedle"],
            env=environ,
            stdout=subprocess.PIPE,
            text=True,
        )
        for _ in range(6)
    ]
    for one in running:
        text, _ = one.communicate(timeout=PATIENCE_S)
        assert "1: def needle(x):" in text
        assert one.returncode == 0
    assert len(os.listdir(cache)) == 1


def test_a_damaged_folder_is_unpacked_again(dist: Path, tree: Path) -> None:
    cache = tree.parent / "cache"
    assert search(dist, tree, TOOLROLL_CACHE=str(cache)).returncode == 0
    (library,) = cache.glob("*/regex/_regex*.so")
    library.write_bytes(library.read_bytes()[:1000])
    done = search(dist, tree, TOOLROLL_CACHE=str(cache))
    assert "1: def needle(x):" in done.stdout
    assert (done.returncode, done.stderr, len(os.listdir(cache))) == (0, "", 1)


def test_without_a_place_to_unpack_grep_says_so_and_goes_on(dist: Path, tree: Path) -> None:
    (tree.parent / "file").touch()
    nowhere = str(tree.parent / "file/cache")
    done = call(
        [sys.executable, "-S", str(dist / "toolroll-grep.pyz")],
        tree,
        "pattern=need.e",
        TOOLROLL_CACHE=nowhere,
    )
    assert "1: def needle(x):" in done.stdout
    assert "Python's re" in done.stdout
    assert "TOOLROLL_CACHE" in done.stdout


def test_a_folder_that_others_can_write_is_not_imported_from(dist: Path, tree: Path) -> None:
    cache = tree.parent / "open"
    cache.mkdir()
    cache.chmod(0o777)
    done = search(dist, tree, TOOLROLL_CACHE=str(cache))
    assert "open to others" in done.stdout + done.stderr
    assert os.listdir(cache) == []


def test_another_interpreter_searches_with_re(dist: Path, tree: Path) -> None:
    code = (
        "import sys; sys.implementation.name = 'other'; sys.argv[:] = sys.argv[1:];"
        "sys.path[0] = sys.argv[0]; from toolroll_start import start; start()"
    )
    command = [sys.executable, "-S", "-c", code, str(dist / "toolroll-grep.pyz")]
    done = call(command, tree, "pattern=need.e")
    assert "1: def needle(x):" in done.stdout
    assert "nothing compiled for other" in done.stdout


def test_a_library_of_the_site_is_found_when_none_is_carried(dist: Path, tree: Path) -> None:
    """An archive starts without the site's packages: that is quicker."""
    (tree.parent / "file").touch()
    environ = {
        "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.defpath}",
        "TOOLROLL_CACHE": str(tree.parent / "file/cache"),
    }
    command = [str(dist / "toolroll-grep.pyz")]
    done = call(command, tree, r"pattern=\p{Ll}eedle", **environ)
    assert "1: def needle(x):" in done.stdout, done
    assert "Python's re" not in done.stdout


def test_the_agent_in_an_archive_names_a_model_library_that_it_can_import(
    dist: Path, tree: Path
) -> None:
    """A model that nobody serves: what fails is the connection, not the import."""
    command = [sys.executable, "-S", str(dist / "toolroll-dispatch-agent.pyz"), "--json"]
    environ = {
        "TOOLROLL_CACHE": str(tree.parent / "cache"),
        "TOOLROLL_AGENT_BASE_URL": "http://127.0.0.1:9/v1",
        "TOOLROLL_AGENT_MODEL": "some",
        "TOOLROLL_AGENT_API_KEY": "k",
        "TOOLROLL_MAX_SECONDS": "20",
    }
    done = call(command, tree, "prompt=Where is `needle`?", **environ)
    assert json.loads(done.stdout)["status"] == "model_failed", done
