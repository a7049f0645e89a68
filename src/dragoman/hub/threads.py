"""Threads and the connectors that are active in them. Effective for the next call; nothing restarts.

A thread that nobody wrote down is a new one: it has its user's default set. Knows no messages.
"""

from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from secrets import token_hex

from dragoman.access.threads import LONGEST, is_storable
from dragoman.errors import Conflict, InvalidArguments, LimitReached, NotFound, Outdated
from dragoman.events import Event
from dragoman.hub.bound import BoundService
from dragoman.hub.connectors import Connectors
from dragoman.hub.thread_tools import ThreadTools, ThreadToolsQuery, tools_of
from dragoman.people import Thread

_Key = tuple[str, str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A thread as its user sees it. `active` are the connectors in force now, `notes` are about them."""

    thread: Thread
    active: tuple[str, ...]
    limit: int | None
    notes: tuple[str, ...] = ()


class Threads(BoundService):
    """A thread is its user's alone. Which connectors are active in it is `access/threads.py`'s to say."""

    __slots__ = ()

    async def list(self, limit: int = 100) -> Sequence[ThreadView]:
        """Last changed first."""
        caller = self._caller
        threads = await self._runtime.store.threads.list(caller.workspace, caller.user, limit)
        return [await self._view(thread) for thread in threads]

    async def create(
        self,
        title: str = "",
        connectors: Sequence[str] | None = None,
        *,
        id: str | None = None,
    ) -> ThreadView:
        """A new thread with these connectors, or with the user's default set, whatever it is by then.

        `id` is for who has names for their conversations already; else it is random.
        """
        caller = self._caller
        chosen = None if connectors is None else await self._checked(connectors)
        thread = Thread(
            id=f"thr_{token_hex(8)}" if id is None else _checked_id(id),
            workspace=caller.workspace,
            user=caller.user,
            title=_checked_title(title),
            connectors=chosen,
        )
        async with self._runtime.locks.of("thread", *_key(thread)):
            if id is not None and await self._runtime.store.threads.find(*_key(thread)) is not None:
                raise Conflict(f"there is a thread {id!r} already", hint=f"dragoman threads show {id}")
            await self._write(thread, "created")
        return await self._view(thread)

    async def get(self, thread: str) -> ThreadView:
        """One thread with the connectors that are active in it. Raises `NotFound`."""
        return await self._view(await self._get(thread))

    async def remove(self, thread: str) -> None:
        """From then on its id is that of a new thread."""
        found = await self._get(thread)
        async with self._runtime.locks.of("thread", *_key(found)):
            await self._runtime.store.threads.remove(*_key(found))
            self._runtime.active.changed(_key(found))
            self._runtime.loaded.forget(_key(found))
        await self._tell(found, "removed")

    async def set(self, thread: str, connectors: Sequence[str] | None) -> ThreadView:
        """These and no others; None goes back to the user's default set."""
        caller = self._caller
        async with self._runtime.locks.of("thread", caller.workspace, caller.user, thread):
            before = await self._get(thread)
            chosen = None if connectors is None else await self._checked(connectors)
            return await self._rewrite(before, chosen)

    async def add(self, thread: str, *connectors: str) -> ThreadView:
        """These too. A thread with the default set keeps what is in it now."""

        async def chosen(before: Thread) -> tuple[str, ...]:
            return await self._checked(connectors, await self._chosen(before))

        return await self._edit(thread, chosen)

    async def disable(self, thread: str, *connectors: str) -> ThreadView:
        """All but these. A thread with the default set keeps the rest of what is in it now."""

        async def chosen(before: Thread) -> tuple[str, ...]:
            active, registry = await self._chosen(before), self._runtime.registry
            # What has been removed since can be taken out by the name that it had.
            gone = {name if name in active else registry.get(name, self._caller).slug for name in connectors}
            return tuple(slug for slug in active if slug not in gone)

        return await self._edit(thread, chosen)

    async def tools(
        self,
        thread: str,
        *,
        tools: Sequence[str] | None = None,
        max_tools: int | None = None,
    ) -> ThreadTools:
        """What the caller can call there, and why the rest of what they see cannot be.

        `tools` and `max_tools` are how one request narrows it further.
        """
        if max_tools is not None and max_tools < 1:
            raise InvalidArguments("max_tools must be 1 or more", hint="leave it out for all")
        found = await self._get(thread)
        inside = replace(self._caller, thread=found.id)
        active = await self._runtime.active.of(inside)
        held = await self._runtime.store.connectors.secret_names(inside.workspace, inside.user)
        wanted = ThreadToolsQuery(
            caller=inside,
            active=None if active is None else frozenset(active),
            held=held,
            names=None if tools is None else tuple(tools),
            most=max_tools,
        )
        return tools_of(wanted, await Connectors(self._runtime, inside).list(), self._runtime.catalog)

    # Parts

    async def _chosen(self, thread: Thread) -> tuple[str, ...]:
        """What is active now, spelt out; what a narrower key of the user does not see is in it too."""
        caller = self._caller
        person = await self._runtime.directory.of(caller)
        active = self._runtime.active.in_force(thread, person, caller)
        if active is None:
            return tuple(connector.slug for connector in self._runtime.active.usable(caller, person))
        seen = self._runtime.active.seen_by_user(caller, person)
        return tuple(slug for slug in active if slug in seen)

    async def _checked(self, connectors: Sequence[str], kept: Sequence[str] = ()) -> tuple[str, ...]:
        """Their slugs after those that are `kept`. `NotFound` for what the caller does not see."""
        caller = self._caller
        person = await self._runtime.directory.of(caller)
        slugs = dict.fromkeys(
            (*kept, *(self._runtime.registry.get(name, caller).slug for name in connectors))
        )
        limit = person.limits.max_connectors_per_thread
        if limit is not None and len(slugs) > limit:
            is_own = person.user.preferences.limits.max_connectors_per_thread == limit
            change = (
                "dragoman preferences set --limit max_connectors_per_thread=…" if is_own else "ask an admin"
            )
            raise LimitReached(
                f"a thread may have at most {limit} connectors, not {len(slugs)}",
                hint=f"leave some out, or have the limit raised: {change}",
            )
        return tuple(slugs)

    async def _edit(self, thread: str, chosen: Callable[[Thread], Awaitable[tuple[str, ...]]]) -> ThreadView:
        """Each change is made on what the one before has left, in whatever process that was."""
        caller = self._caller
        async with self._runtime.locks.of("thread", caller.workspace, caller.user, thread):
            while True:
                before = await self._get(thread)
                with suppress(Outdated):
                    return await self._rewrite(before, await chosen(before))

    async def _rewrite(self, before: Thread, chosen: tuple[str, ...] | None) -> ThreadView:
        after = replace(before, connectors=chosen, updated_at=datetime.now(UTC))
        if chosen != before.connectors:
            await self._write(after, "changed")
        return await self._view(after)

    async def _write(self, thread: Thread, what: str) -> None:
        await self._runtime.store.threads.put(thread)
        self._runtime.active.changed(_key(thread))
        await self._tell(thread, what)

    async def _tell(self, thread: Thread, what: str) -> None:
        connectors = None if thread.connectors is None else [*thread.connectors]
        facts = {"thread": thread.id, "what": what, "connectors": connectors}
        self._runtime.events.publish(
            Event(kind="thread.changed", workspace=thread.workspace, user=thread.user, data=facts)
        )
        await self._runtime.auditor.done(
            self._caller, f"thread.{what}", thread.id, details={"connectors": connectors}
        )

    async def _get(self, thread: str) -> Thread:
        caller = self._caller
        key = (caller.workspace, caller.user, thread)
        found = await self._runtime.store.threads.find(*key) if is_storable(thread) else None
        if found is None:
            raise NotFound(
                f"there is no thread {thread[:80]!r}", hint="dragoman threads list shows those there are"
            )
        return found

    async def _view(self, thread: Thread) -> ThreadView:
        caller = self._caller
        person = await self._runtime.directory.of(caller)
        seen = {connector.slug: connector for connector in self._runtime.registry.list(caller)}
        chosen = thread.connectors
        active = self._runtime.active.in_force(thread, person, caller)
        if active is None:
            active = tuple(one.slug for one in self._runtime.active.usable(caller, person))
        notes = [f"{slug} is disabled" for slug in active if slug in seen and not seen[slug].enabled]
        left_out = [slug for slug in chosen or () if slug in seen and slug not in active]
        limit = person.limits.max_connectors_per_thread
        if left_out:
            notes.append(f"at most {limit} may be active: {', '.join(left_out)} left out")
        return ThreadView(
            thread=replace(thread, connectors=chosen and tuple(slug for slug in chosen if slug in seen)),
            active=tuple(slug for slug in active if slug in seen),
            limit=limit,
            notes=tuple(notes),
        )


def _key(thread: Thread) -> _Key:
    return (thread.workspace, thread.user, thread.id)


def _checked_id(word: str) -> str:
    if is_storable(word):
        return word
    raise InvalidArguments(
        f"the id of a thread has 1 to {LONGEST} printable characters",
        hint="leave it out to get a random one",
    )


def _checked_title(title: str) -> str:
    if len(title) <= LONGEST:
        return title
    raise InvalidArguments(f"a title has at most {LONGEST} characters", hint="make it shorter")
