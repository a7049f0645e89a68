"""What was used, counted so that several processes agree, as rows.

Counting and comparing happen in one transaction. In PostgreSQL those of one subject wait for each other;
SQLite has one writer anyway.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime

from sqlalchemy import delete, func, insert, select
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import Lease, Meter
from dragoman.store.undisturbed import undisturbed

_rows = tables.usage
_leases = tables.leases


class SqlUsage:
    """Fills `UsageRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @undisturbed
    async def take(
        self, workspace: str, meters: Sequence[Meter], lease: Sequence[Lease]
    ) -> Meter | Lease | None:
        async with self._database.write() as connection:
            await self._wait_for_turn(connection, workspace, {one.subject for one in (*meters, *lease)})
            for meter in meters:
                # An amount of nothing asks whether there is room at all.
                used = await self._amount(connection, workspace, meter)
                if used + meter.amount > meter.limit or (not meter.amount and used >= meter.limit):
                    return meter
            for one in lease:
                if await self._places(connection, workspace, one) >= one.limit:
                    return one
            await self._add(connection, workspace, meters)
            if lease:
                rows = [
                    {
                        "workspace": workspace,
                        "subject": one.subject,
                        "id": one.id,
                        "expires_at": one.expires_at,
                    }
                    for one in lease
                ]
                await connection.execute(insert(_leases), rows)
        return None

    @undisturbed
    async def add(self, workspace: str, meters: Sequence[Meter]) -> None:
        async with self._database.write() as connection:
            await self._add(connection, workspace, meters)

    @undisturbed
    async def give_back(self, workspace: str, leases: Sequence[Lease]) -> None:
        async with self._database.write() as connection:
            for one in leases:
                await connection.execute(
                    delete(_leases).where(
                        _leases.c.workspace == workspace,
                        _leases.c.subject == one.subject,
                        _leases.c.id == one.id,
                    )
                )

    @undisturbed
    async def read(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        query = select(_rows.c.measure, _rows.c.window, _rows.c.amount).where(
            _rows.c.workspace == workspace, _rows.c.subject == subject
        )
        async with self._database.read() as connection:
            return {(row.measure, row.window): row.amount for row in await connection.execute(query)}

    @undisturbed
    async def forget(self, before_window: Mapping[str, int], now: datetime) -> None:
        async with self._database.write() as connection:
            for measure, window in before_window.items():
                await connection.execute(
                    delete(_rows).where(_rows.c.measure == measure, _rows.c.window < window)
                )
            await connection.execute(delete(_leases).where(_leases.c.expires_at <= now))

    async def _wait_for_turn(self, connection: AsyncConnection, workspace: str, subjects: set[str]) -> None:
        if self._database.location.is_sqlite:
            return
        for subject in sorted(subjects):  # always in this order, so that no two wait for each other
            key = func.hashtextextended(f"dragoman usage {workspace} {subject}", 0)
            await connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def _amount(self, connection: AsyncConnection, workspace: str, meter: Meter) -> float:
        query = select(_rows.c.amount).where(
            _rows.c.workspace == workspace,
            _rows.c.subject == meter.subject,
            _rows.c.measure == meter.measure,
            _rows.c.window == meter.window,
        )
        return await connection.scalar(query) or 0.0

    async def _places(self, connection: AsyncConnection, workspace: str, lease: Lease) -> int:
        query = select(func.count()).where(
            _leases.c.workspace == workspace,
            _leases.c.subject == lease.subject,
            _leases.c.expires_at > datetime.now(UTC),
        )
        return await connection.scalar(query) or 0

    async def _add(self, connection: AsyncConnection, workspace: str, meters: Sequence[Meter]) -> None:
        rows = [
            {
                "workspace": workspace,
                "subject": meter.subject,
                "measure": meter.measure,
                "window": meter.window,
                "amount": meter.amount,
            }
            for meter in meters
            if meter.amount
        ]
        if not rows:
            return
        statement = self._database.insert(_rows)
        added = statement.on_conflict_do_update(
            index_elements=["workspace", "subject", "measure", "window"],
            set_={"amount": _rows.c.amount + statement.excluded.amount},
        )
        await connection.execute(added, rows)
