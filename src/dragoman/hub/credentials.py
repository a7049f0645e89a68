"""Credentials of a user for a connector, as people handle them: set, authorise, remove, rotate the key."""

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal

from pydantic import SecretStr

from dragoman.connections.missing_credentials import credential_hint
from dragoman.connections.oauth import AuthorizationCallback, AuthorizationTicket, StartedAuthorization
from dragoman.connector import Connector
from dragoman.errors import CallerFault, Denied, DragomanError, InvalidConfig
from dragoman.events import Event
from dragoman.hints import Hinted
from dragoman.hub.bound import BoundService
from dragoman.hub.connectors import Connectors
from dragoman.scope import Caller

CredentialState = Literal["ready", "missing", "expired", "refused"]
_LONGEST = 8 * 1024
_RELIST_LIMIT = 10.0


@dataclass(frozen=True, slots=True, kw_only=True)
class CredentialView(Hinted):
    """What one connector wants of one user and what of it is there. Never a value."""

    connector: str
    kind: str
    wanted: tuple[str, ...]
    present: tuple[str, ...]
    state: CredentialState
    command_hint: str | None = None
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
    """What came of a new master key: `older` ones may still be needed by backups."""

    key_id: str
    is_new: bool
    resealed: int
    older: tuple[str, ...]
    forgotten: tuple[str, ...] = ()


class Credentials(BoundService):
    """The caller's own. Nobody reads a secret back."""

    __slots__ = ()

    @property
    def public_url(self) -> str | None:
        """The address by which browsers reach this service; None when nobody can."""
        return self._runtime.public_url

    async def list(self) -> Sequence[CredentialView]:
        """Of every visible connector that wants something of the caller."""
        caller = self._caller
        names = await self._runtime.store.connectors.secret_names(caller.workspace, caller.user)
        return [
            await self._view(connector, names.get(connector.id, frozenset()))
            for connector in self._runtime.registry.list(caller)
            if connector.configuration.personal_secrets or names.get(connector.id)
        ]

    async def get(self, name: str) -> CredentialView:
        """What one connector wants of the caller, and what it has."""
        caller = self._caller
        connector = self._runtime.registry.get(name, caller)
        names = await self._runtime.store.connectors.secret_names(caller.workspace, caller.user)
        return await self._view(connector, names.get(connector.id, frozenset()))

    async def set(self, name: str, values: Mapping[str, SecretStr]) -> CredentialView:
        """Keeps what the caller brings. A connector of their own gets it in the place of what it had."""
        caller = self._caller
        connector = self._runtime.registry.get(name, caller)
        _check_values(values)
        if _takes(connector, values):
            await self._runtime.vault.put(connector, (caller.workspace, caller.user), values)
            await self._changed(connector, caller, "credential.set", values)
        elif connector.owner == caller.user and _knows(connector, values):
            # Values of secrets by their names: nobody gives them so but this and a file.
            plain: Any = {"secrets": {one: value.get_secret_value() for one, value in values.items()}}
            await Connectors(self._runtime, caller).update(connector.slug, **plain)
            await self._tell(connector, caller, "credential.set", values)
        else:
            raise _refusal(connector)
        return await self.get(connector.slug)

    async def remove(self, name: str) -> None:
        """Drops all that the caller brought, closes their connection and nobody else's."""
        caller = self._caller
        connector, holder = self._runtime.registry.get(name, caller), (caller.workspace, caller.user)
        names = (await self._runtime.store.connectors.secret_names(*holder)).get(connector.id, frozenset())
        if "oauth" in names:
            await self._runtime.authorizations.remove(connector, holder)
        await self._runtime.vault.put(connector, holder, {}, sorted(names - {"oauth"}))
        await self._changed(connector, caller, "credential.removed", names)

    # Authorisation by a person

    async def authorize(self, name: str, *, address: str | None = None) -> AuthorizationLink:
        """The page that begins it. `address` is how browsers reach this service, unless a setting says so."""
        caller = self._caller
        connector = self._runtime.registry.get(name, caller)
        auth = connector.configuration.auth
        if auth.kind != "oauth" or auth.flow != "code":
            raise _refusal(connector)
        address = self._runtime.public_url or address
        if address is None:
            raise InvalidConfig(
                "an authorisation comes back to a running service, and there is none",
                hint="dragoman serve, or say how browsers reach it: DRAGOMAN_PUBLIC_URL",
            )
        ticket, until = await self._runtime.flows.ticket(connector, (caller.workspace, caller.user), address)
        return AuthorizationLink(f"{address}/oauth/start?ticket={ticket}", until)

    async def asked(self, ticket: str) -> AuthorizationPrompt:
        """For the page: who is about to connect what. Names of people, not ids."""
        read = self._runtime.flows.read(ticket)
        connector = await self._connector_of(read.connector_id, read.workspace, read.user)
        user = await self._runtime.store.people.find_user(read.workspace, read.user)
        workspace = await self._runtime.store.people.find_workspace(read.workspace)
        configuration = connector.configuration
        return AuthorizationPrompt(
            user.name if user else read.user,
            workspace.name if workspace else read.workspace,
            connector.slug,
            configuration.url or configuration.server or configuration.openapi or "",
            read.issuer,
        )

    async def begin(self, ticket: str) -> StartedAuthorization:
        """What a browser is sent to, once the person has agreed on the page of the ticket."""
        read: AuthorizationTicket = self._runtime.flows.read(ticket)
        connector = await self._connector_of(read.connector_id, read.workspace, read.user)
        return await self._runtime.flows.begin(connector, read)

    async def finish(self, callback: AuthorizationCallback) -> str:
        """Takes what the browser brought back; returns the connector that is authorised now."""
        pending = await self._runtime.flows.returned(callback)
        workspace, user = pending.holder
        connector = await self._connector_of(pending.connector_id, workspace, user)
        await self._runtime.flows.redeem(connector, pending, callback.code or "")
        await self._changed(connector, Caller(workspace, user), "credential.authorised", ("oauth",))
        return connector.slug

    # The key

    async def rotate(self, *, forget_old: bool = False) -> KeyRotation:
        """A new master key, and every secret sealed with it. One that was interrupted is only finished."""
        caller = self._caller
        if caller.role != "operator":
            raise Denied("only who runs this installation replaces its master key")
        if forget_old:
            forgotten = await self._runtime.vault.forget_older_keys()
            current, *older = self._runtime.vault.key_ids
            await self._runtime.auditor.done(caller, "key.forgotten", current, details={"keys": [*forgotten]})
            return KeyRotation(current, False, 0, tuple(older), forgotten)
        is_new = not await self._runtime.vault.needs_resealing()
        if is_new:
            self._runtime.vault.replace_key()
        count = await self._runtime.vault.reseal()
        current, *older = self._runtime.vault.key_ids
        await self._runtime.auditor.done(caller, "key.rotated", current, details={"resealed": count})
        return KeyRotation(current, is_new, count, tuple(older))

    # Parts

    async def _view(self, connector: Connector, names: frozenset[str]) -> CredentialView:
        caller = self._caller
        wanted = connector.configuration.personal_secrets
        tokens = None
        if "oauth" in names:
            tokens = await self._runtime.authorizations.find(connector, (caller.workspace, caller.user))
        state: CredentialState = "ready"
        if not names.issuperset(wanted):
            state = "missing"
        elif tokens and tokens.refresh is None and not tokens.is_valid(datetime.now(UTC)):
            state = "expired"
        elif self._runtime.sources[connector.kind].status(connector, caller).state == "needs_auth":
            state = "refused"
        missing = tuple(name for name in wanted if name not in names)
        return CredentialView(
            connector=connector.slug,
            kind=connector.configuration.auth.kind,
            wanted=wanted,
            present=tuple(sorted(names)),
            state=state,
            command_hint=None if state == "ready" else credential_hint(connector, missing),
            issuer=tokens.issuer if tokens else connector.configuration.auth.issuer,
            scope=tokens.scope if tokens else None,
            authorised_at=tokens.authorised_at if tokens else None,
            expires_at=tokens.expires_at if tokens else None,
        )

    async def _changed(self, connector: Connector, caller: Caller, action: str, names: Iterable[str]) -> None:
        """The caller's own connection is opened anew with what is there now; nobody else's is touched."""
        source = self._runtime.sources[connector.kind]
        if connector.configuration.isolation == "thread":
            await source.close_for_user(caller.workspace, caller.user)  # each thread has one of its own
        else:
            await source.disconnect(connector, caller)
        await self._tell(connector, caller, action, names)
        if connector.enabled:
            with suppress(DragomanError, TimeoutError):  # its state says why
                async with asyncio.timeout(_RELIST_LIMIT):
                    await self._runtime.lists.relist(connector, caller)

    async def _tell(self, connector: Connector, caller: Caller, action: str, names: Iterable[str]) -> None:
        facts = {"names": sorted(names)}
        await self._runtime.auditor.done(caller, action, connector.slug, details=facts)
        self._runtime.events.publish(
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
        person = await self._runtime.store.people.find_user(workspace, user)
        is_gone = person is None and self._runtime.settings.multi_user
        if is_gone or (person is not None and not person.is_active):
            raise CallerFault("this user does not exist any more")
        for connector in self._runtime.registry.list(Caller(workspace, user)):
            if connector.id == connector_id:
                return connector
        raise CallerFault("this connector does not exist any more")


def _takes(connector: Connector, values: Mapping[str, SecretStr]) -> bool:
    return set(values) <= set(connector.configuration.personal)


def _knows(connector: Connector, values: Mapping[str, SecretStr]) -> bool:
    configuration = connector.configuration
    known = {*configuration.secrets, *configuration.wanted_secrets}
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
