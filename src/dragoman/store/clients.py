"""Sessions of MCP clients, and values that are taken once, as rows."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import RowMapping, bindparam, delete, func, insert, select, update

from dragoman.store import tables
from dragoman.store.changes import change_of, note
from dragoman.store.database import SqlAggregate
from dragoman.store.records import ClientSession, OneTimeValue
from dragoman.store.revised_rows import remove_rows

_sessions = tables.client_sessions
_values = tables.one_time_values
_used = (
    update(_sessions)
    .where(_sessions.c.id == bindparam("of_id"), _sessions.c.used_at < bindparam("at"))
    .values(used_at=bindparam("at"))
)


class SqlClients(SqlAggregate):
    """Fills `ClientStore`."""

    async def open_session(
        self, session: ClientSession, most: int, busy: Collection[str] = ()
    ) -> Sequence[str] | None:
        own = (_sessions.c.workspace == session.workspace) & (_sessions.c.user == session.user)
        oldest_first = select(_sessions.c.id).where(own).order_by(_sessions.c.used_at, _sessions.c.id)
        async with self._database.write() as connection:
            known = (await connection.scalars(oldest_first)).all()
            gone = [one for one in known if one not in busy][: max(len(known) + 1 - most, 0)]
            if len(known) - len(gone) >= most:
                return None
            if gone:
                await connection.run_sync(remove_rows, self._database, _sessions, _sessions.c.id.in_(gone))
            await connection.execute(insert(_sessions), _row(session))
        return gone

    async def find_session(self, session: str) -> ClientSession | None:
        row = await self._database.row(select(_sessions).filter_by(id=session))
        return _session(row) if row else None

    async def change_session(
        self, session: str, change: Callable[[ClientSession], ClientSession], *, tells: bool = False
    ) -> ClientSession | None:
        async with self._database.write() as connection:
            query = select(_sessions).filter_by(id=session).with_for_update()
            row = (await connection.execute(query)).mappings().first()
            if row is None:
                return None
            changed = change(_session(row))
            new = _row(changed)
            await connection.execute(update(_sessions).where(_sessions.c.id == session).values(new))
            if tells:
                await connection.run_sync(note, self._database, change_of(_sessions, new, "updated"))
        return changed

    async def use_sessions(self, moments: Mapping[str, datetime]) -> None:
        if moments:
            # Always in this order: two that write the same rows must not wait for each other.
            rows = [{"of_id": session, "at": moments[session]} for session in sorted(moments)]
            await self._database.execute(_used, rows)

    async def remove_session(self, session: str) -> None:
        async with self._database.write() as connection:
            await connection.run_sync(remove_rows, self._database, _sessions, _sessions.c.id == session)

    async def forget_sessions(self, before: datetime) -> None:
        await self._database.execute(delete(_sessions).where(_sessions.c.used_at < before))

    async def put_value(
        self, value: OneTimeValue, now: datetime, *, most: int | None = None, tells: bool = False
    ) -> bool:
        is_alike = (
            (_values.c.workspace == value.workspace)
            & (_values.c.user == value.user)
            & (_values.c.kind == value.kind)
        )
        async with self._database.write() as connection:
            await connection.execute(delete(_values).where(_values.c.expires_at <= now))
            if most is not None:
                count = await connection.scalar(select(func.count()).select_from(_values).where(is_alike))
                if (count or 0) >= most:
                    return False
            await connection.execute(self._database.upsert(_values), asdict(value))
            if tells:
                await connection.run_sync(note, self._database, change_of(_values, asdict(value), "added"))
        return True

    async def find_value(self, value: str, now: datetime) -> OneTimeValue | None:
        row = await self._database.row(select(_values).filter_by(id=value))
        found = OneTimeValue(**row) if row else None
        return found if found and found.expires_at > now else None

    async def take_value(self, value: str, now: datetime) -> OneTimeValue | None:
        taken = delete(_values).filter_by(id=value).returning(*_values.columns)
        async with self._database.write() as connection:
            row = (await connection.execute(taken)).mappings().one_or_none()
        found = OneTimeValue(**row) if row else None
        return found if found and found.expires_at > now else None

    async def list_values(
        self, kind: str, workspace: str, user: str, now: datetime
    ) -> Sequence[OneTimeValue]:
        query = select(_values).filter_by(kind=kind, workspace=workspace, user=user)
        rows = await self._database.rows(query.where(_values.c.expires_at > now))
        return [OneTimeValue(**row) for row in rows]

    async def has_value(self, value: str, now: datetime) -> bool:
        query = select(_values.c.id).where(_values.c.id == value, _values.c.expires_at > now)
        return await self._database.row(query) is not None


def _row(session: ClientSession) -> dict[str, Any]:
    return {**asdict(session), "watched": [*session.watched]}


def _session(row: RowMapping) -> ClientSession:
    session = ClientSession(**row)
    return replace(session, watched=tuple(session.watched))
