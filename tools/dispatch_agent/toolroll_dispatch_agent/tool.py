"""The declaration of dispatch_agent: what the model sees; `task`, imported at the first call, does the work."""

from toolroll.call import Call
from toolroll.cli import count, duration, settings
from toolroll.limits import DEADLINE_S
from toolroll.schema import Annotated
from toolroll.tool import Answer, Mode, Option, tool

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

FIELDS = {
    "status": {
        "type": "string",
        "description": "done, no_model, model_failed, or the limit that stopped the work.",
    },
    "citations": {
        "type": "array",
        "description": "The places that the report names, looked up on the disk.",
        "items": {
            "type": "object",
            "properties": {
                "path": {"type": "string"},
                "line": {"type": "integer"},
                "last_line": {"type": "integer"},
                "verified": {"type": "boolean"},
                "fault": {"type": "string", "description": "Why it is not verified."},
            },
            "required": ["path", "line", "verified"],
        },
    },
    "turns": {"type": "integer", "description": "Answers of the model."},
    "calls": {"type": "integer", "description": "Calls of tools."},
    "tokens": {"type": "integer", "description": "Read and written, where the provider says."},
    "model": {"type": "string", "description": "The model that was asked."},
}


def temperature(text: str) -> float:
    """A number from 0 to 2."""
    number = float(text)
    if not 0 <= number <= 2:
        raise ValueError("from 0 to 2")
    return number


CHAT_OPTIONS = (
    Option("config", "Take options from a TOML file, under the same names.", settings, "FILE"),
    Option(
        "history", "Chat: go on with the conversation in a file, and keep it there.", str, "FILE"
    ),
    Option("system", "Chat: what the model is told first, or a file with it.", str, "TEXT|FILE"),
    Option(
        "temperature", "Chat: how freely the model may choose its words.", temperature, "NUMBER"
    ),
    Option("max-tokens", "Chat: the longest answer of the model.", count, "N"),
    Option("verbose", "Chat: show what the tools answer too.", None),
)

OPTIONS = (
    Option("agent-model", "The model to ask, as provider/model.", str, "NAME"),
    Option(
        "agent-base-url", "Another server to ask; --agent-model is a plain name there.", str, "URL"
    ),
    Option("agent-api-key-cmd", "A command that prints the key.", str, "COMMAND"),
    Option("max-turns", "Most answers of the model before the last one.", count, "N", 20),
    Option("max-calls", "Most calls of tools.", count, "N", 60),
    Option("max-seconds", "Most time for a task.", duration, "TIME", 120.0),
    Option("max-repeats", "The same call so often in a row ends the work.", count, "N", 3),
    Option("result-chars", "Longest result of a tool that the model sees.", count, "N", 8_000),
    Option("context-tokens", "What the model can read at once.", count, "N", 128_000),
    Option("timeout", "Most time for one call of a tool.", duration, "TIME", 30.0),
    Option(
        "deadline", "When its own tools answer with what they have.", duration, "TIME", DEADLINE_S
    ),
    *(
        Option(f"{name}-path", f"The program that serves {tool}.", str, "FILE")
        for tool, name in (
            ("View", "view"),
            ("GlobTool", "glob"),
            ("GrepTool", "grep"),
            ("LS", "ls"),
        )
    ),
    Option(
        "mcp-servers",
        "Further servers: a JSON file with mcpServers, or './A;./B -flag'.",
        str,
        "FILE",
    ),
    Option("allow-writes", "Offer the model their tools that are not read-only too.", None),
    Option("transcript", "Write what was said and done to a new file there.", str, "DIR"),
)


def interactive(call: Call, words: "Sequence[str]") -> int:
    """Chat until the user leaves."""
    from toolroll_dispatch_agent.chat import interactive

    return interactive(call, words)


def ask(call: Call, words: "Sequence[str]") -> int:
    """Answer one question."""
    from toolroll_dispatch_agent.conversation import ask

    return ask(call, words)


MODES = (
    Mode("interactive", "Chat in the terminal, with the same tools.", interactive),
    Mode("ask", "Answer the question on stdin, or behind it, in plain text.", ask),
)


def start(options: "dict[str, Any]") -> None:
    """Refuse what cannot work before anything is served.  Raises: ValueError."""
    import os

    from toolroll_dispatch_agent import commands

    commands.refuse_recursion(os.environ)
    commands.check_options(options)
    if options["agent-model"] or options["agent-base-url"]:
        from toolroll_dispatch_agent.providers import check

        check(options)
    if options["allow-writes"]:
        dispatch_agent.annotations.update(
            readOnlyHint=False, destructiveHint=True, idempotentHint=False
        )
        dispatch_agent.description = dispatch_agent.description.replace(
            "changes nothing", "may change what its further tools can"
        )


def close() -> None:
    """End the servers of all tasks."""
    import sys

    task = sys.modules.get("toolroll_dispatch_agent.task")
    for tools in list(getattr(task, "RUNNING", ())):  # absent while it is being imported
        tools.close()


@tool(
    "dispatch_agent",
    title="Delegate a question to a read-only agent",
    read_only=True,
    open_world=True,
    fields=FIELDS,
    options=(*OPTIONS, *CHAT_OPTIONS),
    modes=MODES,
    start=start,
    close=close,
)
def dispatch_agent(
    prompt: Annotated[
        str,
        "The whole task: what to find out, what is known, what the report must hold.",
        {"minLength": 1},
    ],
    path: Annotated[str, "Directory it may look into.", {"minLength": 1}] = ".",
    *,
    call: Call,
) -> Answer:
    """Give a question about files to an agent that searches and reads on its own and reports once.

    For open searches over many files; for a known file or text View and GrepTool are quicker. It
    sees only `prompt`, changes nothing and cannot ask back. Every path:line in its report is looked
    up and marked: ✓ is there, ✗ is not. Tasks may run side by side.
    """
    from toolroll_dispatch_agent.task import answer

    return answer(prompt, path, call)
