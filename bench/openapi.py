"""OpenAPI services: what a large document costs, what one call costs, and whether refreshing disturbs others.

The large document is Stripe's, from the public data of the tests.
"""

import argparse
import asyncio
import gc
import gzip
import os
import resource
import socket
import time
from collections.abc import AsyncGenerator, Awaitable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import psutil
import uvicorn
from fastapi import FastAPI

import lab
import peers

STRIPE = Path(__file__).parents[1] / "tests" / "data" / "openapi" / "stripe.com_2022_11_15.json.gz"
BARE, LIBRARY = "bare aiohttp client", "library"
_MEGABYTE = 1024 * 1024
_LEAN = b'{"id":"7","name":"a thing","tags":["a","b"],"price":12.5}'


def large_document() -> tuple[str, bytes]:
    return "Stripe", gzip.decompress(STRIPE.read_bytes())


def _operation(name: str, schema: Any) -> dict[str, Any]:
    return {
        "operationId": name,
        "requestBody": {"content": {"application/x-www-form-urlencoded": {"schema": schema}}},
        "responses": {"200": {"content": {"application/json": {"schema": schema}}}},
    }


async def measure_load(report: lab.Report) -> None:
    name, data = large_document()
    async with peers.open_hub() as hub:
        file = hub.settings.home / "large.json"
        file.write_bytes(data)
        gc.collect()
        own, before = psutil.Process(), psutil.Process().memory_info().rss
        cpu, started = time.process_time(), time.perf_counter()
        view = await hub.connectors.add("large", kind="openapi", openapi=str(file), connect_timeout=60)
        seconds, cpu = time.perf_counter() - started, time.process_time() - cpu
        gc.collect()
        grown = (own.memory_info().rss - before) / _MEGABYTE
        (worker,) = [child for child in own.children() if "openapi.worker" in " ".join(child.cmdline())]
        worker_cpu = lab.cpu_of(worker.pid)()
        worker_peak = _peak(worker.pid)
        assert view.status.state == "connected", view.status.cause
    rows: list[list[object]] = [
        ["worker process: read and convert", worker_cpu, worker_peak],
        ["hub: judge, store and hold", cpu, grown],
        ["both", worker_cpu + cpu, worker_peak + grown],
    ]
    report.table(
        f"{name}'s document, {len(data):,} bytes, {view.tools} tools, {seconds:.2f} s in all",
        ["part", "CPU s", "MB"],
        rows,
    )
    report.verdict("load in at most 5 s CPU", f"{worker_cpu + cpu:.2f} s", met=worker_cpu + cpu <= 5)
    report.verdict(
        "load in at most 60 MB",
        f"worker's peak {worker_peak:.0f} MB, gone when idle; the hub grows by {grown:.0f} MB",
        met=max(worker_peak, grown) <= 60,
    )
    report.notes.append("The worker's MB are its peak resident memory; the hub's are what it grew by.")


def _peak(pid: int) -> float:
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024


async def measure_calls(report: lab.Report, calls: int, rounds: int) -> None:
    for kind in ("lean", "FastAPI"):
        async with _contenders(kind) as contenders:
            for callers in (1, 10):
                found = await lab.compare(contenders, callers=callers, calls=calls, rounds=rounds)
                _judge(report, kind, callers, found)


@asynccontextmanager
async def _contenders(kind: str) -> AsyncGenerator[list[lab.Contender]]:
    """The same request by the bare client and down the whole road."""
    with peers.open_http(Path(__file__), "--serve", kind) as server:
        origin = f"http://127.0.0.1:{server.port}"
        async with peers.open_hub() as hub, aiohttp.ClientSession() as client:
            await peers.add(hub, "shop", kind="openapi", openapi=origin, bearer="token")
            url, headers = f"{origin}/things/7", {"Authorization": "Bearer token"}

            async def bare() -> None:
                async with client.get(url, params={"full": "true"}, headers=headers) as response:
                    assert (await response.json(loads=orjson.loads))["id"] == "7"

            async def library() -> None:
                output = await hub.call("mcp_shop_get_thing", {"id": "7", "full": True})
                assert output.ok, output.error
                assert output.result["id"] == "7"

            async def settle() -> None:
                await hub.calls(1)

            yield [
                lab.Contender(name=BARE, call=bare),
                lab.Contender(name=LIBRARY, call=library, settle=settle),
            ]


def _judge(report: lab.Report, kind: str, callers: int, found: dict[str, lab.Figures]) -> None:
    base = found[BARE]
    rows: list[list[object]] = [
        [name, one.p50, one.p95, one.p50 / base.p50, one.cpu, one.calls_per_second]
        for name, one in found.items()
    ]
    columns = ["way", "p50 ms", "p95 ms", "p50 ÷ bare", "CPU ms", "calls/s"]
    report.table(f"One call, {callers} at once, {kind} service", columns, rows)
    ratio = found[LIBRARY].p50 / base.p50
    report.verdict(
        f"a call at most 1.3 × the bare request ({callers} at once, {kind} service)",
        f"{ratio:.2f} ×",
        met=ratio <= 1.3,
    )


async def measure_refresh(report: lab.Report, documents: int) -> None:
    """With the collector as it is, and with all that was imported frozen after the start."""
    with peers.open_http(Path(__file__), "--serve", "FastAPI") as server:
        origin = f"http://127.0.0.1:{server.port}"
        async with peers.open_hub() as hub:
            for number in range(documents):
                await peers.add(
                    hub, f"doc{number}", kind="openapi", openapi=f"{origin}/documents/{number}.json"
                )
            await peers.add(hub, "shop", kind="openapi", openapi=origin)
            (hub.settings.home / "large.json").write_bytes(large_document()[1])
            found = {"nothing": await _watch(hub, asyncio.sleep(2))}
            gc.collect()
            found[f"{documents} changed documents"] = await _watch(hub, _refresh_all(hub, documents))
            gc.collect()
            gc.freeze()
            frozen = found[f"{documents} changed documents, frozen"] = await _watch(
                hub, _refresh_all(hub, documents)
            )
            large = found["the large document, frozen"] = await _watch(hub, _load_large(hub))
            gc.unfreeze()
    rows: list[list[object]] = [
        [
            title,
            lab.percentile(seen.calls, 50),
            lab.percentile(seen.calls, 99),
            max(seen.calls),
            max(seen.pauses),
        ]
        for title, seen in found.items()
    ]
    columns = ["meanwhile", "p50 ms", "p99 ms", "longest call ms", "longest pause ms"]
    report.table("Another caller's calls while documents are refreshed", columns, rows)
    report.notes.append(
        "Frozen: `gc.freeze()` after the start. Without it a full collection looks at everything that was"
        " imported, which alone holds the loop for 40 ms and more, whatever is being refreshed."
    )
    for title, seen in ((f"{documents} documents refreshed", frozen), ("a large document loaded", large)):
        longest = max(seen.pauses)
        report.verdict(f"{title} without a pause over 50 ms", f"{longest:.1f} ms", met=longest < 50)


async def _refresh_all(hub: peers.Hub, documents: int) -> None:
    async with asyncio.TaskGroup() as tasks:
        for number in range(documents):
            tasks.create_task(hub.connectors.refresh(f"doc{number}"))


async def _load_large(hub: peers.Hub) -> None:
    await peers.add(hub, "large", kind="openapi", openapi=str(hub.settings.home / "large.json"))


async def _watch(hub: peers.Hub, work: Awaitable[None]) -> "_Seen":
    async with _watched(hub) as seen:
        await work
    return seen


class _Seen:
    def __init__(self) -> None:
        self.calls: list[float] = []
        self.pauses: list[float] = []


@asynccontextmanager
async def _watched(hub: peers.Hub) -> AsyncGenerator[_Seen]:
    """Another caller that never stops calling, and a clock that notices when the loop is held."""
    seen = _Seen()

    async def call() -> None:
        while True:
            started = time.perf_counter()
            output = await hub.call("mcp_shop_get_thing", {"id": "7"})
            assert output.ok, output.error
            seen.calls.append((time.perf_counter() - started) * 1000)

    async def watch() -> None:
        while True:
            started = time.perf_counter()
            await asyncio.sleep(0.001)
            seen.pauses.append((time.perf_counter() - started - 0.001) * 1000)

    async with asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(call()), tasks.create_task(watch())]
        try:
            yield seen
        finally:
            for task in running:
                task.cancel()


def build_service() -> FastAPI:
    app = FastAPI(title="Shop")
    asked = 0

    @app.get("/things/{id}", operation_id="get_thing")
    async def get_thing(id: str, full: bool = False) -> dict[str, Any]:
        return {"id": id, "name": "a thing", "tags": ["a", "b"], "price": 12.5}

    @app.get("/documents/{number}.json", include_in_schema=False)
    async def get_document(number: int) -> dict[str, Any]:
        """Another one each time."""
        nonlocal asked
        asked += 1
        part = {
            "type": "object",
            "properties": {f"field_{n}": {"type": "string", "description": f"{asked}"} for n in range(10)},
        }
        return {
            "openapi": "3.0.0",
            "info": {},
            "paths": {f"/a{n}": {"post": _operation(f"op{n}", part)} for n in range(20)},
        }

    _ = get_thing, get_document
    return app


async def serve_lean(listener: socket.socket) -> None:
    """As little service as there can be: one answer, whatever is asked; the document at /openapi.json."""
    document = orjson.dumps(build_service().openapi())

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while head := await reader.readuntil(b"\r\n\r\n"):
                body = document if b" /openapi.json " in head else _LEAN
                writer.write(
                    b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
                    % len(body)
                    + body
                )
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.close()

    async with await asyncio.start_server(answer, sock=listener) as server:
        await server.serve_forever()


def serve(kind: str, port: int, port_file: Path) -> None:
    listener = socket.create_server(("127.0.0.1", port))
    listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # else an answer in two parts waits 40 ms
    temporary = port_file.with_suffix(".new")
    temporary.write_text(str(listener.getsockname()[1]))
    os.replace(temporary, port_file)
    if kind == "lean":
        asyncio.run(serve_lean(listener))
    else:
        uvicorn.Server(uvicorn.Config(build_service(), log_level="error")).run(sockets=[listener])


async def measure(calls: int, rounds: int, documents: int) -> lab.Report:
    report = lab.Report("openapi")
    await measure_load(report)
    await measure_calls(report, calls, rounds)
    await measure_refresh(report, documents)
    return report


def main() -> None:
    parser = lab.parser(__doc__)
    parser.add_argument("--calls", type=int, default=500, help="calls per contender and round")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--documents", type=int, default=100)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    parser.add_argument("--port", type=int, default=0, help=argparse.SUPPRESS)
    parser.add_argument("--port-file", type=Path, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.serve:
        serve(given.serve, given.port, given.port_file)
        return
    calls, rounds = (100, 2) if given.quick else (given.calls, given.rounds)
    documents = min(given.documents, 10) if given.quick else given.documents
    asyncio.run(measure(calls, rounds, documents)).show(as_json=given.json)


if __name__ == "__main__":
    main()
