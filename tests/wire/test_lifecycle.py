"""How a server's process begins and ends, and what it bears in between; the rest is in the table."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.conftest import readable
from tests.wire.session import PATIENCE_S, Ear, Heard, Process
from toolroll.limits import WORKERS

Json = Any

PEER = (sys.executable, str(Path(__file__).with_name("peer.py")))
PIPE_BYTES = 1 << 16
ENVELOPE = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def message(key: Json, method: str, **params: Json) -> bytes:
    value = {"jsonrpc": "2.0", "id": key, "method": method}
    return json.dumps({**value, "params": {"_meta": ENVELOPE, **params}}).encode() + b"\n"


def do(key: Json, deed: str, token: Json = None, **arguments: Json) -> bytes:
    meta = ENVELOPE if token is None else {**ENVELOPE, "progressToken": token}
    asked = {"do": deed, **arguments}
    return message(key, "tools/call", name="Peer", arguments=asked, _meta=meta)


def text_of(heard: Heard | None) -> str:
    assert heard is not None
    text: str = heard.value["result"]["content"][0]["text"]
    return text


def run(data: bytes, *words: str, shell: str = "") -> "subprocess.CompletedProcess[bytes]":
    """The peer given all of its input at once; `shell` redirects its descriptors."""
    command = [*PEER, *words]
    if shell:
        command = ["sh", "-c", f'exec "$0" "$@" {shell}', *command]
    return subprocess.run(command, input=data, capture_output=True, timeout=PATIENCE_S, check=False)


# -- the reference system's way of calling ---------------------------------------------------------------


def test_a_bare_call_as_first_line_is_answered_bare_and_ends_the_process(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(b'{"name":"Peer","params":{"do":"echo","text":"hi"}}\n')  # and no end of input
        assert [heard.value for heard in peer.rest()] == [{"result": "hi", "size": 2, "ratio": 1.0}]
        assert peer.status() == 0


def test_a_bare_call_that_fails_says_why_and_which_code(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(b'{"name":"Peer","params":{"do":"fail","text":"x"}}\n')
        [heard] = peer.rest()
        assert heard.value == {"error": "'x' is not here. Look elsewhere.", "code": "NOT_FOUND"}
        assert peer.status() == 1


def test_a_bare_call_of_another_tool_is_refused(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(b'{"name":"Other","params":{}}\n')
        [heard] = peer.rest()
        assert heard.value["code"] == "INVALID_PARAMS"
        assert "Unknown tool: Other" in heard.value["error"]


def test_a_bare_call_counts_only_as_the_first_message() -> None:
    bare = b'{"name":"Peer","params":{"do":"echo"}}\n'
    done = run(message(1, "tools/list") + bare)
    first, second = map(json.loads, done.stdout.splitlines())
    assert first["id"] == 1
    assert second["error"]["code"] == -32600


def test_what_follows_a_bare_call_is_not_read() -> None:
    done = run(b'{"name":"Peer","params":{"do":"echo"}}\n' + message(1, "tools/list"))
    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {"result": "", "size": 0, "ratio": 1.0}
    ]


# -- descriptors -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("shell", ["<&-", ">&-", "<&- >&-", "<&- >&- 2>&-"])
def test_a_server_without_its_descriptors_ends_quietly(shell: str) -> None:
    done = run(message(1, "tools/list"), shell=shell)
    assert (done.returncode, done.stdout, done.stderr) == (0, b"", b"")


def test_a_server_without_stderr_answers_even_when_a_tool_has_a_bug(tmp_path: Path) -> None:
    data = do(1, "bug") + do(2, "stray") + do(3, "echo", text="on")
    done = run(data, "--log-level", "debug", shell="2>&-")
    answers = {value["id"]: value for value in map(json.loads, done.stdout.splitlines())}
    assert done.returncode == 0
    assert [answers[key]["result"]["isError"] for key in (1, 2, 3)] == [True, False, False]


def test_a_server_whose_stderr_nobody_reads_goes_on(tmp_path: Path) -> None:
    out, into = os.pipe()
    with Process((*PEER, "--rate", "off", "--log-level", "debug"), tmp_path, stderr=into) as peer:
        os.close(into)
        for key in range(1_000):  # two lines each, more than a pipe holds
            peer.say(do(key, "echo", text="x"))
            heard = peer.hear()
            assert heard is not None
            assert heard.value["id"] == key
        peer.end("eof")
        assert peer.status() == 0
    os.close(out)


@contextmanager
def nonblocking(tmp_path: Path) -> Iterator[tuple[Process, int, int]]:
    """A peer whose own ends of both pipes do not block, as a Node host may leave them."""
    theirs_in, ours_out = os.pipe()
    ours_in, theirs_out = os.pipe()
    os.set_blocking(theirs_in, False)
    os.set_blocking(theirs_out, False)
    with Process((*PEER, "--rate", "off"), tmp_path, stdin=theirs_in, stdout=theirs_out) as peer:
        os.close(theirs_in)
        os.close(theirs_out)
        yield peer, ours_out, ours_in
    os.close(ours_in)


def read_all(fd: int) -> list[Heard]:
    """All messages up to the end of the output."""
    ear = Ear()
    while readable(fd, PATIENCE_S) and (data := os.read(fd, PIPE_BYTES)):
        ear.feed(data)
    heard = [*iter(ear.message, None)]
    ear.close()
    return heard


def test_pipes_that_do_not_block_are_served_like_others(tmp_path: Path) -> None:
    with nonblocking(tmp_path) as (peer, into, out):
        for key in range(20):
            os.write(into, do(key, "echo", text="x" * 25_000))
        os.close(into)
        assert sorted(heard.value["id"] for heard in read_all(out)) == [*range(20)]
        assert peer.status() == 0


# -- much at once ----------------------------------------------------------------------------------------


def test_a_client_may_write_400_requests_before_it_reads_their_large_answers(
    tmp_path: Path,
) -> None:
    with Process((*PEER, "--rate", "off"), tmp_path) as peer:
        peer.say(b"".join(do(key, "echo", text="abcde", times=5_000) for key in range(400)))
        peer.end("eof")
        heard = peer.rest()
        assert sorted(one.value["id"] for one in heard) == [*range(400)]
        assert {text_of(one) for one in heard} == {"abcde" * 5_000}
        assert peer.status() == 0


def test_lists_too_are_answered_to_a_client_that_writes_before_it_reads(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(b"".join(message(key, "tools/list") for key in range(1_000)))
        peer.end("eof")
        assert [one.value["id"] for one in peer.rest()] == [*range(1_000)]
        assert peer.status() == 0


def test_calls_past_the_rate_are_error_results_that_say_how_long_to_wait(tmp_path: Path) -> None:
    with Process((*PEER, "--rate", "0.001/3"), tmp_path) as peer:
        peer.say(b"".join(do(key, "echo", text="served") for key in range(5)))
        peer.end("eof")
        texts = sorted(text_of(heard) for heard in peer.rest())
        assert texts[2:] == ["served"] * 3
        refusal = "Error [RATE_LIMITED]: Rate limit exceeded. Please try again later."
        assert all(text.startswith(refusal) and "Wait " in text for text in texts[:2])


def test_requests_that_are_no_calls_do_not_count_towards_the_rate(tmp_path: Path) -> None:
    with Process((*PEER, "--rate", "0.001/1"), tmp_path) as peer:
        peer.say(b"".join(message(key, "tools/list") for key in range(50)) + do(50, "echo"))
        peer.end("eof")
        assert all("error" not in heard.value for heard in peer.rest())


def test_an_answer_that_is_no_json_is_a_bug_of_the_tool_and_answered(tmp_path: Path) -> None:
    with Process((*PEER, "--structured"), tmp_path) as peer:
        peer.say(do(1, "odd") + do(2, "echo", text="on"))
        heard = [peer.hear(), peer.hear()]
        texts = sorted(text_of(one) for one in heard)
        assert texts[0].startswith("Error [INTERNAL_ERROR]")
        assert texts[1] == "on"
        assert "Traceback" in peer.aside()


# -- taking turns ----------------------------------------------------------------------------------------


def test_calls_that_came_together_run_side_by_side(tmp_path: Path) -> None:
    with Process((*PEER, "--rate", "off"), tmp_path) as peer:
        holding = [do(key, "hold", text="gate") for key in range(WORKERS - 1)]
        peer.say(b"".join(holding) + do(99, "unlock", text="gate"))
        heard = [peer.hear() for _ in range(WORKERS)]
        assert {one.value["id"] for one in heard if one} == {*range(WORKERS - 1), 99}


def test_a_call_past_the_workers_waits_for_one_of_them_while_input_is_read(tmp_path: Path) -> None:
    with Process((*PEER, "--rate", "off"), tmp_path) as peer:
        for key in range(WORKERS):
            peer.say(do(key, "hold", token=key, text=f"gate {key}"))
            assert peer.hear()  # it holds
        peer.say(do(20, "echo", text="at last") + message(21, "tools/list"))
        heard = peer.hear()
        assert heard is not None
        assert heard.value["id"] == 21
        note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 3}}
        peer.say(json.dumps(note).encode() + b"\n")
        assert text_of(peer.hear()) == "at last"


def test_threads_that_were_kept_by_calls_are_used_again(tmp_path: Path) -> None:
    with Process((*PEER, "--rate", "off"), tmp_path) as peer:
        for turn in range(30):
            gate = f"gate {turn}"
            peer.say(do(f"held {turn}", "hold", text=gate))
            peer.say(b"".join(do(f"{turn}.{key}", "echo", text="x") for key in range(5)))
            answered = [peer.hear() for _ in range(5)]
            assert {one.value["id"] for one in answered if one} == {f"{turn}.{k}" for k in range(5)}
            peer.say(do(f"opens {turn}", "unlock", text=gate))
            both = [peer.hear(), peer.hear()]
            assert {one.value["id"] for one in both if one} == {f"held {turn}", f"opens {turn}"}
        if os.path.isdir("/proc/self/task"):
            assert len(os.listdir(f"/proc/{peer.child.pid}/task")) <= 6


# -- ends ------------------------------------------------------------------------------------------------


def test_a_call_that_ends_within_the_grace_is_answered_after_the_end_of_input(
    tmp_path: Path,
) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(do(1, "hold", token="t", text="gate"))
        assert peer.hear()  # it holds
        peer.say(do(2, "unlock", text="gate"))
        peer.end("eof")
        assert {text_of(heard) for heard in peer.rest()} == {"passed gate", "opened gate"}
        assert peer.status() == 0


def test_a_call_that_heeds_nothing_does_not_keep_the_process(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(do(1, "deaf", token="t", text="never"))
        assert peer.hear()
        peer.end("eof")
        assert peer.rest() == []
        assert peer.status() == 0


@pytest.mark.parametrize("how", ["TERM", "INT"])
def test_a_signal_ends_a_process_whose_client_reads_nothing(how: str, tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(b"".join(do(key, "echo", text="x" * 25_000) for key in range(30)))  # > the pipe
        peer.end(how)
        assert peer.status() == 0
        assert peer.aside() == ""


def test_a_call_whose_answer_nobody_reads_ends_the_process(tmp_path: Path) -> None:
    with Process(PEER, tmp_path) as peer:
        peer.say(do(1, "hold", token="t", text="gate"))
        assert peer.hear()
        assert peer.child.stdout is not None
        peer.child.stdout.close()
        peer.say(do(2, "unlock", text="gate"))
        assert peer.status() == 0
        assert peer.aside() == ""


# -- what a review found -----------------------------------------------------------------------------


def test_a_bare_call_is_answered_however_long_it_takes(tmp_path: Path) -> None:
    """The end of input is the normal case for it, so no grace counts."""
    with Process(PEER, tmp_path) as peer:
        gate = str(tmp_path / "gate")
        peer.say(
            json.dumps({"name": "Peer", "params": {"do": "hold", "text": gate}}).encode() + b"\n"
        )
        peer.end("eof")
        with pytest.raises(subprocess.TimeoutExpired):
            peer.child.wait(timeout=2.5)  # longer than any grace
        (tmp_path / "gate").touch()
        assert len(peer.rest()) == 1
        assert peer.status() == 0


def test_a_trace_on_a_full_disk_ends_and_the_server_goes_on(tmp_path: Path) -> None:
    with Process((*PEER, "--trace", "/dev/full"), tmp_path) as peer:
        peer.say(do(1, "echo", text="x"))
        heard = peer.hear()
        assert heard is not None
        assert heard.value["id"] == 1
        peer.end("eof")
        assert peer.status() == 0


def test_a_bug_in_what_ends_a_tool_does_not_keep_the_process(tmp_path: Path) -> None:
    code = (
        "from tests.wire.peer import peer; from toolroll.cli import main\n"
        "def close(): raise RuntimeError('in close')\n"
        "peer.close = close\n"
        "raise SystemExit(main(peer))"
    )
    here = str(Path(__file__).resolve().parents[2])
    command = (sys.executable, "-c", f"import sys; sys.path.insert(0, {here!r})\n{code}")
    with Process(command, tmp_path) as process:
        process.say(message(1, "tools/list"))
        assert process.hear()
        process.end("TERM")
        assert process.status() == 0
        assert "in close" in process.aside()
