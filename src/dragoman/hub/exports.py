"""Connectors as text that can be imported again, here or elsewhere. Without secrets unless asked."""

from collections.abc import Mapping

from dragoman.connector import Connector
from dragoman.formats.dragoman_files import write_own
from dragoman.formats.exported_servers import write_servers
from dragoman.hub.bound import Bound
from dragoman.hub.imported_agents import ImportedAgents


class Exports(Bound):
    """What the caller sees. Secrets only of connectors that are the caller's own."""

    __slots__ = ()

    async def dragoman(self, *, include_secrets: bool = False) -> str:
        """Everything, in Dragoman's own form. Secrets that are left out are named."""
        connectors = self._list()
        secrets = await self._secrets(connectors) if include_secrets else {}
        return write_own(connectors, secrets, await ImportedAgents(self._runtime, self._caller).list())

    async def mcp_servers(self, *, include_secrets: bool = False) -> str:
        """The MCP servers, as `mcpServers`. A secret that is left out is a `${VAR}`."""
        connectors = self._list()
        secrets = await self._secrets(connectors) if include_secrets else {}
        return write_servers(connectors, secrets)

    def _list(self) -> list[Connector]:
        return [
            connector for connector in self._runtime.registry.list(self._caller) if connector.kind != "native"
        ]

    async def _secrets(self, connectors: list[Connector]) -> dict[str, Mapping[str, str]]:
        revealed: dict[str, Mapping[str, str]] = {}
        for connector in connectors:
            if connector.owner == self._caller.user:
                values = await self._runtime.vault.reveal(connector)
                revealed[connector.id] = {name: value.get_secret_value() for name, value in values.items()}
        return revealed
