"""The list of chats: a page of it at a time, under headings by when somebody last wrote in them."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import groupby

from dragoman.hub import BoundHub
from dragoman.hub.threads import cursor_of
from dragoman.people import Thread, find_zone

_AT_ONCE = 50


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """`groups` are headings with their threads; `waiting` the ids of those that wait for a person."""

    groups: Sequence[tuple[str, Sequence[Thread]]]
    waiting: frozenset[str]
    query: str
    next: str | None

    @property
    def last_heading(self) -> str:
        return self.groups[-1][0] if self.groups else ""


async def page_of(hub: BoundHub, *, after: str | None = None, query: str = "") -> ThreadPage:
    threads = await hub.threads.listed(_AT_ONCE, after=after, query=query)
    preferences = (await hub.preferences.get()).preferences
    zone = find_zone(preferences.time_zone or "") or UTC
    asked = await hub.approvals.list("pending")
    waiting = {one.approval.binding.thread for one in asked if one.approval.binding.user == hub.caller.user}
    waiting |= {one.thread for one in await hub.runs.questions()}
    return ThreadPage(
        groups=grouped(threads, datetime.now(zone).date(), zone),
        waiting=frozenset(one for one in waiting if one),
        query=query,
        next=cursor_of(threads[-1]) if len(threads) == _AT_ONCE else None,
    )


def grouped(threads: Sequence[Thread], today: date, zone: tzinfo) -> list[tuple[str, list[Thread]]]:
    def heading(thread: Thread) -> str:
        return "Pinned" if thread.pinned else _named(thread.updated_at.astimezone(zone).date(), today)

    return [(name, [*these]) for name, these in groupby(threads, heading)]


def _named(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=8):
        return "Previous 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"
