"""What is remembered of calls: numbers per connector, and one record each. Never in the way of a call.

Everything is counted in memory and written in batches about once a second: after `kill -9` at most
the last second is lost. A store that fails or lags costs records, which are counted, never calls.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from time import time

from dragoman.background_tasks import Supervisor
from dragoman.calls.batch_flusher import BatchFlusher
from dragoman.connector import Connector
from dragoman.run import Run, RunUsage
from dragoman.scope import Caller
from dragoman.store.protocols import Store
from dragoman.store.records import CallRecord
from dragoman.telemetry.logs import get_logger
from dragoman.telemetry.metrics import ConnectorCounters, ConnectorMetrics
from dragoman.telemetry.time_buckets import BucketKey, TimeBuckets, minute_of, rows_of

_NONE = ConnectorCounters("", "")


@dataclass(slots=True)
class FinishedCall:
    """One finished call, cheap to note down. Neither arguments nor result: they may be large."""

    id: str
    caller: Caller
    tool: str
    connector: Connector | None
    was_sent: bool
    ok: bool
    code: str | None
    message: str | None
    duration_ms: float
    attempts: int
    started_at: float
    version: int | None = None
    waited_ms: float = 0.0  # for people: no part of the duration
    cost: float = 0.0  # in dollars
    hooks: tuple[str, ...] = ()  # what they decided


class Recorder(BatchFlusher[FinishedCall]):
    """Made by `open_recorder`, which also ends it."""

    def __init__(self, store: Store) -> None:
        super().__init__("records")
        self._store = store
        # Of all processes, as far as it is known here, and what was so when the store was last asked.
        self._tallies: dict[str, ConnectorCounters] = {}
        self._agreed: dict[str, ConnectorCounters] = {}
        self._written: dict[str, ConnectorCounters] = {}  # by this process
        self._changed: set[str] = set()
        self._over_time = TimeBuckets()

    def finished(self, finished: FinishedCall) -> None:
        if finished.connector is not None:
            tally = self._tally(finished.connector)
            if finished.was_sent:
                error = None if finished.ok else f"{finished.code}: {finished.message}"
                tally.finished(finished.ok, finished.duration_ms, finished.started_at, error)
                tally.cost += finished.cost
            elif finished.ok:
                tally.cached += 1
            else:
                tally.rejected += 1
        caller = finished.caller
        # A tool that nobody knows is whatever somebody wrote: it has no place in a list of tools.
        slug, tool = (finished.connector.slug, finished.tool) if finished.connector else ("", "")
        minute, agent = minute_of(finished.started_at), caller.agent or ""
        self._over_time.call(
            BucketKey(caller.workspace, caller.user, minute, slug, tool, agent, caller.way),
            finished.ok,
            finished.duration_ms if finished.was_sent else None,
            finished.cost,
        )
        self.add(finished)

    def connected(self, connector: Connector, seconds: float, is_reconnect: bool) -> None:
        self._tally(connector).connected(seconds * 1000, is_reconnect)
        if is_reconnect:
            key = BucketKey(connector.workspace, connector.owner, minute_of(time()), connector.slug)
            self._over_time.add(key, reconnects=1)
        self.wake()

    def asked_model(self, run: Run, model: str, used: RunUsage) -> None:
        """A model has answered one request of a run."""
        self._count_for(
            run,
            model,
            requests=used.requests,
            input_tokens=used.input_tokens,
            output_tokens=used.output_tokens,
            unpriced=used.unpriced,
            cost=used.cost,
        )

    def ran(self, run: Run) -> None:
        """It has ended."""
        self._count_for(run, run.model or "", runs=1, failed_runs=run.status == "failed")

    def _count_for(self, run: Run, model: str, **amounts: float) -> None:
        key = BucketKey(
            run.workspace,
            run.user,
            minute_of(time()),
            agent=run.agent,
            client=run.caller.way,
            model=model,
        )
        self._over_time.add(key, **amounts)
        self.wake()

    def reused(self, connector: Connector) -> None:
        self._tally(connector).reused += 1

    def metrics(self, connector: Connector) -> ConnectorMetrics:
        """Of all processes; what others count is known here after the next call of the connector."""
        tally = self._tallies.get(connector.id) or ConnectorCounters(connector.workspace, connector.slug)
        return tally.view(connector.id)

    def list_metrics(self) -> list[ConnectorMetrics]:
        """What this process has counted since it started."""
        return [self._own(connector_id).view(connector_id) for connector_id in sorted(self._tallies)]

    async def list_installation_metrics(self) -> list[ConnectorMetrics]:
        """What all processes have counted, ever; of the last second this one's alone."""
        kept = await self._store.connectors.metrics()
        known = {key: kept.get(key, _NONE).plus(self._grown(key)) for key in self._tallies}
        return [counters.view(connector_id) for connector_id, counters in sorted({**kept, **known}.items())]

    def forget(self, connector_id: str) -> None:
        """The connector is gone, and so are its numbers."""
        for kept in (self._tallies, self._agreed, self._written):
            kept.pop(connector_id, None)
        self._changed.discard(connector_id)

    async def load(self) -> None:
        for connector_id, counters in (await self._store.connectors.metrics()).items():
            self._tallies[connector_id], self._agreed[connector_id] = counters.copy(), counters

    async def write(self, items: Sequence[FinishedCall]) -> None:
        await self._store.calls.add([_record(finished) for finished in items])

    def call_of(self, item: FinishedCall) -> str:
        return item.id

    @property
    def has_rest(self) -> bool:
        return bool(self._changed or self._over_time)

    async def write_rest(self) -> None:
        await self._write_over_time()
        await self._write_tallies()

    async def _write_over_time(self) -> None:
        taken = self._over_time.take()
        try:
            await self._store.metrics.add(rows_of(taken))
        except BaseException as error:
            # boundary: what was counted is written with the next batch, also when this one is cancelled
            self._over_time.put_back(taken)
            if not isinstance(error, Exception):
                raise
            get_logger().warning("metrics.delayed", exc_info=True)

    async def _write_tallies(self) -> None:
        before = {key: self._tallies[key].copy() for key in self._changed if key in self._tallies}
        grown = {key: self._grown(key) for key in before}
        self._changed.clear()
        if not grown:
            return
        try:
            totals = await self._store.connectors.add_metrics(grown)
        except Exception:  # noqa: BLE001
            # boundary: the numbers are still in memory, and written with the next batch
            self._changed.update(key for key in grown if key in self._tallies)
            get_logger().warning("metrics.delayed", exc_info=True)
            return
        for key, total in totals.items():
            if (tally := self._tallies.get(key)) is not None:
                self._tallies[key] = total.plus(tally.since(before[key]))
                self._agreed[key] = total
                self._written[key] = self._written.get(key, _NONE).plus(grown[key])

    def _grown(self, connector_id: str) -> ConnectorCounters:
        """What was counted here and is not written yet."""
        return self._tallies[connector_id].since(self._agreed.get(connector_id, _NONE))

    def _own(self, connector_id: str) -> ConnectorCounters:
        grown = self._grown(connector_id)
        return self._written[connector_id].plus(grown) if connector_id in self._written else grown

    def _tally(self, connector: Connector) -> ConnectorCounters:
        tally = self._tallies.get(connector.id)
        if tally is None:
            tally = self._tallies[connector.id] = ConnectorCounters(connector.workspace, connector.slug)
        self._changed.add(connector.id)
        return tally


@asynccontextmanager
async def open_recorder(store: Store, supervisor: Supervisor) -> AsyncGenerator[Recorder]:
    """Reads the old numbers, writes while the block runs, and writes the rest within a limit at its end."""
    recorder = Recorder(store)
    await recorder.load()
    async with recorder.flushing(supervisor):
        yield recorder


def _record(finished: FinishedCall) -> CallRecord:
    caller, connector = finished.caller, finished.connector
    return CallRecord(
        id=finished.id,
        workspace=caller.workspace,
        user=caller.user,
        thread=caller.thread,
        agent=caller.agent,
        way=caller.way,
        tool=finished.tool,
        connector_id=connector.id if connector else None,
        slug=connector.slug if connector else None,
        ok=finished.ok,
        code=finished.code,
        message=finished.message,
        duration_ms=finished.duration_ms,
        attempts=finished.attempts,
        started_at=datetime.fromtimestamp(finished.started_at, UTC),
    )
