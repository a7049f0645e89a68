"""Whole transactions on SQLite, each in one go and in a thread of its own; and reads, in another.

A hop to a thread costs more than most statements do, and so does SQLAlchemy's way of awaiting each of them:
here a transaction is one hop, and its statements are plain calls. Knows no table.
"""

import asyncio
import sqlite3
from collections.abc import Callable, Generator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from dragoman.store.location import DatabaseLocation
from dragoman.store.sqlite_cursor import BEGIN

Answer = TypeVar("Answer")


class SqliteUnits:
    """Owns its thread and the one connection that is used there. Both are made when they are first needed.

    Who reads has another than who writes: a write may wait for that of another process.
    """

    def __init__(self, location: DatabaseLocation, options: dict[str, Any]) -> None:
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._location = location
        self._options = options
        self._open: tuple[Connection, sqlite3.Connection] | None = None

    async def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """Whoever is cancelled meanwhile goes when it is over: all of it is done, or nothing."""
        return await self._finished(self._worked, work)

    async def look(self, work: Callable[[Connection], Answer]) -> Answer:
        """The same without a transaction, for what reads with one statement."""
        return await self._finished(self._looked, work)

    async def _finished(
        self,
        way: Callable[[Callable[[Connection], Answer]], Answer],
        work: Callable[[Connection], Answer],
    ) -> Answer:
        done = asyncio.get_running_loop().run_in_executor(self._thread, way, work)
        try:
            return await asyncio.shield(done)
        except asyncio.CancelledError:
            await asyncio.wait([done])
            if done.done():
                done.exception()
            raise

    async def close(self) -> None:
        if self._open is not None:
            await asyncio.get_running_loop().run_in_executor(self._thread, self._closed, self._open[0])
        self._thread.shutdown()

    def _worked(self, work: Callable[[Connection], Answer]) -> Answer:
        """In the thread. Beginning and end are said to the driver: SQLAlchemy takes longer for them."""
        with _told():
            connection, driver = self._open = self._open or self._opened()
            # Python's own BEGIN is deferred: two writers would both read first and one of them then fail.
            driver.execute(BEGIN)
            try:
                answer = work(connection)
                driver.commit()
            except BaseException:
                driver.rollback()
                raise
            return answer

    def _looked(self, work: Callable[[Connection], Answer]) -> Answer:
        """In the thread."""
        with _told():
            connection, _ = self._open = self._open or self._opened()
            return work(connection)

    def _opened(self) -> tuple[Connection, sqlite3.Connection]:
        engine = create_engine(self._location.blocking_url, **self._options)
        event.listen(engine, "connect", prepare)
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        driver: Any = connection.connection.driver_connection
        return connection, driver

    def _closed(self, connection: Connection) -> None:
        connection.close()
        connection.engine.dispose()


@contextmanager
def _told() -> Generator[None]:
    """What the driver raises, as SQLAlchemy tells it of its own statements."""
    try:
        yield
    except sqlite3.Error as error:
        raise DBAPIError.instance(None, None, error, sqlite3.Error, hide_parameters=True) from error


def prepare(connection: Any, _record: Any) -> None:
    """What SQLite keeps per connection. WAL is kept in the file: see `schema`."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
