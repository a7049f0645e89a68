"""Threads and the connectors that are active in them. Effective for the next call; nothing restarts.

A thread that nobody wrote down is a new one: it has its user's default set. Of messages it knows that they
can be copied into another thread.
"""

import re
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from itertools import islice
from secrets import token_hex
from typing import TYPE_CHECKING, Any, cast

from dragoman.access.threads import LONGEST, is_storable
from dragoman.calls.audit import entry_of
from dragoman.connector import Connector
from dragoman.errors import Conflict, InvalidArguments, LimitReached, NotFound, Outdated
from dragoman.events import Event
from dragoman.hub.bound import BoundService
from dragoman.hub.bundles import check_clear, chosen_source, visible_sources
from dragoman.hub.connectors import Connectors
from dragoman.hub.thread_tools import ThreadTools, ThreadToolsQuery, tools_of
from dragoman.identity.directory import Person
from dragoman.people import Thread, ThreadPosition, ThreadSort
from dragoman.remembered import Moment
from dragoman.run import COPIED
from dragoman.scope import BUNDLE, Caller
from dragoman.store.records import BegunThread
from dragoman.tool import Tool

if TYPE_CHECKING:
    from dragoman.hub.runtime import Runtime

_Key = tuple[str, str, str]
_CURSOR = re.compile(r"([pu])\.(\d{1,18})\.(\d{1,3})\.(.{1,400})", re.DOTALL)
_LONGEST_UNDO = 24 * 3600.0
_PAGE = 500
_MOST_LOOKED_AT = 50


@dataclass(frozen=True, slots=True, kw_only=True)
class ThreadView:
    """A thread as its user sees it. `active` are the connectors in force now, `notes` are about them."""

    thread: Thread
    active: tuple[str, ...]
    limit: int | None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Starter:
    """A first message that one connector can do something about."""

    text: str
    connector: str


class Threads(BoundService):
    """A thread is its user's alone. Which connectors are active in it is `access/threads.py`'s to say."""

    __slots__ = ()

    async def list(
        self, limit: int = 100, *, after: str | None = None, query: str = "", sort: ThreadSort = "latest"
    ) -> Sequence[ThreadView]:
        """Pinned ones first, then the last changed or written in, or by title.

        `after` is the `cursor` of the last one of the page before. `query` are words of the title or of a
        message.
        """
        threads = await self.listed(limit, after=after, query=query, sort=sort)
        person = await self._runtime.directory.of(self._caller)
        seen = {one.slug: one for one in self._runtime.registry.list(self._caller)} if threads else {}
        return [self._view_of(thread, person, seen) for thread in threads]

    async def listed(
        self,
        limit: int = 100,
        *,
        after: str | None = None,
        query: str = "",
        among: int | None = None,
        sort: ThreadSort = "latest",
    ) -> Sequence[Thread]:
        """The same threads without what is active in them.

        `among`: messages are looked through of no more than so many threads, the newest.
        """
        caller = self._caller
        return await self._runtime.store.threads.list(
            caller.workspace,
            caller.user,
            limit,
            after=None if after is None else _position(after),
            words=" ".join(query.split()),
            among=among,
            sort=sort,
        )

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
        chosen = None if connectors is None else await self._checked(connectors)
        thread = _new(self._caller, title, id, chosen)
        async with self._runtime.locks.of("thread", *_key(thread)):
            if id is not None and await self._find(id) is not None:
                raise Conflict(f"there is a thread {id!r} already", hint=f"dragoman threads show {id}")
            await self._write(thread, "created")
        return await self._view(thread)

    async def get(self, thread: str) -> ThreadView:
        """One thread with the connectors that are active in it. Raises `NotFound`."""
        return await self._view(await self._get(thread))

    async def remove(self, thread: str, *, after: float = 0) -> None:
        """From then on its id is that of a new thread.

        With `after` that is in so many seconds: until then it is in no list, and `restore` brings it back.
        """
        found = await self._get(thread)
        if after > 0:
            gone = datetime.now(UTC) + timedelta(seconds=min(after, _LONGEST_UNDO))
            await self._change(thread, "changed", remove_at=gone)
            return
        async with self._runtime.locks.of("thread", *_key(found)):
            await self._runtime.forget_thread(_key(found))
        await self._tell(found, "removed")

    async def restore(self, thread: str) -> ThreadView:
        """It is not removed after all."""
        return await self._view(await self._change(thread, "changed", remove_at=None))

    async def update(
        self, thread: str, *, title: str | None = None, pinned: bool | None = None
    ) -> ThreadView:
        """What is None stays as it is. Pinned threads are listed first."""
        facts: dict[str, Any] = {}
        if title is not None:
            facts["title"] = _checked_title(" ".join(title.split()))
        if pinned is not None:
            facts["pinned"] = pinned
        return await self._view(await self._change(thread, "changed", **facts))

    async def branch(self, thread: str, *, through: int | None = None) -> ThreadView:
        """A new thread with the same connectors and the messages up to this number; None: all of them.

        What agents did before is in it as what they said: its runs stay with the first thread.
        """
        found = await self._get(thread)
        rows, caller = self._runtime.store.threads, self._caller
        begun = Thread(
            id=f"thr_{token_hex(8)}",
            workspace=caller.workspace,
            user=caller.user,
            title=found.title,
            connectors=found.connectors,
        )
        last = 0
        while through is None or last < through:
            page = await rows.messages(*_key(found), after=last, limit=_PAGE)
            for message in page:
                if through is None or message.number <= through:
                    facts = {**message.details, COPIED: True}
                    await rows.add_message(replace(message, thread=begun.id, run=None, details=facts))
            if len(page) < _PAGE:
                break
            last = page[-1].number
        await self._write(begun, "created")  # last: what was written long ago does not say when it was begun
        return await self._view(begun)

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
            active = await self._chosen(before)
            # What has been removed since can be taken out by the name that it had.
            gone = {
                name if name in active else chosen_source(self._runtime, name, self._caller)
                for name in connectors
            }
            return tuple(slug for slug in active if slug not in gone)

        return await self._edit(thread, chosen)

    async def starters(self, limit: int = 4) -> Sequence[Starter]:
        """What could be asked for first, made from what is connected: one for each connector."""
        caller, runtime = self._caller, self._runtime
        person = await runtime.directory.of(caller)
        found: list[tuple[int, Starter]] = []
        for connector in islice(runtime.active.usable(caller, person), _MOST_LOOKED_AT):
            tools = runtime.catalog.list(caller, connector.id) if connector.kind != "native" else []
            best = min((tool for tool in tools if tool.enabled), key=_as_starter, default=None)
            if best is not None and best.definition.annotations.read_only is not False:
                found.append((_as_starter(best), Starter(_words_of(best), connector.slug)))
        return [one for _, one in sorted(found, key=lambda each: each[0])[:limit]]

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
        return tuple(slug for slug in active if slug in seen or slug.startswith(BUNDLE))

    async def _checked(self, connectors: Sequence[str], kept: Sequence[str] = ()) -> tuple[str, ...]:
        """Their slugs after those that are `kept`. `NotFound` for what the caller does not see."""
        caller = self._caller
        person = await self._runtime.directory.of(caller)
        slugs = dict.fromkeys((*kept, *(chosen_source(self._runtime, name, caller) for name in connectors)))
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
        check_clear(self._runtime, caller, slugs)
        return tuple(slugs)

    async def _change(self, thread: str, what: str, **facts: Any) -> Thread:
        """Each change is made on what the one before has left, in whatever process that was."""
        caller = self._caller
        async with self._runtime.locks.of("thread", caller.workspace, caller.user, thread):
            while True:
                before = await self._get(thread)
                after = replace(before, **facts)
                with suppress(Outdated):
                    if after != before:
                        await self._write(after, what)
                    return after

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
        self._runtime.events.publish(_changed(thread, what))
        await self._runtime.auditor.done(self._caller, *_said_of(thread, what))

    async def _find(self, thread: str) -> Thread | None:
        caller = self._caller
        key = (caller.workspace, caller.user, thread)
        found = await self._runtime.store.threads.find(*key) if is_storable(thread) else None
        if found is not None and found.remove_at is not None and found.remove_at <= datetime.now(UTC):
            await self._runtime.forget_thread(key)
            return None
        return found

    async def _get(self, thread: str) -> Thread:
        found = await self._find(thread)
        if found is None:
            raise NotFound(
                f"there is no thread {thread[:80]!r}", hint="dragoman threads list shows those there are"
            )
        return found

    async def _view(self, thread: Thread) -> ThreadView:
        person = await self._runtime.directory.of(self._caller)
        seen = {connector.slug: connector for connector in self._runtime.registry.list(self._caller)}
        return self._view_of(thread, person, seen)

    def _view_of(self, thread: Thread, person: Person, seen: Mapping[str, Connector]) -> ThreadView:
        caller = self._caller
        chosen = thread.connectors
        active = self._runtime.active.in_force(thread, person, caller)
        if active is None:
            active = tuple(one.slug for one in self._runtime.active.usable(caller, person))
        notes = [f"{slug} is disabled" for slug in active if slug in seen and not seen[slug].enabled]
        known = visible_sources(self._runtime, caller)
        notes += [f"{one} is gone" for one in active if one.startswith(BUNDLE) and one not in known]
        notes += self._runtime.catalog.rivals(caller.within(active))
        left_out = [slug for slug in chosen or () if slug in known and slug not in active]
        limit = person.limits.max_connectors_per_thread
        if left_out:
            notes.append(f"at most {limit} may be active: {', '.join(left_out)} left out")
        return ThreadView(
            thread=replace(thread, connectors=chosen and tuple(slug for slug in chosen if slug in known)),
            active=tuple(slug for slug in active if slug in known),
            limit=limit,
            notes=tuple(notes),
        )


def begun_by(caller: Caller, title: str) -> BegunThread:
    """A new thread with the default set, for who writes it with its first message; then `tell_begun`."""
    thread = _new(caller, title)
    return BegunThread(thread, entry_of(caller, *_said_of(thread, "created")))


def tell_begun(runtime: "Runtime", thread: Thread, since: Moment) -> None:
    """It was written after this moment."""
    runtime.active.begun(thread, since)
    runtime.events.publish(_changed(thread, "created"))


def cursor_of(thread: Thread) -> str:
    """Where the page after this thread begins, however they are sorted."""
    pinned, updated_at, name, title = thread.position
    moment = int(updated_at.timestamp() * 1_000_000)
    return f"{'p' if pinned else 'u'}.{moment}.{len(name)}.{name}{title}"


def _position(cursor: str) -> ThreadPosition:
    found = _CURSOR.fullmatch(cursor)
    if found is None:
        raise InvalidArguments("after is the cursor of a page", hint="begin again without it")
    moment = datetime.fromtimestamp(0, UTC) + timedelta(microseconds=int(found[2]))
    length = int(found[3])
    return ThreadPosition(found[1] == "p", moment, found[4][:length], found[4][length:])


def _as_starter(tool: Tool) -> int:
    """The smaller, the better to begin with: what only reads and needs to be told nothing."""
    required = tool.definition.input_schema.get("required")
    return (tool.definition.annotations.read_only is not True) * 100 + (
        len(cast("Sequence[Any]", required)) if isinstance(required, list) else 0
    )


def _words_of(tool: Tool) -> str:
    name = re.sub(r"[_\-.]+", " ", tool.original_name).strip()
    words = " ".join((tool.definition.title or name).split())[:80]
    return words[:1].upper() + words[1:]


def _new(
    caller: Caller, title: str, id: str | None = None, connectors: tuple[str, ...] | None = None
) -> Thread:
    return Thread(
        id=f"thr_{token_hex(8)}" if id is None else _checked_id(id),
        workspace=caller.workspace,
        user=caller.user,
        title=_checked_title(title),
        connectors=connectors,
    )


def _changed(thread: Thread, what: str) -> Event:
    facts = {"thread": thread.id, "what": what, **_connectors_of(thread)}
    return Event(kind="thread.changed", workspace=thread.workspace, user=thread.user, data=facts)


def _connectors_of(thread: Thread) -> dict[str, Any]:
    return {"connectors": None if thread.connectors is None else [*thread.connectors]}


def _said_of(thread: Thread, what: str) -> tuple[str, str, str, dict[str, Any]]:
    """For the audit trail: action, subject, outcome and details."""
    return f"thread.{what}", thread.id, "ok", _connectors_of(thread)


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
