"""One replacement in a 10 MB file: Edit (durable: fsync of file and directory) against `sed -i` (not)."""

import json
import subprocess
from pathlib import Path

from benchmarks.measure import CLEAN, ENVIRONMENTS, Section, interleave, timed_ms, toolroll
from benchmarks.wire import Peer

ROUNDS, LINES, MIDDLE = 15, 150_000, 75_000


def section() -> Section:
    """Each case changes its own copy back and forth, so every round does the same work."""
    ours = toolroll()
    folder = ENVIRONMENTS / "edit"
    folder.mkdir(exist_ok=True)
    text = "".join(
        f"line {number:06d} of a file that is to be edited, and not a short one\n"
        for number in range(LINES)
    )
    files = {name: folder / name for name in ("ours", "sed")}
    for file in files.values():
        file.write_text(text)
    peer = Peer([ours / "toolroll-edit", "--rate", "off"], folder, False)
    texts = [f"line {MIDDLE:06d} of", f"LINE {MIDDLE:06d} of"]

    def edit() -> float:
        texts.reverse()
        return timed_ms(lambda: _edit(peer, files["ours"], texts[1], texts[0]))

    def sed() -> float:
        script = f"s/line {MIDDLE:06d} of/LINE {MIDDLE:06d} of/I"
        return timed_ms(
            lambda: subprocess.run(["sed", "-i", script, files["sed"]], env=CLEAN, check=True)
        )

    medians = interleave({"sed": sed, "edit": edit}, ROUNDS)
    peer.end_ms()
    rows = [
        ["`sed -i`, no fsync", f"{medians['sed']:.1f}", "1.00"],
        [
            "Edit, fsync of file and directory",
            f"{medians['edit']:.1f}",
            f"{medians['edit'] / medians['sed']:.2f}",
        ],
    ]
    size = len(text) / 1e6
    return Section(
        f"Edit: one replacement in a {size:.0f} MB file",
        ["way", "ms", "x sed"],
        rows,
        "A call to a running server against a process. Target: 0.5x of `sed -i` without giving up fsync.",
    )


def _edit(peer: Peer, file: Path, old: str, new: str) -> None:
    arguments = {"file_path": str(file), "old_string": old, "new_string": new}
    answer = json.loads(peer.ask("tools/call", {"name": "Edit", "arguments": arguments}))
    assert not answer["result"]["isError"], answer
