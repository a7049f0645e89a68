"""However many tools come and are searched, others have their turn: the loop is never held for long.

What counts is the processor time that the loop's thread uses between two turns, so a busy machine does not.
"""

import asyncio
import gc
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Hub, Settings
from patience import patient

pytestmark = pytest.mark.anyio
LONGEST = 0.05
TOOLS = 2_000
SERVER = """
import json, sys
text = "Reads record {0}, checks its invoice and sends the order of department {0}"
schema = {"type": "object", "properties": {"text": {"type": "string", "description": "what to look for"}}}
tools = [{"name": f"tool_{n}", "description": text.format(n), "inputSchema": schema} for n in range(COUNT)]
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked:
        continue
    start = int((asked.get("params") or {}).get("cursor") or 0)
    page = {"tools": tools[start : start + 200]}
    if start + 200 < COUNT:
        page["nextCursor"] = str(start + 200)
    answers = {
        "initialize": {
            "protocolVersion": "2025-11-25",
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "many", "version": "1"},
        },
        "tools/list": page,
        "ping": {},
    }
    told = answers.get(asked["method"])
    answer = {"result": told} if told is not None else {"error": {"code": -32601, "message": "unknown"}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}), flush=True)
"""


@pytest.fixture(autouse=True)
def _without_collections() -> Generator[None]:
    """A full collection holds every thread; the service freezes what is there when it starts."""
    gc.disable()
    yield
    gc.enable()


class LoopWatch:
    """The longest that the loop was held, in seconds of processor time."""

    def __init__(self) -> None:
        self.longest = 0.0

    async def watch(self) -> None:
        while True:
            since = time.thread_time()
            await asyncio.sleep(0.001)
            self.longest = max(self.longest, time.thread_time() - since)


@asynccontextmanager
async def watched() -> AsyncGenerator[LoopWatch]:
    watch = LoopWatch()
    watching = asyncio.ensure_future(watch.watch())
    await asyncio.sleep(0.01)
    watch.longest = 0.0
    try:
        yield watch
    finally:
        watching.cancel()


async def test_two_thousand_tools_that_come_and_are_searched_hold_nobody_up(tmp_path: Path) -> None:
    program = tmp_path / "many.py"
    program.write_text(SERVER.replace("COUNT", str(TOOLS)))
    async with Hub(Settings(home=tmp_path / "home")) as hub:
        async with watched() as adding:
            await hub.connectors.add("many", command=sys.executable, args=[str(program)])
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
