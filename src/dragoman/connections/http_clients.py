"""How far a connector may reach: the HTTP clients of all connectors, and the addresses open to each."""

import os
import socket
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from importlib import import_module
from typing import TYPE_CHECKING, Any, Self

from dragoman.connections.addresses import may_be_reached, read_networks
from dragoman.connections.boxes.box import Box
from dragoman.connections.boxes.boxes import ProgramStart
from dragoman.connector import Connector
from dragoman.errors import InvalidConfig, ShuttingDown
from dragoman.loading import beside

if TYPE_CHECKING:
    import aiohttp

_CLIENTS = "dragoman.connections.outgoing_http"
AddressInfo = tuple[int, int, int, str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Reach:
    """What one connector connects with.

    `environment` fills `${VAR}`; it is None for what people wrote, which refers to nothing of ours. Nor do
    they get a proxy or a local file: behind a proxy nobody can tell which address is reached.
    """

    open_client: "Callable[[], aiohttp.ClientSession]"
    environment: Mapping[str, str] | None
    boxed: Callable[[ProgramStart], Box | None] = lambda start: None

    @property
    def client(self) -> "aiohttp.ClientSession":
        return self.open_client()

    @property
    def is_trusted(self) -> bool:
        return self.environment is not None


class HttpClients:
    """Two clients that share no connection: one goes anywhere, one only where people may go."""

    def __init__(self, *, multi_user: bool = False, allowed_networks: Iterable[str] = ()) -> None:
        self._is_multi_user = multi_user
        self._allowed = read_networks(allowed_networks)
        self._opened: list[aiohttp.ClientSession] = []
        self._is_closed = False

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *exc: object) -> None:
        self._is_closed = True
        for client in self._opened:
            await client.close()

    async def make_ready(self) -> None:
        """Loads what clients are made of, while others go on."""
        await beside(lambda: import_module(_CLIENTS))

    @cached_property
    def trusted(self) -> "aiohttp.ClientSession":
        return self._open()

    @cached_property
    def guarded(self) -> "aiohttp.ClientSession":
        # Racing several addresses would hide why one of them was refused.
        return self._open(happy_eyeballs_delay=None, socket_factory=self._guarded_socket)

    def _open(self, **facts: Any) -> "aiohttp.ClientSession":
        if self._is_closed:
            raise ShuttingDown("Dragoman is stopping")
        from dragoman.connections.outgoing_http import open_client

        self._opened.append(client := open_client(**facts))
        return client

    def for_connector(self, connector: Connector) -> Reach:
        """What the operator answers for is trusted; so is everything where there is one user only."""
        if not self._is_multi_user or connector.origin != "people":
            return Reach(lambda: self.trusted, os.environ)
        return Reach(lambda: self.guarded, None)

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
