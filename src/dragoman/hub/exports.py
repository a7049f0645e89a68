"""Connectors as text that can be imported again, here or elsewhere. Without secrets unless asked."""

from collections.abc import Mapping

from dragoman.connector import Connector
from dragoman.formats.dragoman_files import write_own
from dragoman.formats.exported_servers import write_servers
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.imported_agents import ImportedAgents
from dragoman.scope import Caller
from dragoman.vault import Vault


class Exports:
    """What the caller sees. Secrets only of connectors that are the caller's own."""

    def __init__(
        self, *, caller: Caller, registry: ConnectorRegistry, vault: Vault, agents: ImportedAgents
    ) -> None:
        self._caller = caller
        self._registry = registry
        self._vault = vault
        self._agents = agents

    async def dragoman(self, *, include_secrets: bool = False, caller: Caller | None = None) -> str:
        """Everything, in Dragoman's own form. Secrets that are left out are named."""
        caller = caller or self._caller
        connectors = self._list(caller)
        secrets = await self._secrets(connectors, caller) if include_secrets else {}
        return write_own(connectors, secrets, await self._agents.list(caller))

    async def mcp_servers(self, *, include_secrets: bool = False, caller: Caller | None = None) -> str:
        """The MCP servers, as `mcpServers`. A secret that is left out is a `${VAR}`."""
        caller = caller or self._caller
        connectors = self._list(caller)
        secrets = await self._secrets(connectors, caller) if include_secrets else {}
        return write_servers(connectors, secrets)

    def _list(self, caller: Caller) -> list[Connector]:
        return [connector for connector in self._registry.list(caller) if connector.kind != "native"]

    async def _secrets(self, connectors: list[Connector], caller: Caller) -> dict[str, Mapping[str, str]]:
        revealed: dict[str, Mapping[str, str]] = {}
        for connector in connectors:
            if connector.owner == caller.user:
                values = await self._vault.reveal(connector)
                revealed[connector.id] = {name: value.get_secret_value() for name, value in values.items()}
        return revealed
