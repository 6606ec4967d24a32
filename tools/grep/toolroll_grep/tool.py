"""The declaration of GrepTool: what the model sees; the work is done elsewhere, from the first call on."""

from toolroll.call import Call
from toolroll.saved import readable
from toolroll.schema import Annotated
from toolroll.tool import Answer, Option, tool

FIELDS = {
    "results": {
        "type": "array",
        "description": "Lines shown, newest file first; files and count modes: one item a file.",
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "line": {"type": "integer"},
                "column": {
                    "type": "integer",
                    "description": "Of the match, from 1, in characters.",
                },
                "text": {"type": "string"},
                "kind": {"type": "string", "description": "match or context"},
                "count": {"type": "integer", "description": "Matches of the file."},
            },
            "required": ["path"],
        },
    },
    "files": {"type": "integer", "description": "Files with matches."},
    "total": {"type": "integer", "description": "Matching lines in all of them."},
    "truncated": {"type": "boolean", "description": "Not everything is shown."},
    "skipped": {
        "type": "object",
        "description": "How many entries were not searched, by reason.",
        "additionalProperties": {"type": "integer"},
    },
    "incomplete": {"type": "boolean", "description": "Time ran out."},
}


def megabytes(text: str) -> int:
    """A number of megabytes, 0 for none."""
    number = int(text)
    if not 0 <= number <= 65_536:
        raise ValueError("from 0 to 65536")
    return number


CACHE = Option("cache-mb", "Most memory for files kept warm.", megabytes, "N", "256")


def _close() -> None:
    """End the searching processes, if there are any."""
    from sys import modules

    if "toolroll_grep.search" in modules:
        modules["toolroll_grep.search"].POOL.close()


@tool(
    "GrepTool",
    title="Search file contents",
    read_only=True,
    aliases={"glob": "include", "case_insensitive": "ignore_case", "literal": "fixed_strings"},
    fields=FIELDS,
    options=(CACHE,),
    start=readable,
    warm=("string", "toolroll.textfile", "toolroll.walk"),  # not `regex`: it takes 2 MB more
    close=_close,
)
def grep(  # noqa: PLR0913, PLR0917 - the parameters are the tool's
    pattern: Annotated[
        str, "Regular expression, Unicode-aware, or text with fixed_strings.", {"minLength": 1}
    ],
    path: Annotated[str, "File or directory to search."] = ".",
    include: Annotated[
        str, "Only files that fit this glob: `*.{ts,tsx}`, `src/**`; `!*.min.js` leaves out."
    ] = "",
    context: Annotated[
        int, "Lines shown before and after each match.", {"minimum": 0, "maximum": 100}
    ] = 0,
    ignore_case: Annotated[bool, "Take A and a for the same."] = False,
    fixed_strings: Annotated[bool, "Take pattern as text."] = False,
    multiline: Annotated[bool, "Let a match span lines; `(?s)` lets . take newlines too."] = False,
    output_mode: Annotated[
        str,
        "content: lines; files: paths; count: path: N.",
        {"enum": ["content", "files", "count"]},
    ] = "content",
    limit: Annotated[int, "Most lines (files, in other modes) shown.", {"minimum": 1}] = 100,
    no_ignore_vcs: Annotated[bool, "Search what .gitignore leaves out."] = False,
    no_ignore: Annotated[bool, "Search what any ignore file leaves out."] = False,
    *,
    call: Call,
) -> Answer:
    """Search file contents with a regular expression, newest files first.

    Each file is its path with its etag, then `12: matching line` and `11- context`, text exactly as in
    the file, to be quoted into Edit. Totals are true even when cut. Files that git ignores, hidden and
    binary files are left out. Long lines are clipped around the match. For file names use GlobTool.
    """
    from toolroll_grep.search import Query, answer

    return answer(
        Query(
            pattern,
            path=path,
            include=include,
            context=context,
            ignore_case=ignore_case,
            fixed_strings=fixed_strings,
            multiline=multiline,
            output_mode=output_mode,
            limit=limit,
            no_ignore_vcs=no_ignore_vcs,
            no_ignore=no_ignore,
        ),
        call,
    )
