"""One agent for each connector, as a record: made with it, refreshed when it changes, gone with it.

A record holds what people chose for the agent and what its numbers hang on; the rest is the connector's.
"""

import asyncio
from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

from dragoman.agent import Agent
from dragoman.connector import Connector
from dragoman.errors import Conflict, DragomanError
from dragoman.hub.agent_records import AgentRecords
from dragoman.store import Store
from dragoman.telemetry.logs import get_logger

log = get_logger()


def other_name(slug: str) -> str:
    """What a connector's agent is called where its slug is somebody's name already."""
    return f"mcp_{slug}"


def agent_of(connector: Connector, record: Agent | None, name: str) -> Agent:
    """A connector's agent: what the connector says, with what people chose for it.

    While the connector is disabled the agent is stopped, whatever it was before and will be again.
    """
    record = record or _new(connector)
    return replace(
        record,
        name=name,
        description=connector.description,
        connectors=(connector.slug,),
        status=record.status if connector.enabled else "stopped",
    )


class ConnectorAgents:
    def __init__(self, store: Store, records: AgentRecords) -> None:
        self._rows = store.agents
        self._connectors = store.connectors
        self._records = records
        self._writing = asyncio.Lock()

    async def reconcile(self) -> None:
        """At a start: a record for every connector, none without one."""
        # In this order: a connector is written before its agent, also by another process.
        kept = {one.connector_id: one for one in await self._rows.list() if one.kind == "connector"}
        connectors = {one.id: one for one in await self._connectors.list() if one.kind != "native"}
        for connector_id, record in kept.items():
            if connector_id not in connectors:
                await self._rows.remove(record.workspace, record.id)
        for connector in connectors.values():
            record = kept.get(connector.id)
            if record is None or _facts(record) != _facts(_new(connector)):
                await self.change(connector)

    async def connector_kept(self, connector: Connector) -> None:
        if connector.kind == "native":
            return
        try:
            await self.change(connector)
        except DragomanError as error:
            # The connector itself is there and works; the next start makes up for this.
            log.warning("connector_agent.not_kept", connector=connector.slug, cause=error.message)

    async def connector_gone(self, connector: Connector) -> None:
        try:
            await self._rows.remove(connector.workspace, _new(connector).id)
        except DragomanError as error:
            log.warning("connector_agent.not_removed", connector=connector.slug, cause=error.message)
        self._records.tell(agent_of(connector, None, connector.slug), "removed")

    async def change(self, connector: Connector, **changes: Any) -> Agent:
        """The record as the connector is now, with these changes; the rest of it stays."""
        new = _new(connector)
        async with self._writing:
            record, known = await self._write(new, changes)
        self._records.tell(agent_of(connector, record, connector.slug), "updated" if known else "created")
        return record

    async def _write(self, new: Agent, changes: dict[str, Any]) -> tuple[Agent, Agent | None]:
        """And what it was before. Whoever else writes it at this moment is followed, not overwritten."""
        while True:
            known = await self._rows.find(new.workspace, new.id)
            record = replace(known or new, **_facts(new), **changes, updated_at=datetime.now(UTC))
            try:
                await self._rows.put(record)
            except Conflict:
                if (await self._rows.find(new.workspace, new.id) or new).revision == record.revision:
                    raise
            else:
                return record, known


def _new(connector: Connector) -> Agent:
    return Agent(
        id=f"agt_{connector.id}",
        workspace=connector.workspace,
        owner=connector.owner,
        name=other_name(connector.slug),  # no worker has such a name
        kind="connector",
        description=connector.description,
        connectors=(connector.slug,),
        connector_id=connector.id,
    )


def _facts(record: Agent) -> dict[str, Any]:
    """What the record has of its connector."""
    return {"name": record.name, "description": record.description, "connectors": record.connectors}
