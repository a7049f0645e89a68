"""Whatever goes wrong inside FastAPI leaves it as a problem of `web.problems`."""

from collections.abc import Mapping, Sequence
from typing import Any

from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from dragoman.errors import CallerFault, DragomanError, NotFound
from dragoman.setting import what_is_wrong
from dragoman.web.guard import HUB
from dragoman.web.problems import InvalidRequest, TooLarge, WrongMethod, internal, problem

_OF_STATUS: dict[int, type[DragomanError]] = {404: NotFound, 405: WrongMethod, 413: TooLarge}


def add_problems(app: FastAPI) -> None:
    """Whatever goes wrong inside `app` leaves it as a problem."""

    async def known(request: Request, error: Exception) -> Response:
        assert isinstance(error, DragomanError)
        # An app without a hub has no secrets.
        hub = request.scope.get(HUB)
        return problem(error, hub.without_secrets if hub else str)

    async def invalid(request: Request, error: Exception) -> Response:
        assert isinstance(error, RequestValidationError)
        return problem(_of_fields(error.errors()))

    async def refused(request: Request, error: Exception) -> Response:
        assert isinstance(error, HTTPException)
        kind = _OF_STATUS.get(error.status_code, CallerFault)
        hint = "GET /api/openapi.json lists what there is" if error.status_code in (404, 405) else None
        response = problem(kind(_detail(request, error), hint=hint))
        response.headers.update(error.headers or {})
        return response

    async def unforeseen(request: Request, error: Exception) -> Response:
        return problem(internal())

    app.add_exception_handler(DragomanError, known)
    app.add_exception_handler(RequestValidationError, invalid)
    app.add_exception_handler(HTTPException, refused)
    app.add_exception_handler(Exception, unforeseen)


def _detail(request: Request, error: HTTPException) -> str:
    if error.status_code == 404:
        return f"there is nothing at {request.url.path[:200]}"
    if error.status_code == 405:
        return f"{request.method[:20]} is not served at {request.url.path[:200]}"
    return str(error.detail)


def _of_fields(errors: Sequence[Mapping[str, Any]]) -> DragomanError:
    if any(item["type"] == "json_invalid" for item in errors):
        return CallerFault("the body is not valid JSON", hint="send one JSON object")
    found = "; ".join(_field(item) for item in errors[:5])
    return InvalidRequest(found, hint="dragoman --help describes what can be given")


def _field(item: Mapping[str, Any]) -> str:
    where = ".".join(str(part)[:100] for part in item["loc"] if part not in ("body", "query", "path"))
    what = what_is_wrong(item)[:300]
    return f"{where}: {what}" if where else f"the body: {what}"
