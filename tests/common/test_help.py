"""The text of --help."""

from toolroll.call import Call
from toolroll.cli import ACTIONS, declared
from toolroll.help import COLUMNS, text
from toolroll.schema import Annotated
from toolroll.tool import Option, tool


@tool("Some", title="Some", options=[Option("own", "The tool's own. " * 20, int, "N", 5)])
def some(
    path: Annotated[str, "Where to look. " * 20],
    count: Annotated[int, "How many."] = 7,
    *,
    call: Call,
) -> str:
    """Look somewhere."""
    return ""


SHOWN = text(some, "toolroll-some", declared(some), ACTIONS)


def test_help_begins_with_what_it_is() -> None:
    assert SHOWN.startswith(
        "toolroll-some: an MCP server with one tool, Some.\n\nLook somewhere.\n\nUsage:\n"
    )


def test_help_names_parameters_with_types_and_defaults() -> None:
    assert "  path (string)" in SHOWN
    assert "How many. Default: 7." in SHOWN
    assert "--call path=..." in SHOWN


def test_help_names_every_option_with_its_value_and_default() -> None:
    for option in (*declared(some), *ACTIONS):
        assert f"  --{option.name}" + (f" {option.value}" if option.kind else "") in SHOWN
    assert "Default: 5." in SHOWN
    assert "May be repeated." in SHOWN


def test_no_line_of_help_is_wider_than_a_terminal() -> None:
    tables = SHOWN[SHOWN.index("Parameters") :]
    assert max(map(len, tables.splitlines())) <= COLUMNS


def test_help_ends_with_what_is_in_force_where_a_tool_says_so() -> None:
    assert "In force" not in SHOWN
    shown = text(some, "toolroll-some", declared(some), ACTIONS, "two layers")
    assert shown == f"{SHOWN}\n\nIn force here: two layers."
