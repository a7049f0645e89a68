"""An authorisation by a person: a ticket for the page that asks, the way to the server, the way back.

State and verifier are single-use; the browser that begins must be the one that comes back. Knows no page.
"""

import json
from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from hmac import compare_digest
from secrets import token_urlsafe
from typing import Any

from pydantic import SecretStr
from yarl import URL

from dragoman.connections.oauth.authorizations import Authorizations
from dragoman.connections.oauth.clients import (
    OAuthClient,
    document_address,
    given_client,
    register,
    registered_client,
    registration_name,
)
from dragoman.connections.oauth.grants import made_tokens
from dragoman.connections.oauth.metadata import (
    AuthorizationServer,
    ResourceAuthorization,
    discover,
    server_of,
)
from dragoman.connections.oauth.oauth_bearer import Holder
from dragoman.connections.oauth.tokens import OAuthTokens, TokenRefused, ask_tokens
from dragoman.connector import Connector
from dragoman.errors import CallerFault, InvalidConfig, KeyFault, NeedsAuth
from dragoman.store.protocols import ConnectorStore
from dragoman.store.records import AuthorizationFlow
from dragoman.vault import Vault

_LASTS = timedelta(minutes=10)
_TICKET, _FLOW = "oauth ticket", "oauth flow"
_AGAIN = "begin again: dragoman credentials authorize"


@dataclass(frozen=True, slots=True, kw_only=True)
class AuthorizationTicket:
    """Who wants to connect which connector at which issuer. Sealed, so that nobody can make one up."""

    workspace: str
    user: str
    connector_id: str
    slug: str
    issuer: str
    address: str
    expires_at: float

    @property
    def holder(self) -> Holder:
        return self.workspace, self.user


@dataclass(frozen=True, slots=True)
class StartedAuthorization:
    """Where the browser goes now, and the cookie that it must bring back."""

    url: str
    cookie: str
    value: str = ""
    path: str = "/"
    is_secure: bool = False


@dataclass(frozen=True, slots=True)
class AuthorizationCallback:
    """What the browser brought back."""

    state: str
    code: str | None
    issuer: str | None
    error: str | None
    cookies: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class PendingAuthorization:
    """A flow that came back to where it began: the person may have what the server gives for `code`."""

    connector_id: str
    holder: Holder
    found: ResourceAuthorization
    client: OAuthClient
    server: str
    redirect: str
    verifier: str


class AuthorizationFlows:
    def __init__(
        self, rows: ConnectorStore, vault: Vault, authorizations: Authorizations, public_url: str | None
    ) -> None:
        self._rows = rows
        self._vault = vault
        self._authorizations = authorizations
        self._public_url = public_url

    async def ticket(self, connector: Connector, holder: Holder, address: str) -> tuple[str, datetime]:
        """Looks up who authorises first: what cannot work is said here, not to a browser."""
        found = await self._discovered(connector, holder)
        until = datetime.now(UTC) + _LASTS
        ticket = AuthorizationTicket(
            workspace=holder[0],
            user=holder[1],
            connector_id=connector.id,
            slug=connector.slug,
            issuer=found.issuer.issuer,
            address=address,
            expires_at=until.timestamp(),
        )
        sealed = self._vault.seal_bytes(json.dumps(asdict(ticket)).encode(), _TICKET)
        return urlsafe_b64encode(sealed).decode().rstrip("="), until

    def read(self, text: str) -> AuthorizationTicket:
        """`CallerFault` for a ticket that is not ours or too old."""
        try:
            sealed = urlsafe_b64decode(text + "=" * (-len(text) % 4))
            ticket = AuthorizationTicket(**json.loads(self._vault.open_bytes(sealed, _TICKET)))
        except (ValueError, TypeError, KeyFault):
            raise CallerFault("this link is not valid", hint=_AGAIN) from None
        if ticket.expires_at < datetime.now(UTC).timestamp():
            raise CallerFault("this link has expired", hint=_AGAIN)
        return ticket

    async def begin(self, connector: Connector, ticket: AuthorizationTicket) -> StartedAuthorization:
        found = await self._discovered(connector, ticket.holder)
        if found.issuer.issuer != ticket.issuer:
            raise CallerFault("the server names another issuer than a moment ago", hint=_AGAIN)
        redirect = f"{ticket.address}/oauth/callback"
        client = await self._client(connector, found, redirect)
        state, verifier, cookie = token_urlsafe(32), token_urlsafe(48), token_urlsafe(32)
        reach = self._authorizations.reach(connector)
        facts = {
            "issuer": found.issuer.model_dump(mode="json"),
            "resource": found.resource,
            "scopes": list(found.scopes),
            "client": client.as_table(),
            "server": server_of(connector.configuration, reach.environment),
            "redirect": redirect,
            "verifier": verifier,
            "cookie": _hash(cookie),
        }
        await self._rows.put_flow(
            AuthorizationFlow(
                state_hash=_hash(state),
                workspace=ticket.workspace,
                user=ticket.user,
                connector_id=connector.id,
                sealed=self._vault.seal_bytes(
                    json.dumps(facts).encode(), _FLOW, _hash(state), *ticket.holder
                ),
                expires_at=datetime.now(UTC) + _LASTS,
            )
        )
        back = URL(redirect)
        return StartedAuthorization(
            _authorization_url(found, client, redirect, state, verifier),
            cookie_name(state),
            cookie,
            back.path,
            back.scheme == "https",
        )

    async def returned(self, callback: AuthorizationCallback) -> PendingAuthorization:
        """Takes the flow: whatever is wrong with this callback, there is no second one for the same state."""
        flow = await self._rows.take_flow(_hash(callback.state), datetime.now(UTC))
        if flow is None:
            raise CallerFault("this authorisation is unknown, over, or was used already", hint=_AGAIN)
        facts: dict[str, Any] = json.loads(
            self._vault.open_bytes(flow.sealed, _FLOW, flow.state_hash, flow.workspace, flow.user)
        )
        cookie = callback.cookies.get(cookie_name(callback.state), "")
        if not compare_digest(_hash(cookie), facts["cookie"]):
            raise CallerFault("this browser did not begin the authorisation", hint=_AGAIN)
        issuer = AuthorizationServer.model_validate(facts["issuer"])
        is_silent = callback.issuer is None and not issuer.authorization_response_iss_parameter_supported
        if not is_silent and callback.issuer != issuer.issuer:
            raise CallerFault("the answer comes from another issuer than was asked", hint=_AGAIN)
        if callback.error is not None or not callback.code:
            said = (callback.error or "no code came back")[:200]
            raise NeedsAuth(f"{issuer.issuer} did not authorise: {said}", hint=_AGAIN)
        return PendingAuthorization(
            connector_id=flow.connector_id,
            holder=(flow.workspace, flow.user),
            found=ResourceAuthorization(issuer, facts["resource"], tuple(facts["scopes"])),
            client=OAuthClient.from_table(facts["client"]),
            server=facts["server"],
            redirect=facts["redirect"],
            verifier=facts["verifier"],
        )

    async def redeem(self, connector: Connector, pending: PendingAuthorization, code: str) -> OAuthTokens:
        """The code for tokens, kept before they are used."""
        reach = self._authorizations.reach(connector)
        if pending.server != server_of(connector.configuration, reach.environment):
            raise CallerFault("the connector was changed meanwhile", hint=_AGAIN)
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": pending.redirect,
            "code_verifier": pending.verifier,
        }
        if pending.found.resource:
            form["resource"] = pending.found.resource
        try:
            answer = await ask_tokens(reach, pending.found.issuer.token_endpoint, form, pending.client)
        except TokenRefused as refusal:
            raise NeedsAuth(
                f"{pending.found.issuer.issuer} gave no token: {refusal.said}", hint=_AGAIN
            ) from None
        tokens = made_tokens(answer, pending.found, pending.client, pending.server)
        await self._authorizations.replace(connector, pending.holder, tokens)
        return tokens

    # Parts

    async def _discovered(self, connector: Connector, holder: Holder) -> ResourceAuthorization:
        found = await discover(self._authorizations.reach(connector), connector)
        known = await self._authorizations.find(connector, holder)
        if known is not None and known.issuer == found.issuer.issuer:
            found = replace(found, scopes=known.asked_for(found.scopes))
        issuer = found.issuer
        if issuer.authorization_endpoint is None:
            raise InvalidConfig(f"{issuer.issuer} does not say where a person authorises")
        if "S256" not in issuer.code_challenge_methods_supported:
            raise InvalidConfig(
                f"{issuer.issuer} does not say that it checks PKCE with S256, so its codes could be stolen",
                hint="ask who runs it to turn PKCE on",
            )
        return found

    async def _client(self, connector: Connector, found: ResourceAuthorization, redirect: str) -> OAuthClient:
        """The one that was given, our document, the one registered before, or a new one: in this order."""
        shared: Holder = (connector.workspace, "")
        secrets = await self._authorizations.secrets(connector, shared)
        if given := given_client(connector.configuration.auth, found.issuer, secrets):
            return given
        public = self._public_url
        if public and public.startswith("https://") and found.issuer.client_id_metadata_document_supported:
            return OAuthClient(id=document_address(public))
        if known := registered_client(found.issuer, secrets, redirect):
            return known
        async with self._authorizations.turns.turn(connector.workspace, f"oauth-client:{connector.id}"):
            secrets = await self._authorizations.secrets(connector, shared)
            if known := registered_client(found.issuer, secrets, redirect):
                return known
            client = await register(self._authorizations.reach(connector), found, redirect)
            name = registration_name(found.issuer.issuer)
            await self._vault.put(connector, shared, {name: SecretStr(json.dumps(client.as_table()))})
            return client


def cookie_name(state: str) -> str:
    """One for each flow, so that several may be under way in one browser."""
    return f"dragoman_oauth_{_hash(state)[:16]}"


def _authorization_url(
    found: ResourceAuthorization, client: OAuthClient, redirect: str, state: str, verifier: str
) -> str:
    digest = urlsafe_b64encode(sha256(verifier.encode()).digest()).decode().rstrip("=")
    query = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect,
        "state": state,
        "code_challenge": digest,
        "code_challenge_method": "S256",
    }
    if found.resource:
        query["resource"] = found.resource
    if found.scopes:
        query["scope"] = " ".join(found.scopes)
        if "offline_access" in found.scopes:
            query["prompt"] = "consent"
    return str(URL(found.issuer.authorization_endpoint or "").update_query(query))


def _hash(word: str) -> str:
    return sha256(word.encode()).hexdigest()
