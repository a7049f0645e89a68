"""Workspaces, users and keys as people handle them. Who may do what is decided here, once for every door.

Admins manage their own workspace, members their own keys; the operator may name any workspace. What
belongs to another workspace does not exist.
"""

from base64 import b64encode
from collections.abc import AsyncGenerator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from datetime import UTC, datetime, timedelta
from secrets import token_hex
from typing import Any, Unpack

from dragoman.access.approvals import opened_facts
from dragoman.errors import Conflict, InvalidConfig, NotFound
from dragoman.hub import user_rights
from dragoman.hub.bound import BoundService
from dragoman.hub.connectors import Connectors
from dragoman.hub.people_settings import KeySettings, UserSettings, WorkspaceSettings
from dragoman.hub.revisions import revised
from dragoman.identity.authenticated import ALL_SCOPES
from dragoman.identity.directory import Person
from dragoman.identity.groups import group_table
from dragoman.identity.issuer import Issuer
from dragoman.people import ApiKey, KeyScope, User, Workspace
from dragoman.scope import Caller
from dragoman.setting import changed
from dragoman.settings import Settings
from dragoman.store.audit_chain import ERASURE
from dragoman.store.records import AuditEntry


@dataclass(frozen=True, slots=True)
class Myself:
    """Who asks, as they came in, and the record behind it."""

    caller: Caller
    person: Person


@dataclass(frozen=True, slots=True)
class Erasure:
    """Under which name entries of the trail stand now, how many they are, and whether the files are clean."""

    pseudonym: str
    entries: int
    is_compact: bool


_MOST_REMOVED = 10_000
# Columns that hold hashes and sealed values.
_SEALED = frozenset({"hash", "nonce", "ciphertext", "key_id", "sealed", "state_hash", "arguments"})


class People(BoundService):
    """Users and workspaces go by id or name."""

    __slots__ = ()

    async def name_of(self, workspace: str, user: str) -> str:
        """How people call a user; the id of one who is gone."""
        person = await self._runtime.directory.find(workspace, user)
        return person.user.name if person else user

    async def me(self) -> Myself:
        """The caller, with rights and workspace."""
        caller = self._caller
        return Myself(caller, await self._runtime.directory.of(caller))

    # Workspaces

    async def workspaces(self) -> Sequence[Workspace]:
        """All of them for the operator, their own for an admin."""
        caller = self._caller
        user_rights.check_admin(caller)
        if caller.role == "operator":
            return await self._runtime.store.people.workspaces()
        return [await self.get_workspace(caller.workspace)]

    async def get_workspace(self, workspace: str) -> Workspace:
        """One workspace by id or name. Raises `NotFound`."""
        place = await self._place(workspace)
        user_rights.check_admin(self._caller)
        return place

    async def add_workspace(self, name: str) -> Workspace:
        """A new workspace, with nobody in it. For who runs the installation."""
        caller = self._caller
        user_rights.check_operator(caller)
        async with self._runtime.locks.of("workspaces"):
            workspace = Workspace(id=f"wsp_{token_hex(8)}", name=await self._free_name(name))
            await self._runtime.store.people.put_workspace(workspace)
        await self._runtime.auditor.done(
            caller, "workspace.added", workspace.id, details={"name": workspace.name}
        )
        return workspace

    @user_rights.takes_bounds
    async def update_workspace(
        self, workspace: str, *, name: str | None = None, **settings: Unpack[WorkspaceSettings]
    ) -> Workspace:
        """Changes what is given and keeps the rest; None sets back. Only the operator renames."""

        async def change(before: Workspace) -> Workspace:
            after = changed(before, settings)
            self._runtime.permissions.check_settings(self._caller, before, after)
            if after.hooks != before.hooks:
                self._runtime.hooks.check(after.hooks)
            if after.model != before.model:
                await (await self._runtime.given_providers.models_of(after.id)).verify(after.model)
            if name is not None and name != before.name:
                user_rights.check_operator(self._caller)
                after = replace(after, name=await self._free_name(name))
            return after

        async def read(before: Workspace) -> Workspace:
            return await self.get_workspace(before.id)

        found = await self.get_workspace(workspace)
        before, after = await revised(found, change, self._runtime.store.people.put_workspace, read)
        if after != before:
            self._runtime.authenticator.forget(after.id)
            await self._tell(after.id, "workspace.updated", after.id, changed=changed_fields(before, after))
        return after

    async def remove_workspace(self, workspace: str) -> None:
        """With its users, connectors and all of theirs; calls under way finish. Its audit trail stays."""
        caller = self._caller
        user_rights.check_operator(caller)
        place = await self._place(workspace)
        user_rights.check_not_local(place.id)
        async with self._runtime.locks.of("workspace", place.id):
            users = await self._runtime.store.people.users(place.id)
            for user in users:
                await self._shut_out(user)
            await self._remove_connectors(place.id)
            for user in (*(one.id for one in users), ""):
                await self._runtime.close_for_user(place.id, user)
            await self._runtime.store.people.remove_workspace(place.id)
            self._runtime.catalog.replace_bundles(await self._runtime.store.bundles.list())
            self._runtime.authenticator.forget(place.id)
        await self._runtime.auditor.done(caller, "workspace.removed", place.id, details={"name": place.name})

    # Users

    async def users(self, workspace: str | None = None) -> Sequence[User]:
        """All users of a workspace. For its admins."""
        place = await self._place(workspace)
        user_rights.check_admin(self._caller)
        return await self._runtime.store.people.users(place.id)

    async def get_user(self, user: str, workspace: str | None = None) -> User:
        """Themselves for anybody, all of the workspace for its admins."""
        caller = self._caller
        place = await self._place(workspace)
        found = await self._runtime.store.people.find_user(place.id, user)
        if found is None:
            found = next(
                (one for one in await self._runtime.store.people.users(place.id) if one.name == user), None
            )
        if found is None or not (caller.is_admin or found.id == caller.user):
            raise user_rights.no_user(user)
        return found

    @user_rights.takes_bounds
    async def add_user(
        self, name: str, *, workspace: str | None = None, **settings: Unpack[UserSettings]
    ) -> User:
        """A new user of a workspace. For its admins."""
        place = await self._place(workspace)
        user_rights.check_admin(self._caller)
        bare = User(id=f"usr_{token_hex(8)}", workspace=place.id, name=user_rights.checked_name(name))
        user = changed(bare, settings)
        self._runtime.permissions.check_settings(self._caller, bare, user)
        await self._runtime.store.people.put_user(user)
        await self._tell(place.id, "user.added", user.id, name=user.name, role=user.role)
        return user

    @user_rights.takes_bounds
    async def update_user(
        self, user: str, *, workspace: str | None = None, **settings: Unpack[UserSettings]
    ) -> User:
        """Changes what is given and keeps the rest; None sets back to the default. Effective at once."""
        caller = self._caller
        place = await self._place(workspace)

        async def change(before: User) -> User:
            after = changed(before, settings)
            self._runtime.permissions.check_settings(caller, before, after)
            if after != before and (after.role != "admin" or not after.is_active):
                user_rights.check_stays_led(before, await self._runtime.store.people.users(place.id), caller)
            if after != before and not after.is_active:
                user_rights.check_not_local(place.id, before.id)
            return after

        async def read(before: User) -> User:
            return await self.get_user(before.id, place.id)

        async with self._runtime.locks.of("workspace", place.id):
            found = await self.get_user(user, place.id)
            user_rights.check_admin(caller)
            before, after = await revised(found, change, self._runtime.store.people.put_user, read)
            if after == before:
                return before
            self._runtime.authenticator.forget(place.id, after.id)
        await self._tell(place.id, "user.updated", after.id, changed=changed_fields(before, after))
        return after

    async def remove_user(self, user: str, workspace: str | None = None) -> None:
        """Nobody comes in as them from now on; calls under way finish, and what is theirs goes."""
        caller = self._caller
        place = await self._place(workspace)
        async with self._runtime.locks.of("workspace", place.id):
            found = await self.get_user(user, place.id)
            user_rights.check_admin(caller)
            user_rights.check_not_local(place.id, found.id)
            user_rights.check_stays_led(found, await self._runtime.store.people.users(place.id), caller)
            await self._see_out(found)
            await self._runtime.store.people.remove_user(place.id, found.id)
            self._runtime.catalog.replace_bundles(await self._runtime.store.bundles.list())
            self._runtime.authenticator.forget(place.id, found.id)
        await self._tell(place.id, "user.removed", found.id, name=found.name)

    # What is theirs

    async def export_user(
        self, user: str | None = None, workspace: str | None = None
    ) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
        """All that is kept of somebody, row by row with the name of its table: one's own, or anybody's for
        who runs the installation. An admin reads the runs of members (`hub.runs.oversee`), not all of this.

        Secrets are named and not told; what was asked of them to approve is opened.
        """
        place = await self._place(workspace)
        found = await self.get_user(self._caller.user if user is None else user, place.id)
        if (place.id, found.id) != (self._caller.workspace, self._caller.user):
            user_rights.check_operator(self._caller)
        await self._write_what_waits()
        await self._tell(place.id, "user.exported", found.id)
        async for table, row in self._runtime.store.personal.rows(place.id, found.id):
            yield table, self._shown(table, row)

    async def erase_user(self, user: str, workspace: str | None = None) -> Erasure:
        """Removes somebody with all that is theirs, and their name from the audit trail, for good.

        Nobody comes in as them from now on; what they have under way is stopped. Who was removed before can
        be erased, too, by name or id. Backups and logs keep what they have.
        """
        caller = self._caller
        place = await self._place(workspace)
        user_rights.check_admin(caller)
        pseudonym = f"erased_{token_hex(6)}"
        async with self._runtime.locks.of("workspace", place.id):
            found = await self._known_in_trail(user, place.id)
            user_rights.check_not_local(place.id, found.id)
            if found.revision:
                users = await self._runtime.store.people.users(place.id)
                user_rights.check_stays_led(found, users, caller)
                await self._see_out(found)
            await self._write_what_waits()
            told = AuditEntry(
                time=datetime.now(UTC),
                workspace=place.id,
                user=caller.user,
                agent=caller.agent,
                way=caller.way,
                action=ERASURE,
                subject=pseudonym,
                outcome="ok",
            )
            outside = found.external or ""
            names = [name for name in (found.name, outside, outside.rpartition("|")[2]) if name]
            entries = await self._runtime.store.personal.erase(place.id, found.id, names, told)
            self._runtime.authenticator.forget(place.id, found.id)
        return Erasure(pseudonym, entries, await self._runtime.store.personal.compact())

    async def _known_in_trail(self, user: str, place: str) -> User:
        """Who is meant; the trail still knows one who was removed."""
        try:
            return await self.get_user(user, place)
        except NotFound:
            removed = await self._runtime.store.audit.read(
                place, action="user.removed", limit=_MOST_REMOVED, newest_first=True
            )
            for entry in removed:
                if user in (entry.subject, name := str(entry.details.get("name", ""))):
                    return User(id=entry.subject, workspace=place, name=name)
            raise

    async def _write_what_waits(self) -> None:
        await self._runtime.recorder.flush()
        await self._runtime.auditor.flush()

    def _shown(self, table: str, row: Mapping[str, Any]) -> dict[str, Any]:
        """Without what only Dragoman can read; a kept result as text where it is one."""
        shown = {name: value for name, value in row.items() if name not in _SEALED}
        if table == "approvals":
            shown["asked"] = opened_facts(
                self._runtime.vault, row["arguments"], row["workspace"], row["user"], row["id"]
            )
        for name, value in shown.items():
            if isinstance(value, bytes):
                shown[name] = _text(value)
        return shown

    # Keys

    async def keys(
        self, user: str | None = None, workspace: str | None = None, *, of_clients: bool = False
    ) -> Sequence[ApiKey]:
        """Newest first: of one user; of the whole workspace for an admin who names nobody; else one's own.

        Those `of_clients` are what people allowed OAuth clients, and are listed apart.
        """
        place = await self._place(workspace)
        of = None if user is None else (await self.get_user(user, place.id)).id
        keys = await self._runtime.keys.list(self._caller, place.id, of)
        return [key for key in keys if (key.client is not None) == of_clients]

    async def add_key(
        self,
        name: str,
        *,
        user: str | None = None,
        expires_in: timedelta | None = None,
        within: frozenset[KeyScope] = ALL_SCOPES,
        workspace: str | None = None,
        **settings: Unpack[KeySettings],
    ) -> tuple[ApiKey, str]:
        """The record, and the key itself: nobody can tell it again.

        It never gives more than its user has, or than the credential that makes it: `within` are that
        one's scopes. By way of `agent` or `mcp` it acts for a model, and approvals bind it.
        """
        caller = self._caller
        place = await self._place(workspace)
        whose = await self.get_user(caller.user if user is None else user, place.id)
        given = _with_end(settings, expires_in)
        return await self._runtime.keys.add(caller, whose, name=name, settings=given, within=within)

    async def update_key(
        self,
        key_id: str,
        *,
        expires_in: timedelta | None = None,
        within: frozenset[KeyScope] = ALL_SCOPES,
        workspace: str | None = None,
        **settings: Unpack[KeySettings],
    ) -> ApiKey:
        """Changes what is given and keeps the rest; None sets back to the default. Effective at once.

        Nobody gives a key more than the credential has that asks: `within` are that one's scopes.
        """
        place = await self._place(workspace)
        given = _with_end(settings, expires_in)
        return await self._runtime.keys.update(self._caller, place.id, key_id, given, within)

    async def revoke_key(self, key_id: str, workspace: str | None = None) -> ApiKey:
        """The key opens nothing from now on."""
        place = await self._place(workspace)
        return await self._runtime.keys.revoke(self._caller, place.id, key_id)

    # Parts

    async def _place(self, workspace: str | None) -> Workspace:
        """The workspace that is meant: the caller's own, or for the operator any."""
        if found := await self._find_workspace(workspace):
            return found
        raise user_rights.no_workspace(workspace or self._caller.workspace)

    async def _free_name(self, name: str) -> str:
        name = user_rights.checked_name(name)
        if any(name in (known.name, known.id) for known in await self._runtime.store.people.workspaces()):
            raise Conflict(f"there is a workspace {name!r} already", hint="choose another name")
        return name

    async def _see_out(self, user: User) -> None:
        """Nobody comes in as them; their connectors and connections are closed."""
        await self._shut_out(user)
        await self._remove_connectors(user.workspace, user.id)
        await self._runtime.close_for_user(user.workspace, user.id)

    async def _shut_out(self, user: User) -> None:
        async def change(before: User) -> User:
            return replace(before, is_active=False)

        async def read(before: User) -> User:
            return await self.get_user(before.id, before.workspace)

        await revised(user, change, self._runtime.store.people.put_user, read)
        await self._runtime.keys.revoke_all(user)

    async def _remove_connectors(self, workspace: str, owner: str | None = None) -> None:
        for connector in await self._runtime.store.connectors.list(workspace):
            if owner in (None, connector.owner):
                holder = Caller(workspace, connector.owner, role="operator")
                try:
                    await Connectors(self._runtime, holder).remove(connector.id)
                except NotFound:
                    continue  # somebody else has just removed it

    async def _tell(self, workspace: str, action: str, subject: str, **details: Any) -> None:
        """In the trail of the workspace that it concerns, even when the operator did it."""
        caller = self._caller
        if caller.workspace != workspace:
            details["from"] = caller.workspace
        await self._runtime.auditor.done(
            replace(caller, workspace=workspace), action, subject, details=details
        )


def _text(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        return b64encode(value).decode()


def changed_fields(before: User | Workspace, after: User | Workspace) -> list[str]:
    return [item.name for item in fields(after) if getattr(before, item.name) != getattr(after, item.name)]


def _with_end(settings: KeySettings, expires_in: timedelta | None) -> Mapping[str, Any]:
    if expires_in is None:
        return settings
    return {**settings, "expires_at": datetime.now(UTC) + min(expires_in, 2 * user_rights.LONGEST_LIFE)}


def issuer_of(settings: Settings) -> Issuer | None:
    """Whose tokens are accepted beside API keys; nobody's where there is one user only."""
    audience = settings.oidc_audience or settings.oidc_client_id
    if not settings.multi_user or not (settings.oidc_issuer or audience):
        return None
    if not settings.oidc_issuer or not audience:
        raise InvalidConfig(
            "tokens of an issuer need both its address and the audience that they must be for",
            hint="set DRAGOMAN_OIDC_ISSUER and DRAGOMAN_OIDC_AUDIENCE, or DRAGOMAN_OIDC_CLIENT_ID",
        )
    return Issuer(
        url=settings.oidc_issuer,
        audience=audience,
        client_id=settings.oidc_client_id,
        client_secret=settings.oidc_client_secret,
        workspace=settings.oidc_workspace,
        workspace_claim=settings.oidc_workspace_claim,
        groups=group_table(settings.oidc_groups, settings.oidc_groups_claim)
        if settings.oidc_groups
        else None,
    )
