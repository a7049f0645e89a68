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

from patience import deadline
from servers.hubs import runtime_of, until

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
        """None at the end of the stream; comments, and when to come back, are passed over."""
        while text := (await self.response.content.readuntil(b"\n\n")).decode():
            if not text.startswith((":", "retry:")):
                mark, kind, data = text.strip().split("\n")
                return Frame(mark[4:], kind[7:], json.loads(data[6:]))
        return None

    async def rest(self) -> list[Frame]:
        frames: list[Frame] = []
        while frame := await self.next():
            frames.append(frame)
        return frames


@asynccontextmanager
async def reading(live: Live, path: str, **headers: str) -> AsyncGenerator[Reader]:
    headers = {"Authorization": f"Bearer {live.token}", **headers}
    async with deadline(20), live.session.get(live.url + path, headers=headers) as response:
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
        # Pieces of text are joined where they came at once: there may be gaps.
        assert numbers == sorted(set(numbers)) == [frame.value["number"] for frame in frames]
        kinds = [frame.kind for frame in frames]
        assert kinds[-1] == "run.finished"
        assert kinds.count("call.started") == kinds.count("call.finished") == 3
        assert frames[-1].value["data"]["answer"].endswith("[3, 7, 10]")
        for place in (0, 5, len(frames) - 2):
            last = frames[place].id
            async with reading(live, path, **{"Last-Event-ID": last}) as reader:
                assert await reader.rest() == frames[place + 1 :], "nothing lost, nothing twice"
            async with reading(live, f"{path}?after={last}") as reader:
                assert await reader.rest() == frames[place + 1 :]
        over = await live.ask("GET", path, **{"Last-Event-ID": frames[-1].id})
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
            assert await reader.response.content.readuntil(b"\n\n") == b": listening\n\n"
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
        bells = runtime_of(live.hub).engine.streams._bells
        for path in (f"/api/runs/{run['id']}/events", f"/api/threads/{run['thread']}/events"):
            async with reading(live, path) as reader:
                await reader.next()
                assert bells
                # A connection that is closed, not one that goes back to the pool.
                reader.response.close()
            await until(lambda: not bells)
        script.held.set()


async def test_streams_and_those_who_wait_end_when_the_service_stops(tmp_path: Path) -> None:
    async with open_conversations(tmp_path) as (live, _):
        run = await post(live, "hold")
        async with reading(live, f"/api/runs/{run['id']}/events") as reader, asyncio.TaskGroup() as tasks:
            assert await reader.next()
            waiting = tasks.create_task(live.ask("POST", "/api/messages?wait=true", {"text": "hold"}))
            await until(lambda: len(runtime_of(live.hub).engine.streams._bells) == 2)
            live.doors.stop()
            await reader.rest()
        assert waiting.result().status == 202
