"""Transactions in few hops: no statement is lost or done twice, every fault is told, and a statement that was
made ready once reads and writes what SQLAlchemy does.
"""

import asyncio
import threading
from collections.abc import AsyncGenerator, Callable
from datetime import timedelta
from typing import Any

import pytest
from run_values import a_message, a_run
from sqlalchemy import Connection, bindparam, column, delete, func, insert, select, table, text, tuple_
from store_values import NOON, NOON_IN_ROME

from dragoman.errors import Conflict, InvalidArguments, StoreUnavailable
from dragoman.store.bulk_insert import BulkInsert
from dragoman.store.changes import note
from dragoman.store.database import Database, open_database
from dragoman.store.location import DatabaseLocation
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.records import Change
from dragoman.store.rollout import SqlRollout
from dragoman.store.run_families import row_of
from dragoman.store.schema import bring_up_to_date
from dragoman.store.tables import messages, rollout_states, runs
from patience import until

pytestmark = pytest.mark.anyio


@pytest.fixture(params=["sqlite", "postgres"])
async def database(request: pytest.FixtureRequest, anyio_backend: str) -> AsyncGenerator[Database]:
    location = DatabaseLocation.of(request.getfixturevalue(f"{request.param}_url"))
    if location.is_sqlite:
        location.make_file()
    async with open_database(location, 5.0) as opened:
        await bring_up_to_date(opened, 5.0)
        yield opened


def _row(name: str) -> list[dict[str, Any]]:
    return [{"name": name, "state": {}}]


async def _count(database: Database) -> int:
    async with database.read() as connection:
        return await connection.scalar(select(func.count()).select_from(rollout_states)) or 0


async def test_an_insert_is_seen_by_what_follows_it_and_by_others_after_the_end(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(insert(rollout_states), _row("one"))
        await connection.execute(insert(rollout_states), _row("two"))
        assert await connection.scalar(select(func.count()).select_from(rollout_states)) == 2
        await connection.execute(insert(rollout_states), _row("three"))
        assert await _count(database) == 0
    assert await _count(database) == 3


async def test_what_a_last_insert_does_wrong_is_told_and_nothing_stays(database: Database) -> None:
    async with database.write() as connection:
        await connection.execute(insert(rollout_states), _row("there"))
    with pytest.raises(Conflict):
        async with database.write() as connection:
            await connection.execute(insert(rollout_states), _row("new"))
            await connection.execute(insert(rollout_states), _row("there"))
    assert await _count(database) == 1
    async with database.write() as connection:  # and the connection is as good as before
        await connection.execute(insert(rollout_states), _row("new"))
    assert await _count(database) == 2


async def test_an_error_in_the_middle_takes_back_what_waits(database: Database) -> None:
    with pytest.raises(ZeroDivisionError):
        async with database.write() as connection:
            await connection.execute(insert(rollout_states), _row("one"))
            raise ZeroDivisionError
    async with database.write():
        pass  # a transaction without a statement
    async with database.write() as connection:
        gone = await connection.execute(delete(rollout_states))
    assert (gone.rowcount, await _count(database)) == (0, 0)


async def test_an_insert_that_gives_something_back_gives_it_at_once(database: Database) -> None:
    async with database.write() as connection:
        made = await connection.execute(
            insert(rollout_states).values(_row("one")[0]).returning(rollout_states.c.name)
        )
        assert made.scalar_one() == "one"
        written = text("INSERT INTO rollout_states (name, state) VALUES ('two', '{}')")
        await connection.execute(written)
    assert await _count(database) == 2
    assert await SqlRollout(database).state("two") == {}


async def test_a_unit_of_work_is_done_whole_or_not_at_all(database: Database) -> None:
    def two(connection: Connection) -> str:
        connection.execute(insert(rollout_states), _row("one"))
        PreparedStatement(insert(rollout_states)).run(connection, *_row("two"))
        return "both"

    def one_too_many(connection: Connection) -> None:
        connection.execute(insert(rollout_states), _row("three"))
        PreparedStatement(insert(rollout_states)).run(connection, *_row("two"))

    def wrong(connection: Connection) -> None:
        PreparedStatement(insert(rollout_states)).run(connection, *_row("three"))
        raise ZeroDivisionError

    def unknown(connection: Connection) -> None:
        PreparedStatement(insert(rollout_states)).run(connection, *_row("half \ud800"))

    assert await database.transact(two) == "both"
    for work, error in ((one_too_many, Conflict), (wrong, ZeroDivisionError), (unknown, InvalidArguments)):
        with pytest.raises(error):
            await database.transact(work)
    async with database.write() as connection:  # whoever writes otherwise is not held up
        await connection.execute(insert(rollout_states), _row("three"))
    assert await _count(database) == 3


_KEYS = tuple_(messages.c.workspace, messages.c.number).in_(bindparam("keys", expanding=True))
_IN_ORDER = select(messages).order_by(messages.c.number)
_FOUND = PreparedStatement(_IN_ORDER.where(_KEYS, messages.c.author.in_(["person", "agent"])), "keys")
_AMONG = PreparedStatement(
    _IN_ORDER.where(messages.c.text.in_(bindparam("texts", expanding=True)), messages.c.created_at <= NOON),
    "texts",
)
_STRANGE: list[dict[str, Any]] = [
    {"text": "nul \x00, half \udfff, – 'quoted' ? :x %s", "agent": None, "created_at": NOON_IN_ROME},
    {"text": "", "details": {"of": ["a", None, 1.5, True], "large": 2**70, "nul": "\x00"}},
    {"author": "agent", "agent": "clerk", "created_at": NOON - timedelta(microseconds=7)},
]


Work = Callable[[Connection], Any]


def _running(statement: PreparedStatement, *each: dict[str, Any]) -> Work:
    return lambda connection: statement.run(connection, *each)


def _inserting(rows: BulkInsert, *each: list[Any]) -> Work:
    return lambda connection: rows.insert(connection, each)


def _asking(statement: PreparedStatement, facts: dict[str, Any]) -> Work:
    return lambda connection: [[*row] for row in statement.rows(connection, facts)]


async def test_a_statement_made_ready_once_is_that_of_sqlalchemy(database: Database) -> None:
    async def plainly(work: Work) -> Any:
        async with database.write() as connection:
            return await connection.run_sync(work)

    def row(number: int, **facts: Any) -> dict[str, Any]:
        message = a_message(number=number, **facts)
        return {column.name: getattr(message, column.name) for column in messages.columns}

    new_message = PreparedStatement(insert(messages))
    ways = (database.transact, plainly)
    for start, way in zip((0, 10), ways, strict=True):
        rows = [row(start + place, **facts) for place, facts in enumerate(_STRANGE)]
        await way(_running(new_message, *rows))
        run = a_run(f"run_{start}", grants=(frozenset({"b", "a"}),), options={"x": None}, cancel_asked=True)
        await way(_inserting(BulkInsert(runs), row_of(run)))
    found = await database.rows(_IN_ORDER)
    numbers = [one["number"] for one in found]
    assert numbers == [0, 1, 2, 10, 11, 12]
    for once, plain in zip(found[:3], found[3:], strict=True):
        assert {**once, "number": 0} == {**plain, "number": 0}
    one, other = await database.rows(select(runs).order_by(runs.c.id))
    assert {**one, "id": "", "root": ""} == {**other, "id": "", "root": ""}
    in_one_hop = await database.found(PreparedStatement(select(runs).order_by(runs.c.id)), {})
    assert [[*row] for row in in_one_hop] == [[*one.values()], [*other.values()]]
    with pytest.raises(StoreUnavailable):
        await database.found(PreparedStatement(select(column("x")).select_from(table("nowhere"))), {})
    for keys in ([], numbers[:1], numbers[2:5], numbers, numbers[1:2]):
        facts = {"keys": [("local", number) for number in keys]}
        expected = [[*one.values()] for one in found if one["number"] in keys]
        assert [await way(_asking(_FOUND, facts)) for way in ways] == [expected, expected]
        assert [[*row] for row in await database.found(_FOUND, facts)] == expected
    for texts in ([""], ["", "What time is it?"], list[str]()):
        once, plain = [await way(_asking(_AMONG, {"texts": texts})) for way in ways]
        assert (once, len(once)) == (plain, 2 * len(texts))


async def test_who_is_cancelled_in_a_transaction_leaves_it_whole_or_undone_and_others_are_told(
    database: Database,
) -> None:
    begun, goes_on, told = threading.Event(), threading.Event(), asyncio.Event()
    database.on_noted = told.set

    def slow(connection: Connection) -> None:
        connection.execute(insert(rollout_states), _row("one"))
        note(connection, database, Change(kind="workspace", what="updated", workspace="acme", subject="acme"))
        begun.set()
        if database.location.is_sqlite:
            goes_on.wait()
        else:
            connection.execute(text("select pg_sleep(2)"))
        connection.execute(insert(rollout_states), _row("two"))

    writing = asyncio.create_task(database.transact(slow))
    await until(begun.is_set)
    assert not await database.found(_FOUND, {"keys": []})  # who reads waits for nobody who writes
    writing.cancel()
    goes_on.set()
    with pytest.raises(asyncio.CancelledError):
        await writing
    count = await _count(database)
    assert count in (0, 2)
    assert told.is_set() or not count
    await database.transact(lambda connection: connection.execute(insert(rollout_states), _row("three")))
    assert await _count(database) == count + 1
