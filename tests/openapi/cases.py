"""What a request case is: an operation, the arguments of a call, and what the service must see.

`path` follows the case's own name, so that all cases of a version live in one document.
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
