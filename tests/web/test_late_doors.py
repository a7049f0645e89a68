"""Doors that are made with the first request for them."""

import asyncio
from pathlib import Path

import pytest
from starlette.responses import Response

from api.live import open_service
from dragoman.server import Doors
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
