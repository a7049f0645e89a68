"""Connectors as rows, with their sealed secrets, tools, metrics and begun authorisations."""

import asyncio
from collections import defaultdict
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import asdict, fields
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from sqlalchemy import Executable, RowMapping, and_, bindparam, delete, func, insert, select, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.connector import Configuration, Connector
from dragoman.errors import Conflict, NotFound
from dragoman.scope import APP
from dragoman.store import tables
from dragoman.store.changes import change_of, note
from dragoman.store.database import SqlAggregate
from dragoman.store.later_fields import KeptDocument, known_to, with_later
from dragoman.store.records import AuthorizationFlow, SealedSecret, ToolVersion
from dragoman.store.revised_rows import NEW, outdated, put_row, remove_rows
from dragoman.telemetry.metrics import ConnectorCounters
from dragoman.tool import Annotations, Tool, ToolDefinition

_rows = tables.connectors
_secrets = tables.secrets
_allowances = tables.allowances
_tools = tables.tools
_versions = tables.tool_versions
_metrics = tables.connector_metrics
_files = tables.app_files
_flows = tables.authorization_flows
_ROWS_PER_TURN = 200
_ANNOTATIONS = tuple(field.name for field in fields(Annotations))
_TOOL_KEY = ("workspace", "connector_id", "identity", "name")
_IS_TOOL = and_(*(_tools.c[name] == bindparam(f"of_{name}") for name in _TOOL_KEY))
_TOOL_GONE = delete(_tools).where(_IS_TOOL)
_TOOL_CHANGED = (
    update(_tools)
    .where(_IS_TOOL)
    .values(
        {
            column.name: bindparam(f"new_{column.name}")
            for column in _tools.columns
            if column.name not in (*_TOOL_KEY, "first_seen")
        }
    )
)
_LEARNED = frozenset({"era", "instructions", "server"})
_SEALED = ("workspace", "connector_id", "user", "name", "key_id", "nonce")


class SqlConnectors(SqlAggregate):
    """Fills `ConnectorStore`."""

    async def list(self, workspace: str | None = None) -> Sequence[Connector]:
        query = select(_rows)
        if workspace is not None:
            query = query.where(_rows.c.workspace == workspace)
        rows = await self._database.rows(query)
        # Sorted here: the two databases order hyphens differently.
        return sorted((_connector(row) for row in rows), key=lambda found: (found.workspace, found.slug))

    async def find(self, workspace: str, connector_id: str) -> Connector | None:
        row = await self._database.row(select(_rows).filter_by(workspace=workspace, id=connector_id))
        return _connector(row) if row else None

    async def add(self, connector: Connector, secrets: Sequence[SealedSecret]) -> None:
        async with self._database.write() as connection:
            await self._check_names(connection, connector)
            await connection.run_sync(put_row, self._database, _rows, _row(connector), NEW)
            await self._put_secrets(connection, connector, secrets)

    async def update(
        self,
        connector: Connector,
        secrets: Sequence[SealedSecret] | None = None,
        *,
        forget_personal: bool = False,
    ) -> None:
        # What a server told is written by `learn`; a server that is another one has told nothing yet.
        apart = _LEARNED - ({"era"} if connector.era is None else set[str]())
        async with self._database.write() as connection:
            await self._check_there(connection, connector)
            await self._check_names(connection, connector)
            if connector.revision - 1 == NEW:
                raise outdated()  # what is stored has been written
            await connection.run_sync(
                put_row, self._database, _rows, _row(connector), connector.revision - 1, apart
            )
            if secrets is not None:
                await connection.execute(
                    delete(_secrets).filter_by(
                        workspace=connector.workspace, connector_id=connector.id, user=""
                    )
                )
                await self._put_secrets(connection, connector, secrets)
            if forget_personal:  # the row is locked by now: no user's secret comes in between
                is_personal = (_secrets.c.connector_id == connector.id) & (_secrets.c.user != "")
                await connection.execute(delete(_secrets).where(is_personal))

    async def learn(self, connector: Connector) -> bool:
        row = _row(connector)
        is_this = and_(*(_rows.c[name] == row[name] for name in ("workspace", "id", "revision")))
        learned = update(_rows).where(is_this).values({name: row[name] for name in _LEARNED})
        async with self._database.write() as connection:
            if not (await connection.execute(learned)).rowcount:
                return False
            details = {"changed": sorted(_LEARNED)}
            await connection.run_sync(note, self._database, change_of(_rows, row, "updated", details))
        return True

    async def remove(self, workspace: str, connector_id: str) -> None:
        async with self._database.write() as connection:
            is_this = (_rows.c.workspace == workspace) & (_rows.c.id == connector_id)
            await connection.run_sync(remove_rows, self._database, _rows, is_this)
            await connection.execute(delete(_allowances).filter_by(connector_id=connector_id))

    async def secrets(self, connector: Connector, workspace: str, user: str) -> Sequence[SealedSecret]:
        is_shared = (_secrets.c.workspace == connector.workspace) & (_secrets.c.user == "")
        is_own = (_secrets.c.workspace == workspace) & (_secrets.c.user == user)
        query = select(_secrets).where(
            _secrets.c.connector_id == connector.id, is_shared | is_own if user else is_shared
        )
        rows = await self._database.rows(query)
        return sorted((SealedSecret(**row) for row in rows), key=lambda found: (found.user, found.name))

    async def key_ids(self) -> frozenset[str]:
        return frozenset(await self._database.scalars(select(_secrets.c.key_id).distinct()))

    async def put_secrets(
        self,
        connector: Connector,
        holder: tuple[str, str],
        secrets: Sequence[SealedSecret],
        removed: Sequence[str] = (),
    ) -> None:
        workspace, user = holder
        if any((one.workspace, one.user, one.connector_id) != (*holder, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another place")
        is_this = (_rows.c.workspace == connector.workspace) & (_rows.c.id == connector.id)
        async with self._database.write() as connection:
            # The lock is one that a change of the connector waits for, and this for a change.
            stored = select(_rows.c.configuration).where(is_this).with_for_update(read=True)
            configuration = await connection.scalar(stored)
            if configuration is None:
                raise NotFound(f"the connector {connector.slug!r} is gone")
            if secrets and connector.configuration.leads_elsewhere(Configuration.stored(configuration)):
                raise Conflict(
                    f"the connector {connector.slug!r} leads somewhere else since a moment ago",
                    hint="look at it, and give the secret again if it is meant for that",
                )
            if removed:
                await connection.execute(
                    delete(_secrets).where(
                        _secrets.c.workspace == workspace,
                        _secrets.c.connector_id == connector.id,
                        _secrets.c.user == user,
                        _secrets.c.name.in_(removed),
                    )
                )
            if secrets:
                rows = [_secret_row(one) for one in secrets]
                await connection.execute(self._database.upsert(_secrets), rows)
            whose = {"workspace": workspace, "user": user, "connector_id": connector.id}
            details = {"put": [one.name for one in secrets], "removed": [*removed]}
            await connection.run_sync(note, self._database, change_of(_secrets, whose, "updated", details))

    async def secret_names(self, workspace: str, user: str) -> Mapping[str, frozenset[str]]:
        query = select(_secrets.c.connector_id, _secrets.c.name).where(
            _secrets.c.workspace == workspace, _secrets.c.user == user
        )
        names: defaultdict[str, set[str]] = defaultdict(set)
        for row in await self._database.rows(query):
            names[row["connector_id"]].add(row["name"])
        return {connector_id: frozenset(found) for connector_id, found in names.items()}

    async def sealed_with_other(self, key_id: str, limit: int) -> Sequence[SealedSecret]:
        query = select(_secrets).where(_secrets.c.key_id != key_id).limit(limit)
        return [SealedSecret(**row) for row in await self._database.rows(query)]

    async def reseal(self, before: SealedSecret, after: SealedSecret) -> bool:
        is_same = and_(*(_secrets.c[name] == getattr(before, name) for name in _SEALED))
        return bool(await self._database.execute(update(_secrets).where(is_same).values(_secret_row(after))))

    async def tools(self, workspace: str | None = None, connector_id: str | None = None) -> Sequence[Tool]:
        query = select(_tools)
        if workspace is not None:
            query = query.where(_tools.c.workspace == workspace)
        if connector_id is not None:
            query = query.where(_tools.c.connector_id == connector_id)
        rows = await self._database.rows(query)
        return sorted(map(_tool, rows), key=lambda tool: (tool.workspace, tool.name, tool.identity))

    async def save_tools(
        self, tools: Sequence[Tool], versions: Sequence[ToolVersion], removed: Sequence[Tool]
    ) -> None:
        gone = [_tool_place(tool) for tool in removed]
        owners = _owners(versions, tools)
        if not (tools or gone):
            return
        async with self._database.write() as connection:
            await self._check_tools(connection, tools)
            added = (_tool_row(tool) for tool in tools if tool.revision == NEW)
            changed = (_changed_tool(tool) for tool in tools if tool.revision != NEW)
            seen = (_version_row(version, owners[version.tool]) for version in versions)
            await _execute_many(connection, _TOOL_GONE, gone)
            await _execute_many(connection, insert(_tools), added)
            await _execute_many(connection, _TOOL_CHANGED, changed)
            await _execute_many(connection, self._database.upsert(_versions), seen)
            lists = {(one.connector_id, one.identity): one for one in (*tools, *removed)}
            changes = [
                change_of(_tools, _tool_row(one), "updated", {"identity": one.identity})
                for one in lists.values()
            ]
            await connection.run_sync(note, self._database, *changes)

    async def _check_tools(self, connection: AsyncConnection, tools: Sequence[Tool]) -> None:
        """Until the transaction ends nobody else writes tools of these connectors; each is as it was read."""
        connectors = sorted({tool.connector_id for tool in tools})
        lock = select(_rows.c.id).where(_rows.c.id.in_(connectors)).order_by(_rows.c.id)
        if len((await connection.scalars(lock.with_for_update(key_share=True))).all()) < len(connectors):
            raise NotFound("the connector is gone", hint="it was removed in the meantime")
        query = select(*(_tools.c[name] for name in _TOOL_KEY), _tools.c.revision)
        found = await connection.execute(query.where(_tools.c.connector_id.in_(connectors)))
        known = {tuple(row)[:-1]: row.revision for row in found}
        for tool in tools:
            if known.get(tuple(getattr(tool, name) for name in _TOOL_KEY), NEW) != tool.revision:
                raise outdated()

    async def versions(self, tool: Tool) -> Sequence[ToolVersion]:
        query = (
            select(_versions)
            .filter_by(
                workspace=tool.workspace,
                connector_id=tool.connector_id,
                identity=tool.identity,
                tool=tool.name,
            )
            .order_by(_versions.c.version)
        )
        rows = await self._database.rows(query)
        return [_version(row) for row in rows]

    async def metrics(self) -> Mapping[str, ConnectorCounters]:
        query = select(_metrics.c.connector_id, _metrics.c.numbers)
        return {
            row["connector_id"]: ConnectorCounters.restored(row["numbers"])
            for row in await self._database.rows(query)
        }

    async def add_metrics(self, grown: Mapping[str, ConnectorCounters]) -> Mapping[str, ConnectorCounters]:
        if not grown:
            return {}
        # Locked, in one order: a connector removed at this moment cannot spoil the batch of the others, and
        # of two processes that count the same one reads what the other wrote.
        known = (
            select(_rows.c.workspace, _rows.c.id)
            .where(_rows.c.id.in_(grown))
            .order_by(_rows.c.id)
            .with_for_update(key_share=True)
        )
        before = select(_metrics.c.connector_id, _metrics.c.numbers).where(_metrics.c.connector_id.in_(grown))
        totals: dict[str, ConnectorCounters] = {}
        async with self._database.write() as connection:
            places = [
                (workspace, connector_id) for workspace, connector_id in await connection.execute(known)
            ]
            kept = {row.connector_id: row.numbers for row in await connection.execute(before)}
            for _, connector_id in places:
                counted = ConnectorCounters.restored(kept.get(connector_id, {}))
                totals[connector_id] = counted.plus(grown[connector_id])
            rows = [
                {
                    "workspace": workspace,
                    "connector_id": connector_id,
                    "numbers": totals[connector_id].numbers(),
                }
                for workspace, connector_id in places
            ]
            if rows:
                await connection.execute(self._database.upsert(_metrics), rows)
        return totals

    async def describe(
        self, process: str, slugs: Collection[str], until: datetime, now: datetime
    ) -> Mapping[str, frozenset[str]]:
        row = {"process": process, "slugs": sorted(slugs), "expires_at": until}
        async with self._database.write() as connection:
            await connection.execute(delete(_files).where(_files.c.expires_at <= now))
            await connection.execute(self._database.upsert(_files), row)
            found = await connection.execute(select(_files.c.process, _files.c.slugs))
            return {one: frozenset(described) for one, described in found}

    async def withdraw(self, process: str) -> None:
        await self._database.execute(delete(_files).where(_files.c.process == process))

    async def put_flow(self, flow: AuthorizationFlow) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(_flows).where(_flows.c.expires_at <= datetime.now(UTC)))
            await connection.execute(insert(_flows), asdict(flow))

    async def take_flow(self, state_hash: str, now: datetime) -> AuthorizationFlow | None:
        taken = delete(_flows).filter_by(state_hash=state_hash).returning(*_flows.columns)
        async with self._database.write() as connection:
            row = (await connection.execute(taken)).mappings().one_or_none()
        flow = AuthorizationFlow(**row) if row else None
        return flow if flow and flow.expires_at > now else None

    async def _check_there(self, connection: AsyncConnection, connector: Connector) -> None:
        is_this = (_rows.c.workspace == connector.workspace) & (_rows.c.id == connector.id)
        if await connection.scalar(select(_rows.c.id).where(is_this)) is None:
            raise NotFound(f"the connector {connector.slug!r} is gone")

    async def _check_names(self, connection: AsyncConnection, connector: Connector) -> None:
        """Slugs and aliases share one space of names; no index can say that.

        A name must be free in its own tier and in those above; nobody can hold one against a tier above.
        """
        if not self._database.location.is_sqlite:
            # SQLite's write lock is held already; here, writers of this workspace wait for each other.
            key = func.hashtextextended(connector.workspace, 0)
            await connection.execute(select(func.pg_advisory_xact_lock(key)))
        query = select(_rows.c.slug, _rows.c.aliases).where(
            _rows.c.workspace.in_((connector.workspace, APP)),
            _rows.c.owner.in_(("", connector.owner)),
            _rows.c.id != connector.id,
        )
        wanted = {connector.slug, *connector.aliases}
        for slug, aliases in await connection.execute(query):
            if taken := wanted & {slug, *aliases}:
                raise Conflict(
                    f"the name {min(taken)!r} is taken by the connector {slug!r}",
                    hint="choose another name, or remove that connector first",
                )

    async def _put_secrets(
        self, connection: AsyncConnection, connector: Connector, secrets: Sequence[SealedSecret]
    ) -> None:
        if any((one.workspace, one.connector_id) != (connector.workspace, connector.id) for one in secrets):
            raise ValueError("a secret that was sealed for another connector")
        if secrets:
            await connection.execute(self._database.upsert(_secrets), [_secret_row(one) for one in secrets])


def _row(connector: Connector) -> dict[str, Any]:
    # Only what somebody set: better defaults of a later Dragoman reach old connectors too.
    configuration = connector.configuration.model_dump(mode="json", exclude_unset=True)
    if connector.configuration.command:
        # But this, always: a program of before there were boxes goes on as it did.
        configuration["sandbox"] = connector.configuration.sandbox
    return {
        "id": connector.id,
        "workspace": connector.workspace,
        "owner": connector.owner,
        "slug": connector.slug,
        "configuration": KeptDocument(
            configuration, lambda stored: with_later(configuration, Configuration, stored)
        ),
        "description": connector.description,
        "aliases": list(connector.aliases),
        "enabled": connector.enabled,
        "origin": connector.origin,
        "revision": connector.revision,
        "era": connector.era,
        "instructions": connector.instructions,
        "server": None if connector.server is None else dict(connector.server),
        "created_at": connector.created_at,
        "updated_at": connector.updated_at,
    }


def _connector(row: RowMapping) -> Connector:
    facts = dict(row)
    before = {"sandbox": "none"} if facts["configuration"].get("command") else {}
    facts["configuration"] = Configuration.stored({**before, **facts["configuration"]})
    facts["aliases"] = tuple(facts["aliases"])
    return Connector(**facts)


def _secret_row(secret: SealedSecret) -> Mapping[str, Any]:
    return {column.name: getattr(secret, column.name) for column in _secrets.columns}


async def _execute_many(
    connection: AsyncConnection, statement: Executable, rows: Iterable[dict[str, Any]]
) -> None:
    """A few rows at a time: what SQLAlchemy prepares of one statement, nobody else can interrupt."""
    rows = iter(rows)
    while some := [*islice(rows, _ROWS_PER_TURN)]:
        await connection.execute(statement, some)
        await asyncio.sleep(0)


def _owners(versions: Sequence[ToolVersion], tools: Sequence[Tool]) -> Mapping[str, Tool]:
    """A version names its tool only; whose it is, the tool saved beside it says."""
    owners = {tool.name: tool for tool in tools}
    if versions and len(owners) != len(tools):
        raise ValueError("versions can be saved for one connector and identity at a time")
    if lost := [version.tool for version in versions if version.tool not in owners]:
        raise ValueError(f"a version of {lost[0]!r} without the tool itself")
    return owners


def _version_row(version: ToolVersion, tool: Tool) -> dict[str, Any]:
    return {
        "workspace": tool.workspace,
        "connector_id": tool.connector_id,
        "identity": tool.identity,
        "tool": version.tool,
        "version": version.version,
        "fingerprint": version.fingerprint,
        "definition": _document(version.definition),
        "diff": version.diff,
        "seen_at": version.seen_at,
    }


def _tool_place(tool: Tool) -> dict[str, Any]:
    return {f"of_{name}": getattr(tool, name) for name in _TOOL_KEY}


def _changed_tool(tool: Tool) -> dict[str, Any]:
    row = _tool_row(tool)
    new = {f"new_{name}": row[name] for name in row if name not in (*_TOOL_KEY, "first_seen")}
    return {**_tool_place(tool), **new}


def _tool_row(tool: Tool) -> dict[str, Any]:
    """As it is written: its revision is one more than the one that was read."""
    facts = {column.name: getattr(tool, column.name) for column in _tools.columns}
    facts["revision"] = tool.revision + 1
    facts["definition"] = _document(tool.definition)
    facts["allowed_callers"] = sorted(tool.allowed_callers)
    facts["required_capabilities"] = sorted(tool.required_capabilities)
    return facts


def _tool(row: RowMapping) -> Tool:
    facts = dict(row)
    facts["definition"] = _definition(facts["definition"])
    facts["allowed_callers"] = frozenset(facts["allowed_callers"])
    facts["required_capabilities"] = frozenset(facts["required_capabilities"])
    return Tool(**facts)


def _version(row: RowMapping) -> ToolVersion:
    return ToolVersion(
        tool=row["tool"],
        version=row["version"],
        fingerprint=row["fingerprint"],
        definition=_definition(row["definition"]),
        diff=row["diff"],
        seen_at=row["seen_at"],
    )


def _document(definition: ToolDefinition) -> dict[str, Any]:
    return {
        "original_name": definition.original_name,
        "title": definition.title,
        "description": definition.description,
        "input_schema": definition.input_schema,
        "output_schema": definition.output_schema,
        "annotations": {name: getattr(definition.annotations, name) for name in _ANNOTATIONS},
        "meta": definition.meta,
    }


def _definition(document: Mapping[str, Any]) -> ToolDefinition:
    facts = dict(document)
    facts["annotations"] = known_to(Annotations, facts["annotations"])
    return known_to(ToolDefinition, facts)
