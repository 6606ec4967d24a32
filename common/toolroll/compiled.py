"""The code of a zipapp for another Python than its builder's: compiled at the first start, and kept.

A zip holds what its builder's Python compiled; without this, one of another minor version compiles the
sources at every start, which takes five times as long as all the rest.  Knows no tool.
"""

import os
import sys
from _frozen_importlib import ModuleSpec
from _frozen_importlib_external import MAGIC_NUMBER  # type: ignore[import-not-found, unused-ignore]
from marshal import dumps, loads
from stat import S_ISREG

from toolroll.saved import caches, is_ours

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import ModuleType

    Codes = dict[str, tuple[bool, bytes]]  # by module: is it a package, and its code

HASH_BYTES = 16
STARTS = ("__main__.py", "toolroll_start.py")
"""What is read before anything is kept."""


def use(key: str) -> None:
    """Have the modules of the archive around this one imported as this Python compiled them.

    `key` stands for the sources.  Where nothing can be kept they are compiled in every process.
    """
    if sys.dont_write_bytecode:
        return
    archive = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
    name = f"{key}-{sys.implementation.cache_tag}-{MAGIC_NUMBER.hex()}-{sys.flags.optimize}"
    paths = [os.path.join(place, name) for place in caches()]
    codes = next((codes for path in paths if (codes := _read(path)) is not None), None)
    if codes is None:
        codes = _compile(archive)
        any(_write(path, codes) for path in paths)
    sys.meta_path.insert(0, Importer(archive, codes))


class Importer:
    """What the import system asks first: it finds and loads the modules of an archive."""

    def __init__(self, archive: str, codes: "Codes") -> None:
        self.archive = archive
        self._codes = codes

    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:  # noqa: ARG002 - the import system's
        """Where a module of the archive is; None for any other."""
        if name not in self._codes:
            return None
        is_package, _ = self._codes[name]
        place = os.path.join(self.archive, *name.split("."))
        file = os.path.join(place, "__init__.py") if is_package else place + ".py"
        spec = ModuleSpec(name, self, origin=file, is_package=is_package)  # type: ignore[arg-type]  # a loader by what it has
        spec.has_location = True
        if spec.submodule_search_locations is not None:
            spec.submodule_search_locations.append(place)
        return spec

    def create_module(self, spec: ModuleSpec) -> None:
        """Nothing: an ordinary module will do."""

    def exec_module(self, module: "ModuleType") -> None:
        """Run a module's code."""
        exec(loads(self._codes[module.__name__][1]), module.__dict__)  # noqa: S102, S302 - of our archive, hash checked

    def get_source(self, name: str) -> str:
        """A module's source, for tracebacks.  Raises: OSError."""
        spec = self.find_spec(name)
        return self.get_data(str(spec and spec.origin)).decode()

    def get_data(self, path: str) -> bytes:
        """What lies in the archive under a path.  Raises: OSError."""
        from zipimport import zipimporter

        return zipimporter(self.archive).get_data(path)


def _read(path: str) -> "Codes | None":
    """What was kept; None when it is damaged or could have been written by others."""
    from _blake2 import blake2b

    if not is_ours(os.path.dirname(path)):
        return None
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        try:
            status = os.fstat(fd)
            mine = S_ISREG(status.st_mode) and status.st_uid == os.geteuid()
            data = os.read(fd, status.st_size) if mine and not status.st_mode & 0o022 else b""
        finally:
            os.close(fd)
    except OSError:
        return None
    if blake2b(data[HASH_BYTES:], digest_size=HASH_BYTES).digest() != data[:HASH_BYTES]:
        return None
    return loads(data[HASH_BYTES:])  # type: ignore[no-any-return]  # noqa: S302 - we wrote it


def _compile(archive: str) -> "Codes":
    from zipfile import ZipFile

    codes: Codes = {}
    with ZipFile(archive) as opened:
        for name in opened.namelist():
            if not name.endswith(".py") or name in STARTS:
                continue
            code = compile(opened.read(name), name, "exec", dont_inherit=True)
            module = name.removesuffix(".py").removesuffix("/__init__").replace("/", ".")
            codes[module] = (name.endswith("/__init__.py"), dumps(code))
    return codes


def _write(path: str, codes: "Codes") -> bool:
    """True when it is kept, where nobody else can write."""
    from _blake2 import blake2b
    from contextlib import suppress

    data = dumps(codes)
    place = os.path.dirname(path)
    draft = os.path.join(place, f".{os.urandom(8).hex()}")
    try:
        os.makedirs(place, 0o700, exist_ok=True)
        if not is_ours(place):
            return False
        fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with open(fd, "wb") as file:
            file.write(blake2b(data, digest_size=HASH_BYTES).digest() + data)
        os.rename(draft, path)
    except OSError:
        with suppress(OSError):
            os.unlink(draft)
        return False
    return True
