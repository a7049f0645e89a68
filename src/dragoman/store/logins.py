"""Clients that registered themselves, and the keys that sign access tokens, as rows."""

from collections.abc import Sequence
from dataclasses import asdict
from datetime import datetime

from sqlalchemy import delete, func, insert, select, update

from dragoman.store import tables
from dragoman.store.database import SqlAggregate
from dragoman.store.records import RegisteredClient, SealedSigningKey

_clients = tables.oauth_clients
_keys = tables.signing_keys


class SqlLogins(SqlAggregate):
    """Fills `LoginStore`."""

    async def add_client(self, client: RegisteredClient, now: datetime, most_unused: int) -> None:
        unused = select(_clients.c.id).where(_clients.c.is_used.is_(False))
        async with self._database.write() as connection:
            await connection.execute(delete(_clients).where(_clients.c.expires_at <= now))
            count = await connection.scalar(select(func.count()).select_from(unused.subquery()))
            if (beyond := (count or 0) + 1 - most_unused) > 0:
                oldest = unused.order_by(_clients.c.created_at, _clients.c.id).limit(beyond)
                gone = (await connection.scalars(oldest)).all()
                await connection.execute(delete(_clients).where(_clients.c.id.in_(gone)))
            await connection.execute(insert(_clients), asdict(client))

    async def find_client(self, client: str, now: datetime) -> RegisteredClient | None:
        query = select(_clients).where(_clients.c.id == client, _clients.c.expires_at > now)
        row = await self._database.row(query)
        return RegisteredClient(**row) if row else None

    async def keep_client(self, client: str, until: datetime) -> None:
        is_meant = (_clients.c.id == client) & (_clients.c.expires_at < until)
        await self._database.execute(update(_clients).where(is_meant).values(is_used=True, expires_at=until))

    async def signing_keys(self) -> Sequence[SealedSigningKey]:
        query = select(_keys).order_by(_keys.c.created_at.desc(), _keys.c.id)
        return [SealedSigningKey(**row) for row in await self._database.rows(query)]

    async def add_signing_key(self, key: SealedSigningKey) -> None:
        await self._database.execute(insert(_keys), [asdict(key)])

    async def forget_signing_keys(self, before: datetime) -> None:
        await self._database.execute(delete(_keys).where(_keys.c.created_at < before))
