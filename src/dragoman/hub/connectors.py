"""Connectors as people handle them: add, look, change, switch, remove. Nothing here needs a restart."""

import asyncio
import os
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from typing import Any, cast

from pydantic import SecretStr

from dragoman.access import Limits
from dragoman.calls.records import Recorder
from dragoman.catalog import Catalog, CatalogState, Changes
from dragoman.connections.environment import child_environment
from dragoman.connections.process import find_program
from dragoman.connections.source import LinkStatus, Listing, Sources
from dragoman.connector import Configuration, Connector, split_secrets
from dragoman.errors import DragomanError, InvalidConfig
from dragoman.events import Event, EventKind, Events
from dragoman.hub.registry import Registry
from dragoman.names import check_slug, slug_from
from dragoman.scope import Caller
from dragoman.store import Store
from dragoman.telemetry.metrics import ConnectorMetrics
from dragoman.telemetry.redaction import Redactor
from dragoman.vault import Vault


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectorView:
    """One connector as a person wants to see it."""

    connector: Connector
    status: LinkStatus
    catalog: CatalogState
    tools: int
    metrics: ConnectorMetrics
    skipped: tuple[str, ...] = ()


class Connectors:
    """What a user may do with connectors. Every method acts for `caller`, by default the hub's own."""

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        vault: Vault,
        registry: Registry,
        catalog: Catalog,
        sources: Sources,
        limits: Limits,
        recorder: Recorder,
        events: Events,
        redactor: Redactor,
    ) -> None:
        self._caller = caller
        self._store = store
        self._vault = vault
        self._registry = registry
        self._catalog = catalog
        self._sources = sources
        self._limits = limits
        self._recorder = recorder
        self._events = events
        self._redactor = redactor
        self._skipped: dict[str, tuple[str, ...]] = {}
        self._writing: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)

    async def add(
        self,
        name: str,
        *,
        description: str = "",
        connect: bool = True,
        caller: Caller | None = None,
        **facts: Any,
    ) -> ConnectorView:
        """Stores a connector and connects once to show that it works and to learn its tools.

        `facts` are the fields of `Configuration`, and `bearer`, `api_key`, `api_key_header` and `secret`
        (names such as `env:TOKEN` or `header:X-Key` that must be encrypted). A server out of reach is
        kept, with its cause, and tried again; a wrong configuration is refused and nothing is written.
        """
        caller = caller or self._caller
        slug, aliases = _named(name)
        configuration, secrets = _configured(facts, {})
        _check_program(configuration)
        self._registry.check_free((slug, *aliases), caller.workspace)
        connector = Connector(
            id=f"con_{token_hex(8)}",
            workspace=caller.workspace,
            owner=caller.user,
            slug=slug,
            aliases=aliases,
            description=description,
            configuration=configuration,
        )
        await self._store.connectors.add(connector, self._sealed(connector, secrets))
        self._take_in(connector, "connector.registered")
        if connect:
            await self._try_refresh(connector, caller)
        return self._view(connector, caller)

    async def list(self, caller: Caller | None = None) -> Sequence[ConnectorView]:
        caller = caller or self._caller
        return [self._view(connector, caller) for connector in self._registry.list(caller)]

    async def get(self, name: str, caller: Caller | None = None) -> ConnectorView:
        caller = caller or self._caller
        return self._view(self._registry.get(name, caller), caller)

    async def update(
        self,
        name: str,
        *,
        description: str | None = None,
        connect: bool = True,
        caller: Caller | None = None,
        **facts: Any,
    ) -> ConnectorView:
        """Changes what is given and keeps the rest. Calls under way finish on the old connection."""
        caller = caller or self._caller
        async with self._writing[self._registry.get(name, caller).id]:
            before, after = await self._rewrite(name, caller, description, facts)
        await self._sources.retire(before)
        if connect and after.enabled:
            await self._try_refresh(after, caller)
        return self._view(after, caller)

    async def _rewrite(
        self, name: str, caller: Caller, description: str | None, facts: Mapping[str, Any]
    ) -> tuple[Connector, Connector]:
        before = self._registry.get(name, caller)
        merged, kept = _merged(before.configuration, await self._vault.reveal(before, ""), facts)
        configuration, secrets = _configured(merged, kept)
        _check_program(configuration)
        after = replace(
            before,
            configuration=configuration,
            description=before.description if description is None else description,
            revision=before.revision + 1,
            era=before.era if before.configuration.url == configuration.url else None,
            updated_at=datetime.now(UTC),
        )
        await self._store.connectors.update(after, self._sealed(after, secrets))
        self._take_in(after, "connector.updated")
        return before, after

    async def remove(self, name: str, caller: Caller | None = None) -> None:
        """Calls under way finish; then its connections, tools, secrets and numbers are gone."""
        connector = self._registry.get(name, caller or self._caller)
        async with self._writing[connector.id]:
            await self._store.connectors.remove(connector.workspace, connector.id)
            self._registry.drop(connector)
            self._catalog.forget(connector.id)
            self._skipped.pop(connector.id, None)
        self._tell("connector.removed", connector)
        await self._sources.retire(connector)
        self._recorder.forget(connector.id)
        self._limits.forget(connector.id)
        self._writing.pop(connector.id, None)

    async def enable(self, name: str, caller: Caller | None = None) -> ConnectorView:
        return await self._switch(name, True, caller or self._caller)

    async def disable(self, name: str, caller: Caller | None = None) -> ConnectorView:
        return await self._switch(name, False, caller or self._caller)

    async def connect(self, name: str, caller: Caller | None = None) -> ConnectorView:
        """Opens the caller's connection and reports how that went; a failure is in the view."""
        caller = caller or self._caller
        connector = self._enabled(name, caller)
        await self._sources.connect(connector, caller)
        if self._catalog.state(connector.id) != "ready":
            await self._try_refresh(connector, caller)
        return self._view(connector, caller)

    async def disconnect(self, name: str, caller: Caller | None = None) -> ConnectorView:
        caller = caller or self._caller
        connector = self._registry.get(name, caller)
        await self._sources.disconnect(connector, caller)
        return self._view(connector, caller)

    async def refresh(self, name: str, caller: Caller | None = None) -> Changes:
        """Lists the tools anew and says what changed."""
        caller = caller or self._caller
        return await self.relist(self._enabled(name, caller), caller)

    async def relist(self, connector: Connector, caller: Caller) -> Changes:
        with self._catalog.populating(connector):
            return await self._take_listing(connector, await self._sources.list_tools(connector, caller))

    async def relist_over(self, connector: Connector, identity: str) -> None:
        """Lists anew over a connection that is open already."""
        with self._catalog.populating(connector):
            if listing := await self._sources.list_tools_again(connector, identity):
                await self._take_listing(connector, listing)

    # Parts

    async def _take_listing(self, connector: Connector, listing: Listing) -> Changes:
        changes = await self._catalog.refresh(connector, listing)
        self._skipped[connector.id] = changes.skipped
        await self._learn(connector, listing)
        return changes

    def _view(self, connector: Connector, caller: Caller) -> ConnectorView:
        connector = self._registry.newest(connector) or connector
        return ConnectorView(
            connector=connector,
            status=self._cleaned(self._sources.status(connector, caller)),
            catalog=self._catalog.state(connector.id),
            tools=len(self._catalog.list(caller, connector.id)),
            metrics=self._recorder.metrics(connector),
            skipped=self._skipped.get(connector.id, ()),
        )

    def _cleaned(self, status: LinkStatus) -> LinkStatus:
        """A server may print its secrets; what people see of it holds none."""
        clean = self._redactor.clean
        if not (status.cause or status.stderr):
            return status
        return replace(
            status,
            cause=clean(status.cause or "") or None,
            stderr=tuple(clean(line) for line in status.stderr),
        )

    def _enabled(self, name: str, caller: Caller) -> Connector:
        connector = self._registry.get(name, caller)
        if not connector.enabled:
            raise InvalidConfig(
                f"the connector {connector.slug!r} is disabled",
                hint=f"dragoman connectors enable {connector.slug}",
            )
        return connector

    async def _switch(self, name: str, enabled: bool, caller: Caller) -> ConnectorView:
        async with self._writing[self._registry.get(name, caller).id]:
            before = self._registry.get(name, caller)
            if before.enabled == enabled:
                return self._view(before, caller)
            after = replace(
                before, enabled=enabled, revision=before.revision + 1, updated_at=datetime.now(UTC)
            )
            await self._store.connectors.update(after)
            self._take_in(after, "connector.updated")
        await self._sources.retire(before)
        if enabled and self._catalog.state(after.id) != "ready":
            await self._try_refresh(after, caller)
        return self._view(after, caller)

    async def _try_refresh(self, connector: Connector, caller: Caller) -> None:
        """A server that does not answer now is no failure: its state says why, and it is tried again."""
        try:
            await self.relist(connector, caller)
        except DragomanError:
            return

    async def _learn(self, connector: Connector, listing: Listing) -> None:
        """Remembers what the connection told: the era saves a round trip next time."""
        async with self._writing[connector.id]:
            known = self._registry.newest(connector)
            if known is None or known.revision != connector.revision:
                return
            learned = replace(
                known, era=listing.era, instructions=listing.instructions, server=listing.server
            )
            if learned != known:
                await self._store.connectors.update(learned)
                self._registry.put(learned)
                self._catalog.adopt(learned)

    def _take_in(self, connector: Connector, kind: EventKind) -> None:
        self._registry.put(connector)
        self._catalog.adopt(connector)
        self._tell(kind, connector)

    def _tell(self, kind: EventKind, connector: Connector) -> None:
        self._events.publish(
            Event(
                kind=kind,
                workspace=connector.workspace,
                user=connector.owner,
                connector=connector.slug,
                data={"id": connector.id, "enabled": connector.enabled},
            )
        )

    def _sealed(self, connector: Connector, secrets: Mapping[str, SecretStr]):
        return [
            self._vault.seal(connector.workspace, "", connector.id, name, value)
            for name, value in secrets.items()
        ]


def _named(name: str) -> tuple[str, tuple[str, ...]]:
    """The slug and aliases of a new connector: `email_mcp` becomes `email-mcp` and stays an alias."""
    if (
        "_" in name
        and name.replace("_", "").replace("-", "").isalnum()
        and name.isascii()
        and name[0].isalpha()
    ):
        return check_slug(slug_from(name)), (name,)
    return check_slug(name), ()


def _configured(
    facts: Mapping[str, Any], kept: Mapping[str, SecretStr]
) -> tuple[Configuration, dict[str, SecretStr]]:
    """The configuration without its secrets, and the secrets: those kept and those just given."""
    given = {name: value for name, value in facts.items() if value is not None}
    marked = frozenset[str](given.pop("secret", ()))
    bearer, api_key = given.pop("bearer", None), given.pop("api_key", None)
    header = given.pop("api_key_header", None)
    secrets = dict(kept)
    if bearer and api_key:
        raise InvalidConfig("give a bearer token or an API key, not both")
    if bearer or api_key:
        given["auth"] = {"kind": "bearer" if bearer else "apikey"} | ({"header": header} if header else {})
        secrets["auth"] = SecretStr(str(bearer or api_key))
    env, headers, found = split_secrets(_words(given, "env"), _words(given, "headers"), marked)
    secrets |= found
    given |= {"env": env, "headers": headers, "secrets": tuple(sorted(secrets))}
    return Configuration.checked(given), secrets


def _merged(
    before: Configuration, secrets: Mapping[str, SecretStr], changes: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, SecretStr]]:
    """The old fields and secrets with the changes over them; in env and headers, None takes a name away.

    A new command takes the place of a url and all that belongs to it, and the other way round.
    """
    facts = before.model_dump(mode="python", exclude_unset=True)
    kept = dict(secrets)
    if (changes.get("url") and before.command) or (changes.get("command") and before.url):
        for field in ("command", "args", "env", "cwd", "url", "headers", "auth", "transport"):
            facts.pop(field, None)
        kept.clear()
    for field, prefix in (("env", "env:"), ("headers", "header:")):
        words: dict[str, str | None] = dict(changes.get(field) or {})
        kept = {name: value for name, value in kept.items() if name.removeprefix(prefix) not in words}
        facts[field] = {
            name: value for name, value in {**facts.get(field, {}), **words}.items() if value is not None
        }
    facts |= {
        name: value for name, value in changes.items() if value is not None and name not in ("env", "headers")
    }
    return facts, kept


def _words(facts: Mapping[str, Any], field: str) -> dict[str, str]:
    value: Any = facts.get(field) or {}
    if not isinstance(value, dict):
        raise InvalidConfig(f"{field} must be a table of names and values")
    return {str(name): str(word) for name, word in cast("dict[Any, Any]", value).items()}


def _check_program(configuration: Configuration) -> None:
    if configuration.command:
        find_program(
            configuration.command, child_environment(os.environ, configuration.env), configuration.cwd
        )
