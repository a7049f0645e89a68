"""Facts on disk, in SQLite or PostgreSQL: `open_store` gives that store, and who opens it closes it.

The layers above know the Protocols only, one per aggregate: another store fills them.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.store.protocols import Store
from dragoman.store.records import CallRecord, KeptResult, SealedSecret, ToolVersion

__all__ = ["CallRecord", "KeptResult", "SealedSecret", "Store", "ToolVersion", "open_store"]


@asynccontextmanager
async def open_store(url: str, *, busy_timeout: float = 10.0) -> AsyncGenerator[Store]:
    """The store behind a database URL, its schema brought up to date first.

    `sqlite:///path` makes the file and its directory where they are missing; `postgresql://…` needs
    an existing database. `busy_timeout` is how long SQLite waits for another process that writes.
    """
    # Imported here because SQLAlchemy costs more than all of `dragoman --help`.
    from dragoman.store.sql import open_sql_store

    async with open_sql_store(url, busy_timeout=busy_timeout) as store:
        yield store
