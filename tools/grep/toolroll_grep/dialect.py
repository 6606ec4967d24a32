"""Whose expressions are searched for: those of `regex`, or of Python's own `re` where that is not to be had.

What `re` would read otherwise is refused then; it has no time limit, so a pattern that runs for ever
costs a searching process.
"""

from toolroll import carried

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

library: "Any"
try:
    import regex as library

    INSTEAD = ""
except ImportError as missing:
    import re as library

    INSTEAD = f"Python's re searches here, without regex: {'; '.join(carried.problems) or missing}"


def escaped(text: str) -> str:
    """The expression that matches `text` itself."""
    if INSTEAD:
        return str(library.escape(text))
    return str(library.escape(text, special_only=True, literal_spaces=True))


def limit(seconds: float) -> "dict[str, Any]":
    """The arguments that make a search raise TimeoutError after that time, if there are such."""
    return {} if INSTEAD else {"timeout": seconds}
