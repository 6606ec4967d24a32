"""Two ways to hold a session with a server: with its process, or with its core in this process."""

import json
import os
import signal
import subprocess
import tempfile
from collections import deque
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from tests.conftest import readable
from toolroll.call import Call
from toolroll.connection import Close, Connection, Send, Start
from toolroll.guard import Guard
from toolroll.paths import Roots
from toolroll.tool import BUG, Outcome, Tool

Json = Any

PATIENCE_S = 30.0
"""How long anything is waited for before a test fails; nothing is expected to take so long."""


class Heard(NamedTuple):
    """One message of the server: its value, whether it came in a block, and its text."""

    value: Json
    boxed: bool
    text: bytes


class Ear:
    """Cuts what a server writes into messages; whatever is none fails the test."""

    def __init__(self) -> None:
        self._buffer = b""

    def feed(self, data: bytes) -> None:
        self._buffer += data

    def message(self) -> Heard | None:
        """The next complete message, None while there is none."""
        line, newline, rest = self._buffer.partition(b"\n")
        if not newline:
            return None
        if not line.startswith(b"Content-Length: "):
            self._buffer = rest
            return Heard(_value(line), False, line)
        size = int(line.removeprefix(b"Content-Length: "))
        if len(rest) < size + 2:
            return None
        assert rest.startswith(b"\r\n"), f"no blank line behind {line!r}"
        text, self._buffer = rest[2 : size + 2], rest[size + 2 :]
        return Heard(_value(text), True, text)

    def close(self) -> None:
        """Fail when something incomplete was left."""
        assert not self._buffer, f"half a message on stdout: {self._buffer[:200]!r}"


def _value(text: bytes) -> Json:
    return json.loads(text.decode("ascii"), parse_constant=_refuse)


def _refuse(name: str) -> Json:
    raise AssertionError(f"{name} on the wire")


class Process:
    """A server's process; every wait is bounded."""

    def __init__(
        self,
        command: Sequence[str],
        cwd: Path,
        environ: Mapping[str, str] | None = None,
        **more: Any,
    ) -> None:
        self._stderr = tempfile.TemporaryFile()  # noqa: SIM115 - closed by __exit__
        streams = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": self._stderr}
        self.child = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(environ or {})},
            bufsize=0,
            **{**streams, **more},
        )
        self._ear = Ear()

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.child.kill()
        self.child.wait(PATIENCE_S)
        for stream in (self.child.stdin, self.child.stdout, self._stderr):
            if stream is not None:
                stream.close()

    def say(self, data: bytes) -> None:
        """Write all of it."""
        assert self.child.stdin is not None
        left = memoryview(data)
        while left:
            left = left[self.child.stdin.write(left) or 0 :]

    def hear(self) -> Heard | None:
        """The next message, None at the end of the output."""
        while (heard := self._ear.message()) is None:
            data = self._read()
            if not data:
                self._ear.close()
                return None
            self._ear.feed(data)
        return heard

    def rest(self) -> list[Heard]:
        """All messages up to the end of the output."""
        return [*iter(self.hear, None)]

    def _read(self) -> bytes:
        assert self.child.stdout is not None
        ready = readable(self.child.stdout.fileno(), PATIENCE_S)
        assert ready, f"the server has said nothing for {PATIENCE_S} s; stderr: {self.aside()}"
        return os.read(self.child.stdout.fileno(), 1 << 16)

    def end(self, how: str) -> None:
        """End the session: eof, a signal's short name, or deaf for a client that reads no more."""
        assert self.child.stdin is not None
        assert self.child.stdout is not None
        if how == "eof":
            self.child.stdin.close()
        elif how == "deaf":
            self.child.stdout.close()
            self.say(b'{"jsonrpc":"2.0","id":1,"method":"ping"}\n')
        else:
            self.child.send_signal(signal.Signals[f"SIG{how}"])

    def status(self) -> int:
        """The exit status of the process, which has been ended."""
        return self.child.wait(PATIENCE_S)

    def aside(self) -> str:
        """What is on stderr so far."""
        size = os.fstat(self._stderr.fileno()).st_size
        return os.pread(self._stderr.fileno(), size, 0).decode("utf-8", "replace")


class Core:
    """The core of a server: every call is finished as soon as it is started."""

    def __init__(
        self, tool: Tool, cwd: Path, options: Mapping[str, Json], piece_bytes: int
    ) -> None:
        server = {"name": "toolroll-core", "version": "0"}
        instructions = f"Allowed roots: {cwd}"
        self.connection = Connection(tool, server, instructions, bool(options.get("structured")))
        self._roots = Roots([str(cwd)])
        self._piece_bytes = piece_bytes
        self._ear = Ear()
        self.closed = False

    def say(self, data: bytes) -> None:
        step = self._piece_bytes if len(data) < 100_000 else 65_536
        for at in range(0, len(data), step):
            self._carry_out(self.connection.receive(data[at : at + step]))

    def hear(self) -> Heard | None:
        return self._ear.message()

    def rest(self) -> list[Heard]:
        left = [*iter(self.hear, None)]
        self._ear.close()
        return left

    def end(self, _how: str) -> None:
        self._carry_out(self.connection.receive(b""))

    def _carry_out(self, acts: Any) -> None:
        waiting = deque(acts)
        while waiting:
            act = waiting.popleft()
            if isinstance(act, Send):
                self._ear.feed(act.data)
            elif isinstance(act, Start):
                waiting.extend(self.connection.finish(act, self._run(act)))
            self.closed |= isinstance(act, Close)

    def _run(self, start: Start) -> Outcome:
        def report(done: float, total: float | None, message: str) -> None:
            self._carry_out(self.connection.progress(start, done, total, message))

        wanted = None if start.token is None else report
        try:
            return self.connection.tool.call(
                start.arguments, Call(self._roots, Guard({}), report=wanted)
            )
        except (Exception, SystemExit):
            return Outcome.of_error(BUG)
