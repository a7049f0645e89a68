"""Streams of runs and threads: complete, resumable, and gone with their reader."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from live import Live
from scripted import open_conversations

from servers.hubs import until

pytestmark = pytest.mark.anyio


@dataclass(frozen=True)
class Frame:
    id: str
    kind: str
    value: Any


class Reader:
    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self.response = response

    async def next(self) -> Frame | None:
        """None at the end of the stream; comments are passed over."""
        while True:
            lines: list[str] = []
            while line := (await self.response.content.readline()).decode():
                if line == "\n":
                    break
                lines.append(line.rstrip("\n"))
            if not lines:
                return None
            if not lines[0].startswith(":"):
                mark, kind, data = lines
                return Frame(mark[4:], kind[7:], json.loads(data[6:]))

    async def rest(self) -> list[Frame]:
        frames: list[Frame] = []
        while frame := await self.next():
            frames.append(frame)
        return frames


@asynccontextmanager
async def reading(live: Live, path: str, **headers: str) -> AsyncGenerator[Reader]:
    headers = {"Authorization": f"Bearer {live.token}", **headers}
    async with asyncio.timeout(20), live.session.get(live.url + path, headers=headers) as response:
        assert response.status == 200, await response.read()
        assert response.headers["Content-Type"].startswith("text/event-stream")
        yield Reader(response)


async def post(live: Live, text: str, thread: str | None = None) -> Any:
    path = f"/api/threads/{thread}/messages" if thread else "/api/messages"
    return (await live.ask("POST", path, {"text": text})).value["run"]


async def test_a_run_is_told_whole_from_any_event_on(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, script):
        run = await post(live, "sum while you hold")
        path = f"/api/runs/{run['id']}/events"
        async with reading(live, path) as reader:
            first = await reader.next()
            assert first is not None
            script.held.set()
            frames = [first, *await reader.rest()]
        numbers = [int(frame.id) for frame in frames]
        assert numbers == list(range(1, len(frames) + 1)), "nothing lost, nothing twice"
        assert [frame.value["number"] for frame in frames] == numbers
        kinds = [frame.kind for frame in frames]
        assert kinds[-1] == "run.finished"
        assert kinds.count("call.started") == kinds.count("call.finished") == 3
        assert frames[-1].value["data"]["answer"].endswith("[3, 7, 10]")
        for place in (1, 5, len(frames) - 1):
            async with reading(live, path, **{"Last-Event-ID": str(place)}) as reader:
                assert await reader.rest() == frames[place:]
            async with reading(live, f"{path}?after={place}") as reader:
                assert await reader.rest() == frames[place:]
        over = await live.ask("GET", path, **{"Last-Event-ID": str(len(frames))})
        assert over.status == 204, "who has heard all need not come again"


async def test_a_stream_that_breaks_while_it_happens_is_resumed(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, script):
        run = await post(live, "sum while you hold")
        path, heard = f"/api/runs/{run['id']}/events", list[Frame]()
        while not heard or heard[-1].kind != "run.finished":
            last = heard[-1].id if heard else "0"
            async with reading(live, path, **{"Last-Event-ID": last}) as reader:
                for _ in range(3):
                    if frame := await reader.next():
                        heard.append(frame)
                    script.held.set()
                    if frame is None or frame.kind == "run.finished":
                        break
        async with reading(live, path) as reader:
            assert await reader.rest() == heard


async def test_a_thread_is_followed_over_many_runs_and_resumed(tmp_path: Path, database_url: str) -> None:
    async with open_conversations(tmp_path, database_url=database_url) as (live, _):
        thread = (await live.ask("POST", "/api/threads", {"title": "t"})).value["id"]
        path = f"/api/threads/{thread}/events"
        heard: list[Frame] = []
        async with reading(live, path) as reader:
            assert await reader.response.content.readline() == b": listening\n"
            runs = [await post(live, f"message {number}", thread) for number in range(3)]
            while sum(frame.kind == "run.finished" for frame in heard) < 3:
                frame = await reader.next()
                assert frame is not None
                heard.append(frame)
        ids = [run["id"] for run in runs]
        assert list(dict.fromkeys(frame.value["root"] for frame in heard)) == ids
        assert all(frame.id == f"{frame.value['root']}:{frame.value['number']}" for frame in heard)
        for place in (0, 3, len(heard) // 2, len(heard) - 2):
            async with reading(live, path, **{"Last-Event-ID": heard[place].id}) as reader:
                again = [await reader.next() for _ in heard[place + 1 :]]
            assert again == heard[place + 1 :]
        async with reading(live, f"{path}?after={ids[1]}:0") as reader:
            frame = await reader.next()
            assert frame is not None
            assert frame.id == f"{ids[1]}:1"


async def test_a_reader_that_leaves_frees_everything(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, script):
        run = await post(live, "hold")
        bells = live.hub.runs._streams._bells
        for path in (f"/api/runs/{run['id']}/events", f"/api/threads/{run['thread']}/events"):
            async with reading(live, path) as reader:
                await reader.next()
                assert bells
                # A connection that is closed, not one that goes back to the pool.
                reader.response.close()
            await until(lambda: not bells)
        script.held.set()


async def test_a_key_that_is_revoked_ends_its_streams(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.api.events.LOOK_EVERY", 0.05)
    async with open_conversations(tmp_path) as (live, script):
        key = (await live.ask("POST", "/api/keys", {"name": "k", "scopes": ["read"]})).value
        run = await post(live, "hold")
        word = f"Bearer {key['key']}"
        path = f"/api/runs/{run['id']}/events"
        async with (
            reading(live, path, Authorization=word) as run_reader,
            reading(live, "/api/events", Authorization=word) as hub_reader,
        ):
            assert await run_reader.next()
            await live.ask("DELETE", f"/api/keys/{key['id']}")
            await run_reader.rest()
            await hub_reader.response.read()
        assert (await live.ask("GET", path, Authorization=word)).status == 401
        script.held.set()


async def test_streams_end_when_the_service_stops(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        run = await post(live, "hold")
        headers = {"Authorization": f"Bearer {live.token}"}
        response = await live.session.get(f"{live.url}/api/runs/{run['id']}/events", headers=headers)
        reader = Reader(response)
        assert await reader.next()
        waiting = asyncio.ensure_future(live.ask("POST", "/api/messages?wait=true", {"text": "hold"}))
        await until(lambda: len(live.hub.runs._streams._bells) == 2)
    async with asyncio.timeout(5):
        try:
            await reader.rest()
        except aiohttp.ClientError:
            pass  # the session is closed by now
        await asyncio.gather(waiting, return_exceptions=True)
