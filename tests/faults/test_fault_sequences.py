"""Random sequences of what people and servers do: the invariants hold after each of them.

One owner per connection, nothing left behind, no answer lost, doubled or given to somebody else. One of the
two servers is in a box, where this machine can make one.
"""

import asyncio
import os
import signal
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from dragoman import Hub
from dragoman.connections.boxes import machine
from dragoman.errors import Conflict, NotFound, Unreachable
from patience import deadline, patient
from servers.hubs import carrying, children, listed, open_hub, quick, until
from servers.processes import journal, stdio

pytestmark = [pytest.mark.fault]
SLUGS = ("a", "b")
STEPS = (
    "call",
    "call",
    "send",
    "send",
    "kill",
    "hang",
    "connect",
    "disconnect",
    "update",
    "remove",
    "add",
    "crowd",
)


class World:
    """A hub with two connectors, what was asked of it, and what must be true of it."""

    def __init__(self, hub: Hub, folder: Path, canary: str, era: str) -> None:
        self._hub = hub
        self._journal = folder / "seen" / "journal"
        self._journal.parent.mkdir()
        self._canary = canary
        self._era = era
        self._number = 0
        self._outcomes: dict[str, str] = {}

    async def add(self, slug: str) -> None:
        words = stdio("--era", self._era, "--journal", str(self._journal))
        if slug == "b" and machine.bubblewrap().missing is None:
            words |= {"sandbox": "bubblewrap", "mounts": [f"{self._journal.parent}:rw"]}
        configuration: dict[str, Any] = quick(
            request_timeout=patient(0.8), retry={"tries": 2, "delay": 0.02}, env={"TEST_CANARY": self._canary}
        )
        await self._tolerated(self._hub.connectors.add(slug, **words, **configuration))

    async def remove(self, slug: str) -> None:
        await self._tolerated(self._hub.connectors.remove(slug))

    async def connect(self, slug: str) -> None:
        await self._tolerated(self._hub.connectors.connect(slug))

    async def disconnect(self, slug: str) -> None:
        await self._tolerated(self._hub.connectors.disconnect(slug))

    async def update(self, slug: str) -> None:
        self._number += 1
        env = {"TEST_CANARY": self._canary, "TURN": str(self._number)}
        await self._tolerated(self._hub.connectors.update(slug, env=env))

    async def kill(self, slug: str, number: signal.Signals = signal.SIGKILL) -> None:
        """Of a boxed server now the one that waits for it, now itself; only itself can hang."""
        self._number += 1
        for view in await listed(self._hub):
            if view.connector.slug == slug and (pid := view.status.pid):
                with suppress(ProcessLookupError, psutil.NoSuchProcess):
                    below = psutil.Process(pid).children(recursive=True)
                    is_within = below and (number == signal.SIGSTOP or self._number % 2)
                    os.kill(below[-1].pid if is_within else pid, number)

    async def hang(self, slug: str) -> None:
        await self.kill(slug, signal.SIGSTOP)

    async def call(self, slug: str) -> None:
        self._number += 1
        word = f"word {self._number}"
        output = await self._hub.call(f"mcp_{slug}_echo", {"text": word})
        if output.ok:
            assert output.result == word, "an answer went to somebody else"
        else:
            assert output.error is not None
            assert output.error.code in ("not_found", "timeout", "unreachable", "connect_timeout"), (
                output.error
            )

    async def send(self, slug: str) -> None:
        self._number += 1
        word = f"{slug} {self._number}"
        output = await self._hub.call(f"mcp_{slug}_send", {"text": word})
        self._outcomes[word] = "ok" if output.ok else output.error.code  # type: ignore[union-attr]

    async def crowd(self, slug: str) -> None:
        """Callers of both connectors while one of the servers dies."""
        async with asyncio.TaskGroup() as tasks:
            for turn in range(6):
                tasks.create_task(self.call(slug))
                tasks.create_task(self.send(SLUGS[turn % 2]))
            tasks.create_task(self.kill(slug))

    async def _tolerated(self, act: Any) -> None:
        """Misuse, such as a connector that is gone, there already or on its way out, says so."""
        with suppress(NotFound, Conflict, Unreachable):
            await act

    def check(self) -> None:
        executed = journal(self._journal)
        assert len(executed) == len(set(executed)), "a call with effects was executed twice"
        for word, outcome in self._outcomes.items():
            assert outcome in ("ok", "uncertain", "not_found", "unreachable", "connect_timeout"), outcome
            if outcome == "ok":
                assert word in executed, "an answer was made up"
            elif outcome != "uncertain":
                assert word not in executed, f"{outcome} was said of what happened"

    async def settle(self) -> None:
        """At most one process per connector, once everything has come to rest."""
        views = await listed(self._hub)
        # A frozen server that is being asked for its health is given 5 s, and 2 more to end.
        await until(lambda: len(carrying(self._canary)) <= len(views), within=25)


@settings(
    max_examples=12,
    deadline=None,
    database=None,
    phases=[Phase.generate],
    suppress_health_check=[HealthCheck.too_slow],
)
@given(
    era=st.sampled_from(["2025", "2026"]),
    steps=st.lists(
        st.tuples(st.sampled_from(STEPS), st.sampled_from(SLUGS), st.booleans()), min_size=8, max_size=16
    ),
)
@pytest.mark.timeout(110)
def test_any_sequence_of_events_keeps_the_invariants(era: str, steps: list[tuple[str, str, bool]]) -> None:
    async def play(folder: Path) -> None:
        canary, before = f"canary-{time.time_ns()}", children()
        (folder / "home").mkdir()
        async with open_hub(folder / "home") as hub:
            world = World(hub, folder, canary, era)
            async with asyncio.TaskGroup() as tasks:
                await asyncio.gather(*(world.add(slug) for slug in SLUGS))
                for step, slug, is_awaited in steps:
                    act = getattr(world, step)(slug)
                    if is_awaited:
                        await act
                    else:
                        tasks.create_task(act)
            world.check()
            await world.settle()
            async with deadline(5):
                for view in await listed(hub):
                    await hub.connectors.disconnect(view.connector.slug)
            await until(lambda: not carrying(canary))
        # The kernel takes a box apart after its last process is gone.
        await until(lambda: children() == before)

    with tempfile.TemporaryDirectory() as folder:
        asyncio.run(play(Path(folder)))
