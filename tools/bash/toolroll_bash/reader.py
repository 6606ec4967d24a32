r"""The simple commands in a text of bash, with their words after quote removal; knows no policy.

Read is the grammar of bash(1), loosely: what only bash itself need refuse (a `fi` without `if`) passes.

    list      = { command | newline | ";" | "&" | "|" | "&&" | "||" | "|&" | "(" | ")" }
    command   = keyword | "((" expression "))" | "[[" test "]]" | function | case | loop | simple
    keyword   = "if" | "then" | "elif" | "else" | "fi" | "while" | "until" | "do" | "done" | "{" | "}"
              | "!" | "time" ["-p"] ["--"] | "coproc" [name, before a compound command]
    function  = word "(" ")" | "function" word ["(" ")"]                   ; its body is the next command
    case      = "case" word "in" { ["("] word { "|" word } ")" list (";;" | ";&" | ";;&") } "esac"
    loop      = ("for" | "select") (name ["in" { word }] | "((" expression "))")
    simple    = { assignment | redirect } { word | redirect }
    redirect  = [number | "{" name "}"] operator word                      ; bodies behind the next newline
    word      = { char | "\" char | "'" text "'" | "$'" text "'" | ["$"] '"' quoted '"' | expansion
              | ("<(" | ">(") list ")" | pattern "(" text ")" | assignment "=(" { word } ")" }
    expansion = "$" name | "${" text "}" | "$(" list ")" | "$((" text "))" | "$[" text "]" | "`" list "`"

Compound commands stack up without recursion; only substitutions and quotes recurse, DEPTH deep.
`$((` and `((` that turn out to open no expression are read again as lists, each place once.  Not read:
aliases, `${ list; }` of bash 5.3, arithmetic, patterns.
"""

import re
from itertools import pairwise

UNKNOWN = "\0"
"""Stands in a word's text for what is only known when it runs: an expansion, a pattern."""

DEPTH = 100
"""Substitutions within each other; a level takes up to six frames of Python's thousand."""

CHOICES, BRACED_CHARS, OPENINGS = 16, 200, 4
"""Words that one with braces may stand for, its length, and the braces in it that may close nowhere."""

STEP_CHARS = 16
"""How many characters of a copied text count as much as a step."""

JOIN = r"(?:\\\n)*"
BLANKS = re.compile(r"(?:[ \t]|\\\n)+")
COMMENT = re.compile(r"#[^\n]*")
PLAIN = re.compile(r"""[^ \t\n;&|()<>$`"'\\*?\[\]{]+""")
QUOTED = re.compile(r'[^"\\$`]+')
NESTED = re.compile(r"""[^"'\\$`()<>\[\]{}]+""")
SINGLE = re.compile(r"[^']*'")
ANSI = re.compile(r"(?:[^'\\]++|\\.)*+'", re.DOTALL)
BACKQUOTED = re.compile(r"(?:[^`\\]++|\\.)*+`", re.DOTALL)
HEX = "[0-9A-Fa-f]"
ESCAPE = re.compile(
    rf"\\(?:([0-7]{{1,3}})|x\{{?({HEX}{{1,2}})\}}?|u({HEX}{{1,4}})|U({HEX}{{1,8}})|c(.)|(.))",
    re.DOTALL,
)
ESCAPES = dict(zip("abeEfnrtv", "\a\b\033\033\f\n\r\t\v", strict=True))
NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(?:\[\0\])?\+?=")
DOLLAR = re.compile(rf"\${JOIN}([A-Za-z_][A-Za-z0-9_]*|[0-9@*#?$!\-('\"{{\[])")
SUBSCRIPT = f"[{UNKNOWN}]"
DEFAULT = re.compile(r"!?(?:[A-Za-z0-9_]+|[@*#?$!-])(?:\[[^\]]*\])?:?[-=?+]")
LETTERS = re.compile(r"([A-Za-z])\.\.([A-Za-z])")
DELIMITER = re.compile(
    r"""\\(.)|\$'((?:[^'\\]++|\\.)*+)'|'([^']*)'|\$?"((?:[^"\\]++|\\.)*+)\"""", re.DOTALL
)
DESCRIPTOR = re.compile(r"[0-9]+|\{[A-Za-z_][A-Za-z0-9_]*\}")
EMPTY_PARENS = re.compile(r"\((?:[ \t]|\\\n)*\)")
OPERATORS = ("&>>", "&>", "<<<", "<<-", "<<", "<>", "<&", "<", ">>", ">&", ">|", ">")
REDIRECT = re.compile("|".join(JOIN.join(map(re.escape, one)) for one in OPERATORS))
DOUBLE_PAREN = re.compile(rf"\({JOIN}\(")
PROCESS = re.compile(rf"[<>]{JOIN}\(")
NEXT_PATTERN = re.compile(rf";{JOIN}(?:;(?:{JOIN}&)?|&)")
END = r"(?=[ \t\n;&|()<>\\]|$)"
TIME_OPTIONS = re.compile(rf"(?:(?:[ \t]|\\\n)+-{JOIN}p{END})?(?:(?:[ \t]|\\\n)+-{JOIN}-{END})?")
IN = re.compile(rf"i{JOIN}n{END}")
OPENING = re.compile(rf"(?:\(|(?:if|while|until|for|case|select|\{{|\[\[){END})")

PASSING = frozenset(
    ("if", "then", "elif", "else", "fi", "while", "until", "do", "done", "{", "}", "!")
)
KEYWORDS = frozenset(
    (*PASSING, "time", "coproc", "for", "select", "case", "esac", "function", "[[")
)


class LostError(Exception):
    """The text ends within something, or makes no sense: where commands stand is no longer known."""


class Word:
    """One word: its `text` after quote removal, and whether anything `quoted` it.

    `shape` is the text with NUL in place of what was quoted; both are before brace expansion.
    """

    __slots__ = ("quoted", "shape", "text")

    def __init__(self, text: str, shape: str, quoted: bool) -> None:
        self.text = text
        self.shape = shape
        self.quoted = quoted

    @property
    def keyword(self) -> str:
        """The text where it may be a keyword, else nothing."""
        return "" if self.quoted else self.text

    def expanded(self) -> "list[str]":
        """The texts it stands for after brace expansion."""
        if "{" not in self.shape or ("," not in self.shape and ".." not in self.shape):
            return [self.text]
        if len(self.text) > BRACED_CHARS:
            return [UNKNOWN]
        words = _expanded(self.text, self.shape)
        return words if self.quoted else [word for word in words if word]


class Here:
    """A here-document or here-string; `text` is what a program would read, once the body was."""

    __slots__ = ("delimiter", "literal", "place", "tabs", "text")

    def __init__(self, delimiter: str, literal: bool, tabs: bool, place: "tuple[int, int]") -> None:
        self.delimiter = delimiter
        self.literal = literal
        self.tabs = tabs
        self.place = place
        self.text = ""


class Command:
    """A simple command: its words without assignments and redirections, and what is on its stdin.

    With `function` it is no command but the definition of one.  `place` is where in the text its first
    word stands (for a command within a here-document or backquotes, where that one does).
    """

    __slots__ = ("function", "here", "place", "words")

    def __init__(
        self,
        place: "tuple[int, int]",
        words: "list[Word]",
        here: "Here | None" = None,
        function: str = "",
    ) -> None:
        self.place = place
        self.words = words
        self.here = here
        self.function = function

    @property
    def texts(self) -> "list[str]":
        """The words after brace expansion; UNKNOWN in place of what is."""
        return [text for word in self.words for text in word.expanded()]


class Pieces:
    """A word in the making; `bracket` when a pattern's `[` is open in it."""

    __slots__ = ("bracket", "quoted", "shape", "text")

    def __init__(self) -> None:
        self.text: list[str] = []
        self.shape: list[str] = []
        self.quoted = False
        self.bracket = False

    def add(self, text: str) -> None:
        """Add what was not quoted."""
        self.text.append(text)
        self.shape.append(text)

    def quote(self, text: str) -> None:
        """Add what was quoted."""
        self.text.append(text)
        self.shape.append(UNKNOWN * len(text))
        self.quoted = True

    @property
    def word(self) -> Word:
        """All of it."""
        return Word("".join(self.text), "".join(self.shape), self.quoted)


class Reader:
    """One reading of a text.

    `commands` come in the order in which they end.  `lost` says that reading stopped before the end:
    the text makes no sense, or is nested too deep.  `steps` is the work done, linear in the length of
    the text; it ends at `most_steps`.
    """

    def __init__(self, text: str, most_steps: int) -> None:
        self.commands: list[Command] = []
        self.lost = False
        self.steps = 0
        self._most_steps = most_steps
        self._text = text
        self._place: tuple[int, int] | None = None
        self._pending: list[Here] = []
        self._closed: dict[int, int] = {}
        self._depth = 0

    def read(self) -> "Reader":
        """Read to the end; never raises."""
        try:
            self._list(0, closes=False)
        except (LostError, RecursionError):
            self.lost = True
        return self

    def document(self) -> str:
        """The text as a here-document, its substitutions read; never raises."""
        out = Pieces()
        try:
            self._double(0, out, document=True)
        except (LostError, RecursionError):
            out.add(UNKNOWN)
        return "".join(out.text)

    def _inner(self, text: str, place: "tuple[int, int]") -> "Reader":
        """A reader of a text that had to be unwrapped first; what it finds, this one has found."""
        inner = Reader(text, self._most_steps)
        inner.commands = self.commands
        inner.steps = self.steps + len(text) // STEP_CHARS
        inner._place = self._place or place
        inner._depth = self._depth + 1
        return inner

    def _step(self) -> None:
        self.steps += 1
        if self.steps > self._most_steps:
            raise LostError

    def _deeper(self) -> None:
        self._depth += 1
        if self._depth > DEPTH:
            raise LostError

    # -- lists -----------------------------------------------------------------------------------

    def _list(self, at: int, closes: bool) -> int:
        """Behind the `)` that closes a substitution, or at the end of the text."""
        self._deeper()
        outer, self._pending = self._pending, []
        stack: list[str] = []  # "(", and what a case waits for: "pattern" or "esac"
        at = self._blanks(at)
        while char := self._text[at : at + 1]:
            self._step()
            if char == ")" and closes and not stack:
                self._depth -= 1
                self._pending += outer  # bash 5.2 reads those of a substitution first
                return at + 1
            at = self._blanks(self._item(char, at, stack))
        if closes or stack:
            raise LostError
        self._depth -= 1
        self._bodies(at)
        return at

    def _item(self, char: str, at: int, stack: "list[str]") -> int:
        """Behind one operator, parenthesis, keyword or simple command."""
        if char == "\n":
            return self._bodies(at + 1)
        if stack and stack[-1] == "pattern":
            return self._pattern(at, stack)
        if char == ")":
            if not stack or stack.pop() != "(":
                raise LostError
            return at + 1
        if char == "(":
            found = DOUBLE_PAREN.match(self._text, at)
            end = self._expression(found.end()) if found else 0
            if not end:
                stack.append("(")
            return end or at + 1
        if char in ";|" or (char == "&" and not REDIRECT.match(self._text, at)):
            return self._operator(at, stack)
        return self._command(at, stack)

    def _operator(self, at: int, stack: "list[str]") -> int:
        found = NEXT_PATTERN.match(self._text, at)
        if not found:
            return at + 1
        if not stack or stack[-1] != "esac":
            raise LostError
        stack[-1] = "pattern"
        return found.end()

    def _pattern(self, at: int, stack: "list[str]") -> int:
        """Behind the `)` of a case's patterns, or behind `esac`."""
        bare = not self._text.startswith("(", at)
        word, at = self._word(at if bare else self._blanks(at + 1))
        if bare and word.keyword == "esac":
            stack.pop()
            return at
        at = self._blanks(at)
        while self._text.startswith("|", at):
            _, at = self._word(self._blanks(at + 1))
            at = self._blanks(at)
        if not self._text.startswith(")", at):
            raise LostError
        stack[-1] = "esac"
        return at + 1

    def _blanks(self, at: int) -> int:
        """Behind blanks and a comment."""
        if found := BLANKS.match(self._text, at):
            at = found.end()
        found = COMMENT.match(self._text, at)
        return found.end() if found else at

    def _lines(self, at: int) -> int:
        """The same, over any number of lines."""
        at = self._blanks(at)
        while self._text.startswith("\n", at):
            self._step()
            at = self._blanks(self._bodies(at + 1))
        return at

    # -- commands --------------------------------------------------------------------------------

    def _command(self, at: int, stack: "list[str]") -> int:
        """Behind a keyword and what belongs to it, or behind a simple command."""
        if self._redirects(at):
            return self._simple(at, at, None)
        word, after = self._some_word(at, first=True)
        keyword = word.keyword
        if keyword not in KEYWORDS:
            return self._simple(at, after, word)
        if keyword in PASSING:
            return after
        if keyword == "esac":
            if not stack or stack.pop() != "esac":
                raise LostError
            return after
        if keyword == "case":
            _, after = self._some_word(self._blanks(after))
            stack.append("pattern")
            return self._in(self._lines(after))
        if keyword == "function":
            return self._function(after)
        if keyword == "coproc":
            return self._coproc(after)
        if keyword == "[[":
            return self._test(after)
        return self._time(after) if keyword == "time" else self._loop(after)

    def _in(self, at: int) -> int:
        found = IN.match(self._text, at)
        if not found:
            raise LostError
        return found.end()

    def _time(self, at: int) -> int:
        found = TIME_OPTIONS.match(self._text, at)
        return found.end() if found else at

    def _loop(self, at: int) -> int:
        """Behind the words of `for` or `select`, or behind the name if there are none."""
        at = self._blanks(at)
        if found := DOUBLE_PAREN.match(self._text, at):
            end = self._expression(found.end())
            if not end:
                raise LostError
            return end
        _, at = self._some_word(at)
        at = self._lines(at)
        if not IN.match(self._text, at):
            return at
        at = self._blanks(self._in(at))
        while self._text[at : at + 1] not in ("", "\n", ";"):
            _, at = self._some_word(at)
            at = self._blanks(at)
        return at

    def _function(self, at: int) -> int:
        start = self._blanks(at)
        name, at = self._some_word(start)
        self._define(start, at, name)
        found = EMPTY_PARENS.match(self._text, self._blanks(at))
        return found.end() if found else at

    def _define(self, start: int, end: int, name: Word) -> None:
        self.commands.append(Command(self._place or (start, end), [], function=name.text))

    def _coproc(self, at: int) -> int:
        """Behind the name, if a compound command follows, else behind a simple command."""
        at = self._blanks(at)
        word = PLAIN.match(self._text, at)
        if self._redirects(at) or OPENING.match(self._text, at):
            return at
        if self._text[at : at + 1] in ("", "\n") or (word and word.group() in KEYWORDS):
            return at
        name, end = self._some_word(at, first=True)
        after = self._blanks(end)
        return after if OPENING.match(self._text, after) else self._simple(at, end, name)

    def _test(self, at: int) -> int:
        """Behind the `]]` that closes a `[[`."""
        regex = False  # behind `=~` parentheses may hold blanks and operators
        while True:
            at = self._lines(at)
            char = self._text[at : at + 1]
            if not regex and char and char in ";&|()<>" and not PROCESS.match(self._text, at):
                at += 1
                continue
            word, at = self._some_word(at, regex=regex)
            if word.keyword == "]]":
                return at
            regex = word.keyword == "=~"

    def _simple(self, start: int, at: int, word: "Word | None") -> int:
        """Behind a simple command; its first word, from `start` to `at`, may have been read."""
        command = Command(self._place or (start, at), [])
        while True:
            if word is None:
                at = start = self._blanks(at)
                char = self._text[at : at + 1]
                if self._redirects(at):
                    at = self._redirect(at, "", command)
                    continue
                if char in ("", "\n", ";", "&", "|", ")"):
                    break
                if char == "(":
                    return self._parens(at, command)
                word, at = self._some_word(at, first=not command.words)
            if self._text[at : at + 1] in ("<", ">") and DESCRIPTOR.fullmatch(word.shape):
                at = self._redirect(at, word.text, command)
            elif command.words or not ASSIGNMENT.match(word.shape):
                if not command.words:
                    command.place = self._place or (start, at)
                command.words.append(word)
            word = None
        if command.words:
            self.commands.append(command)
        return at

    def _parens(self, at: int, command: Command) -> int:
        """Behind `()`, which makes the one word before it the name of a function."""
        found = EMPTY_PARENS.match(self._text, at)
        if not found or len(command.words) != 1:
            raise LostError
        self._define(*command.place, command.words[0])
        return found.end()

    # -- redirections ----------------------------------------------------------------------------

    def _redirects(self, at: int) -> bool:
        """True when a redirection stands there, and no process substitution."""
        found = self._text[at : at + 1] in ("<", ">", "&") and REDIRECT.match(self._text, at)
        return bool(found) and not PROCESS.match(self._text, at)

    def _redirect(self, at: int, descriptor: str, command: Command) -> int:
        found = REDIRECT.match(self._text, at)
        if not found:  # a number before `<(`
            raise LostError
        operator = found.group().replace("\\\n", "")
        start = self._blanks(found.end())
        known = len(self.commands)
        word, end = self._some_word(start)
        here: Here | None = None
        if operator in ("<<", "<<-"):
            del self.commands[known:]  # nothing in a delimiter is expanded
            here = Here(*_delimiter(self._text[start:end]), operator == "<<-", (at, end))
            self._pending.append(here)
        elif operator == "<<<":
            here = Here("", False, False, (at, end))
            here.text = word.text
        if operator.startswith("<") and descriptor in ("", "0"):
            command.here = here
        return end

    def _bodies(self, at: int) -> int:
        """Behind the here-documents that begin at this line."""
        pending, self._pending = self._pending, []
        for here in pending:
            at = self._body(here, at)
        return at

    def _body(self, here: Here, at: int) -> int:
        """Behind the line of the delimiter, or at the end."""
        start = at
        while at < len(self._text):
            self._step()
            line, after = self._line(at, here.literal)
            if (line.lstrip("\t") if here.tabs else line) == here.delimiter:
                break
            at = after
        else:
            after = at
        body = self._text[start:at]
        here.text = re.sub(r"(?m)^\t+", "", body) if here.tabs else body
        if not here.literal and ("$" in body or "`" in body or "\\" in body):
            here.text = self._expand(here)
        return after

    def _line(self, at: int, literal: bool) -> "tuple[str, int]":
        """One line, with what a backslash at its end joins to it, and where the next one begins."""
        pieces = []
        while True:
            end = self._text.find("\n", at)
            end = len(self._text) if end < 0 else end
            piece = self._text[at:end]
            at = end + 1
            joins = not literal and piece.endswith("\\") and at <= len(self._text)
            if not joins or (len(piece) - len(piece.rstrip("\\"))) % 2 == 0:
                pieces.append(piece)
                return "".join(pieces), min(at, len(self._text))
            self._step()
            pieces.append(piece[:-1])

    def _expand(self, here: Here) -> str:
        """What a here-document becomes."""
        inner = self._inner(here.text, here.place)
        text = inner.document()
        self.steps = inner.steps
        return text

    # -- words -----------------------------------------------------------------------------------

    def _some_word(self, at: int, first: bool = False, regex: bool = False) -> "tuple[Word, int]":
        """A word that must be there, and where it ends."""
        word, end = self._word(at, first, regex)
        if end == at:
            raise LostError
        return word, end

    def _word(self, at: int, first: bool = False, regex: bool = False) -> "tuple[Word, int]":
        """The word that begins here, empty if there is none, and where it ends.

        `first`: of a command, where `a[1 + 2]=` is one word and `!(` none; `regex`: behind `=~`.
        """
        self._step()
        run = PLAIN.match(self._text, at)
        if run and self._text[run.end() : run.end() + 1] in (" ", "\n", ";", ""):
            return Word(run.group(), run.group(), False), run.end()
        start, out = at, Pieces()
        while True:
            if run := PLAIN.match(self._text, at):
                out.add(run.group())
                at = run.end()
            char = self._text[at : at + 1]
            if char in ("", " ", "\t", "\n", ";", "&", ")") or (char == "|" and not regex):
                return out.word, at
            self._step()
            end = self._part(char, start, at, out, first, regex)
            if end == at:
                return out.word, at
            at = end

    def _part(self, char: str, start: int, at: int, out: Pieces, first: bool, regex: bool) -> int:
        """Behind what begins with a special character; `at` when that ends the word."""
        if char == "(":
            return self._group(start, at, out, first, regex)
        if char in "<>":
            found = PROCESS.match(self._text, at)
            if found:
                out.add(UNKNOWN)
            return self._list(found.end(), closes=True) if found else at
        if char == "\\":
            self._escape(at, out)
            return at + 2
        if char == "'":
            return self._single(at, out)
        if char == '"':
            return self._double(at + 1, out)
        if char == "$":
            return self._dollar(at, out)
        if char == "`":
            return self._backquotes(at, out)
        if char == "[" and first and not out.bracket and NAME.fullmatch(self._text, start, at):
            out.bracket = True
            out.add(SUBSCRIPT)
            return self._balanced(at + 1, "[", "]")
        out.bracket = out.bracket or char == "["
        known = char in "[{|" or (char == "]" and not out.bracket)
        out.add(char if known else UNKNOWN)
        return at + 1

    def _group(self, start: int, at: int, out: Pieces, first: bool, regex: bool) -> int:
        """Behind the parentheses of an array or a pattern; `at` where they are none."""
        before = self._text[at - 1 : at] if at > start else ""
        if before == "=" and not regex and NAME.match(self._text, start):
            out.add(UNKNOWN)
            return self._array(at + 1)
        if not regex and (not before or before not in "?*+@!"):
            return at
        if first and ((at == start + 1 and before == "!") or EMPTY_PARENS.match(self._text, at)):
            return at
        out.add(UNKNOWN)
        return self._balanced(at + 1, "(", ")", nests=False)

    def _array(self, at: int) -> int:
        self._deeper()
        while not self._text.startswith(")", at := self._lines(at)):
            if self._text.startswith("[", at):
                _, at = self._word(self._balanced(at + 1, "[", "]"))
            else:
                _, at = self._some_word(at)
        self._depth -= 1
        return at + 1

    def _escape(self, at: int, out: Pieces) -> None:
        char = self._text[at + 1 : at + 2]
        if char != "\n":
            out.quote(char or "\\")

    def _single(self, at: int, out: Pieces) -> int:
        found = SINGLE.match(self._text, at + 1)
        if not found:
            raise LostError
        out.quote(found.group()[:-1])
        return found.end()

    def _unquoted(self, at: int) -> int:
        """Behind single quotes, what stands between them read as between double ones."""
        out = Pieces()
        end = self._single(at, out)
        inner = self._inner(out.text[0], (at, end))
        inner.document()
        self.steps = inner.steps
        return end

    def _double(self, at: int, out: Pieces, document: bool = False) -> int:
        """Behind the closing quote; in a here-document quotes mean nothing and its end closes."""
        out.quote("")
        while True:
            self._step()
            if run := QUOTED.match(self._text, at):
                out.quote(run.group())
                at = run.end()
            char = self._text[at : at + 1]
            if char == "$":
                at = self._dollar(at, out, quoted=True)
            elif char == "`":
                at = self._backquotes(at, out, quoted=not document)
            elif char == "\\":
                char = self._text[at + 1 : at + 2]
                special = char and char in ("$`\\" if document else '$`"\\')
                out.quote(char if special else "" if char == "\n" else "\\" + char)
                at += 2
            elif char and document:
                out.quote(char)
                at += 1
            elif char or document:
                return at + 1
            else:
                raise LostError

    def _dollar(self, at: int, out: Pieces, quoted: bool = False) -> int:
        """Behind an expansion, or behind a `$` that is none."""
        found = DOLLAR.match(self._text, at)
        opening = found.group(1) if found else ""
        if not found or (quoted and opening in ("'", '"')):
            out.quote("$")
            return at + 1
        at = found.end()
        if opening == "'":
            return self._ansi(at, out)
        if opening == '"':
            return self._double(at, out)
        out.add(UNKNOWN)
        if opening == "(":
            found = DOUBLE_PAREN.match(self._text, at - 1)
            end = self._expression(found.end()) if found else 0
            return end or self._list(at, closes=True)
        if opening == "{":
            literal = quoted and DEFAULT.match(self._text, at)  # "${x:-'$(a)'}" runs a
            return self._balanced(at, "{", "}", quotes=not literal)
        if opening == "[":
            return self._balanced(at, "[", "]", nests=False)
        return at

    def _ansi(self, at: int, out: Pieces) -> int:
        found = ANSI.match(self._text, at)
        if not found:
            raise LostError
        text, _, _ = ESCAPE.sub(_escaped, found.group()[:-1]).partition("\0")
        out.quote(text)
        return found.end()

    def _backquotes(self, at: int, out: Pieces, quoted: bool = False) -> int:
        found = BACKQUOTED.match(self._text, at + 1)
        if not found:
            raise LostError
        out.add(UNKNOWN)
        special = r'\\([$`\\"])' if quoted else r"\\([$`\\])"
        code = re.sub(special, r"\1", found.group()[:-1])
        self.steps = self._inner(code, (at, found.end())).read().steps  # bash reads it when it runs
        return found.end()

    def _expression(self, at: int) -> int:
        """Behind the `))` that closes the `((` before `at`, 0 when it opens no expression."""
        known = self._closed.get(at)
        if known is not None and not self._text.startswith(")", known):
            return 0
        found, pending, depth = len(self.commands), self._pending, self._depth
        self._pending = pending[:]
        try:
            end = self._balanced(at, "(", ")", nests=False)
        except LostError:
            end = len(self._text)
        if self._text.startswith(")", end):
            return end + 1
        del self.commands[found:]
        self._pending, self._depth = pending, depth
        return 0

    def _balanced(
        self, at: int, opening: str, closing: str, nests: bool = True, quotes: bool = True
    ) -> int:
        """Behind the closing bracket, the first one for a `${`.

        As bash has it, a `${` counts where it `nests`, and single quotes pair up even where they do not
        `quotes` anything.
        """
        self._deeper()
        starts, out = [at], Pieces()
        self._closed[at] = len(self._text)
        while starts:
            self._step()
            if run := NESTED.match(self._text, at):
                at = run.end()
            char = self._text[at : at + 1]
            at += 1
            if char == closing:
                self._closed[starts.pop()] = at
            elif char == opening and opening != "{":
                starts.append(at)
                self._closed[at] = len(self._text)
            elif not char:
                raise LostError
            elif char == "$" and not nests and self._text[at : at + 1] in ("{", "["):
                continue
            elif char == "'" and not quotes:
                at = self._unquoted(at - 1)
            elif char in "\\'\"$`" or (opening == "{" and PROCESS.match(self._text, at - 1)):
                at = self._part(char, at - 1, at - 1, out, first=False, regex=False)
        self._depth -= 1
        return at


def _delimiter(raw: str) -> "tuple[str, bool]":
    """The delimiter of a here-document after quote removal, and whether it was quoted."""
    raw = raw.replace("\\\n", "")
    if not any(quote in raw for quote in "\\'\""):
        return raw, False
    return DELIMITER.sub(_plain, raw), True


def _plain(found: "re.Match[str]") -> str:
    escape, ansi, single, double = found.groups()
    if ansi is not None:
        return ESCAPE.sub(_escaped, ansi)
    if double is not None:
        return re.sub(r'\\([$`"\\])', r"\1", double)
    return escape or single or ""


def _escaped(found: "re.Match[str]") -> str:
    """The character that an escape of `$'...'` stands for."""
    octal, *hexadecimal, control, char = found.groups()
    if octal:
        return chr(int(octal, 8) & 0xFF)
    if control:
        return chr(ord(control.upper()) & 0x1F)
    for digits in hexadecimal:
        if digits:
            return chr(min(int(digits, 16), 0x10FFFF))
    return ESCAPES.get(char, char if char in "\\'\"?" else "\\" + char)


def _expanded(text: str, shape: str) -> "list[str]":
    """The words that braces stand for, in their order."""
    ends = _braces(shape)
    if not ends:
        return [text]
    behind = slice(ends[-1] + 1, None)
    tails = _expanded(text[behind], shape[behind])
    parts = [slice(start + 1, end) for start, end in pairwise(ends)]
    if len(parts) > 1:
        heads = [one for part in parts for one in _expanded(text[part], shape[part])]
    else:
        heads = _sequence(text[parts[0]])
    words = [text[: ends[0]] + head + tail for head in heads for tail in tails]
    return words if len(words) <= CHOICES else [*words[:CHOICES], UNKNOWN]


def _sequence(text: str) -> "list[str]":
    """What {a..e} stands for; numbers make no name."""
    found = LETTERS.fullmatch(text)
    if not found:
        return [UNKNOWN]
    first, last = map(ord, found.groups())
    step = 1 if first <= last else -1
    return [chr(one) for one in range(first, last + step, step)]


def _braces(shape: str) -> "list[int]":
    """Where the first braces open, have their commas and close; empty when nothing expands.

    As in bash, a `}` before any comma closes nothing.
    """
    start = -1
    for _ in range(OPENINGS):
        start = shape.find("{", start + 1)
        if start < 0:
            return []
        ends, level, dots = [start], 0, False
        for at in range(start + 1, len(shape)):
            char = shape[at]
            if char == "}" and not level and (len(ends) > 1 or dots):
                return [*ends, at]
            level += (char == "{") - (char == "}" and level > 0)
            if not level and char == ",":
                ends.append(at)
            dots = dots or (not level and shape.startswith("..", at))
    return [0, len(shape)]  # all of it unknown
