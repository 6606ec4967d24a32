"""Bytes and text: encodings, line ends, offsets, etags, whole reads."""

import codecs
import hashlib
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll import textfile
from toolroll.errors import ErrorCode, ToolError
from toolroll.limits import ETAG_WHOLE_BYTES
from toolroll.textfile import LATIN1, UTF8, UTF8_BOM, UTF16_BE, UTF16_LE, Encoding

BOMS = (b"", codecs.BOM_UTF8, codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PIECES = st.one_of(
    st.binary(max_size=6),
    st.text(max_size=6).map(lambda text: text.encode("utf-8", "surrogatepass")),
    st.text(max_size=6).map(lambda text: text.encode("utf-16-le", "surrogatepass")),
    st.sampled_from([b"\r\n", b"\n", b"\xff", b"\xc3", b"\xa9", b"\xf0\x9f\x98", b"\0\xd8"]),
)
FILES = st.builds(lambda bom, parts: bom + b"".join(parts), st.sampled_from(BOMS), st.lists(PIECES))
TEXTS = FILES.filter(lambda data: textfile.detect(data) is not None)


def encoding_of(data: bytes) -> Encoding:
    encoding = textfile.detect(data)
    assert encoding is not None
    return encoding


# --- encodings


@settings(deadline=None)
@given(TEXTS)
def test_text_becomes_the_same_bytes_again(data: bytes) -> None:
    encoding = encoding_of(data)
    again = encoding.bom + encoding.encode(encoding.decode(data)) + encoding.remainder(data)
    assert again == data


@settings(deadline=None)
@given(TEXTS, st.data())
def test_an_edit_and_its_inverse_restore_every_byte(data: bytes, draw: st.DataObject) -> None:
    encoding = encoding_of(data)
    text = encoding.decode(data)
    start = draw.draw(st.integers(0, len(text)))
    end = draw.draw(st.integers(start, len(text)))
    begin = len(encoding.bom)
    first, last = textfile.byte_offsets(text, (start, end), encoding, begin)
    new = draw.draw(st.text(st.characters(codec="ascii", exclude_characters="\0"), min_size=1))
    edited = data[:first] + textfile.encode_new(new, encoding, "new_string") + data[last:]
    shown = encoding.decode(edited)
    assert shown == text[:start] + new + text[end:]
    first, last = textfile.byte_offsets(shown, (start, start + len(new)), encoding, begin)
    assert edited[:first] + encoding.encode(text[start:end]) + edited[last:] == data


@settings(deadline=None)
@given(TEXTS)
def test_every_position_has_the_offset_of_the_bytes_before_it(data: bytes) -> None:
    encoding = encoding_of(data)
    text = encoding.decode(data)
    offsets = textfile.byte_offsets(text, range(len(text) + 1), encoding, len(encoding.bom))
    for position, offset in enumerate(offsets):
        assert data[:offset] == encoding.bom + encoding.encode(text[:position])
    assert offsets[-1] == len(data) - len(encoding.remainder(data))


@pytest.mark.parametrize(
    ("data", "encoding"),
    [
        (b"", UTF8),
        (b"plain", UTF8),
        ("größe".encode(), UTF8),
        ("größe".encode() + b" \xff\xfe stray", UTF8),
        (b"\xff stray, then " + "😀".encode(), UTF8),
        ("größe".encode("latin-1"), LATIN1),
        (b"\xed\xa0\x80 a surrogate is no character", LATIN1),
        (b"\xc0\xaf overlong", LATIN1),
        (b"cut at the end \xc3", LATIN1),
        (codecs.BOM_UTF8 + b"plain", UTF8_BOM),
        (codecs.BOM_UTF8 + b"\xff", UTF8_BOM),
        (codecs.BOM_UTF16_LE + "größe".encode("utf-16-le"), UTF16_LE),
        (codecs.BOM_UTF16_BE + "größe".encode("utf-16-be"), UTF16_BE),
        (codecs.BOM_UTF16_LE + "a".encode("utf-16-le") + b"x", UTF16_LE),
        (codecs.BOM_UTF16_LE + b"\x00\xd8", UTF16_LE),
        (codecs.BOM_UTF16_LE + b"a\0\0a", UTF16_LE),
        (codecs.BOM_UTF16_LE + b"a\0\0\0", None),
        (codecs.BOM_UTF32_LE + "a".encode("utf-32-le"), None),
        (b"text and \0", None),
        (codecs.BOM_UTF8 + b"\0", None),
    ],
)
def test_an_encoding_is_recognised(data: bytes, encoding: Encoding | None) -> None:
    assert textfile.detect(data) is encoding


@settings(deadline=None)
@given(FILES, st.integers(4, 9))
def test_detection_in_blocks_sees_what_one_decode_sees(data: bytes, block: int) -> None:
    text = data.decode("utf-8", "surrogateescape")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK_BYTES", block)
        found = textfile.detect(data)
    if b"\0" not in data and not data.startswith(BOMS[1:]):
        assert (found is UTF8) == (data.isascii() or len(text) < len(data))


@settings(deadline=None)
@given(st.text(st.characters(exclude_characters="\0\ufeff", codec="utf-8")), st.integers(4, 9))
def test_the_head_of_a_utf8_file_is_utf8_wherever_it_is_cut(text: str, block: int) -> None:
    data = text.encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(textfile, "BLOCK_BYTES", block)
        for end in range(len(data) + 1):
            assert textfile.detect(data[:end], whole=False) is UTF8


def test_a_stray_byte_keeps_its_place_in_the_text() -> None:
    assert UTF8.decode("é".encode() + b"\xff") == "é\udcff"


@pytest.mark.parametrize(
    ("text", "encoding", "named"),
    [
        ("ok\nprice: 5 €", LATIN1, "line 2 of content has '€' (U+20AC) EURO SIGN, which Latin-1"),
        ("a\u200b", LATIN1, "has U+200B ZERO WIDTH SPACE, which Latin-1"),
        ("a\ud800", UTF8, "has U+D800 half of a surrogate pair, which UTF-8 cannot hold"),
        ("a\udcff", UTF8_BOM, "has U+DCFF half of a surrogate pair, which UTF-8 with BOM"),
        ("a\udcff", UTF16_LE, "has U+DCFF half of a surrogate pair, which UTF-16 LE"),
        ("a\0", UTF16_BE, "has U+0000 NUL, which a text file cannot hold"),
    ],
)
def test_a_character_the_file_cannot_hold_is_named(
    text: str, encoding: Encoding, named: str
) -> None:
    with pytest.raises(ToolError) as caught:
        textfile.encode_new(text, encoding, "content")
    assert caught.value.code == ErrorCode.INVALID_PARAMS
    assert named in caught.value.message


def test_new_text_takes_the_encoding_of_the_file() -> None:
    assert textfile.encode_new("é😀", UTF8_BOM, "content") == "é😀".encode()
    assert textfile.encode_new("é", LATIN1, "content") == b"\xe9"
    assert textfile.encode_new("é😀", UTF16_BE, "content") == "é😀".encode("utf-16-be")


# --- lines


@pytest.mark.parametrize(
    ("text", "ends"),
    [
        ("", ""),
        ("one line", ""),
        ("a\nb", "\n"),
        ("a\r\nb\r\n", "\r\n"),
        ("a\r\nb\n", "mixed"),
        ("a\rb", "\r"),
        ("a\rb\n", "\n"),
    ],
)
def test_the_line_ends_of_a_text_are_named(text: str, ends: str) -> None:
    assert textfile.line_ends(text) == ends


@pytest.mark.parametrize(
    ("text", "position", "end"),
    [
        ("a\r\nb\nc", 0, "\r\n"),
        ("a\r\nb\nc", 2, "\r\n"),
        ("a\r\nb\nc", 3, "\n"),
        ("a\nb\r\nc", 6, "\r\n"),
        ("a", 0, "\n"),
        ("", 0, "\n"),
        ("\n", 0, "\n"),
        ("a\rb", 0, "\n"),
    ],
)
def test_a_place_has_the_end_of_its_line_or_of_the_one_before(
    text: str, position: int, end: str
) -> None:
    assert textfile.line_end_at(text, position) == end


def test_text_gets_one_line_end_throughout() -> None:
    assert textfile.with_line_end("a\nb\r\nc", "\r\n") == "a\r\nb\r\nc"
    assert textfile.with_line_end("a\nb\r\nc\r", "\n") == "a\nb\nc\r"


def test_only_a_line_feed_ends_a_line() -> None:
    text = "a\u2028b\fc\x85d\re\nf"
    assert textfile.line_count(text) == 2
    assert textfile.line_count(text + "\n") == 2
    assert textfile.line_count("") == 0
    assert textfile.line_number(text, text.index("e")) == 1
    assert textfile.line_number(text, text.index("f")) == 2


# --- etags


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "file"
    path.write_bytes(b"hello\n")
    return path


@pytest.fixture
def descriptor(path: Path) -> Iterator[int]:
    descriptor = os.open(path, os.O_RDWR)
    yield descriptor
    os.close(descriptor)


def test_an_etag_is_blake2b_of_the_bytes(descriptor: int) -> None:
    status = os.fstat(descriptor)
    expected = hashlib.blake2b(b"hello\n", digest_size=6).hexdigest()
    assert textfile.etag(status, b"hello\n") == expected
    assert textfile.etag(status, descriptor) == expected


def test_the_etag_of_a_large_file_is_of_its_status(descriptor: int) -> None:
    os.ftruncate(descriptor, ETAG_WHOLE_BYTES)
    assert not textfile.etag(os.fstat(descriptor), descriptor).startswith("~")
    os.ftruncate(descriptor, ETAG_WHOLE_BYTES + 1)
    status = os.fstat(descriptor)
    tag = textfile.etag(status, descriptor)
    assert tag[0] == "~"
    assert len(tag) == 13
    os.utime(descriptor, ns=(status.st_atime_ns, status.st_mtime_ns + 1))
    assert textfile.etag(os.fstat(descriptor), descriptor) != tag


@pytest.mark.parametrize("size", [6, ETAG_WHOLE_BYTES + 1])
def test_both_forms_of_an_etag_match_a_file_of_any_size(descriptor: int, size: int) -> None:
    os.ftruncate(descriptor, size)
    status = os.fstat(descriptor)
    data = os.pread(descriptor, size, 0)
    for tag in (textfile._status_etag(status), textfile._content_etag(data)):
        for form in (tag, f' "{tag.upper()}" '):
            assert textfile.matches(form, status, descriptor)
            assert textfile.matches(form, status, data)
    os.pwrite(descriptor, b"J", 0)
    os.utime(descriptor, ns=(0, 0))
    assert not textfile.matches(textfile._status_etag(status), os.fstat(descriptor), descriptor)
    assert not textfile.matches(textfile._content_etag(data), os.fstat(descriptor), descriptor)


@pytest.mark.parametrize("text", ["", "~", "absent", "12345678901", "~12345678901g", "W/123456"])
def test_what_has_the_form_of_no_etag_is_refused(descriptor: int, text: str) -> None:
    with pytest.raises(ToolError) as caught:
        textfile.matches(text, os.fstat(descriptor), descriptor)
    assert caught.value.code == ErrorCode.INVALID_PARAMS


# --- reading


@pytest.mark.parametrize("size", [0, 1, textfile.BLOCK_BYTES, 3 * textfile.BLOCK_BYTES + 1])
def test_a_file_is_read_whole_wherever_its_descriptor_stands(descriptor: int, size: int) -> None:
    content = os.urandom(size)
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, content, 0)
    os.lseek(descriptor, 3, os.SEEK_SET)
    data, status = textfile.read(descriptor, "file")
    assert data == content
    assert status.st_size == size


def test_a_file_above_the_limit_is_refused_unread(descriptor: int) -> None:
    assert textfile.read(descriptor, "file", most=6)[0] == b"hello\n"
    with pytest.raises(ToolError) as caught:
        textfile.read(descriptor, "file", most=5)
    assert caught.value.code == ErrorCode.TOO_LARGE
    assert "'file' has 6 bytes" in caught.value.message


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs /proc")
def test_a_file_that_tells_no_size_is_read_whole() -> None:
    descriptor = os.open("/proc/self/status", os.O_RDONLY)
    try:
        assert b"Pid:" in textfile.read(descriptor, "status")[0]
        with pytest.raises(ToolError) as caught:
            textfile.read(descriptor, "status", most=5)
        assert caught.value.code == ErrorCode.TOO_LARGE
    finally:
        os.close(descriptor)


def test_a_fifo_is_not_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    descriptor = os.open(tmp_path / "fifo", os.O_RDONLY | os.O_NONBLOCK)
    try:
        with pytest.raises(ToolError) as caught:
            textfile.read(descriptor, "fifo")
        assert caught.value.code == ErrorCode.NOT_A_FILE
    finally:
        os.close(descriptor)


class Meddler:
    """Stands in for os.pread and truncates the file to the next of `sizes` before it reads."""

    def __init__(self, descriptor: int, sizes: list[int]) -> None:
        self.descriptor = descriptor
        self.sizes = sizes
        self.pread = os.pread

    def __call__(self, descriptor: int, count: int, offset: int) -> bytes:
        if self.sizes:
            os.ftruncate(self.descriptor, self.sizes.pop())
        return self.pread(descriptor, count, offset)


@pytest.mark.parametrize("size", [2, 200_000])
def test_a_file_that_changes_while_it_is_read_is_read_again(
    descriptor: int, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    monkeypatch.setattr(os, "pread", Meddler(descriptor, [size]))
    data, status = textfile.read(descriptor, "file")
    assert len(data) == status.st_size == size


def test_a_file_that_never_stands_still_is_a_conflict(
    descriptor: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "pread", Meddler(descriptor, list(range(100, 150))))
    with pytest.raises(ToolError) as caught:
        textfile.read(descriptor, "file")
    assert caught.value.code == ErrorCode.CONFLICT
