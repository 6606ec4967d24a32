"""Bytes of a file as rows of hexadecimal, those of secrets as stars; knows no kinds of files."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from toolroll.call import Call
    from toolroll_view.lines import Source

DUMP_BYTES = 1024
ROW_BYTES = 16
MARGIN_BYTES = 4096
"""Looked at before and behind the dump, as it may cut a secret in two; longer than a private key."""

ENCODINGS = (
    # codec, errors, bytes left out in front: within a binary file a text may begin anywhere
    ("utf-8", "surrogateescape", 0),
    ("latin-1", "strict", 0),
    ("utf-16-le", "surrogatepass", 0),
    ("utf-16-le", "surrogatepass", 1),
    ("utf-16-be", "surrogatepass", 0),
    ("utf-16-be", "surrogatepass", 1),
)


def hex_dump(source: "Source", at: int, call: "Call") -> tuple[int, str, str]:
    """How many bytes are shown from `at` on, their rows, and a word about stars in them (or "")."""
    before = min(at, MARGIN_BYTES)
    data = source.read(at - before, before + DUMP_BYTES + MARGIN_BYTES)
    part = data[before : before + DUMP_BYTES]
    starred = _starred(data, before, before + len(part), call.guard.mask)
    return len(part), _rows(starred, at), "redacted bytes are shown as *" * (starred != part)


def _starred(data: bytes, first: int, last: int, mask: "Callable[[str], str]") -> bytes:
    """`data[first:last]` with a star for each byte of a secret, whatever encodes it."""
    shown = bytearray(data)
    for codec, errors, skip in ENCODINGS:
        units = data[skip : len(data) - (len(data) - skip) % 2] if "16" in codec else data
        text = units.decode(codec, errors)
        masked = mask(text)
        if masked == text:
            continue
        at, within = skip, False
        for number, char in enumerate(text, 1):
            end = at + len(char.encode(codec, errors))
            if end >= first - 4 and at < last:
                came_from_within = within  # where a cut in two would let a secret be seen
                within = mask(text[:number]) + mask(text[number:]) != masked
                if came_from_within or within:
                    shown[at:end] = b"*" * (end - at)
            at = end
    return bytes(shown[first:last])


def _rows(data: bytes, offset: int) -> str:
    """The bytes as rows of sixteen: where, hexadecimal, as ASCII."""
    rows = []
    for at in range(0, len(data), ROW_BYTES):
        part = data[at : at + ROW_BYTES]
        plain = "".join(chr(byte) if 32 <= byte < 127 else "." for byte in part)
        rows.append(f"{offset + at:08x}  {part.hex(' ', 1):<47}  {plain}")
    return "\n".join(rows)
