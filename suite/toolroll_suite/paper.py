"""What is printed for people: in colour on a terminal that wants it, plain elsewhere."""

import os
import shutil
import sys
import textwrap
from io import TextIOWrapper

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    Json = Any

ANSWER_LINES = 14
CODES = {"title": "1;36", "call": "1", "fine": "32", "meant": "33", "bad": "1;31", "dim": "2"}


class Paper:
    """Standard output, line by line."""

    def __init__(self) -> None:
        if isinstance(sys.stdout, TextIOWrapper):  # an ASCII locale shows question marks
            sys.stdout.reconfigure(errors="replace")
        self.terminal = sys.stdout.isatty()
        self.columns = min(shutil.get_terminal_size((100, 24)).columns, 120)
        plain = os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb"
        self._colour = self.terminal and not plain

    def line(self, text: str = "", style: str = "", indent: int = 0) -> None:
        """One line, cut at the edge."""
        room = self.columns - indent
        self._print(text if len(text) <= room else text[: room - 1] + "…", style, indent)

    def block(self, text: str, style: str = "", indent: int = 0) -> None:
        """All of a text: folded on a terminal, as it is elsewhere."""
        for line in text.split("\n"):
            for row in self.rows(line, self.columns - indent) if self.terminal else [line]:
                self._print(row, style, indent)

    def _print(self, text: str, style: str, indent: int) -> None:
        if self._colour and style:
            text = f"\033[{CODES[style]}m{text}\033[0m"
        print(" " * indent + text, flush=True)  # noqa: T201 - this is where printing is done

    def answer(self, blocks: "Sequence[dict[str, Json]]") -> None:
        """The blocks of a result: the first lines and the last one of texts, others by their kind."""
        texts = [block.get("text", f"({block['type']})") for block in blocks]
        room = self.columns - 6
        lines = [
            row for text in texts for line in text.split("\n") for row in self.rows(line, room)
        ]
        missing = len(lines) - ANSWER_LINES
        if missing > 0:
            lines[ANSWER_LINES - 2 : -1] = [f"… {missing + 1} more lines"]
        for line in lines:
            self.line(f"│ {line}", indent=4)

    def rows(self, line: str, room: int) -> list[str]:
        """A line folded into rows that have room."""
        line = line.expandtabs(4).rstrip()
        return [line] if len(line) <= room else textwrap.wrap(line, room, replace_whitespace=False)
