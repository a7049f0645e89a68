"""Workspaces, users and keys as people handle them. Who may do what is decided here, once for every door."""

from dragoman.calls.audit import Auditor
from dragoman.connections.source import Sources
from dragoman.events import Events
from dragoman.hub.connectors import Connectors
from dragoman.identity.directory import Directory
from dragoman.scope import Caller
from dragoman.store import Store


class People:
    """Every method acts for `caller`, by default the hub's own."""

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        directory: Directory,
        connectors: Connectors,
        sources: Sources,
        auditor: Auditor,
        events: Events,
    ) -> None:
        self._caller = caller
        self._store = store
        self._directory = directory
        self._connectors = connectors
        self._sources = sources
        self._auditor = auditor
        self._events = events
