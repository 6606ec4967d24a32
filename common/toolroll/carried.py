"""Libraries that a zipapp carries, compiled parts and all: unpacked at the first import of one.

Whatever cannot be imported from inside a zip lies in it as wheels.  They are unpacked once, into a
folder of the user's own that is named by their content, and checked against their hashes each time
they are needed.  Knows no tool; without a zipapp around it, it does nothing.
"""

import os
import sys
from _frozen_importlib_external import PathFinder  # type: ignore[import-not-found, unused-ignore]
from _imp import acquire_lock, release_lock
from _thread import RLock, allocate_lock

from toolroll.jsontext import loads
from toolroll.saved import CACHE, caches, is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    Json = Any

MANIFEST = "carried/manifest.json"
KEY_BYTES = 16

problems: list[str] = []
"""Why a carried library could not be had, for the tool that goes on without it."""


class Archive:
    """The zipapp this process runs from, if any: its path, what file it was, the names of what it carries."""

    path = ""
    file: "tuple[int, ...] | None" = None
    names: "Sequence[str]" = ()


def run(package: str, names: "Sequence[str]" = (), finds_site: bool = False) -> int:
    """The exit code of a tool's process in a zipapp that carries the libraries `names`.

    With `finds_site` it was started without the packages of the site (-S), for speed alone.
    """
    Archive.path = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    Archive.file = _file(Archive.path)
    Archive.names = names
    if names:
        sys.meta_path.insert(0, Finder(Archive.path, names))
    if finds_site:
        sys.meta_path.append(Site())
    entry = __import__(f"{package}.__main__", fromlist=["run"])
    return entry.run()  # type: ignore[no-any-return]  # an imported module's attributes are Any


def replaced() -> bool:
    """True when the zipapp is no longer the file that was started: nothing more can be imported from it."""
    return bool(Archive.path) and _file(Archive.path) != Archive.file


def _file(path: str) -> "tuple[int, ...] | None":
    try:
        status = os.stat(path)
    except OSError:
        return None
    return status.st_dev, status.st_ino, status.st_size, status.st_mtime_ns


def command(package: str) -> list[str]:
    """What starts another tool, from the zipapp that this process runs from, else as a module.

    -P keeps the current directory from being imported from.
    """
    if not Archive.path:
        return [sys.executable, "-P", "-m", package]
    code = (
        "import sys; sys.path.insert(0, sys.argv.pop(1)); "
        f"from toolroll_start import start; start(True, {package!r})"
    )
    return [sys.executable, "-P", "-S", "-c", code, Archive.path]


class Finder:
    """What the import system asks first: it puts the unpacked libraries on the path when one is wanted."""

    def __init__(self, archive: str, names: "Sequence[str]") -> None:
        self._archive = archive
        self._names = frozenset(names)
        self._lock = allocate_lock()
        self._asked = False

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:  # noqa: ARG002 - the import system's
        """Nothing; the finders behind this one find it on the path."""
        if name.partition(".")[0] not in self._names:
            return
        release_lock()  # every import's, held while finders are asked: what unpacks imports as well
        try:
            with self._lock:
                if not self._asked:
                    self._asked = True
                    self._add()
        finally:
            acquire_lock()

    def _add(self) -> None:
        try:
            sys.path.insert(0, unpacked(self._archive))
        except LookupError as problem:
            problems.append(str(problem))
        except Exception as problem:  # a damaged archive; the tool goes on without, and says why
            problems.append(f"{type(problem).__name__}: {problem}")


class Site:
    """What the import system asks last: it puts the site's packages on the path when one is wanted."""

    def __init__(self) -> None:
        self._lock = RLock()  # what the site runs may want a package itself
        self._was_asked = False

    def find_spec(self, name: str, path: "Json" = None, target: object = None) -> "Json":  # noqa: ARG002 - the import system's
        """Where a package of the site is; None for what it has not.

        The standard library tries modules that other systems have: those are not worth the site.
        """
        if path is not None or name in sys.stdlib_module_names:
            return None
        release_lock()  # as in Finder
        try:
            with self._lock:
                if not self._was_asked:
                    from site import main

                    self._was_asked = True
                    main()
        finally:
            acquire_lock()
        return PathFinder.find_spec(name)


def unpacked(archive: str) -> str:
    """The folder with the libraries for this Python, unpacked by now.

    Raises: LookupError in plain words: no wheel fits this Python, or no folder can be written.
    """
    wheels = [wheel for wheel in _manifest()["wheels"] if _fits(wheel["python"])]
    if not any(wheel["python"] != "py3" for wheel in wheels):
        raise LookupError(f"nothing compiled for {_python()} is carried")
    from _blake2 import blake2b

    key = blake2b(" ".join(wheel["hash"] for wheel in wheels).encode(), digest_size=KEY_BYTES)
    files = {path: digest for wheel in wheels for path, digest in wheel["files"].items()}
    reasons = []
    for place in caches():
        folder = os.path.join(place, key.hexdigest())
        try:
            if not _is_whole(folder, files):
                _unpack(archive, wheels, folder, files)
            return folder
        except OSError as problem:
            reasons.append(f"{place}: {(problem.strerror or str(problem)).lower()}")
    hint = f"set {CACHE} to a folder of your own"
    raise LookupError(f"it can be unpacked nowhere ({'; '.join(reasons)}); {hint}")


def _manifest() -> "dict[str, Json]":
    loader: Any = globals()["__loader__"]
    data = loader.get_data(os.path.join(loader.archive, MANIFEST))
    return loads(data)  # type: ignore[no-any-return]  # an object: we wrote it


def _fits(python: str) -> bool:
    return python in ("py3", _python())


def _python() -> str:
    """This interpreter as wheels name it: cp313."""
    version = f"{sys.version_info[0]}{sys.version_info[1]}"
    free = "t" if not getattr(sys, "_is_gil_enabled", lambda: True)() else ""
    short = {"cpython": "cp"}.get(sys.implementation.name, sys.implementation.name)
    return f"{short}{version}{free}"


def _is_whole(folder: str, files: "Mapping[str, str]") -> bool:
    """True when every file is there with its content; also what others could have written is not."""
    from _blake2 import blake2b

    if not is_ours(folder):
        return False
    try:
        for path, digest in files.items():
            with open(os.path.join(folder, path), "rb") as file:
                if blake2b(file.read(), digest_size=KEY_BYTES).hexdigest() != digest:
                    return False
    except OSError:
        return False
    return True


def _unpack(
    archive: str, wheels: "Sequence[Mapping[str, Json]]", folder: str, files: "Mapping[str, str]"
) -> None:
    """Fill a new folder and rename it into its place: another process sees all of it or nothing.

    Raises: OSError.
    """
    from io import BytesIO
    from shutil import rmtree
    from zipfile import ZipFile

    place = os.path.dirname(folder)
    os.makedirs(place, 0o700, exist_ok=True)
    if not is_ours(place):
        raise PermissionError(0, "it belongs to another user or is open to others")
    fresh, broken = (os.path.join(place, f".{os.urandom(8).hex()}") for _ in "ab")
    os.mkdir(fresh, 0o700)
    try:
        with ZipFile(archive) as outer:
            for wheel in wheels:
                with ZipFile(BytesIO(outer.read(f"carried/{wheel['file']}"))) as inner:
                    inner.extractall(fresh)
        if os.path.lexists(folder) and not _is_whole(folder, files):
            os.rename(folder, broken)
        os.rename(fresh, folder)
    except OSError:
        if not _is_whole(folder, files):  # else another process was quicker
            raise
    finally:
        rmtree(fresh, ignore_errors=True)
        rmtree(broken, ignore_errors=True)
