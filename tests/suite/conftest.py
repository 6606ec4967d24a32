"""The command `toolroll` as a process of its own, in a project and a home that are nobody's."""

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

Done = subprocess.CompletedProcess[str]


@pytest.fixture
def home(tmp_path: Path) -> Path:
    """The home directory of those who run the command."""
    folder = tmp_path / "home"
    folder.mkdir()
    return folder


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """The directory in which they run it."""
    folder = tmp_path / "project"
    folder.mkdir()
    return folder


@pytest.fixture
def toolroll(home: Path, project: Path) -> Callable[..., Done]:
    """`toolroll("config", "claude", ...)`: what it printed and its exit code; `environ` adds variables."""

    def run(*words: "str | Path", folder: Path = project, stdin: str = "", **environ: str) -> Done:
        return subprocess.run(
            [sys.executable, "-m", "toolroll_suite", *map(str, words)],
            cwd=folder,
            env={"PATH": os.environ["PATH"], "HOME": str(home), **environ},
            input=stdin,
            capture_output=True,
            text=True,
            timeout=60,
            check=False,
        )

    return run
