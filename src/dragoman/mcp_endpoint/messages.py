"""JSON-RPC as this door reads and writes it: bytes in, values out, and back. Knows no HTTP, and of methods
only by which of its params each is named.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

import orjson
from mcp.shared.inbound import NAME_BEARING_METHODS
from mcp_types import INVALID_REQUEST, PARSE_ERROR, RequestId

from dragoman.web.encoding import encode

Json = Any
Params = Mapping[str, Any]
TASK_FIELDS: Mapping[str, str] = dict.fromkeys(("tasks/get", "tasks/update", "tasks/cancel"), "taskId")
NAME_FIELDS: Mapping[str, str] = {**NAME_BEARING_METHODS, **TASK_FIELDS}
"""What the header `Mcp-Name` repeats in the 2026 era. Of tasks, an extension says so."""
_MOST_NESTED = 200
_NO_PARAMS: Params = {}


class RpcError(Exception):
    """What a client is told in place of a result."""

    def __init__(self, code: int, message: str, data: Json = None) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.data = data


@dataclass(frozen=True, slots=True)
class RpcRequest:
    id: RequestId
    method: str
    params: Params


@dataclass(frozen=True, slots=True)
class RpcNotification:
    method: str
    params: Params


@dataclass(frozen=True, slots=True)
class RpcResponse:
    """What a client answered to a request of ours: the result, or the error in its place."""

    id: RequestId
    result: Params | None
    error: Params | None


Message = RpcRequest | RpcNotification | RpcResponse


def read(body: bytes) -> Message:
    """One message. A batch, and whatever else is no message, is refused in the words of the specification."""
    return shaped(parsed(body))


def parsed(body: bytes) -> Json:
    try:
        value = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise RpcError(PARSE_ERROR, f"Parse error: {error.msg}") from None
    # Counting is a hundred times cheaper than walking; hardly any body has so many brackets.
    if body.count(b"[") + body.count(b"{") > _MOST_NESTED and _is_nested_deeper(value, _MOST_NESTED):
        raise RpcError(PARSE_ERROR, f"Parse error: nested deeper than {_MOST_NESTED}")
    return value


def shaped(value: Json) -> Message:
    if isinstance(value, list):
        raise RpcError(INVALID_REQUEST, "Invalid request: batches are not part of this protocol")
    if not isinstance(value, dict):
        raise RpcError(INVALID_REQUEST, "Invalid request: a message is an object")
    message = cast("dict[str, Any]", value)
    if message.get("jsonrpc") != "2.0":
        raise RpcError(INVALID_REQUEST, "Invalid request: jsonrpc must be '2.0'")
    request_id, method, params = message.get("id"), message.get("method"), message.get("params", _NO_PARAMS)
    if "id" in message and (isinstance(request_id, bool) or not isinstance(request_id, int | str)):
        raise RpcError(INVALID_REQUEST, "Invalid request: id must be a string or a whole number")
    if method is None and request_id is not None and ("result" in message or "error" in message):
        return RpcResponse(request_id, _object(message.get("result")), _object(message.get("error")))
    if not isinstance(method, str):
        raise RpcError(INVALID_REQUEST, "Invalid request: method must be a string")
    if not isinstance(params, dict):
        if params is not None and params is not _NO_PARAMS:
            raise RpcError(INVALID_REQUEST, "Invalid request: params must be an object")
        params = _NO_PARAMS
    if request_id is None:
        return RpcNotification(method, cast("Params", params))
    return RpcRequest(request_id, method, cast("Params", params))


def result_message(request_id: RequestId, result: bytes) -> bytes:
    """`result` is JSON already: a list of hundreds of tools is never written twice."""
    return b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (orjson.dumps(request_id), result)


def error_message(request_id: RequestId | None, error: RpcError) -> bytes:
    facts: dict[str, Any] = {"code": error.code, "message": error.message}
    if error.data is not None:
        facts["data"] = error.data
    return encode({"jsonrpc": "2.0", "id": request_id, "error": facts})


def notification_message(method: str, params: Params | None = None) -> bytes:
    message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
    if params is not None:
        message["params"] = params
    return encode(message)


def request_message(request_id: RequestId, method: str, params: Params) -> bytes:
    return encode({"jsonrpc": "2.0", "id": request_id, "method": method, "params": params})


def _object(value: Json) -> Params | None:
    return cast("Params", value) if isinstance(value, dict) else None


def _is_nested_deeper(value: Json, limit: int) -> bool:
    level: list[Any] = [value]
    for _ in range(limit + 1):
        inner: list[Any] = []
        for one in level:
            if isinstance(one, dict):
                inner += cast("dict[str, Any]", one).values()
            elif isinstance(one, list):
                inner += cast("list[Any]", one)
        if not inner:
            return False
        level = inner
    return True
