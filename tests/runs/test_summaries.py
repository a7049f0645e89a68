"""A thread that is longer than the model's window: summed up, said, and what tools brought stays in reach."""

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

from dragoman import Annotations, Hub, Message
from dragoman.settings import Settings
from servers.samples import sample
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import calls, is_of, open_scripted, scripted

pytestmark = pytest.mark.anyio

SMALL = "openai-chat:gpt-4"  # a window of 8,192 tokens, a third of it for what came before
LONG = "word " * 500


def sums_up(turn: Turn) -> bool:
    return turn.system.startswith("Sum up this conversation")


def heard(turn: Turn) -> str:
    return json.dumps(turn.request["messages"])


async def summaries(hub: Hub, thread: str) -> list[Message]:
    return [one for one in await hub.messages.list(thread) if "summary" in one.details]


async def test_what_has_no_room_is_summed_up_in_a_message_that_people_can_read(
    tmp_path: Path, database_url: str
) -> None:
    told: list[str] = []

    def script(turn: Turn) -> Reply:
        if sums_up(turn):
            return Reply(text=f"The order is {re.findall('order (?:is )?([0-9]+)', heard(turn))[0]}.")
        told.append(heard(turn))
        return Reply(text="ok")

    async with open_scripted(tmp_path, script, model=SMALL, database_url=database_url) as (hub, model):
        run = await hub.ask(f"My order 4711 is late. {LONG}")
        for number in range(2, 11):
            run = await hub.ask(f"message {number} {LONG}", thread=run.thread)
            assert run.status == "done", run.error
        found = await summaries(hub, run.thread)
        made = [request for request in model.requests if "Sum up" in json.dumps(request["messages"])]
        assert 2 <= len(found) == len(made) <= 4, "not for every message"
        assert {one.details["summary"]["text"] for one in found} == {"The order is 4711."}, "taken up"
        facts = [one.details["summary"] for one in found]
        assert [one["from"] for one in facts] == [1] * len(facts)
        last = facts[-1]["to"]
        assert found[-1].text.startswith(f"Messages 1 to {last} had no room any more.")
        assert found[-1].text.endswith("\n\nThe order is 4711.")
        timeline = await hub.runs.timeline(found[-1].run or "")
        assert f"sums up messages 1 to {last}" in [moment.title for moment in timeline.moments]
        assert f"(Messages 1 to {last} of this conversation, summed up:)" in told[-1]
        assert re.search(r"<data (\w+)>\\nThe order is 4711.\\n</data \1>", told[-1]), "data, no orders"
        assert "message 2 " not in told[-1]
        assert "message 9 " in told[-1]
        used = sum(one.usage.requests for one in await hub.runs.list(thread=run.thread, limit=100))
        assert used == len(model.requests), "what it took to sum up is counted"


async def test_what_a_tool_brought_before_the_summary_is_read_by_its_handle(tmp_path: Path) -> None:
    looked: list[str] = []

    def script(turn: Turn) -> Reply:
        if sums_up(turn):
            return Reply(text="They looked for hats.")
        if "look for" in turn.user and not turn.recent:
            return calls(("look", {"what": "hats"}))
        if "the first one" not in turn.user:
            return Reply(text="ok")
        if not turn.recent:
            (handle,) = re.findall(r"- ([0-9]+\.[0-9]+): look ", heard(turn))
            return calls(("read_earlier", {"handle": "2.7"}), ("read_earlier", {"handle": handle}))
        bad, good = (result.value for result in turn.recent)
        return Reply(text=f"{bad} / {good['hats'][0]}")

    async with open_scripted(tmp_path, script, model=SMALL, rollout_share=0) as (hub, model):

        @hub.tool(annotations=Annotations(read_only=True))
        def look(what: str) -> dict[str, Any]:
            """Looks for things."""
            looked.append(what)
            return {what: ["hat-77", "hat-78"], "rest": "x" * 2_000}

        run = await hub.ask("hello")
        run = await hub.ask("look for hats", thread=run.thread)
        assert "read_earlier" not in json.dumps(model.requests), "where all is shown there is none"
        for _ in range(4):
            run = await hub.ask(LONG, thread=run.thread)
        run = await hub.ask("take the first one", thread=run.thread)
        assert run.answer is not None, run.error
        assert "There is no earlier result '2.7'" in run.answer
        assert run.answer.endswith("/ hat-77")
        assert looked == ["hats"]


async def test_an_agent_that_is_asked_again_finds_what_it_found_before(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if is_of(turn, "email"):
            if turn.recent:
                emails = turn.recent[-1].value["emails"]
                return Reply(text=f"the first is {emails[0]['id']}")
            if named := re.findall(r"- ([0-9]+\.[0-9]+): mcp_email_read-emails ", heard(turn)):
                return calls(("read_earlier", {"handle": named[0]}))
            return calls(("mcp_email_read-emails", {"limit": 2}))
        if turn.recent:
            return Reply(text=str(turn.recent[-1].value))
        return calls(("query_mcp_connector", {"connector_id": "email", "query": turn.user}))

    async with open_scripted(tmp_path / "home", script) as (hub, _):
        await hub.connectors.add("email", **sample("email", tmp_path))
        way = {"exposure": "delegate"}
        first = await hub.messages.ask("which mails are there?", options=way)
        again = await hub.messages.ask("which was the first one?", thread=first.thread, options=way)
        (found,) = set(re.findall(r"the first is ([\w-]+)", f"{first.answer} {again.answer}"))
        assert found
        called = [
            event.data["tool"]
            for run in (first, again)
            async for event in hub.runs.follow(run.id)
            if event.kind == "call.started" and event.agent == "email"
        ]
        assert called == ["mcp_email_read-emails", "read_earlier"]


async def test_a_run_that_is_taken_up_again_keeps_its_summary(tmp_path: Path, database_url: str) -> None:
    stopped = asyncio.Event()
    asked = 0

    async def script(turn: Turn) -> Reply:
        nonlocal asked
        if sums_up(turn):
            asked += 1
            return Reply(text="All of it.")
        if "last" in turn.user and not stopped.is_set():
            stopped.set()
            await asyncio.sleep(600)
        return Reply(text="ok")

    async with scripted(script, SMALL):
        settings = Settings(home=tmp_path, model=SMALL, database_url=database_url)
        async with Hub(settings) as hub:
            thread = (await hub.ask(f"first {LONG}")).thread
            await hub.ask(f"second {LONG}", thread=thread)
            await hub.ask(f"third {LONG}", thread=thread)
            before = asked
            sent = await hub.messages.post(f"last {LONG}", thread=thread)
            await asyncio.wait_for(stopped.wait(), 30)
            made = asked
        async with Hub(settings) as hub:
            run = await hub.runs.finished(sent.run)
            assert (run.status, asked, made - before) == ("done", made, 1), run.error
            assert run.usage.requests >= 2, "the request for the summary counts on"
            assert len(await summaries(hub, thread)) == made


@pytest.mark.slow
async def test_a_thread_that_cannot_be_summed_up_goes_on_and_says_what_is_missing(tmp_path: Path) -> None:
    told: list[str] = []

    def script(turn: Turn) -> Reply:
        if sums_up(turn):
            return Reply(status=400, text="odd")
        told.append(heard(turn))
        return Reply(text="ok")

    async with open_scripted(tmp_path, script, model=SMALL) as (hub, _):
        thread = (await hub.ask(LONG)).thread
        for _ in range(4):
            run = await hub.ask(LONG, thread=thread)
            assert run.status == "done", run.error
        assert await summaries(hub, thread) == []
        assert re.search(r"Messages 1 to \d+ of this conversation had no room", told[-1])
