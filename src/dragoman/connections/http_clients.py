"""How far a connector may reach: the HTTP clients of all connectors, and which of them gets which.

In multi-user mode what people add reaches public addresses only, and those that the operator allows. The
check is made where a socket is opened, on the very address that it is connected to: no spelling of a host,
redirect or second answer of a name server gets around it. `HttpClients` owns both clients.
"""

import os
import socket
from collections.abc import Iterable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any, Self

import aiohttp

from dragoman.connections.addresses import may_be_reached, read_networks
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig

AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one connector connects with.

    `environment` fills `${VAR}`; it is None for what people wrote, which refers to nothing of ours. Nor do
    they get a proxy or a local file: behind a proxy nobody can tell which address is reached.
    """

    client: aiohttp.ClientSession
    environment: Mapping[str, str] | None

    @property
    def is_trusted(self) -> bool:
        return self.environment is not None


class HttpClients:
    """Two clients that share no connection: one goes anywhere, one only where people may go."""

    def __init__(self, *, multi_user: bool = False, allowed_networks: Iterable[str] = ()) -> None:
        self._is_multi_user = multi_user
        self._allowed = read_networks(allowed_networks)
        self._stack = AsyncExitStack()

    async def __aenter__(self) -> Self:
        async with AsyncExitStack() as stack:
            self.trusted = await stack.enter_async_context(
                _client(aiohttp.TCPConnector(limit=0, keepalive_timeout=30.0))
            )
            self.guarded = await stack.enter_async_context(
                # Racing several addresses would hide why one of them was refused.
                _client(
                    aiohttp.TCPConnector(
                        limit=0,
                        keepalive_timeout=30.0,
                        happy_eyeballs_delay=None,
                        socket_factory=self._guarded_socket,
                    )
                )
            )
            self._stack = stack.pop_all()
        return self

    async def __aexit__(self, *exc: object) -> None:
        await self._stack.aclose()

    def for_connector(self, connector: Connector) -> Reach:
        """What the operator answers for is trusted; so is everything where there is one user only."""
        if not self._is_multi_user or connector.origin != "people":
            return Reach(self.trusted, os.environ)
        return Reach(self.guarded, None)

    def _guarded_socket(self, info: AddressInfo) -> socket.socket:
        family, kind, protocol, _, address = info
        is_internet = family in (socket.AF_INET, socket.AF_INET6)
        if not is_internet or not may_be_reached(str(address[0]), self._allowed):
            # No name and no number: what a name stands for inside is the network's own business.
            raise InvalidConfig(
                "this leads to an address inside the network, where connectors that people add may not go",
                hint="use a public address, or ask the operator to allow it: DRAGOMAN_ALLOWED_NETWORKS",
            )
        return socket.socket(family, kind, protocol)


def _client(connector: aiohttp.TCPConnector) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=connector,
        cookie_jar=aiohttp.DummyCookieJar(),  # a cookie kept for one user must never reach another
        timeout=aiohttp.ClientTimeout(total=None, sock_connect=10.0),
        trust_env=False,
        skip_auto_headers=("User-Agent",),
        headers={"User-Agent": "dragoman"},
        max_line_size=64 * 1024,
        max_field_size=64 * 1024,
    )
