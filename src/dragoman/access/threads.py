"""Which connectors are active where a caller speaks: the thread's own set, else the user's default one.

A thread that nobody wrote down is a new one. Never are more active than the user's
`max_connectors_per_thread`: of an explicit set the first as they were given, of all visible ones the first by
name, those that are disabled left out. Effective for the next call.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace

from dragoman.catalog import Catalog
from dragoman.connector import Connector
from dragoman.errors import Denied
from dragoman.identity.directory import Directory, Person
from dragoman.people import Thread
from dragoman.remembered import Moment, Remembered
from dragoman.scope import BUNDLE, Caller
from dragoman.store.protocols import ThreadStore
from dragoman.tool import Tool

FRESH = 2.0
LONGEST = 200
Key = tuple[str, str, str]


class ActiveConnectors:
    """`visible` lists the connectors that a caller sees. Threads are remembered for a moment."""

    def __init__(
        self,
        rows: ThreadStore,
        directory: Directory,
        visible: Callable[[Caller], Sequence[Connector]],
        catalog: Catalog,
    ) -> None:
        self._rows = rows
        self._directory = directory
        self._visible = visible
        self._catalog = catalog
        self._kept = Remembered(self._read, FRESH)

    async def check(self, tool: Tool, connector: Connector, caller: Caller) -> None:
        """What is not active in the thread is not called there.

        Such a connector is the caller's own choice and no secret, hence `Denied` and not `NotFound`.
        """
        active = await self.of(caller)
        by = connector.slug if tool.bundled is None else tool.bundled.bundle
        if active is not None and by not in active and connector.slug not in active:
            raise Denied(
                f"the connector {connector.slug!r} is not active in this thread",
                hint=f"dragoman threads add {caller.thread} {connector.slug}",
            )

    async def of(self, caller: Caller) -> tuple[str, ...] | None:
        """Their slugs. None: nothing restricts the thread, or the caller speaks in none."""
        if caller.thread is None:
            return None
        person = await self._directory.of(caller)
        return self.in_force(await self._find(caller.thread, caller), person, caller)

    async def narrowed(self, caller: Caller) -> Caller:
        """The caller with no other connectors than those active in their thread: for lists and search."""
        active = await self.of(caller)
        return caller if active is None else caller.within(active)

    async def with_bundles(self, caller: Caller) -> Caller:
        """The same where a bundle is among them; else the caller, whom `check` tells what is not active."""
        active = await self.of(caller)
        has_bundle = active is not None and any(one.startswith(BUNDLE) for one in active)
        return caller.within(active) if active is not None and has_bundle else caller

    def in_force(self, thread: Thread | None, person: Person, caller: Caller) -> tuple[str, ...] | None:
        limit = person.limits.max_connectors_per_thread
        chosen = None if thread is None else thread.connectors
        if chosen is None:
            wishes = person.user.preferences
            chosen = wishes.connectors if wishes.auto_load else ()
        if chosen is None:
            if limit is None:
                return None
            chosen = tuple(connector.slug for connector in self.usable(caller, person))
        elif limit is not None and len(chosen) > limit:
            seen = self.seen_by_user(caller, person)
            chosen = tuple(slug for slug in chosen if slug in seen or slug.startswith(BUNDLE))
        return chosen if limit is None else chosen[:limit]

    def usable(self, caller: Caller, person: Person) -> Iterable[Connector]:
        """All that the user sees and that are enabled; functions of this process if there are any."""
        user = _as_user(caller, person)
        for connector in self._visible(user):
            is_empty = connector.kind == "native" and not self._catalog.list(user, connector.id)
            if connector.enabled and not is_empty:
                yield connector

    def seen_by_user(self, caller: Caller, person: Person) -> set[str]:
        """Slugs of all that the user sees, whichever of their keys asks."""
        return {connector.slug for connector in self._visible(_as_user(caller, person))}

    def moment(self) -> Moment:
        """Taken before a thread is begun."""
        return self._kept.moment()

    def begun(self, thread: Thread, since: Moment) -> None:
        """A thread that was written for the first time: the next question asks nobody."""
        self._kept.keep((thread.workspace, thread.user, thread.id), thread, since)

    def changed(self, key: Key) -> None:
        """A thread was written or removed: the next question asks the store."""
        self._kept.forget(key)

    def forget_all(self) -> None:
        self._kept.forget_all()

    async def _find(self, thread: str, caller: Caller) -> Thread | None:
        return await self._kept.get((caller.workspace, caller.user, thread))

    async def _read(self, key: Key) -> Thread | None:
        return await self._rows.find(*key) if is_storable(key[2]) else None


def is_storable(word: str) -> bool:
    """No control character and no half of a surrogate pair: not every database takes those."""
    return 0 < len(word) <= LONGEST and word.isprintable()


def _as_user(caller: Caller, person: Person) -> Caller:
    """The caller with all that their user sees: a set belongs to the user, not to one of their keys."""
    if not caller.grants:
        return caller
    own = () if person.user.role == "admin" else (person.user.capabilities,)
    return replace(caller, grants=own)
