"""The store in SQL: one database, one object per subject. `open_sql_store` owns the database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from sqlalchemy import text

from dragoman.store.agents import SqlAgents
from dragoman.store.approvals import SqlApprovals
from dragoman.store.audit import SqlAudit
from dragoman.store.authorization_flows import SqlFlows
from dragoman.store.calls import SqlCalls
from dragoman.store.connectors import SqlConnectors
from dragoman.store.database import Database, open_database
from dragoman.store.faults import translated
from dragoman.store.loaded_tools import SqlLoadedTools
from dragoman.store.location import DatabaseLocation
from dragoman.store.messages import SqlMessages
from dragoman.store.metrics import SqlMetrics
from dragoman.store.people import SqlPeople
from dragoman.store.questions import SqlQuestions
from dragoman.store.results import SqlResults
from dragoman.store.rollout import SqlRollout
from dragoman.store.runs import SqlRuns
from dragoman.store.schema import VERSION_TABLE, bring_up_to_date
from dragoman.store.shielded import shielded
from dragoman.store.threads import SqlThreads
from dragoman.store.tools import SqlTools
from dragoman.store.usage import SqlUsage


class SqlStore:
    """Fills the `Store` Protocol."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self.connectors = SqlConnectors(database)
        self.tools = SqlTools(database)
        self.results = SqlResults(database)
        self.calls = SqlCalls(database)
        self.metrics = SqlMetrics(database)
        self.people = SqlPeople(database)
        self.threads = SqlThreads(database)
        self.loaded = SqlLoadedTools(database)
        self.approvals = SqlApprovals(database)
        self.usage = SqlUsage(database)
        self.audit = SqlAudit(database)
        self.flows = SqlFlows(database)
        self.agents = SqlAgents(database)
        self.messages = SqlMessages(database)
        self.runs = SqlRuns(database)
        self.questions = SqlQuestions(database)
        self.rollout = SqlRollout(database)

    @shielded
    async def ping(self) -> None:
        async with self._database.read() as connection:
            await connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608


@asynccontextmanager
async def open_sql_store(url: str, *, busy_timeout: float) -> AsyncGenerator[SqlStore]:
    location = DatabaseLocation.of(url)
    if location.is_sqlite:
        with translated(location):
            location.make_file()
    async with open_database(location, busy_timeout) as database:
        await bring_up_to_date(database, busy_timeout)
        yield SqlStore(database)
