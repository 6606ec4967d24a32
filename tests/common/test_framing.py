"""Bytes to frames: whatever comes, however it is cut."""

from collections.abc import Iterator
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import framing
from toolroll.framing import EDGE_BYTES, Frame, Framer, enframe

LIMIT_BYTES = 1_500
"""Instead of MESSAGE_BYTES here, so that oversize messages are short enough to be tried in numbers."""

Shown = tuple[bytes, bool, int, bytes]


@pytest.fixture(autouse=True, scope="module")
def _low_limit() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(framing, "MESSAGE_BYTES", LIMIT_BYTES)
        yield


def shown(frame: Frame) -> Shown:
    return frame.data, frame.boxed, frame.size, frame.tail


def frames(data: bytes, cuts: "list[int] | None" = None) -> list[Shown]:
    """What comes of `data` cut at these places and then ended."""
    framer = Framer()
    places = sorted({0, len(data), *(cut % (len(data) + 1) for cut in cuts or ())})
    pieces = [data[start:end] for start, end in pairwise(places)]
    found = [shown(frame) for piece in pieces for frame in framer.feed(piece)]
    return found + [shown(frame) for frame in framer.finish()]


def texts(data: bytes) -> list[bytes]:
    return [frame[0] for frame in frames(data)]


sizes = st.one_of(
    st.integers(0, 40), st.integers(LIMIT_BYTES - 3, LIMIT_BYTES + 3), st.integers(0, 5_000)
)
bodies = st.builds(
    lambda seed, size: (seed * size)[:size], st.binary(min_size=1, max_size=9), sizes
)
texts_of_lines = bodies.map(lambda body: body.replace(b"\n", b"."))
lines = st.builds(bytes.__add__, texts_of_lines, st.sampled_from([b"\n", b"\r\n"]))
headers = st.sampled_from(
    [
        b"Content-Length: %d\r\n\r\n",
        b"content-length:%d\n\n",
        b"CONTENT-LENGTH: %d \r\nX: y\r\n\r\n",
    ]
)
boxes = st.builds(lambda header, body: header % len(body) + body, headers, bodies)
broken = st.sampled_from(
    [
        b"Content-Length: 9\r\n",
        b"Content-Length: \n",
        b"Content-Length: 999999999999\r\n\r\n",
        b"\n",
        b"{",
        b"[\n",
    ]
)
streams = st.lists(st.one_of(lines, boxes, broken, st.binary(max_size=20)), max_size=8).map(
    b"".join
)
cut_places = st.lists(st.integers(0, 100_000), max_size=12)


@settings(deadline=None)
@given(streams, cut_places)
def test_the_same_bytes_cut_anywhere_give_the_same_frames(data: bytes, cuts: list[int]) -> None:
    assert frames(data, cuts) == frames(data)


@settings(deadline=None, max_examples=30)
@given(streams)
def test_bytes_that_come_one_by_one_give_the_same_frames(data: bytes) -> None:
    assert frames(data, [*range(len(data))]) == frames(data)


@settings(deadline=None)
@given(streams, cut_places)
def test_a_framer_never_holds_much_more_than_one_message(data: bytes, cuts: list[int]) -> None:
    framer = Framer()
    for piece in (data[at : at + 100] for at in range(0, len(data), 100)):
        for _ in framer.feed(piece):
            pass
        assert len(framer._buffer) <= LIMIT_BYTES + 100


@settings(deadline=None)
@given(st.lists(st.tuples(st.text(min_size=1), st.booleans()), max_size=8), cut_places)
def test_what_is_enframed_comes_back(messages: list[tuple[str, bool]], cuts: list[int]) -> None:
    data = [b"{%s}" % text.encode("unicode_escape") for text, _ in messages]
    stream = b"".join(enframe(text, boxed) for text, (_, boxed) in zip(data, messages, strict=True))
    found = [(text, boxed) for text, boxed, _, _ in frames(stream, cuts)]
    assert found == [(text, boxed) for text, (_, boxed) in zip(data, messages, strict=True)]


@pytest.mark.parametrize("boxed", [True, False])
@pytest.mark.parametrize("size", [LIMIT_BYTES + 1, LIMIT_BYTES + EDGE_BYTES, 10 * LIMIT_BYTES])
def test_an_oversize_message_is_drained_to_its_edges(size: int, boxed: bool) -> None:
    body = bytes(65 + place % 26 for place in range(size))
    found = frames(enframe(body, boxed) + b"{}\n", [size // 3, size // 2])
    assert found[0] == (body[:EDGE_BYTES], boxed, size, body[-EDGE_BYTES:])
    assert found[1:] == [(b"{}", False, 2, b"")]


def test_a_message_of_just_the_limit_is_whole() -> None:
    body = b"x" * LIMIT_BYTES
    for boxed in (True, False):
        assert frames(enframe(body, boxed)) == [(body, boxed, LIMIT_BYTES, b"")]


def test_lines_end_with_lf_or_crlf_and_blank_ones_are_passed_over() -> None:
    assert texts(b"a\n\r\n \t\nb\r\n\nc") == [b"a", b"b", b"c"]


def test_only_lf_ends_a_line() -> None:
    line = "a\u2028b\u2029c\x85d\x0be\x0cf\rg".encode()
    assert texts(line + b"\n") == [line]


def test_a_header_is_taken_in_any_case_with_others_around_it() -> None:
    data = b"cOnTeNt-lEnGtH:2\r\nContent-Type: x\r\n\r\n{}" + b"Content-Length: 3\n\n[1]"
    assert frames(data) == [(b"{}", True, 2, b""), (b"[1]", True, 3, b"")]


def test_a_line_behind_a_header_without_body_is_a_line() -> None:
    assert frames(b'Content-Length: 5\n{"a":1}\n') == [(b'{"a":1}', False, 7, b"")]


def test_a_header_without_a_number_is_a_line() -> None:
    assert texts(b"Content-Length: five\n") == [b"Content-Length: five"]


def test_half_a_block_is_dropped_and_half_a_line_kept() -> None:
    assert frames(b"Content-Length: 5\r\n\r\n{}") == []
    assert texts(b'{"a"') == [b'{"a"']
