"""The list of chats: a page of it at a time, by title or under headings by when somebody wrote in them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta, tzinfo
from itertools import groupby

from starlette.requests import Request
from starlette.responses import Response

from dragoman.console.pages import hub_of
from dragoman.hub.threads import cursor_of
from dragoman.people import Thread, ThreadSort, find_zone

_AT_ONCE = 50
_SORT_COOKIE = "dragoman_chats"
_A_YEAR = 365 * 24 * 3600
SORTS: Mapping[ThreadSort, str] = {"latest": "Latest first", "title": "By title"}


@dataclass(frozen=True, slots=True)
class ThreadPage:
    """`groups` are headings with their threads; `waiting` the ids of those that wait for a person."""

    groups: Sequence[tuple[str, Sequence[Thread]]]
    waiting: frozenset[str]
    query: str
    sort: ThreadSort
    next: str | None

    @property
    def last_heading(self) -> str:
        return self.groups[-1][0] if self.groups else ""


async def page_of(request: Request) -> ThreadPage:
    """What its address asks for. How they are sorted is kept by the browser that chose it (`keep_sort`)."""
    hub, asked = hub_of(request), request.query_params
    query, sort = asked.get("q", "")[:200], sort_of(request)
    threads = await hub.threads.listed(_AT_ONCE, after=asked.get("after"), query=query, sort=sort)
    preferences = (await hub.preferences.get()).preferences
    zone = find_zone(preferences.time_zone or "") or UTC
    asked = await hub.approvals.list("pending")
    waiting = {one.approval.binding.thread for one in asked if one.approval.binding.user == hub.caller.user}
    waiting |= {one.thread for one in await hub.runs.questions()}
    return ThreadPage(
        groups=grouped(threads, datetime.now(zone).date() if sort == "latest" else None, zone),
        waiting=frozenset(one for one in waiting if one),
        query=query,
        sort=sort,
        next=cursor_of(threads[-1]) if len(threads) == _AT_ONCE else None,
    )


def sort_of(request: Request) -> ThreadSort:
    """What is asked for now, or was chosen last in this browser."""
    word = request.query_params.get("sort") or request.cookies.get(_SORT_COOKIE)
    return "title" if word == "title" else "latest"


def keep_sort(request: Request, response: Response) -> None:
    if "sort" in request.query_params:
        response.set_cookie(
            _SORT_COOKIE, sort_of(request), _A_YEAR, path="/chat", httponly=True, samesite="strict"
        )


def grouped(threads: Sequence[Thread], today: date | None, zone: tzinfo) -> list[tuple[str, list[Thread]]]:
    """By their days as seen from today; without it they are not sorted by day."""

    def heading(thread: Thread) -> str:
        if thread.pinned:
            return "Pinned"
        return _named(thread.updated_at.astimezone(zone).date(), today) if today else "All chats"

    return [(name, [*these]) for name, these in groupby(threads, heading)]


def _named(day: date, today: date) -> str:
    if day >= today:
        return "Today"
    if day == today - timedelta(days=1):
        return "Yesterday"
    if day > today - timedelta(days=8):
        return "Previous 7 days"
    return f"{day:%B}" if day.year == today.year else f"{day:%B %Y}"
