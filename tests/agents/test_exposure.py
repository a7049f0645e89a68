"""By which way an agent reaches its tools: a table, and each way with a real server behind it."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from exposed import Call, Listening, Seen, in_turn, open_exposed

from dragoman.agents.exposure import ROOM, ExposureChoice, ExposureInputs, checked_exposure, choose
from dragoman.errors import InvalidArguments
from dragoman.hub import Hub
from dragoman.run import Run
from servers.processes import journal

pytestmark = pytest.mark.anyio

FEW = ExposureInputs(tools=12, tokens=500)
MANY = ExposureInputs(tools=300, tokens=30_000, is_deferred=True)
OFF = replace(MANY, arm="direct")
AGENTS, DIRECT = replace(FEW, is_counted=True), replace(MANY, arm="direct", is_counted=True)
CONNECTOR = ExposureInputs(kind="connector", tokens=30_000, is_deferred=True)
TABLE: dict[str, tuple[ExposureInputs, ExposureChoice]] = {
    "few tools": (FEW, ExposureChoice(exposure="direct")),
    "one tool more than few": (replace(FEW, tools=13), ExposureChoice(exposure="delegate")),
    "few that say much": (replace(FEW, tokens=2_001), ExposureChoice(exposure="delegate")),
    "few that are deferred": (replace(FEW, is_deferred=True), ExposureChoice(exposure="delegate")),
    "many tools": (MANY, ExposureChoice(exposure="delegate")),
    "many tools and nobody to ask": (
        replace(MANY, can_delegate=False, has_code=True),
        ExposureChoice(exposure="search"),
    ),
    "agents of connectors are off": (OFF, ExposureChoice(exposure="search")),
    "off and within the budget": (replace(OFF, is_deferred=False), ExposureChoice(exposure="direct")),
    "a worker": (replace(MANY, kind="worker"), ExposureChoice(exposure="search")),
    "forced direct": (replace(MANY, forced="direct", has_code=True), ExposureChoice(exposure="direct")),
    "forced search": (replace(FEW, forced="search"), ExposureChoice(exposure="search")),
    "forced delegate": (replace(FEW, forced="delegate"), ExposureChoice(exposure="delegate")),
    "forced code": (replace(FEW, forced="code", has_code=True), ExposureChoice(exposure="code")),
    "code without a tool": (replace(FEW, forced="code"), ExposureChoice(exposure="direct")),
    "nobody to delegate to": (
        replace(MANY, forced="delegate", can_delegate=False),
        ExposureChoice(exposure="search"),
    ),
    "forced wins over the arm": (replace(AGENTS, forced="direct"), ExposureChoice(exposure="direct")),
    "arm agents": (replace(AGENTS, has_code=True), ExposureChoice(exposure="delegate", arm="agents")),
    "arm direct": (DIRECT, ExposureChoice(exposure="search", arm="direct")),
    "arm agents without a connector": (
        replace(AGENTS, can_delegate=False),
        ExposureChoice(exposure="direct"),
    ),
    "arm direct without a connector": (
        replace(DIRECT, can_delegate=False),
        ExposureChoice(exposure="search"),
    ),
    "a worker in the arm": (
        replace(AGENTS, kind="worker"),
        ExposureChoice(exposure="delegate", arm="agents"),
    ),
    "offline": (
        replace(MANY, is_offline=True, has_code=True, is_counted=True),
        ExposureChoice(exposure="direct"),
    ),
    "offline cannot write code": (
        replace(FEW, is_offline=True, forced="code", has_code=True),
        ExposureChoice(exposure="direct"),
    ),
    "connector": (replace(CONNECTOR, has_code=True, is_counted=True), ExposureChoice(exposure="direct")),
    "connector with far too many": (
        replace(CONNECTOR, tokens=ROOM * CONNECTOR.budget + 1),
        ExposureChoice(exposure="search"),
    ),
    "connector, nothing deferred": (
        replace(CONNECTOR, tokens=ROOM * CONNECTOR.budget + 1, is_deferred=False),
        ExposureChoice(exposure="direct"),
    ),
    "connector forced to search": (replace(CONNECTOR, forced="search"), ExposureChoice(exposure="search")),
    "connector has nobody below": (replace(CONNECTOR, forced="delegate"), ExposureChoice(exposure="direct")),
    "connector counts every call": (
        replace(CONNECTOR, forced="code", has_code=True),
        ExposureChoice(exposure="direct"),
    ),
}


@pytest.mark.parametrize("name", TABLE)
def test_the_way_is_chosen_by_a_table(name: str) -> None:
    situation, expected = TABLE[name]
    assert choose(situation) == expected


def test_a_way_that_does_not_exist_is_refused_with_those_that_do() -> None:
    with pytest.raises(InvalidArguments) as refused:
        checked_exposure("telepathy")
    assert "auto, direct, search, delegate, code" in (refused.value.hint or "")


async def ask(hub: Hub, exposure: str | None = None, **facts: Any) -> Run:
    options = {"exposure": exposure} if exposure else None
    return await hub.messages.ask("do it", options=options, **facts)


async def test_direct_sends_every_definition(tmp_path: Path) -> None:
    listening = Listening(in_turn([("mcp_box_echo", {"text": "hello"})], "done"))
    async with open_exposed(tmp_path, listening) as hub:
        run = await ask(hub, "direct")
        assert (run.status, run.exposure, run.usage.tokens_saved) == ("done", "direct", 0)
        first, last = listening.requests
        assert {"mcp_box_echo", "mcp_box_send"} <= {*first.tools}
        assert not {"search_tools", "run_code"} & {*first.tools}
        assert "hello" in last.told[0]


async def test_search_offers_what_it_found_in_the_next_step(tmp_path: Path) -> None:
    listening = Listening(
        in_turn([("search_tools", {"query": "echo text"})], [("mcp_box_echo", {"text": "x3x"})], "done")
    )
    async with open_exposed(tmp_path, listening) as hub:
        run = await ask(hub, "search")
        assert (run.status, run.exposure) == ("done", "search")
        first, second, last = listening.requests
        assert not [name for name in first.tools if name.startswith("mcp_")]
        assert "mcp_box_echo" in second.tools
        assert "x3x" in last.told[-1]
        everything = sum(tool.tokens for tool in (await hub.tools.footprint()).tools)
        assert everything < run.usage.tokens_saved < 3 * everything
        assert run.thread
        assert "mcp_box_echo" in hub.tools.loaded(run.thread)  # `auto_load` is on
        again = Listening(in_turn("done"))
        hub.models.register("scripted", again.model)
        await ask(hub, "search", thread=run.thread)
        assert "mcp_box_echo" in again.requests[0].tools


async def test_who_wants_nothing_loaded_finds_tools_for_one_run_only(tmp_path: Path) -> None:
    listening = Listening(in_turn([("search_tools", {"query": "echo text"})], "done"))
    async with open_exposed(tmp_path, listening) as hub:
        await hub.preferences.update(auto_load=False)
        thread = (await hub.threads.create(connectors=["box"])).thread.id
        await ask(hub, "search", thread=thread)
        assert "mcp_box_echo" in listening.requests[-1].tools
        assert hub.tools.loaded(thread) == ()


async def test_delegate_leaves_only_the_question_to_a_connector_and_native_tools(tmp_path: Path) -> None:
    def script(seen: Seen) -> list[Call] | str:
        if seen.is_child:
            return (
                [("mcp_box_echo", {"text": "from below"})] if seen.turn == 0 else "it says: from below [c1]"
            )
        query = {"connector_id": "box", "query": "say something"}
        return [("query_mcp_connector", query)] if seen.turn == 0 else "done"

    listening = Listening(script)
    async with open_exposed(tmp_path, listening) as hub:
        hub.add_tool(lambda: 42, name="answer", description="The answer.")
        run = await ask(hub, "delegate")
        assert (run.status, run.exposure) == ("done", "delegate")
        above = [seen for seen in listening.requests if not seen.is_child]
        assert not [name for name in above[0].tools if name.startswith("mcp_")]
        assert {"query_mcp_connector", "answer"} <= {*above[0].tools}
        assert "- box:" in above[0].instructions
        assert "from below" in above[-1].told[0]
        family = (await hub.runs.view(run.id)).family
        assert [one.exposure for one in family] == ["delegate", "direct"]
        assert run.usage.tokens_saved == 0  # the agent below sent the definitions


async def test_code_calls_tools_inside_the_sandbox(tmp_path: Path) -> None:
    code = (
        "found = await search_tools('echo text')\n"
        "big = await box.big(bytes=20000)\n"
        "word = await box.echo(text='inside')\n"
        "[len(str(big)), word, [one['name'] for one in found]]"
    )
    listening = Listening(in_turn([("run_code", {"code": code})], "done"))
    async with open_exposed(tmp_path, listening) as hub:
        run = await ask(hub, "code")
        assert (run.status, run.exposure) == ("done", "code")
        first, last = listening.requests
        assert not [name for name in first.tools if name.startswith("mcp_")]
        assert {"run_code", "search_tools"} <= {*first.tools}
        assert "inside" in last.told[0]
        assert "box.echo" in last.told[0]
        assert run.usage.calls == 2
        everything = sum(tool.tokens for tool in (await hub.tools.footprint()).tools)
        assert run.usage.tokens_saved > 2 * everything + 1_000  # definitions twice, and the big result
        assert {call.way for call in await hub.calls()} == {"code"}


async def test_one_search_finds_what_code_calls_and_what_it_may_not(tmp_path: Path) -> None:
    listening = Listening(
        in_turn(
            [("search_tools", {"query": "send text"}), ("search_tools", {"query": "echo text"})],
            [("mcp_box_send", {"text": "by hand"})],
            "done",
        )
    )
    async with open_exposed(tmp_path, listening) as hub:
        await hub.tools.configure("mcp_box_send", approval="never")
        run = await ask(hub, "code")
        assert run.status == "done"
        first, second, _ = listening.requests
        sending, echoing = second.told
        assert '"name": "mcp_box_send"' in sending
        assert "async def box.echo(text: str" in echoing
        assert "mcp_box_send" in second.tools
        assert "mcp_box_echo" not in second.tools
        assert {"run_code", "search_tools"} <= {*first.tools}
        assert journal(tmp_path / "journal") == ["by hand"]


@pytest.mark.parametrize(
    ("settings", "exposure", "offered", "absent"),
    [
        ({}, "direct", "mcp_box_echo", "search_tools"),
        ({"tool_budget": 100}, "search", "search_tools", "mcp_box_echo"),
        ({"defer_tools": "always"}, "search", "search_tools", "mcp_box_echo"),
        ({"tool_budget": 100, "defer_tools": "never"}, "direct", "mcp_box_echo", "search_tools"),
    ],
)
async def test_without_the_agents_of_connectors_the_budget_decides(
    tmp_path: Path, settings: dict[str, Any], exposure: str, offered: str, absent: str
) -> None:
    listening = Listening(in_turn("done"))
    async with open_exposed(tmp_path, listening, rollout_share=0.0, **settings) as hub:
        run = await ask(hub)
        tools = listening.requests[0].tools
        assert (run.exposure, run.arm) == (exposure, None)
        assert offered in tools
        assert not {absent, "query_mcp_connector", "run_code"} & {*tools}


async def test_by_itself_the_assistant_hands_on_what_is_more_than_a_few_tools(tmp_path: Path) -> None:
    listening = Listening(in_turn("done"))
    async with open_exposed(tmp_path, listening) as hub:
        assert (await ask(hub)).exposure == "delegate"
        tools = listening.requests[-1].tools
        assert "query_mcp_connector" in tools
        assert not [name for name in tools if name.startswith("mcp_") or name in ("run_code", "search_tools")]
        for tool in hub.tools.list("box")[12:]:
            await hub.tools.disable(tool.name)
        assert (await ask(hub)).exposure == "direct"
        assert "query_mcp_connector" not in listening.requests[-1].tools


@pytest.mark.parametrize("exposure", ["direct", "search", "delegate", "code"])
async def test_a_model_never_sees_two_ways_to_one_tool(tmp_path: Path, exposure: str) -> None:
    listening = Listening(in_turn([("search_tools", {"query": "echo text"})], "done"))
    if exposure in ("direct", "delegate"):
        listening = Listening(in_turn("done"))
    async with open_exposed(tmp_path, listening) as hub:
        await ask(hub, exposure)
        tools = {*listening.requests[-1].tools}
        roads = {"mcp_box_echo", "query_mcp_connector", "run_code"} & tools
        assert len(roads) == 1, tools
        assert "manage" in tools


async def test_an_agent_has_a_way_of_its_own_and_a_request_wins_over_it(tmp_path: Path) -> None:
    listening = Listening(in_turn("done"))
    async with open_exposed(tmp_path, listening) as hub:
        await hub.agents.create("finder", connectors=["box"], exposure="search")
        assert (await ask(hub, agent="finder")).exposure == "search"
        assert (await ask(hub, "delegate", agent="finder")).exposure == "delegate"
        with pytest.raises(InvalidArguments, match="telepathy"):
            await ask(hub, "telepathy")
