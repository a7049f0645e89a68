"""How an operation is called: what its definition carries in `meta`, so that a call needs no document.

Frozen values and their plain form; who makes them is `conversion`, who follows them is `requests`.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from typing import Any, Literal, cast

import orjson

from dragoman.connections.openapi.untrusted_json import Json, Object

META_KEY = "openapi"
Place = Literal["path", "query", "header", "cookie"]
Style = Literal[
    "form", "simple", "label", "matrix", "spaceDelimited", "pipeDelimited", "tabDelimited", "deepObject"
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ParameterPlan:
    """Where one argument goes. `keeps_empty` when an empty text is a value of its own."""

    argument: str
    name: str
    place: Place
    style: Style
    explode: bool = False
    required: bool = False
    reserved: bool = False
    is_json: bool = False
    keeps_empty: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldPlan:
    """How one field of a form is written, where it is not the default way."""

    style: Style | None = None
    explode: bool = True
    reserved: bool = False
    type: str | None = None
    is_file: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class BodyPlan:
    """`argument` holds the whole body; without one, its members are arguments of their own.

    `is_open` when arguments that nobody knows belong to it.
    """

    type: str
    argument: str | None = None
    members: tuple[str, ...] = ()
    required: bool = False
    is_open: bool = False
    is_file: bool = False
    fields: Mapping[str, FieldPlan] = field(default_factory=dict[str, FieldPlan])


@dataclass(frozen=True, slots=True, kw_only=True)
class SecurityScheme:
    """One security scheme: an API key somewhere, or an `Authorization` of some kind."""

    kind: Literal["apikey", "bearer", "basic"]
    place: Literal["header", "query", "cookie"] = "header"
    name: str = "Authorization"


@dataclass(frozen=True, slots=True, kw_only=True)
class OperationPlan:
    """One operation. `server` may be relative to `base`; `security` is a choice of sets of schemes.

    `wants_credentials` when the document says that it cannot be called without.
    """

    method: str
    path: str
    server: str | None = None
    base: str | None = None
    parameters: tuple[ParameterPlan, ...] = ()
    body: BodyPlan | None = None
    security: tuple[tuple[SecurityScheme, ...], ...] = ()
    wants_credentials: bool = False
    accept: str = "application/json, */*;q=0.8"

    def as_meta(self) -> str:
        """As text: of a thousand plans that are kept, few are ever read."""
        return orjson.dumps(_plain(self)).decode()

    @classmethod
    def from_meta(cls, text: str) -> "OperationPlan":
        meta: Object = orjson.loads(text)
        facts: Object = {
            **meta,
            "parameters": tuple(ParameterPlan(**one) for one in meta.get("parameters", ())),
            "body": _body(meta["body"]) if meta.get("body") else None,
            "security": tuple(
                tuple(SecurityScheme(**scheme) for scheme in choice) for choice in meta.get("security", ())
            ),
        }
        return cls(**facts)


def _body(meta: Mapping[str, Any]) -> BodyPlan:
    known = {name: FieldPlan(**one) for name, one in meta.get("fields", {}).items()}
    facts: Object = {**meta, "members": tuple(meta.get("members", ())), "fields": known}
    return BodyPlan(**facts)


def _plain(value: Json) -> Json:
    """As JSON, without what is as it is by default."""
    if isinstance(value, tuple):
        return [_plain(part) for part in cast("tuple[Any, ...]", value)]
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in cast("Object", value).items()}
    if not hasattr(value, "__dataclass_fields__"):
        return value
    return {
        one.name: _plain(found)
        for one in fields(value)
        if (found := getattr(value, one.name)) != one.default and not (found == {} or found == ())
    }
