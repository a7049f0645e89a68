"""Whose a row is. Every table says here how its rows belong to a person, or why they belong to nobody.

From it a person's data is read, removed and erased; a table that says nothing fails a test. The audit trail
is the one that stays: erased, its entries are somebody's whom nobody knows any more (`audit_chain.py`).
"""

import re
from collections.abc import AsyncGenerator, Callable, Collection, Mapping
from dataclasses import replace
from typing import Any

from sqlalchemy import ColumnElement, Select, Table, delete, or_, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.scope import Caller, identity_of
from dragoman.store import tables
from dragoman.store.audit import SqlAudit
from dragoman.store.audit_chain import ERASED
from dragoman.store.columns import to_json
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.records import AuditEntry
from dragoman.store.revised_rows import remove_rows
from dragoman.store.run_families import remove_families

Whose = Callable[[str, str], ColumnElement[bool]]
"""The rows of a user: by workspace and the user's id."""

_PAGE = 500
_ID = re.compile(r"[a-z]+_[0-9A-Za-z-]+")
_audit, _approvals, _changes = tables.audit, tables.approvals, tables.changes


def _by(table: Table, column: str = "user") -> Whose:
    return lambda workspace, user: (table.c.workspace == workspace) & (table.c[column] == user)


def _ids(table: Table, column: str, workspace: str, user: str, of: str = "user") -> Select[Any]:
    return select(table.c[column]).where(table.c.workspace == workspace, table.c[of] == user)


def _in_runs(table: Table, column: str, of_run: str) -> Whose:
    """Rows of a run that is theirs."""

    def whose(workspace: str, user: str) -> ColumnElement[bool]:
        return (table.c.workspace == workspace) & table.c[column].in_(
            _ids(tables.runs, of_run, workspace, user)
        )

    return whose


def _in_connectors(table: Table, *, has_identity: bool = False) -> Whose:
    """Rows of a connector that is theirs; of shared ones, what was listed for them alone."""

    def whose(workspace: str, user: str) -> ColumnElement[bool]:
        own = table.c.connector_id.in_(_ids(tables.connectors, "id", workspace, user, "owner"))
        if not has_identity:
            return own
        identity = identity_of(Caller(workspace, user), "user")
        is_theirs = table.c.identity == identity
        return or_(own, is_theirs, table.c.identity.startswith(f"{identity}:", autoescape=True))

    return whose


def _counted(table: Table) -> Whose:
    """What is counted, or waited for, under their name: `user:ID`, `oauth:CONNECTOR:ID`."""
    return lambda workspace, user: (
        (table.c.workspace == workspace) & table.c.subject.endswith(f":{user}", autoescape=True)
    )


def _of_secrets(workspace: str, user: str) -> ColumnElement[bool]:
    """What they brought to any connector, and all of their own ones."""
    secrets = tables.secrets
    return or_(_by(secrets)(workspace, user), _in_connectors(secrets)(workspace, user))


def _of_agents(workspace: str, user: str) -> ColumnElement[bool]:
    numbers = tables.agent_numbers
    own = _ids(tables.agents, "id", workspace, user, "owner")
    return (numbers.c.workspace == workspace) & numbers.c.agent.in_(own)


# Those first that are found by others.
THEIRS: Mapping[Table, Whose] = {
    tables.run_steps: _in_runs(tables.run_steps, "run", "id"),
    tables.run_events: _in_runs(tables.run_events, "root", "root"),
    tables.questions: _by(tables.questions),
    tables.runs: _by(tables.runs),
    tables.rollout_samples: _by(tables.rollout_samples),
    tables.agent_numbers: _of_agents,
    tables.agents: _by(tables.agents, "owner"),
    tables.recipes: _by(tables.recipes, "owner"),
    tables.bundles: _by(tables.bundles, "owner"),
    tables.usage: _counted(tables.usage),
    tables.leases: _counted(tables.leases),
    tables.tool_versions: _in_connectors(tables.tool_versions, has_identity=True),
    tables.tools: _in_connectors(tables.tools, has_identity=True),
    tables.connector_metrics: _in_connectors(tables.connector_metrics),
    tables.secrets: _of_secrets,
    tables.authorization_flows: _by(tables.authorization_flows),
    tables.connectors: _by(tables.connectors, "owner"),
    tables.results: _by(tables.results),
    tables.calls: _by(tables.calls),
    tables.metric_buckets: _by(tables.metric_buckets),
    tables.allowances: _by(tables.allowances),
    tables.approvals: _by(tables.approvals),
    tables.messages: _by(tables.messages),
    tables.loaded_tools: _by(tables.loaded_tools),
    tables.threads: _by(tables.threads),
    tables.client_sessions: _by(tables.client_sessions),
    tables.one_time_values: _by(tables.one_time_values),
    tables.api_keys: _by(tables.api_keys),
    tables.users: _by(tables.users, "id"),
}
STAYS: Mapping[Table, str] = {
    tables.audit: "who did what is known for as long as it is kept; erased, by nobody's name",
    tables.changes: "which rows others have yet to read, for an hour; erased, without a word of a person's",
}
NOBODYS: Mapping[Table, str] = {
    tables.workspaces: "the tenant",
    tables.model_providers: "the workspace's, or the installation's",
    tables.audit_heads: "numbers and hashes",
    tables.app_files: "processes",
    tables.rollout_states: "the operator's",
    tables.oauth_clients: "programs; what somebody allowed one is a key of theirs",
    tables.signing_keys: "the installation's",
}


async def remove_theirs(database: Database, connection: AsyncConnection, workspace: str, user: str) -> None:
    """All rows of a user but the trail."""
    runs, users = tables.runs, tables.users
    await remove_families(connection, (runs.c.workspace == workspace) & (runs.c.user == user))
    for table, whose in THEIRS.items():
        if table is not users:
            await connection.execute(delete(table).where(whose(workspace, user)))
    await connection.run_sync(remove_rows, database, users, THEIRS[users](workspace, user))


class SqlPersonalData(SqlAggregate):
    """Fills `PersonalDataStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._audit = SqlAudit(database)

    async def rows(self, workspace: str, user: str) -> AsyncGenerator[tuple[str, Mapping[str, Any]]]:
        """A page at a time: nobody else waits until all of it is told."""
        for table, whose in {**THEIRS, _audit: _by(_audit)}.items():
            query = select(table).where(whose(workspace, user)).order_by(*table.primary_key)
            start = 0
            while page := await self._database.rows(query.limit(_PAGE).offset(start)):
                for row in page:
                    yield table.name, dict(zip(row.keys(), row.values(), strict=True))
                start += len(page)

    async def erase(self, workspace: str, user: str, names: Collection[str], told: AuditEntry) -> int:
        async with self._database.write_much() as connection:
            ids = await _all_ids(connection, workspace, user)
            await remove_theirs(self._database, connection, workspace, user)
            pseudonym = told.subject
            await connection.execute(
                update(_approvals)
                .where(_approvals.c.workspace == workspace, _approvals.c.answered_by == user)
                .values(answered_by=pseudonym)
            )
            entries = await _forget_in_trail(
                connection, workspace, user, _Words(names, ids | {user}), pseudonym
            )
            # Processes that have not read these yet still learn what went, by its id.
            is_theirs = (_changes.c.workspace == workspace) & (
                (_changes.c.user == user) | (_changes.c.subject == user)
            )
            chosen = _changes.c.kind.in_(("thread", "loaded_tools"))
            await connection.execute(delete(_changes).where(is_theirs, chosen))
            await connection.execute(update(_changes).where(is_theirs).values(details={}))
            details = {**told.details, "entries": entries}
            await connection.run_sync(self._audit.append_in, workspace, [replace(told, details=details)])
            return entries

    async def compact(self) -> bool:
        return await self._database.compact()


class _Words:
    """What tells of a person: names as words, ids wherever they stand."""

    def __init__(self, names: Collection[str], ids: Collection[str]) -> None:
        words = "|".join(re.escape(name) for name in sorted(names, key=len, reverse=True) if name)
        self._names = re.compile(rf"(?<!\w)(?:{words})(?!\w)") if words else None
        self._ids = frozenset(ids)

    def are_in(self, text: str) -> bool:
        if self._names and self._names.search(text):
            return True
        return any(word in self._ids for word in _ID.findall(text))


async def _all_ids(connection: AsyncConnection, workspace: str, user: str) -> set[str]:
    """Of everything of theirs that has an id of its own."""
    ids: set[str] = set()
    for table, whose in THEIRS.items():
        if "id" in table.c:
            ids |= {*(await connection.scalars(select(table.c.id).where(whose(workspace, user))))}
    return ids


async def _forget_in_trail(
    connection: AsyncConnection, workspace: str, user: str, words: _Words, pseudonym: str
) -> int:
    """Entries by them become the pseudonym's; those of others that tell of them lose what they tell."""
    count, number = 0, 0
    query = select(_audit).where(_audit.c.workspace == workspace).order_by(_audit.c.number).limit(_PAGE)
    while page := (await connection.execute(query.where(_audit.c.number > number))).mappings().all():
        number = page[-1]["number"]
        for row in page:
            is_own = row["user"] == user
            told = f"{row['subject']}\n{row['agent'] or ''}\n{to_json(row['details'])}"
            if not is_own and not words.are_in(told):
                continue
            values: dict[str, Any] = {"details": {ERASED: pseudonym}}
            if is_own:
                values |= {"user": pseudonym, "agent": None, "subject": "", "arguments_hash": None}
            elif words.are_in(row["subject"]):
                values["subject"] = pseudonym
            is_this = tuple_(_audit.c.workspace, _audit.c.number) == (workspace, row["number"])
            await connection.execute(update(_audit).where(is_this).values(values))
            count += 1
    return count
