"""An answer in the form of a schema, where a text is not allowed: filled as far as a text can fill it."""

from collections.abc import Mapping
from typing import Any, cast

from dragoman.agents.offline.grammar import TEXT_NAMES

_DEEPEST = 5
_TELLING = TEXT_NAMES | frozenset({"message", "response", "summary", "output", "result"})


def in_form(schema: Mapping[str, Any], text: str) -> Any:
    """A value of the schema. The text goes where texts go; the rest is empty where it must be there."""
    definitions = {**schema.get("definitions", {}), **schema.get("$defs", {})}
    return _formed(schema, text, definitions, 0)


def _formed(schema: Mapping[str, Any], text: str, definitions: Mapping[str, Any], depth: int) -> Any:
    table = schema
    if isinstance(reference := table.get("$ref"), str):
        table = {**definitions.get(reference.rsplit("/", 1)[-1], {}), **table}
    if "const" in table:
        return table["const"]
    if "default" in table:
        return table["default"]
    if table.get("enum"):
        return table["enum"][0]
    for key in ("anyOf", "oneOf", "allOf"):
        if options := table.get(key):
            branches = [cast("dict[str, Any]", one) for one in options if isinstance(one, dict)]
            texts = [one for one in branches if one.get("type") == "string"]
            return _formed((texts or branches or [{}])[0], text, definitions, depth + 1)
    kind = table.get("type")
    kind = cast("list[Any]", kind)[0] if isinstance(kind, list) else kind
    if kind == "object" or "properties" in table:
        return _object(table, text, definitions, depth)
    if kind == "array":
        least = table.get("minItems", 0)
        item = cast("Mapping[str, Any]", table.get("items") or {})
        return [_formed(item, text, definitions, depth + 1) for _ in range(least if depth < _DEEPEST else 0)]
    least = table.get("minimum", 0)
    return {"integer": least, "number": least, "boolean": False, "null": None}.get(str(kind), text)


def _object(
    table: Mapping[str, Any], text: str, definitions: Mapping[str, Any], depth: int
) -> dict[str, Any]:
    properties = cast("dict[str, Any]", table.get("properties") or {})
    required = cast("list[str]", table.get("required") or [])
    wanted = [name for name in properties if name in required or name.lower() in _TELLING]
    if depth >= _DEEPEST:
        wanted = []
    return {name: _formed(properties[name], text, definitions, depth + 1) for name in wanted}
