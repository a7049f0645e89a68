"""Clients of `/mcp` at whichever node: sessions, their streams, what asks them back, and who may not."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

import aiohttp
import pytest

from cluster.nats_server import NatsServer
from cluster.nodes import id_of, open_hubs
from dragoman import Hub
from dragoman.hub import clients_of
from dragoman.mcp_endpoint import McpEndpoint
from dragoman.scope import LOCAL_CALLER, Caller
from dragoman.web.guard import Guard
from mcp_endpoint.doors import META, Door, News, People, Session, is_token, serving, subscribed
from patience import deadline, until
from servers.hubs import runtime_of
from servers.processes import HttpProcess, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(120), pytest.mark.postgres]
CALLERS = {"eve": Caller(user="eve", role="operator"), "few": Caller(grants=(frozenset({"mcp_asking"}),))}
ASKABLE = {"elicitation": {"form": {}}}
CAN_BE_ASKED = {**META, "io.modelcontextprotocol/clientCapabilities": ASKABLE}
PING = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


@asynccontextmanager
async def open_doors(hub: Hub) -> AsyncGenerator[Door]:
    endpoint = McpEndpoint(hub)
    guarded = Guard(People(endpoint, CALLERS), is_token=is_token, operator=LOCAL_CALLER)
    async with serving(guarded, endpoint) as url, aiohttp.ClientSession() as session:
        yield Door(hub, endpoint, url, session)


class Nodes:
    """Two nodes with three connectors: one that asks, one that tells of its resources, a plain one."""

    def __init__(self, doors: list[Door], nats: NatsServer, folder: Path, database_url: str) -> None:
        self.a, self.b = doors
        self.nats = nats
        self.folder = folder
        self.database_url = database_url

    @asynccontextmanager
    async def another(self) -> AsyncGenerator[Door]:
        name = self.folder / uuid4().hex[:6]
        async with (
            open_hubs(name, self.database_url, self.nats, 1) as (hub,),
            open_doors(hub) as door,
        ):
            yield door


@pytest.fixture(scope="module")
async def nodes(module_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Nodes]:
    folder, database_url = tmp_path_factory.mktemp("nodes"), module_postgres_url
    with (
        HttpProcess(folder, program="asking_server.py") as asking,
        HttpProcess(folder, "2026", program="telling_server.py") as telling,
    ):
        async with (
            NatsServer(folder / "nats") as nats,
            open_hubs(folder, database_url, nats) as hubs,
            AsyncExitStack() as stack,
        ):
            doors = [await stack.enter_async_context(open_doors(hub)) for hub in hubs]
            sources: dict[str, dict[str, Any]] = {
                "asking": {"url": asking.url},
                "box": {"url": telling.url},
                "plain": stdio(),
            }
            for slug, source in sources.items():
                await hubs[0].connectors.add(slug, **source, approval="never", shared=True)
            for tool in ("mcp_asking_greet", "mcp_box_change", "mcp_plain_echo"):
                await until(lambda tool=tool: _knows_tool(doors[1], tool))
            yield Nodes(doors, nats, folder, database_url)


async def ends(news: News) -> None:
    async with deadline(5):
        with pytest.raises(EOFError):
            while True:
                await news.next()


async def hears_of(news: News, uri: str) -> None:
    """That it may have changed; of others too, after they could not be watched for a moment."""
    async with deadline(5):
        while (await news.next())["params"].get("uri") != uri:
            pass


# Sessions of the 2025 era


async def test_a_session_is_used_at_any_node_by_who_opened_it_and_ended_at_any(nodes: Nodes) -> None:
    session = await nodes.a.open()
    there = session.at(nodes.b)
    assert (await there.ask("ping")).status == 200
    call = {"name": "mcp_plain_echo", "arguments": {"text": "hi"}}
    assert (await there.ask("tools/call", call)).value["result"]["content"][0]["text"] == "hi"
    for stranger in ("eve", "few"):
        for door in (nodes.a, nodes.b):
            stolen = {**session.headers, "x_test_caller": stranger}
            assert (await door.send("POST", "/mcp", PING, **stolen)).status == 404
            assert (await door.send("GET", "/mcp", **stolen)).status == 404
            assert (await door.send("DELETE", "/mcp", **stolen)).status == 404
    assert (await nodes.b.send("POST", "/mcp/plain", PING, **session.headers)).status == 404
    async with session.listening() as news:
        assert (await nodes.b.send("DELETE", "/mcp", **session.headers)).status == 200
        await ends(news)
    assert (await there.ask("ping")).status == 404
    assert (await session.ask("ping")).status == 404


async def test_a_session_goes_on_after_the_node_that_opened_it_has_ended(nodes: Nodes) -> None:
    async with nodes.another() as c:
        session = await c.open()
    assert (await session.at(nodes.a).ask("ping")).status == 200
    assert (await session.at(nodes.b).ask("ping")).status == 200


async def test_a_stream_is_taken_over_at_another_node_and_tells_what_changed_between(nodes: Nodes) -> None:
    session = await nodes.a.open("/mcp/box")
    there = session.at(nodes.b)
    await there.ask("tools/list")
    assert (await there.ask("resources/subscribe", {"uri": "test://a"})).value["result"] == {}
    async with session.listening() as old:
        # It was subscribed to before the stream was there: from now on it is watched here.
        await hears_of(old, "test://a")
        async with there.listening() as new:
            await ends(old)
            await hears_of(new, "test://a")
            # Subscribed at one node, told at the other.
            await session.ask("resources/subscribe", {"uri": "test://b"})
            await hears_of(new, "test://b")
            assert (await nodes.b.hub.call("mcp_box_change", {"what": "test://b"})).ok
            await hears_of(new, "test://b")
            await session.ask("resources/unsubscribe", {"uri": "test://b"})
            watched = nodes.b.endpoint._sessions
            await until(lambda: [*next(reversed(watched._sessions.values())).watched] == ["test://a"])
    await nodes.a.hub.tools.disable("mcp_box_change")
    try:
        async with session.listening() as late:
            methods = {(await late.next())["method"] for _ in range(2)}
            assert "notifications/tools/list_changed" in methods
    finally:
        await nodes.a.hub.tools.enable("mcp_box_change")


async def test_an_answer_and_a_cancellation_reach_the_node_where_the_request_is(nodes: Nodes) -> None:
    session = await nodes.a.open("/mcp/asking", ASKABLE)
    there = session.at(nodes.b)
    for is_accepted in (True, False):
        async with session.posted("tools/call", {"name": "greet", "arguments": {}}) as stream:
            asked = await stream.next()
            assert asked["method"] == "elicitation/create"
            accepted = {"result": {"action": "accept", "content": {"name": "Ada"}}}
            refused = {"error": {"code": -1, "message": "no"}}
            answer = {"jsonrpc": "2.0", "id": asked["id"], **(accepted if is_accepted else refused)}
            stolen = {**session.headers, "x_test_caller": "few"}
            assert (await nodes.b.send("POST", "/mcp/asking", answer, **stolen)).status == 404
            assert (await nodes.b.send("POST", "/mcp/asking", answer, **there.headers)).status == 202
            result = (await stream.next())["result"]
            assert (result["content"][0]["text"] == "Hello, Ada!") is is_accepted
    async with session.posted("tools/call", {"name": "greet", "arguments": {}}, "long") as stream:
        await stream.next()
        assert (await there.tell("notifications/cancelled", {"requestId": "long"})).status == 202
        assert (await stream.next())["error"]["message"] == "Request cancelled"
    # What nobody waits for harms nobody.
    assert (await there.tell("notifications/cancelled", {"requestId": "long"})).status == 202
    late = {"jsonrpc": "2.0", "id": "dragoman-0", "result": {}}
    assert (await nodes.b.send("POST", "/mcp/asking", late, **there.headers)).status == 202


# Tasks


async def begun(session: Session) -> Any:
    """A task of a client of the 2025 era that waits for its person."""
    call = {"name": "greet", "arguments": {}, "task": {}}
    return (await session.ask("tools/call", call)).value["result"]["task"]


async def test_news_of_a_task_come_where_the_client_listens_and_it_is_ended_from_there(nodes: Nodes) -> None:
    session = await nodes.a.open("/mcp/asking", ASKABLE)
    there = session.at(nodes.b)
    async with there.listening() as news:
        task = {"taskId": (await begun(session))["taskId"]}
        told = await news.next()
        while told["method"] != "notifications/tasks/status":
            told = await news.next()
        assert (told["params"]["taskId"], told["params"]["status"]) == (task["taskId"], "input_required")
        assert (await there.ask("tasks/cancel", task)).value["result"]["status"] == "cancelled"
        while told["params"].get("status") != "cancelled":
            told = await news.next()
    assert (await session.ask("tasks/result", task)).value["error"]["message"] == "Task cancelled"


async def test_a_listening_client_of_the_2026_era_hears_of_tasks_of_another_node(nodes: Nodes) -> None:
    declared = {**ASKABLE, "extensions": {"io.modelcontextprotocol/tasks": {}}}
    meta = {**META, "io.modelcontextprotocol/clientCapabilities": declared}
    call = {"name": "greet", "arguments": {}}
    task = (await nodes.a.ask("tools/call", call, "/mcp/asking", meta=meta)).value["result"]["taskId"]
    async with subscribed(nodes.b, "/mcp/asking", declared, taskIds=[task]) as news:
        asked = (await news.next())["params"]
        answer = {"action": "accept", "content": {"name": "Ada"}}
        answers = {"taskId": task, "inputResponses": dict.fromkeys(asked["inputRequests"], answer)}
        await nodes.b.ask("tasks/update", answers, "/mcp/asking", meta=meta, Mcp_Name=task)
        told: dict[str, Any] = {}
        while told.get("status") != "completed":
            told = (await news.next())["params"]
        assert told["result"]["content"][0]["text"] == "Hello, Ada!"


async def test_a_task_whose_node_has_ended_is_cancelled_and_not_begun_again(nodes: Nodes) -> None:
    async with nodes.another() as c:
        session = await c.open("/mcp/asking", ASKABLE)
        task = {"taskId": (await begun(session))["taskId"]}
        node = id_of(c.hub)
    there = session.at(nodes.b)
    await until(lambda: clients_of(nodes.b.hub).is_gone(node), 20)
    assert (await there.ask("tasks/cancel", task)).value["result"]["status"] == "cancelled"
    assert (await there.ask("tasks/get", task)).value["result"]["status"] == "cancelled"
    assert (await session.at(nodes.a).ask("tasks/get", task)).value["result"]["status"] == "cancelled"


# Requests of the 2026 era that are asked back


async def ask(door: Door, params: Any, **headers: str) -> Any:
    value = (await door.ask("tools/call", params, "/mcp/asking", meta=CAN_BE_ASKED, **headers)).value
    return value.get("result") or value["error"]


def answered(params: Any, asked: Any, name: str = "Ada") -> Any:
    answer = {"action": "accept", "content": {"name": name}}
    responses = dict.fromkeys(asked["inputRequests"], answer)
    return {**params, "inputResponses": responses, "requestState": asked["requestState"]}


async def test_a_request_that_was_asked_back_goes_on_at_any_node_once_and_for_who_sent_it(
    nodes: Nodes,
) -> None:
    call = {"name": "introduce", "arguments": {}}
    asked = await ask(nodes.a, call)
    assert (await ask(nodes.b, answered(call, asked), x_test_caller="eve"))["code"] == -32602
    assert "any more" in (await ask(nodes.b, answered({"name": "greet"}, asked)))["message"]
    asked = await ask(nodes.a, call)
    again = await ask(nodes.b, answered(call, asked, "Ada"))
    assert again["inputRequests"]["question"]["params"]["message"].endswith("second name?")
    assert (await ask(nodes.b, answered(call, asked)))["code"] == -32602, "used already"
    done = await ask(nodes.b, answered(call, again, "Lovelace"))
    assert done["content"][0]["text"] == "Ada Lovelace"


async def test_progress_of_a_request_is_told_and_its_end_wished_where_its_client_is(nodes: Nodes) -> None:
    call = {"name": "count", "arguments": {}}
    begun = {**CAN_BE_ASKED, "progressToken": "p0"}
    asked = (await nodes.a.ask("tools/call", call, "/mcp/asking", meta=begun)).value["result"]
    meta = {**CAN_BE_ASKED, "progressToken": "p1"}
    reply = await nodes.b.ask("tools/call", answered(call, asked), "/mcp/asking", meta=meta)
    *told, result = reply.events
    assert [one["params"]["progress"] for one in told] == [1, 2, 3]
    assert {one["params"]["progressToken"] for one in told} == {"p1"}
    assert result["result"]["content"][0]["text"] == "counted"
    asked = await ask(nodes.a, call)
    waiting = nodes.a.endpoint._parked._parked
    token, parked = next(reversed(waiting.items()))
    leaving = asyncio.create_task(
        nodes.b.ask("tools/call", answered(call, asked, "nobody"), "/mcp/asking", meta=CAN_BE_ASKED)
    )
    await until(lambda: token not in waiting)
    leaving.cancel()
    await until(lambda: parked._task.cancelled())


async def test_a_request_whose_node_has_ended_goes_on_where_it_may_be_repeated(nodes: Nodes) -> None:
    introduce, sign = ({"name": name, "arguments": {}} for name in ("introduce", "sign"))
    async with nodes.another() as c:
        await until(lambda: _knows_tool(c, "mcp_asking_sign"))
        first = await ask(c, introduce)
        assert first["resultType"] == "input_required", first
        second = await ask(nodes.a, answered(introduce, first, "Ada"))
        signing = await ask(c, sign)
        assert signing["resultType"] == "input_required", signing
    async with deadline(10):
        # The first name was given before: it is not asked for again.
        done = await ask(nodes.b, answered(introduce, second, "Lovelace"))
        assert "content" in done, done
        assert done["content"][0]["text"] == "Ada Lovelace"
        assert "waits for no answer any more" in (await ask(nodes.a, answered(sign, signing)))["message"]


def _knows_tool(door: Door, name: str) -> bool:
    return any(tool.name == name for tool in door.hub.tools.list())


# While NATS is away. Last: others need it.


async def test_without_nats_all_of_this_takes_longer_and_is_not_lost(nodes: Nodes) -> None:
    call = {"name": "greet", "arguments": {}}
    # Nobody can be asked who holds a connection: only its own node reaches it.
    (held,) = [one for one in await nodes.a.hub.cluster.places() if one.connector == "asking"]
    here, other = sorted(
        (nodes.a, nodes.b), key=lambda door: runtime_of(door.hub).cluster.node.id != held.node
    )
    session = await here.open("/mcp/asking", ASKABLE)
    nodes.nats.kill()
    await until(lambda: not runtime_of(here.hub).cluster.is_connected)
    async with deadline(15), session.posted("tools/call", call) as stream:
        asked = await stream.next()
        answer = {"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "decline"}}
        there = session.at(other)
        assert (await other.send("POST", "/mcp/asking", answer, **there.headers)).status == 202
        assert (await stream.next())["result"]["content"][0]["text"] == "declined"
        asked = await ask(here, call)
        assert (await ask(other, answered(call, asked)))["content"][0]["text"] == "Hello, Ada!"
    await nodes.nats.start()
