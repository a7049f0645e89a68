"""A tool as a Python function: its stub for a model to read, and its arguments from a call. Pure."""

from collections.abc import Mapping, Sequence
from typing import Any, cast

from dragoman.sandbox.namespace import python_name
from dragoman.tool import Schema, Tool

_TYPES = {
    "string": "str",
    "integer": "int",
    "number": "float",
    "boolean": "bool",
    "null": "None",
    "array": "list",
    "object": "dict",
}
_MOST_FIELDS = 30
_MOST_CHOICES = 12
_DEEPEST = 3


def arguments_of(tool: Tool, name: str, values: Sequence[Any], named: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a call. Required ones may be given by position; `TypeError` says what may not."""
    properties, required = _parameters(tool.definition.input_schema)
    arguments = dict(named)
    if not arguments.keys() <= properties.keys():
        spellings = {python_name(word): word for word in properties}
        arguments = {
            word if word in properties else spellings.get(word, word): one for word, one in named.items()
        }
    if not values:
        return arguments
    order = [word for word in properties if word in required] or list(properties)[:1]
    if len(values) > len(order):
        words = ", ".join(f"{python_name(word)}=…" for word in list(properties)[:8]) or "no arguments"
        raise TypeError(
            f"{name}() takes {len(order)} positional arguments but {len(values)} were given;"
            f" give them by name: {name}({words})"
        )
    for word, value in zip(order, values, strict=False):
        if word in arguments:
            raise TypeError(f"{name}() got two values for {word!r}")
        arguments[word] = value
    return arguments


def stub(tool: Tool, name: str) -> str:
    """`async def …` with types, the description, and what it returns."""
    definition = tool.definition
    properties, required = _parameters(definition.input_schema)
    first = [word for word in properties if word in required]
    rest = [word for word in properties if word not in required]
    words = [f"{python_name(word)}: {_type(properties[word])}" for word in first]
    words += ["*"] if rest else []
    words += [f"{python_name(word)}: {_type(properties[word])} = …" for word in rest]
    returns = _type(definition.output_schema) if definition.output_schema else "Any"
    lines = [f"async def {name}({', '.join(words)}) -> {returns}"]
    lines += [f"    {line}" for line in tool.model_description.strip().splitlines()]
    lines += [_described(word, properties[word]) for word in (first + rest)[:_MOST_FIELDS]]
    if definition.output_schema:
        lines += ["    Returns:", *_fields(definition.output_schema, 2)]
    return "\n".join(line for line in lines if line.strip())


def _parameters(schema: Schema) -> tuple[Mapping[str, Any], frozenset[str]]:
    properties = schema.get("properties")
    required = schema.get("required")
    return (
        cast("Mapping[str, Any]", properties) if isinstance(properties, Mapping) else {},
        frozenset(map(str, cast("list[Any]", required))) if isinstance(required, list) else frozenset(),
    )


def _table(schema: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", schema) if isinstance(schema, Mapping) else {}


def _described(word: str, schema: Any) -> str:
    table = _table(schema)
    text = " ".join(str(table.get("description") or "").split())[:300]
    if "default" in table:
        text = f"{text} (default {str(table['default'])[:80]})".strip()
    return f"    {python_name(word)}: {text}" if text else ""


def _fields(schema: Any, level: int) -> list[str]:
    """The fields of an object, one per line, as far as they help to write the next line of code."""
    table = _table(schema)
    if table.get("type") == "array":
        return _fields(table.get("items"), level)
    properties, _ = _parameters(table)
    lines: list[str] = []
    for word, inner in list(properties.items())[:_MOST_FIELDS]:
        lines.append(f"{'    ' * level}{word!r}: {_type(inner)}")
        if level < _DEEPEST + 1:
            lines += _fields(inner, level + 1)
    return lines


def _type(schema: Any, depth: int = 0) -> str:
    if not isinstance(schema, Mapping) or depth > _DEEPEST:
        return "Any"
    table = cast("Mapping[str, Any]", schema)
    choices = table.get("enum")
    if isinstance(choices, list) and choices:
        shown = [repr(one)[:60] for one in cast("list[Any]", choices)[:_MOST_CHOICES]]
        return f"Literal[{', '.join(shown)}{', …' if len(cast('list[Any]', choices)) > len(shown) else ''}]"
    for word in ("anyOf", "oneOf"):
        if isinstance(parts := table.get(word), list):
            return _union([_type(part, depth + 1) for part in cast("list[Any]", parts)])
    kind = table.get("type")
    if isinstance(kind, list):
        return _union([_TYPES.get(str(one), "Any") for one in cast("list[Any]", kind)])
    if kind == "array":
        return f"list[{_type(table.get('items'), depth + 1)}]"
    if kind == "object":
        extra = table.get("additionalProperties")
        return f"dict[str, {_type(extra, depth + 1)}]" if isinstance(extra, Mapping) else "dict"
    return _TYPES.get(str(kind), "Any")


def _union(types: Sequence[str]) -> str:
    return " | ".join(dict.fromkeys(types[:_MOST_CHOICES])) or "Any"
