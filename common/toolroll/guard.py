"""What makes an answer safe to show: secrets masked, hidden characters made visible, calls paced.

Text in, text out: knows neither tools nor files; clock and environment are given to it.
"""

from toolroll.jsontext import dumps
from toolroll.limits import RATE_BURST, RATE_PER_S, SECRET_CHARS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any

    Json = Any

_HEAD = "[REDACTED:"
_MARKER = r"(\[REDACTED:\w+\])"

_WORDS = frozenset({"KEY", "KEYS", "PASS", "PASSPHRASE", "SSHPASS"})
"""Words that make a name secret only when they stand alone: not MONKEY, KEYBOARD, BYPASS."""

_ENDINGS = tuple(
    f"{word}{plural}"
    for word in ("TOKEN", "SECRET", "PASSWORD", "PASSWD", "CREDENTIAL", "APIKEY", "ACCESSKEY")
    for plural in ("", "S")
)
"""Endings that make a name secret also when glued to another word: PGPASSWORD, authToken."""

_NAMES = frozenset({"MYSQL_PWD", "REDISCLI_AUTH"})
"""Well-known names that no rule finds: PWD alone is the working directory."""

_LINE_CHARS = 32
"""Shortest line of a longer value that is hidden by itself too: lines of a private key have 64 or
70 characters; a credentials file has short ones too (`"type": "user",`) that many a text holds."""

_ASCII_CONTROLS = tuple(map(chr, (*range(9), 11, 12, *range(14, 32), 127)))
"""`_HIDDEN` in ASCII but for the return: 30 times memchr is 6 times as fast as one `re` search."""

_SYMBOL = r"[^\0-\x7f{hidden}]"
_HIDDEN = (
    # first, last, where it stays: an expression tried right behind it
    (0x0000, 0x0008, ""),  # C0 but tab and newline: ring, erase, move the cursor, start sequences
    (0x000B, 0x000C, ""),
    (0x000D, 0x000D, r"(?=\n)"),  # a return without newline writes over its own line
    (0x000E, 0x001F, ""),
    (0x007F, 0x009F, ""),  # DEL and C1, where U+009B alone starts a sequence
    (0x061C, 0x061C, ""),  # Arabic letter mark: reorders its neighbours
    (0x200B, 0x200B, ""),  # zero-width space: parts words for programs, not for eyes
    # Joiners hide between ASCII letters; Persian, Indic scripts and emoji are spelled with them.
    (0x200C, 0x200D, rf"(?<={_SYMBOL}.)|(?={_SYMBOL})"),
    (0x200E, 0x200F, ""),  # direction marks
    (0x202A, 0x202E, ""),  # bidi embeddings, overrides: code that reads otherwise than it runs
    (0x2060, 0x206F, ""),  # word joiner, invisible operators, bidi isolates, deprecated formats
    (0x3164, 0x3164, ""),  # Hangul filler: a letter without ink, so an identifier nobody sees
    (0xD800, 0xDFFF, ""),  # surrogates: stray bytes, and halves that no encoder takes
    # Variation selectors carry hidden bytes in rows; one behind its symbol belongs to an emoji.
    (0xFE00, 0xFE0F, rf"(?<={_SYMBOL}.)|(?<=[0-9#*]\ufe0f)(?=\u20e3)"),
    (0xFEFF, 0xFEFF, ""),  # byte order mark: within a text, a zero-width space
    (0xFFA0, 0xFFA0, ""),  # halfwidth Hangul filler
    (0xFFF9, 0xFFFB, ""),  # interlinear annotation: text that is there and not displayed
    (0xE0000, 0xE007F, ""),  # tags: a second ASCII that no screen shows and models read
    # The other selectors do the same; one behind an ideograph chooses its shape.
    (0xE0100, 0xE01EF, r"(?<=[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff].)"),
)


class Cleaned:
    """A text that is safe to show: `redacted` names variables, `escaped` counts characters."""

    __slots__ = ("escaped", "redacted", "text")

    def __init__(self, text: str, redacted: tuple[str, ...], escaped: int) -> None:
        self.text = text
        self.redacted = redacted
        self.escaped = escaped

    @property
    def note(self) -> str:
        """What was changed, for the last line of an answer; empty when nothing was."""
        names = [f"redacted: {', '.join(self.redacted)}"] if self.redacted else []
        plural = "" if self.escaped == 1 else "s"
        count = [f"{self.escaped} character{plural} escaped"] if self.escaped else []
        return "; ".join(names + count)


class Guard:
    """Hides the values of secret variables, and shows what would be invisible or act on a terminal.

    `extra` names variables whose values are hidden whatever they look like.  The environment is
    read at the first text.
    """

    __slots__ = ("_environ", "_extra", "_hidden", "_redact", "_secrets")

    def __init__(
        self, environ: "Mapping[str, str]", extra: "Sequence[str]" = (), redact: bool = True
    ) -> None:
        self._environ = environ
        self._extra = extra
        self._redact = redact
        self._secrets: dict[str, str] | None = None
        self._hidden: re.Pattern[str] | None = None

    def clean(self, text: str) -> Cleaned:
        """`text` with markers for secrets and escapes for hidden characters.

        Cleaning what was cleaned changes nothing.
        """
        # Once may not do: an escape can complete a secret, a marker can take a joiner's symbol away.
        # It ends because a round that changes anything in cleaned text leaves fewer hidden characters.
        names: list[str] = []
        escaped = 0
        while True:
            visible, count = self._escape(text)
            masked = self._mask(visible, names)
            if masked == text:
                return Cleaned(text, tuple(dict.fromkeys(names)), escaped)
            text = masked
            escaped += count

    def mask(self, text: str) -> str:
        """`text` with markers for secrets and nothing else changed, for logs and traces."""
        return self._mask(text, [])

    def clean_value(self, value: "Json") -> "Json":
        """The JSON value with every string in it cleaned, keys too."""
        if isinstance(value, str):
            return self.clean(value).text
        if isinstance(value, dict):
            return {self.clean(key).text: self.clean_value(item) for key, item in value.items()}
        if isinstance(value, list | tuple):
            return [self.clean_value(item) for item in value]
        return value

    def _mask(self, text: str, names: list[str]) -> str:
        if self._secrets is None:
            self._secrets = self._read_secrets() if self._redact else {}
        found = {value: name for value, name in self._secrets.items() if value in text}
        if not found:
            return text
        import re

        parts = re.split(_MARKER, text)  # a marker is never looked into, so masking twice is safe
        parts[::2] = [_mask_all(part, found, names) for part in parts[::2]]
        return "".join(parts)

    def _escape(self, text: str) -> tuple[str, int]:
        if text.isascii() and (text.isprintable() or not _acts(text)):  # the one for short lines
            return text, 0
        if self._hidden is None:
            self._hidden = _compile_hidden()
        if self._hidden.search(text) is None:  # twice as fast as a substitution that finds nothing
            return text, 0
        return self._hidden.subn(lambda match: escape(match[0]), text)

    def _read_secrets(self) -> dict[str, str]:
        """Each text to hide, with the name that its marker shows."""
        secrets: dict[str, str] = {}
        for name in secret_names(self._environ, self._extra):
            value = self._environ[name].strip()
            if len(value) < SECRET_CHARS or (_is_public(value) and name not in self._extra):
                continue
            label = "".join(char if char.isalnum() else "_" for char in name)
            for form in _forms(value):
                secrets.setdefault(form, label)
                secrets.setdefault(self._escape(form)[0], label)  # as `clean` meets it
        return secrets


class Rate:
    """A token bucket: `burst` calls at once, `per_s` a second in the long run (0: no limit)."""

    __slots__ = ("_at", "_tokens", "burst", "per_s")

    def __init__(self, per_s: float = RATE_PER_S, burst: int = RATE_BURST) -> None:
        self.per_s = per_s
        self.burst = burst
        self._tokens = float(burst)
        self._at = float("-inf")

    @classmethod
    def parse(cls, text: str) -> "Rate":
        """The rate that `--rate` names: `10/20` (a second, burst), `10` (burst 20) or `off`.

        Raises: ValueError saying what is wrong.
        """
        if text == "off":
            return cls(0.0)
        first, slash, second = text.partition("/")
        try:
            per_s = float(first)
            burst = int(second) if slash else max(1, round(2 * per_s))
        except (ValueError, OverflowError):
            per_s, burst = 0.0, 0
        if not 0 < per_s < float("inf") or burst < 1:
            raise ValueError(
                f"'{text}' is not a rate: give calls a second and burst (10/20), or off"
            )
        return cls(per_s, burst)

    def take(self, now: float) -> float:
        """0.0 when a call may run at `now` (a clock in seconds), else how many seconds to wait."""
        if not self.per_s:
            return 0.0
        earned = (now - self._at) * self.per_s
        self._tokens = min(float(self.burst), self._tokens + earned)
        self._at = now
        if self._tokens < 1 - 1e-6:  # rounding: who waited as long as told must not be told again
            return (1 - self._tokens) / self.per_s
        self._tokens -= 1
        return 0.0


def secret_names(environ: "Iterable[str]", extra: "Sequence[str]" = ()) -> list[str]:
    """The names in `environ` that look secret by their words (parted by `_`) or are in `extra`."""
    return [name for name in environ if name in extra or _is_secret(name)]


def markers(text: str) -> set[str]:
    """The names of all `[REDACTED:NAME]` in `text`."""
    if _HEAD not in text:
        return set()
    import re

    return {marker[len(_HEAD) : -1] for marker in re.findall(_MARKER, text)}


def escape(char: str) -> str:
    r"""The visible form of a character: `\r`, `\x1b`, `\u202e`, `\U000e0041`; a stray byte's `\xNN`."""
    code = ord(char)
    if char == "\r":
        return r"\r"
    if 0xDC80 <= code <= 0xDCFF:  # a byte that was not UTF-8 (PEP 383)
        return f"\\x{code - 0xDC00:02x}"
    if code <= 0xFF:
        return f"\\x{code:02x}"
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"


def invisible(char: str) -> str:
    """The Unicode name (or `U+001B`) of a character that shows nothing or just a space, else "".

    Space, tab and newline are everyday: "".
    """
    if char in " \t\n":
        return ""
    from unicodedata import category, name

    code = ord(char)
    hidden = any(first <= code <= last for first, last, _ in _HIDDEN)
    if not hidden and category(char) not in ("Cf", "Zs", "Zl", "Zp"):
        return ""
    return name(char, f"U+{code:04X}")


def _acts(text: str) -> bool:
    """True when an ASCII text holds a character to be escaped."""
    if any(control in text for control in _ASCII_CONTROLS):
        return True
    return "\r" in text and text.count("\r") != text.count("\r\n")


def _compile_hidden() -> "re.Pattern[str]":
    r"""The expression that finds one character of `_HIDDEN` where it does not stay as it is.

    Its class is that of all others, negated: `re` then decides on nearly every character at its
    first test, up to twice as fast as by the class itself.
    """
    import re

    bounds = [-1, *(code for first, last, _ in _HIDDEN for code in (first, last)), 0x110000]
    gaps = ((bounds[i] + 1, bounds[i + 1] - 1) for i in range(0, len(bounds), 2))
    others = "".join(_range(first, last) for first, last in gaps if first <= last)
    hidden = "".join(_range(first, last) for first, last, _ in _HIDDEN)
    stays = "|".join(
        f"(?<=[{_range(first, last)}])(?:{where.replace('{hidden}', hidden)})"
        for first, last, where in _HIDDEN
        if where
    )
    return re.compile(f"[^{others}](?!{stays})", re.DOTALL)


def _range(first: int, last: int) -> str:
    return f"\\U{first:08x}-\\U{last:08x}"


def _is_secret(name: str) -> bool:
    words = name.upper().split("_")
    return name in _NAMES or any(word in _WORDS or word.endswith(_ENDINGS) for word in words)


def _is_public(value: str) -> bool:
    """True for a value that is no secret whatever its name: a path, a number, a plain word or two."""
    if value.startswith("/"):  # but one Base64 text in 64 starts so
        return not any(_is_random(part) for part in value.split("/"))
    if not value.strip("0123456789+-.,:_"):
        return True
    words = value.replace("-", "_").split("_")
    return len(words) <= 2 and all(map(_is_word, words))


def _is_word(text: str) -> bool:
    return len(text) <= 20 and text.isalpha() and (text[1:].islower() or text.isupper())


def _is_random(text: str) -> bool:
    kinds = (str.islower, str.isupper, str.isdigit)
    return len(text) >= 16 and all(any(map(kind, text)) for kind in kinds)


def _forms(value: str) -> "Iterator[str]":
    """The value as it is, in a JSON text and in a URL, and each of its long lines."""
    yield value
    yield dumps(value).decode("ascii")[1:-1]
    unreserved = "-._~"  # RFC 3986 section 2.3
    yield "".join(
        char
        if char in unreserved or (char.isascii() and char.isalnum())
        else "".join(f"%{byte:02X}" for byte in char.encode("utf-8", "surrogatepass"))
        for char in value
    )
    for line in value.replace("\\n", "\n").split("\n"):  # some keep a key's line ends as \n
        bare = line.strip()
        if len(bare) >= _LINE_CHARS and not bare.startswith("-----"):
            yield bare


def _mask_all(text: str, found: "Mapping[str, str]", names: list[str]) -> str:
    """`text` with a marker for each value; values that overlap leave nothing of each other."""
    spans = sorted(
        (at, -len(value), name) for value, name in found.items() for at in _places(value, text)
    )
    pieces: list[str] = []
    done = 0
    for start, minus_length, name in spans:
        end = start - minus_length
        if end <= done:
            continue
        if start >= done or name != names[-1]:
            pieces += (text[done:start], f"{_HEAD}{name}]")
            names.append(name)
        done = end
    return "".join(pieces) + text[done:]


def _places(value: str, text: str) -> "Iterator[int]":
    at = text.find(value)
    while at >= 0:
        yield at
        at = text.find(value, at + 1)
