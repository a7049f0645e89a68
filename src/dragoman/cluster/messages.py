"""What nodes say to each other, as bytes. Each message has a version: one that is not known is refused.

A node reads the messages of the version before its own, so that nodes can be replaced one by one.
"""

import json
from collections.abc import Collection, Generator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any, cast

import orjson

from dragoman.cluster.places import Place
from dragoman.cluster.protocol import ROLES, TOPICS, Node, Topic
from dragoman.cluster.streams import LARGEST
from dragoman.cluster.work import RunKey
from dragoman.run import RunEvent
from dragoman.telemetry.logs import get_logger

_VERSION = 1
_READABLE = frozenset({1})
_MOST = 64 * 1024


class Unreadable(Exception):
    """No message of ours, or one of a version that this process does not know."""


@contextmanager
def passed_over() -> Generator[None]:
    """A message that cannot be read is logged and costs nothing more."""
    try:
        yield
    except Unreadable as fault:
        get_logger().warning("cluster.unreadable", cause=str(fault))


def dump_notice(node: str, topic: Topic, key: str) -> bytes:
    return _dump({"node": node, "topic": topic, "key": key})


def load_notice(data: bytes) -> tuple[str, Topic, str]:
    """Who says it, what it is about, and the key."""
    said = _load(data)
    node, topic, key = said.get("node"), said.get("topic"), said.get("key")
    if not isinstance(node, str) or not isinstance(key, str) or topic not in TOPICS:
        raise Unreadable("a notice without node, topic or key")
    return node, topic, key


def dump_node(node: Node) -> bytes:
    return _dump(
        {
            "id": node.id,
            "host": node.host,
            "pid": node.pid,
            "version": node.version,
            "started_at": node.started_at.isoformat(),
            "roles": node.roles,
            **({"is_draining": True} if node.is_draining else {}),
        }
    )


def load_node(data: bytes) -> Node:
    said = _load(data)
    try:
        return Node(
            id=str(said["id"]),
            host=str(said["host"]),
            pid=int(said["pid"]),
            version=str(said["version"]),
            started_at=datetime.fromisoformat(said["started_at"]),
            roles=tuple(role for role in ROLES if role in said.get("roles", ROLES)),
            is_draining=said.get("is_draining") is True,
        )
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"a node that is described wrongly: {error}") from None


def dump_run(run: RunKey) -> bytes:
    return _dump({"workspace": run[0], "run": run[1]})


def load_run(data: bytes) -> RunKey:
    said = _load(data)
    workspace, run = said.get("workspace"), said.get("run")
    if not isinstance(workspace, str) or not isinstance(run, str):
        raise Unreadable("a run without workspace or id")
    return workspace, run


def dump_agreed(agreed: Mapping[str, str]) -> bytes:
    return _dump({"agreed": dict(agreed)})


def load_agreed(data: bytes) -> dict[str, str]:
    agreed = _load(data).get("agreed")
    if not isinstance(agreed, dict):
        raise Unreadable("an installation that is described wrongly")
    return {str(name): str(value) for name, value in cast("dict[Any, Any]", agreed).items()}


@dataclass(frozen=True, slots=True)
class EventBatch:
    """Events of one root run in their order, with the number of the last one `after` which they come.

    Numbers have gaps: words that follow each other are joined before they are kept.
    """

    workspace: str
    root: str
    after: int
    events: list[RunEvent]


def dump_events(batch: EventBatch) -> bytes:
    """What is too large to be pushed is left out: whoever follows sees the gap."""
    told = [
        [one.run, one.kind, one.number, one.agent, dict(one.data), one.time.isoformat()]
        for one in batch.events
    ]
    facts: dict[str, Any] = {"workspace": batch.workspace, "root": batch.root, "after": batch.after}
    message = _dump({**facts, "events": told})
    if len(message) <= LARGEST:
        return message
    return _dump({**facts, "after": batch.events[-1].number, "events": []})


def load_events(data: bytes) -> EventBatch:
    said = _load(data, LARGEST)
    try:
        workspace, root = str(said["workspace"]), str(said["root"])
        events = [
            RunEvent(
                workspace=workspace,
                root=root,
                run=str(run),
                kind=kind,
                number=int(number),
                agent=str(agent),
                data=cast("dict[str, Any]", content),
                time=datetime.fromisoformat(time),
            )
            for run, kind, number, agent, content, time, *_ in said["events"]
        ]
        return EventBatch(workspace, root, int(said["after"]), events)
    except (KeyError, TypeError, ValueError) as error:
        raise Unreadable(f"events that are described wrongly: {error}") from None


def dump_lease(lease: str) -> bytes:
    """Empty says that the node holds nothing by it any more."""
    return _dump({"lease": lease})


def load_lease(data: bytes) -> str:
    lease = _load(data).get("lease")
    if not isinstance(lease, str):
        raise Unreadable("a lease without an id")
    return lease


def dump_place(place: Place) -> bytes:
    return _dump(
        {
            "connector": place.connector,
            "identity": place.identity,
            "node": place.node,
            "lease": place.lease,
            "is_pinned": place.is_pinned,
        }
    )


def load_place(data: bytes) -> Place:
    """Its revision is what the bucket says."""
    said = _load(data)
    words = [said.get(name) for name in ("connector", "identity", "node", "lease")]
    if not all(isinstance(word, str) for word in words):
        raise Unreadable("a place without connector, identity, node or lease")
    connector, identity, node, lease = map(str, words)
    return Place(
        connector=connector,
        identity=identity,
        node=node,
        lease=lease,
        is_pinned=said.get("is_pinned") is True,
    )


def _dump(message: Mapping[str, Any]) -> bytes:
    return json.dumps({"v": _VERSION, **message}, separators=(",", ":")).encode()


def _load(data: bytes, most: int = _MOST) -> dict[str, Any]:
    if len(data) > most:
        raise Unreadable(f"{len(data):,} bytes")
    return load_versioned(data, _READABLE)


def load_versioned(data: bytes, readable: Collection[int]) -> dict[str, Any]:
    """Of these versions; another is refused."""
    try:
        said: Any = orjson.loads(data)
    except ValueError:
        raise Unreadable("no JSON") from None
    message = cast("dict[str, Any]", said) if isinstance(said, dict) else {}
    if message.get("v") not in readable:
        raise Unreadable("a version that is not known here")
    return message
