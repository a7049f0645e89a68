"""The rule-driven model over real HTTP: what it does follows from what it is offered, in every exposure."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import httpx2
import pytest

from dragoman import Hub
from dragoman.agents.citations import cited_in
from dragoman.run import Run, RunLimits
from patience import deadline
from servers.rule_model import Fault, RuleModel
from servers.samples import sample
from servers.scenarios import Call, Reply
from servers.scripted_hubs import CLAUDE, MODEL, open_scripted
from servers.scripted_models import open_scripted_openai
from servers.scripted_wires import OpenAIWire

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
EXPOSURES = ("direct", "search", "delegate", "code")
BY = {"direct": [], "search": ["search_tools"], "delegate": ["query_mcp_connector"], "code": ["search_tools"]}


async def asked(hub: Hub, text: str, exposure: str = "direct", **facts: Any) -> tuple[Run, list[str]]:
    """The finished run and what was called in it and below, in order; every approval is given."""
    accepted = await hub.messages.post(text, options={"exposure": exposure}, **facts)
    called: list[str] = []
    async for event in hub.runs.follow(accepted.run.id):
        if event.kind == "call.started" and event.data["tool"] != "state_plan":
            called.append(event.data["tool"].removeprefix("mcp_"))
        elif event.kind == "approval.requested":
            await hub.approvals.answer(event.data["approval"], "once")
    return await hub.runs.get(accepted.run.id), called


async def add_samples(hub: Hub, data: Path, *names: str) -> None:
    about = {
        "email": "a mailbox: e-mail",
        "tracker": "issues of repositories",
        "chat": "messages in channels",
    }
    for name in names:
        await hub.connectors.add(name, description=about[name], **sample(name, data))


@pytest.mark.parametrize("model", [MODEL, CLAUDE], ids=["openai", "anthropic"])
async def test_the_same_sentence_is_done_by_whichever_way_is_offered(tmp_path: Path, model: str) -> None:
    async with open_scripted(tmp_path / "home", RuleModel(), model=model) as (hub, server):
        await add_samples(hub, tmp_path, "email", "tracker")
        for exposure in EXPOSURES:
            run, called = await asked(hub, "Check my 2 latest emails", exposure)
            assert (run.status, run.exposure) == ("done", exposure), run.error
            assert called == [*BY[exposure], "run_code" if exposure == "code" else "email_read-emails"]
            assert "Re: Budget table" in str(run.answer)
            assert "Invoice" not in str(run.answer), "more than two"
            sources = {one["id"]: one for one in run.options["outcome"]["contexts"]}
            assert cited_in(str(run.answer)) == [*sources], "what it says leads to where it is from"
            assert all("Re: Budget table" in one["excerpt"] for one in sources.values())
        assert all(request["stream"] for request in server.requests)


async def test_what_needs_the_result_of_another_clause_comes_after_it(tmp_path: Path) -> None:
    async with open_scripted(tmp_path / "home", RuleModel()) as (hub, _):
        await add_samples(hub, tmp_path, "tracker", "chat")
        text = "Read the chat messages from oncall, then create an issue in xyne titled with what it says"
        for exposure in ("direct", "delegate"):
            run, called = await asked(hub, text, exposure)
            assert run.status == "done", run.error
            tools = [one for one in called if one != "query_mcp_connector"]
            assert tools == ["chat_read_messages", "tracker_create_issue"]
        titles = [one["title"] for one in json.loads((tmp_path / "tracker.json").read_text())["issues"]]
        assert len([one for one in titles if one.startswith("Bug in xyne 4.2.1")]) == 2


async def test_each_fault_of_a_model_is_one_and_the_run_comes_to_an_end(tmp_path: Path) -> None:
    model = RuleModel()
    async with open_scripted(tmp_path / "home", model) as (hub, server):
        await add_samples(hub, tmp_path, "email")

        async def with_fault(*faults: Fault, limits: RunLimits | None = None) -> tuple[Run, list[str], Any]:
            model.faults, model.met = faults, {}
            run, called = await asked(hub, "Check my 2 latest emails", limits=limits)
            return run, called, server.turns[-1]

        run, called, _ = await with_fault(Fault("wrong_tool"))
        assert (run.status, called) == ("done", ["email_read-emails"]), run.error
        run, called, _ = await with_fault(Fault("parallel"))
        assert (run.status, called) == ("done", ["email_read-emails"] * 3), run.error
        _, _, turn = await with_fault(Fault("wrong_types"))
        (call,) = next(one["tool_calls"] for one in turn.request["messages"] if one.get("tool_calls"))
        assert json.loads(call["function"]["arguments"]) == {"limit": "2"}
        run, called, _ = await with_fault(Fault("repeats"), limits=RunLimits(calls=4))
        assert run.status != "done" or len(called) <= 4
        assert len(called) >= 2
        run, _, _ = await with_fault(Fault("rate_limited", times=1, seconds=0.01))
        assert (run.status, model.met) == ("done", {"rate_limited": 1}), run.error


async def test_a_stream_that_stalls_has_begun_and_ends_when_the_client_goes() -> None:
    model = RuleModel([Fault("stalled", seconds=600)])
    body = {"model": "m", "stream": True, "messages": [{"role": "user", "content": "hello"}]}
    async with open_scripted_openai(model) as server, httpx2.AsyncClient() as client:
        async with (
            deadline(20),
            client.stream("POST", f"{server.base_url}/chat/completions", json=body) as response,
        ):
            assert response.status_code == 200
            async for line in response.aiter_lines():
                assert "role" in line
                break
        async with deadline(20):
            await server.left_alone.wait()


def faulty(*faults: Fault) -> Sequence[Reply]:
    """What it says to three requests in a row."""
    request = {"messages": [{"role": "user", "content": "hello"}]}
    model = RuleModel(faults)
    return [model(OpenAIWire().read(request)) for _ in range(3)]


def test_a_fault_meets_as_many_requests_as_it_says() -> None:
    assert [one.cut for one in faulty(Fault("cut", times=2))] == [True, True, False]
    assert [one.garbage for one in faulty(Fault("garbage"))] == [True, True, True]
    assert [one.delay for one in faulty(Fault("slow", times=1, seconds=3))] == [3, 0, 0]
    limited = faulty(Fault("rate_limited", times=1, seconds=7))
    assert [(one.status, one.retry_after) for one in limited] == [(429, 7), (None, None), (None, None)]
    assert faulty(Fault("wrong_tool"))[0].tool_calls == (Call("look_into_everything", {"everywhere": True}),)
