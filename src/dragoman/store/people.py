"""Workspaces, users and API keys as rows."""

from collections.abc import Mapping, Sequence
from datetime import datetime

from sqlalchemy import Table, bindparam, delete, func, select, update

from dragoman.errors import Conflict
from dragoman.people import ApiKey, User, Workspace
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.noun_rows import noun_of, row_of
from dragoman.store.personal_data import STAYS, remove_theirs
from dragoman.store.revised_rows import put_row, remove_rows
from dragoman.store.run_families import remove_families

_workspaces = tables.workspaces
_users = tables.users
_keys = tables.api_keys
_runs = tables.runs
_USED = frozenset({"last_used_at"})  # written by `used_keys` alone, which tells nobody
_used = update(_keys).where(_keys.c.id == bindparam("of_id")).values(last_used_at=bindparam("at"))
# All that says whose it is, those first that refer to others. A new table is among them by itself.
_OF_WORKSPACE: tuple[Table, ...] = tuple(
    table
    for table in reversed(tables.metadata.sorted_tables)
    if "workspace" in table.c and table not in STAYS and table is not tables.audit_heads
)


class SqlPeople(SqlAggregate):
    """Fills `PeopleStore`."""

    async def workspaces(self) -> Sequence[Workspace]:
        rows = await self._database.rows(select(_workspaces))
        return sorted((noun_of(Workspace, row) for row in rows), key=lambda found: (found.name, found.id))

    async def find_workspace(self, workspace: str) -> Workspace | None:
        query = select(_workspaces).filter_by(id=workspace)
        row = await self._database.row(query)
        return noun_of(Workspace, row) if row else None

    async def put_workspace(self, workspace: Workspace) -> None:
        row = row_of(workspace, _workspaces)
        async with self._database.write() as connection:
            await connection.run_sync(put_row, self._database, _workspaces, row, workspace.revision)

    async def remove_workspace(self, workspace: str) -> None:
        async with self._database.write_much() as connection:
            await remove_families(connection, _runs.c.workspace == workspace)
            for table in _OF_WORKSPACE:
                await connection.execute(delete(table).where(table.c.workspace == workspace))
            await connection.run_sync(remove_rows, self._database, _workspaces, _workspaces.c.id == workspace)

    async def users(self, workspace: str) -> Sequence[User]:
        query = select(_users).filter_by(workspace=workspace)
        rows = await self._database.rows(query)
        return sorted((noun_of(User, row) for row in rows), key=lambda found: (found.name, found.id))

    async def find_user(self, workspace: str, user: str) -> User | None:
        query = select(_users).filter_by(workspace=workspace, id=user)
        row = await self._database.row(query)
        return noun_of(User, row) if row else None

    async def find_external(self, external: str) -> User | None:
        row = await self._database.row(select(_users).filter_by(external=external))
        return noun_of(User, row) if row else None

    async def put_user(self, user: User) -> None:
        is_other = (_users.c.workspace != user.workspace) | (_users.c.id != user.id)
        same_name = (_users.c.workspace == user.workspace) & (_users.c.name == user.name)
        same_person = _users.c.external == user.external if user.external else same_name
        async with self._database.write() as connection:
            if not self._database.location.is_sqlite:
                # SQLite's write lock is held already; here, writers of users wait for each other.
                key = func.hashtextextended("dragoman users", 0)
                await connection.execute(select(func.pg_advisory_xact_lock(key)))
            taken = select(_users.c.name).where(is_other & (same_name | same_person))
            if await connection.scalar(taken) is not None:
                raise Conflict(f"there is a user {user.name[:80]!r} already", hint="choose another name")
            await connection.run_sync(put_row, self._database, _users, row_of(user, _users), user.revision)

    async def remove_user(self, workspace: str, user: str) -> None:
        async with self._database.write_much() as connection:
            await remove_theirs(self._database, connection, workspace, user)

    async def keys(self, workspace: str, user: str | None = None) -> Sequence[ApiKey]:
        query = select(_keys).filter_by(workspace=workspace).order_by(_keys.c.created_at.desc(), _keys.c.id)
        if user is not None:
            query = query.where(_keys.c.user == user)
        return [noun_of(ApiKey, row) for row in await self._database.rows(query)]

    async def find_key(self, hash: str) -> ApiKey | None:
        row = await self._database.row(select(_keys).filter_by(hash=hash))
        return noun_of(ApiKey, row) if row else None

    async def find_key_by_id(self, key: str) -> ApiKey | None:
        row = await self._database.row(select(_keys).filter_by(id=key))
        return noun_of(ApiKey, row) if row else None

    async def put_key(self, key: ApiKey) -> None:
        row = row_of(key, _keys)
        async with self._database.write() as connection:
            await connection.run_sync(put_row, self._database, _keys, row, key.revision, _USED)

    async def used_keys(self, moments: Mapping[str, datetime]) -> None:
        if not moments:
            return
        await self._database.execute(_used, [{"of_id": key, "at": at} for key, at in moments.items()])
