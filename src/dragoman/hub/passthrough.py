"""What else than tools the servers of MCP offer: resources, prompts, completion. For the MCP door."""

import asyncio
from collections.abc import Mapping
from typing import Any

from dragoman.connections.pool import Connections
from dragoman.connections.source import Question
from dragoman.connector import Connector
from dragoman.errors import NotFound
from dragoman.hub.registry import Registry
from dragoman.hub.threads import Threads
from dragoman.scope import Caller
from dragoman.tool import Line


class Passthrough:
    """With the rights and over the connection of the caller, who needs the whole connector, not one tool."""

    def __init__(self, registry: Registry, servers: Connections, threads: Threads) -> None:
        self._registry = registry
        self._servers = servers
        self._threads = threads

    async def ask(
        self, connector: str, method: str, params: Mapping[str, Any], *, caller: Caller, line: Line
    ) -> Mapping[str, Any]:
        """The server's result as it came. A no of its own is on the line as well."""
        for found in await self._open_to(caller):
            if found.slug == connector:
                break
        else:
            raise NotFound(f"there is no connector {connector[:80]!r} with resources or prompts")
        deadline = asyncio.get_running_loop().time() + found.configuration.request_timeout
        return await self._servers.ask(
            Question(
                connector=found, method=method, params=params, caller=caller, deadline=deadline, line=line
            )
        )

    async def offering(self, capability: str, *, caller: Caller) -> list[str]:
        """Slugs of the connectors whose servers said, when they were last connected, that they offer it."""
        return [
            connector.slug
            for connector in await self._open_to(caller)
            if capability in ((connector.server or {}).get("capabilities") or {})
        ]

    async def _open_to(self, caller: Caller) -> list[Connector]:
        caller = await self._threads.narrowed(caller)
        return [
            connector
            for connector in self._registry.list(caller)
            if connector.kind == "mcp" and connector.enabled and caller.may_use(connector.slug, "")
        ]
