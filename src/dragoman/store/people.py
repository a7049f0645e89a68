"""Workspaces, users and API keys as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, Table, bindparam, delete, func, select, update

from dragoman.errors import Conflict
from dragoman.people import ApiKey, Preferences, User, UserLimits, Workspace
from dragoman.scope import Caller, identity_of
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.run_families import remove_families

_workspaces = tables.workspaces
_users = tables.users
_keys = tables.api_keys
_tools = tables.tools
_agents = tables.agents
_numbers = tables.agent_numbers
_runs = tables.runs
_used = update(_keys).where(_keys.c.id == bindparam("of_id")).values(last_used_at=bindparam("at"))
# What carries a user's name without a foreign key to it, with the column that holds the name.
_OF_USER: tuple[tuple[Table, str], ...] = (
    (tables.threads, "user"),
    (tables.loaded_tools, "user"),
    (tables.approvals, "user"),
    (tables.allowances, "user"),
    (tables.authorization_flows, "user"),
    (tables.secrets, "user"),
    (tables.connectors, "owner"),
    (tables.results, "user"),
    (tables.calls, "user"),
    (tables.agents, "owner"),
    (tables.messages, "user"),
    (tables.questions, "user"),
    (tables.rollout_samples, "user"),
)
_OF_WORKSPACE: tuple[Table, ...] = (
    *(table for table, _ in _OF_USER),
    tables.usage,
    tables.leases,
    tables.agent_numbers,
)


class SqlPeople(SqlAggregate):
    """Fills `PeopleStore`."""

    async def workspaces(self) -> Sequence[Workspace]:
        rows = await self._database.rows(select(_workspaces))
        return sorted(map(_workspace, rows), key=lambda found: (found.name, found.id))

    async def find_workspace(self, workspace: str) -> Workspace | None:
        query = select(_workspaces).filter_by(id=workspace)
        row = await self._database.row(query)
        return _workspace(row) if row else None

    async def put_workspace(self, workspace: Workspace) -> None:
        await self._database.execute(self._database.upsert(_workspaces), [asdict(workspace)])

    async def remove_workspace(self, workspace: str) -> None:
        async with self._database.write() as connection:
            await remove_families(connection, _runs.c.workspace == workspace)
            for table in _OF_WORKSPACE:
                await connection.execute(delete(table).where(table.c.workspace == workspace))
            await connection.execute(delete(_workspaces).filter_by(id=workspace))

    async def users(self, workspace: str) -> Sequence[User]:
        query = select(_users).filter_by(workspace=workspace)
        rows = await self._database.rows(query)
        return sorted(map(_user, rows), key=lambda found: (found.name, found.id))

    async def find_user(self, workspace: str, user: str) -> User | None:
        query = select(_users).filter_by(workspace=workspace, id=user)
        row = await self._database.row(query)
        return _user(row) if row else None

    async def find_external(self, external: str) -> User | None:
        row = await self._database.row(select(_users).filter_by(external=external))
        return _user(row) if row else None

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
            await connection.execute(self._database.upsert(_users), [_user_row(user)])

    async def remove_user(self, workspace: str, user: str) -> None:
        async with self._database.write() as connection:
            await remove_families(connection, (_runs.c.workspace == workspace) & (_runs.c.user == user))
            is_own = (_agents.c.workspace == workspace) & (_agents.c.owner == user)
            own = select(_agents.c.id).where(is_own)
            is_of_own = (_numbers.c.workspace == workspace) & _numbers.c.agent.in_(own)
            await connection.execute(delete(_numbers).where(is_of_own))
            for table, column in _OF_USER:
                is_theirs = (table.c.workspace == workspace) & (table.c[column] == user)
                await connection.execute(delete(table).where(is_theirs))
            identity = identity_of(Caller(workspace, user), "user")
            await connection.execute(delete(_tools).filter_by(identity=identity))
            await connection.execute(delete(_users).filter_by(workspace=workspace, id=user))

    async def keys(self, workspace: str, user: str | None = None) -> Sequence[ApiKey]:
        query = select(_keys).filter_by(workspace=workspace).order_by(_keys.c.created_at.desc(), _keys.c.id)
        if user is not None:
            query = query.where(_keys.c.user == user)
        return [_key(row) for row in await self._database.rows(query)]

    async def find_key(self, hash: str) -> ApiKey | None:
        row = await self._database.row(select(_keys).filter_by(hash=hash))
        return _key(row) if row else None

    async def put_key(self, key: ApiKey) -> None:
        facts = {column.name: getattr(key, column.name) for column in _keys.columns}
        facts["scopes"] = sorted(key.scopes)
        facts["capabilities"] = None if key.capabilities is None else sorted(key.capabilities)
        await self._database.execute(self._database.upsert(_keys), [facts])

    async def used_keys(self, moments: Mapping[str, datetime]) -> None:
        if not moments:
            return
        await self._database.execute(_used, [{"of_id": key, "at": at} for key, at in moments.items()])


def _workspace(row: RowMapping) -> Workspace:
    facts = dict(row)
    facts["limits"] = UserLimits(**facts["limits"])
    return Workspace(**facts)


def _user_row(user: User) -> dict[str, Any]:
    facts = {column.name: getattr(user, column.name) for column in _users.columns}
    facts["capabilities"] = sorted(user.capabilities)
    facts["limits"] = asdict(user.limits)
    facts["preferences"] = asdict(user.preferences)
    return facts


def _user(row: RowMapping) -> User:
    facts = dict(row)
    facts["capabilities"] = frozenset(facts["capabilities"])
    facts["limits"] = UserLimits(**facts["limits"])
    facts["preferences"] = _preferences(facts["preferences"])
    return User(**facts)


def _preferences(document: Mapping[str, Any]) -> Preferences:
    facts = dict(document)
    facts["limits"] = UserLimits(**facts["limits"])
    if facts["connectors"] is not None:
        facts["connectors"] = tuple(facts["connectors"])
    return Preferences(**facts)


def _key(row: RowMapping) -> ApiKey:
    facts = dict(row)
    facts["scopes"] = frozenset(facts["scopes"])
    if facts["capabilities"] is not None:
        facts["capabilities"] = frozenset(facts["capabilities"])
    return ApiKey(**facts)
