"""A connection per query, as simple integrations do it, against a connection that the hub holds."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from mcp import Client, StdioServerParameters

import lab
import peers

AIM = 95.0


def per_query(server: Callable[[], Any], mode: str) -> lab.Contender:
    async def call() -> None:
        async with Client(server(), mode=mode) as client:
            result: Any = await client.call_tool("echo", {"text": peers.TEXT})
            assert result.content[0].text == peers.TEXT

    return lab.Contender(name="per query", call=call)


@asynccontextmanager
async def open_pairs() -> AsyncGenerator[dict[str, tuple[lab.Contender, lab.Contender]]]:
    """For each server: a client opened for every query, and the hub."""
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(peers.open_hub())
        modern = stack.enter_context(peers.open_http(peers.SDK_HTTP)).url
        legacy = stack.enter_context(peers.open_http(peers.SDK_HTTP, "--era", "2025")).url
        pairs: dict[str, tuple[lab.Contender, lab.Contender]] = {}
        for slug, program in (("stdio-sdk", peers.SDK), ("stdio-raw", peers.RAW_STDIO)):
            command = peers.stdio(program)
            await peers.add(hub, slug, **command)
            parameters = StdioServerParameters(**command)
            pairs[slug] = (per_query(lambda given=parameters: given, "auto"), held(hub, slug))
        for slug, url, mode in (("http-2026", modern, "auto"), ("http-2025", legacy, "legacy")):
            await peers.add(hub, slug, url=url)
            pairs[slug] = (per_query(lambda given=url: given, mode), held(hub, slug))
        yield pairs


def held(hub: peers.Hub, slug: str) -> lab.Contender:
    return lab.Contender(name="held", call=lambda: peers.echo(hub, slug))


async def measure(rounds: int) -> lab.Report:
    report = lab.Report("connect")
    rows: list[list[object]] = []
    async with open_pairs() as pairs:
        for slug, (naive, hub) in pairs.items():
            opened: list[float] = []
            kept: list[float] = []
            for _ in range(rounds):
                opened += await lab.drive(naive.call, 1, 1)
                kept += await lab.drive(hub.call, 1, 20)
            before, after = lab.percentile(opened, 50), lab.percentile(kept, 50)
            less = 100 * (1 - after / before)
            rows.append([slug, before, after, before / after, f"{less:.2f} %"])
            report.verdict(f"{slug}: at least {AIM:.0f} % less", f"{less:.2f} % less", met=less >= AIM)
    report.table(
        "Median time of one query in ms",
        ["server", "connection per query", "held by the hub", "ratio", "less"],
        rows,
    )
    return report


def main() -> None:
    given = lab.options(__doc__ or "", rounds=(30, "queries with a connection of their own, per server"))
    report = asyncio.run(measure(3 if given.quick else given.rounds))
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
