"""Agents as people handle them: create, change, start, stop, remove, give and take connectors.

Effective at once, in the middle of a conversation too: an agent is put together anew for every run, and its
tools for every step. Knows no model and no run.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Protocol

from dragoman.agent import ASSISTANT, Agent, AgentNumbers, Exposure
from dragoman.agents.exposure import checked_exposure
from dragoman.agents.models import Models
from dragoman.calls.audit import Auditor
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.events import Event, Events
from dragoman.formats import FoundAgent
from dragoman.hub.agent_records import AgentRecords
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
from dragoman.hub.connector_agents import ConnectorAgents, agent_of, other_name
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.names import did_you_mean
from dragoman.scope import APP, Caller
from dragoman.store import Store

_MOST = 500


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentView:
    """An agent with what it did for the workspace of who looks."""

    agent: Agent
    numbers: AgentNumbers
    notes: tuple[str, ...] = ()


class AgentFiles(Protocol):
    """The app's folder of agents, as far as it is known here."""

    agents: tuple[FoundAgent, ...]

    async def assign(self, agent: str, connector: str, caller: Caller | None = None) -> FoundAgent: ...
    async def remove(self, agent: str, connector: str, caller: Caller | None = None) -> FoundAgent: ...
    async def sync(self) -> object: ...


class Agents:
    """Fills `AgentDirectory`. Every method acts for `caller`, by default the hub's own.

    A worker is its user's; an admin makes one for the whole workspace with `shared`.
    """

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        registry: ConnectorRegistry,
        models: Models,
        auditor: Auditor,
        events: Events,
    ) -> None:
        self._caller = caller
        self._rows = store.agents
        self._registry = registry
        self._models = models
        self._auditor = auditor
        self._events = events
        self._records = AgentRecords(store.agents)
        self.of_connectors = ConnectorAgents(store, self._tell)
        self._of_files: Callable[[], Sequence[Agent]] = tuple
        self._files: AgentFiles | None = None

    def read_files(
        self, workers: Callable[[Sequence[FoundAgent], Caller], Sequence[Agent]], files: AgentFiles
    ) -> None:
        """From now on the agents of the app's folder are workers for everybody, as the folder says."""
        self._files = files
        self._of_files = lambda: workers(files.agents, self._caller)

    # Looking

    async def find(self, name: str, caller: Caller | None = None) -> Agent | None:
        """By name; the agent of a connector also by other names of the connector."""
        caller = caller or self._caller
        agents = await self.list(caller)
        for agent in agents:
            if key(agent.name) == key(name):
                return agent
        connector = self._registry.find(key(name).removeprefix(other_name("")), caller)
        connector = connector or self._registry.find(name, caller)
        return next((one for one in agents if connector and one.connector_id == connector.id), None)

    async def find_for(self, connector_id: str, caller: Caller | None = None) -> Agent | None:
        """The agent of a connector, also where a worker has taken its name."""
        return next((one for one in await self.list(caller) if one.connector_id == connector_id), None)

    async def get(self, name: str, caller: Caller | None = None) -> Agent:
        if agent := await self.find(name, caller):
            return agent
        known = [agent.name for agent in await self.list(caller)]
        raise NotFound(
            f"there is no agent {name[:80]!r}",
            hint=did_you_mean(name[:80], known) or "dragoman agents list shows those there are",
        )

    async def list(self, caller: Caller | None = None) -> Sequence[Agent]:
        """The assistant first, then workers, then the agents of connectors, each by name.

        An agent of a connector has its slug for a name, unless somebody else goes by that.
        """
        caller = caller or self._caller
        stored = await self._records.seen_by(caller)
        workers = {key(agent.name): agent for agent in await self._app_workers()}
        workers |= {key(agent.name): agent for agent in stored if agent.kind == "worker" and not agent.owner}
        workers |= {key(agent.name): agent for agent in stored if agent.kind == "worker" and agent.owner}
        found = [
            assistant_of(stored, caller.workspace),
            *sorted(workers.values(), key=lambda one: key(one.name)),
        ]
        records = await self._records.of_connectors(caller)
        for connector in self._registry.list(caller):
            if connector.kind != "native":
                slug = connector.slug
                name = other_name(slug) if slug in workers or slug in RESERVED else slug
                found.append(agent_of(connector, records.get(connector.id), name))
        return found

    async def view(self, name: str, caller: Caller | None = None) -> AgentView:
        caller = caller or self._caller
        return (await self._views([await self.get(name, caller)], caller))[0]

    async def views(self, caller: Caller | None = None) -> Sequence[AgentView]:
        caller = caller or self._caller
        return await self._views(await self.list(caller), caller)

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
        caller: Caller | None = None,
    ) -> Agent:
        caller = caller or self._caller
        if shared and not caller.is_admin:
            raise Denied("only an admin makes an agent for everybody", hint="leave out shared")
        name = checked_name(name)
        known = await self.list(caller)
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
            connectors=self._slugs(connectors, caller),
            capabilities=None if capabilities is None else frozenset(capabilities),
            exposure=checked_exposure(exposure),
        )
        await self._models.verify(agent.model, agent.fallbacks)
        await self._put(agent, caller, "agent.created")
        return agent

    async def update(self, name: str, caller: Caller | None = None, **changes: Any) -> Agent:
        """Sets what is given: instructions, model, fallbacks, exposure.

        Of a worker also description, connectors and capabilities.
        """
        caller = caller or self._caller
        before = changeable(await self.get(name, caller), caller)
        checked = checked_changes(before, changes)
        if checked.get("connectors") is not None:
            checked["connectors"] = self._slugs(checked["connectors"], caller, before.connectors or ())
        if checked.keys() & {"model", "fallbacks"}:
            model = checked.get("model", before.model)
            await self._models.verify(model, checked.get("fallbacks", before.fallbacks))
        if before.kind == "connector":
            after = await self._change_of_connector(before, checked)
            await self._done(after, caller, "agent.updated", sorted(changes))
            return after
        after = replace(before, **checked, updated_at=datetime.now(UTC))
        await self._put(after, caller, "agent.updated", sorted(changes))
        return after

    async def start(self, name: str, caller: Caller | None = None) -> Agent:
        return await self.update(name, caller, status="active")

    async def stop(self, name: str, caller: Caller | None = None) -> Agent:
        """It keeps all it has and takes no new message; what it works on now it finishes."""
        if key(name) == ASSISTANT:
            raise InvalidArguments("the assistant cannot be stopped", hint="stop a worker instead")
        return await self.update(name, caller, status="stopped")

    async def remove(self, name: str, caller: Caller | None = None) -> None:
        caller = caller or self._caller
        agent = changeable(await self.get(name, caller), caller)
        if is_of_files(agent):
            raise Conflict(
                f"{agent.name!r} is one of the app's folder", hint="take its file out of the folder"
            )
        if agent.kind != "worker":
            raise InvalidArguments(
                f"{agent.name!r} is not a worker",
                hint="a connector's agent goes with its connector; it can be stopped",
            )
        await self._rows.remove(agent.workspace, agent.id)
        self._tell(agent, "removed")
        await self._auditor.done(caller, "agent.removed", agent.name)

    async def assign(self, name: str, *connectors: str, caller: Caller | None = None) -> Agent:
        """Gives a worker connectors; those it has already change nothing."""
        caller = caller or self._caller
        agent = await self.get(name, caller)
        slugs = self._slugs(connectors, caller)
        if is_of_files(agent):
            return await self._rewritten(agent, slugs, (), caller)
        chosen = dict.fromkeys((*(agent.connectors or ()), *slugs))
        return await self.update(name, caller, connectors=tuple(chosen))

    async def describe(self, name: str, caller: Caller, **facts: Any) -> Agent:
        """As a file says: a connector or a model that is not there yet is kept, and used once it is."""
        before = changeable(await self.get(name, caller), caller)
        for text in ("description", "instructions"):
            facts[text] = checked_text(text, facts[text])
        after = replace(before, **facts, updated_at=datetime.now(UTC))
        await self._put(after, caller, "agent.updated", sorted(facts))
        return after

    async def unassign(self, name: str, *connectors: str, caller: Caller | None = None) -> Agent:
        caller = caller or self._caller
        agent = await self.get(name, caller)
        held = agent.connectors or ()
        # What has been removed since can be taken away by the name that it had.
        gone = {one if one in held else self._registry.get(one, caller).slug for one in connectors}
        if is_of_files(agent):
            return await self._rewritten(agent, (), tuple(gone), caller)
        return await self.update(name, caller, connectors=tuple(slug for slug in held if slug not in gone))

    # Parts

    async def _app_workers(self) -> Sequence[Agent]:
        """Those of the folder, with what the operator chose for them since (stopped, another model)."""
        chosen = {agent.id: agent for agent in await self._records.of(APP)}
        return [as_chosen(agent, chosen.get(agent.id)) for agent in self._of_files()]

    async def _rewritten(
        self, agent: Agent, given: Sequence[str], taken: Sequence[str], caller: Caller
    ) -> Agent:
        """The folder says who has what: it is written there, and read again."""
        if self._files is None:
            raise Conflict(f"{agent.name!r} is one of the app's folder", hint="change its file")
        for slug in given:
            await self._files.assign(agent.name, slug, caller)
        for slug in taken:
            await self._files.remove(agent.name, slug, caller)
        await self._files.sync()
        self._tell(agent, "updated")
        details = {"given": [*given], "taken": [*taken]}
        await self._auditor.done(caller, "agent.updated", agent.name, details=details)
        return await self.get(agent.name, caller)

    async def _change_of_connector(self, before: Agent, changes: dict[str, Any]) -> Agent:
        connector = self._registry.find_by_id(before.connector_id or "")
        if connector is None:
            raise NotFound(f"the connector of {before.name!r} is gone")
        if changes.get("status") == "active" and not connector.enabled:
            raise Conflict(
                f"the connector {connector.slug!r} is disabled",
                hint=f"dragoman connectors enable {connector.slug}",
            )
        return agent_of(connector, await self.of_connectors.change(connector, **changes), before.name)

    def _slugs(self, names: Sequence[str], caller: Caller, held: Sequence[str] = ()) -> tuple[str, ...]:
        """What an agent has already it keeps, though the connector may be gone meanwhile."""
        slugs = (name if name in held else self._registry.get(name, caller).slug for name in names)
        return tuple(dict.fromkeys(slugs))

    async def _views(self, agents: Sequence[Agent], caller: Caller) -> Sequence[AgentView]:
        numbers = await self._rows.numbers(caller.workspace)
        return [
            AgentView(
                agent=agent, numbers=numbers.get(agent.id, AgentNumbers()), notes=self._notes(agent, caller)
            )
            for agent in agents
        ]

    def _notes(self, agent: Agent, caller: Caller) -> tuple[str, ...]:
        if agent.kind == "connector":
            connector = self._registry.find_by_id(agent.connector_id or "")
            is_off = connector is not None and not connector.enabled
            return ("its connector is disabled",) if is_off else ()
        if agent.kind != "worker":
            return ()
        seen = {connector.slug for connector in self._registry.list(caller)}
        return tuple(f"{slug} is gone" for slug in agent.connectors or () if slug not in seen)

    async def _put(self, agent: Agent, caller: Caller, action: str, what: Sequence[str] = ()) -> None:
        await self._rows.put(agent)
        await self._done(agent, caller, action, what)

    async def _done(self, agent: Agent, caller: Caller, action: str, what: Sequence[str] = ()) -> None:
        self._tell(agent, action.partition(".")[2])
        details = {"connectors": [*(agent.connectors or ())], "changed": [*what], "status": agent.status}
        await self._auditor.done(caller, action, agent.name, details=details)

    def _tell(self, agent: Agent, what: str) -> None:
        self._records.changed(agent.workspace)
        facts = {"name": agent.name, "what": what, "status": agent.status}
        self._events.publish(
            Event(kind="agent.changed", workspace=agent.workspace, user=agent.owner, data=facts)
        )
