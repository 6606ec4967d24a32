"""The declaration of GlobTool: what the model sees; the work is done in `find`, imported at the first call."""

from toolroll.call import Call
from toolroll.cli import count
from toolroll.errors import ToolError
from toolroll.schema import Annotated
from toolroll.tool import Answer, Option, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

FIELDS = {
    "results": {
        "type": "array",
        "description": "The files, newest first.",
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "size": {"type": "integer", "description": "Bytes."},
                "modified": {"type": "string", "description": "ISO 8601, UTC."},
                "permissions": {"type": "string", "description": "As in -rw-r--r--."},
            },
            "required": ["path", "size", "permissions"],
        },
    },
    "total": {"type": "integer", "description": "Files that match, shown or not."},
    "truncated": {"type": "boolean", "description": "Fewer than total are shown."},
    "skipped": {
        "type": "object",
        "description": "How many entries were not looked at, by reason.",
        "additionalProperties": {"type": "integer"},
    },
    "incomplete": {"type": "boolean", "description": "Time ran out."},
}

OPTIONS = (
    Option(
        "include", "Only files that one of these globs covers are listed.", str, "GLOB", many=True
    ),
    Option("cache-mb", "Memory for directory listings kept between calls.", count, "MB", 256),
)


def start(options: "dict[str, Any]") -> None:
    """Refuse impossible globs before anything is served.  Raises: ValueError."""
    if options["include"]:
        from toolroll.globs import matcher

        try:
            matcher(options["include"])
        except ToolError as problem:
            raise ValueError(f"--include: {problem}") from None


@tool(
    "GlobTool",
    title="Find files by pattern",
    read_only=True,
    fields=FIELDS,
    options=OPTIONS,
    start=start,
    warm=("toolroll_glob.find", "toolroll_glob.report"),
)
def glob(  # noqa: PLR0913 - the parameters of the tool
    pattern: Annotated[
        str,
        "Glob on the whole path from `path`: `**/*.py`, `src/**/test_*.{ts,tsx}`.",
        {"minLength": 1},
    ],
    path: Annotated[str, "Directory to search.", {"minLength": 1}] = ".",
    exclude: Annotated[
        list[str] | None,
        "Glob to leave out, or a JSON list of them: `*.min.js`, `docs/*.md`, `/build`.",
        {"type": "string"},
    ] = None,
    limit: Annotated[int, "Most files shown.", {"minimum": 1}] = 100,
    absolute: Annotated[bool, "Show absolute paths."] = False,
    no_ignore: Annotated[bool, "Look at files that git ignores too."] = False,
    *,
    call: Call,
) -> Answer:
    """Find files by name, the most recently modified first, with size, time and permissions.

    `**` stands for any folders, `*` for any part of one name: `*.py` finds nothing below subfolders,
    `**/*.py` does. Braces, `[a-z]` and `@(a|b)` work. Files that git ignores, hidden ones (unless the
    pattern names the dot, as `.github/**`) and links are left out. To search in files use GrepTool.
    """
    from toolroll_glob.find import Search, start_of
    from toolroll_glob.report import report

    place, pattern = start_of(pattern, path)
    with call.roots.open_directory(place) as opened:
        search = Search(opened, pattern, exclude or (), call, no_ignore=no_ignore)
        return report(search, opened, limit, absolute=absolute)
