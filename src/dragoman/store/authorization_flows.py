"""Authorisations that people have begun, as rows. Each is taken once."""

from dataclasses import asdict
from datetime import UTC, datetime

from sqlalchemy import delete, insert

from dragoman.store import tables
from dragoman.store.database import Database
from dragoman.store.records import AuthorizationFlow
from dragoman.store.shielded import shielded

_rows = tables.authorization_flows


class SqlFlows:
    """Fills `FlowRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def put(self, flow: AuthorizationFlow) -> None:
        async with self._database.write() as connection:
            await connection.execute(delete(_rows).where(_rows.c.expires_at <= datetime.now(UTC)))
            await connection.execute(insert(_rows), asdict(flow))

    @shielded
    async def take(self, state_hash: str, now: datetime) -> AuthorizationFlow | None:
        taken = delete(_rows).where(_rows.c.state_hash == state_hash).returning(*_rows.columns)
        async with self._database.write() as connection:
            row = (await connection.execute(taken)).mappings().one_or_none()
        flow = AuthorizationFlow(**row) if row else None
        return flow if flow and flow.expires_at > now else None
