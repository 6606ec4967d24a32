"""What a splice of JSON with comments leaves as it was, for any text of the grammar."""

import json
import re
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from toolroll_suite.jsonc import loads, put, remove

Json = Any

ENTRY: Json = {"command": "/bin/ls", "args": ["--root", "/x"], "deep": {"on": True}}
PATH = ("mcpServers", "toolroll-ls")

_tokens = re.compile(r'("(?:[^"\\]|\\.)*")|//[^\r\n]*|/\*.*?\*/', re.DOTALL)
_commas = re.compile(r'("(?:[^"\\]|\\.)*")|,(?=\s*[}\]])')


def stripped(text: str) -> Json:
    """The value by another way than ours: comments and trailing commas taken out, then `json`."""
    plain = _tokens.sub(lambda found: found[1] or " ", text)
    return json.loads(_commas.sub(lambda found: found[1] or "", plain).strip() or "{}")


def merged(value: Json, path: tuple[str, ...], new: Json) -> Json:
    """What `put` must make of a value."""
    if path:
        inner = value.get(path[0], {}) if isinstance(value, dict) else {}
        return {**value, path[0]: merged(inner, path[1:], new)}
    if isinstance(new, dict) and isinstance(value, dict):
        for name, one in new.items():
            value = merged(value, (name,), one)
        return value
    return new


def is_insertion(old: str, new: str) -> bool:
    """True when `new` is `old` with text put in at one place, and maybe one comma before it."""
    start = _common(old, new)
    if new[start:].endswith(old[start:]):
        return True
    if new[start] != ",":
        return False
    more = _common(old[start:], new[start + 1 :])
    return new[start + 1 + more :].endswith(old[start + more :])


def _common(one: str, other: str) -> int:
    pairs = enumerate(zip(one, other, strict=False))
    return next((place for place, (a, b) in pairs if a != b), min(len(one), len(other)))


gaps = st.lists(
    st.sampled_from(
        ["", " ", "\t", "\n  ", "\r\n\t", "\r ", "// it's {a \"note\n", "// c\r", "/* , } \n */"]
    ),
    max_size=2,
).map("".join)
scalars = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-99, 99),
    st.floats(allow_nan=False, allow_infinity=False),
    st.sampled_from(["", "//", "/* */", 'a "b" \\', "},]", "é\u2028"]),
).map(lambda value: json.dumps(value, ensure_ascii=False))
names = st.sampled_from(["a", "b", "mcpServers", "toolroll-ls", "command", "args", "", "//"])


@st.composite
def objects(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """An object as text, with gaps everywhere and sometimes a comma behind its last member."""
    keys = draw(st.lists(names, unique=True, max_size=4))
    text = "{" + draw(gaps)
    for place, key in enumerate(keys):
        text += json.dumps(key) + draw(gaps) + ":" + draw(gaps) + draw(values) + draw(gaps)
        if place < len(keys) - 1 or draw(st.booleans()):
            text += "," + draw(gaps)
    return text + "}"


@st.composite
def arrays(draw: st.DrawFn, values: st.SearchStrategy[str]) -> str:
    """An array as text."""
    text = "[" + draw(gaps)
    for value in draw(st.lists(values, max_size=3)):
        text += value + draw(gaps) + "," + draw(gaps)
    return text + "]"


inner = st.recursive(scalars, lambda values: objects(values) | arrays(values), max_leaves=8)
documents = st.builds(
    lambda before, root, after: before + root + after,
    gaps,
    objects(objects(objects(inner)) | inner),
    gaps,
)


def is_writable(value: Json) -> bool:
    """True when nothing on the way to the entry is something else than an object."""
    return isinstance(value.get(PATH[0], {}), dict)


@settings(deadline=None, max_examples=400)
@given(documents)
def test_a_text_means_the_same_to_us_and_to_another_reader(text: str) -> None:
    assert loads(text) == stripped(text)


@settings(deadline=None, max_examples=500)
@given(documents, st.sampled_from([ENTRY, {"args": []}, 1, "x", None]))
def test_a_put_value_is_there_and_all_others_are_as_they_were(text: str, value: Json) -> None:
    before = stripped(text)
    if not is_writable(before):
        with pytest.raises(ValueError, match="no object"):
            put(text, PATH, value)
        return
    after = put(text, PATH, value)
    assert stripped(after) == merged(before, PATH, value)
    assert put(after, PATH, value) == after
    if PATH[1] not in before.get(PATH[0], {}):
        assert is_insertion(text, after)


@settings(deadline=None, max_examples=500)
@example('{"mcpServers": {// c\n"toolroll-ls": {} /* x\n */,\n  "a": 1}}')
@example('{"mcpServers": {// c\r"toolroll-ls": {}\t, // d\r"a": 1}}')
@given(documents)
def test_a_removed_member_is_gone_and_all_others_are_as_they_were(text: str) -> None:
    before = stripped(text)
    if not is_writable(before):
        return
    after = remove(text, PATH)
    before.get(PATH[0], {}).pop(PATH[1], None)
    assert stripped(after) == before
    assert remove(after, PATH) == after
    assert "".join(after.split()) in _with_gaps_cut(text, after)


def _with_gaps_cut(text: str, after: str) -> tuple[str, ...]:
    """`after` without blanks when it can be had by only leaving characters of `text` out."""
    left = iter("".join(text.split()))
    wanted = "".join(after.split())
    return (wanted,) if all(char in left for char in wanted) else ()


@settings(deadline=None, max_examples=200)
@given(documents)
def test_a_member_that_was_put_in_can_be_taken_out(text: str) -> None:
    before = stripped(text)
    if not is_writable(before) or PATH[1] in before.get(PATH[0], {}):
        return
    after = stripped(remove(put(text, PATH, ENTRY), PATH))
    assert after == {**before, PATH[0]: before.get(PATH[0], {})}


plain_values = st.recursive(
    st.integers() | st.text(max_size=3),
    lambda inner: st.dictionaries(st.text(max_size=3), inner, max_size=3) | st.lists(inner),
    max_leaves=5,
)


@settings(deadline=None, max_examples=200)
@given(
    st.dictionaries(st.text(max_size=3), plain_values, min_size=1), st.sampled_from([2, 4, "\t"])
)
def test_a_tidy_text_is_itself_again_to_the_letter(others: Json, indent: "int | str") -> None:
    text = json.dumps({**others, PATH[0]: {"other": {}}}, indent=indent) + "\n"
    after = put(text, PATH, ENTRY)
    assert remove(after, PATH) == text
    unit = " " * indent if isinstance(indent, int) else indent
    assert f'\n{unit * 2}"toolroll-ls": {{\n{unit * 3}"command": "/bin/ls",\n' in after


@settings(deadline=None, max_examples=300)
@given(st.text(alphabet='{}[]:,"/* \n1a\\', max_size=12))
def test_any_text_is_read_or_refused(text: str) -> None:
    try:
        value = loads(text)
    except ValueError:
        return
    assert value == stripped(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", '{\n  "s": {\n    "x": 1\n  }\n}\n'),
        ("// mine", '// mine\n{\n  "s": {\n    "x": 1\n  }\n}\n'),
        ("{}", '{\n  "s": {\n    "x": 1\n  }\n}'),
        ('{"a":1}', '{"a":1, "s": {"x": 1}}'),
        ('{"a":1,}', '{"a":1, "s": {"x": 1},}'),
        ('{\n\t"a": 1\n}\n', '{\n\t"a": 1,\n\t"s": {\n\t\t"x": 1\n\t}\n}\n'),
        ('{\r\n "a": 1\r\n}', '{\r\n "a": 1,\r\n "s": {\r\n  "x": 1\r\n }\r\n}'),
        ('{\n  "s": {}\n}', '{\n  "s": {\n    "x": 1\n  }\n}'),
        ('{\n  "s": {"y": 2}\n}', '{\n  "s": {"y": 2, "x": 1}\n}'),
        (
            '{\n  "s": {\n    "y": 2 // two\n    // "z": 3\n  }\n}',
            '{\n  "s": {\n    "y": 2, // two\n    // "z": 3\n    "x": 1\n  }\n}',
        ),
        (
            '{\n  "s": {\n    // none yet\n  }\n}',
            '{\n  "s": {\n    // none yet\n    "x": 1\n  }\n}',
        ),
        (
            '{\r  "s": {\r    "y": 2 // c\r  }\r}',
            '{\r  "s": {\r    "y": 2, // c\r    "x": 1\r  }\r}',
        ),
        ('{"s": { // c\r}}', '{"s": { // c\r  "x": 1\r}}'),
        ('{"s": {"x": /* was */ 0 /* ! */}}', '{"s": {"x": /* was */ 1 /* ! */}}'),
    ],
)
def test_what_is_put_in_looks_like_what_is_there(text: str, expected: str) -> None:
    assert put(text, ("s", "x"), 1) == expected


def test_an_entry_keeps_its_layout_and_what_else_is_in_it() -> None:
    old = '{\n  "s": {"x": {"command": "old", "env": {"KEY": "1"} /* mine */, "args": [\n"a"] }}\n}'
    new = put(old, ("s", "x"), {"command": "new", "args": [], "on": True})
    assert new == (
        '{\n  "s": {"x": {"command": "new", "env": {"KEY": "1"} /* mine */, "args": [], '
        '"on": true }}\n}'
    )


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('{\n  "x": 1,\n  "b": 2\n}', '{\n  "b": 2\n}'),
        ('{\n  "a": 1, // one\n  "x": 1\n}', '{\n  "a": 1 // one\n}'),
        ('{\n  "a": 1,\n  "x": 1,\n}', '{\n  "a": 1,\n}'),
        ('{\n  // first\n  "x": 1, "b": 2\n}', '{\n  // first\n  "b": 2\n}'),
        ('{\r  "a": 1, // one\r  "x": 1}', '{\r  "a": 1 // one\r  }'),
        ('{"x": 1}', "{}"),
        ('{"x": 1 /* kept */}', "{ /* kept */}"),
        ('{"y": 1}', '{"y": 1}'),
        ("", ""),
    ],
)
def test_what_is_taken_out_leaves_no_trace(text: str, expected: str) -> None:
    assert remove(text, ("x",)) == expected


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"a": 1', "line 1, column 8: ',' or '}' is missing"),
        ('{\n  "a" 1}', "line 2, column 7: ':' is missing"),
        ('{"a": tru}', "line 1, column 7: a value is missing"),
        ("{'a': 1}", "line 1, column 2: a name in double quotes or '}' is missing"),
        ('{"a": 1} x', "line 1, column 10: more text"),
        ('{"a": "\n"}', "line 1, column 8: Invalid control character"),
        ('{"a": NaN}', "NaN is not JSON"),
        ("[" * 100_000, "nested too deep"),
        ('{"a": 1 /* }', "',' or '}' is missing"),
    ],
)
def test_a_text_that_is_not_in_the_grammar_is_refused_with_its_place(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        put(text, ("s",), 1)


def test_a_value_that_would_not_be_read_back_is_refused() -> None:
    with pytest.raises(ValueError, match="NaN is not JSON"):
        put("{}", ("s", "x"), float("nan"))


def test_a_name_that_occurs_twice_on_the_way_is_refused() -> None:
    with pytest.raises(ValueError, match="'s' occurs 2 times"):
        put('{"s": {}, "s": {}}', ("s", "x"), 1)
