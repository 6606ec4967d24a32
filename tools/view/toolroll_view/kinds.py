"""What a file is by its first bytes, and the answer for each kind; knows no paths but a name's ending."""

import os

from toolroll.limits import ETAG_WHOLE_BYTES, IMAGE_BYTES
from toolroll.paths import quoted
from toolroll.textfile import detect, etag
from toolroll.tool import Answer
from toolroll_view.answer import file_facts, page_answer
from toolroll_view.document import HEAD_BYTES, Document, document_of, rendered, state
from toolroll_view.dump import DUMP_BYTES, ROW_BYTES, hex_dump
from toolroll_view.outline import language_of
from toolroll_view.page import Wish
from toolroll_view.source import Disk, read_whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call
    from toolroll.paths import Opened

READS = 3
"""Times a file that changes meanwhile is read again before it is shown as it is."""

NOTEBOOK_BYTES = 1 << 25

SIGNATURES = (
    # offset, bytes, what it is
    (0, b"\x7fELF", "ELF program or library"),
    (0, b"MZ", "Windows program or library"),
    (0, b"\xcf\xfa\xed\xfe", "Mach-O program or library"),
    (0, b"\xca\xfe\xba\xbe", "Java class or Mach-O program"),
    (0, b"\0asm", "WebAssembly module"),
    (0, b"\x1f\x8b", "gzip archive"),
    (0, b"PK\x03\x04", "zip archive"),
    (0, b"PK\x05\x06", "zip archive, empty"),
    (0, b"BZh", "bzip2 archive"),
    (0, b"\xfd7zXZ\0", "xz archive"),
    (0, b"\x28\xb5\x2f\xfd", "zstd archive"),
    (0, b"7z\xbc\xaf\x27\x1c", "7-Zip archive"),
    (0, b"Rar!\x1a\x07", "RAR archive"),
    (257, b"ustar", "tar archive"),
    (0, b"SQLite format 3\0", "SQLite database"),
    (0, b"PAR1", "Parquet table"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "old Microsoft Office document"),
    (0, b"BM", "BMP image"),
    (0, b"II*\0", "TIFF image"),
    (0, b"MM\0*", "TIFF image"),
    (0, b"\0\0\x01\0", "icon"),
    (0, b"OggS", "Ogg sound"),
    (0, b"ID3", "MP3 sound"),
    (0, b"fLaC", "FLAC sound"),
    (8, b"WAVE", "WAV sound"),
    (4, b"ftyp", "MP4 video or HEIF image"),
    (0, b"\x1aE\xdf\xa3", "Matroska video"),
    (0, b"wOFF", "font"),
    (0, b"wOF2", "font"),
    (0, b"\0\x01\0\0\0", "font"),
    (0, b"\xff\xfe\0\0", "UTF-32 text"),
    (0, b"\0\0\xfe\xff", "UTF-32 text"),
)


def show(opened: "Opened", wish: Wish, call: "Call") -> Answer:
    """The answer for an open file, whatever it is.

    Raises: ToolError.
    """
    for _ in range(READS):
        status = os.fstat(opened.fd)
        answer = _answer(opened, status, wish, call)
        if state(os.fstat(opened.fd)) == state(status):
            return answer
    answer.facts = [*answer.facts, "the file was changed while it was read: view it again"]
    return answer


def _answer(opened: "Opened", status: os.stat_result, wish: Wish, call: "Call") -> Answer:
    disk = Disk(opened.fd, status.st_size, quoted(opened.text))
    head = disk.read(0, HEAD_BYTES)
    if head.startswith(b"%PDF-") and not wish.hex:
        return _pdf(opened, disk, status, wish, call)
    from toolroll_view import image

    picture = None if wish.hex else image.recognise(head)
    if picture is not None:
        return _image(disk, status, picture, wish, call, quoted(opened.text))
    if detect(head, whole=len(head) < HEAD_BYTES) is None:
        return _binary(disk, status, kind_of(head), wish, call)
    if opened.path.endswith(".ipynb") and not wish.hex and status.st_size <= NOTEBOOK_BYTES:
        return _notebook(opened, disk, status, wish, call)
    return _text(opened, disk, status, wish, call)


def _text(opened: "Opened", disk: Disk, status: os.stat_result, wish: Wish, call: "Call") -> Answer:
    document = document_of(disk, status, opened.path)
    document.language = language_of(opened.path)
    dump = ""
    if wish.hex:
        _, rows, stars = hex_dump(disk, 0, call)
        dump = f"\nFirst bytes{stars and f' ({stars})'}:\n{rows}"
    return page_answer(document, wish, call, dump)


# -- binary files ------------------------------------------------------------------------------------


def kind_of(head: bytes) -> str:
    """What a binary file is, in a few words."""
    for offset, signature, name in SIGNATURES:
        if head.startswith(signature, offset):
            return name
    return "binary file"


def _etag(disk: Disk, status: os.stat_result) -> str:
    if status.st_size > ETAG_WHOLE_BYTES:
        return etag(status, b"")
    return etag(status, read_whole(disk, ETAG_WHOLE_BYTES)[0])


def _binary(disk: Disk, status: os.stat_result, kind: str, wish: Wish, call: "Call") -> Answer:
    said = f"{kind[0].upper()}{kind[1:]}, {status.st_size:,} bytes"
    said = f"[{file_facts(status)}]\n{said}" if wish.metadata else said
    tag = _etag(disk, status)
    if not wish.hex:
        text = f"{said}. Not text: include_hex_dump=true shows its bytes."
        return Answer(text, [f"etag {tag}"], {"etag": tag})
    rows = -(-status.st_size // ROW_BYTES)
    row = max(rows + wish.offset if wish.offset < 0 else wish.offset - 1, 0)
    count, dump, stars = hex_dump(disk, row * ROW_BYTES, call)
    if not count:
        return Answer(f"{said}. No row {row + 1}: it has {rows} rows of 16 bytes.", [f"etag {tag}"])
    following = row + 1 + DUMP_BYTES // ROW_BYTES
    fields: dict[str, str | int] = {"etag": tag}
    facts = [f"bytes {row * ROW_BYTES}-{row * ROW_BYTES + count - 1} of {status.st_size}"]
    if following <= rows:
        facts.append(f"next: offset={following}")
        fields["next_offset"] = following
    facts += [stars] if stars else []
    return Answer(f"{said}\n{dump}", [*facts, f"etag {tag}"], fields)


# -- images ------------------------------------------------------------------------------------------


def _image(
    disk: Disk,
    status: os.stat_result,
    picture: "tuple[str, str]",
    wish: Wish,
    call: "Call",
    shown: str,
) -> Answer:
    from toolroll_view import image

    name, mime = picture
    if status.st_size > IMAGE_BYTES:
        raise image.too_large(shown, name, f"{status.st_size:,} bytes", f"{IMAGE_BYTES:,} bytes")
    data, _ = read_whole(disk, IMAGE_BYTES)
    size = image.pixels(data, mime)
    if size is None:
        return _binary(disk, status, f"damaged {name} image", wish, call)
    if max(size) > image.SIDE_PIXELS:
        pixels = f"{size[0]} x {size[1]} pixels"
        raise image.too_large(shown, name, pixels, f"{image.SIDE_PIXELS} pixels a side")
    text = f"{name} image, {size[0]} x {size[1]} pixels, {len(data):,} bytes"
    if wish.metadata:
        text = f"[{file_facts(status)}]\n{text}"
    tag = etag(status, data)
    return Answer(text, [f"etag {tag}"], {"etag": tag}, [image.block(data, mime)])


# -- rendered documents ------------------------------------------------------------------------------


def _notebook(
    opened: "Opened", disk: Disk, status: os.stat_result, wish: Wish, call: "Call"
) -> Answer:
    from toolroll_view import notebook

    data, _ = read_whole(disk, NOTEBOOK_BYTES)
    cells = notebook.cells(data)
    if cells is None:
        answer = _text(opened, disk, status, wish, call)
        answer.facts = [*answer.facts, "not a valid notebook: shown as text"]
        return answer
    plural = "" if len(cells) == 1 else "s"
    note = f"notebook, {len(cells)} cell{plural}; lines are of this rendering, not of the file"
    document = rendered("\n".join(cells), status, etag(status, data), opened.path)
    return _rendered(document, note, wish, call)


def _pdf(opened: "Opened", disk: Disk, status: os.stat_result, wish: Wish, call: "Call") -> Answer:
    from toolroll_view import pdf

    try:
        text = pdf.text_of(opened.fd, quoted(opened.text), call)
    except pdf.NoReaderError:
        answer = _binary(disk, status, "PDF", wish, call)
        answer.text = answer.text.replace("Not text:", f"{pdf.HINT};", 1)
        return answer
    if not text.strip():
        return _binary(disk, status, "PDF without text (a scan?)", wish, call)
    pages = text.count("\f") + (not text.endswith("\f"))
    note = f"PDF, {pages} page{'' if pages == 1 else 's'}; lines are of its text"
    paged = pdf.with_page_heads(text)
    document = rendered(paged, status, _etag(disk, status), opened.path)
    return _rendered(document, note, wish, call)


def _rendered(document: Document, note: str, wish: Wish, call: "Call") -> Answer:
    answer = page_answer(document, wish, call)
    answer.facts = [note, *answer.facts]
    return answer
