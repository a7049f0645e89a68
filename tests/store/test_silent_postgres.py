"""A PostgreSQL whose machine vanished, or that hangs: connections stay open, and nothing comes."""

import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from sqlalchemy import func, make_url, select

from cluster.tcp_proxy import TcpProxy
from dragoman.errors import StoreUnavailable
from dragoman.store import database as databases
from dragoman.store import postgres_connection
from dragoman.store.database import Database, open_database
from dragoman.store.location import DatabaseLocation
from patience import patient

pytestmark = pytest.mark.anyio
SILENCE = patient(1.5)
CONNECT = 2  # seconds: libpq knows none shorter


@pytest.fixture(autouse=True)
def short_silence(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(postgres_connection, "LONGEST_SILENCE", SILENCE)


@asynccontextmanager
async def open_proxied(url: str) -> AsyncGenerator[tuple[Database, TcpProxy, Path]]:
    """A database by way of a proxy, which leads to the socket of the server."""
    there = make_url(url)
    socket = Path(str(there.query["host"])) / ".s.PGSQL.5432"
    async with TcpProxy(socket) as proxy:
        given = f"postgresql://postgres@127.0.0.1:{proxy.port}/{there.database}?connect_timeout={CONNECT}"
        async with open_database(DatabaseLocation.of(given), 1.0) as database:
            yield database, proxy, socket


async def is_answered(database: Database) -> bool:
    return await database.scalar(select(1)) == 1


async def test_a_database_that_falls_silent_is_an_error_soon_and_is_used_again_when_it_is_back(
    postgres_url: str,
) -> None:
    async with open_proxied(postgres_url) as (database, proxy, socket):
        assert await is_answered(database)
        proxy.is_blocked = True
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer") as caught:
            await is_answered(database)
        # The connection that was there is given up, then a new one is tried.
        assert time.monotonic() - began < patient(SILENCE + CONNECT + 1)
        assert caught.value.retryable
        proxy.lose(socket)  # whoever was connected never hears of it
        assert await is_answered(database)


async def test_a_transaction_ends_in_an_error_when_the_database_falls_silent_in_it(postgres_url: str) -> None:
    async with open_proxied(postgres_url) as (database, proxy, socket):
        began = time.monotonic()
        with pytest.raises(StoreUnavailable, match="does not answer") as caught:
            async with database.write() as connection:
                await connection.execute(select(1))
                proxy.is_blocked = True
                await connection.execute(select(1))
        assert time.monotonic() - began < patient(SILENCE + 1)
        assert caught.value.cause == f"no answer within {SILENCE:g} seconds"
        proxy.lose(socket)
        assert await is_answered(database)


async def test_a_long_statement_is_ended_by_the_server_except_where_much_is_removed(
    postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(databases, "_LIMIT_STATEMENTS", "SET statement_timeout = 200")
    slow = select(func.pg_sleep(SILENCE + 0.2))
    async with open_proxied(postgres_url) as (database, _, _):
        for _ in range(2):
            with pytest.raises(StoreUnavailable, match="took too long"):
                await database.scalar(slow)
            async with database.write_much() as connection:
                await connection.execute(slow)
