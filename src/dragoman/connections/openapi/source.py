"""All OpenAPI services. Owns the converter that they share."""

from collections.abc import Awaitable
from contextlib import AsyncExitStack

from dragoman.connections.http_clients import HttpClients
from dragoman.connections.link_pool import Key, LinkPool
from dragoman.connections.openapi.converter import Converter
from dragoman.connections.openapi.service import OpenApiService, ServiceResources
from dragoman.connections.source import ConnectionObserver, Listing, Secrets
from dragoman.connector import Connector


class OpenApiServices(LinkPool[OpenApiService]):
    """The source of what OpenAPI documents describe."""

    calls_need_owner = False

    def __init__(self, secrets: Secrets, observer: ConnectionObserver, clients: HttpClients) -> None:
        super().__init__(observer)
        self._secrets = secrets
        self._clients = clients

    async def enter_parts(self, stack: AsyncExitStack) -> None:
        converter = await stack.enter_async_context(Converter())
        self._parts = ServiceResources(self._clients, converter, self._secrets, self._observer)

    def make_link(self, key: Key, connector: Connector, can_ask: bool) -> OpenApiService:
        return OpenApiService(connector, key[1], self._parts)

    def listed(self, link: OpenApiService, *, must_be_new: bool) -> Awaitable[Listing]:
        return link.listing(must_be_new=must_be_new)
