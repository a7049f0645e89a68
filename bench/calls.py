"""What one call costs, side by side: the SDK's client, our wire alone, the library, REST, a lean direct call.

`--profile` tells instead where the time of the library's road goes.
"""

import argparse
import asyncio
import cProfile
import io
import pstats
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

import aiohttp
from mcp import Client, StdioServerParameters

import lab
import peers
from dragoman.connections.http_clients import Reach
from dragoman.connections.session import McpSession, open_session
from dragoman.connector import Configuration, Connector

CALLERS = (1, 10, 50)
SDK, WIRE, LIBRARY, REST, LEAN = "mcp.Client", "raw dispatcher", "library", "REST", "direct raw call"
TRANSPORTS = ("stdio", "http-2026", "http-2025")
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_MODERN = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"}
_LEGACY = {"MCP-Protocol-Version": "2025-11-25"}


async def sdk_client(stack: AsyncExitStack, target: Mapping[str, Any], transport: str) -> lab.Contender:
    server = target["url"] if "url" in target else StdioServerParameters(**target)
    mode = "legacy" if transport == "http-2025" else "auto"
    client = await stack.enter_async_context(Client(server, mode=mode))

    async def call() -> None:
        result: Any = await client.call_tool("echo", {"text": peers.TEXT})
        assert result.content[0].text == peers.TEXT

    return lab.Contender(name=SDK, call=call)


async def raw_dispatcher(stack: AsyncExitStack, target: Mapping[str, Any]) -> lab.Contender:
    """Our wire with the bare message, no session logic and no road on top."""
    client = await stack.enter_async_context(aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=0)))
    connector = Connector(
        id="bench", workspace="bench", owner="", slug="bench", configuration=Configuration.checked(target)
    )
    session: McpSession = await stack.enter_async_context(
        open_session(connector, {}, Reach(lambda: client, {}), lambda notice: None, lambda wire: None)
    )
    params: dict[str, Any] = {"name": "echo", "arguments": {"text": peers.TEXT}}
    params |= {"_meta": _META} if session.is_modern else {}
    headers = _MODERN if session.is_modern else _LEGACY

    async def call() -> None:
        result = await session.wire.request("tools/call", params, headers)
        assert result["content"][0]["text"] == peers.TEXT

    return lab.Contender(name=WIRE, call=call)


def library(hub: peers.Hub, slug: str) -> lab.Contender:
    async def settle() -> None:
        await hub.calls(1)  # writes the records that the calls put off
        await hub.audit.list(limit=1)  # and their audit trail, before it is another contender's turn

    return lab.Contender(name=LIBRARY, call=lambda: peers.echo(hub, slug), settle=settle)


async def rest(service: peers.Service, slug: str, target: Mapping[str, Any]) -> lab.Contender:
    added = await service.ask("POST", "/api/connectors", {"name": slug, **target})
    assert added["status"]["state"] == "connected", added["status"]

    async def settle() -> None:
        await service.settle()
        await service.ask("GET", "/api/audit?limit=1")

    return lab.Contender(
        name=REST, call=lambda: service.echo(slug), cpu=lab.cpu_of(service.pid), settle=settle
    )


@asynccontextmanager
async def open_contenders(transport: str) -> AsyncGenerator[list[lab.Contender]]:
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            target = peers.stdio(peers.SDK)
        else:
            era = transport.removeprefix("http-")
            target = {"url": stack.enter_context(peers.open_http(peers.SDK_HTTP, "--era", era)).url}
        hub = await stack.enter_async_context(peers.open_hub())
        service = await stack.enter_async_context(peers.open_service())
        await peers.add(hub, transport, **target)
        contenders = [
            await sdk_client(stack, target, transport),
            await raw_dispatcher(stack, target),
            library(hub, transport),
            await rest(service, transport, target),
        ]
        if transport != "stdio":
            lean = await stack.enter_async_context(
                peers.open_lean(target["url"], transport.removeprefix("http-"))
            )
            contenders.append(lab.Contender(name=LEAN, call=lean.echo))
        yield contenders


async def measure(transports: Sequence[str], calls: int, rounds: int) -> lab.Report:
    report = lab.Report("calls")
    for transport in transports:
        found: dict[int, dict[str, lab.Figures]] = {}
        async with open_contenders(transport) as contenders:
            for callers in CALLERS:
                found[callers] = await lab.compare(contenders, callers=callers, calls=calls, rounds=rounds)
        _tabulate(report, transport, found)
        _judge(report, transport, found)
    report.notes.append(
        "CPU is that of the client's process, for REST that of the hub's, what is written later included."
        " Every server is built with the SDK."
    )
    return report


def _tabulate(report: lab.Report, transport: str, found: Mapping[int, Mapping[str, lab.Figures]]) -> None:
    rows: list[list[object]] = []
    for callers, figures in found.items():
        base = figures[SDK]
        for name, one in figures.items():
            rows.append(
                [
                    f"{callers:>2} × {name}",
                    one.p50,
                    one.p95,
                    one.p50 / base.p50,
                    one.cpu,
                    one.cpu / base.cpu,
                    one.calls_per_second,
                ]
            )
    columns = ["callers", "p50 ms", "p95 ms", "p50 ÷ SDK", "CPU ms", "CPU ÷ SDK", "calls/s"]
    report.table(f"One call over {transport}", columns, rows)


def _judge(report: lab.Report, transport: str, found: Mapping[int, Mapping[str, lab.Figures]]) -> None:
    most = 1.0 if transport == "stdio" else 0.5
    ratios = [figures[LIBRARY].cpu / figures[SDK].cpu for figures in found.values()]
    report.verdict(
        f"{transport}: the road by library costs at most {most:g} × the CPU of mcp.Client",
        _listed(ratios),
        met=max(ratios) <= most,
    )
    if LEAN not in found[CALLERS[0]]:
        return
    ratios = [figures[REST].p50 / figures[LEAN].p50 for figures in found.values()]
    report.verdict(
        f"{transport}: REST takes at most 2.5 × the direct raw call (p50)",
        _listed(ratios),
        met=max(ratios) <= 2.5,
    )


def _listed(ratios: list[float]) -> str:
    return ", ".join(f"{ratio:.2f} with {callers}" for ratio, callers in zip(ratios, CALLERS, strict=True))


async def profile(calls: int) -> str:
    """The functions with most time of their own, over so many calls of the library, per transport."""
    text: list[str] = []
    for transport in ("stdio", "http-2026"):
        async with AsyncExitStack() as stack:
            hub = await stack.enter_async_context(peers.open_hub())
            target = (
                peers.stdio(peers.RAW_STDIO)
                if transport == "stdio"
                else {"url": stack.enter_context(peers.open_http(peers.SDK_HTTP)).url}
            )
            await peers.add(hub, transport, **target)
            await lab.drive(lambda hub=hub, slug=transport: peers.echo(hub, slug), 1, 200)
            profiler = cProfile.Profile()
            profiler.enable()
            await lab.drive(lambda hub=hub, slug=transport: peers.echo(hub, slug), 10, calls)
            profiler.disable()
        out = io.StringIO()
        pstats.Stats(profiler, stream=out).strip_dirs().sort_stats("tottime").print_stats(25)
        text.append(f"== {transport}: {calls} calls, 10 callers ==\n{out.getvalue()}")
    return "\n".join(text)


def arguments() -> argparse.Namespace:
    parser = lab.parser(__doc__)
    parser.add_argument("--profile", action="store_true", help="where the time of the library goes")
    parser.add_argument("--transport", choices=TRANSPORTS, help="this one only: a third of the time")
    parser.add_argument("--calls", type=int, default=300, help="calls per contender and round")
    parser.add_argument("--rounds", type=int, default=5)
    return parser.parse_args()


def main() -> None:
    given = arguments()
    if given.profile:
        print(asyncio.run(profile(500 if given.quick else 5000)))
        return
    calls, rounds = (100, 2) if given.quick else (given.calls, given.rounds)
    transports = (given.transport,) if given.transport else TRANSPORTS
    asyncio.run(measure(transports, calls, rounds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
