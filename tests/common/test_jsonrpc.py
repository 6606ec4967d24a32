"""JSON values to messages, and the id of a message of which only the edges are known."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import jsonrpc
from toolroll.errors import RpcCode, RpcError
from toolroll.framing import EDGE_BYTES
from toolroll.jsonrpc import Answer, Malformed, Notification, Request, edge_id, is_id, message

Json = Any

ids = st.one_of(st.text(max_size=20), st.integers())
scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text(max_size=8))
values = st.recursive(
    scalars,
    lambda inner: st.one_of(st.lists(inner), st.dictionaries(st.text(max_size=8), inner)),
    max_leaves=10,
)
near_messages = st.fixed_dictionaries(
    {},
    optional={
        "jsonrpc": st.one_of(st.just("2.0"), values),
        "id": st.one_of(ids, values),
        "method": st.one_of(st.text(max_size=8), values),
        "params": values,
        "result": values,
        "error": values,
    },
)


@settings(deadline=None)
@given(st.one_of(values, near_messages))
def test_every_json_value_is_one_of_four_things(value: Json) -> None:
    read = message(value)
    if isinstance(read, Request):
        assert value["jsonrpc"] == "2.0"
        assert is_id(read.id)
        assert value["id"] is read.id
        assert isinstance(read.method, str)
        assert isinstance(read.params, dict)
    elif isinstance(read, Notification):
        assert "id" not in value
        assert isinstance(read.params, dict)
    elif isinstance(read, Answer):
        assert "method" not in value
    else:
        assert isinstance(read, Malformed)
        assert read.error.code == RpcCode.INVALID_REQUEST
        assert read.id is None or read.id is value["id"]


@settings(deadline=None)
@given(ids, st.text(max_size=8), st.dictionaries(st.text(max_size=8), scalars))
def test_a_request_of_ours_is_read_as_it_was_meant(
    key: Json, method: str, params: dict[str, Json]
) -> None:
    read = message(jsonrpc.request(key, method, params))
    assert isinstance(read, Request)
    assert (read.id, type(read.id), read.method, read.params) == (key, type(key), method, params)


@pytest.mark.parametrize("key", [None, True, False, 1.0, [], {}])
def test_an_id_is_a_string_or_an_integer(key: Json) -> None:
    read = message({"jsonrpc": "2.0", "id": key, "method": "m"})
    assert isinstance(read, Malformed)
    assert read.id is None


def test_params_that_are_null_are_none_at_all() -> None:
    read = message({"jsonrpc": "2.0", "id": 1, "method": "m", "params": None})
    assert isinstance(read, Request)
    assert read.params == {}


def edges(text: str) -> tuple[bytes, bytes]:
    data = text.encode("utf-8", "surrogatepass")
    return data[:EDGE_BYTES], data[-EDGE_BYTES:]


@settings(deadline=None)
@given(ids, st.permutations(["jsonrpc", "id", "method", "params"]), st.booleans(), st.booleans())
def test_the_id_of_an_oversize_request_is_found_before_or_behind_its_bulk(
    key: Json, order: list[str], spaced: bool, decoy: bool
) -> None:
    bulk = {"id": "not this", "pad": "x" * 5_000, **({"list": [{"id": 5}]} if decoy else {})}
    whole = {"jsonrpc": "2.0", "id": key, "method": "m", "params": bulk}
    text = json.dumps({name: whole[name] for name in order}, indent=1 if spaced else None)
    found = edge_id(*edges(text))
    bulk_at, id_at = order.index("params"), order.index("id")
    if id_at < bulk_at or id_at == len(order) - 1:
        assert (found, type(found)) == (key, type(key))
    else:
        assert found is None


@settings(deadline=None)
@given(st.binary(max_size=EDGE_BYTES), st.binary(max_size=EDGE_BYTES))
def test_any_edges_give_an_id_or_none(head: bytes, tail: bytes) -> None:
    found = edge_id(head, tail)
    assert found is None or is_id(found)


@pytest.mark.parametrize(
    "text",
    [
        '{"method":"n","params":{"id":7,"pad":"%s"}}',
        '{"params":{"pad":"%s","id":7}}',
        '[{"id":7},"%s"]',
        '{"id":7.5,"pad":"%s"}',
        '{"id":null,"pad":"%s"}',
        '{"params":"%s \\"id\\":7}"}',
        '%s "id":7}x',
        '{"pad":"%s","id"}',
    ],
)
def test_an_id_that_is_not_surely_the_messages_own_is_not_taken(text: str) -> None:
    assert edge_id(*edges(text % ("x" * 5_000))) is None


def test_an_error_without_an_id_has_none_or_null() -> None:
    problem = RpcError(RpcCode.PARSE_ERROR, "Parse error")
    assert "id" not in jsonrpc.error(None, problem)
    assert jsonrpc.error(None, problem, null_id=True)["id"] is None
    assert jsonrpc.error(0, problem)["id"] == 0


def test_an_error_carries_its_data_when_there_is_any() -> None:
    assert "data" not in jsonrpc.error(1, RpcError(1, "x"))["error"]
    assert jsonrpc.error(1, RpcError(1, "x", {"a": 1}))["error"]["data"] == {"a": 1}
