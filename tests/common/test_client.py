"""A client's side of the wire, tested with bytes."""

import json
from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import eras
from toolroll.client import (
    AUTO,
    HANDSHAKE,
    PAGES,
    STATELESS,
    Answered,
    Client,
    Noise,
    Progressed,
    Ready,
    Refused,
    Send,
)
from toolroll.connection import Connection, Start
from toolroll.connection import Send as ServerSend
from toolroll.errors import ErrorCode, RpcError, ToolError
from toolroll.limits import MESSAGE_BYTES
from toolroll.tool import Outcome, tool

if TYPE_CHECKING:
    from toolroll.client import Event

INFO = {"name": "peer", "version": "7"}
DISCOVERED = {
    "resultType": "complete",
    "supportedVersions": ["2026-07-28", "2025-11-25"],
    "capabilities": {"tools": {}},
    "instructions": "Be kind.",
    "ttlMs": 0,
    "cacheScope": "private",
    "_meta": {eras.SERVER_KEY: INFO},
}
INITIALIZED = {
    "protocolVersion": "2025-11-25",
    "capabilities": {"tools": {}},
    "serverInfo": INFO,
    "instructions": "Be kind.",
}
HELLO = {"content": [{"type": "text", "text": "hello"}]}


def line(value: object) -> bytes:
    return json.dumps(value).encode() + b"\n"


def result(key: object, value: object) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "result": value}


def error(key: object, code: object, data: object = None) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "error": {"code": code, "message": "no", "data": data}}


def hear(client: Client, *values: object) -> "list[Event]":
    return list(client.receive(b"".join(map(line, values))))


def sent(event: "Event | bytes") -> dict[str, Any]:
    data = event if isinstance(event, bytes) else b""
    if isinstance(event, Send):
        data = event.data
    assert data.endswith(b"\n")
    assert data.count(b"\n") == 1
    value: dict[str, Any] = json.loads(data)
    assert value["jsonrpc"] == "2.0"
    return value


def opened(revision: str = eras.STATELESS) -> Client:
    client = Client(STATELESS if revision == eras.STATELESS else HANDSHAKE)
    client.open()
    answer = (
        DISCOVERED if revision == eras.STATELESS else {**INITIALIZED, "protocolVersion": revision}
    )
    assert isinstance(hear(client, result(1, answer))[-1], Ready)
    return client


def only(events: Sequence["Event"]) -> Any:
    assert len(events) == 1
    return events[0]


def outcome(event: "Event") -> Any:
    """An event as a value that can be compared."""
    fields = {name: getattr(event, name) for name in event.__slots__}
    problem = fields.get("problem")
    if problem is not None:
        fields["problem"] = (type(problem), problem.code, str(problem))
    return type(event).__name__, fields


# -- the opening -----------------------------------------------------------------------------------


def test_the_first_message_is_the_probe_with_a_whole_envelope() -> None:
    probe = sent(Client().open())
    assert probe["method"] == "server/discover"
    eras.check_envelope(probe["params"])


def test_a_stateless_server_is_ready_after_the_probe() -> None:
    client = Client()
    client.open()
    assert isinstance(only(hear(client, result(1, DISCOVERED))), Ready)
    assert (client.revision, client.info) == ("2026-07-28", INFO)
    assert client.instructions == "Be kind."
    eras.check_envelope(sent(client.call("LS", {})[1])["params"])
    eras.check_envelope(sent(client.list_tools()[1])["params"])


def test_a_server_may_keep_to_itself_what_it_is() -> None:
    client = Client()
    client.open()
    quiet = {**DISCOVERED, "_meta": None, "instructions": None}
    assert isinstance(only(hear(client, result(1, quiet))), Ready)
    assert (client.info, client.instructions) == ({}, "")


PROBE_REFUSALS = {
    "an unknown method": error(1, -32601),
    "bad parameters": error(1, -32602),
    "a request before initialize": error(1, -32600),
    "an error of its own": error(1, -32000),
    "an error without the id": {"jsonrpc": "2.0", "error": {"code": -32600, "message": "no"}},
    "an error with a null id": error(None, -32700),
    "a revision error without a list": error(1, -32022),
    "a revision error with an empty list": error(1, -32022, {"supported": []}),
    "a revision error with no texts": error(1, -32022, {"supported": [1]}),
    "an ill-formed error": {"jsonrpc": "2.0", "id": 1, "error": "no"},
    "neither result nor error": {"jsonrpc": "2.0", "id": 1},
    "an ill-formed result": result(1, {"supportedVersions": "2026-07-28"}),
    "an echo": result(1, {}),
}


@pytest.mark.parametrize("refusal", PROBE_REFUSALS.values(), ids=PROBE_REFUSALS)
def test_a_server_that_refuses_the_probe_gets_the_newest_handshake(refusal: object) -> None:
    client = Client()
    client.open()
    ask = sent(only(hear(client, refusal)))
    assert (ask["method"], ask["params"]["protocolVersion"]) == ("initialize", "2025-11-25")
    assert "_meta" not in ask["params"]
    note, ready = hear(client, result(ask["id"], INITIALIZED))
    assert sent(note) == {"jsonrpc": "2.0", "method": "notifications/initialized", "params": {}}
    assert isinstance(ready, Ready)
    assert (client.revision, client.info) == ("2025-11-25", INFO)
    assert client.instructions == "Be kind."
    assert sent(client.call("LS", {})[1])["params"] == {"name": "LS", "arguments": {}}


@pytest.mark.parametrize(
    "answer",
    [
        error(1, -32022, {"supported": ["2025-03-26", "1999-01-01", "2025-06-18"]}),
        result(1, {**DISCOVERED, "supportedVersions": ["2025-03-26", "2025-06-18"]}),
    ],
)
def test_the_newest_common_handshake_is_taken_from_what_a_server_names(answer: object) -> None:
    client = Client()
    client.open()
    ask = sent(only(hear(client, answer)))
    assert ask["params"]["protocolVersion"] == "2025-06-18"


@pytest.mark.parametrize(
    "answer",
    [
        error(1, -32022, {"supported": ["2027-01-01"]}),
        result(1, {**DISCOVERED, "supportedVersions": ["2027-01-01"]}),
    ],
)
def test_a_server_of_another_time_is_refused_with_what_both_speak(answer: object) -> None:
    client = Client()
    client.open()
    refused = only(hear(client, answer))
    assert isinstance(refused, Refused)
    assert "2027-01-01" in str(refused.problem)
    assert "2026-07-28, 2025-11-25" in str(refused.problem)


def test_a_client_pinned_to_the_stateless_era_never_shakes_hands() -> None:
    for answer in (
        error(1, -32601),
        result(1, {**DISCOVERED, "supportedVersions": ["2025-11-25"]}),
    ):
        client = Client(STATELESS)
        client.open()
        assert client.fall_back() == b""
        assert isinstance(only(hear(client, answer)), Refused)


def test_a_client_pinned_to_the_handshake_never_probes() -> None:
    client = Client(HANDSHAKE)
    assert sent(client.open())["method"] == "initialize"
    assert not client.probing
    assert client.fall_back() == b""


def test_an_unknown_era_is_refused() -> None:
    with pytest.raises(ValueError, match="modern"):
        Client("modern")


@pytest.mark.parametrize("revision", eras.HANDSHAKE)
def test_every_revision_with_a_handshake_is_spoken(revision: str) -> None:
    assert opened(revision).revision == revision


@pytest.mark.parametrize(
    "answer",
    [
        error(1, -32602),
        result(1, {**INITIALIZED, "protocolVersion": "2026-07-28"}),
        result(1, {**INITIALIZED, "protocolVersion": ["2025-11-25"]}),
        result(1, {**INITIALIZED, "serverInfo": None}),
        result(1, {**INITIALIZED, "instructions": 5}),
        result(1, []),
    ],
)
def test_a_handshake_that_fails_is_the_end(answer: object) -> None:
    client = Client(HANDSHAKE)
    client.open()
    assert isinstance(only(hear(client, answer)), Refused)
    assert client.revision == ""


class TestAProbeThatIsLeftUnanswered:
    def falls_back(self) -> Client:
        client = Client()
        client.open()
        assert client.probing
        assert sent(client.fall_back())["method"] == "initialize"
        assert client.fall_back() == b""
        return client

    def test_is_followed_by_the_handshake(self) -> None:
        client = self.falls_back()
        assert isinstance(hear(client, result(2, INITIALIZED))[-1], Ready)
        assert hear(client, result(1, DISCOVERED)) == []
        assert client.revision == "2025-11-25"

    def test_still_counts_when_it_is_answered_first(self) -> None:
        client = self.falls_back()
        assert isinstance(only(hear(client, result(1, DISCOVERED))), Ready)
        assert hear(client, result(2, INITIALIZED)) == []
        assert client.revision == "2026-07-28"

    def test_does_not_shake_hands_twice_when_it_is_refused_late(self) -> None:
        client = self.falls_back()
        assert hear(client, error(1, -32601)) == []
        assert isinstance(hear(client, result(2, INITIALIZED))[-1], Ready)


# -- calls -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("revision", eras.REVISIONS)
def test_answers_find_their_calls_in_any_order(revision: str) -> None:
    client = opened(revision)
    first, _ = client.call("LS", {"path": "a"})
    second, _ = client.call("LS", {"path": "b"})
    late, early = hear(client, result(second, HELLO), result(first, HELLO))
    assert isinstance(late, Answered)
    assert isinstance(early, Answered)
    assert (late.key, early.key) == (second, first)
    assert late.value == {**HELLO, "isError": False}


def test_a_refused_call_carries_code_message_and_data() -> None:
    client = opened()
    key, _ = client.call("XX", {})
    problem = only(hear(client, error(key, -32602, {"known": ["LS"]}))).problem
    assert isinstance(problem, RpcError)
    assert (problem.code, problem.message, problem.data) == (-32602, "no", {"known": ["LS"]})


def test_answers_to_nothing_are_ignored() -> None:
    client = opened()
    key, _ = client.call("LS", {})
    assert hear(client, result(99, HELLO), result(str(key), HELLO), error("x", -32600)) == []
    assert isinstance(only(hear(client, result(key, HELLO))), Answered)
    assert hear(client, result(key, HELLO)) == []


def test_a_batch_of_answers_is_taken_apart() -> None:
    client = opened("2025-03-26")
    keys = [client.call("LS", {})[0] for _ in range(3)]
    events = hear(client, [result(key, HELLO) for key in keys])
    assert [event.key for event in events if isinstance(event, Answered)] == keys


def test_an_answer_in_a_content_length_block_is_read() -> None:
    client = opened()
    key, _ = client.call("LS", {})
    body = json.dumps(result(key, HELLO)).encode()
    events = list(client.receive(b"Content-Length: %d\r\n\r\n%s" % (len(body), body)))
    assert isinstance(only(events), Answered)


ILL_FORMED_RESULTS: dict[str, tuple[object, str]] = {
    "no object": ([], "the result must be an object"),
    "null": (None, "the result must be an object"),
    "no content": ({}, "content must be an array"),
    "content of another type": ({"content": "hello"}, "content must be an array"),
    "a block that is no object": ({"content": ["hello"]}, "an object with a type"),
    "a block without a type": ({"content": [{"text": "hello"}]}, "an object with a type"),
    "a text without text": ({"content": [{"type": "text"}]}, "'text' must have text"),
    "an image without type": ({"content": [{"type": "image", "data": ""}]}, "data and mimeType"),
    "a text for isError": ({"content": [], "isError": "yes"}, "isError must be true or false"),
    "a question": ({"resultType": "input_required", "inputRequests": {}}, "input_required"),
}


@pytest.mark.parametrize(("value", "why"), ILL_FORMED_RESULTS.values(), ids=ILL_FORMED_RESULTS)
def test_an_ill_formed_result_is_a_clear_error(value: object, why: str) -> None:
    client = opened()
    key, _ = client.call("LS", {})
    answered = only(hear(client, result(key, value)))
    assert answered.key == key
    assert answered.problem.code == ErrorCode.EXECUTION_ERROR
    assert why in str(answered.problem)


@pytest.mark.parametrize("answer", [{}, {"error": {"code": "5", "message": "no"}}, {"error": []}])
def test_an_ill_formed_answer_ends_its_call(answer: dict[str, Any]) -> None:
    client = opened()
    key, _ = client.call("LS", {})
    answered = only(hear(client, {"jsonrpc": "2.0", "id": key, **answer}))
    assert answered.problem.code == ErrorCode.EXECUTION_ERROR


def test_what_a_result_holds_besides_is_passed_on() -> None:
    client = opened()
    key, _ = client.call("LS", {})
    full = {
        "content": [{"type": "resource", "resource": {}}, {"type": "hologram"}],
        "structuredContent": [1],
        "_meta": {"toolroll/code": "NOT_FOUND"},
        "isError": True,
    }
    assert only(hear(client, result(key, full))).value == full


@pytest.mark.parametrize("place", ["first", "last"])
def test_an_oversize_answer_ends_its_call_and_nothing_else(place: str) -> None:
    client = opened()
    key, _ = client.call("LS", {})
    other, _ = client.call("LS", {})
    huge = {"content": [{"type": "text", "text": "x" * MESSAGE_BYTES}]}
    value = result(key, huge) if place == "first" else {"jsonrpc": "2.0", "result": huge, "id": key}
    too_large, fine = hear(client, value, result(other, HELLO))
    assert isinstance(too_large, Answered)
    assert isinstance(too_large.problem, ToolError)
    assert (too_large.key, too_large.problem.code) == (key, ErrorCode.TOO_LARGE)
    assert isinstance(fine, Answered)
    assert fine.problem is None


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        ({"text": "x" * MESSAGE_BYTES}, ErrorCode.TOO_LARGE),
        ({"number": float("nan")}, ErrorCode.INVALID_PARAMS),
    ],
)
def test_a_call_that_cannot_be_sent_leaves_nothing_behind(
    arguments: dict[str, Any], code: str
) -> None:
    client = opened()
    with pytest.raises(ToolError) as caught:
        client.call("LS", arguments)
    assert caught.value.code == code
    assert hear(client, result(2, HELLO)) == []


# -- tools/list ------------------------------------------------------------------------------------


def named(name: object, **more: object) -> dict[str, Any]:
    return {"name": name, "inputSchema": {"type": "object"}, **more}


@pytest.mark.parametrize("revision", [eras.STATELESS, "2025-11-25"])
def test_all_pages_of_tools_are_one_answer(revision: str) -> None:
    client = opened(revision)
    key, data = client.list_tools()
    assert "cursor" not in sent(data)["params"]
    second = sent(only(hear(client, result(key, {"tools": [named("a")], "nextCursor": ""}))))
    assert (second["method"], second["params"]["cursor"]) == ("tools/list", "")
    assert second["id"] != key
    third = sent(only(hear(client, result(second["id"], {"tools": [], "nextCursor": "p3"}))))
    assert third["params"]["cursor"] == "p3"
    last = {"tools": [named("b", description=None)], "nextCursor": None}
    answered = only(hear(client, result(third["id"], last)))
    assert (answered.key, [one["name"] for one in answered.value]) == (key, ["a", "b"])


ILL_FORMED_LISTS: dict[str, tuple[object, str]] = {
    "no tools": ({}, "tools must be an array"),
    "no array": ({"tools": {"a": {}}}, "tools must be an array"),
    "a tool that is no object": ({"tools": ["a"]}, "an object with a name"),
    "a tool without a name": ({"tools": [named(None)]}, "an object with a name"),
    "a tool with an empty name": ({"tools": [named("")]}, "an object with a name"),
    "no schema": ({"tools": [{"name": "a"}]}, "'a' must have an inputSchema of type object"),
    "another schema": ({"tools": [named("a", inputSchema={"type": "array"})]}, "of type object"),
    "a number for text": ({"tools": [named("a", description=5)]}, "description must be a string"),
    "the same name twice": ({"tools": [named("a"), named("a")]}, "two tools are called 'a'"),
    "a number for a cursor": ({"tools": [], "nextCursor": 2}, "nextCursor must be a string"),
}


@pytest.mark.parametrize(("value", "why"), ILL_FORMED_LISTS.values(), ids=ILL_FORMED_LISTS)
def test_an_ill_formed_list_is_a_clear_error(value: object, why: str) -> None:
    client = opened()
    key, _ = client.list_tools()
    answered = only(hear(client, result(key, value)))
    assert answered.problem.code == ErrorCode.EXECUTION_ERROR
    assert why in str(answered.problem)


@pytest.mark.parametrize("fresh", [False, True], ids=["the same cursor", "ever new cursors"])
def test_a_list_without_end_is_given_up(fresh: bool) -> None:
    client = opened()
    key, _ = client.list_tools()
    current = key
    for page in range(PAGES + 1):
        cursor = f"page {page if fresh else 1}"
        event = only(hear(client, result(current, {"tools": [], "nextCursor": cursor})))
        if isinstance(event, Answered):
            break
        current = sent(event)["id"]
    assert event.key == key
    assert "does not end" in str(event.problem)


# -- progress and cancellation ---------------------------------------------------------------------


def progress(token: object, done: object, **more: object) -> dict[str, Any]:
    params = {"progressToken": token, "progress": done, **more}
    return {"jsonrpc": "2.0", "method": "notifications/progress", "params": params}


@pytest.mark.parametrize("revision", [eras.STATELESS, "2024-11-05"])
def test_progress_of_a_call_is_reported_until_its_answer(revision: str) -> None:
    client = opened(revision)
    key, data = client.call("LS", {}, progress=True)
    token = sent(data)["params"]["_meta"]["progressToken"]
    notes = [progress(token, 1), progress(token, 2.5, total=4, message="half")]
    first, second, answered = hear(client, *notes, result(key, HELLO))
    assert outcome(first) == outcome(Progressed(key, 1, None, ""))
    assert outcome(second) == outcome(Progressed(key, 2.5, 4, "half"))
    assert isinstance(answered, Answered)
    assert hear(client, progress(token, 4)) == []


def test_progress_that_makes_no_sense_is_ignored() -> None:
    client = opened()
    key, _ = client.call("LS", {}, progress=True)
    quiet, _ = client.call("LS", {})
    senseless = [(str(key), 1), (key + 0.0, 1), (True, 1), (None, 1), (99, 1), (quiet, 1)]
    assert hear(client, *(progress(*pair) for pair in senseless)) == []
    assert hear(client, progress(key, "1"), progress(key, None), progress(key, True)) == []
    assert list(client.receive(line(progress(key, 1)).replace(b": 1}", b": 1e999}"))) == []
    odd = only(hear(client, progress(key, 1, total="4", message=5)))
    assert outcome(odd) == outcome(Progressed(key, 1, None, ""))


def test_a_cancelled_call_is_told_once_and_its_answer_ignored() -> None:
    client = opened()
    key, _ = client.call("LS", {}, progress=True)
    note = sent(client.cancel(key, "timeout"))
    assert note["method"] == "notifications/cancelled"
    assert note["params"] == {"requestId": key, "reason": "timeout"}
    assert client.cancel(key) == b""
    assert hear(client, progress(key, 1), result(key, HELLO)) == []


def test_an_answered_call_is_not_cancelled() -> None:
    client = opened()
    key, _ = client.call("LS", {})
    hear(client, result(key, HELLO))
    assert client.cancel(key) == b""


def test_cancelling_a_list_names_the_page_that_is_out() -> None:
    client = opened()
    key, _ = client.list_tools()
    page = sent(only(hear(client, result(key, {"tools": [], "nextCursor": "2"}))))["id"]
    assert sent(client.cancel(key))["params"] == {"requestId": page}


# -- what else servers send ------------------------------------------------------------------------


def ask(method: str, key: object = "s1") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": method}


def test_a_ping_is_answered_wherever_the_revision_has_it() -> None:
    for client in (opened("2025-11-25"), Client(HANDSHAKE)):
        assert sent(only(hear(client, ask("ping", 0)))) == result(0, {})
    assert sent(only(hear(opened(), ask("ping"))))["error"]["code"] == -32601


@pytest.mark.parametrize("method", ["roots/list", "sampling/createMessage", "elicitation/create"])
def test_whatever_else_a_server_asks_is_refused(method: str) -> None:
    refusal = sent(only(hear(opened("2025-06-18"), ask(method))))
    assert (refusal["id"], refusal["error"]["code"]) == ("s1", -32601)


def test_other_notifications_are_ignored() -> None:
    methods = ["notifications/message", "notifications/tools/list_changed", "no/such"]
    assert hear(opened(), *({"jsonrpc": "2.0", "method": method} for method in methods)) == []


NOISES = {
    "a stray print": b"Loading model ...\n",
    "not UTF-8": b"\xff\xfe\n",
    "a number": b"42\n",
    "not a number": b"NaN\n",
    "an object of something else": b'{"level": "info"}\n',
    "an error without an id": line(error(None, -32700)),
    "a malformed request with the id of a call": line({"id": 2, "method": "ping"}),
    "a flood without a newline": b"x" * (MESSAGE_BYTES + 1) + b"\n",
    "deep nesting": b"[" * 100_000 + b"\n",
}


@pytest.mark.parametrize("noise", NOISES.values(), ids=NOISES)
def test_noise_is_told_in_short_and_disturbs_nothing(noise: bytes) -> None:
    client = opened()
    key, _ = client.call("LS", {})
    events = list(client.receive(noise + line(result(key, HELLO))))
    assert [type(event) for event in events] == [Noise, Answered]
    assert isinstance(events[0], Noise)
    assert 0 < len(events[0].text) <= 200


def test_the_last_answer_counts_without_its_newline() -> None:
    client = opened()
    key, _ = client.call("LS", {})
    assert list(client.receive(line(result(key, HELLO))[:-1])) == []
    assert isinstance(only(list(client.receive(b""))), Answered)


# -- properties ------------------------------------------------------------------------------------


SESSION = b"".join(
    [
        b"starting up ...\n",
        line(result(1, DISCOVERED)),
        line(progress(3, 1, message="caf\u00e9")),
        line(result(2, {"tools": [named("a")], "nextCursor": "p2"})),
        b"\r\n",
        line(result(3, HELLO)),
        line(error(4, -32602)),
        line(ask("roots/list")),
        line(result(6, {"tools": [named("b")]})),
        line(result(5, {"content": 5}))[:-1],
    ]
)


def heard(pieces: Sequence[bytes]) -> list[Any]:
    """A whole session, its requests sent as soon as they can be."""
    client = Client()
    client.open()
    events: list[Event] = []
    for piece in [*pieces, b""]:
        for event in client.receive(piece):
            events.append(event)
            if isinstance(event, Ready):
                client.list_tools()
                client.call("LS", {}, progress=True)
                client.call("LS", {})
                client.call("LS", {})
    return [outcome(event) for event in events]


def cut(data: bytes, places: Sequence[int]) -> list[bytes]:
    edges = [0, *sorted(places), len(data)]
    pieces = [data[start:end] for start, end in pairwise(edges)]
    return [piece for piece in pieces if piece]


@given(st.lists(st.integers(0, len(SESSION)), max_size=40))
@settings(deadline=None)
def test_the_same_bytes_cut_anywhere_give_the_same_events(places: list[int]) -> None:
    whole = heard([SESSION])
    names = ["Noise", "Ready", "Progressed", "Send", "Answered", "Answered", "Send", "Answered"]
    assert [name for name, _ in whole] == [*names, "Answered"]
    assert heard(cut(SESSION, places)) == whole


NAMES = (
    "jsonrpc id result error code message method params data content type text tools name inputSchema"
    " nextCursor _meta supportedVersions supported protocolVersion serverInfo progressToken"
)
WORDS = "2.0 2026-07-28 2025-11-25 ping text object notifications/progress"
SCALARS = (
    st.none() | st.booleans() | st.integers(-3, 9) | st.floats() | st.sampled_from(WORDS.split())
)
VALUES = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(NAMES.split()), inner, max_size=5)
    ),
    max_leaves=12,
)
ANSWERS = st.builds(
    lambda key, name, value: {"jsonrpc": "2.0", "id": key, name: value},
    st.integers(1, 8),
    st.sampled_from(["result", "error"]),
    VALUES,
)


@given(st.lists(VALUES | ANSWERS, max_size=8), st.sampled_from([AUTO, STATELESS, HANDSHAKE]))
@settings(deadline=None)
def test_no_server_can_make_it_fail_or_answer_twice(values: list[Any], era: str) -> None:
    client = Client(era)
    client.open()
    asked: set[int] = set()
    for value in values:
        for event in client.receive(line(value)):
            if isinstance(event, Ready):
                asked = {client.list_tools()[0], client.call("LS", {}, progress=True)[0]}
            elif isinstance(event, Answered):
                asked.remove(event.key)
            elif isinstance(event, Send):
                sent(event)


@given(st.binary(max_size=200))
@settings(deadline=None)
def test_any_bytes_are_survived(data: bytes) -> None:
    client = opened()
    client.call("LS", {}, progress=True)
    list(client.receive(data))
    list(client.receive(b""))


# -- with the server's side ------------------------------------------------------------------------


@tool("Echo", title="Echo", read_only=True)
def echo(text: str, call: object) -> str:
    """Give a text back."""
    return text


@pytest.mark.parametrize(
    ("era", "revision"),
    [(AUTO, "2026-07-28"), (STATELESS, "2026-07-28"), (HANDSHAKE, "2025-11-25")],
)
def test_client_and_connection_understand_each_other(era: str, revision: str) -> None:
    client = Client(era)
    connection = Connection(echo, INFO, "Be kind.")

    def converse(data: bytes) -> "list[Event]":
        events: list[Event] = []
        for act in list(connection.receive(data)):
            acts: list[Any] = [act]
            if isinstance(act, Start):
                acts = [*connection.progress(act, 1, 2, "half")]
                acts += connection.finish(act, Outcome(act.arguments["text"], dict))
            for reply in acts:
                assert isinstance(reply, ServerSend)
                for event in list(client.receive(reply.data)):
                    events += converse(event.data) if isinstance(event, Send) else [event]
        return events

    assert isinstance(only(converse(client.open())), Ready)
    assert (client.revision, client.info) == (revision, INFO)
    key, data = client.list_tools()
    assert [one["name"] for one in only(converse(data)).value] == ["Echo"]
    key, data = client.call("Echo", {"text": "hello"}, progress=True)
    step, answered = converse(data)
    assert outcome(step) == outcome(Progressed(key, 1, 2, "half"))
    assert isinstance(answered, Answered)
    assert answered.value["content"] == HELLO["content"]
    _, data = client.call("Nope", {})
    assert only(converse(data)).problem.code == -32602
