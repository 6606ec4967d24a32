"""Fill the generated tables of the documentation from the tools' declarations: `--check` or `--write`.

Every tool's README has its description and its parameter table between markers; the top README has the
table of tools.  A test runs `--check`.
"""

import sys
from importlib import import_module
from pathlib import Path

from toolroll.cli import declared, program, variable
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


def options(tool: Tool) -> str:
    """The table of a server's options."""
    rows = ["| option | variable | meaning |", "|---|---|---|"]
    return "\n".join([*rows, *(_option(one) for one in declared(tool))])


def _option(one: Option) -> str:
    name = f"--{one.name}" + (f" {one.value}" if one.kind else "")
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
    wanted = {ROOT / "README.md": {"tools": tool_rows(found)}}
    for folder, tool in found.items():
        tables = {
            "description": description(tool),
            "parameters": parameters(tool),
            "options": options(tool),
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
