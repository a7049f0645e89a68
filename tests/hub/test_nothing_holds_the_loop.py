"""However many tools come and are searched, others have their turn: the loop is never held for long.

What counts is the processor time that the loop's thread uses between two turns, so a busy machine does not.
"""

import asyncio
import gc
import sys
import time
from collections.abc import Generator
from pathlib import Path

import pytest

from dragoman import Hub, Settings
from patience import patient
from servers.loop_watch import watched

pytestmark = pytest.mark.anyio
LONGEST = 0.05
TOOLS = 2_000
MANY = Path(__file__).parents[1] / "servers" / "many_tools_stdio.py"


@pytest.fixture(autouse=True)
def _without_collections() -> Generator[None]:
    """A full collection holds every thread; the service freezes what is there when it starts."""
    gc.disable()
    yield
    gc.enable()


async def test_two_thousand_tools_that_come_and_are_searched_hold_nobody_up(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path / "home")) as hub:
        async with watched() as adding:
            await hub.connectors.add("many", command=sys.executable, args=[str(MANY), str(TOOLS)])
            await hub.connectors.refresh("many")
        async with watched() as searching:
            found = await hub.tools.search("send the order of department 7")
        assert found.hits
        assert len(hub.tools.list()) == TOOLS
    assert adding.longest < patient(LONGEST), f"adding held the loop for {adding.longest:.3f} s"
    assert searching.longest < patient(LONGEST), f"searching held the loop for {searching.longest:.3f} s"


async def test_a_loop_that_is_held_is_seen() -> None:
    async with watched() as watch:
        since = time.thread_time()
        while time.thread_time() - since < 2 * LONGEST:
            pass
        await asyncio.sleep(0.01)
    assert watch.longest > LONGEST
