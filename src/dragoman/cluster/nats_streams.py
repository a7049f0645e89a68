"""Streams over NATS, sealed."""

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from typing import Any

from dragoman.cluster.messages import passed_over
from dragoman.cluster.seals import MessageSeal
from dragoman.cluster.streams import LARGEST


class NatsStreams:
    """Fills `Streams`. A stream is a subject, subscribed to only while somebody follows.

    `client` is of NATS, whose types are open; `send` publishes soon, `faults` are those of NATS.
    """

    def __init__(
        self,
        client: Any,
        prefix: str,
        send: Callable[[str, bytes], None],
        faults: tuple[type[Exception], ...],
        seal: MessageSeal,
    ) -> None:
        self._client = client
        self._prefix = f"{prefix}.stream"
        self._send = send
        self._faults = faults
        self._seal = seal

    def push(self, stream: str, message: bytes) -> None:
        if len(message) <= LARGEST and self._client.is_connected:
            subject = self._subject(stream)
            self._send(subject, self._seal.seal(subject, message))

    @asynccontextmanager
    async def follow(self, stream: str, heard: Callable[[bytes], None]) -> AsyncGenerator[None]:
        async def received(message: Any) -> None:
            with passed_over():
                heard(self._seal.open(message.subject, message.data).message)

        subscription = None
        try:
            # While NATS is away nothing is heard, as whoever follows knows: it asks the store.
            with suppress(*self._faults):
                subscription = await self._client.subscribe(self._subject(stream), cb=received)
                await self._client.flush(timeout=2)  # the server knows of it: from now on nothing is missed
            yield
        finally:
            if subscription is not None:
                with suppress(*self._faults):
                    await subscription.unsubscribe()

    def _subject(self, stream: str) -> str:
        assert stream.replace("_", "").replace("-", "").isalnum(), "a stream's name is one word of a subject"
        return f"{self._prefix}.{stream}"
