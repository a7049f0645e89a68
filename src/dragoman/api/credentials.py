"""`/api/credentials`: what users bring for connectors, and the pages of an authorisation. No value leaves."""

from datetime import datetime
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, ConfigDict, Field, SecretStr
from starlette.responses import Response

from dragoman.api import authorization
from dragoman.api.requests import PROBLEMS, TheHub
from dragoman.hub.credentials import CredentialState, CredentialView
from dragoman.web.encoding import json_response
from dragoman.web.shape import Shape

routes = APIRouter(tags=["credentials"], responses=PROBLEMS)
routes.include_router(authorization.pages)


class CredentialShape(Shape):
    """`wanted` and `present` hold names such as `auth` or `env:TOKEN`; their values never leave."""

    connector: str
    kind: str
    wanted: list[str]
    present: list[str]
    state: CredentialState
    hint: str | None
    issuer: str | None
    scope: str | None
    authorised_at: datetime | None
    expires_at: datetime | None


class CredentialsShape(Shape):
    credentials: list[CredentialShape]


class AuthorizationLinkShape(Shape):
    """Open `url` in a browser before `expires_at`."""

    url: str
    expires_at: datetime


class RotationShape(Shape):
    """`older` keys may still be needed by backups; `forgotten` ones are gone."""

    key_id: str
    is_new: bool
    resealed: int
    older: list[str]
    forgotten: list[str]


class NewCredential(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)

    values: dict[str, SecretStr] = Field(
        min_length=1, max_length=100, description="by name: `auth`, `env:NAME` or `header:NAME`"
    )


class RotationWish(BaseModel):
    model_config = ConfigDict(extra="forbid")

    forget_old: bool = Field(default=False, description="make no new key, drop the replaced ones")


_ONE: dict[int | str, dict[str, Any]] = {200: {"model": CredentialShape}}


@routes.get("/api/credentials", responses={200: {"model": CredentialsShape}})
async def list_credentials(hub: TheHub) -> Response:
    """Of every connector that wants something of you: what, and what of it is there."""
    return json_response({"credentials": [_view(one) for one in await hub.credentials.list()]})


@routes.post("/api/credentials/rotate", responses={200: {"model": RotationShape}})
async def rotate_key(hub: TheHub, wish: RotationWish | None = None) -> Response:
    """For the operator: a new master key, and every secret sealed with it."""
    rotation = await hub.credentials.rotate(forget_old=bool(wish and wish.forget_old))
    return json_response(RotationShape.of(rotation))


@routes.get("/api/credentials/{slug}", responses=_ONE)
async def get_credential(slug: str, hub: TheHub) -> Response:
    return json_response(_view(await hub.credentials.get(slug)))


@routes.put("/api/credentials/{slug}", responses=_ONE)
async def set_credential(slug: str, new: NewCredential, hub: TheHub) -> Response:
    """Keeps your values, encrypted, and opens your own connection anew."""
    return json_response(_view(await hub.credentials.set(slug, new.values)))


@routes.delete("/api/credentials/{slug}", status_code=204)
async def remove_credential(slug: str, hub: TheHub) -> Response:
    await hub.credentials.remove(slug)
    return Response(status_code=204)


@routes.post("/api/credentials/{slug}/authorize", responses={200: {"model": AuthorizationLinkShape}})
async def authorize_connector(slug: str, request: Request, hub: TheHub) -> Response:
    """A link to a page that leads you to the authorisation server and back."""
    link = await hub.credentials.authorize(slug, address=authorization.address_of(request))
    return json_response(AuthorizationLinkShape.of(link))


def _view(view: CredentialView) -> CredentialShape:
    return CredentialShape.of(view)
