"""Runs that wait are handed to one node each; the claim in the store decides, and nothing is only in NATS."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from cluster.nats_server import NatsServer
from cluster.nodes import keys, node, open_hubs
from dragoman import Hub
from dragoman.background_tasks import Supervisor
from dragoman.cluster import RunKey
from dragoman.cluster.nats import NatsAddress, NatsCluster, open_nats
from dragoman.errors import InvalidConfig
from dragoman.run import Run
from dragoman.store.records import NewRun
from patience import deadline, until
from servers.hubs import runtime_of
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import MODEL, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]
ONE, TWO = ("local", "run_1"), ("local", "run_2")


@asynccontextmanager
async def joined(server: NatsServer, name: str) -> AsyncGenerator[NatsCluster]:
    address = NatsAddress(servers=(server.url,))
    async with open_nats(address, node(name), {"database": "one"}, Supervisor(), keys()) as cluster:
        yield cluster


async def taken(cluster: NatsCluster, count: int) -> list[RunKey]:
    found: list[RunKey] = []
    async with deadline(15):
        while len(found) < count:
            async with cluster.work.take(count - len(found)) as runs:
                found += runs or []
    return found


async def test_what_waits_is_handed_to_one_node_and_once(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a, joined(server, "b") as b:
        for _ in range(3):
            a.work.put([ONE, TWO])
        assert sorted(await taken(b, 2)) == [ONE, TWO]
        b.work.put([ONE])
        assert await taken(a, 1) == [ONE]
        async with a.work.take(5) as runs:
            assert runs == []


async def test_what_a_node_could_not_claim_goes_to_another(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a:
        a.work.put([ONE])
        with pytest.raises(ZeroDivisionError):
            async with a.work.take(1) as runs:
                assert runs == [ONE]
                raise ZeroDivisionError
        async with joined(server, "b") as b:
            assert await taken(b, 1) == [ONE]
            async with joined(server, "c") as c:
                a.work.put([TWO])
                async with c.work.take(1) as runs:
                    assert runs == [TWO]
                    await c._client.close()  # as a process that died
            assert await taken(b, 1) == [TWO]


async def test_a_queue_that_nats_forgot_is_made_again(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a:
        server.kill()
        await until(lambda: not a.is_connected)
        assert not a.work.is_handed_out
        async with deadline(5), a.work.take(1) as runs:
            assert runs is None, "who is handed nothing looks into the store"
        server.wipe()
        await server.start()
        await until(lambda: a.is_connected)
        await until(lambda: a.work.is_handed_out)
        a.work.put([ONE])
        assert await taken(a, 1) == [ONE]


async def test_nobody_is_taken_for_dead_by_who_hears_nothing(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a, joined(server, "b") as b:
        await until(lambda: a._heard_itself > 0)
        assert a.may_live(b.node.id)
        assert a.may_live("never heard of"), "it has not listened for long enough"
        await until(lambda: not a.may_live("never heard of"))
        assert a.may_live(b.node.id)
        server.kill()
        await until(lambda: a.may_live("never heard of"))
        assert a.may_live(b.node.id)


def a_run(number: int, thread: str = "") -> Run:
    return Run(
        id=f"run_{number}",
        root=f"run_{number}",
        request="go",
        workspace="local",
        user="owner",
        thread=thread,
        agent="assistant",
    )


def answer(turn: Turn) -> Reply:
    return Reply(text="Here you are.")


async def _is_done(hub: Hub, run: str) -> bool:
    return (await hub.runs.get(run)).status == "done"


async def test_a_node_without_the_role_leaves_runs_to_the_others(tmp_path: Path, postgres_url: str) -> None:
    async with (
        scripted(answer),
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path / "doors", postgres_url, nats, 1, model=MODEL, roles=("doors",)) as (door,),
    ):
        with pytest.raises(InvalidConfig, match="executes no runs"):
            await door.open_engine()
        waiting = await door.messages.post("Say something.")
        async with open_hubs(tmp_path / "work", postgres_url, nats, 1, model=MODEL, roles=("work",)) as (
            worker,
        ):
            await worker.open_engine()
            async with deadline(30):
                assert (await door.runs.finished(waiting.run)).status == "done"
            began = asyncio.get_running_loop().time()
            thread = waiting.run.thread
            later = [await door.messages.post(f"And {number}?", thread=thread) for number in range(3)]
            async with deadline(30):
                for one in later:
                    assert (await door.runs.finished(one.run)).status == "done"
            assert asyncio.get_running_loop().time() - began < 5, "each was told of, none was looked for"
            runs = [await door.runs.get(one.run.id) for one in later]
            for before, after in pairwise(runs):
                assert before.finished_at is not None
                assert after.started_at is not None
                assert before.finished_at <= after.started_at, "one of a thread at a time, in order"


async def test_what_nats_was_never_told_is_found_in_the_store(tmp_path: Path, postgres_url: str) -> None:
    async with (
        scripted(answer),
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path, postgres_url, nats, 2, model=MODEL) as (a, b),
    ):
        await a.open_engine()
        await b.open_engine()
        await runtime_of(a).store.runs.accept([NewRun(a_run(number)) for number in range(5)])
        for number in range(5):
            await until(lambda number=number: _is_done(b, f"run_{number}"), within=15)
        server_was_away = a_run(9)
        nats.kill()
        await until(lambda: not runtime_of(a).cluster.is_connected and not runtime_of(b).cluster.is_connected)
        await runtime_of(a).store.runs.accept([NewRun(server_was_away)])
        await until(lambda: _is_done(b, server_was_away.id), within=15)
