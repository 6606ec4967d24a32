"""JSON texts to values and back, as RFC 8259 has them; knows nothing of messages.

Uses the C scanner and encoder under `json` without importing `json` itself, whose `re` would be most
of a server's start-up time; falls back to `json` where they are missing.
"""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    Json = Any

WHITE = " \t\n\r"  # RFC 8259 section 2; str.strip() alone would also take U+2028 and the like


def _refuse_constant(name: str) -> "Json":
    raise ValueError(f"{name} is not JSON")


def _default(value: object) -> "Json":
    raise TypeError(f"{type(value).__name__} is not a JSON value")


try:
    from _json import encode_basestring_ascii, make_encoder, make_scanner

    class _Grammar:
        """What the C scanner asks its Python side for."""

        strict = True
        object_hook = None
        object_pairs_hook = None
        parse_float = float
        parse_int = int
        parse_constant = staticmethod(_refuse_constant)  # Python's json takes NaN, JSON does not
        memo: "dict[str, str]" = {}  # noqa: RUF012 - the scanner's own, emptied by it after each text

    scan: "Callable[[str, int], tuple[Json, int]]" = make_scanner(_Grammar())  # type: ignore[arg-type]  # typeshed's guess

    _encode = make_encoder(
        None, _default, encode_basestring_ascii, None, ":", ",", False, False, False
    )

    def _chunks(value: "Json") -> "Iterable[str]":
        return _encode(value, 0)  # type: ignore[no-any-return]  # typeshed does not know the C encoder

except ImportError:  # PyPy and builds without the C accelerator
    import json

    scan = json.JSONDecoder(parse_constant=_refuse_constant).raw_decode
    _plain = json.JSONEncoder(
        ensure_ascii=True, allow_nan=False, separators=(",", ":"), check_circular=False
    )

    def _chunks(value: "Json") -> "Iterable[str]":
        return (_plain.encode(value),)


def loads(data: bytes) -> "Json":
    """The JSON value of a UTF-8 text.

    Raises: ValueError for whatever is not JSON: bad UTF-8, NaN, nesting or digits past Python's
    own limits.
    """
    text = data.decode("utf-8").strip(WHITE)
    try:
        value, end = scan(text, 0)
    except StopIteration as problem:
        where = f"at character {problem.value + 1}" if problem.value < len(text) else "at its end"
        raise ValueError(f"not JSON: a value is missing {where}") from None
    except RecursionError:
        raise ValueError("not JSON that is read here: nested too deep") from None
    except SystemError:  # what the scanner of 3.11 makes of a syntax error
        raise ValueError("not JSON") from None
    if end != len(text):
        raise ValueError(f"not JSON: more text at character {end + 1}, behind the value")
    return value


def dumps(value: "Json") -> bytes:
    """One line of ASCII; lone surrogates come out escaped, so that any text of ours can be written.

    Raises: ValueError for an infinity or a NaN.
    """
    return "".join(_chunks(value)).encode("ascii")
