"""`query_mcp_connector` at the MCP door, with the SDK's own client and a scripted model."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from doors import Door, open_door
from dragoman import Caller
from dragoman.mcp_endpoint import channels
from servers.hubs import quick, until
from servers.processes import journal, stdio
from servers.scenarios import Reply, Script, Turn
from servers.scripted_hubs import MODEL, calls, scripted

pytestmark = pytest.mark.anyio
ERAS = pytest.mark.parametrize("mode", ["auto", "legacy"], ids=["2026", "2025"])
NAME = "query_mcp_connector"


@asynccontextmanager
async def open_scripted_door(home: Path, script: Script, **options: Any) -> AsyncGenerator[Door]:
    async with scripted(script), open_door(home, model=MODEL, **options) as door:
        await door.hub.connectors.add("box", **quick(**stdio("--journal", str(home / "journal"))))
        yield door


def echoing(turn: Turn) -> Reply:
    if turn.number == 1:
        plan = {"steps": [{"tool": "echo", "reason": "asked for"}]}
        return calls(("state_plan", plan), ("mcp_box_echo", {"text": "hi"}))
    return Reply(text="It said hi [c1].")


@ERAS
async def test_a_job_is_handed_to_a_connector_and_its_course_is_told(tmp_path: Path, mode: str) -> None:
    heard: list[tuple[float, str | None]] = []

    async def hear(progress: float, total: float | None, message: str | None) -> None:
        heard.append((progress, message))

    async with (
        open_scripted_door(tmp_path, echoing) as door,
        door.client("/mcp?view=search", mode=mode) as client,
    ):
        names = [tool.name for tool in (await client.list_tools()).tools]
        assert names == ["search_tools", "call_tool", NAME, "run_code"]
        asked = {"connectorId": "box", "query": "say hi", "maxTools": 3}
        result: Any = await client.call_tool(NAME, asked, progress_callback=hear)
        assert not result.is_error
        answer = result.structured_content
        assert json.loads(result.content[0].text) == answer
        assert (answer["status"], answer["data"]) == ("success", "It said hi [c1].")
        assert answer["metadata"]["contexts"][0]["excerpt"] == "hi"
        assert [step["tool"] for step in answer["metadata"]["plan"]] == ["echo"]
        assert [message for _, message in heard] == ["box is at work", "plan: echo", "echo …"]
        assert [at for at, _ in heard] == sorted({at for at, _ in heard})


@ERAS
async def test_what_goes_wrong_is_an_error_with_its_structure(tmp_path: Path, mode: str) -> None:
    async with (
        open_scripted_door(tmp_path, echoing) as door,
        door.client("/mcp?view=search", mode=mode) as client,
    ):
        result: Any = await client.call_tool(NAME, {"connector_id": "bxo", "query": "say hi"})
        assert result.is_error
        assert result.structured_content["error"]["code"] == "CONNECTOR_NOT_FOUND"
        for wrong in ({}, {"connector_id": "box"}, {"connector_id": "box", "query": "x", "max_tools": 0}):
            result = await client.call_tool(NAME, wrong)
            assert result.is_error
            assert "invalid_arguments" in result.content[0].text


async def test_a_call_is_approved_in_dragoman_while_the_client_waits(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        return calls(("mcp_box_send", {"text": "hello"})) if turn.number == 1 else Reply(text="Sent [c1].")

    told: list[str | None] = []
    async with (
        open_scripted_door(tmp_path, script) as door,
        door.client("/mcp?view=search") as client,
        asyncio.TaskGroup() as tasks,
    ):

        async def hear(progress: float, total: float | None, message: str | None) -> None:
            told.append(message)

        asked = {"connector_id": "box", "query": "send hello"}
        call = tasks.create_task(client.call_tool(NAME, asked, progress_callback=hear))

        async def is_asked() -> bool:
            return bool(await door.hub.approvals.list())

        await until(is_asked, within=10)
        assert journal(tmp_path / "journal") == []
        (question,) = await door.hub.approvals.list()
        await door.hub.approvals.answer(question.approval.id, "once")
        result: Any = await call
        assert result.structured_content["data"] == "Sent [c1]."
        assert journal(tmp_path / "journal") == ["hello"]
        assert "waits for a person to approve a call in Dragoman" in told


@ERAS
async def test_no_client_hangs_while_a_person_is_waited_for_and_the_answer_can_be_had_later(
    tmp_path: Path, mode: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def script(turn: Turn) -> Reply:
        return calls(("mcp_box_send", {"text": "hello"})) if turn.number == 1 else Reply(text="Sent [c1].")

    monkeypatch.setattr(channels, "LONGEST_WAIT", 0.3)
    asked = {"connector_id": "box", "query": "send hello"}
    async with (
        open_scripted_door(tmp_path, script) as door,
        door.client("/mcp?view=search", mode=mode) as client,
    ):
        result: Any = await client.call_tool(NAME, asked)
        assert result.is_error
        answer = result.structured_content
        assert answer["error"]["cause"] == "approval_pending"
        run = answer["metadata"]["run"]
        assert run in answer["error"]["hint"]
        still: Any = await client.call_tool(NAME, {**asked, "run": run})
        assert still.structured_content == answer, "nobody has answered yet"
        (question,) = await door.hub.approvals.list()
        await door.hub.approvals.answer(question.approval.id, "once")
        result = await client.call_tool(NAME, {**asked, "run": run})
        assert result.structured_content["data"] == "Sent [c1]."
        assert journal(tmp_path / "journal") == ["hello"]
        assert len(await door.hub.runs.list()) == 1, "nothing was begun anew"
        for wrong in ("run_nobodys", 7):
            refused: Any = await client.call_tool(NAME, {**asked, "run": wrong})
            assert refused.is_error
            assert len(await door.hub.runs.list()) == 1


async def test_a_client_that_goes_away_stops_the_run(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        return calls(("mcp_box_sleep", {"seconds": 30}))

    async with open_scripted_door(tmp_path, script) as door:
        call = {"name": NAME, "arguments": {"connector_id": "box", "query": "sleep"}}
        asking = asyncio.ensure_future(door.ask("tools/call", call, "/mcp?view=search"))

        async def is_at_work() -> bool:
            runs = await door.hub.runs.list()
            return bool(runs) and runs[0].status == "running"

        await until(is_at_work, within=10)
        asking.cancel()

        async def is_over() -> bool:
            return (await door.hub.runs.list())[0].status == "cancelled"

        await until(is_over, within=5)


async def test_nobody_reaches_a_connector_of_others(tmp_path: Path) -> None:
    callers = {"reader": Caller(grants=(frozenset({"mcp_box_echo"}),)), "eve": Caller("globex", "eve")}

    def script(turn: Turn) -> Reply:
        if turn.number > 1:
            return Reply(text="no")
        assert [name for name in turn.tools if name.startswith("mcp_")] == ["mcp_box_echo"]
        return calls(("mcp_box_send", {"text": "leak"}))

    async with open_scripted_door(tmp_path, script, callers=callers) as door:
        call = {"name": NAME, "arguments": {"connector_id": "box", "query": "send"}}
        eve = await door.ask("tools/call", call, "/mcp?view=search", X_Test_Caller="eve")
        assert eve.value["result"]["structuredContent"]["error"]["code"] == "CONNECTOR_NOT_FOUND"
        await door.ask("tools/call", call, "/mcp?view=search", X_Test_Caller="reader")
        assert journal(tmp_path / "journal") == []


async def test_the_tool_costs_few_tokens_and_only_where_there_is_an_agent(tmp_path: Path) -> None:
    async with open_scripted_door(tmp_path, echoing) as door:
        async with door.client("/mcp?view=search") as client:
            tools = {tool.name: tool for tool in (await client.list_tools()).tools}
            entry = tools[NAME].model_dump_json(by_alias=True, exclude_none=True)
            assert len(entry) < 800
        await door.hub.connectors.remove("box")
        async with door.client("/mcp?view=search") as client:
            assert NAME not in {tool.name for tool in (await client.list_tools()).tools}
