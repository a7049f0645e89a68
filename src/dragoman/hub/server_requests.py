"""What else than tools the servers of MCP offer, as they say it: resources, prompts, completion.

Everything has two names: its server's own, and one that no two servers share, which is `<slug>__<name>` for a
prompt and `<slug>+<uri>` for a resource; that of a page for the client's screen is `ui://<slug>+…`, by which
clients know it. `hub.resources` and `hub.prompts` give the same as values.
"""

import asyncio
from collections import Counter, deque
from collections.abc import AsyncGenerator, Callable, Generator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any, cast

from dragoman.calls.call_channel import extensions_of
from dragoman.calls.request_road import PAGE
from dragoman.connections.source import ServerNotice
from dragoman.connector import Connector
from dragoman.errors import DragomanError, InvalidArguments, LimitReached, NotFound, Timeout
from dragoman.hub.bound import BoundService
from dragoman.scope import Caller, identity_of
from dragoman.tool import ClientChannel

Json = Mapping[str, Any]
Entry = dict[str, Any]
LISTS: Mapping[str, str] = {
    "resources/list": "resources",
    "resources/templates/list": "resourceTemplates",
    "prompts/list": "prompts",
}
"""The field in which each list is."""
NAMED: Mapping[str, str] = {"resources/read": "uri", "prompts/get": "name"}
"""By what each is asked for."""
_SLOWEST_LIST = 10.0
_MOST_PAGES = 100
_MOST_ENTRIES = 10_000
_MOST_WAITING = 1000
_MOST_WATCHED = 2000
_Told = tuple[str, str, ServerNotice]


class WatchedResources:
    """How many each user watches in this process, through whichever door: every one is asked of a server."""

    def __init__(self, most: int = _MOST_WATCHED) -> None:
        self._most = most
        self._watched: Counter[tuple[str, str]] = Counter()

    def take(self, caller: Caller) -> Callable[[], None]:
        """One more, until what is returned is called, once."""
        user = (caller.workspace, caller.user)
        if self._watched[user] >= self._most:
            raise LimitReached(
                f"a user may watch {self._most:,} resources at once",
                hint="end a stream that is no longer read",
            )
        self._watched[user] += 1

        def end() -> None:
            self._watched[user] -= 1
            if not self._watched[user]:
                del self._watched[user]

        return end


class ServerRequests(BoundService):
    """With the rights and over the connection of the caller, who needs the whole connector, not one tool."""

    __slots__ = ()

    async def ask(
        self, connector: str, method: str, params: Json, *, channel: ClientChannel | None = None
    ) -> Json:
        """The server's result, in its own names. Its own no is on the channel as well."""
        return await self._runtime.request_road.send(
            lambda: self._get(connector), method, params, self._caller, channel
        )

    async def ask_by_name(self, method: str, params: Json, *, channel: ClientChannel | None = None) -> Json:
        """The same in the names that no two servers share. Raises `NotFound` where nobody has such a name."""
        slug, own = _own_params(method, params)
        if slug not in await self.offering(capability_of(method)):
            raise _unknown(params)
        result = await self.ask(slug, method, own, channel=channel)
        contents: Any = result.get("contents")
        if not isinstance(contents, list):
            return result
        blocks = [cast("Entry", one) for one in cast("list[Any]", contents) if isinstance(one, dict)]
        return {**result, "contents": [shared_names(slug, one) for one in blocks]}

    async def list_all(
        self, method: str, connector: str | None = None, *, channel: ClientChannel | None = None
    ) -> tuple[list[Entry], dict[str, DragomanError]]:
        """Every page of every server, in the names that no two servers share, and who could not be asked.

        Of one connector an error is raised; of all, a server that is slow or broken keeps nobody waiting.
        """
        offering = await self.offering(capability_of(method))
        if connector is not None:
            await self._get(connector)
            return (await self._list_one(connector, method, channel) if connector in offering else []), {}
        missing: dict[str, DragomanError] = {}

        async def listed(slug: str) -> list[Entry]:
            try:
                async with asyncio.timeout(_SLOWEST_LIST):
                    return await self._list_one(slug, method, channel)
            except TimeoutError:
                missing[slug] = Timeout(f"{slug}: {method} was not answered in {_SLOWEST_LIST:.0f} s")
            except DragomanError as error:
                missing[slug] = error
            return []

        lists = await asyncio.gather(*map(listed, offering))
        return [entry for entries in lists for entry in entries], missing

    async def offering(self, capability: str) -> list[str]:
        """Slugs of the connectors whose servers said, when they were last connected, that they offer it.

        `resources.subscribe` is what resources have under that name.
        """
        return [one.slug for one in await self._open() if _offers(one, capability)]

    async def having(self, extension: str) -> list[str]:
        """Slugs of the connectors whose servers declared the extension of MCP."""
        return [one.slug for one in await self._open() if extension in extensions_of(one)]

    # News

    async def watch(self, connector: str, uri: str) -> Callable[[], None]:
        """From now on `notices` tells when this resource changes, until what is returned is called, once."""
        found = await self._get(connector)
        if not _offers(found, "resources.subscribe"):
            raise NotFound(f"the server of {connector} does not tell when a resource changes")
        with ExitStack() as ends:
            ends.callback(self._runtime.watched.take(self._caller))
            ends.callback(await self._runtime.servers.watch(found, self._caller, uri))
            return ends.pop_all().close

    async def watch_by_name(self, uri: str) -> Callable[[], None]:
        """The same for an address that no two servers share. Raises `NotFound` where nobody has it."""
        slug, own = own_name(uri, "+")
        if slug not in await self.offering("resources"):
            raise _unknown({"uri": uri})
        return await self.watch(slug, own)

    async def notices(self) -> AsyncGenerator[tuple[str, ServerNotice]]:
        """What servers tell of prompts and resources over the caller's connections: slug and notice."""
        with self.listening() as told:
            async for slug, notice in told:
                yield slug, notice

    @contextmanager
    def listening(self) -> Generator[AsyncGenerator[tuple[str, ServerNotice]]]:
        """The same; from the beginning of the block on nothing is missed."""
        waiting: deque[_Told] = deque(maxlen=_MOST_WAITING)
        wake = asyncio.Event()

        def hear(connector: Connector, identity: str, notice: ServerNotice) -> None:
            waiting.append((connector.id, identity, notice))
            wake.set()

        with self._runtime.servers.listening(hear):
            yield self._heard(waiting, wake)

    async def _heard(
        self, waiting: deque[_Told], wake: asyncio.Event
    ) -> AsyncGenerator[tuple[str, ServerNotice]]:
        while True:
            await wake.wait()
            wake.clear()
            slugs = {
                (one.id, identity_of(self._caller, one.configuration.isolation)): one.slug
                for one in await self._open()
            }
            told = dict.fromkeys(waiting)
            waiting.clear()
            for connector_id, identity, notice in told:
                if slug := slugs.get((connector_id, identity)):
                    yield slug, notice

    async def _list_one(self, slug: str, method: str, channel: ClientChannel | None) -> list[Entry]:
        entries: list[Entry] = []
        params: Json = {}
        for _ in range(_MOST_PAGES):
            page = await self.ask(slug, method, params, channel=channel)
            found = cast("list[Any]", page.get(LISTS[method]) or [])
            entries += [shared_names(slug, cast("Entry", one)) for one in found if isinstance(one, dict)]
            if not page.get("nextCursor") or len(entries) >= _MOST_ENTRIES:
                break
            params = {"cursor": page["nextCursor"]}
        return entries[:_MOST_ENTRIES]

    # Rights

    async def _get(self, slug: str) -> Connector:
        for found in await self._open():
            if found.slug == slug:
                return found
        raise NotFound(
            f"there is no connector {slug[:80]!r} with resources or prompts",
            hint="dragoman connectors list shows those there are",
        )

    async def _open(self) -> list[Connector]:
        caller = await self._runtime.active.narrowed(self._caller)
        return [
            connector
            for connector in self._runtime.registry.within(caller)
            if connector.kind == "mcp"
            and connector.enabled
            and self._runtime.catalog.gives_resources(connector, caller)
        ]


def capability_of(method: str) -> str:
    return "completions" if method == "completion/complete" else method.partition("/")[0]


def shared_names(slug: str, entry: Entry) -> Entry:
    """What a server lists, under the name that no two servers share."""
    for field in ("uri", "uriTemplate"):
        if isinstance(uri := entry.get(field), str):
            return {**entry, field: shared_uri(slug, uri)}
    return {**entry, "name": f"{slug}__{entry.get('name', '')}"}


def shared_uri(slug: str, uri: str) -> str:
    """The address of a resource that no two servers share."""
    return f"{PAGE}{slug}+{uri.removeprefix(PAGE)}" if uri.startswith(PAGE) else f"{slug}+{uri}"


def own_name(name: str, mark: str) -> tuple[str, str]:
    """The connector that a shared name belongs to, empty where it is none, and the name of its server."""
    is_page = mark == "+" and name.startswith(PAGE)
    slug, _, rest = (name.removeprefix(PAGE) if is_page else name).partition(mark)
    if not rest:
        return "", name
    return slug, f"{PAGE}{rest}" if is_page else rest


def _own_params(method: str, params: Json) -> tuple[str, Json]:
    """The connector that a request is for, and the request as its server knows it."""
    reference: Any = params.get("ref") if method == "completion/complete" else params
    if not isinstance(reference, Mapping):
        raise InvalidArguments("ref must name a prompt or a resource")
    facts = cast("Json", reference)
    field = NAMED.get(method) or ("name" if facts.get("type") == "ref/prompt" else "uri")
    slug, name = own_name(str(facts.get(field, "")), "__" if field == "name" else "+")
    own = {**facts, field: name}
    return slug, {**params, "ref": own} if method == "completion/complete" else own


def _unknown(params: Json) -> NotFound:
    """By the name that was asked for: nobody learns whether its connector exists."""
    facts = cast("Json", params.get("ref") or params)
    if "uri" in facts:
        hint = "dragoman resources list shows those there are"
        return NotFound(f"there is no resource {str(facts['uri'])[:200]!r}", hint=hint)
    hint = "dragoman prompts list shows those there are"
    return NotFound(f"there is no prompt {str(facts.get('name', ''))[:200]!r}", hint=hint)


def _offers(connector: Connector, capability: str) -> bool:
    offered: Any = (connector.server or {}).get("capabilities")
    for name in capability.split("."):
        offered = cast("Json", offered).get(name) if isinstance(offered, Mapping) else None
    return offered is not None and offered is not False
