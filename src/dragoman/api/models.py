"""`/api/models`: which language models this installation can use, their providers, and the default."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.responses import Response

from dragoman.agents.providers import KINDS
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.models import ProviderTier
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


class ModelProviderShape(Shape):
    """`has_key` instead of the key, which nobody is shown again. `default` is the model string that answers
    where only the provider is known. `tier`: app is for the whole installation.
    """

    name: str
    kind: str
    title: str
    tier: ProviderTier
    url: str | None
    model: str | None
    default: str | None
    has_key: bool
    may_change: bool
    created_at: datetime
    updated_at: datetime


class ProviderKindShape(Shape):
    """What can be set of a kind of provider; `model` is what is asked where none is named."""

    name: str
    title: str
    takes_url: bool
    needs_url: bool
    needs_key: bool
    model: str | None


class ModelProvidersShape(Shape):
    providers: list[ModelProviderShape]
    kinds: list[ProviderKindShape]


class DefaultModelShape(Shape):
    """`chosen` is what the workspace chose, `model` what answers where nobody chose, `reason` why."""

    chosen: str | None
    model: str
    reason: str


class TestedModelShape(Shape):
    """What came of one short request: the answer's first words, or why there was none."""

    model: str
    works: bool
    milliseconds: float
    answer: str | None
    error: str | None
    hint: str | None


class GivenModelProvider(BaseModel):
    """What is left out stays as it is; "" takes `url` or `model` away."""

    model_config = ConfigDict(extra="forbid")

    kind: str | None = Field(
        default=None, max_length=200, description="as its name, or openai-compatible for a server of your own"
    )
    key: SecretStr | None = Field(default=None, description="sealed at once and shown to nobody")
    url: str | None = Field(default=None, max_length=2_000, description="where it is, if elsewhere")
    model: str | None = Field(default=None, max_length=200, description="what it answers with, as in gpt-5")
    tier: ProviderTier = Field(default="workspace", description="app is for who runs the installation")


class ChosenModel(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(max_length=2_000, description="as in openai:gpt-5; null: the best there is")


class ModelTrial(BaseModel):
    model_config = ConfigDict(extra="forbid")

    model: str | None = Field(default=None, max_length=2_000, description="else the default")


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": ModelProviderShape}}


@routes.get("/models", responses={200: {"model": ModelsShape}})
async def list_models(hub: TheHub) -> Response:
    """In the order of choice; the default is what answers where nobody chose."""
    return json_response({"models": [ModelShape.of(found) for found in await hub.models.list()]})


@routes.get("/models/providers", responses={200: {"model": ModelProvidersShape}})
async def list_model_providers(hub: TheHub) -> Response:
    """Those that were set for your workspace and for the installation, and the kinds that there are."""
    providers = [ModelProviderShape.of(one) for one in await hub.models.providers()]
    kinds = [ProviderKindShape.of(one) for one in KINDS.values()]
    return json_response({"providers": providers, "kinds": kinds})


@routes.put("/models/providers/{name}", responses=_ONE)
async def set_model_provider(hub: TheHub, name: str, provider: GivenModelProvider) -> Response:
    """Gives a provider its key, its address or its model. It holds from the next run on."""
    given: dict[str, Any] = {one: getattr(provider, one) for one in GivenModelProvider.model_fields}
    return json_response(ModelProviderShape.of(await hub.models.set_provider(name, **given)))


@routes.delete("/models/providers/{name}", status_code=204)
async def remove_model_provider(hub: TheHub, name: str, tier: ProviderTier | None = None) -> Response:
    """With its key, for good."""
    await hub.models.remove_provider(name, tier)
    return Response(status_code=204)


@routes.get("/models/default", responses={200: {"model": DefaultModelShape}})
async def show_default_model(hub: TheHub) -> Response:
    """What answers where neither message nor agent names a model."""
    choice = await hub.models.choose()
    return json_response(_default(await hub.models.default(), choice.name, choice.reason))


@routes.put("/models/default", responses={200: {"model": DefaultModelShape}})
async def set_default_model(hub: TheHub, chosen: ChosenModel) -> Response:
    """For the whole workspace, from the next run on."""
    choice = await hub.models.set_default(chosen.model)
    return json_response(_default(await hub.models.default(), choice.name, choice.reason))


@routes.post("/models/test", responses={200: {"model": TestedModelShape}})
async def test_model(hub: TheHub, trial: ModelTrial) -> Response:
    """Asks a model one short question, which costs a few tokens."""
    return json_response(TestedModelShape.of(await hub.models.test(trial.model)))


def _default(chosen: str | None, model: str, reason: str) -> DefaultModelShape:
    return DefaultModelShape(chosen=chosen, model=model, reason=reason)
