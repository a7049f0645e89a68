"""Leases and places in NATS: two buckets, written by compare-and-set alone. Fills `Places`.

Nothing here is a fact: whoever finds NATS empty, or comes back to it, waits until every lease that may have
been forgotten is surely over, and begins anew.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import datetime
from hashlib import sha256
from secrets import token_hex
from typing import Any

import orjson
from nats.errors import Error
from nats.js.api import KeyValueConfig
from nats.js.errors import KeyNotFoundError, KeyWrongLastSequenceError

from dragoman.background_tasks import Supervisor
from dragoman.cluster.messages import Unreadable, dump_lease, dump_place, load_lease, load_place
from dragoman.cluster.nats_connection import heeded
from dragoman.cluster.nats_replicas import replicated
from dragoman.cluster.places import (
    OVER_AFTER,
    RENEW_EVERY,
    NodeLease,
    Place,
    PlaceCounts,
    PlaceKey,
    preferred,
)
from dragoman.cluster.protocol import Node
from dragoman.cluster.requests import NodeRequests
from dragoman.cluster.seals import MessageSeal
from dragoman.errors import ClusterUnavailable
from dragoman.telemetry.logs import get_logger

_PATIENCE = 10.0  # seconds that somebody who needs a place waits for NATS
_LOOK_EVERY = 0.1  # seconds between two looks at a lease that may be over
_FORGET_LEASES = 24 * 3600.0
_ANSWER = 1.0  # seconds for one answer of JetStream
_AWAY = (Error, OSError, TimeoutError)

log = get_logger()
Nodes = Callable[[], Awaitable[Sequence[Node]]]
Leave = Callable[[], Awaitable[None]]


@asynccontextmanager
async def open_places(
    client: Any,
    prefix: str,
    node: Node,
    nodes: Nodes,
    leave: Leave,
    supervisor: Supervisor,
    seal: MessageSeal,
) -> AsyncGenerator["NatsPlaces"]:
    """This node holds places while the block runs; at its end it says that it holds none any more.

    `leave` has the others know that it does not want any.
    """
    places = NatsPlaces(client, prefix, node, nodes, leave, seal)
    await places.join()
    try:
        async with (
            supervisor.keeping(places.keep, "renew the lease on places", is_vital=True),
            supervisor.keeping(places.requests.send_words, "tell other nodes of connections"),
        ):
            yield places
    finally:
        await places.leave()


class NatsPlaces:
    def __init__(
        self, client: Any, prefix: str, node: Node, nodes: Nodes, leave: Leave, seal: MessageSeal
    ) -> None:
        self.node = node.id
        self._client = client
        self._prefix = prefix
        self.requests = NodeRequests(client, prefix, node.id, seal)
        self.ask = self.requests.ask
        self.answering = self.requests.answering
        self.hearing = self.requests.hearing
        self.say = self.requests.say
        self.lease = NodeLease()
        self._may_hold = "hold" in node.roles
        self._is_leaving = False
        self._nodes = nodes
        self._leave = leave
        self._jetstream: Any = client.jetstream(timeout=_ANSWER)
        self._leases: Any = None
        self._places: Any = None
        self._revision = 0  # of this node's lease
        self._known: dict[PlaceKey, Place] = {}  # also those of others, as last heard
        self._released: dict[PlaceKey, int] = {}  # revisions that count no more, whatever is read
        self._locks: defaultdict[PlaceKey, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._looks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._seen: dict[str, _Seen] = {}
        self._came_at = 0.0
        self._moved = self._lost = self._taken_over = 0
        self._close: Callable[[], Awaitable[None]] | None = None

    def on_lost(self, close: Callable[[], Awaitable[None]]) -> None:
        self._close = close

    # The lease of this node

    async def join(self) -> None:
        await self.requests.open()
        await self._begin()

    async def reconnected(self) -> None:
        """NATS may have forgotten what it had: nothing is taken until every lease is over."""
        self._came_at = asyncio.get_running_loop().time()
        with suppress(*_AWAY):
            await self._make_buckets()

    async def _make_buckets(self) -> None:
        make = self._jetstream.create_key_value
        leases, places = f"{self._prefix}_leases", f"{self._prefix}_places"
        self._leases = await replicated(
            lambda replicas: make(KeyValueConfig(leases, ttl=_FORGET_LEASES, replicas=replicas))
        )
        self._places = await replicated(lambda replicas: make(KeyValueConfig(places, replicas=replicas)))
        made_at = asyncio.get_running_loop().time() - await self._age_of(leases)
        self._came_at = max(self._came_at, made_at)

    async def _age_of(self, bucket: str) -> float:
        """Seconds that NATS has had it, by the clock of NATS: leases from before then may be forgotten, no
        later ones. Whoever just started waits for none of those that it finds.
        """
        answer = await self._client.request(f"$JS.API.STREAM.INFO.KV_{bucket}", b"", timeout=_ANSWER)
        try:
            said = orjson.loads(answer.data)
            age = datetime.fromisoformat(said["ts"]) - datetime.fromisoformat(said["created"])
        except (KeyError, TypeError, ValueError):
            return 0.0  # as if it were made now
        return max(0.0, age.total_seconds())

    async def _begin(self) -> None:
        """A new lease, in place of one that was lost or never was."""
        await self._make_buckets()
        lease = token_hex(6)
        sent_at = self.lease.now()
        self._revision = await self._leases.put(self.node, dump_lease(lease))
        self.lease.begin(lease, sent_at)

    async def keep(self) -> None:
        """Renews it for as long as the node lives. Whoever is late loses it and begins anew."""
        while True:
            began = self.lease.now()
            try:
                if self.lease.is_held:
                    await self._renew()
                else:
                    await self._lose()
                    await self._begin()
            except _AWAY as error:
                log.debug("places.not_renewed", cause=str(error))
            # From when it was begun: with a NATS that is slow, too, there is time for a second one. The lease
            # ends in time, whatever NATS does.
            pause = RENEW_EVERY - (self.lease.now() - began)
            await asyncio.sleep(max(0.05, min(pause, self.lease.left)))

    async def _renew(self) -> None:
        sent_at = self.lease.now()
        written = dump_lease(self.lease.id)
        try:
            async with asyncio.timeout(max(0.05, min(_ANSWER, self.lease.left))):
                self._revision = await self._leases.update(self.node, written, last=self._revision)
        except KeyWrongLastSequenceError:
            # Ended by somebody, or a renewal was written whose answer was lost.
            entry = await self._leases.get(self.node)
            if load_lease(entry.value) != self.lease.id:
                self.lease.end()
            self._revision = entry.revision
            return
        self.lease.renew(sent_at)

    async def _lose(self) -> None:
        """Nothing that was held by the old lease is open when the next begins."""
        self.lease.end()
        for key in [key for key, place in self._known.items() if place.node == self.node]:
            del self._known[key]
            self._lost += 1
        if self._close is not None and self.lease.id:
            log.warning("places.lost", node=self.node)
            await self._close()
        self.lease.id = ""

    async def leave(self) -> None:
        """What it held is closed: others may take it at once."""
        self.lease.end()
        with suppress(*_AWAY):
            if self.lease.id:
                await self._give_back()

    async def _give_back(self) -> None:
        try:
            await self._leases.update(self.node, dump_lease(""), last=self._revision)
        except KeyWrongLastSequenceError:
            # A renewal was under way when this node was told to end: it was written, nobody heard so.
            entry = await self._leases.get(self.node)
            if load_lease(entry.value) == self.lease.id:
                await self._leases.update(self.node, dump_lease(""), last=entry.revision)

    @property
    def counts(self) -> PlaceCounts:
        held = sum(self._is_mine(place) for place in self._known.values())
        return PlaceCounts(held=held, moved=self._moved, lost=self._lost, taken_over=self._taken_over)

    # Where a connection is

    def holds(self, key: PlaceKey) -> bool:
        place = self._known.get(key)
        return place is not None and self._is_mine(place)

    def is_pinned(self, key: PlaceKey) -> bool:
        place = self._known.get(key)
        return place is not None and place.is_pinned

    def _is_mine(self, place: Place) -> bool:
        return place.node == self.node and place.lease == self.lease.id and self.lease.is_held

    async def may_hold(self, key: PlaceKey) -> bool:
        if self.holds(key):
            return True
        with suppress(*_AWAY):
            place = await self._read(key)
            if place is not None and self._is_mine(place):
                self._known[key] = place
                return True
        return False

    async def locate(self, key: PlaceKey, doubted: Place | None = None) -> Place:
        known = self._known.get(key)
        if known is not None and known != doubted and (known.node != self.node or self._is_mine(known)):
            return known
        give_up = asyncio.get_running_loop().time() + _PATIENCE
        while True:
            try:
                async with self._locks[key]:
                    place = await self._located(key, doubted)
                    self._known[key] = place
                    return place
            except _NobodyThere as error:
                cause = str(error)
            except _AWAY as error:
                cause = f"NATS does not answer: {str(error) or type(error).__name__}"
                if self._client.is_connected:
                    with suppress(*_AWAY):
                        await self._make_buckets()
            if asyncio.get_running_loop().time() >= give_up:
                raise ClusterUnavailable(
                    f"it cannot be found out which node holds this connection: {cause}",
                    hint="call again when NATS is back: dragoman cluster status",
                    retry_after=2.0,
                )
            await asyncio.sleep(_LOOK_EVERY)

    async def _located(self, key: PlaceKey, doubted: Place | None) -> Place:
        known = self._known.get(key)
        if known is not None and known != doubted and (known.node != self.node or self._is_mine(known)):
            return known  # somebody else looked meanwhile
        while True:
            place = await self._read(key)
            if place is not None and await self._counts(place, is_doubted=place == doubted):
                return place
            await self._wait_for_old_leases()
            taken = await self._take(key, place)
            if taken is not None:
                return taken

    async def _read(self, key: PlaceKey) -> Place | None:
        try:
            entry = await self._places.get(_word(key))
            place = replace(load_place(entry.value), revision=entry.revision)
        except KeyNotFoundError:
            return None
        except Unreadable as fault:
            log.warning("cluster.unreadable", cause=str(fault))
            return None
        if place.key != key or place.revision <= self._released.get(key, 0):
            return None
        return place

    async def _counts(self, place: Place, *, is_doubted: bool) -> bool:
        """Whether its node still has the lease. One in doubt is watched until it is renewed, or ended."""
        if place.node == self.node:
            return self._is_mine(place)
        lease, _ = await self._lease_of(place.node)
        if lease != place.lease:
            return False
        if not is_doubted:
            return True
        return not await self._ended(place.node, place.lease)

    async def suspect(self, place: Place) -> None:
        with suppress(*_AWAY):
            await self._observe(place.node)

    async def _ended(self, node: str, lease: str) -> bool:
        """Waits until the node renews its lease (False), or ends a lease that it does not renew (True)."""
        clock = asyncio.get_running_loop().time
        first = await self._observe(node)
        while True:
            seen = await self._observe(node)
            if seen.lease != lease:
                return True
            if seen.revision != first.revision:
                return False
            if clock() - seen.since >= OVER_AFTER:
                try:
                    await self._leases.update(node, dump_lease(""), last=seen.revision)
                except KeyWrongLastSequenceError:
                    return False
                log.warning("places.node_gone", node=node)
                return True
            await asyncio.sleep(_LOOK_EVERY)

    async def _observe(self, node: str) -> "_Seen":
        """Its lease, and since when it is known to be unchanged. Many who ask at once look once."""
        clock = asyncio.get_running_loop().time
        async with self._looks[node]:
            before = self._seen.get(node)
            if before is None or clock() - before.looked_at >= _LOOK_EVERY:
                began = clock()
                lease, revision = await self._lease_of(node)
                is_same = before is not None and (before.lease, before.revision) == (lease, revision)
                # Known of from when it was read: it may have been renewed after that, never before.
                since = before.since if before is not None and is_same else clock()
                before = self._seen[node] = _Seen(lease, revision, since, began)
            return before

    async def _lease_of(self, node: str) -> tuple[str, int]:
        """Empty where it has none."""
        try:
            entry = await self._leases.get(node)
            return load_lease(entry.value), entry.revision
        except KeyNotFoundError:
            return "", 0

    async def _wait_for_old_leases(self) -> None:
        """Leases that NATS may have forgotten are over."""
        left = self._came_at + OVER_AFTER - asyncio.get_running_loop().time()
        if left > 0:
            await asyncio.sleep(left)

    async def _take(self, key: PlaceKey, before: Place | None) -> Place | None:
        """Where nobody holds it. None when somebody else was faster."""
        for node in preferred(key, await self.living()):
            lease = self.lease.id if node == self.node and self.lease.is_held else ""
            if node != self.node:
                lease, _ = await self._lease_of(node)
            if lease:
                return await self._write(
                    key, Place(connector=key[0], identity=key[1], node=node, lease=lease), before
                )
        raise _NobodyThere("no node has the role hold")

    async def _write(self, key: PlaceKey, place: Place, before: Place | None) -> Place | None:
        try:
            if before is None:
                revision = await self._places.create(_word(key), dump_place(place))
            else:
                revision = await self._places.update(_word(key), dump_place(place), last=before.revision)
        except KeyWrongLastSequenceError:
            return None
        if before is not None and before.node != place.node and place.node == self.node:
            self._taken_over += 1
        return replace(place, revision=revision)

    async def stop_taking(self) -> None:
        if not self._is_leaving:
            self._may_hold, self._is_leaving = False, True
            await self._leave()

    async def let_go(self, key: PlaceKey, to: str | None = None, *, is_moved: bool = False) -> None:
        place = self._known.get(key)
        if place is None or place.node != self.node:
            return
        del self._known[key]
        self._moved += is_moved
        self._released[key] = place.revision
        self._forget_some()
        try:
            lease = (await self._lease_of(to))[0] if to else ""
            if to and lease:
                await self._write(key, replace(place, node=to, lease=lease, is_pinned=True), place)
            else:
                await self._places.delete(_word(key), last=place.revision)
        except KeyWrongLastSequenceError:
            pass  # somebody else has it already
        except _AWAY as error:
            raise ClusterUnavailable(f"NATS does not answer: {str(error) or type(error).__name__}") from error

    def _forget_some(self) -> None:
        while len(self._released) > 10_000:
            del self._released[next(iter(self._released))]
        for key in [key for key, lock in self._locks.items() if not lock.locked()][:-10_000]:
            del self._locks[key]

    async def list(self) -> Sequence[Place]:
        found: list[Place] = []
        watcher = await self._places.watchall(ignore_deletes=True)
        try:
            while (entry := await heeded(watcher.updates(timeout=5))) is not None:
                with suppress(Unreadable):
                    found.append(replace(load_place(entry.value), revision=entry.revision))
        finally:
            await watcher.stop()
        leases = {node: (await self._lease_of(node))[0] for node in {one.node for one in found}}
        return [one for one in found if leases[one.node] == one.lease]

    async def living(self) -> Sequence[str]:
        others = [one.id for one in await self._nodes() if "hold" in one.roles and one.id != self.node]
        return [*others, self.node] if self._may_hold else others

    async def present(self) -> Sequence[str]:
        return [one.id for one in await self._nodes()]


@dataclass(frozen=True, slots=True)
class _Seen:
    """A lease as it was read, on the event loop's clock: `since` when, and when somebody looked last."""

    lease: str
    revision: int
    since: float
    looked_at: float


class _NobodyThere(Exception):
    """There is no node that could hold it."""


def _word(key: PlaceKey) -> str:
    """A key of the bucket: any words, in the letters that NATS takes."""
    return sha256("\0".join(key).encode()).hexdigest()[:40]
