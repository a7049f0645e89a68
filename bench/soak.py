"""Many calls while servers are killed again and again: memory, descriptors, tasks, children must not grow.

Read-only calls, so each must succeed; `failed` counts those that did not.
"""

import asyncio
import gc
import os
import signal
import statistics
import time
from collections import Counter
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import psutil

import lab
import peers

CALLERS = 8
SAMPLES = 80
# Growth of the least from the second to the last quarter that counts as none. The first quarter warms up.
ROOM = {"rss_mb": 8.0, "descriptors": 3.0, "tasks": 6.0, "children": 2.0}
# The same between two moments of rest, before and after, with every connection closed.
REST = {"rss_mb": 12.0, "descriptors": 3.0, "tasks": 0.0, "children": 0.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Sample:
    calls: int
    rss_mb: float
    descriptors: int
    tasks: int
    children: int


@dataclass(slots=True)
class Soak:
    """The state of one run, shared by callers, the killer and the sampler."""

    hub: peers.Hub
    slugs: list[str]
    killers: list[Callable[[], Awaitable[None]]]
    total: int
    kills: int
    begun: int = 0
    done: int = 0
    killed: int = 0
    failures: Counter[str] = field(default_factory=Counter[str])
    samples: list[Sample] = field(default_factory=list[Sample])

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(CALLERS):
                tasks.create_task(self._call())
            killer = tasks.create_task(self._kill())
            sampler = tasks.create_task(self._sample())
            await asyncio.gather(killer, sampler)

    async def _call(self) -> None:
        while self.begun < self.total:
            number = self.begun = self.begun + 1
            if self._is_ahead(number):
                await asyncio.sleep(0.01)  # the kills must spread over all calls
            output = await self.hub.call(
                f"mcp_{self.slugs[number % len(self.slugs)]}_echo", {"text": f"number {number}"}
            )
            self.done += 1
            if output.error is not None:
                self.failures[output.error.code] += 1
            elif output.result != f"number {number}":
                self.failures["wrong_answer"] += 1

    def _is_ahead(self, number: int) -> bool:
        return number / self.total > (self.killed + 1) / max(self.kills, 1)

    async def _kill(self) -> None:
        while self.killed < self.kills:
            while self.done * self.kills < self.killed * self.total:
                await asyncio.sleep(0.005)
            await self.killers[self.killed % len(self.killers)]()
            self.killed += 1

    async def _sample(self) -> None:
        process, step = psutil.Process(), self.total / SAMPLES
        while self.done < self.total:
            if self.done >= len(self.samples) * step:
                self.samples.append(_sampled(process, self.done))
            await asyncio.sleep(0.01)


def _sampled(process: psutil.Process, calls: int) -> Sample:
    gc.collect()
    return Sample(
        calls=calls,
        rss_mb=process.memory_info().rss / 2**20,
        descriptors=_descriptors(),
        tasks=len(asyncio.all_tasks()),
        children=len(process.children(recursive=True)),
    )


def _descriptors() -> int:
    """All but those of the store's files: its pool of five connections fills when it pleases."""
    count = 0
    for entry in os.listdir("/proc/self/fd"):
        try:
            count += "dragoman.db" not in os.readlink(f"/proc/self/fd/{entry}")
        except OSError:
            continue  # the one that lists
    return count


def stdio_killer(hub: peers.Hub, slug: str) -> Callable[[], Awaitable[None]]:
    async def kill() -> None:
        pid = (await hub.connectors.get(slug)).status.pid
        for _ in range(500):
            if pid is not None:
                break
            await asyncio.sleep(0.01)  # it is still starting after the last kill
            pid = (await hub.connectors.get(slug)).status.pid
        assert pid is not None, f"{slug} did not come back"
        os.kill(pid, signal.SIGKILL)

    return kill


def http_killer(server: peers.HttpServer) -> Callable[[], Awaitable[None]]:
    async def kill() -> None:
        server.kill()
        await asyncio.to_thread(server.start)

    return kill


async def soak(calls: int, kills: int) -> tuple[Soak, Sample, Sample]:
    """The run, and two samples of the hub at rest: once it is warm, and at the end."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(peers.open_hub())
        killers: dict[str, Callable[[], Awaitable[None]]] = {}
        patient = {"retry": {"tries": 6, "delay": 0.1, "factor": 2, "cap": 2}}
        for slug in ("stdio-a", "stdio-b", "stdio-c"):
            await peers.add(hub, slug, **peers.stdio(peers.RAW_STDIO), **patient)
            killers[slug] = stdio_killer(hub, slug)
        for era in ("2026", "2025"):
            server = stack.enter_context(peers.open_http(peers.RAW_HTTP, "--era", era))
            await peers.add(hub, f"http-{era}", url=server.url, **patient)
            killers[f"http-{era}"] = http_killer(server)
        run = Soak(hub, [*killers], [*killers.values()], calls, kills)
        warm = Soak(hub, run.slugs, run.killers, total=200, kills=len(killers))
        await warm.run()
        before = await _rested(hub, run)
        await run.run()
        after = await _rested(hub, run)
    return run, before, after


async def _rested(hub: peers.Hub, run: Soak) -> Sample:
    await hub.calls(1)
    for slug in run.slugs:
        await hub.connectors.disconnect(slug)
    for slug, kill in zip(run.slugs, run.killers, strict=True):
        if slug.startswith("http"):
            await kill()  # ends the sockets that wait to be used again
    # The hub's own writer has a task more while it waits for a batch: the quietest of ten looks counts.
    looks: list[Sample] = []
    for _ in range(10):
        await asyncio.sleep(0.25)
        looks.append(_sampled(psutil.Process(), run.done))
    return min(looks, key=lambda one: (one.tasks, one.children, one.descriptors))


def growth(samples: Sequence[Sample], name: str) -> tuple[float, float, float]:
    """The least of the second and of the last quarter, and the slope per 1,000 calls after the first.

    What leaks is in the least too; the rest of a sample is what calls and restarts hold at that moment.
    """
    size = len(samples) // 4
    values = [float(getattr(one, name)) for one in samples]
    slope = statistics.linear_regression([one.calls for one in samples[size:]], values[size:]).slope
    return min(values[size : 2 * size]), min(values[-size:]), slope * 1000


async def measure(calls: int, kills: int) -> lab.Report:
    report = lab.Report("soak")
    started = time.perf_counter()
    run, before, after = await soak(calls, kills)
    seconds = time.perf_counter() - started
    rows: list[list[object]] = []
    for name, room in ROOM.items():
        second, last, slope = growth(run.samples, name)
        left = getattr(after, name) - getattr(before, name)
        rows.append([name, getattr(before, name), second, last, slope, getattr(after, name)])
        report.verdict(
            f"{name} flat over {calls:,} calls and {kills} kills",
            f"{last - second:+.1f} from the second to the last quarter, {left:+.1f} at rest",
            met=last - second <= room and left <= REST[name],
        )
    failed = sum(run.failures.values())
    report.verdict("every read-only call succeeds", f"{failed} failed {dict(run.failures)}", met=failed == 0)
    report.table(
        f"{run.done:,} calls, {run.killed} kills, {CALLERS} callers, {seconds:.0f} s",
        ["", "at rest before", "second quarter", "last quarter", "slope per 1,000 calls", "at rest after"],
        rows,
    )
    return report


def main() -> None:
    given = lab.options(__doc__ or "", calls=(20_000, "calls"), kills=(200, "kills"))
    calls, kills = (2000, 20) if given.quick else (given.calls, given.kills)
    asyncio.run(measure(calls, kills)).show(as_json=given.json)


if __name__ == "__main__":
    main()
