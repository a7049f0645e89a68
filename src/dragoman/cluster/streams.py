"""What one node streams to those of the others that follow it: pushed as it happens, and kept nowhere.

Nothing may depend on it: whoever follows sees a gap by the numbers of what came, and reads the store.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Any, Protocol

LARGEST = 512 * 1024
"""Bytes of a message; NATS takes a megabyte. What is larger is not pushed."""


class Streams(Protocol):
    """Streams by name, each from whoever pushes to the nodes that follow it now."""

    def push(self, stream: str, message: bytes) -> None:
        """To those that follow. Never waits; nothing is kept while others cannot be reached."""
        ...

    def follow(self, stream: str, heard: Callable[[bytes], None]) -> AbstractAsyncContextManager[None]:
        """`heard` is called with each message that is pushed after the block has begun; it must not raise."""
        ...


class NoStreams:
    """Fills `Streams` for one process: nobody else follows."""

    def push(self, stream: str, message: bytes) -> None: ...

    @asynccontextmanager
    async def follow(self, stream: str, heard: Callable[[bytes], None]) -> AsyncGenerator[None]:
        yield


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
    ) -> None:
        self._client = client
        self._prefix = f"{prefix}.stream"
        self._send = send
        self._faults = faults

    def push(self, stream: str, message: bytes) -> None:
        if len(message) <= LARGEST and self._client.is_connected:
            self._send(self._subject(stream), message)

    @asynccontextmanager
    async def follow(self, stream: str, heard: Callable[[bytes], None]) -> AsyncGenerator[None]:
        async def received(message: Any) -> None:
            heard(message.data)

        subscription = None
        # While NATS is away nothing is heard, as whoever follows knows: it asks the store.
        with suppress(*self._faults):
            subscription = await self._client.subscribe(self._subject(stream), cb=received)
            await self._client.flush(timeout=2)  # the server knows of it: from now on nothing is missed
        try:
            yield
        finally:
            if subscription is not None:
                with suppress(*self._faults):
                    await subscription.unsubscribe()

    def _subject(self, stream: str) -> str:
        assert stream.replace("_", "").replace("-", "").isalnum(), "a stream's name is one word of a subject"
        return f"{self._prefix}.{stream}"
