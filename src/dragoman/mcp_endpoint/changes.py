"""News of the tools of one client: nothing but what changes the list that this client reads."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import cast

from dragoman.errors import NotFound
from dragoman.events import Event, EventKind
from dragoman.hub import Hub
from dragoman.mcp_endpoint.answers import Answers
from dragoman.mcp_endpoint.asking import Asker

TOLD_BY: frozenset[EventKind] = frozenset(
    {
        "tools.changed",
        "tools.loaded",
        "tools.unloaded",
        "connector.registered",
        "connector.updated",
        "connector.removed",
        "thread.changed",
        "preferences.changed",
        "credential.changed",
        "events.lost",
    }
)
_GATHER = 0.05
"""Seconds in which news are gathered: a server that is added brings several."""


async def list_changes(
    hub: Hub, answers: Answers, asker: Asker, known: bytes | None = None
) -> AsyncGenerator[bytes]:
    """The digest of each new list. `known` is what the client read last; None: what there is now."""
    async with aclosing(cast("AsyncGenerator[Event]", hub.events(caller=asker.caller))) as events:
        upcoming = asyncio.ensure_future(anext(events))
        try:
            await asyncio.sleep(0)  # from here on the listener hears everything
            before = await list_digest(answers, asker) if known is None else known
            while True:
                now = await list_digest(answers, asker)
                if now != before:
                    before = now
                    yield now
                while (await upcoming).kind not in TOLD_BY:
                    upcoming = asyncio.ensure_future(anext(events))
                upcoming = asyncio.ensure_future(anext(events))
                await asyncio.sleep(_GATHER)
        except StopAsyncIteration:
            return
        finally:
            upcoming.cancel()
            await asyncio.wait([upcoming])


async def list_digest(answers: Answers, asker: Asker) -> bytes:
    """What tells one list of this client from another."""
    try:
        return (await answers.shown(asker)).digest
    except NotFound:
        return b""  # its connector was removed: an empty list, until it comes back
