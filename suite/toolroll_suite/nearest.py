"""What a mistyped word was probably meant to be."""

from difflib import get_close_matches

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def nearest(word: str, known: "Iterable[str]") -> str:
    """`, did you mean 'x'?` for the nearest of the known words; all of them when none is near."""
    words = list(known)
    near = get_close_matches(word, words, 1)
    return f", did you mean '{near[0]}'?" if near else f"; there are {', '.join(words)}"
