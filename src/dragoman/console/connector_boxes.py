"""The box of a connector's program: how it is boxed, what it seems to lack, and what its homes hold."""

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.errors import NotFound


async def show_box(request: Request) -> Response:
    hub, slug = hub_of(request), request.path_params["slug"]
    view, homes = await hub.connectors.get(slug), await hub.connectors.homes(slug)
    if view.box is None:
        raise NotFound(f"{slug} is no program", hint="only what is started here has a box")
    return pages_of(request).part(
        request, "connectors/box.html", view=view, homes=homes, needs=await hub.connectors.needs(slug)
    )


async def give(request: Request) -> Response:
    """Adds to the box what its program was found to lack, and nothing else that a form may say."""
    hub, slug = hub_of(request), request.path_params["slug"]
    wanted = (await filled(request)).text("value")
    need = next((one for one in await hub.connectors.needs(slug) if one.value == wanted), None)
    if need is None:
        raise NotFound(f"{slug} lacks nothing of the kind any more", hint="look at its page again")
    if need.setting == "mounts":
        await hub.connectors.update(slug, mounts=need.becomes)
    else:
        await hub.connectors.update(slug, network=need.becomes)
    return Response(status_code=204, headers={"hx-redirect": f"/connectors/{slug}"})


async def clear_homes(request: Request) -> Response:
    await hub_of(request).connectors.clear_homes(request.path_params["slug"])
    return await show_box(request)


routes = [
    Route("/connectors/{slug}/box", show_box),
    Route("/connectors/{slug}/box", give, methods=["POST"]),
    Route("/connectors/{slug}/box/clear", clear_homes, methods=["POST"]),
]
