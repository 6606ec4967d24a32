"""A Jupyter notebook as text (nbformat 3 and 4); knows no files and no pages."""

import re
from json import loads

from toolroll.limits import clip

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    Json = Any

OUTPUT_CHARS = 2_000
"""Longest output of a cell shown whole."""

_ESCAPE = re.compile(r"\x1b\[[0-9;?]*[ -/]*[@-~]")


def cells(data: bytes) -> list[str] | None:
    """Each cell with its outputs as text, None when that is no notebook."""
    try:
        book = loads(data)
    except (ValueError, RecursionError):
        return None
    if not isinstance(book, dict):
        return None
    found = book.get("cells")
    if found is None:  # nbformat 3
        sheets = [sheet for sheet in _list(book.get("worksheets")) if isinstance(sheet, dict)]
        found = [cell for sheet in sheets for cell in _list(sheet.get("cells"))] if sheets else None
    if not isinstance(found, list):
        return None
    return [_cell(number, cell) for number, cell in enumerate(found, 1) if isinstance(cell, dict)]


def _list(value: "Json") -> "list[Json]":
    return value if isinstance(value, list) else []


def _text(value: "Json") -> str:
    """A multi-line string of nbformat: one string or a list of them."""
    if isinstance(value, list):
        return "".join(part for part in value if isinstance(part, str))
    return value if isinstance(value, str) else ""


def _cell(number: int, cell: "dict[str, Json]") -> str:
    kind = str(cell.get("cell_type", "unknown"))
    ran = cell.get("execution_count", cell.get("prompt_number"))
    head = f"# cell {number}: {kind}" + (f", run {ran}" if isinstance(ran, int) else "")
    source = _text(cell.get("source", cell.get("input", ""))).rstrip("\n")
    outputs = [_output(one) for one in _list(cell.get("outputs")) if isinstance(one, dict)]
    shown = [f"# output of cell {number}:\n{text}" for text in outputs if text]
    return "\n".join([head, source, *shown, ""] if source else [head, *shown, ""])


def _output(output: "dict[str, Json]") -> str:
    kind = output.get("output_type")
    if kind == "stream":
        text = _text(output.get("text"))
    elif kind in ("error", "pyerr"):
        trace = "\n".join(part for part in _list(output.get("traceback")) if isinstance(part, str))
        text = trace or f"{output.get('ename')}: {output.get('evalue')}"
    else:
        bundle = output.get("data", output)  # nbformat 3 has the formats beside the type
        text = _bundle(bundle) if isinstance(bundle, dict) else ""
    return clip(_ESCAPE.sub("", text).rstrip("\n"), OUTPUT_CHARS)


def _bundle(bundle: "dict[str, Json]") -> str:
    """The plain text of an output in several formats, and which images there are."""
    text = _text(bundle.get("text/plain", bundle.get("text", "")))
    images = [
        name for name in bundle if name.startswith("image/") or name in ("png", "jpeg", "svg")
    ]
    if not text and not images:
        text = _text(bundle.get("text/markdown", bundle.get("text/html", "")))
    return "\n".join([*([text] if text else []), *(f"({name} not shown)" for name in images)])
