"""Every way to install that docs/how-to/install.md tells of, as it stands there, in an empty environment.

What the ways need of an index is fetched once, before; they themselves are offline.
"""

import json
import os
import re
import subprocess
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from hashlib import blake2b
from pathlib import Path

import pytest

from tests.pyz.conftest import BUILD_S, CHECKOUT, FETCHED, once
from tests.pyz.test_pyz import TOOLS, calls
from toolroll import __version__
from toolroll.spawn import Server

pytestmark = pytest.mark.timeout(BUILD_S)

PAGE = (CHECKOUT / "docs/how-to/install.md").read_text()
PYPROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
PROJECT = PYPROJECT["project"]


def run(*command: str | Path, environ: Mapping[str, str] = os.environ, cwd: Path = CHECKOUT) -> str:
    """What a command that must work prints."""
    done = subprocess.run(
        list(map(str, command)),
        env=environ,
        cwd=cwd,
        capture_output=True,
        text=True,
        timeout=BUILD_S,
        check=False,
    )
    assert done.returncode == 0, (command, done.stdout, done.stderr)
    return done.stdout


def follow(name: str, environ: Mapping[str, str]) -> None:
    """Do what stands on the page behind `<!-- name -->`; what is printed there is printed."""
    found = re.search(rf"^<!-- {name} -->\n```console\n(.*?)^```", PAGE, re.M | re.S)
    assert found, name
    for step in re.split(r"^\$ ", found[1], flags=re.M)[1:]:
        command, _, shown = step.partition("\n")
        printed = run("bash", "-c", command, environ=environ)
        assert printed == shown or not shown, command


# -- what there must be first ------------------------------------------------------------------------


@pytest.fixture(scope="session")
def wheels() -> Path:
    """A folder with all that installing needs, toolroll itself aside."""
    needed = [
        *PYPROJECT["build-system"]["requires"],
        *PROJECT["dependencies"],
        *PROJECT["optional-dependencies"]["agent"],
        *("pip", "pipx", "uv"),
    ]

    def fetch(into: Path) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "pip", "download", "--quiet", "--dest", str(into), *needed],
            capture_output=True,
            text=True,
            timeout=BUILD_S / 2,
            check=False,
        )
        if done.returncode:
            pytest.skip(f"what installing needs cannot be fetched: {done.stderr.strip()[-300:]}")

    key = " ".join([sys.version, *needed]).encode()
    return once(FETCHED / f"wheels-{blake2b(key, digest_size=8).hexdigest()}", fetch)


@pytest.fixture(scope="session")
def installers(run_folder: Path, wheels: Path) -> Path:
    """The folder of an environment's programs that has pipx and uv."""

    def make(into: Path) -> None:
        run(sys.executable, "-m", "venv", "--without-pip", into)
        python = str(into / "bin/python")
        pip = [sys.executable, "-m", "pip", "--python", python, "install", "--quiet"]
        run(*pip, "--no-index", "--find-links", wheels, "pipx", "uv")

    return once(run_folder / "installers", make) / "bin"


@pytest.fixture
def empty(tmp_path: Path, wheels: Path, installers: Path) -> dict[str, str]:
    """An environment with a new home, and an index of `wheels` alone."""
    (tmp_path / "home").mkdir()
    return {
        "HOME": str(tmp_path / "home"),
        "PATH": f"{installers}{os.pathsep}{os.defpath}",
        "PIP_CONFIG_FILE": os.devnull,
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
        "PIP_FIND_LINKS": str(wheels),
        "PIP_NO_COMPILE": "1",
        "PIP_NO_INDEX": "1",
        "UV_FIND_LINKS": str(wheels),
        "UV_OFFLINE": "1",
        "UV_PYTHON": sys.executable,  # whose wheels they are
        "UV_PYTHON_DOWNLOADS": "never",
    }


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with something to find."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("def needle(x):\n    return x\n")
    return tmp_path / "work"


# -- the ways ----------------------------------------------------------------------------------------


def test_pip_installs_every_command_and_the_extra_a_library(
    empty: dict[str, str], tree: Path
) -> None:
    programs = Path(empty["HOME"], ".toolroll/bin")
    follow("pip", empty)
    for script in PROJECT["scripts"]:
        assert run(programs / script, "--version", environ={}) == f"{script} {__version__}\n"
    for tool, words, expected in calls(tree):
        arguments = dict(word.split("=", 1) for word in words)
        command = [str(programs / f"toolroll-{tool}"), "--root", str(tree)]
        with Server(command, environment={"HOME": empty["HOME"]}, directory="/") as server:
            (listed,) = server.tools()
            answer = server.call(listed["name"], arguments)["content"][0]["text"]
            assert expected.lower() in answer.lower(), (tool, answer)

    library = [str(programs / "python"), "-c", "import openai"]
    assert subprocess.run(library, check=False, capture_output=True).returncode == 1
    follow("agent", empty)
    run(*library, environ={})
    command = [str(programs / "toolroll-dispatch-agent"), "--root", str(tree)]
    with Server(command, environment={"HOME": empty["HOME"]}, directory="/") as server:
        answer = server.call("dispatch_agent", {"prompt": "Where is `needle` defined?"})
        assert "a.py:1" in answer["content"][0]["text"]


def test_pipx_installs_every_command(empty: dict[str, str], tree: Path) -> None:
    follow("pipx", empty)
    programs = Path(empty["HOME"], ".local/bin")
    assert {path.name for path in programs.iterdir()} == set(PROJECT["scripts"])
    assert "a.py" in run(programs / "toolroll-ls", "--call", "path=.", environ={}, cwd=tree)


def test_uvx_runs_a_command_of_a_checkout(empty: dict[str, str]) -> None:
    follow("uvx", empty)


def test_what_the_page_makes_can_be_made() -> None:
    targets = re.findall(r"^\$ make (\w+)$", PAGE, re.M)
    assert targets
    for target in targets:
        assert f"scripts/{target}.py" in run("make", "--dry-run", target)


# -- what is published -------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def released(run_folder: Path, wheels: Path) -> Path:
    """A folder with the sdist, the wheel that is built from it, and one that is not."""

    def make(into: Path) -> None:
        pip = [sys.executable, "-m", "pip", "install", "--quiet", "--no-index"]
        run(*pip, "--find-links", wheels, "--target", into / "hatch", "hatchling")
        environ = {**os.environ, "PYTHONPATH": str(into / "hatch")}
        hatch = [sys.executable, "-m", "hatchling", "build", "--directory"]
        run(*hatch, into, "--target", "sdist", environ=environ)
        run(*hatch, into / "direct", "--target", "wheel", environ=environ)
        (into / "source").mkdir()
        run("tar", "-xzf", next(into.glob("*.tar.gz")), "-C", into / "source")
        (source,) = (into / "source").iterdir()
        run(*hatch, into, "--target", "wheel", environ=environ, cwd=source)

    return once(run_folder / "released", make)


def test_the_sdist_is_whole(released: Path) -> None:
    """It has what a distributor needs to test, and builds the wheel that the checkout does."""
    (source,) = (released / "source").iterdir()
    for name in ("tests/test_house.py", "scripts/pyz.py", "docs/how-to/install.md", "Makefile"):
        assert (source / name).is_file()
    (wheel,) = released.glob("*.whl")
    assert (released / "direct" / wheel.name).read_bytes() == wheel.read_bytes()
    with zipfile.ZipFile(wheel) as archive:
        tops = {name.partition("/")[0] for name in archive.namelist()}
    packages = {path.rpartition("/")[2] for path in _packages()}
    assert tops == packages | {f"toolroll-{__version__}.dist-info"}


def _packages() -> list[str]:
    found: list[str] = PYPROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    return found


@pytest.mark.parametrize("tool", TOOLS)
def test_what_the_registry_tells_starts(
    tool: str, released: Path, empty: dict[str, str], tree: Path
) -> None:
    """As hosts put it together: uvx, the runtime's arguments, the package, the package's own."""
    (package,) = json.loads((CHECKOUT / f"registry/{tool}.json").read_text())["packages"]
    command = [package["runtimeHint"], *(word["value"] for word in package["runtimeArguments"])]
    command.append(f"{package['identifier']}=={package['version']}")
    for word in package["packageArguments"]:
        command += [word["name"], str(tree)] if word["type"] == "named" else [word["value"]]
    environ = {**empty, "UV_FIND_LINKS": f"{empty['UV_FIND_LINKS']},{released}"}
    environ["UV_CACHE_DIR"] = str(released / "cache")
    command[0] = str(Path(empty["PATH"].partition(os.pathsep)[0], command[0]))
    with Server(command, environment=environ, directory="/", open_s=120) as server:
        assert len(server.tools()) == 1
