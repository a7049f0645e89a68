"""SQLite's driver with one hop to its thread for each statement. SQLAlchemy's own makes four of it, and each
costs more than most statements do. Leans on private names of SQLAlchemy and aiosqlite: `tests/store` tells.
"""

from collections import deque
from collections.abc import Sequence
from typing import Any

from sqlalchemy.dialects.sqlite.aiosqlite import AsyncAdapt_aiosqlite_connection, AsyncAdapt_aiosqlite_cursor
from sqlalchemy.util import await_only


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
        return self._hop("execute", (operation,) if parameters is None else (operation, parameters))

    def executemany(self, operation: Any, seq_of_parameters: Sequence[Any]) -> Any:
        return self._hop("executemany", (operation, seq_of_parameters))

    def _hop(self, method: str, arguments: tuple[Any, ...]) -> None:
        connection: Any = self._connection
        adapted: Any = self._adapt_connection
        try:
            await_only(connection._execute(self._work, connection._conn, method, arguments))
        except Exception as error:  # noqa: BLE001
            # boundary: the driver's error, as SQLAlchemy wants it
            adapted._handle_exception(error)

    def _work(self, connection: Any, method: str, arguments: tuple[Any, ...]) -> None:
        """In the driver's thread."""
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

    def rollback(self) -> None:
        connection: Any = self._connection
        if connection._connection and connection.in_transaction:  # else there is nothing to take back
            super().rollback()


def make_lean(connection: Any) -> None:
    """For the `connect` event of an engine on aiosqlite."""
    connection.__class__ = _Connection
