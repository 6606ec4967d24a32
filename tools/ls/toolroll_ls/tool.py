"""The declaration of LS: what the model sees; the work is done in `tree`, imported at the first call."""

from toolroll.call import Call
from toolroll.schema import Annotated
from toolroll.tool import Answer, tool

FIELDS = {
    "results": {
        "type": "array",
        "description": "The entries shown; what is in a directory follows it.",
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "type": {
                    "type": "string",
                    "description": "file, directory, link, fifo, socket, a device or unknown",
                },
                "size": {"type": "integer", "description": "Bytes."},
                "modified": {"type": "string", "description": "ISO 8601, UTC."},
                "permissions": {"type": "string", "description": "As in -rw-r--r--."},
                "target": {"type": "string", "description": "What a link holds."},
            },
            "required": ["path", "type"],
        },
    },
    "total": {"type": "integer", "description": "Entries in the directories looked into."},
    "truncated": {"type": "boolean", "description": "Fewer than total are shown."},
    "skipped": {
        "type": "object",
        "description": "How many entries were left out, by reason.",
        "additionalProperties": {"type": "integer"},
    },
    "incomplete": {"type": "boolean", "description": "Time ran out."},
}


@tool(
    "LS",
    title="List a directory",
    read_only=True,
    aliases={"ignore_pattern": "ignore"},
    fields=FIELDS,
    warm=("toolroll_ls.tree",),
)
def ls(
    path: Annotated[str, "Directory to list.", {"minLength": 1}],
    ignore: Annotated[
        list[str] | None, "Globs to leave out: `*.pyc`, `docs/*.log`, `/build`."
    ] = None,
    depth: Annotated[int, "Levels to go down.", {"minimum": 1, "maximum": 5}] = 1,
    limit: Annotated[int, "Most entries shown, all levels together.", {"minimum": 1}] = 200,
    *,
    call: Call,
) -> Answer:
    """List a directory: folders first, then files with their sizes, hidden ones too, in natural order.

    With `depth` a tree, level by level; folders that git ignores are counted, not entered. For files
    by pattern use GlobTool.
    """
    from toolroll_ls.tree import listing

    with call.roots.open_directory(path) as opened:
        found = listing(opened, ignore or (), depth, limit, call)
    return Answer(found.text, found.facts, found.data)
