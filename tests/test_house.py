"""The house's own rules: what a tool consists of is everywhere, and nothing is heavy at start."""

import json
import re
import subprocess
import sys
import tomllib
from importlib import import_module
from pathlib import Path

import pytest

from toolroll import __version__
from toolroll.cli import program
from toolroll.tool import Tool

ROOT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
FOLDERS = sorted(path.name for path in (ROOT / "tools").iterdir() if path.is_dir())

HEAVY = {
    *("argparse", "asyncio", "collections", "concurrent", "contextlib", "ctypes", "dataclasses"),
    *("enum", "functools", "hashlib", "inspect", "json", "logging", "multiprocessing", "pathlib"),
    *("pexpect", "re", "regex", "shutil", "signal", "socket", "subprocess", "tempfile"),
    *("threading", "typing", "wcmatch"),
}
"""Modules that no server may import before its first call (benchmarks/README.md has the price)."""


def tool_of(folder: str) -> Tool:
    module = import_module(f"toolroll_{folder}.tool")
    return next(one for one in vars(module).values() if isinstance(one, Tool))


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_tool_is_named_everywhere(folder: str) -> None:
    package = f"toolroll_{folder}"
    home = ROOT / "tools" / folder
    wheel = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"]
    floors = PROJECT["tool"]["importlinter"]
    missing = [
        what
        for what, there in {
            "its script": PROJECT["project"]["scripts"].get(program(tool_of(folder)))
            == f"{package}.__main__:run",
            "its package in the wheel": f"tools/{folder}/{package}" in wheel,
            "its folder in dev-mode-dirs": f"tools/{folder}"
            in PROJECT["tool"]["hatch"]["build"]["dev-mode-dirs"],
            "its package among the floors' roots": package in floors["root_packages"],
            "its package in the floors' contracts": package in str(floors["contracts"][1:]),
            "README.md": (home / "README.md").is_file(),
            "py.typed": (home / package / "py.typed").is_file(),
            "a test module": any((ROOT / "tests/tools").glob(f"test_{folder}*.py")),
            "a row in the top README": f"](tools/{folder}/README.md)"
            in (ROOT / "README.md").read_text(),
        }.items()
        if not there
    ]
    assert not missing, f"tools/{folder} lacks {', '.join(missing)}"


def test_only_the_readme_and_the_package_lie_in_a_tools_folder() -> None:
    for folder in FOLDERS:
        names = {path.name for path in (ROOT / "tools" / folder).iterdir()} - {"__pycache__"}
        assert names == {"README.md", f"toolroll_{folder}"}


def test_the_suites_own_command_is_named_everywhere() -> None:
    build = PROJECT["tool"]["hatch"]["build"]
    assert PROJECT["project"]["scripts"]["toolroll"] == "toolroll_suite.__main__:run"
    assert "suite" in build["dev-mode-dirs"]
    assert "suite/toolroll_suite" in build["targets"]["wheel"]["packages"]
    assert PROJECT["tool"]["importlinter"]["contracts"][1]["layers"][0] == "toolroll_suite"
    assert {path.name for path in (ROOT / "suite").iterdir()} == {"toolroll_suite"}
    assert (ROOT / "suite/toolroll_suite/py.typed").is_file()


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_server_imports_nothing_heavy_before_its_first_call(folder: str) -> None:
    code = f"import sys; import toolroll_{folder}.__main__; print(*sys.modules)"
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True, timeout=60
    )
    bare = subprocess.run(
        [sys.executable, "-I", "-c", "import sys; print(*sys.modules)"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    loaded = set(done.stdout.split()) - set(bare.stdout.split())
    assert not loaded & HEAVY


@pytest.mark.parametrize("folder", FOLDERS)
def test_what_a_first_call_needs_can_be_imported(folder: str) -> None:
    for name in tool_of(folder).warm:
        import_module(name)


def test_the_first_calls_modules_are_imported_once_the_tools_were_listed() -> None:
    with subprocess.Popen(
        [sys.executable, "-v", "-m", "toolroll_view"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
    ) as server:
        assert server.stdin is not None
        assert server.stderr is not None
        asked = {"protocolVersion": "2025-11-25"}
        for key, method, params in ((1, "initialize", asked), (2, "tools/list", {})):
            line = {"jsonrpc": "2.0", "id": key, "method": method, "params": params}
            server.stdin.write(json.dumps(line) + "\n")
        server.stdin.flush()
        assert any("import 'toolroll_view.kinds'" in line for line in server.stderr)
        server.kill()


def test_all_descriptions_fit_into_a_models_context() -> None:
    tools = [tool_of(folder) for folder in FOLDERS]
    texts = [str(one.schema.get("description", "")) for tool in tools for one in tool.parameters]
    assert sum(len(tool.description) for tool in tools) < 3_600
    assert sum(map(len, texts)) < 3_500
    assert all(texts)


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_tool_has_a_title_and_all_four_hints(folder: str) -> None:
    hints = tool_of(folder).annotations
    assert set(hints) == {
        "title",
        "readOnlyHint",
        "destructiveHint",
        "idempotentHint",
        "openWorldHint",
    }
    assert re.fullmatch(r"[A-Za-z0-9_.-]{1,64}", tool_of(folder).name)


@pytest.mark.parametrize("script", ["tables.py", "examples.py", "ban_table.py"])
def test_what_is_generated_in_the_documentation_is_current(script: str) -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / script, "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr


def test_the_changelog_tells_of_this_version() -> None:
    assert f"## {__version__}" in (ROOT / "CHANGELOG.md").read_text()
