"""`/api/recipes`: how jobs were done, and the texts of it that are shared."""

from collections.abc import Sequence
from datetime import datetime
from typing import Annotated, Any

from fastapi import APIRouter, Query
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.recipes import RecipeView
from dragoman.recipe import LONGEST_QUESTION, LONGEST_TEXT
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["recipes"], responses=PROBLEMS)


class RecipeShape(Shape):
    """`run` is where it comes from; a shared one has none. `may_change` and `may_share` are of who asks."""

    id: str
    connector: str
    question: str
    text: str
    tools: list[str]
    is_shared: bool
    run: str | None
    created_at: datetime
    updated_at: datetime
    may_change: bool
    may_share: bool


class RecipesShape(Shape):
    recipes: list[RecipeShape]


class KeptRun(BaseModel):
    model_config = ConfigDict(extra="forbid")

    run: str = Field(min_length=1, max_length=200, description="one that ended with an answer")


class RecipeTexts(BaseModel):
    """What is left out stays as it is."""

    model_config = ConfigDict(extra="forbid")

    question: str | None = Field(default=None, max_length=LONGEST_QUESTION, description="what was asked")
    text: str | None = Field(default=None, max_length=LONGEST_TEXT, description="the steps")


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": RecipeShape}}
_ALL: dict[int | str, dict[str, Any]] = {200: {"model": RecipesShape}}


@routes.get("/recipes", responses=_ALL)
async def list_recipes(
    hub: TheHub,
    connector: Annotated[str | None, Query(max_length=200, description="those of its agent alone")] = None,
) -> Response:
    """Your own and those that are shared in the workspace, newest first."""
    return _listed(await hub.recipes.list(connector))


@routes.post("/recipes", responses=_ALL)
async def keep_recipe(hub: TheHub, kept: KeptRun) -> Response:
    """Keeps how a run was done: a recipe for each connector's agent that did a part of it.

    It has the question, and of each call the tool with names and types of its arguments; no value, no result.
    A run that was kept before stays as it was kept. For people, where the workspace has recipes switched on.
    """
    return _listed(await hub.recipes.keep(kept.run))


@routes.get("/recipes/{recipe}", responses=_ONE)
async def show_recipe(hub: TheHub, recipe: str) -> Response:
    """One recipe."""
    return json_response(_view(await hub.recipes.get(recipe)))


@routes.patch("/recipes/{recipe}", responses=_ONE)
async def edit_recipe(hub: TheHub, recipe: str, texts: RecipeTexts) -> Response:
    """Changes its texts. Of one that is shared, for admins."""
    return json_response(_view(await hub.recipes.edit(recipe, question=texts.question, text=texts.text)))


@routes.post("/recipes/{recipe}/share", responses=_ONE)
async def share_recipe(hub: TheHub, recipe: str, texts: RecipeTexts) -> Response:
    """Has everybody in the workspace who sees the connector use this text; your recipe stays yours.

    For admins. Shared again, the text takes the place of the one before.
    """
    return json_response(_view(await hub.recipes.share(recipe, question=texts.question, text=texts.text)))


@routes.delete("/recipes/{recipe}", status_code=204)
async def delete_recipe(hub: TheHub, recipe: str) -> Response:
    """For good. A text that was shared of it stays until an admin deletes that."""
    await hub.recipes.delete(recipe)
    return Response(status_code=204)


def _listed(views: Sequence[RecipeView]) -> Response:
    return json_response({"recipes": [_view(one) for one in views]})


def _view(view: RecipeView) -> RecipeShape:
    return RecipeShape.of(
        view.recipe,
        connector=view.connector,
        run=view.recipe.run or None,
        may_change=view.may_change,
        may_share=view.may_share,
    )
