"""Schemas of a document as JSON Schema 2020-12, with references still open. Each is translated once.

What is malformed is left out, keyword by keyword, and not passed on.
"""

import re
from functools import lru_cache
from typing import Literal

import jsonschema_rs

from dragoman.connections.openapi.parsing import Version
from dragoman.connections.openapi.references import DanglingReference, References
from dragoman.connections.openapi.untrusted_json import (
    Json,
    Object,
    as_list,
    as_object,
    as_text,
    is_list,
    is_object,
)

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


Direction = Literal["input", "output"]
_MOST_NESTED = 120
_HIDDEN: dict[Direction, str] = {"input": "readOnly", "output": "writeOnly"}


class SchemaReference(dict[str, str]):
    """An open reference inside a translated schema.

    `is_in_place` when the target describes the very same value: a circle of such references would
    send a validator round for ever.
    """

    def __init__(self, pointer: str, is_in_place: bool) -> None:
        super().__init__()
        self.pointer = pointer
        self.is_in_place = is_in_place


class Translator:
    """Of one document, in one direction: what only the service sets is no input, secrets are no output."""

    def __init__(self, references: References, version: Version, direction: Direction) -> None:
        self._references = references
        self._version = version
        self._hidden = _HIDDEN[direction]

    def translated(self, schema: Json, is_in_place: bool = True, depth: int = 0) -> Json:
        """An object; anything that is no schema becomes one that allows everything."""
        if schema is False:
            return {"not": {}}
        if not is_object(schema) or depth > _MOST_NESTED:
            return {}
        if isinstance(reference := schema.get("$ref"), str):
            return self._referred(reference, schema, is_in_place, depth)
        found = plain_keywords(schema)
        self._take_members(schema, found, depth)
        self._take_items(schema, found, depth)
        self._take_choices(schema, found, is_in_place, depth)
        return with_null(found) if is_nullable(schema) else found

    def _referred(self, reference: str, schema: Object, is_in_place: bool, depth: int) -> Json:
        pointer = self._references.pointer(reference)
        try:
            self._references.get(pointer)
        except DanglingReference:
            return {"description": f"(the document does not hold {reference[:200]})"}
        target = SchemaReference(pointer, is_in_place)
        beside = {name: value for name, value in schema.items() if name != "$ref"}
        if not beside or self._version == "2.0":
            return target
        if self._version == "3.0":  # what stands beside a reference is not read, but words do no harm
            beside = {name: value for name, value in beside.items() if name in ("description", "nullable")}
        rest = self.translated(beside, is_in_place, depth + 1)
        rest = (
            {name: value for name, value in rest.items() if name != "type"} if is_nullable(beside) else rest
        )
        joined: Json = {"allOf": [target], **rest} if rest else target
        return (
            with_null(joined)
            if is_nullable(beside) and joined is not target
            else ({"anyOf": [target, {"type": "null"}]} if is_nullable(beside) else joined)
        )

    def _take_members(self, schema: Object, found: Object, depth: int) -> None:
        if is_object(members := schema.get("properties")):
            shown = {name: part for name, part in members.items() if not self._is_hidden(part)}
            found["properties"] = {
                name: self.translated(part, False, depth + 1) for name, part in shown.items()
            }
            hidden = members.keys() - shown.keys()
        else:
            hidden = set[str]()
        if names := [name for name in required_names(schema) if name not in hidden]:
            found["required"] = names
        more = schema.get("additionalProperties")
        if isinstance(more, bool):
            found["additionalProperties"] = more
        elif is_object(more):
            found["additionalProperties"] = self.translated(more, False, depth + 1)
        patterns = {
            name: self.translated(part, False, depth + 1)
            for name, part in as_object(schema.get("patternProperties")).items()
            if is_usable_pattern(name)
        }
        if patterns:
            found["patternProperties"] = patterns
        if is_object(schema.get("propertyNames")):
            found["propertyNames"] = self.translated(schema["propertyNames"], False, depth + 1)

    def _take_items(self, schema: Object, found: Object, depth: int) -> None:
        items = schema.get("items")
        if is_list(items):
            if items:
                found["prefixItems"] = [self.translated(item, False, depth + 1) for item in items]
        elif items is not None:
            found["items"] = self.translated(items, False, depth + 1)
        if first := as_list(schema.get("prefixItems")):
            found["prefixItems"] = [self.translated(item, False, depth + 1) for item in first]
        if is_object(schema.get("contains")):
            found["contains"] = self.translated(schema["contains"], False, depth + 1)

    def _take_choices(self, schema: Object, found: Object, is_in_place: bool, depth: int) -> None:
        every = [self.translated(part, is_in_place, depth + 1) for part in as_list(schema.get("allOf"))]
        for word in ("anyOf", "oneOf"):
            # Documents say `oneOf` where more than one may fit: to be strict would refuse what they take.
            if some := [self.translated(part, is_in_place, depth + 1) for part in as_list(schema.get(word))]:
                if "anyOf" in found:
                    every.append({"anyOf": some})
                else:
                    found["anyOf"] = some
        if every:
            found["allOf"] = every
        if is_object(schema.get("not")):
            found["not"] = self.translated(schema["not"], is_in_place, depth + 1)
        if self._version == "3.1":
            for word in ("if", "then", "else"):
                if is_object(schema.get(word)):
                    found[word] = self.translated(schema[word], is_in_place, depth + 1)

    def _is_hidden(self, part: Json) -> bool:
        """Also where the property is a reference to a component that is hidden."""
        if not is_object(part):
            return False
        if part.get(self._hidden) is True:
            return True
        reference = as_text(part.get("$ref"))
        if not reference.startswith("#"):
            return False
        try:
            return (
                as_object(self._references.get(self._references.pointer(reference))).get(self._hidden) is True
            )
        except DanglingReference:
            return False
