"""Threads and the connectors that are active in them."""

from dragoman.catalog import Catalog
from dragoman.events import Events
from dragoman.hub.connectors import Connectors
from dragoman.hub.registry import Registry
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store import Store


class Threads:
    """Every method acts for `caller`, by default the hub's own. A thread is its user's alone."""

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        directory: Directory,
        registry: Registry,
        catalog: Catalog,
        connectors: Connectors,
        events: Events,
    ) -> None:
        self._caller = caller
        self._store = store
        self._directory = directory
        self._registry = registry
        self._catalog = catalog
        self._connectors = connectors
        self._events = events

    async def narrowed(self, caller: Caller) -> Caller:
        """The caller with the connectors that are active in their thread, and no others."""
        return caller
