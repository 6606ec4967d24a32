"""Spawn until tools/list is answered, idle memory, and the end behind the end of input."""

import os
import subprocess
import sys
import time
from pathlib import Path

from benchmarks.measure import (
    CLEAN,
    ENVIRONMENTS,
    ROOT,
    Section,
    environment,
    interleave,
    timed_ms,
    toolroll,
)
from benchmarks.wire import Peer

ROUNDS = 31


def section() -> Section:
    """Ours as console scripts, bare Python of the same environment, the official SDK."""
    ours, sdk = toolroll(), environment("sdk", "mcp==2.3.0")
    zipped = [_zipapp(name) for name in ("ls", "grep")]
    servers: dict[str, tuple[list[Path | str], bool]] = {
        "toolroll-ls": ([ours / "toolroll-ls"], False),
        "toolroll-view": ([ours / "toolroll-view"], False),
        "toolroll-ls, options given": (
            [ours / "toolroll-ls", "--root", ROOT, "--rate", "off", "--log-level", "error"],
            False,
        ),
        **{path.name: ([path], False) for path in zipped},
        **{f"`python {path.name}`": ([ours / "python", path], False) for path in zipped[:1]},
        "official SDK (mcp 2.3.0)": (
            [sdk / "python", ROOT / "benchmarks/peers/sdk_server.py"],
            True,
        ),
    }
    memory: dict[str, float] = {}
    ends: dict[str, list[float]] = {name: [] for name in servers}

    def start(name: str) -> float:
        argv, handshake = servers[name]
        began = time.perf_counter()
        peer = Peer(argv, ROOT, handshake, PATH=f"{ours}{os.pathsep}{os.defpath}")
        peer.ask("tools/list", {})
        taken = (time.perf_counter() - began) * 1000
        memory[name] = peer.resident_mb()
        ends[name].append(peer.end_ms())
        return taken

    bare = [str(ours / "python"), "-c", "pass"]
    medians = interleave(
        {
            "bare": lambda: timed_ms(lambda: subprocess.run(bare, env=CLEAN, check=True)),
            **{name: (lambda name=name: start(name)) for name in servers},  # type: ignore[misc]  # bound on purpose
        },
        ROUNDS,
    )
    base = medians.pop("bare")
    rows = [["`python -c pass`, same environment", f"{base:.1f}", "1.00", "", ""]]
    rows += [
        [
            name,
            f"{ms:.1f}",
            f"{ms / base:.2f}",
            f"{memory[name]:.1f}",
            f"{sorted(ends[name])[ROUNDS // 2]:.1f}",
        ]
        for name, ms in medians.items()
    ]
    return Section(
        "Start-up",
        ["server", "ms", "x bare Python", "idle RSS MB", "end ms"],
        rows,
        "From spawning the process until tools/list is answered; then from end of input until it is gone. "
        "Targets: 1.8x of bare Python, 1.5x for a zipapp, 12 MB, 20 ms.",
    )


def _zipapp(tool: str) -> Path:
    """The tool's archive, built by the Python that runs this."""
    into = ENVIRONMENTS / "dist"
    command = [sys.executable, str(ROOT / "scripts/pyz.py"), tool, "--into", str(into)]
    subprocess.run(command, check=True)
    return into / f"toolroll-{tool}.pyz"
