"""Facts on disk: connectors, tools, secrets (sealed), results, calls and numbers, in SQLite or PostgreSQL.

The Protocols are what the layers above know; `open_store` gives the SQL one. Who opens it closes it.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from dragoman.store.protocols import (
    ApprovalRows,
    AuditRows,
    CallRows,
    ConnectorRows,
    FlowRows,
    LoadedToolRows,
    MetricRows,
    PeopleRows,
    ResultRows,
    Store,
    ThreadRows,
    ToolRows,
    UsageRows,
)
from dragoman.store.records import CallRecord, KeptResult, SealedSecret, ToolVersion
from dragoman.store.run_protocols import (
    AcceptedRun,
    AgentRows,
    JournalBatch,
    MessageRows,
    QuestionRows,
    RolloutRows,
    RolloutSample,
    RunRows,
)

__all__ = [
    "AcceptedRun",
    "AgentRows",
    "ApprovalRows",
    "AuditRows",
    "CallRecord",
    "CallRows",
    "ConnectorRows",
    "FlowRows",
    "JournalBatch",
    "KeptResult",
    "LoadedToolRows",
    "MessageRows",
    "MetricRows",
    "PeopleRows",
    "QuestionRows",
    "ResultRows",
    "RolloutRows",
    "RolloutSample",
    "RunRows",
    "SealedSecret",
    "Store",
    "ThreadRows",
    "ToolRows",
    "ToolVersion",
    "UsageRows",
    "open_store",
]


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
