"""A whole database as rows: read at one moment while others write, and written to another of either kind.

Rows carry the kinds of their columns, so that a copy of an older schema goes into tables of that schema,
which are then brought up to date. Blocks: whoever calls it has nothing else to do.
"""

from base64 import b64decode, b64encode
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from itertools import islice
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    Column,
    Connection,
    Engine,
    Float,
    Integer,
    LargeBinary,
    MetaData,
    Table,
    Text,
    create_engine,
    event,
    func,
    insert,
    inspect,
    select,
    text,
)
from sqlalchemy.types import TypeEngine

from dragoman.errors import Conflict, StoreUnavailable
from dragoman.store.columns import Document, FreeText, UtcDateTime, from_json, to_json
from dragoman.store.faults import translated
from dragoman.store.location import DatabaseLocation
from dragoman.store.schema import (
    ADVISORY_LOCK,
    HEAD,
    VERSION_TABLE,
    found_version,
    take_write_lock,
    turn_on_wal,
    upgrade,
)
from dragoman.store.tables import metadata

# What concerns nobody but the processes that run now.
PASSING = frozenset({"app_files", "changes", "client_sessions", "leases", "one_time_values"})
_AT_ONCE = 500
_PATIENCE = 30.0


@dataclass(frozen=True, slots=True)
class _Kind:
    """How a value stands in a copy. The first whose `of` is the column's type is meant."""

    of: type[TypeEngine[Any]]
    type: TypeEngine[Any]
    told: Callable[[Any], Any] = lambda value: value
    read: Callable[[Any], Any] = lambda value: value


_KINDS: dict[str, _Kind] = {
    "time": _Kind(UtcDateTime, UtcDateTime(), datetime.isoformat, datetime.fromisoformat),
    "free text": _Kind(FreeText, FreeText()),
    "json": _Kind(JSON, Document),
    "bytes": _Kind(LargeBinary, LargeBinary(), lambda value: b64encode(value).decode(), b64decode),
    "truth": _Kind(Boolean, Boolean()),
    "integer": _Kind(Integer, BigInteger()),
    "number": _Kind(Float, Float()),
    "text": _Kind(Text, Text()),
}


@dataclass(frozen=True, slots=True)
class TableCopy:
    """`columns` are names and kinds; a row has its values in that order, as JSON has them."""

    name: str
    columns: tuple[tuple[str, str], ...]
    rows: Iterable[Sequence[Any]]


@dataclass(frozen=True, slots=True)
class DatabaseCopy:
    """Its tables in an order in which they can be written, and the ids of the keys that its secrets need."""

    schema: str
    tables: Iterable[TableCopy]
    sealed_with: frozenset[str]


@contextmanager
def read_copy(url: str) -> Generator[DatabaseCopy]:
    """All rows as they were at one moment; nobody who writes waits for it."""
    location = DatabaseLocation.of(url)
    with _connected(location, is_reading=True) as connection:
        version = found_version(connection)
        if version != HEAD:
            raise StoreUnavailable(
                f"the database has the schema {version}, this Dragoman writes {HEAD}",
                hint="start Dragoman once, so that it is brought up to date: dragoman doctor",
            )
        tables = (table for table in metadata.sorted_tables if table.name not in PASSING)
        sealed = (table.c.key_id for table in metadata.sorted_tables if "key_id" in table.c)
        key_ids = {one for column in sealed for one in connection.scalars(select(column).distinct()) if one}
        copies = (_read_table(connection, table) for table in tables)
        yield DatabaseCopy(version, copies, frozenset(key_ids))


def write_copy(url: str, copy: DatabaseCopy, *, replace: bool = False) -> None:
    """All of it or nothing. `Conflict` where there is something already, unless it may be replaced."""
    location = DatabaseLocation.of(url)
    if copy.schema > HEAD:
        raise StoreUnavailable(
            f"a newer Dragoman made this backup: its schema is {copy.schema[:40]}, this one knows {HEAD}",
            hint="install the newer Dragoman",
        )
    with _connected(location, is_reading=False) as connection:
        if not location.is_sqlite:
            connection.execute(select(func.pg_advisory_xact_lock(ADVISORY_LOCK)))
        if not replace and _has_rows(connection):
            raise Conflict(
                f"there is something in {location.shown} already",
                hint="choose an empty database, or --replace what is there",
            )
        _drop_all(connection)
        upgrade(connection, location, copy.schema)
        for table in copy.tables:
            _write_table(connection, table)
        upgrade(connection, location, HEAD)


def _has_rows(connection: Connection) -> bool:
    if found_version(connection) is None:
        return False
    there = {*inspect(connection).get_table_names()}
    return any(
        connection.execute(select(text("1")).select_from(table).limit(1)).first()
        for table in metadata.sorted_tables
        if table.name in there
    )


@contextmanager
def _connected(location: DatabaseLocation, *, is_reading: bool) -> Generator[Connection]:
    with translated(location):
        engine = _engine(location, is_reading)
        try:
            with engine.begin() as connection:
                yield connection
        finally:
            engine.dispose()


def _engine(location: DatabaseLocation, is_reading: bool) -> Engine:
    """One whose transactions see one moment (reading), or keep all others out (writing)."""
    options: dict[str, Any] = {
        "hide_parameters": True,
        "json_serializer": to_json,
        "json_deserializer": from_json,
    }
    if not location.is_sqlite:
        level = {"isolation_level": "REPEATABLE READ"} if is_reading else {}
        return create_engine(location.blocking_url, **options, **level)
    arguments = {"timeout": _PATIENCE, "isolation_level": None}
    engine = create_engine(location.blocking_url, connect_args=arguments, **options)
    if is_reading:
        event.listen(engine, "begin", _begin_reading)
    else:
        location.make_file()
        turn_on_wal(engine, _PATIENCE)
        event.listen(engine, "begin", take_write_lock)
    return engine


def _begin_reading(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN")


def _read_table(connection: Connection, table: Table) -> TableCopy:
    columns = tuple((column.name, _kind_of(column)) for column in table.columns)
    told = [_KINDS[kind].told for _, kind in columns]

    def rows() -> Iterator[list[Any]]:
        found = connection.execution_options(yield_per=_AT_ONCE).execute(select(table))
        for row in found:
            yield [None if value is None else tell(value) for value, tell in zip(row, told, strict=True)]

    return TableCopy(table.name, columns, rows())


def _kind_of(column: Column[Any]) -> str:
    return next(name for name, kind in _KINDS.items() if isinstance(column.type, kind.of))


def _write_table(connection: Connection, copy: TableCopy) -> None:
    table = Table(copy.name, MetaData(), *(Column(name, _KINDS[kind].type) for name, kind in copy.columns))
    names = [name for name, _ in copy.columns]
    readers = [_KINDS[kind].read for _, kind in copy.columns]
    rows = (
        {
            name: None if value is None else read(value)
            for name, read, value in zip(names, readers, row, strict=True)
        }
        for row in copy.rows
    )
    while some := list(islice(rows, _AT_ONCE)):
        connection.execute(insert(table), some)


def _drop_all(connection: Connection) -> None:
    """Every table of ours. Where Dragoman has never been, tables of such names are somebody else's."""
    if found_version(connection) is None:
        return
    there = MetaData()
    there.reflect(connection, only=lambda name, _: name == VERSION_TABLE or name in metadata.tables)
    there.drop_all(connection)
