"""What `toolroll config` prints, writes into the hosts' files, and takes back."""

import json
import os
import stat
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tests.suite.conftest import Done
from toolroll.errors import ToolError
from toolroll.spawn import Server as Process
from toolroll_suite import hostfile
from toolroll_suite.config import find
from toolroll_suite.hosts import HOSTS, Host, Server
from toolroll_suite.installed import installed

Toolroll = Callable[..., Done]
Json = Any

NAMES = [host.name for host in HOSTS]

BOM = "\ufeff"
JSONC = """\
{
\t// mine
\t"theme": "dark", /* both */
\t"%s": {
\t\t"other": {"command": "x", "args": []}, // keep
\t},
}
"""
TOML = """\
# mine
model = "o3"    # both

[mcp_servers.other]
command = 'x'   # keep
args = []
"""


def written(host: Host, path: Path) -> Json:
    """The servers in a host's file."""
    found = host.language.loads(path.read_bytes().decode("utf-8-sig"))
    for key in host.keys:
        found = found[key]
    return found


def words(host: Host, entry: Json) -> list[str]:
    """The command line of an entry, wherever the host has it."""
    if host.name == "opencode":
        return list(entry["command"])
    return [entry["command"], *entry["args"]]


def example(host: Host) -> str:
    """A file of the host that people have written."""
    return TOML if host.name == "codex" else JSONC % host.keys[0]


def servers(*names: str) -> list[Server]:
    return [
        Server(f"toolroll-{name}", f"/bin/toolroll-{name}", ["--root", "/x"], 30) for name in names
    ]


# -- the snippet -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_snippet_starts_the_installed_tool(toolroll: Toolroll, project: Path, name: str) -> None:
    host = find(name)
    done = toolroll("config", name, "LS")
    assert done.returncode == 0, done.stderr
    loads = tomllib.loads if name == "codex" else json.loads
    entry = loads(done.stdout)[host.keys[0]]["toolroll-ls"]
    command = [word.replace("${workspaceFolder}", str(project)) for word in words(host, entry)]
    assert os.path.isabs(command[0])
    with Process(command, directory=str(project)) as server:
        assert [tool["name"] for tool in server.tools()] == ["LS"]
    assert host.title in done.stderr


def test_a_snippet_has_all_tools_in_order_unless_some_are_named(toolroll: Toolroll) -> None:
    everything = json.loads(toolroll("config", "claude").stdout)["mcpServers"]
    assert list(everything) == [one.program for one in installed()]
    some = json.loads(toolroll("config", "claude", "view", "GrepTool", "toolroll-ls").stdout)
    assert list(some["mcpServers"]) == ["toolroll-view", "toolroll-grep", "toolroll-ls"]


def test_roots_are_absolute_and_must_be_there(toolroll: Toolroll, project: Path) -> None:
    (project / "src").mkdir()
    done = toolroll("config", "gemini", "ls", "--root", "src", "--root=.")
    entry = json.loads(done.stdout)["mcpServers"]["toolroll-ls"]
    assert entry["args"] == ["--root", f"{project}/src", "--root", str(project)]
    gone = toolroll("config", "gemini", "ls", "--root", "gone")
    assert (gone.returncode, gone.stdout) == (2, "")
    assert "'gone' is no directory" in gone.stderr


def test_a_host_without_projects_gets_this_directory_or_wants_a_root(
    toolroll: Toolroll, project: Path, home: Path
) -> None:
    done = toolroll("config", "claude-desktop", "ls")
    assert json.loads(done.stdout)["mcpServers"]["toolroll-ls"]["args"] == ["--root", str(project)]
    at_home = toolroll("config", "zed", "ls", folder=home)
    assert (at_home.returncode, at_home.stdout) == (2, "")
    assert "name one with --root DIR" in at_home.stderr


def test_zipapps_are_taken_when_they_are_there_and_can_be_run(
    toolroll: Toolroll, project: Path
) -> None:
    missing = toolroll("config", "claude", "ls", "--pyz", "dist")
    assert missing.returncode == 2
    assert "dist/toolroll-ls.pyz' is not there" in missing.stderr
    (project / "dist").mkdir()
    for one in installed():
        (project / "dist" / f"{one.program}.pyz").touch(0o644)
    assert "chmod +x" in toolroll("config", "claude", "ls", "--pyz", "dist").stderr
    for path in (project / "dist").iterdir():
        path.chmod(0o755)
    done = toolroll("config", "claude", "ls", "--pyz", "dist")
    entry = json.loads(done.stdout)["mcpServers"]["toolroll-ls"]
    assert entry["command"] == f"{project}/dist/toolroll-ls.pyz"


def test_what_runs_long_is_waited_for(toolroll: Toolroll) -> None:
    codex = tomllib.loads(toolroll("config", "codex", "bash", "ls").stdout)["mcp_servers"]
    assert codex["toolroll-bash"]["tool_timeout_sec"] == 630
    assert "tool_timeout_sec" not in codex["toolroll-ls"]
    opencode = json.loads(toolroll("config", "opencode", "bash", "ls").stdout)["mcp"]
    assert [one["timeout"] for one in opencode.values()] == [630_000, 30_000]


@pytest.mark.parametrize(
    ("given", "meant"),
    [(["cladue"], "'claude'"), (["zod"], "'zed'"), (["claude", "veiw"], "'view'")],
)
def test_a_mistyped_word_gets_the_nearest(toolroll: Toolroll, given: list[str], meant: str) -> None:
    done = toolroll("config", *given)
    assert (done.returncode, done.stdout) == (2, "")
    assert f"did you mean {meant}?" in done.stderr


# -- files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_a_missing_file_is_created_and_removed_again(
    toolroll: Toolroll, home: Path, project: Path, name: str
) -> None:
    first = toolroll("config", name, "ls", "view", "--write")
    assert first.returncode == 0, first.stderr
    (path,) = [file for top in (home, project) for file in top.rglob("*") if file.is_file()]
    assert str(path) in first.stdout
    assert list(written(find(name), path)) == ["toolroll-ls", "toolroll-view"]
    before = path.read_bytes()
    second = toolroll("config", name, "ls", "view", "--write")
    assert second.stdout.startswith("Unchanged")
    assert path.read_bytes() == before
    assert toolroll("config", name, "--undo").returncode == 0
    assert not [file for top in (home, project) for file in top.rglob("*") if file.is_file()]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", ["", BOM])
def test_a_file_is_spliced_and_restored_to_the_byte(
    tmp_path: Path, name: str, newline: str, mark: str
) -> None:
    host, path = find(name), tmp_path / "settings"
    old = (mark + example(host).replace("\n", newline)).encode()
    path.write_bytes(old)
    path.chmod(0o640)
    hostfile.write(host, str(path), servers("ls", "view"))
    new = path.read_bytes()
    assert list(written(host, path)) == ["other", "toolroll-ls", "toolroll-view"]
    assert all(line in new.splitlines() for line in old.splitlines())
    assert (b"\r\n" in new) == (newline == "\r\n")
    assert new.count(b"\n") == new.count(newline.encode())
    backup = Path(f"{path}.toolroll-backup")
    assert backup.read_bytes() == old
    assert stat.S_IMODE(backup.stat().st_mode) == stat.S_IMODE(path.stat().st_mode) == 0o640
    assert hostfile.write(host, str(path), servers("ls", "view")).startswith("Unchanged")
    hostfile.undo(host, str(path))
    assert path.read_bytes() == old
    assert os.listdir(tmp_path) == ["settings"]


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_undo_takes_back_the_last_write_only(tmp_path: Path, name: str) -> None:
    host, path = find(name), tmp_path / "settings"
    path.write_text(example(host))
    hostfile.write(host, str(path), servers("ls"))
    once = path.read_bytes()
    hostfile.write(host, str(path), servers("ls", "view"))
    hostfile.undo(host, str(path))
    assert path.read_bytes() == once


@pytest.mark.parametrize("name", ["claude", "codex"])
def test_in_a_file_that_was_changed_since_only_our_entries_go(tmp_path: Path, name: str) -> None:
    host, path = find(name), tmp_path / "settings"
    path.write_text(example(host))
    hostfile.write(host, str(path), servers("ls", "view"))
    path.write_bytes(path.read_bytes().replace(b"both", b"changed"))
    assert "changed since" in hostfile.undo(host, str(path))
    assert path.read_text() == example(host).replace("both", "changed")
    with pytest.raises(ToolError, match="no entry of ours"):
        hostfile.undo(host, str(path))


def test_an_older_entry_of_ours_is_not_lost_by_undo(tmp_path: Path) -> None:
    host, path = find("claude"), tmp_path / "settings"
    older = '{"mcpServers": {"toolroll-ls": {"command": "older"}}}\n'
    path.write_text(older)
    hostfile.write(host, str(path), servers("ls"))
    new = path.read_text()
    path.write_text(new + "// changed\n")
    with pytest.raises(ToolError, match="toolroll-ls had another entry before"):
        hostfile.undo(host, str(path))
    assert path.read_text() == new + "// changed\n"
    path.write_text(new)
    hostfile.undo(host, str(path))
    assert path.read_text() == older


def test_an_entry_is_changed_in_its_place_and_keeps_what_people_added(
    toolroll: Toolroll, project: Path
) -> None:
    text = (
        '{"mcpServers": {\n  "toolroll-ls": {"command": "/old/toolroll-ls", "args": [],\n'
        '    "env": {"KEY": "v"} /* mine */},\n  "other": {"command": "x"}\n}}\n'
    )
    (project / ".mcp.json").write_text(text)
    toolroll("config", "claude", "ls", "--write")
    (ls,) = [one.command for one in installed() if one.short == "ls"]
    assert (project / ".mcp.json").read_text() == text.replace("/old/toolroll-ls", ls)


@pytest.mark.parametrize(
    ("content", "why"),
    [
        (b'{"a": 1', "line 1, column 8"),
        (b"[]", "no object"),
        (b'{"mcpServers": null}', "no object"),
        (b'{"a": "\xff"}', "byte 7 is not UTF-8"),
        ('{"a": 1}'.encode("utf-16"), "byte 0 is not UTF-8"),
    ],
)
def test_a_file_that_cannot_be_read_as_such_is_left_alone(
    toolroll: Toolroll, project: Path, content: bytes, why: str
) -> None:
    path = project / ".mcp.json"
    path.write_bytes(content)
    done = toolroll("config", "claude", "--write")
    assert (done.returncode, done.stdout) == (1, "")
    assert f"'{path}' was left alone: " in done.stderr
    assert why in done.stderr
    assert path.read_bytes() == content
    assert os.listdir(project) == [".mcp.json"]


def test_a_link_stays_a_link(toolroll: Toolroll, project: Path, home: Path) -> None:
    (home / "dotfiles.json").write_text("{}\n")
    (project / ".mcp.json").symlink_to(home / "dotfiles.json")
    toolroll("config", "claude", "ls", "--write")
    assert (project / ".mcp.json").is_symlink()
    assert "toolroll-ls" in (home / "dotfiles.json").read_text()
    toolroll("config", "claude", "--undo")
    assert (home / "dotfiles.json").read_text() == "{}\n"
    assert (project / ".mcp.json").is_symlink()


def test_a_file_that_may_not_be_written_is_refused_and_no_copy_is_left(
    toolroll: Toolroll, project: Path
) -> None:
    (project / ".mcp.json").write_text("{}")
    (project / ".mcp.json").chmod(0o444)
    done = toolroll("config", "claude", "--write")
    assert done.returncode == 1
    assert "read-only" in done.stderr
    assert os.listdir(project) == [".mcp.json"]


def test_the_copy_of_a_file_that_is_gone_is_kept_until_it_is_moved(
    toolroll: Toolroll, project: Path
) -> None:
    path, copy = project / ".mcp.json", project / ".mcp.json.toolroll-backup"
    path.write_text('{"older": 1}')
    toolroll("config", "claude", "ls", "--write")
    path.unlink()
    refused = toolroll("config", "claude", "ls", "--write")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert f"'{copy}' may be the only copy" in refused.stderr
    assert copy.read_text() == '{"older": 1}'
    assert not path.exists()
    copy.rename(project / "elsewhere")
    assert toolroll("config", "claude", "ls", "--write").stdout.startswith("Created")
    toolroll("config", "claude", "--undo")
    assert os.listdir(project) == ["elsewhere"]


@pytest.mark.parametrize("name", ["claude", "codex"])
@pytest.mark.parametrize("content", ["", "\n"])
def test_a_file_that_we_never_wrote_is_not_removed_by_undo(
    tmp_path: Path, name: str, content: str
) -> None:
    path = tmp_path / "settings"
    path.write_text(content)
    with pytest.raises(ToolError, match="no entry of ours"):
        hostfile.undo(find(name), str(path))
    assert path.read_text() == content


def test_an_entry_with_a_name_like_ours_is_not_ours(tmp_path: Path) -> None:
    host, path = find("claude"), tmp_path / "settings"
    theirs = '{\n  "mcpServers": {\n    "toolroll-mycompany": {"command": "x"}\n  }\n}\n'
    path.write_text(theirs)
    with pytest.raises(ToolError, match="no entry of ours"):
        hostfile.undo(host, str(path))
    assert path.read_text() == theirs


def test_an_entry_with_a_name_like_ours_that_came_later_stays(tmp_path: Path) -> None:
    host, path = find("claude"), tmp_path / "settings"
    path.write_text("{}\n")
    hostfile.write(host, str(path), servers("ls"))
    path.write_text(host.language.put(path.read_text(), host.path("toolroll-mycompany"), {"a": 1}))
    done = hostfile.undo(host, str(path))
    assert written(host, path) == {"toolroll-mycompany": {"a": 1}}
    copy = Path(f"{path}.toolroll-backup")
    assert copy.read_text() == "{}\n"
    assert str(copy) in done


def test_another_file_can_be_named_and_write_and_undo_exclude_each_other(
    toolroll: Toolroll, project: Path
) -> None:
    assert toolroll("config", "cursor", "ls", "--write", "--file", "a/b.json").returncode == 0
    assert "toolroll-ls" in (project / "a/b.json").read_text()
    assert toolroll("config", "cursor", "--write", "--undo").returncode == 2
    nothing = toolroll("config", "cursor", "--undo")
    assert nothing.returncode == 1
    assert "nothing to undo" in nothing.stderr


def test_hosts_files_are_where_their_variables_say(toolroll: Toolroll, tmp_path: Path) -> None:
    done = toolroll("config", "codex", "ls", "--write", CODEX_HOME=str(tmp_path / "codex"))
    assert f"'{tmp_path}/codex/config.toml'" in done.stdout
    (tmp_path / "xdg/opencode").mkdir(parents=True)
    (tmp_path / "xdg/opencode/opencode.jsonc").write_text("{}")
    done = toolroll("config", "opencode", "ls", "--write", XDG_CONFIG_HOME=str(tmp_path / "xdg"))
    assert f"'{tmp_path}/xdg/opencode/opencode.jsonc'" in done.stdout


@pytest.mark.skipif(sys.platform != "linux", reason="names of any bytes")
def test_a_path_that_no_text_file_can_hold_is_refused(toolroll: Toolroll, project: Path) -> None:
    os.mkdir(os.fsencode(project) + b"/\xff")
    done = toolroll("config", "claude", "ls", "--root", os.fsdecode(b"\xff"))
    assert done.returncode == 2
    assert "is not UTF-8" in done.stderr
