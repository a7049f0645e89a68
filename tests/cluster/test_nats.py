"""Nodes of one installation, joined by a real NATS server that is killed, wiped and refused."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from cluster.nats_server import NatsServer
from cluster.nodes import keys, node
from dragoman.background_tasks import Supervisor
from dragoman.cluster.nats import NatsAddress, NatsCluster, open_nats
from dragoman.cluster.nats_connection import NatsClient
from dragoman.errors import ClusterFault
from patience import patient, until

pytestmark = pytest.mark.anyio
AGREED = {"database": "one"}


@asynccontextmanager
async def joined(
    server: NatsServer, name: str, prefix: str = "dragoman", **agreed: str
) -> AsyncGenerator[NatsCluster]:
    address = NatsAddress(servers=(server.url,), prefix=prefix)
    async with open_nats(address, node(name), agreed or AGREED, Supervisor(), keys()) as cluster:
        yield cluster


async def numbers(cluster: NatsCluster, count: int) -> bool:
    return len(await cluster.nodes()) == count


class Ear:
    """What one node hears of a topic."""

    def __init__(self, cluster: NatsCluster) -> None:
        self.heard: list[str] = []
        self.listening = cluster.listen("answered", self.heard.append)

    async def has(self, *keys: str) -> None:
        await until(lambda: self.heard == list(keys))


async def test_every_node_hears_once_what_one_of_them_tells(tmp_path: Path) -> None:
    async with (
        NatsServer(tmp_path) as server,
        joined(server, "a") as a,
        joined(server, "b") as b,
        joined(server, "c", prefix="other") as c,
    ):
        ears = [Ear(one) for one in (a, b, c)]
        with ears[0].listening, ears[1].listening, ears[2].listening:
            a.tell("answered", "apv_1")
            a.tell("cancelled", "run_1")
            await ears[0].has("apv_1")
            await ears[1].has("apv_1")
            b.tell("answered", "apv_2")
            await ears[0].has("apv_1", "apv_2")
            await ears[1].has("apv_1", "apv_2")
            assert ears[2].heard == [], "another installation on the same server"


async def test_who_lives_is_known_and_who_died_is_soon_gone(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a:
        async with joined(server, "b") as b:
            await until(lambda: numbers(a, 2))
            await until(lambda: numbers(b, 2))
            assert [one.id for one in await a.nodes()] == [a.node.id, b.node.id]
            assert await b.nodes() == await a.nodes()
        await until(lambda: numbers(a, 1))
        async with joined(server, "c") as c:
            await until(lambda: numbers(a, 2))
            await c._client.close()
            await until(lambda: numbers(a, 1))


async def test_a_server_that_forgot_everything_is_joined_again_and_all_is_looked_at(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a, joined(server, "b") as b:
        ear = Ear(b)
        with ear.listening:
            server.kill()
            await until(lambda: not a.is_connected and not b.is_connected)
            a.tell("answered", "lost")
            server.wipe()
            await server.start()
            await until(lambda: a.is_connected and b.is_connected)
            await until(lambda: ear.heard.count("") >= 2)  # when they lost it, and when they are back
            await until(lambda: numbers(a, 2))
            a.tell("answered", "found")
            await until(lambda: "found" in ear.heard)


async def test_nodes_that_disagree_are_told_both_values(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a", database="one"):
        with pytest.raises(ClusterFault, match="database of this node is two, that of the others one"):
            async with joined(server, "b", database="two"):
                pass
        async with joined(server, "c", prefix="other", database="two"):
            pass


async def test_nodes_that_live_at_once_must_have_a_key_in_common(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server:

        @asynccontextmanager
        async def having(ids: str) -> AsyncGenerator[NatsCluster]:
            address, has = NatsAddress(servers=(server.url,)), {"master key": ids}
            async with open_nats(address, node(), AGREED, Supervisor(), keys(), lambda: has) as cluster:
                yield cluster

        async with having("old") as first:
            with pytest.raises(ClusterFault, match="master key of this node is new, that of the others old"):
                async with having("new"):
                    pass
            assert await first.nodes() == [first.node], "nobody has heard of the one that was refused"
            async with having("new,old"):
                pass
        async with having("new"):
            pass  # nobody lives who has another


async def test_a_server_that_is_too_old_is_refused() -> None:
    async def served(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        facts = {"server_id": "x", "version": "2.9.25", "max_payload": 1048576, "jetstream": True}
        writer.write(f"INFO {json.dumps(facts)}\r\n".encode())
        while line := await reader.readline():
            if line.startswith(b"PING"):
                writer.write(b"PONG\r\n")
        writer.close()

    server = await asyncio.start_server(served, "127.0.0.1", 0)
    async with server:
        old = NatsAddress(servers=(f"nats://127.0.0.1:{server.sockets[0].getsockname()[1]}",))
        with pytest.raises(ClusterFault, match=r"is 2\.9") as wrong:
            async with open_nats(old, node(), AGREED, Supervisor(), keys()):
                pass
    assert "2.10 or newer" in str(wrong.value.hint)


async def test_a_server_that_cannot_be_used_is_said_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cluster.nats_connection._FIRST", 1)
    with pytest.raises(ClusterFault, match="does not answer") as wrong:
        async with open_nats(
            NatsAddress(servers=("nats://127.0.0.1:1",)), node(), AGREED, Supervisor(), keys()
        ):
            pass
    assert wrong.value.hint
    monkeypatch.undo()
    async with NatsServer(tmp_path / "plain", has_jetstream=False) as server:
        with pytest.raises(ClusterFault, match="no JetStream"):
            async with joined(server, "a"):
                pass
    secret = "authorization { user: ada, password: right }"
    async with NatsServer(tmp_path / "closed", lines=secret) as server:
        with pytest.raises(ClusterFault, match="refused the credentials"):
            async with joined(server, "a"):
                pass
        url = server.url.replace("nats://", "nats://ada:right@")
        async with open_nats(NatsAddress(servers=(url,)), node(), AGREED, Supervisor(), keys()) as cluster:
            assert cluster.is_connected


async def test_a_message_that_nobody_understands_is_passed_over(tmp_path: Path) -> None:
    async with NatsServer(tmp_path) as server, joined(server, "a") as a, joined(server, "b") as b:
        ear = Ear(b)
        with ear.listening:
            for wrong in (b"", b"[]", b'{"v": 99}', b'{"v": 1, "topic": "no"}', b"x" * 100_000):
                await a._client.publish("dragoman.notice", wrong)
            a.tell("answered", "after")
            await ear.has("after")


async def test_who_leaves_before_the_server_has_answered_ends_no_connection(tmp_path: Path) -> None:
    lost: list[str] = []

    async def disconnected() -> None:
        lost.append("lost")

    async with NatsServer(tmp_path) as nats:
        client = NatsClient()
        await client.connect(nats.url, disconnected_cb=disconnected)
        for steps in range(5):
            leaving = asyncio.create_task(client.flush())
            for _ in range(steps):  # at each of the places where it waits
                await asyncio.sleep(0)
            leaving.cancel()
            await asyncio.wait([leaving])
        await client.flush(timeout=int(patient(5)))
        assert lost == []
        await client.close()


async def test_who_is_told_to_end_in_the_moment_of_the_answer_ends(tmp_path: Path) -> None:
    """Else a stream whose reader left is followed for ever."""
    async with NatsServer(tmp_path) as nats:
        client = NatsClient()
        await client.connect(nats.url)
        inside: Any = client
        flushing = asyncio.create_task(client.flush())
        while not inside._pongs:
            await asyncio.sleep(0)
        inside._pongs[0].set_result(True)
        flushing.cancel()
        await client.subscribe("silent")
        asking = asyncio.create_task(client.request("silent", b"", timeout=patient(30)))
        while not inside._resp_map:
            await asyncio.sleep(0)
        inside._resp_map.popitem()[1].set_result(None)
        asking.cancel()
        await asyncio.wait([flushing, asking])
        assert (flushing.cancelled(), asking.cancelled()) == (True, True)
        await client.close()


async def test_only_where_nats_may_have_forgotten_leases_a_new_node_waits_before_it_takes_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    over_after = patient(2.0)
    monkeypatch.setattr("dragoman.cluster.nats_places.OVER_AFTER", over_after)

    async def taken(cluster: NatsCluster, key: str) -> float:
        assert cluster.places is not None
        began = asyncio.get_running_loop().time()
        assert (await cluster.places.locate((key, ""))).connector == key
        return asyncio.get_running_loop().time() - began

    async with NatsServer(tmp_path) as server:
        async with joined(server, "a") as first:
            assert await taken(first, "new") > over_after / 2
            async with joined(server, "b") as second:
                assert await taken(second, "other") < over_after / 2
        server.kill()
        server.wipe()
        await server.start()
        async with joined(server, "c") as third:
            assert await taken(third, "new") > over_after / 2
