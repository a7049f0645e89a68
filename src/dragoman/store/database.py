"""One open database: connections to read and to write with. Knows no table. Its `origin` marks what it wrote.

SQLite takes one writer at a time, so writers of this process wait for each other here instead of in
the database. The engine belongs to `open_database`, which disposes of it.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from datetime import datetime, timedelta
from inspect import iscoroutinefunction
from secrets import token_hex
from typing import Any, TypeVar

from sqlalchemy import Connection, Executable, RowMapping, Table, event, func, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.ext.asyncio import AsyncConnection, AsyncEngine, create_async_engine
from sqlalchemy.util import greenlet_spawn

from dragoman.background_tasks import shielded
from dragoman.store.clock import Clock, DatabaseClock
from dragoman.store.columns import from_json, to_json
from dragoman.store.faults import translated
from dragoman.store.location import LONGEST_STATEMENT, DatabaseLocation
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.sqlite_cursor import BEGIN, make_lean
from dragoman.store.sqlite_units import SqliteUnits, prepare

NOTED = "dragoman.noted"
LONGEST_PAUSE = timedelta(seconds=3)  # between two statements of a transaction; less than a lease
Answer = TypeVar("Answer")
Facts = Mapping[str, Any]
_CHECKPOINTS = 100
_LIMIT_STATEMENTS = f"SET statement_timeout = {int(LONGEST_STATEMENT * 1000)}"


def _nothing() -> None: ...


class Database:
    """Reads and writes. What a driver raises inside either block leaves it as one of our errors."""

    def __init__(
        self,
        engine: AsyncEngine,
        location: DatabaseLocation,
        units: SqliteUnits | None = None,
        reads: SqliteUnits | None = None,
    ) -> None:
        """`units` are for transactions in one go, and `reads` for reads, where the database is SQLite."""
        self.location = location
        self.origin = token_hex(8)
        self.on_noted: Callable[[], None] = _nothing
        # SQLite's driver begins nothing by itself, and changing its level to and fro costs more than a read.
        is_plain = location.is_sqlite
        self._reading = engine if is_plain else engine.execution_options(isolation_level="AUTOCOMMIT")
        self._writing = engine.execution_options(writes=True)
        self._units = units
        self._reads = reads
        self._writer = asyncio.Lock()
        self.clock = Clock() if location.is_sqlite else DatabaseClock(self._time)
        self._upserts: dict[tuple[str, frozenset[str]], sqlite.Insert | postgresql.Insert] = {}

    @asynccontextmanager
    async def read(self) -> AsyncGenerator[AsyncConnection]:
        """A connection for single statements that change nothing."""
        with translated(self.location):
            async with self._reading.connect() as connection:
                yield connection

    @asynccontextmanager
    async def write(self) -> AsyncGenerator[AsyncConnection]:
        """One transaction: all of it or nothing. One that `NOTED` a change calls `on_noted` at its end."""
        turn = self._writer if self.location.is_sqlite else nullcontext()
        with translated(self.location):
            async with turn, self._writing.begin() as connection:
                connection.info.pop(NOTED, None)
                yield connection
                has_noted = connection.info.pop(NOTED, False)
        if has_noted:
            self.on_noted()

    async def transact(self, work: Callable[[Connection], Answer]) -> Answer:
        """The same in one go, for what is written often: nothing is awaited between its statements.

        On SQLite `work` is done in another thread: it touches nothing that others change meanwhile.
        """
        has_noted = False

        def worked(connection: Connection) -> Answer:
            nonlocal has_noted
            connection.info.pop(NOTED, None)
            answer = work(connection)
            has_noted = connection.info.pop(NOTED, False)
            return answer

        def begun() -> Answer:
            with self._writing.sync_engine.begin() as connection:
                return worked(connection)

        try:
            with translated(self.location):
                if self._units is None:
                    return await greenlet_spawn(begun)
                async with self._writer:
                    return await self._units.run(worked)
        finally:
            if has_noted:  # also of who was cancelled: it may be done
                self.on_noted()

    @asynccontextmanager
    async def write_much(self) -> AsyncGenerator[AsyncConnection]:
        """The same, for what may take minutes: removing the records of years."""
        async with self.write() as connection, self._unhurried(connection, "SET LOCAL"):
            yield connection

    @asynccontextmanager
    async def _unhurried(self, connection: AsyncConnection, set: str = "SET") -> AsyncGenerator[None]:
        """Statements take as long as they take. That a machine vanished is noticed by its keepalives."""
        if self.location.is_sqlite:
            yield
            return
        driver: Any = (await connection.get_raw_connection()).driver_connection
        driver.is_hurried = False
        await connection.exec_driver_sql(f"{set} statement_timeout = 0")
        try:
            yield
        finally:
            driver.is_hurried = True

    # One statement each

    async def rows(self, query: Executable, facts: Facts | None = None) -> Sequence[RowMapping]:
        return await self._asked(lambda connection: connection.execute(query, facts).mappings().all())

    async def row(self, query: Executable, facts: Facts | None = None) -> RowMapping | None:
        """The first; None when there is none."""
        return await self._asked(lambda connection: connection.execute(query, facts).mappings().first())

    async def scalars(self, query: Executable) -> Sequence[Any]:
        """The first column of every row."""
        return await self._asked(lambda connection: connection.scalars(query).all())

    async def scalar(self, query: Executable) -> Any:
        return await self._asked(lambda connection: connection.scalar(query))

    async def found(self, query: PreparedStatement, facts: Facts) -> Sequence[Sequence[Any]]:
        """The rows of what is asked often, without the names of their columns."""
        if self._reads is None:
            return await self._asked(lambda connection: query.rows(connection, facts))
        with translated(self.location):
            return await self._reads.look(lambda connection: query.rows(connection, facts))

    async def _asked(self, ask: Callable[[Connection], Answer]) -> Answer:
        """As in `read`, with one change of context: those of `AsyncConnection` are half a read."""

        def asked() -> Answer:
            with self._reading.sync_engine.connect() as connection:
                return ask(connection)

        with translated(self.location):
            return await greenlet_spawn(asked)

    async def execute(self, statement: Executable, facts: Facts | Sequence[Facts] | None = None) -> int:
        """A transaction of its own; how many rows it changed."""
        async with self.write() as connection:
            return (await connection.execute(statement, facts)).rowcount

    async def remove_much(self, statement: Executable) -> int:
        """The same, however many rows there are."""
        async with self.write_much() as connection:
            return (await connection.execute(statement)).rowcount

    async def compact(self) -> bool:
        """Writes the tables anew without what was deleted. False: somebody reads SQLite's log for long."""
        with translated(self.location):
            async with (
                self._writer,
                self._reading.connect() as connection,
                self._unhurried(connection),
            ):
                await connection.exec_driver_sql("VACUUM")
                if not self.location.is_sqlite:
                    await connection.exec_driver_sql(_LIMIT_STATEMENTS)
                    return True
                for _ in range(_CHECKPOINTS):
                    emptied = await connection.exec_driver_sql("PRAGMA wal_checkpoint(TRUNCATE)")
                    if not emptied.one()[0]:
                        return True
                    await asyncio.sleep(0.05)
        return False

    async def _time(self) -> datetime:
        return await self.scalar(select(func.clock_timestamp()))

    def insert(self, table: Table) -> sqlite.Insert | postgresql.Insert:
        """An insert that knows ON CONFLICT, in the dialect at hand."""
        return sqlite.insert(table) if self.location.is_sqlite else postgresql.insert(table)

    def upsert(self, table: Table, keep: frozenset[str] = frozenset()) -> sqlite.Insert | postgresql.Insert:
        """Inserts, or replaces the row with the same primary key except for the columns in `keep`.

        Never a row that has a revision: `revised_rows.py` compares it.
        """
        if "revision" in table.c:
            raise ValueError(f"rows of {table.name} are written by their revision")
        known = self._upserts.get((table.name, keep))
        if known is None:
            known = self._upserts[table.name, keep] = self._upsert(table, keep)
        return known

    def _upsert(self, table: Table, keep: frozenset[str]) -> sqlite.Insert | postgresql.Insert:
        statement = self.insert(table)
        keys = [column.name for column in table.primary_key]
        changed: dict[str, Any] = {
            column.name: statement.excluded[column.name]
            for column in table.columns
            if column.name not in keys and column.name not in keep
        }
        return statement.on_conflict_do_update(index_elements=keys, set_=changed)


class SqlAggregate:
    """What fills one Protocol of the store. Each of its public methods is finished once begun."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def __init_subclass__(cls) -> None:
        for name, method in [*vars(cls).items()]:
            if iscoroutinefunction(method) and not name.startswith("_"):
                setattr(cls, name, shielded(method))


@asynccontextmanager
async def open_database(location: DatabaseLocation, busy_timeout: float) -> AsyncGenerator[Database]:
    options: dict[str, Any] = {
        "hide_parameters": True,
        "json_serializer": to_json,
        "json_deserializer": from_json,
        "pool_size": 5,
        "max_overflow": 0 if location.is_sqlite else 10,
        "pool_timeout": 15,
    }
    if location.is_sqlite:
        options["connect_args"] = {"timeout": busy_timeout, "isolation_level": None}
    else:
        # The extra is there: `DatabaseLocation` has asked for it.
        from dragoman.store.postgres_connection import PatientConnection

        options["connect_args"] = {"async_creator_fn": PatientConnection.connect}
        options["pool_pre_ping"] = True  # a restarted server costs no caller an error
    engine = create_async_engine(location.url, **options)
    units: list[SqliteUnits] = []
    if not location.is_sqlite:
        event.listen(engine.sync_engine, "connect", _limit)
    else:
        event.listen(engine.sync_engine, "connect", _prepare)
        event.listen(engine.sync_engine, "begin", _begin)
        units = [SqliteUnits(location, {**options, "pool_size": 1}) for _ in range(2)]
    try:
        yield Database(engine, location, *units)
    finally:
        for one in units:
            await one.close()
        await engine.dispose()


def _limit(connection: Any, _record: Any) -> None:
    """PostgreSQL ends the session of a process that froze, or whose machine went, and with it its locks; and
    a statement that takes too long.
    """
    milliseconds = int(LONGEST_PAUSE.total_seconds() * 1000)
    try:
        cursor = connection.cursor()
        cursor.execute(f"SET idle_in_transaction_session_timeout = {milliseconds}; {_LIMIT_STATEMENTS}")
        cursor.close()
        connection.commit()
    except BaseException:
        # Who asked has left meanwhile, and the pool forgets what it has not taken yet.
        connection.driver_connection.pgconn.finish()
        raise


def _prepare(connection: Any, _record: Any) -> None:
    make_lean(connection)
    prepare(connection, _record)


def _begin(connection: Connection) -> None:
    # Python's own BEGIN is deferred: two writers would both read first and one of them then fail.
    if connection.get_execution_options().get("writes"):
        connection.exec_driver_sql(BEGIN)
