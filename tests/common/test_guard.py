"""Answers hide secrets and hide nothing else: redaction, visible escapes, the rate limit."""

import re
import sys
from itertools import pairwise
from subprocess import run
from unicodedata import category
from urllib.parse import quote

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.guard import Cleaned, Guard, Rate, escape, invisible, markers, secret_names
from toolroll.jsontext import dumps

KEY = "sk-proj-4fT9xQ2mLw8ZbK"
OTHER = "ghp_A1b2C3d4E5f6G7h8"

HIDDEN = {
    *map(chr, [*range(9), 11, 12, *range(14, 32), *range(0x7F, 0xA0)]),
    *map(chr, [0x61C, 0x200B, 0x200E, 0x200F, *range(0x202A, 0x202F), 0x2060, 0xFEFF]),
    *map(chr, [*range(0x2066, 0x206A), *range(0xD800, 0xE000), *range(0xE0000, 0xE0080)]),
}
"""What no answer may hold, written down apart from the table in the code."""

CHOOSY = "\r\n\u200c\u200d\ufe0f\ufe01\U000e0101"
PIECES = [*"aZ9 \\x[]:_/ué漢👩", *CHOOSY, *"\x1b\u202e\u200b\ufeff\U000e0041\x9b\ud800\udc80"]
PIECES += ["[REDACTED:", "[REDACTED:A_KEY]", "\\u200d", "\\x1b", "REDACTED", "\u20e3"]

texts = st.lists(st.sampled_from(PIECES) | st.characters(), max_size=30).map("".join)
values = st.lists(st.sampled_from(PIECES), min_size=3, max_size=12).map("".join)
environs = st.dictionaries(st.sampled_from(["A_KEY", "B_TOKEN", "SECRET", "OTHER"]), values)


def guard(**environ: str) -> Guard:
    return Guard(environ)


def clean(text: str, **environ: str) -> str:
    return Guard(environ).clean(text).text


def outside_markers(text: str) -> list[str]:
    return re.split(r"\[REDACTED:\w+\]", text)


@st.composite
def environs_and_texts(draw: st.DrawFn) -> tuple[dict[str, str], str]:
    environ = draw(environs)
    parts = texts if not environ else texts | st.sampled_from(sorted(environ.values()))
    return environ, "".join(draw(st.lists(parts, max_size=6)))


# Properties


@settings(deadline=None, max_examples=150)
@given(environs_and_texts())
def test_a_cleaned_text_holds_no_hidden_character(case: tuple[dict[str, str], str]) -> None:
    environ, text = case
    shown = Guard(environ).clean(text).text
    assert not HIDDEN & set(shown)
    assert "\r" not in shown.replace("\r\n", "")


@settings(deadline=None, max_examples=200)
@given(environs_and_texts())
def test_no_secret_is_left_outside_the_markers(case: tuple[dict[str, str], str]) -> None:
    environ, text = case
    names = tuple(environ)
    guarded = Guard(environ, extra=names)
    secrets = [value.strip() for value in environ.values() if len(value.strip()) >= 8]
    for shown in (guarded.clean(text).text, guarded.mask(text)):
        for part in outside_markers(shown):
            assert not [secret for secret in secrets if secret in part]


@settings(deadline=None, max_examples=200)
@given(environs_and_texts())
def test_cleaning_twice_changes_nothing(case: tuple[dict[str, str], str]) -> None:
    environ, text = case
    guarded = Guard(environ, extra=tuple(environ))
    once = guarded.clean(text)
    twice = guarded.clean(once.text)
    assert (twice.text, twice.redacted, twice.escaped) == (once.text, (), 0)
    assert guarded.mask(guarded.mask(text)) == guarded.mask(text)


@settings(deadline=None)
@given(texts)
def test_the_count_is_of_the_characters_that_became_visible(text: str) -> None:
    cleaned = guard().clean(text)
    assert (cleaned.escaped == 0) == (cleaned.text == text)
    assert len(text) + cleaned.escaped <= len(cleaned.text) <= len(text) + 9 * cleaned.escaped


@settings(deadline=None)
@given(
    st.text(st.characters(categories=["L", "N", "P", "S", "Zs"], exclude_characters="\u3164\uffa0"))
)
def test_ordinary_text_comes_back_as_the_same_object(text: str) -> None:
    text = f"{text}\n\t"
    assert guard(A_KEY=KEY).clean(text).text is text


# Secrets


def test_a_secret_becomes_a_marker_with_its_name() -> None:
    cleaned = guard(OPENAI_API_KEY=KEY).clean(f"key = '{KEY}'\n")
    assert cleaned.text == "key = '[REDACTED:OPENAI_API_KEY]'\n"
    assert cleaned.redacted == ("OPENAI_API_KEY",)


def test_names_are_told_in_the_order_of_their_first_appearance() -> None:
    cleaned = guard(A_KEY=KEY, B_TOKEN=OTHER).clean(f"{OTHER} {KEY} {OTHER}")
    assert cleaned.redacted == ("B_TOKEN", "A_KEY")


@pytest.mark.parametrize(
    "name",
    [
        "API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "GITHUB_TOKEN",
        "MYSQL_PWD",
        "OPENAI_APIKEY",
        "PGPASSWORD",
        "GOOGLE_CREDENTIALS",
        "npm_config__authToken",
        "db_passwd",
        "SMTP_PASS",
        "KEYS",
    ],
)
def test_a_secret_name_is_known_by_its_words(name: str) -> None:
    assert secret_names({name: "", "PATH": ""}) == [name]


@pytest.mark.parametrize(
    "name", ["KEYBOARD", "MONKEY", "PWD", "OLDPWD", "BYPASS", "TOKENIZERS_PARALLELISM", "HOME"]
)
def test_a_name_that_only_contains_such_letters_is_no_secret(name: str) -> None:
    assert secret_names({name: ""}) == []


def test_extra_names_count_only_where_they_are_set() -> None:
    assert secret_names({"DATABASE_URL": "", "HOME": ""}, ["DATABASE_URL", "UNSET"]) == [
        "DATABASE_URL"
    ]


@pytest.mark.parametrize(
    "value",
    [
        "development",
        "Production",
        "client_credentials",
        "read-only",
        "100000000",
        "1_000_000.5",
        "/etc/ssl/private/server.key",
        "/home/somebody/.config/application/token2.json",
        "short1!",
    ],
)
def test_a_path_a_number_a_plain_word_or_a_short_value_is_left_alone(value: str) -> None:
    assert clean(f"x {value} y", SECRET_KEY=value) == f"x {value} y"


@pytest.mark.parametrize(
    "value",
    [KEY, "hunter2hunter2", "correct-horse-battery-staple", "/x8Kq2mLw9ZbT4vRc/Y+s=", "päss wörd"],
)
def test_any_other_value_of_eight_characters_is_hidden(value: str) -> None:
    assert clean(f"x{value}y", SECRET_KEY=value) == "x[REDACTED:SECRET_KEY]y"


@pytest.mark.parametrize("value", ["development", "/etc/ssl/private/server.key", "100000000"])
def test_a_value_named_by_the_operator_is_hidden_whatever_it_is(value: str) -> None:
    assert Guard({"STAGE": value}, extra=["STAGE"]).mask(value) == "[REDACTED:STAGE]"


def test_a_short_value_is_left_alone_even_when_named_by_the_operator() -> None:
    assert Guard({"STAGE": "testing"}, extra=["STAGE"]).mask("testing") == "testing"


def test_blanks_around_a_value_do_not_protect_it() -> None:
    assert clean(KEY, A_KEY=f" {KEY}\n") == "[REDACTED:A_KEY]"


def test_the_longer_of_two_nested_secrets_is_named() -> None:
    environ = {"INNER_KEY": KEY, "OUTER_KEY": f"user:{KEY}@host"}
    assert clean(f"user:{KEY}@host {KEY}", **environ) == "[REDACTED:OUTER_KEY] [REDACTED:INNER_KEY]"


def test_overlapping_secrets_leave_nothing_of_each_other() -> None:
    environ = {"A_KEY": "abcd1234efgh", "B_KEY": "efgh5678ijkl"}
    assert clean("<abcd1234efgh5678ijkl>", **environ) == "<[REDACTED:A_KEY][REDACTED:B_KEY]>"


def test_a_secret_that_overlaps_itself_is_hidden_as_one() -> None:
    assert clean("<ab1ab1ab1ab1>", A_KEY="ab1ab1ab1") == "<[REDACTED:A_KEY]>"


def test_a_private_key_is_hidden_whole_in_a_json_text_and_line_by_line() -> None:
    lines = ["MIIEpAIBAAKCAQEAx" + str(n) * 47 for n in range(3)]
    pem = "\n".join(["-----BEGIN PRIVATE KEY-----", *lines, "-----END PRIVATE KEY-----"])
    for stored in (pem, pem.replace("\n", "\\n")):
        guarded = guard(SIGNING_KEY=stored)
        for shown in (pem, dumps({"key": pem}).decode(), f"  {lines[1]}", "\r\n".join(lines)):
            masked = guarded.mask(shown)
            assert "[REDACTED:SIGNING_KEY]" in masked
            assert "MIIE" not in masked
    assert guard(SIGNING_KEY=pem).mask(pem) == "[REDACTED:SIGNING_KEY]"


def test_the_header_of_a_private_key_alone_is_no_secret() -> None:
    header = "-----BEGIN OPENSSH PRIVATE KEY-----"
    assert clean(header, SSH_KEY=f"{header}\n{'b3BlbnNzaC1rZXk' * 4}\n-----END") == header


@pytest.mark.parametrize("value", ['pass"word\\1', "p@ss/w ord&1", "grün%straße7"])
def test_a_value_is_hidden_in_json_and_in_a_url_too(value: str) -> None:
    guarded = guard(DB_PASSWORD=value)
    assert guarded.mask(dumps([value]).decode()) == '["[REDACTED:DB_PASSWORD]"]'
    assert guarded.mask(f"db://me:{quote(value, safe='')}@h") == "db://me:[REDACTED:DB_PASSWORD]@h"


def test_a_value_with_a_control_character_is_hidden_before_and_after_its_escape() -> None:
    assert clean("<abc\x1bdef12>", A_KEY="abc\x1bdef12") == "<[REDACTED:A_KEY]>"
    assert clean("<abc\x1bdef12>", A_KEY=r"abc\x1bdef12") == "<[REDACTED:A_KEY]>"


def test_a_name_of_odd_characters_still_gives_a_marker() -> None:
    assert Guard({"my-app.API_KEY": KEY}).mask(KEY) == "[REDACTED:my_app_API_KEY]"


def test_without_redaction_secrets_stay_and_escapes_remain() -> None:
    assert Guard({"A_KEY": KEY}, redact=False).clean(f"{KEY}\x1b").text == f"{KEY}\\x1b"


def test_a_mask_leaves_control_characters_alone() -> None:
    assert guard(A_KEY=KEY).mask(f"\x1b[0m{KEY}\r") == "\x1b[0m[REDACTED:A_KEY]\r"


def test_the_environment_is_not_read_before_the_first_text() -> None:
    environ: dict[str, str] = {}
    guarded = Guard(environ)
    environ["LATE_TOKEN"] = KEY
    assert guarded.mask(KEY) == "[REDACTED:LATE_TOKEN]"


def test_the_strings_of_a_value_are_cleaned_wherever_they_stand() -> None:
    value = {"a\x1b": [KEY, 1, None, True, {"deep": f"<{KEY}>"}], "b": 2.5}
    assert guard(A_KEY=KEY).clean_value(value) == {
        "a\\x1b": ["[REDACTED:A_KEY]", 1, None, True, {"deep": "<[REDACTED:A_KEY]>"}],
        "b": 2.5,
    }


def test_markers_are_found_by_name() -> None:
    assert markers("[REDACTED:A_KEY] [REDACTED:B_2] [REDACTED:A_KEY]") == {"A_KEY", "B_2"}
    assert markers("[REDACTED] [REDACTED:] REDACTED:A_KEY] [REDACTED:A KEY]") == set()


def test_a_joiner_that_loses_its_symbol_to_a_marker_is_shown() -> None:
    assert clean("12漢字漢字漢字\u200dx", A_KEY="12漢字漢字漢字") == r"[REDACTED:A_KEY]\u200dx"


def test_a_marker_is_never_looked_into() -> None:
    guarded = Guard({"MINE": "REDACTED", "A_KEY": "B_TOKEN_2", "B_TOKEN_2": KEY}, extra=["MINE"])
    shown = "[REDACTED:MINE] [REDACTED:B_TOKEN_2] [REDACTED:A_KEY]"
    assert guarded.clean(f"REDACTED {KEY} B_TOKEN_2").text == shown
    assert guarded.clean(shown).text == shown


def test_a_literal_marker_is_not_counted_as_redacted() -> None:
    cleaned = guard(A_KEY=KEY).clean("[REDACTED:A_KEY]")
    assert (cleaned.text, cleaned.redacted) == ("[REDACTED:A_KEY]", ())


@pytest.mark.parametrize(
    ("redacted", "escaped", "note"),
    [
        ((), 0, ""),
        ((), 1, "1 character escaped"),
        (("A_KEY", "B_KEY"), 0, "redacted: A_KEY, B_KEY"),
        (("A_KEY",), 3, "redacted: A_KEY; 3 characters escaped"),
    ],
)
def test_the_note_says_what_was_changed(redacted: tuple[str, ...], escaped: int, note: str) -> None:
    assert Cleaned("", redacted, escaped).note == note


# Hidden characters


@pytest.mark.parametrize("around", ["{}", "a{}b", "é{}漢"])
def test_a_hidden_character_is_shown_wherever_it_stands(around: str) -> None:
    guarded = guard()
    for char in HIDDEN:
        cleaned = guarded.clean(around.format(char))
        assert (cleaned.text, cleaned.escaped) == (around.format(escape(char)), 1)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred", r"\x1b[31mred"),
        ("\x9b31m", r"\x9b31m"),
        ("if \u202etrue", r"if \u202etrue"),
        ("\U000e0041\U000e007f", r"\U000e0041\U000e007f"),
        ("caf\udce9", r"caf\xe9"),
        ("\ud800", r"\ud800"),
        ("one\rtwo\r\nthree\r", "one\\rtwo\r\nthree\\r"),
        ("é\r\r\n", "é\\r\r\n"),
        ("pass\u200dword", r"pass\u200dword"),
        ("a\u200c\u200d\u200cb", r"a\u200c\u200d\u200cb"),
        ("a\U000e0100\U000e0101", r"a\U000e0100\U000e0101"),
        ("👍\U000e0100\U000e0101", r"👍\U000e0100\U000e0101"),
        ("漢\U000e0100\U000e0101", "漢\U000e0100\\U000e0101"),
        ("x\ufe0f", r"x\ufe0f"),
        ("👍\ufe0f\ufe01\ufe02", "👍\ufe0f\\ufe01\\ufe02"),
    ],
)
def test_what_hides_or_acts_is_shown_as_an_escape(text: str, shown: str) -> None:
    assert clean(text) == shown


@pytest.mark.parametrize(
    "text",
    [
        "tab\tand newline\n",
        "dos\r\nlines\r\n",
        "naïve “quotes” — 漢字 　 \u00a0",
        "می\u200cخواهم API\u200cها",  # noqa: RUF001 - Persian is meant
        "क्\u200dष",
        "👨\u200d👩\u200d👧 ❤\ufe0f\u200d🔥 1\ufe0f\u20e3 🏳\ufe0f\u200d🌈",
        "葛\U000e0100城",
        r"\x1b[0m \u202e is only text",
    ],
)
def test_what_writing_needs_stays_as_the_same_object(text: str) -> None:
    assert guard().clean(text).text is text


@pytest.mark.parametrize(
    ("char", "name"),
    [
        ("\u200b", "ZERO WIDTH SPACE"),
        ("\u00a0", "NO-BREAK SPACE"),
        ("\u00ad", "SOFT HYPHEN"),
        ("\u202e", "RIGHT-TO-LEFT OVERRIDE"),
        ("\ufe0f", "VARIATION SELECTOR-16"),
        ("\x1b", "U+001B"),
        ("\udc80", "U+DC80"),
        ("\r", "U+000D"),
        *((char, "") for char in " \t\na_é漢"),
    ],
)
def test_an_invisible_character_has_a_name(char: str, name: str) -> None:
    assert invisible(char) == name


def test_every_control_and_format_character_is_invisible() -> None:
    nameless = [
        hex(code)
        for code in range(sys.maxunicode + 1)
        if category(chr(code)) in ("Cc", "Cf", "Cs") and not invisible(chr(code))
    ]
    assert nameless == ["0x9", "0xa"]


def test_clean_ascii_needs_no_regular_expressions() -> None:
    code = (
        "import sys; before = 're' in sys.modules; from toolroll.guard import Guard;"
        f"assert Guard({{'A_KEY': '{KEY}'}}).clean('plain\\r\\n').text == 'plain\\r\\n';"
        "assert before or 're' not in sys.modules"
    )
    done = run([sys.executable, "-c", code], capture_output=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr.decode()


# The rate limit

rates = st.tuples(st.floats(0.1, 1000), st.integers(1, 50))
moments = st.lists(st.floats(0, 10) | st.integers(0, 3).map(float), min_size=1, max_size=200).map(
    sorted
)


@settings(deadline=None)
@given(rates, moments)
def test_no_span_of_time_sees_more_calls_than_burst_and_rate_allow(
    rate: tuple[float, int], times: list[float]
) -> None:
    per_s, burst = rate
    limit = Rate(per_s, burst)
    passed = [now for now in times if limit.take(now) == 0.0]
    for first, start in enumerate(passed):
        for last in range(first, len(passed)):
            assert last - first + 1 <= burst + per_s * (passed[last] - start) + 1e-5


@settings(deadline=None)
@given(rates, st.floats(0, 1e6))
def test_who_waits_as_long_as_told_may_go_on(rate: tuple[float, int], start: float) -> None:
    limit = Rate(*rate)
    while not (wait := limit.take(start)):
        pass
    assert limit.take(start + wait) == 0.0


@settings(deadline=None)
@given(rates, st.lists(st.floats(0, 100), min_size=1, max_size=100))
def test_a_clock_that_goes_back_earns_nothing(rate: tuple[float, int], times: list[float]) -> None:
    limit = Rate(*rate)
    passed = sum(limit.take(now) == 0.0 for now in times)
    assert passed <= rate[1] + rate[0] * (max(times) - times[0]) + 1e-5


def test_the_usual_rate_lets_a_burst_pass_and_then_fifty_a_second() -> None:
    limit = Rate()
    assert [limit.take(0.0) for _ in range(100)] == [0.0] * 100
    assert limit.take(0.0) == pytest.approx(0.02)
    assert sum(limit.take(1.0) == 0.0 for _ in range(100)) == 50


def test_waiting_is_told_shorter_as_time_goes_by() -> None:
    limit = Rate(1, 1)
    limit.take(0.0)
    waits = [limit.take(now) for now in (0.1, 0.5, 0.9)]
    assert all(later < earlier for earlier, later in pairwise(waits))


@pytest.mark.parametrize(
    ("text", "per_s", "burst"),
    [("10/20", 10, 20), ("0.5/3", 0.5, 3), ("10", 10, 20), ("0.1", 0.1, 1)],
)
def test_a_rate_is_read_from_its_option(text: str, per_s: float, burst: int) -> None:
    limit = Rate.parse(text)
    assert (limit.per_s, limit.burst) == (per_s, burst)


def test_a_rate_that_is_off_never_waits() -> None:
    limit = Rate.parse("off")
    assert not any(limit.take(0.0) for _ in range(1000))


@pytest.mark.parametrize(
    "text", ["", "0", "-1", "10/0", "10/", "a/b", "nan", "inf", "1e999/2", "5/1.5"]
)
def test_anything_else_is_no_rate(text: str) -> None:
    with pytest.raises(ValueError, match=f"'{re.escape(text)}' is not a rate"):
        Rate.parse(text)
