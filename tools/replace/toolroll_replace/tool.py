"""The declaration of Replace."""

from toolroll.schema import Annotated
from toolroll.tool import ALLOW_GIT, Answer, close_git, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call

FIELDS = {
    "etag": {"type": "string", "description": "Of the file after the call."},
    "added": {"type": "integer", "description": "Lines added."},
    "removed": {"type": "integer", "description": "Lines removed."},
    "unchanged": {"type": "boolean", "description": "True when nothing had to be written."},
}


@tool(
    "Replace",
    title="Write a file",
    destructive=True,
    idempotent=True,
    fields=FIELDS,
    options=(ALLOW_GIT,),
    start=close_git,
    warm=("toolroll_replace.whole",),
)
def replace(
    file_path: Annotated[str, "File to write."],
    content: Annotated[str, "The whole new text."],
    if_match: Annotated[str | None, 'Etag the file must still have, or "absent".'] = None,
    *,
    call: "Call",
) -> Answer:
    """Create a file, its parent directories too, or overwrite it whole.

    To change a part of a file use Edit. Encoding, line ends and mode of an existing file are kept.
    """
    from toolroll_replace.whole import write

    return write(file_path, content, if_match, call)
