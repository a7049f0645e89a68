"""Every kind of source behind the one face that the road knows."""

from dragoman.connections.native.source import NativeTools
from dragoman.connections.openapi.source import OpenApiServices
from dragoman.connections.pool import Connections
from dragoman.connections.source import ConnectionStatus, Listing, SourceCall
from dragoman.connector import Connector
from dragoman.errors import Timeout, Uncertain, Unreachable
from dragoman.scope import Caller, identity_of
from dragoman.tool import RawResult


class SourceRouter:
    """Routes by the connector's kind. Native tools need no connection and are always there."""

    def __init__(self, servers: Connections, services: OpenApiServices, native: NativeTools) -> None:
        self._servers = servers
        self._services = services
        self._native = native
        self._disconnected: set[tuple[str, str]] = set()  # on purpose, and nobody wanted them since

    async def call(self, call: SourceCall) -> RawResult:
        if call.connector.kind == "native":
            return await self._call_native(call)
        self._wanted(call.connector, call.caller)
        return await self._remote(call.connector).call(call)

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        if connector.kind == "native":
            return Listing(tools=self._native.definitions())
        self._disconnected.discard(_key(connector, caller))
        return await self._remote(connector).list_tools(connector, caller)

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        if connector.kind == "native":
            return None
        return await self._remote(connector).list_tools_again(connector, identity)

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        if connector.kind == "native":
            return self.status(connector, caller)
        self._disconnected.discard(_key(connector, caller))
        return await self._remote(connector).connect(connector, caller)

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        if connector.kind == "native":
            return self.status(connector, caller)
        self._disconnected.add(_key(connector, caller))
        return await self._remote(connector).disconnect(connector, caller)

    async def retire(self, connector: Connector) -> None:
        if connector.kind != "native":
            await self._remote(connector).retire(connector)

    async def close_for_user(self, workspace: str, user: str) -> None:
        await self._servers.close_for_user(workspace, user)
        await self._services.close_for_user(workspace, user)

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        if connector.kind != "native":
            return self._remote(connector).status(connector, caller)
        return ConnectionStatus(
            connector_id=connector.id,
            slug=connector.slug,
            identity="",
            state="connected" if connector.enabled else "disabled",
        )

    def _wanted(self, connector: Connector, caller: Caller) -> None:
        """What was disconnected on purpose comes back with a call only where it may reconnect by itself."""
        key = _key(connector, caller)
        if key not in self._disconnected:
            return
        if not connector.configuration.auto_reconnect:
            raise Unreachable(
                f"{connector.slug} was disconnected",
                hint=f"connect it again: dragoman connectors connect {connector.slug}",
            )
        self._disconnected.discard(key)

    def _remote(self, connector: Connector) -> Connections | OpenApiServices:
        return self._services if connector.kind == "openapi" else self._servers

    async def _call_native(self, call: SourceCall) -> RawResult:
        try:
            async with call.deadline.enforced():
                return await self._native.call(call.tool.original_name, call.arguments, call.caller)
        except TimeoutError:
            if call.tool.definition.annotations.is_safe_to_repeat:
                raise Timeout(
                    f"{call.tool.name} did not finish in time", hint="give it a longer timeout"
                ) from None
            raise Uncertain(
                f"{call.tool.name} did not finish in time and may still have its effect",
                hint="look at what it changes before you repeat it",
                cause="timeout",
            ) from None


def _key(connector: Connector, caller: Caller) -> tuple[str, str]:
    return (connector.id, identity_of(caller, connector.configuration.isolation))
