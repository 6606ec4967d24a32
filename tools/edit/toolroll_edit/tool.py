"""The declaration of Edit, and the way from a call to the bytes on disk."""

from toolroll.errors import ErrorCode, ToolError
from toolroll.schema import Annotated
from toolroll.tool import ALLOW_GIT, Answer, close_git, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call

FIELDS = {
    "etag": {"type": "string", "description": "Of the file after the edit."},
    "added": {"type": "integer", "description": "Lines added."},
    "removed": {"type": "integer", "description": "Lines removed."},
    "unchanged": {"type": "boolean", "description": "True when nothing had to be written."},
}


@tool(
    "Edit",
    title="Edit a file",
    destructive=True,
    fields=FIELDS,
    options=(ALLOW_GIT,),
    start=close_git,
    warm=("toolroll_edit.splice",),
)
def edit(
    file_path: Annotated[str, "File to edit."],
    old_string: Annotated[str, "Exact text to replace. Empty: create a new file."],
    new_string: Annotated[str, "Text to put in its place."],
    replace_all: Annotated[bool, "Replace every occurrence."] = False,
    if_match: Annotated[str | None, "Etag the file must still have."] = None,
    *,
    call: "Call",
) -> Answer:
    """Replace one exact text in a file, or create a file.

    old_string must occur exactly once, white space included: give enough surrounding lines, or set
    replace_all. All other bytes stay as they are (encoding, line ends). Files up to 100 MB.
    """
    from toolroll_edit.splice import create, replace

    if not old_string:
        return create(file_path, new_string, if_match, call)
    if old_string == new_string:
        raise ToolError(
            ErrorCode.INVALID_PARAMS,
            "old_string and new_string are the same, so there is nothing to change",
            "Give the text as it should be in new_string",
        )
    return replace(file_path, old_string, new_string, replace_all, if_match, call)
