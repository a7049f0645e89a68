"""What happened, told to whoever listens. In memory; the journal of runs is another matter.

A slow listener loses its oldest events and is told how many; nobody who publishes ever waits.
"""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any, Literal

from dragoman.scope import APP

EventKind = Literal[
    "connector.registered",
    "connector.updated",
    "connector.removed",
    "connector.state",
    "tools.changed",
    "tools.loaded",
    "tools.unloaded",
    "call.started",
    "call.finished",
    "approval.requested",
    "approval.answered",
    "thread.changed",
    "preferences.changed",
    "credential.changed",
    "agent.changed",
    "recipe.changed",
    "bundle.changed",
    "rollout.changed",
    "run.changed",
    "message.added",
    "question.asked",
    "question.answered",
    "events.lost",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Event:
    """One thing that happened in one workspace, or in the app. `user` is empty when it concerns everybody."""

    kind: EventKind
    workspace: str
    user: str = ""
    connector: str | None = None
    data: Mapping[str, Any] = field(default_factory=dict[str, Any])
    time: str = field(default_factory=lambda: datetime.now(UTC).isoformat(timespec="milliseconds"))


class Listener:
    """One reader of events, with a limited backlog of its own."""

    def __init__(self, workspace: str, user: str, limit: int) -> None:
        self._workspace = workspace
        self._user = user
        self._backlog: deque[Event] = deque()
        self._limit = limit
        self._lost = 0
        self._wake = asyncio.Event()
        self._closed = False

    def offer(self, event: Event) -> None:
        is_ours = event.workspace in (self._workspace, APP)
        if not is_ours or (event.user and event.user != self._user):
            return
        if len(self._backlog) >= self._limit:
            self._backlog.popleft()
            self._lost += 1
        self._backlog.append(event)
        self._wake.set()

    def miss(self) -> None:
        """Something happened that nobody can tell any more."""
        self._lost += 1
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[Event]:
        while True:
            if self._lost:
                lost, self._lost = self._lost, 0
                yield Event(kind="events.lost", workspace=self._workspace, data={"count": lost})
            while self._backlog:
                yield self._backlog.popleft()
            if self._closed:
                return
            self._wake.clear()
            await self._wake.wait()


class Events:
    """The one place where events are published. Publishing without listeners costs one comparison."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self._closed = False

    @property
    def has_listeners(self) -> bool:
        return bool(self._listeners)

    def publish(self, event: Event) -> None:
        for listener in self._listeners:
            listener.offer(event)

    def tell_missed(self) -> None:
        """Every listener is told that events were lost: they look for themselves."""
        for listener in self._listeners:
            listener.miss()

    @contextmanager
    def listen(self, workspace: str, user: str, limit: int = 10_000):
        """A listener for what `user` of `workspace` may see, from now on until the block ends."""
        listener = Listener(workspace, user, limit)
        self._listeners.append(listener)
        if self._closed:
            listener.close()
        try:
            yield listener
        finally:
            self._listeners.remove(listener)

    def close(self) -> None:
        """Ends every listener's loop once it has read what is left."""
        self._closed = True
        for listener in self._listeners:
            listener.close()
