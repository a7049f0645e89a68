"""Agents as people handle them: create, change, start, stop, remove, give and take connectors.

Effective at once, in the middle of a conversation too: an agent is put together anew for every run, and its
tools for every step. Knows no model and no run.
"""

from collections.abc import Awaitable, Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Unpack

from dragoman.agent import ASSISTANT, Agent, AgentNumbers, AgentProfile, AgentStatus
from dragoman.errors import Conflict, Denied, InvalidArguments, NotFound
from dragoman.formats import FoundAgent
from dragoman.hub.agent_rules import (
    RESERVED,
    as_chosen,
    assistant_of,
    changeable,
    check_changes,
    checked_name,
    is_of_files,
    key,
)
from dragoman.hub.bound import BoundService
from dragoman.hub.bundles import check_clear, chosen_source, visible_sources
from dragoman.hub.connector_agents import agent_of, other_name
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.models import WorkspaceModels
from dragoman.hub.people_settings import AgentSettings
from dragoman.hub.revisions import revised
from dragoman.names import did_you_mean, slug_from
from dragoman.scope import APP, BUNDLE, Caller
from dragoman.setting import changed, people_set

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
        stored = await self._runtime.agent_records.seen_by(caller)
        assistant = assistant_of(stored, caller.workspace)
        if key(assistant.name) == key(name):  # the first of all, and asked for with every step of its runs
            return assistant
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
        workers = await self._workers(stored)
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

    async def count_workers(self) -> int:
        """How many agents people have made."""
        return len(await self._workers(await self._runtime.agent_records.seen_by(self._caller)))

    async def _workers(self, stored: Sequence[Agent]) -> dict[str, Agent]:
        """Those that people made, each name once: the nearest."""
        workers = {key(agent.name): agent for agent in await self._app_workers()}
        workers |= {key(agent.name): agent for agent in stored if agent.kind == "worker" and not agent.owner}
        return workers | {
            key(agent.name): agent for agent in stored if agent.kind == "worker" and agent.owner
        }

    async def view(self, name: str) -> AgentView:
        """One agent with the numbers of its work."""
        return (await self._views([await self.get(name)]))[0]

    async def views(self) -> Sequence[AgentView]:
        """All agents with the numbers of their work."""
        return await self._views(await self.list())

    # Changing

    async def create(self, name: str, *, shared: bool = False, **settings: Unpack[AgentSettings]) -> Agent:
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
        bare = Agent(
            id=f"agt_{token_hex(8)}",
            workspace=caller.workspace,
            owner="" if shared else caller.user,
            name=name,
            kind="worker",
            connectors=(),
        )
        agent = await self._changed(bare, settings)
        await self._runtime.store.agents.put(agent)
        await self._done(agent, "agent.created")
        return agent

    async def update(self, name: str, **settings: Unpack[AgentSettings]) -> Agent:
        """Changes what is given and keeps the rest; None sets back to the default.

        The assistant and connectors' agents have no description, connectors and capabilities to change.
        """

        async def change(before: Agent) -> Agent:
            check_changes(before, settings)
            return await self._changed(before, settings)

        return await self._keep(name, change, sorted(settings))

    async def _keep(
        self, name: str, change: Callable[[Agent], Awaitable[Agent]], what: Sequence[str]
    ) -> Agent:
        before = changeable(await self.get(name), self._caller)
        if before.kind == "connector":
            after = await change(before)
            changes = {name: getattr(after, name) for name in what}
            after = await self._change_of_connector(before, changes)
            await self._done(after, "agent.updated", what)
            return after

        async def changed_now(before: Agent) -> Agent:
            return replace(await change(before), updated_at=datetime.now(UTC))

        async def read(before: Agent) -> Agent:
            self._runtime.agent_records.forget(before.workspace)
            return changeable(await self.get(before.name), self._caller)

        _, after = await revised(before, changed_now, self._runtime.store.agents.put, read)
        await self._done(after, "agent.updated", what)
        return after

    async def _changed(self, before: Agent, settings: Mapping[str, Any]) -> Agent:
        """With these settings, once it is known that there are such connectors and models."""
        given = {name: value or None if name == "model" else value for name, value in settings.items()}
        after = changed(before, given)
        self._runtime.permissions.check_settings(self._caller, before, after)
        if "connectors" in given:
            # A worker without a list has no connector.
            slugs = self._slugs(after.connectors or (), before.connectors or ())
            if {*slugs} != {*(before.connectors or ())}:
                check_clear(self._runtime, self._caller, slugs)
            after = replace(after, connectors=slugs)
        if given.keys() & {"model", "fallbacks"}:
            await WorkspaceModels(self._runtime, self._caller).verify(after.model, after.fallbacks)
        return after

    async def _set_status(self, name: str, status: AgentStatus) -> Agent:
        async def change(before: Agent) -> Agent:
            return replace(before, status=status)

        return await self._keep(name, change, ["status"])

    async def start(self, name: str) -> Agent:
        """From now on it answers when it is mentioned."""
        return await self._set_status(name, "active")

    async def stop(self, name: str) -> Agent:
        """It keeps all it has and takes no new message; what it works on now it finishes."""
        if key(name) == ASSISTANT:
            raise InvalidArguments("the assistant cannot be stopped", hint="stop a worker instead")
        return await self._set_status(name, "stopped")

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

    async def describe(self, name: str, settings: Mapping[str, Any]) -> Agent:
        """As a file says: a connector or a model that is not there yet is kept, and used once it is."""

        async def change(before: Agent) -> Agent:
            after = changed(before, settings)
            self._runtime.permissions.check_settings(self._caller, before, after)
            return after

        return await self._keep(name, change, sorted(settings))

    async def unassign(self, name: str, *connectors: str) -> Agent:
        """It has these connectors no more."""
        agent = await self.get(name)
        held = agent.connectors or ()
        # What has been removed since can be taken away by the name that it had.
        gone = {one if one in held else chosen_source(self._runtime, one, self._caller) for one in connectors}
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
        slugs = (name if name in held else chosen_source(self._runtime, name, self._caller) for name in names)
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
        seen = visible_sources(self._runtime, self._caller)
        own = agent.connectors or ()
        gone = (f"{slug} is gone" for slug in own if slug not in seen)
        return (*gone, *self._runtime.catalog.rivals(self._caller.within(own)))

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
            **settings_in(found, registry, owner),
        )
        for found in agents
    ]


def settings_in(found: FoundAgent, registry: ConnectorRegistry, caller: Caller) -> dict[str, Any]:
    """What a file says of an agent, with its connectors by slug."""
    facts = {one.path[0]: getattr(found, one.path[0]) for one in people_set(AgentProfile)}
    return {**facts, "connectors": slugs_of(found, registry, caller)}


def slugs_of(found: FoundAgent, registry: ConnectorRegistry, caller: Caller) -> tuple[str, ...]:
    """A connector that is not there yet is kept under the slug that it would have."""
    known = [(name, registry.find(name, caller)) for name in found.connectors or ()]
    return tuple(
        dict.fromkeys(
            one.slug if one else name if name.startswith(BUNDLE) else slug_from(name) for name, one in known
        )
    )
