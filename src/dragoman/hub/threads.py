"""Threads and the connectors that are active in them. Effective for the next call; nothing restarts.

A thread that nobody wrote down is a new one: it has its user's default set. Knows no messages.
"""

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex
from time import monotonic
from weakref import WeakValueDictionary

from dragoman.access import AccessRules
from dragoman.calls.audit import Auditor
from dragoman.catalog import Catalog
from dragoman.connector import Connector
from dragoman.errors import Conflict, Denied, InvalidArguments, LimitReached, NotFound
from dragoman.events import Event, Events
from dragoman.hub.connector_registry import ConnectorRegistry
from dragoman.hub.connectors import Connectors
from dragoman.hub.loaded_tools import LoadedTools
from dragoman.hub.thread_tools import ThreadTools, ThreadToolsQuery, tools_of
from dragoman.identity.directory import Directory, Person
from dragoman.people import Thread
from dragoman.scope import Caller
from dragoman.store import Store
from dragoman.tool import Tool

FRESH = 2.0
_MOST_KEPT = 10_000
_LONGEST = 200
_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True)
class InThread(Caller):
    """A caller with the connectors that are active where they speak; None: all that they see."""

    active: frozenset[str] | None = None


class ThreadAccess(AccessRules):
    """The rules of access, and one more: what is not active in the thread is not called there.

    Such a connector is the caller's own choice and no secret, hence `Denied` and not `NotFound`.
    """

    def check(self, tool: Tool, connector: Connector, caller: Caller) -> None:
        super().check(tool, connector, caller)
        if not isinstance(caller, InThread) or caller.active is None or connector.slug in caller.active:
            return
        raise Denied(
            f"the connector {connector.slug!r} is not active in this thread",
            hint=f"dragoman threads add {caller.thread} {connector.slug}",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A thread as its user sees it. `active` are the connectors in force now, `notes` are about them."""

    thread: Thread
    active: tuple[str, ...]
    limit: int | None
    notes: tuple[str, ...] = ()


class Threads:
    """Every method acts for `caller`, by default the hub's own. A thread is its user's alone.

    Never are more connectors active than the user's `max_connectors_per_thread`: of an explicit set the
    first as they were given, of all visible ones the first by name, those that are disabled left out.
    """

    def __init__(
        self,
        *,
        caller: Caller,
        store: Store,
        directory: Directory,
        registry: ConnectorRegistry,
        catalog: Catalog,
        connectors: Connectors,
        auditor: Auditor,
        events: Events,
        loaded: LoadedTools,
    ) -> None:
        self._caller = caller
        self._store = store
        self._directory = directory
        self._registry = registry
        self._catalog = catalog
        self._connectors = connectors
        self._auditor = auditor
        self._events = events
        self._loaded = loaded
        self._kept: dict[_Key, tuple[float, Thread | None]] = {}
        self._changes = 0
        self._writing: WeakValueDictionary[_Key, asyncio.Lock] = WeakValueDictionary()

    async def list(self, limit: int = 100, caller: Caller | None = None) -> Sequence[ThreadView]:
        """Last changed first."""
        caller = caller or self._caller
        threads = await self._store.threads.list(caller.workspace, caller.user, limit)
        return [await self._view(thread, caller) for thread in threads]

    async def create(
        self,
        title: str = "",
        connectors: Sequence[str] | None = None,
        *,
        id: str | None = None,
        caller: Caller | None = None,
    ) -> ThreadView:
        """A new thread with these connectors, or with the user's default set, whatever it is by then.

        `id` is for who has names for their conversations already; else it is random.
        """
        caller = caller or self._caller
        chosen = None if connectors is None else await self._checked(connectors, caller)
        thread = Thread(
            id=f"thr_{token_hex(8)}" if id is None else _checked_id(id),
            workspace=caller.workspace,
            user=caller.user,
            title=_checked_title(title),
            connectors=chosen,
        )
        async with self._lock(_key(thread)):
            if id is not None and await self._store.threads.find(*_key(thread)) is not None:
                raise Conflict(f"there is a thread {id!r} already", hint=f"dragoman threads show {id}")
            await self._write(thread, caller, "created")
        return await self._view(thread, caller)

    async def get(self, thread: str, caller: Caller | None = None) -> ThreadView:
        caller = caller or self._caller
        return await self._view(await self._get(thread, caller), caller)

    async def remove(self, thread: str, caller: Caller | None = None) -> None:
        """From then on its id is that of a new thread."""
        caller = caller or self._caller
        found = await self._get(thread, caller)
        async with self._lock(_key(found)):
            await self._store.threads.remove(*_key(found))
            self._changed(found)
            self._loaded.forget(_key(found))
        await self._tell(found, caller, "removed")

    async def set(
        self, thread: str, connectors: Sequence[str] | None, caller: Caller | None = None
    ) -> ThreadView:
        """These and no others; None goes back to the user's default set."""
        caller = caller or self._caller
        async with self._lock((caller.workspace, caller.user, thread)):
            before = await self._get(thread, caller)
            chosen = None if connectors is None else await self._checked(connectors, caller)
            return await self._rewrite(before, chosen, caller)

    async def add(self, thread: str, *connectors: str, caller: Caller | None = None) -> ThreadView:
        """These too. A thread with the default set keeps what is in it now."""
        caller = caller or self._caller
        async with self._lock((caller.workspace, caller.user, thread)):
            before = await self._get(thread, caller)
            chosen = await self._checked(connectors, caller, await self._chosen(before, caller))
            return await self._rewrite(before, chosen, caller)

    async def disable(self, thread: str, *connectors: str, caller: Caller | None = None) -> ThreadView:
        """All but these. A thread with the default set keeps the rest of what is in it now."""
        caller = caller or self._caller
        async with self._lock((caller.workspace, caller.user, thread)):
            before = await self._get(thread, caller)
            chosen = await self._chosen(before, caller)
            # What has been removed since can be taken out by the name that it had.
            gone = {name if name in chosen else self._registry.get(name, caller).slug for name in connectors}
            return await self._rewrite(before, tuple(slug for slug in chosen if slug not in gone), caller)

    async def tools(
        self,
        thread: str,
        *,
        tools: Sequence[str] | None = None,
        max_tools: int | None = None,
        caller: Caller | None = None,
    ) -> ThreadTools:
        """What the caller can call there, and why the rest of what they see cannot be.

        `tools` and `max_tools` are how one request narrows it further.
        """
        if max_tools is not None and max_tools < 1:
            raise InvalidArguments("max_tools must be 1 or more", hint="leave it out for all")
        found = await self._get(thread, caller or self._caller)
        inside = await self.entered(replace(caller or self._caller, thread=found.id))
        held = await self._store.connectors.secret_names(inside.workspace, inside.user)
        wanted = ThreadToolsQuery(
            caller=inside,
            active=inside.active,
            held=held,
            names=None if tools is None else tuple(tools),
            most=max_tools,
        )
        return tools_of(wanted, await self._connectors.list(inside), self._catalog)

    # On every call

    async def entered(self, caller: Caller) -> InThread:
        """The caller as one who speaks in their thread: sees what is theirs, calls what is active."""
        active = await self._active(caller)
        return InThread(
            workspace=caller.workspace,
            user=caller.user,
            thread=caller.thread,
            agent=caller.agent,
            way=caller.way,
            role=caller.role,
            grants=caller.grants,
            active=None if active is None else frozenset(active),
        )

    async def narrowed(self, caller: Caller) -> Caller:
        """The caller with no other connectors than those active in their thread: for lists and search."""
        if caller.thread is None:
            return caller
        active = await self._active(caller)
        return caller if active is None else caller.limited_to(f"mcp_{slug}" for slug in active)

    async def _active(self, caller: Caller) -> tuple[str, ...] | None:
        """None: nothing restricts the thread."""
        if caller.thread is None:
            return None
        person = await self._directory.of(caller)
        return self._in_force(await self._find(caller.thread, caller), person, caller)

    # Parts

    def _in_force(self, thread: Thread | None, person: Person, caller: Caller) -> tuple[str, ...] | None:
        limit = person.bounds.max_connectors_per_thread
        chosen = None if thread is None else thread.connectors
        if chosen is None:
            wishes = person.user.preferences
            chosen = wishes.connectors if wishes.auto_load else ()
        if chosen is None:
            if limit is None:
                return None
            chosen = tuple(connector.slug for connector in self._usable(caller, person))
        elif limit is not None and len(chosen) > limit:
            seen = {connector.slug for connector in self._registry.list(_as_user(caller, person))}
            chosen = tuple(slug for slug in chosen if slug in seen)
        return chosen if limit is None else chosen[:limit]

    def _usable(self, caller: Caller, person: Person) -> Iterable[Connector]:
        """All that the user sees and that are enabled; functions of this process if there are any."""
        user = _as_user(caller, person)
        for connector in self._registry.list(user):
            is_empty = connector.kind == "native" and not self._catalog.list(user, connector.id)
            if connector.enabled and not is_empty:
                yield connector

    async def _chosen(self, thread: Thread, caller: Caller) -> tuple[str, ...]:
        """What is active now, spelt out; what a narrower key of the user does not see is in it too."""
        person = await self._directory.of(caller)
        active = self._in_force(thread, person, caller)
        if active is None:
            return tuple(connector.slug for connector in self._usable(caller, person))
        seen = {connector.slug for connector in self._registry.list(_as_user(caller, person))}
        return tuple(slug for slug in active if slug in seen)

    async def _checked(
        self, connectors: Sequence[str], caller: Caller, kept: Sequence[str] = ()
    ) -> tuple[str, ...]:
        """Their slugs after those that are `kept`. `NotFound` for what the caller does not see."""
        person = await self._directory.of(caller)
        slugs = dict.fromkeys((*kept, *(self._registry.get(name, caller).slug for name in connectors)))
        limit = person.bounds.max_connectors_per_thread
        if limit is not None and len(slugs) > limit:
            is_own = person.user.preferences.bounds.max_connectors_per_thread == limit
            change = "dragoman preferences set --max-connectors-per-thread" if is_own else "ask an admin"
            raise LimitReached(
                f"a thread may have at most {limit} connectors, not {len(slugs)}",
                hint=f"leave some out, or have the bound raised: {change}",
            )
        return tuple(slugs)

    async def _rewrite(self, before: Thread, chosen: tuple[str, ...] | None, caller: Caller) -> ThreadView:
        after = replace(before, connectors=chosen, updated_at=datetime.now(UTC))
        if chosen != before.connectors:
            await self._write(after, caller, "changed")
        return await self._view(after, caller)

    async def _write(self, thread: Thread, caller: Caller, what: str) -> None:
        await self._store.threads.put(thread)
        self._changed(thread)
        await self._tell(thread, caller, what)

    async def _tell(self, thread: Thread, caller: Caller, what: str) -> None:
        connectors = None if thread.connectors is None else [*thread.connectors]
        facts = {"thread": thread.id, "what": what, "connectors": connectors}
        self._events.publish(
            Event(kind="thread.changed", workspace=thread.workspace, user=thread.user, data=facts)
        )
        await self._auditor.done(caller, f"thread.{what}", thread.id, details={"connectors": connectors})

    async def _get(self, thread: str, caller: Caller) -> Thread:
        key = (caller.workspace, caller.user, thread)
        found = await self._store.threads.find(*key) if _is_storable(thread) else None
        if found is None:
            raise NotFound(
                f"there is no thread {thread[:80]!r}", hint="dragoman threads list shows those there are"
            )
        return found

    async def _find(self, thread: str, caller: Caller) -> Thread | None:
        key = (caller.workspace, caller.user, thread)
        known = self._kept.get(key)
        if known is not None and monotonic() - known[0] < FRESH:
            return known[1]
        changes = self._changes
        found = await self._store.threads.find(*key) if _is_storable(thread) else None
        if changes == self._changes:  # else it may be older than what was written meanwhile
            self._keep(key, found)
        return found

    def _changed(self, thread: Thread) -> None:
        self._changes += 1
        self._kept.pop(_key(thread), None)

    def _keep(self, key: _Key, thread: Thread | None) -> None:
        if len(self._kept) >= _MOST_KEPT:
            self._kept.clear()
        self._kept[key] = (monotonic(), thread)

    async def _view(self, thread: Thread, caller: Caller) -> ThreadView:
        person = await self._directory.of(caller)
        seen = {connector.slug: connector for connector in self._registry.list(caller)}
        chosen = thread.connectors
        active = self._in_force(thread, person, caller)
        if active is None:
            active = tuple(one.slug for one in self._usable(caller, person))
        notes = [f"{slug} is disabled" for slug in active if slug in seen and not seen[slug].enabled]
        left_out = [slug for slug in chosen or () if slug in seen and slug not in active]
        limit = person.bounds.max_connectors_per_thread
        if left_out:
            notes.append(f"at most {limit} may be active: {', '.join(left_out)} left out")
        return ThreadView(
            thread=replace(thread, connectors=chosen and tuple(slug for slug in chosen if slug in seen)),
            active=tuple(slug for slug in active if slug in seen),
            limit=limit,
            notes=tuple(notes),
        )

    def _lock(self, key: _Key) -> asyncio.Lock:
        return self._writing.setdefault(key, asyncio.Lock())


def _key(thread: Thread) -> _Key:
    return (thread.workspace, thread.user, thread.id)


def _as_user(caller: Caller, person: Person) -> Caller:
    """The caller with all that their user sees: a set belongs to the user, not to one of their keys."""
    if not caller.grants:
        return caller
    own = () if person.user.role == "admin" else (person.user.capabilities,)
    return replace(caller, grants=own)


def _is_storable(word: str) -> bool:
    """No control character and no half of a surrogate pair: not every database takes those."""
    return 0 < len(word) <= _LONGEST and word.isprintable()


def _checked_id(word: str) -> str:
    if _is_storable(word):
        return word
    raise InvalidArguments(
        f"the id of a thread has 1 to {_LONGEST} printable characters",
        hint="leave it out to get a random one",
    )


def _checked_title(title: str) -> str:
    if len(title) <= _LONGEST:
        return title
    raise InvalidArguments(f"a title has at most {_LONGEST} characters", hint="make it shorter")
