"""The body of an operation: which content type, which arguments, and their schemas."""

from dataclasses import dataclass

from dragoman.connections.openapi.components import Components
from dragoman.connections.openapi.operation_plan import BodyPlan, FieldPlan, Style
from dragoman.connections.openapi.parameters import COLLECTIONS, InputSchemaBuilder
from dragoman.connections.openapi.parsing import OpenApiDocument
from dragoman.connections.openapi.references import References
from dragoman.connections.openapi.untrusted_json import Json, Object, as_list, as_object, as_text, is_object

JSON, FORM, MULTIPART = "application/json", "application/x-www-form-urlencoded", "multipart/form-data"
_MERGED = frozenset(
    {"type", "properties", "required", "description", "title", "additionalProperties", "$comment"}
)
_STYLES: dict[str, Style] = {
    "form": "form",
    "spaceDelimited": "spaceDelimited",
    "pipeDelimited": "pipeDelimited",
    "tabDelimited": "tabDelimited",
    "deepObject": "deepObject",
}
FILE: Object = {
    "description": "text, a `data:` address (`data:image/png;base64,…`), or an object with `base64` or `text`"
    " and optional `filename` and `content_type`",
    "anyOf": [
        {"type": "string"},
        {
            "type": "object",
            "properties": {
                "base64": {"type": "string"},
                "text": {"type": "string"},
                "filename": {"type": "string"},
                "content_type": {"type": "string"},
            },
            "additionalProperties": False,
        },
    ],
}


def is_json(kind: str) -> bool:
    kind = kind.partition(";")[0].strip().lower()
    return kind == JSON or kind.endswith("+json") or kind == "text/json"


def is_form(kind: str) -> bool:
    return kind.lower().startswith((FORM, "multipart/"))


@dataclass(frozen=True, slots=True)
class _Content:
    """A body as OpenAPI 3 describes it; Swagger 2 is brought into this shape."""

    type: str
    schema: Object
    required: bool
    description: str
    encoding: Object


class BodySchemas:
    """Of one document."""

    def __init__(self, document: OpenApiDocument, references: References, components: Components) -> None:
        self._root = document.root
        self._version = document.version
        self._references = references
        self._components = components

    def add_body(self, item: Object, operation: Object, found: InputSchemaBuilder) -> BodyPlan | None:
        """The body's plan, if there is one; its arguments are added to those found so far."""
        content = self._swagger(item, operation) if self._version == "2.0" else self._openapi(operation)
        if content is None:
            return None
        top = self._flat(self._components.translate(content.schema))
        fields = self._fields(content, top)
        if (is_json(content.type) or is_form(content.type)) and self._can_merge(top, found):
            return self._merge(content, top, fields, found)
        return self._whole(content, top, fields, found)

    def _openapi(self, operation: Object) -> _Content | None:
        body = self._references.followed(operation.get("requestBody"))
        kinds = as_object(body.get("content"))
        if not body:
            return None
        kind = _preferred([*kinds]) if kinds else JSON
        media = self._references.followed(kinds.get(kind))
        schema = as_object(media.get("schema"))
        return _Content(
            type=_sent_as(kind, schema),
            schema=schema,
            required=body.get("required") is True,
            description=as_text(body.get("description")),
            encoding=as_object(media.get("encoding")),
        )

    def _swagger(self, item: Object, operation: Object) -> _Content | None:
        """`in: body` and `in: formData` as a body of OpenAPI 3."""
        chosen: dict[tuple[str, str], Object] = {}
        for raw in (*as_list(item.get("parameters")), *as_list(operation.get("parameters"))):
            parameter = self._references.followed(raw)
            if parameter.get("in") in ("body", "formData"):
                chosen[as_text(parameter.get("in")), as_text(parameter.get("name"))] = parameter
        consumes = [
            one for one in as_list(operation.get("consumes", self._root.get("consumes"))) if as_text(one)
        ]
        for (place, _), parameter in chosen.items():
            if place == "body":
                schema = as_object(parameter.get("schema"))
                kinds = [kind for kind in consumes if not is_form(kind)] or [JSON]
                required, words = parameter.get("required") is True, as_text(parameter.get("description"))
                return _Content(_sent_as(_preferred(kinds), schema), schema, required, words, {})
        return _form([*chosen.values()], consumes) if chosen else None

    def _flat(self, schema: Json) -> Json:
        """An `allOf` of objects as one object, where nothing else is said."""
        schema = self._components.opened(schema)
        if not is_object(schema) or not as_list(schema.get("allOf")) or schema.keys() - _MERGED - {"allOf"}:
            return schema
        joined: Object = {name: value for name, value in schema.items() if name != "allOf"}
        for part in schema["allOf"]:
            flat = self._flat(part)
            if not is_object(flat) or flat.keys() - _MERGED or flat.get("type", "object") != "object":
                return schema
            joined = {**flat, **joined} | {
                "properties": {**as_object(flat.get("properties")), **as_object(joined.get("properties"))},
                "required": list(
                    dict.fromkeys([*as_list(joined.get("required")), *as_list(flat.get("required"))])
                ),
            }
        return joined

    def _can_merge(self, top: Json, found: InputSchemaBuilder) -> bool:
        members = as_object(top.get("properties")) if is_object(top) else {}
        return (
            bool(members)
            and not top.keys() - _MERGED
            and top.get("type", "object") == "object"
            and not members.keys() & found.schemas.keys()
        )

    def _merge(
        self, content: _Content, top: Object, fields: dict[str, FieldPlan], found: InputSchemaBuilder
    ) -> BodyPlan:
        members = as_object(top.get("properties"))
        found.schemas |= self._with_files(members, fields)
        if content.required:
            found.required += [name for name in as_list(top.get("required")) if name not in found.required]
        return BodyPlan(
            type=content.type,
            members=tuple(members),
            required=content.required,
            is_open=top.get("additionalProperties", True) is not False,
            fields=fields,
        )

    def _whole(
        self, content: _Content, top: Json, fields: dict[str, FieldPlan], found: InputSchemaBuilder
    ) -> BodyPlan:
        argument = next(name for name in ("body", "request_body", "body_") if name not in found.schemas)
        is_file, schema = False, self._components.translate(content.schema)
        if not is_json(content.type) and not is_form(content.type):
            is_file = not content.type.startswith("text/") and _is_text(top)
            schema = FILE if is_file else {"type": "string"}
        elif fields and is_object(top) and (members := as_object(top.get("properties"))):
            schema = {**top, "properties": self._with_files(members, fields)}
        if content.description and "description" not in schema:
            schema = {"allOf": [schema], "description": content.description[:2000]}
        found.schemas[argument] = schema
        if content.required and (is_file or not _may_be_empty(top)):
            found.required.append(argument)
        return BodyPlan(
            type=content.type, argument=argument, required=content.required, is_file=is_file, fields=fields
        )

    def _fields(self, content: _Content, top: Json) -> dict[str, FieldPlan]:
        """How fields of a form are written, where the document or their type asks for something special."""
        if not is_form(content.type):
            return {}
        found: dict[str, FieldPlan] = {}
        for name, part in (as_object(top.get("properties")) if is_object(top) else {}).items():
            said = self._references.followed(content.encoding.get(name))
            style = _STYLES.get(as_text(said.get("style")))
            explode = said.get("explode")
            one = FieldPlan(
                style=style,
                explode=explode if isinstance(explode, bool) else style in (None, "form", "deepObject"),
                reserved=said.get("allowReserved") is True,
                type=as_text(said.get("contentType")).partition(",")[0].strip() or None,
                is_file=content.type.startswith("multipart/") and self._holds_file(part),
            )
            if one != FieldPlan():
                found[name] = one
        return found

    def _with_files(self, members: Object, fields: dict[str, FieldPlan]) -> Object:
        return {
            name: _file_schema(self._components.opened(part))
            if name in fields and fields[name].is_file
            else part
            for name, part in members.items()
        }

    def _holds_file(self, part: Json) -> bool:
        part = self._components.opened(part)
        if not is_object(part):
            return False
        if part.get("type") == "array" or (isinstance(part.get("type"), list) and "array" in part["type"]):
            return self._holds_file(part.get("items", {}))
        is_named = part.get("format") == "binary" or (
            "contentMediaType" in part and part["contentMediaType"] != JSON and "contentEncoding" not in part
        )
        return is_named or any(self._holds_file(one) for one in as_list(part.get("anyOf")))


def _form(parameters: list[Object], consumes: list[Json]) -> _Content:
    has_file = any(parameter.get("type") == "file" for parameter in parameters)
    kind = next((one for one in consumes if is_form(one)), MULTIPART if has_file else FORM)
    encoding: Object = {}
    for parameter in parameters:
        if parameter.get("type") == "array":
            style, explode = COLLECTIONS.get(as_text(parameter.get("collectionFormat")), ("form", False))
            encoding[as_text(parameter.get("name"))] = {"style": style, "explode": explode}
    omitted = ("name", "in", "required", "collectionFormat", "allowEmptyValue")
    properties = {
        as_text(one.get("name")): {key: value for key, value in one.items() if key not in omitted}
        for one in parameters
    }
    required = [as_text(one.get("name")) for one in parameters if one.get("required") is True]
    schema: Object = {"type": "object", "properties": properties, "required": required}
    kind = MULTIPART if has_file else kind
    return _Content(kind, schema, bool(required), "", encoding)


def _preferred(kinds: list[str]) -> str:
    """JSON, then forms, then whatever comes first; among equals the first."""
    return min(kinds, key=_rank)


def _rank(kind: str) -> int:
    plain = kind.partition(";")[0].strip().lower()
    if is_json(plain):
        return 0 if plain == JSON else 1
    if is_form(plain):
        return 2 if plain == FORM else 3
    return 4 if plain in ("*/*", "application/*") else 5 if plain == "text/plain" else 6


def _sent_as(kind: str, schema: Object) -> str:
    """The type that is written in the request: ranges are no types."""
    if "*" not in kind and "/" in kind:
        return kind
    if kind.startswith("text/"):
        return "text/plain"
    is_binary = schema.get("format") == "binary" or not kind.startswith(("*", "application"))
    return "application/octet-stream" if is_binary else JSON


def _is_text(schema: Json) -> bool:
    kind = schema.get("type") if is_object(schema) else None
    return kind in (None, "string") and not (is_object(schema) and schema.get("properties"))


def _may_be_empty(schema: Json) -> bool:
    """An object that asks for nothing: without arguments it is sent empty."""
    return is_object(schema) and schema.get("type") == "object" and not schema.get("required")


def _file_schema(part: Json) -> Object:
    """One file, or an array of them, with the words of the document and how a file is given."""
    words = as_text(part.get("description")) if is_object(part) else ""
    description = f"{words} ({FILE['description']})" if words else FILE["description"]
    if is_object(part) and part.get("type") == "array":
        return {"type": "array", "items": {"anyOf": FILE["anyOf"]}, "description": description}
    return {"anyOf": FILE["anyOf"], "description": description}
