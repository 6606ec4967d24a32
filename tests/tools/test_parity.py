"""GlobTool and GrepTool find what ripgrep finds, in this checkout and in a part of Python's library.

`make parity` compares whole libraries with the same scripts, and takes minutes.
"""

import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("asyncio", "email", "json", "xml")
ELSEWHERE = (".git", ".venv*", ".*_cache", ".hypothesis", "build", "dist")


@pytest.fixture
def trees(tmp_path: Path) -> list[str]:
    """Copies, as other tests write into the checkout; the library's has compiled, so binary, files."""
    library, checkout = tmp_path / "library", tmp_path / "checkout"
    for package in PACKAGES:
        shutil.copytree(Path(sysconfig.get_path("stdlib")) / package, library / package)
    shutil.copytree(ROOT, checkout, ignore=shutil.ignore_patterns(*ELSEWHERE))
    (checkout / ".git").mkdir()  # so that .gitignore counts
    return [str(library), str(checkout)]


@pytest.mark.parametrize("script", ["parity_glob.py", "parity_grep.py"])
def test_the_same_is_found_as_by_ripgrep(trees: list[str], script: str) -> None:
    command = [sys.executable, str(ROOT / "scripts" / script), *trees]
    done = subprocess.run(command, capture_output=True, text=True, timeout=110, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert all(tree in done.stdout for tree in trees)
