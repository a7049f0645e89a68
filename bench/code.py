"""What programmatic calling costs and saves: a warm start, a call inside against a direct one, and a task of
three tools and 5,000 rows by code against the same by direct calls.

Beside them the sandbox's library alone, around the same call: no call inside can cost less than that.
Tokens are estimated at four bytes each, for both sides alike.
"""

import asyncio
import json
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from time import perf_counter
from typing import Any

from pydantic_monty import AsyncMonty

import lab
import peers
from dragoman import Hub
from dragoman.tokens import count_tokens
from dragoman.tool import Annotations

CALLS_INSIDE = 100
ROWS = 5_000
IN_CODE, BARE, DIRECT = "in code", "bare library", "direct"
SERVERS = {"stdio": "stdio, SDK server", "lean": "stdio, hand-written server", "http": "http, SDK server"}
TASK = """
import asyncio
orders, customers, refunds = await asyncio.gather(list_orders(), list_customers(), list_refunds())
names = {one["id"]: one["name"] for one in customers}
refunded = {one["order"] for one in refunds}
totals = {}
for order in orders:
    if order["id"] not in refunded:
        name = names[order["customer"]]
        totals[name] = totals.get(name, 0) + order["amount"]
best = max(totals, key=lambda name: totals[name])
print(f"{best} bought most: {totals[best]} in all")
"""


async def warm_start(hub: Hub, rounds: int) -> list[float]:
    await hub.code.run("1")
    taken: list[float] = []
    for _ in range(rounds):
        started = perf_counter()
        assert (await hub.code.run("1 + 1")).result == 2
        taken.append((perf_counter() - started) * 1000)
    return taken


async def inside_and_direct(hub: Hub, bare: AsyncMonty, slug: str, rounds: int) -> dict[str, float]:
    """Median milliseconds of a call in code, in the sandbox's library alone, and direct, in turns."""
    await hub.tools.configure(f"mcp_{slug}_echo", allowed_callers=["direct", "code"])
    empty = lab.percentile(await warm_start(hub, 10), 50)

    async def inside() -> float:
        output = await hub.code.run(_repeated(f"{slug}.echo"))
        assert output.calls == CALLS_INSIDE, output.error
        return output.duration_ms - empty

    async def direct() -> float:
        started = perf_counter()
        for _ in range(CALLS_INSIDE):
            await peers.echo(hub, slug)
        return (perf_counter() - started) * 1000

    async def echo(text: str) -> str:
        await peers.echo(hub, slug)
        return text

    ways = {IN_CODE: inside, BARE: lambda: by_bare_library(bare, echo), DIRECT: direct}
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(rounds):
        for name, way in ways.items():
            taken[name].append(await way() / CALLS_INSIDE)
    return {name: lab.percentile(values, 50) for name, values in taken.items()}


async def by_bare_library(bare: AsyncMonty, echo: Callable[[str], Awaitable[str]]) -> float:
    """Milliseconds of the same code with a function of Python's in place of the tool."""
    async with bare.checkout() as session:
        started = perf_counter()
        await session.feed_run(_repeated("echo"), external_lookup={"echo": echo})
        return (perf_counter() - started) * 1000


async def _nothing(text: str) -> str:
    return text


def _repeated(function: str) -> str:
    return f"for _ in range({CALLS_INSIDE}):\n    await {function}(text={peers.TEXT!r})"


def offer_tables(hub: Hub) -> None:
    only_reads = Annotations(read_only=True)

    @hub.tool(annotations=only_reads)
    def list_orders() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
        """Every order."""
        return [
            {"id": number, "customer": number % 37, "amount": number % 91, "note": "as usual, by post"}
            for number in range(ROWS)
        ]

    @hub.tool(annotations=only_reads)
    def list_customers() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
        """Every customer."""
        return [{"id": number, "name": f"customer {number}"} for number in range(37)]

    @hub.tool(annotations=only_reads)
    def list_refunds() -> list[dict[str, Any]]:  # pyright: ignore[reportUnusedFunction]
        """Every refund."""
        return [{"order": number} for number in range(0, ROWS, 13)]


async def task_by_code(hub: Hub, rounds: int) -> dict[str, float]:
    names = ("list_orders", "list_customers", "list_refunds")
    for name in names:
        await hub.tools.configure(name, allowed_callers=["direct", "code"])
    outputs = [await hub.code.run(TASK) for _ in range(rounds)]
    assert all(output.ok for output in outputs), outputs[0].error
    output = outputs[0]
    assert output.printed.count("\n") == 1
    written = count_tokens(TASK.encode())
    read = count_tokens(output.printed.encode())
    direct_in = sum(count_tokens(json.dumps({"name": name, "arguments": {}}).encode()) for name in names)
    return {
        "ms": lab.percentile([one.duration_ms for one in outputs], 50),
        "written": written,
        "read": read,
        "direct_written": direct_in,
        "direct_read": read + output.tokens_outside,
    }


async def compare_calls(stack: AsyncExitStack, hub: Hub, report: lab.Report, rounds: int) -> None:
    server = stack.enter_context(peers.open_http(peers.SDK_HTTP))
    await peers.add(hub, "stdio", **peers.stdio(peers.SDK))
    await peers.add(hub, "lean", **peers.stdio(peers.RAW_STDIO))
    await peers.add(hub, "http", url=server.url)
    bare = await stack.enter_async_context(AsyncMonty(min_processes=1, max_processes=1))
    rows: list[list[object]] = []
    for slug, shown in SERVERS.items():
        found = await inside_and_direct(hub, bare, slug, rounds)
        inside, alone, direct = found[IN_CODE], found[BARE], found[DIRECT]
        rows.append([shown, inside, alone, direct, inside / direct, alone / direct, inside - alone])
        report.verdict(
            f"{shown}: a call inside takes at most 1.5 × a direct one",
            f"{inside / direct:.2f} × (the sandbox's library alone: {alone / direct:.2f} ×)",
            met=inside <= 1.5 * direct,
        )
    columns = ["", IN_CODE, BARE, DIRECT, "in code ÷ direct", "bare ÷ direct", "ours on top"]
    report.table("One call of an MCP tool (ms, median)", columns, rows)
    bridge = [await by_bare_library(bare, _nothing) / CALLS_INSIDE for _ in range(rounds)]
    report.notes.append(
        "Bare library: pydantic-monty with one Python function that makes the direct call, and none of our"
        " rules for code. Its bridge alone, around a function that does nothing, takes"
        f" {lab.percentile(bridge, 50):.3f} ms a call, which every call inside takes on top of its own time."
    )


async def measure(rounds: int) -> lab.Report:
    report = lab.Report("code")
    async with AsyncExitStack() as stack:
        hub = await stack.enter_async_context(peers.open_hub())
        starts = await warm_start(hub, rounds * 20)
        p50, p95 = lab.percentile(starts, 50), lab.percentile(starts, 95)
        report.table("A warm start (ms)", ["", "p50", "p95"], [["run_code('1 + 1')", p50, p95]])
        report.verdict("a warm start takes at most 5 ms (p50)", f"{p50:.2f} ms", met=p50 <= 5)
        await compare_calls(stack, hub, report, rounds)
        offer_tables(hub)
        found = await task_by_code(hub, rounds)
        spent, direct_spent = found["written"] + found["read"], found["direct_written"] + found["direct_read"]
        report.table(
            f"Three tools gathered, {ROWS:,} rows filtered to one line (tokens, estimated)",
            ["", "written by the model", "read by the model", "both"],
            [
                ["by code", int(found["written"]), int(found["read"]), int(spent)],
                [
                    "by direct calls",
                    int(found["direct_written"]),
                    int(found["direct_read"]),
                    int(direct_spent),
                ],
            ],
        )
        report.verdict(
            "the task by code costs at most a tenth of the tokens",
            f"{spent:,.0f} against {direct_spent:,.0f} ({spent / direct_spent:.1%}), in {found['ms']:.0f} ms",
            met=spent * 10 <= direct_spent,
        )
    return report


def main() -> None:
    given = lab.options(__doc__ or "", rounds=(10, "rounds of each measurement"))
    rounds = 2 if given.quick else given.rounds
    asyncio.run(measure(rounds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
