"""Threads as rows. A thread is found only together with its user."""

from collections.abc import Sequence

from sqlalchemy import ColumnElement, RowMapping, Table, bindparam, delete, select

from dragoman.people import Thread
from dragoman.store import run_tables, tables
from dragoman.store.database import Database
from dragoman.store.messages import wait_for_threads
from dragoman.store.run_families import remove_families
from dragoman.store.shielded import shielded

_rows = tables.threads
_loaded = tables.loaded_tools
_messages = run_tables.messages
_runs = run_tables.runs
# Made once: to put it together costs more than to execute it.
_FOUND = select(_rows).where(
    _rows.c.workspace == bindparam("of_workspace"),
    _rows.c.user == bindparam("of_user"),
    _rows.c.id == bindparam("of_thread"),
)


class SqlThreads:
    """Fills `ThreadRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def list(self, workspace: str, user: str, limit: int = 100) -> Sequence[Thread]:
        query = (
            select(_rows)
            .where(_rows.c.workspace == workspace, _rows.c.user == user)
            .order_by(_rows.c.updated_at.desc(), _rows.c.id)
            .limit(limit)
        )
        async with self._database.read() as connection:
            return [_thread(row) for row in (await connection.execute(query)).mappings()]

    @shielded
    async def find(self, workspace: str, user: str, thread: str) -> Thread | None:
        facts = {"of_workspace": workspace, "of_user": user, "of_thread": thread}
        async with self._database.read() as connection:
            row = (await connection.execute(_FOUND, facts)).mappings().one_or_none()
        return _thread(row) if row else None

    @shielded
    async def put(self, thread: Thread) -> None:
        facts = {column.name: getattr(thread, column.name) for column in _rows.columns}
        facts["connectors"] = None if thread.connectors is None else list(thread.connectors)
        async with self._database.write() as connection:
            await connection.execute(self._database.upsert(_rows), [facts])

    @shielded
    async def remove(self, workspace: str, user: str, thread: str) -> None:
        place = (workspace, user, thread)
        async with self._database.write() as connection:
            await wait_for_threads(self._database, connection, {place})
            await remove_families(connection, _is_in(_runs, *place))
            await connection.execute(delete(_rows).where(_is(*place)))
            for table in (_messages, _loaded):
                await connection.execute(delete(table).where(_is_in(table, *place)))


def _is(workspace: str, user: str, thread: str) -> ColumnElement[bool]:
    return (_rows.c.workspace == workspace) & (_rows.c.user == user) & (_rows.c.id == thread)


def _is_in(table: Table, workspace: str, user: str, thread: str) -> ColumnElement[bool]:
    return (table.c.workspace == workspace) & (table.c.user == user) & (table.c.thread == thread)


def _thread(row: RowMapping) -> Thread:
    facts = dict(row)
    if facts["connectors"] is not None:
        facts["connectors"] = tuple(facts["connectors"])
    return Thread(**facts)
