"""A declared tool and the way of a call through it."""

from typing import Any

import jsonschema
import pytest

from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.paths import Roots
from toolroll.schema import Annotated
from toolroll.tool import Answer, Outcome, dedent, tool

Json = Any


def call(**options: Json) -> Call:
    return Call(Roots([]), Guard({"MY_TOKEN": "s3cr3t-V4lue-77"}), options)


@tool(
    "Echo",
    title="Echo",
    read_only=True,
    fields={"size": {"type": "integer"}},
    aliases={"word": "text"},
)
def echo(text: Annotated[str, "A text."], *, call: Call) -> Answer:
    """Give the text back.

    With more to say
      and an indented line.
    """
    if text == "fail":
        raise ToolError(ErrorCode.NOT_FOUND, "'s3cr3t-V4lue-77' is not here", "Look elsewhere")
    return Answer(text, facts=[] if text == "plain" else ["etag 1"], data={"size": len(text)})


@tool("Write", title="Write", destructive=True)
def write(text: Annotated[str, "A text."], call: Call) -> str:
    """Write."""
    return text


def test_a_definition_is_what_the_function_says() -> None:
    assert echo.definition() == {
        "name": "Echo",
        "title": "Echo",
        "description": "Give the text back.\n\nWith more to say\n  and an indented line.",
        "inputSchema": {
            "type": "object",
            "properties": {"text": {"type": "string", "description": "A text."}},
            "required": ["text"],
        },
        "annotations": {
            "title": "Echo",
            "readOnlyHint": True,
            "destructiveHint": False,
            "idempotentHint": True,
            "openWorldHint": False,
        },
    }


def test_a_writing_tool_is_not_idempotent_unless_it_says_so() -> None:
    hints = write.annotations
    assert (hints["readOnlyHint"], hints["destructiveHint"], hints["idempotentHint"]) == (
        False,
        True,
        False,
    )


def test_a_structured_answer_is_as_declared() -> None:
    schema = echo.definition(structured=True)["outputSchema"]
    jsonschema.Draft202012Validator.check_schema(schema)
    outcome = echo.call({"text": "hi"}, call())
    assert outcome.structured == {"result": "hi\n[etag 1]", "size": 2}
    jsonschema.validate(outcome.structured, schema)


def test_results_stand_in_place_of_the_text() -> None:
    @tool("Find", title="Find", fields={"results": {"type": "array", "items": {"type": "string"}}})
    def find(call: Call) -> Answer:
        return Answer("a\nb", data={"results": ["a", "b"]})

    outcome = find.call({}, call())
    assert outcome.structured == {"results": ["a", "b"]}
    assert find.output_schema()["required"] == ["results"]
    jsonschema.validate(outcome.structured, find.output_schema())


def test_facts_are_the_last_line() -> None:
    assert echo.call({"text": "hi"}, call()).text == "hi\n[etag 1]"
    assert echo.call({"text": "plain"}, call()).text == "plain"


def test_an_answer_of_facts_alone_has_no_blank_line() -> None:
    assert echo.call({"text": ""}, call()).text == "[etag 1]"


def test_what_was_ignored_is_named_behind_the_facts() -> None:
    text = echo.call({"text": "hi", "frobnicate": 1}, call()).text
    assert text == "hi\n[etag 1 · Ignored: 'frobnicate']"


def test_a_tool_that_writes_ignores_nothing() -> None:
    outcome = write.call({"text": "hi", "frobnicate": 1}, call())
    assert outcome.code == ErrorCode.INVALID_PARAMS
    assert "'frobnicate' is not a parameter" in outcome.text


def test_an_answer_is_cleaned_in_text_facts_and_fields() -> None:
    @tool("Leak", title="Leak")
    def leak(call: Call) -> Answer:
        return Answer("s3cr3t-V4lue-77\x1b", ["s3cr3t-V4lue-77"], {"field": ["s3cr3t-V4lue-77"]})

    outcome = leak.call({}, call())
    assert "s3cr3t" not in outcome.text + str(outcome.structured)
    assert outcome.text.startswith(
        "[REDACTED:MY_TOKEN]\\x1b\n[[REDACTED:MY_TOKEN] · redacted: MY_TOKEN"
    )


def test_a_failure_is_cleaned_and_says_that_it_is_one() -> None:
    outcome = echo.call({"text": "fail"}, call())
    assert outcome.text == "Error [NOT_FOUND]: '[REDACTED:MY_TOKEN]' is not here. Look elsewhere."
    assert outcome.structured["code"] == outcome.code == ErrorCode.NOT_FOUND
    assert outcome.failed


def test_an_answer_and_a_failure_are_cut_to_the_limit() -> None:
    long = write.call({"text": "x" * 5_000}, call(**{"max-output": 100}))
    assert len(long.text) < 200
    assert "[truncated: 4900 characters" in long.text
    assert long.structured["truncated"] is True
    failed = write.call({"text": "x", "y" * 5_000: 1}, call(**{"max-output": 100}))
    assert len(failed.text) < 250


def test_names_that_are_ignored_do_not_flood_the_answer() -> None:
    many = {f"unknown{number:04}": 1 for number in range(500)}
    assert len(echo.call({"text": "x", **many, "z" * 5_000: 1}, call()).text) < 500


def test_a_bug_is_raised_and_not_made_an_answer() -> None:
    @tool("Bug", title="Bug")
    def bug(call: Call) -> str:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        bug.call({}, call())


def test_a_failure_of_arguments_does_not_run_the_tool() -> None:
    outcome = write.call({}, call())
    assert outcome.text.startswith(
        "Error [INVALID_PARAMS]: 'text' is missing. Parameters: text (string, required)"
    )


def test_blocks_follow_the_text() -> None:
    image = {"type": "image", "data": "", "mimeType": "image/png"}
    assert Outcome("t", dict, [image]).content == [{"type": "text", "text": "t"}, image]


def test_a_docstring_loses_its_indentation_only() -> None:
    assert dedent("One.\n\n    Two\n      three  \n    ") == "One.\n\nTwo\n  three"
    assert dedent("One.") == "One."
