"""One call as an HTTP request: the plan of the operation filled with arguments. Pure; sends nothing.

Values are written in every style of OpenAPI (RFC 6570); bodies as JSON, forms, files or text.
"""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from secrets import token_hex
from typing import Any, cast
from urllib.parse import quote, unquote, unquote_to_bytes

import orjson

from dragoman.connections.openapi.body_schemas import is_json
from dragoman.connections.openapi.operation_plan import (
    BodyPlan,
    FieldPlan,
    OperationPlan,
    ParameterPlan,
    Style,
)
from dragoman.connections.openapi.untrusted_json import is_list
from dragoman.errors import InvalidArguments
from dragoman.remote_data import parse_json

Pair = tuple[str, str]

_PLAIN = FieldPlan()


@dataclass(frozen=True, slots=True)
class EncodedBody:
    """Bytes and the content type that goes with them."""

    data: bytes
    type: str


def write_body(plan: BodyPlan, value: Any) -> EncodedBody:
    """Raises `InvalidArguments` where a value cannot be written in the body's type."""
    kind = plan.type
    if is_json(kind):
        return EncodedBody(orjson.dumps(value), kind)
    if kind.startswith("multipart/"):
        return _multipart(kind, _members(value), plan.fields)
    if kind.startswith("application/x-www-form-urlencoded"):
        return EncodedBody(_urlencoded(_members(value), plan.fields).encode(), kind)
    if plan.is_file or isinstance(value, Mapping):
        file = _file(value, kind)
        return EncodedBody(file.data, kind if file.type in ("", "application/octet-stream") else file.type)
    return EncodedBody(word(value).encode(), kind if "charset" in kind else _with_charset(kind))


def _members(value: Any) -> Mapping[str, Any]:
    if isinstance(value, Mapping):
        return cast("Mapping[str, Any]", value)
    raise InvalidArguments("a form must be an object of fields", hint='for example {"name": "value"}')


def _urlencoded(members: Mapping[str, Any], fields: Mapping[str, FieldPlan]) -> str:
    pairs: list[Pair] = []
    for name, value in members.items():
        if value is not None:
            pairs += _form_pairs(quote(name, safe="[]"), value, fields.get(name, _PLAIN))
    return "&".join(f"{name}={value}" for name, value in pairs)


def _form_pairs(name: str, value: Any, field: FieldPlan) -> list[Pair]:
    if field.style is not None:
        return styled_pairs(name, value, field.style, field.explode, field.reserved)
    is_structure = isinstance(value, Mapping) or (field.type is not None and is_json(field.type))
    if is_structure:
        return [(name, quote(orjson.dumps(value).decode(), safe=""))]
    if isinstance(value, list | tuple):
        items = [encoded(item, field.reserved) for item in cast("Sequence[Any]", value)]
        return [(name, item) for item in items] if field.explode else [(name, ",".join(items))]
    return [(name, encoded(value, field.reserved))]


def _multipart(kind: str, members: Mapping[str, Any], fields: Mapping[str, FieldPlan]) -> EncodedBody:
    boundary = f"dragoman-{token_hex(12)}"
    parts: list[bytes] = []
    for name, value in members.items():
        field = fields.get(name, _PLAIN)
        if value is None:
            continue
        if field.style is not None and not field.is_file and isinstance(value, list | tuple | Mapping):
            for key, text in styled_pairs(name, value, field.style, field.explode):
                parts.append(_part(boundary, key, unquote_to_bytes(text), None, None))
            continue
        is_json_part = field.type is not None and is_json(field.type)
        items = value if is_list(value) and not is_json_part else [value]
        parts += [_one_part(boundary, name, item, field) for item in items]
    parts.append(f"--{boundary}--\r\n".encode())
    return EncodedBody(b"".join(parts), f"{kind.partition(';')[0]}; boundary={boundary}")


def _one_part(boundary: str, name: str, value: Any, field: FieldPlan) -> bytes:
    if field.is_file:
        file = _file(value, field.type or "")
        kind = file.type or "application/octet-stream"
        return _part(boundary, name, file.data, kind, file.name or name)
    if isinstance(value, Mapping | list) or (field.type and is_json(field.type)):
        kind = field.type if field.type and is_json(field.type) else "application/json"
        return _part(boundary, name, orjson.dumps(value), kind, None)
    kind = field.type if field.type and "*" not in field.type else None
    return _part(boundary, name, word(value).encode(), kind, None)


def _part(boundary: str, name: str, data: bytes, kind: str | None, filename: str | None) -> bytes:
    head = f'--{boundary}\r\nContent-Disposition: form-data; name="{_quoted(name)}"'
    if filename is not None:
        head += f'; filename="{_quoted(filename)}"'
    if kind is not None:
        head += f"\r\nContent-Type: {_single_line(kind)}"
    return head.encode() + b"\r\n\r\n" + data + b"\r\n"


@dataclass(frozen=True, slots=True)
class _File:
    data: bytes
    type: str = ""
    name: str = ""


def _file(value: Any, kind: str) -> _File:
    """A file as a caller gives it: text, a `data:` address, or an object with `base64` or `text`."""
    kind = "" if "*" in kind else kind
    if isinstance(value, str):
        if value.startswith("data:") and "," in value:
            head, _, rest = value[5:].partition(",")
            said = head.removesuffix(";base64") or "text/plain"
            data = _decoded(rest) if head.endswith(";base64") else unquote_to_bytes(rest)
            return _File(data, said)
        return _File(value.encode(), kind)
    if isinstance(value, Mapping):
        facts = cast("Mapping[str, Any]", value)
        said, name = str(facts.get("content_type") or kind), str(facts.get("filename") or "")
        if isinstance(facts.get("base64"), str):
            return _File(_decoded(facts["base64"]), said, name)
        if isinstance(facts.get("text"), str):
            return _File(facts["text"].encode(), said or "text/plain", name)
        return _File(orjson.dumps(facts), kind or "application/json")
    return _File(word(value).encode(), kind)


def _decoded(text: str) -> bytes:
    try:
        return b64decode(text, validate=True)
    except (Base64Error, ValueError):
        raise InvalidArguments(
            "the file is not valid base64", hint="give the text itself, or valid base64"
        ) from None


def _quoted(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', "%22").replace("\r", "%0D").replace("\n", "%0A")


def _single_line(text: str) -> str:
    return " ".join(text.split())


def _with_charset(kind: str) -> str:
    return f"{kind}; charset=utf-8" if kind.startswith("text/") else kind


# Left as they are by `allowReserved`. Not `&`, `#` and `+`: they would end or change the value.
_RESERVED = ":/?[]@!$'()*,;="
_DELIMITERS: dict[Style, str] = {
    "form": ",",
    "simple": ",",
    "spaceDelimited": "%20",
    "pipeDelimited": "%7C",
    "tabDelimited": "%09",
}


def word(value: Any) -> str:
    """One value as text: JSON's words for truth values, no `.0` after a whole number, JSON for the rest."""
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if value is None:
        return "null"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return orjson.dumps(value).decode()


def encoded(value: Any, reserved: bool = False) -> str:
    text = word(value)
    if text.isalnum() and text.isascii():
        return text  # most values, and encoding is not free
    return quote(text, safe=_RESERVED if reserved else "")


def path_text(parameter: ParameterPlan, value: Any) -> str:
    """What takes the place of `{name}` in a path. No character in it can end the segment."""
    name = quote(parameter.name, safe="")
    if parameter.is_json:
        return quote(orjson.dumps(value).decode(), safe="")
    if parameter.style == "matrix":
        return _matrix(name, value, parameter.explode)
    if parameter.style == "label":
        parts = _parts(value, parameter.explode, encoded)
        return "." + ("." if parameter.explode else ",").join(parts)
    return _DELIMITERS.get(parameter.style, ",").join(_parts(value, parameter.explode, encoded))


def query_pairs(parameter: ParameterPlan, value: Any) -> list[Pair]:
    """Names and values of a query, encoded."""
    name = _name(parameter.name)
    if parameter.is_json:
        return [(name, quote(orjson.dumps(value).decode(), safe=""))]
    return styled_pairs(name, value, parameter.style, parameter.explode, parameter.reserved)


def styled_pairs(name: str, value: Any, style: Style, explode: bool, reserved: bool = False) -> list[Pair]:
    """For a query or a form. `name` is encoded already."""
    if style == "deepObject":
        return [*_deep(name, value, reserved)]
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        if explode:
            return [
                (_name(key), encoded(item, reserved)) for key, item in members.items() if item is not None
            ]
        flat = [encoded(part, reserved) for pair in members.items() for part in pair]
        return [(name, _DELIMITERS[style].join(flat))]
    if isinstance(value, list | tuple):
        items = [encoded(item, reserved) for item in cast("Sequence[Any]", value)]
        if explode:
            return [(name, item) for item in items]
        return [(name, _DELIMITERS[style].join(items))] if items else []
    return [(name, encoded(value, reserved))]


def header_text(parameter: ParameterPlan, value: Any) -> str:
    if parameter.is_json:
        return orjson.dumps(value).decode()
    return _delimiter_of(parameter).join(_parts(value, parameter.explode, word))


def cookie_pairs(parameter: ParameterPlan, value: Any) -> list[Pair]:
    """Cookies have no agreed form for arrays: exploded they are cookies of one name, else one with commas."""
    if parameter.is_json:
        return [(parameter.name, quote(orjson.dumps(value).decode(), safe=""))]
    return styled_pairs(quote(parameter.name, safe="[]"), value, "form", parameter.explode)


def _matrix(name: str, value: Any, explode: bool) -> str:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        if explode:
            return "".join(f";{encoded(key)}={encoded(item)}" for key, item in members.items())
    elif isinstance(value, list | tuple) and explode:
        return "".join(f";{name}={encoded(item)}" for item in cast("Sequence[Any]", value))
    text = ",".join(_parts(value, False, encoded))
    return f";{name}={text}" if text else f";{name}"


def _parts(value: Any, explode: bool, write: Any) -> list[str]:
    if isinstance(value, Mapping):
        members = cast("Mapping[str, Any]", value)
        if explode:
            return [f"{write(key)}={write(item)}" for key, item in members.items()]
        return [write(part) for pair in members.items() for part in pair]
    if isinstance(value, list | tuple):
        return [write(item) for item in cast("Sequence[Any]", value)]
    return [write(value)]


def _deep(name: str, value: Any, reserved: bool) -> Iterator[Pair]:
    """`name[key]=value`, however deep; items of arrays by their number."""
    if isinstance(value, Mapping):
        for key, item in cast("Mapping[str, Any]", value).items():
            yield from _deep(f"{name}[{_name(key)}]", item, reserved)
    elif isinstance(value, list | tuple):
        for number, item in enumerate(cast("Sequence[Any]", value)):
            yield from _deep(f"{name}[{number}]", item, reserved)
    elif value is not None:
        yield name, encoded(value, reserved)


@lru_cache(maxsize=4096)
def _name(name: str) -> str:
    """Brackets and dollars in names are wanted as they are."""
    return quote(name, safe="[]$")


def _delimiter_of(parameter: ParameterPlan) -> str:
    delimiters = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
    return delimiters.get(parameter.style, ",")


_DOTS = frozenset({".", ".."})


@dataclass(slots=True)
class ServiceRequest:
    """What is sent. `path` and `query` are encoded; credentials are added by `request_credentials`."""

    method: str
    path: str
    query: list[Pair] = field(default_factory=list[Pair])
    headers: dict[str, str] = field(default_factory=dict[str, str])
    cookies: list[Pair] = field(default_factory=list[Pair])
    body: EncodedBody | None = None

    @property
    def target(self) -> str:
        if not self.query:
            return self.path
        joint = "&" if "?" in self.path else "?"
        return f"{self.path}{joint}{'&'.join(f'{name}={value}' for name, value in self.query)}"


def build(operation: OperationPlan, arguments: Mapping[str, Any]) -> ServiceRequest:
    """Raises `InvalidArguments` for a value that cannot be sent where it belongs."""
    request = ServiceRequest(operation.method, operation.path, headers={"Accept": operation.accept})
    places: dict[str, str] = {}
    for parameter in operation.parameters:
        value = arguments.get(parameter.argument)
        if parameter.place == "path":
            places[parameter.name] = _path_value(parameter, value)
        elif not _is_left_out(parameter, value):
            _ADD[parameter.place](request, parameter, value)
    if places:
        request.path = _filled(operation.path, places)
    if operation.body is not None:
        _add_body(request, operation, operation.body, arguments)
    return request


def _is_left_out(parameter: ParameterPlan, value: Any) -> bool:
    """Models fill optional texts with nothing: that means "not given", unless the document says otherwise."""
    return value is None or (value == "" and not parameter.required and not parameter.keeps_empty)


def _path_value(parameter: ParameterPlan, value: Any) -> str:
    if value is None or value in ("", [], {}):
        raise InvalidArguments(
            f"{parameter.argument!r} is a part of the path and cannot be empty", hint="give it a value"
        )
    return path_text(parameter, value)


def _filled(template: str, places: Mapping[str, str]) -> str:
    """The path, segment by segment: one that became `.` or `..` would lead out of the service's path."""
    segments: list[str] = []
    for segment in template.split("/"):
        filled = segment
        if "{" in segment:
            for name, text in places.items():
                filled = filled.replace(f"{{{name}}}", text)
            if unquote(filled) in _DOTS:
                raise InvalidArguments(
                    f"{unquote(filled)!r} cannot be a part of the path", hint="it would lead to another place"
                )
        segments.append(filled)
    return "/".join(segments)


def _add_query(request: ServiceRequest, parameter: ParameterPlan, value: Any) -> None:
    request.query += query_pairs(parameter, value)


def _add_header(request: ServiceRequest, parameter: ParameterPlan, value: Any) -> None:
    text = header_text(parameter, value)
    if any(sign in text for sign in "\r\n\0"):
        raise InvalidArguments(f"{parameter.argument!r} is sent as a header: it must be one line")
    request.headers[parameter.name] = text


def _add_cookie(request: ServiceRequest, parameter: ParameterPlan, value: Any) -> None:
    request.cookies += cookie_pairs(parameter, value)


_ADD: dict[str, Callable[[ServiceRequest, ParameterPlan, Any], None]] = {
    "query": _add_query,
    "header": _add_header,
    "cookie": _add_cookie,
}


def _add_body(
    request: ServiceRequest, operation: OperationPlan, body: BodyPlan, arguments: Mapping[str, Any]
) -> None:
    if body.argument is not None:
        if body.argument in arguments or body.required:
            request.body = write_body(body, arguments.get(body.argument, {}))
        return
    known = frozenset(parameter.argument for parameter in operation.parameters)
    members = frozenset(body.members)
    value = {
        name: item
        for name, item in arguments.items()
        if name in members or (body.is_open and name not in known)
    }
    if value or body.required:
        request.body = write_body(body, value)


def told_request(base: str, request: ServiceRequest) -> dict[str, Any]:
    """For a person to read; before credentials are added, which are no part of it."""
    told: dict[str, Any] = {"request": f"{request.method} {base}{request.target}"}
    if request.headers:
        told["headers"] = dict(request.headers)
    if request.body is not None:
        told |= {"type": request.body.type, "body": readable(request.body.data, request.body.type)}
    return told


def readable(body: bytes, kind: str) -> Any:
    """JSON as what it says, text as it is, and of anything else how much it is."""
    try:
        return parse_json(body) if is_json(kind.partition(";")[0].strip().lower()) else body.decode()
    except ValueError:
        return f"{len(body):,} bytes"
