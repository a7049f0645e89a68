"""A tool as search reads it: four fields of text. Pure: knows no index and no question."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, cast

from dragoman.tool import Schema, Tool

_MOST_TEXT = 4_000  # characters of one field that are read: what a tool is for stands at the beginning
_MOST_PARAMETERS = 200
_MOST_VALUES = 20
_DEEPEST = 4


@dataclass(frozen=True, slots=True)
class SearchDocument:
    name: str
    description: str
    parameters: str
    connector: str


def document_of(tool: Tool) -> SearchDocument:
    definition = tool.definition
    text = f"{definition.title}. {definition.description}" if definition.title else definition.description
    return SearchDocument(
        name=tool.original_name,
        description=text[:_MOST_TEXT],
        parameters=parameters_of(definition.input_schema)[:_MOST_TEXT],
        connector=tool.slug,
    )


def parameters_of(schema: Schema) -> str:
    """Names, descriptions and fixed values of the arguments, nested ones included."""
    words: list[str] = []
    for name, description in _properties(schema, 0):
        words.append(name)
        if description:
            words.append(description)
        if len(words) > _MOST_PARAMETERS:
            break
    return " ".join(words)


def _properties(schema: Mapping[str, Any], depth: int) -> Iterator[tuple[str, str]]:
    properties = schema.get("properties")
    if isinstance(properties, dict) and depth < _DEEPEST:
        for name, inner in cast("dict[str, Any]", properties).items():
            if not isinstance(inner, dict):
                continue
            table = cast("dict[str, Any]", inner)
            items = table.get("items")
            nested = cast("dict[str, Any]", items) if isinstance(items, dict) else table
            fixed = table.get("enum") or nested.get("enum")
            yield name, " ".join([*_texts([table.get("description")]), *_texts(fixed)])
            yield from _properties(nested, depth + 1)


def _texts(values: Any) -> Iterator[str]:
    for value in cast("list[Any]", values)[:_MOST_VALUES] if isinstance(values, list) else ():
        if isinstance(value, str):
            yield value
