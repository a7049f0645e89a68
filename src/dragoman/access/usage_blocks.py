"""What is counted in the store, taken ahead in blocks and spent in memory; places that are used again.

A block is at most what the last second used and a small part of what the limit leaves, so one process alone
decides exactly as the store would, and several together never pass a limit. Near a limit nothing is taken
ahead: every call is counted as it comes. What is not used goes back after a second, and at the end. A process
that is killed leaves its blocks counted and its places taken: the limit is then reached sooner, never later.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from time import monotonic
from weakref import WeakValueDictionary

from dragoman.background_tasks import Supervisor
from dragoman.errors import DragomanError
from dragoman.store.protocols import UsageStore
from dragoman.store.records import ConcurrencyLease, TakenUsage, UsageMeter
from dragoman.telemetry.logs import get_logger

_A_HAIR = 1e-9  # as the store: 0.1 three times is no more than 0.3
_SECOND = 1.0  # what is ahead lasts about as long, and what nobody used for so long goes back
_KEPT_PLACES = 8  # of so many places that a limit leaves, one may be kept for the next call
_REUSED = timedelta(seconds=10)  # longer than its first call needs it, a place is held for later ones
_LAST_WORDS = 3.0  # seconds that giving back at the end may take
_MOST_OWED = 1000
_LOOKS = 5  # at most, until nothing moved meanwhile

Subject = tuple[str, str]  # workspace and subject


@dataclass(slots=True)
class _Block:
    """What this process may still spend of one window, and how fast it does."""

    window: int
    limit: float
    unspent: float = 0.0
    used: float = 0.0  # since `since`
    since: float = 0.0
    pace: float = 0.0  # of the second before
    used_at: float = 0.0

    def has_room(self, meter: UsageMeter) -> bool:
        if self.window != meter.window or self.limit != meter.limit:
            return False
        return self.unspent >= meter.amount - _A_HAIR if meter.amount else self.unspent > _A_HAIR

    def spend(self, amount: float, now: float) -> float:
        """Returns what is lacking."""
        self.used += amount
        self.used_at = now
        lacking = max(0.0, amount - self.unspent)
        self.unspent = max(0.0, self.unspent - amount)
        return lacking if lacking > _A_HAIR else 0.0

    def ahead(self, now: float) -> float:
        """What the last second used."""
        if (passed := now - self.since) >= _SECOND:
            self.pace, self.used, self.since = self.used / passed, 0.0, now
        return max(self.pace, self.used)

    def is_fast(self, meter: UsageMeter, now: float) -> bool:
        """Something will be taken ahead, if the limit allows."""
        return self.ahead(now) >= meter.worth


@dataclass(slots=True)
class _Places:
    """Places of one subject that this process holds in the store and no call uses."""

    limit: int = 0
    taken: int = 0  # by everybody, when this process last looked
    free: list[ConcurrencyLease] = field(default_factory=list[ConcurrencyLease])
    used_at: float = 0.0

    def has_one(self, wanted: ConcurrencyLease) -> bool:
        free = self.free
        return bool(free) and self.limit == wanted.limit and free[-1].expires_at >= wanted.expires_at

    def pop(self, wanted: ConcurrencyLease) -> ConcurrencyLease | None:
        return self.free.pop() if self.has_one(wanted) else None

    def pop_old(self, wanted: ConcurrencyLease) -> list[ConcurrencyLease]:
        """Those that such a call cannot use."""
        if self.limit == wanted.limit:
            old = [place for place in self.free if place.expires_at < wanted.expires_at]
        else:
            old = [*self.free]
        self.free = [place for place in self.free if place not in old]
        self.taken = max(0, self.taken - len(old))
        return old

    @property
    def may_keep(self) -> bool:
        return len(self.free) < (self.limit - self.taken) // _KEPT_PLACES


class UsageBlocks:
    """Takes and settles as `UsageStore` does, which it asks where it has nothing left."""

    def __init__(self, rows: UsageStore, moment: Callable[[], float] = monotonic) -> None:
        """`moment` tells seconds that only go on."""
        self._rows = rows
        self._moment = moment
        self._blocks: dict[tuple[str, str, str], _Block] = {}  # workspace, subject, measure
        self._places: dict[Subject, _Places] = {}
        self._turns: WeakValueDictionary[Subject, asyncio.Lock] = WeakValueDictionary()
        self._owed: list[tuple[Sequence[UsageMeter], Sequence[ConcurrencyLease]]] = []
        self._something = asyncio.Event()
        self._moves = 0  # between here and the store

    @asynccontextmanager
    async def opened(self, supervisor: Supervisor) -> AsyncGenerator[None]:
        """What is not used goes back while the block runs, and all of it at its end."""
        async with supervisor.keeping(self._keep, "give back what was taken ahead of limits"):
            yield
        with suppress(DragomanError, TimeoutError):  # then the limits are reached a little sooner
            async with asyncio.timeout(_LAST_WORDS):
                await self.give_back()

    async def take(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | tuple[ConcurrencyLease, ...]:
        """The places that the call has now, or the first that exceeds its limit; then nothing is taken."""
        if (held := self._spent(meters, leases)) is not None:
            return held
        moment = self._moment()
        blocks = [self._blocks.get(_key(meter)) for meter in meters]
        pairs = zip(blocks, meters, strict=True)
        if not any(block is not None and block.is_fast(meter, moment) for block, meter in pairs):
            return await self._taken(meters, leases, now)
        async with self._turn(meters[0]):
            # Whoever was before may have taken enough for all that wait.
            if (held := self._spent(meters, leases)) is not None:
                return held
            return await self._taken(meters, leases, now)

    async def settle(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        """The call has been made: a store that fails now must not take its outcome along."""
        moment = self._moment()
        debts: list[UsageMeter] = []
        for meter in meters:
            block = self._blocks.get(_key(meter))
            if block is None or block.window != meter.window:
                debts.append(meter)
            elif lacking := block.spend(meter.amount, moment):
                debts.append(replace(meter, amount=lacking))
        gone = [lease for lease in leases if not self._kept(lease, moment)]
        if debts or gone:
            await self._settled(debts, gone)

    async def read(
        self, workspace: str, subject: str, now: datetime
    ) -> tuple[Mapping[tuple[str, int], float], int]:
        """What was used, by measure and window, and how many places: without what is only taken ahead."""
        looks = 0
        while True:
            moves, looks = self._moves, looks + 1
            counted = dict(await self._rows.read(workspace, subject))
            places = await self._rows.count_places(workspace, subject, now)
            if moves == self._moves or looks == _LOOKS:
                break
        for key, amount in self.unspent(workspace, subject).items():
            counted[key] = max(0.0, counted.get(key, 0.0) - amount)
        kept = self._places.get((workspace, subject))
        return counted, max(0, places - len(kept.free)) if kept else places

    def unspent(self, workspace: str, subject: str) -> Mapping[tuple[str, int], float]:
        """What the store has counted ahead, by measure and window."""
        return {
            (measure, block.window): block.unspent
            for (whose, what, measure), block in self._blocks.items()
            if (whose, what) == (workspace, subject)
        }

    async def give_back(self, unused_since: float | None = None) -> None:
        """What was not used since that moment; without one all of it."""
        meters: list[UsageMeter] = []
        for (workspace, subject, measure), block in [*self._blocks.items()]:
            if unused_since is None or block.used_at < unused_since:
                meters += _unspent(workspace, subject, measure, block)
                del self._blocks[workspace, subject, measure]
        leases: list[ConcurrencyLease] = []
        for key, places in [*self._places.items()]:
            if unused_since is None or places.used_at < unused_since:
                leases += places.free
                del self._places[key]
        await self._put_back(meters, leases)

    async def _put_back(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        """What is here no more. Where the store does not answer, it stays counted."""
        if not meters and not leases:
            return
        self._moves += 1
        try:
            if meters:
                await self._rows.give_back(meters)
            if leases:
                await self._rows.settle((), leases)
        finally:
            self._moves += 1

    async def _keep(self) -> None:
        while True:
            await self._something.wait()
            await asyncio.sleep(_SECOND)
            try:
                await self.give_back(self._moment() - _SECOND)
            except DragomanError as error:
                get_logger().warning("usage.not_given_back", cause=error.message)
            if not self._blocks and not self._places:
                self._something.clear()

    # Taking

    def _spent(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]
    ) -> tuple[ConcurrencyLease, ...] | None:
        """Without the store, if all of it is here."""
        blocks: list[_Block] = []
        for meter in meters:
            block = self._blocks.get((meter.workspace, meter.subject, meter.measure))
            if block is None or not block.has_room(meter):
                return None
            blocks.append(block)
        for lease in leases:
            places = self._places.get((lease.workspace, lease.subject))
            if places is None or not places.has_one(lease):
                return None
        moment = self._moment()
        for block, meter in zip(blocks, meters, strict=True):
            block.spend(meter.amount, moment)
        return tuple([self._places[lease.workspace, lease.subject].free.pop() for lease in leases])

    def _turn(self, meter: UsageMeter) -> asyncio.Lock:
        subject = (meter.workspace, meter.subject)
        turn = self._turns.get(subject)
        if turn is None:
            turn = self._turns[subject] = asyncio.Lock()
        return turn

    async def _taken(
        self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease], now: datetime
    ) -> UsageMeter | ConcurrencyLease | tuple[ConcurrencyLease, ...]:
        """What is not here is taken from the store; where it refuses, all is as before."""
        await self._put_back_old(meters, leases)
        moment = self._moment()
        blocks = [self._block(meter, moment) for meter in meters]
        parts = [min(block.unspent, meter.amount) for block, meter in zip(blocks, meters, strict=True)]
        lacking = [
            (meter, replace(meter, amount=meter.amount - part, ahead=block.ahead(moment)))
            for block, meter, part in zip(blocks, meters, parts, strict=True)
            if not block.has_room(meter)
        ]
        for block, part in zip(blocks, parts, strict=True):
            block.unspent -= part
        held = [self._places_of(lease).pop(lease) for lease in leases]
        anew = [lease for lease, place in zip(leases, held, strict=True) if place is None]
        anew = [replace(lease, expires_at=lease.expires_at + _REUSED) for lease in anew]
        self._moves += 1
        try:
            taken = await self._rows.take([asked for _, asked in lacking], anew, now)
        except BaseException as error:
            self._put_down(meters, parts, held)
            if isinstance(error, asyncio.CancelledError):
                # The place may have been taken while the caller went away.
                await self._settled((), anew)
            raise
        finally:
            self._moves += 1
        if not isinstance(taken, TakenUsage):
            self._put_down(meters, parts, held)
            return next((meter for meter, asked in lacking if asked is taken), taken)
        for block, meter in zip(blocks, meters, strict=True):
            block.used += meter.amount
        for (meter, _), ahead in zip(lacking, taken.ahead, strict=True):
            self._add(meter, ahead)
        for lease, count in zip(anew, taken.places, strict=True):
            places = self._places_of(lease)
            places.limit, places.taken = lease.limit, count
        fresh = iter(anew)
        return tuple([place or next(fresh) for place in held])

    def _put_down(
        self,
        meters: Sequence[UsageMeter],
        parts: Sequence[float],
        held: Sequence[ConcurrencyLease | None],
    ) -> None:
        """What was here before."""
        for meter, part in zip(meters, parts, strict=True):
            self._add(meter, part)
        for place in held:
            if place is not None:
                self._places_of(place).free.append(place)

    async def _put_back_old(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        """What was taken by another limit, and places that end too early for these calls."""
        old: list[UsageMeter] = []
        for meter in meters:
            block = self._blocks.get(_key(meter))
            if block is not None and block.window == meter.window and block.limit != meter.limit:
                old += _unspent(*_key(meter), block)
                block.unspent = 0.0
        gone = [place for lease in leases for place in self._places_of(lease).pop_old(lease)]
        await self._put_back(old, gone)

    def _block(self, meter: UsageMeter, moment: float) -> _Block:
        """Of the meter's window and limit; how fast it is spent is known from the one before."""
        block = self._blocks.get(_key(meter))
        if block is None:
            block = self._blocks[_key(meter)] = _Block(meter.window, meter.limit, since=moment)
            self._something.set()
        elif (block.window, block.limit) != (meter.window, meter.limit):
            block = self._blocks[_key(meter)] = replace(
                block, window=meter.window, limit=meter.limit, unspent=0.0
            )
        block.used_at = moment
        return block

    def _add(self, meter: UsageMeter, amount: float) -> None:
        """Unless time went on, or the limit was changed, meanwhile: then it stays counted."""
        moment = self._moment()
        block = self._blocks.get(_key(meter)) or self._block(meter, moment)
        if (block.window, block.limit) == (meter.window, meter.limit):
            block.unspent += amount

    def _places_of(self, lease: ConcurrencyLease) -> _Places:
        places = self._places.get((lease.workspace, lease.subject))
        if places is None:
            places = self._places[lease.workspace, lease.subject] = _Places(limit=lease.limit)
            self._something.set()
        return places

    # Settling

    def _kept(self, lease: ConcurrencyLease, moment: float) -> bool:
        places = self._places_of(lease)
        places.used_at = moment
        if lease.limit == places.limit and places.may_keep:
            places.free.append(lease)
            return True
        places.taken = max(0, places.taken - 1)
        return False

    async def _settled(self, meters: Sequence[UsageMeter], leases: Sequence[ConcurrencyLease]) -> None:
        owed, self._owed = [*self._owed, (meters, leases)], []
        try:
            await self._rows.settle(
                [one for added, _ in owed for one in added], [one for _, held in owed for one in held]
            )
        except DragomanError as error:
            # Places free themselves in time; what was used is added by the next call that ends.
            self._owed = [*owed, *self._owed][-_MOST_OWED:]
            get_logger().warning("usage.delayed", cause=error.message, waiting=len(self._owed))


def _key(meter: UsageMeter) -> tuple[str, str, str]:
    return (meter.workspace, meter.subject, meter.measure)


def _unspent(workspace: str, subject: str, measure: str, block: _Block) -> list[UsageMeter]:
    if block.unspent <= _A_HAIR:
        return []
    return [
        UsageMeter(
            workspace=workspace,
            subject=subject,
            measure=measure,
            window=block.window,
            limit=block.limit,
            amount=block.unspent,
        )
    ]
