"""Credentials of a user for a connector, as people handle them: set, authorise, remove, rotate the key."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Literal

from pydantic import SecretStr

from dragoman.calls.audit import Auditor
from dragoman.connections.missing_credentials import credential_hint
from dragoman.connections.oauth import (
    AuthorizationCallback,
    AuthorizationFlows,
    Authorizations,
    AuthorizationTicket,
    StartedAuthorization,
)
from dragoman.connections.source import Sources
from dragoman.connector import Connector
from dragoman.errors import CallerFault, Denied, DragomanError, InvalidConfig
from dragoman.events import Event, Events
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.connectors import Connectors
from dragoman.scope import Caller
from dragoman.settings import Settings
from dragoman.store import Store
from dragoman.vault import Vault

CredentialState = Literal["ready", "missing", "expired", "refused"]
_LONGEST = 8 * 1024
_RELIST_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialView:
    """What one connector wants of one user and what of it is there. Never a value."""

    connector: str
    kind: str
    wanted: tuple[str, ...]
    present: tuple[str, ...]
    state: CredentialState
    hint: str | None = None
    issuer: str | None = None
    scope: str | None = None
    authorised_at: datetime | None = None
    expires_at: datetime | None = None


@dataclass(frozen=True, slots=True)
class AuthorizationLink:
    """Where a person goes to authorise, and until when."""

    url: str
    expires_at: datetime


@dataclass(frozen=True, slots=True)
class AuthorizationPrompt:
    """What the page says before anything happens."""

    user: str
    workspace: str
    connector: str
    server: str
    issuer: str


@dataclass(frozen=True, slots=True)
class KeyRotation:
    key_id: str
    is_new: bool
    resealed: int
    older: tuple[str, ...]
    forgotten: tuple[str, ...] = ()


class Credentials:
    """Every method acts for `caller`, by default the hub's own. Nobody reads a secret back."""

    def __init__(
        self,
        *,
        caller: Caller,
        settings: Settings,
        store: Store,
        vault: Vault,
        registry: ConnectorRegistry,
        connectors: Connectors,
        sources: Sources,
        auditor: Auditor,
        events: Events,
        authorizations: Authorizations,
    ) -> None:
        self._caller = caller
        self._settings = settings
        self._store = store
        self._vault = vault
        self._registry = registry
        self._connectors = connectors
        self._sources = sources
        self._auditor = auditor
        self._events = events
        self._authorizations = authorizations
        self._public_url = settings.public_url.rstrip("/") if settings.public_url else None
        self._flows = AuthorizationFlows(store.connectors, vault, authorizations, self._public_url)

    @property
    def public_url(self) -> str | None:
        return self._public_url

    async def list(self, caller: Caller | None = None) -> Sequence[CredentialView]:
        """Of every visible connector that wants something of the caller."""
        caller = caller or self._caller
        names = await self._store.connectors.secret_names(caller.workspace, caller.user)
        return [
            await self._view(connector, caller, names.get(connector.id, frozenset()))
            for connector in self._registry.list(caller)
            if connector.configuration.personal_secrets or names.get(connector.id)
        ]

    async def get(self, name: str, caller: Caller | None = None) -> CredentialView:
        caller = caller or self._caller
        connector = self._registry.get(name, caller)
        names = await self._store.connectors.secret_names(caller.workspace, caller.user)
        return await self._view(connector, caller, names.get(connector.id, frozenset()))

    async def set(
        self, name: str, values: Mapping[str, SecretStr], caller: Caller | None = None
    ) -> CredentialView:
        """Keeps what the caller brings. A connector of their own gets it in the place of what it had."""
        caller = caller or self._caller
        connector = self._registry.get(name, caller)
        _check_values(values)
        if _takes(connector, values):
            await self._vault.put(connector, (caller.workspace, caller.user), values)
            await self._changed(connector, caller, "credential.set", values)
        elif connector.owner == caller.user and _knows(connector, values):
            plain = {one: value.get_secret_value() for one, value in values.items()}
            await self._connectors.update(connector.slug, caller=caller, secrets=plain)
            await self._tell(connector, caller, "credential.set", values)
        else:
            raise _refusal(connector)
        return await self.get(connector.slug, caller)

    async def remove(self, name: str, caller: Caller | None = None) -> None:
        """Drops all that the caller brought, closes their connection and nobody else's."""
        caller = caller or self._caller
        connector, holder = self._registry.get(name, caller), (caller.workspace, caller.user)
        names = (await self._store.connectors.secret_names(*holder)).get(connector.id, frozenset())
        if "oauth" in names:
            await self._authorizations.remove(connector, holder)
        await self._vault.put(connector, holder, {}, sorted(names - {"oauth"}))
        await self._changed(connector, caller, "credential.removed", names)

    # Authorisation by a person

    async def authorize(
        self, name: str, caller: Caller | None = None, *, address: str | None = None
    ) -> AuthorizationLink:
        """The page that begins it. `address` is how browsers reach this service, unless a setting says so."""
        caller = caller or self._caller
        connector = self._registry.get(name, caller)
        auth = connector.configuration.auth
        if auth.kind != "oauth" or auth.flow != "code":
            raise _refusal(connector)
        address = self._public_url or address
        if address is None:
            raise InvalidConfig(
                "an authorisation comes back to a running service, and there is none",
                hint="start it: dragoman serve; or say how browsers reach it: DRAGOMAN_PUBLIC_URL",
            )
        ticket, until = await self._flows.ticket(connector, (caller.workspace, caller.user), address)
        return AuthorizationLink(f"{address}/oauth/start?ticket={ticket}", until)

    async def asked(self, ticket: str) -> AuthorizationPrompt:
        """For the page: who is about to connect what. Names of people, not ids."""
        read = self._flows.read(ticket)
        connector = await self._connector_of(read.connector_id, read.workspace, read.user)
        user = await self._store.people.find_user(read.workspace, read.user)
        workspace = await self._store.people.find_workspace(read.workspace)
        configuration = connector.configuration
        return AuthorizationPrompt(
            user.name if user else read.user,
            workspace.name if workspace else read.workspace,
            connector.slug,
            configuration.url or configuration.server or configuration.openapi or "",
            read.issuer,
        )

    async def begin(self, ticket: str) -> StartedAuthorization:
        read: AuthorizationTicket = self._flows.read(ticket)
        connector = await self._connector_of(read.connector_id, read.workspace, read.user)
        return await self._flows.begin(connector, read)

    async def finish(self, callback: AuthorizationCallback) -> str:
        """Takes what the browser brought back; returns the connector that is authorised now."""
        pending = await self._flows.returned(callback)
        workspace, user = pending.holder
        connector = await self._connector_of(pending.connector_id, workspace, user)
        await self._flows.redeem(connector, pending, callback.code or "")
        await self._changed(connector, Caller(workspace, user), "credential.authorised", ("oauth",))
        return connector.slug

    # The key

    async def rotate(self, caller: Caller | None = None, *, forget_old: bool = False) -> KeyRotation:
        """A new master key, and every secret sealed with it. One that was interrupted is only finished."""
        caller = caller or self._caller
        if caller.role != "operator":
            raise Denied("only who runs this installation replaces its master key")
        if forget_old:
            forgotten = await self._vault.forget_older_keys()
            current, *older = self._vault.key_ids
            await self._auditor.done(caller, "key.forgotten", current, details={"keys": [*forgotten]})
            return KeyRotation(current, False, 0, tuple(older), forgotten)
        is_new = not await self._vault.needs_resealing()
        if is_new:
            self._vault.replace_key()
        count = await self._vault.reseal()
        current, *older = self._vault.key_ids
        await self._auditor.done(caller, "key.rotated", current, details={"resealed": count})
        return KeyRotation(current, is_new, count, tuple(older))

    # Parts

    async def _view(self, connector: Connector, caller: Caller, names: frozenset[str]) -> CredentialView:
        wanted = connector.configuration.personal_secrets
        tokens = None
        if "oauth" in names:
            tokens = await self._authorizations.find(connector, (caller.workspace, caller.user))
        state: CredentialState = "ready"
        if not names.issuperset(wanted):
            state = "missing"
        elif tokens and tokens.refresh is None and not tokens.is_valid(datetime.now(UTC)):
            state = "expired"
        elif self._sources.status(connector, caller).state == "needs_auth":
            state = "refused"
        missing = tuple(name for name in wanted if name not in names)
        return CredentialView(
            connector=connector.slug,
            kind=connector.configuration.auth.kind,
            wanted=wanted,
            present=tuple(sorted(names)),
            state=state,
            hint=None if state == "ready" else credential_hint(connector, missing),
            issuer=tokens.issuer if tokens else connector.configuration.auth.issuer,
            scope=tokens.scope if tokens else None,
            authorised_at=tokens.authorised_at if tokens else None,
            expires_at=tokens.expires_at if tokens else None,
        )

    async def _changed(self, connector: Connector, caller: Caller, action: str, names: Iterable[str]) -> None:
        """The caller's own connection is opened anew with what is there now; nobody else's is touched."""
        if connector.configuration.isolation == "thread":
            await self._sources.part_with(caller.workspace, caller.user)  # each thread has one of its own
        else:
            await self._sources.disconnect(connector, caller)
        await self._tell(connector, caller, action, names)
        if connector.enabled:
            with suppress(DragomanError, TimeoutError):  # its state says why
                async with asyncio.timeout(_RELIST_LIMIT):
                    await self._connectors.relist(connector, caller)

    async def _tell(self, connector: Connector, caller: Caller, action: str, names: Iterable[str]) -> None:
        facts = {"names": sorted(names)}
        await self._auditor.done(caller, action, connector.slug, details=facts)
        self._events.publish(
            Event(
                kind="credential.changed",
                workspace=caller.workspace,
                user=caller.user,
                connector=connector.slug,
                data={"action": action.partition(".")[2], **facts},
            )
        )

    async def _connector_of(self, connector_id: str, workspace: str, user: str) -> Connector:
        """As the person of a ticket or flow sees it now: they or it may be gone meanwhile."""
        person = await self._store.people.find_user(workspace, user)
        is_gone = person is None and self._settings.multi_user
        if is_gone or (person is not None and not person.is_active):
            raise CallerFault("this user does not exist any more")
        for connector in self._registry.list(Caller(workspace, user)):
            if connector.id == connector_id:
                return connector
        raise CallerFault("this connector does not exist any more")


def _takes(connector: Connector, values: Mapping[str, SecretStr]) -> bool:
    return set(values) <= set(connector.configuration.personal)


def _knows(connector: Connector, values: Mapping[str, SecretStr]) -> bool:
    configuration = connector.configuration
    known = {*configuration.secrets}
    if configuration.auth.kind not in ("none", "oauth"):
        known.add("auth")
    return set(values) <= known


def _refusal(connector: Connector) -> InvalidConfig:
    """What the connector takes, for whoever brought something else."""
    configuration = connector.configuration
    if configuration.personal_secrets == ("oauth",):
        return InvalidConfig(
            f"{connector.slug} takes an authorisation, not a value",
            hint=f"dragoman credentials authorize {connector.slug}",
        )
    if not configuration.personal_secrets:
        return InvalidConfig(
            f"{connector.slug} takes no credential of its users",
            hint=f"whoever manages it can: dragoman connectors update {connector.slug} --personal auth",
        )
    taken = " and ".join(configuration.personal_secrets)
    return InvalidConfig(f"{connector.slug} takes {taken} of its users", hint=credential_hint(connector))


def _check_values(values: Mapping[str, SecretStr]) -> None:
    if not values:
        raise InvalidConfig("give at least one value")
    for name, value in values.items():
        text = value.get_secret_value()
        if not text or len(text) > _LONGEST:
            raise InvalidConfig(f"the value of {name[:80]} is empty, or longer than {_LONGEST:,} characters")
        is_header = not name.startswith("env:")
        if "\0" in text or (is_header and any(ord(letter) < 32 or ord(letter) == 127 for letter in text)):
            raise InvalidConfig(f"the value of {name[:80]} holds characters that cannot be sent")
