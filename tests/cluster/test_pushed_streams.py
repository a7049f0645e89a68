"""Events of a run at another node: pushed as they happen, each once and in order, whatever NATS does."""

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai.messages import ModelMessage
from pydantic_ai.models.function import AgentInfo, FunctionModel

from cluster.nats_server import NatsServer
from cluster.nodes import open_hubs
from dragoman import Hub
from dragoman.cluster.messages import EventBatch, Unreadable, dump_events, load_events
from dragoman.run import RunEvent
from patience import deadline, until
from servers.hubs import runtime_of

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120)]
LOOK = "dragoman.runs.streams._LOOK_WHEN_TOLD"


class Speaker:
    """A model that says each word when it is given."""

    def __init__(self, *hubs: Hub) -> None:
        self.words: asyncio.Queue[str | None] = asyncio.Queue()
        for hub in hubs:
            hub.models.register("speaker", FunctionModel(stream_function=self._speak, model_name="speaker"))

    async def _speak(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[str]:
        while (word := await self.words.get()) is not None:
            yield word

    def say(self, *words: str | None) -> None:
        for word in words:
            self.words.put_nowait(word)


class Follower:
    """What somebody hears of a run at one node."""

    def __init__(self, hub: Hub, run: str) -> None:
        self.events: list[RunEvent] = []
        self.task = asyncio.create_task(self._follow(hub, run))

    async def _follow(self, hub: Hub, run: str) -> None:
        async for event in hub.runs.follow(run):
            self.events.append(event)

    @property
    def text(self) -> str:
        return "".join(event.data["delta"] for event in self.events if event.kind == "text")

    async def hears(self, text: str) -> None:
        await until(lambda: self.text == text)

    async def ends(self) -> None:
        async with deadline(20):
            await self.task


class Reads:
    """How often the events of runs are read from a hub's store."""

    def __init__(self, hub: Hub, monkeypatch: pytest.MonkeyPatch) -> None:
        self.count = 0
        rows = runtime_of(hub).store.runs
        for name in ("events", "find", "last_event"):
            monkeypatch.setattr(rows, name, self._counted(getattr(rows, name)))

    def _counted(self, read: Any) -> Any:
        async def counted(*args: Any, **kwargs: Any) -> Any:
            self.count += 1
            return await read(*args, **kwargs)

        return counted


async def test_words_are_pushed_to_who_follows_elsewhere_and_nobody_asks_the_store(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(LOOK, 3600.0)
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path, postgres_url, nats, model="speaker") as (a, b),
    ):
        speaker = Speaker(a, b)
        run = (await a.messages.post("Speak.")).run
        here, there = Follower(a, run.id), Follower(b, run.id)
        speaker.say("one")
        await there.hears("one")
        reads = Reads(b, monkeypatch)
        said = "one"
        for word in (" two", " three", " four", "x" * 600_000, " five"):
            speaker.say(word)
            said += word
            await there.hears(said)
            if word == " four":
                assert reads.count == 0, "pushed"
        assert 1 <= reads.count <= 3, "what is too large to be pushed is read from the store"
        speaker.say(None)
        await there.ends()
        await here.ends()
        assert there.events == here.events
        assert there.events == [one async for one in b.runs.follow(run.id)]
        late = [one async for one in b.runs.follow(run.id, there.events[3].number)]
        assert late == there.events[4:]


async def test_what_nats_loses_is_read_from_the_store_in_order_and_once(
    tmp_path: Path, postgres_url: str
) -> None:
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path, postgres_url, nats, model="speaker") as (a, b),
    ):
        speaker = Speaker(a, b)
        run = (await a.messages.post("Speak.")).run
        here, there = Follower(a, run.id), Follower(b, run.id)
        speaker.say("one")
        await there.hears("one")
        nats.kill()
        speaker.say(" two")
        await there.hears("one two")
        nats.wipe()
        await nats.start()
        speaker.say(" three")
        await there.hears("one two three")
        await until(lambda: runtime_of(a).cluster.is_connected and runtime_of(b).cluster.is_connected)
        # A message that nobody understands, and one that skips what came before, do no harm.
        batch = EventBatch("local", run.id, 10_000, [])
        for wrong in (b"", b'{"v":1}', dump_events(batch)):
            runtime_of(a).cluster.streams.push(run.id, wrong)
        speaker.say(" four", None)
        await there.ends()
        await here.ends()
        assert there.events == here.events
        assert there.text == "one two three four"


def test_a_pushed_message_is_read_as_it_was_written() -> None:
    events = [
        RunEvent(workspace="w", root="r", run="c", kind="text", number=7, agent="a", data={"delta": "…"})
    ]
    batch = EventBatch("w", "r", 4, events)
    assert load_events(dump_events(batch)) == batch
    for wrong in (b"", b"[]", b'{"v":9}', b'{"v":1,"events":[[1]]}', b'{"v":1,"events":3}'):
        with pytest.raises(Unreadable):
            load_events(wrong)
