"""The connectors that this installation knows, in memory over the store's rows."""

from collections.abc import Iterable

from dragoman.catalog.shelf import nearest
from dragoman.connector import Connector
from dragoman.errors import Conflict, NotFound
from dragoman.names import did_you_mean
from dragoman.scope import APP, Caller


class Registry:
    """By id and, inside a workspace, by slug or alias. What a caller may not see does not exist."""

    def __init__(self, connectors: Iterable[Connector]) -> None:
        self._by_id = {connector.id: connector for connector in connectors}

    def all(self) -> list[Connector]:
        return [*self._by_id.values()]

    def list(self, caller: Caller) -> list[Connector]:
        return nearest(self._by_id.values(), caller)

    def find(self, name: str, caller: Caller) -> Connector | None:
        for connector in self.list(caller):
            if name in (connector.slug, connector.id, *connector.aliases):
                return connector
        return None

    def get(self, name: str, caller: Caller) -> Connector:
        if connector := self.find(name, caller):
            return connector
        known = [connector.slug for connector in self.list(caller)]
        raise NotFound(
            f"there is no connector {name[:80]!r}",
            hint=did_you_mean(name, known) or "dragoman connectors list shows those there are",
        )

    def find_by_id(self, connector_id: str) -> Connector | None:
        """Whoever may see it: for the hub itself."""
        return self._by_id.get(connector_id)

    def newest(self, connector: Connector) -> Connector | None:
        """The record as it is now, or None when it was removed."""
        return self._by_id.get(connector.id)

    def check_free(self, names: Iterable[str], workspace: str, owner: str) -> None:
        """A name must be free in its own tier and in those above: nobody takes a name from above."""
        rivals = [
            connector
            for connector in self._by_id.values()
            if connector.workspace in (workspace, APP) and connector.owner in ("", owner)
        ]
        for name in names:
            for connector in rivals:
                if name in (connector.slug, *connector.aliases):
                    raise Conflict(
                        f"there is a connector {name!r} already",
                        hint=f"choose another name, or change it: dragoman connectors update {name}",
                    )

    def put(self, connector: Connector) -> None:
        self._by_id[connector.id] = connector

    def drop(self, connector: Connector) -> None:
        self._by_id.pop(connector.id, None)
