"""The messages of threads as rows, each thread numbered from 1.

Those who add to a thread wait for each other: numbers have no gap and are never given twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from sqlalchemy import RowMapping, bindparam, func, insert, select, tuple_, update
from sqlalchemy.ext.asyncio import AsyncConnection

from dragoman.run import Message
from dragoman.store import run_tables
from dragoman.store.database import Database
from dragoman.store.shielded import shielded

_rows = run_tables.messages
Place = tuple[str, str, str]
"""Workspace, user, thread."""

# Made once: to put them together costs more than to execute them.
_HIGHEST = (
    select(_rows.c.workspace, _rows.c.user, _rows.c.thread, func.max(_rows.c.number))
    .where(tuple_(_rows.c.workspace, _rows.c.user, _rows.c.thread).in_(bindparam("places", expanding=True)))
    .group_by(_rows.c.workspace, _rows.c.user, _rows.c.thread)
)
_NEW = insert(_rows)


class SqlMessages:
    """Fills `MessageRows`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @shielded
    async def add(self, message: Message) -> Message:
        async with self._database.write() as connection:
            await wait_for_threads(self._database, connection, {place_of(message)})
            (added,) = await add_messages(connection, [message])
        return added

    @shielded
    async def list(
        self, workspace: str, user: str, thread: str, *, after: int = 0, limit: int = 1000, last: bool = False
    ) -> Sequence[Message]:
        number = _rows.c.number
        query = (
            select(_rows)
            .where(_rows.c.workspace == workspace, _rows.c.user == user, _rows.c.thread == thread)
            .where(number > after)
            .order_by(number.desc() if last else number)
            .limit(limit)
        )
        async with self._database.read() as connection:
            found = [_message(row) for row in (await connection.execute(query)).mappings()]
        return found[::-1] if last else found

    @shielded
    async def note(
        self, workspace: str, user: str, thread: str, number: int, details: Mapping[str, Any]
    ) -> bool:
        is_this = (
            (_rows.c.workspace == workspace)
            & (_rows.c.user == user)
            & (_rows.c.thread == thread)
            & (_rows.c.number == number)
        )
        async with self._database.write() as connection:
            query = select(_rows.c.details).where(is_this).with_for_update()
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                return False
            merged = {**row.details, **details}
            await connection.execute(update(_rows).where(is_this).values(details=merged))
        return True


def place_of(message: Message) -> Place:
    return (message.workspace, message.user, message.thread)


async def wait_for_threads(database: Database, connection: AsyncConnection, places: set[Place]) -> None:
    """Until the transaction ends nobody else adds to these threads. Comes before the lock of any run."""
    if database.location.is_sqlite:
        return
    for place in sorted(places):  # always in this order: no two wait for each other
        key = func.hashtextextended(f"dragoman messages {' '.join(place)}", 0)
        await connection.execute(select(func.pg_advisory_xact_lock(key)))


async def add_messages(connection: AsyncConnection, messages: Sequence[Message]) -> Sequence[Message]:
    """Within a transaction that has waited for their threads. Returns them with their numbers."""
    if not messages:
        return []
    places = {"places": sorted(set(map(place_of, messages)))}
    highest: defaultdict[Place, int] = defaultdict(int)
    for workspace, user, thread, number in await connection.execute(_HIGHEST, places):
        highest[workspace, user, thread] = number
    numbered: list[Message] = []
    for message in messages:
        place = place_of(message)
        highest[place] += 1
        numbered.append(replace(message, number=highest[place]))
    await connection.execute(_NEW, [_row(message) for message in numbered])
    return numbered


def _row(message: Message) -> dict[str, Any]:
    facts = {column.name: getattr(message, column.name) for column in _rows.columns}
    facts["details"] = dict(message.details)
    return facts


def _message(row: RowMapping) -> Message:
    return Message(**row)
