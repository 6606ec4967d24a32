"""Fill the generated tables of the documentation from the tools' declarations: `--check` or `--write`.

Every tool's README has its description, its parameters and its options between markers, docs/reference
the same of all tools, and the top README the table of tools.  A test runs `--check`.
"""

import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

from toolroll.cli import ACTIONS, OPTIONS, declared, program, variable
from toolroll.help import plain
from toolroll.tool import Option, Tool

ROOT = Path(__file__).resolve().parent.parent


def tools() -> dict[str, Tool]:
    """The declared tools of this checkout by their folder's name."""
    found = {}
    for folder in sorted((ROOT / "tools").iterdir()):
        module = import_module(f"toolroll_{folder.name}.tool")
        found[folder.name] = next(one for one in vars(module).values() if isinstance(one, Tool))
    return found


def parameters(tool: Tool) -> str:
    """The table of a call's parameters."""
    rows = ["| parameter | type | default | meaning |", "|---|---|---|---|"]
    for one in tool.parameters:
        value = plain(one.schema.get("default", ""))
        default = "required" if one.required else f"`{value}`" if value else ""
        about = str(one.schema.get("description", "")).replace("|", "\\|")
        rows.append(f"| `{one.name}` | {one.schema['type']} | {default} | {about} |")
    return "\n".join(rows)


def description(tool: Tool) -> str:
    """What the model reads, as a quotation."""
    return "\n".join(f"> {line}".rstrip() for line in tool.description.split("\n"))


def fields(tool: Tool) -> str:
    """The table of the structured form, its main field first."""
    properties = tool.output_schema()["properties"]
    rows = ["| field | type | meaning |", "|---|---|---|"]
    return "\n".join([*rows, *_fields(properties, "")])


def _fields(properties: Mapping[str, Any], before: str) -> Iterator[str]:
    """A row for each field; those of the objects in an array stand behind it."""
    for name, schema in properties.items():
        about = str(schema.get("description", "")).replace("|", "\\|")
        yield f"| `{before}{name}` | {schema['type']} | {about} |"
        inner = schema.get("items", {}).get("properties", {})
        yield from _fields(inner, f"{before}{name}[].")


def options(among: Iterable[Option]) -> str:
    """A table of options."""
    rows = ["| option | variable | meaning |", "|---|---|---|"]
    return "\n".join([*rows, *map(_option, among)])


def actions(among: Iterable[Option]) -> str:
    """A table of what a command does instead of serving."""
    return "\n".join(
        [
            "| option | meaning |",
            "|---|---|",
            *(f"| `--{one.name}` | {one.help} |" for one in among),
        ]
    )


def own(tool: Tool) -> list[Option]:
    """The options that not every server has."""
    common = {one.name for one in OPTIONS}
    return [one for one in tool.options if one.name not in common]


def chapter(folder: str, tool: Tool) -> str:
    """All that is declared of one tool."""
    hints = {name.removesuffix("Hint"): value for name, value in tool.annotations.items()}
    said = ", ".join(f"{name} {plain(value)}" for name, value in hints.items() if name != "title")
    parts = [
        f"## {tool.name}",
        f"*{tool.title}*: `{program(tool)}`, [its page](../../tools/{folder}/README.md). Hints: {said}.",
        description(tool),
        parameters(tool),
        f"Structured form:\n\n{fields(tool)}",
    ]
    if other := ", ".join(f"`{name}` for `{meant}`" for name, meant in tool.aliases.items()):
        parts.insert(4, f"Also taken: {other}.")
    if modes := [one.option for one in tool.modes]:
        parts.append(f"Instead of serving:\n\n{actions(modes)}")
    if mine := own(tool):
        parts.append(f"Options of its own:\n\n{options(mine)}")
    return "\n\n".join(parts)


def _option(one: Option) -> str:
    name = f"--{one.name}" + (f" {one.value}" if one.kind else "").replace("|", "\\|")
    default = f" Default: `{plain(one.default)}`." if one.default not in (None, ()) else ""
    many = " May be repeated." if one.many else ""
    return f"| `{name}` | `{variable(one)}` | {one.help}{many}{default} |"


def tool_rows(found: dict[str, Tool]) -> str:
    """The top README's table of tools."""
    rows = ["| tool | command | what it does | hints |", "|---|---|---|---|"]
    for folder, tool in found.items():
        first = tool.description.split("\n\n")[0].replace("\n", " ").split(". ")[0].rstrip(".")
        hints = "read-only" if tool.read_only else "writes"
        link = f"[`{tool.name}`](tools/{folder}/README.md)"
        rows.append(f"| {link} | `{program(tool)}` | {first}. | {hints} |")
    return "\n".join(rows)


def filled(text: str, tables: dict[str, str]) -> str:
    """`text` with each table between its markers, `<!-- name -->` and `<!-- /name -->`."""
    for name, table in tables.items():
        before, opened, rest = text.partition(f"<!-- {name} -->\n")
        _, closed, after = rest.partition(f"<!-- /{name} -->")
        text = f"{before}{opened}{table}\n{closed}{after}" if closed else text
    return text


def documents() -> dict[Path, str]:
    """Each generated document with the text it should have."""
    found = tools()
    chapters = "\n\n".join(chapter(folder, tool) for folder, tool in found.items())
    wanted = {
        ROOT / "README.md": {"tools": tool_rows(found)},
        ROOT / "docs/reference/tools.md": {"tools": chapters},
        ROOT / "docs/reference/options.md": {
            "actions": actions(ACTIONS),
            "options": options(OPTIONS),
        },
    }
    for folder, tool in found.items():
        tables = {
            "description": description(tool),
            "parameters": parameters(tool),
            "options": options(declared(tool)),
        }
        wanted[ROOT / "tools" / folder / "README.md"] = tables
    return {path: filled(path.read_text(), tables) for path, tables in wanted.items()}


def main(argv: list[str]) -> int:
    """The exit code: 1 when a document is not current and is not written."""
    stale = {path: text for path, text in documents().items() if path.read_text() != text}
    if argv == ["--write"]:
        for path, text in stale.items():
            path.write_text(text)
            print(f"wrote {path.relative_to(ROOT)}")
        return 0
    for path in stale:
        print(
            f"{path.relative_to(ROOT)} is not current: python scripts/tables.py --write",
            file=sys.stderr,
        )
    return 1 if stale else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
