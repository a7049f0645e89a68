"""Implements `ConnectionObserver`: passes changes of connections on to events, metrics and the catalog.

Refreshes run in the background, one at a time per connector: a server that announces a hundred changes
is listed twice at most, and one that never stops is listed for a fifth of the time.
"""

import asyncio
from collections.abc import Awaitable, Callable, Generator, Iterable
from contextlib import contextmanager, suppress

from dragoman.background_tasks import BackgroundTasks
from dragoman.calls.records import Recorder
from dragoman.catalog import Catalog
from dragoman.connections.source import ConnectionStatus
from dragoman.connector import Connector
from dragoman.errors import DragomanError
from dragoman.events import Event, Events
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.scope import holder_of
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.redaction import Redactor

log = get_logger()

_OUT_OF_REACH = ("error", "needs_auth")
PATIENCE = 1.0  # seconds that somebody who is about to use tools waits for a list that has changed
_REST, _LONGEST_REST = 4.0, 10.0  # so much longer than it took to list them, tools are not listed again

Relist = Callable[[Connector, str], Awaitable[object]]


class ConnectionWatcher:
    """Observes every connection. `attach` gives it what is built after it."""

    def __init__(
        self,
        events: Events,
        recorder: Recorder,
        catalog: Catalog,
        registry: ConnectorRegistry,
        redactor: Redactor,
    ) -> None:
        self._events = events
        self._recorder = recorder
        self._catalog = catalog
        self._registry = registry
        self._redactor = redactor
        self._tasks: BackgroundTasks | None = None
        self._relist: Relist | None = None
        self._running: set[str] = set()
        self._again: dict[str, dict[str, None]] = {}  # of each connector: over whose connections
        self._announced: dict[str, asyncio.Event] = {}
        self._listing: dict[tuple[str, str], bool] = {}  # whether a connection was opened meanwhile

    def attach(self, tasks: BackgroundTasks, relist: Relist) -> None:
        self._tasks = tasks
        self._relist = relist

    def detach(self) -> None:
        self._tasks = None

    def state_changed(self, connector: Connector, status: ConnectionStatus) -> None:
        cause = self._redactor.clean(status.cause) if status.cause else None
        if status.state in _OUT_OF_REACH:
            self._note_reach(connector, status.identity, cause or status.state)
        elif status.state in ("connected", "disconnected"):
            self._note_reach(connector, status.identity, None)
        # How one user's link stands is nobody else's business.
        workspace, user = holder_of(status.identity)
        log.info(
            "connector.state",
            connector=connector.slug,
            state=status.state,
            cause=cause,
            attempt=status.attempt,
        )
        self._events.publish(
            Event(
                kind="connector.state",
                workspace=workspace,
                user=user,
                connector=connector.slug,
                data={
                    "state": status.state,
                    "cause": cause,
                    "attempt": status.attempt,
                    "next_attempt": status.next_attempt.isoformat() if status.next_attempt else None,
                },
            )
        )

    def was_disconnected(self, connector: Connector, identity: str) -> None:
        """On purpose: its tools are out of reach until somebody wants them again."""
        how = "the next call connects it" if connector.configuration.auto_reconnect else "connect it first"
        self._note_reach(connector, identity, f"it was disconnected; {how}")

    def _note_reach(self, connector: Connector, identity: str, cause: str | None) -> None:
        if not self._catalog.note_reach(connector, identity, cause):
            return
        workspace, user = holder_of(identity)
        self._events.publish(
            Event(
                kind="tools.changed",
                workspace=workspace,
                user=user,
                connector=connector.slug,
                data={"added": [], "changed": [], "removed": [], "unavailable": cause},
            )
        )

    def tools_changed(self, connector: Connector, identity: str) -> None:
        self._catalog.mark_stale(connector.id)
        self.refresh_soon(connector, identity)
        if connector.id in self._running:
            self._announced.setdefault(connector.id, asyncio.Event())

    async def read_announced(self, connectors: Iterable[Connector]) -> None:
        """Returns once lists that these servers said have changed are read; who is slow is not waited for."""
        if not self._announced:
            return
        bells = [self._announced[one.id] for one in connectors if one.id in self._announced]
        with suppress(TimeoutError):
            async with asyncio.timeout(PATIENCE):
                for bell in bells:
                    await bell.wait()

    def connected(self, connector: Connector, identity: str, seconds: float, is_reconnect: bool) -> None:
        self._recorder.connected(connector, seconds, is_reconnect)
        if not is_reconnect and (connector.id, identity) in self._listing:
            self._listing[connector.id, identity] = True
            return
        # The server may be another one than last time, and one that came late must appear.
        self.refresh_soon(connector, identity)

    @contextmanager
    def listing(self, connector: Connector, identity: str) -> Generator[None]:
        """While its tools are listed: what connects meanwhile is listed again only where this fails."""
        self._listing.setdefault((connector.id, identity), False)
        try:
            yield
        except BaseException:
            if self._listing.pop((connector.id, identity), False):
                self.refresh_soon(connector, identity)
            raise
        self._listing.pop((connector.id, identity), None)

    def reused(self, connector: Connector) -> None:
        self._recorder.reused(connector)

    def refresh_soon(self, connector: Connector, identity: str) -> None:
        if self._tasks is None or (known := self._registry.newest(connector)) is None or not known.enabled:
            return
        if connector.id in self._running:
            self._again.setdefault(connector.id, {})[identity] = None
            return
        self._running.add(connector.id)
        self._tasks.start(self._refresh(known, identity), f"refresh of {connector.slug}")

    async def _refresh(self, connector: Connector, identity: str) -> None:
        loop = asyncio.get_running_loop()
        identities = {identity: None}
        try:
            while True:
                started = loop.time()
                for one in identities:
                    await self._relist_over(connector, one)
                if connector.id not in self._again:
                    self._ring(connector)
                await asyncio.sleep(min(_REST * (loop.time() - started), _LONGEST_REST))
                if (identities := self._again.pop(connector.id, {})) == {}:
                    return
        finally:
            self._running.discard(connector.id)
            self._ring(connector)

    async def _relist_over(self, connector: Connector, identity: str) -> None:
        assert self._relist is not None
        try:
            await self._relist(self._registry.newest(connector) or connector, identity)
        except DragomanError as error:
            log.info(
                "connector.refresh_failed",
                connector=connector.slug,
                cause=self._redactor.clean(error.message),
            )

    def _ring(self, connector: Connector) -> None:
        if bell := self._announced.pop(connector.id, None):
            bell.set()
