"""The body of a request as bytes: JSON, forms, files and text, by the plan of the operation. Pure."""

from base64 import b64decode
from binascii import Error as Base64Error
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from secrets import token_hex
from typing import Any, cast
from urllib.parse import quote, unquote_to_bytes

import orjson

from dragoman.connections.openapi.body_schemas import is_json
from dragoman.connections.openapi.operation_plan import BodyPlan, FieldPlan
from dragoman.connections.openapi.serialising import Pair, encoded, styled_pairs, word
from dragoman.connections.openapi.untrusted_json import is_list
from dragoman.errors import InvalidArguments

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
