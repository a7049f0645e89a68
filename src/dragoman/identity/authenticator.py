"""Authentication: an API key, an access token of ours, or one of the outside issuer becomes a caller.

`open_authenticator` owns the session to the issuer and the task that writes down when keys were used.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from dragoman.background_tasks import Supervisor
from dragoman.errors import DragomanError, Unauthenticated
from dragoman.identity.access_tokens import AccessTokens, TokenKeys
from dragoman.identity.authenticated import AuthenticatedCaller as AuthenticatedCaller
from dragoman.identity.authenticated import admitted
from dragoman.identity.directory import Directory
from dragoman.identity.issuer import Issuer, SigningKeys
from dragoman.identity.keys import ApiKeyVerifier
from dragoman.people import ApiKey, User
from dragoman.store.protocols import PeopleStore
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    from dragoman.identity.sign_in import SignIn
    from dragoman.identity.tokens import OnUserChanged, TokenVerifier

WRITE_EVERY = 5.0

log = get_logger()


class Authenticator:
    """Made by `open_authenticator`, which also ends it."""

    def __init__(
        self,
        directory: Directory,
        keys: ApiKeyVerifier,
        tokens: "TokenVerifier | None",
        sign_in: "SignIn | None" = None,
        access_tokens: AccessTokens | None = None,
    ) -> None:
        self._directory = directory
        self._keys = keys
        self._tokens = tokens
        self.access_tokens = access_tokens
        self.sign_in = sign_in

    async def admit(
        self, token: str, *, audience: str = "", is_under_way: bool = False
    ) -> AuthenticatedCaller:
        """`Unauthenticated`, with the same words whatever the reason, for what opens nothing.

        A token that is for one address opens no other than that `audience`. `is_under_way`: asked again for
        a request that it has opened before.
        """
        admission = await self._keys.find(token)
        if admission is None and token.count(".") == 2:
            if self.access_tokens is not None:
                admission = await self.access_tokens.find(token, is_under_way=is_under_way)
            if admission is None and self._tokens is not None:
                admission = await self._tokens.find(token)
        if admission is None or admission.audience not in (None, audience):
            raise unauthenticated()
        return admission

    async def admit_again(self, workspace: str, user: str) -> AuthenticatedCaller:
        """Somebody who signed in before, as they are now; `Unauthenticated` once they are shut out."""
        person = await self._directory.find(workspace, user)
        if person is None or not person.user.is_active:
            raise unauthenticated()
        return admitted(person)

    async def get_key(self, key_id: str) -> ApiKey | None:
        """A key, or what a client was allowed, as it is now: whether or not it opens anything."""
        return await self._keys.get(key_id)

    def forget(self, workspace: str, user: str | None = None) -> None:
        """Something of them changed: the next who comes is looked up anew."""
        self._directory.forget(workspace, user)
        self._keys.forget(workspace, user)

    def forget_all(self) -> None:
        """Everybody who comes is looked up anew."""
        self._directory.forget_all()
        self._keys.forget_all()

    async def flush(self) -> None:
        """Writes down now when keys were used."""
        if self._keys.has_uses:
            try:
                await self._keys.write_uses()
            except DragomanError as error:
                log.warning("keys.uses_not_written", code=error.code)


def unauthenticated() -> Unauthenticated:
    return Unauthenticated(
        "the bearer token is wrong, has expired, or was revoked",
        hint="dragoman keys add NAME; who runs this service has its own token: dragoman token",
    )


async def _unheard(before: User | None, after: User) -> None:
    pass


@asynccontextmanager
async def open_authenticator(
    rows: PeopleStore,
    directory: Directory,
    supervisor: Supervisor,
    issuer: Issuer | None = None,
    on_changed: "OnUserChanged" = _unheard,
    signing: TokenKeys | None = None,
) -> AsyncGenerator[Authenticator]:
    """With `signing`, clients may log in here: what it signs lets them in."""
    async with AsyncExitStack() as stack:
        tokens = sign_in = None
        if issuer is not None:
            issuer.check()
            # Loaded where tokens come from elsewhere, with the client that asks there and what reads them.
            import aiohttp

            from dragoman.identity.sign_in import SignIn
            from dragoman.identity.tokens import TokenVerifier

            session = await stack.enter_async_context(aiohttp.ClientSession())
            signing_keys = SigningKeys(issuer, session)
            tokens = TokenVerifier(rows, directory, issuer, signing_keys, on_changed)
            if issuer.client_id:
                for_us = replace(issuer, audience=issuer.client_id)
                of_people = TokenVerifier(rows, directory, for_us, signing_keys, on_changed)
                sign_in = SignIn(issuer, session, of_people)
        keys = ApiKeyVerifier(rows, directory)
        access_tokens = AccessTokens(keys, signing) if signing else None
        authenticator = Authenticator(directory, keys, tokens, sign_in, access_tokens)
        try:
            async with supervisor.keeping(partial(_write, authenticator), "write when keys were used"):
                yield authenticator
        finally:
            await authenticator.flush()


async def _write(authenticator: Authenticator) -> None:
    while True:
        await asyncio.sleep(WRITE_EVERY)
        await authenticator.flush()
