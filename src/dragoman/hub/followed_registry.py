"""Namespaces of the registry that the app follows: what is new in them is proposed, what is gone is said.

A proposal is a connector of the app that is disabled, with the exact command or URL: nothing runs before a
person enables it, or the app said that the namespace may. What a server needs to be told is a person's to
give, so such an offer is only listed. What was proposed once is never proposed again, nor changed.
"""

import asyncio
import re
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, Literal

from dragoman.discovery import InstallMethod, RegistryServer
from dragoman.errors import Conflict, DragomanError, InvalidConfig
from dragoman.hub.connectors import Connectors
from dragoman.scope import APP, Caller
from dragoman.settings import Settings
from dragoman.store.shared_lock import SharedLock
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

_EVERY = 3600.0
_MOST_PAGES = 20
_AT_ONCE = 100
_STATE = "registry"
_LOCK = "the registry that is followed"
_NAMESPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,199}")
_ENABLE = "enable"
ProposalState = Literal["proposed", "listed", "enabled", "refused"]


@dataclass(frozen=True, slots=True, kw_only=True)
class FollowedServer:
    """A server of a namespace that the app follows.

    `proposed` is a disabled connector, `enabled` one that the app let run at once; `listed` asks for what
    only a person can give, `refused` has no way that Dragoman goes. `shown` is the exact command or URL that
    was taken, `offered` what the registry has now. Gone from the registry: it `is_gone`.
    """

    name: str
    description: str = ""
    version: str = ""
    state: ProposalState
    shown: str = ""
    offered: str = ""
    asks: tuple[str, ...] = ()
    why: str = ""
    connector: str | None = None
    is_gone: bool = False
    since: datetime


def followed_namespaces(settings: Settings) -> Mapping[str, bool]:
    """Each with whether its servers are enabled at once. `InvalidConfig` for what cannot be followed."""
    found: dict[str, bool] = {}
    for text in settings.registry_follow:
        name, *words = text.split() or [""]
        if not _NAMESPACE.fullmatch(name) or words not in ([], [_ENABLE]):
            raise InvalidConfig(
                f"{text[:80]!r} is no namespace of a registry",
                hint="DRAGOMAN_REGISTRY_FOLLOW has names as io.github.acme, or `io.github.acme enable`",
            )
        found[name] = bool(words)
    if found and settings.discovery != "automatic":
        raise InvalidConfig(
            "no registry is followed while discovery is not automatic",
            hint="set DRAGOMAN_DISCOVERY to automatic, or take DRAGOMAN_REGISTRY_FOLLOW out",
        )
    return found


class FollowedRegistry:
    def __init__(self, runtime: "Runtime") -> None:
        self._runtime = runtime
        self._namespaces = followed_namespaces(runtime.settings)
        self._lock = SharedLock(runtime.store.usage, runtime.store.clock)
        self._busy = asyncio.Lock()
        self._caller = Caller(workspace=APP, user=_STATE, role="operator")

    async def follow(self) -> None:
        """Looks again and again; returns where nothing is followed."""
        while self._namespaces:
            try:
                await self.look()
            except DragomanError as error:
                get_logger().warning("registry.not_followed", cause=error.message)
            await asyncio.sleep(_EVERY)

    async def list(self) -> Sequence[FollowedServer]:
        """What was found so far, by name."""
        stored = await self._runtime.store.rollout.state(_STATE) or {}
        return [_read(facts) for _, facts in sorted(stored.get("servers", {}).items())]

    async def look(self) -> None:
        """Asks the registry once. What cannot be told for certain is left as it was."""
        offered = {name: await self._offers(name) for name in self._namespaces}
        async with self._busy, self._lock.turn(APP, _LOCK):
            stored = await self._runtime.store.rollout.state(_STATE)
            known = {name: _read(facts) for name, facts in (stored or {}).get("servers", {}).items()}
            after = dict(known)
            for namespace, (offers, is_whole) in offered.items():
                for name, offer in offers.items():
                    after[name] = await self._seen(known.get(name), offer, self._namespaces[namespace])
                for name, one in known.items():
                    if is_whole and not one.is_gone and _is_in(name, namespace) and name not in offers:
                        get_logger().warning("registry.server_gone", server=name, connector=one.connector)
                        after[name] = replace(one, is_gone=True)
            if after != known:
                facts = {"servers": {name: _written(one) for name, one in after.items()}}
                await self._runtime.store.rollout.put_state(_STATE, facts, stored)

    async def _offers(self, namespace: str) -> tuple[dict[str, RegistryServer], bool]:
        """All of a namespace, and whether these are all."""
        found: dict[str, RegistryServer] = {}
        cursor: str | None = None
        for _ in range(_MOST_PAGES):
            page = await self._runtime.mcp_registry.search(f"{namespace}/", cursor=cursor, limit=_AT_ONCE)
            found |= {one.name: one for one in page.offers if _is_in(one.name, namespace)}
            cursor = page.next_cursor
            if cursor is None:
                return found, not page.skipped
        return found, False

    async def _seen(
        self, known: FollowedServer | None, offer: RegistryServer, is_enabled: bool
    ) -> FollowedServer:
        way = next((one for one in offer.ways if not _asks(one)), None) or next(iter(offer.ways), None)
        shown = "" if way is None else way.shown
        if known is not None:
            return replace(known, offered=shown, version=offer.version, is_gone=False)
        one = FollowedServer(
            name=offer.name,
            description=offer.description,
            version=offer.version,
            state="listed",
            shown=shown,
            offered=shown,
            since=datetime.now(UTC),
        )
        if way is None:
            return replace(one, state="refused", why="; ".join(offer.refused) or "it says no way to reach it")
        if asks := _asks(way):
            return replace(one, asks=asks)
        return await self._proposed(one, offer, way, is_enabled)

    async def _proposed(
        self, one: FollowedServer, offer: RegistryServer, way: InstallMethod, is_enabled: bool
    ) -> FollowedServer:
        connectors = Connectors(self._runtime, self._caller)
        facts: dict[str, Any] = {"description": offer.description, **way.facts({})}
        get_logger().info("registry.proposed", server=offer.name, shown=way.shown, enabled=is_enabled)
        whole = offer.name.replace("/", "-").replace(".", "-")
        for name in (offer.slug, whole):
            try:
                added = (
                    await connectors.add(name, shared=True, enabled=is_enabled, connect=False, **facts)
                ).connector
            except Conflict:
                continue  # the name is somebody else's
            except DragomanError as error:
                return replace(one, state="refused", why=error.message)
            if is_enabled:
                first = self._runtime.lists.try_first(added, self._runtime.owner)
                self._runtime.tasks.start(first, f"first list of {added.slug}")
            state: ProposalState = "enabled" if is_enabled else "proposed"
            return replace(one, state=state, connector=added.slug)
        return replace(one, why="its name is taken: add it under another")


def _is_in(name: str, namespace: str) -> bool:
    return name.partition("/")[0] == namespace


def _asks(way: InstallMethod) -> tuple[str, ...]:
    return tuple(need.name for need in way.needs if need.is_required)


def _written(one: FollowedServer) -> dict[str, Any]:
    return {**asdict(one), "since": one.since.isoformat(), "asks": [*one.asks]}


def _read(facts: Mapping[str, Any]) -> FollowedServer:
    read: dict[str, Any] = {**facts}
    read |= {"since": datetime.fromisoformat(facts["since"]), "asks": tuple(facts["asks"])}
    return FollowedServer(**read)
