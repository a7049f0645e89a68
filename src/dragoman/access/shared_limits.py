"""Limits that hold over all nodes of a cluster: a node spends slots of a limit that it holds in the store.

It keeps them while it has use for them, so most calls ask nobody. Who finds none left asks a node that has
some: what is unused there is handed over at once, what is in use as soon as a call ends. Slots of a node that
was killed expire. While NATS is away nobody hears a wish: then what is unused goes back within seconds.
"""

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from datetime import datetime, timedelta

from dragoman.access.limits import ConcurrencyGate, ConcurrencyLimits
from dragoman.background_tasks import BackgroundTasks
from dragoman.cluster import Cluster
from dragoman.cluster.places import boot_clock
from dragoman.connector import Connector
from dragoman.errors import DragomanError, LimitReached
from dragoman.store.clock import Clock
from dragoman.store.protocols import UsageStore
from dragoman.telemetry.logs import get_logger

_RENEW_EVERY = 3.0  # seconds
_SPENT_FOR = 10.0  # seconds after a renewal was sent in which slots are spent
_LIVE = 12.0  # seconds after which slots that nobody renews are free, by the database's clock
_UNUSED = 60.0  # seconds after which slots are given back though nobody asks
_LOOK = 0.25  # seconds between two wishes of a node; one that is twice as old counts no more
_TURN = 0.1  # seconds that a node with work keeps what it was given, so that slots are not only on their way
_STORE_WITHIN = 3.0  # seconds to wait for the store; then whoever wants a slot is told that it is away
_ROOM_WITHIN = 3.0  # seconds to wait for a connection that another node closes

log = get_logger()
Seek = Callable[["SharedGate"], None]


class SharedGate(ConcurrencyGate):
    """The part of a limit that this node has: it lets in as many as it holds slots.

    `rows` are its slots in the store, `owed` those of them that are about to be handed over, by node; None is
    whoever wants them. `wishes` are those of other nodes: how many, and when they said so.
    """

    def __init__(self, connector_id: str, subject: str, seek: Seek, hand_over: Seek) -> None:
        super().__init__()
        self._seek = seek
        self._hand_over = hand_over
        self.connector_id = connector_id
        self.subject = subject
        self.limit = 0
        self.rows = 0
        self.owed: Counter[str | None] = Counter()
        self.wishes: dict[str, tuple[int, float]] = {}
        self.until = 0.0  # on the clock of the machine, as the next two: past it no slot is spent
        self.had_at = 0.0
        self.used_at = 0.0
        self.is_seeking = False
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()

    @property
    def held(self) -> int:
        """Slots that may be spent."""
        if boot_clock() >= self.until:
            return 0
        return min(self.limit, self.rows - self.owed.total() if self.owed else self.rows)

    def try_enter(self, limit: int) -> bool:
        return limit == self.limit and super().try_enter(self.held)

    async def enter(self, connector: Connector, deadline: float) -> None:
        self.take_limit(self.limit_of(connector))
        if not self.try_enter(self.limit):
            self._seek(self)
            await super().enter(connector, deadline)

    def leave(self, connector: Connector) -> None:
        self._running -= 1
        self.used_at = boot_clock()
        if self.wishes:
            self._hand_over(self)
        self.let_in(self.limit_of(connector))

    def let_in(self, limit: int) -> None:
        super().let_in(min(limit, self.held))

    def refusal(self, connector: Connector) -> LimitReached:
        return LimitReached(
            f"as many calls of {connector.slug!r} as it may have at once over all nodes ({self.limit}) were"
            " running, and none ended in time",
            hint="call again later, allow more time, or raise max_concurrency of the connector",
        )

    def take_limit(self, limit: int) -> None:
        """Where it was lowered, what is unused was taken when there was more, and is sought anew."""
        if limit < self.limit:
            self.owe_unused()
            self._hand_over(self)
        self.limit = limit

    def owe_unused(self) -> None:
        self.owed += Counter({None: self.rows - self.owed.total() - self.running})  # if there are any

    def set_aside(self, share: int) -> None:
        """For other nodes, what they wish for and this one can spare: with work of its own, a fair share."""
        now = boot_clock()
        for node, (count, said_at) in [*self.wishes.items()]:
            spare = self.held - self.running
            if self.waiting:
                spare = min(spare, self.held - share) if now - self.had_at >= _TURN else 0
            if spare > 0:
                self.owed[node] += min(count, spare)
            if spare > 0 or now - said_at > 2 * _LOOK:
                del self.wishes[node]


class ServersGate(SharedGate):
    """How many connections of a connector are open."""

    def limit_of(self, connector: Connector) -> int:
        return connector.configuration.max_servers or self.limit

    def refusal(self, connector: Connector) -> LimitReached:
        return LimitReached(
            f"{connector.slug} may have {self.limit} open connections over all nodes, and all are busy",
            hint="wait for one to become idle, or raise max_servers",
        )


class SharedLimits(ConcurrencyLimits):
    """Gates over all nodes. `counts_here` says of which connectors one node makes all calls anyway;
    `close_idle` closes an unused connection of a connector at this node, and says whether there was one.
    """

    def __init__(
        self,
        rows: UsageStore,
        clock: Clock,
        cluster: Cluster,
        counts_here: Callable[[Connector], bool],
        close_idle: Callable[[str], Awaitable[bool]],
    ) -> None:
        super().__init__()
        self._rows = rows
        self._clock = clock
        self._cluster = cluster
        self._node = cluster.node.id
        self._counts_here = counts_here
        self._close_idle = close_idle
        self._shared: dict[str, SharedGate] = {}  # by subject
        self._tasks = BackgroundTasks()
        self._nodes = 1

    @asynccontextmanager
    async def opened(self) -> AsyncGenerator["SharedLimits"]:
        """What this node has is free when the block has ended."""
        with self._cluster.listen("slots", self._heard):
            async with self._tasks:
                self._tasks.start(self._keep(), "renew slots of limits")
                yield self
        if self._shared:
            with suppress(DragomanError):  # then they expire
                await self._rows.drop_slots(self._node)

    def gate(self, connector: Connector) -> ConcurrencyGate:
        if self._counts_here(connector):
            return super().gate(connector)
        return self._gate(SharedGate, connector.id, f"calls of {connector.id}")

    def holder_gate(self, connector: Connector) -> ConcurrencyGate | None:
        """For a call that another node sent here; None where it had its slot there."""
        return super().gate(connector) if self._counts_here(connector) else None

    @asynccontextmanager
    async def server_room(self, connector: Connector) -> AsyncGenerator[None]:
        """One connection of this connector may be open while the block runs."""
        if connector.configuration.max_servers is None:
            yield
            return
        gate = self._gate(ServersGate, connector.id, f"servers of {connector.id}")
        await gate.enter(connector, asyncio.get_running_loop().time() + _ROOM_WITHIN)
        try:
            yield
        finally:
            gate.leave(connector)

    def _gate(self, kind: type[SharedGate], connector_id: str, subject: str) -> SharedGate:
        gate = self._shared.get(subject)
        if gate is None:
            gate = self._shared[subject] = kind(connector_id, subject, self._seek, self._hand_over)
        return gate

    # What this node wants

    def _seek(self, gate: SharedGate) -> None:
        if not gate.is_seeking:
            gate.is_seeking = True
            self._tasks.start(self._sought(gate), "seek slots of a limit")

    async def _sought(self, gate: SharedGate) -> None:
        """Until nobody waits any more."""
        answered_at = boot_clock()
        try:
            while gate.waiting:
                gate.news.clear()
                try:
                    # Twice as many as before: a burst is not one transaction for each call.
                    has = await self._hold(gate, max(gate.running + gate.waiting, 2 * gate.held))
                    answered_at = boot_clock()
                except DragomanError as error:
                    log.warning("slots.not_found", cause=error.message)
                    if boot_clock() - answered_at >= _STORE_WITHIN:
                        gate.refuse(error)
                    has = {}
                gate.let_in(gate.limit)
                if not gate.waiting or (
                    isinstance(gate, ServersGate) and await self._close_idle(gate.connector_id)
                ):
                    continue
                self._wish(gate, {node: count for node, count in has.items() if node != self._node})
                with suppress(TimeoutError):
                    async with asyncio.timeout(_LOOK):
                        await gate.news.wait()
        finally:
            gate.is_seeking = False

    async def _hold(self, gate: SharedGate, wanted: int) -> dict[str, int]:
        """Takes so many, if they are free; none that it has is given back. How many each node has."""
        async with gate.lock:
            sent_at, until = await self._now()
            if gate.rows and sent_at >= gate.until:
                await self._rows.renew_slots(self._node, until, self._clock.now())
            wanted = min(gate.limit, wanted) + gate.owed.total()
            has = await self._rows.hold_slots(
                gate.subject, self._node, wanted, gate.limit, until, self._clock.now()
            )
            if sent_at >= gate.until:
                gate.until = sent_at + _SPENT_FOR
            if has.get(self._node, 0) > gate.rows:
                gate.had_at = sent_at
            gate.rows = has.get(self._node, 0)
            return dict(has)

    async def _now(self) -> tuple[float, datetime]:
        """By the machine's clock, and when slots expire that are renewed now."""
        sent_at = boot_clock()
        await self._clock.read()
        return sent_at, self._clock.now() + timedelta(seconds=_LIVE)

    def _wish(self, gate: SharedGate, others: dict[str, int]) -> None:
        """Of a node that has some: the more, the likelier. It is told how many it has."""
        if others:
            (target,) = random.choices([*others], [*others.values()])  # noqa: S311 - any will do
            self._tell(target, gate, gate.waiting, others[target])

    def _tell(self, node: str, gate: SharedGate, wanted: int, has: int) -> None:
        self._cluster.tell("slots", f"{node} {self._node} {wanted} {has} {gate.limit} {gate.subject}")

    # What others want

    def _heard(self, key: str) -> None:
        """The key is empty when messages may have been lost: whoever wants something says so again."""
        to, _, rest = key.partition(" ")
        if to != self._node:
            return
        node, *words, subject = rest.split(" ", 4)
        wanted, has, limit = map(int, words)
        gate = self._shared.get(subject)
        if gate is None:
            return
        if wanted:
            gate.take_limit(min(gate.limit, limit))
            gate.wishes[node] = (wanted, boot_clock())
            self._hand_over(gate)
        gate.news.set()
        if not gate.is_seeking and (not wanted or has > gate.rows):  # given when nobody waited any more
            self._tasks.start(self._look(gate), "look at slots that were given")
        elif gate.wishes and isinstance(gate, ServersGate):
            self._tasks.start(self._close_idle(gate.connector_id), "close a connection for another node")

    async def _look(self, gate: SharedGate) -> None:
        with suppress(DragomanError):  # who wants them says so again
            await self._hold(gate, 0)
            gate.let_in(gate.limit)
            self._hand_over(gate)

    def _hand_over(self, gate: SharedGate) -> None:
        gate.set_aside(gate.limit // self._nodes)
        if gate.owed:
            self._tasks.start(self._pay(gate), "hand over slots of a limit")

    async def _pay(self, gate: SharedGate) -> None:
        async with gate.lock:
            counts = Counter(gate.owed)
            if not counts:
                return
            try:
                _, until = await self._now()
                gate.rows = await self._rows.pass_slots(
                    gate.subject, self._node, counts, gate.limit, until, self._clock.now()
                )
            except DragomanError as error:
                log.warning("slots.not_passed", cause=error.message)  # who wants them says so again
            finally:
                gate.owed -= counts
        for node, count in counts.items():
            if node is not None:
                self._tell(node, gate, 0, count)

    async def _keep(self) -> None:
        while True:
            self._nodes = max(1, len(await self._cluster.nodes()))
            try:
                await self._renew()
            except DragomanError as error:
                log.warning("slots.not_renewed", cause=error.message)
            await asyncio.sleep(_RENEW_EVERY)

    async def _renew(self) -> None:
        """All at once. What was not used for long goes back; any that is not used, where no wish is heard."""
        gates = [gate for gate in self._shared.values() if gate.until]
        if not gates:
            return
        sent_at, until = await self._now()
        has = await self._rows.renew_slots(self._node, until, self._clock.now())
        for gate in gates:
            if has.get(gate.subject, 0) > gate.rows and not gate.lock.locked():
                await self._look(gate)  # given, and nobody was heard to say so
            if sent_at < gate.until:
                gate.until = sent_at + _SPENT_FOR
            if not self._cluster.is_connected or sent_at - max(gate.used_at, gate.had_at) > _UNUSED:
                gate.owe_unused()
                await self._pay(gate)
