"""Results too large for their callers, as rows."""

from datetime import datetime

from sqlalchemy import delete, insert, select

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import KeptResult
from dragoman.store.shielded import shielded

_rows = tables.results


class SqlResults:
    """Fills `ResultRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def keep(self, result: KeptResult) -> None:
        row = {column.name: getattr(result, column.name) for column in _rows.columns}
        async with self._database.write() as connection:
            await connection.execute(insert(_rows), row)

    @shielded
    async def find(self, workspace: str, user: str, handle: str) -> KeptResult | None:
        query = select(_rows).where(
            _rows.c.workspace == workspace, _rows.c.user == user, _rows.c.handle == handle
        )
        async with self._database.read() as connection:
            row = (await connection.execute(query)).mappings().first()
        return None if row is None else KeptResult(**row)

    @shielded
    async def forget(self, before: datetime) -> int:
        async with self._database.write() as connection:
            gone = await connection.execute(delete(_rows).where(_rows.c.created_at < before))
            return gone.rowcount
