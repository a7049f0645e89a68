"""What a server tells of a call before its answer reaches the caller before the answer."""

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest

from dragoman.connections.inbound_rate import WireLimits
from dragoman.connections.wire import Wire
from dragoman.connector import Configuration
from patience import deadline
from servers import protocol

pytestmark = pytest.mark.anyio


class Hasty(Wire):
    """A wire on which three steps of progress and the answer arrive in one piece."""

    async def request(
        self,
        method: str,
        params: Mapping[str, Any] | None,
        headers: Mapping[str, str] | None = None,
        request_id: Any = None,
    ) -> dict[str, Any]:
        for step in range(1, 4):
            self._receive(protocol.progress(request_id, step, 3))
        return {"answer": True}

    async def _listen(self) -> None:
        await asyncio.Event().wait()


async def nobody(*_: Any) -> Any:
    raise AssertionError("nothing else comes in")


async def test_progress_that_arrives_with_the_answer_is_told_before_it() -> None:
    wire, told = Hasty(WireLimits.of(Configuration(command="none"))), list[float]()

    async def slowly(progress: float, total: float | None, message: str | None) -> None:
        for _ in range(10):  # as a door does that writes to a slow client
            await asyncio.sleep(0)
        told.append(progress)

    running = asyncio.create_task(wire.run(nobody, nobody))
    await asyncio.sleep(0)
    async with deadline(5):
        assert await wire.send_raw_request("tools/call", {}, {"on_progress": slowly}) == {"answer": True}
    assert told == [1, 2, 3]
    running.cancel()
    await asyncio.wait([running])
