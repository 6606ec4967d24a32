"""The half of dispatch_agent that needs no model: what it reads in a task, and what it finds for it."""

import os
import re
from collections.abc import Callable, Iterator
from pathlib import Path
from time import monotonic

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st

from toolroll.call import Call
from toolroll.errors import ErrorCode, ToolError
from toolroll.guard import Guard
from toolroll.limits import OUTPUT_CHARS
from toolroll.paths import Roots
from toolroll_dispatch_agent.english import stem
from toolroll_dispatch_agent.lookup import PLACES, RESULT_CHARS, Findings, findings
from toolroll_dispatch_agent.places import defined, defining
from toolroll_dispatch_agent.servers import Tools
from toolroll_dispatch_agent.terms import MOST, MOST_PATHS, NAME, QUOTED, WORD, draw

CHECKOUT = Path(__file__).parents[2]

FILES = {
    "README.md": "# Shop\n\nSells things, sends an invoice.\n",
    "src/shop/billing.py": (
        '"""Bills."""\n\nRETRY_LIMIT = 3\n\n\nclass Invoice:\n    def total(self):\n'
        "        return compute_total(self.items)\n\n\ndef compute_total(items):\n"
        "    return sum(items)\n\n\ndef charge(invoice):\n    if not invoice.items:\n"
        "        raise ValueError(f\"invoice '{invoice.number}' has no items\")\n"
    ),
    "src/shop/mail.js": "export async function sendInvoice(to) {\n  return post(to)\n}\n",
    "src/shop/post.c": "static int\nqueue_length(void);\n\nint queue_length(void)\n{\n\treturn 0;\n}\n",
    "src/shop/orders.py": "from shop.billing import compute_total\n\nprint(compute_total([1]))\n",
    "docs/billing.md": "# Billing\n\nHow compute_total works, and the invoice.\n",
    "tests/test_billing.py": (
        "from shop.billing import compute_total\n\n\ndef test_compute_total():\n"
        "    assert compute_total([1]) == 1\n"
    ),
    "package-lock.json": "\n".join('{"invoice": "compute_total"}' for _ in range(500)),
    "assets/parrot.bin": "\0\1\2",
}


def call_in(root: Path, deadline_s: float | None = None) -> Call:
    return Call(Roots([str(root)]), Guard({}), {}, deadline_s)


def tools_for(root: Path) -> Tools:
    return Tools(str(root), {"result-chars": RESULT_CHARS}, call_in(root))


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree").resolve()
    for age, (name, text) in enumerate(FILES.items()):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        os.utime(path, (1_700_000_000 - age, 1_700_000_000 - age))
    return root


@pytest.fixture(scope="module")
def look(tree: Path) -> Iterator[Callable[[str], Findings]]:
    """`look(task)`: what is found in the tree."""
    with tools_for(tree) as tools:
        yield lambda task: findings(task, tools, call_in(tree))


Look = Callable[[str], Findings]


# What is found


def test_a_definition_comes_before_the_uses(look: Look) -> None:
    found = look("Where is `compute_total` defined and who uses it?")
    assert found.places[0] == ("src/shop/billing.py", 11)
    assert ("src/shop/orders.py", 3) in found.places
    assert "11\tdef compute_total(items):" in found.text


def test_source_comes_before_docs_and_docs_before_lock_files(look: Look) -> None:
    files = [path for path, _ in look("compute_total").places]
    assert files.index("src/shop/orders.py") < files.index("docs/billing.md")
    assert "package-lock.json" not in files[:3]


def test_tests_come_first_when_they_are_asked_for(look: Look) -> None:
    assert look("which tests cover compute_total").places[0][0] == "tests/test_billing.py"


@pytest.mark.parametrize("written", ["send_invoice", "SendInvoice", "send-invoice", "SEND_INVOICE"])
def test_an_identifier_is_found_in_its_other_spellings(look: Look, written: str) -> None:
    assert look(f"find {written}").places[0] == ("src/shop/mail.js", 1)


def test_words_are_found_in_their_other_endings_and_inside_identifiers(look: Look) -> None:
    assert look("how are totals computed").places[0] == ("src/shop/billing.py", 11)


def test_words_side_by_side_are_found_as_one_name(look: Look) -> None:
    assert look("what is the retry limit").places[0] == ("src/shop/billing.py", 3)


def test_a_definition_in_c_is_found(look: Look) -> None:
    assert look("queue_length()").places[0] == ("src/shop/post.c", 4)


def test_a_member_is_found_by_its_dotted_name(look: Look) -> None:
    found = look("What does Invoice.total return?")
    assert found.places[0][0] == "src/shop/billing.py"
    assert found.places[0][1] in (6, 7)


def test_a_message_is_found_though_a_value_is_put_into_it(look: Look) -> None:
    found = look("where does the error \"invoice '%s' has no items\" come from?")
    assert found.places[0] == ("src/shop/billing.py", 17)


def test_a_text_that_is_nowhere_is_looked_for_by_its_words(look: Look) -> None:
    found = look("who says 'computing totals of a flamingo'?")
    assert "Nothing found for: `computing totals of a flamingo`" in found.text
    assert found.places[0] == ("src/shop/billing.py", 11)


def test_a_path_with_a_line_is_shown_first(look: Look) -> None:
    found = look("explain src/shop/billing.py:11 please")
    assert found.places[0] == ("src/shop/billing.py", 11)
    assert "11\tdef compute_total" in found.text


def test_a_path_is_found_by_its_end(look: Look) -> None:
    assert look("what does shop/mail.js do").places[0] == ("src/shop/mail.js", 1)


def test_an_absolute_path_is_found(look: Look, tree: Path) -> None:
    assert look(f"what does {tree}/src/shop/mail.js do").places[0][0].endswith("shop/mail.js")


def test_a_module_is_found_by_its_dotted_name(look: Look) -> None:
    assert look("explain shop.orders").places[0] == ("src/shop/orders.py", 1)


def test_a_directory_is_listed_and_cites_no_line(look: Look) -> None:
    found = look("what is in src/shop?")
    assert "1. src/shop/  (named in the task)" in found.text
    assert "mail.js  " in found.text
    assert all(path != "src/shop" for path, _ in found.places)


def test_a_path_that_is_not_there_is_said(look: Look) -> None:
    text = look("what does src/shop/quokka.py do").text
    assert re.search(r"Nothing found for: .*`src/shop/quokka.py`", text)


def test_a_name_that_is_not_there_is_looked_for_by_its_words(look: Look) -> None:
    found = look("Where is compute_grand_total?")
    assert "Nothing found for: `compute_grand_total`" in found.text
    assert found.places[0] == ("src/shop/billing.py", 11)


def test_the_files_of_a_glob_are_listed(look: Look) -> None:
    assert "Files like `*.js` (1): src/shop/mail.js" in look("list all *.js files").text


def test_the_files_with_both_names_are_listed(look: Look) -> None:
    text = look("which files mention RETRY_LIMIT and compute_total").text
    assert "Files with all of `RETRY_LIMIT`, `compute_total` (1): src/shop/billing.py" in text


def test_a_file_is_found_by_its_name_alone(look: Look) -> None:
    assert look("where is the parrot").places[0][0] == "assets/parrot.bin"


def test_a_task_without_anything_to_look_for_gets_the_tree_and_the_readme(look: Look) -> None:
    found = look("What is this?")
    assert found.places == [("README.md", 1)]
    assert "src/" in found.text


def test_what_was_asked_and_that_it_is_no_answer_is_said(look: Look) -> None:
    text = look("RETRY_LIMIT and flamingo").text
    assert "without a model" in text.split("\n")[0]
    assert "`RETRY_LIMIT` (name): 1 lines in 1 files" in text
    assert "Nothing found for: `flamingo`" in text


@pytest.mark.parametrize("task", ["compute_total", "invoice items", "src/shop", ""])
def test_the_same_task_finds_the_same(look: Look, task: str) -> None:
    assert look(task).text == look(task).text


def test_every_place_is_a_line_of_a_file_and_is_shown(look: Look, tree: Path) -> None:
    found = look("how does billing compute an invoice, its total and the retry limit?")
    assert len(found.places) > 3
    for path, line in found.places:
        lines = (tree / path).read_text().split("\n")
        assert f"{path}:{line}  (" in found.text
        assert f"{line}\t{lines[line - 1]}" in found.text


def test_it_stays_below_the_output_limit(tmp_path: Path) -> None:
    for number in range(30):
        line = f"def needle_{number}(): " + "wide " * 300
        (tmp_path / f"f{number}.py").write_text("\n".join([line] * 200))
    with tools_for(tmp_path.resolve()) as tools:
        found = findings("needle and every wide thing", tools, call_in(tmp_path))
    assert len(found.places) == PLACES
    assert len(found.text) < OUTPUT_CHARS - 1_000


def test_a_cancelled_call_finds_nothing(tree: Path) -> None:
    call = call_in(tree)
    call.cancel()
    with tools_for(tree) as tools, pytest.raises(ToolError) as caught:
        findings("compute_total", tools, call)
    assert caught.value.code == ErrorCode.CANCELLED


def test_a_call_without_time_says_that_it_is_incomplete(tree: Path) -> None:
    call = call_in(tree, 60)
    call.deadline = monotonic()
    with tools_for(tree) as tools:
        found = findings("compute_total", tools, call)
    assert "Incomplete" in found.text
    assert found.calls == 0


@pytest.mark.parametrize(
    ("task", "path"),
    [
        ("where is MESSAGE_BYTES defined", "common/toolroll/limits.py"),
        ("Explain the spawn module", "common/toolroll/spawn.py"),
        ("How is the rate limit enforced? `class Rate`", "common/toolroll/guard.py"),
        ("What error says 'the host cancelled this call'?", "common/toolroll/call.py"),
        ("what must change in pyproject.toml for a new tool", "pyproject.toml"),
        ("How are PDF files read? Look in tools/view.", "tools/view/toolroll_view/pdf.py"),
    ],
)
def test_in_this_checkout_the_place_is_among_the_first_three(task: str, path: str) -> None:
    with tools_for(CHECKOUT) as tools:
        found = findings(task, tools, call_in(CHECKOUT))
    assert path in [file for file, _ in found.places[:3]], found.text


# What is read in a task


def terms(text: str) -> dict[str, str]:
    return {term.text: term.kind for term in draw(text).terms.values()}


@pytest.mark.parametrize(
    "name",
    [
        "read_bytes",
        "readBytes",
        "XMLParser",
        "a_b",
        "__init__",
        "--ban-mode",
        "$HOME",
        "std::move",
        "self.items",
    ],
)
def test_an_identifier_is_a_name(name: str) -> None:
    assert terms(f"explain {name}, please.")[name] == NAME


def test_a_call_is_a_name_though_it_is_a_plain_word() -> None:
    assert terms("who calls run()?") == {"run": NAME}


def test_a_quoted_text_is_one_term() -> None:
    assert terms('where is "not a valid path" said')["not a valid path"] == QUOTED


def test_an_apostrophe_quotes_nothing() -> None:
    found = terms("the parser's cache doesn't clear the cook's cookie")
    assert QUOTED not in found.values()
    assert {"parser", "cache", "cook", "cookie"} <= found.keys()


def test_paths_and_globs_are_told_from_words() -> None:
    task = draw("see ./src/a.py:12, docs/, Makefile.am?, **/*.tsx and .toml files; either/or")
    assert task.paths["./src/a.py"] == 12
    assert task.paths["docs/"] == 0
    assert task.globs == ["**/*.tsx", "**/*.toml"]


def test_an_address_of_the_web_is_nothing_to_look_for() -> None:
    assert not draw("https://example.org/a/b.py").paths


def test_weak_words_count_only_where_there_are_no_others() -> None:
    assert "value" in terms("value")
    assert "value" not in terms("value of `RETRY_LIMIT`")


@pytest.mark.parametrize(
    "words",
    [
        ("cache", "caches", "cached", "caching"),
        ("cancel", "cancelled", "cancelling", "cancels"),
        ("retry", "retries"),
        ("move", "moving", "moved"),
        ("validation", "validations"),
        ("process", "processes"),
    ],
)
def test_the_endings_of_a_word_do_not_matter(words: tuple[str, ...]) -> None:
    assert len({stem(word)[:4] for word in words}) == 1
    assert all(word.startswith(stem(words[0])[:-1]) for word in words)


@settings(deadline=None, max_examples=300)
@given(
    st.text(max_size=200)
    | st.lists(st.sampled_from([*"`'\"*{}[]()./:-_ \n", "a", "Bc", "foo_bar", "x.py", "42"])).map(
        "".join
    )
)
def test_whatever_the_task_says_its_terms_are_few_and_find_themselves(text: str) -> None:
    task = draw(text)
    assert len(task.paths) <= MOST_PATHS
    for term in task.terms.values():
        assert len([one for one in task.terms.values() if one.kind == term.kind]) <= MOST[term.kind]
        assert regex.compile(term.pattern)
        assert regex.compile(defining(term.pattern))
        if term.kind in (NAME, QUOTED, WORD):
            assert re.search(term.pattern, term.text), term.text


# What defines a name


@pytest.mark.parametrize(
    ("line", "name"),
    [
        ("def needle(a):", "needle"),
        ("    async def needle(self) -> None:", "needle"),
        ("class needle(Base):", "needle"),
        ("func (s *Server) needle(ctx context.Context) error {", "needle"),
        ("pub fn needle<T>(x: T) -> T {", "needle"),
        ("export const needle = () => {", "needle"),
        ("  static needle(a, b) {", "needle"),
        ("static int needle(struct page *page)", "needle"),
        ("#define needle 3", "needle"),
        ("needle = 3", "needle"),
        ("needle: build", "needle"),
        ("[needle]", "needle"),
        ("type needle struct {", "needle"),
        ("public void needle(int a) {", "needle"),
    ],
)
def test_a_defining_line_is_known_and_found(line: str, name: str) -> None:
    assert defined(line, "a.x")[0] == name
    if not line.startswith(("[", "needle:")):  # too many of them to be searched for
        assert regex.search(defining("needle"), line)


@pytest.mark.parametrize(
    "line",
    [
        "return needle(a)",
        "if needle == 3:",
        "x = needle()",
        "import needle",
        "# needle",
        "  for (needle of all) {",
    ],
)
def test_a_line_that_uses_a_name_does_not_define_it(line: str) -> None:
    assert defined(line, "a.x")[0] != "needle"
    assert not regex.search(defining("needle"), line)


def test_a_heading_defines_its_text_in_documents_alone() -> None:
    assert defined("## How it works", "README.md")[0] == "How it works"
    assert defined("## How it works", "a.py")[0] == ""
