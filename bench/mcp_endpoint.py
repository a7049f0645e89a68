"""What the MCP door costs: `/mcp/<slug>` beside a direct call and beside a FastMCP proxy, in one run.

All are asked by the same lean client. FastMCP is installed into a venv of its own under `.cache/bench`.
"""

import asyncio
import itertools
import json
import subprocess
import sys
from collections.abc import AsyncGenerator, Generator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson

import lab
import peers

CALLERS = (1, 10, 50)
DIRECT, OURS, THEIRS = "direct", "Dragoman /mcp", "FastMCP proxy"
HERE = Path(__file__).parent
VENV = HERE.parent / ".cache" / "bench" / "fastmcp"
FASTMCP = "fastmcp==4.1.2"
TOOLS = 200
META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "bench", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Lean(peers.LeanMcp):
    """The lean client, which can list as well. `tool` is its name at this address."""

    async def list(self) -> None:
        headers, self._headers = self._headers, {**self._headers, "Mcp-Method": "tools/list"}
        self._headers.pop("Mcp-Name", None)
        params: dict[str, Any] = {"_meta": META} if self._is_modern else {}
        try:
            answer = await self._post(
                {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/list", "params": params}
            )
        finally:
            self._headers = headers
        assert len(answer["result"]["tools"]) == TOOLS


@asynccontextmanager
async def open_lean(url: str, era: str, token: str = "") -> AsyncGenerator[Lean]:
    headers = {"Content-Type": "application/json"} | ({"Authorization": f"Bearer {token}"} if token else {})
    connector = aiohttp.TCPConnector(limit=0)
    async with aiohttp.ClientSession(
        connector=connector, cookie_jar=aiohttp.DummyCookieJar(), headers=headers
    ) as http:
        lean = Lean(http, url, era)
        await lean.connect()
        yield lean


class LeanStdio:
    """The direct call of a stdio server: one line and its answer, with nothing on top."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._ids = itertools.count(1)
        self._waiting: dict[int, asyncio.Future[Any]] = {}

    async def read(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            answer = orjson.loads(line)
            if waiting := self._waiting.pop(answer.get("id"), None):
                waiting.set_result(answer)

    async def echo(self) -> None:
        assert self._process.stdin is not None
        request_id = next(self._ids)
        waiting = self._waiting[request_id] = asyncio.get_running_loop().create_future()
        params = {"name": "echo", "arguments": {"text": peers.TEXT}, "_meta": META}
        message = {"jsonrpc": "2.0", "id": request_id, "method": "tools/call", "params": params}
        self._process.stdin.write(orjson.dumps(message) + b"\n")
        answer = await waiting
        assert answer["result"]["content"][0]["text"] == peers.TEXT, answer


@asynccontextmanager
async def open_lean_stdio(target: Mapping[str, Any]) -> AsyncGenerator[LeanStdio]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        target["command"], *target["args"], stdin=pipe, stdout=pipe
    )
    async with asyncio.TaskGroup() as tasks:
        lean = LeanStdio(process)
        reading = tasks.create_task(lean.read())
        try:
            yield lean
        finally:
            reading.cancel()
            process.kill()
            await process.wait()


def fastmcp_python() -> Path:
    python = VENV / "bin" / "python"
    if not python.exists():
        uv = [sys.executable, "-m", "uv"]
        subprocess.run([*uv, "venv", "-q", str(VENV), "--python", sys.executable], check=True)
        subprocess.run([*uv, "pip", "install", "-q", "--python", str(python), FASTMCP], check=True)
    return python


class Proxy(peers.HttpServer):
    def __init__(self, target: Mapping[str, Any]) -> None:
        super().__init__(HERE / "fastmcp_proxy.py", "--target", json.dumps(target))
        self._command[0] = str(fastmcp_python())

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid


@contextmanager
def open_proxy(target: Mapping[str, Any]) -> Generator[Proxy]:
    proxy = Proxy(target)
    try:
        proxy.start()
        yield proxy
    finally:
        proxy.close()


async def ours(stack: AsyncExitStack, slug: str, target: Mapping[str, Any]) -> tuple[Lean, peers.Service]:
    service = await stack.enter_async_context(peers.open_service())
    added = await service.ask("POST", "/api/connectors", {"name": slug, **target})
    assert added["status"]["state"] == "connected", added["status"]
    token = service.client.headers["Authorization"].removeprefix("Bearer ")
    return await stack.enter_async_context(open_lean(f"{service.url}/mcp/{slug}", "2026", token)), service


async def theirs(stack: AsyncExitStack, target: Mapping[str, Any]) -> tuple[Lean, Proxy]:
    proxy = stack.enter_context(open_proxy(target))
    return await stack.enter_async_context(open_lean(proxy.url, "2026")), proxy


@asynccontextmanager
async def open_contenders(transport: str) -> AsyncGenerator[list[lab.Contender]]:
    async with AsyncExitStack() as stack:
        if transport == "stdio":
            target = peers.stdio(peers.SDK)
            direct = (await stack.enter_async_context(open_lean_stdio(target))).echo
        else:
            target = {"url": stack.enter_context(peers.open_http(peers.SDK_HTTP)).url}
            direct = (await stack.enter_async_context(open_lean(target["url"], "2026"))).echo
        lean, service = await ours(stack, "bench", target)
        their_lean, proxy = await theirs(stack, target)

        async def settle() -> None:
            await service.settle()
            await service.ask("GET", "/api/audit?limit=1")  # written later, and ours all the same

        yield [
            lab.Contender(name=DIRECT, call=direct),
            lab.Contender(name=OURS, call=lean.echo, cpu=lab.cpu_of(service.pid), settle=settle),
            lab.Contender(name=THEIRS, call=their_lean.echo, cpu=lab.cpu_of(proxy.pid)),
        ]


async def measure(number: int, rounds: int) -> lab.Report:
    report = lab.Report("mcp_endpoint")
    for transport in ("http", "stdio"):
        found: dict[int, dict[str, lab.Figures]] = {}
        async with open_contenders(transport) as contenders:
            for callers in CALLERS:
                found[callers] = await lab.compare(contenders, callers=callers, calls=number, rounds=rounds)
        tabulate(report, f"One call, server over {transport}", found)
        judge(report, transport, found)
    await measure_lists(report, max(20, number // 10), rounds)
    report.notes.append(
        "CPU is that of the process between client and server; for the direct call that of the client. "
        "Every rule of Dragoman is on: rights, validation, approval policy, limits, records, audit."
    )
    return report


async def measure_lists(report: lab.Report, number: int, rounds: int) -> None:
    async with AsyncExitStack() as stack:
        server = stack.enter_context(peers.open_http(HERE / "many_tools_server.py", "--tools", str(TOOLS)))
        target = {"url": server.url}
        direct = await stack.enter_async_context(open_lean(server.url, "2026"))
        lean, service = await ours(stack, "many", target)
        their_lean, proxy = await theirs(stack, target)
        contenders = [
            lab.Contender(name=DIRECT, call=direct.list),
            lab.Contender(name=OURS, call=lean.list, cpu=lab.cpu_of(service.pid)),
            lab.Contender(name=THEIRS, call=their_lean.list, cpu=lab.cpu_of(proxy.pid)),
        ]
        found = {1: await lab.compare(contenders, callers=1, calls=number, rounds=rounds)}
    tabulate(report, f"Listing {TOOLS} tools", found)
    ratio = found[1][OURS].p50 / found[1][DIRECT].p50
    report.verdict(
        f"listing {TOOLS} tools takes at most 1.5 × direct (p50)", f"{ratio:.2f}", met=ratio <= 1.5
    )


def tabulate(report: lab.Report, title: str, found: Mapping[int, Mapping[str, lab.Figures]]) -> None:
    rows: list[list[object]] = []
    for callers, figures in found.items():
        base = figures[DIRECT]
        for name, one in figures.items():
            ratio = one.p50 / base.p50
            rows.append([f"{callers:>2} × {name}", one.p50, one.p95, ratio, one.cpu, one.calls_per_second])
    report.table(title, ["callers", "p50 ms", "p95 ms", "p50 ÷ direct", "CPU ms", "calls/s"], rows)


def judge(report: lab.Report, transport: str, found: Mapping[int, Mapping[str, lab.Figures]]) -> None:
    ratios = {callers: figures[OURS].p50 / figures[DIRECT].p50 for callers, figures in found.items()}
    spent = {callers: figures[OURS].cpu for callers, figures in found.items()}
    told = ", ".join(f"{ratio:.2f} with {callers}" for callers, ratio in ratios.items())
    report.verdict(f"{transport}: at most 2 × direct (p50)", told, met=max(ratios.values()) <= 2)
    told = ", ".join(f"{one:.2f} ms with {callers}" for callers, one in spent.items())
    report.verdict(f"{transport}: at most 1.2 ms CPU of the hub a call", told, met=max(spent.values()) <= 1.2)


def main() -> None:
    given = lab.options(__doc__ or "", calls=(300, "calls per contender and round"), rounds=(5, "rounds"))
    number, rounds = (100, 2) if given.quick else (given.calls, given.rounds)
    asyncio.run(measure(number, rounds)).show(as_json=given.json)


if __name__ == "__main__":
    main()
