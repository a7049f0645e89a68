"""Whole transactions on SQLite, each in one go and in a thread of its own.

A hop to a thread costs more than most statements do, and so does SQLAlchemy's way of awaiting each of them:
here a transaction is one hop, and its statements are plain calls. Knows no table.
"""

import asyncio
import sqlite3
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any, TypeVar

from sqlalchemy import Connection, create_engine, event
from sqlalchemy.exc import DBAPIError

from dragoman.store.location import DatabaseLocation
from dragoman.store.sqlite_cursor import BEGIN

Answer = TypeVar("Answer")


class SqliteUnits:
    """Owns its thread and the one connection that is used there. Both are made when they are first needed."""

    def __init__(self, location: DatabaseLocation, options: dict[str, Any]) -> None:
        self._thread = ThreadPoolExecutor(1, "sqlite")
        self._engine = create_engine(location.blocking_url, **options)
        event.listen(self._engine, "connect", prepare)
        self._open: tuple[Connection, sqlite3.Connection] | None = None

    async def run(self, work: Callable[[Connection], Answer]) -> Answer:
        """Whoever is cancelled meanwhile goes when it is over: all of it is done, or nothing."""
        done = asyncio.get_running_loop().run_in_executor(self._thread, self._worked, work)
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
        try:
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
        except sqlite3.Error as error:
            # As SQLAlchemy tells it of its own statements.
            raise DBAPIError.instance(None, None, error, sqlite3.Error, hide_parameters=True) from error

    def _opened(self) -> tuple[Connection, sqlite3.Connection]:
        connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        driver: Any = connection.connection.driver_connection
        return connection, driver

    def _closed(self, connection: Connection) -> None:
        connection.close()
        self._engine.dispose()


def prepare(connection: Any, _record: Any) -> None:
    """What SQLite keeps per connection. WAL is kept in the file: see `schema`."""
    cursor = connection.cursor()
    cursor.execute("PRAGMA foreign_keys=ON")
    cursor.execute("PRAGMA synchronous=NORMAL")
    cursor.close()
