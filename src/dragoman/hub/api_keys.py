"""API keys as people handle them: list, add, change, revoke. The key itself is told once and never kept."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from dragoman.calls.audit import Auditor
from dragoman.errors import Conflict, Denied, LimitReached, NotFound, Outdated
from dragoman.hub.bound import Locks
from dragoman.hub.permissions import Permissions
from dragoman.hub.revisions import revised
from dragoman.hub.user_rights import check_admin, checked_name, granted
from dragoman.identity.authenticator import Authenticator
from dragoman.identity.keys import HINT_LENGTH, hash_of, make_key
from dragoman.people import ApiKey, KeyScope, User
from dragoman.scope import Caller
from dragoman.setting import changed
from dragoman.store import Store

MOST_KEYS = 1000


class ApiKeys:
    """For `People`, which knows where a user is found."""

    def __init__(
        self,
        store: Store,
        authenticator: Authenticator,
        auditor: Auditor,
        permissions: Permissions,
        locks: Locks,
        rivals: Callable[[Caller], Sequence[str]],
    ) -> None:
        """`rivals` says what two bundles of a caller show in two ways."""
        self._rivals = rivals
        self._rows = store.people
        self._permissions = permissions
        self._locks = locks
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
        settings: Mapping[str, Any],
        within: frozenset[KeyScope],
    ) -> tuple[ApiKey, str]:
        if not _is_own(user, caller):
            check_admin(caller)
        if not user.is_active:
            raise Denied(
                f"{user.name!r} is not active", hint="dragoman users update NAME --active lets them in again"
            )
        plaintext = make_key()
        bare = ApiKey(
            id=f"key_{token_hex(8)}",
            workspace=user.workspace,
            user=user.id,
            name=checked_name(name),
            hash=hash_of(plaintext),
            hint=plaintext[:HINT_LENGTH],
        )
        key = await self._granted(caller, user, bare, changed(bare, settings), None, within)
        await self.check_number(user)
        await self._rows.put_key(key)
        details = {"user": user.id, "name": key.name, "scopes": sorted(key.scopes), "way": key.way}
        await self._auditor.done(
            replace(caller, workspace=user.workspace), "key.added", key.id, details=details
        )
        return key, plaintext

    async def update(
        self,
        caller: Caller,
        workspace: str,
        key_id: str,
        settings: Mapping[str, Any],
        within: frozenset[KeyScope],
        *,
        of_client: bool = False,
    ) -> ApiKey:
        """Effective as revoking is. What was revoked stays as it was."""

        async def change(before: ApiKey) -> ApiKey:
            user = await self._rows.find_user(workspace, before.user)
            if before.revoked_at is not None or user is None:
                hint = "let it ask you again" if of_client else "dragoman keys add NAME"
                raise Conflict(f"the {what} {before.name!r} was revoked", hint=hint)
            return await self._granted(caller, user, before, changed(before, settings), before, within)

        async def read(before: ApiKey) -> ApiKey:
            return await self._get(caller, workspace, before.id)

        what = "client" if of_client else "key"
        async with self._locks.of("key", key_id):
            found = await self._get(caller, workspace, key_id)
            if found.client is not None and not of_client:
                raise Conflict(f"{found.name!r} is a client and no key", hint="it is listed with the clients")
            before, after = await revised(found, change, self._rows.put_key, read)
            if after == before:
                return before
            self._authenticator.forget(workspace, after.user)
        details = {"user": after.user, "changed": sorted(settings)}
        await self._auditor.done(
            replace(caller, workspace=workspace), f"{what}.updated", after.id, details=details
        )
        return after

    async def _granted(
        self,
        caller: Caller,
        user: User,
        bare: ApiKey,
        wanted: ApiKey,
        before: ApiKey | None,
        within: frozenset[KeyScope],
    ) -> ApiKey:
        self._permissions.check_settings(caller, bare, wanted)
        asking = user if _is_own(user, caller) else await self._rows.find_user(caller.workspace, caller.user)
        own = frozenset[str]() if asking is None else asking.capabilities
        key = None if caller.key is None else await self._authenticator.get_key(caller.key)
        made = granted(wanted, before, user, caller, own, within, key)
        if made.capabilities and (before is None or made.capabilities != before.capabilities):
            holder = Caller(workspace=user.workspace, user=user.id, grants=(made.capabilities,))
            if rivals := self._rivals(holder):
                raise Conflict(
                    f"not both can be given: {rivals[0]}", hint="rename it in one of them, or give one"
                )
        return made

    async def _get(self, caller: Caller, workspace: str, key_id: str) -> ApiKey:
        keys = await self._rows.keys(workspace, None if caller.is_admin else caller.user)
        if key := next((one for one in keys if one.id == key_id), None):
            return key
        raise NotFound(f"there is no key {key_id[:80]!r}", hint="dragoman keys list shows yours")

    async def revoke(
        self, caller: Caller, workspace: str, key_id: str, action: str = "key.revoked"
    ) -> ApiKey:
        """Effective at once here, and within two seconds in other processes. Revoking twice is no fault.

        `action` is what the trail calls it.
        """
        before, key = await self._revoked(await self._get(caller, workspace, key_id))
        if key != before:
            self._authenticator.forget(workspace, key.user)
            await self._auditor.done(
                replace(caller, workspace=workspace), action, key.id, details={"user": key.user}
            )
        return key

    async def revoke_all(self, user: User) -> None:
        for key in await self._rows.keys(user.workspace, user.id):
            with suppress(NotFound):
                await self._revoked(key)
        self._authenticator.forget(user.workspace, user.id)

    async def _revoked(self, key: ApiKey) -> tuple[ApiKey, ApiKey]:
        """What it was, and what it is: whatever else somebody makes of it at this moment."""
        while key.revoked_at is None:
            after = replace(key, revoked_at=datetime.now(UTC))
            try:
                await self._rows.put_key(after)
            except Outdated:
                keys = await self._rows.keys(key.workspace, key.user)
                key = next(one for one in keys if one.id == key.id)
            else:
                return key, after
        return key, key

    async def check_number(self, user: User) -> None:
        """`LimitReached` where one more would be too many."""
        living = [key for key in await self._rows.keys(user.workspace, user.id) if key.revoked_at is None]
        if len(living) >= MOST_KEYS:
            raise LimitReached(
                f"{user.name!r} has {len(living):,} keys already", hint="revoke what nobody uses any more"
            )


def _is_own(user: User, caller: Caller) -> bool:
    return (user.workspace, user.id) == (caller.workspace, caller.user)
