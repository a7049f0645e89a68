"""All OpenAPI services, by (connector, identity). Owns their tasks and the converter."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack, suppress
from typing import Self, TypeVar

from dragoman.connections.http_clients import HttpClients
from dragoman.connections.openapi.converter import Converter
from dragoman.connections.openapi.service import OpenApiService, ServiceResources
from dragoman.connections.source import ConnectionObserver, ConnectionStatus, Listing, Secrets, SourceCall
from dragoman.connector import Connector
from dragoman.errors import DragomanError, ShuttingDown, Unreachable
from dragoman.scope import Caller, holder_of, identity_of
from dragoman.tool import RawResult

_LAST_CALLS = 4.0
_TIME_TO_CLOSE = 1.5
Key = tuple[str, str]
Result = TypeVar("Result")


class OpenApiServices:
    """The OpenAPI part of `Sources`."""

    def __init__(self, secrets: Secrets, observer: ConnectionObserver, clients: HttpClients) -> None:
        self._secrets = secrets
        self._observer = observer
        self._clients = clients
        self._services: dict[Key, OpenApiService] = {}
        self._owners: dict[OpenApiService, asyncio.Task[None]] = {}
        self._busy = 0
        self._is_quiet = asyncio.Event()
        self._retired: dict[str, int] = {}
        self._is_closing = False
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            converter = await stack.enter_async_context(Converter())
            self._parts = ServiceResources(self._clients, converter, self._secrets, self._observer)
            self._tasks = await stack.enter_async_context(asyncio.TaskGroup())
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        """Calls under way get a few seconds; then everything ends."""
        self._is_closing = True
        for service in [*self._owners]:
            service.close()
        if self._busy:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._is_quiet.wait(), _LAST_CALLS)
        for task in self._owners.values():
            task.cancel()
        await self._stack.aclose()

    # Sources

    async def call(self, call: SourceCall) -> RawResult:
        return await self._with_service(call.connector, call.caller, lambda service: service.call(call))

    async def list_tools(self, connector: Connector, caller: Caller) -> Listing:
        """Always looks whether the document is still the same: that is what whoever asks wants to know."""
        return await self._with_service(connector, caller, lambda service: service.listing(must_be_new=True))

    async def list_tools_again(self, connector: Connector, identity: str) -> Listing | None:
        service = self._services.get((connector.id, identity))
        if service is None or service.is_closing or not service.is_connected:
            return None
        return await service.listing(must_be_new=False)

    async def connect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        async def opened(service: OpenApiService) -> ConnectionStatus:
            try:
                await service.listing(must_be_new=not service.is_connected)
            except ShuttingDown:
                raise
            except DragomanError:
                return service.status()
            return service.status()

        return await self._with_service(connector, caller, opened)

    async def disconnect(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        if service := self._services.get(_key(connector, caller)):
            await self._close(service)
        return self.status(connector, caller)

    async def retire(self, connector: Connector) -> None:
        self._retired[connector.id] = connector.revision
        services = [one for (connector_id, _), one in self._services.items() if connector_id == connector.id]
        await asyncio.gather(*(self._close(service) for service in services))

    async def close_for_user(self, workspace: str, user: str) -> None:
        theirs = [
            one for (_, identity), one in self._services.items() if holder_of(identity) == (workspace, user)
        ]
        await asyncio.gather(*(self._close(service) for service in theirs))

    def status(self, connector: Connector, caller: Caller) -> ConnectionStatus:
        key = _key(connector, caller)
        service = self._services.get(key)
        if service is not None and connector.enabled:
            return service.status()
        return ConnectionStatus(
            connector_id=connector.id,
            slug=connector.slug,
            identity=key[1],
            state="disconnected" if connector.enabled else "disabled",
        )

    def statuses(self) -> list[ConnectionStatus]:
        """Every service there is, for `doctor` and for the metrics."""
        return [service.status() for service in self._services.values()]

    # Services

    async def _with_service(
        self, connector: Connector, caller: Caller, use: Callable[[OpenApiService], Awaitable[Result]]
    ) -> Result:
        key = _key(connector, caller)
        service = self._services.get(key)
        if service is None or service.is_closing or service.connector.revision < connector.revision:
            service = self._open(key, connector)
        elif service.is_connected:
            self._observer.reused(connector)
        service.in_flight += 1
        self._busy += 1
        try:
            return await use(service)
        finally:
            service.in_flight -= 1
            self._busy -= 1
            if self._is_closing and not self._busy:
                self._is_quiet.set()

    def _open(self, key: Key, connector: Connector) -> OpenApiService:
        if self._is_closing:
            raise ShuttingDown("Dragoman is shutting down", hint="call again when it is back")
        if connector.revision <= self._retired.get(connector.id, 0):
            raise Unreachable(f"{connector.slug} was changed or removed meanwhile", hint="call again")
        if old := self._services.pop(key, None):
            old.close()
        service = OpenApiService(connector, key[1], self._parts)
        self._services[key] = service
        owner = self._tasks.create_task(service.run(), name=f"owner of {connector.slug} for {key[1]}")
        self._owners[service] = owner
        owner.add_done_callback(lambda _: self._forget(key, service))
        return service

    def _forget(self, key: Key, service: OpenApiService) -> None:
        self._owners.pop(service, None)
        if self._services.get(key) is service:
            del self._services[key]

    async def _close(self, service: OpenApiService) -> None:
        """Calls under way go on: they need nothing that is closed here."""
        service.close()
        if owner := self._owners.get(service):
            owner.cancel()
            await asyncio.wait([owner], timeout=_TIME_TO_CLOSE)


def _key(connector: Connector, caller: Caller) -> Key:
    return connector.id, identity_of(caller, connector.configuration.isolation)
