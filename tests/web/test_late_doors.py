"""Doors that are made with the first request for them."""

import asyncio
import sys
from importlib import invalidate_caches
from pathlib import Path

import pytest
from starlette.responses import Response
from starlette.types import Message, Send

from api.live import open_service
from dragoman.server import Doors, LateDoor
from patience import deadline
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio


async def test_all_who_come_first_find_one_door(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        doors = Doors(hub)
        opened = await asyncio.gather(
            *(late.opened() for late in (doors.console, doors.mcp) for _ in range(9))
        )
        assert len({id(door) for door in opened}) == 2


async def test_a_stream_of_a_door_that_is_made_while_the_service_ends_ends(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        live.doors.stop()
        signed_in = Response()
        await live.doors.sessions.begin(signed_in, live.token)
        cookie = signed_in.headers["set-cookie"].partition(";")[0]
        async with deadline(20):
            reply = await live.ask("GET", "/log/events", Cookie=cookie)
        assert (reply.status, reply.headers["content-type"][:17]) == (200, "text/event-stream")


async def test_a_door_that_cannot_be_loaded_says_so_and_is_tried_again(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        module, console = tmp_path / "later_door.py", Doors(hub).console
        late = LateDoor("later_door", console._make)
        for _ in range(2):
            sent: list[Message] = []
            await late({"type": "http", "path": "/sign-in", "headers": []}, _nothing, _into(sent))
            assert sent[0]["status"] == 500
        module.touch()
        sys.path.append(str(tmp_path))
        invalidate_caches()
        try:
            assert await late.opened() is await late.opened()
        finally:
            sys.path.remove(str(tmp_path))


async def _nothing() -> Message:
    return {"type": "http.request"}


def _into(sent: list[Message]) -> Send:
    async def send(message: Message) -> None:
        sent.append(message)

    return send
