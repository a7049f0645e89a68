"""Calls by REST: the hot path. Reads and writes JSON by orjson, and nothing in between.

A call that fails is an answer like any other (200, `ok: false`); only a request that cannot be
understood is a problem.
"""

from typing import Any, cast

import orjson

from dragoman.api.encoding import encode
from dragoman.api.problems import InvalidRequest
from dragoman.errors import CallerFault
from dragoman.hub import Hub
from dragoman.names import did_you_mean

_FIELDS = ("tool", "arguments", "timeout")


async def make_call(hub: Hub, body: bytes, tool: str | None = None) -> bytes:
    """One call from the bytes of a request to the bytes of its answer. `tool` is given by the path."""
    request = _read(body)
    for name in request:
        if name not in _FIELDS or (tool is not None and name == "tool"):
            raise InvalidRequest(
                f"{name[:100]!r} is no field of a call", hint=did_you_mean(name[:100], list(_FIELDS))
            )
    name = request.get("tool") if tool is None else tool
    if not isinstance(name, str) or not name:
        raise InvalidRequest("'tool' must be the name of a tool", hint='{"tool": "…", "arguments": {…}}')
    arguments = request.get("arguments")
    if arguments is not None and not isinstance(arguments, dict):
        raise InvalidRequest("'arguments' must be an object", hint='{"tool": "…", "arguments": {…}}')
    timeout = request.get("timeout")
    if timeout is not None and (isinstance(timeout, bool) or not isinstance(timeout, int | float)):
        raise InvalidRequest("'timeout' must be a number of seconds")
    return encode(await hub.call(name, cast("dict[str, Any] | None", arguments), timeout=timeout))


def _read(body: bytes) -> dict[str, Any]:
    try:
        request = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise CallerFault(f"the body is not valid JSON: {error.msg}", hint="send one JSON object") from None
    if not isinstance(request, dict):
        raise InvalidRequest("the body must be an object", hint='{"tool": "…", "arguments": {…}}')
    return cast("dict[str, Any]", request)
