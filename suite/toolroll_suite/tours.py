"""What the demo does with each tool: the steps, and what must come of them; makes no call.

All paths are in a checkout and in what stands for one where there is none: README.md, LICENSE and the
shared package in common/.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class Step:
    """One call: why it is made, its arguments, and what must be in its answer.

    With `fails` the answer is to be the error of that code.
    """

    def __init__(
        self, why: str, arguments: "dict[str, Any]", shows: str = "", fails: str = ""
    ) -> None:
        self.why = why
        self.arguments = arguments
        self.shows = shows
        self.fails = fails


class Tour:
    """The steps of one tool: first in the newest revision, then some after a handshake.

    With `copies` the tool works on copies of these files in a folder of its own.
    """

    def __init__(
        self, steps: "Sequence[Step]", older: "Sequence[Step]", copies: "Sequence[str]" = ()
    ) -> None:
        self.steps = steps
        self.older = older
        self.copies = copies


TOURS = {
    "ls": Tour(
        [
            Step(
                "the whole tree two levels deep, without caches and dot files",
                {"path": ".", "depth": 2, "ignore": ["__pycache__", ".*"]},
                shows="common/",
            ),
            Step("a file is no directory", {"path": "LICENSE"}, fails="NOT_A_DIRECTORY"),
        ],
        [
            Step(
                "a glob given as plain text",
                {"path": "common", "ignore": "*.md"},
                shows="toolroll/",
            )
        ],
    ),
    "view": Tour(
        [
            Step(
                "the first lines of a page",
                {"file_path": "README.md", "limit": 8},
                shows="toolroll",
            ),
            Step(
                "one function of a file",
                {"file_path": "common/toolroll/framing.py", "find_section": "enframe"},
                shows="def enframe",
            ),
            Step(
                "a name that is nearly right",
                {"file_path": "common/toolroll/framings.py"},
                shows="framing.py",
                fails="NOT_FOUND",
            ),
        ],
        [
            Step(
                "the last lines, with what the file is",
                {"file_path": "LICENSE", "offset": -3, "include_metadata": True},
                shows="SOFTWARE",
            )
        ],
    ),
    "edit": Tour(
        [
            Step(
                "one exact text, on a copy of LICENSE",
                {
                    "file_path": "LICENSE",
                    "old_string": "MIT License",
                    "new_string": "The MIT License",
                },
                shows="+The MIT License",
            ),
            Step(
                "a text that occurs more than once",
                {"file_path": "LICENSE", "old_string": "Software", "new_string": "software"},
                fails="MULTIPLE_MATCHES",
            ),
        ],
        [
            Step(
                "an empty old_string creates a file, folders too",
                {"file_path": "notes/new.txt", "old_string": "", "new_string": "hello\n"},
                shows="notes/new.txt",
            )
        ],
        copies=["LICENSE"],
    ),
    "replace": Tour(
        [
            Step(
                "a new file, folders too",
                {"file_path": "notes/new.txt", "content": "hello\n"},
                shows="notes/new.txt",
            ),
            Step(
                "only if nobody has changed it since: another etag",
                {"file_path": "LICENSE", "content": "None.\n", "if_match": "000000000000"},
                fails="CONFLICT",
            ),
        ],
        [
            Step(
                "the same once more writes nothing",
                {"file_path": "notes/new.txt", "content": "hello\n"},
                shows="nchanged",
            )
        ],
        copies=["LICENSE"],
    ),
    "glob": Tour(
        [
            Step(
                "the newest Python files of the shared package",
                {"pattern": "common/**/*.py", "limit": 5},
                shows="of",
            ),
            Step(
                "nothing there, and why",
                {"pattern": "**/*.rs"},
                shows="No files",
            ),
        ],
        [Step("two kinds at once", {"pattern": "*.{md,toml}"}, shows="README.md")],
    ),
    "grep": Tour(
        [
            Step(
                "where framing is decided, with a line of context",
                {"pattern": r"def enframe\(", "context": 1, "include": "*.py"},
                shows="common/toolroll/framing.py",
            ),
            Step(
                "how often, file by file",
                {"pattern": "ToolError", "path": "common", "output_mode": "count", "limit": 5},
                shows="common/",
            ),
            Step(
                "nothing to the letter, something in another case",
                {"pattern": "TOOLERROR", "path": "common"},
                shows="case",
            ),
        ],
        [
            Step(
                "a pattern that does not close",
                {"pattern": "enframe("},
                fails="INVALID_PARAMS",
            )
        ],
    ),
    "bash": Tour(
        [
            Step("a variable and a directory", {"command": "greeting=hello; cd common; pwd"}),
            Step(
                "both are still there",
                {"command": 'echo "$greeting from $(basename $PWD)"'},
                shows="hello from common",
            ),
            Step(
                "and in the third call too",
                {"command": "greet() { echo $greeting $1; }; greet again"},
                shows="hello again",
            ),
            Step(
                "what was printed before a timeout is not lost",
                {"command": "echo first; sleep 30; echo never", "timeout": 300},
                shows="first",
                fails="TIMEOUT",
            ),
            Step(
                "a program that policy keeps out",
                {"command": "curl https://example.org"},
                fails="BANNED_COMMAND",
            ),
            Step(
                "a background job", {"command": "echo in the log", "background": True}, shows="pid"
            ),
        ],
        [
            Step(
                "a command that fails is no error of the tool",
                {"command": "ls /nowhere"},
                shows="exit 2",
            )
        ],
    ),
    "dispatch-agent": Tour(
        [
            Step(
                "no model is configured: what the task names is looked up all the same",
                {
                    "prompt": "Where is `enframe` defined, and which modules call it?",
                    "path": "common",
                },
                shows="toolroll/framing.py:",
            ),
            Step(
                "a file is no directory",
                {"prompt": "x", "path": "LICENSE"},
                fails="NOT_A_DIRECTORY",
            ),
        ],
        [
            Step(
                "how to have it ask a model",
                {"prompt": "What is in LICENSE?"},
                shows="TOOLROLL_AGENT_MODEL=provider/model",
            )
        ],
    ),
}
