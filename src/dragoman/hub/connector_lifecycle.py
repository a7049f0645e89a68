"""What a change of a connector does in this process, whoever made it: somebody here, or another process."""

from typing import TYPE_CHECKING

from dragoman.connector import Connector
from dragoman.events import Event, EventKind

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime


class ConnectorLifecycle:
    """Called with the lock of the connector (`locks.of("connector", id)`) held, but for `close`."""

    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime

    def take_in(self, connector: Connector, kind: EventKind) -> None:
        """A new connector, or the new record of one that is known."""
        self._runtime.registry.put(connector)
        self._runtime.catalog.adopt(connector)
        self._tell(kind, connector)

    def drop(self, connector: Connector) -> None:
        """Its tools are gone at once."""
        self._runtime.registry.drop(connector)
        self._runtime.catalog.forget(connector.id)
        self._runtime.lists.skipped.pop(connector.id, None)
        self._tell("connector.removed", connector)

    async def close(self, connector: Connector) -> None:
        """After `drop`; calls under way finish in the background."""
        await self._runtime.sources[connector.kind].retire(connector, is_removed=True)
        self._runtime.recorder.forget(connector.id)
        self._runtime.limits.forget(connector.id)

    async def read_again(self, workspace: str, connector_id: str) -> Connector | None:
        """As the store has it now; None when it is gone. Calls under way finish on the old connection."""
        known = self._runtime.registry.find_by_id(connector_id)
        stored = await self._runtime.store.connectors.find(workspace, connector_id)
        if stored is None:
            if known is not None:
                self.drop(known)
                self._runtime.tasks.start(self.close(known), f"close {known.slug}")
        elif known is None:
            self.take_in(stored, "connector.registered")
        elif stored.revision != known.revision:
            self.take_in(stored, "connector.updated")
            retired = self._runtime.sources[known.kind].retire(known)
            self._runtime.tasks.start(retired, f"close connections of {known.slug}")
        elif stored != known:  # a connection elsewhere has learned something
            self._runtime.registry.put(stored)
            self._runtime.catalog.adopt(stored)
        return stored

    def _tell(self, kind: EventKind, connector: Connector) -> None:
        self._runtime.events.publish(
            Event(
                kind=kind,
                workspace=connector.workspace,
                user=connector.owner,
                connector=connector.slug,
                data={"id": connector.id, "enabled": connector.enabled},
            )
        )
