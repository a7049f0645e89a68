"""Many processes: NATS carries what they tell each other, and signs of life.

Only home of `nats`, whose types are open: what is of it is `Any` here. Subjects and buckets begin with the
prefix of the installation, so that several can share a server.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import replace
from typing import Any

from nats.errors import Error, NoRespondersError
from nats.js.api import KeyValueConfig
from nats.js.errors import (
    APIError,
    KeyWrongLastSequenceError,
    NotFoundError,
    ServiceUnavailableError,
)

from dragoman.background_tasks import Supervisor
from dragoman.cluster.alone import Listeners
from dragoman.cluster.messages import (
    dump_agreed,
    dump_node,
    dump_notice,
    load_agreed,
    load_node,
    load_notice,
    passed_over,
)
from dragoman.cluster.nats_connection import LEAVES_WITHIN, NatsAddress, NatsClient, connect
from dragoman.cluster.nats_places import NatsPlaces, open_places
from dragoman.cluster.nats_replicas import replicated
from dragoman.cluster.nats_streams import NatsStreams
from dragoman.cluster.nats_work import NatsWork
from dragoman.cluster.protocol import TOPICS, Heard, Node, Topic
from dragoman.cluster.seals import MasterKeys, MessageSeal
from dragoman.errors import ClusterFault
from dragoman.telemetry.logs import get_logger

_BEAT = 0.5  # seconds between two signs of life
_LIFE = 2.0  # after so many without one a node is gone
_DEAF = 1.5  # after so many seconds without its own a node is not sure to hear the others'
_SAYS_WITHIN = 2.0  # seconds in which a node that lives says what it has
_FIRST_LEADER = 30  # seconds until servers that were just started must have chosen who leads


@asynccontextmanager
async def open_nats(
    address: NatsAddress,
    node: Node,
    agreed: Mapping[str, str],
    supervisor: Supervisor,
    keys: MasterKeys,
    stated: Callable[[], Mapping[str, str]] = dict,
) -> AsyncGenerator["NatsCluster"]:
    """A node of the cluster while the block runs. What it says of calls and runs is sealed with `keys`.

    `agreed` is what all nodes of an installation have in common for ever (its database), `stated` what those
    have in common that live at the same time (a master key, settings); as words that may be shown, of which
    one must be the same. Raises `ClusterFault` where they do not agree, and where NATS cannot be used.
    """
    client = NatsClient()
    seal = MessageSeal(keys, address.prefix, node.id)
    cluster = NatsCluster(client, address.prefix, node, agreed, stated, seal)
    await connect(client, address, cluster.reconnected, cluster.disconnected)
    try:
        await cluster.join()
        try:
            async with (
                open_places(
                    client, address.prefix, node, cluster.nodes, cluster.drain, supervisor, seal
                ) as cluster.places,
                supervisor.keeping(cluster.send, "tell other nodes"),
                supervisor.keeping(cluster.beat, "say that this node lives"),
            ):
                yield cluster
        finally:
            await cluster.leave()
    finally:
        with suppress(Error, OSError, TimeoutError):
            async with asyncio.timeout(LEAVES_WITHIN):
                await _close(client)


async def _close(client: Any) -> None:
    """What waits for a connection that is away goes with it.

    The client would write it to the old one, which since Python 3.12 fails, and stay half closed.
    """
    if not client.is_connected:
        client._pending.clear()
        client._pending_data_size = 0
    await client.close()


class NatsCluster:
    """Fills `Cluster`."""

    def __init__(
        self,
        client: Any,
        prefix: str,
        node: Node,
        agreed: Mapping[str, str],
        stated: Callable[[], Mapping[str, str]],
        seal: MessageSeal,
    ) -> None:
        self.node = node
        self._client = client
        self._prefix = prefix
        self._agreed = agreed
        self._stated = stated
        self.places: NatsPlaces | None = None
        self._listeners = Listeners()
        self._unsent: dict[tuple[Topic, str], None] = {}
        self._pushed: list[tuple[str, bytes]] = []
        self._has_unsent = asyncio.Event()
        self.streams = NatsStreams(client, prefix, self._push, (Error, OSError, TimeoutError), seal)
        self._others: dict[str, tuple[Node, float]] = {}  # with when they were last heard of
        self._heard_itself = 0.0  # when it was last heard here that this node lives
        self._hears_since = 0.0
        self.work = NatsWork(client, prefix, self._push)

    @property
    def is_connected(self) -> bool:
        return self._client.is_connected

    def tell(self, topic: Topic, key: str = "") -> None:
        self._listeners.tell(topic, key)
        # What is said twice before it was sent is sent once.
        self._unsent[topic, key] = None
        self._has_unsent.set()

    def _push(self, subject: str, message: bytes) -> None:
        self._pushed.append((subject, message))
        self._has_unsent.set()

    @contextmanager
    def listen(self, topic: Topic, heard: Heard) -> Generator[None]:
        with self._listeners.listen(topic, heard):
            yield

    async def nodes(self) -> Sequence[Node]:
        since = asyncio.get_running_loop().time() - _LIFE
        others = [node for node, heard in self._others.values() if heard > since]
        return sorted([self.node, *others], key=lambda one: (one.started_at, one.id))

    def may_live(self, node: str) -> bool:
        now = asyncio.get_running_loop().time()
        if now - self._heard_itself > _DEAF:
            return True  # cut off, or just awake again: nobody's silence says anything
        _, heard = self._others.get(node, (None, 0.0))
        return node == self.node.id or max(heard, self._hears_since) > now - _LIFE

    async def join(self) -> None:
        """Once, when the process starts. Nobody hears of a node that may not be one."""
        try:
            async with asyncio.timeout(_FIRST_LEADER):
                await self._join()
        except TimeoutError as error:
            raise ClusterFault(
                "JetStream of NATS does not answer", hint="its servers may have no leader: see their logs"
            ) from error
        except (ServiceUnavailableError, NotFoundError) as error:
            raise ClusterFault(
                "NATS has no JetStream", hint="start nats-server with --jetstream, or enable it in its file"
            ) from error
        except APIError as error:
            raise ClusterFault(f"NATS refused: {error.description or error}", hint="see its log") from error
        for subject, heard in (
            ("notice", self._received_notice),
            ("alive", self._received_node),
            ("gone", self._received_node),
            ("hello", self._received_hello),
            ("state", self._received_question),
        ):
            await self._client.subscribe(f"{self._prefix}.{subject}", cb=heard)
        await self._publish("hello", b"")

    async def _join(self) -> None:
        """Servers that have just started say nothing until they have chosen who leads."""
        while True:
            with suppress(TimeoutError):
                await self._agree()
                await self._compare()
                await self.work.open()
                return

    async def _agree(self) -> None:
        """The bucket is made where it is not: NATS may have forgotten everything."""
        make, name = self._client.jetstream(timeout=3).create_key_value, f"{self._prefix}_installation"
        shared = await replicated(lambda replicas: make(KeyValueConfig(name, replicas=replicas)))
        await _check_agreed(shared, self._prefix, self._agreed)

    async def _compare(self) -> None:
        """With whoever answers first: all who live agree with each other."""
        try:
            answer = await self._client.request(f"{self._prefix}.state", b"", timeout=_SAYS_WITHIN)
        except (NoRespondersError, TimeoutError):
            return  # the first
        with passed_over():
            _check(self._stated(), load_agreed(answer.data), self._prefix)

    async def reconnected(self) -> None:
        """Messages were lost meanwhile: everybody looks once at everything."""
        try:
            await self._agree()
            await self.work.open()
            await self._publish("hello", b"")
        except (ClusterFault, Error, TimeoutError) as error:
            get_logger().error("cluster.not_joined", cause=str(error))
        if self.places is not None:
            await self.places.reconnected()
        self._may_have_missed()

    async def disconnected(self) -> None:
        """Whoever waits to be told looks from now on by itself."""
        self.work.is_made = False
        self._may_have_missed()

    def _may_have_missed(self) -> None:
        for topic in TOPICS:
            self._listeners.tell(topic, "")

    async def drain(self) -> None:
        """From now on this node drains, without the role `hold`, and the others hear it."""
        roles = tuple(role for role in self.node.roles if role != "hold")
        self.node = replace(self.node, roles=roles, is_draining=True)
        with suppress(Error, OSError):
            await self._publish("alive", dump_node(self.node))

    async def leave(self) -> None:
        """The others hear at once that this node is gone."""
        with suppress(Error, OSError, TimeoutError):
            await self._send_unsent()
            await self._publish("gone", dump_node(self.node))
            await self._client.flush(timeout=1)

    async def send(self) -> None:
        while True:
            await self._has_unsent.wait()
            await self._send_unsent()

    async def _send_unsent(self) -> None:
        self._has_unsent.clear()
        unsent, self._unsent = self._unsent, {}
        pushed, self._pushed = self._pushed, []
        # While NATS is away nothing is kept: whoever comes back looks at everything.
        with suppress(Error, OSError):
            for subject, message in pushed:
                await self._client.publish(subject, message)
            for topic, key in unsent:
                await self._publish("notice", dump_notice(self.node.id, topic, key))

    async def beat(self) -> None:
        while True:
            with suppress(Error, OSError):
                await self._publish("alive", dump_node(self.node))
            await asyncio.sleep(_BEAT)

    async def _publish(self, subject: str, message: bytes) -> None:
        await self._client.publish(f"{self._prefix}.{subject}", message)

    async def _received_notice(self, message: Any) -> None:
        with passed_over():
            node, topic, key = load_notice(message.data)
            if node != self.node.id:
                self._listeners.tell(topic, key)

    async def _received_node(self, message: Any) -> None:
        with passed_over():
            node = load_node(message.data)
            now = asyncio.get_running_loop().time()
            if message.subject.endswith(".gone"):
                self._others.pop(node.id, None)
            elif node.id != self.node.id:
                self._others[node.id] = (node, now)
            else:
                self._hears_since = now if now - self._heard_itself > _DEAF else self._hears_since
                self._heard_itself = now

    async def _received_hello(self, _: Any) -> None:
        await self._publish("alive", dump_node(self.node))

    async def _received_question(self, message: Any) -> None:
        with suppress(Error, OSError):
            await message.respond(dump_agreed(self._stated()))


async def _check_agreed(shared: Any, prefix: str, agreed: Mapping[str, str]) -> None:
    """The first node writes down what it has; the others must have the same."""
    with suppress(KeyWrongLastSequenceError):
        await shared.create("agreed", dump_agreed(agreed))
        return
    _check(agreed, load_agreed((await shared.get("agreed")).value or b""), prefix)


def _check(own: Mapping[str, str], others: Mapping[str, str], prefix: str) -> None:
    for name, value in own.items():
        other = others.get(name, value)
        if set(value.split(",")).isdisjoint(other.split(",")):
            raise ClusterFault(
                f"the {name} of this node is {value}, that of the others {other}",
                hint=f"give all nodes the same, or another installation another prefix than {prefix!r}",
            )
