"""Waiting runs handed out by NATS: a work queue of JetStream that every node pulls from while it has room.

A run is in the queue at most once. The queue is in NATS's memory and may be lost: what waits is found in the
store and put in again. What a node pulled and did not claim within a moment goes to another.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Sequence
from contextlib import asynccontextmanager, suppress
from typing import Any

from nats.errors import Error
from nats.js.api import (
    AckPolicy,
    ConsumerConfig,
    DiscardPolicy,
    RetentionPolicy,
    StorageType,
    StreamConfig,
)
from nats.js.errors import APIError

from dragoman.cluster.messages import Unreadable, dump_run, load_run
from dragoman.cluster.nats_connection import heeded
from dragoman.cluster.work import RunKey, SoughtWork
from dragoman.telemetry.logs import get_logger

_CONSUMER = "workers"
_CLAIM_WITHIN = 1.0  # seconds after which a run that was pulled and not claimed goes to another node
_HEARD_WITHIN = 1.0
_PULL = 2.0  # seconds that one request for work waits
_OLDEST = 600.0  # seconds that an entry may wait; what is in the store is put in again
_AT_ONCE = 20
_REPLICAS = (3, 1)  # as many as the servers can have


class NatsWork:
    """Fills `Work`. While NATS is away, or the queue not made, the node looks into the store."""

    def __init__(self, client: Any, prefix: str, push: Callable[[str, bytes], None]) -> None:
        """`push` sends a message in a moment; nobody waits for it."""
        self._client = client
        self._push = push
        self._subject = f"{prefix}.work"
        self._stream = f"{prefix}_work"
        self._sought = SoughtWork()
        self._queue: Any = None
        self.is_made = False

    @property
    def is_handed_out(self) -> bool:
        return self._client.is_connected and self.is_made

    def put(self, runs: Iterable[RunKey] = ()) -> None:
        for run in runs:
            # One that is in the queue already is refused there.
            self._push(f"{self._subject}.{_token(run)}", dump_run(run))
        self._sought.put()

    @asynccontextmanager
    async def take(self, most: int) -> AsyncGenerator[Sequence[RunKey] | None]:
        pulled = await self._pull(min(most, _AT_ONCE))
        if pulled is None:
            async with self._sought.take(most) as runs:
                yield runs
            return
        try:
            yield [run for message in pulled if (run := _run_of(message))]
        except BaseException:
            with suppress(Error, OSError):
                for message in pulled:
                    await message.nak()
            raise
        # Waited for: until NATS has heard it, one that is put in again is refused.
        with suppress(Error, OSError, TimeoutError):
            await asyncio.gather(*(message.ack_sync(_HEARD_WITHIN) for message in pulled))

    async def open(self) -> None:
        """The queue is made where it is not: NATS may have forgotten it."""
        self.is_made = False
        jetstream = self._client.jetstream(timeout=5)
        await self._make_stream(jetstream)
        await jetstream.add_consumer(
            self._stream,
            ConsumerConfig(
                durable_name=_CONSUMER,
                ack_policy=AckPolicy.EXPLICIT,
                ack_wait=_CLAIM_WITHIN,
                max_ack_pending=10_000,
                mem_storage=True,
            ),
        )
        if self._queue is None:
            self._queue = await jetstream.pull_subscribe_bind(_CONSUMER, self._stream)
        self.is_made = True

    async def _make_stream(self, jetstream: Any) -> None:
        for replicas in _REPLICAS:
            try:
                await jetstream.add_stream(
                    StreamConfig(
                        name=self._stream,
                        subjects=[f"{self._subject}.*"],
                        retention=RetentionPolicy.WORK_QUEUE,
                        storage=StorageType.MEMORY,
                        discard=DiscardPolicy.NEW,
                        discard_new_per_subject=True,
                        max_msgs_per_subject=1,
                        max_age=_OLDEST,
                        num_replicas=replicas,
                    )
                )
                return
            except APIError:
                # One of another version, or with other replicas, serves as well.
                with suppress(APIError):
                    await jetstream.stream_info(self._stream)
                    return
                if replicas == _REPLICAS[-1]:
                    raise

    async def _pull(self, most: int) -> list[Any] | None:
        """None while there is no queue."""
        try:
            if not self._client.is_connected:
                return None
            if not self.is_made:
                await self.open()
            pulled = [*await heeded(self._queue.fetch(1, timeout=_PULL))]
            more = min(most - 1, pulled[0].metadata.num_pending)
            if more > 0:
                with suppress(TimeoutError):
                    pulled += await heeded(self._queue.fetch(more, timeout=0.2))
        except TimeoutError:
            return []
        except (Error, OSError) as error:
            get_logger().warning("cluster.no_work_queue", cause=str(error))
            self.is_made = False
            return None
        return pulled


def _token(run: RunKey) -> str:
    """A name that may be part of a subject."""
    return "".join(letter if letter.isalnum() or letter in "_-" else "-" for letter in run[1])


def _run_of(message: Any) -> RunKey | None:
    try:
        return load_run(message.data)
    except Unreadable as fault:
        get_logger().warning("cluster.unreadable", cause=str(fault))
        return None
