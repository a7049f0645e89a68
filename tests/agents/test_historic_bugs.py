"""What went wrong in assistants of this kind before, each as a test that fails if it does so again."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub
from dragoman.run import Run
from dragoman.settings import Settings
from patience import patient
from servers.hubs import quick
from servers.processes import stdio
from servers.samples import add_every_sample, sample_program
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import CLAUDE, MODEL, calls, open_scripted

pytestmark = pytest.mark.anyio


async def called(hub: Hub, run: Run) -> list[str]:
    events = (await hub.runs.view(run.id)).events
    started = [event.data for event in events if event.kind == "call.started"]
    return [(one["arguments"] or {}).get("action", one["tool"]) for one in started]


def server(**facts: Any) -> dict[str, Any]:
    """The raw test server, whose tools nobody is asked about."""
    return quick(**stdio(), approval="never", **facts)


@pytest.mark.slow
async def test_the_first_message_after_a_start_reaches_a_worker_that_has_its_tools(
    tmp_path: Path, database_url: str
) -> None:
    """Actions are loaded before agents start."""
    servers, agents = tmp_path / "action_servers.json", tmp_path / "agent_configs"
    agents.mkdir()
    servers.write_text(json.dumps([{"name": "email_mcp", **sample_program("email", tmp_path)}]))
    mailer = {"name": "mailer", "model": MODEL, "action_servers": ["email_mcp"]}
    (agents / "mailer.json").write_text(json.dumps(mailer))

    def script(turn: Turn) -> Reply:
        if turn.number == 1:
            return calls(("mcp_email-mcp_read-emails", {"limit": 1}))
        return Reply(text=f"read {turn.recent[0].value['count']}")

    files: dict[str, Any] = {"action_servers": servers, "agent_configs": agents}
    for _ in ("first start", "second start"):
        home = tmp_path / "home"
        async with open_scripted(home, script, database_url=database_url, **files) as (hub, model):
            run = await hub.ask("@mailer what is new?")
            assert (run.agent, run.status) == ("mailer", "done"), run.error
            assert "mcp_email-mcp_read-emails" in model.turns[0].tools
            assert await called(hub, run) == ["mcp_email-mcp_read-emails"]


async def test_an_at_sign_in_an_explanation_reaches_nobody(tmp_path: Path, database_url: str) -> None:
    def script(turn: Turn) -> Reply:
        return Reply(text="Write @mailer to ask it, or @mailer @writer to ask both.\n\n@mailer")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, model):
        await hub.agents.create("mailer")
        await hub.agents.create("writer")
        run = await hub.ask("how do I reach the mailer?")
        assert {event.agent for event in (await hub.runs.view(run.id)).events} == {"assistant"}
        assert [one.agent for one in await hub.messages.list(run.thread)] == [None, "assistant"]
        assert len(await hub.runs.list(roots_only=False)) == 1
        assert len(model.requests) == 1
        # Nor does it make anybody the one whom the person speaks with.
        assert (await hub.ask("and then?", thread=run.thread)).agent == "assistant"


TASKS = {
    "create an issue in lantern/xyne titled Agent settings are lost": "mcp_tracker_create_issue",
    "create an issue titled agents cannot be deleted": "mcp_tracker_create_issue",
    "send an email to ann@example.com saying please create an agent": "mcp_email_send-email",
    "check my 2 latest emails": "mcp_email_read-emails",
    "create a task named start the agent": "mcp_tasks_create_task",
    "list the open issues in xyne": "mcp_tracker_list_issues",
}
COMMANDS = {
    "create an agent named scout": "create_agent",
    "create an email agent with email tools": "create_agent",
    "stop the agent mailer": "stop_agent",
    "start the agent mailer": "start_agent",
    "give mailer access to tracker": "assign_connector",
    "list agents": "list_agents",
    "what tools are available?": "list_tools",
}


@pytest.mark.slow
async def test_tasks_are_not_taken_for_commands_nor_commands_for_tasks(tmp_path: Path) -> None:
    """With no language model at all."""
    async with Hub(Settings(home=tmp_path / "home", model="offline")) as hub:
        await add_every_sample(hub, tmp_path)
        await hub.agents.create("mailer")

        async def tools(text: str) -> list[str]:
            """What is called, or comes first in the choice that a person is shown; nobody chooses."""
            accepted = await hub.messages.post(text)
            async for event in hub.runs.follow(accepted.run.id):
                if event.kind == "question.asked":
                    question = await hub.runs.question(event.data["question"])
                    await hub.runs.cancel(accepted.run.id)
                    return [question.calls[0]["properties"]["tool"]["const"]]
            return await called(hub, accepted.run)

        taken = {text: await tools(text) for text in (*TASKS, *COMMANDS)}
        assert taken == {text: [tool] for text, tool in (TASKS | COMMANDS).items()}


@pytest.mark.slow
@pytest.mark.parametrize("model", [MODEL, CLAUDE])
async def test_a_tool_that_a_server_brings_in_the_middle_is_usable_at_once(
    tmp_path: Path, model: str
) -> None:
    def script(turn: Turn) -> Reply:
        if turn.number == 1:
            return calls(("mcp_box_add_tool", {"name": "fresh"}))
        if turn.number == 2:
            return calls(("mcp_box_fresh", {}))
        return Reply(text=f"{len(turn.recent)} calls for {turn.user}")

    # One that tells of it before it answers: whoever tells later is heard at the step after.
    program = str(Path(stdio()["args"][2]).with_name("sdk_server.py"))
    async with open_scripted(tmp_path, script, model=model) as (hub, scripted):
        facts: dict[str, Any] = {**server(), "args": [program], "connect_timeout": patient(20)}
        await hub.connectors.add("box", **facts)
        run = await hub.ask("make it and use it")
        assert run.answer == "2 calls for make it and use it", run.error
        assert "mcp_box_fresh" not in scripted.turns[0].tools
        assert await called(hub, run) == ["mcp_box_add_tool", "mcp_box_fresh"]
        # A later message has it from the beginning; what was news then is none any more.
        again = await hub.ask("and now?", thread=run.thread)
        assert again.status == "done", again.error
        assert "now available" not in json.dumps(scripted.requests[-1])
        assert len(scripted.turns[-1].tools) == len(set(scripted.turns[-1].tools))


async def test_a_connector_given_and_taken_while_the_worker_works_counts_at_its_next_step(
    tmp_path: Path, database_url: str
) -> None:
    offered: list[bool] = []

    async def script(turn: Turn) -> Reply:
        offered.append("mcp_second_echo" in turn.tools)
        if turn.number == 1:
            await hub.agents.assign("helper", "second")
            return calls(("mcp_first_echo", {"text": "a"}))
        if turn.number == 2:
            return calls(("mcp_second_echo", {"text": "b"}))
        if turn.number == 3:
            await hub.agents.unassign("helper", "second")
            return calls(("mcp_second_echo", {"text": "c"}))
        return Reply(text=json.dumps([result.value for result in turn.recent]))

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        for name in ("first", "second"):
            await hub.connectors.add(name, **server())
        await hub.agents.create("helper", connectors=["first"])
        run = await hub.ask("@helper go on")
        assert run.status == "done", run.error
        assert offered == [False, True, True, False]
        first, second, third = json.loads(run.answer or "")
        assert ("a" in str(first), "b" in str(second)) == (True, True)
        assert "not_found" in str(third)


async def test_a_connector_removed_in_the_middle_is_told_and_the_run_goes_on(
    tmp_path: Path, database_url: str
) -> None:
    async def script(turn: Turn) -> Reply:
        if turn.number == 1:
            return calls(("mcp_box_echo", {"text": "a"}))
        if turn.number == 2:
            await hub.connectors.remove("box")
            return calls(("mcp_box_echo", {"text": "b"}))
        if turn.number == 3:  # not even offered any more
            return calls(("mcp_box_echo", {"text": "c"}))
        return Reply(text="the box is gone")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, model):
        await hub.connectors.add("box", **server())
        await hub.connectors.add("other", **server())
        await hub.agents.create("helper", connectors=["box", "other"])
        run = await hub.ask("@helper go on")
        assert (run.status, run.answer) == ("done", "the box is gone"), run.error
        assert "mcp_box_echo" not in model.turns[2].tools
        assert (await hub.agents.view("helper")).notes == ("box is gone",)
        # What is gone does not stand in the way of what is given and taken.
        await hub.connectors.add("third", **server())
        assert (await hub.agents.assign("helper", "third")).connectors == ("box", "other", "third")
        assert (await hub.agents.unassign("helper", "other")).connectors == ("box", "third")
        assert (await hub.agents.unassign("helper", "box")).connectors == ("third",)


async def test_two_agents_that_mention_each_other_do_not_go_on_for_ever(
    tmp_path: Path, database_url: str
) -> None:
    def script(turn: Turn) -> Reply:
        me, other = ("ping", "pong") if "You are ping" in turn.system else ("pong", "ping")
        return Reply(text=f"@{other} {me} says it is your turn")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, model):
        for name in ("ping", "pong"):
            await hub.agents.create(name)
        run = await hub.ask("@ping @pong begin")
        assert run.status == "done"
        assert sorted(one.agent or "" for one in await hub.messages.list(run.thread)) == ["", "ping", "pong"]
        await asyncio.sleep(0)
        assert len(await hub.runs.list(roots_only=False)) == 3
        assert len(model.requests) == 2


async def test_agents_that_hand_on_in_a_circle_are_stopped(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        other = "pong" if "You are ping" in turn.system else "ping"
        if turn.number == 1 and "ask_agent" in turn.tools:
            return calls(("ask_agent", {"agent": other, "request": "you do it"}))
        return Reply(text=f"nobody does it: {json.dumps([one.value for one in turn.recent])}")

    async with open_scripted(tmp_path, script) as (hub, model):
        for name in ("ping", "pong"):
            await hub.agents.create(name)
        run = await hub.ask("@ping do it")
        assert run.status == "done", run.error
        assert len(await hub.runs.list(roots_only=False)) == 2
        assert len(model.requests) == 4
