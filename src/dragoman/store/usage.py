"""What was used, counted so that several processes agree, as rows.

Counting and comparing happen in one transaction. In PostgreSQL those of one subject wait for each other;
SQLite has one writer anyway.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from secrets import token_hex

from sqlalchemy import ColumnElement, and_, delete, func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.records import ConcurrencyLease, TakenUsage, UsageMeter

_rows = tables.usage
_leases = tables.leases
_key = tuple_(_rows.c.workspace, _rows.c.subject, _rows.c.measure, _rows.c.window)
_A_HAIR = 1e-9  # 0.1 three times is 0.30000000000000004, which is no more than 0.3


class SqlUsage(SqlAggregate):
    """Fills `UsageStore`."""

    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | TakenUsage:
        async with self._database.write() as connection:
            await self._wait_for_turn(
                connection, {(one.workspace, one.subject) for one in (*meters, *leases)}
            )
            amounts = await self._amounts(connection, meters)
            for meter in meters:
                if not _has_room(meter, amounts.get(_key_of(meter), 0.0)):
                    return meter
            places: list[int] = []
            for lease in leases:
                places.append(await _places(connection, lease.workspace, lease.subject, now) + 1)
                if places[-1] > lease.limit:
                    return lease
            ahead = [meter.ahead_of(amounts.get(_key_of(meter), 0.0)) for meter in meters]
            await self._add(
                connection,
                [replace(one, amount=one.amount + more) for one, more in zip(meters, ahead, strict=True)],
            )
            if leases:
                await connection.execute(insert(_leases), [_lease_row(lease) for lease in leases])
        return TakenUsage(ahead=tuple(ahead), places=tuple(places))

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        async with self._database.write() as connection:
            await self._add(connection, meters)
            for lease in leases:
                await connection.execute(
                    delete(_leases).filter_by(workspace=lease.workspace, subject=lease.subject, id=lease.id)
                )

    async def give_back(self, meters: Sequence[UsageMeter]) -> None:
        async with self._database.write() as connection:
            for meter in sorted(meters, key=_key_of):
                await connection.execute(
                    update(_rows)
                    .where(_key == tuple_(*_key_of(meter)), _rows.c.amount >= meter.amount - _A_HAIR)
                    .values(amount=_rows.c.amount - meter.amount)
                )

    async def read(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        query = select(_rows.c.measure, _rows.c.window, _rows.c.amount).where(
            _rows.c.workspace == workspace, _rows.c.subject == subject
        )
        rows = await self._database.rows(query)
        return {(row["measure"], row["window"]): row["amount"] for row in rows}

    async def count_places(self, workspace: str, subject: str, now: datetime) -> int:
        async with self._database.read() as connection:
            return await _places(connection, workspace, subject, now)

    async def hold_slots(
        self, subject: str, node: str, wanted: int, limit: int, until: datetime, now: datetime
    ) -> Mapping[str, int]:
        async with self._database.write() as connection:
            held = await self._slots(connection, subject, now)
            more = min(wanted - held[node], limit - held.total())
            if more > 0:
                await connection.execute(insert(_leases), _slot_rows(subject, node, more, until))
                held[node] += more
        return held

    async def pass_slots(
        self,
        subject: str,
        node: str,
        counts: Mapping[str | None, int],
        limit: int,
        until: datetime,
        now: datetime,
    ) -> int:
        async with self._database.write() as connection:
            held = await self._slots(connection, subject, now)
            mine = and_(_of_node(node), _leases.c.subject == subject, _leases.c.expires_at > now)
            gone = min(held[node], sum(counts.values()))
            meant = (await connection.scalars(select(_leases.c.id).where(mine).limit(gone))).all()
            await connection.execute(delete(_leases).where(mine, _leases.c.id.in_(meant)))
            room = min(gone, limit - held.total() + gone)
            for to, count in counts.items():
                if to is not None and (given := min(count, room)) > 0:
                    await connection.execute(insert(_leases), _slot_rows(subject, to, given, until))
                    room -= given
        return held[node] - gone

    async def renew_slots(self, node: str, until: datetime, now: datetime) -> Mapping[str, int]:
        async with self._database.write() as connection:
            # Those that have expired may be somebody else's by now.
            mine = update(_leases).where(_of_node(node), _leases.c.expires_at > now)
            renewed = await connection.scalars(mine.values(expires_at=until).returning(_leases.c.subject))
            return Counter(renewed)

    async def drop_slots(self, node: str) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(_leases).where(_of_node(node)))

    async def _slots(self, connection: AsyncConnection, subject: str, now: datetime) -> Counter[str]:
        """How many each node has. Whoever counts is the only one until its transaction ends."""
        await self._wait_for_turn(connection, {("", subject)})
        found = await connection.scalars(
            select(_leases.c.id).where(
                _leases.c.workspace == "", _leases.c.subject == subject, _leases.c.expires_at > now
            )
        )
        return Counter(one.partition(":")[0] for one in found)

    async def forget(self, before_window: Mapping[str, int], now: datetime) -> None:
        async with self._database.write() as connection:
            for measure, window in before_window.items():
                await connection.execute(
                    delete(_rows).where(_rows.c.measure == measure, _rows.c.window < window)
                )
            await connection.execute(delete(_leases).where(_leases.c.expires_at <= now))

    async def _wait_for_turn(self, connection: AsyncConnection, subjects: set[tuple[str, str]]) -> None:
        if self._database.location.is_sqlite:
            return
        for workspace, subject in sorted(subjects):  # always in this order: no two wait for each other
            key = func.hashtextextended(f"dragoman usage {workspace} {subject}", 0)
            await connection.execute(select(func.pg_advisory_xact_lock(key)))

    async def _amounts(
        self, connection: AsyncConnection, meters: Sequence[UsageMeter]
    ) -> Mapping[tuple[str, str, str, int], float]:
        if not meters:
            return {}
        query = select(_rows).where(_key.in_([_key_of(meter) for meter in meters]))
        found = await connection.execute(query)
        return {(row.workspace, row.subject, row.measure, row.window): row.amount for row in found}

    async def _add(self, connection: AsyncConnection, meters: Sequence[UsageMeter]) -> None:
        # Always in this order: two that add to the same rows must not wait for each other.
        rows = [
            dict(zip(_rows.c.keys(), (*_key_of(meter), meter.amount), strict=True))
            for meter in sorted(meters, key=_key_of)
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


def _key_of(meter: UsageMeter) -> tuple[str, str, str, int]:
    return (meter.workspace, meter.subject, meter.measure, meter.window)


def _has_room(meter: UsageMeter, used: float) -> bool:
    if not meter.amount:
        return used < meter.limit
    return used + meter.amount <= meter.limit + _A_HAIR


async def _places(connection: AsyncConnection, workspace: str, subject: str, now: datetime) -> int:
    query = select(func.count()).where(
        _leases.c.workspace == workspace, _leases.c.subject == subject, _leases.c.expires_at > now
    )
    return await connection.scalar(query) or 0


def _slot_rows(subject: str, node: str, count: int, until: datetime) -> list[dict[str, object]]:
    """One row each; it names the node that has it."""
    return [
        {"workspace": "", "subject": subject, "id": f"{node}:{token_hex(6)}", "expires_at": until}
        for _ in range(count)
    ]


def _of_node(node: str) -> ColumnElement[bool]:
    return and_(_leases.c.workspace == "", _leases.c.id.startswith(f"{node}:", autoescape=True))


def _lease_row(lease: ConcurrencyLease) -> dict[str, object]:
    return {
        "workspace": lease.workspace,
        "subject": lease.subject,
        "id": lease.id,
        "expires_at": lease.expires_at,
    }
