"""The last numbers of each connector, as rows."""

from collections.abc import Mapping
from typing import Any

from sqlalchemy import select

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.shielded import shielded

_rows = tables.connector_metrics
_connectors = tables.connectors


class SqlMetrics:
    """Fills `MetricRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def load(self) -> Mapping[str, Mapping[str, Any]]:
        query = select(_rows.c.connector_id, _rows.c.numbers)
        async with self._database.read() as connection:
            return {row.connector_id: row.numbers for row in await connection.execute(query)}

    @shielded
    async def save(self, numbers: Mapping[str, Mapping[str, Any]]) -> None:
        if not numbers:
            return
        # Locked, so that a connector removed at this moment cannot spoil the batch of the others.
        known = (
            select(_connectors.c.workspace, _connectors.c.id)
            .where(_connectors.c.id.in_(numbers))
            .with_for_update(read=True, key_share=True)
        )
        async with self._database.write() as connection:
            rows = [
                {"workspace": workspace, "connector_id": connector_id, "numbers": numbers[connector_id]}
                for workspace, connector_id in await connection.execute(known)
            ]
            if rows:
                await connection.execute(self._database.upsert(_rows), rows)
