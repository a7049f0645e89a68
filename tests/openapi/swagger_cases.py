"""Requests of Swagger 2 documents: collection formats, bodies, forms and files in its own words."""

from typing import Any

from cases import FORM, JSON, LIST, MULTIPART, TEXT, Case, Parameter, members


def swagger(name: str, **facts: Any) -> Case:
    return Case(name=name, versions=("2.0",), **facts)


def plain(name: str, place: str, kind: str, **facts: Any) -> Parameter:
    """A parameter of Swagger 2: its schema is spread over it."""
    return {
        "name": name,
        "in": place,
        "type": kind,
        **({"required": True} if place == "path" else {}),
        **facts,
    }


STRINGS: dict[str, Any] = {"items": {"type": "string"}}

SWAGGER = (
    swagger("q", parameters=(plain("q", "query", "string"),), arguments={"q": "a b"}, target="?q=a%20b"),
    swagger("q-true", parameters=(plain("q", "query", "boolean"),), arguments={"q": True}, target="?q=true"),
    swagger(
        "csv",
        parameters=(plain("i", "query", "array", **STRINGS),),
        arguments={"i": ["a", "b,c"]},
        target="?i=a,b%2Cc",
    ),
    swagger(
        "multi",
        parameters=(plain("i", "query", "array", collectionFormat="multi", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="?i=a&i=b",
    ),
    swagger(
        "ssv",
        parameters=(plain("i", "query", "array", collectionFormat="ssv", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="?i=a%20b",
    ),
    swagger(
        "tsv",
        parameters=(plain("i", "query", "array", collectionFormat="tsv", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="?i=a%09b",
    ),
    swagger(
        "pipes",
        parameters=(plain("i", "query", "array", collectionFormat="pipes", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="?i=a%7Cb",
    ),
    swagger(
        "path",
        path="/{id}",
        parameters=(plain("id", "path", "string"),),
        arguments={"id": "../x"},
        target="/..%2Fx",
    ),
    swagger(
        "path-array",
        path="/{i}",
        parameters=(plain("i", "path", "array", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="/a,b",
    ),
    swagger(
        "path-pipes",
        path="/{i}",
        parameters=(plain("i", "path", "array", collectionFormat="pipes", **STRINGS),),
        arguments={"i": ["a", "b"]},
        target="/a%7Cb",
    ),
    swagger(
        "header-array",
        parameters=(plain("X-A", "header", "array", **STRINGS),),
        arguments={"X-A": ["a", "b"]},
        headers={"X-A": "a,b"},
    ),
    swagger(
        "header-whole",
        parameters=(plain("X-A", "header", "integer"),),
        arguments={"X-A": 3},
        headers={"X-A": "3"},
    ),
    swagger(
        "empty-allowed",
        parameters=(plain("q", "query", "string", allowEmptyValue=True),),
        arguments={"q": ""},
        target="?q=",
    ),
    swagger("empty", parameters=(plain("q", "query", "string"),), arguments={"q": ""}, target=""),
    swagger(
        "body",
        method="post",
        parameters=({"name": "pet", "in": "body", "required": True, "schema": members(a=TEXT)},),
        arguments={"a": "b"},
        headers={"Content-Type": JSON},
        content={"a": "b"},
    ),
    swagger(
        "body-array",
        method="post",
        parameters=({"name": "pets", "in": "body", "required": True, "schema": LIST},),
        arguments={"body": ["b"]},
        content=["b"],
    ),
    swagger(
        "body-consumes",
        method="patch",
        facts={"consumes": ["application/merge-patch+json"]},
        parameters=(
            {"name": "pet", "in": "body", "schema": members(a={"type": "string", "x-nullable": True})},
        ),
        arguments={"a": None},
        headers={"Content-Type": "application/merge-patch+json"},
        content={"a": None},
    ),
    swagger(
        "form",
        method="post",
        parameters=(plain("a", "formData", "string"), plain("n", "formData", "integer")),
        arguments={"a": "x y", "n": 1},
        headers={"Content-Type": FORM},
        content=b"a=x%20y&n=1",
    ),
    swagger(
        "form-csv",
        method="post",
        parameters=(plain("i", "formData", "array", **STRINGS),),
        arguments={"i": ["a", "b"]},
        content=b"i=a,b",
    ),
    swagger(
        "form-multi",
        method="post",
        parameters=(plain("i", "formData", "array", collectionFormat="multi", **STRINGS),),
        arguments={"i": ["a", "b"]},
        content=b"i=a&i=b",
    ),
    swagger(
        "file",
        method="post",
        facts={"consumes": [MULTIPART]},
        parameters=(plain("file", "formData", "file", required=True), plain("note", "formData", "string")),
        arguments={"file": {"text": "hi", "filename": "h.txt"}, "note": "n"},
        content=[("file", "h.txt", "text/plain", b"hi"), ("note", None, None, b"n")],
    ),
)
