"""Brings a database's schema up to date when it is opened. Costs one query when there is nothing to do.

Alembic is imported only when there is something to do. Two processes that open the same database at
the same moment wait for each other: by an advisory lock in PostgreSQL, by the write lock in SQLite.
The table of Alembic also keeps which schema was found at the last migration, and when that was.
"""

import asyncio
import sqlite3
import threading
import time
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from dragoman.errors import StoreUnavailable
from dragoman.store.database import Database
from dragoman.store.faults import translated
from dragoman.store.location import DatabaseLocation

if TYPE_CHECKING:
    from alembic.config import Config

HEAD = "0022"
VERSION_TABLE = "dragoman_schema"
_MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 7236_8301
# Alembic keeps the migration under way in module state: one per process at a time.
_ALEMBIC = threading.Lock()
_BUSY_TIMEOUT = 10.0  # seconds
_CAME_FROM, _MIGRATED_AT = "came_from", "migrated_at"  # columns that a database has since its first migration


@dataclass(frozen=True, slots=True)
class Migration:
    """The last one of a database: from which schema, when, and what each step brought, in their order."""

    found: str
    at: datetime
    steps: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Schema:
    """`migration` is None where the tables were made as they are."""

    version: str
    migration: Migration | None


async def bring_up_to_date(database: Database, busy_timeout: float) -> None:
    """Migrates where needed. `StoreUnavailable` when a newer Dragoman has written the database."""
    if await _version(database) == HEAD:
        return
    # In a thread, on a connection of its own: Alembic blocks.
    await asyncio.to_thread(migrate, database.location, busy_timeout)


async def _version(database: Database) -> str | None:
    async with database.read() as connection:
        try:
            return await connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
        except (OperationalError, ProgrammingError) as error:
            if _is_missing_table(error):
                return None
            raise


def _is_missing_table(error: OperationalError | ProgrammingError) -> bool:
    if isinstance(error.orig, sqlite3.Error):
        return "no such table" in str(error.orig)
    return getattr(error.orig, "sqlstate", None) == "42P01"


def migrate(location: DatabaseLocation, busy_timeout: float, target: str = HEAD) -> None:
    with _ALEMBIC, _engine(location, busy_timeout) as engine:
        if location.is_sqlite:
            turn_on_wal(engine, busy_timeout)
            event.listen(engine, "begin", take_write_lock)
        with engine.begin() as connection:
            if not location.is_sqlite:
                connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
            upgrade(connection, location, target)


def migrated(url: str) -> Schema:
    """Makes the tables, or brings them up to date; opens nothing else of an installation."""
    location = DatabaseLocation.of(url)
    if location.is_sqlite:
        with translated(location):
            location.make_file()
    migrate(location, _BUSY_TIMEOUT)
    return read_schema(url)


def read_schema(url: str) -> Schema:
    """Of a database that was opened by this version."""
    location = DatabaseLocation.of(url)
    with _engine(location, _BUSY_TIMEOUT) as engine, engine.connect() as connection:
        row = connection.execute(text(f"SELECT * FROM {VERSION_TABLE}")).mappings().one()  # noqa: S608
        version, found = row["version_num"], row.get(_CAME_FROM)
        if found is None:
            return Schema(version, None)
        at = datetime.fromisoformat(row[_MIGRATED_AT])
        return Schema(version, Migration(found, at, _steps(_config(), found, version)))


@contextmanager
def _engine(location: DatabaseLocation, busy_timeout: float) -> Generator[Engine]:
    arguments: dict[str, Any] = (
        {"timeout": busy_timeout, "isolation_level": None} if location.is_sqlite else {}
    )
    with translated(location):
        engine = create_engine(location.blocking_url, connect_args=arguments, hide_parameters=True)
        try:
            yield engine
        finally:
            engine.dispose()


def take_write_lock(connection: Connection) -> None:
    connection.exec_driver_sql("BEGIN IMMEDIATE")


def turn_on_wal(engine: Engine, patience: float) -> None:
    """SQLite does not wait here by itself when another process does the same."""
    give_up = time.monotonic() + patience
    while True:
        try:
            with engine.connect() as connection:
                connection.exec_driver_sql("PRAGMA journal_mode=WAL")
                return
        except OperationalError as error:
            is_busy = getattr(error.orig, "sqlite_errorcode", 0) & 0xFF in (5, 6)
            if not is_busy or time.monotonic() > give_up:
                raise
        time.sleep(0.02)


def upgrade(connection: Connection, location: DatabaseLocation, target: str) -> None:
    """Brings the tables to a schema, in the transaction of the connection."""
    from alembic import command
    from alembic.script import ScriptDirectory

    config = _config()
    config.attributes["connection"] = connection
    found = found_version(connection)
    known = {script.revision for script in ScriptDirectory.from_config(config).walk_revisions()}
    if found is not None and found not in known:
        raise StoreUnavailable(
            f"a newer Dragoman has written this database ({location.shown}): its schema is {found[:40]},"
            f" this one knows {HEAD}",
            hint="install the newer Dragoman again, or choose another database",
        )
    command.upgrade(config, target)
    if found is not None and found < target:
        _write_down(connection, found)


def _config() -> "Config":
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
    return config


def _write_down(connection: Connection, found: str) -> None:
    there = {column["name"] for column in inspect(connection).get_columns(VERSION_TABLE)}
    for column in (_CAME_FROM, _MIGRATED_AT):
        if column not in there:
            connection.execute(text(f"ALTER TABLE {VERSION_TABLE} ADD COLUMN {column} TEXT"))
    connection.execute(
        text(f"UPDATE {VERSION_TABLE} SET {_CAME_FROM} = :found, {_MIGRATED_AT} = :now"),  # noqa: S608
        {"found": found, "now": datetime.now(UTC).isoformat(timespec="seconds")},
    )


def _steps(config: "Config", found: str, version: str) -> tuple[str, ...]:
    """The first sentence of each migration in between."""
    from alembic.script import ScriptDirectory

    between = ScriptDirectory.from_config(config).iterate_revisions(version, found)
    return tuple(f"{one.revision} {one.doc.partition('. ')[0].rstrip('.')}" for one in between)[::-1]


def found_version(connection: Connection) -> str | None:
    """The schema of a database; None where there is no Dragoman in it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
