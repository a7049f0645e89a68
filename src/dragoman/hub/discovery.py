"""Servers that a registry offers, and the taking of one. Nothing runs that a person was not shown before."""

from collections.abc import Mapping, Sequence
from typing import Any

from dragoman.discovery import InstallMethod, RegistryPage, RegistryServer, find_common, list_common
from dragoman.errors import Conflict, Denied, InvalidConfig
from dragoman.hub.bound import BoundService
from dragoman.hub.connectors import Connectors, ConnectorView
from dragoman.hub.followed_registry import FollowedServer
from dragoman.hub.user_rights import check_operator
from dragoman.settings import Discovery as Mode


class Discovery(BoundService):
    """`off` asks no registry at all; `manual` answers people; `automatic` lets agents search, too,
    and follows the namespaces that the app names.
    """

    __slots__ = ()

    @property
    def mode(self) -> Mode:
        """Whether a registry may be asked, and added from."""
        return self._runtime.settings.discovery

    def common(self) -> Mapping[str, Sequence[RegistryServer]]:
        """Servers that many people add, by group. They come with Dragoman: no registry is asked."""
        return list_common()

    async def search(self, words: str = "", *, cursor: str | None = None, limit: int = 30) -> RegistryPage:
        """Servers whose names hold these words, a page at a time."""
        self._check()
        return await self._runtime.mcp_registry.search(words, cursor=cursor, limit=limit)

    async def get(self, name: str) -> RegistryServer:
        """One offer with the exact command or URL of every way, and the inputs that each asks for."""
        if common := find_common(name):
            return common
        self._check()
        return await self._runtime.mcp_registry.get(name)

    async def followed(self) -> Sequence[FollowedServer]:
        """Servers of the namespaces that the app follows: what was proposed, and what is gone."""
        self._check()
        return await self._runtime.followed_registry.list()

    async def look(self) -> Sequence[FollowedServer]:
        """The same, after a look at the registry now. For who runs the installation."""
        check_operator(self._caller)
        await self._runtime.followed_registry.look()
        return await self.followed()

    async def add(
        self,
        name: str,
        *,
        shown: str,
        inputs: Mapping[str, str] | None = None,
        connector: str | None = None,
        **facts: Any,
    ) -> ConnectorView:
        """Adds a connector by the way that was shown; `Conflict` when the registry offers another by now."""
        if self._caller.way != "direct":
            raise Denied("only a person adds a server from the registry")
        offer = await self.get(name)
        way = _way(offer, shown)
        given: dict[str, Any] = {"description": offer.description, **facts, **way.facts(inputs or {})}
        return await Connectors(self._runtime, self._caller).add(connector or offer.slug, **given)

    def _check(self) -> None:
        if self.mode == "off":
            raise Denied("discovery is turned off", hint="set DRAGOMAN_DISCOVERY to manual or automatic")
        if self.mode == "manual" and self._caller.way != "direct":
            raise Denied(
                "only people may search the registry",
                hint="DRAGOMAN_DISCOVERY=automatic lets agents search, too",
            )


def _way(offer: RegistryServer, shown: str) -> InstallMethod:
    for way in offer.ways:
        if way.shown == shown:
            return way
    if not offer.ways:
        raise InvalidConfig(
            f"{offer.name} cannot be added: {'; '.join(offer.refused) or 'it says no way to reach it'}"
        )
    raise Conflict(
        f"what was shown is not what the registry offers for {offer.name}",
        hint=f"it offers: {' or '.join(way.shown for way in offer.ways)}",
    )
