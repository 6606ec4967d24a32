"""The text of `--help`, made from a tool's declaration; knows no argv."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from toolroll.schema import Parameter
    from toolroll.tool import Option, Tool

COLUMNS = 88
OPTIONS_TITLE = "Options, each also a variable (--log-level is TOOLROLL_LOG_LEVEL)"


def text(
    tool: "Tool",
    program: str,
    options: "Sequence[Option]",
    actions: "Sequence[Option]",
    status: str = "",
) -> str:
    """All of it, in the order a reader needs it; `status` is what the tool says of itself here."""
    return "\n\n".join(
        part
        for part in (
            f"{program}: an MCP server with one tool, {tool.name}.",
            tool.description,
            _usage(program, tool),
            _table("Parameters of a call", [_parameter(one) for one in tool.parameters]),
            _table("Instead of serving", [_option(one) for one in actions]),
            _table(OPTIONS_TITLE, [_option(one) for one in options]),
            f"In force here: {status}." if status else "",
        )
        if part
    )


def _usage(program: str, tool: "Tool") -> str:
    example = " ".join(f"{one.name}=..." for one in tool.parameters if one.required)
    serve = f"  {program} [OPTIONS]              serve MCP on stdin and stdout"
    return f"Usage:\n{serve}\n  {program} --call {example}"


def _parameter(one: "Parameter") -> tuple[str, str]:
    about = str(one.schema.get("description", ""))
    default = one.schema.get("default")
    return f"{one.name} ({one.schema['type']})", about + (
        f" Default: {plain(default)}." if default not in (None, "") else ""
    )


def plain(value: object) -> str:
    """A value as it is written on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    return f"{value:g}" if isinstance(value, float) else str(value)


def _option(one: "Option") -> tuple[str, str]:
    name = f"--{one.name}" + (f" {one.value}" if one.kind else "")
    default = f" Default: {plain(one.default)}." if one.default not in (None, ()) else ""
    return name, one.help + (" May be repeated." if one.many else "") + default


def _table(title: str, rows: "Sequence[tuple[str, str]]") -> str:
    """The rows under their title, the second column wrapped to COLUMNS."""
    from textwrap import wrap

    left = min(max((len(name) for name, _ in rows), default=0), 28) + 4
    lines = [f"{title}:"]
    for name, about in rows:
        first, *more = wrap(about, COLUMNS - left) or [""]
        lines.append(f"  {name}".ljust(left) + first)
        lines += [" " * left + line for line in more]
    return "\n".join(lines)
