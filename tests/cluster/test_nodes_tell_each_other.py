"""Two nodes on one PostgreSQL, joined by NATS: what happens on one is known on the other without looking."""

import asyncio
from base64 import b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from cluster.nats_server import NatsServer
from cluster.nodes import open_hubs
from dragoman import Annotations, Hub
from dragoman.errors import ClusterFault, InvalidConfig
from dragoman.scope import LOCAL_CALLER
from dragoman.settings import Settings
from patience import deadline, until
from servers.hubs import runtime_of
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import MODEL, scripted

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240)]


@pytest.fixture(autouse=True)
def nobody_looks(monkeypatch: pytest.MonkeyPatch) -> None:
    """What is not told is not known within a test."""
    for module in ("dragoman.cluster.awaited", "dragoman.runs.streams"):
        monkeypatch.setattr(f"{module}._LOOK_WHEN_TOLD", 3600.0)
    monkeypatch.setattr("dragoman.runs.dispatch._HEAR_EVERY", 3600.0)
    monkeypatch.setattr("dragoman.cluster.work.LOOK_EVERY", 3600.0)


@asynccontextmanager
async def two_nodes(folder: Path, database_url: str) -> AsyncGenerator[list[Hub]]:
    async with (
        NatsServer(folder / "nats") as nats,
        open_hubs(folder, database_url, nats, approval_wait=120, model=MODEL) as hubs,
    ):
        yield hubs


async def test_words_of_a_run_are_followed_and_its_end_is_wished_on_another_node(
    tmp_path: Path, postgres_url: str
) -> None:
    def script(turn: Turn) -> Reply:
        return Reply(text="never", delay=3600) if "wait" in turn.user else Reply(text="Here you are.")

    async with scripted(script), two_nodes(tmp_path, postgres_url) as (a, b):
        await until(lambda: _knows(a, 2))
        quick = await a.messages.post("Say something.")
        async with deadline(60):
            seen = [event.kind async for event in b.runs.follow(quick.run.id)]
        assert seen[-1] == "run.finished"
        slow = await a.messages.post("Please wait.")
        await until(lambda: _is(b, slow.run.id, "running"))
        await b.runs.cancel(slow.run.id)
        await until(lambda: _is(a, slow.run.id, "cancelled"))


async def test_an_approval_is_given_on_another_node(tmp_path: Path, postgres_url: str) -> None:
    async with two_nodes(tmp_path, postgres_url) as (a, b):
        wiped: list[str] = []

        @a.tool(annotations=Annotations(destructive=True))
        def wipe(disk: str) -> str:
            """Wipes a disk."""
            wiped.append(disk)
            return "done"

        calling = asyncio.create_task(
            a.acting_for(replace(LOCAL_CALLER, way="agent")).call("wipe", {"disk": "d1"})
        )
        await until(lambda: _asks(b))
        (asked,) = await b.approvals.list()
        assert wiped == []
        await b.approvals.answer(asked.approval.id, "once")
        async with deadline(30):
            assert (await calling).ok
        assert wiped == ["d1"]


async def _asks(hub: Hub) -> bool:
    return bool(await hub.approvals.list())


async def _is(hub: Hub, run: str, status: str) -> bool:
    return (await hub.runs.get(run)).status == status


async def _knows(hub: Hub, count: int) -> bool:
    return len((await hub.cluster.status()).nodes) == count


async def test_what_cannot_be_a_cluster_is_said_when_it_starts(tmp_path: Path, sqlite_url: str) -> None:
    wrong = Settings(home=tmp_path, database_url=sqlite_url, cluster_url=("nats://127.0.0.1:1",))
    with pytest.raises(InvalidConfig, match="needs PostgreSQL"):
        async with Hub(wrong):
            pass


async def test_nodes_with_other_keys_or_another_mode_are_told_both_when_they_start(
    tmp_path: Path, postgres_url: str
) -> None:
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_hubs(tmp_path, postgres_url, nats, count=1) as (hub,),
    ):
        own = replace(hub.settings, home=tmp_path / "other")
        other = b64encode(b"o" * 32).decode()
        for settings, words in (
            (replace(own, key=other), rf"master key .* {runtime_of(hub).vault.key_ids[0]}"),
            (replace(own, multi_user=True), "multi_user of this node is true, that of the others false"),
        ):
            with pytest.raises(ClusterFault, match=words):
                async with Hub(settings):
                    pass
        assert [one.id for one in await runtime_of(hub).cluster.nodes()] == [runtime_of(hub).cluster.node.id]


@pytest.mark.parametrize(
    "address",
    ["nats://:4222", "nats://ada:secret@:1", "nats://x:99999", "nats://[::1", "tls://x:y", "http://x"],
)
async def test_an_address_that_is_none_is_said_when_it_starts(
    tmp_path: Path, postgres_url: str, address: str
) -> None:
    wrong = Settings(home=tmp_path, database_url=postgres_url, cluster_url=(address,))
    with pytest.raises(ClusterFault, match="is no address of NATS") as told:
        async with Hub(wrong):
            pass
    assert "secret" not in str(told.value)


async def test_a_server_that_is_not_there_is_said_when_it_starts(
    tmp_path: Path, postgres_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cluster.nats_connection._FIRST", 1)
    wrong = Settings(home=tmp_path, database_url=postgres_url, cluster_url=("nats://127.0.0.1:1",))
    with pytest.raises(ClusterFault, match="does not answer"):
        async with Hub(wrong):
            pass
