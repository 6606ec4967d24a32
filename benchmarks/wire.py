"""A bare stdio peer for measuring: no library between the clock and the pipe."""

import json
import os
import subprocess
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from benchmarks.measure import CLEAN

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Peer:
    """A server process; the SDK's servers and ours are driven alike, with a handshake or without."""

    def __init__(
        self, argv: Sequence[str | Path], cwd: Path, handshake: bool, **environ: str
    ) -> None:
        self.handshake = handshake
        self.process = subprocess.Popen(
            [str(word) for word in argv],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            cwd=cwd,
            env={**CLEAN, **environ},
            bufsize=0,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._in, self._out = self.process.stdin.fileno(), self.process.stdout.fileno()
        self._rest = b""
        if handshake:
            client = {"name": "bench", "version": "1"}
            asked = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
            self.ask("initialize", asked)
            note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
            os.write(self._in, json.dumps(note).encode() + b"\n")

    def request(self, key: int, method: str, params: dict[str, Any]) -> bytes:
        """A request as a line."""
        if not self.handshake:
            params = {**params, "_meta": META}
        text = json.dumps({"jsonrpc": "2.0", "id": key, "method": method, "params": params})
        return text.encode() + b"\n"

    def ask(self, method: str, params: dict[str, Any]) -> bytes:
        """The answering line of one request."""
        return self.exchange(self.request(1, method, params))

    def exchange(self, data: bytes, answers: int = 1) -> bytes:
        """Write `data`, read until so many lines have come."""
        os.write(self._in, data)
        while self._rest.count(b"\n") < answers:
            piece = os.read(self._out, 1 << 20)
            if not piece:
                raise EOFError("the server ended")
            self._rest += piece
        got, self._rest = self._rest, b""
        return got

    def resident_mb(self) -> float:
        """Resident memory now."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        line = next(line for line in text.splitlines() if line.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    def end_ms(self) -> float:
        """How long the process takes to end behind the end of its input."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        began = time.perf_counter()
        self.process.stdin.close()
        self.process.wait(timeout=30)
        taken = (time.perf_counter() - began) * 1000
        self.process.stdout.close()
        return taken
