"""Grants that need no person: `refresh_token` and `client_credentials`. Stores nothing."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import UTC, datetime

from pydantic import SecretStr

from dragoman.connections.http_clients import Reach
from dragoman.connections.oauth.clients import GIVEN_SECRET, OAuthClient, client_with, given_client
from dragoman.connections.oauth.metadata import ResourceAuthorization, discover, server_of
from dragoman.connections.oauth.requests import Json, send_form
from dragoman.connections.oauth.tokens import (
    OAuthTokens,
    access_in,
    ask_tokens,
    expiry_in,
    secret_in,
)
from dragoman.connector import Connector
from dragoman.errors import DragomanError, InvalidConfig


async def renewed_by_refresh(
    reach: Reach, connector: Connector, secrets: Mapping[str, SecretStr], tokens: OAuthTokens
) -> OAuthTokens:
    assert tokens.refresh is not None
    form = {"grant_type": "refresh_token", "refresh_token": tokens.refresh.get_secret_value()}
    if tokens.resource:
        form["resource"] = tokens.resource
    client = _current(tokens, connector, secrets)
    return tokens.renewed(await ask_tokens(reach, tokens.token_endpoint, form, client))


async def granted_by_client(
    reach: Reach, connector: Connector, secrets: Mapping[str, SecretStr], known: OAuthTokens | None
) -> OAuthTokens:
    """The issuer is looked up once; after that it is known from the tokens that it gave."""
    if known is not None:
        client = _current(known, connector, secrets)
        form = _client_form(known.resource, known.asked_for(connector.configuration.auth.scopes))
        asked = replace(known, scope=form.get("scope") or known.scope)  # who grants all of it may be silent
        return asked.renewed(await ask_tokens(reach, known.token_endpoint, form, client))
    found = await discover(reach, connector)
    client = given_client(connector.configuration.auth, found.issuer, secrets)
    if client is None or client.secret is None:
        raise InvalidConfig(
            f"{connector.slug} has no client for its issuer {found.issuer.issuer}",
            hint=f"dragoman connectors update {connector.slug} --oauth-client-credentials"
            " --oauth-client-id ID --oauth-client-secret-env VAR",
        )
    form = _client_form(found.resource, found.scopes)
    answer = await ask_tokens(reach, found.issuer.token_endpoint, form, client)
    return made_tokens(answer, found, client, server_of(connector.configuration, reach.environment))


def made_tokens(answer: Json, found: ResourceAuthorization, client: OAuthClient, server: str) -> OAuthTokens:
    now = datetime.now(UTC)
    scope = answer.get("scope")
    return OAuthTokens(
        access=access_in(answer),
        refresh=secret_in(answer, "refresh_token"),
        scope=scope if isinstance(scope, str) else " ".join(found.scopes) or None,
        server=server,
        resource=found.resource,
        issuer=found.issuer.issuer,
        client=client,
        token_endpoint=found.issuer.token_endpoint,
        revocation_endpoint=found.issuer.revocation_endpoint,
        obtained_at=now,
        expires_at=expiry_in(answer, now),
        authorised_at=now,
    )


async def revoke(reach: Reach, tokens: OAuthTokens) -> None:
    """Revokes tokens at the issuer (RFC 7009). A failure is ignored: they expire by themselves."""
    if tokens.revocation_endpoint is None:
        return
    token = tokens.refresh or tokens.access
    form = {"token": token.get_secret_value()}
    headers = tokens.client.sign(form)
    try:
        await send_form(reach, tokens.revocation_endpoint, form, headers)
    except DragomanError:
        return


def _client_form(resource: str | None, scopes: tuple[str, ...]) -> dict[str, str]:
    form = {"grant_type": "client_credentials"}
    if resource:
        form["resource"] = resource
    if scopes:
        form["scope"] = " ".join(scopes)
    return form


def _current(tokens: OAuthTokens, connector: Connector, secrets: Mapping[str, SecretStr]) -> OAuthClient:
    """A client that was given may have a new secret since."""
    client, secret = tokens.client, secrets.get(GIVEN_SECRET)
    if secret is None or client.id != connector.configuration.auth.client_id:
        return client
    method = client.method if client.method.startswith("client_secret") else "client_secret_basic"
    return client_with(client.id, secret, method, tokens.issuer)
