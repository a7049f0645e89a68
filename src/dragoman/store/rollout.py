"""How far a new way of working is rolled out, and the runs that it is judged by, as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from sqlalchemy import delete, select, update

from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.records import RolloutSample
from dragoman.store.revised_rows import NEW, outdated, put_row

_states = tables.rollout_states
_rows = tables.rollout_samples
_MOST_SAMPLES = 10_000


class SqlRollout(SqlAggregate):
    """Fills `RolloutStore`."""

    async def state(self, name: str) -> Mapping[str, Any] | None:
        return await self._database.scalar(select(_states.c.state).where(_states.c.name == name))

    async def put_state(self, name: str, state: Mapping[str, Any], before: Mapping[str, Any] | None) -> None:
        async with self._database.write() as connection:
            stored = select(_states).where(_states.c.name == name).with_for_update()
            known = (await connection.execute(stored)).mappings().first()
            if before != (None if known is None else known["state"]):
                raise outdated()
            row = {"name": name, "state": dict(state)}
            read = NEW if known is None else known["revision"]
            await connection.run_sync(put_row, self._database, _states, row, read)

    async def add(self, sample: RolloutSample) -> None:
        once = self._database.insert(_rows).on_conflict_do_nothing(index_elements=["workspace", "run"])
        await self._database.execute(once, [asdict(sample)])

    async def thumb(self, workspace: str, run: str, thumb: int) -> bool:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.run == run)
        return bool(await self._database.execute(update(_rows).where(is_this).values(thumb=thumb)))

    async def samples(self, since: datetime) -> Sequence[RolloutSample]:
        query = (
            select(_rows)
            .where(_rows.c.at >= since)
            .order_by(_rows.c.at.desc(), _rows.c.run.desc())
            .limit(_MOST_SAMPLES)
        )
        return [RolloutSample(**row) for row in reversed(await self._database.rows(query))]

    async def forget(self, before: datetime) -> None:
        await self._database.remove_much(delete(_rows).where(_rows.c.at < before))
