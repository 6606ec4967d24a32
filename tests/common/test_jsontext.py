"""JSON texts to values and back."""

import json
import math
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.jsontext import dumps, loads

Json = Any

any_text = st.text(st.characters(codec=None, exclude_categories=()))  # with lone surrogates
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(allow_nan=False, allow_infinity=False),
    any_text,
)
values = st.recursive(
    scalars,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4), st.dictionaries(any_text, inner, max_size=4)
    ),
    max_leaves=20,
)


def outcome(read: Any, data: bytes) -> Json:
    """What comes of reading `data`; every refusal is the same."""
    try:
        return read(data)
    except (ValueError, RecursionError):
        return "refused"


def strictly(data: bytes) -> Json:
    """What Python's own json makes of it, without NaN and with JSON's white space only."""

    def refuse(name: str) -> Json:
        raise ValueError(name)

    return json.loads(data.decode("utf-8").strip(" \t\n\r"), parse_constant=refuse)


@settings(deadline=None)
@given(values)
def test_every_value_comes_back_as_it_was(value: Json) -> None:
    assert loads(dumps(value)) == joined(value)


def joined(value: Json) -> Json:
    """`value` as JSON sees it: two surrogates next to each other are one character."""
    return json.loads(json.dumps(value))


@settings(deadline=None)
@given(values)
def test_a_text_of_ours_is_one_line_of_ascii(value: Json) -> None:
    text = dumps(value)
    assert text.isascii()
    assert not {*text} & {*b"\r\n"}


def test_a_lone_surrogate_comes_in_and_goes_out_escaped() -> None:
    assert loads(rb'"\ud800 \udfff"') == "\ud800 \udfff"
    assert dumps("\ud800 \udfff") == rb'"\ud800 \udfff"'


@settings(deadline=None)
@given(st.one_of(st.binary(), st.text(alphabet='[]{}",:0e+-.truefalsn \\u\n').map(str.encode)))
def test_reading_agrees_with_the_standard_library_and_only_ever_raises_value_error(
    data: bytes,
) -> None:
    assert repr(outcome(loads, data)) == repr(outcome(strictly, data))


@pytest.mark.parametrize(
    "data",
    [b"", b" ", b"NaN", b"[Infinity]", b"-Infinity", b"{", b"1 2", b'"\xff"', b'"a\nb"', b"\xef\xbb\xbf1",
     "\u20281".encode(), b"'a'", b"[1,]", b"[" * 100_000, b"[" * 100_000 + b"]" * 100_000, b"9" * 10_000],
    ids=lambda data: repr(data[:12]),
)  # fmt: skip
def test_what_is_not_json_is_refused(data: bytes) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        loads(data)


def test_deep_but_sane_nesting_is_read() -> None:
    assert loads(b"[" * 500 + b"]" * 500) is not None


def test_numbers_past_every_limit_are_read() -> None:
    big, infinite, minus_zero = loads(b"[12345678901234567890123456789, 1e999, -0.0]")
    assert big == 12345678901234567890123456789
    assert infinite == math.inf
    assert math.copysign(1, minus_zero) == -1


@pytest.mark.parametrize("value", [math.nan, math.inf, [-math.inf]])
def test_what_json_has_no_word_for_is_not_written(value: Json) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        dumps(value)


@pytest.mark.parametrize("value", [{1, 2}, b"bytes", object()])
def test_what_is_no_json_value_is_not_written(value: object) -> None:
    with pytest.raises(TypeError):
        dumps(value)


def test_a_python_without_the_c_accelerator_reads_and_writes_the_same() -> None:
    script = (
        "import sys; sys.modules['_json'] = None\n"
        "from toolroll.jsontext import dumps, loads\n"
        r"""print(dumps(loads(b' {"a": [1, 2.5, null, true, "\\ud800\u00e9"]} ')).decode())"""
        "\nfor bad in (b'NaN', b'1 2', b'[' * 100000):\n"
        "    try: print(loads(bad))\n"
        "    except ValueError: print('refused')"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=30
    )
    assert done.stdout.split("\n") == [
        r'{"a":[1,2.5,null,true,"\ud800\u00e9"]}',
        *["refused"] * 3,
        "",
    ]
