"""A Bash server as root or as an ordinary user with fake programs on its PATH, for tests of its layers."""

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import Wire
from tests.tools.test_bash_banned import AS_STRANGER, NEEDED, ROOT, STRANGER, script

Json = Any

SERVE = "from toolroll_bash.__main__ import run; raise SystemExit(run())"


class Hosts:
    """Starts servers of one user in a folder of the user's own; `bin` there is first on PATH."""

    def __init__(self, ordinary: bool) -> None:
        self.ordinary = ordinary
        self.folder = Path(tempfile.mkdtemp(prefix="toolroll-layers-")).resolve()
        self.bin = self.folder / "bin"
        self.bin.mkdir()
        self.ran = self.folder / "ran"
        self.ran.touch()
        for name in ("curl", "wget", "plain"):
            script(self.bin / name, f"echo {name} >>'{self.ran}'")
        self._wires: list[Wire] = []

    def start(
        self, *options: str, code: str = "", environ: Mapping[str, str] | None = None
    ) -> Wire:
        """A server; `code` is Python that runs in its process first."""
        for place in (self.folder, *self.folder.iterdir()) if self.ordinary and ROOT else ():
            os.chown(place, STRANGER, STRANGER)
        self.folder.chmod(0o755)
        command = [sys.executable]
        if self.ordinary and ROOT:
            command += ["-c", AS_STRANGER, NEEDED]
        command += ["-c", f"{code}\n{SERVE}", "--rate", "off", *options]
        path = (str(self.bin), os.path.dirname(sys.executable), os.environ["PATH"])
        environment = {
            "PATH": os.pathsep.join(path),
            "HOME": str(self.folder),
            "TMPDIR": str(self.folder),
            "PYTHONPATH": os.environ.get("PYTHONPATH", ""),
            "PYTHONDONTWRITEBYTECODE": "1",
            **(environ or {}),
        }
        self._wires.append(Wire(command, environment, self.folder).open())
        return self._wires[-1]

    def close(self) -> None:
        """End all servers."""
        for wire in self._wires:
            wire.close()
        shutil.rmtree(self.folder)


@pytest.fixture(params=["root", "user"])
def hosts(request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """As root, and as somebody else."""
    if request.param == "root" and not ROOT:
        pytest.skip("not run as root")
    started = Hosts(request.param == "user")
    yield started
    started.close()


def ask(wire: Wire, command: str, **arguments: Json) -> str:
    """The text of an answer."""
    result = wire.call("Bash", command=command, **{"timeout": 30_000, **arguments})
    text: str = result["content"][0]["text"]
    return text
