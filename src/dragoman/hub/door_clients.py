"""What doors keep of their clients for whichever process they come to next: sessions, and what is taken once.

A value that is taken once is found by the words of its address, of which the store has only a hash, and is
sealed there: a link that signs in, a request that waits for its client to come back. One that is sent to
whoever awaits it, in this process or another, is a message; others hear of it by the feed of changes.
"""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from datetime import datetime, timedelta
from hashlib import blake2b

import orjson

from dragoman.cluster import Cluster, Streams
from dragoman.scope import Caller
from dragoman.store import Store
from dragoman.store.protocols import ClientStore
from dragoman.store.records import OneTimeValue
from dragoman.vault import Vault

SESSION_IDLE = timedelta(minutes=30)
_MESSAGE_LASTS = 300.0
_UPKEEP = 30.0
_SEALED = "one-time value"
_TASK = "server task"
Words = Sequence[str]
Received = Callable[[bytes], None]


class DoorClients:
    def __init__(self, store: Store, vault: Vault, cluster: Cluster) -> None:
        self._store = store
        self._vault = vault
        self._cluster = cluster
        self._expected: dict[str, tuple[str, Received]] = {}
        self._awake: defaultdict[str, list[Callable[[], None]]] = defaultdict(list)
        self._on_session: list[Callable[[str], Awaitable[None]]] = []
        self._upkeep: list[Callable[[], Awaitable[None]]] = []

    # The processes

    @property
    def node(self) -> str:
        """This process."""
        return self._cluster.node.id

    def now(self) -> datetime:
        """By the clock that all processes share."""
        return self._store.clock.now()

    @property
    def has_others(self) -> bool:
        """Whether clients may have met other processes since their last request to this one."""
        return self._cluster.places is not None

    def is_gone(self, node: str) -> bool:
        """Whether another process is known to have ended; False where nobody can tell."""
        return not self._cluster.may_live(node)

    @property
    def streams(self) -> Streams:
        """For what may be lost on its way to another process."""
        return self._cluster.streams

    # Sessions

    @property
    def rows(self) -> ClientStore:
        """Sessions as the store has them."""
        return self._store.clients

    def attach(self, told: Callable[[str], Awaitable[None]], upkeep: Callable[[], Awaitable[None]]) -> None:
        """A door hears of sessions that others changed or removed, and is asked now and then for its own."""
        self._on_session.append(told)
        self._upkeep.append(upkeep)

    async def told_session(self, session: str) -> None:
        for told in self._on_session:
            await told(session)

    async def keep(self) -> None:
        while True:
            await asyncio.sleep(_UPKEEP)
            for upkeep in self._upkeep:
                await upkeep()

    # What is taken once

    async def put(
        self,
        kind: str,
        words: Words,
        value: bytes,
        caller: Caller,
        *,
        lasts: float,
        most: int | None = None,
        tells: bool = False,
    ) -> bool:
        """False when the caller has `most` of the kind already."""
        now = self._store.clock.now()
        row = OneTimeValue(
            id=_address(kind, words),
            kind=kind,
            workspace=caller.workspace,
            user=caller.user,
            sealed=self._vault.seal_bytes(value, _SEALED, kind),
            expires_at=now + timedelta(seconds=lasts),
        )
        return await self.rows.put_value(row, now, most=most, tells=tells)

    async def find(self, kind: str, words: Words) -> bytes | None:
        """What stays until it is taken. None for what is too old, or was never there."""
        found = await self.rows.find_value(_address(kind, words), self._store.clock.now())
        return None if found is None else self._vault.open_bytes(found.sealed, _SEALED, kind)

    async def list(self, kind: str, caller: Caller, words_of: Callable[[bytes], Words]) -> Sequence[bytes]:
        """What the caller has of a kind and can be found by the words that it is known by itself."""
        found = await self.rows.list_values(kind, caller.workspace, caller.user, self._store.clock.now())
        opened = ((one.id, self._vault.open_bytes(one.sealed, _SEALED, kind)) for one in found)
        return [value for address, value in opened if address == _address(kind, words_of(value))]

    async def take(self, kind: str, words: Words) -> bytes | None:
        """None for what is used, too old, or was never there."""
        return await self._taken(_address(kind, words), kind)

    async def has(self, kind: str, words: Words) -> bool:
        """Whether it is there still; it stays."""
        return await self.rows.has_value(_address(kind, words), self._store.clock.now())

    async def send(self, kind: str, words: Words, message: bytes, caller: Caller) -> None:
        """To whoever expects it, in whichever process. It is kept for a while, also where nobody does."""
        expected = self._expected.get(_address(kind, words))
        if expected is not None:
            expected[1](message)
        else:
            await self.put(kind, words, message, caller, lasts=_MESSAGE_LASTS, tells=True)

    def expect(self, kind: str, words: Words, received: Received) -> Callable[[], None]:
        """`received` is called with a message that is sent from now on, until what is returned is called."""
        address = _address(kind, words)
        self._expected[address] = (kind, received)
        return lambda: self._expected.pop(address, None) and None

    async def told_value(self, address: str) -> None:
        """Somebody has sent it."""
        if expected := self._expected.get(address):
            kind, received = expected
            if (message := await self._taken(address, kind)) is not None:
                received(message)

    async def told_all(self) -> None:
        """Messages may have been missed."""
        for address in [*self._expected]:
            await self.told_value(address)

    # What somebody may want to look at again

    def wake(self, kind: str, words: Words) -> None:
        """Whoever watches this looks again. It may be lost on its way to another process."""
        address = _address(kind, words)
        for woken in [*self._awake.get(address, ())]:
            woken()
        self.streams.push(address, b"")

    @asynccontextmanager
    async def watching(self, kind: str, words: Words, woken: Callable[[], None]) -> AsyncGenerator[None]:
        address = _address(kind, words)
        self._awake[address].append(woken)
        try:
            async with self.streams.follow(address, lambda _: woken()):
                yield
        finally:
            self._awake[address].remove(woken)
            if not self._awake[address]:
                del self._awake[address]

    async def tidy(self, now: datetime) -> None:
        await self.rows.forget_sessions(now - SESSION_IDLE)

    async def _taken(self, address: str, kind: str) -> bytes | None:
        found = await self.rows.take_value(address, self._store.clock.now())
        return None if found is None else self._vault.open_bytes(found.sealed, _SEALED, kind)


class ServerTaskRecords:
    """Fills `TaskRecords`: what servers work on for calls that outlive this process, by the call's name."""

    def __init__(self, clients: DoorClients) -> None:
        self._clients = clients

    async def find(self, name: str) -> bytes | None:
        return await self._clients.find(_TASK, (name,))

    async def keep(self, name: str, value: bytes, caller: Caller, lasts: float) -> None:
        await self._clients.put(_TASK, (name,), value, caller, lasts=lasts)

    async def forget(self, name: str) -> None:
        await self._clients.take(_TASK, (name,))


def _address(kind: str, words: Words) -> str:
    return blake2b(orjson.dumps([kind, *words]), digest_size=20).hexdigest()
