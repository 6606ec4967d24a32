"""100 lines deep in a 1 GB file: View's first page, its next page, sed."""

import json
import subprocess
from pathlib import Path

from benchmarks.measure import CLEAN, ENVIRONMENTS, Section, interleave, timed_ms, toolroll
from benchmarks.wire import Peer

LINES, LINE, FIRST = (
    10_000_000,
    1_000_000,
    "line %08d of a large file, as long as a line of a log is wont to be: " + "x" * 30,
)
ROUNDS = 11


def section() -> Section:
    """A fresh View process each time against a fresh sed, then the page behind it in the same process."""
    ours = toolroll()
    file = _large_file(ENVIRONMENTS / "large.txt")
    small = ENVIRONMENTS / "small.txt"
    small.write_text("one line\n")
    pages: list[float] = []

    def first() -> float:
        peer = Peer([ours / "toolroll-view", "--rate", "off"], file.parent, False)
        peer.ask("tools/list", {})
        _page(peer, small, 1)  # a running server has its modules
        taken = timed_ms(lambda: _page(peer, file, LINE))
        for step in range(1, 4):
            pages.append(timed_ms(lambda step=step: _page(peer, file, LINE + 100 * step)))  # type: ignore[misc]  # bound on purpose
        peer.end_ms()
        return taken

    script = f"{LINE},{LINE + 99}p;{LINE + 99}q"
    sed = ["sed", "-n", script, str(file)]
    medians = interleave(
        {
            "sed": lambda: timed_ms(
                lambda: subprocess.run(sed, env=CLEAN, check=True, stdout=subprocess.DEVNULL)
            ),
            "first": first,
        },
        ROUNDS,
    )
    after = sorted(pages)[len(pages) // 2]
    rows = [
        [f"`sed -n '{script}'`", f"{medians['sed']:.1f}", "1.00"],
        [
            "View, first page (scans)",
            f"{medians['first']:.1f}",
            f"{medians['first'] / medians['sed']:.2f}",
        ],
        ["View, next page (seeks)", f"{after:.2f}", f"{after / medians['sed']:.3f}"],
    ]
    size = file.stat().st_size / 1e9
    return Section(
        f"View: 100 lines at line {LINE:,} of a {size:.1f} GB file",
        ["way", "ms", "x sed"],
        rows,
        "The server runs and has shown another file; this one is in the page cache. "
        "Targets: 0.8x of sed, the next page 2 ms.",
    )


def _page(peer: Peer, file: Path, offset: int) -> None:
    arguments = {"file_path": str(file), "offset": offset, "limit": 100}
    answer = json.loads(peer.ask("tools/call", {"name": "View", "arguments": arguments}))
    assert not answer["result"]["isError"], answer


def _large_file(path: Path) -> Path:
    if not path.exists():
        with path.open("w") as file:
            for start in range(0, LINES, 10_000):
                file.write(
                    "".join(FIRST % number + "\n" for number in range(start, start + 10_000))
                )
    return path
