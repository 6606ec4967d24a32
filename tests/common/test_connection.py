"""The core without I/O: bytes in, acts out.  What single messages get is in tests/wire/conformance.py."""

import json
from collections import Counter
from collections.abc import Iterable
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import framing
from toolroll.call import Call
from toolroll.connection import Cancel, Close, Connection, Send, Start
from toolroll.eras import BATCHING, CAPABILITIES_KEY, STATELESS, VERSION_KEY
from toolroll.limits import WAITING_CALLS
from toolroll.tool import Outcome, tool

Json = Any
Act = Send | Start | Cancel | Close

ENVELOPE = {VERSION_KEY: STATELESS, CAPABILITIES_KEY: {}}
DONE = Outcome("done", lambda: {"result": "done"})


@tool("Some", title="Some", read_only=True)
def some(call: Call) -> str:
    """Never called here."""
    raise AssertionError


def connection() -> Connection:
    return Connection(some, {"name": "some", "version": "1"}, "instructions")


def opened(revision: str) -> Connection:
    """A connection behind its handshake."""
    made = connection()
    params = {"protocolVersion": revision, "capabilities": {}, "clientInfo": {}}
    hear(made, line({"jsonrpc": "2.0", "id": "i", "method": "initialize", "params": params}))
    return made


def line(value: Json) -> bytes:
    return json.dumps(value).encode() + b"\n"


def ask(key: Json, method: str, **params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": key, "method": method, "params": params}


def call(key: Json, meta: Json = ENVELOPE) -> Json:
    return ask(key, "tools/call", name="Some", arguments={}, _meta=meta)


def cancelled(key: Json) -> Json:
    params = {"requestId": key}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def hear(made: Connection, data: bytes) -> list[Act]:
    return [*made.receive(data)]


def started(made: Connection, *values: Json) -> list[Start]:
    acts = hear(made, b"".join(map(line, values)))
    return [act for act in acts if isinstance(act, Start)]


def sent(acts: Iterable[Act]) -> list[Json]:
    return [json.loads(act.data) for act in acts if isinstance(act, Send)]


def shown(act: Act) -> tuple[Json, ...]:
    """What an act is, for comparing."""
    if isinstance(act, Send):
        return "send", act.data
    if isinstance(act, Start):
        return "start", act.id, repr(act.arguments), act.form, act.token, act.route.boxed
    if isinstance(act, Cancel):
        return "cancel", act.start.id
    return ("close",)


# -- any bytes, cut anywhere -----------------------------------------------------------------------------

ids = st.one_of(st.integers(0, 3), st.sampled_from(["", "0", "1", "\ud800"]))
metas: st.SearchStrategy[Json] = st.one_of(
    st.just(ENVELOPE), st.just({}), st.just({**ENVELOPE, "progressToken": 0})
)
methods = st.sampled_from(
    ["tools/list", "server/discover", "ping", "initialize", "subscriptions/listen", "no/such"]
)
versions = st.sampled_from(["2024-11-05", "2025-03-26", "2025-11-25", STATELESS, 5])
requests = st.one_of(
    st.builds(call, ids, metas),
    st.builds(
        lambda key, method, meta, version: ask(
            key, method, _meta=meta, protocolVersion=version, notifications={}
        ),
        ids,
        methods,
        metas,
        versions,
    ),
)
singles = st.one_of(
    requests, st.builds(cancelled, ids), st.just({"name": "Some", "params": {}}), st.just(7)
)
batches = st.lists(singles, max_size=4)
texts = st.one_of(singles, batches).map(lambda value: json.dumps(value).encode())
garbage = st.one_of(
    st.binary(max_size=30), st.just(b"[" * 5_000), st.just(b"Content-Length: 7\r\n")
)
frames = st.one_of(
    texts.map(lambda text: text + b"\n"),
    texts.map(lambda text: b"Content-Length: %d\r\n\r\n%s" % (len(text), text)),
    garbage,
    garbage.map(lambda text: text + b"\n"),
    st.just(b'{"id":3,"pad":"' + b"x" * 20_000 + b'"}\n'),
)
streams = st.lists(frames, max_size=10).map(b"".join)


def acts_of(data: bytes, cuts: Iterable[int]) -> list[tuple[Json, ...]]:
    """The acts for `data` cut at these places, up to the end of input; no call is ever finished."""
    made = connection()
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts)})
    pieces = [data[start:end] for start, end in pairwise(places)]
    return [shown(act) for piece in [*pieces, b""] for act in made.receive(piece)]


@settings(deadline=None)
@given(streams, st.lists(st.integers(0, 100_000), max_size=12))
def test_the_same_bytes_cut_anywhere_give_the_same_acts(data: bytes, cuts: list[int]) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "MESSAGE_BYTES", 10_000)
        acts = acts_of(data, cuts)
        assert acts == acts_of(data, [])
    assert acts[-1] == ("close",)


@settings(deadline=None)
@given(
    st.sampled_from(["", "2024-11-05", "2025-03-26", "2025-11-25"]),
    st.lists(st.one_of(singles, batches, st.integers(-9, -1)), max_size=25),
)
def test_every_request_is_answered_once_or_cancelled(revision: str, steps: list[Json]) -> None:
    made = opened(revision) if revision else connection()
    running: list[Start] = []
    asked: Counter[str] = Counter()
    settled: Counter[str] = Counter()

    def carry_out(acts: Iterable[Act]) -> None:
        for act in acts:
            if isinstance(act, Start):
                running.append(act)
            elif isinstance(act, Cancel):
                running.remove(act.start)
                settled[json.dumps(act.start.id)] += 1
            elif isinstance(act, Send):
                settled.update(answered(json.loads(act.data)))

    for step in steps:
        if isinstance(step, int) and step < 0:  # one of the running calls ends
            if running:
                carry_out(made.finish(running.pop(step % len(running)), DONE))
            continue
        if is_bare(step):
            continue
        asked.update(requested(step, batching=revision in BATCHING))
        carry_out(made.receive(line(step)))
        revision = made.revision
    carry_out(made.abandon())
    assert settled == asked
    assert not made.running


def is_bare(step: Json) -> bool:
    return isinstance(step, dict) and "name" in step


def requested(step: Json, batching: bool) -> list[str]:
    """The ids that a message owes an answer to, as JSON; null for an error that has none."""
    if isinstance(step, list):
        if not batching or not step:
            return ["null"]
        return [key for one in step for key in requested(one, batching)]
    if not isinstance(step, dict) or "name" in step:
        return ["null"]
    return [json.dumps(step["id"])] if "id" in step else []


def answered(value: Json) -> list[str]:
    """The ids that a message of ours settles; a subscription's acknowledgement counts as its answer."""
    if isinstance(value, list):
        return [key for one in value for key in answered(one)]
    if value.get("method") == "notifications/subscriptions/acknowledged":
        return [json.dumps(value["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"])]
    return [json.dumps(value.get("id"))]


# -- calls -----------------------------------------------------------------------------------------------


def test_a_cancelled_call_sends_nothing() -> None:
    made = connection()
    [start] = started(made, call(1))
    [act] = hear(made, line(cancelled(1)))
    assert isinstance(act, Cancel)
    assert act.start is start
    assert made.progress(start, 1, None, "") == []
    assert made.finish(start, DONE) == []


def test_a_finished_call_sends_nothing_more() -> None:
    made = connection()
    [start] = started(made, call(1, {**ENVELOPE, "progressToken": "t"}))
    assert len(made.finish(start, DONE)) == 1
    assert made.finish(start, DONE) == []
    assert made.progress(start, 1, None, "") == []
    assert hear(made, line(cancelled(1))) == []


def test_a_cancelled_calls_id_may_be_used_while_its_work_is_still_stopping() -> None:
    made = connection()
    [first] = started(made, call(1))
    hear(made, line(cancelled(1)))
    [second] = started(made, call(1))
    assert made.finish(first, DONE) == []
    assert [answer["id"] for answer in sent(made.finish(second, DONE))] == [1]


@pytest.mark.parametrize("form", [float("inf"), {1, 2}, b"bytes"])
def test_an_outcome_that_is_no_json_leaves_its_call_to_be_finished(form: Json) -> None:
    made = Connection(some, {"name": "some", "version": "1"}, "", structured=True)
    [start] = started(made, call(1))
    with pytest.raises((TypeError, ValueError)):
        made.finish(start, Outcome("text", lambda: {"field": form}))
    assert [answer["id"] for answer in sent(made.finish(start, DONE))] == [1]


def test_progress_that_does_not_advance_is_not_sent() -> None:
    made = connection()
    [start] = started(made, call(1, {**ENVELOPE, "progressToken": 0}))
    steps = [0, 0, 0.5, 0.5, 0.25, 2, 1]
    notes = [note for step in steps for note in sent(made.progress(start, step, 2, "m"))]
    assert [note["params"]["progress"] for note in notes] == [0, 0.5, 2]
    assert notes[0]["params"] == {"progressToken": 0, "progress": 0, "total": 2, "message": "m"}


def test_progress_without_total_and_message_has_neither() -> None:
    made = connection()
    [start] = started(made, call(1, {**ENVELOPE, "progressToken": "t"}))
    [note] = sent(made.progress(start, 1, None, ""))
    assert note["params"] == {"progressToken": "t", "progress": 1}


def test_calls_past_the_waiting_ones_are_refused_as_results() -> None:
    made = connection()
    starts = started(made, *(call(key) for key in range(WAITING_CALLS)))
    assert len(starts) == WAITING_CALLS
    [answer] = sent(hear(made, line(call("one more"))))
    assert answer["id"] == "one more"
    assert "RATE_LIMITED" in answer["result"]["content"][0]["text"]
    assert answer["result"]["isError"]
    made.finish(starts[0], DONE)
    assert len(started(made, call("again"))) == 1


def test_abandoned_calls_are_cancelled_and_never_answered() -> None:
    made = connection()
    starts = started(made, call(1), call(2))
    acts = made.abandon()
    assert [act.start for act in acts if isinstance(act, Cancel)] == starts
    assert made.finish(starts[0], DONE) == []


def test_a_call_that_came_in_a_block_is_answered_in_a_block_with_its_progress() -> None:
    made = connection()
    text = json.dumps(call(1, {**ENVELOPE, "progressToken": "t"})).encode()
    [start] = hear(made, b"Content-Length: %d\r\n\r\n%s" % (len(text), text))
    assert isinstance(start, Start)
    for acts in (made.progress(start, 1, None, ""), made.finish(start, DONE)):
        [act] = acts
        assert isinstance(act, Send)
        assert act.data.startswith(b"Content-Length: ")


# -- batches ---------------------------------------------------------------------------------------------


def test_a_batch_waits_for_its_last_call() -> None:
    made = opened("2025-03-26")
    first, second = started(made, [call(1, {}), ask(2, "ping"), call(3, {})])
    assert made.finish(second, DONE) == []
    [answers] = sent(made.finish(first, DONE))
    assert [answer["id"] for answer in answers] == [2, 3, 1]


def test_a_batch_whose_call_is_abandoned_is_sent_with_what_there_is() -> None:
    made = opened("2025-03-26")
    started(made, [call(1, {}), ask(2, "ping")])
    assert [[answer["id"] for answer in answers] for answers in sent(made.abandon())] == [[2]]


def test_a_subscription_in_a_batch_does_not_keep_the_others_waiting() -> None:
    made = opened("2025-03-26")
    listen = ask(1, "subscriptions/listen", notifications={}, _meta=ENVELOPE)
    acts = hear(made, line([listen, ask(2, "ping")]))
    note, answers = sent(acts)
    assert note["method"] == "notifications/subscriptions/acknowledged"
    assert [answer["id"] for answer in answers] == [2]


# -- the end ---------------------------------------------------------------------------------------------


def test_the_end_of_input_closes_behind_the_last_line() -> None:
    made = connection()
    assert hear(made, line(ask(1, "ping"))[:-1]) == []
    answer, close = hear(made, b"")
    assert sent([answer]) == [{"jsonrpc": "2.0", "id": 1, "result": {}}]
    assert isinstance(close, Close)


def test_a_bare_call_is_answered_bare_and_closes() -> None:
    made = connection()
    [start] = started(made, {"name": "Some", "params": {"a": 1}}, ask(1, "ping"))
    assert start.arguments == {"a": 1}
    answer, close = made.finish(start, DONE)
    assert sent([answer]) == [{"result": "done"}]
    assert isinstance(close, Close)
    assert hear(made, line(ask(2, "ping"))) == []
