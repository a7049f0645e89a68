"""What changed, told to other processes: a row in the same transaction as the change, read by everybody else.

Each open database has an `origin`: nobody is told what they wrote themselves.

PostgreSQL gives numbers when a row is inserted, and transactions end in another order. So a reader goes by
the transactions: what it has read, it has read up to the oldest that was still under way, and rows of that
one and of later ones are looked at again until it has ended. Those it knows already it leaves out.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from functools import cache
from time import time
from typing import Any, Literal

from sqlalchemy import Connection, RowMapping, Select, Table, bindparam, delete, func, insert, select

from dragoman.store import tables
from dragoman.store.database import NOTED, Database, SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import Change, ChangeBatch, ChangePosition

KEPT = timedelta(hours=1)
_rows = tables.changes
_NOTED = insert(_rows).inline().values(at=func.now())
# Made once: to put them together costs more than to execute them.
_NOTED_AT = {
    True: PreparedStatement(_NOTED.values(transaction_id=0)),
    False: PreparedStatement(_NOTED.values(transaction_id=func.txid_current())),
}
_LOOK_AT_FILE, _ASK = 0.25, 0.8
_ROUNDING = 1.0  # seconds within which a file may be written twice and look the same


def note(connection: Connection, database: Database, *changes: Change) -> None:
    """Within the transaction that makes them."""
    if changes:
        rows = [
            {
                "origin": database.origin,
                "kind": one.kind,
                "what": one.what,
                "workspace": one.workspace,
                "user": one.user,
                "subject": one.subject,
                "details": dict(one.details),
            }
            for one in changes
        ]
        _NOTED_AT[database.location.is_sqlite].run(connection, *rows)
        connection.info[NOTED] = True


def change_of(
    table: Table,
    row: Mapping[str, Any],
    what: Literal["added", "updated", "removed"],
    details: Mapping[str, Any] | None = None,
) -> Change:
    """What the description of the table says of one of its rows."""
    told: tables.Told = table.info["told"]
    return Change(
        kind=told.kind,
        what=what,
        workspace=row[told.workspace] if told.workspace else "",
        user=row[told.user] if told.user else "",
        subject=row[told.subject],
        details=details or {},
    )


class SqlChanges(SqlAggregate):
    """Fills `ChangeStore`."""

    def __init__(self, database: Database) -> None:
        super().__init__(database)
        url = database.location.url.database
        self._file = f"{url}-wal" if database.location.is_sqlite else None
        self._written: tuple[int, int] | None = None
        self.interval = _LOOK_AT_FILE if self._file else _ASK

    def on_written(self, told: Callable[[], None]) -> None:
        self._database.on_noted = told

    def may_be_new(self) -> bool:
        """SQLite's write-ahead log says whether anybody wrote; that costs no query."""
        if self._file is None:
            return True
        try:
            found = os.stat(self._file)
        except OSError:
            return True
        written = (found.st_mtime_ns, found.st_size)
        if written == self._written:
            return False
        # Not believed while it is so new that a later write could look the same.
        self._written = written if time() - found.st_mtime > _ROUNDING else None
        return True

    async def end(self) -> ChangePosition:
        """Where who begins now goes on from."""
        return (await self._read(None)).position

    async def after(self, position: ChangePosition) -> ChangeBatch:
        return await self._read(position)

    async def trim(self, now: datetime) -> None:
        await self._database.execute(delete(_rows).where(_rows.c.at < now - KEPT))

    async def _read(self, position: ChangePosition | None) -> ChangeBatch:
        is_sqlite = self._database.location.is_sqlite
        begin = {} if position is None else {"begin": position.horizon}
        found = await self._database.rows(_news(is_sqlite, position is None), begin)
        new_horizon, now = found[0]["horizon"], _aware(found[0]["now"])
        rows = [row for row in found if row["number"] is not None]
        if is_sqlite and position is not None:
            new_horizon = max(new_horizon, position.horizon)
        seen = frozenset(
            row["number"] for row in rows if not is_sqlite and row["transaction_id"] >= new_horizon
        )
        end = ChangePosition(new_horizon, seen, now)
        if position is None:
            return ChangeBatch((), end)
        if new_horizon < position.horizon or now - position.read_at > KEPT / 2:
            return ChangeBatch(None, end)  # another database than before, or some may be trimmed
        new = (row for row in rows if row["number"] not in position.seen)
        return ChangeBatch(tuple(_change(row) for row in new if row["origin"] != self._database.origin), end)


@cache
def _news(is_sqlite: bool, from_here: bool) -> Select[Any]:
    """Made once: every process asks it for as long as it lives."""
    order = _rows.c.number if is_sqlite else _rows.c.transaction_id
    horizon = (
        select(func.coalesce(func.max(_rows.c.number), 0) + 1)
        if is_sqlite
        else select(func.txid_snapshot_xmin(func.txid_current_snapshot()))
    ).scalar_subquery()
    here = select(horizon.label("horizon"), func.now(type_=_rows.c.at.type).label("now")).subquery()
    begin = here.c.horizon if from_here else bindparam("begin", type_=order.type)
    query = select(here, *_rows.columns).select_from(here.outerjoin(_rows, order >= begin))
    return query.order_by(_rows.c.number)


def _aware(time: datetime) -> datetime:
    return time.replace(tzinfo=UTC) if time.tzinfo is None else time.astimezone(UTC)


def _change(row: RowMapping) -> Change:
    names: Sequence[str] = ("kind", "what", "workspace", "user", "subject", "details")
    return Change(**{name: row[name] for name in names})
