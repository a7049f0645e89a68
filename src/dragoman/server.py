"""One ASGI app from a hub, and the process that serves it. Whoever opens the hub closes it.

One home has one service: a lock tells a second one so, and `server.json` tells the command where it is.
"""

import asyncio
import errno
import gc
import json
import os
import signal
import socket
from collections.abc import Awaitable, Callable, Generator
from contextlib import ExitStack, contextmanager
from importlib import import_module
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar
from urllib.parse import urlsplit

from starlette.types import Receive, Scope, Send

from dragoman.api import Api
from dragoman.console import BrowserSessions, is_console_path
from dragoman.errors import Conflict, DragomanError, InvalidConfig, NotFound
from dragoman.hub import Hub
from dragoman.identity.authenticated import ALL_SCOPES
from dragoman.identity.authenticator import AuthenticatedCaller
from dragoman.loading import beside
from dragoman.private_files import locked, make_private_directory, write_whole
from dragoman.settings import Settings
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.redaction import Redactor
from dragoman.telemetry.spans import continued_trace
from dragoman.web.guard import Guard
from dragoman.web.http_server import ConnectionLimits, HttpServer, listening_socket
from dragoman.web.problems import internal, problem
from dragoman.web.protected_resources import ProtectedResources
from dragoman.web.service_token import ServiceToken

if TYPE_CHECKING:
    from dragoman.console.app import Console
    from dragoman.mcp_endpoint import McpEndpoint

# Requests under way get this long to finish; the hub then has the rest of its ten seconds.
LAST_REQUESTS = 3.0
# A process that cannot work any more says so at `/ready` for so long: requests are sent elsewhere then.
LAST_PROBES = 2.0
# What a process answers whatever its roles are.
PROBES = frozenset({"/health", "/ready", "/metrics"})


class ServedDoor(Protocol):
    """`stop` ends its streams, so that their connections can close."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None: ...
    def stop(self) -> None: ...


_Door = TypeVar("_Door", bound=ServedDoor)


class LateDoor(Generic[_Door]):
    """A door that is made with the first request for it: its `module` is loaded beside the loop.

    Whoever never asks for pages, or for MCP, neither waits nor has memory taken for them.
    """

    def __init__(self, module: str, make: Callable[[], _Door]) -> None:
        self._module = module
        self._make = make
        self._door: _Door | None = None
        self._is_stopping = False

    async def opened(self) -> _Door:
        if self._door is None:
            await beside(lambda: import_module(self._module))
        if self._door is None:  # of all who waited the first makes it
            self._door = self._make()
            if self._is_stopping:
                self._door.stop()
        return self._door

    def stop(self) -> None:
        self._is_stopping = True
        if self._door is not None:
            self._door.stop()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            door = self._door or await self.opened()
        except Exception:  # noqa: BLE001
            # boundary: what cannot be loaded now, where no file can be opened, may be with the next request
            get_logger().exception("door.failed", door=self._module)
            await problem(internal())(scope, receive, send)
            return
        await door(scope, receive, send)


class Doors:
    """Which door a request is for. `stop` ends the streams of all of them."""

    def __init__(self, hub: Hub, api: Api | None = None) -> None:
        self._hub = hub
        self._token = ServiceToken(hub.settings)
        self._api = api or Api(hub)
        hub.expect_people()  # those of a door that is not made yet
        self.mcp = LateDoor("dragoman.mcp_endpoint", self._make_mcp)
        is_secure = (hub.settings.public_url or "").startswith("https://")
        self.sessions = BrowserSessions.of(hub, self._admit, is_secure=is_secure)
        self.console = LateDoor("dragoman.console.app", self._make_console)

    def stop(self) -> None:
        self._api.stop()
        self.mcp.stop()
        self.console.stop()

    def _make_mcp(self) -> "McpEndpoint":
        from dragoman.mcp_endpoint import McpEndpoint

        return McpEndpoint(self._hub, has_console=True, streams=self._api.streams)

    def _make_console(self) -> "Console":
        from dragoman.console.app import Console

        return Console(self._hub, self.sessions, self._api.streams)

    async def sign_in_code(self) -> str:
        """Works once, and signs in who runs the service."""
        return await self.sessions.make_link(self._token.current, self._hub.caller, most=None)

    async def _admit(self, token: str) -> AuthenticatedCaller:
        """The service's own token stands for who runs it; any other is a key or a token of its user."""
        if self._token.is_token(token.encode()):
            return AuthenticatedCaller(self._hub.caller, ALL_SCOPES)
        return await self._hub.authenticator.admit(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope.get("path", "")
        if "doors" not in self._hub.settings.roles and path not in PROBES:
            door = problem(
                NotFound("this process opens no doors", hint="ask one with `doors` in its DRAGOMAN_ROLES")
            )
        elif path == "/mcp" or path.startswith("/mcp/"):
            door = self.mcp
        else:
            door = self.console if is_console_path(path) else self._api
        with continued_trace(_trace_of(scope)):
            await door(scope, receive, send)


def _trace_of(scope: Scope) -> dict[str, str]:
    """Of which trace the client says that its request is a part."""
    return {
        name.decode(): value.decode("latin-1")
        for name, value in scope.get("headers", ())
        if name in (b"traceparent", b"tracestate")
    }


def build_app(hub: Hub, doors: Doors | None = None) -> Guard:
    """The doors of an open hub behind their guard."""
    settings = hub.settings

    async def admit(token: str, *, audience: str = "", is_under_way: bool = False) -> AuthenticatedCaller:
        # looked up late: the hub may not be open yet
        return await hub.authenticator.admit(token, audience=audience, is_under_way=is_under_way)

    return Guard(
        doors or Doors(hub),
        is_token=ServiceToken(settings).is_token,
        operator=hub.caller,
        resources=ProtectedResources(settings),
        admit=admit,
        hosts=(settings.host, *settings.allowed_hosts, *_public_host(settings)),
        is_open=is_console_path,
    )


def _public_host(settings: Settings) -> tuple[str, ...]:
    """The name by which browsers reach us is ours."""
    host = urlsplit(settings.public_url or "").hostname
    return (host,) if host else ()


async def serve(
    settings: Settings,
    ready: Callable[[str, str], None] = lambda url, link: None,
    redactor: Redactor | None = None,
) -> None:
    """Serves until SIGTERM or SIGINT. `ready` is told the address once requests are answered, and the link
    that signs in to the console once.

    `redactor` is the log's, which learns every secret that the hub uses.
    """
    with _only_one(settings), _listening(settings) as listener:
        hub = Hub(settings, redactor=redactor)
        doors = Doors(hub)

        async def announced(url: str) -> None:
            ready(url, f"{url}/sign-in?code={await doors.sign_in_code()}")

        announcement = _Announcement(settings, listener, announced)
        server = _Server(build_app(hub, doors), hub, doors, announcement)
        with server.stopped_by_signals():
            async with hub:
                _settle_memory()
                await server.serve_while_it_works(listener)


class _Announcement:
    """Tells where the service is, for as long as it answers."""

    def __init__(
        self, settings: Settings, listener: socket.socket, ready: Callable[[str], Awaitable[None]]
    ) -> None:
        host, port = str(settings.host), int(listener.getsockname()[1])
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 - recognised, not bound
        self._url = f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
        self._file = settings.server_file
        self._ready = ready

    async def publish(self) -> None:
        facts = {"url": self._url, "pid": os.getpid()}
        write_whole(self._file, f"{json.dumps(facts)}\n".encode())
        await self._ready(self._url)

    def withdraw(self) -> None:
        self._file.unlink(missing_ok=True)


class _Server(HttpServer):
    """Drains before it ends, and leaves the signals to `serve`: readiness off, runs handed over, streams of
    events ended, connections waited for. Whoever opened the hub closes it, with the servers it holds, last.

    uvicorn raises a signal again once it is done: that would end the process while the hub still closes.
    """

    def __init__(self, app: Guard, hub: Hub, doors: Doors, announcement: _Announcement) -> None:
        super().__init__(app, ConnectionLimits.of(hub.settings), LAST_REQUESTS)
        self._hub = hub
        self._doors = doors
        self._announcement = announcement
        self._draining: asyncio.Future[None] | None = None

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        await self._announcement.publish()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        self._announcement.withdraw()
        self._doors.stop()
        await super().shutdown(sockets)

    @contextmanager
    def capture_signals(self) -> Generator[None]:
        yield

    @contextmanager
    def stopped_by_signals(self) -> Generator[None]:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, self._stop)
        try:
            yield
        finally:
            for number in (signal.SIGTERM, signal.SIGINT):
                loop.remove_signal_handler(number)

    async def serve_while_it_works(self, listener: socket.socket) -> None:
        """Ends by itself, and raises why, when the process cannot do its work any more."""
        failing = asyncio.ensure_future(self._hub.failure())
        failing.add_done_callback(self._stop_soon)
        try:
            await self.serve(sockets=[listener])
            if failing.done():
                raise failing.result()
        finally:
            failing.cancel()
            if self._draining is not None:
                await asyncio.wait([self._draining], timeout=0 if self.force_exit else LAST_REQUESTS)

    def _stop_soon(self, failing: "asyncio.Future[DragomanError]") -> None:
        if not failing.cancelled():
            asyncio.get_running_loop().call_later(LAST_PROBES, self._stop)

    def _stop(self) -> None:
        """Told once it drains; told again it ends at once."""
        if self._draining is None:
            settings = self._hub.settings
            self.end_connections()
            self._draining = asyncio.ensure_future(self._hub.drain(LAST_REQUESTS))
            wait = settings.drain_wait if settings.cluster_url else 0.0
            asyncio.get_running_loop().call_later(wait, self._exit)
        else:
            self.force_exit = True
            self._exit()

    def _exit(self) -> None:
        self.should_exit = True


@contextmanager
def _only_one(settings: Settings) -> Generator[None]:
    """Held by the kernel for this process: a service that was killed leaves no lock behind."""
    make_private_directory(settings.home)
    with ExitStack() as stack:
        try:
            stack.enter_context(locked(settings.server_lock))
        except OSError:
            raise Conflict(
                f"a service runs for {settings.home} already",
                hint="use it as it is, stop it first, or set DRAGOMAN_HOME to another directory",
            ) from None
        settings.server_file.unlink(missing_ok=True)
        yield


def _settle_memory() -> None:
    """What is loaded now stays: a collector that looks at it again pauses everybody for 40 ms.

    At all that has come since it looks after a million new objects, not after 70,000: calls leave no cycles
    behind, and seven thousand connections, which are half a million objects, would be looked at ten times
    while they come, for 300 ms at the end.
    """
    gc.collect()
    gc.freeze()
    gc.set_threshold(2_000, 10, 50)


@contextmanager
def _listening(settings: Settings) -> Generator[socket.socket]:
    address = (settings.host, settings.port)
    family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
    if not 0 <= settings.port <= 65535:
        raise InvalidConfig(f"{settings.port} is no port", hint="use a number from 0 to 65535")
    try:
        listener = listening_socket(family, address, settings.send_timeout)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise Conflict(
                f"the port {settings.port} of {settings.host} is taken",
                hint=f"choose another: dragoman serve --port {min(settings.port + 1, 65535)}, or 0 for any",
            ) from None
        raise InvalidConfig(
            f"cannot listen on {settings.host} port {settings.port}: {error.strerror or error}",
            hint="127.0.0.1 is this machine only; ports below 1024 need rights",
        ) from None
    with listener:
        yield listener
