"""The reader of bash: where commands stand, what their words are, and that no text stops or slows it."""

import functools
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from toolroll_bash.reader import DEPTH, UNKNOWN, Reader

MANY = 10**9
U = UNKNOWN
ENVIRONMENT = {"PATH": os.environ["PATH"], "LC_ALL": "C.UTF-8"}


def reading(text: str) -> Reader:
    """A reading without a limit to its work."""
    return Reader(text, MANY).read()


def commands(text: str) -> list[str]:
    """The commands of a text that can be read, sorted: words joined, UNKNOWN shown as `_`."""
    reader = reading(text)
    assert not reader.lost
    found = [f"{c.function}()" if c.function else " ".join(c.texts) for c in reader.commands]
    return sorted(one.replace(U, "_") for one in found)


@functools.cache
def accepted(text: str) -> bool:
    """True when bash can read the text, with extended patterns, and complains of nothing."""
    command = ["bash", "--norc", "-O", "extglob", "-n", "-c", text]
    done = subprocess.run(command, check=False, capture_output=True, timeout=20, env=ENVIRONMENT)
    return not done.returncode and not done.stderr


READ = {
    # lists
    "a b; c & d | e |& f && g || h\ni": "a b; c; d; e; f; g; h; i",
    "a&b;c|d": "a; b; c; d",
    "a &\\\n& b": "a; b",
    "(a; (b)); ( (c) )": "a; b; c",
    "{ a; }; { b; } 2>x | { c\n}": "a; b; c",
    "! a; ! ! b; !(c)": "a; b; c",
    "time a; time -p b; time -p -- c; \\time -p d": "a; b; c; time -p d",
    "a # b; c\n# d\n e#f;#g": "a; e#f",
    " \t\n\\\n": "",
    # compound commands
    "if a; then b; elif c\nthen d; else e; fi | f": "a; b; c; d; e; f",
    "while a; do b; done <c; until d; do e; done &": "a; b; d; e",
    "for x in a $(b); do c; done; for x do d; done; for x\nin # e\ndo f; done": "b; c; d; f",
    "for ((i=0; i<(3); i++)); do a; done; for ((;;)) { b; }": "a; b",
    "for do in do do; do do=1 a; done; select x in a; { b; }": "a; b",
    "case $(a) in b|c) d ;; e) f;& (esac) g;;& *) esac; h": "a; d; f; g; h",
    "case x # y\nin # z\n [[:a:]]) if b; then c; fi\nesac": "b; c",
    "case a in b) case c in d) e; esac esac; f": "e; f",
    "case x i\\\nn if) a;; then|for) b;; @(c|d)) e;; esac": "a; b; e",
    "$(case x in a) b;; esac) c; case x in esac; d": "_ c; b; d",
    "f() { a; }; g ( )\n(b); function h { c; }; function i() ((1)); j": "f(); a; g(); b; h(); c; i(); j",
    "function f\n{ a; }; $x() { b; }": "_(); a; b; f()",
    "coproc a b; coproc { c; }; coproc d { e; }; coproc f (g); coproc >x h": "a b; c; e; g; h",
    "coproc x=1 a; coproc b while c; do d; done; coproc time e": "a; c; d; e",
    "[[ -f a && ( b < c ) || $(d) == @(e|f g) ]] && h": "d; h",
    "[[ $x =~ ^(a b|c;d)+$ ]]; e; [[ x =~ a|b ]]; f": "e; f",
    "[[ -n a\n&& -n b # c ]]\n]]; d; [[ a ]]&&e": "d; e",
    "((a)); ((b < $(c))) && d; (( ')' )); if ((1)) then e; fi": "c; d; e",
    "((a) ); ((b); (c)); $((d) ) $( (e) ) $((f) | (g))": "_ _ _; a; b; c; d; e; f; g",
    # words
    "\\a b\\ c 'd e' \"f 'g' \\\" $h\" i'j'\"k\"": "a b c d e f 'g' \" _ ijk",
    "a$'\\x63\\165\\'' $\"b c\" $'d\\0e'f '$(g)' \\$h \"\\$(i)\"": "acu' b c df $(g) $h $(i)",
    "c\\\nu\\\nrt; i\\\nf a; then b; fi; $\\\n(c)": "_; a; b; c; curt",
    "$a $1b ${c} $((d)) $[e] $$ f$ g*h [i] j]k [l ~/m": "_ _b _ _ _ _ f$ g_h [i_ j]k [l ~/m",
    "a <(b) c>(d) $(e $(f))": "a _ c_ _; b; d; e _; f",
    'a `b \\`c\\`` "`d "e f"`" "$(g "$(h "i")")"': "a _ _ _; b _; c; d e f; g _; h i",
    "a ${b:-$(c)} ${d:-\"$(e })\"} ${f:-`g }`} ${h#'}'} ${i:-<(j})}": "a _ _ _ _ _; c; e }; g }; j}",
    'a "${b:-"}"}" $((`c` + $(d))) "$(( ${e )) $[$(f)]"': "a _ _ _ _; c; d; f",
    "a @(b|c d) +(e)?(f) !(g)h": "a @_ +___ !_h",
    '{a,b}c {d} {e,"f,g"} h{,i} {1..3} {j,k{l,m}} ${n,o}': "ac bc {d} e f,g h hi _ j kl km _",
    "x{ {a,b{c,d} e} }": "x{ {a,bc {a,bd e} }",
    "{,a,{,b}} {c..e}f {e..d} '' {\"\",g}; {h,}i": "a b cf df ef e d   g; hi i",
    "a \"${b:-'$(c)'}\" \"${b#'$(d)'}\" ${b:-'$(e)'} \"${b+'it'`f`}\"": "a _ _ _ _; c; f",
    # assignments and redirections
    "a=1 b+=2 c[1 + 2]=3 d=(e $(f) [g h]=i # )\n) j k=l": "f; j k=l",
    "a=1; b='c d' e=$(f) \"g\"=h": "f; g=h",
    "a=(b)c d; e[f]g h; i[[j k]]=l m": "d; e[_]g h; m",
    "declare -A a=([b]=c) d=(e); export f=(g)": "declare -A a=_ d=_; export f=_",
    ">a b; 2>&1 c >d e 2>f; {g}<h i; &>j k; l<&3- m 5n>o": "b; c e; i; k; l m 5n",
    "a>|b c<>d e>>f; g &>>h; i<j>k": "a c e; g; i",
    "a 2>(b) <(c)d": "a 2_ _d; b; c",
    # here-documents
    "a <<b\nc $(d) `e`\nb\nf <<'g'\n$(h)\ng\ni": "a; d; e; f; i",
    'a <<-b\n\tc\n\tb\nd <<\\e <<"f" >g\nh\ne\ni\nf\nj': "a; d; j",
    "a <<b && (c\nd\nb\n) | e\nf": "a; c; e; f",
    "a <\\\n<b\nc\nb\nd <<b\\\nc\ne\nbc\nf <<b\ng\\\nb\nb\nh": "a; d; f; h",
    "a <<$(b)${c}\n$(b)${c}\nd <<'e'$'\\x66'\"g\\\"\"\nefg\"\nh": "a; d; h",
    "a $(b <<c\n$(d)\nc\n) e; f": "a _ e; b; d; f",
    "a <<b $(c\nd)\ne\nb\nf": "a _; c; d; f",
    "a <<'b'; case x in\nc\nb\nd) e;; esac; f <<b; for x\ng\nb\nin h; do i; done": "a; e; f; i",
    'a <<<b <<<"$(c)"; d': "a; c; d",
    'a <<b\n"$(c "d")" \\$(e) ${f:-$(g)} ${h:-\'$(i)\'}\nb\n': "a; c d; g; i",
}
"""What stands in command position; `_` for UNKNOWN, `()` behind the name of a function."""


@pytest.mark.parametrize("text", READ)
def test_the_words_of_every_command_are_found(text: str) -> None:
    assert commands(text) == sorted(filter(None, READ[text].split("; ")))


@pytest.mark.parametrize("text", READ)
def test_the_table_is_of_texts_that_bash_reads(text: str) -> None:
    assert accepted(text)


@pytest.mark.parametrize("name", ["a+", "b?", "c@", "d.e-f", "g!"])
def test_a_function_may_have_a_name_that_looks_like_a_pattern(name: str) -> None:
    functions = [command.function for command in reading(f"{name}() {{ x; }}").commands]
    assert [one.replace(U, name[-1]) for one in functions] == [name, ""]


HERE = {
    "sh <<a\n1\n2\na\n": "1\n2\n",
    'sh <<a\n$x \\$y \\\nz "`q`"\na\n': '_ $y z "_"\n',
    "sh <<'a'\n$x \\$y\na\n": "$x \\$y\n",
    "sh <<-a\n\t1\n\t\t2\n\ta\n": "1\n2\n",
    "sh <<a <<b\n1\na\n2\nb": "2\n",
    "sh <<<'a b'": "a b",
    "sh <<a\n1": "1",
    "sh 0<<a 3<<b >c\n1\na\n2\nb\n": "1\n",
}


@pytest.mark.parametrize("text", HERE)
def test_what_is_on_a_commands_stdin_is_known(text: str) -> None:
    command = next(c for c in reading(text).commands if c.texts[0] == "sh")
    assert command.here is not None
    assert command.here.text.replace(U, "_") == HERE[text]


def test_a_file_on_stdin_takes_the_place_of_a_here_document() -> None:
    assert reading("sh <<a <file\n1\na\n").commands[0].here is None


def test_a_place_is_that_of_the_first_word_in_the_text_itself() -> None:
    text = "x=1 one >y; two `three`"
    found = [text[slice(*command.place)] for command in reading(text).commands]
    assert found == ["one", "`three`", "two"]


LOST = [
    "a 'b",
    'a "b',
    "a $(b",
    "a ${b",
    "a `b",
    "(a",
    "a)",
    "case a in b) c",
    "[[ a",
    "a=(b",
    "a $'b",
]
LOST += ["a <(b", "esac", "a;; b", "a(b)", "case a b", "a=(b;c)", "a >", "function"]


@pytest.mark.parametrize("text", LOST)
def test_what_makes_no_sense_is_said_to(text: str) -> None:
    reader = reading(f"x; {text}")
    assert reader.lost
    assert reader.commands[0].texts == ["x"]
    assert not accepted(text)


@pytest.mark.parametrize(
    ("opening", "closing"), [("$(", ")"), ("${x:-", "}"), ('"$(', ')"'), ("<(", ")"), ("$((", "))")]
)
def test_nesting_is_read_down_to_a_limit(opening: str, closing: str) -> None:
    def nested(levels: int) -> Reader:
        return reading(f"{opening * levels} $(b) {closing * levels}; c")

    found = {command.texts[0] for command in nested(DEPTH - 10).commands}
    assert found >= {"b", "c"}
    assert nested(DEPTH + 10).lost
    assert nested(100_000).lost


def test_compound_commands_are_read_however_deep() -> None:
    for opening, closing in (("(", ")"), ("{ ", "; }"), ("if ", "; then x; fi"), ("( ", " )")):
        reader = reading(f"{opening * 20_000}a{closing * 20_000}; b")
        assert not reader.lost
        assert {"b"} <= {command.texts[0] for command in reader.commands}


# -- generated texts: of each the commands are known -----------------------------------------------------

JOINTS = st.sampled_from(("; ", "\n", " && ", " || ", " | ", " |& ", " & ", ";\n# x; y\n", "\\\n;"))
PLAIN_WORDS = (
    r"""w w=v -x '#' \; 'a;b(' "c|d)" $'e\'f;' $v ${v:-w} "${v#'}'}" * [a-z]* {a,b} w#x if }"""
)
WORDS = st.sampled_from((*PLAIN_WORDS.split(), "$((1 + (2)))", "a\\\nb"))
REDIRECTS = st.sampled_from(("", "", "", " >f", " 2>&1", " <<<w", " {v}>f", " &>f", " >f <f"))
PREFIXES = st.sampled_from(
    ("", "", "", "v=w ", "v=(w 'x)' w) ", ">f ", "v[1 + 2]=w ", "v='a b' u= ")
)
DOCUMENTS = st.sampled_from(("", "", " <<E", " <<'E'", " <<-E"))


def simple(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A simple command: `@` marks the place of its name."""
    shapes = (
        "$( %\n)",
        '"$( % )"',
        "<(%\n)",
        '"${v:-$(%\n)}"',
        "$((1 + $(%\n)))",
        "` @`",
        '"`@ `"',
    )
    holders = st.tuples(st.sampled_from(shapes), inner).map(lambda one: one[0].replace("%", one[1]))
    words = st.lists(st.one_of(WORDS, WORDS, holders), max_size=3).map(
        lambda words: "".join(f" {w}" for w in words)
    )
    return st.tuples(PREFIXES, st.just("@"), words, REDIRECTS).map("".join)


def compound(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    """A compound command around others."""
    frames = (
        "( % )",
        "{ %; }",
        "if %; then %\nelse %; fi",
        "while %; do %; done >f",
        "for v in a b; do %; done",
        "for ((;;)); do %; done",
        "case w in a|b) %;; (c) %;& *) % ; esac",
        "f() { %; }",
        "function f { %; }",
        "! %",
        "time -p { %; }",
        "coproc v { %; }",
        "[[ a == b || ( -n c ) ]] && %",
        "@ <<E; @\nbody ( ' $(@)\nE\n%",
        "@ <<'E' | @\n$(x) ` '\nE\n%",
        "@ <<-E && {\n\tit's\n\tE\n%; }",
    )

    def fill(one: tuple[str, list[str]]) -> str:
        frame, parts = one
        for part in parts:
            frame = frame.replace("%", part, 1)
        return frame

    return st.tuples(st.sampled_from(frames), st.lists(inner, min_size=3, max_size=3)).map(fill)


def lists(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    one = st.one_of(simple(inner), compound(inner))
    return st.lists(st.tuples(one, JOINTS), min_size=1, max_size=3).map(
        lambda parts: "".join(f"{a}{b}" for a, b in parts[:-1]) + parts[-1][0]
    )


TEXTS = st.recursive(simple(st.just("@")), lists, max_leaves=6)


def numbered(text: str) -> str:
    """Each command's name in place of its mark."""
    first, *rest = text.split("@")
    return first + "".join(f"n{number}{part}" for number, part in enumerate(rest))


@settings(deadline=None, max_examples=120)
@given(TEXTS)
def test_commands_stand_where_they_were_put(text: str) -> None:
    text = numbered(text)
    assume(accepted(text))
    reader = reading(text)
    assert not reader.lost
    names = [command.texts[0] for command in reader.commands if not command.function]
    assert sorted(names) == sorted(f"n{number}" for number in range(len(names)))
    assert all(f"n{number}" in text for number in range(len(names)))
    assert f"n{len(names)}" not in text


# -- any text ----------------------------------------------------------------------------------------------

PLAIN_TOKENS = r"""
a b if then fi for x in do done while case esac { } ( ) (( )) [[ ]] ; ;; ;& & && | || ! time coproc f()
function < > >> << <<- <<< <& >& &> <( >( $( $(( $[ ${ ] } ` " ' $' $" \ # = a= a=( a[ += ,{ .. =~ == @( *(
!( * ? [ $x $@ A 2 {fd} -p --
"""
TOKENS = [*PLAIN_TOKENS.split(), " ", " ", "\n", "\\\n", "\t", "\0", "é", "\x85", "\r", "\u2028"]
SOUND = [*READ, "cat <<A\nx\nA\n", "$(a)", "[[ a =~ (b) ]]", "a=(b)", "((1))", "x; y"]
NOISE = st.lists(st.one_of(st.sampled_from(TOKENS), st.text(max_size=3)), max_size=12)


@st.composite
def mutations(draw: st.DrawFn) -> str:
    """Sound texts, a little spoiled."""
    parts = draw(st.lists(st.sampled_from(SOUND), min_size=1, max_size=2))
    text = draw(st.sampled_from(("; ", "\n", " "))).join(parts)
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(text)))
        token = draw(st.sampled_from([*TOKENS, ""]))
        text = text[:at] + token + text[at + (not token) :]
    return text


@settings(deadline=None, max_examples=300)
@given(st.one_of(NOISE.map("".join), mutations()))
def test_nothing_stops_the_reader(text: str) -> None:
    reader = reading(text)
    assert reader.steps <= 40 * len(text) + 100
    assert all(command.words or command.function for command in reader.commands)


@settings(deadline=None, max_examples=200)
@given(mutations())
def test_what_bash_reads_is_read_to_its_end(text: str) -> None:
    """But for what bash does not look into, `$((a)|)`, and where it stops without a word, `[[ ]]`."""
    assume("\0" not in text)
    if reading(text).lost:
        wholly = accepted(text) and not accepted(f"{text}\n)")
        assert not wholly or not accepted(text.replace("$((", "$( (").replace("!(", "! ("))


# -- real scripts ------------------------------------------------------------------------------------------


def scripts() -> Iterator[Path]:
    """Scripts of this machine, as far as it has any."""
    for folder in ("/usr/bin", "/usr/sbin", "/etc/init.d", "/usr/lib/git-core", "/usr/share"):
        for path in sorted(Path(folder).glob("*" if folder != "/usr/share" else "**/*.sh")):
            if path.is_file() and path.stat().st_size < 200_000 and os.access(path, os.R_OK):
                with path.open("rb") as file:
                    first = file.readline(80)
                if first.startswith(b"#!") and first.rstrip().endswith((b"/sh", b"bash", b"sh -e")):
                    yield path


def test_real_scripts_are_read_to_their_end() -> None:
    found = [*scripts()][:150]
    for path in found:
        text = path.read_text(encoding="utf-8", errors="surrogateescape")
        reader = reading(text)
        odd = [
            c.texts[0] for c in reader.commands if c.words and set(c.texts[0]) & set("\n;(){}|<>")
        ]
        if reader.lost or odd:
            assert not accepted(text), path


# -- work ----------------------------------------------------------------------------------------------------

REPEATED = [
    "(",
    "(( ",
    "$((",
    "$(",
    "${",
    '"$(',
    "`",
    "`\\",
    "a <<A\n",
    "a 'b' \"c\" ",
    "{",
    "{a,",
    "{a,b}",
]
REPEATED += [
    "[",
    "a[]",
    "case x in a) ",
    "if ",
    "a=(",
    "[[ ",
    "<(",
    "\\\n",
    "&",
    "coproc ",
    "@(",
    "#",
    "\\a",
]
REPEATED += [
    " #\n",
    "$'\\x41",
    "2>",
    '"$x',
    "'",
    "a <\\\n",
    "a <<A\n$(b <<B\n$(c)\nB\n)\nA\n",
    "f() ",
    "\n",
]
ENCLOSED = [
    ("a" + " <<A", "\nA"),
    ("(", ")"),
    ("( ", " )"),
    ("$(( ", " ) )"),
    ("case x in a) ", " esac"),
]


@pytest.mark.parametrize("part", REPEATED)
def test_work_grows_with_the_length_and_no_more(part: str) -> None:
    for tail in ("", "x", " <<A\nx\n", "'"):
        few, many = reading(part * 200 + tail).steps, reading(part * 1600 + tail).steps
        assert many <= 9 * few + 1_000


@pytest.mark.parametrize(("opening", "closing"), ENCLOSED)
def test_the_same_for_what_is_closed(opening: str, closing: str) -> None:
    few, many = (reading(opening * n + "x" + closing * n).steps for n in (500, 4000))
    assert many <= 9 * few + 1_000


def test_a_limit_to_the_work_ends_a_reading() -> None:
    reader = Reader("a; " * 1000, 100).read()
    assert reader.lost
    assert reader.steps <= 101
    assert 10 < len(reader.commands) < 100


# -- words, as bash makes them -------------------------------------------------------------------------------

PLAIN_PIECES = r"""
a b \ ' " $' $" \' \" \\ \n \x41 \101 {a,b} {c} { } , {,d} ${e} \{ '{f,g}' {h ~ # é
"""
PIECES = PLAIN_PIECES.split()


def printed(word: str) -> list[str]:
    """What bash makes of a word."""
    command = ["bash", "--norc", "-c", f"printf '%s\\0' {word}"]
    done = subprocess.run(command, capture_output=True, timeout=20, check=True, env=ENVIRONMENT)
    return done.stdout.decode().split("\0")[:-1]


@settings(deadline=None, max_examples=120)
@given(st.lists(st.sampled_from(PIECES), min_size=1, max_size=8).map("".join))
def test_words_are_what_bash_makes_of_them(word: str) -> None:
    reader = reading(f"x{word}")
    assume(not reader.lost and len(reader.commands) == 1 and len(reader.commands[0].words) == 1)
    texts = reader.commands[0].texts
    assume(not any(U in text for text in texts) and accepted(f"x{word}"))
    assert texts == printed(f"x{word}")
