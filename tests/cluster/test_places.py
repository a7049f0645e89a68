"""Connections with state over several nodes in this process, joined by a real NATS server."""

import asyncio
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from api.live import open_service
from calls.test_server_tasks import Follower, log, task_server
from cli.command_line import Command
from cluster.nats_server import NatsServer
from cluster.nodes import KEY, id_of, knows, open_hubs, open_nodes
from dragoman import Hub, Progress
from dragoman.cluster.places import preferred
from dragoman.errors import Denied, NotFound
from dragoman.scope import Caller
from dragoman.tool import Elicitation
from patience import deadline, patient, until
from runs.scripted import model_of
from servers.hubs import quick, runtime_of
from servers.processes import HttpProcess, journal, read_log, running, starts, stdio

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


async def test_one_server_serves_every_node(tmp_path: Path, postgres_url: str) -> None:
    log, written, gate = tmp_path / "log", tmp_path / "written", tmp_path / "gate"
    server = stdio("--log", str(log), "--journal", str(written))
    async with open_nodes(tmp_path, postgres_url, count=3) as nodes:
        await nodes.add("box", **quick(**server, max_concurrency=1, max_result_bytes=8_000_000))
        counts = [await hub.call("mcp_box_count") for hub in nodes.hubs * 2]
        assert [one.result["count"] for one in counts] == [1, 2, 3, 4, 5, 6]
        assert starts(log) == 1
        other = await nodes.other("box")

        large = await other.call("mcp_box_big", {"bytes": 3_000_000})
        assert large.content[0]["text"] == "x" * 3_000_000, "in parts: NATS takes one megabyte"

        refused = await other.call("mcp_box_fail", {"text": "no such letter"})
        assert refused.error is not None
        assert (refused.error.code, refused.error.message) == ("tool_failed", "no such letter")

        steps: list[Progress] = []
        assert (await other.call("mcp_box_progress", {"n": 3}, on_progress=steps.append)).ok
        assert [one.progress for one in steps] == [1, 2, 3]

        slow = asyncio.create_task(other.call("mcp_box_sleep", {"seconds": 60, "gate": str(gate)}))
        await until(lambda: sleeping(log) == 1)
        holder = await nodes.holder("box")
        full = await holder.call("mcp_box_echo", {"text": "x"}, timeout=0.2)
        assert full.error is not None
        assert full.error.code == "limit_reached", "one call at once, over all nodes"
        slow.cancel()
        await until(lambda: any(one["event"] == "cancelled" for one in read_log(log)))
        assert (await other.call("mcp_box_send", {"text": "once"})).ok
        assert journal(written) == ["once"]


def sleeping(log: Path) -> int:
    return sum(one.get("tool") == "sleep" for one in read_log(log))


async def test_a_server_asks_and_tells_who_is_at_another_node(tmp_path: Path, postgres_url: str) -> None:
    with (
        HttpProcess(tmp_path, program="asking_server.py") as asking,
        HttpProcess(tmp_path, "2025", program="telling_server.py") as telling,
    ):
        async with open_nodes(tmp_path, postgres_url) as nodes:
            await nodes.add("asking", url=asking.url)
            await nodes.add("telling", url=telling.url)
            asked: list[Elicitation] = []

            def answer(question: Elicitation) -> Mapping[str, Any]:
                asked.append(question)
                return {"name": f"Ada {len(asked)}"}

            for hub in nodes.hubs:
                greeted = await hub.call("mcp_asking_introduce", on_elicitation=answer)
                assert greeted.ok, greeted.error
            assert len(asked) == 4
            declined = await (await nodes.other("asking")).call("mcp_asking_greet")
            assert declined.content[0]["text"] == "declined"
            assert any("What is your name?" in one for one in declined.metadata.warnings)

            other = await nodes.other("telling")
            end = await other.server_requests.watch("telling", "test://a")
            news = other.server_requests.notices()
            heard = asyncio.create_task(anext(news))
            try:
                await until(lambda: "test://a" in telling.state()["subscribed"])
                assert (await other.call("mcp_telling_change", {"what": "test://a"})).ok
                async with deadline(10):
                    slug, notice = await heard
                assert (slug, notice.uri) == ("telling", "test://a")
            finally:
                heard.cancel()
                end()
            await until(lambda: "test://a" not in telling.state()["subscribed"])


async def test_the_task_of_a_server_is_followed_and_cancelled_from_another_node(
    tmp_path: Path, postgres_url: str
) -> None:
    with task_server(tmp_path, "2025") as server:
        async with open_nodes(tmp_path, postgres_url) as nodes:
            await nodes.add("jobs", url=server.url)
            other = await nodes.other("jobs")

            async def begin(tool: str, call: Follower) -> asyncio.Task[Any]:
                calling = asyncio.create_task(other.call(f"mcp_jobs_{tool}", {}, observer=call))
                await until(lambda: f"tasks/result {tool}" in log(tmp_path))
                await until(lambda: is_kept(other, call.name))
                return calling

            left = Follower("left")
            (await begin("work", left)).cancel()  # as a process does that ends
            ended = Follower("ended")
            calling = await begin("forever", ended)
            ended.is_over = True  # as a person does
            calling.cancel()
            await until(lambda: "tasks/cancel forever" in log(tmp_path))
            assert "tasks/cancel work" not in log(tmp_path), "that call will be entered again"
            left.has_departed = True
            following = asyncio.create_task(other.call("mcp_jobs_work", {}, observer=left))
            (tmp_path / "tasks" / "finish").touch()
            async with deadline(20):
                output = await following
            assert output.content[0]["text"] == "work is done"
            assert log(tmp_path).count("begun work") == 1


async def is_kept(hub: Hub, call: str) -> bool:
    return await runtime_of(hub).task_records.find(call) is not None


async def test_how_a_connection_is_and_where_is_known_everywhere_and_it_can_be_moved(
    tmp_path: Path, postgres_url: str
) -> None:
    log = tmp_path / "log"
    async with open_nodes(tmp_path, postgres_url) as nodes:
        await nodes.add("box", **quick(**stdio("--log", str(log))))
        assert (await nodes.hubs[0].call("mcp_box_count")).ok
        holder, other = await nodes.holder("box"), await nodes.other("box")
        for hub in nodes.hubs:
            await until(lambda hub=hub: state(hub, "connected"))
        await other.connectors.disconnect("box")
        for hub in nodes.hubs:
            await until(lambda hub=hub: state(hub, "disconnected"))
        assert (await other.call("mcp_box_count")).result["count"] == 1, "the next call connects it"

        with pytest.raises(NotFound, match="no node 'nowhere'"):
            await other.cluster.move("box", to="nowhere")
        await other.cluster.move("box", to=id_of(other))
        assert await nodes.holder("box") is other
        assert (await holder.call("mcp_box_count")).result["count"] == 1, "another server"
        assert starts(log) == 3
        await until(lambda: len(running(log)) == 1)


async def state(hub: Hub, wanted: str) -> bool:
    return (await hub.connectors.get("box")).status.state == wanted


async def test_who_holds_what_is_shown_and_moved_by_rest_and_command(
    tmp_path: Path, postgres_url: str, dragoman: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_service(tmp_path / "a", database_url=postgres_url, cluster_url=(nats.url,), key=KEY) as live,
    ):
        assert (await live.ask("GET", "/api/cluster/places")).value == []
        await live.hub.connectors.add("box", approval="never", shared=True, **quick(**stdio()))
        node = id_of(live.hub)
        (held,) = (await live.ask("GET", "/api/cluster/places")).value
        assert (held["connector"], held["node"], held["is_pinned"]) == ("box", node, False)
        assert (await live.ask("GET", "/api/connectors/box")).value["status"]["node"] == node
        assert "dragoman_places_held 1.0" in (await live.ask("GET", "/metrics")).body.decode()
        unknown = await live.ask("POST", "/api/cluster/places/move", {"connector": "none"})
        assert (unknown.status, unknown.value["code"]) == (404, "not_found")
        with pytest.raises(Denied):
            await live.hub.acting_for(Caller()).cluster.move("box")

        monkeypatch.setenv("DRAGOMAN_URL", live.url)
        monkeypatch.setenv("DRAGOMAN_TOKEN", live.token)
        moved = await asyncio.to_thread(dragoman, "cluster", "move", "box", "--to", node, "--json")
        assert [(one["node"], one["is_pinned"]) for one in moved.value] == [(node, True)], moved
        shown = await asyncio.to_thread(dragoman, "cluster", "status")
        assert "chosen by hand" in shown.out, shown
        assert "drains" not in shown.out, shown
        assert "dragoman_places_moved_total 1.0" in (await live.ask("GET", "/metrics")).body.decode()
        await live.hub.drain(0)
        leaving = await asyncio.to_thread(dragoman, "cluster", "status")
        assert "(drains)" in leaving.out, leaving


async def test_what_is_unused_is_balanced_when_nodes_come_and_go_and_what_is_busy_stays(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.connections.placed._BALANCE_EVERY", 0.1)
    users = [Caller(user=f"user{number}") for number in range(24)]  # enough for every fate below
    gate = tmp_path / "gate"
    with HttpProcess(tmp_path, "--era", "2025") as server:
        async with (
            NatsServer(tmp_path / "nats") as nats,
            open_hubs(tmp_path, postgres_url, nats, 1) as (first,),
        ):
            await first.connectors.add(
                "web", url=server.url, approval="never", shared=True, **quick(request_timeout=patient(60))
            )
            for user in users:
                assert (await first.acting_for(user).call("mcp_web_echo", {"text": "x"})).ok
            async with open_hubs(tmp_path / "later", postgres_url, nats, 1) as (second,):
                for hub in (first, second):
                    await until(lambda hub=hub: knows(hub, 2))
                nodes = [id_of(first), id_of(second)]
                theirs = [
                    user.user
                    for user in users
                    if preferred((await connector_id(first), f"user:local:{user.user}"), nodes)[0] == nodes[1]
                ]
                busy, pinned, *moving = theirs
                slow = asyncio.create_task(
                    first.acting_for(Caller(user=busy)).call(
                        "mcp_web_sleep", {"seconds": 600, "gate": str(gate)}
                    )
                )
                await until(lambda: any(one.get("tool") == "sleep" for one in server.seen("tools/call")))
                await first.cluster.move("web", user=pinned, to=nodes[0])
                assert len(await held_by(first, nodes[0])) == len(users) + 1, "long unused means minutes"
                monkeypatch.setattr("dragoman.connections.placed._LONG_IDLE", 0.0)
                await until(lambda: moved_away(first, nodes[0], {*moving}))
                for user in moving:
                    assert (await second.acting_for(Caller(user=user)).call("mcp_web_echo", {"text": "x"})).ok
                assert await held_by(first, nodes[1]) == {*moving}
                stayed = await held_by(first, nodes[0])
                assert {busy, pinned} <= stayed
                assert stayed.isdisjoint(moving)
                gate.write_text("x")
                assert (await slow).ok
            for user in users:
                assert (await first.acting_for(user).call("mcp_web_echo", {"text": "x"})).ok
            assert {one.user for one in users} <= await held_by(first, nodes[0])


async def connector_id(hub: Hub) -> str:
    return (await hub.connectors.get("web")).connector.id


async def held_by(hub: Hub, node: str) -> set[str]:
    return {one.user for one in await hub.cluster.places() if one.node == node}


async def moved_away(hub: Hub, node: str, users: set[str]) -> bool:
    return (await held_by(hub, node)).isdisjoint(users)


async def test_without_nats_only_what_needs_a_place_waits(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    log, sent = tmp_path / "log", tmp_path / "sent"
    monkeypatch.setattr("dragoman.cluster.nats_places._PATIENCE", 1.0)
    server = stdio("--log", str(log), "--journal", str(sent))
    with HttpProcess(tmp_path, "--era", "2026") as stateless:
        async with open_nodes(tmp_path, postgres_url, model="scripted", rollout_share=0.0) as nodes:
            await nodes.add("box", **quick(**server, request_timeout=patient(30)))
            await nodes.add("web", **quick(url=stateless.url))
            for hub in nodes.hubs:
                hub.models.register("scripted", model_of(("mcp_box_send", {"text": "once"})))
            for hub in nodes.hubs:
                assert (await hub.call("mcp_box_echo", {"text": "x"})).ok
            nodes.nats.kill()
            await until(lambda: running(log) == set(), within=10)
            for hub in nodes.hubs:
                assert (await hub.call("mcp_web_echo", {"text": "x"})).ok
                waits = await hub.call("mcp_box_echo", {"text": "x"})
                assert waits.error is not None
                assert (waits.error.code, waits.error.retryable) == ("cluster_unavailable", True)
                assert "NATS" in waits.error.message
                assert waits.error.hint
            # An agent is not told that NATS was away: its call is made when it is back.
            hub = nodes.hubs[0]
            run = (await hub.messages.post("send it")).run.id
            async for event in hub.runs.follow(run):
                if event.data.get("message") == "NATS was away: it is tried again":
                    await nodes.nats.start()
                    break
            await until(lambda: is_done(hub, run), within=20)
            assert "once" in str((await hub.runs.get(run)).answer)
            assert journal(sent) == ["once"]
            await until(lambda: echoes(hub))
            assert len(running(log)) == 1


async def is_done(hub: Hub, run: str) -> bool:
    return (await hub.runs.get(run)).status == "done"


async def echoes(hub: Hub) -> bool:
    return (await hub.call("mcp_box_echo", {"text": "x"})).ok
