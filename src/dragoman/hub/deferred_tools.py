"""Deferred tools: found for a prompt, loaded into a thread, unloaded again; and what they all cost.

Loading decides what a model has in view, never what may be called: the road knows nothing of it.
"""

import asyncio
from collections.abc import Awaitable, Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from math import isfinite

from dragoman.catalog import Catalog, ToolInfo
from dragoman.catalog.search import MOST_HITS, Search, SearchHit, SearchQuery
from dragoman.errors import Conflict, InvalidArguments, NotFound
from dragoman.events import Event, EventKind, Events
from dragoman.hub.loaded_tools import MOST_LOADED, LoadedTools, ThreadKey
from dragoman.identity.directory import Directory
from dragoman.scope import Caller, Deferral
from dragoman.tokens import Counter, counter


def deferred_tools(
    tools: Sequence[ToolInfo], default: Deferral, budget: int, loaded: Collection[str] = ()
) -> frozenset[str]:
    """By name. What is loaded is not; else the connector decides, and where it does not, the app.

    By `auto` nothing is deferred while all that is not deferred by its connector fits into the budget.
    """
    chosen = {info.tool.name for info in tools if info.connector.configuration.deferred}
    undecided = {info.tool.name for info in tools if info.connector.configuration.deferred is None}
    rest = (info for info in tools if info.tool.name not in chosen)
    if default == "always" or (default == "auto" and _exceed(rest, budget)):
        chosen |= undecided
    return frozenset(chosen.difference(loaded))


def _exceed(tools: Iterable[ToolInfo], budget: int) -> bool:
    """Counts no further than it has to: there may be many."""
    total = 0
    for info in tools:
        total += info.tokens
        if total > budget:
            return True
    return False


_LAST_LINES = 5
_LONGEST_HISTORY = 1_000
_LONGEST_QUESTION = 4_000
_LONGEST_THREAD = 200


@dataclass(frozen=True, slots=True, kw_only=True)
class ResolvedTools:
    """The tools for a prompt, the best first. `loaded` are those that the thread did not have before.

    `total` is how many were searched; `tokens` what a model reads for those that were found.
    """

    hits: tuple[tuple[ToolInfo, float], ...]
    total: int
    thread: str | None
    auto_load: bool
    loaded: tuple[str, ...] = ()

    @property
    def tokens(self) -> int:
        return sum(info.tokens for info, _ in self.hits)

    @property
    def summary(self) -> str:
        return f"{len(self.hits):,} of {self.total:,}"


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolFootprint:
    """What one tool costs in a prompt, in tokens."""

    name: str
    connector: str
    tokens: int
    deferred: bool
    loaded: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class Footprint:
    """Of all tools that a caller can call, in a thread or without. In view is what is not deferred."""

    tools: tuple[ToolFootprint, ...]
    thread: str | None
    budget: int
    counted_by: Counter

    @property
    def tokens(self) -> int:
        return sum(tool.tokens for tool in self.tools)

    @property
    def tokens_in_view(self) -> int:
        return sum(tool.tokens for tool in self.tools if not tool.deferred)


@dataclass(frozen=True, slots=True, kw_only=True)
class DeferredTools:
    catalog: Catalog
    search: Search
    loaded: LoadedTools
    directory: Directory
    events: Events
    narrowed: Callable[[Caller], Awaitable[Caller]]
    default: Deferral
    budget: int

    def deferred(self, tools: Sequence[ToolInfo], caller: Caller) -> frozenset[str]:
        """Which of the caller's tools are deferred now."""
        return deferred_tools(tools, self.default, self.budget, self.loaded_in(caller))

    async def deferred_among(self, tools: Sequence[ToolInfo], caller: Caller) -> frozenset[str]:
        """The same of a few, without a look at every other tool once it is known that all are too many."""
        here = await self.narrowed(caller)

        def undeferred() -> Iterator[ToolInfo]:
            for tool in self.catalog.list(here):
                if not self.catalog.connector_of(tool).configuration.deferred:
                    with suppress(NotFound):  # gone since
                        info = self.catalog.info(tool.name, here)
                        if _is_usable(info, here):
                            yield info

        is_much = self.default == "auto" and _exceed(undeferred(), self.budget)
        default = "always" if is_much else "never" if self.default == "auto" else self.default
        return deferred_tools(tools, default, self.budget, self.loaded_in(here))

    def loaded_in(self, caller: Caller) -> tuple[str, ...]:
        return () if caller.thread is None else self.loaded.of(_key(caller))

    async def load(self, names: Sequence[str], caller: Caller) -> tuple[str, ...]:
        if len(names) > MOST_LOADED:
            raise InvalidArguments(f"a thread holds at most {MOST_LOADED} loaded tools", hint="name fewer")
        here = await self.narrowed(caller)
        return await self._put([self._loadable(name, here) for name in names], caller)

    async def unload(self, names: Sequence[str] | None, caller: Caller) -> tuple[str, ...]:
        key = _key(caller)
        held = await self.loaded.read(key)
        if names is None:
            names = held
        # What has vanished since can be unloaded by the name that it had.
        public = [name if name in held else self._public(name, caller) for name in names]
        gone = await self.loaded.remove(key, public)
        self._tell("tools.unloaded", gone, caller)
        return gone

    async def resolve(
        self, prompt: str, history: Sequence[str], max_tools: int, cost_limit: float | None, caller: Caller
    ) -> ResolvedTools:
        if not 1 <= max_tools <= MOST_HITS:
            raise InvalidArguments(f"max_tools must be between 1 and {MOST_HITS}", hint="5 is usually enough")
        if cost_limit is not None and not (isfinite(cost_limit) and cost_limit >= 0):
            raise InvalidArguments("cost_limit must be a number of dollars, 0 or more", hint="leave it out")
        here = await self.narrowed(caller)
        limit = max_tools if cost_limit is None else MOST_HITS
        hits, total = await self._found(prompt, history, limit, here)
        affordable = [hit for hit in hits if cost_limit is None or hit.tool.cost <= cost_limit]
        infos: list[tuple[ToolInfo, float]] = []
        for hit in affordable[:max_tools]:
            with suppress(NotFound):  # gone while it was looked for
                infos.append((self.catalog.info(hit.tool.name, here), hit.score))
        auto_load = (await self.directory.of(caller)).user.preferences.auto_load
        is_wanted = auto_load and caller.thread is not None and infos
        return ResolvedTools(
            hits=tuple(infos),
            total=total,
            thread=caller.thread,
            auto_load=auto_load,
            loaded=await self._put([info for info, _ in infos], caller) if is_wanted else (),
        )

    async def footprint(self, caller: Caller) -> Footprint:
        here = await self.narrowed(caller)
        tools = [self.catalog.info(tool.name, here) for tool in self.catalog.list(here)]
        usable = [info for info in tools if _is_usable(info, here)]
        if here.thread is not None:
            await self.loaded.read(_key(here))
        return await asyncio.to_thread(self._weighed, usable, here)

    # Parts

    def _weighed(self, tools: Sequence[ToolInfo], caller: Caller) -> Footprint:
        deferred, loaded = self.deferred(tools, caller), {*self.loaded_in(caller)}
        weighed = (
            ToolFootprint(
                name=info.tool.name,
                connector=info.tool.slug,
                tokens=info.tokens,
                deferred=info.tool.name in deferred,
                loaded=info.tool.name in loaded,
            )
            for info in tools
        )
        return Footprint(tools=tuple(weighed), thread=caller.thread, budget=self.budget, counted_by=counter())

    async def _found(
        self, prompt: str, history: Sequence[str], limit: int, caller: Caller
    ) -> tuple[list[SearchHit], int]:
        """What fits the prompt; where that is too little, what fits it together with what was said before.

        So a clear prompt is not blurred, and `do the same for Bob` finds something.
        """
        found = await self.search.find(SearchQuery.checked(prompt, "hybrid", limit), caller)
        hits = {hit.tool.name: hit for hit in found.hits}
        room = _LONGEST_QUESTION - len(prompt) - 1
        if len(hits) < limit and room > 0 and (said := _last_lines(history)[-room:]):
            more = await self.search.find(SearchQuery.checked(f"{prompt}\n{said}", "hybrid", limit), caller)
            hits = hits | {hit.tool.name: hit for hit in more.hits if hit.tool.name not in hits}
        return [*hits.values()], found.total

    def _loadable(self, name: str, caller: Caller) -> ToolInfo:
        info = self.catalog.info(name, caller)
        if _is_usable(info, caller):
            return info
        why = info.state if info.state != "ready" else f"not to be called by way of {caller.way}"
        raise Conflict(
            f"the tool {info.tool.name!r} cannot be loaded: it is {why}",
            hint=f"dragoman tools show {info.tool.name} tells more",
        )

    def _public(self, name: str, caller: Caller) -> str:
        tool = self.catalog.find(name, caller)
        return tool.name if tool else name

    async def _put(self, tools: Sequence[ToolInfo], caller: Caller) -> tuple[str, ...]:
        workspace, user, thread = _key(caller)
        change = await self.loaded.add(
            (workspace, user, _checked(thread)), [info.tool.name for info in tools]
        )
        self._tell("tools.unloaded", change.gone, caller)
        self._tell("tools.loaded", change.new, caller)
        return change.new

    def _tell(self, kind: EventKind, names: Sequence[str], caller: Caller) -> None:
        if names:
            facts = {"thread": caller.thread, "tools": [*names]}
            self.events.publish(Event(kind=kind, workspace=caller.workspace, user=caller.user, data=facts))


def in_thread(caller: Caller, thread: str | None) -> Caller:
    """The caller as one who speaks in this thread, by default in their own."""
    return caller if thread is None else replace(caller, thread=_checked(thread))


def _checked(thread: str) -> str:
    if 0 < len(thread) <= _LONGEST_THREAD and thread.isprintable():
        return thread
    raise InvalidArguments(
        f"the id of a thread has 1 to {_LONGEST_THREAD} printable characters",
        hint="dragoman threads list shows those there are",
    )


def _key(caller: Caller) -> ThreadKey:
    if caller.thread is None:
        raise InvalidArguments("tools are loaded into a thread, and none is named", hint="name a thread")
    return (caller.workspace, caller.user, caller.thread)


def _is_usable(info: ToolInfo, caller: Caller) -> bool:
    return info.state == "ready" and info.tool.is_open_to(caller.way)


def _last_lines(history: Sequence[str]) -> str:
    lines = [
        line.strip() for text in history[-_LAST_LINES:] for line in text[-_LONGEST_HISTORY:].splitlines()
    ]
    return "\n".join([line for line in lines if line][-_LAST_LINES:])[-_LONGEST_HISTORY:]
