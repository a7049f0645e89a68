"""The connectors that this installation knows, in memory over the store's rows."""

from collections.abc import Iterable

from dragoman.catalog.shelf import is_visible
from dragoman.connector import Connector
from dragoman.errors import Conflict, NotFound
from dragoman.names import did_you_mean
from dragoman.scope import Caller


class Registry:
    """By id and, inside a workspace, by slug or alias. What a caller may not see does not exist."""

    def __init__(self, connectors: Iterable[Connector]) -> None:
        self._by_id = {connector.id: connector for connector in connectors}

    def all(self) -> list[Connector]:
        return [*self._by_id.values()]

    def list(self, caller: Caller) -> list[Connector]:
        seen = (connector for connector in self._by_id.values() if is_visible(connector, caller))
        return sorted(seen, key=lambda connector: connector.slug)

    def find(self, name: str, caller: Caller) -> Connector | None:
        for connector in self._by_id.values():
            if name in (connector.slug, connector.id, *connector.aliases) and is_visible(connector, caller):
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

    def newest(self, connector: Connector) -> Connector | None:
        """The record as it is now, or None when it was removed."""
        return self._by_id.get(connector.id)

    def check_free(self, names: Iterable[str], workspace: str) -> None:
        for name in names:
            for connector in self._by_id.values():
                if connector.workspace == workspace and name in (connector.slug, *connector.aliases):
                    raise Conflict(
                        f"there is a connector {name!r} already",
                        hint=f"choose another name, or change it: dragoman connectors update {name}",
                    )

    def put(self, connector: Connector) -> None:
        self._by_id[connector.id] = connector

    def drop(self, connector: Connector) -> None:
        self._by_id.pop(connector.id, None)
