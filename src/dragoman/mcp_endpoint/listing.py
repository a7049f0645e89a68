"""A tool of the catalog as an entry of MCP's tools/list. Pure."""

from collections.abc import Mapping
from typing import Any, cast

from dragoman.mcp_endpoint.results import is_object_schema, with_shared_pages
from dragoman.tool import Annotations, Schema, Tool

_DEFINITIONS = ("$defs", "definitions")


def listed(tool: Tool, *, is_alone: bool) -> dict[str, Any]:
    """`is_alone`: as its server calls it, for a client that sees this one connector and no other."""
    definition = tool.definition
    entry: dict[str, Any] = {
        "name": tool.original_name if is_alone else tool.name,
        "description": definition.description if is_alone else tool.model_description,
        "inputSchema": _input(definition.input_schema),
    }
    if definition.title:
        entry["title"] = definition.title
    if definition.output_schema is not None and (schema := _output(definition.output_schema)) is not None:
        entry["outputSchema"] = schema
    if annotations := _annotations(definition.annotations):
        entry["annotations"] = annotations
    if definition.meta:
        entry["_meta"] = with_shared_pages(definition.meta, None if is_alone else tool.own.slug)
    return entry


def _input(schema: Schema) -> dict[str, Any]:
    return dict(schema) if is_object_schema(schema) else {"type": "object", **schema}


def _output(schema: Schema) -> dict[str, Any] | None:
    """An object as it is; anything else as `result` in one. None when it cannot be moved inside."""
    if is_object_schema(schema):
        return dict(schema)
    inner = {name: value for name, value in schema.items() if name not in (*_DEFINITIONS, "$schema")}
    if not all(reference.startswith(("#/$defs/", "#/definitions/")) for reference in _references(inner)):
        return None
    outer: dict[str, Any] = {"type": "object", "properties": {"result": inner}, "required": ["result"]}
    return outer | {name: schema[name] for name in (*_DEFINITIONS, "$schema") if name in schema}


def _references(schema: Any) -> list[str]:
    found: list[str] = []
    waiting = [schema]
    while waiting:
        one = waiting.pop()
        if isinstance(one, Mapping):
            table = cast("Mapping[str, Any]", one)
            if isinstance(reference := table.get("$ref"), str):
                found.append(reference)
            waiting += table.values()
        elif isinstance(one, list):
            waiting += cast("list[Any]", one)
    return found


def _annotations(notes: Annotations) -> dict[str, bool]:
    hints = {
        "readOnlyHint": notes.read_only,
        "destructiveHint": notes.destructive,
        "idempotentHint": notes.idempotent,
        "openWorldHint": notes.open_world,
    }
    return {name: value for name, value in hints.items() if value is not None}
