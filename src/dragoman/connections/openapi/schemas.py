"""Schemas of a document as JSON Schema 2020-12, with references still open. Each is translated once.

`components` closes the references: it decides what is put in place and what is shared.
"""

from typing import Literal

from dragoman.connections.openapi.parsing import Version
from dragoman.connections.openapi.references import DanglingReference, References
from dragoman.connections.openapi.schema_keywords import (
    is_nullable,
    is_usable_pattern,
    plain_keywords,
    required_names,
    with_null,
)
from dragoman.connections.openapi.untrusted_json import (
    Json,
    Object,
    as_list,
    as_object,
    as_text,
    is_list,
    is_object,
)

Direction = Literal["input", "output"]
_MOST_NESTED = 120
_HIDDEN: dict[Direction, str] = {"input": "readOnly", "output": "writeOnly"}
_NOTES = frozenset({"description", "title", "default", "deprecated"})


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
