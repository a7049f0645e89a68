"""Finished calls, and results too large for their callers, as rows. They outlive their connector."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from sqlalchemy import delete, func, insert, select

from dragoman.store import tables
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.records import CallRecord, KeptResult

_rows = tables.calls
_results = tables.results
_values = attrgetter(*(column.name for column in _rows.columns))


class SqlCalls(SqlAggregate):
    """Fills `CallStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._bulk = BulkInsert(_rows, unless_there=["workspace", "id"])

    async def add(self, records: Sequence[CallRecord]) -> None:
        if not records:
            return
        rows = [_values(record) for record in records]
        await self._database.transact(lambda connection: self._bulk.insert(connection, rows))

    async def recent(self, workspace: str, user: str, limit: int = 100) -> Sequence[CallRecord]:
        query = (
            select(_rows)
            .filter_by(workspace=workspace, user=user)
            .order_by(_rows.c.started_at.desc(), _rows.c.id)
            .limit(limit)
        )
        rows = await self._database.rows(query)
        return [CallRecord(**row) for row in rows]

    async def count(self, workspace: str, user: str, since: datetime) -> int:
        query = select(func.count()).where(
            _rows.c.workspace == workspace, _rows.c.user == user, _rows.c.started_at >= since
        )
        return await self._database.scalar(query) or 0

    async def forget(self, before: datetime, workspace: str | None = None) -> int:
        gone = delete(_rows).where(_rows.c.started_at < before)
        return await self._database.remove_much(
            gone if workspace is None else gone.filter_by(workspace=workspace)
        )

    async def keep_result(self, result: KeptResult) -> None:
        row = {column.name: getattr(result, column.name) for column in _results.columns}
        await self._database.execute(insert(_results), row)

    async def find_result(self, workspace: str, user: str, handle: str) -> KeptResult | None:
        query = select(_results).where(
            _results.c.workspace == workspace, _results.c.user == user, _results.c.handle == handle
        )
        row = await self._database.row(query)
        return None if row is None else KeptResult(**row)

    async def forget_results(self, before: datetime, workspace: str | None = None) -> int:
        gone = delete(_results).where(_results.c.created_at < before)
        return await self._database.remove_much(
            gone if workspace is None else gone.filter_by(workspace=workspace)
        )
