"""What a running tool may ask of its host."""

import pytest

from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.paths import Roots

ROOTS, GUARD = Roots([]), Guard({})


def test_a_call_without_deadline_never_expires() -> None:
    assert not Call(ROOTS, GUARD).expired


def test_a_call_expires_at_its_deadline() -> None:
    assert Call(ROOTS, GUARD, deadline_s=0.0).expired
    assert not Call(ROOTS, GUARD, deadline_s=3600.0).expired


def test_a_cancelled_call_is_no_longer_wanted() -> None:
    call = Call(ROOTS, GUARD)
    call.check()
    call.cancel()
    assert call.cancelled
    with pytest.raises(ToolError) as caught:
        call.check()
    assert caught.value.code == ErrorCode.CANCELLED


def test_a_listener_hears_of_the_cancellation_once() -> None:
    heard: list[str] = []
    call = Call(ROOTS, GUARD)
    call.on_cancel(lambda: heard.append("cancelled"))
    call.cancel()
    call.cancel()
    assert heard == ["cancelled"]


def test_a_listener_that_comes_late_hears_at_once() -> None:
    heard: list[str] = []
    call = Call(ROOTS, GUARD)
    call.cancel()
    call.on_cancel(lambda: heard.append("cancelled"))
    assert heard == ["cancelled"]


def test_a_listener_that_was_taken_back_hears_nothing() -> None:
    heard: list[str] = []
    call = Call(ROOTS, GUARD)
    call.on_cancel(lambda: heard.append("cancelled"))
    call.on_cancel(None)
    call.cancel()
    assert heard == []


def test_progress_goes_to_who_asked_and_ends_with_the_cancellation() -> None:
    seen: list[tuple[float, float | None, str]] = []
    call = Call(ROOTS, GUARD, report=lambda *what: seen.append(what))
    assert call.wants_progress
    call.progress(1)
    call.progress(2, 3, "two")
    call.cancel()
    call.progress(3)
    assert seen == [(1, None, ""), (2, 3, "two")]


def test_progress_that_nobody_asked_for_goes_nowhere() -> None:
    call = Call(ROOTS, GUARD)
    assert not call.wants_progress
    call.progress(1)
