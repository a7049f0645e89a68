"""`/recipes`: how jobs were done. A person keeps a run as one where its answer is, and edits it here."""

from typing import Any

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from dragoman.console.pages import hub_of, pages_of
from dragoman.console.submitted_form import filled
from dragoman.recipe import LONGEST_QUESTION, LONGEST_TEXT


async def show_all(request: Request) -> Response:
    return pages_of(request).page(request, "recipes.html", title="Recipes", **await _facts(request))


async def keep(request: Request) -> Response:
    await hub_of(request).recipes.keep((await filled(request)).text("run"))
    return pages_of(request).part(
        request, "recipes/kept.html", told="Kept as a recipe of the connector's agent."
    )


async def edit(request: Request) -> Response:
    form = await filled(request)
    await hub_of(request).recipes.edit(
        request.path_params["recipe"], question=form.text("question"), text=form.text("text")
    )
    return await _listed(request, "Saved. The next run has it so.")


async def share(request: Request) -> Response:
    form = await filled(request)
    await hub_of(request).recipes.share(
        request.path_params["recipe"], question=form.text("question"), text=form.text("text")
    )
    return await _listed(
        request, "Shared with the workspace as it stands in the form; your own is as it was."
    )


async def delete(request: Request) -> Response:
    await hub_of(request).recipes.delete(request.path_params["recipe"])
    return await _listed(request, "Deleted.")


async def _listed(request: Request, told: str) -> Response:
    return pages_of(request).part(request, "recipes/list.html", told=told, **await _facts(request))


async def _facts(request: Request) -> dict[str, Any]:
    hub = hub_of(request)
    return {
        "recipes": await hub.recipes.list(),
        "is_on": await hub.recipes.is_on(),
        "longest": {"question": LONGEST_QUESTION, "text": LONGEST_TEXT},
    }


routes = [
    Route("/recipes", show_all),
    Route("/recipes/keep", keep, methods=["POST"]),
    Route("/recipes/{recipe}", edit, methods=["POST"]),
    Route("/recipes/{recipe}/share", share, methods=["POST"]),
    Route("/recipes/{recipe}/delete", delete, methods=["POST"]),
]
