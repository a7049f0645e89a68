"""What went wrong, as a person reads it: what happened and what to do. A page, or a note in the page."""

from starlette.requests import Request
from starlette.responses import Response

from dragoman.console.pages import find_session, is_part, pages_of
from dragoman.errors import DragomanError
from dragoman.web.problems import status_of


def of_error(request: Request, error: DragomanError) -> Response:
    clean = request.app.state.hub.without_secrets
    return shown(request, clean(error.message), clean(error.command_hint or ""), status_of(error))


def shown(request: Request, message: str, hint: str, status: int) -> Response:
    """htmx puts a note at the top of the page; a person who came by address gets a page."""
    pages = pages_of(request)
    if is_part(request):
        response = pages.part(request, "parts/note.html", kind="error", message=message, hint=hint)
        response.headers["hx-retarget"] = "#notes"
        response.headers["hx-reswap"] = "beforeend"
        return response
    template = "fault.html" if find_session(request) else "fault_outside.html"
    return pages.page(
        request,
        template,
        title="Not found" if status == 404 else "Not done",
        status=status,
        message=message,
        hint=hint,
    )
