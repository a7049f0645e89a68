"""Requests that must leave exactly so: every line of what libraries are known to get wrong, and their neighbours.

A case is an operation, the arguments of a call, and what the service must see. `path` follows the
case's own name, so that all cases of a version live in one document.
"""

from dataclasses import dataclass, field
from typing import Any

THREE = ("3.0", "3.1")
Parameter = dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Case:
    name: str
    target: str = ""  # path and query after the case's own name
    path: str = ""
    method: str = "get"
    versions: tuple[str, ...] = THREE
    parameters: tuple[Parameter, ...] = ()
    shared: tuple[Parameter, ...] = ()  # declared for the whole path
    body: dict[str, Any] | None = None  # requestBody
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    arguments: dict[str, Any] = field(default_factory=dict[str, Any])
    headers: dict[str, str | None] = field(default_factory=dict[str, str | None])
    content: Any = None  # the body: bytes as they are, anything else as JSON; parts of a form as a list
    refused: str | None = None  # the code of the error when nothing may leave


def query(name: str, schema: dict[str, Any] | None = None, **facts: Any) -> Parameter:
    return {"name": name, "in": "query", "schema": schema or {"type": "string"}, **facts}


def path(name: str, schema: dict[str, Any] | None = None, **facts: Any) -> Parameter:
    return {"name": name, "in": "path", "required": True, "schema": schema or {"type": "string"}, **facts}


def header(name: str, schema: dict[str, Any] | None = None, **facts: Any) -> Parameter:
    return {"name": name, "in": "header", "schema": schema or {"type": "string"}, **facts}


def cookie(name: str, schema: dict[str, Any] | None = None, **facts: Any) -> Parameter:
    return {"name": name, "in": "cookie", "schema": schema or {"type": "string"}, **facts}


def content(kind: str, schema: dict[str, Any], *, required: bool = True, **facts: Any) -> dict[str, Any]:
    return {"required": required, "content": {kind: {"schema": schema, **facts}}}


def members(**properties: dict[str, Any]) -> dict[str, Any]:
    return {"type": "object", "properties": properties}


TEXT: dict[str, Any] = {"type": "string"}
WHOLE: dict[str, Any] = {"type": "integer"}
FLAG: dict[str, Any] = {"type": "boolean"}
LIST: dict[str, Any] = {"type": "array", "items": {"type": "string"}}
ANY: dict[str, Any] = {"type": "object"}
FORM, MULTIPART, JSON = "application/x-www-form-urlencoded", "multipart/form-data", "application/json"
POINT = {"x": 1, "y": 2}

QUERIES = (
    Case(
        name="q-text",
        parameters=(query("q"),),
        arguments={"q": "a b&c=d/é"},
        target="?q=a%20b%26c%3Dd%2F%C3%A9",
    ),
    Case(name="q-whole", parameters=(query("n", WHOLE),), arguments={"n": 5}, target="?n=5"),
    Case(
        name="q-number", parameters=(query("n", {"type": "number"}),), arguments={"n": 2.5}, target="?n=2.5"
    ),
    Case(name="q-true", parameters=(query("f", FLAG),), arguments={"f": True}, target="?f=true"),
    Case(name="q-false", parameters=(query("f", FLAG),), arguments={"f": False}, target="?f=false"),
    Case(name="q-zero", parameters=(query("n", WHOLE),), arguments={"n": 0}, target="?n=0"),
    Case(name="q-absent", parameters=(query("q"),), target=""),
    Case(name="q-empty-optional", parameters=(query("q"),), arguments={"q": ""}, target=""),
    Case(name="q-empty-required", parameters=(query("q", required=True),), arguments={"q": ""}, target="?q="),
    Case(
        name="q-empty-allowed",
        parameters=(query("q", allowEmptyValue=True),),
        arguments={"q": ""},
        target="?q=",
    ),
    Case(
        name="q-empty-in-enum",
        parameters=(query("q", {"type": "string", "enum": ["", "a"]}),),
        arguments={"q": ""},
        target="?q=",
    ),
    Case(
        name="q-empty-by-length",
        parameters=(query("q", {"type": "string", "minLength": 0}),),
        arguments={"q": ""},
        target="?q=",
    ),
    Case(
        name="q-array-exploded",
        parameters=(query("i", LIST),),
        arguments={"i": ["a", "b"]},
        target="?i=a&i=b",
    ),
    Case(
        name="q-array-joined",
        parameters=(query("i", LIST, explode=False),),
        arguments={"i": ["a", "b"]},
        target="?i=a,b",
    ),
    Case(
        name="q-comma-inside",
        parameters=(query("i", LIST, explode=False),),
        arguments={"i": ["a,b", "c"]},
        target="?i=a%2Cb,c",
    ),
    Case(
        name="q-array-of-flags",
        parameters=(query("i", {"type": "array", "items": FLAG}),),
        arguments={"i": [True, False]},
        target="?i=true&i=false",
    ),
    Case(
        name="q-spaces",
        parameters=(query("i", LIST, style="spaceDelimited", explode=False),),
        arguments={"i": ["a", "b c"]},
        target="?i=a%20b%20c",
    ),
    Case(
        name="q-spaces-exploded",
        parameters=(query("i", LIST, style="spaceDelimited", explode=True),),
        arguments={"i": ["a", "b"]},
        target="?i=a&i=b",
    ),
    Case(
        name="q-pipes",
        parameters=(query("i", LIST, style="pipeDelimited", explode=False),),
        arguments={"i": ["a", "b"]},
        target="?i=a%7Cb",
    ),
    Case(name="q-object-exploded", parameters=(query("p", ANY),), arguments={"p": POINT}, target="?x=1&y=2"),
    Case(
        name="q-object-joined",
        parameters=(query("p", ANY, explode=False),),
        arguments={"p": POINT},
        target="?p=x,1,y,2",
    ),
    Case(
        name="q-deep",
        parameters=(query("p", ANY, style="deepObject"),),
        arguments={"p": {"a": "x y", "b": True}},
        target="?p[a]=x%20y&p[b]=true",
    ),
    Case(
        name="q-deep-nested",
        parameters=(query("p", ANY, style="deepObject", explode=True),),
        arguments={"p": {"a": {"b": {"c": 1}}}},
        target="?p[a][b][c]=1",
    ),
    Case(
        name="q-deep-array",
        parameters=(query("p", ANY, style="deepObject", explode=True),),
        arguments={"p": {"ids": [1, 2]}},
        target="?p[ids][0]=1&p[ids][1]=2",
    ),
    Case(
        name="q-deep-array-of-objects",
        parameters=(query("p", {"type": "array", "items": ANY}, style="deepObject", explode=True),),
        arguments={"p": [{"k": "a"}, {"k": "b"}]},
        target="?p[0][k]=a&p[1][k]=b",
    ),
    Case(
        name="q-json",
        parameters=({"name": "f", "in": "query", "content": {JSON: {"schema": ANY}}},),
        arguments={"f": {"a": [1, None]}},
        target="?f=%7B%22a%22%3A%5B1%2Cnull%5D%7D",
    ),
    Case(
        name="q-reserved",
        parameters=(query("u", allowReserved=True),),
        arguments={"u": "http://h/a?b=c;d"},
        target="?u=http://h/a?b=c;d",
    ),
    Case(
        name="q-reserved-stays-one-value",
        parameters=(query("u", allowReserved=True),),
        arguments={"u": "a&b#c+d"},
        target="?u=a%26b%23c%2Bd",
    ),
    Case(name="q-brackets", parameters=(query("f[a]"),), arguments={"f[a]": "1"}, target="?f[a]=1"),
    Case(name="q-dollar", parameters=(query("$top", WHOLE),), arguments={"$top": 3}, target="?$top=3"),
    Case(
        name="q-null-left-out",
        parameters=(query("q", {"type": "string", "nullable": True}),),
        versions=("3.0",),
        arguments={"q": None},
        target="",
    ),
    Case(
        name="q-null-left-out-31",
        parameters=(query("q", {"type": ["string", "null"]}),),
        versions=("3.1",),
        arguments={"q": None},
        target="",
    ),
    Case(
        name="q-of-the-path-item",
        shared=(query("a"), query("b")),
        arguments={"a": "1", "b": "2"},
        target="?a=1&b=2",
    ),
    Case(
        name="q-overridden-by-the-operation",
        shared=(query("i", LIST, explode=True),),
        parameters=(query("i", LIST, explode=False),),
        arguments={"i": ["a", "b"]},
        target="?i=a,b",
    ),
)

PATHS = (
    Case(name="p-text", path="/{id}", parameters=(path("id"),), arguments={"id": "a b"}, target="/a%20b"),
    Case(name="p-true", path="/{f}", parameters=(path("f", FLAG),), arguments={"f": True}, target="/true"),
    Case(name="p-whole", path="/{n}/x", parameters=(path("n", WHOLE),), arguments={"n": 7}, target="/7/x"),
    Case(
        name="p-cannot-leave",
        path="/{id}",
        parameters=(path("id"),),
        arguments={"id": "../../admin"},
        target="/..%2F..%2Fadmin",
    ),
    Case(
        name="p-signs",
        path="/{id}/x",
        parameters=(path("id"),),
        arguments={"id": "a/b?c#d;e%2F"},
        target="/a%2Fb%3Fc%23d%3Be%252F/x",
    ),
    Case(
        name="p-dots",
        path="/{id}",
        parameters=(path("id"),),
        arguments={"id": ".."},
        refused="invalid_arguments",
    ),
    Case(
        name="p-dot",
        path="/{id}/x",
        parameters=(path("id"),),
        arguments={"id": "."},
        refused="invalid_arguments",
    ),
    Case(
        name="p-dots-together",
        path="/{a}{b}",
        parameters=(path("a"), path("b")),
        arguments={"a": ".", "b": "."},
        refused="invalid_arguments",
    ),
    Case(
        name="p-empty",
        path="/{id}/x",
        parameters=(path("id"),),
        arguments={"id": ""},
        refused="invalid_arguments",
    ),
    Case(
        name="p-array",
        path="/{i}",
        parameters=(path("i", LIST),),
        arguments={"i": ["a", "b,c"]},
        target="/a,b%2Cc",
    ),
    Case(
        name="p-object", path="/{p}", parameters=(path("p", ANY),), arguments={"p": POINT}, target="/x,1,y,2"
    ),
    Case(
        name="p-object-exploded",
        path="/{p}",
        parameters=(path("p", ANY, explode=True),),
        arguments={"p": POINT},
        target="/x=1,y=2",
    ),
    Case(
        name="p-label",
        path="/{i}",
        parameters=(path("i", style="label"),),
        arguments={"i": "a"},
        target="/.a",
    ),
    Case(
        name="p-label-array",
        path="/{i}",
        parameters=(path("i", LIST, style="label"),),
        arguments={"i": ["a", "b"]},
        target="/.a,b",
    ),
    Case(
        name="p-label-array-exploded",
        path="/{i}",
        parameters=(path("i", LIST, style="label", explode=True),),
        arguments={"i": ["a", "b"]},
        target="/.a.b",
    ),
    Case(
        name="p-label-object-exploded",
        path="/{p}",
        parameters=(path("p", ANY, style="label", explode=True),),
        arguments={"p": POINT},
        target="/.x=1.y=2",
    ),
    Case(
        name="p-matrix",
        path="/{i}",
        parameters=(path("i", WHOLE, style="matrix"),),
        arguments={"i": 5},
        target="/;i=5",
    ),
    Case(
        name="p-matrix-array",
        path="/{i}",
        parameters=(path("i", LIST, style="matrix"),),
        arguments={"i": ["a", "b"]},
        target="/;i=a,b",
    ),
    Case(
        name="p-matrix-array-exploded",
        path="/{i}",
        parameters=(path("i", LIST, style="matrix", explode=True),),
        arguments={"i": ["a", "b"]},
        target="/;i=a;i=b",
    ),
    Case(
        name="p-matrix-object",
        path="/{p}",
        parameters=(path("p", ANY, style="matrix"),),
        arguments={"p": POINT},
        target="/;p=x,1,y,2",
    ),
    Case(
        name="p-matrix-object-exploded",
        path="/{p}",
        parameters=(path("p", ANY, style="matrix", explode=True),),
        arguments={"p": POINT},
        target="/;x=1;y=2",
    ),
    Case(
        name="p-and-query-of-one-name",
        path="/{id}",
        parameters=(path("id"), query("id")),
        arguments={"id": "1", "id_query": "2"},
        target="/1?id=2",
    ),
    Case(name="p-undeclared", path="/{id}", arguments={"id": "9"}, target="/9"),
)

HEADERS = (
    Case(name="h-text", parameters=(header("X-A"),), arguments={"X-A": "b c"}, headers={"X-A": "b c"}),
    Case(name="h-whole", parameters=(header("X-A", WHOLE),), arguments={"X-A": 5}, headers={"X-A": "5"}),
    Case(name="h-true", parameters=(header("X-A", FLAG),), arguments={"X-A": True}, headers={"X-A": "true"}),
    Case(
        name="h-array",
        parameters=(header("X-A", LIST),),
        arguments={"X-A": ["a", "b"]},
        headers={"X-A": "a,b"},
    ),
    Case(
        name="h-object",
        parameters=(header("X-A", ANY),),
        arguments={"X-A": POINT},
        headers={"X-A": "x,1,y,2"},
    ),
    Case(
        name="h-object-exploded",
        parameters=(header("X-A", ANY, explode=True),),
        arguments={"X-A": POINT},
        headers={"X-A": "x=1,y=2"},
    ),
    Case(
        name="h-json",
        parameters=({"name": "X-A", "in": "header", "content": {JSON: {"schema": ANY}}},),
        arguments={"X-A": POINT},
        headers={"X-A": '{"x":1,"y":2}'},
    ),
    Case(name="h-absent", parameters=(header("X-A"),), headers={"X-A": None}),
    Case(name="h-empty", parameters=(header("X-A"),), arguments={"X-A": ""}, headers={"X-A": None}),
    Case(
        name="h-two-lines",
        parameters=(header("X-A"),),
        arguments={"X-A": "a\r\nX-B: c"},
        refused="invalid_arguments",
    ),
    Case(
        name="h-authorization-is-no-argument",
        parameters=(header("Authorization"), header("Host")),
        arguments={"Authorization": "Bearer mine", "Host": "evil.test"},
        headers={"Authorization": None},
    ),
    Case(name="c-text", parameters=(cookie("s"),), arguments={"s": "a b"}, headers={"Cookie": "s=a%20b"}),
    Case(name="c-true", parameters=(cookie("s", FLAG),), arguments={"s": True}, headers={"Cookie": "s=true"}),
    Case(
        name="c-array",
        parameters=(cookie("s", LIST),),
        arguments={"s": ["a", "b"]},
        headers={"Cookie": "s=a; s=b"},
    ),
    Case(
        name="c-array-joined",
        parameters=(cookie("s", LIST, explode=False),),
        arguments={"s": ["a", "b"]},
        headers={"Cookie": "s=a,b"},
    ),
    Case(
        name="c-two",
        parameters=(cookie("s"), cookie("t", WHOLE)),
        arguments={"s": "a;b", "t": 1},
        headers={"Cookie": "s=a%3Bb; t=1"},
    ),
)

BODIES = (
    Case(
        name="b-json",
        method="post",
        body=content(JSON, members(name=TEXT, age=WHOLE)),
        arguments={"name": "é", "age": 3},
        headers={"Content-Type": JSON},
        content={"name": "é", "age": 3},
    ),
    Case(
        name="b-json-null-kept",
        method="patch",
        versions=("3.0",),
        body=content(JSON, members(nick={"type": "string", "nullable": True})),
        arguments={"nick": None},
        content={"nick": None},
    ),
    Case(
        name="b-json-null-kept-31",
        method="patch",
        versions=("3.1",),
        body=content("application/merge-patch+json", members(nick={"type": ["string", "null"]})),
        arguments={"nick": None},
        headers={"Content-Type": "application/merge-patch+json"},
        content={"nick": None},
    ),
    Case(name="b-required-without-arguments", method="post", body=content(JSON, members(a=TEXT)), content={}),
    Case(name="b-free-form-without-arguments", method="post", body=content(JSON, ANY), content={}),
    Case(
        name="b-optional-without-arguments",
        method="post",
        body=content(JSON, members(a=TEXT), required=False),
        headers={"Content-Type": None},
        content=b"",
    ),
    Case(
        name="b-empty-text-kept",
        method="post",
        body=content(JSON, members(a=TEXT)),
        arguments={"a": ""},
        content={"a": ""},
    ),
    Case(name="b-array", method="post", body=content(JSON, LIST), arguments={"body": ["a"]}, content=["a"]),
    Case(name="b-plain-value", method="put", body=content(JSON, WHOLE), arguments={"body": 5}, content=5),
    Case(
        name="b-clash-with-a-parameter",
        method="put",
        path="/{id}",
        parameters=(path("id"),),
        body=content(JSON, members(id=WHOLE, a=TEXT)),
        arguments={"id": "1", "body": {"id": 1, "a": "b"}},
        target="/1",
        content={"id": 1, "a": "b"},
    ),
    Case(
        name="b-unknown-members-belong-to-it",
        method="post",
        body=content(JSON, members(a=TEXT) | {"additionalProperties": True}),
        arguments={"a": "b", "more": 1},
        content={"a": "b", "more": 1},
    ),
    Case(
        name="b-of-all",
        method="post",
        body=content(JSON, {"allOf": [members(a=TEXT), members(b=WHOLE)]}),
        arguments={"a": "x", "b": 1},
        content={"a": "x", "b": 1},
    ),
    Case(
        name="b-read-only-is-no-input",
        method="post",
        body=content(
            JSON, members(a=TEXT, id={"type": "string", "readOnly": True}) | {"required": ["id", "a"]}
        ),
        arguments={"a": "x"},
        content={"a": "x"},
    ),
    Case(
        name="b-with-query",
        method="post",
        parameters=(query("q"),),
        body=content(JSON, members(a=TEXT)),
        arguments={"q": "1", "a": "2"},
        target="?q=1",
        content={"a": "2"},
    ),
    Case(
        name="b-form",
        method="post",
        body=content(FORM, members(a=TEXT, n=WHOLE, f=FLAG)),
        arguments={"a": "x y&z", "n": 1, "f": True},
        headers={"Content-Type": FORM},
        content=b"a=x%20y%26z&n=1&f=true",
    ),
    Case(
        name="b-form-array",
        method="post",
        body=content(FORM, members(i=LIST)),
        arguments={"i": ["a", "b"]},
        content=b"i=a&i=b",
    ),
    Case(
        name="b-form-array-joined",
        method="post",
        body=content(FORM, members(i=LIST), encoding={"i": {"style": "form", "explode": False}}),
        arguments={"i": ["a", "b,c"]},
        content=b"i=a,b%2Cc",
    ),
    Case(
        name="b-form-deep",
        method="post",
        body=content(
            FORM,
            members(m=ANY, items={"type": "array", "items": ANY}),
            encoding={
                "m": {"style": "deepObject", "explode": True},
                "items": {"style": "deepObject", "explode": True},
            },
        ),
        arguments={"m": {"k": "v"}, "items": [{"price": "p", "n": 2}]},
        content=b"m[k]=v&items[0][price]=p&items[0][n]=2",
    ),
    Case(
        name="b-form-object-as-json",
        method="post",
        body=content(FORM, members(m=ANY)),
        arguments={"m": {"k": "v"}},
        content=b"m=%7B%22k%22%3A%22v%22%7D",
    ),
    Case(
        name="b-form-required-without-arguments",
        method="post",
        body=content(FORM, members(a=TEXT)),
        headers={"Content-Type": FORM},
        content=b"",
    ),
    Case(
        name="b-parts",
        method="post",
        body=content(MULTIPART, members(a=TEXT, n=WHOLE, f=FLAG)),
        arguments={"a": "x", "n": 1, "f": False},
        content=[("a", None, None, b"x"), ("n", None, None, b"1"), ("f", None, None, b"false")],
    ),
    Case(
        name="b-parts-object",
        method="post",
        body=content(MULTIPART, members(m=ANY)),
        arguments={"m": {"k": [1]}},
        content=[("m", None, JSON, b'{"k":[1]}')],
    ),
    Case(
        name="b-parts-array",
        method="post",
        body=content(MULTIPART, members(i=LIST)),
        arguments={"i": ["a", "b"]},
        content=[("i", None, None, b"a"), ("i", None, None, b"b")],
    ),
    Case(
        name="b-parts-file-as-text",
        method="post",
        versions=("3.0",),
        body=content(MULTIPART, members(file={"type": "string", "format": "binary"})),
        arguments={"file": "hello"},
        content=[("file", "file", "application/octet-stream", b"hello")],
    ),
    Case(
        name="b-parts-file-31",
        method="post",
        versions=("3.1",),
        body=content(MULTIPART, members(file={"type": "string", "contentMediaType": "image/png"})),
        arguments={"file": {"base64": "AAEC", "filename": "a.png", "content_type": "image/png"}},
        content=[("file", "a.png", "image/png", b"\0\1\2")],
    ),
    Case(
        name="b-parts-file-as-address",
        method="post",
        body=content(
            MULTIPART,
            members(file={"type": "string", "format": "binary"}),
            encoding={"file": {"contentType": "image/png, image/jpeg"}},
        ),
        arguments={"file": "data:image/jpeg;base64,AAEC"},
        content=[("file", "file", "image/jpeg", b"\0\1\2")],
    ),
    Case(
        name="b-parts-files",
        method="post",
        body=content(
            MULTIPART, members(files={"type": "array", "items": {"type": "string", "format": "binary"}})
        ),
        arguments={"files": ["one", {"text": "two", "filename": "2.txt"}]},
        content=[
            ("files", "files", "application/octet-stream", b"one"),
            ("files", "2.txt", "text/plain", b"two"),
        ],
    ),
    Case(
        name="b-parts-with-a-type",
        method="post",
        body=content(MULTIPART, members(m=TEXT), encoding={"m": {"contentType": "text/csv"}}),
        arguments={"m": "a,b"},
        content=[("m", None, "text/csv", b"a,b")],
    ),
    Case(
        name="b-binary",
        method="post",
        body=content("application/octet-stream", {"type": "string", "format": "binary"}),
        arguments={"body": {"base64": "AAEC"}},
        headers={"Content-Type": "application/octet-stream"},
        content=b"\0\1\2",
    ),
    Case(
        name="b-picture",
        method="put",
        body=content("image/png", {"type": "string", "format": "binary"}),
        arguments={"body": "data:image/png;base64,AAEC"},
        headers={"Content-Type": "image/png"},
        content=b"\0\1\2",
    ),
    Case(
        name="b-text",
        method="post",
        body=content("text/plain", TEXT),
        arguments={"body": "é\nx"},
        headers={"Content-Type": "text/plain; charset=utf-8"},
        content="é\nx".encode(),
    ),
    Case(
        name="b-xml",
        method="post",
        body=content("application/xml", ANY),
        arguments={"body": "<a/>"},
        headers={"Content-Type": "application/xml"},
        content=b"<a/>",
    ),
    Case(
        name="b-json-preferred",
        method="post",
        body={
            "required": True,
            "content": {FORM: {"schema": members(a=TEXT)}, JSON: {"schema": members(a=TEXT)}},
        },
        arguments={"a": "b"},
        headers={"Content-Type": JSON},
        content={"a": "b"},
    ),
    Case(
        name="b-vendor-json",
        method="post",
        body=content("application/vnd.api+json", members(a=TEXT)),
        arguments={"a": "b"},
        headers={"Content-Type": "application/vnd.api+json"},
        content={"a": "b"},
    ),
    Case(
        name="b-any-type",
        method="post",
        body=content("*/*", members(a=TEXT)),
        arguments={"a": "b"},
        headers={"Content-Type": JSON},
        content={"a": "b"},
    ),
    Case(
        name="delete",
        method="delete",
        path="/{id}",
        parameters=(path("id"),),
        arguments={"id": "1"},
        target="/1",
    ),
    Case(name="no-client-headers", headers={"X-Api-Key": None, "Authorization": None, "Cookie": None}),
)


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

SWAGGER = tuple(
    Case(**{"versions": ("2.0",), **facts})
    for facts in (
        {"name": "q", "parameters": (plain("q", "query", "string"),), "arguments": {"q": "a b"}, "target": "?q=a%20b"},
        {"name": "q-true", "parameters": (plain("q", "query", "boolean"),), "arguments": {"q": True}, "target": "?q=true"},
        {"name": "csv", "parameters": (plain("i", "query", "array", **STRINGS),), "arguments": {"i": ["a", "b,c"]}, "target": "?i=a,b%2Cc"},
        {"name": "multi", "parameters": (plain("i", "query", "array", collectionFormat="multi", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "?i=a&i=b"},
        {"name": "ssv", "parameters": (plain("i", "query", "array", collectionFormat="ssv", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "?i=a%20b"},
        {"name": "tsv", "parameters": (plain("i", "query", "array", collectionFormat="tsv", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "?i=a%09b"},
        {"name": "pipes", "parameters": (plain("i", "query", "array", collectionFormat="pipes", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "?i=a%7Cb"},
        {"name": "path", "path": "/{id}", "parameters": (plain("id", "path", "string"),), "arguments": {"id": "../x"}, "target": "/..%2Fx"},
        {"name": "path-array", "path": "/{i}", "parameters": (plain("i", "path", "array", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "/a,b"},
        {"name": "path-pipes", "path": "/{i}", "parameters": (plain("i", "path", "array", collectionFormat="pipes", **STRINGS),), "arguments": {"i": ["a", "b"]}, "target": "/a%7Cb"},
        {"name": "header-array", "parameters": (plain("X-A", "header", "array", **STRINGS),), "arguments": {"X-A": ["a", "b"]}, "headers": {"X-A": "a,b"}},
        {"name": "header-whole", "parameters": (plain("X-A", "header", "integer"),), "arguments": {"X-A": 3}, "headers": {"X-A": "3"}},
        {"name": "empty-allowed", "parameters": (plain("q", "query", "string", allowEmptyValue=True),), "arguments": {"q": ""}, "target": "?q="},
        {"name": "empty", "parameters": (plain("q", "query", "string"),), "arguments": {"q": ""}, "target": ""},
        {
            "name": "body", "method": "post",
            "parameters": ({"name": "pet", "in": "body", "required": True, "schema": members(a=TEXT)},),
            "arguments": {"a": "b"}, "headers": {"Content-Type": JSON}, "content": {"a": "b"},
        },
        {
            "name": "body-array", "method": "post",
            "parameters": ({"name": "pets", "in": "body", "required": True, "schema": LIST},),
            "arguments": {"body": ["b"]}, "content": ["b"],
        },
        {
            "name": "body-consumes", "method": "patch", "facts": {"consumes": ["application/merge-patch+json"]},
            "parameters": ({"name": "pet", "in": "body", "schema": members(a={"type": "string", "x-nullable": True})},),
            "arguments": {"a": None}, "headers": {"Content-Type": "application/merge-patch+json"}, "content": {"a": None},
        },
        {
            "name": "form", "method": "post", "parameters": (plain("a", "formData", "string"), plain("n", "formData", "integer")),
            "arguments": {"a": "x y", "n": 1}, "headers": {"Content-Type": FORM}, "content": b"a=x%20y&n=1",
        },
        {
            "name": "form-csv", "method": "post", "parameters": (plain("i", "formData", "array", **STRINGS),),
            "arguments": {"i": ["a", "b"]}, "content": b"i=a,b",
        },
        {
            "name": "form-multi", "method": "post", "parameters": (plain("i", "formData", "array", collectionFormat="multi", **STRINGS),),
            "arguments": {"i": ["a", "b"]}, "content": b"i=a&i=b",
        },
        {
            "name": "file", "method": "post", "facts": {"consumes": [MULTIPART]},
            "parameters": (plain("file", "formData", "file", required=True), plain("note", "formData", "string")),
            "arguments": {"file": {"text": "hi", "filename": "h.txt"}, "note": "n"},
            "content": [("file", "h.txt", "text/plain", b"hi"), ("note", None, None, b"n")],
        },
    )
)  # fmt: skip

CASES = (*QUERIES, *PATHS, *HEADERS, *BODIES, *SWAGGER)
