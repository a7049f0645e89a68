"""Runs as rows: accepted, found, listed, and forgotten when they ended long ago."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import Select, insert, select

from dragoman.errors import NotFound
from dragoman.run import FINISHED, Message, Run, RunEvent, RunStatus
from dragoman.store import run_tables
from dragoman.store.messages import add_messages, place_of, wait_for_threads
from dragoman.store.run_claims import SqlRunClaims, has_turn
from dragoman.store.run_families import is_root, lock_families, remove_families, row_of, run_of
from dragoman.store.run_journal import SqlRunJournal
from dragoman.store.run_protocols import Accepted
from dragoman.store.undisturbed import undisturbed

_rows = run_tables.runs


class SqlRuns(SqlRunJournal, SqlRunClaims):
    """Fills `RunRows`."""

    @undisturbed
    async def accept(
        self,
        run: Run,
        message: Message | None = None,
        events: Sequence[RunEvent] = (),
        *,
        worker: str | None = None,
        until: datetime | None = None,
    ) -> Accepted:
        async with self._database.write() as connection:
            if message is not None:
                await wait_for_threads(self._database, connection, {place_of(message)})
                (message,) = await add_messages(connection, [message])
                run = replace(run, message=message.number)
            if not run.is_root and not await lock_families(connection, {(run.workspace, run.root)}):
                raise NotFound("the run that this one belongs to is gone")
            if worker is not None and await has_turn(connection, run):
                run = replace(run, worker=worker, lease_until=until)
            await connection.execute(insert(_rows), [row_of(run)])
            await self._add_events(connection, events)
        return Accepted(run=run, message=message)

    @undisturbed
    async def find(self, workspace: str, run: str) -> Run | None:
        found = await self._runs(select(_rows).where(_rows.c.workspace == workspace, _rows.c.id == run))
        return found[0] if found else None

    @undisturbed
    async def list(
        self,
        workspace: str,
        user: str | None = None,
        *,
        thread: str | None = None,
        agent: str | None = None,
        status: RunStatus | None = None,
        roots_only: bool = False,
        before: datetime | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        wanted = {"user": user, "thread": thread, "agent": agent, "status": status}
        query = select(_rows).where(_rows.c.workspace == workspace)
        query = query.where(*(_rows.c[name] == value for name, value in wanted.items() if value is not None))
        if roots_only:
            query = query.where(is_root)
        if before is not None:
            query = query.where(_rows.c.created_at < before)
        return await self._runs(query.order_by(_rows.c.created_at.desc(), _rows.c.id).limit(limit))

    @undisturbed
    async def family(self, workspace: str, root: str) -> Sequence[Run]:
        query = select(_rows).where(_rows.c.workspace == workspace, _rows.c.root == root)
        return await self._runs(query.order_by(_rows.c.id != root, _rows.c.created_at, _rows.c.id))

    @undisturbed
    async def child(self, workspace: str, parent: str, parent_call: str) -> Run | None:
        is_child = (_rows.c.parent == parent) & (_rows.c.parent_call == parent_call)
        query = select(_rows).where(_rows.c.workspace == workspace, is_child)
        found = await self._runs(query.order_by(_rows.c.created_at, _rows.c.id).limit(1))
        return found[0] if found else None

    @undisturbed
    async def roots_after(self, workspace: str, user: str, thread: str, message: int) -> Sequence[Run]:
        query = select(_rows).where(
            _rows.c.workspace == workspace,
            _rows.c.user == user,
            _rows.c.thread == thread,
            _rows.c.message > message,
            is_root,
        )
        return await self._runs(query.order_by(_rows.c.message, _rows.c.created_at, _rows.c.id))

    @undisturbed
    async def forget(self, before: datetime) -> int:
        is_old = _rows.c.status.in_(sorted(FINISHED)) & (_rows.c.finished_at < before)
        async with self._database.write() as connection:
            return await remove_families(connection, is_old)

    async def _runs(self, query: Select[*tuple[Any, ...]]) -> Sequence[Run]:
        async with self._database.read() as connection:
            return [run_of(row) for row in (await connection.execute(query)).mappings()]
