"""GlobTool and GrepTool in a folder of 200,000 files, with progress asked for."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wire

FILES = 200_000
LINKS = 20_000  # of one file: ext4 allows 65,000
EAGER = """
import sys, {module} as at_work
at_work.PROGRESS_S = 0.0
from toolroll_{tool}.__main__ import run
sys.argv[0] = "toolroll-{tool}"
raise SystemExit(run())
"""
"""A server that tells its progress as soon as it may, so that no test waits for it."""


@pytest.fixture
def crowd(tmp_path: Path) -> Iterator[Path]:
    memory = Path("/dev/shm")  # several times as fast as a disk, where there is one
    is_there = os.access(memory, os.W_OK)
    folder = Path(tempfile.mkdtemp(dir=memory if is_there else tmp_path)).resolve()
    first = ""
    for n in range(FILES):
        if n % LINKS:
            os.link(first, f"{folder}/f{n}.txt")
        else:
            first = f"{folder}/f{n}.txt"
            Path(first).write_text("x\n")
    yield folder
    shutil.rmtree(folder)


def started(tool: str, module: str, folder: Path) -> Wire:
    script = EAGER.format(tool=tool, module=module)
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return Wire([sys.executable, "-c", script, "--root", str(folder)], environment).open()


def asked(server: Wire, tool: str, **arguments: Any) -> tuple[str, list[dict[str, Any]]]:
    """The answer, and the progress that came before it."""
    params = {"name": tool, "arguments": arguments, "_meta": {"progressToken": "here"}}
    answer = server.request("tools/call", params)["result"]
    assert not answer.get("isError"), answer
    told = [note["params"] for note in server.notes if note["method"] == "notifications/progress"]
    return answer["content"][0]["text"], told


def test_a_folder_of_200000_files_is_answered_whole_and_its_progress_told(crowd: Path) -> None:
    glob = started("glob", "toolroll_glob.find", crowd)
    grep = started("grep", "toolroll_grep.pool", crowd)
    try:
        listed = asked(glob, "GlobTool", pattern="*", limit=1)
        mode = {"output_mode": "count", "limit": 1}
        counted = asked(grep, "GrepTool", pattern="^x$", include="*7.txt", **mode)
    finally:
        assert (glob.close(), grep.close()) == (0, 0)
    assert f"1 of {FILES} files" in listed[0]
    assert f"1 of {FILES // 10} files" in counted[0]
    for text, told in (listed, counted):
        assert "incomplete" not in text
        assert told
        assert {note["progressToken"] for note in told} == {"here"}
        steps = [note["progress"] for note in told]
        assert steps == sorted(set(steps))
        assert all("files" in note["message"] for note in told)
