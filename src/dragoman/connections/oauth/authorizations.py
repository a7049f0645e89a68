"""All bearers, by connector and holder, and the tasks in which they renew. Tokens are kept in the vault.

Whoever opens it closes it: renewals under way get a few seconds, since a rotated token exists only once.
"""

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import Self

from pydantic import SecretStr

from dragoman.connections.http_clients import HttpClients, Reach
from dragoman.connections.oauth.clients import registration_name
from dragoman.connections.oauth.grants import revoke
from dragoman.connections.oauth.oauth_bearer import SECRET, Holder, OAuthBearer
from dragoman.connections.oauth.tokens import OAuthTokens
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Connector
from dragoman.scope import holder_of
from dragoman.store import Store
from dragoman.store.shared_lock import SharedLock
from dragoman.vault import Vault

Note = Callable[[Iterable[SecretStr]], None]
_MOST = 10_000
_LAST_RENEWALS = 4.0


class Authorizations:
    """`note` is told every token before anybody can print it."""

    def __init__(self, vault: Vault, store: Store, clients: HttpClients, note: Note) -> None:
        self.turns = SharedLock(store.usage, store.clock)
        self._vault = vault
        self._clients = clients
        self._note = note
        self._bearers: dict[tuple[str, Holder], OAuthBearer] = {}
        self._renewals: set[asyncio.Task[WireFault | None]] = set()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        if self._renewals:
            await asyncio.wait(self._renewals, timeout=_LAST_RENEWALS)
        for task in self._renewals:
            task.cancel()
        await asyncio.gather(*self._renewals, return_exceptions=True)

    def bearer(self, connector: Connector, identity: str) -> OAuthBearer | None:
        """None for a connector whose credentials do not change by themselves."""
        auth = connector.configuration.auth
        if auth.kind != "oauth":
            return None
        holder = holder_of(identity) if auth.flow == "code" else (connector.workspace, "")
        key = (connector.id, holder)
        known = self._bearers.get(key)
        if known is None or known.connector.revision != connector.revision:
            if len(self._bearers) >= _MOST:
                self._bearers.clear()
            known = self._bearers[key] = OAuthBearer(connector, holder, self)
        return known

    def forget(self, connector: Connector, holder: Holder) -> None:
        """What this holder had is not to be used any more."""
        if bearer := self._bearers.pop((connector.id, holder), None):
            bearer.forget()

    def forget_all(self) -> None:
        """The next request of each reads what is kept by then."""
        for bearer in self._bearers.values():
            bearer.forget()
        self._bearers.clear()

    async def find(self, connector: Connector, holder: Holder) -> OAuthTokens | None:
        kept = (await self.secrets(connector, holder)).get(SECRET)
        return OAuthTokens.opened(kept) if kept else None

    async def replace(self, connector: Connector, holder: Holder, tokens: OAuthTokens) -> None:
        """In the place of whatever there was: no renewal of the old ones may come after."""
        async with self.turns.turn(holder[0], f"oauth:{connector.id}:{holder[1]}"):
            await self.keep(connector, holder, tokens)
        self.forget(connector, holder)

    async def remove(self, connector: Connector, holder: Holder) -> None:
        """Drops the tokens here, then tells the issuer."""
        async with self.turns.turn(holder[0], f"oauth:{connector.id}:{holder[1]}"):
            tokens = await self.find(connector, holder)
            await self._vault.put(connector, holder, {}, (SECRET,))
        self.forget(connector, holder)
        if tokens is not None:
            await revoke(self.reach(connector), tokens)

    # What bearers ask

    def reach(self, connector: Connector) -> Reach:
        return self._clients.for_connector(connector)

    async def secrets(self, connector: Connector, holder: Holder) -> Mapping[str, SecretStr]:
        secrets = await self._vault.reveal(connector, *holder)
        if kept := secrets.get(SECRET):
            self._note_tokens(OAuthTokens.opened(kept))
        return secrets

    async def keep(self, connector: Connector, holder: Holder, tokens: OAuthTokens) -> None:
        self._note_tokens(tokens)
        await self._vault.put(connector, holder, {SECRET: tokens.sealed_form()})

    async def drop(self, connector: Connector, holder: Holder) -> None:
        await self._vault.put(connector, holder, {}, (SECRET,))

    async def drop_registration(self, connector: Connector, issuer: str) -> None:
        """The issuer does not know our client any more: the next authorisation registers another."""
        await self._vault.put(connector, (connector.workspace, ""), {}, (registration_name(issuer),))

    def start(self, renewal: OAuthBearer) -> asyncio.Task[WireFault | None]:
        # A fault in it is told to whoever waits for its token, and to nobody else.
        task = asyncio.get_running_loop().create_task(
            renewal.renew(), name=f"renewal for {renewal.connector.slug}"
        )
        self._renewals.add(task)
        task.add_done_callback(self._renewals.discard)
        return task

    def _note_tokens(self, tokens: OAuthTokens) -> None:
        self._note(one for one in (tokens.access, tokens.refresh, tokens.client.secret) if one is not None)
