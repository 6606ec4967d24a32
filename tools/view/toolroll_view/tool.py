"""View's declaration: what the model is told, and where a call goes; imports no work at start."""

import sys

from toolroll.errors import ErrorCode, ToolError
from toolroll.saved import readable
from toolroll.schema import Annotated
from toolroll.tool import Answer, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call

FIELDS = {
    "etag": {"type": "string", "description": "For if_match of Edit and Replace."},
    "next_offset": {"type": "integer", "description": "The offset of what follows."},
    "total_lines": {"type": "integer", "description": "Lines of the file, when counted."},
    "truncated": {"type": "boolean", "description": "The output limit cut the page."},
    "incomplete": {"type": "boolean", "description": "Time ran out."},
}


def close() -> None:
    """Kill the PDF reader of a call that still runs."""
    pdf = sys.modules.get("toolroll_view.pdf")
    if pdf is not None:
        pdf.end_children()


@tool(
    "View",
    title="View a file",
    read_only=True,
    fields=FIELDS,
    start=readable,
    close=close,
    warm=("toolroll_view.kinds",),
)
def view(  # noqa: PLR0913, PLR0917 - the model's parameters
    file_path: Annotated[str, "File to read."],
    offset: Annotated[int, "First line, from 1; negative counts from the end."] = 1,
    limit: Annotated[int, "Most lines to show.", {"minimum": 1}] = 2000,
    columns: Annotated[
        list[int] | None,
        "[from, to]: only these columns, for long lines.",
    ] = None,
    show_line_numbers: Annotated[bool, "Start each line with its number and a tab."] = True,
    include_metadata: Annotated[
        bool, "Add a line with size, permissions, time, encoding and line ends."
    ] = False,
    include_hex_dump: Annotated[
        bool, "Add 1 KB as hex; for a binary file offset then counts rows of 16 bytes."
    ] = False,
    find_section: Annotated[
        str,
        "Show only the section whose heading or definition name contains this, else the paragraph.",
    ] = "",
    *,
    call: "Call",
) -> Answer:
    """Read a file with line numbers, whatever its size.

    The last line says what is shown, how to go on (next: offset=...) and the etag for if_match. Lines
    over 2,000 characters are clipped; the first page of code or Markdown ends with an outline of the
    rest. Shows png, jpeg, gif and webp images, notebooks as cells, PDF as text, and kind and size of
    other binary files. Use LS for directories.
    """
    from toolroll_view.kinds import show
    from toolroll_view.page import Wish

    wish = Wish(
        offset=offset,
        limit=limit,
        columns=_pair(columns),
        numbered=show_line_numbers,
        metadata=include_metadata,
        hex_dump=include_hex_dump,
        section=find_section.strip(),
    )
    with call.roots.open_file(file_path) as opened:
        return show(opened, wish, call)


def _pair(columns: "list[int] | None") -> tuple[int, int] | None:
    """First and last column from 1.

    Raises: ToolError INVALID_PARAMS.
    """
    if not columns:
        return None
    try:
        first, last = (int(column) for column in columns)
    except ValueError:
        first, last = 0, 0
    if not 1 <= first <= last:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            f"'columns' must be [from, to] with 1 <= from <= to, not {columns}",
        )
    return first, last
