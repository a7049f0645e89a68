"""How values are written in a request: every style of OpenAPI, after RFC 6570. Pure.

Values are percent-encoded, delimiters are not, so that a comma inside an item is not a delimiter.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, cast
from urllib.parse import quote

import orjson

from dragoman.connections.openapi.operation_plan import ParameterPlan, Style

Pair = tuple[str, str]
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
