"""The parameters of an operation: where each argument goes, and its schema. OpenAPI 3 and Swagger 2 alike."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from dragoman.connections.openapi.components import Components
from dragoman.connections.openapi.operation_plan import ParameterPlan, Place, Style
from dragoman.connections.openapi.parsing import OpenApiDocument
from dragoman.connections.openapi.references import DanglingReference, References
from dragoman.connections.openapi.untrusted_json import Json, Object, as_list, as_object, as_text, is_object

_PLACES: dict[str, Place] = {"path": "path", "query": "query", "header": "header", "cookie": "cookie"}
_DEFAULT_STYLES: dict[Place, Style] = {
    "path": "simple",
    "query": "form",
    "header": "simple",
    "cookie": "form",
}
_STYLES: dict[Place, tuple[Style, ...]] = {
    "path": ("simple", "label", "matrix"),
    "query": ("form", "spaceDelimited", "pipeDelimited", "deepObject"),
    "header": ("simple",),
    "cookie": ("form",),
}
COLLECTIONS: dict[str, tuple[Style, bool]] = {
    "csv": ("form", False),
    "ssv": ("spaceDelimited", False),
    "tsv": ("tabDelimited", False),
    "pipes": ("pipeDelimited", False),
    "multi": ("form", True),
}
# What the transport or the credentials decide is nothing that a caller may say.
_OWN_HEADERS = frozenset({"authorization", "host", "content-length", "transfer-encoding", "connection"})
_OWN_HEADERS_3 = frozenset({"accept", "content-type"})
_ORDER: dict[Place, int] = {"path": 0, "query": 1, "header": 2, "cookie": 3}


@dataclass(slots=True)
class InputSchemaBuilder:
    """What a tool takes: parameters and their schemas so far, and notes about what had to be left out."""

    parameters: list[ParameterPlan] = field(default_factory=list[ParameterPlan])
    schemas: dict[str, Json] = field(default_factory=dict[str, Json])
    required: list[str] = field(default_factory=list[str])
    notes: list[str] = field(default_factory=list[str])


class Parameters:
    """Of one document."""

    def __init__(self, document: OpenApiDocument, references: References, components: Components) -> None:
        self._version = document.version
        self._references = references
        self._components = components

    def collect(
        self, path: str, item: Object, operation: Object, covered: frozenset[str]
    ) -> InputSchemaBuilder:
        """Of the path, overridden by the operation's own. `covered` are those that a credential fills."""
        found = InputSchemaBuilder()
        chosen = self._merged(item, operation, found)
        for (place, name), raw in sorted(chosen.items(), key=lambda one: _ORDER[one[0][0]]):
            if place == "path" and f"{{{name}}}" not in path:
                continue
            self._add(found, place, name, raw, is_covered=f"{place}:{name}" in covered)
        self._add_undeclared(path, found)
        return found

    def _merged(
        self, item: Object, operation: Object, found: InputSchemaBuilder
    ) -> Mapping[tuple[Place, str], Object]:
        chosen: dict[tuple[Place, str], Object] = {}
        for raw in (*as_list(item.get("parameters")), *as_list(operation.get("parameters"))):
            try:
                parameter = self._references.followed(raw)
            except DanglingReference as fault:
                found.notes.append(f"a parameter is left out: {fault}")
                continue
            place, name = _PLACES.get(as_text(parameter.get("in"))), as_text(parameter.get("name"))
            if place and name and not self._is_own(place, name):
                chosen[place, name] = parameter
        return chosen

    def _is_own(self, place: Place, name: str) -> bool:
        if place != "header":
            return False
        return name.lower() in _OWN_HEADERS or (self._version != "2.0" and name.lower() in _OWN_HEADERS_3)

    def _add(
        self, found: InputSchemaBuilder, place: Place, name: str, raw: Object, *, is_covered: bool
    ) -> None:
        argument = name if name not in found.schemas else f"{name}_{place}"
        schema, is_json = self._schema(raw)
        style, explode = self._style(raw, place)
        is_required = (place == "path" or raw.get("required") is True) and not is_covered
        found.parameters.append(
            ParameterPlan(
                argument=argument,
                name=name,
                place=place,
                style=style,
                explode=explode,
                required=is_required,
                reserved=raw.get("allowReserved") is True,
                is_json=is_json,
                keeps_empty=raw.get("allowEmptyValue") is True or _names_empty(schema),
            )
        )
        translated = self._components.translate(schema)
        found.schemas[argument] = _described(translated, as_text(raw.get("description")))
        if is_required:
            found.required.append(argument)

    def _add_undeclared(self, path: str, found: InputSchemaBuilder) -> None:
        """A place in the path that nobody declared: without a value the path would be wrong."""
        known = {one.name for one in found.parameters if one.place == "path"}
        for part in path.split("{")[1:]:
            name = part.partition("}")[0]
            if "}" in part and name and name not in known:
                known.add(name)
                self._add(found, "path", name, {"schema": {"type": "string"}}, is_covered=False)

    def _schema(self, raw: Object) -> tuple[Object, bool]:
        """The schema, and whether the value is written as JSON (`content: application/json`)."""
        if self._version == "2.0":
            return {name: value for name, value in raw.items() if name not in _NOT_SCHEMA}, False
        for kind, media in as_object(raw.get("content")).items():
            return as_object(as_object(media).get("schema")), "json" in kind.lower()
        return as_object(raw.get("schema")), False

    def _style(self, raw: Object, place: Place) -> tuple[Style, bool]:
        if self._version == "2.0":
            style, explode = COLLECTIONS.get(as_text(raw.get("collectionFormat")), COLLECTIONS["csv"])
            return ("simple", False) if place in ("path", "header") and style == "form" else (style, explode)
        style = _DEFAULT_STYLES[place]
        for known in _STYLES[place]:
            style = known if known == raw.get("style") else style
        explode = raw.get("explode")
        if not isinstance(explode, bool):
            explode = style in ("form", "deepObject")
        return style, explode


_NOT_SCHEMA = frozenset({"name", "in", "required", "description", "collectionFormat", "allowEmptyValue"})


def _names_empty(schema: Object) -> bool:
    """Whether the schema itself speaks of the empty text: then it is a value, not a gap."""
    return schema.get("const") == "" or "" in as_list(schema.get("enum")) or schema.get("minLength") == 0


def _described(schema: Json, description: str) -> Json:
    """A parameter's own words beside its schema's."""
    if not description:
        return schema
    from_schema = schema.get("description") if is_object(schema) else None
    if schema.__class__ is dict and (from_schema is None or from_schema == description):
        return {**schema, "description": description[:2000]}
    if schema.__class__ is dict:
        return {**schema, "description": f"{description[:1500]} {from_schema}"[:2000]}
    return {"allOf": [schema], "description": description[:2000]}
