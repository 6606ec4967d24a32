"""`true` and a lot of output through a persistent shell: ours, pexpect twice, SWE-ReX, and bash anew."""

import asyncio
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.measure import CLEAN, ENVIRONMENTS, ROOT, Section, environment, interleave

OURS, REX, BARE, TUNED, ANEW = "toolroll", "swerex", "pexpect", "tuned", "anew"
NAMES = {
    OURS: "toolroll, `Tool.call`",
    REX: "SWE-ReX 1.4.0, local session",
    BARE: "pexpect, replwrap",
    TUNED: "pexpect, no delay, larger reads",
    ANEW: "`bash -c` each time",
}
CALLS, ROUNDS = 40, 7
STARTS = "for i in {1..1000}; do /bin/true; done"
MEGABYTES = {OURS: 100, REX: 1, BARE: 4, TUNED: 10, ANEW: 100}
"""How much each has to print: the slow ones would take minutes for 100."""


def section() -> Section:
    """All in processes of one environment, taking turns."""
    python = environment("bash", "pexpect==4.9.0", "swe-rex==1.4.0") / "python"
    text = ENVIRONMENTS / "output.txt"
    if not text.exists():
        text.write_text(
            "a line of a build's log, as long as such lines often are: 0123456789\n" * 1_450_000
        )
    peers = {name: Peer(python, name, text) for name in NAMES}
    small = interleave({name: peer.small_ms for name, peer in peers.items()}, ROUNDS)
    large = interleave({name: peer.large_s for name, peer in peers.items()}, 3)
    memory = {name: peer.ask("memory") for name, peer in peers.items()}
    for peer in peers.values():
        peer.end()
    rows = [
        [
            NAMES[name],
            f"{small[name]:.2f}",
            f"{small[name] / small[OURS]:.1f}",
            f"{MEGABYTES[name] / large[name]:.1f}",
            f"{memory[name]:.0f}",
        ]
        for name in NAMES
    ]
    return Section(
        "Bash: a small command and 100 MB of output",
        ["way", "`true`, p50 ms", "x ours", "output MB/s", "peak RSS MB"],
        rows,
        "In the caller's own process, so without any wire. Targets: 0.3 ms, a hundredth of SWE-ReX's time, "
        "200 MB/s in constant memory. The slow ones print less than 100 MB.",
    )


class Peer:
    """A process that runs commands one way and tells how long they took."""

    def __init__(self, python: Path, name: str, text: str | Path = "") -> None:
        paths = [str(ROOT), str(ROOT / "common"), str(ROOT / "tools/bash")]
        code = f"import sys; sys.path[:0] = {paths!r}; from benchmarks.bash import serve; serve(*sys.argv[1:])"
        self.process = subprocess.Popen(
            [str(python), "-c", code, name, str(text)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=CLEAN,
            cwd=ENVIRONMENTS,
            text=True,
        )

    def ask(self, what: str) -> float:
        """The number that answers a word."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(what + "\n")
        self.process.stdin.flush()
        return float(json.loads(self.process.stdout.readline()))

    def small_ms(self) -> float:
        """The median time of `true`."""
        return self.ask("small")

    def large_s(self) -> float:
        """The time of the output."""
        return self.ask("large")

    def starts_s(self) -> float:
        """The time of 1,000 starts of a program."""
        return self.ask("starts")

    def end(self) -> None:
        """Close its input and wait."""
        self.process.communicate(timeout=30)


# -- in the peer's process ---------------------------------------------------------------------------


def serve(name: str, text: str) -> None:
    """Answer words on stdin with numbers on stdout."""
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)
    run, close = WAYS[name]()
    large = f"head -c {MEGABYTES.get(name, 0) * 1_000_000} {text}"
    for line in sys.stdin:
        words = line.strip()
        number = _peak_mb() if words == "memory" else _measured(run, words, large)
        answers.write(json.dumps(number) + "\n")
        answers.flush()
    close()


def _measured(run: Callable[[str], Any], what: str, large: str) -> float:
    if what == "large":
        return _timed_s(run, large)
    if what == "starts":
        return _timed_s(run, STARTS)
    calls = 3 if run.__name__ == "rex" else CALLS
    return sorted(_timed_s(run, "true") for _ in range(calls))[calls // 2] * 1000


def _timed_s(run: Callable[[str], Any], command: str) -> float:
    began = time.perf_counter()
    run(command)
    return time.perf_counter() - began


def _peak_mb() -> float:
    """Since this process was executed; getrusage would count the parent it was forked from."""
    text = Path("/proc/self/status").read_text()
    return int(text.split("VmHWM:")[1].split()[0]) / 1024


Way = tuple[Callable[[str], Any], Callable[[], object]]


def _ours(**options: object) -> Way:
    from toolroll.call import Call
    from toolroll.guard import Guard
    from toolroll.paths import Roots
    from toolroll_bash.tool import bash, close

    call = Call(Roots(["."]), Guard({}), options)

    def run(command: str) -> None:
        outcome = bash.call({"command": command}, call)
        assert not outcome.failed, outcome.text

    return run, close


def _banning(mode: str) -> Way:
    return _ours(**{"ban-mode": mode})


def _banning_nothing() -> Way:
    from toolroll_bash.policy import BANNED

    return _ours(allow=BANNED)


def _rex() -> Way:
    from swerex.runtime.abstract import (  # type: ignore[import-not-found]  # in its environment
        BashAction,
        CreateBashSessionRequest,
    )
    from swerex.runtime.local import LocalRuntime  # type: ignore[import-not-found]  # the same

    loop = asyncio.new_event_loop()
    runtime = LocalRuntime()
    loop.run_until_complete(runtime.create_session(CreateBashSessionRequest()))

    def rex(command: str) -> None:
        loop.run_until_complete(runtime.run_in_session(BashAction(command=command, timeout=300)))

    return rex, lambda: loop.run_until_complete(runtime.close())


def _pexpect(delay: float | None, size: int) -> Way:
    from pexpect import replwrap

    shell = replwrap.bash()
    shell.child.delaybeforesend = delay
    shell.child.maxread = size

    def run(command: str) -> None:
        shell.run_command(command, timeout=300)

    return run, lambda: shell.child.close(force=True)


def _anew() -> Way:
    def run(command: str) -> None:
        subprocess.run(["bash", "--norc", "-c", command], capture_output=True, check=True)

    return run, lambda: None


WAYS: dict[str, Callable[[], Way]] = {
    OURS: _ours,
    REX: _rex,
    BARE: lambda: _pexpect(0.05, 2_000),
    TUNED: lambda: _pexpect(None, 1 << 20),
    ANEW: _anew,
    "nothing": _banning_nothing,
    **{mode: partial(_banning, mode) for mode in ("text", "shims", "kernel")},
}
