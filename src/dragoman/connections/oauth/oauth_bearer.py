"""The bearer of one holder at one connector: gives the header, renews the token once for all who wait.

Nothing here is locked on the way of a call. A renewal runs as a task of its own, so that a call which gives
up does not lose a token that the server has already given.
"""

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from typing import Protocol

from pydantic import SecretStr

from dragoman.connections.bearer import INSUFFICIENT_SCOPE
from dragoman.connections.http_clients import Reach
from dragoman.connections.missing_credentials import credential_hint
from dragoman.connections.oauth.grants import granted_by_client, renewed_by_refresh
from dragoman.connections.oauth.metadata import challenge_of, is_scope, server_of
from dragoman.connections.oauth.tokens import OAuthTokens, TokenRefused
from dragoman.connections.wire_faults import WireFault
from dragoman.connector import Connector
from dragoman.errors import DragomanError
from dragoman.store.shared_lock import SharedLock
from dragoman.telemetry.logs import get_logger

SECRET = "oauth"  # noqa: S105 - the name of a secret
_PAUSE = 10.0  # after a failure, while the old token still serves
_AGAIN = 30.0  # a token that is refused right after a renewal will be refused after the next one too

Holder = tuple[str, str]


class TokenStorage(Protocol):
    """Where tokens are kept."""

    @property
    def turns(self) -> SharedLock: ...

    def reach(self, connector: Connector) -> Reach: ...

    async def secrets(self, connector: Connector, holder: Holder) -> Mapping[str, SecretStr]: ...

    async def keep(self, connector: Connector, holder: Holder, tokens: OAuthTokens) -> None: ...

    async def drop(self, connector: Connector, holder: Holder) -> None: ...

    async def drop_registration(self, connector: Connector, issuer: str) -> None: ...

    def start(self, renewal: "OAuthBearer") -> asyncio.Task[WireFault | None]: ...


class OAuthBearer:
    """Fills `Bearer`. Shared by all connections of its holder."""

    def __init__(self, connector: Connector, holder: Holder, keeping: TokenStorage) -> None:
        self.connector = connector
        self.holder = holder
        self._keeping = keeping
        self._by_person = connector.configuration.auth.flow == "code"
        self._tokens: OAuthTokens | None = None
        self._headers: Mapping[str, str] = {}
        self._unsaved: OAuthTokens | None = None
        self._renewal: asyncio.Task[WireFault | None] | None = None
        self._next_try = self._next_forced = 0.0

    async def headers(self) -> Mapping[str, str]:
        tokens = self._tokens or await self._read()
        now = datetime.now(UTC)
        if tokens is not None and not tokens.is_due(now):
            return self._headers
        if tokens is not None and tokens.is_valid(now):
            if self._can_renew(tokens) and _clock() >= self._next_try:
                self._begin()  # whoever calls meanwhile uses what is still valid
            return self._headers
        if tokens is None and self._by_person:
            raise self._unauthorised("you have not authorised it yet")
        if tokens is not None and not self._can_renew(tokens):
            raise self._unauthorised("the authorisation has expired")
        if (fault := await asyncio.shield(self._begin())) is not None:
            raise fault.again()
        return self._headers

    async def rejected(self, headers: Mapping[str, str], challenges: Sequence[str] = ()) -> bool:
        challenge = challenge_of(challenges)
        if challenge.error == INSUFFICIENT_SCOPE:
            return await self._step_up(headers, challenge.scopes)
        if self._renewal is None and (self._tokens is None or not self._can_renew(self._tokens)):
            return False
        return await self._renewed_since(headers)

    async def _step_up(self, headers: Mapping[str, str], scopes: Sequence[str]) -> bool:
        """The server wants more than was authorised. A client asks for it at once, a person the next time.

        Never more than the connector says it may ask for; `WireFault` says what is missing.
        """
        tokens = self._tokens
        missing = tuple(one for one in scopes if tokens is not None and one not in tokens.granted)
        if tokens is None or not missing or any(not is_scope(one) for one in missing):
            return False
        named = " ".join(missing)
        allowed = self.connector.configuration.auth.scopes
        if allowed and not set(missing) <= set(allowed):
            hint = (
                f"if it may have that: dragoman connectors update {self.connector.slug} --oauth-scope SCOPE"
            )
            raise WireFault("forbidden", f"the server wants the scope {named}", sent=False, hint=hint)
        if not set(missing) <= set(tokens.wanted):
            wanted = tuple(dict.fromkeys((*tokens.wanted, *missing)))
            async with self._keeping.turns.turn(self.holder[0], self._subject):
                kept = self._usable(await self._keeping.secrets(self.connector, self.holder)) or tokens
                await self._save(replace(kept, wanted=wanted))
        if self._by_person:
            raise self._unauthorised(f"the server wants more than you have authorised: {named}")
        return await self._renewed_since(headers)

    async def _renewed_since(self, headers: Mapping[str, str]) -> bool:
        """Whether there is another token than these headers have: a new one, but not too often."""
        if headers.get("Authorization") != self._headers.get("Authorization"):
            return True  # it was renewed while the request was under way
        if self._renewal is None:
            if _clock() < self._next_forced:
                return False
            self._next_forced = _clock() + _AGAIN
        return await asyncio.shield(self._begin()) is None

    def forget(self) -> None:
        """The next request reads what is kept by then."""
        self._tokens = self._unsaved = None
        self._headers = {}

    async def renew(self) -> WireFault | None:
        """What the task does: why it failed, or None. Never raises."""
        try:
            async with self._keeping.turns.turn(self.holder[0], self._subject):
                return await self._renew()
        except DragomanError as error:
            self._next_try = _clock() + _PAUSE
            return WireFault("refused", f"the token could not be renewed: {error.message}", sent=False)
        except Exception:  # noqa: BLE001
            # boundary: a fault of ours is the failure of those who wait, not of every other bearer
            get_logger().exception("oauth.renewal_failed", connector=self.connector.slug)
            return WireFault("server_error", "the token could not be renewed", sent=False)
        finally:
            self._renewal = None

    # Parts

    @property
    def _subject(self) -> str:
        return f"oauth:{self.connector.id}:{self.holder[1]}"

    def _can_renew(self, tokens: OAuthTokens) -> bool:
        return tokens.refresh is not None or not self._by_person

    def _begin(self) -> asyncio.Task[WireFault | None]:
        if self._renewal is None:
            self._renewal = self._keeping.start(self)
        return self._renewal

    async def _renew(self) -> WireFault | None:
        """In our turn. What another process has stored meanwhile is as good as a renewal of our own."""
        used = self._unsaved or self._tokens
        if self._unsaved is not None:
            await self._save(self._unsaved)
            return None
        secrets = await self._keeping.secrets(self.connector, self.holder)
        stored = self._usable(secrets)
        now = datetime.now(UTC)
        is_new = stored is not None and (used is None or _differ(stored, used))
        if stored is not None and is_new and not stored.is_due(now):
            self._adopt(stored)
            return None
        reach = self._keeping.reach(self.connector)
        try:
            if not self._by_person:
                fresh = await granted_by_client(reach, self.connector, secrets, stored)
            elif stored is None or stored.refresh is None:
                self.forget()
                return self._unauthorised("the authorisation has ended")
            else:
                fresh = await renewed_by_refresh(reach, self.connector, secrets, stored)
        except TokenRefused as refusal:
            return await self._refused(stored, refusal)
        self._unsaved = fresh  # a rotated refresh token exists once: it must survive a store that fails
        await self._save(fresh)
        return None

    async def _refused(self, stored: OAuthTokens | None, refusal: TokenRefused) -> WireFault:
        if stored is not None:
            await self._keeping.drop(self.connector, self.holder)
            if refusal.error == "invalid_client":
                await self._keeping.drop_registration(self.connector, stored.issuer)
        self.forget()
        return self._unauthorised(f"the authorisation server refused ({refusal.said})")

    async def _save(self, tokens: OAuthTokens) -> None:
        await self._keeping.keep(self.connector, self.holder, tokens)
        self._unsaved = None
        self._adopt(tokens)

    async def _read(self) -> OAuthTokens | None:
        tokens = self._usable(await self._keeping.secrets(self.connector, self.holder))
        if tokens is not None:
            self._adopt(tokens)
        return tokens

    def _usable(self, secrets: Mapping[str, SecretStr]) -> OAuthTokens | None:
        """What is kept, unless it was for another address than the connector has now."""
        if (kept := secrets.get(SECRET)) is None:
            return None
        tokens = OAuthTokens.opened(kept)
        environment = self._keeping.reach(self.connector).environment
        return tokens if tokens.server == server_of(self.connector.configuration, environment) else None

    def _adopt(self, tokens: OAuthTokens) -> None:
        self._tokens = tokens
        self._headers = {"Authorization": f"Bearer {tokens.access.get_secret_value()}"}

    def _unauthorised(self, why: str) -> WireFault:
        return WireFault("unauthorized", why, sent=False, hint=credential_hint(self.connector))


def _differ(one: OAuthTokens, other: OAuthTokens) -> bool:
    return one.access.get_secret_value() != other.access.get_secret_value()


def _clock() -> float:
    return asyncio.get_running_loop().time()
