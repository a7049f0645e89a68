"""Agents as people handle them: create, change, start, stop, remove, give and take connectors.

Effective at once, in the middle of a conversation too: an agent is put together anew for every run, and its
tools for every step. Knows no model and no run.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any

from dragoman.agent import ASSISTANT, Agent, AgentNumbers, Exposure
from dragoman.agents.exposure import checked_exposure
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.formats import FoundAgent
from dragoman.hub.agent_rules import (
    RESERVED,
    as_chosen,
    assistant_of,
    changeable,
    checked_changes,
    checked_name,
    checked_text,
    is_of_files,
    key,
)
from dragoman.hub.bound import BoundService
from dragoman.hub.connector_agents import agent_of, other_name
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.names import did_you_mean, slug_from
from dragoman.scope import APP, Caller

FROM_FILES = "agt_file_"
_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent with what it did for the workspace of who looks."""

    agent: Agent
    numbers: AgentNumbers
    notes: tuple[str, ...] = ()


class Agents(BoundService):
    """A worker is its user's; an admin makes one for the whole workspace with `shared`."""

    __slots__ = ()

    # Looking

    async def find(self, name: str) -> Agent | None:
        """By name; the agent of a connector also by other names of the connector."""
        caller = self._caller
        agents = await self.list()
        for agent in agents:
            if key(agent.name) == key(name):
                return agent
        connector = self._runtime.registry.find(key(name).removeprefix(other_name("")), caller)
        connector = connector or self._runtime.registry.find(name, caller)
        return next((one for one in agents if connector and one.connector_id == connector.id), None)

    async def find_for(self, connector_id: str) -> Agent | None:
        """The agent of a connector, also where a worker has taken its name."""
        return next((one for one in await self.list() if one.connector_id == connector_id), None)

    async def get(self, name: str) -> Agent:
        """One agent by its name. Raises `NotFound`."""
        if agent := await self.find(name):
            return agent
        known = [agent.name for agent in await self.list()]
        raise NotFound(
            f"there is no agent {name[:80]!r}",
            hint=did_you_mean(name[:80], known) or "dragoman agents list shows those there are",
        )

    async def list(self) -> Sequence[Agent]:
        """The assistant first, then workers, then the agents of connectors, each by name.

        An agent of a connector has its slug for a name, unless somebody else goes by that.
        """
        caller = self._caller
        stored = await self._runtime.agent_records.seen_by(caller)
        workers = {key(agent.name): agent for agent in await self._app_workers()}
        workers |= {key(agent.name): agent for agent in stored if agent.kind == "worker" and not agent.owner}
        workers |= {key(agent.name): agent for agent in stored if agent.kind == "worker" and agent.owner}
        found = [
            assistant_of(stored, caller.workspace),
            *sorted(workers.values(), key=lambda one: key(one.name)),
        ]
        records = await self._runtime.agent_records.of_connectors(caller)
        for connector in self._runtime.registry.list(caller):
            if connector.kind != "native":
                slug = connector.slug
                name = other_name(slug) if slug in workers or slug in RESERVED else slug
                found.append(agent_of(connector, records.get(connector.id), name))
        return found

    async def view(self, name: str) -> AgentView:
        """One agent with the numbers of its work."""
        return (await self._views([await self.get(name)]))[0]

    async def views(self) -> Sequence[AgentView]:
        """All agents with the numbers of their work."""
        return await self._views(await self.list())

    # Changing

    async def create(
        self,
        name: str,
        *,
        description: str = "",
        instructions: str = "",
        model: str | None = None,
        fallbacks: Sequence[str] = (),
        connectors: Sequence[str] = (),
        capabilities: Iterable[str] | None = None,
        exposure: Exposure = "auto",
        shared: bool = False,
    ) -> Agent:
        """A new agent of the caller; it answers when it is mentioned."""
        caller = self._caller
        if shared and not caller.is_admin:
            raise Denied("only an admin makes an agent for everybody", hint="leave out shared")
        name = checked_name(name)
        known = await self.list()
        if any(key(agent.name) == key(name) for agent in known):
            raise Conflict(f"there is an agent {name!r} already", hint="choose another name")
        if len(known) > _MOST:
            raise Conflict(f"there are {_MOST} agents already", hint="remove one that nobody needs")
        agent = Agent(
            id=f"agt_{token_hex(8)}",
            workspace=caller.workspace,
            owner="" if shared else caller.user,
            name=name,
            kind="worker",
            description=checked_text("description", description),
            instructions=checked_text("instructions", instructions),
            model=model or None,
            fallbacks=tuple(fallbacks),
            connectors=self._slugs(connectors),
            capabilities=None if capabilities is None else frozenset(capabilities),
            exposure=checked_exposure(exposure),
        )
        await self._runtime.models.verify(agent.model, agent.fallbacks)
        await self._put(agent, "agent.created")
        return agent

    async def update(self, name: str, **changes: Any) -> Agent:
        """Sets what is given: instructions, model, fallbacks, exposure.

        Of a worker also description, connectors and capabilities.
        """
        before = changeable(await self.get(name), self._caller)
        checked = checked_changes(before, changes)
        if checked.get("connectors") is not None:
            checked["connectors"] = self._slugs(checked["connectors"], before.connectors or ())
        if checked.keys() & {"model", "fallbacks"}:
            model = checked.get("model", before.model)
            await self._runtime.models.verify(model, checked.get("fallbacks", before.fallbacks))
        if before.kind == "connector":
            after = await self._change_of_connector(before, checked)
            await self._done(after, "agent.updated", sorted(changes))
            return after
        after = replace(before, **checked, updated_at=datetime.now(UTC))
        await self._put(after, "agent.updated", sorted(changes))
        return after

    async def start(self, name: str) -> Agent:
        """From now on it answers when it is mentioned."""
        return await self.update(name, status="active")

    async def stop(self, name: str) -> Agent:
        """It keeps all it has and takes no new message; what it works on now it finishes."""
        if key(name) == ASSISTANT:
            raise InvalidArguments("the assistant cannot be stopped", hint="stop a worker instead")
        return await self.update(name, status="stopped")

    async def remove(self, name: str) -> None:
        """Stops it and takes it away; its runs stay."""
        caller = self._caller
        agent = changeable(await self.get(name), caller)
        if is_of_files(agent):
            raise Conflict(
                f"{agent.name!r} is one of the app's folder", hint="take its file out of the folder"
            )
        if agent.kind != "worker":
            raise InvalidArguments(
                f"{agent.name!r} is not a worker",
                hint="a connector's agent goes with its connector; it can be stopped",
            )
        await self._runtime.store.agents.remove(agent.workspace, agent.id)
        self._runtime.agent_records.tell(agent, "removed")
        await self._runtime.auditor.done(caller, "agent.removed", agent.name)

    async def assign(self, name: str, *connectors: str) -> Agent:
        """Gives a worker connectors; those it has already change nothing."""
        agent = await self.get(name)
        slugs = self._slugs(connectors)
        if is_of_files(agent):
            return await self._rewritten(agent, slugs, ())
        chosen = dict.fromkeys((*(agent.connectors or ()), *slugs))
        return await self.update(name, connectors=tuple(chosen))

    async def describe(self, name: str, **facts: Any) -> Agent:
        """As a file says: a connector or a model that is not there yet is kept, and used once it is."""
        before = changeable(await self.get(name), self._caller)
        for text in ("description", "instructions"):
            facts[text] = checked_text(text, facts[text])
        after = replace(before, **facts, updated_at=datetime.now(UTC))
        await self._put(after, "agent.updated", sorted(facts))
        return after

    async def unassign(self, name: str, *connectors: str) -> Agent:
        """It has these connectors no more."""
        agent = await self.get(name)
        held = agent.connectors or ()
        # What has been removed since can be taken away by the name that it had.
        gone = {
            one if one in held else self._runtime.registry.get(one, self._caller).slug for one in connectors
        }
        if is_of_files(agent):
            return await self._rewritten(agent, (), tuple(gone))
        return await self.update(name, connectors=tuple(slug for slug in held if slug not in gone))

    # Parts

    async def _app_workers(self) -> Sequence[Agent]:
        """Those of the folder, with what the operator chose for them since (stopped, another model)."""
        chosen = {agent.id: agent for agent in await self._runtime.agent_records.of(APP)}
        found = agents_of_files(
            self._runtime.configuration_files.agents, self._runtime.registry, self._runtime.owner
        )
        return [as_chosen(agent, chosen.get(agent.id)) for agent in found]

    async def _rewritten(self, agent: Agent, given: Sequence[str], taken: Sequence[str]) -> Agent:
        """The folder says who has what: it is written there, and read again."""
        caller = self._caller
        for slug in given:
            await self._runtime.configuration_files.assign(agent.name, slug, caller)
        for slug in taken:
            await self._runtime.configuration_files.remove(agent.name, slug, caller)
        await self._runtime.configuration_files.sync()
        self._runtime.agent_records.tell(agent, "updated")
        details = {"given": [*given], "taken": [*taken]}
        await self._runtime.auditor.done(caller, "agent.updated", agent.name, details=details)
        return await self.get(agent.name)

    async def _change_of_connector(self, before: Agent, changes: dict[str, Any]) -> Agent:
        connector = self._runtime.registry.find_by_id(before.connector_id or "")
        if connector is None:
            raise NotFound(f"the connector of {before.name!r} is gone")
        if changes.get("status") == "active" and not connector.enabled:
            raise Conflict(
                f"the connector {connector.slug!r} is disabled",
                hint=f"dragoman connectors enable {connector.slug}",
            )
        return agent_of(
            connector, await self._runtime.connector_agents.change(connector, **changes), before.name
        )

    def _slugs(self, names: Sequence[str], held: Sequence[str] = ()) -> tuple[str, ...]:
        """What an agent has already it keeps, though the connector may be gone meanwhile."""
        slugs = (
            name if name in held else self._runtime.registry.get(name, self._caller).slug for name in names
        )
        return tuple(dict.fromkeys(slugs))

    async def _views(self, agents: Sequence[Agent]) -> Sequence[AgentView]:
        numbers = await self._runtime.store.agents.numbers(self._caller.workspace)
        return [
            AgentView(agent=agent, numbers=numbers.get(agent.id, AgentNumbers()), notes=self._notes(agent))
            for agent in agents
        ]

    def _notes(self, agent: Agent) -> tuple[str, ...]:
        if agent.kind == "connector":
            connector = self._runtime.registry.find_by_id(agent.connector_id or "")
            is_off = connector is not None and not connector.enabled
            return ("its connector is disabled",) if is_off else ()
        if agent.kind != "worker":
            return ()
        seen = {connector.slug for connector in self._runtime.registry.list(self._caller)}
        return tuple(f"{slug} is gone" for slug in agent.connectors or () if slug not in seen)

    async def _put(self, agent: Agent, action: str, what: Sequence[str] = ()) -> None:
        await self._runtime.store.agents.put(agent)
        await self._done(agent, action, what)

    async def _done(self, agent: Agent, action: str, what: Sequence[str] = ()) -> None:
        self._runtime.agent_records.tell(agent, action.partition(".")[2])
        details = {"connectors": [*(agent.connectors or ())], "changed": [*what], "status": agent.status}
        await self._runtime.auditor.done(self._caller, action, agent.name, details=details)


def agents_of_files(agents: Iterable[FoundAgent], registry: ConnectorRegistry, owner: Caller) -> list[Agent]:
    """Workers of the app, as its folder describes them now."""
    return [
        Agent(
            id=f"{FROM_FILES}{found.name.casefold()}",
            workspace=APP,
            name=found.name,
            kind="worker",
            description=found.description,
            instructions=found.instructions,
            model=found.model,
            connectors=slugs_of(found, registry, owner),
        )
        for found in agents
    ]


def slugs_of(found: FoundAgent, registry: ConnectorRegistry, caller: Caller) -> tuple[str, ...]:
    """A connector that is not there yet is kept under the slug that it would have."""
    known = [(name, registry.find(name, caller)) for name in found.connectors]
    return tuple(dict.fromkeys(one.slug if one else slug_from(name) for name, one in known))
