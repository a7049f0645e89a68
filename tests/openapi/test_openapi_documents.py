"""Real documents become tools, all of them; and what documents do wrong harms no more than it must."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema_rs
import orjson
import pytest
from echo import document, operation

from dragoman.connections.openapi.conversion import METHODS, Conversion, DocumentOrigin, OperationFilter
from dragoman.connections.openapi.operation_plan import META_KEY, OperationPlan
from dragoman.connections.openapi.parsing import parse
from dragoman.connections.openapi.untrusted_json import DocumentFault
from patience import patient
from public_data import openapi_documents, read_document

DOCUMENTS = openapi_documents()
HERE = DocumentOrigin("http://service.test/openapi.json", "http://service.test/")


def convert(made: dict[str, Any] | bytes, **wanted: Any) -> tuple[dict[str, dict[str, Any]], list[str]]:
    data = made if isinstance(made, bytes) else orjson.dumps(made)
    conversion = Conversion(parse(data), HERE, OperationFilter(**wanted))
    tools = {tool["name"]: tool for tool in conversion.tools()}
    return tools, conversion.skipped


def body_of(schema: Any, components: dict[str, Any] | None = None) -> dict[str, Any]:
    """The input schema of an operation whose body has this schema."""
    facts = {"requestBody": {"required": True, "content": {"application/json": {"schema": schema}}}}
    made = document({"/a": {"post": operation("a", **facts)}}, components={"schemas": components or {}})
    tools, skipped = convert(made)
    assert skipped == []
    jsonschema_rs.Draft202012Validator(tools["a"]["input"])
    return tools["a"]["input"]


def test_the_collection_is_there() -> None:
    assert len(DOCUMENTS) >= 18


@pytest.mark.parametrize("name", DOCUMENTS)
def test_every_operation_of_a_real_document_becomes_a_tool(name: str) -> None:
    data = read_document(DOCUMENTS[name])
    root = orjson.loads(data)
    tools, skipped = convert(data)
    assert skipped == []
    assert len(tools) == sum(method in item for item in root["paths"].values() for method in METHODS)
    for tool in tools.values():
        assert tool["input"]["type"] == "object"
        for schema in (tool["input"], tool["output"] or {}):
            jsonschema_rs.meta.validate({"$schema": "https://json-schema.org/draft/2020-12/schema", **schema})
            jsonschema_rs.Draft202012Validator(schema, retriever=refuse)
            assert unresolved(schema, schema) == []
        assert len(orjson.dumps(tool["input"])) < 200_000
        assert tool["output"] is None or len(orjson.dumps(tool["output"])) < 10_000
        plan = tool["meta"][META_KEY]
        assert OperationPlan.from_meta(plan).as_meta() == plan


def refuse(uri: str) -> Any:
    raise AssertionError(f"the schema leads outside: {uri}")


def unresolved(node: Any, root: dict[str, Any]) -> list[str]:
    if isinstance(node, list):
        return [fault for part in node for fault in unresolved(part, root)]
    if not isinstance(node, dict):
        return []
    found = [fault for part in node.values() for fault in unresolved(part, root)]
    reference = node.get("$ref")
    if isinstance(reference, str) and reference.removeprefix("#/$defs/") not in root.get("$defs", {}):
        found.append(reference)
    return found


def test_names_come_from_ids_else_from_method_and_path_and_no_two_are_alike() -> None:
    paths: dict[str, Any] = {
        "/users/{id}": {"get": {}, "delete": operation("users/remove")},
        "/a": {"get": operation("same"), "post": operation("same")},
        "/b.c": {"get": operation("same")},
    }
    tools, _ = convert(document(paths))
    assert list(tools) == ["get_users_id", "users_remove", "same", "same_post_a", "same_get_b_c"]


def test_annotations_follow_the_method() -> None:
    item = {method: operation(method) for method in ("get", "head", "post", "put", "patch", "delete")}
    tools, _ = convert(document({"/a": item}))
    told = {name: tool["annotations"] for name, tool in tools.items()}
    assert told["get"] == told["head"] == {"read_only": True, "idempotent": True}
    assert told["post"] == told["patch"] == {}
    assert told["put"]["idempotent"] is True
    assert (told["delete"]["destructive"], told["delete"]["idempotent"]) == (True, True)


def test_description_is_summary_and_description() -> None:
    made = operation("a", summary="Reads a thing.", description="At length.", deprecated=True)
    tools, _ = convert(document({"/a": {"get": made}, "/b": {"get": operation("b")}}))
    assert tools["a"]["description"] == "(deprecated) Reads a thing.\n\nAt length."
    assert tools["b"]["description"] == "GET /b"


def test_selection_narrows_and_exclusion_wins() -> None:
    made = document(
        {
            "/pets": {
                "get": operation("listPets", tags=["pets"]),
                "post": operation("addPet", tags=["pets"]),
            },
            "/pets/{id}": {"get": operation("getPet", tags=["pets"])},
            "/users": {"get": operation("listUsers", tags=["users"])},
        }
    )
    assert [*convert(made, tags=["users"])[0]] == ["listUsers"]
    assert [*convert(made, paths=["/pets*"], methods=["GET"])[0]] == ["listPets", "getPet"]
    assert [*convert(made, include=["list*"])[0]] == ["listPets", "listUsers"]
    assert [*convert(made, include=["list*"], exclude=["GET /users"])[0]] == ["listPets"]


def test_plain_references_are_put_in_place_and_circles_are_definitions() -> None:
    node = {
        "type": "object",
        "properties": {
            "next": {"$ref": "#/components/schemas/Node"},
            "at": {"$ref": "#/components/schemas/Place"},
        },
    }
    place = {"type": "object", "properties": {"city": {"type": "string"}}}
    schema = body_of(
        {"type": "object", "properties": {"first": {"$ref": "#/components/schemas/Node"}}},
        {"Node": node, "Place": place},
    )
    assert schema["properties"]["first"] == {"$ref": "#/$defs/Node"}
    assert schema["$defs"]["Node"]["properties"]["at"]["properties"]["city"] == {"type": "string"}
    validator = jsonschema_rs.Draft202012Validator(schema)
    assert validator.is_valid({"first": {"next": {"next": {"at": {"city": "Rome"}}}}})
    assert not validator.is_valid({"first": {"next": {"next": {"at": {"city": 5}}}}})


def test_pointers_with_escaped_signs_are_followed() -> None:
    odd = {"type": "object", "properties": {"a": {"type": "integer"}}}
    schema = body_of(
        {"type": "object", "properties": {"p": {"$ref": "#/components/schemas/a~1b~0c%20d"}}},
        {"a/b~c d": odd},
    )
    assert schema["properties"]["p"]["properties"] == {"a": {"type": "integer"}}


def to(name: str) -> dict[str, str]:
    return {"$ref": f"#/components/schemas/{name}"}


@pytest.mark.parametrize(
    "components",
    [
        {"A": to("A")},
        {"A": to("B"), "B": to("A")},
        {"A": {"allOf": [to("B")]}, "B": {"oneOf": [to("A")]}},
        {
            "A": {"type": "object", "oneOf": [to("B")], "properties": {"k": {"type": "string"}}},
            "B": {"allOf": [to("A"), {"properties": {"n": {"type": "integer"}}}]},
        },
    ],
)
def test_a_circle_that_looks_at_nothing_new_does_not_hang_a_validator(components: dict[str, Any]) -> None:
    schema = body_of({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/A"}}}, components)
    jsonschema_rs.Draft202012Validator(schema).is_valid({"a": {"k": "x", "n": 1}})
    assert not [name for name in schema.get("$defs", {}) if comes_back(name, schema)]


def comes_back(name: str, root: dict[str, Any]) -> bool:
    """Whether a definition leads to itself without a step into the value."""
    seen, waiting = set[str](), [name]
    while waiting:
        for found in same_value(root["$defs"][waiting.pop()]):
            if found == name:
                return True
            if found not in seen:
                seen.add(found)
                waiting.append(found)
    return False


def same_value(schema: dict[str, Any]) -> list[str]:
    """Definitions that describe the very value that the schema describes."""
    parts = [
        *schema.get("allOf", []),
        *schema.get("anyOf", []),
        *([schema["not"]] if "not" in schema else []),
    ]
    own = [schema["$ref"].removeprefix("#/$defs/")] if "$ref" in schema else []
    return own + [found for part in parts for found in same_value(part)]


def test_a_document_that_grows_without_measure_stays_small() -> None:
    # Each level holds the one below ten times: written out it would be 10^60 schemas.
    levels = {
        f"L{n}": {
            "type": "object",
            "properties": {f"p{i}": {"$ref": f"#/components/schemas/L{n + 1}"} for i in range(10)},
        }
        for n in range(60)
    }
    levels["L60"] = {"type": "string"}
    schema = body_of({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/L0"}}}, levels)
    assert len(orjson.dumps(schema)) < 150_000


def test_a_chain_of_ten_thousand_references_is_read_in_the_worker(tmp_path: Path) -> None:
    links = {
        f"L{n}": {"type": "object", "properties": {"next": {"$ref": f"#/components/schemas/L{n + 1}"}}}
        for n in range(10_000)
    }
    facts = {
        "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/L0"}}}}
    }
    made = orjson.dumps(document({"/a": {"post": operation("a", **facts)}}, components={"schemas": links}))
    request = orjson.dumps({"size": len(made), "origin": {}, "wanted": {}})
    sent = len(request).to_bytes(4, "big") + request + made
    module = "dragoman.connections.openapi.worker"
    done = subprocess.run(
        [sys.executable, "-m", module], input=sent, capture_output=True, timeout=patient(60), check=True
    )
    assert b'"skipped":[]' in done.stdout
    assert b'"name":"a"' in done.stdout


def test_keywords_become_those_of_2020_12() -> None:
    made = {
        "type": "object",
        "properties": {
            "a": {"type": "integer", "minimum": 0, "exclusiveMinimum": True, "example": "bad"},
            "b": {"type": "number", "maximum": 9, "exclusiveMaximum": False},
            "c": {"type": "string", "nullable": True, "enum": ["x", "y"]},
            "d": {"nullable": True, "allOf": [{"$ref": "#/components/schemas/D"}]},
            "e": {"type": "string", "enum": [True, 1]},
            "f": {"type": "string", "minLength": "2", "maxLength": -1},
            "g": {"type": "array", "items": [{"type": "string"}]},
            "h": {"type": "whatever", "required": True},
        },
        "required": ["a", "a"],
    }
    found = body_of(made, {"D": {"type": "object"}})
    parts = found["properties"]
    assert parts["a"] == {"type": "integer", "exclusiveMinimum": 0}
    assert parts["b"] == {"type": "number", "maximum": 9}
    assert parts["c"] == {"type": ["string", "null"], "enum": ["x", "y", None]}
    assert parts["d"] == {"anyOf": [{"allOf": [{"type": "object"}]}, {"type": "null"}]}
    assert parts["e"]["enum"] == ["true", "1"]
    assert parts["f"] == {"type": "string", "minLength": 2}
    assert parts["g"]["prefixItems"] == [{"type": "string"}]
    assert parts["h"] == {}
    assert found["required"] == ["a"]


@pytest.mark.parametrize("pattern", [r"^[\w-[\d]]+$(?<", r"\p{Foo}", "[", "(?>"])
def test_a_pattern_that_cannot_be_used_is_told_instead(pattern: str) -> None:
    part = body_of({"type": "object", "properties": {"a": {"type": "string", "pattern": pattern}}})[
        "properties"
    ]["a"]
    assert "pattern" not in part
    assert pattern in part["description"]


def test_read_only_members_are_no_input_and_write_only_ones_no_output() -> None:
    user = {
        "type": "object",
        "required": ["id", "name"],
        "properties": {
            "id": {"$ref": "#/components/schemas/Id"},
            "name": {"type": "string"},
            "password": {"type": "string", "writeOnly": True},
        },
    }
    components = {"schemas": {"User": user, "Id": {"type": "string", "readOnly": True}}}
    kind = {"application/json": {"schema": {"$ref": "#/components/schemas/User"}}}
    made = operation(
        "a", requestBody={"required": True, "content": kind}, responses={"200": {"content": kind}}
    )
    tools, _ = convert(document({"/a": {"post": made}}, components=components))
    assert set(tools["a"]["input"]["properties"]) == {"name", "password"}
    assert tools["a"]["input"]["required"] == ["name"]
    assert set(tools["a"]["output"]["properties"]) == {"id", "name"}


def test_one_bad_operation_loses_none_of_the_others() -> None:
    outside = {"content": {"application/json": {"schema": {"$ref": "http://evil.test/x.json#/A"}}}}
    made = document(
        {
            "/good": {"get": operation("good")},
            "/outside": {"post": operation("outside", requestBody=outside)},
            "/file": {"$ref": "other.yaml#/paths/x"},
            "/text": {"get": "no object"},
            "/hole": {"get": operation("hole", parameters=[{"$ref": "#/components/parameters/none"}])},
            "/circle": {"get": operation("circle", parameters=[{"$ref": "#/components/parameters/c"}])},
            "/answer": {"get": operation("answer", responses={"200": outside})},
        },
        components={"parameters": {"c": {"$ref": "#/components/parameters/c"}}},
    )
    tools, skipped = convert(made)
    assert set(tools) == {"good", "hole", "answer"}
    assert tools["answer"]["output"] is None
    told = "\n".join(skipped)
    for where in (
        "POST /outside: it refers to 'http://evil.test",
        "/file: it refers to 'other.yaml",
        "GET /text",
        "GET /circle",
    ):
        assert where in told
    assert "GET /hole: a parameter is left out" in told


def test_a_dangling_schema_allows_everything_and_says_so() -> None:
    schema = body_of({"type": "object", "properties": {"a": {"$ref": "#/components/schemas/None"}}})
    assert "does not hold #/components/schemas/None" in schema["properties"]["a"]["description"]


def test_an_output_schema_is_dropped_when_it_is_large() -> None:
    wide = {
        "type": "object",
        "properties": {f"field_{n}": {"type": "string", "description": "x" * 50} for n in range(200)},
    }
    small = {"type": "object", "properties": {"a": {"type": "string"}}}
    paths: dict[str, Any] = {}
    for name, schema in (("wide", wide), ("small", small)):
        answer = {"200": {"content": {"application/json": {"schema": schema}}}}
        paths[f"/{name}"] = {"get": operation(name, responses=answer)}
    tools, _ = convert(document(paths))
    assert tools["wide"]["output"] is None
    assert tools["small"]["output"] == small


YAML = b"""
openapi: 3.0
info: {title: T, version: 2020-01-01}
paths:
  /a:
    get:
      operationId: a
      parameters:
        - {name: sort, in: query, schema: {type: string, enum: [on, no, off, =, 12:30, 0755]}}
        - name: when
          in: query
          schema: {type: string, default: 2020-01-01}
      description: |
        first
        \tsecond
      responses:
        200: {description: ok}
"""


def test_yaml_as_it_occurs_is_read_as_it_was_meant() -> None:
    tools, _ = convert(YAML)
    parts = tools["a"]["input"]["properties"]
    assert parts["sort"]["enum"] == ["on", "no", "off", "=", "12:30", "0755"]
    assert parts["when"]["default"] == "2020-01-01"


def test_tabs_where_yaml_allows_none_are_forgiven() -> None:
    text = YAML.replace(b"      operationId: a", b"      operationId:\ta").replace(b"    get:", b"    get:\t")
    assert "a" in convert(text.replace(b"  /a:\n", b"  /a:\n\t\n"))[0]


@pytest.mark.slow
def test_aliases_that_multiply_are_refused() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 12)]
    with pytest.raises(DocumentFault, match="aliases"):
        parse(("openapi: 3.0.0\npaths: {}\n" + "\n".join(lines)).encode())


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"", "empty"),
        (b"  \n", "empty"),
        (b"<!DOCTYPE html><html></html>", "HTML"),
        (b"[1]", "a list"),
        (b"just words", "a text"),
        (b"{'a: [", "neither JSON"),
        (b'{"hello": 1}', "neither `openapi` nor `swagger`"),
        (b'{"openapi": "4.0.0", "paths": {}}', "4.0.0"),
        (b'{"swagger": "1.2", "paths": {}}', "1.2"),
        (b'{"openapi": "3.0.0"}', "no `paths`"),
        (b'{"a":' * 100_000, "document"),
        (b"[" * 100_000, "nested too deep"),
        (b"\x00\x01\xff", "document"),
    ],
)
def test_what_is_no_document_is_named(data: bytes, words: str) -> None:
    with pytest.raises(DocumentFault, match=words):
        parse(data)


def test_a_parameter_that_is_a_credential_is_not_asked_for() -> None:
    key = {"name": "api_key", "in": "query", "required": True, "schema": {"type": "string"}}
    made = document(
        {"/a": {"get": operation("a", parameters=[key], security=[{"k": []}])}},
        components={"securitySchemes": {"k": {"type": "apiKey", "in": "query", "name": "api_key"}}},
    )
    assert "required" not in convert(made)[0]["a"]["input"]
