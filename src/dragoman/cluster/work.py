"""Which node executes a run that waits. Its claim in the store decides; here is said who tries, and when."""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from typing import Protocol

RunKey = tuple[str, str]
"""Workspace and id of a root run."""

LOOK_EVERY = 1.0  # seconds until a process sees what waits in the store, where nobody hands it out


class Work(Protocol):
    """Runs that wait for a node. Told twice, late or not at all, it does no harm: the store has them."""

    @property
    def is_handed_out(self) -> bool:
        """Whether each waiting run is handed to one node now. While not, every node looks into the store."""
        ...

    def put(self, runs: Iterable[RunKey] = ()) -> None:
        """These wait, or something does. Never waits."""
        ...

    def take(self, most: int) -> AbstractAsyncContextManager[Sequence[RunKey] | None]:
        """Waits a while for runs that this node is to claim within the block; None: whatever the store has.

        They are handed to another node when the block ends with an error, or when the process dies in it.
        """
        ...


class SoughtWork:
    """Fills `Work` by looking into the store: at once for what is put here, else now and then."""

    is_handed_out = False

    def __init__(self) -> None:
        self._bell = asyncio.Event()
        self._bell.set()

    def put(self, runs: Iterable[RunKey] = ()) -> None:
        self._bell.set()

    @asynccontextmanager
    async def take(self, most: int) -> AsyncGenerator[Sequence[RunKey] | None]:
        with suppress(TimeoutError):
            async with asyncio.timeout(LOOK_EVERY):
                await self._bell.wait()
        self._bell.clear()
        try:
            yield None
        except BaseException:
            self._bell.set()
            raise
