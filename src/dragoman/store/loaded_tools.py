"""The tools that are loaded in threads, as rows. Those of a thread are found only together with its user."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import ColumnElement, RowMapping, delete, exists, select

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import LoadedTool
from dragoman.store.shielded import shielded

_rows = tables.loaded_tools
_threads = tables.threads


class SqlLoadedTools:
    """Fills `LoadedToolRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def recent(self, limit: int) -> Sequence[LoadedTool]:
        query = select(_rows).order_by(_rows.c.loaded_at.desc(), _rows.c.tool.desc()).limit(limit)
        async with self._database.read() as connection:
            newest = (await connection.execute(query)).mappings().all()
        return [_loaded(row) for row in reversed(newest)]

    @shielded
    async def list(self, workspace: str, user: str, thread: str) -> Sequence[LoadedTool]:
        query = select(_rows).where(_in(workspace, user, thread)).order_by(_rows.c.loaded_at, _rows.c.tool)
        async with self._database.read() as connection:
            return [_loaded(row) for row in (await connection.execute(query)).mappings()]

    @shielded
    async def change(self, put: Sequence[LoadedTool], removed: Sequence[LoadedTool]) -> None:
        async with self._database.write() as connection:
            for one in removed:
                is_it = _in(one.workspace, one.user, one.thread) & (_rows.c.tool == one.tool)
                await connection.execute(delete(_rows).where(is_it))
            if put:
                await connection.execute(self._database.upsert(_rows), [asdict(one) for one in put])

    @shielded
    async def forget(self, before: datetime) -> None:
        is_written = exists().where(
            _threads.c.workspace == _rows.c.workspace,
            _threads.c.user == _rows.c.user,
            _threads.c.id == _rows.c.thread,
        )
        async with self._database.write() as connection:
            await connection.execute(delete(_rows).where(_rows.c.loaded_at < before, ~is_written))


def _in(workspace: str, user: str, thread: str) -> ColumnElement[bool]:
    return (_rows.c.workspace == workspace) & (_rows.c.user == user) & (_rows.c.thread == thread)


def _loaded(row: RowMapping) -> LoadedTool:
    return LoadedTool(**row)
