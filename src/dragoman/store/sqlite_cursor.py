"""SQLite's driver with few hops to its thread, for each costs more than most statements do.

SQLAlchemy's own driver makes four hops of a statement; here it is one. In a transaction, its beginning and
what only inserts wait and travel with the next statement that wants an answer, at the latest with the commit:
what goes wrong with them is told there, still within the transaction. Leans on private names of SQLAlchemy
and aiosqlite: `tests/store` tells.
"""

from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_connection, AsyncAdapt_aiosqlite_cursor
from sqlalchemy.util import await_only

BEGIN = "BEGIN IMMEDIATE"
_Job = tuple[str, tuple[Any, ...]]


class _Held:
    """What a connection has taken and not sent yet. Open from the beginning of a transaction to its end."""

    def __init__(self) -> None:
        self.jobs: list[_Job] = []
        self.is_open = False

    def take(self, method: str, arguments: tuple[Any, ...]) -> bool:
        """False for what must be sent at once."""
        statement: str = arguments[0]
        self.is_open = self.is_open or statement == BEGIN
        waits = statement == BEGIN or (statement.startswith("INSERT ") and "RETURNING" not in statement)
        if self.is_open and waits:
            self.jobs.append((method, arguments))
        return self.is_open and waits

    def sent(self) -> list[_Job]:
        jobs, self.jobs = self.jobs, []
        return jobs

    def end(self) -> list[_Job]:
        self.is_open = False
        return self.sent()


class _Cursor(AsyncAdapt_aiosqlite_cursor):
    """Executes, fetches and closes at once; what it fetched is served from memory."""

    __slots__ = ("_described", "_last", "_row_count")

    def __init__(self, connection: Any) -> None:
        self._adapt_connection = connection
        self._connection = connection._connection
        self._rows: deque[Any] = deque()
        self._described: Any = None
        self._row_count = -1
        self._last: Any = None

    @property
    def description(self) -> Any:
        return self._described

    @property
    def rowcount(self) -> int:
        return self._row_count

    @property
    def lastrowid(self) -> Any:
        return self._last

    def close(self) -> None:
        self._rows.clear()

    async def _async_soft_close(self) -> None:
        pass

    def execute(self, operation: Any, parameters: Any = None) -> Any:
        return self._take("execute", (operation,) if parameters is None else (operation, parameters))

    def executemany(self, operation: Any, seq_of_parameters: Sequence[Any]) -> Any:
        return self._take("executemany", (operation, seq_of_parameters))

    def _take(self, method: str, arguments: tuple[Any, ...]) -> None:
        adapted: Any = self._adapt_connection
        held = adapted.held
        if held.take(method, arguments):
            await_only(_nothing())  # SQLAlchemy takes a statement that awaits nothing for a mistake
        else:
            adapted.hop(self._work, held.sent(), method, arguments)

    def _work(self, connection: Any, held: list[_Job], method: str, arguments: tuple[Any, ...]) -> None:
        """In the driver's thread."""
        _execute(connection, held)
        cursor = connection.cursor()
        try:
            getattr(cursor, method)(*arguments)
            self._described = cursor.description
            self._rows = deque(cursor.fetchall() if cursor.description else ())
            self._row_count, self._last = cursor.rowcount, cursor.lastrowid
        finally:
            cursor.close()


class _Connection(AsyncAdapt_aiosqlite_connection):
    __slots__ = ()
    _cursor_cls = _Cursor

    @property
    def held(self) -> _Held:
        return self._connection.__dict__["held"]

    def hop(self, work: Callable[..., None], *arguments: Any) -> None:
        """`work` with the driver's own connection, in its thread."""
        connection: Any = self._connection
        try:
            await_only(connection._execute(work, connection._conn, *arguments))
        except Exception as error:  # noqa: BLE001
            # boundary: the driver's error, as SQLAlchemy wants it
            self._handle_exception(error)

    def commit(self) -> None:
        jobs = self.held.end()
        if not (len(jobs) == 1 and jobs[0][1][0] == BEGIN):  # else nothing was done
            self.hop(_commit, jobs)

    def rollback(self) -> None:
        self.held.end()
        connection: Any = self._connection
        if connection._connection and connection.in_transaction:  # else there is nothing to take back
            super().rollback()


def make_lean(connection: Any) -> None:
    """For the `connect` event of an engine on aiosqlite."""
    connection.__class__ = _Connection
    connection._connection.held = _Held()


def _execute(connection: Any, jobs: Sequence[_Job]) -> None:
    for method, arguments in jobs:
        cursor = connection.cursor()
        try:
            getattr(cursor, method)(*arguments)
        finally:
            cursor.close()


def _commit(connection: Any, jobs: Sequence[_Job]) -> None:
    _execute(connection, jobs)
    connection.commit()


async def _nothing() -> None: ...
