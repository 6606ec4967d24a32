"""The MCP bundles and the registry's entries: what they say, and that what they say starts."""

import json
import os
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path
from typing import Any

import pytest

from tests.pyz.conftest import BUILD_S, CHECKOUT, FETCHED, once
from tests.pyz.test_pyz import TOOLS, calls
from toolroll import __version__
from toolroll.spawn import Server

Json = Any

pytestmark = pytest.mark.timeout(BUILD_S)

PUBLISHED = "@anthropic-ai/mcpb@2.1.2"
"""What hosts read bundles with."""

READ = """
import { readFileSync } from "node:fs";
const [library, roots, ...folders] = process.argv.slice(1);
const { getMcpConfigForManifest } = await import(library);
const told = folders.map((folder) => getMcpConfigForManifest({
  manifest: JSON.parse(readFileSync(`${folder}/manifest.json`)),
  extensionPath: folder,
  systemDirs: {},
  userConfig: { roots: JSON.parse(roots) },
  pathSeparator: "/",
}));
console.log(JSON.stringify(await Promise.all(told)));
"""
"""What a host does with a manifest, by the published code."""


def bundle(into: Path) -> None:
    """Run the builder as `make mcpb` does."""
    command = [sys.executable, str(CHECKOUT / "scripts/mcpb.py"), "--into", str(into)]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL, timeout=BUILD_S)


@pytest.fixture(scope="session")
def bundles(dist: Path, run_folder: Path) -> Path:
    """The folder with all eight bundles unpacked, as a host does."""

    def make(into: Path) -> None:
        bundle(dist)
        for path in dist.glob("*.mcpb"):
            with zipfile.ZipFile(path) as archive:
                archive.extractall(into / path.stem)

    return once(run_folder / "bundles", make)


@pytest.fixture(scope="session")
def published() -> Path:
    """The published code for bundles, fetched once."""
    npm = shutil.which("npm")
    if not npm or not shutil.which("node"):
        pytest.skip("npm is not here, so the published code for bundles is not either")

    def fetch(into: Path) -> None:
        command = [npm, "install", "--prefix", str(into), "--ignore-scripts", PUBLISHED]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=BUILD_S / 2
        )
        if done.returncode:
            pytest.skip(f"{PUBLISHED} cannot be fetched: {done.stderr.strip()[-300:]}")

    return once(FETCHED / "npm", fetch) / "node_modules/@anthropic-ai/mcpb/dist"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A folder with something to find."""
    (tmp_path / "work").mkdir()
    (tmp_path / "work/a.py").write_text("def needle(x):\n    return x\n")
    return tmp_path / "work"


def told(folder: Path) -> dict[str, Json]:
    manifest: dict[str, Json] = json.loads((folder / "manifest.json").read_text())
    return manifest


def launch(folder: Path, *roots: Path) -> dict[str, Json]:
    """What a host runs when its user chose `roots` and nothing else, in the format's own words."""
    manifest = told(folder)
    config = manifest["server"]["mcp_config"]
    chosen = {
        f"${{user_config.{key}}}": field.get("default")
        for key, field in manifest["user_config"].items()
    }
    chosen["${user_config.roots}"] = list(map(str, roots))
    args: list[str] = []
    for word in config["args"]:
        value = chosen.get(word, word.replace("${__dirname}", str(folder)))
        args += value if isinstance(value, list) else [value]
    environ = {name: chosen[value] for name, value in config.get("env", {}).items()}
    return {"command": config["command"], "args": args, **({"env": environ} if environ else {})}


def started(folder: Path, *roots: Path, era: str = "auto") -> Server:
    """The server as a host starts it: somewhere, with the Python that is first on PATH."""
    config = launch(folder, *roots)
    environ = {
        "PATH": f"{os.path.dirname(sys.executable)}{os.pathsep}{os.defpath}",
        "HOME": str(roots[0].parent),
        **config.get("env", {}),
    }
    command = [config["command"], *config["args"]]
    return Server(command, era=era, environment=environ, directory="/")


@pytest.mark.parametrize("tool", TOOLS)
def test_a_bundle_is_a_server_of_both_eras(tool: str, bundles: Path, tree: Path) -> None:
    folder = bundles / f"toolroll-{tool}"
    listed = [(one["name"], one["description"]) for one in told(folder)["tools"]]
    for era in ("handshake", "auto"):
        with started(folder, tree, era=era) as server:
            assert [(one["name"], one["description"]) for one in server.tools()] == listed


def test_every_bundle_works(bundles: Path, tree: Path) -> None:
    for tool, words, expected in calls(tree):
        folder = bundles / f"toolroll-{tool}"
        arguments = dict(word.split("=", 1) for word in words)
        with started(folder, tree) as server:
            answer = server.call(told(folder)["tools"][0]["name"], arguments)["content"][0]["text"]
        assert expected.lower() in answer.lower(), tool


def test_every_directory_that_a_user_chose_is_a_root(bundles: Path, tree: Path) -> None:
    other = tree.parent / "other place"
    other.mkdir()
    (other / "b.py").touch()
    with started(bundles / "toolroll-ls", tree, other) as server:
        assert "a.py" in server.call("LS", {"path": "."})["content"][0]["text"]
        assert "b.py" in server.call("LS", {"path": str(other)})["content"][0]["text"]
        assert server.call("LS", {"path": str(tree.parent)})["isError"]


@pytest.mark.parametrize("tool", TOOLS)
def test_a_bundle_holds_the_zipapp_and_names_no_more_platforms_than_it_has(
    tool: str, bundles: Path, dist: Path
) -> None:
    folder = bundles / f"toolroll-{tool}"
    manifest = told(folder)
    archive = folder / f"server/toolroll-{tool}.pyz"
    assert archive.read_bytes() == (dist / archive.name).read_bytes()
    assert (folder / manifest["server"]["entry_point"]).is_file()
    assert (folder / "LICENSE").is_file()
    assert (manifest["name"], manifest["version"]) == (f"toolroll-{tool}", __version__)
    with zipfile.ZipFile(archive) as members:
        compiled = any(name.endswith(".whl") for name in members.namelist())
    assert (manifest["compatibility"]["platforms"] == [sys.platform]) == compiled


def test_the_same_zipapps_give_the_same_bundles(dist: Path, bundles: Path, tmp_path: Path) -> None:
    for tool in TOOLS:
        (tmp_path / f"toolroll-{tool}.pyz").symlink_to(dist / f"toolroll-{tool}.pyz")
    bundle(tmp_path)
    for path in tmp_path.glob("*.mcpb"):
        assert path.read_bytes() == (dist / path.name).read_bytes()
    assert len(list(tmp_path.glob("*.mcpb"))) == len(list(bundles.glob("toolroll-*")))


def test_the_published_code_takes_every_manifest_and_starts_what_we_do(
    published: Path, bundles: Path, tree: Path
) -> None:
    folders = [bundles / f"toolroll-{tool}" for tool in TOOLS]
    for folder in folders:
        command = ["node", str(published / "cli/cli.js"), "validate", str(folder / "manifest.json")]
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)
        assert done.returncode == 0, (folder.name, done.stdout)
    command = ["node", "--input-type=module", "-e", READ, "--", str(published / "index.js")]
    command += [json.dumps([str(tree), "/srv"]), *map(str, folders)]
    read = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(read.stdout) == [launch(folder, tree, Path("/srv")) for folder in folders]


# -- the registry ------------------------------------------------------------------------------------


def test_the_registry_is_told_what_the_declarations_say() -> None:
    done = subprocess.run(
        [sys.executable, str(CHECKOUT / "scripts/mcpb.py"), "--check"],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    assert sorted(path.stem for path in (CHECKOUT / "registry").iterdir()) == sorted(TOOLS)


@pytest.mark.parametrize("tool", TOOLS)
def test_an_entry_is_within_the_limits_of_the_registry(tool: str) -> None:
    """Those of server.schema.json 2025-12-11, and that a package has one exact version."""
    entry = json.loads((CHECKOUT / f"registry/{tool}.json").read_text())
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", entry["name"])
    assert 3 <= len(entry["name"]) <= 200
    assert 1 <= len(entry["description"]) <= 100
    assert 1 <= len(entry["title"]) <= 100
    assert entry["version"] == __version__
    assert [package["version"] for package in entry["packages"]] == [__version__]
