"""The folders of the user's own: where Bash keeps whole outputs and zipapps what they unpack; opens nothing."""

import os
import stat

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Json = Any

CACHE = "TOOLROLL_CACHE"


def folder() -> str:
    """The private folder of all of this user's servers.

    Below XDG_RUNTIME_DIR when that is really ours (XDG Base Directory 0.8), else below the temp folder.
    """
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if not (runtime.startswith("/") and is_ours(runtime)):
        runtime = os.environ.get("TMPDIR", "")
        runtime = runtime if os.path.isabs(runtime) else "/tmp"  # noqa: S108 - the owner is checked
    return os.path.join(runtime, f"toolroll-{os.geteuid()}")


def caches() -> "Iterator[str]":
    """Where a zipapp's things may lie: the operator's choice alone, else the cache, else the private folder."""
    chosen = os.environ.get(CACHE)
    if chosen:
        yield os.path.abspath(chosen)
        return
    cache = os.environ.get("XDG_CACHE_HOME", "")
    cache = cache if cache.startswith("/") else os.path.expanduser("~/.cache")
    if cache.startswith("/"):
        yield os.path.join(cache, "toolroll")
    yield os.path.join(folder(), "carried")


def is_ours(path: str) -> bool:
    """True for a directory, not a link to one, that nobody else can write to."""
    try:
        status = os.lstat(path)
    except OSError:
        return False
    mine = stat.S_ISDIR(status.st_mode) and status.st_uid == os.geteuid()
    return mine and not status.st_mode & 0o022


def readable(options: "dict[str, Json]") -> None:
    """Let a server read the saved outputs besides its roots; the `start` of View and GrepTool."""
    options["also-read"] = [folder()]
