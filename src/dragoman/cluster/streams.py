"""What one node streams to those of the others that follow it: pushed as it happens, and kept nowhere.

Nothing may depend on it: whoever follows sees a gap by the numbers of what came, and reads the store.
"""

from collections.abc import AsyncGenerator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Protocol

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
