"""Every citation of a final answer leads to its source, over delegations, threads and agents."""

from pathlib import Path
from typing import Any

import pytest

from dragoman.agents.citations import cited_in, with_known_citations
from servers.hubs import quick
from servers.processes import stdio
from servers.scenarios import Call, Reply, Turn
from servers.scripted_hubs import calls, is_of, open_scripted

pytestmark = pytest.mark.anyio
BOX = quick(**stdio())
SIDES = ("left", "right")
DELEGATE = {"exposure": "delegate"}


def asks(connector: str) -> Call:
    return Call("query_mcp_connector", {"connector_id": connector, "query": "say hi"})


def side_of(turn: Turn) -> str | None:
    return next((slug for slug in SIDES if is_of(turn, slug)), None)


def says_hi(turn: Turn, side: str) -> Reply:
    if turn.number == 1:
        return calls((f"mcp_{side}_echo", {"text": f"hi from {side}"}))
    return Reply(text=f"{side} says hi [{turn.fresh[0].sources[0]}]")


def told(turn: Turn) -> list[Any]:
    return [result.value for result in turn.fresh]


async def test_sources_of_two_connectors_are_carried_up_to_the_final_answer(
    tmp_path: Path, database_url: str
) -> None:
    def script(turn: Turn) -> Reply:
        if side := side_of(turn):
            return says_hi(turn, side)
        if turn.number == 1:
            return Reply(tool_calls=tuple(map(asks, SIDES)))
        for one in told(turn):
            assert str(one).count("says hi") == 1, "the answer is there once"
            assert [context["id"] for context in one["metadata"]["contexts"]] == cited_in(one["data"])
        return Reply(text=" ".join(one["data"] for one in told(turn)) + " And so on [c99].")

    async with open_scripted(tmp_path, script, database_url=database_url) as (hub, _):
        for slug in SIDES:
            await hub.connectors.add(slug, **BOX)
        accepted = await hub.messages.post("who is there?", options=DELEGATE)
        finished = [one async for one in hub.runs.follow(accepted.run.id) if one.kind == "run.finished"]
        run = await hub.runs.get(accepted.run.id)
        answer = run.answer or ""
        assert sorted(cited_in(answer)) == ["c1", "c2"]
        assert answer.endswith("And so on.\n\n(A citation that named no source was removed.)")
        contexts = {one["id"]: one for one in run.options["outcome"]["contexts"]}
        for side in SIDES:
            (cited,) = cited_in(answer[answer.index(f"{side} says") :].partition("]")[0] + "]")
            assert f"hi from {side}" in contexts[cited]["excerpt"]
            assert contexts[cited]["tool"] == f"mcp_{side}_echo"
        assert finished[-1].data["contexts"] == [*contexts.values()]
        (message,) = [one for one in await hub.messages.list(run.thread) if one.author == "agent"]
        assert message.details["outcome"]["contexts"] == [*contexts.values()]


async def test_what_an_agent_cites_that_was_asked_by_another_is_carried_up_too(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if side := side_of(turn):
            return says_hi(turn, side)
        if "You are ann" in turn.system:
            return (
                Reply(tool_calls=(asks("left"),)) if turn.number == 1 else Reply(text=told(turn)[0]["data"])
            )
        if turn.number == 1:
            return Reply(tool_calls=(Call("ask_agent", {"agent": "ann", "request": "who is there?"}),))
        return Reply(text=f"Ann says: {told(turn)[0]['answer']}")

    async with open_scripted(tmp_path, script) as (hub, _):
        await hub.connectors.add("left", **BOX)
        await hub.agents.create("ann", connectors=["left"], exposure="delegate")
        run = await hub.ask("ask ann")
        assert run.answer == "Ann says: left says hi [c1]"
        (context,) = run.options["outcome"]["contexts"]
        assert "hi from left" in context["excerpt"]


async def test_what_was_cited_in_a_thread_keeps_its_id_there(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if side := side_of(turn):
            return says_hi(turn, side)
        if turn.number == 1:
            return Reply(tool_calls=(asks("left" if "first" in turn.user else "right"),))
        return Reply(text=f"{told(turn)[0]['data']}; before it was [c1]")

    async with open_scripted(tmp_path, script) as (hub, _):
        for slug in SIDES:
            await hub.connectors.add(slug, **BOX)
        first = await hub.messages.ask("the first", options=DELEGATE)
        second = await hub.messages.ask("the second", thread=first.thread, options=DELEGATE)
        assert second.answer == "right says hi [c2]; before it was [c1]"
        excerpts = {one["id"]: one["excerpt"] for one in second.options["outcome"]["contexts"]}
        assert "hi from left" in excerpts["c1"]
        assert "hi from right" in excerpts["c2"]


async def test_what_an_assistant_called_itself_is_cited_in_this_answer_and_later_ones(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        if "first" in turn.user and turn.number == 1:
            return calls(("mcp_left_echo", {"text": "one"}), ("mcp_left_echo", {"text": "two"}))
        one, two = (result.sources[0] for result in turn.results)
        return Reply(text=f"One [{one if 'first' in turn.user else two}] and three [c99].")

    async with open_scripted(tmp_path, script) as (hub, _):
        await hub.connectors.add("left", **BOX)
        direct = {"exposure": "direct"}
        first = await hub.messages.ask("the first", options=direct)
        later = await hub.messages.ask("the second", thread=first.thread, options=direct)
        for run, excerpt in ((first, "one"), (later, "two")):
            (cited,) = cited_in(run.answer or "")
            assert run.answer == (
                f"One [{cited}] and three.\n\n(A citation that named no source was removed.)"
            )
            (context,) = run.options["outcome"]["contexts"]
            assert (context["id"], context["tool"]) == (cited, "mcp_left_echo")
            assert excerpt in context["excerpt"]


async def test_an_answer_that_is_cut_cites_no_source_that_there_is_not(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="Surely [c7]. ", too_long=True)) as (hub, _):
        run = await hub.ask("is it so?")
        assert run.error is not None
        assert run.error.code == "answer_cut"
        assert "[c7]" not in (run.answer or "")
        assert "2 citations of no source were removed" in (run.answer or "")


async def test_who_has_no_sources_cites_none(tmp_path: Path) -> None:
    async with open_scripted(tmp_path, lambda turn: Reply(text="Surely [c1, c2].")) as (hub, _):
        run = await hub.ask("is it so?")
        assert run.answer == "Surely.\n\n(2 citations of no source were removed.)"
        assert "outcome" not in run.options


def test_a_long_answer_is_looked_through_in_no_time() -> None:
    answer = "fact [c1] `code[c9]` " * 20_000
    assert with_known_citations(answer, {"c1"}) == answer
