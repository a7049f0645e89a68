"""The keywords of one schema, made fit for JSON Schema 2020-12: what is malformed is left out, not passed on.

Knows no references: those and all nested schemas are `schemas`' business.
"""

import re
from functools import lru_cache

import jsonschema_rs

from dragoman.connections.openapi.untrusted_json import Json, Object, as_list, is_list

TYPES = frozenset({"string", "number", "integer", "boolean", "array", "object", "null"})
_MEANT = {
    "int": "integer",
    "int32": "integer",
    "int64": "integer",
    "long": "integer",
    "float": "number",
    "double": "number",
    "decimal": "number",
    "bool": "boolean",
    "date": "string",
    "datetime": "string",
    "date-time": "string",
    "uuid": "string",
    "file": "string",
    "str": "string",
    "text": "string",
    "list": "array",
    "map": "object",
    "dict": "object",
}
_BOUNDS = (("minimum", "exclusiveMinimum"), ("maximum", "exclusiveMaximum"))
_COUNTS = (
    *("minLength", "maxLength", "minItems", "maxItems"),
    *("minProperties", "maxProperties", "minContains", "maxContains"),
)
_TEXTS = ("description", "format", "contentEncoding", "contentMediaType", "$comment")
_LONGEST_TEXT = 2000


def plain_keywords(schema: Object) -> Object:
    """Everything in a schema that holds no other schema, `nullable` included."""
    found: Object = {}
    if kinds := _types(schema.get("type")):
        found["type"] = kinds[0] if len(kinds) == 1 else kinds
    for name in _TEXTS:
        if isinstance(text := schema.get(name), str) and text:
            found[name] = _cut(text)
    if "description" not in found and isinstance(title := schema.get("title"), str) and title:
        found["title"] = _cut(title)
    if schema.get("type") == "file":
        found["format"] = "binary"
    for name in ("default", "const"):
        if name in schema:
            found[name] = schema[name]
    if schema.get("deprecated") is True:
        found["deprecated"] = True
    if schema.get("uniqueItems") is True:
        found["uniqueItems"] = True
    if "enum" in schema and (values := _enum(as_list(schema["enum"]), kinds)):
        found["enum"] = values
    _take_numbers(schema, found)
    _take_pattern(schema, found)
    return found


def required_names(schema: Object) -> list[str]:
    """`required: true`, as in older drafts, says nothing about names."""
    names = [name for name in as_list(schema.get("required")) if isinstance(name, str)]
    return list(dict.fromkeys(names))


def is_nullable(schema: Object) -> bool:
    return schema.get("nullable") is True or schema.get("x-nullable") is True


def with_null(schema: Object) -> Object:
    """The schema with null allowed beside what it allows."""
    kinds = schema.get("type")
    if isinstance(kinds, str) and not {"anyOf", "allOf", "not", "const", "$ref"}.intersection(schema):
        widened: Object = {**schema, "type": [kinds, "null"]} if kinds != "null" else dict(schema)
        if "enum" in widened and None not in widened["enum"]:
            widened["enum"] = [*widened["enum"], None]
        return widened
    if not schema.keys() - {"description", "title", "default", "deprecated", "format"}:
        return schema
    notes = {name: schema[name] for name in ("description", "title", "default") if name in schema}
    rest = {name: value for name, value in schema.items() if name not in notes}
    return {"anyOf": [rest, {"type": "null"}], **notes}


@lru_cache(maxsize=4096)
def is_usable_pattern(pattern: str) -> bool:
    """Whether our validator can use it: ECMA allows what others do not."""
    try:
        jsonschema_rs.Draft202012Validator({"pattern": pattern})
    except (ValueError, jsonschema_rs.ValidationError):
        return False
    return True


def _types(said: Json) -> list[str]:
    words = said if is_list(said) else [said]
    meant = (_MEANT.get(word, word) for word in words if isinstance(word, str))
    return list(dict.fromkeys(word for word in meant if word in TYPES))


def _enum(values: list[Json], kinds: list[str]) -> list[Json]:
    """The values, as the type wants them: YAML makes numbers and truth values of words."""
    if kinds == ["string"]:
        values = [value if isinstance(value, str) or value is None else _word(value) for value in values]
    elif kinds in (["integer"], ["number"]):
        values = [_number(value) for value in values]
    elif kinds == ["boolean"]:
        values = [{"true": True, "false": False}.get(value, value) for value in values if _is_plain(value)]
    return [value for place, value in enumerate(values) if value not in values[:place] or _is_plain(value)]


def _is_plain(value: Json) -> bool:
    return not isinstance(value, dict | list)


def _word(value: Json) -> str:
    return {True: "true", False: "false"}[value] if isinstance(value, bool) else str(value)


def _number(value: Json) -> Json:
    if not isinstance(value, str):
        return value
    try:
        return int(value)
    except ValueError:
        pass
    try:
        return float(value)
    except ValueError:
        return value


def _take_numbers(schema: Object, found: Object) -> None:
    for bound, exclusive in _BOUNDS:
        limit, strict = _finite(schema.get(bound)), schema.get(exclusive)
        if strict is True and limit is not None:
            found[exclusive] = limit  # 3.0 and 2.0: a flag beside the bound
        elif limit is not None:
            found[bound] = limit
        if not isinstance(strict, bool) and (edge := _finite(strict)) is not None:
            found[exclusive] = edge
    if (step := _finite(schema.get("multipleOf"))) is not None and step > 0:
        found["multipleOf"] = step
    for name in _COUNTS:
        if (count := _finite(schema.get(name))) is not None and count >= 0 and count == int(count):
            found[name] = int(count)


def _finite(value: Json) -> int | float | None:
    if isinstance(value, str):
        value = _number(value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return value if abs(value) < 1e300 else None


def _take_pattern(schema: Object, found: Object) -> None:
    pattern = schema.get("pattern")
    if not isinstance(pattern, str):
        return
    if (match := re.fullmatch(r"/(.*)/[a-z]*", pattern)) and not is_usable_pattern(pattern):
        pattern = match[1]
    if is_usable_pattern(pattern):
        found["pattern"] = pattern
    else:
        # It cannot be checked here; whoever fills the value in should still see it.
        found["description"] = f"{found.get('description', '')} (pattern: {pattern[:200]})".lstrip()


def _cut(text: str) -> str:
    return text if len(text) <= _LONGEST_TEXT else f"{text[: _LONGEST_TEXT - 1]}…"
