"""What a splice of TOML leaves as it was, for any text that tomllib reads."""

import re
import tomllib
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll_suite.toml import loads, put, remove

Toml = Any

ENTRY: Toml = {"command": '/bin/"ls"', "args": ["--root", "/x\\y"], "required": True, "wait_s": 60}
PATH = ("mcp_servers", "toolroll-ls")
NEW = """\
[mcp_servers.toolroll-ls]
command = "/bin/\\"ls\\""
args = ["--root", "/x\\\\y"]
required = true
wait_s = 60
"""

gaps = st.lists(
    st.sampled_from(["\n", "# [not.a.table]\n", "  # 'open\n", "\t\n"]), max_size=2
).map("".join)
ends = st.sampled_from(["\n", "  \n", " # x = 1\n", "\t# [y]\n"])
values = st.sampled_from(
    [
        "1",
        "-1.5e3",
        "nan",
        "true",
        "1979-05-27 07:32:00",
        '"a # [b] \\" = c"',
        "'C:\\'",
        '""',
        '"""\n[not.a.table]\nkey = 1 \\""" and ""more"""""',
        "'''\n[[nor.this]] it''s'''",
        '"""one " # [t]\n"""',
        "'''one ' # [t]\n'''",
        "[1, [2, # two ]\n 3],\n]",
        '[\n  "a]", # "open\n  { b = "}" },\n]',
        '{ a = 1, "b" = { c = [ "}" ] } }',
        "[]",
    ]
)
keys = st.sampled_from(["a", '"b.c"', "'d e'", "f . g", "h.'i=j'.\"]\"", '""'])
indents = st.sampled_from(["", "  ", "\t"])


@st.composite
def pairs(draw: st.DrawFn) -> str:
    """Some lines of `key = value`."""
    lines = ""
    for key in draw(st.lists(keys, unique=True, max_size=4)):
        lines += f"{draw(gaps)}{draw(indents)}{key} = {draw(values)}{draw(ends)}"
    return lines


@st.composite
def documents(draw: st.DrawFn, ours: bool) -> str:
    """A text with some tables; with `ours`, one with the table at PATH, in one of its spellings."""
    headers = ["[t1]", "[ t2 . 'x.y' ]", "[[t3]]", "[[t3]]", "[t4]", "[mcp_servers.other.env]"]
    tables = [
        f"{draw(gaps)}{header}{draw(ends)}{draw(pairs())}"
        for header in draw(st.lists(st.sampled_from(headers), unique=True))
    ]
    top = draw(pairs())
    if ours:
        spelling = draw(
            st.sampled_from(
                [
                    "[mcp_servers.toolroll-ls]\nargs = [ 'old' ] # mine\n",
                    "[ mcp_servers . \"toolroll-ls\" ]\n  command = 'x'\n"
                    "  [mcp_servers.toolroll-ls.env]\n  K = 'v'\n",
                    "[mcp_servers.toolroll-ls.env]\nK = 'v'\n[mcp_servers.toolroll-ls]\n",
                    "[mcp_servers]\ntoolroll-ls.command = 'x' # dotted\n",
                ]
            )
        )
        tables.insert(draw(st.integers(0, len(tables))), spelling)
    text = top + "".join(tables)
    text = text.removesuffix("\n") if draw(st.booleans()) else text
    return text.replace("\n", "\r\n") if draw(st.booleans()) else text


def plain(text: str) -> Toml:
    """The values by another road than ours; nan as text, which equals itself."""
    return tomllib.loads(text, parse_float=lambda number: f"float {number}")


def merged(value: Toml, path: tuple[str, ...], new: Toml) -> Toml:
    if not path:
        return {**value, **new}
    return {**value, path[0]: merged(value.get(path[0], {}), path[1:], new)}


def without(value: Toml, path: tuple[str, ...]) -> Toml:
    """The values without those at a path, and without tables that are empty then."""
    rest = {name: one for name, one in value.items() if name != path[0]}
    if len(path) > 1 and path[0] in value:
        inner = without(value[path[0]], path[1:])
        return {**rest, path[0]: inner} if inner else rest
    return rest


@settings(deadline=None, max_examples=300)
@given(documents(ours=False))
def test_a_new_table_stands_behind_all_that_was_there(text: str) -> None:
    after = put(text, PATH, ENTRY)
    assert after.startswith(text)
    assert plain(after) == merged(plain(text), PATH, ENTRY)
    assert put(after, PATH, ENTRY) == after
    newline = "\r\n" if "\r\n" in text else "\n"
    assert after.endswith(NEW.replace("\n", newline))


@settings(deadline=None, max_examples=300)
@given(documents(ours=False))
def test_a_table_that_was_put_in_can_be_taken_out(text: str) -> None:
    ended = text if not text or text.endswith("\n") else text + ("\r\n" if "\r\n" in text else "\n")
    assert remove(put(text, PATH, ENTRY), PATH) == ended


@settings(deadline=None, max_examples=400)
@given(documents(ours=True))
def test_a_table_that_is_there_gets_the_keys_and_keeps_the_others(text: str) -> None:
    after = put(text, PATH, ENTRY)
    assert plain(after) == merged(plain(text), PATH, ENTRY)
    assert put(after, PATH, ENTRY) == after
    kept = [line for line in text.splitlines() if not re.match(r"\s*(.*command|args) =", line)]
    lines = iter(after.splitlines())
    assert all(line in lines for line in kept)


@settings(deadline=None, max_examples=400)
@given(documents(ours=True))
def test_a_table_that_was_removed_is_gone_and_all_others_are_as_they_were(text: str) -> None:
    after = remove(text, PATH)
    assert without(plain(after), PATH) == without(plain(text), PATH)
    assert "toolroll-ls" not in plain(after).get("mcp_servers", {})
    assert remove(after, PATH) == after
    lines = iter(text.splitlines())
    assert all(line in lines for line in after.splitlines())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", NEW),
        ("# mine\n", "# mine\n\n" + NEW),
        ('model = "o3"', 'model = "o3"\n\n' + NEW),
        (
            "[mcp_servers.toolroll-ls]\ncommand = 'x' # why\nstartup_timeout_sec = 9\n\n[other]\n",
            '[mcp_servers.toolroll-ls]\ncommand = "/bin/\\"ls\\"" # why\nstartup_timeout_sec = 9\n'
            'args = ["--root", "/x\\\\y"]\nrequired = true\nwait_s = 60\n\n[other]\n',
        ),
        (
            "[mcp_servers.toolroll-ls]\nargs = [\n  'a', # ]\n]\nrequired=true\n# end",
            '[mcp_servers.toolroll-ls]\nargs = ["--root", "/x\\\\y"]\nrequired=true\n'
            'command = "/bin/\\"ls\\""\nwait_s = 60\n# end',
        ),
        (
            "mcp_servers.toolroll-ls.command = 'x'\nmodel = 1",
            'mcp_servers.toolroll-ls.command = "/bin/\\"ls\\""\n'
            'mcp_servers.toolroll-ls.args = ["--root", "/x\\\\y"]\n'
            "mcp_servers.toolroll-ls.required = true\nmcp_servers.toolroll-ls.wait_s = 60\nmodel = 1",
        ),
        (
            "[mcp_servers.toolroll-ls.env]\nKEY = 'v'\n",
            "[mcp_servers.toolroll-ls.env]\nKEY = 'v'\n\n" + NEW,
        ),
    ],
)
def test_what_is_put_in_looks_like_what_is_there(text: str, expected: str) -> None:
    assert put(text, PATH, ENTRY) == expected


def test_an_empty_line_between_two_others_stays_between_them() -> None:
    text = "a = 1\n\n[mcp_servers.toolroll-ls]\ncommand = 'x'\n[other]\n"
    assert remove(text, PATH) == "a = 1\n\n[other]\n"


def test_what_is_taken_out_takes_its_subtables_along_and_leaves_comments() -> None:
    text = (
        "# top\n[mcp_servers.toolroll-ls]\ncommand = 'x'\n\n[mcp_servers.toolroll-ls.env]\nK = 'v'\n"
        "\n# about other\n[other]\na = 1\n"
    )
    assert remove(text, PATH) == "# top\n\n# about other\n[other]\na = 1\n"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("[mcp_servers", "Expected ']'"),
        ("a = 1\na = 2\n", "Cannot overwrite a value"),
        ("mcp_servers = 1\n", "mcp_servers.toolroll-ls: 'mcp_servers' is no table"),
        ("[[mcp_servers]]\n", "'mcp_servers' is no table"),
        ("mcp_servers = { other = { command = 'x' } }\n", "is written inline; write it as a table"),
        ("[mcp_servers]\ntoolroll-ls = { command = 'x' }\n", "[mcp_servers.toolroll-ls]"),
    ],
)
def test_what_cannot_be_spliced_is_refused(text: str, why: str) -> None:
    with pytest.raises(ValueError, match=re.escape(why)):
        put(text, PATH, ENTRY)


def test_true_and_one_are_two_things() -> None:
    assert put("[a]\nb = 1\n", ("a",), {"b": True}) == "[a]\nb = true\n"
    assert loads(put("[a]\nb = true\n", ("a",), {"b": 1})) == {"a": {"b": 1}}


def test_a_value_that_has_no_place_in_a_hosts_entry_is_refused() -> None:
    with pytest.raises(ValueError, match="dict is not written"):
        put("", ("a",), {"b": {}})
