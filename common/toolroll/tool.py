"""A tool: one annotated function with its name, description, schemas and hints; knows no wire.

`Tool.call` is the whole way of a call through the house: arguments fitted, the function run, its
answer cleaned, cut to size and closed with a line of facts.
"""

from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import OUTPUT_CHARS, clip
from toolroll.schema import fit, input_schema, parameters, shown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from toolroll.call import Call

    Json = Any
    Function = Callable[..., "str | Answer"]


class Answer:
    """What a tool function returns when a plain text does not say it all.

    `facts` go into the last line, in brackets (etag, next offset, what was skipped).  `blocks` are
    further content blocks (images).  `data` are the fields of the structured form besides `result`, or
    makes them when they are wanted; with `results` in it, they stand instead of the text.
    """

    __slots__ = ("blocks", "data", "facts", "text")

    def __init__(
        self,
        text: str,
        facts: "Sequence[str]" = (),
        data: "Mapping[str, Json] | Callable[[], Mapping[str, Json]] | None" = None,
        blocks: "Sequence[dict[str, Json]]" = (),
    ) -> None:
        self.text = text
        self.facts = facts
        self.data = data or {}
        self.blocks = blocks


class Outcome:
    """A finished call: content blocks, the structured form, and the code when it failed.

    `structure` makes the structured form; few hosts ask for it, and cleaning it costs as much as all
    the rest of a small call.
    """

    __slots__ = ("_structure", "blocks", "code", "text")

    def __init__(
        self,
        text: str,
        structure: "Callable[[], dict[str, Json]]",
        blocks: "Sequence[dict[str, Json]]" = (),
        code: str = "",
    ) -> None:
        self.text = text
        self._structure = structure
        self.blocks = blocks
        self.code = code

    @classmethod
    def of_error(cls, problem: ToolError) -> "Outcome":
        """An error result; its text says by itself that it is one, since four hosts drop the flag."""
        message = str(problem)
        form = {"error": message, "code": problem.code}
        return cls(f"Error [{problem.code}]: {message}", lambda: form, code=problem.code)

    @property
    def structured(self) -> "dict[str, Json]":
        """The structured form: `result` or `results` and the tool's own fields, or `error` and `code`."""
        return self._structure()

    @property
    def failed(self) -> bool:
        """True for an error result."""
        return bool(self.code)

    @property
    def content(self) -> "list[dict[str, Json]]":
        """The content blocks of `tools/call`."""
        return [{"type": "text", "text": self.text}, *self.blocks]


class Option:
    """A command-line option of a server, also a variable: `--max-output` is TOOLROLL_MAX_OUTPUT too.

    `kind` is the function that reads its text and raises ValueError, or None for a switch.
    """

    __slots__ = ("default", "help", "kind", "many", "name", "value")

    def __init__(
        self,
        name: str,
        help: str,  # noqa: A002 - as in argparse
        kind: "Callable[[str], Json] | None" = str,
        value: str = "TEXT",
        default: "Json" = None,
        many: bool = False,
    ) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.value = value
        self.default = default
        self.many = many


class Mode:
    """Something that a tool's command does instead of serving, as `--name` says.

    `run` is given a call, whose options are the command line's, and the words behind the options; it
    gives the exit code.
    """

    __slots__ = ("option", "run")

    def __init__(self, name: str, about: str, run: "Callable[[Call, Sequence[str]], int]") -> None:
        self.option = Option(name, about, None)
        self.run = run


ALLOW_GIT = Option("allow-git", "Open .git too, whose hooks and configuration run code.", None)
"""For tools that write, together with `close_git`."""


def close_git(options: "dict[str, Json]") -> None:
    """Add `.git` to the closed places, unless it was opened; the `start` of tools that write."""
    if not options["allow-git"]:
        options["deny"] = [*options["deny"], ".git/**"]


class Tool:
    """A declared tool; see `tool` for what the attributes mean."""

    def __init__(  # noqa: PLR0913 - the one place where a declaration is unpacked
        self,
        function: "Function",
        *,
        name: str,
        title: str,
        read_only: bool,
        destructive: bool,
        idempotent: bool,
        open_world: bool,
        fields: "Mapping[str, Json]",
        aliases: "Mapping[str, str]",
        options: "Sequence[Option]",
        start: "Callable[[dict[str, Json]], None] | None",
        close: "Callable[[], None] | None",
        status: "Callable[[dict[str, Json]], str] | None",
        warm: "Sequence[str]",
        modes: "Sequence[Mode]",
    ) -> None:
        self.function = function
        self.name = name
        self.title = title
        self.read_only = read_only
        self.description = dedent(function.__doc__ or "")
        self.parameters = parameters(function, skip=("call",))
        self.aliases = aliases
        self.options = options
        self.fields = fields
        self.start = start
        self.close = close
        self.status = status
        self.warm = warm
        self.modes = modes
        self.annotations = {
            "title": title,
            "readOnlyHint": read_only,
            "destructiveHint": destructive,
            "idempotentHint": idempotent,
            "openWorldHint": open_world,
        }

    def definition(self, structured: bool = False) -> "dict[str, Json]":
        """The tool as tools/list shows it; with its output schema when answers are structured."""
        definition = {
            "name": self.name,
            "title": self.title,
            "description": self.description,
            "inputSchema": input_schema(self.parameters),
        }
        if structured:
            definition["outputSchema"] = self.output_schema()
        return {**definition, "annotations": self.annotations}

    def output_schema(self) -> "dict[str, Json]":
        """The JSON Schema of the structured form."""
        main = "results" if "results" in self.fields else "result"
        text = {"type": "string", "description": "The answer as text."}
        return {
            "type": "object",
            "properties": {**({} if main == "results" else {"result": text}), **self.fields},
            "required": [main],
        }

    def call(self, arguments: "Mapping[str, Json]", call: "Call") -> Outcome:
        """The outcome of one call; a failure the model can act on is an outcome, not an exception.

        Raises: whatever a bug in the tool raises.
        """
        try:
            values, ignored = fit(arguments, self.parameters, self.aliases, lenient=self.read_only)
            answer = self.function(**values, call=call)
        except ToolError as problem:
            return failure(problem, call)
        if isinstance(answer, str):
            answer = Answer(answer)
        if ignored:
            more = f" and {len(ignored) - 5} more" if len(ignored) > 5 else ""
            names = ", ".join(map(shown, ignored[:5]))
            answer.facts = [*answer.facts, f"Ignored: {names}{more}"]
        return _finished(answer, call)


def _finished(answer: Answer, call: "Call") -> Outcome:
    """The answer cleaned, cut to the output limit and closed with its facts."""
    most = call.options.get("max-output", OUTPUT_CHARS)
    cleaned = call.guard.clean(answer.text)
    text = clip(cleaned.text, most)
    clipped = text is not cleaned.text
    facts = [call.guard.clean(fact).text for fact in answer.facts]
    if cleaned.note:
        facts.append(cleaned.note)
    if facts:
        closing = f"[{' · '.join(facts)}]"
        text = f"{text}\n{closing}" if text else closing
    return Outcome(text, lambda: _structured(answer, text, clipped, call), answer.blocks)


def _structured(answer: Answer, text: str, clipped: bool, call: "Call") -> "dict[str, Json]":
    made = answer.data() if callable(answer.data) else answer.data
    data: dict[str, Json] = call.guard.clean_value(dict(made))
    if clipped:
        data["truncated"] = True
    return data if "results" in data else {"result": text, **data}


def failure(problem: ToolError, call: "Call") -> Outcome:
    """The error result of a call, cleaned and cut to size like any answer."""
    most = call.options.get("max-output", OUTPUT_CHARS)
    message = clip(call.guard.clean(str(problem)).text, most)
    return Outcome.of_error(ToolError(problem.code, message))


BUG = ToolError(
    ErrorCode.INTERNAL_ERROR,
    "the tool failed unexpectedly",
    "This is a bug in the server; its traceback is on the server's stderr",
)
"""What the host is told when a tool raised something it should not have."""

REPLACED = ToolError(
    ErrorCode.INTERNAL_ERROR,
    "the program's file was replaced or removed while it ran",
    "Restart the server",
)
"""The same, when that is why."""


def tool(  # noqa: PLR0913 - a declaration: all by keyword, all but the name optional
    name: str,
    *,
    title: str,
    read_only: bool = False,
    destructive: bool = False,
    idempotent: bool | None = None,
    open_world: bool = False,
    fields: "Mapping[str, Json] | None" = None,
    aliases: "Mapping[str, str] | None" = None,
    options: "Sequence[Option]" = (),
    start: "Callable[[dict[str, Json]], None] | None" = None,
    close: "Callable[[], None] | None" = None,
    status: "Callable[[dict[str, Json]], str] | None" = None,
    warm: "Sequence[str]" = (),
    modes: "Sequence[Mode]" = (),
) -> "Callable[[Function], Tool]":
    """Make a function with annotated parameters a tool.

    Its signature is the only declaration: schema, validation, `--help`, one-shot calls and the
    README's table come from it, and its docstring is what the model reads.  It takes a last parameter
    `call: Call`.  `fields` are JSON Schemas of the structured form besides `result`; `aliases` other
    names of parameters; `options` the server's own command line; `start` is given the options before
    anything is served and raises ValueError for bad ones; `close` ends what the tool started and must
    be safe to run in a signal handler; `status` is given the options too and says in a line of `--help`
    what is in force here.  `warm` names modules that the first call needs: they are imported
    once tools/list has been answered.  `modes` are what the command can do instead of serving.
    """

    def declare(function: "Function") -> Tool:
        return Tool(
            function,
            name=name,
            title=title,
            read_only=read_only,
            destructive=destructive,
            idempotent=read_only if idempotent is None else idempotent,
            open_world=open_world,
            fields=fields or {},
            aliases=aliases or {},
            options=options,
            start=start,
            close=close,
            status=status,
            warm=warm,
            modes=modes,
        )

    return declare


def dedent(docstring: str) -> str:
    """A docstring without the indentation of its source and without blank edges."""
    first, *rest = docstring.strip().split("\n")
    depths = [len(line) - len(line.lstrip()) for line in rest if line.strip()]
    depth = min(depths, default=0)
    return "\n".join([first, *(line[depth:].rstrip() for line in rest)])
