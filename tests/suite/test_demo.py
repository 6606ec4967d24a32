"""`toolroll demo`: the tour through every tool, and where it goes."""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.suite.conftest import Done
from toolroll import spawn
from toolroll_suite import demo
from toolroll_suite.installed import installed
from toolroll_suite.tours import TOURS, Step

Toolroll = Callable[..., Done]


def test_every_call_ends_as_its_step_says(toolroll: Toolroll) -> None:
    done = toolroll("demo")
    assert done.returncode == 0, done.stdout
    total = done.stdout.splitlines()[-1]
    assert re.match(rf"{len(installed())} tools, {2 * len(installed())} sessions, ", total)
    assert "nothing failed" in total
    steps = [step for tour in TOURS.values() for step in (*tour.steps, *tour.older)]
    assert f"{len(steps)} calls" in total
    assert all(f"  {step.why}:" in done.stdout for step in steps)


def test_every_installed_tool_has_a_tour() -> None:
    assert {one.short for one in installed()} == set(TOURS)


def test_without_a_checkout_it_goes_through_what_is_installed(
    toolroll: Toolroll, tmp_path: Path
) -> None:
    """A copy of the package that no pyproject.toml stands above is what a wheel installs."""
    (tmp_path / "site").mkdir()
    package = Path(spawn.__file__).parent
    subprocess.run(["cp", "-r", package, tmp_path / "site/toolroll"], check=True, timeout=60)
    code = (
        "from toolroll_suite.demo import sources\n"
        "with sources() as tree:\n"
        "    print(*sorted(str(p.relative_to(tree)) for p in tree.rglob('*') if p.is_file()))\n"
        "    print((tree / 'README.md').read_text()[:10], (tree / 'LICENSE').read_text()[:11])\n"
        "print(tree.exists())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"PATH": os.environ["PATH"], "PYTHONPATH": str(tmp_path / "site")},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    files, texts, left = done.stdout.strip().rsplit("\n", 2)
    assert {"LICENSE", "README.md", "common/toolroll/framing.py"} <= set(files.split())
    assert texts == "# toolroll MIT License"
    assert left == "False"


@pytest.mark.parametrize(
    ("step", "result", "complaint"),
    [
        (Step("", {}, shows="yes"), {"isError": False}, "'yes' is not in the answer"),
        (Step("", {}, fails="NOT_FOUND"), {"isError": False}, "no error instead of NOT_FOUND"),
        (
            Step("", {}),
            {"isError": True, "_meta": {"toolroll/code": "X"}},
            "X instead of an answer",
        ),
        (Step("", {}, shows="no"), {"isError": False}, ""),
    ],
)
def test_an_answer_that_is_not_as_its_step_says_is_a_failure(
    step: Step, result: dict[str, object], complaint: str
) -> None:
    said = demo.judge(step, {"content": [{"type": "text", "text": "no"}], **result})
    assert said.removeprefix("unexpected: ") == complaint
