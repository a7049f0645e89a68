"""Calls through several nodes while holders are killed and frozen and NATS is lost, with counted effects.

Used by a test of the suite in small, and by the bench in large. Every call that may not be repeated writes a
line of its own: what was made twice is seen.
"""

import asyncio
import random
import time
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from pathlib import Path
from typing import Any

import psutil

from cluster.call_nodes import CallNode
from cluster.nats_server import NatsServer
from dragoman.cluster.places import OVER_AFTER
from patience import patient, until
from servers.hubs import quick
from servers.processes import journal, stdio

READ, WRITE, WRITE_SLOWLY = "mcp_box_echo", "mcp_box_send", "mcp_box_sleep_send"
_LATE = 0.1  # most seconds from an effect to its answer: a kill finds calls that were made and not answered


@dataclass
class Tally:
    """What came of the calls. `sent` are the texts of calls that may not be repeated, by how they ended."""

    calls: int = 0
    failed_reads: list[str] = field(default_factory=list[str])
    sent: dict[str, list[str]] = field(default_factory=dict[str, list[str]])
    codes: Counter[str] = field(default_factory=Counter[str])
    with_their_node: int = 0
    waits: list[float] = field(default_factory=list[float])
    overlaps: list[str] = field(default_factory=list[str])

    def count_write(self, text: str, ended: str) -> None:
        self.sent.setdefault(ended, []).append(text)


class Trial:
    """Three nodes, one server with state, callers that go on until they are told to stop."""

    def __init__(self, folder: Path, nodes: list[CallNode], nats: NatsServer, seed: int) -> None:
        self.nodes = nodes
        self.nats = nats
        self.tally = Tally()
        self.folder = folder
        self.random = random.Random(seed)
        self.log = folder / "log"
        self.written = folder / "written"
        self._numbers = count(1)
        self._seed = seed
        self._stopped = asyncio.Event()

    async def prepare(self, answer_after: float) -> None:
        for node in self.nodes:
            await until(lambda node=node: _knows(node, len(self.nodes)), 20)
        files = ("--log", str(self.log), "--journal", str(self.written), "--label", str(self.folder))
        server = stdio(*files, "--answer-after", str(answer_after))
        facts = quick(**server, request_timeout=patient(30), connect_timeout=patient(10), isolation="shared")
        await self.nodes[0].do("add", "box", facts)
        for node in self.nodes:
            await until(lambda node=node: _has_tools(node), 20)

    async def holder(self) -> CallNode | None:
        """The living node that holds the server now."""
        for node in self.nodes:
            if node.lives:
                places = await node.do("places") or {}
                held = {*places.values()}
                return next((one for one in self.nodes if one.lives and one.id in held), None)
        return None

    # Calls

    async def call_on(self, callers: int, limit: int | None = None) -> None:
        """Calls until `stop`, or until there were so many."""
        async with asyncio.TaskGroup() as tasks:
            for _ in range(callers):
                tasks.create_task(self._calls(limit))

    def stop(self) -> None:
        self._stopped.set()

    async def _calls(self, limit: int | None) -> None:
        while not self._stopped.is_set() and (limit is None or self.tally.calls < limit):
            self.tally.calls += 1
            number = next(self._numbers)
            if number % 3:
                await self._read(number)
            else:
                await self._write(f"{self._seed}-{number}")

    def _any_node(self) -> CallNode:
        return self.random.choice([one for one in self.nodes if one.lives])

    async def _read(self, number: int) -> None:
        """What dies with the node that was asked is asked of another, as a load balancer does."""
        while True:
            began = time.monotonic()
            answer = await self._any_node().call(READ, {"text": str(number)})
            if answer is None:
                self.tally.with_their_node += 1
                continue
            self.tally.waits.append(time.monotonic() - began)
            if not answer["ok"]:
                self.tally.failed_reads.append(f"{number}: {answer['code']}: {answer['message']}")
            return

    async def _write(self, text: str) -> None:
        answer = await self._any_node().call(WRITE, {"text": text})
        ended = "with its node" if answer is None else "done" if answer["ok"] else str(answer["code"])
        self.tally.codes[ended] += 1
        self.tally.count_write(text, ended)

    # Faults

    async def kill_holder(self) -> float:
        """Seconds until a call that began after the kill was answered."""
        holder = await self.found_holder()
        await holder.kill()
        began = time.monotonic()
        await self._read(0)
        took = time.monotonic() - began
        await holder.start()
        return took

    async def stop_holder(self) -> float:
        """As a deploy does. Seconds until a call that began meanwhile was answered elsewhere."""
        holder = await self.found_holder()
        stopping = asyncio.create_task(holder.stop())
        began = time.monotonic()
        other = next(one for one in self.nodes if one is not holder)
        answer = await other.call(READ, {"text": "stopping"})
        took = time.monotonic() - began
        if answer is None or not answer["ok"]:
            self.tally.failed_reads.append(f"stopping: {answer}")
        await stopping
        await holder.start()
        return took

    async def freeze_holder(self) -> float:
        """Frozen for longer than its lease, while others go on; then it goes on as well."""
        holder = await self.found_holder()
        holder.freeze()
        began = time.monotonic()
        others = [one for one in self.nodes if one is not holder and one.lives]
        answer = await self.random.choice(others).call(READ, {"text": "frozen"})
        took = time.monotonic() - began
        if answer is None or not answer["ok"]:
            self.tally.failed_reads.append(f"frozen: {answer}")
        await asyncio.sleep(max(0.0, OVER_AFTER + 0.4 - (time.monotonic() - began)))
        holder.thaw()
        return took

    async def lose_nats(self, seconds: float) -> None:
        self.nats.kill()
        await asyncio.sleep(seconds)
        await self.nats.start()

    async def found_holder(self) -> CallNode:
        found: CallNode | None = None

        async def is_found() -> bool:
            nonlocal found
            found = await self.holder()
            return found is not None

        await until(is_found, 20)
        assert found is not None
        return found

    # What must hold

    async def watch_processes(self) -> None:
        """Two servers of one identity at the same time are told."""
        while True:
            await asyncio.sleep(0.05)
            running = await asyncio.to_thread(self._servers)
            if len(running) > 1:
                again = await asyncio.to_thread(self._servers)
                if len({*running} & {*again}) > 1:
                    self.tally.overlaps.append(f"{sorted({*running} & {*again})}")

    def _servers(self) -> list[int]:
        found: list[int] = []
        for process in psutil.process_iter():
            try:
                words = process.cmdline()
                if str(self.folder) in words and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process.pid)
            except psutil.Error:
                continue
        return found

    def faults(self) -> list[str]:
        """What went wrong; nothing is how it must be."""
        tally, lines = self.tally, Counter(journal(self.written))
        told = [f"a read failed: {one}" for one in tally.failed_reads]
        told += [f"{text} was made {times} times" for text, times in lines.items() if times > 1]
        told += [
            f"{text} was done and is not there" for text in tally.sent.get("done", []) if not lines[text]
        ]
        for ended, texts in tally.sent.items():
            if ended not in ("done", "uncertain", "with its node"):
                told += [f"{text} ended as {ended} and was made" for text in texts if lines[text]]
                told += [f"{text} ended as {ended}" for text in texts]
        told += [f"two servers at once: {pids}" for pids in tally.overlaps]
        return told


async def _knows(node: CallNode, others: int) -> bool:
    return await node.do("knows") == others


async def _has_tools(node: CallNode) -> bool:
    return bool(await node.do("tools", "box"))


@asynccontextmanager
async def open_trial(
    folder: Path, database: str, seed: int = 1, nodes: int = 3, answer_after: float = _LATE
) -> AsyncGenerator[Trial]:
    async with NatsServer(folder / "nats") as nats:
        made = [CallNode(folder / f"node{number}", database, nats.url) for number in range(nodes)]
        try:
            for node in made:
                await node.start()
            trial = Trial(folder, made, nats, seed)
            await trial.prepare(answer_after)
            yield trial
        finally:
            for node in made:
                if node.lives:
                    node.thaw()
                await node.kill()


def summary(trial: Trial) -> dict[str, Any]:
    tally = trial.tally
    return {
        "calls": tally.calls,
        "writes": dict(tally.codes),
        "went with their node": tally.with_their_node,
        "slowest read, s": round(max(tally.waits, default=0.0), 2),
    }
