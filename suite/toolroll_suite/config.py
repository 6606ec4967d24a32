"""`toolroll config`: which servers a host is told of, with which roots, and where that goes."""

import os

from toolroll.cli import UsageError, default_roots
from toolroll.paths import quoted
from toolroll.stdio import say
from toolroll_suite import hostfile
from toolroll_suite.hosts import ANYWHERE, HOSTS, WORKSPACE, Host, Server
from toolroll_suite.installed import chosen, installed
from toolroll_suite.nearest import nearest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


def run(asked: "Mapping[str, Any]") -> int:
    """Print the snippet, or write it, or take it back.

    Raises: UsageError, ToolError.
    """
    host = find(asked["HOST"])
    path = os.path.abspath(os.path.expanduser(asked["file"])) if asked["file"] else host.file()
    if asked["write"] and asked["undo"]:
        raise UsageError("--write and --undo cannot go together")
    if asked["undo"]:
        say(hostfile.undo(host, path))
        return 0
    servers = _servers(host, asked)
    if asked["write"]:
        say(hostfile.write(host, path, servers))
        say(f"{host.title}: {host.notes}", fd=2)
        return 0
    say(f"# For {quoted(path)}; --write puts it there. {host.title}: {host.notes}", fd=2)
    say(hostfile.snippet(host, servers).rstrip("\n"))
    return 0


def find(name: str) -> Host:
    """The host of that name.

    Raises: UsageError.
    """
    by_name = {host.name: host for host in HOSTS}
    if name not in by_name:
        raise UsageError(f"there is no host '{name}'{nearest(name, by_name)}")
    return by_name[name]


def _servers(host: Host, asked: "Mapping[str, Any]") -> list[Server]:
    """Raises: UsageError."""
    roots = _roots(host, asked["root"])
    arguments = [word for root in roots for word in ("--root", root)]
    tools = chosen(asked["TOOL"], installed(asked["pyz"]))
    for text in (*arguments, *(tool.command for tool in tools)):
        if not _is_text(text):
            raise UsageError(f"{quoted(text)} is not UTF-8, and the file of a host is")
    return [Server(tool.program, tool.command, arguments, tool.timeout_s) for tool in tools]


def _roots(host: Host, given: "Sequence[str]") -> list[str]:
    """Raises: UsageError."""
    for root in given:
        if not os.path.isdir(root):
            raise UsageError(f"--root {quoted(root)} is no directory")
    if given or host.root == ANYWHERE:
        return [os.path.abspath(root) for root in given]
    if host.root == WORKSPACE:
        return [WORKSPACE]
    here = default_roots()
    if not here:
        raise UsageError(f"{host.title} starts servers in no project: name one with --root DIR")
    return here


def _is_text(path: str) -> bool:
    try:
        path.encode()
    except UnicodeEncodeError:
        return False
    return True
