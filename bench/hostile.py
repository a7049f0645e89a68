"""What a hostile server costs its neighbour: calls of a good server beside each kind of bad one.

The measure is the same machine with an unrelated process that burns a core: a bad server is allowed no more
than that. Both take turns. Somebody calls the bad server's tool all the time, and it reconnects by itself.
"""

import asyncio
import statistics
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager, suppress

import lab
import peers

HOSTILE = peers.SERVERS.parent / "hostile" / "hostile_server.py"
KINDS = (
    *("endless-comments", "endless-events", "slow-drip", "long-line"),
    *("gzip-bomb", "deflate-bomb", "brotli-bomb", "header-flood", "endless-continue"),
    *("many-tools", "notification-storm", "request-storm", "deep-nesting"),
    *("wrong-ids", "late-answers", "reconnect-storm"),
)
TIMES, MORE = 2.0, 10.0
ROUND = 2.0
"""Seconds of calls in one turn."""


@contextmanager
def burning() -> Generator[None]:
    """A process that has nothing to do with us and wants a core."""
    process = subprocess.Popen([sys.executable, "-S", "-E", "-c", "while True: pass"])
    try:
        yield
    finally:
        process.kill()
        process.wait()


@asynccontextmanager
async def beside(hub: peers.Hub, kind: str) -> AsyncGenerator[None]:
    """A bad server that is connected, and a caller of it that never rests."""
    with peers.open_http(HOSTILE, kind) as server:
        await hub.connectors.add("bad", url=server.url, request_timeout=1.0)

        async def call_for_ever() -> None:
            while True:
                await hub.call("mcp_bad_echo", {"text": "x"})
                await asyncio.sleep(0.01)

        caller = asyncio.create_task(call_for_ever())
        try:
            yield
        finally:
            caller.cancel()
            with suppress(asyncio.CancelledError):
                await caller
            await hub.connectors.remove("bad")


async def neighbour(hub: peers.Hub, seconds: float) -> list[float]:
    """Milliseconds of each call of the good server, one after another."""
    taken: list[float] = []
    end = time.perf_counter() + seconds
    while (started := time.perf_counter()) < end:
        await peers.echo(hub, "good")
        taken.append((time.perf_counter() - started) * 1000)
        await asyncio.sleep(0.002)
    return taken


async def measure(rounds: int, seconds: float) -> lab.Report:
    report = lab.Report("hostile")
    rows: list[list[object]] = []
    async with peers.open_hub() as hub:
        await peers.add(hub, "good", **peers.stdio(peers.RAW_STDIO))
        await neighbour(hub, seconds)  # warm
        alone = statistics.median(await neighbour(hub, seconds))
        for kind in KINDS:
            burnt: list[float] = []
            flooded: list[float] = []
            for _ in range(rounds):
                with burning():
                    burnt += await neighbour(hub, seconds)
                async with beside(hub, kind):
                    flooded += await neighbour(hub, seconds)
            base, found = statistics.median(burnt), statistics.median(flooded)
            rows.append([kind, base, found, found / base, lab.percentile(flooded, 95), max(flooded)])
            report.verdict(
                f"{kind}: the neighbour's p50 within {TIMES:g} × and {MORE:g} ms of a burning core",
                f"{found:.2f} ms against {base:.2f} ms",
                met=found <= base * TIMES and found <= base + MORE,
            )
    report.table(
        "A neighbour's call in ms, beside a burning core and beside each hostile server",
        ["server", "p50, burning core", "p50, hostile server", "ratio", "p95", "longest"],
        rows,
    )
    report.notes.append(f"With neither: p50 {alone:.2f} ms.")
    return report


def main() -> None:
    given = lab.options(__doc__ or "", rounds=(2, "turns of each kind"))
    rounds, seconds = (1, 0.5) if given.quick else (given.rounds, ROUND)
    asyncio.run(measure(rounds, seconds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
