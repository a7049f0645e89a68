"""A caller who goes away in the middle leaves nothing behind: no thread, no lock, no open connection."""

import asyncio
import gc
import threading

import pytest

from dragoman.store import open_store
from patience import deadline

pytestmark = pytest.mark.anyio


async def test_cancelled_callers_leave_no_thread_and_no_lock(sqlite_url: str) -> None:
    before = threading.active_count()
    async with open_store(sqlite_url) as store:
        for steps in range(40):
            callers = [asyncio.ensure_future(store.connectors.list("local")) for _ in range(5)]
            for _ in range(steps):
                await asyncio.sleep(0)
            for caller in callers:
                caller.cancel()
            await asyncio.gather(*callers, return_exceptions=True)
        async with deadline(5):
            assert await store.connectors.list("local") == []
    gc.collect()
    assert threading.active_count() <= before + 1
