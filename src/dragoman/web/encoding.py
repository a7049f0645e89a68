"""Values as JSON bytes, by the fastest way that works."""

import dataclasses
import json
from collections.abc import Mapping
from datetime import datetime
from typing import Any, cast

import orjson
from pydantic import BaseModel
from starlette.responses import Response

JSON = "application/json"


def encode(value: Any) -> bytes:
    """orjson, and for what it cannot write (whole numbers over 64 bits, lone surrogates) the slow way."""
    try:
        return orjson.dumps(value, default=_plain, option=orjson.OPT_NON_STR_KEYS)
    except TypeError:
        return json.dumps(value, default=_plain).encode()


def json_response(value: Any, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    return Response(encode(value), status, headers, media_type=JSON)


def _plain(value: Any) -> Any:
    if isinstance(value, BaseModel):
        return value.model_dump()
    if isinstance(value, datetime):
        return value.isoformat()
    if isinstance(value, Mapping):
        return dict(cast("Mapping[Any, Any]", value))
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {item.name: getattr(value, item.name) for item in dataclasses.fields(value)}
    if isinstance(value, set | frozenset):
        return sorted(cast("frozenset[Any]", value))
    return str(value)
