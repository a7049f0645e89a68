"""What a box costs: the start of a server, a call, a connection by its proxy; and what many starts leave.

python bench/boxes.py              # figures
python bench/boxes.py --starts 500 # opens and closes a boxed server so often, and looks for what is left
"""

import argparse
import asyncio
import json
import os
import socket
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import psutil

from dragoman import Hub
from dragoman.connections.boxes import machine
from dragoman.connections.boxes.network import PROXY, BoxProxy, NetworkRule, NetworkUse
from dragoman.settings import Settings

SERVER = Path(__file__).parents[1] / "tests" / "servers" / "stdio_server.py"
FETCHING = Path(__file__).with_name("fetching_program.py")
_MEGABYTE = 1024 * 1024
_LINK = 1_000_000_000 // 8  # bytes a second of a link of 1 Gbit/s
_LINKED = 128 * _MEGABYTE


@asynccontextmanager
async def open_hub() -> AsyncGenerator[Hub]:
    with tempfile.TemporaryDirectory(prefix="boxes-") as folder:
        async with Hub(Settings(home=Path(folder) / "home")) as hub:
            yield hub


async def added(hub: Hub, name: str, **facts: Any) -> None:
    args = ["-S", "-E", str(SERVER)]
    view = await hub.connectors.add(name, command=sys.executable, args=args, **facts)
    assert view.status.state == "connected", view.status.cause


def memory_of(pid: int) -> float:
    """Megabytes of a process and all below it, pages that are shared counted once."""
    family = [psutil.Process(pid), *psutil.Process(pid).children(recursive=True)]
    return sum(one.memory_full_info().pss for one in family) / _MEGABYTE


async def starts_of(hub: Hub, name: str) -> tuple[float, float]:
    """Milliseconds until it is connected, and megabytes then."""
    await hub.connectors.disconnect(name)
    await asyncio.sleep(0.1)
    began = time.perf_counter()
    view = await hub.connectors.connect(name)
    took = (time.perf_counter() - began) * 1000
    assert view.status.pid is not None
    return took, memory_of(view.status.pid)


async def calls_of(hub: Hub, name: str, count: int) -> float:
    """Microseconds of one call, the median."""
    times: list[float] = []
    for _ in range(count):
        began = time.perf_counter()
        assert (await hub.call(f"mcp_{name}_echo", {"text": "x"})).ok
        times.append((time.perf_counter() - began) * 1e6)
    return statistics.median(times)


async def servers(rounds: int) -> dict[str, Any]:
    kinds: dict[str, dict[str, Any]] = {
        "none": {"sandbox": "none"},
        "landlock": {"sandbox": "landlock"},
        "bubblewrap": {"sandbox": "bubblewrap"},
        "listed": {"sandbox": "bubblewrap", "network": ["example.com:443"]},
        "container": {"sandbox": "container"},
    }
    missing = {way.mode for way in machine.ways() if way.missing}
    kinds = {name: facts for name, facts in kinds.items() if facts["sandbox"] not in missing}
    found: dict[str, Any] = {}
    async with open_hub() as hub:
        for name, facts in kinds.items():
            await added(hub, name, **facts)
        starts: dict[str, list[tuple[float, float]]] = {name: [] for name in kinds}
        for _ in range(rounds):  # turn by turn, so that a busy machine is busy for each
            for name in kinds:
                starts[name].append(await starts_of(hub, name))
        calls: dict[str, list[float]] = {name: [] for name in kinds}
        for _ in range(40):
            for name in kinds:
                calls[name].append(await calls_of(hub, name, 100))
        for name in kinds:
            found[name] = {
                "start_ms": round(statistics.median(one[0] for one in starts[name]), 1),
                "best_start_ms": round(min(one[0] for one in starts[name]), 1),
                "memory_mb": round(statistics.median(one[1] for one in starts[name]), 1),
                "call_us": round(min(calls[name])),
            }
    return found


async def proxy(rounds: int, megabytes: int) -> dict[str, float]:
    """A connection to a service, straight and through the proxy: three processes, as in life."""
    service = await asyncio.create_subprocess_exec(
        *(sys.executable, "-S", str(FETCHING), "serve"), stdout=asyncio.subprocess.PIPE
    )
    assert service.stdout is not None
    port = int(await service.stdout.readline())
    entrance = socket.create_server(("127.0.0.2", PROXY[1]))
    way = BoxProxy(NetworkRule((f"127.0.0.1:{port}",), is_trusted=True), lambda told: None, NetworkUse())
    answering = asyncio.create_task(way.answer([entrance]))

    async def fetched(through: bool, times: int, size: int, rate: int = 0) -> list[float]:
        words = [
            sys.executable,
            "-S",
            str(FETCHING),
            "fetch",
            str(port),
            str(int(through)),
            str(times),
            str(size),
            str(rate),
        ]
        client = await asyncio.create_subprocess_exec(*words, stdout=asyncio.subprocess.PIPE)
        out, _ = await client.communicate()
        return json.loads(out)

    try:
        straight, through, fast, slow, processor = [], [], [], [], []
        linked, linked_through = [], []
        for _ in range(5):  # turn by turn, so that a busy machine is busy for each
            straight += await fetched(False, rounds // 5, 1)
            through += await fetched(True, rounds // 5, 1)
            fast += await fetched(False, 2, megabytes * _MEGABYTE)
            began = time.process_time()
            slow += await fetched(True, 2, megabytes * _MEGABYTE)
            processor.append(time.process_time() - began)
            linked += await fetched(False, 1, _LINKED, _LINK)
            linked_through += await fetched(True, 1, _LINKED, _LINK)
    finally:
        answering.cancel()
        await asyncio.wait([answering])
        service.kill()
        await service.wait()
    return {
        "connection_extra_ms": round((statistics.median(through) - statistics.median(straight)) * 1000, 2),
        "straight_mb_s": round(megabytes / min(fast)),
        "proxied_mb_s": round(megabytes / min(slow)),
        "link_straight_mb_s": round(_LINKED / _MEGABYTE / statistics.median(linked), 1),
        "link_proxied_mb_s": round(_LINKED / _MEGABYTE / statistics.median(linked_through), 1),
        "proxy_cpu_s_per_gb": round(min(processor) / (2 * megabytes / 1024), 3),
    }


async def many(count: int) -> dict[str, Any]:
    def left() -> dict[str, int]:
        below = psutil.Process().children(recursive=True)
        mounts = Path("/proc/self/mounts").read_text().count("\n")
        return {"processes": len(below), "mounts": mounts, "descriptors": len(os.listdir("/proc/self/fd"))}

    async with open_hub() as hub:
        await added(hub, "boxed", network=["example.com:443"])
        await hub.connectors.disconnect("boxed")
        await asyncio.sleep(1)
        before = left()
        for _ in range(count):
            await hub.connectors.connect("boxed")
            await hub.connectors.disconnect("boxed")
        await asyncio.sleep(3)
        homes = len(list((hub.settings.home / "boxes").glob("*/*")))
        return {"starts": count, "before": before, "after": left(), "homes": homes}


async def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--starts", type=int, default=0)
    parser.add_argument("--rounds", type=int, default=15)
    given = parser.parse_args()
    if given.starts:
        print(json.dumps(await many(given.starts), indent=2))
        return
    print(json.dumps({"servers": await servers(given.rounds), "proxy": await proxy(100, 512)}, indent=2))


if __name__ == "__main__":
    asyncio.run(main())
