"""Forms from schemas: which control a value gets, and what is read back from what was typed."""

from typing import Any

import pytest

from dragoman.console.schema_forms import draft_of, form_of, with_entry, without_entry

Json = dict[str, Any]


def of(properties: Json, *required: str, **more: Any) -> Json:
    return {"type": "object", "properties": properties, "required": [*required], **more}


KINDS: list[tuple[Json, str]] = [
    ({"type": "string"}, "text"),
    ({"type": "string", "maxLength": 5000}, "long"),
    ({"type": "string", "format": "date"}, "date"),
    ({"type": "string", "format": "date-time"}, "moment"),
    ({"type": "integer"}, "integer"),
    ({"type": "number"}, "number"),
    ({"type": "boolean"}, "choice"),
    ({"enum": ["a", 1, None]}, "choice"),
    ({"oneOf": [{"const": 1, "title": "one"}, {"const": 2}]}, "choice"),
    ({"const": "x"}, "fixed"),
    ({"type": "null"}, "fixed"),
    ({"type": "object", "properties": {"a": {}}}, "object"),
    ({"type": "object"}, "json"),
    ({"type": "array", "items": {"type": "string"}}, "list"),
    ({"type": "array"}, "json"),
    ({"type": "array", "prefixItems": [{"type": "string"}], "items": {}}, "json"),
    ({"type": ["string", "null"]}, "text"),
    ({"anyOf": [{"type": "integer"}, {"type": "null"}]}, "integer"),
    ({"anyOf": [{"type": "integer"}, {"type": "string"}]}, "variant"),
    ({"type": ["integer", "string"]}, "variant"),
    ({"$ref": "#/$defs/Level"}, "choice"),
    ({"allOf": [{"$ref": "#/$defs/Level"}], "description": "how"}, "choice"),
    ({"$ref": "#/$defs/Loop"}, "json"),
    ({"$ref": "https://elsewhere.example/schema"}, "json"),
    ({}, "json"),
]
DEFINITIONS = {"Level": {"enum": ["low", "high"]}, "Loop": {"$ref": "#/$defs/Loop"}}


@pytest.mark.parametrize(("schema", "kind"), KINDS)
def test_every_value_gets_the_control_that_fits(schema: Json, kind: str) -> None:
    (field,) = form_of(of({"x": schema}, **{"$defs": DEFINITIONS}), {}).fields
    assert field.kind == kind


# schema of x, whether it is needed, the draft, the arguments (None: refused)
READ: list[tuple[Json, bool, dict[str, str], Json | None]] = [
    ({"type": "string"}, True, {"v:/x": "hello"}, {"x": "hello"}),
    ({"type": "string"}, True, {"v:/x": ""}, {"x": ""}),
    ({"type": "string"}, False, {"v:/x": ""}, {}),
    ({"type": ["string", "null"]}, True, {"v:/x": ""}, {"x": None}),
    ({"type": "integer"}, True, {"v:/x": "12345678901234567890"}, {"x": 12345678901234567890}),
    ({"type": "integer"}, True, {"v:/x": "1.5"}, None),
    ({"type": "integer"}, True, {"v:/x": ""}, None),
    ({"type": "integer"}, False, {"v:/x": ""}, {}),
    ({"type": "integer", "default": 10}, False, {}, {}),
    ({"type": "integer", "default": 10}, True, {}, {"x": 10}),
    ({"type": "number"}, True, {"v:/x": "1e3"}, {"x": 1000.0}),
    ({"type": "number"}, True, {"v:/x": "nan"}, None),
    ({"type": "number"}, True, {"v:/x": "12"}, {"x": 12}),
    ({"type": "boolean"}, True, {"v:/x": "1"}, {"x": False}),
    ({"type": "boolean"}, True, {}, None),
    ({"type": "boolean", "default": False}, True, {}, {"x": False}),
    ({"type": "boolean"}, False, {"v:/x": ""}, {}),
    ({"enum": ["a", "b"]}, False, {"v:/x": "1"}, {"x": "b"}),
    ({"enum": ["a", "b"]}, False, {"v:/x": "7"}, {}),
    ({"enum": [1, True]}, True, {"v:/x": "1"}, {"x": True}),
    ({"const": "fixed"}, True, {}, {"x": "fixed"}),
    ({"const": "fixed"}, False, {}, {}),
    ({"type": "string", "format": "date"}, True, {"v:/x": "2026-03-04"}, {"x": "2026-03-04"}),
    (
        {"type": "string", "format": "date-time"},
        True,
        {"v:/x": "2026-03-04T10:20"},
        {"x": "2026-03-04T10:20:00Z"},
    ),
    ({"type": "string", "format": "date-time"}, True, {"v:/x": "soon"}, None),
    ({"type": "array", "items": {"type": "string"}}, False, {"n:/x": "0"}, {}),
    ({"type": "array", "items": {"type": "string"}}, True, {"n:/x": "0"}, {"x": []}),
    (
        {"type": "array", "items": {"type": "integer"}},
        True,
        {"n:/x": "2", "v:/x/0": "1", "v:/x/1": "2"},
        {"x": [1, 2]},
    ),
    ({"type": "array", "items": {"type": "integer"}}, True, {"n:/x": "1", "v:/x/0": ""}, None),
    ({"type": "array", "items": {"type": "integer"}, "minItems": 1}, True, {"v:/x/0": "5"}, {"x": [5]}),
    ({"type": "object"}, True, {"v:/x": '{"a": [1]}'}, {"x": {"a": [1]}}),
    ({"type": "object"}, True, {"v:/x": "{"}, None),
    ({"type": "object"}, True, {"v:/x": "NaN"}, None),
    ({"type": "object"}, False, {"v:/x": ""}, {}),
    (of({"a": {"type": "string"}}, "a"), False, {}, {}),
    (of({"a": {"type": "string"}}, "a"), False, {"has:/x": "1", "v:/x/a": "y"}, {"x": {"a": "y"}}),
    (of({"a/b~": {"type": "string"}}, "a/b~"), True, {"v:/x/a~1b~0": "y"}, {"x": {"a/b~": "y"}}),
    (of({"a": {"type": "integer"}}, "a"), True, {"v:/x/a": "no"}, None),
    ({"type": ["integer", "string"]}, True, {"is:/x": "1", "v:/x": "7"}, {"x": "7"}),
    ({"type": ["integer", "string"]}, True, {"v:/x": "7"}, {"x": 7}),
    ({"type": ["integer", "string"]}, False, {"v:/x": "7"}, {}),
]


@pytest.mark.parametrize(("schema", "is_needed", "draft", "arguments"), READ)
def test_what_was_typed_is_read_as_it_was_meant(
    schema: Json, is_needed: bool, draft: dict[str, str], arguments: Json | None
) -> None:
    form = form_of(of({"x": schema}, *(["x"] if is_needed else [])), draft)
    if arguments is None:
        assert form.problems
    else:
        assert not form.problems
        assert form.arguments == arguments
        assert [type(value) for value in form.arguments.values()] == [type(v) for v in arguments.values()]


PERSON = of({"name": {"type": "string"}, "age": {"type": "integer"}}, "name")
WHOLE = of(
    {
        "to": {"type": "array", "items": PERSON},
        "note": {"type": "string"},
        "urgent": {"type": "boolean"},
        "when": {"anyOf": [{"type": "string", "format": "date-time"}, {"type": "null"}]},
        "more": {"type": "object", "additionalProperties": True},
        "level": {"enum": ["low", "high"]},
        "target": {"anyOf": [{"type": "integer"}, PERSON]},
    },
    "to",
)


@pytest.mark.parametrize(
    "arguments",
    [
        {"to": []},
        {"to": [{"name": "Ada"}, {"name": "Bob", "age": 3}], "urgent": False, "level": "high"},
        {"to": [], "when": "2026-03-04T10:20:30Z", "more": {"a": {"b": None}}, "note": "x"},
        {"to": [], "target": 5},
        {"to": [{"name": "A"}], "target": {"name": "Eve"}},
    ],
)
def test_arguments_become_a_form_that_reads_as_the_same(arguments: Json) -> None:
    draft = draft_of(WHOLE, arguments)
    assert draft is not None
    assert form_of(WHOLE, draft).arguments == arguments


@pytest.mark.parametrize(
    "arguments",
    [{"to": [], "unknown": 1}, {"to": "text"}, {"to": [], "level": "other"}, {"to": [], "target": "x"}],
)
def test_what_a_form_cannot_show_stays_json(arguments: Json) -> None:
    assert draft_of(WHOLE, arguments) is None


def test_entries_are_added_and_those_behind_a_removed_one_move_up() -> None:
    draft = with_entry(with_entry({"n:/to": "1", "v:/to/0/name": "Ada", "v:/note": "x"}, "/to"), "/to")
    draft |= {"v:/to/1/name": "Bob", "v:/to/2/name": "Cid"}
    assert form_of(WHOLE, draft).arguments["to"] == [{"name": "Ada"}, {"name": "Bob"}, {"name": "Cid"}]

    draft = without_entry(draft, "/to", 1)

    assert form_of(WHOLE, draft).arguments == {"to": [{"name": "Ada"}, {"name": "Cid"}], "note": "x"}


def test_a_schema_that_contains_itself_ends() -> None:
    tree = of(
        {"left": {"$ref": "#"}, "right": {"$ref": "#"}, "third": {"$ref": "#"}}, "left", "right", "third"
    )
    form = form_of(tree, {})
    assert sum(1 for top in form.fields for _ in top.walk()) < 2_000


def test_defaults_and_notes_are_told() -> None:
    schema = of({"limit": {"type": "integer", "default": 20, "description": "most entries"}})
    (field,) = form_of(schema, {}).fields
    assert (field.default, field.shape.description, field.text) == ("20", "most entries", "")
