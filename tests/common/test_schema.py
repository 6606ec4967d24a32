"""Annotations as JSON Schema, and arguments fitted to them."""

import math
from collections.abc import Sequence
from typing import Annotated as Typed
from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.errors import ErrorCode, ToolError
from toolroll.schema import DROPPED, Annotated, fit, input_schema, parameters

Json = Any


def declared(
    text: Annotated[str, "A text.", {"minLength": 1}],
    mode: Annotated[str, "One of two.", {"enum": ["a", "b"]}] = "a",
    count: Annotated[int, "A number.", {"minimum": 1, "maximum": 9}] = 3,
    ratio: Annotated[float | None, "A share."] = None,
    loud: Annotated[bool, "A switch."] = False,
    names: Annotated[Sequence[str], "Texts."] = (),
) -> None: ...


PARAMETERS = parameters(declared)
SCHEMA = input_schema(PARAMETERS)

scalars = st.one_of(st.none(), st.booleans(), st.integers(), st.floats(), st.text())
likely = st.sampled_from(
    ["a", "b", "3", "true", "no", "1e999", "nan", "[]", '["x"]', "[1]", "", " 7 ", 3, 3.0, 9.5]
)
values = st.recursive(
    st.one_of(scalars, likely), lambda inner: st.lists(inner, max_size=3), max_leaves=5
)
names = st.one_of(
    st.sampled_from([parameter.name for parameter in PARAMETERS]), st.text(max_size=8)
)
arguments = st.dictionaries(names, values, max_size=8)


def fitted(given: dict[str, Json], lenient: bool = True, **aliases: str) -> dict[str, Json]:
    return fit({"text": "x", **given}, PARAMETERS, aliases, lenient)[0]


def problem(given: dict[str, Json], lenient: bool = True) -> str:
    with pytest.raises(ToolError) as caught:
        fit(given, PARAMETERS, {}, lenient)
    assert caught.value.code == ErrorCode.INVALID_PARAMS
    return caught.value.message


@settings(deadline=None)
@given(arguments, st.booleans())
def test_what_is_fitted_is_valid_by_the_schema_that_the_host_sees(
    given: dict[str, Json], lenient: bool
) -> None:
    try:
        values, ignored = fit(given, PARAMETERS, {}, lenient)
    except ToolError:
        return
    jsonschema.validate(values, {**SCHEMA, "additionalProperties": False})
    assert all(math.isfinite(value) for value in values.values() if isinstance(value, float))
    assert {*ignored} <= {*given} - {*values}
    assert lenient or not ignored


@settings(deadline=None)
@given(arguments)
def test_what_is_valid_by_the_schema_is_fitted_as_it_is(given: dict[str, Json]) -> None:
    ours = {name: value for name, value in given.items() if name in SCHEMA["properties"]}
    finite = all(math.isfinite(value) for value in ours.values() if isinstance(value, float))
    if finite and jsonschema.Draft202012Validator(SCHEMA).is_valid(ours):
        assert fit(ours, PARAMETERS, {}, lenient=False) == (ours, [])


@settings(deadline=None)
@given(arguments)
def test_fitting_twice_changes_nothing(given: dict[str, Json]) -> None:
    try:
        once, _ = fit(given, PARAMETERS, {}, lenient=True)
    except ToolError:
        return
    assert fit(once, PARAMETERS, {}, lenient=False) == (once, [])


def test_the_schema_says_what_the_annotations_say() -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    assert SCHEMA == {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": "A text.", "minLength": 1},
            "mode": {
                "type": "string",
                "description": "One of two.",
                "enum": ["a", "b"],
                "default": "a",
            },
            "count": {
                "type": "integer",
                "description": "A number.",
                "minimum": 1,
                "maximum": 9,
                "default": 3,
            },
            "ratio": {"type": "number", "description": "A share."},
            "loud": {"type": "boolean", "description": "A switch.", "default": False},
            "names": {"type": "array", "items": {"type": "string"}, "description": "Texts."},
        },
        "required": ["text"],
    }


def test_typings_own_annotated_is_read_too() -> None:
    def function(path: Typed[str, "A path."], words: Typed[list[str], "W."]) -> None: ...

    schema = input_schema(parameters(function))
    assert schema["properties"]["path"] == {"type": "string", "description": "A path."}
    assert schema["required"] == ["path", "words"]


def test_a_type_that_json_does_not_have_is_a_mistake_of_the_tool() -> None:
    def function(path: bytes) -> None: ...

    with pytest.raises(TypeError, match="bytes"):
        parameters(function)


@pytest.mark.parametrize(
    ("given", "name", "value"),
    [
        ({"count": "5"}, "count", 5),
        ({"count": 5.0}, "count", 5),
        ({"ratio": "0.5"}, "ratio", 0.5),
        ({"ratio": 2}, "ratio", 2),
        ({"loud": "true"}, "loud", True),
        ({"loud": "No"}, "loud", False),
        ({"names": "one"}, "names", ["one"]),
        ({"names": '["a", "b"]'}, "names", ["a", "b"]),
        ({"names": "[a-z]*"}, "names", ["[a-z]*"]),
    ],
)
def test_what_was_plainly_meant_is_taken(given: dict[str, Json], name: str, value: Json) -> None:
    found = fitted(given)[name]
    assert (found, type(found)) == (value, type(value))


def test_null_is_absent() -> None:
    assert fitted({"count": None, "names": None}) == {"text": "x"}
    assert "'text' is missing" in problem({"text": None})


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"text": 5}, "'text' must be a string, not 5"),
        ({"text": ""}, "'text' must not be empty"),
        ({"mode": "c"}, "'mode' must be one of 'a', 'b', not 'c'"),
        ({"count": True}, "'count' must be an integer, not True"),
        ({"count": 2.5}, "'count' must be an integer, not 2.5"),
        ({"count": 0}, "'count' must be at least 1, not 0"),
        ({"count": "10"}, "'count' must be at most 9, not 10"),
        ({"ratio": math.inf}, "'ratio' must be a number, not inf"),
        ({"ratio": "nan"}, "'ratio' must be a number, not nan"),
        ({"loud": "maybe"}, "'loud' must be a boolean, not 'maybe'"),
        ({"names": 5}, "'names' must be an array of strings, not 5"),
        ({"names": ["a", 5]}, "'names' must hold strings only, not 5"),
        ({"names": {"a": 1}}, "'names' must be an array of strings, not dict"),
    ],
)
def test_what_cannot_be_meant_is_named(given: dict[str, Json], words: str) -> None:
    assert words in problem({"text": "x", **given})


def test_every_problem_is_named_at_once() -> None:
    found = problem({"mode": "c", "count": 0, "nmaes": []})
    for words in (
        "'mode'",
        "'count'",
        "'nmaes' is not a parameter, did you mean 'names'?",
        "'text' is missing",
    ):
        assert words in found


@pytest.mark.parametrize("given", ["Text", "texts", "te_xt"])
def test_a_name_close_to_a_known_one_is_not_ignored(given: str) -> None:
    assert "did you mean 'text'?" in problem({"text": "x", given: 1})


def test_an_unknown_name_is_ignored_by_the_lenient_and_refused_by_others() -> None:
    assert fit({"text": "x", "frobnicate": 1}, PARAMETERS, {}, lenient=True) == (
        {"text": "x"},
        ["frobnicate"],
    )
    assert "'frobnicate' is not a parameter" in problem(
        {"text": "x", "frobnicate": 1}, lenient=False
    )


@pytest.mark.parametrize("name", DROPPED)
def test_what_hosts_add_is_dropped(name: str) -> None:
    assert fit({"text": "x", name: 1}, PARAMETERS, {}, lenient=False) == ({"text": "x"}, [])


def test_an_alias_is_the_parameter() -> None:
    assert fitted({"n": "4"}, n="count")["count"] == 4


def test_a_long_value_is_quoted_short() -> None:
    assert len(problem({"text": "x", "count": "9" * 5_000})) < 200
