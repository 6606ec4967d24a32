"""The outbox and the claimed descriptors; whole processes are in tests/wire/test_lifecycle.py."""

import os
import select
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from time import monotonic

import pytest

from toolroll.stdio import Outbox

PATIENCE_S = 20.0
PIPE_BYTES = 1 << 16

Pipe = tuple[int, int]


@pytest.fixture
def pipe() -> Iterator[Pipe]:
    out, into = os.pipe()
    yield out, into
    for fd in (out, into):
        try:
            os.close(fd)
        except OSError:  # the test closed it
            continue


def outbox(fd: int, broken: "Callable[[], None] | None" = None) -> Outbox:
    def unexpected() -> None:
        raise AssertionError("broken")

    return Outbox(fd, broken or unexpected, None)


def take(fd: int, size: int) -> bytes:
    """So many bytes of what is written."""
    data = b""
    while len(data) < size:
        assert select.select([fd], [], [], PATIENCE_S)[0], f"{len(data)} of {size} bytes came"
        data += os.read(fd, size - len(data))
    return data


def test_what_was_put_is_written_in_order(pipe: Pipe) -> None:
    box = outbox(pipe[1])
    for data in (b"a\n", b"b\n", b"c\n"):
        box.put(data)
    box.flush(patient=False)
    assert take(pipe[0], 6) == b"a\nb\nc\n"


def test_the_impatient_leave_a_full_pipe_to_another_thread(pipe: Pipe) -> None:
    box = outbox(pipe[1])
    large = bytes(range(256)) * 4_000
    box.put(large)
    box.flush(patient=False)  # returns although nobody reads
    box.put(b"end")
    box.flush(patient=False)
    assert take(pipe[0], len(large) + 3) == large + b"end"


def test_messages_of_many_threads_are_never_mixed(pipe: Pipe) -> None:
    box = outbox(pipe[1])
    size, count = 9_000, 40

    def send(mark: int) -> None:
        for _ in range(count):
            box.put(bytes([mark]) * size)
            box.flush(patient=bool(mark % 2))

    threads = [threading.Thread(target=send, args=(mark,)) for mark in range(1, 7)]
    for thread in threads:
        thread.start()
    data = take(pipe[0], size * count * len(threads))
    for thread in threads:
        thread.join(PATIENCE_S)
    messages = [data[at : at + size] for at in range(0, len(data), size)]
    assert all(len({*message}) == 1 for message in messages)
    assert sorted(message[0] for message in messages) == sorted([*range(1, 7)] * count)


def test_draining_waits_until_all_is_written(pipe: Pipe) -> None:
    box = outbox(pipe[1])
    large = b"x" * (4 * PIPE_BYTES)
    got: list[bytes] = []
    box.put(large)
    box.flush(patient=False)
    reader = threading.Thread(target=lambda: got.append(take(pipe[0], len(large))))
    reader.start()
    box.drain(monotonic() + PATIENCE_S)
    reader.join(PATIENCE_S)
    assert got == [large]


def test_draining_ends_at_its_deadline_when_nobody_reads(pipe: Pipe) -> None:
    box = outbox(pipe[1])
    box.put(b"x" * (4 * PIPE_BYTES))
    box.drain(monotonic() + 0.05)
    assert len(take(pipe[0], 4 * PIPE_BYTES)) == 4 * PIPE_BYTES  # so that its thread can end


def test_a_reader_that_is_gone_is_told_of(pipe: Pipe) -> None:
    class GoneError(Exception):
        pass

    def broken() -> None:
        raise GoneError

    os.close(pipe[0])
    box = outbox(pipe[1], broken)
    box.put(b"x")
    with pytest.raises(GoneError):
        box.flush(patient=True)


CLAIM = """
import os, sys
from toolroll.stdio import claim
source, sink = claim()
assert min(source, sink) > 2
assert not os.get_inheritable(source) and not os.get_inheritable(sink)
assert os.read(0, 1) == b""
os.write(1, b"stray")
os.system("printf child")
os.write(sink, os.read(source, 100).upper())
"""


def test_the_claimed_wire_is_out_of_the_way_of_prints_and_children() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CLAIM],
        input=b"wire",
        capture_output=True,
        timeout=PATIENCE_S,
        check=True,
    )
    assert (done.stdout, done.stderr) == (b"WIRE", b"straychild")
