"""The tools of connectors, listed anew and taken into the catalog. Decides no rights: who asks has them.

At a start nothing connects but what is eager or has no tools yet.
"""

from contextlib import suppress
from dataclasses import replace

from dragoman.background_tasks import BackgroundTasks
from dragoman.catalog import Catalog, ToolChanges
from dragoman.connections.source import Listing, Sources
from dragoman.connector import Connector
from dragoman.errors import DragomanError, ProtocolFault
from dragoman.hooks import Hooks
from dragoman.hub.bound import Locks
from dragoman.hub.connection_watcher import ConnectionWatcher
from dragoman.hub.connector_agents import ConnectorAgents
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.names import alias_name, public_name
from dragoman.scope import Caller, holder_of, identity_of
from dragoman.store import Store
from dragoman.tool import ToolDefinition

_UNREADABLE = "every tool: the list cannot be read; refreshing it says why"


class ToolLists:
    """`skipped` are the tools of each connector that could not be taken, by its id."""

    def __init__(
        self,
        *,
        store: Store,
        registry: ConnectorRegistry,
        catalog: Catalog,
        sources: Sources,
        agents: ConnectorAgents,
        locks: Locks,
        hooks: Hooks,
        watcher: ConnectionWatcher,
    ) -> None:
        self._store = store
        self._registry = registry
        self._catalog = catalog
        self._sources = sources
        self._agents = agents
        self._locks = locks
        self._hooks = hooks
        self._watcher = watcher
        self.skipped: dict[str, tuple[str, ...]] = {}

    async def relist(self, connector: Connector, caller: Caller) -> ToolChanges:
        with self._catalog.populating(connector):
            identity = identity_of(caller, connector.configuration.isolation)
            try:
                with self._watcher.listing(connector, identity):
                    listing = await self._sources[connector.kind].list_tools(connector, caller)
            except ProtocolFault:  # it is connected, and its state says nothing
                self.skipped[connector.id] = (_UNREADABLE,)
                raise
            return await self._take(connector, listing, (caller.workspace, caller.user))

    async def list_first(self, name: str, caller: Caller) -> Connector | None:
        """Lists the connector whose tool the name would be, where that never happened; None: there is none.

        Raises why it could not be listed.
        """
        bundled = self._catalog.bundled_connectors(caller)
        for connector in (*bundled, *self._registry.list(caller)):
            may_be = connector in bundled or (
                _may_be_of(name, connector) and caller.may_use(connector.slug, name, only_reads=True)
            )
            if (
                may_be
                and connector.enabled
                and connector.kind != "native"
                and not self._catalog.was_listed(connector, caller)
            ):
                async with self._locks.of("first list", connector.id):
                    if not self._catalog.was_listed(connector, caller):
                        await self.relist(connector, caller)
                if connector not in bundled or self._catalog.find(name, caller):
                    return connector
        return None

    async def relist_over(self, connector: Connector, identity: str) -> None:
        """Lists anew over a connection that is open already."""
        with self._catalog.populating(connector):
            if listing := await self._sources[connector.kind].list_tools_again(connector, identity):
                await self._take(connector, listing, holder_of(identity))

    async def try_first(self, connector: Connector, owner: Caller) -> None:
        """The first look at a server. `owner` stands for a connector that belongs to no user."""
        workspace = connector.workspace or owner.workspace
        with suppress(DragomanError):  # its state says why, and it is tried again
            await self.relist(connector, Caller(workspace, connector.owner or owner.user))

    def start_first(self, tasks: BackgroundTasks, owner: Caller) -> None:
        for connector in self._registry.all():
            is_unknown = self._catalog.state(connector.id) == "empty"
            if (
                connector.kind != "native"
                and connector.enabled
                and (connector.configuration.eager or is_unknown)
                and connector.configuration.auto_discover
            ):
                tasks.start(self.try_first(connector, owner), f"first list of {connector.slug}")

    async def tell_agents(self, connector: Connector) -> None:
        """The connector's agent hears of what is new of it."""
        if known := self._registry.newest(connector):
            await self._agents.connector_kept(known)

    async def _take(self, connector: Connector, listing: Listing, holder: tuple[str, str]) -> ToolChanges:
        """A list that was shown to one user with credentials of their own is that user's alone."""
        listing = await self._looked_at(connector, listing.limited(connector.configuration.max_tools))
        if connector.lists_per_user:
            workspace, user = holder
            identity = identity_of(Caller(workspace, user), "user")
            changes = await self._catalog.refresh(connector, listing, identity, user)
        else:
            changes = await self._catalog.refresh(connector, listing)
        self.skipped[connector.id] = changes.skipped
        if await self._learn(connector, listing) or changes:
            await self.tell_agents(connector)
        return changes

    async def _looked_at(self, connector: Connector, listing: Listing) -> Listing:
        """With what hooks hold back of it. Instructions have no version that a person could accept."""
        chain = await self._hooks.chain_for_list(connector)
        if chain is None:
            return listing
        listing = replace(listing, held=await chain.listed(connector.slug, listing.tools))
        if listing.instructions:
            told = ToolDefinition(original_name="instructions", description=listing.instructions)
            if why := (await chain.listed(connector.slug, (told,))).get(told.original_name):
                skipped = (*listing.skipped, f"its instructions for models: {why}")
                listing = replace(listing, instructions=None, skipped=skipped)
        return listing

    async def _learn(self, connector: Connector, listing: Listing) -> bool:
        """Remembers what the connection told: the era saves a round trip next time. False: nothing new."""
        async with self._locks.of("connector", connector.id):
            known = self._registry.newest(connector)
            if known is None or known.revision != connector.revision:
                return False
            learned = replace(
                known, era=listing.era, instructions=listing.instructions, server=listing.server
            )
            if learned == known or not await self._store.connectors.learn(learned):
                return False  # or its configuration is another by now, and this was told by the old one
            self._registry.put(learned)
            self._catalog.adopt(learned)
            return True


def _may_be_of(name: str, connector: Connector) -> bool:
    """Whether a tool of this connector could have the name, however it is spelled."""
    public = public_name(connector.slug, "x")[:-1]
    return name.startswith((public, *(alias_name(one, "") for one in (connector.slug, *connector.aliases))))
