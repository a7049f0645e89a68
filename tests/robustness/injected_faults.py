"""Faults under a service at work, and what must be true afterwards. For the suite and the bench.

While clients post messages, follow their runs and make calls, faults are injected, several at a time; then
everything heals, and every run that was accepted must come to an end, and no effect may have happened twice.
"""

import asyncio
import contextlib
import itertools
import json
import os
import random
import time
from collections import Counter, deque
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import aiohttp
from faulty_service import SETTLED_WITHIN, FaultyService, NothingToHit

from patience import patient
from servers.processes import journal

POSTERS = 4
CALLERS = 2
AT_ONCE = 4
"""Faults that may be there at the same time, each of something else."""
LOOKAHEAD = 12
"""Among so many of the next faults the first is chosen whose target is left alone at this moment."""
RECOVERY = 1.0
"""Seconds after which the same is hit again at the latest, though it has not worked again in between."""
SHARES = {
    "connections cut": 2240,
    "kill -9 of the HTTP server": 1400,
    "kill -9 of the stdio server": 1500,
    "SIGSTOP of the HTTP server": 1200,
    "SIGSTOP of the stdio server": 1300,
    "connections slowed": 500,
    "SIGSTOP of the service": 500,
    "kill -9 of the service": 500,
    "full disk": 250,
    "no file descriptors left": 250,
    "clock jumps": 300,
    "PostgreSQL restarted": 60,
}
"""How many of ten thousand are of each kind."""
TARGETS = (
    "HTTP server",
    "stdio server",
    "service",
    "connections",
    "disk",
    "descriptors",
    "clock",
    "PostgreSQL",
)
CONNECTOR_OF = {"HTTP server": "far", "connections": "far", "stdio server": "near"}
"""By what is hit: whose calls tell that it works again. Of anything else those of both do."""
FOLLOWED = 45.0
"""Seconds after which a client posts its next message, though its run has not come to its end."""
ENDS = ("done", "failed", "cancelled", "lost")


def target_of(kind: str) -> str:
    return next(target for target in TARGETS if target in kind)


@dataclass
class KindTally:
    """What one kind of fault met and did; what went wrong counts for every kind that was there meanwhile."""

    faults: int = 0
    runs: int = 0
    """Under way when it was injected: the sum over its faults."""
    calls: int = 0
    others: int = 0
    """Faults of other kinds that were there when it was injected."""
    wrong: Counter[str] = field(default_factory=Counter[str])
    longest_recovery: float = 0.0
    """Seconds from its end to the next success of a call begun after it, whatever was injected meanwhile."""

    @property
    def means(self) -> list[float]:
        return [round(total / max(self.faults, 1), 1) for total in (self.runs, self.calls, self.others)]


@dataclass
class Tally:
    """What was done and what came of it; kept between two starts of the bench."""

    version: str = ""
    """Of the code; what was counted is told apart by it."""
    rounds: int = 0
    seconds: float = 0.0
    kinds: dict[str, KindTally] = field(default_factory=dict[str, KindTally])
    versions: dict[str, Counter[str]] = field(default_factory=dict[str, Counter[str]])
    runs: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    effects: int = 0
    uncertain: int = 0
    wrong: list[str] = field(default_factory=list[str])
    slowest_end: float = 0.0
    """Seconds from the last fault of a round to the end of its last run."""
    restarts: int = 0
    """How often the service ended of what was done to it."""

    @property
    def faults(self) -> int:
        return sum(kind.faults for kind in self.kinds.values())

    def kind(self, name: str) -> KindTally:
        return self.kinds.setdefault(name, KindTally())

    def count(self, **numbers: int) -> None:
        """For the version that is at work."""
        self.versions.setdefault(self.version, Counter()).update(numbers)

    def complain(self, word: str, what: str, kinds: set[str]) -> None:
        self.wrong.append(f"{word}: {what}")
        self.count(**{word: 1})
        for kind in kinds:
            self.kind(kind).wrong[word] += 1

    def save(self, path: Path) -> None:
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps(vars(self), default=vars, indent=1))
        fresh.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Tally":
        if not path.exists():
            return cls()
        known: dict[str, Any] = json.loads(path.read_text())
        for name in ("runs", "calls"):
            known[name] = Counter(known[name])
        known["versions"] = {name: Counter(numbers) for name, numbers in known["versions"].items()}
        known["kinds"] = {
            name: replace(KindTally(**facts), wrong=Counter(facts["wrong"]))
            for name, facts in known["kinds"].items()
        }
        return cls(**known)


def plan(kinds: list[str], tally: Tally, faults: int) -> list[str]:
    """Every kind once, then always the one that is furthest below its share; in any order."""
    counts = Counter({kind: tally.kind(kind).faults for kind in kinds})
    chosen: list[str] = []
    total = tally.faults
    for number in range(faults):
        behind = kinds[number : number + 1] or [
            max(kinds, key=lambda kind: SHARES[kind] / 10_000 * (total + 1) - counts[kind])
        ]
        chosen += behind
        counts.update(behind)
        total += 1
    random.shuffle(chosen)
    return chosen


@dataclass
class Job:
    """What a client asked for: how long it was under way."""

    began: float
    ended: float | None = None


@dataclass
class Fault:
    kind: str
    began: float
    ended: float


class Workload:
    """Clients that post messages, follow their runs and make calls, and remember what they were promised."""

    def __init__(self, service: FaultyService, name: str, tally: Tally) -> None:
        self._service = service
        self._tally = tally
        self.faults: list[Fault] = []
        self._recovering: list[Fault] = []
        self.name = name
        self._is_over = False
        self.jobs: dict[str, Job] = {}
        self.accepted: dict[str, str] = {}
        """The job by the run."""
        self.done: set[str] = set()
        """Calls with an effect that were told to have succeeded."""
        self.codes: Counter[str] = Counter()
        self.runs_under_way = 0
        self.calls_under_way = 0

    async def work(self) -> None:
        async with self._service.client() as client, asyncio.TaskGroup() as clients:
            for number in range(POSTERS + CALLERS):
                clients.create_task(self._visit(client, is_caller=number >= POSTERS))

    def end(self) -> None:
        self._is_over = True

    async def _visit(self, client: aiohttp.ClientSession, *, is_caller: bool) -> None:
        while not self._is_over:
            name = f"{self.name}-{len(self.jobs)}"
            self.jobs[name] = job = Job(time.monotonic())
            try:
                await (self._call if is_caller else self._post)(client, name, job)
            except (aiohttp.ClientError, TimeoutError, ValueError):
                self.codes["no answer"] += 1  # nothing was promised
                await asyncio.sleep(0.1)
            job.ended = time.monotonic()
            await asyncio.sleep(random.uniform(0, 0.1))

    async def _post(self, client: aiohttp.ClientSession, name: str, job: Job) -> None:
        async with client.post(f"{self._service.url}/messages", json={"text": f"job {name}"}) as response:
            body = await response.json()
        if response.status != 202:
            return
        run = body["run"]["id"]
        self.accepted[run] = name
        self.runs_under_way += 1
        try:
            while not self._is_over and time.monotonic() < job.began + patient(FOLLOWED):
                await asyncio.sleep(0.4)
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
                    if (await self.look(client, run)).get("status") in ENDS:
                        return
        finally:
            self.runs_under_way -= 1

    async def look(self, client: aiohttp.ClientSession, run: str) -> dict[str, Any]:
        async with client.get(f"{self._service.url}/runs/{run}") as response:
            return {"status": "lost"} if response.status == 404 else (await response.json()).get("run", {})

    async def _call(self, client: aiohttp.ClientSession, name: str, job: Job) -> None:
        where = random.choice(("far", "near"))
        text = f"{name} call-{where}"
        facts = {"tool": f"mcp_{where}_send", "arguments": {"text": text}}
        self.calls_under_way += 1
        try:
            async with client.post(f"{self._service.url}/call", json=facts) as response:
                body = await response.json()
        finally:
            self.calls_under_way -= 1
        if body.get("ok"):
            self.done.add(text)
            self.codes["ok"] += 1
            self._works(where, job)
        else:
            await asyncio.sleep(0.2)
            self.codes[str((body.get("error") or {}).get("code") or response.status)] += 1

    def _works(self, connector: str, job: Job) -> None:
        """Whatever was over when this call began, it has recovered of."""
        for fault in list(self._recovering):
            where = CONNECTOR_OF.get(target_of(fault.kind), connector)
            if fault.ended <= job.began and where == connector:
                self._recovering.remove(fault)
                kind = self._tally.kind(fault.kind)
                kind.longest_recovery = max(kind.longest_recovery, time.monotonic() - fault.ended)

    async def recovered(self, fault: Fault) -> None:
        while fault in self._recovering:
            await asyncio.sleep(0.02)

    def heal(self, fault: Fault) -> None:
        self.faults.append(fault)
        self._recovering.append(fault)

    def meanwhile(self, text: str) -> set[str]:
        """The kinds of faults that were there while this was under way."""
        job = self.jobs[text.split()[0]]
        until = job.ended or time.monotonic()
        return {fault.kind for fault in self.faults if fault.began <= until and fault.ended >= job.began}


class Injection:
    """Injects what is planned, several at a time, each of something else, while the service is up."""

    def __init__(self, service: FaultyService, work: Workload, tally: Tally, chosen: list[str]) -> None:
        self._service = service
        self._work = work
        self._tally = tally
        self._left = deque(chosen)
        self._busy: set[str] = set()
        self._present = 0

    async def inject_all(self) -> None:
        async with asyncio.TaskGroup() as tasks:
            for _ in range(AT_ONCE):
                tasks.create_task(self._lane(tasks))

    async def _lane(self, tasks: asyncio.TaskGroup) -> None:
        while self._left:
            near = itertools.islice(self._left, LOOKAHEAD)
            kind = next((kind for kind in near if target_of(kind) not in self._busy), None)
            if kind is None:
                await asyncio.sleep(0.02)
                continue
            self._left.remove(kind)
            self._busy.add(target_of(kind))
            fault = await self._inject(kind)
            tasks.create_task(self._recover(target_of(kind), fault))

    async def _recover(self, target: str, fault: Fault | None) -> None:
        """The same is hit again when it has worked again, or has had a moment to."""
        if fault is not None:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(random.uniform(0.2, RECOVERY)):
                    await self._work.recovered(fault)
        self._busy.discard(target)

    async def _inject(self, kind: str) -> Fault | None:
        """Waits for what it is for: a fault that hits nothing does not count."""
        work, found = self._work, self._tally.kind(kind)
        deadline = time.monotonic() + patient(SETTLED_WITHIN)
        while True:
            await self._service.is_up.wait()
            began = time.monotonic()
            facts = (work.runs_under_way, work.calls_under_way, self._present)
            self._present += 1
            try:
                await self._service.faults[kind]()
            except (NothingToHit, ProcessLookupError, FileNotFoundError) as error:
                if time.monotonic() > deadline:
                    self._tally.complain("stuck", f"{work.name}: {kind}: {error} did not come back", {kind})
                    return None
                await asyncio.sleep(0.05)
                continue
            finally:
                self._present -= 1
            fault = Fault(kind, began, time.monotonic())
            work.heal(fault)
            found.faults += 1
            found.runs += facts[0]
            found.calls += facts[1]
            found.others += facts[2]
            return fault


async def one_round(service: FaultyService, tally: Tally, faults: int, name: str) -> None:
    """So many faults while clients are at work; then all is well again, and everything is looked at."""
    began = time.monotonic()
    work = Workload(service, name, tally)
    started = asyncio.create_task(work.work())
    supervisor = asyncio.create_task(service.supervise())
    before, restarts = tally.faults, service.ended_by_itself
    await Injection(service, work, tally, plan(list(service.faults), tally, faults)).inject_all()
    healed = time.monotonic()
    work.end()
    await started
    ended = await _ended(service, work, healed)
    supervisor.cancel()
    tally.restarts += service.ended_by_itself - restarts
    tally.slowest_end = max(tally.slowest_end, time.monotonic() - healed)
    _judge(service, work, ended, tally)
    tally.count(faults=tally.faults - before, runs=len(work.accepted), calls=work.codes.total())
    tally.rounds += 1
    tally.seconds += time.monotonic() - began


class Starvation:
    """How long those at work have waited for a processor since this was made."""

    def __init__(self, service: FaultyService) -> None:
        self._service = service
        self._waited: dict[int, tuple[float, float]] = {}
        self.seconds()

    def seconds(self) -> float:
        for pid in (os.getpid(), self._service.pid):
            if pid:
                now = _waited(pid)
                first, _ = self._waited.get(pid, (now, now))
                self._waited[pid] = (first, max(first, now))
        return sum(last - first for first, last in self._waited.values())


def _waited(pid: int) -> float:
    """Seconds that a process was ready to run and did not."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9
    except OSError:
        return 0.0


async def _ended(service: FaultyService, work: Workload, healed: float) -> dict[str, dict[str, Any]]:
    """Every accepted run as it is in the end, or after all the time that it has.

    What a busy machine did not give us is no part of that time: seconds in which the service, or we, who are
    its model, waited for a processor.
    """
    found: dict[str, dict[str, Any]] = {run: {"status": "unknown"} for run in work.accepted}
    async with service.client() as client:
        left = set(work.accepted)
        starved = Starvation(service)
        while left and time.monotonic() - healed - starved.seconds() < patient(SETTLED_WITHIN):
            for run in sorted(left):
                with contextlib.suppress(aiohttp.ClientError, TimeoutError, ValueError):
                    found[run] = {"status": "unknown", **await work.look(client, run)}
                if found[run]["status"] in ENDS:
                    left.discard(run)
            await asyncio.sleep(0.1)
    return found


def _judge(service: FaultyService, work: Workload, ended: dict[str, dict[str, Any]], tally: Tally) -> None:
    effects = Counter(
        line
        for name in ("far", "near")
        for line in journal(service.folder / f"{name}.journal")
        if line.startswith(f"{work.name}-")
    )
    tally.effects += len(effects)
    tally.calls += work.codes
    while service.complaints:
        tally.complain("stuck", service.complaints.pop(), set())
    for text, times in effects.items():
        if times > 1:
            tally.complain("doubled", f"{text}: {times} times", work.meanwhile(text))
    for text in sorted(work.done - effects.keys()):
        tally.complain("missing", text, work.meanwhile(text))
    for run, job in work.accepted.items():
        status = ended[run]["status"]
        tally.runs[status] += 1
        if status == "lost":
            tally.complain("lost", f"{job} ({run})", work.meanwhile(job))
        elif status not in ENDS:
            tally.complain("stuck", f"{job} ({run}): {status}, {ended[run]}", work.meanwhile(job))
        answer = str(ended[run].get("answer") or "")
        tally.uncertain += answer.count("not known whether")
        if status == "done" and "not known whether" not in answer and "error" not in answer:
            for text in (f"{job} run-far", f"{job} run-near"):
                if text not in effects:
                    tally.complain("missing", text, work.meanwhile(job))
