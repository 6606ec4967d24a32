"""How everything is measured: cases take turns in one run, medians are compared."""

import os
import statistics
import subprocess
import sys
import time
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
ENVIRONMENTS = ROOT / ".venv-bench"
CLEAN = {"PATH": os.environ.get("PATH", os.defpath), "HOME": os.environ.get("HOME", "/")}

Case = Callable[[], float]


class Section:
    """One table: `rows` under `columns`, with the words that belong to it."""

    def __init__(
        self, title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], note: str
    ):
        self.title = title
        self.columns = columns
        self.rows = rows
        self.note = note

    def markdown(self) -> str:
        """The section as it stands in benchmarks/README.md."""
        table = [self.columns, ["---"] * len(self.columns), *self.rows]
        lines = ["| " + " | ".join(row) + " |" for row in table]
        return f"## {self.title}\n\n{self.note}\n\n" + "\n".join(lines) + "\n"


def interleave(cases: Mapping[str, Case], rounds: int) -> dict[str, float]:
    """The median of each case in the unit it returns; one warm-up round, then turn by turn."""
    for case in cases.values():
        case()
    taken: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, case in cases.items():
            taken[name].append(case())
    return {name: statistics.median(values) for name, values in taken.items()}


def timed_ms(action: Callable[[], object]) -> float:
    """How long an action takes, in milliseconds."""
    began = time.perf_counter()
    action()
    return (time.perf_counter() - began) * 1000


def environment(name: str, *packages: str) -> Path:
    """The bin folder of a virtual environment with just these packages, made once per version."""
    folder = ENVIRONMENTS / name
    stamp = folder / "ready"
    wanted = "\n".join(packages)
    if not stamp.exists() or stamp.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", "--clear", folder], check=True)
        pip = [str(folder / "bin/python"), "-m", "pip", "install", "--quiet"]
        subprocess.run([*pip, "--upgrade", "pip>=25.1"], check=True)
        if packages:
            subprocess.run([*pip, *packages], check=True)
        stamp.write_text(wanted)
    return folder / "bin"


def toolroll() -> Path:
    """The bin folder of a clean environment with this checkout installed from its wheel."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    folder = environment("toolroll", *project["dependencies"])
    pip = [
        str(folder / "python"),
        "-m",
        "pip",
        "install",
        "--quiet",
        "--force-reinstall",
        "--no-deps",
    ]
    subprocess.run([*pip, str(ROOT)], check=True)
    return folder
