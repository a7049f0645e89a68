"""What a user or an agent may not use is out of reach by every way, however a model tries."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from exposed import Call, Listening, Seen, open_exposed

from dragoman import Caller, Hub
from dragoman.run import Run
from dragoman.scope import LOCAL_CALLER
from servers.hubs import quick
from servers.processes import journal, stdio

pytestmark = pytest.mark.anyio
WAYS = ("direct", "search", "delegate", "code")
SECRET = "mcp_box_send"
ARGUMENTS = {"text": "stolen"}
ATTACKS: dict[str, list[list[Call]]] = {
    "by name": [[(SECRET, ARGUMENTS)]],
    "by its old name": [[("box_send", ARGUMENTS)]],
    "search, then by name": [[("search_tools", {"query": "send text"})], [(SECRET, ARGUMENTS)]],
    "code by name": [[("run_code", {"code": f"await call_tool('{SECRET}', {{'text': 'stolen'}})"})]],
    "code by group": [[("run_code", {"code": "await box.send(text='stolen')"})]],
    "code that looks": [
        [
            (
                "run_code",
                {"code": "[await search_tools('send text', limit=50), await describe_tool('box.send')]"},
            )
        ]
    ],
    "by the connector's agent": [[("query_mcp_connector", {"connector_id": "box", "query": "send it"})]],
    "through a helper": [[("ask_agent", {"agent": "twin", "request": "send it"})]],
}


def attacking(seen: Seen) -> list[Call] | str:
    """Every agent of the chain does its worst."""
    if seen.is_child or seen.request == "send it":
        return [(SECRET, ARGUMENTS)] if seen.turn == 0 else "tried"
    steps = ATTACKS[seen.request]
    return steps[seen.turn] if seen.turn < len(steps) else "tried"


async def by_user(hub: Hub, attack: str, way: str) -> Run:
    """The user has no right to it."""
    caller = LOCAL_CALLER.narrowed({"mcp_box_echo", "mcp_integration_of_another"})
    return await hub.acting_for(caller).messages.ask(attack, options={"exposure": way})


async def by_agent(hub: Hub, attack: str, way: str) -> Run:
    """The user has the right, the agent has not."""
    return await hub.messages.ask(attack, options={"exposure": way}, agent="narrow")


async def by_stranger(hub: Hub, attack: str, way: str) -> Run:
    """The agent was given another connector only."""
    return await hub.messages.ask(attack, options={"exposure": way}, agent="other")


async def furnish(hub: Hub) -> None:
    await hub.tools.configure(SECRET, approval="never", allowed_callers=["direct", "agent", "mcp", "code"])
    await hub.connectors.add("shelf", shared=True, **quick(**stdio()))
    await hub.agents.create("narrow", connectors=["box"], capabilities=["mcp_box_echo"])
    await hub.agents.create("twin", connectors=["box"], capabilities=["mcp_box_echo"])
    await hub.agents.create("other", connectors=["shelf"])


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("who", [by_user, by_agent, by_stranger])
async def test_a_tool_without_the_right_to_it_cannot_be_reached(
    tmp_path: Path, way: str, who: Callable[[Hub, str, str], Awaitable[Run]]
) -> None:
    listening = Listening(attacking)
    async with open_exposed(tmp_path, listening) as hub:
        await furnish(hub)
        for attack in ATTACKS:
            run = await who(hub, attack, way)
            assert run.exposure == way
        assert journal(tmp_path / "journal") == []
        for seen in listening.requests:
            assert SECRET not in seen.tools
        found = [told for seen in listening.requests for told in seen.told if '"tools": ' in told]
        assert not [told for told in found if SECRET in told]


@pytest.mark.parametrize(
    ("way", "attack"),
    [
        ("direct", "by name"),
        ("search", "search, then by name"),
        ("delegate", "by the connector's agent"),
        ("code", "code by name"),
        ("code", "code by group"),
    ],
)
async def test_with_the_right_to_it_the_same_attempts_arrive(tmp_path: Path, way: str, attack: str) -> None:
    async with open_exposed(tmp_path, Listening(attacking)) as hub:
        await furnish(hub)
        run = await hub.messages.ask(attack, options={"exposure": way})
        assert run.status == "done"
        assert journal(tmp_path / "journal") == ["stolen"]


@pytest.mark.parametrize("way", WAYS)
async def test_a_connector_of_another_workspace_is_not_there(tmp_path: Path, way: str) -> None:
    listening = Listening(attacking)
    async with open_exposed(tmp_path, listening) as hub:
        await furnish(hub)
        workspace = (await hub.people.add_workspace("elsewhere")).id
        user = await hub.people.add_user("bob", workspace=workspace)
        stranger = Caller(workspace=workspace, user=user.id)
        for attack in ATTACKS:
            facts: dict[str, Any] = {"options": {"exposure": way}}
            await hub.acting_for(stranger).messages.ask(attack, **facts)
        assert journal(tmp_path / "journal") == []
        assert not [
            seen for seen in listening.requests if SECRET in seen.tools or "- box:" in seen.instructions
        ]
