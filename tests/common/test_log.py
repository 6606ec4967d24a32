"""Events on stderr, and the record of the wire."""

import json
import os
import stat
from pathlib import Path

import pytest

from toolroll.log import LEVELS, Log, Trace


def mask(text: str) -> str:
    return text.replace("secret", "***")


@pytest.mark.parametrize("level", LEVELS[:-1])
def test_a_log_writes_its_level_and_what_is_above(
    level: str, capfd: pytest.CaptureFixture[str]
) -> None:
    log = Log("name", level, mask)
    for one in LEVELS[:-1]:
        log(one, "event")
    written = [line.split()[2] for line in capfd.readouterr().err.splitlines()]
    assert written == [*LEVELS[LEVELS.index(level) : -1]]


def test_a_log_that_is_off_writes_tracebacks_only(capfd: pytest.CaptureFixture[str]) -> None:
    log = Log("name", "off", mask)
    log("error", "event")
    assert capfd.readouterr().err == ""
    log.traceback(ValueError("a secret"))
    assert "ValueError: a ***" in capfd.readouterr().err


def test_a_traceback_needs_no_source_lines(
    capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("linecache.getline", None)  # as with a zipapp that was replaced
    monkeypatch.setattr("linecache.checkcache", None)
    try:
        raise ValueError("a secret")
    except ValueError as problem:
        Log("name", "off", mask).traceback(problem)
    said = capfd.readouterr().err
    assert "test_log.py" in said
    assert said.endswith("ValueError: a ***\n")


def test_an_event_is_one_masked_line(capfd: pytest.CaptureFixture[str]) -> None:
    Log("name", "debug", mask)("info", "event", id="a\nsecret", ms=1.5)
    line = capfd.readouterr().err
    assert line.endswith(" name info event id='a\\n***' ms=1.5\n")
    assert line.count("\n") == 1


def test_a_trace_is_private_appended_and_masked(tmp_path: Path) -> None:
    path = tmp_path / "trace"
    Trace(str(path), mask)("in", b"a secret \xff\n")
    trace = Trace(str(path), mask)
    trace("out", "é".encode())
    trace.close()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert [(line["way"], line["data"]) for line in lines] == [
        ("in", "a *** \\xff"),
        ("out", "é"),
    ]
    assert all(line["time"] > 0 for line in lines)


def test_a_secret_that_comes_in_two_pieces_is_masked_in_a_trace(tmp_path: Path) -> None:
    trace = Trace(str(tmp_path / "trace"), mask)
    trace("in", b"a sec")
    trace("in", b"ret\nnext")
    assert "secret" not in (tmp_path / "trace").read_text()
    assert (tmp_path / "trace").read_text().count("\n") == 1


def test_a_traces_descriptor_is_not_inherited(tmp_path: Path) -> None:
    trace = Trace(str(tmp_path / "trace"), mask)
    assert not os.get_inheritable(trace._fd)


def test_a_trace_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no"):
        Trace(str(tmp_path / "no" / "trace"), mask)
