"""The text of a PDF through `pdftotext` or pypdf, whichever is there; knows no pages of an answer."""

import os
import select
import subprocess
from time import monotonic

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from toolroll.call import Call

HINT = "Its text can be shown when pdftotext (poppler) is on PATH or toolroll[pdf] is installed"

TEXT_BYTES = 1 << 25
"""Longest text taken of one PDF."""

SLICE_S = 0.1
TIME_S = 20.0
LINGER_S = 1.0

_children: "set[subprocess.Popen[bytes]]" = set()


class NoReaderError(Exception):
    """Neither program nor library is there."""


def text_of(fd: int, shown: str, call: "Call") -> str:
    r"""The text of the open PDF, with `\f` behind each page.

    Raises: NoReaderError, ToolError EXECUTION_ERROR for what cannot be read, TIMEOUT, CANCELLED.
    """
    try:
        child = _start(fd)
    except OSError:  # not on PATH, or not to be run
        return _by_library(fd, shown, call)
    return _by_program(child, shown, call)


def with_page_heads(text: str) -> str:
    """The text with a line for the start of each page."""
    pages = text.removesuffix("\f").split("\f")
    return "\n".join(f"--- page {n} ---\n{page.rstrip()}\n" for n, page in enumerate(pages, 1))


def end_children() -> None:
    """Kill what is still running; safe in a signal handler."""
    for child in list(_children):
        child.kill()


def _start(fd: int) -> "subprocess.Popen[bytes]":
    """A running `pdftotext`.

    The file goes in as descriptor 0, so that neither its name nor a swapped link can matter; the
    environment is cleared of the host's secrets.
    """
    os.lseek(fd, 0, os.SEEK_SET)  # /dev/fd/0 is the same open file on macOS, a new one on Linux
    return subprocess.Popen(
        ["pdftotext", "-layout", "-enc", "UTF-8", "-q", "/dev/fd/0", "-"],
        stdin=fd,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={"PATH": os.environ.get("PATH", os.defpath), "LC_ALL": "C.UTF-8"},
        start_new_session=True,
    )


def _by_program(child: "subprocess.Popen[bytes]", shown: str, call: "Call") -> str:
    _children.add(child)
    try:
        data = _output_of(child, shown, call)
        status = _status_of(child)
    finally:
        child.kill()
        child.wait()
        _children.discard(child)
        if child.stdout is not None:
            child.stdout.close()
    if status and not data:
        raise ToolError(
            ErrorCode.EXECUTION_ERROR,
            f"{shown} could not be read as PDF: pdftotext ended with status {status}",
            "It may be damaged or encrypted; include_hex_dump=true shows its bytes.",
        )
    return data.decode("utf-8", "replace")


def _status_of(child: "subprocess.Popen[bytes]") -> int:
    """The exit status; a program that stays though it closed its output has done its work."""
    try:
        return child.wait(LINGER_S)
    except subprocess.TimeoutExpired:
        return 0


def _output_of(child: "subprocess.Popen[bytes]", shown: str, call: "Call") -> bytes:
    """What the program writes up to its end, at most TEXT_BYTES; asks in between whether to go on."""
    assert child.stdout is not None  # noqa: S101 - a pipe was asked for
    fd = child.stdout.fileno()
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    until = monotonic() + TIME_S
    pieces: list[bytes] = []
    done = 0
    while done < TEXT_BYTES:
        call.check()
        if call.expired or monotonic() > until:
            raise ToolError(
                ErrorCode.TIMEOUT,
                f"pdftotext did not finish {shown} in time",
                "Try a smaller PDF.",
            )
        if not poll.poll(SLICE_S * 1000):
            continue
        piece = os.read(fd, 1 << 16)
        if not piece:
            return b"".join(pieces)
        pieces.append(piece)
        done += len(piece)
    child.kill()
    return b"".join(pieces)


def _by_library(fd: int, shown: str, call: "Call") -> str:
    try:
        from pypdf import PdfReader  # type: ignore[import-not-found, unused-ignore]  # the extra
    except ImportError:
        raise NoReaderError from None
    pages: list[str] = []
    try:
        with open(os.dup(fd), "rb") as file:
            file.seek(0)
            for page in PdfReader(file).pages:
                call.check()
                if call.expired:
                    break
                pages.append(f"{page.extract_text()}\f")
    except ToolError:
        raise
    except Exception as error:  # a parser of a hostile format: it raises whatever it likes
        raise ToolError(
            ErrorCode.EXECUTION_ERROR, f"{shown} could not be read as PDF: {error}"
        ) from error
    return "".join(pages)
