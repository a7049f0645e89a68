"""Errors as HTTP answers: the one table from an error's code to its status, and RFC 9457 problems.

Knows nothing of tracebacks, and repeats no input: it may hold a secret.
"""

from collections.abc import Callable
from math import ceil
from typing import ClassVar

from starlette.responses import Response

from dragoman.errors import CallerFault, DragomanError, Internal, OwnFault
from dragoman.tool import CallError
from dragoman.web.encoding import encode

PROBLEM = "application/problem+json"

# code: (status, title)
TABLE: dict[str, tuple[int, str]] = {
    "bad_request": (400, "The request cannot be read"),
    "invalid_request": (422, "The request is not valid"),
    "not_found": (404, "There is no such thing"),
    "invalid_name": (422, "The name will not do"),
    "invalid_config": (422, "The configuration is not valid"),
    "invalid_arguments": (422, "The arguments are not valid"),
    "conflict": (409, "It collides with what exists"),
    "denied": (403, "This is not allowed"),
    "approval_pending": (409, "A person has to answer first"),
    "approval_refused": (403, "A person said no"),
    "hook_refused": (403, "A hook lets this not pass"),
    "hook_failed": (503, "A hook could not decide"),
    "unauthenticated": (401, "Who are you?"),
    "not_open": (503, "Dragoman is not open"),
    "wrong_host": (421, "This host name is not served here"),
    "wrong_origin": (403, "Pages of this origin may not ask"),
    "wrong_method": (405, "This method is not served here"),
    "too_slow": (408, "The request took too long to come"),
    "too_large": (413, "The request is too large"),
    "head_too_large": (431, "The head of the request is too large"),
    "wrong_range": (416, "The range is outside of the result"),
    "tool_fault": (502, "The tool cannot be used"),
    "tool_failed": (502, "The tool failed"),
    "input_required": (409, "The tool asks something first"),
    "nobody_answered": (409, "Nobody answered in time"),
    "tool_changed": (409, "The tool has changed"),
    "tool_disabled": (409, "The tool is disabled"),
    "server_fault": (502, "The server failed"),
    "unreachable": (502, "The server cannot be reached"),
    "connect_timeout": (504, "The server did not answer in time"),
    "timeout": (504, "The server did not answer in time"),
    "uncertain": (502, "Nobody knows whether it happened"),
    "needs_auth": (424, "The server wants to know who we are"),
    "forbidden": (424, "The server refused"),
    "rate_limited": (503, "The server wants fewer requests"),
    "server_error": (502, "The server failed"),
    "protocol_fault": (502, "The server does not speak MCP"),
    "model_fault": (502, "The model failed"),
    "model_unavailable": (502, "The model cannot be reached"),
    "model_timeout": (504, "The model did not answer in time"),
    "model_rate_limited": (503, "The model's provider wants fewer requests"),
    "model_quota_spent": (424, "The account with the model's provider is spent"),
    "model_refused_key": (424, "The model's provider refused the key"),
    "model_not_found": (424, "The provider has no such model"),
    "model_refused": (502, "The model refused"),
    "model_garbage": (502, "The model's answer cannot be read"),
    "answer_cut": (502, "The model's answer was cut"),
    "context_too_long": (413, "This is more than the model can read"),
    "limit_reached": (429, "A limit of Dragoman is reached"),
    "store_unavailable": (503, "The store does not answer"),
    "store_full": (507, "There is no room left to write"),
    "key_fault": (500, "The master key does not fit"),
    "not_installed": (501, "This part of Dragoman is not installed"),
    "cluster_fault": (500, "This process cannot be a node of the cluster"),
    "cluster_unavailable": (503, "It is not known which node holds the connection"),
    "overloaded": (503, "Dragoman has too many connections"),
    "shutting_down": (503, "Dragoman is stopping"),
    "own_fault": (500, "Dragoman failed"),
    "internal": (500, "Dragoman failed"),
    "error": (500, "Something went wrong"),
}


class InvalidRequest(CallerFault):
    """JSON of another shape than the request has."""

    code: ClassVar[str] = "invalid_request"


class WrongHost(CallerFault):
    code: ClassVar[str] = "wrong_host"


class WrongOrigin(CallerFault):
    code: ClassVar[str] = "wrong_origin"


class WrongMethod(CallerFault):
    code: ClassVar[str] = "wrong_method"


class TooLarge(CallerFault):
    code: ClassVar[str] = "too_large"


class TooSlow(CallerFault):
    code: ClassVar[str] = "too_slow"


class HeadTooLarge(CallerFault):
    code: ClassVar[str] = "head_too_large"


class Overloaded(OwnFault):
    code: ClassVar[str] = "overloaded"
    retryable: ClassVar[bool] = True


class WrongRange(CallerFault):
    code: ClassVar[str] = "wrong_range"


def status_of(error: DragomanError) -> int:
    """The same by every door."""
    return TABLE.get(error.code, TABLE["error"])[0]


def problem(error: DragomanError | CallError, clean: Callable[[str], str] = str) -> Response:
    """Of what was raised, or of a call that failed. `clean` takes out secrets that a server repeated."""
    status, title = TABLE.get(error.code, TABLE["error"])
    headers: dict[str, str] = {}
    if error.retry_after is not None:
        headers["Retry-After"] = str(max(0, ceil(error.retry_after)))
    if status == 401:
        headers["WWW-Authenticate"] = 'Bearer realm="dragoman"'
    body = {
        "type": f"urn:dragoman:problem:{error.code}",
        "title": title,
        "status": status,
        "detail": clean(error.message),
        "code": error.code,
        "hint": clean(hint) if (hint := error.hint) else None,
        "cause": clean(error.cause) if error.cause else None,
        "retryable": error.retryable,
    }
    return Response(encode(body), status, headers, media_type=PROBLEM)


def internal() -> Internal:
    return Internal("Dragoman failed while it answered this request", hint="its log has the details")
