"""The smallest tool on toolroll: what is left is the way of a call through the house."""

from toolroll.call import Call
from toolroll.cli import main
from toolroll.schema import Annotated
from toolroll.tool import tool


@tool("Echo", title="Echo", read_only=True)
def echo(text: Annotated[str, "What comes back."], *, call: Call) -> str:  # noqa: ARG001 - every tool takes its call
    """Say it again."""
    return text


raise SystemExit(main(echo))
