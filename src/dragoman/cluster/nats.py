"""Many processes: NATS carries what they tell each other, and signs of life.

Only home of `nats`, whose types are open: what is of it is `Any` here. Subjects and buckets begin with the
prefix of the installation, so that several can share a server.
"""

import asyncio
from collections.abc import AsyncGenerator, Generator, Mapping, Sequence
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any

from nats.aio.client import Client
from nats.errors import AuthorizationError, Error, InvalidUserCredentialsError
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
from dragoman.cluster.nats_places import NatsPlaces, open_places
from dragoman.cluster.nats_work import NatsWork
from dragoman.cluster.protocol import TOPICS, Heard, Node, Topic
from dragoman.cluster.streams import NatsStreams
from dragoman.errors import ClusterFault
from dragoman.telemetry.logs import get_logger

_BEAT = 0.5  # seconds between two signs of life
_LIFE = 2.0  # after so many without one a node is gone
_DEAF = 1.5  # after so many seconds without its own a node is not sure to hear the others'
_FIRST = 8  # seconds for the first connection
_AGAIN: Any = 0.2  # seconds between two attempts; declared as whole ones
_OLDEST = (2, 10)  # of the server


@dataclass(frozen=True, slots=True, kw_only=True)
class NatsAddress:
    """Where the servers are. `prefix` is the installation's; `credentials` the path of a .creds file."""

    servers: tuple[str, ...]
    prefix: str = "dragoman"
    credentials: str = ""


@asynccontextmanager
async def open_nats(
    address: NatsAddress, node: Node, agreed: Mapping[str, str], supervisor: Supervisor
) -> AsyncGenerator["NatsCluster"]:
    """A node of the cluster while the block runs.

    `agreed` is what all nodes of an installation must have in common (its database, its master key), as words
    that may be shown. Raises `ClusterFault` where they do not, and where NATS cannot be used.
    """
    client = Client()
    cluster = NatsCluster(client, address.prefix, node, agreed)
    await _connect(client, address, cluster)
    try:
        await cluster.join()
        try:
            async with (
                open_places(
                    client, address.prefix, node, cluster.nodes, cluster.stop_holding, supervisor
                ) as cluster.places,
                supervisor.keeping(cluster.send, "tell other nodes"),
                supervisor.keeping(cluster.beat, "say that this node lives"),
            ):
                yield cluster
        finally:
            await cluster.leave()
    finally:
        with suppress(Error, OSError):
            await client.close()


class NatsCluster:
    """Fills `Cluster`."""

    def __init__(self, client: Any, prefix: str, node: Node, agreed: Mapping[str, str]) -> None:
        self.node = node
        self._client = client
        self._prefix = prefix
        self._agreed = agreed
        self.places: NatsPlaces | None = None
        self._listeners = Listeners()
        self._unsent: dict[tuple[Topic, str], None] = {}
        self._pushed: list[tuple[str, bytes]] = []
        self._has_unsent = asyncio.Event()
        self.streams = NatsStreams(client, prefix, self._push, (Error, OSError, TimeoutError))
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
        """Once, when the process starts."""
        try:
            await self._agree()
            await self.work.open()
        except (ServiceUnavailableError, NotFoundError, TimeoutError) as error:
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
        ):
            await self._client.subscribe(f"{self._prefix}.{subject}", cb=heard)
        await self._publish("hello", b"")

    async def _agree(self) -> None:
        """The bucket is made where it is not: NATS may have forgotten everything."""
        shared = await self._client.jetstream(timeout=10).create_key_value(
            KeyValueConfig(f"{self._prefix}_installation")
        )
        await _check_agreed(shared, self._prefix, self._agreed)

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

    async def stop_holding(self) -> None:
        """From now on this node is one without the role `hold`, and the others hear it."""
        self.node = replace(self.node, roles=tuple(role for role in self.node.roles if role != "hold"))
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


async def _connect(client: Client, address: NatsAddress, cluster: NatsCluster) -> None:
    """Waits a moment for the first server that answers; later, for as long as it takes."""
    where = ", ".join(map(_shown, address.servers))
    refused = False

    async def noted(error: Exception) -> None:
        nonlocal refused
        refused = refused or "authorization" in str(error).lower()
        get_logger().debug("cluster.connection", cause=str(error))

    try:
        async with asyncio.timeout(_FIRST):
            await client.connect(
                list(address.servers),
                name="dragoman",
                connect_timeout=_FIRST,
                reconnect_time_wait=_AGAIN,
                max_reconnect_attempts=-1,
                user_credentials=address.credentials or None,
                error_cb=noted,
                reconnected_cb=cluster.reconnected,
                disconnected_cb=cluster.disconnected,
                ping_interval=2,
                max_outstanding_pings=2,
            )
    except (Error, OSError, TimeoutError) as error:
        with suppress(Error, OSError):
            await client.close()
        if refused or isinstance(error, AuthorizationError | InvalidUserCredentialsError):
            raise ClusterFault(
                f"NATS at {where} refused the credentials", hint="put them into DRAGOMAN_CLUSTER_URL"
            ) from error
        raise ClusterFault(
            f"NATS at {where} does not answer", hint="is DRAGOMAN_CLUSTER_URL right, and does it run?"
        ) from error
    version = client.connected_server_version
    if (version.major, version.minor) < _OLDEST:
        raise ClusterFault(
            f"NATS at {where} is {version.major}.{version.minor}",
            hint=f"Dragoman needs {_OLDEST[0]}.{_OLDEST[1]} or newer",
        )


def _shown(server: str) -> str:
    """Without the password."""
    scheme, sign, rest = server.rpartition("://")
    return scheme + sign + rest.rpartition("@")[2]


async def _check_agreed(shared: Any, prefix: str, agreed: Mapping[str, str]) -> None:
    """The first node writes down what it has; the others must have the same."""
    with suppress(KeyWrongLastSequenceError):
        await shared.create("agreed", dump_agreed(agreed))
        return
    kept = load_agreed((await shared.get("agreed")).value or b"")
    for name, value in agreed.items():
        if kept.get(name, value) != value:
            raise ClusterFault(
                f"the {name} of this node is {value}, that of the others {kept[name]}",
                hint=f"give all nodes the same, or another installation another prefix than {prefix!r}",
            )
