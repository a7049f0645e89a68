"""What changed between two definitions of a tool, as text that a person can judge. Pure."""

from collections.abc import Iterator, Mapping
from difflib import unified_diff
from typing import Any

import orjson

from dragoman.tool import ToolDefinition

MAX_LINES = 400
MAX_LINE = 500


def readable_diff(before: ToolDefinition, after: ToolDefinition) -> str:
    """Lines that begin with `-` were, lines that begin with `+` are; a few unchanged ones around."""
    old, new = list(_lines(before)), list(_lines(after))
    if len(old) > MAX_LINES or len(new) > MAX_LINES:
        return _summary(before, after)
    lines = [line for line in unified_diff(old, new, n=2, lineterm="") if not line.startswith(("---", "+++"))]
    return "\n".join(lines)


def _lines(definition: ToolDefinition) -> Iterator[str]:
    yield f"name: {definition.original_name}"
    if definition.title is not None:
        yield f"title: {definition.title}"
    first, *rest = definition.description.splitlines() or [""]
    yield from _cut(f"description: {first}")
    for line in rest:
        yield from _cut(f"  {line}")
    marks = definition.annotations
    for name in ("read_only", "destructive", "idempotent", "open_world"):
        value = getattr(marks, name)
        yield f"{name}: {'not said' if value is None else 'yes' if value else 'no'}"
    yield from _schema_lines("input", definition.input_schema)
    if definition.output_schema is not None:
        yield from _schema_lines("output", definition.output_schema)


def _schema_lines(label: str, schema: Mapping[str, Any]) -> Iterator[str]:
    options = orjson.OPT_SORT_KEYS | orjson.OPT_INDENT_2 | orjson.OPT_NON_STR_KEYS
    yield f"{label}:"
    for line in orjson.dumps(schema, option=options).decode().splitlines():
        yield from _cut(f"  {line}")


def _cut(line: str) -> Iterator[str]:
    """Nothing is left out: what a poisoned description hides is often at the end of a long line."""
    for start in range(0, len(line), MAX_LINE) or (0,):
        yield line[start : start + MAX_LINE]


def _summary(before: ToolDefinition, after: ToolDefinition) -> str:
    pairs = (
        ("title", before.title, after.title),
        ("description", before.description, after.description),
        ("annotations", before.annotations, after.annotations),
        ("input schema", before.input_schema, after.input_schema),
        ("output schema", before.output_schema, after.output_schema),
    )
    changed = [
        f"{label} ({len(str(old)):,} → {len(str(new)):,} characters)"
        for label, old, new in pairs
        if old != new
    ]
    return f"too large to show line by line; changed: {', '.join(changed)}"
