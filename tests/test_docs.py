"""The documentation's own promises: links lead somewhere, and numbers are those that were measured."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from toolroll.errors import ErrorCode

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/*/README.md")}
    | {ROOT / "benchmarks/README.md"}
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")


def prose(page: Path) -> str:
    """A page without its blocks of code."""
    return re.sub(r"^(`{3,}).*?^\1$", "", page.read_text(), flags=re.M | re.S)


def anchors(page: Path) -> set[str]:
    """What GitHub calls the headings of a page."""
    headings = re.findall(r"^#+ (.+)$", prose(page), re.M)
    return {re.sub(r"[^\w\- ]", "", one.lower()).replace(" ", "-") for one in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_leads_somewhere(page: Path) -> None:
    dead = []
    for link in LINK.findall(prose(page)):
        path, _, anchor = link.partition("#")
        target = (page.parent / path).resolve() if path else page
        if link.startswith(("https://", "http://")):
            continue
        if not target.exists() or (anchor and anchor not in anchors(target)):
            dead.append(link)
    assert not dead


def test_every_page_is_in_the_index() -> None:
    index = ROOT / "docs/README.md"
    linked = {(index.parent / link).resolve() for link in LINK.findall(index.read_text())}
    assert not {page for page in PAGES if ROOT / "docs" in page.parents} - linked - {index}


def test_every_error_code_is_explained() -> None:
    page = (ROOT / "docs/reference/errors.md").read_text()
    codes = {name for name in vars(ErrorCode) if name.isupper()}
    assert set(re.findall(r"^\| ([A-Z_]+) \|", page, re.M)) == codes


def test_the_comparison_shows_what_was_measured() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/comparison.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
