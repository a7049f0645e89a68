"""API keys as people handle them: list, add, revoke. The key itself is told once and never kept."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex

from dragoman.calls.audit import Auditor
from dragoman.errors import Denied, InvalidArguments, LimitReached, NotFound
from dragoman.hub.user_rights import check_admin, checked_name, checked_scopes, checked_way, key_capabilities
from dragoman.identity.authenticator import Authenticator
from dragoman.identity.keys import HINT_LENGTH, hash_of, make_key
from dragoman.people import ApiKey, KeyScope, User
from dragoman.scope import Caller, Way
from dragoman.store import Store

LONGEST_LIFE = timedelta(days=3660)
MOST_KEYS = 1000


class ApiKeys:
    """For `People`, which knows where a user is found."""

    def __init__(self, store: Store, authenticator: Authenticator, auditor: Auditor) -> None:
        self._rows = store.people
        self._authenticator = authenticator
        self._auditor = auditor

    async def list(self, caller: Caller, workspace: str, user: str | None) -> Sequence[ApiKey]:
        """Newest first. A member's own; an admin's question without a user is for the whole workspace."""
        if user != caller.user or workspace != caller.workspace:
            if user is None and not caller.is_admin:
                user = caller.user
            else:
                check_admin(caller)
        return await self._rows.keys(workspace, user)

    async def add(
        self,
        caller: Caller,
        user: User,
        *,
        name: str,
        scopes: Collection[str],
        capabilities: Collection[str] | None,
        expires_in: timedelta | None,
        way: Way,
        within: frozenset[KeyScope],
    ) -> tuple[ApiKey, str]:
        is_own = (user.workspace, user.id) == (caller.workspace, caller.user)
        if not is_own:
            check_admin(caller)
        if not user.is_active:
            raise Denied(
                f"{user.name!r} is not active", hint="dragoman users update NAME --active lets them in again"
            )
        asking = user if is_own else await self._rows.find_user(caller.workspace, caller.user)
        own = frozenset[str]() if asking is None else asking.capabilities
        plaintext = make_key()
        key = ApiKey(
            id=f"key_{token_hex(8)}",
            workspace=user.workspace,
            user=user.id,
            name=checked_name(name),
            hash=hash_of(plaintext),
            hint=plaintext[:HINT_LENGTH],
            way=checked_way(way, caller),
            scopes=checked_scopes(scopes, user, way, within),
            capabilities=key_capabilities(capabilities, caller, own),
            expires_at=_end(expires_in),
        )
        await self._check_number(user)
        await self._rows.put_key(key)
        details = {"user": user.id, "name": key.name, "scopes": sorted(key.scopes), "way": key.way}
        await self._auditor.done(
            replace(caller, workspace=user.workspace), "key.added", key.id, details=details
        )
        return key, plaintext

    async def revoke(self, caller: Caller, workspace: str, key_id: str) -> ApiKey:
        """Effective at once here, and within two seconds in other processes. Revoking twice is no fault."""
        keys = await self._rows.keys(workspace, None if caller.is_admin else caller.user)
        key = next((one for one in keys if one.id == key_id), None)
        if key is None:
            raise NotFound(f"there is no key {key_id[:80]!r}", hint="dragoman keys list shows yours")
        if key.revoked_at is None:
            key = replace(key, revoked_at=datetime.now(UTC))
            await self._rows.put_key(key)
            self._authenticator.forget(workspace, key.user)
            await self._auditor.done(
                replace(caller, workspace=workspace), "key.revoked", key.id, details={"user": key.user}
            )
        return key

    async def revoke_all(self, user: User) -> None:
        for key in await self._rows.keys(user.workspace, user.id):
            if key.revoked_at is None:
                await self._rows.put_key(replace(key, revoked_at=datetime.now(UTC)))
        self._authenticator.forget(user.workspace, user.id)

    async def _check_number(self, user: User) -> None:
        living = [key for key in await self._rows.keys(user.workspace, user.id) if key.revoked_at is None]
        if len(living) >= MOST_KEYS:
            raise LimitReached(
                f"{user.name!r} has {len(living):,} keys already", hint="revoke what nobody uses any more"
            )


def _end(expires_in: timedelta | None) -> datetime | None:
    if expires_in is None:
        return None
    if not timedelta() < expires_in <= LONGEST_LIFE:
        raise InvalidArguments(
            f"a key lives for more than nothing and at most {LONGEST_LIFE.days:,} days",
            hint="leave it out for a key that does not expire",
        )
    return datetime.now(UTC) + expires_in
