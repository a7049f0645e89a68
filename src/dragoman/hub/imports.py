"""Configurations that people already own, taken over: first what would happen, then the doing of it.

Importing twice changes nothing. What collides with something that exists is named and left alone.
"""

import asyncio
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal, cast

from pydantic import SecretStr

from dragoman.connector import Configuration, Connector, SplitConfiguration
from dragoman.errors import DragomanError
from dragoman.formats import FoundAgent, FoundBundle, FoundConnector, ImportPlan, RequiredInput, filled
from dragoman.formats.dragoman_files import write_dragoman_file
from dragoman.formats.import_files import Importable, read_all
from dragoman.formats.mcp_servers import write_servers
from dragoman.formats.variables import asked_instead
from dragoman.hub.bound import BoundService
from dragoman.hub.bundles import Bundles
from dragoman.hub.connector_input import check_program, configured, in_force, values_of
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.imported_agents import ImportedAgents, comparable
from dragoman.scope import BUNDLE, Caller
from dragoman.secret_recognition import Masking, masked

Action = Literal["add", "replace", "unchanged", "conflict", "needs_input", "invalid"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ImportStep:
    """What happens, or would happen, to one entry. `view` is the connector once it was added."""

    source: str
    kind: Literal["connector", "agent", "bundle", "file"]
    name: str
    action: Action
    slug: str = ""
    reached_by: str = ""
    reason: str = ""
    differs: tuple[str, ...] = ()
    needs: tuple[RequiredInput, ...] = ()
    missing: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    view: ConnectorView | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class _Wish:
    """How one import is meant. `taken` are the names that its own files have used so far."""

    caller: Caller
    inputs: Mapping[str, str]
    may_replace: bool
    taken: dict[str, SplitConfiguration] = field(default_factory=dict[str, SplitConfiguration])


@dataclass(frozen=True, slots=True)
class _Intent:
    """A step with what is needed to take it."""

    step: ImportStep
    connector: FoundConnector | None = None
    agent: FoundAgent | None = None
    facts: Mapping[str, Any] | None = None
    existing: Connector | None = None
    bundle: FoundBundle | None = None


class Imports(BoundService):
    """`plan` writes nothing. `apply` takes every step that `plan` would show as add or replace."""

    __slots__ = ()

    @property
    def agents(self) -> ImportedAgents:
        """The agents that a file brings."""
        return ImportedAgents(self._runtime, self._caller)

    async def plan(
        self,
        sources: Iterable[Importable],
        *,
        inputs: Mapping[str, str] | None = None,
        replace: bool = False,
    ) -> list[ImportStep]:
        """Texts, files, or folders of files. `inputs` answer what the files ask for."""
        wish = _Wish(caller=self._caller, inputs=inputs or {}, may_replace=replace)
        intents = await self._intents(sources, wish)
        return [intent.step for intent in intents]

    async def apply(
        self,
        sources: Iterable[Importable],
        *,
        inputs: Mapping[str, str] | None = None,
        replace: bool = False,
        connect: bool = True,
        progress: Callable[[ImportStep], None] | None = None,
    ) -> list[ImportStep]:
        """Adds what can be added, then connects to all of it at once. `progress` hears of each step."""
        wish = _Wish(caller=self._caller, inputs=inputs or {}, may_replace=replace)
        intents = await self._intents(sources, wish)
        steps = [await self._take(intent) for intent in intents]
        await self._keep_agents(intents)
        # Last: their tools are of connectors that the same file may bring.
        steps = [await self._keep_bundle(*pair) for pair in zip(intents, steps, strict=True)]

        async def finish(index: int) -> None:
            if connect:
                steps[index] = await self._connected(steps[index])
            if progress is not None:
                progress(steps[index])

        async with asyncio.TaskGroup() as tasks:
            for index in range(len(steps)):
                tasks.create_task(finish(index))
        return steps

    # Planning

    async def _intents(self, sources: Iterable[Importable], wish: _Wish) -> list[_Intent]:
        plans = await asyncio.to_thread(read_all, [*sources])
        intents: list[_Intent] = []
        has_agents = any(plan.agents for plan in plans)
        known = {agent.name: agent for agent in await self.agents.list()} if has_agents else {}
        for plan in plans:
            own = _troubles(plan)
            for found in plan.connectors:
                own.append(await self._intent(plan.source, found, wish))
            for agent in plan.agents:
                own.append(_agent_intent(plan.source, agent, known.get(agent.name), wish))
                known.setdefault(agent.name, comparable(agent))
            own += [self._bundle_intent(plan.source, one, wish) for one in plan.bundles]
            intents += _with_warnings(own, plan)
        return intents

    async def _intent(self, source: str, found: FoundConnector, wish: _Wish) -> _Intent:
        # The environment is the operator's: to everybody else, a variable in it is a question.
        is_operator = wish.caller.role == "operator"
        found = found if is_operator else asked_instead(found)
        known = _environment(found) if is_operator else {}
        facts, open_needs = filled(found, {**known, **wish.inputs})
        step = ImportStep(
            source=source,
            kind="connector",
            name=found.name,
            slug=found.slug,
            action="add",
            reached_by=_reached_by(found),
            needs=found.needs,
            missing=found.missing,
            warnings=found.warnings,
        )
        if found.is_dragoman:
            return _Intent(replace(step, action="unchanged", reason="it is Dragoman itself"))
        if any(need.is_required for need in open_needs):
            asked = ", ".join(need.name for need in open_needs)
            return _Intent(replace(step, action="needs_input", reason=f"it asks for {asked}"))
        try:
            wanted = configured(facts, {})
            names = (found.slug, *found.aliases)
            step = replace(step, warnings=(*step.warnings, *wanted.told))
            self._runtime.permissions.check_new(
                wish.caller, names, found.description, wanted.configuration, wanted.secrets
            )
            earlier = wish.taken.setdefault(found.slug, wanted)
            if earlier != wanted:
                return _Intent(
                    replace(step, action="conflict", reason="the name appears twice, described differently")
                )
            if earlier is not wanted:
                return _Intent(replace(step, action="unchanged", reason="it appears twice"))
            return await self._against_existing(_Intent(step, found, None, facts), found, wanted, wish)
        except DragomanError as error:
            reason = f"{error.message}; {error.hint}" if error.hint else error.message
            action: Action = "conflict" if error.code == "conflict" else "invalid"
            return _Intent(replace(step, action=action, reason=reason))

    async def _against_existing(
        self, intent: _Intent, found: FoundConnector, wanted: SplitConfiguration, wish: _Wish
    ) -> _Intent:
        step, existing = intent.step, self._existing(found, wish.caller)
        if existing is None:
            self._runtime.registry.check_free(
                (found.slug, *found.aliases), wish.caller.workspace, wish.caller.user
            )
            self._check_program(wanted.configuration, wish.caller)
            return replace(intent, step=self._told_of_box(step, wanted.configuration))
        if existing.owner != wish.caller.user:
            return _Intent(
                replace(step, action="conflict", reason=f"{existing.slug!r} belongs to the whole workspace")
            )
        differs = _differences(existing, await self._runtime.vault.reveal(existing), found, wanted)
        if not differs:
            return _Intent(replace(step, action="unchanged", slug=existing.slug, missing=()))
        if not wish.may_replace:
            reason = f"there is another {existing.slug!r} already: it differs in {', '.join(differs)}"
            return _Intent(
                replace(step, action="conflict", slug=existing.slug, reason=reason, differs=differs)
            )
        self._check_program(wanted.configuration, wish.caller)
        step = replace(step, action="replace", slug=existing.slug, differs=differs)
        return replace(intent, step=step, existing=existing)

    def _check_program(self, configuration: Configuration, caller: Caller) -> None:
        """Which programs there are is told only to those who may run them."""
        if caller.is_admin:
            check_program(configuration)
            self._runtime.boxes.check(configuration)

    def _told_of_box(self, step: ImportStep, configuration: Configuration) -> ImportStep:
        """With the paths that it names and will not see; with many users they are nobody's to know."""
        if not configuration.command or self._runtime.settings.multi_user:
            return step
        needs = self._runtime.boxes.named(configuration)
        return replace(step, warnings=(*step.warnings, *(need.notice(step.slug) for need in needs)))

    def _existing(self, found: FoundConnector, caller: Caller) -> Connector | None:
        names = (found.slug, *found.aliases)
        return next((one for name in names if (one := self._runtime.registry.find(name, caller))), None)

    def _bundle_intent(self, source: str, found: FoundBundle, wish: _Wish) -> _Intent:
        slug, bundles = f"{BUNDLE}{found.name}", Bundles(self._runtime, self._caller)
        step = ImportStep(source=source, kind="bundle", name=found.name, action="add", slug=slug)
        if bundles.find_own(found.name) is None:
            return _Intent(step, bundle=found)
        if bundles.is_described(found):
            return _Intent(replace(step, action="unchanged"))
        if wish.may_replace:
            return _Intent(replace(step, action="replace"), bundle=found)
        reason = f"there is another bundle {found.name!r} already"
        return _Intent(replace(step, action="conflict", reason=reason))

    # Doing

    async def _take(self, intent: _Intent) -> ImportStep:
        found, step = intent.connector, intent.step
        if found is None or intent.facts is None:
            return step
        beside: dict[str, Any] = {"description": found.description, "enabled": found.enabled}
        connectors = Connectors(self._runtime, self._caller)
        try:
            if before := intent.existing:
                aliases = [name for name in (*before.aliases, *found.aliases) if name != before.slug]
                beside["aliases"] = tuple(dict.fromkeys(aliases))
                view = await connectors.replace(before.slug, connect=False, **beside, **intent.facts)
            else:
                beside["aliases"] = found.aliases
                view = await connectors.add(found.slug, connect=False, **beside, **intent.facts)
        except DragomanError as error:
            return replace(
                step, action="conflict" if error.code == "conflict" else "invalid", reason=error.message
            )
        return replace(step, view=view)

    async def _connected(self, step: ImportStep) -> ImportStep:
        """A server that does not answer is kept, and its view says why; without its secrets none is asked."""
        view = step.view
        if view is None or not view.connector.enabled or step.missing:
            return step
        if not view.connector.configuration.auto_discover:
            return step
        connectors = Connectors(self._runtime, self._caller)
        try:
            return replace(step, view=await connectors.connect(step.slug))
        except DragomanError as error:
            return replace(step, reason=error.message, view=await connectors.get(step.slug))

    async def _keep_bundle(self, intent: _Intent, step: ImportStep) -> ImportStep:
        if intent.bundle is None:
            return step
        try:
            made = await Bundles(self._runtime, self._caller).describe(intent.bundle)
        except DragomanError as error:
            action: Action = "conflict" if error.code == "conflict" else "invalid"
            return replace(step, action=action, reason=error.message)
        return replace(step, warnings=(*step.warnings, *made.problems))

    async def _keep_agents(self, intents: Sequence[_Intent]) -> None:
        if agents := [intent.agent for intent in intents if intent.agent is not None]:
            await self.agents.put(agents)


def _with_warnings(intents: list[_Intent], plan: ImportPlan) -> list[_Intent]:
    """What is said of the file as a whole stands with the last that it brings."""
    if not plan.warnings:
        return intents
    nothing = _Intent(ImportStep(source=plan.source, kind="file", name=plan.source, action="unchanged"))
    *others, last = intents or [nothing]
    step = replace(last.step, warnings=(*last.step.warnings, *plan.warnings))
    return [*others, replace(last, step=step)]


def _troubles(plan: ImportPlan) -> list[_Intent]:
    steps = [
        ImportStep(
            source=plan.source,
            kind="connector" if problem.entry else "file",
            name=problem.entry or plan.source,
            action="invalid",
            reason=problem.reason,
        )
        for problem in plan.problems
    ]
    return [_Intent(step) for step in steps]


def _agent_intent(source: str, agent: FoundAgent, known: FoundAgent | None, wish: _Wish) -> _Intent:
    step = ImportStep(source=source, kind="agent", name=agent.name, action="add")
    if known is None:
        return _Intent(step, agent=agent)
    if known == comparable(agent):
        return _Intent(replace(step, action="unchanged"))
    if wish.may_replace:
        return _Intent(replace(step, action="replace"), agent=agent)
    return _Intent(replace(step, action="conflict", reason=f"there is another agent {agent.name!r} already"))


def _environment(found: FoundConnector) -> dict[str, str]:
    """Variables in a command or folder are read now: nothing expands them later."""
    names = [need.name.removeprefix("env:") for need in found.needs if need.name.startswith("env:")]
    return {f"env:{name}": os.environ[name] for name in names if name in os.environ}


def _reached_by(found: FoundConnector) -> str:
    """The command or address, without the secrets in it."""
    facts = found.facts
    if command := facts.get("command"):
        return " ".join([command, *Masking().words(facts.get("args", ()))])
    where = str(facts.get("url") or facts.get("openapi") or "")
    return masked(where.partition("?")[0])


def _differences(
    existing: Connector, stored: Mapping[str, SecretStr], found: FoundConnector, wanted: SplitConfiguration
) -> tuple[str, ...]:
    """Fields such as `args`, `env.MODE`, `secret env:TOKEN`. A secret that the file leaves out is none."""
    configuration, secrets, held = wanted.configuration, values_of(wanted.secrets), values_of(stored)
    differing = [*_fields("", in_force(existing.configuration), in_force(configuration))]
    for name in sorted(held.keys() | secrets.keys()):
        if name not in found.missing and held.get(name) != secrets.get(name):
            differing.append(f"secret {name}")
    if found.description and found.description != existing.description:
        differing.append("description")
    if found.enabled != existing.enabled:
        differing.append("enabled")
    if not {*found.aliases} <= {existing.slug, *existing.aliases}:
        differing.append("aliases")
    return tuple(differing)


def _fields(prefix: str, one: Mapping[str, Any], other: Mapping[str, Any]) -> Iterator[str]:
    for name in sorted(one.keys() | other.keys()):
        before, after = one.get(name), other.get(name)
        if before == after:
            continue
        if isinstance(before, dict) and isinstance(after, dict) and not prefix:
            yield from _fields(f"{name}.", cast("dict[str, Any]", before), cast("dict[str, Any]", after))
        else:
            yield f"{prefix}{name}"


class Exports(BoundService):
    """What the caller sees. Secrets only of connectors that are the caller's own."""

    __slots__ = ()

    async def dragoman(self, *, include_secrets: bool = False) -> str:
        """Everything, in Dragoman's own form. Secrets that are left out are named."""
        connectors = self._list()
        secrets = await self._secrets(connectors) if include_secrets else {}
        return write_dragoman_file(
            connectors,
            secrets,
            await ImportedAgents(self._runtime, self._caller).list(),
            Bundles(self._runtime, self._caller).described(),
        )

    async def mcp_servers(self, *, include_secrets: bool = False) -> str:
        """The MCP servers, as `mcpServers`. A secret that is left out is a `${VAR}`."""
        connectors = self._list()
        secrets = await self._secrets(connectors) if include_secrets else {}
        return write_servers(connectors, secrets)

    def _list(self) -> list[Connector]:
        return [
            connector for connector in self._runtime.registry.list(self._caller) if connector.kind != "native"
        ]

    async def _secrets(self, connectors: list[Connector]) -> dict[str, Mapping[str, str]]:
        revealed: dict[str, Mapping[str, str]] = {}
        for connector in connectors:
            if connector.owner == self._caller.user:
                values = await self._runtime.vault.reveal(connector)
                revealed[connector.id] = {name: value.get_secret_value() for name, value in values.items()}
        return revealed
