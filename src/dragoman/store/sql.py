"""The store in SQL: one database, one object per aggregate. `open_sql_store` owns the database."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from functools import partial

from sqlalchemy import text

from dragoman.background_tasks import shielded
from dragoman.store.agents import SqlAgents
from dragoman.store.approvals import SqlApprovals
from dragoman.store.audit import SqlAudit
from dragoman.store.bundles import SqlBundles
from dragoman.store.calls import SqlCalls
from dragoman.store.changes import SqlChanges
from dragoman.store.clients import SqlClients
from dragoman.store.connectors import SqlConnectors
from dragoman.store.database import Database, open_database
from dragoman.store.faults import translated
from dragoman.store.location import DatabaseLocation
from dragoman.store.logins import SqlLogins
from dragoman.store.metrics import SqlMetrics
from dragoman.store.model_providers import SqlModelProviders
from dragoman.store.people import SqlPeople
from dragoman.store.personal_data import SqlPersonalData
from dragoman.store.protocols import Store
from dragoman.store.recipes import SqlRecipes
from dragoman.store.rollout import SqlRollout
from dragoman.store.runs import SqlRuns
from dragoman.store.schema import VERSION_TABLE, bring_up_to_date
from dragoman.store.threads import SqlThreads
from dragoman.store.usage import SqlUsage


@asynccontextmanager
async def open_sql_store(url: str, *, busy_timeout: float) -> AsyncGenerator[Store]:
    location = DatabaseLocation.of(url)
    if location.is_sqlite:
        with translated(location):
            location.make_file()
    async with open_database(location, busy_timeout) as database:
        await bring_up_to_date(database, busy_timeout)
        await database.clock.read()
        yield Store(
            connectors=SqlConnectors(database),
            people=SqlPeople(database),
            threads=SqlThreads(database),
            runs=SqlRuns(database),
            calls=SqlCalls(database),
            metrics=SqlMetrics(database),
            approvals=SqlApprovals(database),
            usage=SqlUsage(database),
            audit=SqlAudit(database),
            agents=SqlAgents(database),
            recipes=SqlRecipes(database),
            bundles=SqlBundles(database),
            model_providers=SqlModelProviders(database),
            rollout=SqlRollout(database),
            clients=SqlClients(database),
            logins=SqlLogins(database),
            clock=database.clock,
            ping=partial(_ping, database),
            changes=SqlChanges(database),
            personal=SqlPersonalData(database),
        )


@shielded
async def _ping(database: Database) -> None:
    async with database.read() as connection:
        await connection.scalar(text(f"SELECT version_num FROM {VERSION_TABLE}"))  # noqa: S608
