"""One small call after another, and 32 in flight, over pipes."""

import statistics
import time
from pathlib import Path

from benchmarks.measure import ROOT, Section, environment, toolroll
from benchmarks.wire import Peer

CALLS, ROUNDS, FLIGHT = 200, 9, 32


def section() -> Section:
    """`LS` of an empty folder: ours against a server on the official SDK that does the same."""
    ours, sdk = toolroll(), environment("sdk", "mcp==2.3.0")
    folder = ROOT / ".venv-bench/empty"
    folder.mkdir(exist_ok=True)
    peers = {
        "toolroll-ls": Peer([ours / "toolroll-ls", "--rate", "off"], folder, False),
        "official SDK (mcp 2.3.0)": Peer(
            [sdk / "python", ROOT / "benchmarks/peers/sdk_server.py"], folder, True
        ),
    }
    single: dict[str, list[float]] = {name: [] for name in peers}
    flight: dict[str, list[float]] = {name: [] for name in peers}
    for peer in peers.values():
        _one_by_one(peer, folder)
    for _ in range(ROUNDS):
        for name, peer in peers.items():
            single[name] += _one_by_one(peer, folder)
            flight[name].append(_in_flight(peer, folder))
    for peer in peers.values():
        peer.end_ms()
    p50 = {name: statistics.median(values) * 1e6 for name, values in single.items()}
    p99 = {name: statistics.quantiles(values, n=100)[98] * 1e6 for name, values in single.items()}
    rate = {name: statistics.median(values) for name, values in flight.items()}
    ours_p50, ours_rate = p50["toolroll-ls"], rate["toolroll-ls"]
    rows = [
        [
            name,
            f"{p50[name]:.0f}",
            f"{p99[name]:.0f}",
            f"{p50[name] / ours_p50:.1f}",
            f"{rate[name]:,.0f}",
            f"{rate[name] / ours_rate:.3f}",
        ]
        for name in peers
    ]
    return Section(
        "Round trip of a small call",
        ["server", "p50 µs", "p99 µs", "x ours", "calls/s, 32 in flight", "x ours"],
        rows,
        "Targets: p50 at most a tenth of the SDK's, 20 times its calls a second with 32 in flight.",
    )


def _call(peer: Peer, folder: Path, key: int) -> bytes:
    return peer.request(key, "tools/call", {"name": "LS", "arguments": {"path": str(folder)}})


def _one_by_one(peer: Peer, folder: Path) -> list[float]:
    taken = []
    for key in range(CALLS):
        line = _call(peer, folder, key)
        began = time.perf_counter()
        peer.exchange(line)
        taken.append(time.perf_counter() - began)
    return taken


def _in_flight(peer: Peer, folder: Path) -> float:
    """Calls a second when FLIGHT requests are written at once and all answers are awaited."""
    lines = b"".join(_call(peer, folder, key) for key in range(FLIGHT))
    began = time.perf_counter()
    for _ in range(10):
        peer.exchange(lines, FLIGHT)
    return 10 * FLIGHT / (time.perf_counter() - began)
