"""Statements that wait for the next of their transaction: none is lost or done twice, every fault is told."""

from collections.abc import AsyncGenerator
from typing import Any

import pytest
from sqlalchemy import delete, func, insert, select, text

from dragoman.errors import Conflict
from dragoman.store.database import Database, open_database
from dragoman.store.location import DatabaseLocation
from dragoman.store.rollout import SqlRollout
from dragoman.store.schema import bring_up_to_date
from dragoman.store.tables import rollout_states

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
