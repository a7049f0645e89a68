"""The lanes `rolling`, `database` and `clock` of `cluster_faults`: three services under load.

Clients make calls, post messages, follow their runs and speak MCP while every node is restarted in turn (from
another version to this one, where the interpreter of one is named), while PostgreSQL is restarted, killed,
lost and found at another address, and while the clock of one node is wrong by a minute.
"""

import asyncio
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lab
from cluster.moving_postgres import open_moving_postgres  # pyright: ignore
from cluster.service_load import Load, open_installation, summary  # pyright: ignore
from cluster.service_nodes import Forks  # pyright: ignore

LANES = ("rolling", "database", "clock")
SKEWS = (60, -60)
_PAUSE = 0.1  # seconds between two requests of a client
DATABASE_FAULTS: dict[str, Callable[[Any], Awaitable[None]]] = {
    "restarted": lambda postgres: postgres.restart(),
    "killed": lambda postgres: postgres.kill(2),
    "failed over": lambda postgres: postgres.fail_over(4),
    "vanished": lambda postgres: postgres.vanish(15),
    "away for long": lambda postgres: postgres.fail_over(45),
}
_SERVES_WITHIN = 60.0  # seconds after which a service that does not answer as ever counts as lost
_CLOCK = Path(__file__).parents[1] / "tests" / "robustness" / "clock_preload.c"


@dataclass
class ServicesTally:
    """What was done and what came of it; kept between two starts of the bench."""

    faults: dict[str, int] = field(default_factory=dict[str, int])
    requests: int = 0
    refused: int = 0
    uncertain: int = 0
    runs: int = 0
    streams_again: int = 0
    slowest: float = 0.0
    approvals: int = 0
    refused_while: dict[str, int] = field(default_factory=dict[str, int])
    slowest_refusal: dict[str, float] = field(default_factory=dict[str, float])
    served_after: dict[str, float] = field(default_factory=dict[str, float])
    wrong: list[str] = field(default_factory=list[str])

    def add(self, load: Any) -> None:
        seen = load.seen
        self.requests += seen.requests.total()
        self.refused += seen.refused.total()
        self.uncertain += seen.uncertain
        self.runs += len(seen.runs)
        self.streams_again += seen.streams_again
        self.slowest = max(self.slowest, seen.slowest)
        self.wrong += load.faults()

    def count(self, fault: str) -> None:
        self.faults[fault] = self.faults.get(fault, 0) + 1


@dataclass(frozen=True)
class WantedServices:
    """`faults` of each kind; `before` is the interpreter of another version."""

    faults: int
    before: str | None = None


async def go_on(
    lane: str,
    tally: ServicesTally,
    wanted: WantedServices,
    is_over: Callable[[], bool],
    save: Callable[[], None],
) -> None:
    while not is_over() and _is_wanted(lane, tally, wanted):
        async with _opened(lane, tally, wanted) as (installation, postgres, now):
            load = Load(installation, f"{lane}{sum(tally.faults.values())}", _PAUSE)
            load.may_refuse = lane == "database"
            asked = await installation.asked(f"{lane}-before")
            working = asyncio.create_task(load.work())
            await asyncio.sleep(2)
            if lane == "rolling":
                await _roll(installation, tally, now)
            elif lane == "database":
                fault = min(DATABASE_FAULTS, key=lambda kind: tally.faults.get(kind, 0))
                await _break(postgres, fault, installation.nodes, load, tally)
            else:
                await asyncio.sleep(15)
                tally.count(_skew(tally))
            load.end()
            await working
            await load.settle()
            tally.add(load)
            ended = await installation.said_yes(*asked)
            tally.approvals += ended == "done"
            if ended != "done" or installation.effects()[f"{lane}-before near"] != 1:
                tally.wrong.append(f"an approval from before: {ended}")
            print(f"{lane}: {tally.faults}, {summary(load)}, {load.faults()}", file=sys.stderr, flush=True)
            if load.faults():
                print(*installation.failures(), sep="\n", file=sys.stderr, flush=True)
        save()


def kinds(lane: str, wanted: WantedServices) -> tuple[str, ...]:
    if lane == "rolling":
        return ("from another version", "from this version") if wanted.before else ("from this version",)
    return tuple(DATABASE_FAULTS) if lane == "database" else tuple(f"{skew:+} s" for skew in SKEWS)


def _is_wanted(lane: str, tally: ServicesTally, wanted: WantedServices) -> bool:
    return any(tally.faults.get(kind, 0) < wanted.faults for kind in kinds(lane, wanted))


def _skew(tally: ServicesTally) -> str:
    """The one that was had less often."""
    return min((f"{skew:+} s" for skew in SKEWS), key=lambda kind: tally.faults.get(kind, 0))


async def _roll(installation: Any, tally: ServicesTally, now: Any) -> None:
    """To this version from the one before, where `now` is what nodes of this one are forked from."""
    if now is not None:
        await installation.roll(now)
        tally.count("from another version")
    await installation.roll(now)
    tally.count("from this version")


async def _break(postgres: Any, fault: str, nodes: Any, load: Any, tally: ServicesTally) -> None:
    """Every node is asked all the time, ready or not: what it says, and when it serves again."""
    is_back, last_refused = asyncio.Event(), 0.0
    refused, slowest = 0, 0.0

    async def watch(node: Any) -> None:
        nonlocal refused, slowest, last_refused
        while True:
            was_back = is_back.is_set()
            try:
                probe = await load.probe(node)
            except Exception as error:
                # boundary: whatever goes wrong is what is looked for
                tally.wrong.append(f"{fault}: no answer: {type(error).__name__}: {error}"[:300])
                if was_back and time.monotonic() - back_at > _SERVES_WITHIN:
                    return
                probe = None
            if probe is None or not probe.is_served:
                refused += 1
                slowest = max(slowest, probe.seconds if probe else 0.0)
                last_refused = time.monotonic()
            elif was_back:
                return
            await asyncio.sleep(0.5)

    async with asyncio.TaskGroup() as watching:
        for node in nodes:
            watching.create_task(watch(node))
        await DATABASE_FAULTS[fault](postgres)
        back_at = time.monotonic()
        is_back.set()
    tally.count(fault)
    tally.refused_while[fault] = tally.refused_while.get(fault, 0) + refused
    tally.slowest_refusal[fault] = max(tally.slowest_refusal.get(fault, 0.0), slowest)
    tally.served_after[fault] = max(tally.served_after.get(fault, 0.0), last_refused - back_at, 0.0)
    if fault != "restarted" and not refused:
        tally.wrong.append(f"{fault}: nobody missed the database")
    await asyncio.sleep(3)


@asynccontextmanager
async def _opened(
    lane: str, tally: ServicesTally, wanted: WantedServices
) -> AsyncGenerator[tuple[Any, Any, Any]]:
    # Directly under /tmp: a Unix socket's path is short.
    with tempfile.TemporaryDirectory(prefix="dragoman-nodes-", ignore_cleanup_errors=True) as folder:
        path = Path(folder)
        path.chmod(0o755)
        async with AsyncExitStack() as stack:
            postgres = await stack.enter_async_context(open_moving_postgres(path))
            options: dict[str, Any] = {}
            if lane == "rolling" and wanted.before:
                options["python"] = wanted.before
            if lane == "clock":
                options["clock"] = _wrong_clock(path, int(_skew(tally).split()[0]))
            installation = await stack.enter_async_context(
                open_installation(path / "nodes", postgres.url, **options)
            )
            now = None
            if "python" in options:
                now = stack.enter_context(Forks(path / "now.log", installation.shared))
            yield installation, postgres, now


def _wrong_clock(folder: Path, seconds: int) -> dict[str, str]:
    library, offset = folder / "clock.so", folder / "clock"
    words = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_CLOCK), "-ldl"]
    subprocess.run(words, check=True)
    offset.write_bytes(seconds.to_bytes(8, sys.byteorder, signed=True))
    return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(offset)}


def report(lane: str, tally: ServicesTally, wanted: WantedServices, report: lab.Report) -> None:
    report.table(
        f"Three services under load: {lane}",
        ["faults", "requests", "refused for now", "uncertain", "runs", "streams again", "slowest s"],
        [
            [
                ", ".join(f"{count} {kind}" for kind, count in tally.faults.items()),
                *(tally.requests, tally.refused, tally.uncertain, tally.runs, tally.streams_again),
                round(tally.slowest, 2),
            ]
        ],
    )
    if tally.refused_while:
        report.table(
            "Each node asked all the time: ready, and does it take a message?",
            ["PostgreSQL", "times", "refused", "slowest refusal s", "last refusal after it was back s"],
            [
                [kind, times, tally.refused_while[kind]]
                + [round(one[kind], 2) for one in (tally.slowest_refusal, tally.served_after)]
                for kind, times in tally.faults.items()
            ],
        )
    report.notes += tally.wrong[:20]
    promise = {
        "rolling": "no request fails, no run is lost, an approval from before continues after",
        "database": "a clear refusal meanwhile; nothing is lost, doubled or stuck",
        "clock": "no request fails, nothing is lost, doubled or stuck",
    }[lane]
    told = Counter(wrong.split(":")[-1][:60] for wrong in tally.wrong)
    report.verdict(
        f"{lane}: {promise}",
        f"{len(tally.wrong)} wrong{f' {dict(told.most_common(3))}' if told else ''}",
        met=not tally.wrong and not _is_wanted(lane, tally, wanted),
    )
