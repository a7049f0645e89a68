"""Credentials of a user for a connector, as people handle them: set, authorise, remove, rotate the key."""

from dragoman.calls.audit import Auditor
from dragoman.connections.source import Sources
from dragoman.events import Events
from dragoman.hub.connectors import Connectors
from dragoman.hub.registry import Registry
from dragoman.scope import Caller
from dragoman.settings import Settings
from dragoman.store import Store
from dragoman.vault import Vault


class Credentials:
    """Every method acts for `caller`, by default the hub's own. Nobody reads a secret back."""

    def __init__(
        self,
        *,
        caller: Caller,
        settings: Settings,
        store: Store,
        vault: Vault,
        registry: Registry,
        connectors: Connectors,
        sources: Sources,
        auditor: Auditor,
        events: Events,
    ) -> None:
        self._caller = caller
        self._settings = settings
        self._store = store
        self._vault = vault
        self._registry = registry
        self._connectors = connectors
        self._sources = sources
        self._auditor = auditor
        self._events = events
