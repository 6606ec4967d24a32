"""Finding files, newest first: GlobTool against ripgrep, the one peer that promises the true newest."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import CLEAN, Section, interleave, timed_ms, toolroll
from benchmarks.wire import Peer

ROUNDS = 9
TREES = (Path(sys.base_prefix), Path("/usr/include"), Path("/usr/lib/node_modules"))
PATTERNS = ("**/*.py", "**/*.{c,h}", "**/package.json", "**/*_test*", "**/[A-M]*.?", "**")


def section() -> Section:
    """Every pattern on every tree there is: rg, a server's first call, and its next ones."""
    ours = toolroll()
    rows: list[list[str]] = []
    for tree in TREES:
        if tree.is_dir():
            rows += _rows(ours, tree)
    return Section(
        "GlobTool against `rg --files --sortr modified -g`",
        ["tree", "pattern", "files", "rg ms", "cold ms", "x rg", "warm ms", "x rg"],
        rows,
        "A call to a running server against a process; *cold* is a server's first call, *warm* any later one "
        "(every file's time is still asked for). Targets: cold 1.3x, warm 0.4x. Where nearly all files"
        " match, warm is bound by asking for their times, 3 µs each from Python; cold by listing the"
        " folders and, in small trees, by the import of what reads patterns.",
    )


def _rows(ours: Path, tree: Path) -> list[list[str]]:
    warm = _server(ours, tree)
    rows = []
    for pattern in PATTERNS:
        total = _find(warm, pattern)
        medians = interleave(
            {
                "rg": lambda pattern=pattern: timed_ms(lambda: _rg(tree, pattern)),  # type: ignore[misc]  # bound on purpose
                "cold": _cold(ours, tree, pattern),
                "warm": lambda pattern=pattern: timed_ms(lambda: _find(warm, pattern)),  # type: ignore[misc]  # as above
            },
            ROUNDS,
        )
        row = [_named(tree), f"`{pattern}`", f"{total:,}", f"{medians['rg']:.0f}"]
        for name in ("cold", "warm"):
            row += [f"{medians[name]:.1f}", f"{medians[name] / medians['rg']:.2f}"]
        rows.append(row)
    warm.end_ms()
    return rows


def _named(tree: Path) -> str:
    return "Python with its libraries" if tree == TREES[0] else f"`{tree}`"


def _server(ours: Path, tree: Path) -> Peer:
    words: list[str | Path] = [
        ours / "toolroll-glob",
        "--rate",
        "off",
        "--structured",
        "--root",
        tree,
    ]
    peer = Peer(words, tree, False)
    peer.ask("tools/list", {})
    return peer


def _cold(ours: Path, tree: Path, pattern: str) -> Callable[[], float]:
    def first_call() -> float:
        peer = _server(ours, tree)
        taken = timed_ms(lambda: _find(peer, pattern))
        peer.end_ms()
        return taken

    return first_call


def _find(peer: Peer, pattern: str) -> int:
    """The number of files that match; a hundred of them are sent."""
    call = {"name": "GlobTool", "arguments": {"pattern": pattern}}
    answer = json.loads(peer.ask("tools/call", call))["result"]
    assert not answer["isError"], answer
    total: int = answer["structuredContent"]["total"]
    return total


def _rg(tree: Path, pattern: str) -> None:
    path = f"{Path(sys.executable).parent}{os.pathsep}{CLEAN['PATH']}"
    subprocess.run(
        ["rg", "--files", "--sortr", "modified", "-g", pattern],
        cwd=tree,
        env={**CLEAN, "PATH": path},
        stdout=subprocess.DEVNULL,
        check=False,  # 1 when nothing matches
    )
