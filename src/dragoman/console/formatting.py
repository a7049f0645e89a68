"""Values and errors as a person reads them in the middle of a page."""

import json
from collections.abc import Mapping
from typing import Any, cast

from starlette.requests import Request
from starlette.responses import Response

from dragoman.console.pages import hub_of, pages_of
from dragoman.errors import DragomanError


def pretty(value: Any) -> str:
    """JSON for people; what JSON has no word for is written as text."""
    return json.dumps(value, indent=2, ensure_ascii=False, default=_plain)


def said(request: Request, what: DragomanError | str, hint: str = "") -> Response:
    """A note for the place that htmx asked from: done, or what went wrong and what to do."""
    clean = hub_of(request).without_secrets
    is_error = isinstance(what, DragomanError)
    message, hint = (
        (what.message, what.command_hint or "") if isinstance(what, DragomanError) else (what, hint)
    )
    return pages_of(request).part(
        request,
        "parts/note.html",
        kind="error" if is_error else "good",
        message=clean(message),
        hint=clean(hint),
    )


def _plain(value: Any) -> Any:
    return dict(cast("Mapping[str, Any]", value)) if isinstance(value, Mapping) else str(value)
