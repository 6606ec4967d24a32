"""Ceilings, and what a text that passes one looks like."""

from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.limits import clip


@settings(deadline=None)
@given(st.text(alphabet="ab\n", max_size=400), st.integers(1, 300))
def test_a_text_within_its_limit_stays_and_a_longer_one_keeps_head_and_tail(
    text: str, most: int
) -> None:
    clipped = clip(text, most)
    if len(text) <= most:
        assert clipped is text
        return
    head, _, rest = clipped.partition("[truncated: ")
    _, _, tail = rest.partition("left out here.]\n")
    assert text.startswith(head.rstrip())
    assert text.endswith(tail)
    assert len(head.rstrip()) + len(tail) <= most


@settings(deadline=None)
@given(st.text(alphabet="ab\n", min_size=50, max_size=400), st.integers(4, 40))
def test_the_marker_counts_what_is_missing(text: str, most: int) -> None:
    clipped = clip(text, most)
    head, _, rest = clipped.partition("[truncated: ")
    number, _, behind = rest.partition(" characters")
    tail = behind.partition("left out here.]\n")[2]
    blanks = len(text) - len(tail) - int(number) - len(head.rstrip())
    assert text[len(head.rstrip()) :][:blanks].strip() == ""


def test_a_cut_falls_between_lines_where_it_can() -> None:
    text = "\n".join(f"line {number}" for number in range(1_000))
    clipped = clip(text, 1_000, "Use offset.").split("\n")
    [at] = [place for place, line in enumerate(clipped) if line.startswith("[truncated: ")]
    assert clipped[at].endswith("lines, left out here. Use offset.]")
    kept = [*clipped[:at], *clipped[at + 1 :]]
    assert {*kept} <= {*text.split("\n")}
