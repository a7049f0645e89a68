"""Threads as rows, with their messages and loaded tools. A thread is found only together with its user.

Those who add messages to a thread wait for each other: numbers have no gap and are never given twice.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from datetime import datetime
from typing import Any

from sqlalchemy import (
    ColumnElement,
    Connection,
    FromClause,
    RowMapping,
    Select,
    Table,
    bindparam,
    delete,
    exists,
    func,
    literal,
    select,
    tuple_,
    update,
)

from dragoman.people import Thread, ThreadPosition, ThreadSort
from dragoman.run import FINISHED, Message
from dragoman.store import tables
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.changes import change_of, note
from dragoman.store.columns import UtcDateTime
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import LoadedTool
from dragoman.store.revised_rows import put_row, remove_rows
from dragoman.store.run_families import remove_families

_rows = tables.threads
_loaded = tables.loaded_tools
_messages = tables.messages
_runs = tables.runs
Place = tuple[str, str, str]
"""Workspace, user, thread."""

# Made once: to put them together costs more than to execute them.
_HIGHEST = PreparedStatement(
    select(_messages.c.workspace, _messages.c.user, _messages.c.thread, func.max(_messages.c.number))
    .where(
        tuple_(_messages.c.workspace, _messages.c.user, _messages.c.thread).in_(
            bindparam("places", expanding=True)
        )
    )
    .group_by(_messages.c.workspace, _messages.c.user, _messages.c.thread),
    "places",
)
_NEW_MESSAGE = BulkInsert(_messages)
_OF_THREAD: Sequence[str] = ("of_workspace", "of_user", "of_thread")
_is_this = (
    (_rows.c.workspace == bindparam("of_workspace"))
    & (_rows.c.user == bindparam("of_user"))
    & (_rows.c.id == bindparam("of_thread"))
)
_FOUND = PreparedStatement(select(_rows).where(_is_this))
_NAMES = tuple(_rows.c.keys())
_WRITTEN_IN = PreparedStatement(update(_rows).where(_is_this).values(updated_at=bindparam("at")))


class SqlThreads(SqlAggregate):
    """Fills `ThreadStore`."""

    async def list(
        self,
        workspace: str,
        user: str,
        limit: int = 100,
        *,
        after: ThreadPosition | None = None,
        words: str = "",
        among: int | None = None,
        sort: ThreadSort = "latest",
    ) -> Sequence[Thread]:
        latest = (_rows.c.updated_at.desc(), _rows.c.id.desc())
        order = latest if sort == "latest" else (func.lower(_rows.c.title), *latest)
        query = (
            select(_rows)
            .filter_by(workspace=workspace, user=user, remove_at=None)
            .order_by(_rows.c.pinned.desc(), *order)
            .limit(limit)
        )
        if after is not None:
            is_behind = (_rows.c.pinned == after.pinned) & _follows(after, sort)
            query = query.where(is_behind | _rows.c.pinned.is_(False) if after.pinned else is_behind)
        if words:
            said = exists().where(
                _messages.c.workspace == _rows.c.workspace,
                _messages.c.user == _rows.c.user,
                _messages.c.thread == _rows.c.id,
                _messages.c.text.icontains(words, autoescape=True),
            )
            if among is not None:
                said = _rows.c.id.in_(_said_in(words, query.limit(among).subquery()))
            query = query.where(_rows.c.title.icontains(words, autoescape=True) | said)
        return [_thread(row) for row in await self._database.rows(query)]

    async def list_due(self, now: datetime) -> Sequence[Thread]:
        query = select(_rows).where(_rows.c.remove_at <= now).order_by(_rows.c.remove_at)
        return [_thread(row) for row in await self._database.rows(query)]

    async def list_idle(self, workspace: str, before: datetime, limit: int) -> Sequence[Thread]:
        works = exists().where(
            _runs.c.workspace == _rows.c.workspace,
            _runs.c.user == _rows.c.user,
            _runs.c.thread == _rows.c.id,
            _runs.c.status.not_in(sorted(FINISHED)),
        )
        query = (
            select(_rows)
            .filter_by(workspace=workspace, pinned=False)
            .where(_rows.c.updated_at < before, ~works)
            .order_by(_rows.c.updated_at, _rows.c.id)
            .limit(limit)
        )
        return [_thread(row) for row in await self._database.rows(query)]

    async def find(self, workspace: str, user: str, thread: str) -> Thread | None:
        facts = dict(zip(_OF_THREAD, (workspace, user, thread), strict=True))
        found = await self._database.found(_FOUND, facts)
        return _thread(dict(zip(_NAMES, found[0], strict=True))) if found else None

    async def put(self, thread: Thread) -> None:
        await self._database.transact(lambda connection: put_thread(connection, self._database, thread))

    async def remove(self, workspace: str, user: str, thread: str) -> None:
        place = (workspace, user, thread)
        async with self._database.write_much() as connection:
            await connection.run_sync(wait_for_threads, self._database, {place})
            await remove_families(connection, _is_in(_runs, *place))
            await connection.run_sync(remove_rows, self._database, _rows, _is(*place))
            for table in (_messages, _loaded):
                await connection.execute(delete(table).where(_is_in(table, *place)))

    async def add_message(self, message: Message) -> Message:
        def added(connection: Connection) -> Message:
            wait_for_threads(connection, self._database, {place_of(message)})
            return add_messages(connection, [message])[0]

        return await self._database.transact(added)

    async def messages(
        self, workspace: str, user: str, thread: str, *, after: int = 0, limit: int = 1000, last: bool = False
    ) -> Sequence[Message]:
        number = _messages.c.number
        query = (
            select(_messages)
            .filter_by(workspace=workspace, user=user, thread=thread)
            .where(number > after)
            .order_by(number.desc() if last else number)
            .limit(limit)
        )
        found = [_message(row) for row in await self._database.rows(query)]
        return found[::-1] if last else found

    async def note(
        self, workspace: str, user: str, thread: str, number: int, details: Mapping[str, Any]
    ) -> bool:
        is_this = (
            (_messages.c.workspace == workspace)
            & (_messages.c.user == user)
            & (_messages.c.thread == thread)
            & (_messages.c.number == number)
        )
        async with self._database.write() as connection:
            query = select(_messages.c.details).where(is_this).with_for_update()
            row = (await connection.execute(query)).one_or_none()
            if row is None:
                return False
            merged = {**row.details, **details}
            await connection.execute(update(_messages).where(is_this).values(details=merged))
        return True

    async def last_loaded(self, limit: int) -> Sequence[LoadedTool]:
        query = select(_loaded).order_by(_loaded.c.loaded_at.desc(), _loaded.c.tool.desc()).limit(limit)
        newest = await self._database.rows(query)
        return [LoadedTool(**row) for row in reversed(newest)]

    async def loaded(self, workspace: str, user: str, thread: str) -> Sequence[LoadedTool]:
        query = (
            select(_loaded)
            .where(_is_in(_loaded, workspace, user, thread))
            .order_by(_loaded.c.loaded_at, _loaded.c.tool)
        )
        return [LoadedTool(**row) for row in await self._database.rows(query)]

    async def change_loaded(self, put: Sequence[LoadedTool], removed: Sequence[LoadedTool]) -> None:
        async with self._database.write() as connection:
            for one in removed:
                is_it = _is_in(_loaded, one.workspace, one.user, one.thread) & (_loaded.c.tool == one.tool)
                await connection.execute(delete(_loaded).where(is_it))
            if put:
                await connection.execute(self._database.upsert(_loaded), [asdict(one) for one in put])
            names = {"loaded": [one.tool for one in put], "unloaded": [one.tool for one in removed]}
            threads = {(one.workspace, one.user, one.thread): asdict(one) for one in (*put, *removed)}
            changes = [change_of(_loaded, row, "updated", names) for row in threads.values()]
            await connection.run_sync(note, self._database, *changes)

    async def forget_loaded(self, before: datetime) -> None:
        is_written = exists().where(
            _rows.c.workspace == _loaded.c.workspace,
            _rows.c.user == _loaded.c.user,
            _rows.c.id == _loaded.c.thread,
        )
        await self._database.remove_much(delete(_loaded).where(_loaded.c.loaded_at < before, ~is_written))


def _follows(place: ThreadPosition, sort: ThreadSort) -> ColumnElement[bool]:
    """Of threads that come after this place, pinned or not."""
    here = tuple_(literal(place.updated_at, UtcDateTime), literal(place.id))
    is_earlier = tuple_(_rows.c.updated_at, _rows.c.id) < here
    if sort == "latest":
        return is_earlier
    # What is alike in any case is for the database to say, which sorts them.
    title, last = func.lower(_rows.c.title), func.lower(literal(place.title, _rows.c.title.type))
    return (title > last) | ((title == last) & is_earlier)


def _said_in(words: str, threads: FromClause) -> Select[str]:
    """Those of the threads in which somebody said it: messages of others are not read."""
    return select(_messages.c.thread).where(
        tuple_(_messages.c.workspace, _messages.c.user, _messages.c.thread).in_(
            select(threads.c.workspace, threads.c.user, threads.c.id)
        ),
        _messages.c.text.icontains(words, autoescape=True),
    )


def _is(workspace: str, user: str, thread: str) -> ColumnElement[bool]:
    return (_rows.c.workspace == workspace) & (_rows.c.user == user) & (_rows.c.id == thread)


def _is_in(table: Table, workspace: str, user: str, thread: str) -> ColumnElement[bool]:
    return (table.c.workspace == workspace) & (table.c.user == user) & (table.c.thread == thread)


def _thread(row: Mapping[str, Any] | RowMapping) -> Thread:
    facts = dict(row)
    if facts["connectors"] is not None:
        facts["connectors"] = tuple(facts["connectors"])
    return Thread(**facts)


def put_thread(connection: Connection, database: Database, thread: Thread) -> None:
    """In a transaction of somebody else."""
    facts = {column.name: getattr(thread, column.name) for column in _rows.columns}
    facts["connectors"] = None if thread.connectors is None else list(thread.connectors)
    put_row(connection, database, _rows, facts, thread.revision)


def place_of(message: Message) -> Place:
    return (message.workspace, message.user, message.thread)


def wait_for_threads(connection: Connection, database: Database, places: set[Place]) -> None:
    """Until the transaction ends nobody else adds to these threads. Comes before the lock of any run."""
    if database.location.is_sqlite:
        return
    for place in sorted(places):  # always in this order: no two wait for each other
        key = func.hashtextextended(f"dragoman messages {' '.join(place)}", 0)
        connection.execute(select(func.pg_advisory_xact_lock(key)))


def add_messages(connection: Connection, messages: Sequence[Message]) -> Sequence[Message]:
    """Within a transaction that has waited for their threads. Returns them with their numbers."""
    if not messages:
        return []
    places = {"places": sorted(set(map(place_of, messages)))}
    highest: defaultdict[Place, int] = defaultdict(int)
    for workspace, user, thread, number in _HIGHEST.rows(connection, places):
        highest[workspace, user, thread] = number
    numbered: list[Message] = []
    for message in messages:
        place = place_of(message)
        highest[place] += 1
        numbered.append(replace(message, number=highest[place]))
    _NEW_MESSAGE.insert(connection, [_message_row(message) for message in numbered])
    # The list of threads is by what people last wrote in them.
    if people := [message for message in numbered if message.author == "person"]:
        _WRITTEN_IN.run(connection, *map(_written_in, people))
    return numbered


def _written_in(message: Message) -> dict[str, Any]:
    return {**dict(zip(_OF_THREAD, place_of(message), strict=True)), "at": message.created_at}


def _message_row(message: Message) -> list[Any]:
    """In the order of the table's columns."""
    facts = {column.name: getattr(message, column.name) for column in _messages.columns}
    facts["details"] = dict(message.details)
    return [*facts.values()]


def _message(row: RowMapping) -> Message:
    return Message(**row)
