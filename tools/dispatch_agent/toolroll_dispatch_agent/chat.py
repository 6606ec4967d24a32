"""A chat in the terminal: questions typed, answers as Markdown while they come, a few commands.

Knows the conversation and the two libraries of the terminal, and nothing of models and tools.
"""

import signal
import sys
from concurrent.futures import ThreadPoolExecutor, wait
from importlib.util import find_spec

from toolroll.cli import UsageError
from toolroll.errors import ToolError
from toolroll.limits import clip
from toolroll_dispatch_agent.conversation import Conversation, calls_of
from toolroll_dispatch_agent.stops import Finished

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from prompt_toolkit import PromptSession
    from prompt_toolkit.key_binding import KeyBindings
    from rich.live import Live

    from toolroll.call import Call

    Json = Any

CALL_CHARS = 200
RESULT_CHARS = 600
"""What is shown of a call, and of its result with --verbose."""

PER_SECOND = 10
"""How often the growing text is drawn again."""

HELP = """\
/help   this
/tools  the tools of the model
/clear  forget what was said
/exit   leave, as Ctrl-D does

Enter sends; Alt-Enter, Esc Enter or a backslash before Enter begins a new line; the arrow keys bring
earlier questions back. Ctrl-C ends a running answer, and the question with it."""


def interactive(call: "Call", words: "Sequence[str]") -> int:
    """The exit code of a chat.

    Raises: UsageError.
    """
    if words:
        raise UsageError(f"unexpected argument '{words[0]}'")
    missing = [name for name in ("prompt_toolkit", "rich") if find_spec(name) is None]
    if missing:
        what = " and ".join(missing)
        raise UsageError(f"--interactive needs {what}: pip install 'toolroll[chat]'")
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise UsageError("--interactive needs a terminal; --ask takes a question from a pipe")
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    screen = Screen(bool(call.options.get("verbose")))
    with Conversation(
        call, on_text=screen.text, on_message=screen.message, on_retry=screen.note
    ) as conversation:
        screen.guard = conversation.guard
        Chat(conversation, screen).run()
    return 0


class Chat:
    """Reads what the user types until they leave."""

    def __init__(self, conversation: Conversation, screen: "Screen") -> None:
        self._conversation = conversation
        self._screen = screen
        self._commands = {"/help": self._help, "/tools": self._tools, "/clear": self._clear}

    def run(self) -> None:
        """Return when the user leaves."""
        session = _session(self._conversation.messages)
        known = len([one for one in self._conversation.messages if one["role"] == "user"])
        more = f", {known} earlier questions" if known else ""
        self._screen.note(f"{self._conversation.label}{more}. /help for help, Ctrl-D to leave.")
        while True:
            try:
                text = session.prompt("> ").strip()
            except KeyboardInterrupt:
                continue
            except EOFError:
                return
            if text in ("/exit", "/quit"):
                return
            if text:
                self._take(text)

    def _take(self, text: str) -> None:
        command = self._commands.get(text)
        try:
            if command is not None:
                command()
            elif text.startswith("/") and " " not in text and "/" not in text[1:]:
                self._screen.note(f"There is no command {text}.\n{HELP}")
            else:
                self._answer(text)
        except ToolError as problem:
            self._screen.note(f"Error: {problem}")

    def _answer(self, question: str) -> None:
        """Show the answer; Ctrl-C ends it.  Raises: ToolError."""
        with ThreadPoolExecutor(1) as pool:
            future = pool.submit(self._conversation.answer, question)
            while not future.done():
                try:
                    wait([future], 0.1)
                except KeyboardInterrupt:
                    self._conversation.stop()
        self._screen.end()
        answered = future.result()
        if answered is None:
            self._screen.note("Stopped; the question is forgotten.")
            return
        if not isinstance(answered.stop, Finished):
            self._screen.note(str(answered.stop))
        self._screen.note(f"[{answered.facts}]")

    def _help(self) -> None:
        self._screen.note(HELP)

    def _tools(self) -> None:
        for one in self._conversation.tools.schemas():
            about = one["function"]["description"].strip().split("\n")[0]
            self._screen.note(f"{one['function']['name']}  {about}")
        for problem in self._conversation.tools.problems:
            self._screen.note(f"Not available: {problem}")

    def _clear(self) -> None:
        self._conversation.clear()
        self._screen.note("All is forgotten.")


class Screen:
    """The terminal below the question: the text that grows, calls, remarks."""

    def __init__(self, verbose: bool) -> None:
        from rich.console import Console

        self.guard: Json = None
        self._console = Console(highlight=False)
        self._verbose = verbose
        self._rest = ""
        self._live: Live | None = None

    def text(self, piece: str) -> None:
        """Add a piece of the model's text: whole blocks are printed for good, the last one is drawn."""
        from rich.live import Live

        done, self._rest = blocks(self._rest + piece)
        if self._live is None:
            self._live = Live(console=self._console, refresh_per_second=PER_SECOND, transient=True)
            self._live.start()
        if done.strip():
            self._live.update("", refresh=True)  # what was drawn of it must not be left standing
            self._print(done)
        self._live.update(self._markdown(self._rest))

    def end(self) -> None:
        """Print what is left of the text."""
        live, self._live = self._live, None
        if live is not None:
            live.stop()
        rest, self._rest = self._rest, ""
        if rest.strip():
            self._print(rest)

    def message(self, message: "dict[str, Json]") -> None:
        """Show the calls in a message, and their results when they are wanted."""
        self.end()
        for call in calls_of(message):
            self.note(f"• {clip(call, CALL_CHARS)}")
        if self._verbose and message["role"] == "tool":
            self.note(clip(message["content"], RESULT_CHARS))

    def note(self, text: str) -> None:
        """Show a remark."""
        self._console.print(self._clean(text), style="dim", markup=False, soft_wrap=True)

    def _print(self, text: str) -> None:
        self._console.print(self._markdown(text))
        self._console.print()

    def _markdown(self, text: str) -> "Json":
        from rich.markdown import Markdown

        return Markdown(self._clean(text))

    def _clean(self, text: str) -> str:
        """Without what would act on the terminal."""
        return self.guard.clean(text).text if self.guard is not None else text


def blocks(text: str) -> tuple[str, str]:
    """The whole blocks of Markdown that a text begins with, and the rest, which may still grow."""
    fenced = False
    end = at = 0
    for line in text.splitlines(keepends=True):
        at += len(line)
        if line.lstrip().startswith(("```", "~~~")):
            fenced = not fenced
        if not fenced and line == "\n":
            end = at
    return text[:end], text[end:]


def _session(messages: "list[dict[str, Json]]") -> "PromptSession[str]":
    """What reads questions; those of the conversation so far can be brought back."""
    from prompt_toolkit import PromptSession
    from prompt_toolkit.history import InMemoryHistory

    history = InMemoryHistory([one["content"] for one in messages if one["role"] == "user"])
    keys = _keys()
    return PromptSession(
        history=history, multiline=True, key_bindings=keys, prompt_continuation="  "
    )


def _keys() -> "KeyBindings":
    """Enter sends, unless a backslash stands before it; Esc Enter begins a new line."""
    from prompt_toolkit.key_binding import KeyBindings

    keys = KeyBindings()

    @keys.add("enter")
    def _(event: "Json") -> None:
        buffer = event.current_buffer
        if buffer.document.text_before_cursor.endswith("\\"):
            buffer.delete_before_cursor()
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    @keys.add("escape", "enter")
    def _(event: "Json") -> None:
        event.current_buffer.insert_text("\n")

    return keys
