"""The audit trail as rows: append-only, and each entry's hash covers the one before it.

Whoever changes or takes out an entry breaks the chain from there on; `audit_chain` says how it is made.
"""

from collections import defaultdict
from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from sqlalchemy import Connection, bindparam, delete, func, or_, select

from dragoman.store import tables
from dragoman.store.audit_chain import link
from dragoman.store.bulk_insert import AT_ONCE, BulkInsert
from dragoman.store.columns import from_json, storable, to_json
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import AuditEntry

_rows = tables.audit
_heads = tables.audit_heads
_facts = attrgetter(*(column.name for column in _rows.columns if column.name != "hash"))
# Made once: to put it together costs more than to execute it.
_HEAD = PreparedStatement(
    select(_heads.c.number, _heads.c.hash, _heads.c.forgotten_number, _heads.c.forgotten_hash).where(
        _heads.c.workspace == bindparam("of_workspace")
    )
)
_SEARCHED = (_rows.c.subject, _rows.c.action, _rows.c.outcome, _rows.c.agent)


class SqlAudit(SqlAggregate):
    """Fills `AuditStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._bulk = BulkInsert(_rows)
        self._put_heads = PreparedStatement(database.upsert(_heads))

    async def append(self, entries: Sequence[AuditEntry]) -> None:
        if entries:
            await self._database.transact(lambda connection: self.append_all(connection, entries))

    async def read(
        self,
        workspace: str,
        *,
        after: int = 0,
        limit: int = 1000,
        user: str | None = None,
        action: str | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        words: Sequence[str] = (),
        newest_first: bool = False,
    ) -> Sequence[AuditEntry]:
        order = _rows.c.number.desc() if newest_first else _rows.c.number
        query = select(_rows).filter_by(workspace=workspace).order_by(order).limit(limit)
        if newest_first and after:
            query = query.where(_rows.c.number < after)
        elif after:
            query = query.where(_rows.c.number > after)
        if user is not None:
            query = query.where(_rows.c.user == user)
        if action is not None:
            query = query.where(_rows.c.action == action)
        if since is not None:
            query = query.where(_rows.c.time >= since)
        if until is not None:
            query = query.where(_rows.c.time < until)
        if words:
            any_of = [one.icontains(word, autoescape=True) for word in words for one in _SEARCHED]
            query = query.where(or_(*any_of))
        return [AuditEntry(**row) for row in await self._database.rows(query)]

    async def workspaces(self) -> Sequence[str]:
        query = select(_heads.c.workspace).order_by(_heads.c.workspace)
        return await self._database.scalars(query)

    async def forget(self, workspace: str, before: datetime) -> int:
        is_theirs = _rows.c.workspace == workspace
        async with self._database.write_much() as connection:
            number, hash, *_ = await connection.run_sync(self._head, workspace)
            # The first that stays: everything before it goes, whatever its time says.
            kept = await connection.scalar(
                select(func.min(_rows.c.number)).where(is_theirs, _rows.c.time >= before)
            )
            last_gone = number if kept is None else kept - 1
            gone_hash = await connection.scalar(
                select(_rows.c.hash).where(is_theirs, _rows.c.number == last_gone)
            )
            if gone_hash is None:
                return 0
            gone = await connection.execute(delete(_rows).where(is_theirs, _rows.c.number <= last_gone))
            await connection.run_sync(self._put_head, workspace, (number, hash, last_gone, gone_hash))
            return gone.rowcount

    async def anchor(self, workspace: str) -> tuple[int, str]:
        query = select(_heads.c.forgotten_number, _heads.c.forgotten_hash).where(
            _heads.c.workspace == workspace
        )
        row = await self._database.row(query)
        return (row["forgotten_number"], row["forgotten_hash"]) if row else (0, "")

    async def head(self, workspace: str) -> tuple[int, str]:
        query = select(_heads.c.number, _heads.c.hash).where(_heads.c.workspace == workspace)
        row = await self._database.row(query)
        return (row["number"], row["hash"]) if row else (0, "")

    def append_all(self, connection: Connection, entries: Sequence[AuditEntry]) -> None:
        """In a transaction of somebody else, as the last of it: until its end nobody else adds to a trail."""
        by_workspace: defaultdict[str, list[AuditEntry]] = defaultdict(list)
        for entry in entries:
            by_workspace[entry.workspace].append(entry)
        for workspace in sorted(by_workspace):  # always in this order, so that no two wait for each other
            self.append_in(connection, workspace, by_workspace[workspace])

    def append_in(self, connection: Connection, workspace: str, entries: Sequence[AuditEntry]) -> None:
        """In a transaction of somebody else."""
        number, hash, forgotten_number, forgotten_hash = self._head(connection, workspace)
        for start in range(0, len(entries), AT_ONCE):
            rows: list[tuple[object, ...]] = []
            for entry in entries[start : start + AT_ONCE]:
                number += 1
                written = _storable(entry, number, hash)
                hash = link(written)
                rows.append((*_facts(written), hash))
            self._bulk.insert(connection, rows)
        self._put_head(connection, workspace, (number, hash, forgotten_number, forgotten_hash))

    def _head(self, connection: Connection, workspace: str) -> tuple[int, str, int, str]:
        if not self._database.location.is_sqlite:
            key = func.hashtextextended(f"dragoman audit {workspace}", 0)
            connection.execute(select(func.pg_advisory_xact_lock(key)))
        found = _HEAD.rows(connection, {"of_workspace": workspace})
        if not found:
            return (0, "", 0, "")
        number, hash, forgotten_number, forgotten_hash = found[0]
        return number, hash, forgotten_number, forgotten_hash

    def _put_head(self, connection: Connection, workspace: str, head: tuple[int, str, int, str]) -> None:
        number, hash, forgotten_number, forgotten_hash = head
        row = {
            "workspace": workspace,
            "number": number,
            "hash": hash,
            "forgotten_number": forgotten_number,
            "forgotten_hash": forgotten_hash,
        }
        self._put_heads.run(connection, row)


def _storable(entry: AuditEntry, number: int, previous: str) -> AuditEntry:
    """As the database will give it back, so that the hash holds."""
    # Not `replace`, which takes three times as long: there is one for every call.
    return AuditEntry(
        time=entry.time,
        workspace=entry.workspace,
        user=entry.user,
        agent=None if entry.agent is None else storable(entry.agent),
        way=entry.way,
        action=entry.action,
        subject=storable(entry.subject),
        outcome=storable(entry.outcome),
        arguments_hash=entry.arguments_hash,
        details=from_json(to_json(dict(entry.details))),
        number=number,
        previous=previous,
    )
