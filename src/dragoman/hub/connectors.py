"""Connectors as people handle them: add, look, change, switch, remove. Nothing here needs a restart."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, Literal, Unpack

from pydantic import SecretStr

from dragoman.catalog import CatalogState, ToolChanges
from dragoman.connections.boxes.boxes import BoxFacts, BoxNeed
from dragoman.connections.boxes.homes import BoxHome
from dragoman.connections.source import ConnectionStatus
from dragoman.connector import Configuration, Connector, SplitConfiguration
from dragoman.errors import Denied, DragomanError, InvalidConfig, NotFound, Outdated
from dragoman.events import EventKind
from dragoman.hub.bound import BoundService
from dragoman.hub.connector_input import check_program, configured, in_force, merged, named, values_of
from dragoman.hub.connector_settings import ConnectorSettings
from dragoman.hub.permissions import leads_elsewhere
from dragoman.hub.revisions import check_apart
from dragoman.scope import identity_of
from dragoman.store import SealedSecret
from dragoman.telemetry.metrics import ConnectorMetrics

_TRIES = 5  # to write what another process writes at the same moment


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorView:
    """One connector as a person wants to see it. `notices` is what was done with what was just given, `needs`
    what its server, just tried, seems to lack in its box.
    """

    connector: Connector
    status: ConnectionStatus
    catalog: CatalogState
    tools: int
    metrics: ConnectorMetrics
    box: BoxFacts | None = None
    skipped: tuple[str, ...] = ()
    notices: tuple[str, ...] = ()
    needs: tuple[BoxNeed, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorChange:
    """What `add_or_update` did, and the connector as it is now."""

    view: ConnectorView
    change: Literal["added", "updated", "unchanged"]


class Connectors(BoundService):
    """What the caller may do with connectors."""

    __slots__ = ()

    async def add(
        self,
        name: str,
        *,
        description: str = "",
        connect: bool = True,
        aliases: Sequence[str] = (),
        enabled: bool = True,
        shared: bool = False,
        **settings: Unpack[ConnectorSettings],
    ) -> ConnectorView:
        """Stores a connector and connects once to show that it works and to learn its tools.

            await hub.connectors.add("time", command="uvx", args=["mcp-server-time"])
            await hub.connectors.add("notes", url="https://notes.example.com/mcp", bearer=token)

        A server out of reach is kept, with its cause, and tried again; a wrong configuration is refused
        and nothing is written. A `shared` one belongs to the whole workspace: only its admins add it.
        """
        caller = self._caller
        slug, aliases = named(name, aliases)
        given = configured(settings, {})
        origin = self._runtime.permissions.check_new(
            caller, (slug, *aliases), description, given.configuration, given.secrets
        )
        self._check_program(given.configuration)
        self._runtime.hooks.check(given.configuration.hooks)
        if shared and not caller.is_admin:
            raise Denied("only an admin adds a connector for the whole workspace")
        owner = "" if shared else caller.user
        connector = Connector(
            id=f"con_{token_hex(8)}",
            workspace=caller.workspace,
            owner=owner,
            origin=origin,
            slug=slug,
            aliases=aliases,
            description=description,
            configuration=given.configuration,
            enabled=enabled,
        )
        # One by one in each tier: so that nobody gets past a limit.
        async with self._runtime.locks.of("connectors", caller.workspace, owner):
            self._runtime.permissions.check_number(
                caller, self._runtime.registry.count(caller.workspace, owner)
            )
            self._runtime.registry.check_free((slug, *aliases), caller.workspace, owner)
            await self._runtime.store.connectors.add(connector, self._sealed(connector, given.secrets))
            await self._take_in(connector, "connector.registered")
            details = {"id": connector.id, "tier": "user" if owner else "workspace", "origin": origin}
            await self._runtime.auditor.done(caller, "connector.added", slug, details=details)
        if connect and enabled:
            await self._try_refresh(connector)
        return self._told_view(connector, given.told)

    async def add_or_update(
        self,
        name: str,
        *,
        description: str | None = None,
        connect: bool = True,
        shared: bool = False,
        **settings: Unpack[ConnectorSettings],
    ) -> ConnectorChange:
        """Adds the connector, or makes what is given here true of the one that the caller has already.

            if (await hub.connectors.add_or_update("time", command="uvx", args=[…])).change != "unchanged":
                …

        For programs that say at each start what they need: where nothing differs, nothing is written and
        no connection is closed. What is not given is kept, as with `update`.
        """
        caller = self._caller
        slug, _ = named(name, ())
        existing = self._runtime.registry.find_in(caller.workspace, "" if shared else caller.user, slug)
        if existing is None:
            view = await self.add(
                name, description=description or "", connect=connect, shared=shared, **settings
            )
            return ConnectorChange(view=view, change="added")
        async with self._runtime.locks.of("connector", existing.id):
            before = self._changeable(existing.id)
            held = await self._runtime.vault.reveal(before)
            given = configured(*merged(before.configuration, held, settings))
            is_same = description in (None, before.description) and values_of(given.secrets) == values_of(
                held
            )
            if is_same and in_force(given.configuration) == in_force(before.configuration):
                return ConnectorChange(view=self._view(before), change="unchanged")
            before, after, told = await self._updated(before, description, settings)
        view = await self._taken_over(before, after, connect, told)
        return ConnectorChange(view=view, change="updated")

    async def list(self) -> Sequence[ConnectorView]:
        """All that the caller may see, with their states, in the order of their names."""
        return [self._view(connector) for connector in self._runtime.registry.list(self._caller)]

    def count(self) -> int:
        """How many of them there are; the functions of the program itself are no connector of theirs."""
        return sum(one.kind != "native" for one in self._runtime.registry.list(self._caller))

    async def get(self, name: str) -> ConnectorView:
        """One connector by its name, an alias or its id. Raises `NotFound`."""
        return self._view(self._runtime.registry.get(name, self._caller))

    async def update(
        self,
        name: str,
        *,
        description: str | None = None,
        connect: bool = True,
        **settings: Unpack[ConnectorSettings],
    ) -> ConnectorView:
        """Changes what is given and keeps the rest; None sets back to the default.

            await hub.connectors.update("time", request_timeout=10, retry={"tries": 1})

        Calls under way finish on the old connection.
        """
        async with self._runtime.locks.of("connector", self._changeable(name).id):
            before, after, told = await self._updated(self._changeable(name), description, settings)
        return await self._taken_over(before, after, connect, told)

    async def replace(
        self,
        name: str,
        *,
        description: str = "",
        connect: bool = True,
        aliases: Sequence[str] = (),
        enabled: bool = True,
        **settings: Unpack[ConnectorSettings],
    ) -> ConnectorView:
        """These settings and secrets in the place of all it had; its tools, versions and numbers stay."""
        async with self._runtime.locks.of("connector", self._changeable(name).id):
            before = self._changeable(name)
            beside = {"description": description, "enabled": enabled, "aliases": tuple(aliases)}
            given = configured(settings, {})
            after = await self._rewrite(before, given, {}, **beside)
        return await self._taken_over(before, after, connect, given.told)

    async def _updated(
        self, before: Connector, description: str | None, settings: Mapping[str, Any]
    ) -> tuple[Connector, Connector, tuple[str, ...]]:
        """What it was, what it is, and what is to be said of it.

        Where another process was faster, and changed something else, the change is made on what it left.
        What leads a secret somewhere is not: whoever gives one has seen where it goes.
        """
        beside = {} if description is None else {"description": description}
        for left in reversed(range(_TRIES)):
            facts, kept = merged(before.configuration, await self._runtime.vault.reveal(before), settings)
            given = configured(facts, kept)
            try:
                return before, await self._rewrite(before, given, kept, **beside), given.told
            except Outdated:
                wanted = replace(before, configuration=given.configuration, **beside)
                newest = self._changeable(before.id)  # read by now
                check_apart(before, wanted, newest)
                gives_secrets = any(kept.get(name) is not value for name, value in given.secrets.items())
                if not left or gives_secrets:
                    raise
                before = newest
        raise AssertionError("the last try returns or raises")

    async def _rewrite(
        self,
        before: Connector,
        wanted: SplitConfiguration,
        kept: Mapping[str, SecretStr],
        **beside: Any,
    ) -> Connector:
        caller = self._caller
        configuration, secrets = wanted.configuration, wanted.secrets
        given = {name: value for name, value in secrets.items() if kept.get(name) is not value}
        after = replace(
            before,
            configuration=configuration,
            revision=before.revision + 1,
            era=before.era if before.configuration.url == configuration.url else None,
            updated_at=datetime.now(UTC),
            **beside,
        )
        self._runtime.permissions.check_change(caller, before, after, given)
        self._check_program(configuration)
        self._runtime.hooks.check(configuration.hooks)
        is_shared = not before.owner
        # What users gave for one server is not for whoever an admin puts in its place.
        is_other = is_shared and leads_elsewhere(
            (before, await self._runtime.vault.reveal(before)), (after, secrets)
        )
        await self._write(after, self._sealed(after, secrets), forget_personal=is_other)
        await self._runtime.auditor.done(caller, "connector.updated", after.slug, details={"id": after.id})
        return after

    async def _write(
        self,
        after: Connector,
        sealed: Sequence[SealedSecret] | None = None,
        *,
        forget_personal: bool = False,
    ) -> None:
        """Into the store, then for all to see. Before it fails, what another process made of it is read."""
        try:
            await self._runtime.store.connectors.update(after, sealed, forget_personal=forget_personal)
        except (Outdated, NotFound):
            await self._runtime.connector_lifecycle.read_again(after.workspace, after.id)
            raise
        await self._take_in(after, "connector.updated")

    async def _taken_over(
        self, before: Connector, after: Connector, connect: bool, notices: tuple[str, ...]
    ) -> ConnectorView:
        await self._runtime.sources[before.kind].retire(before)
        if connect and after.enabled:
            await self._try_refresh(after)
        return self._told_view(after, notices)

    async def remove(self, name: str) -> None:
        """Its tools, secrets and numbers are gone at once; calls under way finish in the background."""
        connector = self._changeable(name)
        self._runtime.permissions.check_removal(self._caller, connector)
        async with self._runtime.locks.of("connector", connector.id):
            await self._runtime.store.connectors.remove(connector.workspace, connector.id)
            self._runtime.connector_lifecycle.drop(connector)
        await self._runtime.connector_agents.connector_gone(connector)
        await self._runtime.auditor.done(
            self._caller, "connector.removed", connector.slug, details={"id": connector.id}
        )
        await self._runtime.connector_lifecycle.close(connector)
        await asyncio.to_thread(self._runtime.boxes.forget, connector.id)

    async def needs(self, name: str) -> Sequence[BoxNeed]:
        """What its server seems to need beyond its box, for who may change it."""
        return self._needs(self._view(self._changeable(name)))

    async def homes(self, name: str) -> Sequence[BoxHome]:
        """The homes of its boxes on this machine, one for each identity, with what they hold."""
        connector = self._changeable(name)
        return await asyncio.to_thread(self._runtime.boxes.homes.list, connector.id)

    async def clear_homes(self, name: str) -> int:
        """Removes what its server keeps, and what was fetched for it. How many bytes that were.

        The caller's connection is closed first; the next call opens one in an empty home.
        """
        connector = self._changeable(name)
        self._runtime.permissions.check_removal(self._caller, connector)
        await self._runtime.sources[connector.kind].disconnect(connector, self._caller)
        freed = await asyncio.to_thread(self._runtime.boxes.homes.clear, connector.id)
        await self._runtime.auditor.done(
            self._caller, "connector.cleared", connector.slug, details={"id": connector.id, "bytes": freed}
        )
        return freed

    async def enable(self, name: str) -> ConnectorView:
        """Its tools can be called again."""
        return await self._switch(name, True)

    async def disable(self, name: str) -> ConnectorView:
        """Its tools stay known and cannot be called; calls under way finish in the background."""
        return await self._switch(name, False)

    async def connect(self, name: str) -> ConnectorView:
        """Opens the caller's connection and reports how that went; a failure is in the view."""
        connector = self._enabled(name)
        await self._runtime.sources[connector.kind].connect(connector, self._caller)
        if self._runtime.catalog.state(connector.id) != "ready":
            await self._try_refresh(connector)
        return self._view(connector)

    async def disconnect(self, name: str) -> ConnectorView:
        """Closes the caller's connection. Its tools are unavailable until it is connected again.

        With `auto_reconnect` the next call does that.
        """
        caller = self._caller
        connector = self._runtime.registry.get(name, caller)
        await self._runtime.sources[connector.kind].disconnect(connector, caller)
        if connector.kind != "native":
            identity = identity_of(caller, connector.configuration.isolation)
            self._runtime.watcher.was_disconnected(connector, identity)
        return self._view(connector)

    async def refresh(self, name: str) -> ToolChanges:
        """Lists the tools anew and says what changed."""
        return await self._runtime.lists.relist(self._enabled(name), self._caller)

    # Parts

    def _check_program(self, configuration: Configuration) -> None:
        """`InvalidConfig` when there is no such program here, or nothing to box it with as it says."""
        check_program(configuration)
        self._runtime.boxes.check(configuration)

    def _told_view(self, connector: Connector, notices: tuple[str, ...]) -> ConnectorView:
        """With what its server seems to need beyond its box: it was just tried."""
        view = self._view(connector)
        needs = self._needs(view)
        return replace(view, needs=needs, notices=(*notices, *(one.notice(connector.slug) for one in needs)))

    def _needs(self, view: ConnectorView) -> tuple[BoxNeed, ...]:
        said = (*view.status.stderr, view.status.cause or "")
        return self._runtime.boxes.needs(view.connector, said)

    def _view(self, connector: Connector, notices: tuple[str, ...] = ()) -> ConnectorView:
        caller = self._caller
        connector = self._runtime.registry.newest(connector) or connector
        return ConnectorView(
            connector=connector,
            status=self._cleaned(self._runtime.sources[connector.kind].status(connector, caller)),
            catalog=self._runtime.catalog.state(connector.id),
            tools=len(self._runtime.catalog.list(caller, connector.id)),
            metrics=self._runtime.recorder.metrics(connector),
            box=self._runtime.boxes.facts(connector),
            skipped=self._runtime.lists.skipped.get(connector.id, ()),
            notices=notices,
        )

    def _cleaned(self, status: ConnectionStatus) -> ConnectionStatus:
        """A server may print its secrets; what people see of it holds none."""
        clean = self._runtime.redactor.clean
        if not (status.cause or status.stderr):
            return status
        return replace(
            status,
            cause=clean(status.cause or "") or None,
            stderr=tuple(clean(line) for line in status.stderr),
        )

    def _enabled(self, name: str) -> Connector:
        connector = self._runtime.registry.get(name, self._caller)
        if not connector.enabled:
            raise InvalidConfig(
                f"the connector {connector.slug!r} is disabled",
                hint=f"dragoman connectors enable {connector.slug}",
            )
        return connector

    async def _switch(self, name: str, enabled: bool) -> ConnectorView:
        caller = self._caller
        connector_id = self._changeable(name).id
        async with self._runtime.locks.of("connector", connector_id):
            while True:
                before = self._changeable(connector_id)
                if before.enabled == enabled:
                    return self._view(before)
                after = replace(
                    before, enabled=enabled, revision=before.revision + 1, updated_at=datetime.now(UTC)
                )
                self._runtime.permissions.check_fields(caller, before, after)
                with suppress(Outdated):  # what somebody else changed stays, and this counts as well
                    await self._write(after)
                    break
            action = "connector.enabled" if enabled else "connector.disabled"
            await self._runtime.auditor.done(caller, action, after.slug, details={"id": after.id})
        await self._runtime.sources[before.kind].retire(before)
        if enabled and self._runtime.catalog.state(after.id) != "ready":
            await self._try_refresh(after)
        return self._view(after)

    async def _try_refresh(self, connector: Connector) -> None:
        """A server that does not answer now is no failure: its state says why, and it is tried again."""
        try:
            await self._runtime.lists.relist(connector, self._caller)
        except DragomanError:
            return

    async def _take_in(self, connector: Connector, kind: EventKind) -> None:
        self._runtime.connector_lifecycle.take_in(connector, kind)
        await self._runtime.lists.tell_agents(connector)

    def _changeable(self, name: str) -> Connector:
        """What is not the caller's own belongs to a tier above, and only who runs that tier changes it."""
        caller = self._caller
        connector = self._runtime.registry.get(name, caller)
        if connector.owner or (connector.workspace == caller.workspace and caller.is_admin):
            return connector
        if caller.role == "operator":
            return connector
        whose = "the whole workspace" if connector.workspace else "the whole installation"
        raise Denied(f"the connector {connector.slug!r} belongs to {whose}", hint="ask an admin to change it")

    def _sealed(self, connector: Connector, secrets: Mapping[str, SecretStr]):
        return [
            self._runtime.vault.seal(connector.workspace, "", connector.id, name, value)
            for name, value in secrets.items()
        ]
