"""A function's annotations as JSON Schema 2020-12, and arguments fitted to the same declaration.

Knows nothing of tools or the wire.  Reads `__annotations__` and `__code__` by itself: `typing` and
`inspect` would cost more than everything else a server does at start.
"""

from toolroll.errors import ErrorCode, ToolError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Annotated as Annotated  # noqa: PLC0414 - passed on to the tools
    from typing import Any

    Json = Any
else:

    class Annotated:
        """`typing.Annotated` without `typing`: the same two attributes."""

        __slots__ = ("__metadata__", "__origin__")

        def __class_getitem__(cls, items):
            """The type and what is noted about it."""
            made = object.__new__(cls)
            made.__origin__, made.__metadata__ = items[0], items[1:]
            return made


DROPPED = ("wait_for_previous", "description")
"""Arguments that hosts and models add by themselves: Gemini CLI the first, to every call."""

ABSENT = object()
_NAMES = {str: "string", int: "integer", float: "number", bool: "boolean", list: "array"}
_TRUTH = {"true": True, "false": False, "1": True, "0": False, "yes": True, "no": False}


class Parameter:
    """One parameter of a tool: `kind` is the Python type asked for, `schema` what the host is told.

    `item` is the type of what a list holds.
    """

    __slots__ = ("default", "item", "kind", "name", "schema")

    def __init__(self, name: str, annotation: "Json", default: "Json" = ABSENT) -> None:
        self.name = name
        self.default = default
        hint, notes = annotation, ()
        if hasattr(annotation, "__metadata__"):
            hint, notes = annotation.__origin__, annotation.__metadata__
        self.kind, self.item = _kind(hint)
        self.schema = _schema(self.kind, self.item, default, notes)

    @property
    def required(self) -> bool:
        """True when there is no default."""
        return self.default is ABSENT

    @property
    def summary(self) -> str:
        """The parameter in a few words, for a hint: `limit (integer, optional)`."""
        need = "required" if self.required else "optional"
        return f"{self.name} ({self.schema['type']}, {need})"


def _kind(hint: "Json") -> tuple[type, type]:
    """The type behind a hint, and that of its items; `X | None` says the same as a default of None."""
    parts = [part for part in getattr(hint, "__args__", ()) if part is not type(None)]
    if isinstance(hint, type(int | None)) and len(parts) == 1:
        return _kind(parts[0])
    if hint in _NAMES and hint is not list:
        return hint, str
    if len(parts) == 1 and parts[0] in (str, int):
        return list, parts[0]  # list[str], Sequence[int] and the like
    raise TypeError(f"a tool's parameter cannot be {hint!r}")


def _schema(kind: type, item: type, default: "Json", notes: "Sequence[Json]") -> "dict[str, Json]":
    schema: dict[str, Json] = {"type": _NAMES[kind]}
    if kind is list:
        schema["items"] = {"type": _NAMES[item]}
    for note in notes:
        schema.update({"description": note} if isinstance(note, str) else note)
    if schema["type"] != "array":
        schema.pop("items", None)
    if default is not ABSENT and default is not None and default != ():
        schema["default"] = default
    return schema


def parameters(function: "Callable[..., Json]", skip: "Sequence[str]" = ()) -> "list[Parameter]":
    """The parameters of an annotated function, in its order, without those named in `skip`."""
    code, hints = function.__code__, function.__annotations__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    last = names[: code.co_argcount]
    values = function.__defaults__ or ()
    defaults = dict(zip(last[len(last) - len(values) :], values, strict=True))
    defaults.update(function.__kwdefaults__ or {})
    return [
        Parameter(name, hints[name], defaults.get(name, ABSENT))
        for name in names
        if name not in skip
    ]


def input_schema(declared: "Sequence[Parameter]") -> "dict[str, Json]":
    """The JSON Schema of a tool's arguments.

    Without `additionalProperties: false`: Gemini CLI adds a parameter of its own to every call.
    """
    schema: dict[str, Json] = {
        "type": "object",
        "properties": {parameter.name: parameter.schema for parameter in declared},
    }
    required = [parameter.name for parameter in declared if parameter.required]
    return {**schema, "required": required} if required else schema


def fit(
    arguments: "Mapping[str, Json]",
    declared: "Sequence[Parameter]",
    aliases: "Mapping[str, str]",
    lenient: bool,
) -> "tuple[dict[str, Json], list[str]]":
    """The values to call with, and the names of unknown arguments that were ignored.

    null means absent; a number or boolean written as a string is taken, and one string for an array
    of strings.  `lenient` ignores unknown arguments that resemble no known one.

    Raises: ToolError INVALID_PARAMS, naming every problem at once.
    """
    known = {parameter.name: parameter for parameter in declared}
    values: dict[str, Json] = {}
    ignored: list[str] = []
    problems: list[str] = []
    for given, value in arguments.items():
        name = given if given in known else aliases.get(given, given)
        if value is None or (name not in known and given in DROPPED):
            continue
        if name in known:
            values[name] = _coerce(value, known[name].kind, known[name].item)
            problems += _faults(name, values[name], known[name])
        elif (nearest := _nearest(given, known)) or not lenient:
            meant = f", did you mean '{nearest}'?" if nearest else ""
            problems.append(f"'{given}' is not a parameter{meant}")
        else:
            ignored.append(given)
    problems += [
        f"'{parameter.name}' is missing"
        for parameter in declared
        if parameter.required and parameter.name not in values
    ]
    if problems:
        hint = "Parameters: " + ", ".join(parameter.summary for parameter in declared)
        raise ToolError(ErrorCode.INVALID_PARAMS, "; ".join(problems), hint)
    return values, ignored


def _coerce(value: "Json", kind: type, item: type = str) -> "Json":
    """`value` as the declared kind where what was meant is plain, else as it came."""
    if kind is list:
        values = _list(value) if isinstance(value, str) else value
        return [_coerce(one, item) for one in values] if isinstance(values, list) else values
    if isinstance(value, str) and kind is not str:
        return _from_text(value, kind)
    if kind is int and isinstance(value, float) and value.is_integer():
        return int(value)
    return value


def _from_text(text: str, kind: type) -> "Json":
    if kind is bool:
        return _TRUTH.get(text.strip().lower(), text)
    try:
        return kind(text.strip())
    except ValueError:
        return text


def _list(text: str) -> "Json":
    """A list that a model wrote as JSON inside a string, else the string as the only item."""
    if text.lstrip().startswith("["):
        from toolroll.jsontext import loads

        try:
            value = loads(text.encode("utf-8", "surrogatepass"))
        except ValueError:
            return [text]
        if isinstance(value, list):
            return value
    return [text]


def _faults(name: str, value: "Json", parameter: Parameter) -> "list[str]":
    """What is wrong with a value, as sentences; empty when nothing is."""
    what = parameter.schema["type"] if parameter.kind is not list else "array"
    article = "an" if what[0] in "ai" else "a"
    wanted = f"'{name}' must be {article} {what}"
    if parameter.kind is list:
        items = f"{_NAMES[parameter.item]}s"
        if not isinstance(value, list):
            return [f"{wanted} of {items}, not {shown(value)}"]
        bad = [one for one in value if not _is_a(one, parameter.item)]
        return [f"'{name}' must hold {items} only, not {shown(bad[0])}"] if bad else []
    if not _is_a(value, parameter.kind):
        return [f"{wanted}, not {shown(value)}"]
    return _out_of_bounds(name, value, parameter.schema)


def _is_a(value: "Json", kind: type) -> bool:
    """True for a value of the kind; to Python booleans and infinities are numbers too."""
    if isinstance(value, bool):
        return kind is bool
    if isinstance(value, float) and not abs(value) < float("inf"):  # JSON's 1e999; a text "nan"
        return False
    return isinstance(value, (int, float) if kind is float else kind)


def _out_of_bounds(name: str, value: "Json", schema: "Mapping[str, Json]") -> "list[str]":
    if "enum" in schema and value not in schema["enum"]:
        choices = ", ".join(map(repr, schema["enum"]))
        return [f"'{name}' must be one of {choices}, not {shown(value)}"]
    if "minimum" in schema and value < schema["minimum"]:
        return [f"'{name}' must be at least {schema['minimum']}, not {value}"]
    if "maximum" in schema and value > schema["maximum"]:
        return [f"'{name}' must be at most {schema['maximum']}, not {value}"]
    if len(str(value)) < schema.get("minLength", 0):
        return [f"'{name}' must not be empty"]
    return []


def shown(value: "Json") -> str:
    """A value as an error message quotes it, short."""
    text = repr(value) if isinstance(value, str | bool | int | float) else type(value).__name__
    return text if len(text) <= 60 else text[:57] + "..."


def _nearest(given: str, known: "Mapping[str, Parameter]") -> str:
    """The known name that `given` was most likely meant to be, or an empty text."""
    plain = _plain(given)
    for name in known:
        other = _plain(name)
        if plain == other or (
            len(plain) > 3 and (other.startswith(plain) or other.endswith(plain))
        ):
            return name
    from difflib import get_close_matches

    return next(iter(get_close_matches(given.lower(), known, 1, 0.75)), "")


def _plain(name: str) -> str:
    return name.lower().replace("_", "").replace("-", "")
