"""What each revision wants of a request and of a result."""

from typing import Any

import pytest

from toolroll import eras
from toolroll.errors import RpcCode, RpcError

Json = Any

META = {eras.VERSION_KEY: eras.STATELESS, eras.CAPABILITIES_KEY: {}}


def refused(params: dict[str, Json]) -> RpcError:
    with pytest.raises(RpcError) as caught:
        eras.check_envelope(params)
    return caught.value


def test_a_request_is_stateless_when_it_names_its_version_be_it_a_wrong_one() -> None:
    assert eras.is_stateless({"_meta": {eras.VERSION_KEY: None}})
    assert not eras.is_stateless({"_meta": {"progressToken": 1}})
    assert not eras.is_stateless({"_meta": [eras.VERSION_KEY]})
    assert not eras.is_stateless({})


def test_a_complete_envelope_is_taken_with_and_without_a_client() -> None:
    eras.check_envelope({"_meta": META})
    eras.check_envelope({"_meta": {**META, eras.CLIENT_KEY: {"name": "x"}, "anything": 1}})


@pytest.mark.parametrize("level", eras.LEVELS)
def test_every_log_level_is_taken(level: str) -> None:
    eras.check_envelope({"_meta": {**META, eras.LEVEL_KEY: level}})


@pytest.mark.parametrize(
    "params",
    [
        {},
        {"_meta": None},
        {"_meta": {}},
        {"_meta": {eras.VERSION_KEY: 1, eras.CAPABILITIES_KEY: {}}},
        {"_meta": {eras.VERSION_KEY: eras.STATELESS}},
        {"_meta": {**META, eras.CAPABILITIES_KEY: []}},
        {"_meta": {**META, eras.CLIENT_KEY: None}},
        {"_meta": {**META, eras.LEVEL_KEY: {}}},
    ],
    ids=str,
)
def test_an_incomplete_envelope_is_invalid_params(params: dict[str, Json]) -> None:
    assert refused(params).code == RpcCode.INVALID_PARAMS


@pytest.mark.parametrize("version", ["", "1900-01-01", *eras.HANDSHAKE])
def test_a_version_without_this_envelope_is_refused_with_the_others(version: str) -> None:
    problem = refused({"_meta": {**META, eras.VERSION_KEY: version}})
    assert problem.code == RpcCode.UNSUPPORTED_PROTOCOL_VERSION
    assert isinstance(problem.data, dict)
    assert problem.data["requested"] == version
    assert {*problem.data["supported"]} == {*eras.REVISIONS} - {version}


@pytest.mark.parametrize("version", eras.HANDSHAKE)
def test_a_handshake_revision_is_agreed_to(version: str) -> None:
    assert eras.negotiate({"protocolVersion": version}) == version


@pytest.mark.parametrize("version", ["", "1900-01-01", eras.STATELESS, "DRAFT-2025-v3"])
def test_any_other_is_answered_with_the_newest_handshake(version: str) -> None:
    assert eras.negotiate({"protocolVersion": version}) == "2025-11-25"


@pytest.mark.parametrize("params", [{}, {"protocolVersion": None}, {"protocolVersion": 20250618}])
def test_a_handshake_without_a_version_is_refused(params: dict[str, Json]) -> None:
    with pytest.raises(RpcError) as caught:
        eras.negotiate(params)
    assert caught.value.code == RpcCode.INVALID_PARAMS


@pytest.mark.parametrize("token", ["", 0, "0", -1, "a"])
def test_a_progress_token_is_a_string_or_an_integer(token: Json) -> None:
    found = eras.progress_token({"_meta": {"progressToken": token}})
    assert (found, type(found)) == (token, type(token))


@pytest.mark.parametrize(
    "meta", [None, {}, [], {"progressToken": None}, {"progressToken": True}, {"progressToken": 1.5}]
)
def test_anything_else_asks_for_no_progress(meta: Json) -> None:
    assert eras.progress_token({"_meta": meta}) is None


def test_a_stateless_result_keeps_what_it_had_and_tells_whose_it_is() -> None:
    plain = {"content": [], "_meta": {"a": 1}}
    server = {"name": "s", "version": "1"}
    dressed = eras.dress(plain, server, cacheable=False)
    assert dressed == {
        "content": [],
        "resultType": "complete",
        "_meta": {"a": 1, eras.SERVER_KEY: server},
    }
    assert plain == {"content": [], "_meta": {"a": 1}}
    cacheable = eras.dress(plain, server, cacheable=True)
    assert (cacheable["ttlMs"], cacheable["cacheScope"]) == (eras.LIST_TTL_MS, "private")
