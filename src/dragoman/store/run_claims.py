"""Who executes which run, as rows: claims, leases, and the wish that a run ends.

A claim never waits: a row that another process holds at this moment is the other's.
"""

from collections.abc import Collection, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    BindParameter,
    ColumnElement,
    Connection,
    FromClause,
    Select,
    Text,
    Tuple,
    and_,
    bindparam,
    exists,
    func,
    literal,
    not_,
    or_,
    select,
    tuple_,
    update,
)
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.run import Run
from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import HeldRuns
from dragoman.store.run_families import Key, is_root, run_key, run_of

_runs = tables.runs
_other = _runs.alias("other")
_UNFINISHED = ("queued", "running", "waiting")
_is_unfinished = _runs.c.status.in_(_UNFINISHED)
_LONG_AGO = datetime(2000, 1, 1, tzinfo=UTC)
_AFTER_ALL = 2**31 - 1  # a run without a message comes after those with one


class SqlRunClaims(SqlAggregate):
    """The part of `RunStore` that says who executes a run."""

    async def claim(
        self,
        worker: str,
        until: datetime,
        now: datetime,
        *,
        dead: Sequence[str] = (),
        limit: int = 100,
        only: Sequence[Key] | None = None,
    ) -> Sequence[Run]:
        facts: dict[str, Any] = {"now": now, "dead": [*dead], "gone": [*dead], "most": limit}
        wanted = _CLAIMED
        if only is not None:
            wanted, facts = _CLAIMED_OF_THESE, {**facts, "only": [*only]}
        async with self._database.write() as connection:
            return await _take(connection, wanted, facts, worker, until)

    async def claimable(
        self,
        now: datetime,
        *,
        dead: Sequence[str] = (),
        limit: int = 100,
        thread: tuple[str, str, str] | None = None,
    ) -> Sequence[Key]:
        facts: dict[str, Any] = {"now": now, "dead": [*dead], "gone": [*dead], "most": limit}
        query = _FOUND
        if thread is not None:
            query, facts = _FOUND_IN_THREAD, {**facts, **dict(zip(_OF_THREAD, thread, strict=True))}
        return [(row["workspace"], row["id"]) for row in await self._database.rows(query, facts)]

    async def backlog(self, now: datetime) -> tuple[int, datetime | None]:
        facts: dict[str, Any] = {"now": now, "dead": [], "gone": []}
        (row,) = await self._database.rows(_BACKLOG, facts)
        return row["count"], row["since"]

    async def renew(
        self, worker: str, until: datetime, runs: Collection[str] | None = None
    ) -> frozenset[str]:
        async with self._database.write() as connection:
            held = await _lock_held(connection, worker, runs)
            if held:
                await connection.execute(update(_runs).where(run_key.in_(held)).values(lease_until=until))
        return frozenset(run for _, run in held)

    async def has_open(self) -> bool:
        query = select(_runs.c.id).where(_is_unfinished, is_root).limit(1)
        return await self._database.row(query) is not None

    async def holders(self) -> Mapping[str, HeldRuns]:
        until = func.coalesce(func.max(_runs.c.lease_until), _LONG_AGO, type_=_runs.c.lease_until.type)
        is_held = _is_unfinished & _runs.c.worker.is_not(None)
        held = select(_runs.c.worker, until.label("until"), func.count().label("runs"))
        rows = await self._database.rows(held.where(is_held).group_by(_runs.c.worker))
        return {row["worker"]: HeldRuns(row["until"], row["runs"]) for row in rows}

    async def release(self, worker: str, runs: Collection[str] | None = None) -> Sequence[Key]:
        async with self._database.write() as connection:
            if held := await _lock_held(connection, worker, runs):
                # When it began to wait for another.
                now = self._database.clock.now()
                given_back = update(_runs).where(run_key.in_(held)).values(worker=None, lease_until=now)
                await connection.execute(given_back)
        return held

    async def ask_cancel(self, workspace: str, run: str) -> bool:
        await self._database.clock.read()
        now = self._database.clock.now()
        is_this = and_(_runs.c.workspace == workspace, _runs.c.id == run, is_root, _is_unfinished)
        # Only one that never began: whoever takes on another has children and questions to end.
        never_began = (_runs.c.status == "queued") & _is_free(literal(now, _runs.c.lease_until.type), [])
        at_once = update(_runs).where(is_this, never_began)
        async with self._database.write() as connection:
            ended = at_once.values(status="cancelled", cancel_asked=True, finished_at=now)
            if (await connection.execute(ended)).rowcount:
                return True
            marked = update(_runs).where(is_this).values(cancel_asked=True)
            return bool((await connection.execute(marked)).rowcount)

    async def cancels(self, worker: str) -> frozenset[str]:
        return frozenset(run for (run,) in await self._database.found(_CANCELLED, {"by": worker}))


def _is_free(now: ColumnElement[datetime], dead: Any) -> ColumnElement[bool]:
    """An unfinished root run that nobody holds."""
    nobody = or_(
        _runs.c.worker.is_(None),
        _runs.c.lease_until.is_(None),
        _runs.c.lease_until <= now,
        _runs.c.worker.in_(dead),
    )
    return and_(is_root, _is_unfinished, nobody)


def _is_its_turn(now: ColumnElement[datetime], dead: Any) -> ColumnElement[bool]:
    """Nothing of its thread comes before it or is being worked on."""
    is_held = and_(_other.c.worker.is_not(None), _other.c.lease_until > now, _other.c.worker.not_in(dead))
    comes_first = or_(is_held, _place(_other) < _place(_runs))
    in_the_way = exists().where(
        _other.c.workspace == _runs.c.workspace,
        _other.c.user == _runs.c.user,
        _other.c.thread == _runs.c.thread,
        _other.c.id == _other.c.root,
        _other.c.id != _runs.c.id,
        _other.c.status.in_(_UNFINISHED),
        comes_first,
    )
    return or_(_runs.c.thread == "", not_(in_the_way))


def _place(runs: FromClause) -> Tuple:
    return tuple_(func.coalesce(runs.c.message, _AFTER_ALL), runs.c.created_at, runs.c.id)


_now = bindparam("now", type_=_runs.c.lease_until.type)
# The same workers twice: of one parameter the database would be told only how it is used last.
_dead: BindParameter[Any] = bindparam("dead", expanding=True)
_gone: BindParameter[Any] = bindparam("gone", expanding=True)
_may_be_claimed = and_(_is_free(_now, _dead), _is_its_turn(_now, _gone))
# Made once: to put them together costs more than to execute them.
_FOUND = (
    select(_runs.c.workspace, _runs.c.id)
    .where(_may_be_claimed)
    .order_by(_runs.c.created_at, _runs.c.id)
    .limit(bindparam("most"))
)
_OF_THREAD = ("of_workspace", "of_user", "of_thread")
_FOUND_IN_THREAD = _FOUND.where(
    *(_runs.c[name.removeprefix("of_")] == bindparam(name, type_=Text) for name in _OF_THREAD)
)
_CLAIMED = _FOUND.with_for_update(key_share=True, skip_locked=True)
_CLAIMED_OF_THESE = _CLAIMED.where(run_key.in_(bindparam("only", expanding=True)))
_BACKLOG = select(
    func.count().label("count"),
    func.min(func.coalesce(_runs.c.lease_until, _runs.c.created_at)).label("since"),
).where(_may_be_claimed)
_CANCELLED = PreparedStatement(
    select(_runs.c.id).where(
        _is_unfinished, _runs.c.worker == bindparam("by"), _runs.c.cancel_asked.is_(True)
    )
)
_BUSY_THREADS = PreparedStatement(
    select(_runs.c.workspace, _runs.c.user, _runs.c.thread)
    .where(
        tuple_(_runs.c.workspace, _runs.c.user, _runs.c.thread).in_(bindparam("places", expanding=True)),
        is_root,
        _is_unfinished,
    )
    .distinct(),
    "places",
)


def with_turn(connection: Connection, runs: Sequence[Run]) -> frozenset[str]:
    """Which of these may begin at once: one in a thread. Within the transaction that writes them."""
    # Only who adds a message waits for others of the thread.
    placed = {run.id: (run.workspace, run.user, run.thread) for run in runs if run.thread and run.message}
    busy: set[tuple[str, ...]] = set()
    if placed:
        places = sorted(set(placed.values()))
        busy = {tuple(row) for row in _BUSY_THREADS.rows(connection, {"places": places})}
    begin = {run.id for run in runs if not run.thread}
    for run, place in placed.items():
        if place not in busy:
            busy.add(place)
            begin.add(run)
    return frozenset(begin)


async def _take(
    connection: AsyncConnection, free: Select[Any, Any], facts: dict[str, Any], worker: str, until: datetime
) -> Sequence[Run]:
    keys = [(workspace, run) for workspace, run in await connection.execute(free, facts)]
    if not keys:
        return []
    taken = (
        update(_runs)
        .where(run_key.in_(keys))
        .values(worker=worker, lease_until=until)
        .returning(*_runs.columns)
    )
    found = map(run_of, (await connection.execute(taken)).mappings().all())
    return sorted(found, key=lambda run: (run.created_at, run.id))


async def _lock_held(connection: AsyncConnection, worker: str, runs: Collection[str] | None) -> Sequence[Key]:
    query = (
        select(_runs.c.workspace, _runs.c.id)
        .where(_is_unfinished, _runs.c.worker == worker)
        # In the order in which the journal locks them: no two wait for each other.
        .order_by(_runs.c.workspace, _runs.c.id)
        .with_for_update(key_share=True)
    )
    if runs is not None:
        query = query.where(_runs.c.id.in_(runs))
    return [(workspace, run) for workspace, run in await connection.execute(query)]
