"""Runs as rows: accepted, found, listed, and forgotten when they ended long ago."""

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    Select,
    bindparam,
    false,
    literal,
    select,
)

from dragoman.errors import NotFound
from dragoman.run import FINISHED, Run, RunSort, RunStatus
from dragoman.store import tables
from dragoman.store.audit import SqlAudit
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.database import Database
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import AcceptedRun, NewRun
from dragoman.store.run_claims import SqlRunClaims, with_turn
from dragoman.store.run_families import is_root, lock_families, remove_families, row_of, run_of
from dragoman.store.run_figures import FIGURES, has_status
from dragoman.store.run_journal import SqlRunJournal
from dragoman.store.run_questions import SqlRunQuestions
from dragoman.store.threads import add_messages, place_of, put_thread, wait_for_threads

_rows = tables.runs
# Made once: to put them together costs more than to execute them.
_NEW = BulkInsert(_rows)
_FOUND = PreparedStatement(
    select(_rows).where(_rows.c.workspace == bindparam("of_workspace"), _rows.c.id == bindparam("of_run"))
)
_FAMILY = PreparedStatement(
    select(_rows)
    .where(_rows.c.workspace == bindparam("of_workspace"), _rows.c.root == bindparam("of_root"))
    .order_by(_rows.c.id != _rows.c.root, _rows.c.created_at, _rows.c.id)
)
_NAMES = tuple(_rows.c.keys())


def _order(rows: FromClause, sort: RunSort) -> Sequence[ColumnElement[Any]]:
    newest = () if sort == "newest" else (rows.c.created_at.desc(),)
    return (FIGURES[sort](rows).desc(), *newest, rows.c.id)


class SqlRuns(SqlRunJournal, SqlRunClaims, SqlRunQuestions):
    """Fills `RunStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        self._audit = SqlAudit(database)

    async def accept(self, new: Sequence[NewRun]) -> Sequence[AcceptedRun]:
        return await self._database.transact(lambda connection: self._accepted(connection, new))

    def _accepted(self, connection: Connection, new: Sequence[NewRun]) -> Sequence[AcceptedRun]:
        begun = [one.begun for one in new if one.begun is not None]
        messages = [one.message for one in new if one.message is not None]
        wait_for_threads(connection, self._database, set(map(place_of, messages)))
        for one in begun:
            put_thread(connection, self._database, one.thread)
        numbered = iter(add_messages(connection, messages))
        written = [None if one.message is None else next(numbered) for one in new]
        runs = [
            one.run if message is None else replace(one.run, message=message.number)
            for one, message in zip(new, written, strict=True)
        ]
        roots = {(run.workspace, run.root) for run in runs if not run.is_root}
        if lock_families(connection, roots) != roots:
            raise NotFound("the run that this one belongs to is gone")
        wanted = [run for run, one in zip(runs, new, strict=True) if one.worker is not None]
        begins = with_turn(connection, wanted)
        runs = [
            replace(run, worker=one.worker, lease_until=one.until) if run.id in begins else run
            for run, one in zip(runs, new, strict=True)
        ]
        _NEW.insert(connection, [row_of(run) for run in runs])
        self._add_events(connection, [event for one in new for event in one.events])
        self._audit.append_all(connection, [one.entry for one in begun])
        return [AcceptedRun(run=run, message=message) for run, message in zip(runs, written, strict=True)]

    async def find(self, workspace: str, run: str) -> Run | None:
        found = await self._database.found(_FOUND, {"of_workspace": workspace, "of_run": run})
        return run_of(dict(zip(_NAMES, found[0], strict=True))) if found else None

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
        words: str = "",
        among: int | None = None,
        sort: RunSort = "newest",
        after: str | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        wanted = {"user": user, "thread": thread, "agent": agent}
        query = select(_rows).filter_by(workspace=workspace)
        query = query.where(*(_rows.c[name] == value for name, value in wanted.items() if value is not None))
        if status is not None:
            query = query.where(has_status(_rows, status))
            if status not in FINISHED and sort == "longest":
                sort = "newest"  # what has not ended has no length yet
        if roots_only:
            query = query.where(is_root)
        if before is not None:
            query = query.where(_rows.c.created_at < before)
        if after is not None:
            query = query.where(await self._is_behind(workspace, after, sort))
        rows: FromClause = _rows
        if words and among is not None:
            rows = query.order_by(*_order(rows, sort)).limit(among).subquery()
            query = select(rows)
        if words:
            query = query.where(rows.c.request.icontains(words, autoescape=True))
        return await self._runs(query.order_by(*_order(rows, sort)).limit(limit))

    async def family(self, workspace: str, root: str) -> Sequence[Run]:
        found = await self._database.found(_FAMILY, {"of_workspace": workspace, "of_root": root})
        return [run_of(dict(zip(_NAMES, row, strict=True))) for row in found]

    async def child(self, workspace: str, parent: str, parent_call: str) -> Run | None:
        is_child = (_rows.c.parent == parent) & (_rows.c.parent_call == parent_call)
        query = select(_rows).where(_rows.c.workspace == workspace, is_child)
        found = await self._runs(query.order_by(_rows.c.created_at, _rows.c.id).limit(1))
        return found[0] if found else None

    async def roots_after(self, workspace: str, user: str, thread: str, message: int) -> Sequence[Run]:
        query = select(_rows).where(
            _rows.c.workspace == workspace,
            _rows.c.user == user,
            _rows.c.thread == thread,
            _rows.c.message > message,
            is_root,
        )
        return await self._runs(query.order_by(_rows.c.message, _rows.c.created_at, _rows.c.id))

    async def forget(self, workspace: str, before: datetime) -> int:
        is_loose = (_rows.c.workspace == workspace) & (_rows.c.thread == "")
        is_old = _rows.c.status.in_(sorted(FINISHED)) & (_rows.c.finished_at < before)
        async with self._database.write_much() as connection:
            return await remove_families(connection, is_loose & is_old)

    async def _is_behind(self, workspace: str, run: str, sort: RunSort) -> ColumnElement[bool]:
        """Of runs that come after this one."""
        figure, time, name = FIGURES[sort](_rows), _rows.c.created_at, _rows.c.id
        place = select(figure.label("figure"), time).where(_rows.c.workspace == workspace, name == run)
        here = await self._database.row(place)
        if here is None:
            return false()
        value, then = literal(here["figure"], figure.type), literal(here["created_at"], time.type)
        is_older = (time < then) | ((time == then) & (name > run))
        # The first condition says nothing more: it is where a database begins to read its index.
        return (figure <= value) & ((figure < value) | ((figure == value) & is_older))

    async def _runs(self, query: Select[*tuple[Any, ...]]) -> Sequence[Run]:
        return [run_of(row) for row in await self._database.rows(query)]
