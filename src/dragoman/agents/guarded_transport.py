"""Requests to models at addresses that people give: never into the network around us.

The same rule as for connectors (`connections/http_clients.py`), for the clients of model providers: each
address is looked at as it is connected to, so neither a redirect nor a name that changes leads past it.
"""

import socket
from collections.abc import Iterable, Sequence
from typing import cast

import anyio
import httpcore2
import httpx2

from dragoman.connections.addresses import Network, may_be_reached
from dragoman.errors import InvalidConfig

_MOST, _KEPT = 100, 20  # connections, and those that wait for the next request


class GuardedTransport(httpx2.AsyncHTTPTransport):
    """No proxy and no socket of this machine: it connects by itself, through `GuardedNetwork`."""

    def __init__(self, allowed: Sequence[Network]) -> None:
        self._pool = httpcore2.AsyncConnectionPool(
            ssl_context=httpx2.create_ssl_context(trust_env=False),
            max_connections=_MOST,
            max_keepalive_connections=_KEPT,
            keepalive_expiry=5.0,
            network_backend=GuardedNetwork(allowed),
        )


class GuardedNetwork(httpcore2.AsyncNetworkBackend):
    def __init__(self, allowed: Sequence[Network]) -> None:
        self._allowed = allowed
        # For a checker of types this class is its stand-in for where anyio is missing.
        self._network = cast(httpcore2.AsyncNetworkBackend, httpcore2.AnyIOBackend())

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        try:
            found = await anyio.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except OSError as error:
            raise httpcore2.ConnectError(str(error)) from error
        addresses = list(dict.fromkeys(str(sockaddr[0]) for *_, sockaddr in found))
        reachable = [one for one in addresses if may_be_reached(one, self._allowed)]
        if not reachable:
            # No name and no number: what a name stands for inside is the network's own business.
            raise leads_inside()
        # One connection, to an address that was looked at; the name is resolved once and never again.
        return await self._network.connect_tcp(
            reachable[0], port, timeout=timeout, local_address=local_address, socket_options=socket_options
        )

    async def connect_unix_socket(
        self,
        path: str,
        timeout: float | None = None,
        socket_options: Iterable[httpcore2.SOCKET_OPTION] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        raise leads_inside()

    async def sleep(self, seconds: float) -> None:
        await anyio.sleep(seconds)


def leads_inside() -> InvalidConfig:
    return InvalidConfig(
        "this leads to an address inside the network, where models that people add may not be",
        hint="use a public address, or ask the operator to allow it: DRAGOMAN_ALLOWED_NETWORKS",
    )
