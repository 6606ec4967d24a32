"""docs/how-to/add-a-tool.md followed to the letter, in a copy of the checkout."""

import os
import re
import runpy
import subprocess
import sys
import sysconfig
import tomllib
import venv
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent
GUIDE = ROOT / "docs/how-to/add-a-tool.md"
TOOL = "wc"
SHOWN = "/home/ann/toolroll"

BLOCK = re.compile(
    r"(?:^`(?P<file>[^`\n]+)`:\n\n)?^(?P<fence>`{3,})(?P<kind>\w*)\n(?P<body>.*?)^(?P=fence)$",
    re.M | re.S,
)
SCRIPT = """\
#!{python}
from {module} import {function}

raise SystemExit({function}())
"""


def run(checkout: Path, command: str) -> str:
    """What a command prints in the checkout; it must be content, but for one that shows its status."""
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=checkout,
        env={"PATH": os.environ["PATH"], "HOME": str(checkout.parent), "MYPY_CACHE_DIR": "../mypy"},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=110,
        check=False,
    )
    output = done.stdout.replace(str(checkout), SHOWN)
    assert done.returncode == 0, f"$ {command}\n{output}"
    return output


def install(checkout: Path) -> str:
    """What `make env` does, with the libraries of this environment: an editable install by its own words."""
    home = checkout / ".venv"
    venv.create(home, symlinks=True)
    project = tomllib.loads((checkout / "pyproject.toml").read_text())
    folders = [checkout / name for name in project["tool"]["hatch"]["build"]["dev-mode-dirs"]]
    paths = [*folders, sysconfig.get_path("purelib")]
    (packages,) = home.glob("lib/python*/site-packages")
    (packages / "editable.pth").write_text("".join(f"{path}\n" for path in paths))
    scripts = project["project"]["scripts"]
    known = packages / "toolroll-0.dist-info"  # goes before that of this environment
    known.mkdir()
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: toolroll\nVersion: 0\n")
    points = "".join(f"{name} = {entry}\n" for name, entry in scripts.items())
    (known / "entry_points.txt").write_text(f"[console_scripts]\n{points}")
    (known / "RECORD").write_text("".join(f"../../../bin/{name},,\n" for name in scripts))
    for name, entry in scripts.items():
        module, _, function = entry.partition(":")
        script = home / "bin" / name
        script.write_text(
            SCRIPT.format(python=home / "bin/python", module=module, function=function)
        )
        script.chmod(0o755)
    return ""


def check(checkout: Path) -> str:
    """What `make check` does, for what the guide made: the rest is as it was."""
    bin_ = Path(sys.executable).parent
    ours = f"tools/{TOOL} tests/tools/test_{TOOL}.py scripts/pyz.py suite"
    for command in (
        f"{bin_}/ruff format --no-cache --check {ours}",
        f"{bin_}/ruff check --no-cache {ours}",
        ".venv/bin/python scripts/tables.py --check",
        ".venv/bin/python scripts/mcpb.py --check",
        ".venv/bin/python -c 'from importlinter.cli import lint_imports_command as run; run()' --no-cache",
        f".venv/bin/python -m mypy tools/{TOOL} tests/tools/test_{TOOL}.py",
        ".venv/bin/python -m pytest -p no:cacheprovider tests/test_house.py -k 'not current'",
        ".venv/bin/python -m pytest -p no:cacheprovider tests/suite/test_demo.py -k 'tour or step'",
        f".venv/bin/python scripts/pyz.py {TOOL} --into ..",
    ):
        run(checkout, command)
    return ""


STAND_INS = {"make env": install, "make check": check}
"""Commands that would fetch from the network, or test all that the guide has not touched."""


def follow(block: "re.Match[str]", checkout: Path) -> None:
    """Do what one block of the guide says."""
    if block["kind"] == "console":
        commands = re.findall(r"^\$ (.*)\n((?:(?!\$ ).*\n)*)", block["body"], re.M)
        for command, shown in commands:
            stand_in = STAND_INS.get(command)
            output = stand_in(checkout) if stand_in else run(checkout, command)
            assert output == shown or not shown, f"$ {command}\n{output}"
        return
    assert block["file"], f"nobody is told what to do with:\n{block['body']}"
    path = checkout / block["file"]
    if block["kind"] == "diff":
        path.write_text(changed(path.read_text(), block["body"]))
    else:
        path.write_text(block["body"])


def changed(text: str, diff: str) -> str:
    """The text with a diff applied; the lines of a hunk must stand there once."""
    for hunk in re.split(r"^@@.*\n", diff, flags=re.M):
        lines = hunk.splitlines(keepends=True)
        old, new = (
            "".join(line[1:] for line in lines if line[0] in sides) for sides in (" -", " +")
        )
        assert f"\n{text}".count(f"\n{old}") == 1, f"not one place for:\n{hunk}"
        text = f"\n{text}".replace(f"\n{old}", f"\n{new}")[1:]
    return text


@pytest.mark.timeout(180)
def test_the_guide_leads_to_a_tool_that_passes_every_check(tmp_path: Path) -> None:
    checkout: Path = runpy.run_path(str(ROOT / "scripts/examples.py"))["copied"](tmp_path / "copy")
    blocks = list(BLOCK.finditer(GUIDE.read_text()))
    for block in blocks:
        follow(block, checkout)
    done = "".join(block["body"] for block in blocks)
    assert all(f"$ {command}\n" in done for command in STAND_INS)
