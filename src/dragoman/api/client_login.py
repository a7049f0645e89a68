"""What OAuth clients ask without a person: metadata, registration, tokens (RFC 8414, 9728, 7591, 6749, 7009).

Answers are in OAuth's own words, as its clients read them. The consent of a person is a page of the console.
"""

import base64
import binascii
from collections.abc import Mapping
from urllib.parse import parse_qsl, unquote_plus

from fastapi import APIRouter, Request
from starlette.responses import Response

from dragoman.api.requests import TheHub
from dragoman.errors import NotFound
from dragoman.hub import logins_of
from dragoman.hub.client_logins import IssuedTokens
from dragoman.hub.oauth_clients import OAuthRefusal
from dragoman.identity.access_tokens import ALGORITHM
from dragoman.remote_data import parse_json
from dragoman.web.encoding import json_response
from dragoman.web.protected_resources import ProtectedResources, base_of, server_metadata

routes = APIRouter(include_in_schema=False)
_NO_STORE = {"Cache-Control": "no-store", "Pragma": "no-cache"}
_LARGEST = 64 * 1024


@routes.get("/.well-known/oauth-protected-resource")
@routes.get("/.well-known/oauth-protected-resource/{path:path}")
async def describe_resource(request: Request, hub: TheHub) -> Response:
    facts = ProtectedResources(hub.settings).metadata(request.scope)
    if facts is None:
        raise _nothing()
    return json_response(facts, headers={"Cache-Control": "no-store"})


@routes.get("/.well-known/oauth-authorization-server")
async def describe_server(request: Request, hub: TheHub) -> Response:
    if hub.settings.client_login != "dragoman":
        raise _nothing()
    return json_response(
        server_metadata(base_of(hub.settings, request.scope)), headers={"Cache-Control": "no-store"}
    )


@routes.get("/.well-known/openid-configuration")
async def describe_server_as_issuer(request: Request, hub: TheHub) -> Response:
    """The same for clients that look there only. What it wants to be told of ID tokens is of no use here."""
    if hub.settings.client_login != "dragoman":
        raise _nothing()
    facts = {
        **server_metadata(base_of(hub.settings, request.scope)),
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }
    return json_response(facts, headers={"Cache-Control": "no-store"})


@routes.get("/oauth/jwks")
async def show_signing_keys(hub: TheHub) -> Response:
    keys = await logins_of(hub).signing_keys()
    return json_response({"keys": keys}, headers={"Cache-Control": "public, max-age=300"})


@routes.post("/oauth/register")
async def register(request: Request, hub: TheHub) -> Response:
    try:
        body = await request.body()
        try:
            metadata = parse_json(body) if len(body) <= _LARGEST else None
        except ValueError:
            metadata = None
        made = await logins_of(hub).register(metadata, request.client.host if request.client else "")
    except OAuthRefusal as refusal:
        return _refused(refusal)
    facts = {
        **made.metadata,
        "client_id": made.id,
        "client_id_issued_at": int(made.created_at.timestamp()),
        "token_endpoint_auth_method": "none",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
    }
    return json_response(facts, 201, _NO_STORE)


@routes.post("/oauth/token")
async def give_tokens(request: Request, hub: TheHub) -> Response:
    try:
        form, base = await _form(request), base_of(hub.settings, request.scope)
        if form.get("grant_type") == "authorization_code":
            issued = await logins_of(hub).redeem(form, base)
        elif form.get("grant_type") == "refresh_token":
            issued = await logins_of(hub).refresh(form, base)
        else:
            raise OAuthRefusal("unsupported_grant_type", "authorization_code and refresh_token are taken")
    except OAuthRefusal as refusal:
        return _refused(refusal)
    return json_response(_told(issued), headers=_NO_STORE)


@routes.post("/oauth/revoke")
async def revoke(request: Request, hub: TheHub) -> Response:
    try:
        form = await _form(request)
        if not form.get("token"):
            raise OAuthRefusal("invalid_request", "send the token")
    except OAuthRefusal as refusal:
        return _refused(refusal)
    await logins_of(hub).revoke_token(form["token"], form["client_id"])
    return Response(status_code=200, headers=_NO_STORE)


@routes.post("/oauth/introspect")
async def introspect(request: Request, hub: TheHub) -> Response:
    """For who runs the installation, with its token."""
    form = dict(parse_qsl((await request.body()).decode("utf-8", "replace")))
    return json_response(await logins_of(hub).introspect(form.get("token", "")), headers=_NO_STORE)


def _nothing() -> NotFound:
    return NotFound("nothing is offered here")


def _told(issued: IssuedTokens) -> Mapping[str, str | int]:
    return {
        "access_token": issued.access,
        "token_type": "Bearer",
        "expires_in": issued.expires_in,
        "refresh_token": issued.refresh,
        "scope": " ".join(issued.scopes),
    }


def _refused(refusal: OAuthRefusal) -> Response:
    told = {"error": refusal.error, "error_description": refusal.description}
    headers = dict(_NO_STORE)
    if refusal.status == 401:
        headers["WWW-Authenticate"] = 'Basic realm="dragoman"'
    return json_response(told, refusal.status, headers)


async def _form(request: Request) -> dict[str, str]:
    """What a public client sends; each thing once. A secret is none of ours, and so is who sends one."""
    body = await request.body()
    if len(body) > _LARGEST or "application/x-www-form-urlencoded" not in request.headers.get(
        "content-type", ""
    ):
        raise OAuthRefusal("invalid_request", "send a form: application/x-www-form-urlencoded")
    try:
        pairs = parse_qsl(body.decode("utf-8"), keep_blank_values=True, max_num_fields=50)
    except ValueError:
        raise OAuthRefusal("invalid_request", "the form cannot be read") from None
    form = dict(pairs)
    if len(form) != len(pairs):
        raise OAuthRefusal("invalid_request", "a parameter came more than once")
    name, secret = _basic(request.headers.get("authorization", ""))
    if name and form.setdefault("client_id", name) != name:
        raise OAuthRefusal("invalid_client", "two clients are named", status=401)
    if not form.get("client_id") or secret or form.get("client_secret"):
        raise OAuthRefusal(
            "invalid_client", "send client_id and no secret: clients here are public", status=401
        )
    return form


def _basic(header: str) -> tuple[str, str]:
    scheme, _, value = header.partition(" ")
    if scheme.lower() != "basic":
        return "", ""
    try:
        name, _, secret = base64.b64decode(value, validate=True).decode().partition(":")
    except (binascii.Error, ValueError):
        return "", ""
    return unquote_plus(name), unquote_plus(secret)
