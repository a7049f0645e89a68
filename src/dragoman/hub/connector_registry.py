"""The connectors that this installation knows, in memory over the store's rows."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from itertools import chain

from dragoman.catalog.connector_tools import nearest
from dragoman.connector import Connector
from dragoman.errors import Conflict, NotFound
from dragoman.names import did_you_mean
from dragoman.scope import APP, Caller

_Tier = tuple[str, str]
"""Workspace and owner; the owner is empty for what belongs to all of a workspace."""


class ConnectorRegistry:
    """By id and, inside a workspace, by slug or alias. What a caller may not see does not exist.

    Kept by tier, so that a question costs what its caller has, however many others there are.
    """

    def __init__(self, connectors: Iterable[Connector]) -> None:
        self._by_id: dict[str, Connector] = {}
        self._tiers: dict[_Tier, dict[str, Connector]] = {}
        for connector in connectors:
            self.put(connector)

    def all(self) -> list[Connector]:
        return [*self._by_id.values()]

    def list(self, caller: Caller) -> list[Connector]:
        return nearest(self._tiers_of(caller.workspace, caller.user), caller)

    def within(self, caller: Caller) -> Sequence[Connector]:
        """Of the caller's tiers, whatever the caller's grants are: for who looks at those next."""
        return nearest(self._tiers_of(caller.workspace, caller.user), replace(caller, grants=()))

    def find(self, name: str, caller: Caller) -> Connector | None:
        for connector in self.list(caller):
            if name in (connector.slug, connector.id, *connector.aliases):
                return connector
        return None

    def find_in(self, workspace: str, owner: str, slug: str) -> Connector | None:
        """The one of this tier alone."""
        tier = self._tiers.get((workspace, owner), {})
        return next((one for one in tier.values() if slug in (one.slug, *one.aliases)), None)

    def get(self, name: str, caller: Caller) -> Connector:
        if connector := self.find(name, caller):
            return connector
        known = [connector.slug for connector in self.list(caller)]
        raise NotFound(
            f"there is no connector {name[:80]!r}",
            hint=did_you_mean(name[:80], known) or "dragoman connectors list shows those there are",
        )

    def find_by_id(self, connector_id: str) -> Connector | None:
        """Whoever may see it: for the hub itself."""
        return self._by_id.get(connector_id)

    def newest(self, connector: Connector) -> Connector | None:
        """The record as it is now, or None when it was removed."""
        return self._by_id.get(connector.id)

    def check_free(self, names: Iterable[str], workspace: str, owner: str) -> None:
        """A name must be free in its own tier and in those above: nobody takes a name from above.

        The refusal does not say whose it is.
        """
        rivals = [*self._tiers_of(workspace, owner)]
        for name in names:
            for connector in rivals:
                if name in (connector.slug, *connector.aliases):
                    is_own = (connector.workspace, connector.owner) == (workspace, owner)
                    change = f", or dragoman connectors update {name}" if is_own else ""
                    raise Conflict(
                        f"there is a connector {name!r} already", hint=f"choose another name{change}"
                    )

    def count(self, workspace: str, owner: str) -> int:
        """How many there are in one tier."""
        return len(self._tiers.get((workspace, owner), ()))

    def put(self, connector: Connector) -> None:
        self.drop(connector)
        self._by_id[connector.id] = connector
        self._tiers.setdefault(_tier(connector), {})[connector.id] = connector

    def drop(self, connector: Connector) -> None:
        known = self._by_id.pop(connector.id, None)
        if known is not None:
            tier = self._tiers[_tier(known)]
            del tier[known.id]
            if not tier:
                del self._tiers[_tier(known)]

    def _tiers_of(self, workspace: str, user: str) -> Iterator[Connector]:
        """What is the user's own, the workspace's and the app's."""
        tiers = dict.fromkeys(((workspace, user), (workspace, ""), (APP, "")))
        return chain.from_iterable(self._tiers[tier].values() for tier in tiers if tier in self._tiers)


def _tier(connector: Connector) -> _Tier:
    return (connector.workspace, connector.owner)
