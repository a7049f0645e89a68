"""One call as an HTTP request: the plan of the operation filled with arguments. Pure; sends nothing."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any
from urllib.parse import unquote

from dragoman.connections.openapi.body_encoding import EncodedBody, write_body
from dragoman.connections.openapi.operation_plan import BodyPlan, OperationPlan, ParameterPlan
from dragoman.connections.openapi.serialising import (
    Pair,
    cookie_pairs,
    header_text,
    path_text,
    query_pairs,
)
from dragoman.errors import InvalidArguments

_DOTS = frozenset({".", ".."})


@dataclass(slots=True)
class ServiceRequest:
    """What is sent. `path` and `query` are encoded; credentials are added by `security`."""

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
