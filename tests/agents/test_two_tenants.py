"""Two workspaces, and two people of one, whose agents have the same name: nothing crosses."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from dragoman import Caller, Hub
from dragoman.errors import Conflict, Denied, NotFound
from dragoman.events import Event
from dragoman.run import Question, Run
from patience import deadline
from servers.hubs import quick
from servers.processes import stdio
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import calls, numbers, open_scripted

pytestmark = pytest.mark.anyio

ADA = Caller(workspace="acme", user="ada", role="admin")
BOB = Caller(workspace="acme", user="bob", role="member")
EVE = Caller(workspace="other", user="eve", role="admin")


def script(turn: Turn) -> Reply:
    """Says which of the secrets it was given it sees, and asks where it is told to."""
    words = ("ada", "bob", "eve", "acme")
    seen = sorted(word for word in words if f"secret-{word}" in str(turn.request))
    tools = [name for name in turn.tools if name.endswith("_echo")]
    if turn.number == 1 and "ask" in turn.user:
        return calls(("ask_person", {"question": f"for {seen}?"}))
    if turn.number == 1 and tools and "say" in turn.user:
        return calls((tools[0], {"text": "said"}))
    return Reply(text=f"{seen} {tools}")


@asynccontextmanager
async def team(home: Path, database_url: str) -> AsyncGenerator[Hub]:
    """Each has a worker `helper` with a server of their own behind another name."""
    async with open_scripted(home, script, database_url=database_url) as (hub, _):
        for caller in (ADA, BOB, EVE):
            slug = f"box-{caller.user}"
            await hub.acting_for(caller).connectors.add(slug, **quick(**stdio()))
            secret = f"secret-{caller.user}"
            await hub.acting_for(caller).agents.create("helper", instructions=secret, connectors=[slug])
        yield hub


async def test_agents_of_one_name_have_their_own_tools_messages_and_numbers(
    tmp_path: Path, database_url: str
) -> None:
    async with team(tmp_path, database_url) as hub:
        runs: dict[str, Run] = {}
        for caller in (ADA, BOB, EVE):
            run = await hub.acting_for(caller).messages.ask("@helper say what you see")
            assert run.answer == f"['{caller.user}'] ['mcp_box-{caller.user}_echo']", run.error
            runs[caller.user] = run
        for caller in (ADA, BOB, EVE):
            own = runs[caller.user]
            assert [run.id for run in await hub.acting_for(caller).runs.list()] == [own.id]
            assert len(await hub.acting_for(caller).messages.list(own.thread)) == 2
            counted = await numbers(hub, "helper", caller=caller)
            assert (counted.runs, counted.calls) == (1, 1)
            for other in (ADA, BOB, EVE):
                if other is not caller:
                    await _sees_nothing_of(hub, own, other)


async def _sees_nothing_of(hub: Hub, run: Run, stranger: Caller) -> None:
    with pytest.raises(NotFound):
        await hub.acting_for(stranger).runs.get(run.id)
    with pytest.raises(NotFound):
        await hub.acting_for(stranger).runs.cancel(run.id)
    with pytest.raises(NotFound):
        await hub.acting_for(stranger).messages.list(run.thread)
    with pytest.raises(NotFound):
        await hub.acting_for(stranger).messages.post("hello", thread=run.thread)
    with pytest.raises(NotFound):
        await anext(hub.acting_for(stranger).runs.follow(run.id))


async def test_questions_and_what_follows_them_stay_with_who_was_asked(
    tmp_path: Path, database_url: str
) -> None:
    async with team(tmp_path, database_url) as hub:
        asked: dict[str, Question] = {}
        for caller in (ADA, BOB, EVE):
            accepted = await hub.acting_for(caller).messages.post("@helper ask me")
            async for event in hub.acting_for(caller).runs.follow(accepted.run.id):
                if event.kind == "question.asked":
                    break
            (asked[caller.user],) = await hub.acting_for(caller).runs.questions()
        for caller in (ADA, BOB, EVE):
            assert asked[caller.user].text == f"for ['{caller.user}']?"
            for other in (ADA, BOB, EVE):
                if other is not caller:
                    with pytest.raises(NotFound):
                        await hub.acting_for(other).runs.answer(asked[caller.user].id, "mine")
                    with pytest.raises(NotFound):  # of a run that works in this process, too
                        await anext(hub.acting_for(other).runs.follow(asked[caller.user].run))
        heard = await _heard_while_answered(hub, asked["ada"], ADA, (ADA, BOB, EVE))
        assert {"question.answered", "message.added", "run.changed"} <= {event.kind for event in heard["ada"]}
        assert (heard["bob"], heard["eve"]) == ([], [])
        for caller in (BOB, EVE):
            assert (await hub.acting_for(caller).runs.questions())[0].status == "pending"
            assert (await hub.acting_for(caller).runs.get(asked[caller.user].root)).status == "waiting"


async def _heard_while_answered(
    hub: Hub, question: Question, who: Caller, listeners: Sequence[Caller]
) -> dict[str, list[Event]]:
    """What each listener is told from the answer to the end of the run."""
    heard: dict[str, list[Event]] = {caller.user: [] for caller in listeners}
    ended = asyncio.Event()

    async def listen(caller: Caller) -> None:
        async for event in hub.acting_for(caller).events():
            heard[caller.user].append(event)
            if event.kind == "run.changed" and event.data["status"] == "done":
                ended.set()

    async with deadline(20), asyncio.TaskGroup() as tasks:
        listening = [tasks.create_task(listen(caller)) for caller in listeners]
        await asyncio.sleep(0)
        await hub.acting_for(who).messages.post("go on", thread=question.thread)
        await ended.wait()
        for task in listening:
            task.cancel()
    return heard


async def test_a_shared_agent_is_the_workspaces_and_an_own_one_of_that_name_comes_first(
    tmp_path: Path, database_url: str
) -> None:
    async with team(tmp_path, database_url) as hub:
        shared = await hub.acting_for(ADA).agents.create("guide", instructions="secret-acme", shared=True)
        assert (await hub.acting_for(BOB).agents.get("guide")).id == shared.id
        with pytest.raises(NotFound):
            await hub.acting_for(EVE).agents.get("guide")
        with pytest.raises(Conflict):
            await hub.acting_for(BOB).agents.create("Guide")
        with pytest.raises(Denied):
            await hub.acting_for(BOB).agents.update("guide", instructions="mine")
        with pytest.raises(Denied):
            await hub.acting_for(BOB).agents.remove("guide")

        # Bob had a `writer` before there was one for everybody.
        own = await hub.acting_for(BOB).agents.create("writer", instructions="secret-bob")
        everybodys = await hub.acting_for(ADA).agents.create(
            "writer", instructions="secret-acme", shared=True
        )
        assert (await hub.acting_for(BOB).messages.ask("@writer hello")).answer == "['bob'] []"
        assert (await hub.acting_for(ADA).messages.ask("@writer hello")).answer == "['acme'] []"
        assert (await numbers(hub, "writer", caller=BOB)).runs == 1
        assert (await hub.acting_for(BOB).agents.get("writer")).id == own.id
        await hub.acting_for(BOB).agents.remove("writer")
        assert (await hub.acting_for(BOB).agents.get("writer")).id == everybodys.id
        assert (await hub.acting_for(BOB).messages.ask("@writer hello")).answer == "['acme'] []"
        # What it did is counted for the workspace, whoever asked; what people said to it is theirs.
        assert (await numbers(hub, "writer", caller=BOB, runs=2)).runs == 2
        assert len(await hub.acting_for(ADA).runs.list()) == 1
