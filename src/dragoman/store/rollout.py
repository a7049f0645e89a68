"""How far a new way of working is rolled out, and the runs that it is judged by, as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update

from dragoman.store import tables
from dragoman.store.database import Database, shielded
from dragoman.store.records import RolloutSample

_states = tables.rollout_states
_rows = tables.rollout_samples
_MOST_SAMPLES = 10_000


class SqlRollout:
    """Fills `RolloutStore`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def state(self, name: str) -> Mapping[str, Any] | None:
        async with self._database.read() as connection:
            return await connection.scalar(select(_states.c.state).where(_states.c.name == name))

    @shielded
    async def put_state(self, name: str, state: Mapping[str, Any]) -> None:
        async with self._database.write() as connection:
            await connection.execute(self._database.upsert(_states), [{"name": name, "state": dict(state)}])

    @shielded
    async def add(self, sample: RolloutSample) -> None:
        once = self._database.insert(_rows).on_conflict_do_nothing(index_elements=["workspace", "run"])
        async with self._database.write() as connection:
            await connection.execute(once, [asdict(sample)])

    @shielded
    async def thumb(self, workspace: str, run: str, thumb: int) -> bool:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.run == run)
        async with self._database.write() as connection:
            changed = await connection.execute(update(_rows).where(is_this).values(thumb=thumb))
        return bool(changed.rowcount)

    @shielded
    async def samples(self, since: datetime) -> Sequence[RolloutSample]:
        query = (
            select(_rows)
            .where(_rows.c.at >= since)
            .order_by(_rows.c.at.desc(), _rows.c.run.desc())
            .limit(_MOST_SAMPLES)
        )
        async with self._database.read() as connection:
            found = [RolloutSample(**row) for row in (await connection.execute(query)).mappings()]
        return found[::-1]

    @shielded
    async def forget(self, before: datetime) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(_rows).where(_rows.c.at < before))
