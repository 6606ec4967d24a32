"""The tools for hosts that install servers themselves: what `make mcpb` runs.

dist/toolroll-<x>.mcpb is an MCP bundle: the zipapp that `make pyz` left there, and a manifest.  Its
server is of type python: the host starts the `python3` on its PATH, and nothing else is needed.  (Type
uv wants uv and an index at the first start, and is an experiment of the format's next version; type
binary would promise that no Python is needed.)  registry/<x>.json is what the MCP registry is told.
All of it comes from the declarations; the same input gives the same bytes.

    scripts/mcpb.py [--into DIR]        bundle the zipapps in DIR, there
    scripts/mcpb.py --check | --write   the files in registry/
"""

import argparse
import json
import sys
import tomllib
import zipfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from pyz import EPOCH

from toolroll import __version__
from toolroll.cli import variable
from toolroll.tool import Tool
from toolroll_dispatch_agent.providers import KEY
from toolroll_suite.installed import Installed, installed

Json = Any

CHECKOUT = Path(__file__).resolve().parent.parent
PROJECT = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())["project"]

FORMAT = "0.3"
"""What the bundle format's MANIFEST.md calls its current version."""

SCHEMA = "https://static.modelcontextprotocol.io/schemas/2025-12-11/server.schema.json"
NAMESPACE = "io.github.toolroll"
"""Whose servers these are in the registry: whoever publishes them must own the account on GitHub."""

ROOTS = "Directories to work in; relative paths start in the first."

MAIN = '''\
"""Starts the zipapp beside this file; every argument is a root."""

import os
import sys

archive = os.path.join(os.path.dirname(os.path.abspath(__file__)), "{program}.pyz")
sys.argv = [archive] + [word for root in sys.argv[1:] for word in ("--root", root)]
sys.path.insert(0, archive)
from toolroll_start import start

start()
'''
"""A bundle's entry point: hosts put a list in as bare words, and a --root before each is ours to add."""


class Setting(NamedTuple):
    """What a user may fill in besides the roots: a variable of the server."""

    key: str
    variable: str
    about: str
    secret: bool = False

    @property
    def title(self) -> str:
        """What stands before the field."""
        return self.key.replace("_", " ").capitalize()


def settings(tool: Tool) -> list[Setting]:
    """Which model dispatch_agent asks; the other tools need nothing."""
    found = [
        Setting(option.name.replace("-", "_"), variable(option), option.help)
        for option in tool.options
        if option.name in ("agent-model", "agent-base-url")
    ]
    return [*found, Setting("agent_key", KEY, "The key it is asked with.", True)] if found else []


# -- bundles -----------------------------------------------------------------------------------------


def manifest(one: Installed) -> dict[str, Json]:
    """The manifest of a tool's bundle."""
    asked = settings(one.tool)
    config: dict[str, Json] = {
        "command": "python3",
        "args": ["${__dirname}/server/main.py", "${user_config.roots}"],
    }
    if asked:
        config["env"] = {each.variable: f"${{user_config.{each.key}}}" for each in asked}
    return {
        "manifest_version": FORMAT,
        "name": one.program,
        "display_name": f"{one.tool.title} (toolroll)",
        "version": __version__,
        "description": one.about,
        "author": {"name": "The toolroll authors"},
        "license": PROJECT["license"],
        "keywords": PROJECT["keywords"],
        "server": {"type": "python", "entry_point": "server/main.py", "mcp_config": config},
        "tools": [{"name": one.tool.name, "description": one.tool.description}],
        "compatibility": {
            "platforms": [sys.platform] if carries(one.command) else ["linux", "darwin"],
            "runtimes": {"python": PROJECT["requires-python"]},
        },
        "user_config": {
            "roots": {
                "type": "directory",
                "title": "Directories",
                "description": ROOTS,
                "multiple": True,
                "required": True,
            },
            **{each.key: _field(each) for each in asked},
        },
    }


def carries(archive: str) -> bool:
    """True for a zipapp with compiled parts, which are for one platform."""
    with zipfile.ZipFile(archive) as members:
        return any(name.startswith("carried/") for name in members.namelist())


def _field(setting: Setting) -> dict[str, Json]:
    """A field that may stay empty: without a default, hosts pass its placeholder on."""
    field = {"type": "string", "title": setting.title, "description": setting.about, "default": ""}
    return {**field, "sensitive": True} if setting.secret else field


def bundle(one: Installed, into: Path) -> Path:
    """The finished bundle of one tool."""
    members = {
        "LICENSE": (CHECKOUT / "LICENSE").read_bytes(),
        "manifest.json": text(manifest(one)).encode(),
        "server/main.py": MAIN.format(program=one.program).encode(),
        f"server/{one.program}.pyz": Path(one.command).read_bytes(),
    }
    path = into / f"{one.program}.mcpb"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as archive:
        for name, content in members.items():
            archive.writestr(zipfile.ZipInfo(name, EPOCH), content)
    return path


# -- the registry ------------------------------------------------------------------------------------


def entry(one: Installed) -> dict[str, Json]:
    """The server.json of a tool.

    Hosts run `uvx`, the runtime arguments, `toolroll==VERSION` and the package arguments: a --from in
    front takes the package, and the next word is the command.  A base URL of the index would make some
    put it in between.
    """
    asked = settings(one.tool)
    wanted = PROJECT["optional-dependencies"]["agent"] if asked else []
    package: dict[str, Json] = {
        "registryType": "pypi",
        "identifier": PROJECT["name"],
        "version": __version__,
        "runtimeHint": "uvx",
        "runtimeArguments": [
            *(_word(word) for requirement in wanted for word in ("--with", requirement)),
            _word("--from"),
        ],
        "packageArguments": [
            _word(one.program),
            {
                "type": "named",
                "name": "--root",
                "description": ROOTS,
                "format": "filepath",
                "isRequired": True,
                "isRepeated": True,
            },
        ],
        "transport": {"type": "stdio"},
    }
    if asked:
        package["environmentVariables"] = [_variable(each) for each in asked]
    return {
        "$schema": SCHEMA,
        "name": f"{NAMESPACE}/{one.program}",
        "title": one.tool.title,
        "description": one.about,
        "version": __version__,
        "packages": [package],
    }


def _word(text: str) -> dict[str, Json]:
    return {"type": "positional", "value": text}


def _variable(setting: Setting) -> dict[str, Json]:
    named = {"name": setting.variable, "description": setting.about}
    return {**named, "isSecret": True} if setting.secret else named


# -- the command -------------------------------------------------------------------------------------


def text(value: Mapping[str, Json]) -> str:
    """JSON for people."""
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def stale() -> dict[Path, str]:
    """The files in registry/ that are not current, with what they should hold."""
    wanted = {CHECKOUT / f"registry/{one.short}.json": text(entry(one)) for one in installed()}
    return {
        path: now for path, now in wanted.items() if not path.is_file() or path.read_text() != now
    }


def main() -> int:
    """The exit code: 1 when files in registry/ are not current and are not written."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--into", type=Path, default=CHECKOUT / "dist", metavar="DIR")
    parser.add_argument("--check", action="store_true")
    parser.add_argument("--write", action="store_true")
    asked = parser.parse_args()
    if not asked.check and not asked.write:
        for one in installed(str(asked.into)):
            path = bundle(one, asked.into)
            print(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
        return 0
    found = stale()
    for path, now in found.items():
        if asked.write:
            path.parent.mkdir(exist_ok=True)
            path.write_text(now)
        told = "wrote {}" if asked.write else "{} is not current: python scripts/mcpb.py --write"
        print(told.format(path.relative_to(CHECKOUT)), file=sys.stderr)
    return 1 if found and not asked.write else 0


if __name__ == "__main__":
    sys.exit(main())
