"""What exists: every tool that is known, connected or not. Answers from memory, remembers in the store.

Knows no connection: who has a listing hands it over. Changes of one connector happen one after another.
"""

import asyncio
import logging
from collections import Counter
from collections.abc import Generator, Iterable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

from dragoman import collector
from dragoman.bundle import Bundle
from dragoman.catalog.bundles import (
    NOTHING,
    BundleViews,
    HeldInBundles,
    ShownBundle,
    ShownEntry,
    is_shown_alike,
    list_key,
)
from dragoman.catalog.changes import Breath, CatalogUpdate, ToolChange, ToolChanges, UpdatePlanner
from dragoman.catalog.connector_tools import (
    COMMON,
    CatalogState,
    ConnectorTools,
    ListKey,
    is_of_tier,
    nearest,
    unknown_tool,
)
from dragoman.catalog.footprints import Footprints
from dragoman.catalog.index import NameIndex
from dragoman.catalog.naming import NameAllocator
from dragoman.connections.source import Listing
from dragoman.connector import Connector
from dragoman.errors import Conflict, Denied, NotFound, Outdated, ToolChanged
from dragoman.events import Event, Events
from dragoman.names import alias_name
from dragoman.scope import ANY_EXTRA, APP, BUNDLE, READ_ONLY, Caller, holder_of, identity_of
from dragoman.store.protocols import ConnectorStore, Store
from dragoman.store.records import ToolVersion
from dragoman.telemetry.logs import get_logger
from dragoman.tool import Tool, ToolDefinition, ToolState

_TRIES = 5  # to write what another process writes at the same moment
_MANY = 1_000
_LONGEST_CAUSE = 160  # of what a model reads


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolInfo:
    """One tool with what stands around it. `cause` is why it is unavailable."""

    tool: Tool
    connector: Connector
    state: ToolState
    cause: str | None = None
    catalog: CatalogState
    alias: str
    footprints: Footprints = field(repr=False, compare=False)

    @property
    def tokens(self) -> int:
        """What a model reads when it has the tool in view."""
        return self.footprints.of(self.tool)

    @property
    def is_callable(self) -> bool:
        """Whether a call would be sent: one that is unavailable now has its connector tried at once."""
        return self.state in ("ready", "unavailable")

    @property
    def shown_tool(self) -> Tool:
        """As models and MCP clients read it: one that is unavailable says so before all else."""
        if self.cause is None:
            return self.tool
        definition = self.tool.definition
        note = f"[unavailable now: {' '.join(self.cause.split())[:_LONGEST_CAUSE]}]"
        return replace(
            self.tool, definition=replace(definition, description=f"{note} {definition.description}")
        )


class Catalog:
    def __init__(self, rows: ConnectorStore, events: Events) -> None:
        self._rows = rows
        self._events = events
        self._by_connector: dict[str, ConnectorTools] = {}
        self._gone: set[str] = set()
        self._locks: dict[str, asyncio.Lock] = {}
        self._index = NameIndex()
        self.held_in_bundles: HeldInBundles = lambda bundle, rules, tools: {}
        self._bundles = BundleViews(
            self._by_connector.get, lambda bundle, rules, tools: self.held_in_bundles(bundle, rules, tools)
        )
        self._naming = NameAllocator()
        self._kept = 0  # names when the collector was last told that tools stay
        self._footprints = Footprints()
        self._version = 0
        self._faults: dict[ListKey, str] = {}

    @property
    def version(self) -> int:
        """Another number after every change of what can be found; what is derived is keyed on it."""
        return self._version

    @classmethod
    async def load(cls, store: Store, events: Events) -> "Catalog":
        """Everything that was known when the store was last written."""
        catalog = cls(store.connectors, events)
        catalog._bundles.replace_all(await store.bundles.list())
        for connector in await store.connectors.list():
            was_listed = connector.era is not None or connector.server is not None
            catalog._by_connector[connector.id] = ConnectorTools(connector, is_new=not was_listed)
            catalog._index.claim(connector)
        lists: dict[tuple[str, str], dict[str, Tool]] = {}
        for tool in await store.connectors.tools():
            if connector_tools := catalog._by_connector.get(tool.connector_id):
                catalog._naming.hold(connector_tools.connector, tool.original_name, tool.name)
                lists.setdefault((tool.connector_id, tool.identity), {})[tool.original_name] = tool
                connector_tools.remember(tool)
        for (connector_id, identity), tools in lists.items():
            connector_tools = catalog._by_connector[connector_id]
            connector_tools.replace(identity, tools)
            connector_tools.state, connector_tools.is_new = "ready", False
        for connector_tools in catalog._by_connector.values():
            catalog._index.put(connector_tools, ())
        catalog._index.index_aliases(catalog._by_connector.values())
        return catalog

    def find(self, name: str, caller: Caller) -> Tool | None:
        """By public name, `<slug>__<tool>`, the same with an alias of the connector, or a native name; and by
        the name in a bundle of the caller's, which comes first.
        """
        if caller.bundles and (shown := self._in_bundles(name, caller)):
            return shown[0] if len(shown) == 1 else None
        return self._index.find(name, caller)

    def get(self, name: str, caller: Caller) -> Tool:
        tool = self.find(name, caller)
        if tool is not None:
            return tool
        if len(rivals := self._in_bundles(name, caller)) > 1:
            raise Conflict(
                f"it is not clear which tool {name!r} is: {_shown_by(name, rivals)}",
                hint=f"rename it in one of them: dragoman bundles show {rivals[0].slug}",
            )
        for word in caller.bundles:
            if why := self._shown(word, caller).why_not(name):
                raise ToolChanged(
                    f"its bundle cannot show {name!r}: {why}",
                    hint=f"mend its override: dragoman bundles show {word.removeprefix(BUNDLE)}",
                )
        raise self.unknown(name, caller)

    def unknown(self, name: str, caller: Caller) -> NotFound:
        """With what it may have been meant to be."""
        return unknown_tool(name, self._index.hint(name, self.list(caller)))

    def list(self, caller: Caller, connector_id: str | None = None) -> list[Tool]:
        """What the caller may see: that of bundles, then by connector and name. No name is in it twice."""
        tools = [
            tool
            for connector_tools in self._seen(caller, connector_id)
            for tool in connector_tools.list(caller)
        ]
        if not caller.grants:
            return tools
        allowed = [tool for tool in tools if tool.may_be_used_by(caller)]
        if connector_id is not None or not caller.bundles:
            return allowed
        views = (self._shown(word, caller).tools for word in caller.bundles)
        shown = (tool for tools in views for tool in tools if tool.may_be_used_by(caller))
        named: dict[str, Tool] = {}
        unclear = set[str]()
        for tool in shown:
            if not is_shown_alike(named.setdefault(tool.name, tool), tool):
                unclear.add(tool.name)
        for tool in allowed:
            named.setdefault(tool.name, tool)
        return [tool for name, tool in named.items() if name not in unclear]

    def rivals(self, caller: Caller) -> Sequence[str]:
        """What the caller cannot call because two bundles show it in two ways, each in a sentence."""
        if len(caller.bundles) < 2:
            return ()
        names = Counter(tool.name for word in caller.bundles for tool in self._shown(word, caller).tools)
        found = ((name, self._in_bundles(name, caller)) for name, count in sorted(names.items()) if count > 1)
        return [_shown_by(name, tools) for name, tools in found if len(tools) > 1]

    def _in_bundles(self, name: str, caller: Caller) -> Sequence[Tool]:
        """What the caller's bundles show under a name; what two show alike is in it once."""
        found: list[Tool] = []
        for word in caller.bundles:
            tool = self._shown(word, caller).by_name.get(name)
            if tool is None or not tool.may_be_used_by(caller):
                continue
            if not any(is_shown_alike(one, tool) for one in found):
                found.append(tool)
        return found

    def lists(self, workspace: str) -> dict[ListKey, tuple[Tool, ...]]:
        """Every list of a workspace and of the app. A list that is the same object has not changed."""
        lists = {
            (connector_tools.connector.id, identity): tools
            for connector_tools in self._by_connector.values()
            if connector_tools.connector.workspace in (workspace, APP)
            for identity, tools in connector_tools.lists().items()
        }
        return lists | self._bundles.lists(workspace, self._version)

    def readable(self, caller: Caller, connector_id: str | None = None) -> Sequence[ListKey]:
        """The lists that the caller reads, of connectors that are enabled; by connector. Then bundles."""
        keys = [
            connector_tools.key(caller)
            for connector_tools in self._seen(caller, connector_id)
            if connector_tools.connector.enabled
        ]
        if connector_id is None:
            for word in caller.bundles:
                if (bundle := self._bundles.of_word(word, caller)) is not None:
                    self.show_bundle(bundle, caller)
                    keys.append(list_key(self._bundles.key(bundle, caller)))
        return keys

    # Bundles

    def list_bundles(self, caller: Caller) -> Sequence[Bundle]:
        """Those that the caller's grants admit at all, by name."""
        found = self._bundles.list(caller)
        if not caller.grants:
            return found
        # A grant of connectors admits what a bundle shows of them, one of bundles only these.
        only = [words for grant in caller.grants if (words := _only_bundles(grant))]
        return [one for one in found if all(one.word in words for words in only)]

    def find_bundle(self, name: str, caller: Caller) -> Bundle | None:
        """The one that the name means to this caller, whatever their grants are."""
        return self._bundles.find(name, caller)

    def show_bundle(self, bundle: Bundle, caller: Caller) -> ShownBundle:
        """What the bundle makes of the lists that the caller reads; without a look at their capabilities."""
        key = self._bundles.key(bundle, caller)
        if self._bundles.is_new(key):
            self._version += 1
        return self._bundles.show(key, self._version)

    def gives_resources(self, connector: Connector, caller: Caller) -> bool:
        """Whether its prompts and resources are the caller's: by the whole connector, or by a bundle."""
        return caller.may_use(connector.slug, "", only_reads=True) or bool(
            self.bundles_giving(connector, caller)
        )

    def bundles_giving(self, connector: Connector, caller: Caller) -> Sequence[Bundle]:
        """Those by which alone the caller has its prompts and resources."""
        if not caller.bundles or caller.may_use(connector.slug, "", only_reads=True):
            return ()
        bundles = (self._bundles.of_word(word, caller) for word in caller.bundles)
        giving = [
            one
            for one in bundles
            if one is not None
            and connector.id in one.resources
            and caller.may_use(connector.slug, "", only_reads=True, bundle=one.word)
            and (
                one.capabilities is None
                or Caller(grants=(one.capabilities,)).may_use(connector.slug, "", only_reads=True)
            )
        ]
        return giving if is_of_tier(connector, caller) else ()

    def bundled_connectors(self, caller: Caller) -> Sequence[Connector]:
        """Those that the caller reads by bundles, seen or not."""
        bundles = (self._bundles.of_word(word, caller) for word in caller.bundles)
        ids = dict.fromkeys(one for bundle in bundles if bundle is not None for one in bundle.connectors)
        known = [self._by_connector[one].connector for one in ids if one in self._by_connector]
        return [one for one in known if is_of_tier(one, caller)]

    def tried(self, bundle: Bundle, caller: Caller) -> Sequence[ShownEntry]:
        """What would become of its entries; nothing is kept."""
        return self._bundles.tried(bundle, caller)

    def put_bundle(self, bundle: Bundle) -> None:
        self._bundles.put(bundle)
        self._version += 1

    def drop_bundle(self, workspace: str, owner: str, name: str) -> None:
        self._bundles.drop((workspace, owner, name))
        self._version += 1

    def replace_bundles(self, bundles: Iterable[Bundle]) -> None:
        self._bundles.replace_all(bundles)
        self._version += 1

    def _shown(self, word: str, caller: Caller) -> ShownBundle:
        bundle = self._bundles.of_word(word, caller)
        return NOTHING if bundle is None else self.show_bundle(bundle, caller)

    def info(self, name: str, caller: Caller) -> ToolInfo:
        tool = self.get(name, caller)
        connector_tools = self._by_connector[tool.connector_id]
        connector = connector_tools.connector
        state, cause = _state_of(tool, connector), None
        if state == "ready" and self._faults:
            cause = self._faults.get((connector.id, identity_of(caller, connector.configuration.isolation)))
        return ToolInfo(
            tool=tool,
            connector=connector,
            state="unavailable" if cause is not None else state,
            cause=cause,
            catalog=connector_tools.state,
            alias=alias_name(tool.slug, tool.original_name),
            footprints=self._footprints,
        )

    def note_reach(self, connector: Connector, identity: str, cause: str | None) -> bool:
        """Why the connector cannot be reached for this identity; None when it can. Whether that is news."""
        key = (connector.id, identity)
        if self._faults.get(key) == cause:
            return False
        if cause is None:
            del self._faults[key]
        else:
            self._faults[key] = cause
        self._version += 1
        return True

    def was_listed(self, connector: Connector, caller: Caller) -> bool:
        """Whether the tools that the caller would see of it were ever read from its server."""
        connector_tools = self._by_connector.get(connector.id)
        return connector_tools is not None and connector_tools.was_listed(caller)

    def is_mcp(self, name: str, caller: Caller) -> bool:
        tool = self.find(name, caller)
        return tool is not None and tool.is_mcp

    def connector_of(self, tool: Tool) -> Connector:
        connector_tools = self._by_connector.get(tool.connector_id)
        if connector_tools is None:
            raise unknown_tool(tool.name)
        return connector_tools.connector

    def state(self, connector_id: str) -> CatalogState:
        connector_tools = self._by_connector.get(connector_id)
        return connector_tools.state if connector_tools else "empty"

    def adopt(self, connector: Connector) -> None:
        """Takes in a connector that is new, or the new record of one that is known."""
        connector_tools = self._connector_tools(connector)
        if connector_tools.connector.revision != connector.revision and connector_tools.all_tools():
            connector_tools.state = "stale"
        needs_index = connector_tools.connector.aliases != connector.aliases
        self._version += 1
        connector_tools.adopt(connector)
        if needs_index:
            self._index.put(connector_tools, self._by_connector.values())

    def forget(self, connector_id: str) -> None:
        """The connector is gone; the store has already let go of its rows."""
        self._gone.add(connector_id)
        connector_tools = self._by_connector.pop(connector_id, None)
        self._locks.pop(connector_id, None)
        for key in [key for key in self._faults if key[0] == connector_id]:
            del self._faults[key]
        if connector_tools is not None:
            self._version += 1
            self._index.drop(connector_tools, self._by_connector.values())
            for tool in connector_tools.all_tools():
                self._naming.release(connector_tools.connector, tool.name)

    def mark_stale(self, connector_id: str) -> None:
        """Its tools may have changed since they were listed."""
        if (connector_tools := self._by_connector.get(connector_id)) and connector_tools.state != "empty":
            connector_tools.state = "stale"

    @contextmanager
    def populating(self, connector: Connector) -> Generator[None]:
        """While a listing is fetched and taken in: populating if nothing is known, stale if it fails."""
        connector_tools = self._connector_tools(connector)
        before = connector_tools.state
        if not connector_tools.all_tools():
            connector_tools.state = "populating"
        try:
            yield
        except BaseException:
            connector_tools.state = "stale" if connector_tools.all_tools() else "empty"
            raise
        if connector_tools.state == "populating":
            connector_tools.state = before

    async def refresh(
        self, connector: Connector, listing: Listing, identity: str = COMMON, user: str = ""
    ) -> ToolChanges:
        """Takes in one listing, writes it, then shows it. When the write fails, nothing has changed.

        `identity` is given when the list is for that identity only; `user` is then who hears of it.
        """
        async with self._lock(connector.id):
            connector_tools = self._connector_tools(connector)
            if connector.revision > connector_tools.connector.revision:
                self.adopt(connector)
            for left in reversed(range(_TRIES)):
                plan = await UpdatePlanner(connector_tools, identity, self._naming, self._rows).plan(listing)
                try:
                    if plan.saved or plan.removed:
                        await self._rows.save_tools(plan.saved, plan.versions, plan.removed)
                except Outdated:
                    # Another process has listed it too, or somebody has set something: that counts first.
                    self._release(connector_tools, plan.added)
                    if not left:
                        raise
                    await self._read_again(connector_tools)
                    continue
                except BaseException:
                    self._release(connector_tools, plan.added)
                    raise
                breath = Breath()
                for tool in plan.saved:
                    await breath.take()
                    plan.tools[tool.original_name] = _written(tool)
                if self._by_connector.get(connector.id) is not connector_tools:
                    self._release(connector_tools, plan.added)
                    raise _removed(connector)
                changes = self._show(connector_tools, identity, plan, user)
                self._keep()
                is_news = changes.added or changes.changed or changes.removed
                get_logger().log(
                    logging.INFO if is_news else logging.DEBUG,
                    "tools.discovered",
                    connector=connector.slug,
                    tools=len(plan.tools),
                    added=len(changes.added),
                    changed=len(changes.changed),
                    removed=len(changes.removed),
                )
                return changes
        raise AssertionError("the last try returns or raises")

    async def reload(self, connector: Connector) -> None:
        """Its tools as the store has them: another process has written some."""
        async with self._lock(connector.id):
            if (connector_tools := self._by_connector.get(connector.id)) is not None:
                await self._read_again(connector_tools)

    async def _read_again(self, connector_tools: ConnectorTools) -> None:
        """In its turn. Who listens hears of what came, changed and went, as if it had been listed here."""
        connector = connector_tools.connector
        lists: dict[str, dict[str, Tool]] = {identity: {} for identity in connector_tools.lists()}
        for tool in await self._rows.tools(connector.workspace, connector.id):
            lists.setdefault(tool.identity, {})[tool.original_name] = tool
        if self._by_connector.get(connector.id) is not connector_tools:
            raise _removed(connector)
        for identity, tools in lists.items():
            before = connector_tools.tools(identity)
            gone = [tool for name, tool in before.items() if name not in tools]
            is_same = before == tools
            for tool in tools.values():
                self._naming.hold(connector, tool.original_name, tool.name)
                connector_tools.remember(tool)
            connector_tools.replace(identity, tools)
            self._release(connector_tools, gone)
            if is_same:
                continue
            self._version += 1
            connector_tools.state, connector_tools.is_new = "ready", False
            self._index.put(connector_tools, self._by_connector.values())
            if self._events.has_listeners:
                self._tell(connector, identity, await self._compared(connector, identity, before, tools))

    async def _compared(
        self, connector: Connector, identity: str, before: Mapping[str, Tool], after: Mapping[str, Tool]
    ) -> ToolChanges:
        changed: list[ToolChange] = []
        for name, tool in after.items():
            if name in before and before[name].version != tool.version:
                past = await self._rows.versions(tool)
                diff = next((one.diff for one in past if one.version == tool.version), "")
                is_blocked = tool.awaits_acceptance(connector.configuration.pin)
                changed.append(ToolChange(tool=tool, diff=diff, is_blocked=is_blocked))
        return ToolChanges(
            connector_id=connector.id,
            slug=connector.slug,
            identity=identity,
            added=tuple(tool for name, tool in after.items() if name not in before),
            changed=tuple(changed),
            removed=tuple(tool for name, tool in before.items() if name not in after),
        )

    def declare(self, connector: Connector, definitions: Sequence[ToolDefinition]) -> ToolChanges:
        """Takes in tools that live in this process: in memory only, the code itself is their record."""
        connector_tools = self._by_connector.get(connector.id)
        if connector_tools is None:
            connector_tools = self._by_connector[connector.id] = ConnectorTools(
                connector, is_new=True, is_stored=False
            )
        connector_tools.adopt(connector)
        plan = UpdatePlanner(connector_tools, COMMON, self._naming, self._rows).plan_at_once(definitions)
        known = {one.original_name for one in definitions}
        before = connector_tools.tools().items()
        kept = {key: tool for key, tool in before if tool.definition.original_name in known}
        plan.tools = {**kept, **plan.tools}
        return self._show(connector_tools, COMMON, plan, "")

    async def enable(self, name: str, caller: Caller) -> Tool:
        return await self._rewrite(name, caller, enabled=True)

    async def disable(self, name: str, caller: Caller) -> Tool:
        return await self._rewrite(name, caller, enabled=False)

    async def accept(self, name: str, caller: Caller) -> Tool:
        """A person has read the change of a pinned tool and wants it called as it is now."""
        return await self._rewrite(name, caller, accepted_version=self._own(name, caller).version)

    async def configure(self, name: str, caller: Caller, **settings: Any) -> Tool:
        """Settings of the tool in every list that has it: what is decided holds for all who use it."""
        return await self._rewrite(name, caller, in_all_lists=True, **settings)

    async def versions(self, name: str, caller: Caller) -> Sequence[ToolVersion]:
        """Every definition the tool has had, oldest first."""
        tool = self.get(name, caller)
        if tool.bundled is not None:
            return ()  # they are of the tool itself, which its bundle shows otherwise
        return await self._rows.versions(tool) if self._by_connector[tool.connector_id].is_stored else ()

    async def _rewrite(
        self, name: str, caller: Caller, *, in_all_lists: bool = False, **settings: Any
    ) -> Tool:
        """Where another process has set the same meanwhile, its word stands: `Conflict`."""
        async with self._lock(self._own(name, caller).connector_id):
            first = self._own(name, caller)
            for left in reversed(range(_TRIES)):
                tool = self._own(name, caller)
                _check_apart(first, tool, settings)
                connector_tools = self._by_connector[tool.connector_id]
                same = [tool]
                if in_all_lists:
                    known = connector_tools.all_tools()
                    same = [one for one in known if one.original_name == tool.original_name]
                try:
                    await self._write(
                        connector_tools,
                        [new for old in same if (new := replace(old, **settings)) != old],
                    )
                except Outdated:
                    if not left:
                        raise
                    await self._read_again(connector_tools)
                else:
                    return replace(tool, **settings)
        raise AssertionError("the last try returns or raises")

    def _own(self, name: str, caller: Caller) -> Tool:
        """A tool as its connector has it: who sees it by a bundle changes nothing of it."""
        tool = self.get(name, caller)
        if tool.bundled is None:
            return tool
        raise Denied(
            f"the tool {name!r} is shown by the bundle {tool.slug!r}",
            hint=f"change the bundle: dragoman bundles show {tool.slug}",
        )

    async def _write(self, connector_tools: ConnectorTools, changed: Sequence[Tool]) -> None:
        """First into the store, then for all to see."""
        if not changed:
            return
        if connector_tools.is_stored:
            await self._rows.save_tools(changed, [], [])
        for tool in map(_written, changed):
            connector_tools.remember(tool)
            connector_tools.replace(
                tool.identity, {**connector_tools.tools(tool.identity), tool.original_name: tool}
            )
        self._version += 1
        self._index.put(connector_tools, self._by_connector.values())
        identities = {tool.identity for tool in changed}
        self._tell(connector_tools.connector, identities.pop() if len(identities) == 1 else COMMON)

    def _tell(self, connector: Connector, identity: str, changes: ToolChanges | None = None) -> None:
        """Who sees a list hears that it is another; without changes only settings of its tools are."""
        if self._events.has_listeners:
            user = holder_of(identity)[1] if identity else ""
            changes = changes or ToolChanges(connector_id=connector.id, slug=connector.slug)
            self._events.publish(_event(connector, changes, user))

    def _seen(self, caller: Caller, connector_id: str | None) -> Sequence[ConnectorTools]:
        if connector_id is None:
            ids: Iterable[str] = self._by_connector
        elif (known := self._by_connector.get(connector_id)) is not None:
            # Only those of its name can stand before it.
            ids = {connector_id, *self._index.of_slug(known.connector.slug, caller)}
        else:
            ids = ()
        connectors = (self._by_connector[one].connector for one in ids)
        return [
            self._by_connector[connector.id]
            for connector in nearest(connectors, caller)
            if connector_id in (None, connector.id)
        ]

    def _show(
        self, connector_tools: ConnectorTools, identity: str, plan: CatalogUpdate, user: str
    ) -> ToolChanges:
        connector_tools.replace(identity, plan.tools)
        self._version += 1
        connector_tools.state, connector_tools.is_new = "ready", False
        self._release(connector_tools, plan.removed)
        self._index.put(connector_tools, self._by_connector.values())
        changes = plan.changes(connector_tools, identity)
        if changes and self._events.has_listeners:
            self._events.publish(_event(connector_tools.connector, changes, user))
        return changes

    def _keep(self) -> None:
        """Tools stay, and to look through ten thousand of them for garbage holds everybody for 100 ms.

        Never more often than there are thousands of tools, whatever comes and goes.
        """
        if len(self._naming) >= self._kept + _MANY:
            self._kept = len(self._naming)
            collector.keep()

    def _release(self, connector_tools: ConnectorTools, tools: Sequence[Tool]) -> None:
        """Frees the names that no list of the connector shows."""
        shown = {tool.name for tool in connector_tools.all_tools()} if tools else set[str]()
        for tool in tools:
            if tool.name not in shown:
                self._naming.release(connector_tools.connector, tool.name)

    def _connector_tools(self, connector: Connector) -> ConnectorTools:
        connector_tools = self._by_connector.get(connector.id)
        if connector_tools is None:
            # A listing that arrives late must not bring back what was removed.
            if connector.id in self._gone:
                raise _removed(connector)
            connector_tools = self._by_connector[connector.id] = ConnectorTools(connector, is_new=True)
            self._index.claim(connector)
        return connector_tools

    def _lock(self, connector_id: str) -> asyncio.Lock:
        return self._locks.setdefault(connector_id, asyncio.Lock())


def _shown_by(name: str, tools: Sequence[Tool]) -> str:
    return f"the bundles {' and '.join(tool.slug for tool in tools)} both show a tool {name!r}"


def _only_bundles(grant: frozenset[str]) -> frozenset[str]:
    """Its bundles, where it admits nothing else; empty where it does."""
    words = frozenset(word for word in grant if word.startswith(BUNDLE))
    return words if words and words >= grant - {ANY_EXTRA, READ_ONLY} else frozenset()


def _written(tool: Tool) -> Tool:
    """As the store has it once it was saved."""
    return replace(tool, revision=tool.revision + 1)


def _check_apart(before: Tool, now: Tool, settings: Mapping[str, Any]) -> None:
    changed = [
        name
        for name, wanted in settings.items()
        if getattr(before, name) != getattr(now, name) and getattr(now, name) != wanted
    ]
    if changed or (before.version != now.version and "accepted_version" in settings):
        raise Conflict(
            f"somebody else has changed {', '.join(changed) or 'the tool'} a moment ago: nothing was written",
            hint="look at the tool as it is now, then change it again",
        )


def _removed(connector: Connector) -> NotFound:
    return NotFound(f"the connector {connector.slug!r} has been removed")


def _state_of(tool: Tool, connector: Connector) -> ToolState:
    if not (tool.enabled and connector.enabled):
        return "disabled"
    is_blocked = tool.awaits_acceptance(connector.configuration.pin)
    return "changed" if is_blocked else "ready"


def _event(connector: Connector, changes: ToolChanges, user: str) -> Event:
    return Event(
        kind="tools.changed",
        workspace=connector.workspace,
        user=user or connector.owner,
        connector=connector.slug,
        data={
            "added": [tool.name for tool in changes.added],
            "changed": [
                {"tool": change.tool.name, "version": change.tool.version, "diff": change.diff}
                for change in changes.changed
            ],
            "blocked": [tool.name for tool in changes.blocked],
            "removed": [tool.name for tool in changes.removed],
            "skipped": list(changes.skipped),
        },
    )
