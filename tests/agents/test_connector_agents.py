"""The agent of a connector as a record: made with it, refreshed with it, gone with it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from dragoman import Caller, Hub
from dragoman.agent import Agent
from dragoman.agents.connector_query import ConnectorQuery
from dragoman.errors import Conflict, Denied, InvalidArguments, InvalidName, NotFound
from dragoman.scope import APP
from dragoman.settings import Settings
from dragoman.store import Store, open_store
from servers.hubs import quick, until
from servers.processes import stdio
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import calls, is_of, numbers, open_scripted

pytestmark = pytest.mark.anyio
ANNA = Caller("acme", "anna")
BERT = Caller("acme", "bert")
ADMIN = Caller("acme", "chief", role="admin")
OTHER = Caller("globex", "anna")
BOX = quick(**stdio())


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    return Settings(home=tmp_path / "home", database_url=database_url, model="offline")


@asynccontextmanager
async def rows(settings: Settings) -> AsyncGenerator[Store]:
    async with open_store(settings.store_url) as store:
        yield store


async def records(settings: Settings) -> list[Agent]:
    async with rows(settings) as store:
        return [agent for agent in await store.agents.list() if agent.kind == "connector"]


async def test_an_agent_is_made_with_its_connector_and_goes_with_it(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("box", description="A box of tools", **BOX)
        agent = await hub.agents.get("box")
        assert (agent.kind, agent.status, agent.connectors) == ("connector", "active", ("box",))
        (record,) = await records(settings)
        assert (record.id, record.description) == (agent.id, "A box of tools")
        await hub.connectors.remove("box")
        assert await hub.agents.find("box") is None
        assert await records(settings) == []


async def test_it_is_refreshed_when_its_connector_or_its_tools_change(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("box", approval="never", **BOX)
        await hub.agents.update("box", instructions="Be brief.", model="offline")
        first = await hub.agents.get("box")
        await hub.connectors.update("box", description="Another box")
        second = await hub.agents.get("box")
        assert second.description == "Another box"
        assert second.updated_at > first.updated_at
        await hub.call("mcp_box_add_tool", {"name": "fresh"})

        async def is_refreshed() -> bool:
            return (await hub.agents.get("box")).updated_at > second.updated_at

        await until(is_refreshed)
        last = await hub.agents.get("box")
        assert (last.instructions, last.model, last.created_at) == ("Be brief.", "offline", first.created_at)


async def test_an_agent_rests_while_its_connector_is_disabled(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("box", **BOX)
        await hub.connectors.disable("box")
        view = await hub.agents.view("box")
        assert (view.agent.status, view.notes) == ("stopped", ("its connector is disabled",))
        with pytest.raises(Conflict, match="disabled"):
            await hub.agents.start("box")
        await hub.agents.update("box", instructions="x")
        await hub.connectors.enable("box")
        assert (await hub.agents.get("box")).status == "active"
        await hub.agents.stop("box")
        await hub.connectors.disable("box")
        await hub.connectors.enable("box")
        assert (await hub.agents.get("box")).status == "stopped"


def echoing(turn: Turn) -> Reply:
    if turn.number == 1:
        return calls(("mcp_box_echo", {"text": "hi"}))
    return Reply(text="It said hi [c1].")


async def test_what_people_chose_and_what_it_did_survive_a_restart(tmp_path: Path, database_url: str) -> None:
    async with open_scripted(tmp_path, echoing, database_url=database_url) as (hub, _):
        await hub.connectors.add("box", **BOX)
        await hub.agents.update("box", instructions="Be brief.", exposure="direct")
        ran = await hub.queries.ask(ConnectorQuery(connector_id="box", query="echo hi"))
        assert ran["status"] == "success", ran
        await numbers(hub)
        before = await hub.agents.view("box")
        assert (before.numbers.runs, before.numbers.errors, before.numbers.calls) == (1, 0, 1)
        assert before.numbers.last_used is not None
        assert before.numbers.latency_ms > 0
    async with open_scripted(tmp_path, echoing, database_url=database_url) as (hub, _):
        assert await hub.agents.view("box") == before


async def test_a_start_makes_up_for_what_was_missed(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("box", **BOX)
        await hub.connectors.add("bag", **BOX)
    async with rows(settings) as store:
        box = next(one for one in await store.agents.list() if one.name == "mcp_box")
        await store.agents.remove(box.workspace, box.id)
        stray = replace(box, id="agt_con_gone", connector_id="con_gone", name="mcp_gone", revision=0)
        await store.agents.put(stray)
        (bag,) = [one for one in await store.agents.list() if one.name == "mcp_bag"]
    async with Hub(settings):
        kept = {one.name: one for one in await records(settings)}
        assert kept.keys() == {"mcp_bag", "mcp_box"}
        assert kept["mcp_bag"] == bag
        assert kept["mcp_box"].id == box.id


async def test_who_may_change_it_is_who_may_change_the_connector(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.acting_for(ANNA).connectors.add("mine", **BOX)
        await hub.acting_for(ADMIN).connectors.add("ours", shared=True, **BOX)
        await hub.acting_for(ANNA).agents.update("mine", instructions="Mine.")
        await hub.acting_for(ADMIN).agents.update("ours", model="offline")
        with pytest.raises(Denied):
            await hub.acting_for(ANNA).agents.update("ours", instructions="Mine too.")
        for stranger in (BERT, ADMIN, OTHER):
            with pytest.raises(NotFound):
                await hub.acting_for(stranger).agents.update("mine", instructions="No.")
        for field in ("connectors", "capabilities", "description"):
            with pytest.raises(InvalidArguments):
                await hub.acting_for(ANNA).agents.update("mine", **{field: None})
        with pytest.raises(InvalidArguments):
            await hub.acting_for(ANNA).agents.remove("mine")
        assert (await hub.acting_for(ANNA).agents.get("mine")).instructions == "Mine."
        assert (await hub.acting_for(BERT).agents.get("ours")).model == "offline"


async def test_numbers_of_a_connector_of_the_app_never_cross_tenants(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scripted(tmp_path, echoing, database_url=database_url) as (hub, _):
        await hub.acting_for(Caller(APP, "", role="operator")).connectors.add("box", shared=True, **BOX)
        for caller, times in ((ANNA, 2), (OTHER, 1)):
            for _ in range(times):
                answer = await hub.acting_for(caller).queries.ask(
                    ConnectorQuery(connector_id="box", query="echo hi")
                )
                assert answer["status"] == "success", answer
        ours = await numbers(hub, caller=ANNA, runs=2)
        theirs = await numbers(hub, caller=OTHER)
        assert (ours.runs, ours.calls) == (2, 2)
        assert (theirs.runs, theirs.calls) == (1, 1)
        assert theirs.input_tokens > 0
        assert theirs.cost > 0
        assert (await hub.agents.view("box")).numbers.runs == 0


async def test_a_worker_and_a_connector_of_one_name_are_told_apart(tmp_path: Path) -> None:
    def script(turn: Turn) -> Reply:
        return Reply(text="connector" if is_of(turn, "mcp_mailer") else "worker")

    async with open_scripted(tmp_path, script) as (hub, _):
        await hub.agents.create("mailer", description="writes mails")
        await hub.connectors.add("mailer", **BOX)
        await hub.connectors.add("assistant", **BOX)
        kinds = {agent.name: agent.kind for agent in await hub.agents.list()}
        assert kinds == {
            "assistant": "assistant",
            "mailer": "worker",
            "mcp_assistant": "connector",
            "mcp_mailer": "connector",
        }
        asked = await hub.queries.ask(ConnectorQuery(connector_id="mailer", query="who are you?"))
        assert asked["data"] == "connector"
        assert (await hub.ask("@mailer who are you?")).answer == "worker"
        await hub.agents.update("mcp_mailer", instructions="x")
        assert (await hub.agents.get("mailer")).instructions == ""
        with pytest.raises(InvalidName):
            await hub.agents.create("mcp_other")
        with pytest.raises(Conflict):
            await hub.agents.create("Mailer")


async def test_it_is_found_by_every_name_of_its_connector(settings: Settings) -> None:
    async with Hub(settings) as hub:
        await hub.connectors.add("email_mcp", **BOX)
        for name in ("email-mcp", "email_mcp", "mcp_email-mcp", "Email-MCP"):
            assert (await hub.agents.get(name)).name == "email-mcp"


async def test_a_change_of_an_agent_is_told(settings: Settings) -> None:
    async with Hub(settings) as hub:
        events = aiter(hub.events())
        waiting = asyncio.ensure_future(anext(events))
        await asyncio.sleep(0)
        await hub.connectors.add("box", connect=False, **BOX)
        assert (await waiting).kind == "connector.registered"
        event = await anext(events)
        assert (event.kind, event.data["name"], event.data["what"]) == ("agent.changed", "box", "created")
