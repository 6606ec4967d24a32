"""One small call after another, and 32 in flight, over pipes."""

import shutil
import statistics
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.measure import ENVIRONMENTS, ROOT, Section, environment, toolroll
from benchmarks.wire import Peer

CALLS, ROUNDS, FLIGHT = 200, 9, 32
NODE_SERVER = "@modelcontextprotocol/server-filesystem"
NODE_VERSION = "2026.8.31"


class Case:
    """One server, and the call that is made again and again."""

    def __init__(self, peer: Peer, tool: str, arguments: dict[str, str]) -> None:
        self.peer = peer
        self.tool = tool
        self.arguments = arguments
        self.taken_s: list[float] = []
        self.rates: list[float] = []

    def request(self, key: int) -> bytes:
        """The call as a line."""
        params = {"name": self.tool, "arguments": self.arguments}
        return self.peer.request(key, "tools/call", params)

    def one_by_one(self) -> None:
        """Make CALLS calls, each when the one before it is answered."""
        for key in range(CALLS):
            line = self.request(key)
            began = time.perf_counter()
            self.peer.exchange(line)
            self.taken_s.append(time.perf_counter() - began)

    def in_flight(self) -> None:
        """Calls a second when FLIGHT requests are written at once and all answers are awaited."""
        lines = b"".join(self.request(key) for key in range(FLIGHT))
        began = time.perf_counter()
        for _ in range(10):
            self.peer.exchange(lines, FLIGHT)
        self.rates.append(10 * FLIGHT / (time.perf_counter() - began))

    def p(self, percent: int) -> float:
        """Microseconds."""
        return statistics.quantiles(self.taken_s, n=100)[percent - 1] * 1e6


def section() -> Section:
    """A tool that only answers, and the listing of an empty folder: ours against the others' ones."""
    folder = ENVIRONMENTS / "empty"
    folder.mkdir(parents=True, exist_ok=True)
    cases = _cases(folder)
    for case in cases.values():
        case.one_by_one()
        case.taken_s.clear()
    for _ in range(ROUNDS):
        for case in cases.values():
            case.one_by_one()
            case.in_flight()
    for case in cases.values():
        case.peer.process.kill()
    return Section(
        "Round trip of a small call",
        ["call", "server", "p50 µs", "p99 µs", "x ours", "calls/s, 32 in flight", "ours x"],
        [_row(name, case, cases) for name, case in cases.items()],
        "*echo* answers with its argument, *list* lists an empty folder. Targets: p50 at most a tenth of the "
        "SDK's and half of the node server's, 20 times the SDK's calls a second with 32 in flight.",
    )


def _row(name: tuple[str, str], case: Case, cases: dict[tuple[str, str], Case]) -> list[str]:
    call, server = name
    ours = cases[call, "toolroll"]
    rate: Callable[[Case], float] = lambda one: statistics.median(one.rates)  # noqa: E731
    return [
        call,
        server,
        f"{case.p(50):.0f}",
        f"{case.p(99):.0f}",
        f"{case.p(50) / ours.p(50):.1f}",
        f"{rate(case):,.0f}",
        f"{rate(ours) / rate(case):.1f}",
    ]


def _cases(folder: Path) -> dict[tuple[str, str], Case]:
    ours, sdk = toolroll(), environment("sdk", "mcp==2.3.0")
    peers = ROOT / "benchmarks/peers"
    off = ["--rate", "off"]
    text, path = {"text": "hello"}, {"path": str(folder)}
    official = Peer([sdk / "python", peers / "sdk_server.py"], folder, True)
    cases = {
        ("echo", "toolroll"): Case(
            Peer([ours / "python", peers / "echo_tool.py", *off], folder, False), "Echo", text
        ),
        ("echo", "official SDK (mcp 2.3.0)"): Case(official, "Echo", text),
        ("list", "toolroll"): Case(Peer([ours / "toolroll-ls", *off], folder, False), "LS", path),
        ("list", "official SDK (mcp 2.3.0)"): Case(official, "LS", path),
    }
    if node := _node_server():
        peer = Peer(["node", node, folder], folder, True)
        name = f"{NODE_SERVER.split('/')[1]} {NODE_VERSION} (node)"
        cases["list", name] = Case(peer, "list_directory", path)
    return cases


def _node_server() -> Path | None:
    """The script of the filesystem server for node, installed once; None without npm."""
    folder = ENVIRONMENTS / "node"
    script = folder / "node_modules" / NODE_SERVER / "dist/index.js"
    if not script.exists() and shutil.which("npm"):
        folder.mkdir(parents=True, exist_ok=True)
        package = f"{NODE_SERVER}@{NODE_VERSION}"
        command = ["npm", "install", "--silent", "--prefix", str(folder), package]
        subprocess.run(command, check=False)
    return script if script.exists() else None
