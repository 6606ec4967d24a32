"""Every tool as one executable file that needs only a Python: what `make pyz` runs.

Into dist/toolroll-<x>.pyz go the tool, the shared package and the libraries they import, as .py and .pyc,
stored and not compressed: reading is then a seek.  Libraries with compiled parts lie inside as wheels, one
for each CPython that has one, and are unpacked at their first import (toolroll.carried).  The same input
gives the same bytes: versions come from pyz.lock, times are fixed, names sorted.

    scripts/pyz.py [TOOL ...] [--into DIR]
    scripts/pyz.py --lock           write pyz.lock anew from what the index has today
"""

import argparse
import importlib.util
import json
import marshal
import os
import platform
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from hashlib import blake2b
from pathlib import Path
from typing import NamedTuple

from toolroll import __version__

CHECKOUT = Path(__file__).resolve().parent.parent
LOCK = Path(__file__).with_name("pyz.lock")
WHEELS = CHECKOUT / ".venv-wheels"
PYTHONS = ("3.11", "3.12", "3.13", "3.14", "3.15")
EPOCH = (1980, 1, 1, 0, 0, 0)
"""The oldest time a zip can tell."""

PLATFORMS = {
    "Linux": ("manylinux_2_28_{0}", "manylinux_2_17_{0}", "manylinux2014_{0}"),
    "Darwin": ("macosx_11_0_{0}", "macosx_10_15_{0}", "macosx_10_13_{0}"),
}

HEAD = b"""\
#!/bin/sh
exec python3 -S -c 'import sys
del sys.argv[0]
if sys.path[0] == "": del sys.path[0]
import os
sys.path.insert(0, os.path.abspath(sys.argv[0]))
from toolroll_start import start
start(True)' "$0" "$@"
"""
"""What lies before the zip: `python3 FILE` first imports what runs a zip, and the site's packages."""

START = """\
import sys

def start(finds_site=False, package="{package}"):
    if sys.version_info < (3, 11):
        sys.exit("{name} needs Python 3.11 or newer, this is %d.%d" % tuple(sys.version_info[:2]))
    from _frozen_importlib_external import MAGIC_NUMBER

    if MAGIC_NUMBER != {magic!r}:
        from toolroll.compiled import use

        use("{key}")
    from toolroll.carried import run

    sys.exit(run(package, {carried!r}, finds_site))
"""
"""How every archive starts, in words that every Python understands."""


class Recipe(NamedTuple):
    """What a tool's archive holds besides the shared package: our packages, libraries as they are, wheels."""

    packages: tuple[str, ...]
    pure: tuple[str, ...] = ()
    carried: tuple[str, ...] = ()


READERS = ("toolroll_ls", "toolroll_view", "toolroll_glob", "toolroll_grep")
RECIPES = {
    "bash": Recipe(("toolroll_bash",), ("pexpect", "ptyprocess")),
    "dispatch-agent": Recipe(
        ("toolroll_dispatch_agent", *READERS), ("wcmatch", "bracex"), ("regex", "openai")
    ),
    "edit": Recipe(("toolroll_edit",)),
    "glob": Recipe(("toolroll_glob",), ("wcmatch", "bracex"), ("regex",)),
    "grep": Recipe(("toolroll_grep",), (), ("regex",)),
    "ls": Recipe(("toolroll_ls",)),
    "replace": Recipe(("toolroll_replace",)),
    "view": Recipe(("toolroll_view",)),
}


def main() -> int:
    """The exit code: 0 when everything asked for was built."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tools", nargs="*", metavar="TOOL", help=", ".join(RECIPES))
    parser.add_argument("--into", type=Path, default=CHECKOUT / "dist", metavar="DIR")
    parser.add_argument("--lock", action="store_true", help="write pyz.lock anew")
    asked = parser.parse_args()
    if asked.lock:
        write_lock()
        return 0
    if unknown := sorted(set(asked.tools) - set(RECIPES)):
        parser.error(f"unknown tool '{unknown[0]}'; there are {', '.join(RECIPES)}")
    asked.into.mkdir(parents=True, exist_ok=True)
    for tool in asked.tools or RECIPES:
        path = build(tool, asked.into)
        print(f"{path.name}  {path.stat().st_size / 1e6:.1f} MB")
    return 0


def build(tool: str, into: Path) -> Path:
    """The finished archive of one tool."""
    recipe = RECIPES[tool]
    members = dict(_members(tool, recipe))
    path = into / f"toolroll-{tool}.pyz"
    with tempfile.NamedTemporaryFile(dir=into, delete=False) as file:
        file.write(HEAD)
        with zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as archive:
            for name in sorted(members):
                archive.writestr(zipfile.ZipInfo(name, EPOCH), members[name])
    os.chmod(file.name, 0o755)
    os.replace(file.name, path)
    return path


def _members(tool: str, recipe: Recipe) -> Iterator[tuple[str, bytes]]:
    modules = dict(_modules(recipe))
    tops = [name for library in recipe.carried for name in top_levels(wheels_of(library))]
    sources = [name.encode() + modules[name] for name in sorted(modules) if name.endswith(".py")]
    start = START.format(
        name=f"toolroll-{tool}",
        package=recipe.packages[0],
        carried=tuple(sorted(set(tops))),
        magic=importlib.util.MAGIC_NUMBER,
        key=_hash(b"\0".join(sources)),
    )
    yield "__main__.py", b"from toolroll_start import start\nstart()\n"
    yield from _module("toolroll_start.py", start.encode())
    yield "VERSION", f"toolroll {__version__}\n".encode()
    yield "LICENSE", (CHECKOUT / "LICENSE").read_bytes()
    yield from modules.items()
    if recipe.carried:
        wheels = [wheel for library in recipe.carried for wheel in wheels_of(library)]
        yield from _carried(sorted(set(wheels)))


def _modules(recipe: Recipe) -> Iterator[tuple[str, bytes]]:
    """Our modules, and the libraries that lie in the archive as they are."""
    for folder in ("common/toolroll", *map(_folder, recipe.packages)):
        for file in sorted((CHECKOUT / folder).rglob("*.py")):
            name = file.relative_to((CHECKOUT / folder).parent).as_posix()
            yield from _module(name, file.read_bytes())
    for library in recipe.pure:
        for wheel in wheels_of(library):
            yield from _unwrapped(wheel)


def _folder(package: str) -> str:
    return f"tools/{package.removeprefix('toolroll_')}/{package}"


def _module(name: str, source: bytes) -> Iterator[tuple[str, bytes]]:
    """A module's source and its code, which counts without a look at the source (PEP 552)."""
    yield name, source
    code = marshal.dumps(compile(source, name, "exec", dont_inherit=True, optimize=0))
    unchecked = (1).to_bytes(4, "little")
    digest = importlib.util.source_hash(source)
    yield f"{name}c", importlib.util.MAGIC_NUMBER + unchecked + digest + code


def _unwrapped(wheel: Path) -> Iterator[tuple[str, bytes]]:
    """What a pure library's wheel holds, its licence too, but for what nobody imports."""
    with zipfile.ZipFile(wheel) as archive:
        for name in archive.namelist():
            if name.endswith((".pyi", "py.typed", "/RECORD", "/WHEEL")):
                continue
            if name.endswith(".py"):
                yield from _module(name, archive.read(name))
            else:
                yield name, archive.read(name)


def _carried(wheels: Sequence[Path]) -> Iterator[tuple[str, bytes]]:
    manifest = {"wheels": [_entry(wheel) for wheel in wheels]}
    yield "carried/manifest.json", json.dumps(manifest, indent=1).encode()
    for wheel in wheels:
        yield f"carried/{wheel.name}", wheel.read_bytes()


def _entry(wheel: Path) -> dict[str, object]:
    """A wheel as toolroll.carried reads it: which Python it is for, its hash and that of each file."""
    with zipfile.ZipFile(wheel) as archive:
        files = {name: _hash(archive.read(name)) for name in archive.namelist() if name[-1] != "/"}
    return {
        "file": wheel.name,
        "python": _tag(wheel),
        "hash": _hash(wheel.read_bytes()),
        "files": files,
    }


def _hash(data: bytes) -> str:
    return blake2b(data, digest_size=16).hexdigest()


def _tag(wheel: Path) -> str:
    """The Python that a wheel is for: py3, cp313, cp313t."""
    python, abi = wheel.stem.split("-")[-3:-1]
    if abi == "none":
        return "py3"
    return abi if abi.startswith("cp") else python


# -- libraries ---------------------------------------------------------------------------------------


def locked() -> dict[str, list[str]]:
    """The requirements of each library, its own dependencies among them, as pyz.lock has them."""
    lock: dict[str, list[str]] = {}
    for line in LOCK.read_text().splitlines():
        if line.startswith("["):
            library = line.strip("[]")
            lock[library] = []
        elif line and not line.startswith("#"):
            lock[library].append(line)
    return lock


def wheels_of(library: str) -> list[Path]:
    """The wheels of a library and of what it needs, for all Pythons, fetched once."""
    requirements = locked()[library]
    name = _hash("\n".join([*requirements, *_platforms(), *PYTHONS]).encode())
    folder = WHEELS / name
    if not folder.is_dir():
        _fetch(requirements, folder)
    return sorted(folder.glob("*.whl"))


def _fetch(requirements: Sequence[str], folder: Path) -> None:
    """Fill a new folder; a Python for which not everything has a wheel gets none."""
    WHEELS.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=WHEELS) as scratch:
        for python in PYTHONS:
            into = Path(scratch, python)
            command = [*_pip("download"), "--dest", str(into), "--only-binary=:all:", "--no-deps"]
            command += ["--python-version", python, "--implementation", "cp"]
            for name in _platforms():
                command += ["--platform", name]
            command += requirements
            done = subprocess.run(command, check=False, capture_output=True, text=True)
            if done.returncode and python == PYTHONS[0]:
                raise SystemExit(f"{' '.join(requirements)} cannot be had: {done.stderr.strip()}")
        whole = Path(scratch, "whole")
        whole.mkdir()
        for python in PYTHONS:
            found = sorted(Path(scratch, python).glob("*.whl"))
            if len(found) == len(requirements):
                for wheel in found:
                    os.replace(wheel, whole / wheel.name)
        try:
            os.rename(whole, folder)
        except OSError:
            if not folder.is_dir():  # else another build was quicker
                raise


def _pip(verb: str) -> list[str]:
    return [sys.executable, "-m", "pip", verb, "--quiet", "--disable-pip-version-check"]


def _platforms() -> list[str]:
    machine = platform.machine()
    return [form.format(machine) for form in PLATFORMS.get(platform.system(), ())]


def top_levels(wheels: Iterable[Path]) -> set[str]:
    """The names that can be imported from the wheels."""
    names = set()
    for wheel in wheels:
        with zipfile.ZipFile(wheel) as archive:
            for name in archive.namelist():
                first = name.partition("/")[0]
                if not first.endswith((".dist-info", ".data")):
                    names.add(first.partition(".")[0])
    return names


def write_lock() -> None:
    """Resolve every library for the oldest Python that is served."""
    lines = ["# What goes into the zipapps: written by scripts/pyz.py --lock."]
    for library in sorted({name for r in RECIPES.values() for name in r.pure + r.carried}):
        lines += [f"[{library}]", *_resolved(library)]
    LOCK.write_text("\n".join(lines) + "\n")


def _resolved(library: str) -> list[str]:
    command = [*_pip("install"), "--dry-run", "--ignore-installed", "--report", "-", library]
    if library in ("pexpect", "wcmatch"):  # what they need has its own line
        command.append("--no-deps")
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    report: Mapping[str, list[dict[str, dict[str, str]]]] = json.loads(done.stdout)
    found = [one["metadata"] for one in report["install"]]
    return sorted(f"{one['name']}=={one['version']}" for one in found)


if __name__ == "__main__":
    if os.environ.get("PYTHONHASHSEED") != "0":  # sets of constants are written in its order
        os.environ["PYTHONHASHSEED"] = "0"
        os.execv(sys.executable, [sys.executable, *sys.argv])
    sys.exit(main())
