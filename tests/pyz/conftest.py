"""What the tests of all archives share: made once a run, by whichever worker comes first."""

import fcntl
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[2]
FETCHED = CHECKOUT / ".venv-tests"
"""What tests fetch from an index, once."""

BUILD_S = 400


def once(into: Path, make: Callable[[Path], None]) -> Path:
    """The folder `into`, filled by `make` unless somebody did it before."""
    into.parent.mkdir(parents=True, exist_ok=True)
    with open(into.with_suffix(".lock"), "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (into / "made").exists():
            into.mkdir(exist_ok=True)
            make(into)
            (into / "made").touch()
    return into


def build(into: Path, *tools: str) -> None:
    """Run the builder as `make pyz` does."""
    command = [sys.executable, str(CHECKOUT / "scripts/pyz.py"), *tools, "--into", str(into)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=BUILD_S)


@pytest.fixture(scope="session")
def run_folder(tmp_path_factory: pytest.TempPathFactory, worker_id: str) -> Path:
    """The folder that all workers of this run share."""
    base = tmp_path_factory.getbasetemp()
    return base if worker_id == "master" else base.parent


@pytest.fixture(scope="session")
def dist(run_folder: Path) -> Path:
    """The folder with all eight archives."""
    return once(run_folder / "dist", build)
