"""The answer to a search: its lines, its last line of facts, its structured form; walks nothing by itself."""

import stat

from toolroll.limits import OUTPUT_CHARS
from toolroll.paths import quoted, show
from toolroll.status import iso_time
from toolroll.tool import Answer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from toolroll.paths import Opened
    from toolroll_glob.find import Found, Search

    Json = Any

LINE_CHARS = 40
"""The shortest line there can be: what can never be shown is not kept."""

NAME_THE_DOT = "name the dotted part in the pattern, as '.github/**' does"

FACTS_CHARS = 400
"""Room for the last line."""


def report(search: "Search", opened: "Opened", limit: int, *, absolute: bool) -> Answer:
    """The answer to `search`, which is run here; as many lines as `limit` and the output limit allow."""
    most = search.call.options.get("max-output", OUTPUT_CHARS)
    found = search.run(min(limit, max(most // LINE_CHARS, 1)))
    before = opened.path.rstrip("/") + "/" if absolute else prefix(opened.text)
    lines = fitted([line(before, one) for one in found], most - FACTS_CHARS)
    shown = found[: len(lines)]
    data: dict[str, Json] = {
        "results": [result(before, one) for one in shown],
        "total": search.total,
    }
    if len(shown) < search.total:
        data["truncated"] = True
    if skipped := search.skipped.by_reason:
        data["skipped"] = skipped
    if search.incomplete is not None:
        data["incomplete"] = True
    if not search.total:
        return Answer(nothing(search), data=data)
    why = f"limit {limit}" if len(shown) == limit else f"{most} characters"
    return Answer("\n".join(lines), list(facts(search, len(shown), why)), data)


def prefix(text: str) -> str:
    """What leads a name so that it becomes a path again, for a directory asked for as `text`."""
    plain = text.rstrip("/")
    return "" if plain == "." else plain.removeprefix("./") + "/"


def line(before: str, found: "Found") -> str:
    """One file; a path with outer blanks stands in quotes, so that they are seen."""
    time_ns, path, size, mode = found
    name = show(before + path)
    name = f"'{name}'" if name != name.strip() else name
    return f"{name}  {size} B  {iso_time(-time_ns) or 'no time'}  {stat.filemode(mode)}"


def result(before: str, found: "Found") -> "dict[str, Json]":
    """One file in its structured form."""
    time_ns, path, size, mode = found
    fields: dict[str, Json] = {"path": show(before + path), "size": size}
    if modified := iso_time(-time_ns):
        fields["modified"] = modified
    return {**fields, "permissions": stat.filemode(mode)}


def fitted(lines: list[str], most: int) -> list[str]:
    """The first lines that fit into `most` characters together, one at least."""
    room = most
    for at, text in enumerate(lines):
        room -= len(text) + 1
        if room < 0:
            return lines[: max(at, 1)]
    return lines


def facts(search: "Search", shown: int, why: str) -> "Iterator[str]":
    """What the last line says."""
    if shown < search.total:
        yield f"truncated: {shown} of {search.total} files ({why})"
    else:
        yield f"{shown} of {search.total} files"
    if skipped := counted(search):
        yield f"skipped: {skipped}"
    if search.incomplete is not None:
        yield stopped(search.incomplete)


def counted(search: "Search") -> str:
    """The counts of what was skipped, as words."""
    return ", ".join(f"{count} {reason}" for reason, count in search.skipped.by_reason.items())


def stopped(place: str) -> str:
    """Where the search stopped."""
    return f"incomplete: time ran out in {quoted(place or '.')}"


# ---- an empty answer ----


def nothing(search: "Search") -> str:
    """Why nothing was found, and what would find something."""
    words = ["No files."]
    if search.missing:
        words.append(f"{search.missing[0].upper()}{search.missing[1:]}.")
    if skipped := counted(search):
        words.append(f"Skipped: {skipped}.")
    if search.incomplete is not None:
        words.append(f"{stopped(search.incomplete).capitalize()}.")
    elif advice := second_look(search):
        words.append(advice)
    return " ".join(words)


def second_look(search: "Search") -> str:
    """What the same search finds when less is left out; empty when it still finds nothing.

    What the operator or `exclude` has closed stays closed.
    """
    ignored = search.skipped.ignored and not search.no_ignore
    hidden = search.skipped.hidden
    if ignored and (count := matches(search.again(no_ignore=True))):
        return f"{count} match among them: repeat with no_ignore=true."
    if hidden and (count := matches(search.again(lifted=True))):
        return f"{count} match in hidden places: {NAME_THE_DOT}."
    if hidden and ignored and (count := matches(search.again(no_ignore=True, lifted=True))):
        return f"{count} match in hidden places: {NAME_THE_DOT}, and set no_ignore=true."
    deeper = f"**/{search.pattern}"
    if not search.pattern.startswith("**/") and (count := matches(search.again(deeper))):
        return f"{count} match at other depths: use {quoted(deeper)}."
    return ""


def matches(search: "Search") -> int:
    """How many files a search finds in the time that is left."""
    search.run(0)
    return search.total
