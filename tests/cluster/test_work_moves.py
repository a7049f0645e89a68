"""Nodes as processes that are killed, frozen and told to stop: their runs end elsewhere, once, in order."""

import asyncio
import signal
import time
from pathlib import Path

import pytest

from cluster.nats_server import NatsServer
from cluster.work_stories import Outcome, open_cluster
from dragoman.runs.dispatch import LEASE
from patience import patient, until

pytestmark = [pytest.mark.anyio, pytest.mark.fault, pytest.mark.slow, pytest.mark.timeout(300)]
KILLS = [(number, moment) for number in range(1, 10, 2) for moment in ("before", "after")]
FREEZES = [(2, "after"), (5, "before"), (8, "after")]
AT_ONCE = 4


async def test_runs_of_nodes_that_were_killed_or_frozen_end_elsewhere(
    tmp_path: Path, postgres_url: str
) -> None:
    room = asyncio.Semaphore(AT_ONCE)
    async with (
        NatsServer(tmp_path / "nats") as nats,
        open_cluster(tmp_path, postgres_url, nats.url) as cluster,
    ):
        survivor = await cluster.start()

        async def story(number: int, moment: str, word: str) -> Outcome:
            async with room:
                return await cluster.story(number, moment, word)

        outcomes = await asyncio.gather(
            *(story(number, moment, "SIGKILL") for number, moment in KILLS),
            *(story(number, moment, "SIGSTOP") for number, moment in FREEZES),
        )
        takeovers = sorted(one.takeover for one in outcomes if one.takeover is not None)
        print(f"{len(takeovers)} taken over after {takeovers[0]:.1f} to {takeovers[-1]:.1f} s")
        assert sum(one.halted for one in outcomes) >= len(KILLS) + len(FREEZES) - 2
        assert takeovers[-1] < patient(5)

        # Told to stop, it hands over at once.
        leaver = await cluster.start(message="do it on leaver")
        left = await cluster.posted(leaver)
        asked = time.time()
        leaver.signal(signal.SIGTERM)
        await until(lambda: bool(leaver.read("drained")), within=10)
        assert float(leaver.read("drained")) - asked < patient(1)
        assert (await cluster.finished(left)).status == "done"

        # Without NATS leases decide; what is posted meanwhile is executed too.
        outcome = await cluster.story(3, "after", before=nats.kill)
        assert outcome.takeover is not None
        assert outcome.takeover < patient(LEASE.total_seconds() + 5)
        nats.wipe()
        await nats.start()
        outcome = await cluster.story(2, "after")
        assert outcome.takeover is not None
        assert outcome.takeover < patient(5)
        assert survivor.state, survivor.read("log")
