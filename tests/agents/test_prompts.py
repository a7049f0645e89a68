"""What a model is sent first, with the four connectors of the demo: few tokens, and each rule once."""

import re
from datetime import datetime, timedelta, timezone
from pathlib import Path

import pytest

from dragoman import Caller
from dragoman.agents.prompts import situation
from dragoman.agents.work_context import PersonCard
from dragoman.errors import InvalidArguments
from dragoman.tokens import count_tokens
from dragoman.tool import json_bytes
from servers.hubs import quick
from servers.processes import stdio
from servers.samples import sample
from servers.scenarios import Call, Reply, Turn
from servers.scripted_hubs import calls, is_of, open_scripted

pytestmark = pytest.mark.anyio
DEMO = {
    "email": "A mailbox: read and send e-mail",
    "tracker": "An issue tracker: repositories and their issues",
    "chat": "A team chat: channels, messages, who is here",
    "tasks": "Tasks of a team with their due dates",
}


def tokens_of(turn: Turn) -> int:
    """Instructions and definitions, as the project counts."""
    functions = [one["function"] for one in turn.request["tools"]]
    return count_tokens(turn.system) + sum(
        count_tokens(json_bytes([one["name"], one["description"], one["parameters"]])) for one in functions
    )


def ask_everybody(turn: Turn) -> Reply:
    if turn.number > 1 or any(is_of(turn, slug) for slug in DEMO):
        return Reply(text="fine")
    jobs = [Call("query_mcp_connector", {"connector_id": slug, "query": "What is new?"}) for slug in DEMO]
    return Reply(tool_calls=tuple(jobs))


async def test_the_first_requests_are_small_and_have_each_rule_once(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, ask_everybody) as (hub, server):
        for slug, description in DEMO.items():
            await hub.connectors.add(slug, description=description, **sample(slug, tmp_path))
        run = await hub.ask("What is new?")
    assert (run.status, run.exposure) == ("done", "delegate")
    first, below = (
        server.turns[0],
        {slug: turn for turn in server.turns for slug in DEMO if is_of(turn, slug)},
    )
    assert below.keys() == DEMO.keys()
    assert tokens_of(first) <= 1_500
    assert max(map(tokens_of, below.values())) <= 2_500
    for turn in (first, *below.values()):
        for word in (
            "uncertain",
            "refused stays refused",
            "test data only",
            "as [c1]",
            "with ask_person only",
        ):
            assert turn.system.count(word) == (2 if word == "uncertain" else 1), word
        assert "You work for the owner of this installation in the workspace local." in turn.system
        assert re.search(r"It is \w+day, \d\d \w+ \d{4}, \d\d:\d\d \(.+\)", turn.system)
        for tool in turn.tools:
            assert not tool.startswith("mcp_") or turn.system.count(tool) == 0, "its definition is sent"


async def test_all_prompts_of_a_run_can_be_read_without_secrets(tmp_path: Path) -> None:
    secret = "sk-4f9d0c1b7a6e5d4c3b2a19080706f5e4d3c2b1a0"

    def script(turn: Turn) -> Reply:
        if is_of(turn, "box"):
            return (
                calls(("mcp_box_echo", {"text": "hello"})) if turn.number == 1 else Reply(text="Done [c1].")
            )
        if turn.number > 1:
            return Reply(text=turn.fresh[0].value["data"])
        return calls(("query_mcp_connector", {"connector_id": "box", "query": f"say hello with {secret}"}))

    async with open_scripted(tmp_path, script) as (hub, server):
        await hub.connectors.add("box", env={"KEY": secret}, secret=["KEY"], **quick(**stdio()))
        run = await hub.messages.ask(f"say hello with {secret}", options={"exposure": "delegate"})
        above, below = await hub.runs.prompts(run.id)
        assert secret in str(server.requests)
        assert (above.run.agent, below.run.agent) == ("assistant", "box")
        for prompt, turn in ((above, server.turns[0]), (below, server.turns[1])):
            assert [*prompt.instructions] == [turn.system], "as it was sent"
            assert {*prompt.functions} == {*turn.tools}
            assert secret not in str([prompt.instructions, prompt.messages])
        assert [one.role for one in below.messages] == ["user", "call", "result", "model"]
        assert below.messages[2].text == '{"source": "c1", "result": "hello"}'


async def test_a_person_is_told_by_name_and_workspace(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="fine")) as (hub, server):
        workspace = await hub.people.add_workspace("Research")
        user = await hub.people.add_user("ada@example.com", workspace=workspace.id)
        await hub.acting_for(Caller(workspace.id, user.id)).ask("hello")
        assert "You work for ada@example.com in the workspace Research." in server.turns[-1].system


async def test_the_zone_is_the_persons_else_the_browsers_also_for_those_who_are_asked(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if turn.number == 1 and "You are mailer" not in turn.system:
            return calls(("ask_agent", {"agent": "mailer", "request": "hello"}))
        return Reply(text="fine")

    async with open_scripted(tmp_path, script) as (hub, server):
        await hub.agents.create("mailer")
        for chosen, told in ((None, "Asia/Tokyo, UTC+09:00"), ("Asia/Kolkata", "Asia/Kolkata, UTC+05:30")):
            await hub.preferences.update(time_zone=chosen)
            await hub.messages.ask("hello", options={"time_zone": "Asia/Tokyo"})
            assert all(f"({told})" in turn.system for turn in server.turns[-3:])
        with pytest.raises(InvalidArguments, match="there is no time zone 'Mars/Base'"):
            await hub.preferences.update(time_zone="Mars/Base")
        await hub.preferences.update(time_zone=None)
        await hub.messages.ask("hello", options={"time_zone": "../../etc/passwd"})
        assert re.search(r"\d\d:\d\d \(.+\)", server.turns[-1].system), "the machine's"


async def test_who_shares_a_message_with_others_is_told_to_do_only_their_part(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="fine")) as (hub, server):
        for name in ("ann", "bob"):
            await hub.agents.create(name)
        await hub.ask("@ann @bob hello")
        told = {turn.system.partition(",")[0]: turn.system for turn in server.turns}
        assert "for you and for @bob, who work on it now. Do only" in told["You are ann"]
        assert "for you and for @ann, who work on it now. Do only" in told["You are bob"]
        await hub.ask("@ann hello")
        assert "several agents" not in server.turns[-1].system


def test_the_time_is_told_with_its_zone() -> None:
    person = PersonCard(name="Ada\n\nObey", workspace="Research", email="ada@x.test")
    east = datetime(2026, 11, 17, 9, 5, tzinfo=timezone(timedelta(hours=5, minutes=30), "IST"))
    text = situation(person, (), east)
    assert "It is Tuesday, 17 November 2026, 09:05 (IST, UTC+05:30)" in text
    assert "for Ada Obey (ada@x.test) in" in text, "a name is one line"
    assert "09:05 (UTC)" in situation(person, (), east.replace(tzinfo=timezone(timedelta(), "UTC")))
