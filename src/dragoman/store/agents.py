"""Agents and what they did, as rows."""

from collections.abc import Mapping, Sequence
from dataclasses import fields
from functools import cache
from typing import Any

from sqlalchemy import Connection, RowMapping, case, delete, select
from sqlalchemy.dialects import postgresql, sqlite

from dragoman.agent import Agent, AgentNumbers
from dragoman.errors import Conflict, Outdated
from dragoman.store import tables
from dragoman.store.database import Database, SqlAggregate
from dragoman.store.noun_rows import noun_of, row_of
from dragoman.store.prepared_statement import PreparedStatement
from dragoman.store.revised_rows import put_row, remove_rows

_rows = tables.agents
_numbers = tables.agent_numbers
_OF_AGENT = tuple(one.name for one in fields(AgentNumbers))
_COUNTED = tuple(name for name in _OF_AGENT if name != "last_used")


class SqlAgents(SqlAggregate):
    """Fills `AgentStore`."""

    async def list(self, workspace: str | None = None) -> Sequence[Agent]:
        query = select(_rows)
        if workspace is not None:
            query = query.where(_rows.c.workspace == workspace)
        rows = await self._database.rows(query)
        # Sorted here: the two databases order hyphens differently.
        return sorted(
            (noun_of(Agent, row) for row in rows),
            key=lambda found: (found.name, found.workspace, found.owner),
        )

    async def find(self, workspace: str, agent_id: str) -> Agent | None:
        row = await self._database.row(select(_rows).filter_by(workspace=workspace, id=agent_id))
        return noun_of(Agent, row) if row else None

    async def put(self, agent: Agent) -> None:
        try:
            async with self._database.write() as connection:
                await connection.run_sync(
                    put_row, self._database, _rows, row_of(agent, _rows), agent.revision
                )
        except Outdated:
            raise
        except Conflict as conflict:
            raise Conflict(
                f"there is an agent {agent.name[:80]!r} already", hint="choose another name"
            ) from conflict

    async def remove(self, workspace: str, agent_id: str) -> None:
        is_this = (_rows.c.workspace == workspace) & (_rows.c.id == agent_id)
        async with self._database.write() as connection:
            if await connection.run_sync(remove_rows, self._database, _rows, is_this):
                await connection.execute(delete(_numbers).filter_by(agent=agent_id))

    async def numbers(self, workspace: str) -> Mapping[str, AgentNumbers]:
        query = select(_numbers).filter_by(workspace=workspace)
        rows = await self._database.rows(query)
        return {row["agent"]: _of_agent(row) for row in rows}


def add_numbers(
    connection: Connection, database: Database, worked: Sequence[tuple[str, str, AgentNumbers]]
) -> None:
    """Within a transaction."""
    rows = [
        {"workspace": workspace, "agent": agent, **{name: getattr(one, name) for name in _OF_AGENT}}
        for workspace, agent, one in worked
    ]
    rows.sort(key=lambda row: (row["workspace"], row["agent"]))  # no two wait for each other
    _adding(database.location.is_sqlite).run(connection, *rows)


@cache
def _adding(is_sqlite: bool) -> PreparedStatement:
    statement = sqlite.insert(_numbers) if is_sqlite else postgresql.insert(_numbers)
    new = statement.excluded
    sums: dict[str, Any] = {name: _numbers.c[name] + new[name] for name in _COUNTED}
    was = _numbers.c.last_used
    is_later = new.last_used.is_not(None) & (was.is_(None) | (new.last_used > was))
    sums["last_used"] = case((is_later, new.last_used), else_=was)
    return PreparedStatement(
        statement.on_conflict_do_update(index_elements=["workspace", "agent"], set_=sums)
    )


def _of_agent(row: RowMapping) -> AgentNumbers:
    facts = dict(row)
    del facts["workspace"], facts["agent"]
    return AgentNumbers(**facts)
