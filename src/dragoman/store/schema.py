"""Brings a database's schema up to date when it is opened. Costs one query when there is nothing to do.

Alembic is imported only when there is something to do. Two processes that open the same database at
the same moment wait for each other: by an advisory lock in PostgreSQL, by the write lock in SQLite.
"""

import asyncio
import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Engine, create_engine, event, inspect, text
from sqlalchemy.exc import OperationalError, ProgrammingError

from dragoman.errors import StoreUnavailable
from dragoman.store.database import Database
from dragoman.store.faults import translated
from dragoman.store.location import DatabaseLocation

HEAD = "0010"
VERSION_TABLE = "dragoman_schema"
_MIGRATIONS = Path(__file__).parent / "migrations"
ADVISORY_LOCK = 7236_8301
# Alembic keeps the migration under way in module state: one per process at a time.
_ALEMBIC = threading.Lock()


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
    with _ALEMBIC, translated(location):
        arguments: dict[str, Any] = (
            {"timeout": busy_timeout, "isolation_level": None} if location.is_sqlite else {}
        )
        engine = create_engine(location.blocking_url, connect_args=arguments, hide_parameters=True)
        try:
            if location.is_sqlite:
                turn_on_wal(engine, busy_timeout)
                event.listen(engine, "begin", take_write_lock)
            with engine.begin() as connection:
                if not location.is_sqlite:
                    connection.execute(text("SELECT pg_advisory_xact_lock(:key)"), {"key": ADVISORY_LOCK})
                upgrade(connection, location, target)
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
    from alembic.config import Config
    from alembic.script import ScriptDirectory

    config = Config()
    config.set_main_option("script_location", str(_MIGRATIONS).replace("%", "%%"))
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


def found_version(connection: Connection) -> str | None:
    """The schema of a database; None where there is no Dragoman in it."""
    if not inspect(connection).has_table(VERSION_TABLE):
        return None
    return connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
