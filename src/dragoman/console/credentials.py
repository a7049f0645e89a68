"""`/credentials`: what connectors want of the person who looks. Values go in and never come out."""

from typing import Any

from pydantic import SecretStr
from starlette.requests import Request
from starlette.responses import RedirectResponse, Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, is_part, pages_of
from dragoman.console.session_rights import check_from_here, check_scope
from dragoman.console.submitted_form import filled
from dragoman.errors import InvalidArguments

_PREFIX = "secret:"


async def show_all(request: Request) -> Response:
    facts = await _facts(request)
    if is_part(request):
        return pages_of(request).part(request, "credentials/list.html", **facts)
    return pages_of(request).page(request, "credentials.html", title="Credentials", **facts)


async def keep(request: Request) -> Response:
    form, slug = await filled(request), request.path_params["slug"]
    given = {
        name.removeprefix(_PREFIX): text for name, text in form.draft().items() if name.startswith(_PREFIX)
    }
    values = {name: SecretStr(text.strip()) for name, text in given.items() if text.strip()}
    if not values:
        raise InvalidArguments("nothing was typed", hint="what is left empty stays as it is")
    view = await hub_of(request).credentials.set(slug, values)
    works = "It works." if view.state == "ready" else "The server has not accepted it yet."
    return await _shown(request, f"Saved for {slug}, encrypted. {works}")


async def remove(request: Request) -> Response:
    slug = request.path_params["slug"]
    await hub_of(request).credentials.remove(slug)
    return await _shown(request, f"Removed. Your connection to {slug} is closed.")


async def authorize(request: Request) -> Response:
    """On to the page that asks before it leads to the authorisation server."""
    check_from_here(request)
    check_scope(request, "manage")
    address = str(request.base_url).rstrip("/")
    slug = request.path_params["slug"]
    link = await hub_of(request).credentials.authorize(slug, address=address)
    return RedirectResponse(link.url, 303)


async def rotate(request: Request) -> Response:
    """The master key is replaced, or those it replaced are forgotten: asked for in the settings."""
    form = await filled(request)
    rotation = await hub_of(request).credentials.rotate(forget_old=bool(form.text("forget_old")))
    if rotation.forgotten:
        told = f"{len(rotation.forgotten)} replaced keys are forgotten."
    else:
        told = f"{rotation.resealed} secrets are sealed with the key {rotation.key_id}."
    return pages_of(request).part(request, "parts/told.html", told=told)


async def _shown(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "credentials/list.html", told=told, **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    views = await hub_of(request).credentials.list()
    return {"views": views, "label": label}


def label(name: str) -> str:
    """What a person is asked for."""
    if name == "auth":
        return "Token or key"
    kind, _, rest = name.partition(":")
    return f"{rest} (header)" if kind == "header" else rest or name


# No connector's name is a hyphen.
routes = [
    Route("/credentials", show_all),
    Route("/credentials/-/rotate", rotate, methods=["POST"]),
    Route("/credentials/{slug}", keep, methods=["POST"]),
    Route("/credentials/{slug}/remove", remove, methods=["POST"]),
    Route("/credentials/{slug}/authorize", authorize),
]
