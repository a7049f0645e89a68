"""Agents hand jobs to connector agents: in parallel, in one stream, with no more rights than they have."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.delegation_offers import DEEPEST
from patience import deadline, patient, until
from servers.hubs import quick
from servers.processes import journal, stdio
from servers.samples import sample
from servers.scenarios import Call, Reply, Turn
from servers.scripted_hubs import calls, is_of, numbers, open_scripted

pytestmark = pytest.mark.anyio
BOX = quick(**stdio())
TOOL = "query_mcp_connector"
DELEGATE = {"exposure": "delegate"}


def asks(connector: str, text: str = "do it", **facts: Any) -> Call:
    return Call(TOOL, {"connector_id": connector, "query": text, **facts})


def results(turn: Turn, tool: str = TOOL) -> list[Any]:
    values = [result.value for result in turn.fresh if result.tool == tool]
    return [
        json.loads(value) if isinstance(value, str) and value.startswith("{") else value for value in values
    ]


def source(turn: Turn) -> str:
    """The id under which the last result may be cited."""
    return turn.fresh[-1].sources[0]


SIDES = ("left", "right")


def ask_both(turn: Turn) -> Reply:
    if turn.number == 1:
        return Reply(tool_calls=(asks("left"), asks("right", maxTools=3)))
    assert [one["status"] for one in results(turn)] == ["success"] * 2
    return Reply(text="Both are done.")


async def test_several_connectors_work_at_once_and_are_seen_in_one_stream(
    tmp_path: Path, database_url: str
) -> None:
    meeting = asyncio.Barrier(2)

    async def script(turn: Turn) -> Reply:
        side = next((slug for slug in SIDES if is_of(turn, slug)), None)
        if side is None:
            return ask_both(turn)
        if turn.number > 1:
            return Reply(text=f"{side} is done [c1].")
        async with deadline(20):
            await meeting.wait()  # one after the other they would never meet
        return calls((f"mcp_{side}_echo", {"text": "hi"}))

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        for slug in SIDES:
            await hub.connectors.add(slug, **BOX)
        accepted = await hub.messages.post("do both")
        heard = [event async for event in hub.runs.follow(accepted.run.id)]
        run = await hub.runs.get(accepted.run.id)
        assert run.answer == "Both are done."
        places = [event.number for event in heard]
        assert places == sorted({*places})
        outer = [e.kind for e in heard if e.agent == "assistant"]
        assert "run.started" in outer[:2]
        assert outer[-1] == "run.finished"
        inner = [e.kind for e in heard if e.agent == "left"]
        assert inner[0] == "run.started"
        assert inner[-1] == "run.finished"
        assert "text" in inner
        assert {e.root for e in heard} == {run.id}
        view = await hub.runs.view(run.id)
        children = [one for one in view.family if not one.is_root]
        assert {one.agent for one in children} == {"left", "right"}
        assert [(one.usage.requests, one.usage.calls) for one in children] == [(2, 1)] * 2
        assert (run.usage.requests, run.usage.calls) == (6, 2)
        own = await numbers(hub, "assistant")
        for name in ("input_tokens", "output_tokens", "cost"):
            below = sum(getattr(one.usage, name) for one in children)
            assert getattr(run.usage, name) == pytest.approx(below + getattr(own, name))
            assert below > 0


async def test_two_jobs_of_one_second_take_little_more_than_one(tmp_path: Path) -> None:
    second = patient(1)

    def script(turn: Turn) -> Reply:
        side = next((slug for slug in SIDES if is_of(turn, slug)), None)
        if side is None:
            return ask_both(turn)
        if turn.number > 1:
            return Reply(text="done")
        return calls((f"mcp_{side}_sleep", {"seconds": second}))

    async with open_scripted(tmp_path, script) as (hub, _):
        for slug in SIDES:
            await hub.connectors.add(slug, **BOX)
        accepted = await hub.messages.post("do both")
        heard = [one async for one in hub.runs.follow(accepted.run.id) if one.agent in SIDES]
        began = [event.time for event in heard if event.kind == "call.started"]
        ended = [event.time for event in heard if event.kind == "call.finished"]
        assert max(began) < min(ended), "one waited for the other"
        assert second <= (max(ended) - min(began)).total_seconds() < 1.5 * second


async def test_an_agent_that_may_delegate_is_told_of_every_connector(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="fine")) as (hub, server):
        await hub.ask("hello")
        assert TOOL not in server.turns[-1].tools
        await hub.connectors.add("box", description="A box\nof tools", **BOX)
        await hub.connectors.add("tracker", **sample("tracker", tmp_path))
        await hub.connectors.add("off", **BOX)
        await hub.connectors.disable("off")
        broken = quick(**stdio("--exit-at-start", "3"), auto_reconnect=False)
        await hub.connectors.add("broken", **broken)
        await hub.ask("hello")
        system = server.turns[-1].system
        assert "- box: A box of tools, ready" in system
        assert "- tracker: tools " in system
        assert "search_repositories" in system.partition("- tracker: ")[2].partition("\n")[0]
        assert "- off: no description, disabled" in system
        assert "- broken: no description, error (" in system
        assert TOOL in server.turns[-1].tools
        await hub.agents.create("clerk", connectors=["box"])
        await hub.messages.ask("@clerk hello", options=DELEGATE)
        system = server.turns[-1].system
        assert "- box: " in system
        assert "tracker" not in system


async def test_the_main_agent_goes_on_after_every_error(tmp_path: Path, database_url: str) -> None:
    def script(turn: Turn) -> Reply:
        if is_of(turn, "box"):
            return (
                calls(("mcp_box_fail", {"text": "out of paper"})) if turn.number == 1 else Reply(text="No.")
            )
        if turn.number == 1:
            wrong = Call(TOOL, {"connector_id": "box"})
            return Reply(tool_calls=(asks("nowhere"), asks("off"), asks("broken"), asks("box"), wrong))
        return Reply(text=" ".join(str(result.value) for result in turn.fresh))

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        await hub.connectors.add("box", **BOX)
        await hub.connectors.add("off", **BOX)
        await hub.connectors.disable("off")
        await hub.connectors.add("broken", **quick(**stdio("--exit-at-start", "3"), auto_reconnect=False))
        run = await hub.ask("try them all")
        assert run.status == "done"
        answer = run.answer or ""
        assert answer.count("CONNECTOR_NOT_FOUND") == 2
        assert answer.count("MCP_ORCHESTRATION_FAILED") == 1
        assert answer.count("TOOL_EXECUTION_FAILED") == 1
        assert "out of paper" in answer
        assert "query is missing" in answer


async def test_a_chain_over_two_connectors_passes_results_on(tmp_path: Path, database_url: str) -> None:
    def script(turn: Turn) -> Reply:
        if is_of(turn, "chat"):
            if turn.number == 1:
                return calls(("mcp_chat_read_messages", {"sender": "oncall", "limit": 1}))
            message = turn.result("mcp_chat_read_messages")
            (first,) = (message.get("result") or message)["messages"]
            return Reply(text=f"{first['text']} [c1]")
        if is_of(turn, "tracker"):
            if turn.number == 1:
                title = turn.user.splitlines()[0][:80]
                return calls(("mcp_tracker_create_issue", {"repository": "lantern/xyne", "title": title}))
            return Reply(text=f"Filed [{source(turn)}].")
        if turn.number == 1:
            return Reply(tool_calls=(asks("chat", "latest message of @oncall"),))
        if turn.number == 2:
            return Reply(tool_calls=(asks("tracker", results(turn)[0]["data"]),))
        return Reply(text=results(turn)[0]["data"])

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        await hub.connectors.add("chat", **sample("chat", tmp_path))
        await hub.connectors.add("tracker", approval="never", **sample("tracker", tmp_path))
        run = await hub.messages.ask(
            "create an issue for the bug in the latest chat message from @oncall", options=DELEGATE
        )
        assert (run.status, run.answer) == ("done", "Filed [c2].")
        (cited,) = run.options["outcome"]["contexts"]
        assert (cited["id"], cited["tool"]) == ("c2", "mcp_tracker_create_issue")
        said = await hub.call("mcp_chat_read_messages", {"sender": "oncall", "limit": 1})
        text = said.result["messages"][0]["text"]
        filed = await hub.call("mcp_tracker_list_issues", {"repository": "lantern/xyne", "limit": 1})
        assert text.startswith(filed.result["issues"][0]["title"].partition(" [c1]")[0])


# Chains


def delegating(turn: Turn) -> Reply:
    """Each agent asks the next one in the alphabet, if it still can."""
    if turn.number > 1:
        return Reply(text=str(turn.fresh[0].value))
    if "ask_agent" not in turn.tools:
        assert TOOL not in turn.tools
        return Reply(text="the end of the chain")
    name = turn.system.partition("You are ")[2][:1]
    target = "ann" if name == "t" else {"a": "bob", "b": "cid", "c": "dan", "d": "eve"}[name]
    return Reply(tool_calls=(Call("ask_agent", {"agent": target, "request": "go on"}),))


async def test_a_chain_of_delegations_has_an_end(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, delegating) as (hub, _):
        await hub.connectors.add("box", connect=False, **BOX)
        for name in ("ann", "bob", "cid", "dan", "eve"):
            await hub.agents.create(name)
        run = await hub.ask("begin")
        family = (await hub.runs.view(run.id)).family
        assert [one.agent for one in family] == ["assistant", "ann", "bob", "cid", "dan"]
        assert len(family) == DEEPEST + 1
        assert "the end of the chain" in (run.answer or "")


async def test_no_agent_is_asked_twice_in_a_chain(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if turn.number > 1:
            return Reply(text=str(turn.fresh[0].value))
        target = "ann" if "You are bob" in turn.system or "You are the assistant" in turn.system else "bob"
        return Reply(tool_calls=(Call("ask_agent", {"agent": target, "request": "go on"}),))

    async with open_scripted(tmp_path, script) as (hub, _):
        for name in ("ann", "bob"):
            await hub.agents.create(name)
        run = await hub.ask("begin")
        assert [one.agent for one in (await hub.runs.view(run.id)).family] == ["assistant", "ann", "bob"]
        assert "no cycles" in (run.answer or "")


# Rights


async def test_who_delegates_gives_no_more_than_it_has(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"

    def script(turn: Turn) -> Reply:
        if is_of(turn, "box"):
            if turn.number > 1:
                return Reply(text="no")
            assert [name for name in turn.tools if name.startswith("mcp_")] == ["mcp_box_echo"]
            return calls(("mcp_box_send", {"text": "leak"}))
        return Reply(tool_calls=(asks("box"),)) if turn.number == 1 else Reply(text="end")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        await hub.connectors.add("box", approval="never", **quick(**stdio("--journal", str(log))))
        await hub.agents.create("reader", connectors=["box"], capabilities=["mcp_box_echo"])
        run = await hub.messages.ask("@reader send it", options=DELEGATE)
        assert run.status == "done"
        assert journal(log) == []
        assert len((await hub.runs.view(run.id)).family) == 2


async def test_what_is_not_active_in_a_thread_cannot_be_delegated_to(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if turn.number > 1:
            return Reply(text=str(turn.fresh[0].value))
        assert "- bag: " not in turn.system
        return Reply(tool_calls=(asks("bag"),))

    async with open_scripted(tmp_path, script) as (hub, _):
        for slug in ("box", "bag"):
            await hub.connectors.add(slug, **BOX)
        thread = (await hub.threads.create(connectors=["box"])).thread.id
        run = await hub.ask("use the bag", thread=thread)
        assert "CONNECTOR_NOT_FOUND" in (run.answer or "")


async def test_an_approval_deep_in_a_chain_is_asked_and_answered(tmp_path: Path, database_url: str) -> None:
    log = tmp_path / "journal"

    def script(turn: Turn) -> Reply:
        if is_of(turn, "box"):
            return (
                calls(("mcp_box_send", {"text": "hello"})) if turn.number == 1 else Reply(text="Sent [c1].")
            )
        if turn.number == 1:
            return Reply(tool_calls=(asks("box"),))
        return Reply(text=results(turn)[0]["data"])

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        await hub.connectors.add("box", **quick(**stdio("--journal", str(log))))
        accepted = await hub.messages.post("send hello")
        kinds: list[tuple[str, str]] = []
        async for event in hub.runs.follow(accepted.run.id):
            kinds.append((event.kind, event.agent))
            if event.kind == "approval.requested":
                assert journal(log) == []
                await hub.approvals.answer(event.data["approval"], "once")
        assert ("approval.requested", "box") in kinds
        assert ("approval.answered", "box") in kinds
        assert (await hub.runs.get(accepted.run.id)).answer == "Sent [c1]."
        assert journal(log) == ["hello"]


# After an interruption


async def test_usage_and_sources_are_whole_after_a_restart(tmp_path: Path, database_url: str) -> None:
    """The first connector is done, the second waits for a person: then the process ends."""

    def script(turn: Turn) -> Reply:
        if is_of(turn, "first"):
            return calls(("mcp_first_echo", {"text": "1"})) if turn.number == 1 else Reply(text="One [c1].")
        if is_of(turn, "second"):
            if turn.number == 1:
                return calls(("mcp_second_echo", {"text": "2"}))
            if turn.number == 2:
                return calls(("mcp_second_echo", {"text": "3"}), ("mcp_second_send", {"text": "4"}))
            return Reply(text="Two [c2], three [c3], four [c4].")
        if turn.number == 1:
            return Reply(tool_calls=(asks("first"),))
        if turn.number == 2:
            return Reply(tool_calls=(asks("second"),))
        return Reply(text=results(turn)[0]["data"])

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        for slug in ("first", "second"):
            await hub.connectors.add(slug, **BOX)
        accepted = await hub.messages.post("begin")
        async for event in hub.runs.follow(accepted.run.id):
            if event.kind == "approval.requested":
                break
        done = asyncio.Event()
        async for event in hub.runs.follow(accepted.run.id):
            if event.kind == "call.finished" and event.data["tool"] == "mcp_second_echo":
                done.set()
            if event.kind in ("approval.requested", "run.waiting") and done.is_set():
                break
    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        pending: list[Any] = []

        async def is_pending() -> bool:
            pending[:] = await hub.approvals.list()
            return bool(pending)

        await until(is_pending, within=10)
        await hub.approvals.answer(pending[0].approval.id, "once")
        run = await hub.runs.finished(accepted.run)
        assert run.answer == "Two [c2], three [c3], four [c4]."
        assert [one["id"] for one in run.options["outcome"]["contexts"]] == ["c2", "c3", "c4"]
        family = (await hub.runs.view(run.id)).family
        usages = {one.agent: one.usage for one in family}
        assert (usages["first"].requests, usages["first"].calls) == (2, 1)
        assert (usages["second"].requests, usages["second"].calls) == (3, 3)
        assert (usages["assistant"].requests, usages["assistant"].calls) == (8, 4)
        counted = await numbers(hub, "second")
        assert (counted.runs, counted.calls) == (1, 3)
        second = next(one for one in family if one.agent == "second")
        ids = [context["id"] for context in second.options["outcome"]["contexts"]]
        assert sorted(ids) == ["c2", "c3", "c4"]
