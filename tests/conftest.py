"""What the tests of all tools share: a call made by hand, and a real server driven over its pipes."""

import gc
import json
import os
import select
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from time import monotonic
from typing import Any, Self

import pytest
from hypothesis import settings

from toolroll.call import Call
from toolroll.guard import Guard
from toolroll.paths import Roots
from toolroll.tool import Outcome, Tool

settings.register_profile("ci", derandomize=True)
if os.environ.get("CI"):
    settings.load_profile("ci")  # the search for new examples is for people who can look at them

Json = Any

HANDSHAKE = "2025-11-25"
STATELESS = "2026-07-28"
ERAS = (HANDSHAKE, STATELESS)
"""One revision of each era, for tests that must hold in both."""

ENVELOPE: dict[str, Json] = {
    "io.modelcontextprotocol/protocolVersion": STATELESS,
    "io.modelcontextprotocol/clientInfo": {"name": "tests", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
"""The `_meta` of every request of the stateless era."""

WAIT_S = 20.0
"""Bounds every wait for a server; far beyond what one needs, for a machine under load."""


def readable(fd: int, timeout_s: float) -> bool:
    """True when there is something to read, or the end; not by select(), which knows 1024 descriptors."""
    poller = select.poll()
    poller.register(fd, select.POLLIN)
    return bool(poller.poll(timeout_s * 1000))


def open_descriptors() -> int:
    """How many this process has open; those of forgotten roots are closed first, when collected."""
    gc.collect()
    return len(os.listdir("/dev/fd"))


class Wire:
    """A server process of ours and the two pipes it is spoken to by; every wait is bounded.

    `notes` collects the notifications that came while an answer was waited for.
    """

    def __init__(
        self,
        command: Sequence[str],
        environment: Mapping[str, str],
        folder: str | Path | None = None,
    ) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115 - closed by close()
        self.process = subprocess.Popen(
            command,
            bufsize=0,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            env=environment,
            cwd=folder,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._stdin = self.process.stdin
        self._stdout = self.process.stdout
        self._unread = b""
        self._said = ""
        self._meta: dict[str, Json] | None = None
        self._last_id = 0
        self.notes: list[Json] = []

    def write(self, data: bytes) -> None:
        """Send bytes as they are."""
        while data:
            data = data[os.write(self._stdin.fileno(), data) :]

    def send(self, message: Json) -> None:
        """Send one message as a line."""
        self.write(json.dumps(message).encode() + b"\n")

    def read_line(self, timeout_s: float = WAIT_S) -> bytes:
        """The next line from the server without its end, empty at the end of its output."""
        deadline = monotonic() + timeout_s
        while b"\n" not in self._unread:
            wait_s = max(deadline - monotonic(), 0.0)
            ready = readable(self._stdout.fileno(), wait_s)
            assert ready, f"no line within {timeout_s} s; stderr: {self.errors}"
            piece = os.read(self._stdout.fileno(), 65_536)
            if not piece:
                line, self._unread = self._unread, b""
                return line
            self._unread += piece
        line, _, self._unread = self._unread.partition(b"\n")
        return line

    def read(self, timeout_s: float = WAIT_S) -> Json:
        """The next message from the server."""
        line = self.read_line(timeout_s)
        assert line, f"the server ended; stderr: {self.errors}"
        return json.loads(line)

    def open(self, revision: str = HANDSHAKE) -> Self:
        """Speak `revision` from here on; one of the handshake era begins with its handshake."""
        if revision == STATELESS:
            self._meta = ENVELOPE
            return self
        self._meta = None
        client = {"name": "tests", "version": "1"}
        params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": client}
        answer = self.request("initialize", params)
        assert answer["result"]["protocolVersion"] == revision
        self.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        return self

    def request(self, method: str, params: "dict[str, Json] | None" = None) -> "dict[str, Json]":
        """The whole answer to one request; `params` may bring further `_meta`."""
        number = self.post(method, params)
        while True:
            message: dict[str, Json] = self.read()
            if message.get("id") == number and "method" not in message:
                return message
            self.notes.append(message)

    def post(self, method: str, params: "dict[str, Json] | None" = None) -> int:
        """Send one request without waiting and return its id."""
        self._last_id += 1
        params = dict(params or {})
        if self._meta is not None:
            params["_meta"] = {**self._meta, **params.get("_meta", {})}
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        self.send(message)
        return self._last_id

    def call(self, tool: str, **arguments: Json) -> "dict[str, Json]":
        """The result of `tools/call`."""
        answer = self.request("tools/call", {"name": tool, "arguments": arguments})
        assert "result" in answer, answer
        result: dict[str, Json] = answer["result"]
        return result

    @property
    def errors(self) -> str:
        """What the server has written to stderr so far."""
        if not self._errors.closed:  # by an offset of its own: the file's is the server's
            self._said = os.pread(self._errors.fileno(), 1_000_000, 0).decode("utf-8", "replace")
        return self._said

    def end_input(self) -> None:
        """Close the server's input."""
        self._stdin.close()

    def close(self) -> int:
        """End the input and return the exit code; a server that stays is killed: -9."""
        self.end_input()
        try:
            self.process.wait(WAIT_S)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        self._stdout.close()
        self._said = self.errors
        self._errors.close()
        return self.process.returncode


@pytest.fixture
def make_call() -> Callable[..., Call]:
    """`make_call(root, ...)`: a call by hand, with one root (or a list) and an empty environment.

    `deny`, `environ`, `deadline_s` and `report` go where their names say; all else is a server option,
    `max_output=100` for `--max-output 100`.
    """

    def make(
        root: "str | Path | Sequence[str | Path]",
        *,
        deny: Sequence[str] = (),
        environ: Mapping[str, str] | None = None,
        deadline_s: float | None = None,
        report: Callable[[float, float | None, str], None] | None = None,
        **options: Json,
    ) -> Call:
        folders = [root] if isinstance(root, str | Path) else root
        named = {name.replace("_", "-"): value for name, value in options.items()}
        roots = Roots([str(folder) for folder in folders], deny)
        return Call(roots, Guard(environ or {}), named, deadline_s, report)

    return make


@pytest.fixture
def answer() -> Callable[..., Outcome]:
    """`answer(tool, call, **arguments)`: the outcome of a call, the whole way through the house."""

    def ask(tool: Tool, call: Call, /, **arguments: Json) -> Outcome:
        return tool.call(arguments, call)

    return ask


@pytest.fixture
def wire(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[..., Wire]]:
    """`wire("toolroll_ls", "--root", path, ...)`: a running server with nothing but PATH and HOME.

    `environ` adds to its environment, `folder` is where it starts.  Whatever still runs when the test
    is over is ended, and must end well.
    """
    running: list[Wire] = []
    home = tmp_path_factory.mktemp("home")

    def start(
        module: str,
        *options: "str | Path",
        environ: Mapping[str, str] | None = None,
        folder: "str | Path | None" = None,
    ) -> Wire:
        environment = {"PATH": os.environ["PATH"], "HOME": str(home), **(environ or {})}
        command = [sys.executable, "-m", module, *map(str, options)]
        running.append(Wire(command, environment, folder))
        return running[-1]

    yield start
    codes = [one.close() for one in running if one.process.returncode is None]
    assert not any(codes), codes


def tick(folder: Path) -> None:
    """Wait until the file system's clock has moved on."""
    probe = folder.parent / "probe"
    probe.touch()
    began = probe.stat().st_ctime_ns
    until = monotonic() + 5
    while probe.stat().st_ctime_ns == began:
        assert monotonic() < until
        probe.touch()
