"""Spans that the end of the process waits for."""

from threading import Event, Thread

import pytest

from toolroll.errors import ErrorCode, ToolError
from toolroll.hold import Gate

WAIT_S = 30.0


class Worker:
    """A thread that stays inside a span until it is told to leave."""

    def __init__(self, gate: Gate) -> None:
        self.gate = gate
        self.inside = Event()
        self.leave = Event()
        self.thread = Thread(target=self.run)
        self.thread.start()
        assert self.inside.wait(WAIT_S)

    def run(self) -> None:
        with self.gate.hold():
            self.inside.set()
            self.leave.wait(WAIT_S)

    def end(self) -> None:
        self.leave.set()
        self.thread.join(WAIT_S)


def test_a_process_without_open_spans_is_settled_at_once() -> None:
    gate = Gate()
    with gate.hold():
        pass
    assert gate.settled(0.0)


def test_the_end_waits_for_an_open_span() -> None:
    gate = Gate()
    worker = Worker(gate)
    assert not gate.settled(0.0)
    answers: list[bool] = []
    waiting = Thread(target=lambda: answers.append(gate.settled(WAIT_S)))
    waiting.start()
    worker.end()
    waiting.join(WAIT_S)
    assert answers == [True]


def test_no_span_begins_once_the_process_is_ending() -> None:
    gate = Gate()
    assert gate.settled(0.0)
    with pytest.raises(ToolError) as caught, gate.hold():
        raise AssertionError("entered")
    assert caught.value.code == ErrorCode.CANCELLED
    assert gate.settled(0.0)


def test_a_handler_on_top_of_its_own_span_is_told_so_instead_of_waiting() -> None:
    gate = Gate()
    with gate.hold():
        assert not gate.settled(WAIT_S)
    assert gate.settled(0.0)


def test_spans_of_one_thread_may_nest() -> None:
    gate = Gate()
    with gate.hold(), gate.hold():
        assert len(gate.spans) == 2
    assert gate.settled(0.0)


def test_a_span_that_fails_is_over() -> None:
    gate = Gate()
    with pytest.raises(ZeroDivisionError), gate.hold():
        _ = 1 / 0
    assert gate.settled(0.0)
