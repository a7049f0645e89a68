"""The first look at a server: at start nothing connects but what is eager or has no tools yet."""

from contextlib import suppress

from dragoman.catalog import Catalog
from dragoman.connector import Connector
from dragoman.errors import DragomanError
from dragoman.hub.background_tasks import BackgroundTasks
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.connectors import Connectors
from dragoman.scope import Caller


class StartupListing:
    """`caller` stands for a connector that belongs to no user."""

    def __init__(self, connectors: Connectors, caller: Caller) -> None:
        self._connectors = connectors
        self._caller = caller

    async def try_list(self, connector: Connector) -> None:
        workspace = connector.workspace or self._caller.workspace
        caller = Caller(workspace=workspace, user=connector.owner or self._caller.user)
        with suppress(DragomanError):  # its state says why, and it is tried again
            await self._connectors.relist(connector, caller)

    def wake(self, registry: ConnectorRegistry, catalog: Catalog, tasks: BackgroundTasks) -> None:
        for connector in registry.all():
            is_unknown = catalog.state(connector.id) == "empty"
            if (
                connector.kind != "native"
                and connector.enabled
                and (connector.configuration.eager or is_unknown)
                and connector.configuration.auto_discover
            ):
                tasks.start(self.try_list(connector), f"first list of {connector.slug}")
