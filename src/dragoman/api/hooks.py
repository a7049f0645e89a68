"""`/api/hooks`: what looks at calls, results and lists."""

from typing import Annotated

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field
from starlette.responses import Response

from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(prefix="/api", tags=["hooks"], responses=PROBLEMS)


class HookKindShape(Shape):
    """One hook that a rule can name, with an example of such a rule."""

    name: str
    meaning: str
    example: str


class HooksShape(Shape):
    """`app` and `workspace` hold for your calls, in this order; a connector's own come after them."""

    app: list[str]
    workspace: list[str]
    kinds: list[HookKindShape]


class TriedHookShape(Shape):
    """The text as it would be given, or why it would not; what would be said, and written to the trail."""

    text: str | None
    refused: str | None
    notes: list[str]
    trail: list[str]


class HookTrial(BaseModel):
    model_config = ConfigDict(extra="forbid")

    rule: Annotated[str, Field(max_length=2000, description="As `secrets mask`.")]
    text: Annotated[str, Field(max_length=1_000_000, description="A result to look at.")]


@routes.get("/hooks", responses={200: {"model": HooksShape}})
async def list_hooks(hub: TheHub) -> Response:
    """The hooks that hold for your calls, and those that a rule can name."""
    return json_response(HooksShape.of(await hub.hooks.list()))


@routes.post("/hooks/try", responses={200: {"model": TriedHookShape}})
async def try_hook(hub: TheHub, trial: HookTrial) -> Response:
    """What a rule would do to a result with this text. Nothing is called, nothing is written."""
    return json_response(TriedHookShape.of(await hub.hooks.try_rule(trial.rule, trial.text)))
