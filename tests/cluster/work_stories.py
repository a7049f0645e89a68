"""Runs whose node is killed, frozen or told to stop, and what must be true afterwards. For suite and bench.

A doors-only node in this process says yes to what is asked and looks; workers are forks of `work_program`.
"""

import asyncio
import json
import os
import signal
import sys
import time
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from typing import Any

from cluster.nodes import KEY
from dragoman import Hub
from dragoman.errors import DragomanError
from dragoman.run import Run
from dragoman.settings import Settings
from patience import deadline, until
from runs.killing import check, executed
from servers.processes import HttpProcess

PROGRAM = Path(__file__).parent / "work_program.py"
QUICK = "say hello"


@dataclass(frozen=True)
class Outcome:
    """`takeover`: seconds from the halt until another node held the run; None where it ended before."""

    halted: bool
    takeover: float | None


class WorkerNode:
    """A node that executes runs."""

    def __init__(self, folder: Path, pid: int) -> None:
        self.folder = folder
        self.pid = pid

    def read(self, name: str) -> str:
        path = self.folder / name
        return path.read_text() if path.exists() else ""

    @property
    def state(self) -> str:
        """As the kernel has it: T is frozen; empty when it is gone."""
        try:
            return Path(f"/proc/{self.pid}/stat").read_text().rpartition(")")[2].split()[0]
        except (OSError, IndexError):
            return ""

    def signal(self, number: signal.Signals) -> None:
        if self.state:
            os.kill(self.pid, number)


class Cluster:
    """Where stories happen: `settings` name database and NATS."""

    def __init__(self, folder: Path, hub: Hub, program: Process, settings: dict[str, Any]) -> None:
        self.folder = folder
        self.hub = hub
        self.settings = settings
        self._program = program
        self._numbers = count(1)
        self._turn = asyncio.Lock()
        self._nodes: list[WorkerNode] = []

    async def order(self, folder: Path, **order: Any) -> dict[str, Any]:
        assert self._program.stdin is not None
        assert self._program.stdout is not None
        words = {"folder": str(folder), **order, "settings": {**self.settings, **order.get("settings", {})}}
        async with self._turn:
            self._program.stdin.write(json.dumps(words).encode() + b"\n")
            return json.loads(await self._program.stdout.readline())

    async def start(self, **order: Any) -> WorkerNode:
        """A node at work; with other `settings`, where they are given."""
        folder = self.folder / f"worker{next(self._numbers)}"
        node = WorkerNode(folder, (await self.order(folder, **order))["pid"])
        self._nodes.append(node)
        await until(lambda: bool(node.read("ready")) or not node.state, within=60)
        assert node.read("ready"), node.read("log")
        return node

    def end(self) -> None:
        for node in self._nodes:
            node.signal(signal.SIGKILL)

    async def say_yes(self) -> None:
        while True:
            with suppress(DragomanError):  # the database is away
                for question in await self.hub.approvals.list():
                    with suppress(DragomanError):  # answered already
                        await self.hub.approvals.answer(question.approval.id, "once")
            await asyncio.sleep(0.05)

    async def posted(self, node: WorkerNode) -> Run:
        """The run of a node that was started with a message, which it posts now."""
        (node.folder / "go").touch()
        await until(lambda: bool(node.read("posted")), within=20)
        return await self.hub.runs.get(node.read("posted"))

    async def finished(self, run: Run, within: float = 60) -> Run:
        async with deadline(within):
            while not (found := await self.hub.runs.get(run.id)).is_finished:
                await asyncio.sleep(0.02)
        return found

    async def story(
        self, halt_at: int, moment: str, word: str = "SIGKILL", before: Callable[[], None] = lambda: None
    ) -> Outcome:
        """A node begins a run and is halted at a write of its journal; another ends it, and then what was
        posted in the same thread meanwhile. All is checked. `before` is done once the node is at work.
        """
        ledger = f"{word}-{moment}{halt_at}-{next(self._numbers)}"
        victim = await self.start(halt_at=halt_at, moment=moment, signal=word, message=f"do it on {ledger}")
        before()
        run = await self.posted(victim)
        later = (await self.hub.messages.post(QUICK, thread=run.thread)).run
        takeover = await self._taken_over(run, victim, word)
        run, later = await self.finished(run), await self.finished(later)
        is_halted = self._is_halted(victim, word)
        if word == "SIGSTOP" and is_halted:
            victim.signal(signal.SIGCONT)
            await until(lambda: "no longer held here" in victim.read("log"), within=15)
        # Awake again it may take the run of another story.
        wrote = [
            line for line in victim.read("wrote_after").splitlines() if run.id in line or later.id in line
        ]
        victim.signal(signal.SIGTERM)
        assert not wrote, (ledger, "written after the fence", wrote)
        result = await self._result(run)
        if word == "SIGSTOP":
            # One that was frozen while it asked may ask when it wakes up; nobody uses the answer.
            result["approvals"] = [one for one in result["approvals"] if one[1] == "used"]
        check(result, executed(self.folder, ledger, "began"), ledger)
        assert run.finished_at is not None
        assert later.started_at is not None
        assert later.status == "done"
        assert run.finished_at <= later.started_at, "two runs of a thread at once"
        await until(lambda: not victim.state, within=15)
        return Outcome(is_halted, takeover)

    async def _taken_over(self, run: Run, victim: WorkerNode, word: str) -> float | None:
        own = victim.read("ready")
        async with deadline(60):
            while not (found := await self.hub.runs.get(run.id)).is_finished:
                if self._is_halted(victim, word) and found.worker not in (None, own):
                    return time.time() - float(victim.read("halted"))
                await asyncio.sleep(0.02)
        return None

    async def job(self, name: str) -> None:
        """One run that is posted here and ends wherever it does; it is checked."""
        run = (await self.hub.messages.post(f"do it on {name}")).run
        run = await self.finished(run, within=240)
        check(await self._result(run), executed(self.folder, name, "began"), name)

    @staticmethod
    def _is_halted(victim: WorkerNode, word: str) -> bool:
        return bool(victim.read("halted")) and victim.state == ("" if word == "SIGKILL" else "T")

    async def _result(self, run: Run) -> dict[str, Any]:
        """As `runs.killing.check` reads it: the messages of this run alone."""
        view = await self.hub.runs.view(run.id)
        approvals = [one.approval for one in await self.hub.approvals.list(None, limit=1000)]
        messages = [one for one in await self.hub.messages.list(run.thread) if one.run == run.id]
        return {
            "status": run.status,
            "error": run.error.facts() if run.error else None,
            "answer": run.answer,
            "events": [[event.number, event.kind] for event in view.events],
            "steps": [[step.kind, step.key] for step in view.steps],
            "messages": [[one.author, one.text] for one in messages],
            "approvals": [[one.id, one.status] for one in approvals if one.binding.thread == run.thread],
        }


@asynccontextmanager
async def open_cluster(folder: Path, database_url: str, nats_url: str) -> AsyncGenerator[Cluster]:
    """Without a node that works."""
    settings: dict[str, Any] = {"database_url": database_url, "key": KEY}
    program = await asyncio.create_subprocess_exec(sys.executable, str(PROGRAM), stdin=PIPE, stdout=PIPE)
    with HttpProcess(folder, "--folder", str(folder), program="ledger_server.py") as server:
        try:
            doors = Settings(home=folder / "doors", roles=("doors",), cluster_url=(nats_url,), **settings)
            preparing = Cluster(folder, Hub(doors), program, settings)
            assert await preparing.order(folder / "prepare", prepare=server.url) == {"ended": 0}
            async with Hub(doors) as hub:
                cluster = Cluster(folder, hub, program, {**settings, "cluster_url": [nats_url]})
                yes = asyncio.ensure_future(cluster.say_yes())
                try:
                    yield cluster
                finally:
                    cluster.end()
                    yes.cancel()
                    await asyncio.wait([yes])
        finally:
            program.kill()
            await program.wait()
