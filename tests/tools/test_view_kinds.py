"""Images, notebooks and PDFs: what goes out, and what a damaged or too large one leads to."""

import base64
import json
import os
import struct
import sys
import threading
import zlib
from collections.abc import Callable
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from toolroll.call import Call
from toolroll.errors import ErrorCode
from toolroll.limits import IMAGE_BYTES
from toolroll.tool import Outcome
from toolroll_view import image, notebook
from toolroll_view.tool import close, view

MakeCall = Callable[..., Call]


def png(width: int, height: int) -> bytes:
    def chunk(name: bytes, data: bytes) -> bytes:
        body = name + data
        return struct.pack(">I", len(data)) + body + struct.pack(">I", zlib.crc32(body))

    head = struct.pack(">IIBBBBB", width, height, 1, 0, 0, 0, 0)
    rows = zlib.compress(b"\0" * (height * (1 + (width + 7) // 8)))
    begin = b"\x89PNG\r\n\x1a\n"
    return begin + chunk(b"IHDR", head) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def jpeg(width: int, height: int) -> bytes:
    app = b"\xff\xe0" + struct.pack(">H", 16) + b"JFIF\0" + b"\1\1\0\0\1\0\1\0\0"
    frame = b"\xff\xc2" + struct.pack(">HBHHB", 11, 8, height, width, 1) + b"\1\x11\0"
    return b"\xff\xd8" + app + b"\xff" + frame + b"\xff\xda\0\2data\xff\xd9"


def gif(width: int, height: int) -> bytes:
    return b"GIF89a" + struct.pack("<HH", width, height) + b"\0\0\0,data\0;"


def webp(form: bytes, data: bytes) -> bytes:
    body = b"WEBP" + form + struct.pack("<I", len(data)) + data
    return b"RIFF" + struct.pack("<I", len(body)) + body


LOSSY = webp(b"VP8 ", b"\0\0\0\x9d\x01\x2a" + struct.pack("<HH", 300, 200))
LOSSLESS = webp(b"VP8L", b"\x2f" + struct.pack("<I", 299 | 199 << 14) + b"\0" * 5)
EXTENDED = webp(b"VP8X", b"\0" * 4 + (299).to_bytes(3, "little") + (199).to_bytes(3, "little"))

IMAGES = [
    (png(300, 200), "PNG", "image/png"),
    (jpeg(300, 200), "JPEG", "image/jpeg"),
    (gif(300, 200), "GIF", "image/gif"),
    (LOSSY, "WebP", "image/webp"),
    (LOSSLESS, "WebP", "image/webp"),
    (EXTENDED, "WebP", "image/webp"),
]


@pytest.fixture
def shown(tmp_path: Path, make_call: MakeCall) -> Callable[..., Outcome]:
    def ask(data: bytes, name: str, **arguments: Any) -> Outcome:
        (tmp_path / name).write_bytes(data)
        return view.call({"file_path": name, **arguments}, make_call(tmp_path))

    return ask


@pytest.mark.parametrize(("data", "name", "mime"), IMAGES)
def test_an_image_goes_out_as_a_block(
    shown: Callable[..., Outcome], data: bytes, name: str, mime: str
) -> None:
    outcome = shown(data, "a.bin")
    expected = f"{name} image, 300 x 200 pixels, {len(data):,} bytes\n[etag "
    assert outcome.text.startswith(expected)
    (block,) = outcome.blocks
    assert block == {
        "type": "image",
        "data": base64.b64encode(data).decode(),
        "mimeType": mime,
    }
    assert [part["type"] for part in outcome.content] == ["text", "image"]


@pytest.mark.parametrize(("data", "name", "mime"), IMAGES)
def test_half_an_image_is_called_damaged_and_not_sent(
    shown: Callable[..., Outcome], data: bytes, name: str, mime: str
) -> None:
    outcome = shown(data[: len(data) * 2 // 3], "a.bin")
    assert outcome.text.startswith(f"Damaged {name} image, ")
    assert not outcome.blocks


def test_a_too_large_image_is_refused(shown: Callable[..., Outcome]) -> None:
    outcome = shown(png(3, 2) + b"\0" * IMAGE_BYTES, "a.png")
    assert outcome.code == ErrorCode.TOO_LARGE
    assert "5,242,880 bytes" in outcome.text
    outcome = shown(png(9000, 2), "b.png")
    assert outcome.code == ErrorCode.TOO_LARGE
    assert "9000 x 2 pixels" in outcome.text


def test_the_bytes_of_an_image_are_shown_on_request(shown: Callable[..., Outcome]) -> None:
    outcome = shown(png(3, 2), "a.png", include_hex_dump=True)
    assert "00000000  89 50 4e 47" in outcome.text
    assert not outcome.blocks


@settings(deadline=None)
@given(st.sampled_from(IMAGES), st.binary(max_size=60), st.integers(0, 60))
def test_no_bytes_crash_the_readers_of_sizes(
    whole: tuple[bytes, str, str], noise: bytes, at: int
) -> None:
    data = whole[0][:at] + noise + whole[0][at + len(noise) :]
    size = image.pixels(data, whole[2])
    assert size is None or min(size) > 0


# Notebooks

CELLS: list[dict[str, Any]] = [
    {"cell_type": "markdown", "source": ["# Title\n", "text"]},
    {
        "cell_type": "code",
        "execution_count": 3,
        "source": "print(1)\n",
        "outputs": [
            {"output_type": "stream", "name": "stdout", "text": ["1\n"]},
            {"output_type": "execute_result", "data": {"text/plain": "42", "image/png": "aGk="}},
            {"output_type": "error", "traceback": ["\x1b[31mValueError\x1b[0m: no"]},
        ],
    },
]


def test_a_notebook_is_shown_as_cells(shown: Callable[..., Outcome]) -> None:
    book = {"cells": CELLS, "nbformat": 4}
    outcome = shown(json.dumps(book).encode(), "a.ipynb", show_line_numbers=False)
    body, _, last = outcome.text.rpartition("\n")
    assert body.split("\n") == [
        "# cell 1: markdown",
        "# Title",
        "text",
        "",
        "# cell 2: code, run 3",
        "print(1)",
        "# output of cell 2:",
        "1",
        "# output of cell 2:",
        "42",
        "(image/png not shown)",
        "# output of cell 2:",
        "ValueError: no",
    ]
    assert last.startswith("[notebook, 2 cells; lines are of this rendering, not of the file · ")


def test_an_old_notebook_is_shown_too() -> None:
    cell = {"cell_type": "code", "input": "x", "prompt_number": 1, "outputs": []}
    data = json.dumps({"worksheets": [{"cells": [cell]}]}).encode()
    assert notebook.cells(data) == ["# cell 1: code, run 1\nx\n"]


@pytest.mark.parametrize("data", [b"{", b"[]", b"{}", b'{"cells": 3}', b"[" * 100_000])
def test_what_is_no_notebook_is_shown_as_text(shown: Callable[..., Outcome], data: bytes) -> None:
    outcome = shown(data, "a.ipynb")
    assert outcome.text.startswith("1\t")
    assert "not a valid notebook: shown as text" in outcome.text


JSON = st.recursive(
    st.none() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                ["cells", "source", "outputs", "data", "text", "text/plain", "output_type"]
            )
            | st.sampled_from(["cell_type", "traceback", "worksheets", "execution_count"]),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])  # on a loaded machine
@given(st.lists(JSON, max_size=3))
def test_no_notebook_crashes_its_reader(made: list[Any]) -> None:
    cells = notebook.cells(json.dumps({"cells": made}).encode())
    assert cells is not None
    assert all(isinstance(cell, str) for cell in cells)


# PDF

PDF = b"%PDF-1.4\n%\xe2\xe3\xcf\xd3\n"


@pytest.fixture
def program(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """`program(body)`: a `pdftotext` on PATH that runs this Python; without a call there is none."""
    folder = tmp_path / "bin"
    folder.mkdir()
    monkeypatch.setenv("PATH", str(folder))
    monkeypatch.setitem(sys.modules, "pypdf", None)

    def make(body: str) -> Path:
        file = folder / "pdftotext"
        file.write_text(f"#!{sys.executable}\nimport os, sys, time\n{body}\n")
        file.chmod(0o755)
        return file

    return make


@pytest.mark.usefixtures("program")
def test_without_a_reader_a_pdf_is_named_and_the_way_told(shown: Callable[..., Outcome]) -> None:
    outcome = shown(PDF, "a.pdf")
    assert outcome.text.startswith(
        "PDF, 15 bytes. Its text can be shown when pdftotext (poppler) is"
    )


def test_the_text_of_a_pdf_is_paged(
    shown: Callable[..., Outcome], program: Callable[[str], Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOST_TOKEN", "secret-of-the-host")
    program(
        "data = open(sys.argv[-2], 'rb').read()\n"
        "assert 'HOST_TOKEN' not in os.environ\n"
        "print('size', len(data), *sys.argv[-2:], end='\\n\\f')\n"
        "print('second', end='\\n\\f')"
    )
    outcome = shown(PDF, "-rf.pdf", show_line_numbers=False)
    body, _, last = outcome.text.rpartition("\n")
    assert body == "--- page 1 ---\nsize 15 /dev/fd/0 -\n\n--- page 2 ---\nsecond"
    assert last.startswith("[PDF, 2 pages; lines are of its text · 5 lines · etag ")


def test_a_pdf_without_text_is_said(
    shown: Callable[..., Outcome], program: Callable[[str], Path]
) -> None:
    program("print('\\f', end='')")
    assert shown(PDF, "a.pdf").text.startswith("PDF without text (a scan?), 15 bytes.")


def test_a_pdf_that_cannot_be_read_is_an_error(
    shown: Callable[..., Outcome], program: Callable[[str], Path]
) -> None:
    program("sys.exit(3)")
    outcome = shown(PDF, "a.pdf")
    assert outcome.code == ErrorCode.EXECUTION_ERROR
    assert "status 3" in outcome.text


STUCK = (
    "open({path!r}, 'w').write(str(os.getpid()))\nos.rename({path!r}, {done!r})\ntime.sleep(600)"
)


def stuck(program: Callable[[str], Path], folder: Path) -> Path:
    """Have a `pdftotext` that never ends; the file where it writes its pid."""
    done = folder / "pid"
    program(STUCK.format(path=str(folder / "made"), done=str(done)))
    return done


def gone(pid: int) -> bool:
    """True once no such process runs, waited for with a bound."""
    until = monotonic() + 10
    while monotonic() < until:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        sleep(0.01)
    return False


def started(file: Path) -> int:
    until = monotonic() + 20
    while not file.exists():
        assert monotonic() < until
        sleep(0.01)
    return int(file.read_text())


@pytest.mark.parametrize("way", ["cancel", "close"])
def test_a_pdf_reader_ends_with_its_call_or_the_server(
    tmp_path: Path, make_call: MakeCall, program: Callable[[str], Path], way: str
) -> None:
    pid_file = stuck(program, tmp_path)
    (tmp_path / "a.pdf").write_bytes(PDF)
    call = make_call(tmp_path)
    outcomes: list[Outcome] = []
    worker = threading.Thread(
        target=lambda: outcomes.append(view.call({"file_path": "a.pdf"}, call))
    )
    worker.start()
    pid = started(pid_file)
    call.cancel() if way == "cancel" else close()
    worker.join(20)
    assert not worker.is_alive()
    assert gone(pid)
    expected = ErrorCode.CANCELLED if way == "cancel" else ErrorCode.EXECUTION_ERROR
    assert outcomes[0].code == expected


def test_a_pdf_reader_that_takes_too_long_is_ended(
    tmp_path: Path, make_call: MakeCall, program: Callable[[str], Path]
) -> None:
    stuck(program, tmp_path)
    (tmp_path / "a.pdf").write_bytes(PDF)
    outcome = view.call({"file_path": "a.pdf"}, make_call(tmp_path, deadline_s=0.0))
    assert outcome.code == ErrorCode.TIMEOUT
