"""The part of the page of imports that asks the registry: what it offers, exactly, and the taking of one."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.formatting import said
from dragoman.console.pages import hub_of, pages_of
from dragoman.console.session_rights import check_scope
from dragoman.console.submitted_form import filled
from dragoman.errors import DragomanError

_ANSWER = "answer:"
_A_PAGE = 20


async def search(request: Request) -> Response:
    asked = request.query_params
    words, cursor = asked.get("words", "").strip()[:200], asked.get("cursor") or None
    page = await hub_of(request).discovery.search(words, cursor=cursor, limit=_A_PAGE)
    return pages_of(request).part(
        request, "transfer/offers.html", page=page, words=words, is_first=cursor is None
    )


async def show(request: Request) -> Response:
    offer = await hub_of(request).discovery.get(request.query_params.get("name", ""))
    return pages_of(request).part(request, "transfer/offer.html", offer=offer)


async def take(request: Request) -> Response:
    """By the way that the person was shown; when the registry offers another by now, nothing is added."""
    check_scope(request, "manage")
    form = await filled(request)
    answers = {
        name.removeprefix(_ANSWER): value
        for name, value in form.draft().items()
        if name.startswith(_ANSWER) and value
    }
    try:
        view = await hub_of(request).discovery.add(
            form.text("name"),
            shown=form.text("shown"),
            inputs=answers,
            connector=form.text("connector") or None,
        )
    except DragomanError as error:
        return said(request, error)
    return Response(status_code=204, headers={"hx-redirect": f"/connectors/{view.connector.slug}"})


routes = [
    Route("/transfer/offers", search),
    Route("/transfer/offers/one", show),
    Route("/transfer/offers", take, methods=["POST"]),
]
