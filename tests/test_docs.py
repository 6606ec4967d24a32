"""The documentation's own promises: links lead somewhere, and numbers are those that were measured."""

import re
import shlex
import subprocess
import sys
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from itertools import dropwhile, groupby
from pathlib import Path
from typing import Any

import pytest

from tests.test_house import FOLDERS, tool_of
from toolroll.cli import actions, declared, parse, program, variable
from toolroll.errors import ErrorCode
from toolroll.saved import CACHE
from toolroll_dispatch_agent.providers import KEY
from toolroll_suite import jsonc

ROOT = Path(__file__).resolve().parent.parent
PAGES = sorted(
    {*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("tools/*/README.md")}
    | {ROOT / "benchmarks/README.md"}
)
LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
BLOCK = re.compile(
    r"^(?P<run><!-- run -->\n)?(?P<fence>`{3,})(?P<kind>\w+)\n(?P<body>.*?)^(?P=fence)$",
    re.M | re.S,
)
INLINE = re.compile(r'`(\{"mcp.+?\})`')
SERVERS = ("mcpServers", "mcp_servers", "mcp", "servers", "context_servers")
"""Where hosts have their servers."""

PROGRAM = re.compile(r"(?:.*/)?(toolroll-[a-z-]+)(?:\.pyz)?")
TOOLS = {program(tool): tool for tool in map(tool_of, FOLDERS)}


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


def entries(page: Path) -> Iterator[dict[str, Any]]:
    """The servers that a page tells hosts of, as they stand in their configuration."""
    text = page.read_text()
    blocks = [(found["kind"], found["body"]) for found in BLOCK.finditer(text)]
    for kind, body in [*blocks, *(("json", code) for code in INLINE.findall(text))]:
        if kind in ("json", "toml"):
            value = jsonc.loads(body) if kind == "json" else tomllib.loads(body)
            yield from (one for key in SERVERS for one in value.get(key, {}).values())


def commands(page: Path) -> Iterator[list[str]]:
    """The commands of a page that no test runs, as words."""
    for found in BLOCK.finditer(page.read_text()):
        body = found["body"].replace("\\\n", " ")
        if found["kind"] == "console" and not found["run"]:
            body = "".join(re.findall(r"^\$ (.*\n)", body, re.M))
        elif found["kind"] not in ("sh", "yaml", "dockerfile"):
            continue
        for line in body.splitlines():
            lexer = shlex.shlex(line, posix=True, punctuation_chars=True)
            lexer.whitespace_split = True
            for ends, words in groupby(lexer, lambda word: not word.strip("();<>|&")):
                if not ends:
                    yield list(words)


def accept(words: Sequence[str], environment: Mapping[str, str]) -> None:
    """Read the command line of a tool as it would itself, wherever it begins: behind `docker run` too.

    Raises: KeyError where there is no such program, UsageError.
    """
    line = list(dropwhile(lambda word: not PROGRAM.fullmatch(word), words))
    if not line:
        return
    tool = TOOLS[PROGRAM.sub(r"\1", line[0])]
    options, rest = parse(tool, line[1:], environment)
    assert not rest or any(options[one.name] for one in actions(tool))
    known = {CACHE, *map(variable, declared(tool))}
    if tool.name == "dispatch_agent":
        known.add(KEY)
    assert not {name for name in environment if name.startswith("TOOLROLL_")} - known


def test_servers_and_commands_are_found_at_all() -> None:
    assert sum(len(list(entries(page))) for page in PAGES) > 10
    words = [words for page in PAGES for words in commands(page)]
    assert sum(any(map(PROGRAM.fullmatch, line)) for line in words) > 10


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_server_in_a_hosts_configuration_takes_its_options(page: Path) -> None:
    for entry in entries(page):
        command = entry["command"]
        words = command if isinstance(command, list) else [command, *entry.get("args", ())]
        accept(words, entry.get("env", entry.get("environment", {})))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_command_line_that_is_not_run_is_one(page: Path) -> None:
    if page.name == "add-a-tool.md":
        pytest.skip("tests/test_add_a_tool.py makes its tool and runs it")
    for words in commands(page):
        accept(words, {})


def test_the_comparison_shows_what_was_measured() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts/comparison.py", "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
