"""`/api/models`: which language models this installation can use, and why not the others."""

from fastapi import APIRouter
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["agents"], responses=PROBLEMS)


class ModelShape(Shape):
    """`model` is null where nothing of this provider can be named; `why` says what is missing."""

    provider: str
    model: str | None
    is_usable: bool
    why: str
    is_default: bool


class ModelsShape(Shape):
    models: list[ModelShape]


@routes.get("/models", responses={200: {"model": ModelsShape}})
async def list_models(hub: TheHub) -> Response:
    """In the order of choice; the default is what answers where nobody chose."""
    return json_response({"models": [ModelShape.of(found) for found in await hub.models.list()]})
