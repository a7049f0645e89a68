"""Who may publish and subscribe at NATS, and has no master key, reads no call and makes none."""

import json
from contextlib import AbstractAsyncContextManager
from pathlib import Path

import nats
import pytest
from nats.aio.msg import Msg

from cluster.nats_server import NatsServer
from cluster.nodes import keys, node
from dragoman.background_tasks import Supervisor
from dragoman.cluster.messages import Unreadable
from dragoman.cluster.nats import NatsAddress, NatsCluster, open_nats
from dragoman.cluster.places import NodeMessage
from dragoman.cluster.seals import MessageSeal
from dragoman.vault.keys import Key, KeyRing
from dragoman.vault.vault import Vault
from patience import until
from store.memory_store import memory_store

pytestmark = pytest.mark.anyio


def vault(*materials: bytes) -> Vault:
    first, *older = (Key(one * 32) for one in materials)
    return Vault(memory_store().connectors, KeyRing(first, tuple(older)))


def test_a_message_is_opened_by_who_has_the_key_and_only_as_it_was_sent() -> None:
    sealed = MessageSeal(vault(b"a"), "dragoman", "one").seal("to.two", b"canary")
    other = MessageSeal(vault(b"b", b"a"), "dragoman", "two")
    opened = other.open("to.two", sealed)
    assert (opened.node, opened.number, opened.message) == ("one", 1, b"canary")
    assert b"canary" not in sealed
    head, _, rest = sealed.partition(b"\n")
    facts = json.loads(head)
    for wrong in (
        sealed[:-1] + bytes([sealed[-1] ^ 1]),
        json.dumps({**facts, "node": "two"}).encode() + b"\n" + rest,
        json.dumps({**facts, "number": 2}).encode() + b"\n" + rest,
        json.dumps({**facts, "number": -1}).encode() + b"\n" + rest,
        json.dumps({**facts, "key": "00000000"}).encode() + b"\n" + rest,
        json.dumps({**facts, "v": 1}).encode() + b"\n" + rest,
        b'{"v":1,"node":"one","id":"x","kind":"call"}\n{}',
        b"",
    ):
        with pytest.raises(Unreadable):
            other.open("to.two", wrong)
    for stranger, subject in (
        (MessageSeal(vault(b"c"), "dragoman", "two"), "to.two"),
        (MessageSeal(vault(b"a"), "another", "two"), "to.two"),
        (other, "to.three"),
    ):
        with pytest.raises(Unreadable):
            stranger.open(subject, sealed)


def test_a_message_is_on_record_as_this_version_seals_it() -> None:
    """Nodes of the next version read it, too: they are replaced one by one."""
    recorded = (
        b'{"v":2,"node":"one","key":"3ba3f5f4","number":1}\n'
        b"JR\xf6\xe1\x8f\x05p\xcf\x1d\x93\xd1\xc7\xdd\x8dl\xdau\xab-\xbb\x98\xf9"
    )
    assert MessageSeal(vault(b"a"), "dragoman", "one").seal("to.two", b"canary") == recorded


async def test_a_stranger_at_nats_reads_no_call_makes_none_and_repeats_none(tmp_path: Path) -> None:
    heard: list[Msg] = []
    taken: list[object] = []

    async def hear(message: Msg) -> None:
        heard.append(message)

    def take(message: NodeMessage) -> None:
        taken.append(message.body)

    async with NatsServer(tmp_path) as server, joined(server) as there:
        assert there.places is not None
        # Who joins later has heard from the first: by then the first listens.
        async with (
            there.places.answering(take),
            joined(server) as here,
            await nats.connect(server.url) as stranger,
        ):
            assert here.places is not None
            await stranger.subscribe("dragoman.>", cb=hear)
            await stranger.flush()
            door = f"dragoman.ask.{there.node.id}"
            with here.places.ask(there.node.id) as request:
                await request.send("call", {"text": "canary"})
                await until(lambda: taken == [{"text": "canary"}])
                await until(lambda: any(one.subject == door for one in heard))
                said = next(one.data for one in heard if one.subject == door)
                forged = b'{"v":1,"node":"x","id":"y","kind":"call"}\n{"text":"forged"}'
                for message in (said, forged, said):
                    await stranger.publish(door, message)
                await stranger.flush()
                await request.send("call", {"text": "canary again"})
                await until(lambda: len(taken) > 1)
    assert taken == [{"text": "canary"}, {"text": "canary again"}]
    assert not any(b"canary" in one.data for one in heard)


async def test_words_of_a_run_are_sealed_and_forged_ones_are_not_heard(tmp_path: Path) -> None:
    heard: list[bytes] = []
    seen: list[Msg] = []

    async def see(message: Msg) -> None:
        seen.append(message)

    async with (
        NatsServer(tmp_path) as server,
        joined(server) as here,
        joined(server) as there,
        await nats.connect(server.url) as stranger,
        there.streams.follow("run_1", heard.append),
    ):
        await stranger.subscribe("dragoman.stream.run_1", cb=see)
        await stranger.flush()
        await stranger.publish("dragoman.stream.run_1", b"forged")
        await stranger.flush()
        here.streams.push("run_1", b"canary")
        await until(lambda: heard == [b"canary"])
        await until(lambda: len(seen) == 2)
    assert not any(b"canary" in one.data for one in seen)


def joined(server: NatsServer) -> AbstractAsyncContextManager[NatsCluster]:
    address = NatsAddress(servers=(server.url,))
    return open_nats(address, node(), {"database": "one"}, Supervisor(), keys())
