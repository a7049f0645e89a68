"""How long a caller waits after `kill -9` of its server: from the kill to the next successful call.

One caller calls a read-only tool without a pause. The server takes a second to start.
"""

import asyncio
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from dataclasses import dataclass, field

import lab
import peers

START_DELAY = "1"
AIM = 3.0
STEADY = 0.2
"""Seconds of undisturbed calls before the next kill."""


@dataclass(slots=True)
class Watch:
    """One caller of one connector, and what it saw."""

    hub: peers.Hub
    slug: str
    kills: int
    kill: Callable[[], Awaitable[None]]
    recoveries: list[float] = field(default_factory=list[float])
    failures: Counter[str] = field(default_factory=Counter[str])
    calls: int = 0
    _killed_at: float | None = None
    _recovered: asyncio.Event = field(default_factory=asyncio.Event)

    async def run(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            caller = tasks.create_task(self._call_for_ever())
            for _ in range(self.kills):
                await asyncio.sleep(STEADY * random.uniform(0.5, 1.5))
                self._recovered.clear()
                self._killed_at = time.perf_counter()
                await self.kill()
                async with asyncio.timeout(lab.PATIENCE):
                    await self._recovered.wait()
            caller.cancel()

    async def _call_for_ever(self) -> None:
        while True:
            killed = self._killed_at
            output = await self.hub.call(f"mcp_{self.slug}_echo", {"text": peers.TEXT})
            self.calls += 1
            if output.error is not None:
                self.failures[output.error.code] += 1
            # Only a call that began after the kill, or was repeated because of it, tells of a recovery.
            elif self._killed_at is not None and (killed == self._killed_at or output.metadata.attempts > 1):
                self.recoveries.append(time.perf_counter() - self._killed_at)
                self._killed_at = None
                self._recovered.set()


async def stdio_watch(hub: peers.Hub, kills: int) -> Watch:
    await peers.add(hub, "stdio", **peers.stdio(peers.RAW_STDIO, "--start-delay", START_DELAY))

    async def kill() -> None:
        pid = (await hub.connectors.get("stdio")).status.pid
        assert pid is not None
        os.kill(pid, signal.SIGKILL)

    return Watch(hub, "stdio", kills, kill)


async def http_watch(hub: peers.Hub, stack: AsyncExitStack, era: str, kills: int) -> Watch:
    """The server's keeper starts it again at once, as a supervisor would."""
    server = stack.enter_context(peers.open_http(peers.RAW_HTTP, "--era", era, "--start-delay", START_DELAY))
    slug = f"http-{era}"
    await peers.add(hub, slug, url=server.url)

    async def kill() -> None:
        server.kill()
        await asyncio.to_thread(server.start)

    return Watch(hub, slug, kills, kill)


async def measure(kills: int) -> lab.Report:
    report = lab.Report("recovery")
    rows: list[list[object]] = []
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(peers.open_hub())
        watches = [await stdio_watch(hub, kills)]
        watches += [await http_watch(hub, stack, era, max(kills // 2, 3)) for era in ("2026", "2025")]
        for watch in watches:  # one after another: each has the machine for itself
            await watch.run()
            found = watch.recoveries
            p50, p95, p99 = (lab.percentile(found, percent) for percent in (50, 95, 99))
            failed = ", ".join(f"{count} {code}" for code, count in watch.failures.items()) or "0"
            rows.append([watch.slug, len(found), p50, p95, p99, max(found), watch.calls, failed])
            report.verdict(
                f"{watch.slug}: p99 under {AIM:g} s for a server that starts in {START_DELAY} s",
                f"{p99:.2f} s",
                met=p99 < AIM,
            )
    report.table(
        "Seconds from kill -9 to the next successful call",
        ["server", "kills", "p50", "p95", "p99", "max", "calls", "failed calls"],
        rows,
    )
    return report


def main() -> None:
    given = lab.options(__doc__ or "", kills=(30, "kills of the stdio server; half as many over HTTP"))
    asyncio.run(measure(4 if given.quick else given.kills)).show(as_json=given.json)


if __name__ == "__main__":
    main()
