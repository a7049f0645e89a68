"""How a cluster behaves at sizes that do not fit on one machine: a discrete-event model with measured costs.

Runs arrive as a Poisson process, wait in one queue and are executed by nodes that have one core each: steps
of a model (waiting), calls of tools, and bursts of CPU; every write goes to one PostgreSQL. Nodes are killed
and come back; what they executed is taken over once they are silent. The two ends of a stream are on
different nodes more often the more nodes there are. The costs are what `cluster.py`, `runs.py` and `calls.py`
measured: change `Costs` when they do. `--check` plays the load of the three-node measurement, to be laid
beside its figures.
"""

import argparse
import heapq
import itertools
import random
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

import lab

SIZES = (3, 10, 50)


@dataclass(frozen=True, slots=True, kw_only=True)
class Costs:
    """Milliseconds and counts, of one machine's measurements (RESULTS.md)."""

    run_cpu: float = 42.2  # a run without calls, all three nodes together
    call_cpu: float = 7.4  # one more call of a tool by an agent, with its step of the model
    remote_call_cpu: float = 0.47  # both nodes together, when the server is held elsewhere
    home_call_cpu: float = 0.33  # a call without a run
    statements_per_run: float = 38.2
    statements_per_call: float = 1.1
    statement: float = 0.21  # of one of PostgreSQL's processors
    idle_statements: float = 0.56  # a second, of a node that does nothing
    follower_statements: float = 0.76  # a second, of a stream whose run is on another node
    word_cpu: float = 0.12  # a word that is pushed: to write it, and to pass it on
    life: float = 2000.0  # without a sign of life a node is gone
    silence: float = 3000.0  # since the last renewal, until its runs may be taken
    sweep: float = 500.0  # between two looks for such runs after a node went
    beats: float = 2.0  # a second and node, to every node
    nats_per_run: float = 5.0  # put, pull, deliver, acknowledge, thread bell


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    nodes: int
    runs_per_minute: float = 1000.0
    streams: int = 3000  # open at once; of those, as many as runs are at work hear words
    users: int = 10_000
    connectors: int = 500
    calls: float = 3.0  # mean of a run
    model: float = 2000.0  # milliseconds of one step of a model
    tool: float = 150.0  # of one call
    words: float = 30.0  # pieces of text that a run pushes
    changes: float = 0.2  # a second: settings, connectors, tools
    requests: float = 100.0  # a second: calls by REST and /mcp without a run
    kills_per_minute: float = 1.0
    back_after: float = 10_000.0
    seconds: float = 300.0
    databases: int = 8  # processors of PostgreSQL


@dataclass(slots=True)
class Server:
    """Takes one piece of work after another on each of `width` processors."""

    width: int = 1
    free_at: list[float] = field(default_factory=list[float])
    busy: float = 0.0

    def __post_init__(self) -> None:
        self.free_at = [0.0] * self.width

    def serve(self, now: float, cost: float) -> float:
        """When it is done."""
        done = max(now, heapq.heappop(self.free_at)) + cost
        heapq.heappush(self.free_at, done)
        self.busy += cost
        return done


@dataclass(slots=True, eq=False)
class Run:
    arrived: float
    steps: int
    began: float | None = None
    left_at: float | None = None  # when its node died


@dataclass(slots=True, eq=False)
class Node:
    core: Server = field(default_factory=Server)
    runs: set[Run] = field(default_factory=set[Run])
    life: int = 0  # how often it was started; what an older life began is void
    is_up: bool = True


class Cluster:
    """`figures` after `play` are what happened."""

    def __init__(self, load: Load, costs: Costs, seed: int = 1) -> None:
        self._load = load
        self._costs = costs
        self._chance = random.Random(seed)
        self._nodes = [Node() for _ in range(load.nodes)]
        self._database = Server(load.databases)
        self._events: list[tuple[float, int, Callable[[float], None]]] = []
        self._order = itertools.count()
        self._waiting: deque[Run] = deque()
        self.delays: list[float] = []
        self.takeovers: list[float] = []
        self.statement_waits: list[float] = []
        self.statements = self.published = self.delivered = 0.0
        self.done = 0

    def play(self) -> None:
        load = self._load
        self._at(self._gap(load.runs_per_minute / 60), self._arrive)
        self._at(self._gap(load.requests), self._request)
        if load.kills_per_minute:
            self._at(self._gap(load.kills_per_minute / 60), self._kill)
        for tick in range(int(load.seconds)):
            self._at(tick * 1000.0, self._second)
        while self._events:
            now, _, what = heapq.heappop(self._events)
            if now > load.seconds * 1000:
                return
            what(now)

    @property
    def core_use(self) -> float:
        """Of the busiest node."""
        return max(node.core.busy for node in self._nodes) / (self._load.seconds * 1000)

    @property
    def database_use(self) -> float:
        return self._database.busy / (self._load.seconds * 1000 * self._load.databases)

    def _at(self, when: float, what: Callable[[float], None]) -> None:
        heapq.heappush(self._events, (when, next(self._order), what))

    def _gap(self, per_second: float) -> float:
        return self._chance.expovariate(per_second) * 1000

    def _arrive(self, now: float) -> None:
        self._at(now + self._gap(self._load.runs_per_minute / 60), self._arrive)
        steps = 1 + int(self._chance.expovariate(1 / self._load.calls)) if self._load.calls else 1
        self._waiting.append(Run(now, steps))
        self._tell(self._costs.nats_per_run)
        self._hand_out(now)

    def _hand_out(self, now: float) -> None:
        """A waiting run goes to a node that asks for one: the busier it is, the later it asks."""
        up = [node for node in self._nodes if node.is_up]
        while self._waiting and up:
            run = self._waiting.popleft()
            node = min(up, key=lambda one: (max(now, one.core.free_at[0]), self._chance.random()))
            node.runs.add(run)
            claimed = self._write(now, self._costs.statements_per_run)
            self._at(claimed, self._begun(node, node.life, run))

    def _begun(self, node: Node, life: int, run: Run) -> Callable[[float], None]:
        def begun(now: float) -> None:
            if node.life != life:
                return
            begins = node.core.serve(now, self._costs.run_cpu)
            if run.left_at is not None:
                self.takeovers.append(begins - run.left_at)
                run.left_at = None
            elif run.began is None:
                self.delays.append(begins - run.arrived)
            run.began = begins
            self._at(begins, self._stepped(node, life, run))

        return begun

    def _stepped(self, node: Node, life: int, run: Run) -> Callable[[float], None]:
        """A step of the model with its words, then a call; the last step ends the run."""

        def stepped(now: float) -> None:
            if node.life != life:
                return
            if not run.steps:
                node.runs.discard(run)
                self.done += 1
                return
            run.steps -= 1
            load, costs = self._load, self._costs
            words = load.words / (1 + load.calls)
            is_far = self._chance.random() < 1 - 1 / load.nodes
            cost = costs.call_cpu + words * costs.word_cpu + (costs.remote_call_cpu if is_far else 0)
            waited = self._chance.expovariate(1 / load.model) + self._chance.expovariate(1 / load.tool)
            self._tell(words + (2 if is_far else 0))

            def answered(at: float) -> None:
                self._at(self._write(at, costs.statements_per_call), computed)

            def computed(at: float) -> None:
                if node.life == life:
                    self._at(node.core.serve(at, cost), self._stepped(node, life, run))

            self._at(now + waited, answered)

        return stepped

    def _request(self, now: float) -> None:
        """A call without a run: by any node, of a server that any node may hold."""
        self._at(now + self._gap(self._load.requests), self._request)
        node = self._chance.choice(self._nodes)
        is_far = self._chance.random() < 1 - 1 / self._load.nodes
        costs = self._costs
        node.core.serve(now, costs.home_call_cpu + (costs.remote_call_cpu if is_far else 0))
        self._tell(2 if is_far else 0)

    def _kill(self, now: float) -> None:
        self._at(now + self._gap(self._load.kills_per_minute / 60), self._kill)
        up = [node for node in self._nodes if node.is_up]
        if len(up) < 2:
            return
        node = self._chance.choice(up)
        left, node.runs, node.is_up = node.runs, set(), False
        node.life += 1
        node.core.free_at = [now]
        for run in left:
            run.left_at = now
        costs = self._costs
        # The last renewal was up to half a lease of silence ago; the sweep comes at any moment.
        found = max(costs.life, costs.silence - self._chance.uniform(0, costs.silence / 2))
        found += self._chance.uniform(0, costs.sweep)
        self._at(now + found, lambda at: self._taken(at, left))
        self._at(now + self._load.back_after, lambda _: self._back(node))

    def _taken(self, now: float, left: set[Run]) -> None:
        self._write(now, len([node for node in self._nodes if node.is_up]))  # each node looks
        self._waiting.extend(left)
        self._tell(self._costs.nats_per_run * len(left))
        self._hand_out(now)

    def _back(self, node: Node) -> None:
        node.is_up = True

    def _second(self, now: float) -> None:
        """What goes on all the time."""
        load, costs, nodes = self._load, self._costs, self._load.nodes
        self._tell(costs.beats * nodes, to=nodes)
        self._tell(load.changes, to=nodes)
        runs = sum(len(node.runs) for node in self._nodes)
        far = min(load.streams, runs) * (1 - 1 / nodes)
        statements = costs.idle_statements * nodes + costs.follower_statements * far + load.changes * nodes
        self._write(now, statements)
        for node in self._nodes:
            node.core.serve(now, 0.05 * costs.beats * nodes)  # to read the others' signs of life

    def _write(self, now: float, statements: float) -> float:
        """One after another by whoever writes: each waits for the database."""
        self.statements += statements
        done = self._database.serve(now, statements * self._costs.statement)
        self.statement_waits.append(done - now - statements * self._costs.statement)
        return done

    def _tell(self, messages: float, to: float = 1.0) -> None:
        self.published += messages
        self.delivered += messages * to


def played(load: Load, costs: Costs) -> Cluster:
    cluster = Cluster(load, costs)
    cluster.play()
    return cluster


def _row(load: Load, cluster: Cluster) -> list[object]:
    return [
        load.nodes,
        round(load.runs_per_minute),
        *(lab.percentile(cluster.delays, percent) for percent in (50, 99)),
        *(
            lab.percentile(cluster.takeovers, percent) / 1000 if cluster.takeovers else 0
            for percent in (50, 99)
        ),
        f"{cluster.core_use:.0%}",
        f"{cluster.database_use:.0%}",
        round(cluster.statements / load.seconds),
        round(cluster.published / load.seconds),
        round(cluster.delivered / load.seconds),
        cluster.done,
    ]


def _seconds(times: Sequence[float], percent: float) -> float:
    return lab.percentile(times, percent) / 1000 if times else 0.0


COLUMNS = (
    *("nodes", "runs a minute", "queued p50 ms", "p99 ms", "takeover p50 s", "p99 s", "busiest node"),
    *("database", "statements/s", "NATS in/s", "NATS out/s", "runs ended"),
)


def first_limit(load: Load, costs: Costs) -> tuple[str, float]:
    """What is full first when ever more runs come, and at how many a minute."""
    runs = load.runs_per_minute
    while True:
        cluster = played(replace(load, runs_per_minute=runs, seconds=60, kills_per_minute=0), costs)
        full = {
            "the nodes' processors": cluster.core_use,
            f"PostgreSQL's {load.databases} processors": cluster.database_use,
            "NATS (200,000 messages a second out)": cluster.delivered / 60 / 200_000,
        }
        name, use = max(full.items(), key=lambda item: item[1])
        if use >= 0.8:
            return name, runs
        runs *= max(1.05, min(2.0, 0.8 / use))


def measure(given: argparse.Namespace) -> lab.Report:
    report, costs = lab.Report("simulate_cluster"), Costs()
    seconds = 30.0 if given.quick else 300.0
    if given.check:
        load = Load(
            nodes=3, runs_per_minute=given.runs, streams=0, requests=1, kills_per_minute=6,
            seconds=seconds, databases=1, model=given.model,
        )  # fmt: skip
        report.table("The load of the three-node measurement", COLUMNS, [_row(load, played(load, costs))])
        return report
    loads = [Load(nodes=nodes, seconds=seconds) for nodes in SIZES]
    clusters = [played(load, costs) for load in loads]
    rows = [_row(load, cluster) for load, cluster in zip(loads, clusters, strict=True)]
    report.table("1,000 runs a minute, 10,000 users, 3,000 streams, a kill a minute", COLUMNS, rows)
    limits = [(nodes, first_limit(Load(nodes=nodes), costs)) for nodes in SIZES]
    report.table(
        "More and more runs: what is 80 % full first",
        ["nodes", "what", "at runs a minute"],
        [[nodes, what, round(runs)] for nodes, (what, runs) in limits],
    )
    worst = max(_seconds(cluster.takeovers, 99) for cluster in clusters)
    report.verdict("takeover p99 under 5 s at every size", f"{worst:.1f} s", met=worst < 5)
    return report


def main() -> None:
    parser = lab.parser(__doc__)
    parser.add_argument("--check", action="store_true", help="the load of the three-node measurement")
    parser.add_argument("--runs", type=float, default=60, help="runs a minute of it (default 60)")
    parser.add_argument("--model", type=float, default=200, help="milliseconds of its model (default 200)")
    given = parser.parse_args()
    measure(given).show(as_json=given.json)


if __name__ == "__main__":
    main()
