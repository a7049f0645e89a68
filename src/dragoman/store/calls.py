"""Finished calls, and results too large for their callers, as rows. They outlive their connector."""

from collections.abc import Sequence
from datetime import datetime
from operator import attrgetter

from sqlalchemy import delete, func, insert, select

from dragoman.store import tables
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.database import Database, shielded
from dragoman.store.records import CallRecord, KeptResult

_rows = tables.calls
_results = tables.results
_values = attrgetter(*(column.name for column in _rows.columns))


class SqlCalls:
    """Fills `CallStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._bulk = BulkInsert(_rows, unless_there=["workspace", "id"])

    @shielded
    async def add(self, records: Sequence[CallRecord]) -> None:
        if not records:
            return
        async with self._database.write() as connection:
            await self._bulk.insert(connection, [_values(record) for record in records])

    @shielded
    async def recent(self, workspace: str, user: str, limit: int = 100) -> Sequence[CallRecord]:
        query = (
            select(_rows)
            .where(_rows.c.workspace == workspace, _rows.c.user == user)
            .order_by(_rows.c.started_at.desc(), _rows.c.id)
            .limit(limit)
        )
        async with self._database.read() as connection:
            rows = (await connection.execute(query)).mappings().all()
        return [CallRecord(**row) for row in rows]

    @shielded
    async def count(self, workspace: str, user: str, since: datetime) -> int:
        query = select(func.count()).where(
            _rows.c.workspace == workspace, _rows.c.user == user, _rows.c.started_at >= since
        )
        async with self._database.read() as connection:
            return await connection.scalar(query) or 0

    @shielded
    async def forget(self, before: datetime) -> int:
        async with self._database.write() as connection:
            gone = await connection.execute(delete(_rows).where(_rows.c.started_at < before))
            return gone.rowcount

    @shielded
    async def keep_result(self, result: KeptResult) -> None:
        row = {column.name: getattr(result, column.name) for column in _results.columns}
        async with self._database.write() as connection:
            await connection.execute(insert(_results), row)

    @shielded
    async def find_result(self, workspace: str, user: str, handle: str) -> KeptResult | None:
        query = select(_results).where(
            _results.c.workspace == workspace, _results.c.user == user, _results.c.handle == handle
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).mappings().first()
        return None if row is None else KeptResult(**row)

    @shielded
    async def forget_results(self, before: datetime) -> int:
        async with self._database.write() as connection:
            gone = await connection.execute(delete(_results).where(_results.c.created_at < before))
            return gone.rowcount
