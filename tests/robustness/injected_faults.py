"""Faults under a service at work, and what must be true afterwards. For the suite and the bench.

A real `dragoman serve` with a server over HTTP (behind a relay that can cut and slow its connections) and one
over stdio, both of which write down each effect; a model over HTTP that has every run look, then send by each
of the two. While clients post messages and make calls, faults are injected; then everything heals, and every
run that was accepted must have come to an end, and no effect may have happened twice.
"""

import asyncio
import contextlib
import json
import os
import random
import resource
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp

from patience import patient
from servers.processes import HttpProcess, journal, stdio
from servers.scenarios import Call, Reply, Turn
from servers.scripted_models import open_scripted_openai

CLIENTS = 6
AT_ONCE = 2
"""Faults that may be there at the same time, each of something else."""
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
SETTLED_WITHIN = 60.0
"""Seconds after the last fault within which every run has come to its end."""
FAKETIME = Path("/usr/lib") / f"{os.uname().machine}-linux-gnu" / "faketime" / "libfaketime.so.1"
TOKEN = "drg_" + "f" * 43  # the service's own file of it may be on a disk that is full


@dataclass
class Tally:
    """What was done and what came of it; kept between two starts of the bench."""

    faults: Counter[str] = field(default_factory=Counter[str])
    runs: Counter[str] = field(default_factory=Counter[str])
    calls: Counter[str] = field(default_factory=Counter[str])
    effects: int = 0
    uncertain: int = 0
    doubled: list[str] = field(default_factory=list[str])
    missing: list[str] = field(default_factory=list[str])
    """Told as done, but never executed."""
    lost: list[str] = field(default_factory=list[str])
    stuck: list[str] = field(default_factory=list[str])
    slowest_recovery: float = 0.0
    restarts: int = 0
    """How often the service ended of what was done to it."""

    @property
    def wrong(self) -> list[str]:
        named = (
            ("doubled", self.doubled),
            ("missing", self.missing),
            ("lost", self.lost),
            ("stuck", self.stuck),
        )
        return [f"{word}: {one}" for word, ones in named for one in ones]

    def save(self, path: Path) -> None:
        fresh = path.with_name(path.name + ".new")
        fresh.write_text(json.dumps(vars(self)))
        fresh.replace(path)

    @classmethod
    def load(cls, path: Path) -> "Tally":
        if not path.exists():
            return cls()
        known: dict[str, Any] = json.loads(path.read_text())
        for name in ("faults", "runs", "calls"):
            known[name] = Counter(known[name])
        return cls(**known)


def script(turn: Turn) -> Reply:
    """`job NAME`: look, send over HTTP, send over stdio, say so. It goes on whatever it is told."""
    name = turn.user.split()[-1]
    steps = (
        Call("mcp_far_echo", {"text": name}),
        Call("mcp_far_send", {"text": f"{name} run-far"}),
        Call("mcp_near_send", {"text": f"{name} run-near"}),
    )
    if turn.number <= len(steps):
        return Reply(tool_calls=(steps[turn.number - 1],))
    return Reply(text=f"done {name}: {json.dumps([result.value for result in turn.recent])}")


class Relay:
    """A TCP relay to one port, whose connections can be cut, and slowed."""

    def __init__(self, target: Callable[[], int]) -> None:
        self._target = target
        self._writers: set[asyncio.StreamWriter] = set()
        self.delay = 0.0
        self.port = 0

    async def open(self, stack: AsyncExitStack) -> None:
        server = await asyncio.start_server(self._relay, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        stack.callback(self.cut)
        stack.callback(server.close)

    def cut(self) -> None:
        for writer in self._writers:
            writer.transport.abort()

    async def _relay(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            far_reader, far_writer = await asyncio.open_connection("127.0.0.1", self._target())
        except OSError:
            writer.transport.abort()
            return
        ends = {writer, far_writer}
        self._writers |= ends
        try:
            async with asyncio.TaskGroup() as ways:
                ways.create_task(self._pump(reader, far_writer))
                ways.create_task(self._pump(far_reader, writer))
        finally:
            self._writers -= ends
            for end in ends:
                end.transport.abort()

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with contextlib.suppress(OSError):
            while data := await reader.read(65536):
                await asyncio.sleep(self.delay)
                writer.write(data)
                await writer.drain()
        writer.transport.abort()


class Stage:
    """The service and all it works with, in a folder. `faults` are what can be done to it here."""

    def __init__(self, folder: Path, postgres: Any = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._postgres = postgres
        self._clock = folder / "clock"
        self._small_disk = False
        self._process: subprocess.Popen[bytes] | None = None
        self._stack = AsyncExitStack()
        self.service_lock = asyncio.Lock()
        self.ended_by_itself = 0
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.far = HttpProcess(folder, "--journal", str(folder / "far.journal"))
        self.relay = Relay(lambda: self.far.port)
        self._environment: dict[str, str] = {}
        self.faults: dict[str, Callable[[], Awaitable[None]]] = {
            "kill -9 of the HTTP server": self.kill_far,
            "kill -9 of the stdio server": self.kill_near,
            "kill -9 of the service": self.kill_service,
            "SIGSTOP of the HTTP server": self.stop_far,
            "SIGSTOP of the stdio server": self.stop_near,
            "SIGSTOP of the service": self.stop_service,
            "connections cut": self.cut_connections,
            "connections slowed": self.slow_connections,
            "full disk": self.fill_disk,
            "no file descriptors left": self.exhaust_descriptors,
        }
        if FAKETIME.exists():
            self.faults["clock jumps"] = self.jump_clock
        if postgres is not None:
            self.faults["PostgreSQL restarted"] = self.restart_postgres

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api"

    @property
    def disk(self) -> str:
        return "a small tmpfs, filled" if self._small_disk else "a file size limit of 0"

    async def open(self) -> None:
        self.home.mkdir(mode=0o700)
        self._small_disk = _mounted(self.home)
        if self._small_disk:
            self._stack.callback(subprocess.run, ["umount", "--lazy", str(self.home)], check=True)
        (self.home / "token").write_text(TOKEN)
        (self.home / "token").chmod(0o600)
        self._stack.enter_context(self.far)
        await self.relay.open(self._stack)
        model = await self._stack.enter_async_context(open_scripted_openai(script))
        self._clock.write_text("+0")
        database = {"DRAGOMAN_DATABASE_URL": self._postgres.get_uri()} if self._postgres else {}
        clock = {"LD_PRELOAD": str(FAKETIME), "FAKETIME_TIMESTAMP_FILE": str(self._clock)}
        clock |= {"FAKETIME_CACHE_DURATION": "1", "FAKETIME_DONT_FAKE_MONOTONIC": "1"}
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        self._environment = {
            **inherited,
            **(clock if FAKETIME.exists() else {}),
            **database,
            "DRAGOMAN_HOME": str(self.home),
            "DRAGOMAN_MODEL": "openai-chat:scripted",
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": model.base_url,
        }
        await self.start()
        self._stack.push_async_callback(self._end)
        near = stdio("--journal", str(self.folder / "near.journal"))
        # Short deadlines: what is under test is what comes after a fault, not how long one waits.
        quick = {"approval": "never", "request_timeout": patient(3), "health_interval": 1}
        async with self.client() as client:
            for facts in (
                {"name": "far", "url": f"http://127.0.0.1:{self.relay.port}/mcp"},
                {"name": "near", **near},
            ):
                async with client.post(f"{self.url}/connectors", json={**facts, **quick}) as response:
                    assert response.status < 300, await response.text()

    async def close(self) -> None:
        await self._stack.aclose()

    def client(self) -> aiohttp.ClientSession:
        return aiohttp.ClientSession(
            headers={"Authorization": f"Bearer {TOKEN}"}, timeout=aiohttp.ClientTimeout(total=patient(30))
        )

    async def start(self) -> None:
        with (self.folder / "service.log").open("ab") as log:
            command = [sys.executable, "-m", "dragoman", "serve", "--port", str(self._port)]
            self._process = subprocess.Popen(command, env=self._environment, stdout=log, stderr=log)
        await self.answers()

    async def supervise(self) -> None:
        """Starts the service again when it ends by itself, as systemd or Kubernetes would."""
        while True:
            async with self.service_lock:
                if self._process is not None and self._process.poll() is not None:
                    self.ended_by_itself += 1
                    await self.start()
            await asyncio.sleep(0.1)

    async def answers(self) -> None:
        """Waits until the service answers."""
        async with self.client() as client, asyncio.timeout(patient(SETTLED_WITHIN)):
            while True:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with client.get(f"{self.url}/connectors") as response:
                        if response.status == 200:
                            return
                assert self._process is not None
                if self._process.poll() is not None:
                    return  # at once again, or while it started: the supervisor's part
                await asyncio.sleep(0.05)

    async def _end(self) -> None:
        assert self._process is not None
        self._process.terminate()
        try:
            await asyncio.to_thread(self._process.wait, patient(15))
        finally:
            self._process.kill()

    # The faults. Each heals what it did before it ends.

    async def kill_far(self) -> None:
        await asyncio.to_thread(self.far.restart)

    async def kill_near(self) -> None:
        if pid := await self._near():
            os.kill(pid, signal.SIGKILL)

    async def kill_service(self) -> None:
        async with self.service_lock:
            assert self._process is not None
            self._process.kill()
            self._process.wait()
            await self.start()

    async def stop_far(self) -> None:
        await _stopped(self.far.pid, random.uniform(0.1, 1.5))

    async def stop_near(self) -> None:
        if pid := await self._near():
            await _stopped(pid, random.uniform(0.1, 1.5))

    async def stop_service(self) -> None:
        assert self._process is not None
        await _stopped(self._process.pid, random.uniform(0.1, 1.5))

    async def cut_connections(self) -> None:
        self.relay.cut()

    async def slow_connections(self) -> None:
        self.relay.delay = random.uniform(0.05, 0.5)
        await asyncio.sleep(0.5)
        self.relay.delay = 0.0

    async def fill_disk(self) -> None:
        assert self._process is not None
        if not self._small_disk:
            before = resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
            await asyncio.sleep(0.4)
            with contextlib.suppress(ProcessLookupError):
                resource.prlimit(self._process.pid, resource.RLIMIT_FSIZE, before)
            return
        filler = self.home / "filler"
        with contextlib.suppress(OSError), filler.open("wb", buffering=0) as file:
            while True:
                file.write(bytes(65536))
        await asyncio.sleep(0.4)
        filler.unlink()

    async def exhaust_descriptors(self) -> None:
        assert self._process is not None
        pid = self._process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), hard))
        await asyncio.sleep(0.4)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    async def jump_clock(self) -> None:
        self._clock.write_text(f"{random.choice((-1, 1)) * random.randint(1, 3600):+d}")
        await asyncio.sleep(1.1)  # the preload looks at its file once a second
        self._clock.write_text("+0")

    async def restart_postgres(self) -> None:
        await asyncio.to_thread(_restart, self._postgres)

    async def _near(self) -> int | None:
        """The stdio server's process, as the service tells it."""
        with contextlib.suppress(aiohttp.ClientError, TimeoutError, KeyError):
            async with self.client() as client, client.get(f"{self.url}/connectors/near") as response:
                return (await response.json())["status"]["pid"]
        return None


async def _stopped(pid: int, seconds: float) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGSTOP)
        try:
            await asyncio.sleep(seconds)
        finally:
            os.kill(pid, signal.SIGCONT)


def _restart(postgres: Any) -> None:
    # Without waiting for what is under way, as after a crash.
    pid = postgres.get_pid()
    os.kill(pid, signal.SIGQUIT)
    deadline = time.monotonic() + patient(20)
    while Path(f"/proc/{pid}").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    postgres.ensure_postgres_running()


def _mounted(home: Path) -> bool:
    """Whether a small file system of its own could be put there: that takes root."""
    if os.geteuid() or not shutil.which("mount"):
        return False
    words = ["mount", "-t", "tmpfs", "-o", "size=192m,mode=0700", "tmpfs", str(home)]
    return subprocess.run(words, capture_output=True).returncode == 0


class Workload:
    """Clients that post messages and make calls, and remember what they were promised."""

    def __init__(self, stage: Stage, name: str) -> None:
        self._stage = stage
        self.name = name
        self._number = 0
        self._is_over = False
        self.accepted: dict[str, str] = {}
        """The job by the run."""
        self.done: set[str] = set()
        """Calls with an effect that were told to have succeeded."""
        self.codes: Counter[str] = Counter()

    async def work(self) -> None:
        async with self._stage.client() as client, asyncio.TaskGroup() as clients:
            for number in range(CLIENTS):
                clients.create_task(self._visit(client, is_caller=number % 2 == 1))

    def end(self) -> None:
        self._is_over = True

    async def _visit(self, client: aiohttp.ClientSession, *, is_caller: bool) -> None:
        while not self._is_over:
            self._number += 1
            job = f"{self.name}-{self._number}"
            try:
                await (self._call if is_caller else self._post)(client, job)
            except (aiohttp.ClientError, TimeoutError, ValueError):
                self.codes["no answer"] += 1  # nothing was promised
                await asyncio.sleep(0.1)
            await asyncio.sleep(0.02 if is_caller else 0.3)

    async def _post(self, client: aiohttp.ClientSession, job: str) -> None:
        async with client.post(f"{self._stage.url}/messages", json={"text": f"job {job}"}) as response:
            body = await response.json()
            if response.status == 202:
                self.accepted[body["run"]["id"]] = job

    async def _call(self, client: aiohttp.ClientSession, job: str) -> None:
        where = random.choice(("far", "near"))
        text = f"{job} call-{where}"
        facts = {"tool": f"mcp_{where}_send", "arguments": {"text": text}}
        async with client.post(f"{self._stage.url}/call", json=facts) as response:
            body = await response.json()
        if body.get("ok"):
            self.done.add(text)
            self.codes["ok"] += 1
        else:
            self.codes[str((body.get("error") or {}).get("code") or response.status)] += 1


async def one_round(stage: Stage, tally: Tally, faults: int, name: str) -> None:
    """So many faults while clients are at work; then all is well again, and everything is looked at."""
    work = Workload(stage, name)
    started = asyncio.create_task(work.work())
    supervisor = asyncio.create_task(stage.supervise())
    kinds = list(stage.faults)
    # The dear ones are rarer: a service takes seconds to start again.
    weights = [0.3 if "service" in kind or "PostgreSQL" in kind else 1.0 for kind in kinds]
    # Every kind once, then by chance.
    chosen = iter([*kinds, *random.choices(kinds, weights, k=faults)][:faults])
    locks = {kind: asyncio.Lock() for kind in TARGETS}

    async def inject() -> None:
        for kind in chosen:
            async with locks[next(target for target in TARGETS if target in kind)]:
                with contextlib.suppress(ProcessLookupError, FileNotFoundError):
                    await stage.faults[kind]()
            tally.faults[kind] += 1
            await asyncio.sleep(random.uniform(0.1, 0.5))

    async with asyncio.TaskGroup() as injectors:
        for _ in range(AT_ONCE):
            injectors.create_task(inject())
    work.end()
    await started
    healed = time.monotonic()
    await stage.answers()
    ended = await _ended(stage, work)
    supervisor.cancel()
    tally.restarts += stage.ended_by_itself
    tally.slowest_recovery = max(tally.slowest_recovery, time.monotonic() - healed)
    _judge(stage, work, ended, tally)


async def _ended(stage: Stage, work: Workload) -> dict[str, dict[str, Any]]:
    """Every accepted run as it is in the end, or after all the time that it has."""
    found: dict[str, dict[str, Any]] = {}
    deadline = time.monotonic() + patient(SETTLED_WITHIN)
    async with stage.client() as client:
        left = set(work.accepted)
        while left:
            for run in sorted(left):
                async with client.get(f"{stage.url}/runs/{run}") as response:
                    found[run] = (
                        {"status": "lost"} if response.status == 404 else (await response.json())["run"]
                    )
                if found[run]["status"] in ("done", "failed", "cancelled", "lost"):
                    left.discard(run)
            if time.monotonic() > deadline:
                break
            await asyncio.sleep(0.1)
    return found


def _judge(stage: Stage, work: Workload, ended: dict[str, dict[str, Any]], tally: Tally) -> None:
    effects = Counter(
        line
        for name in ("far", "near")
        for line in journal(stage.folder / f"{name}.journal")
        if line.startswith(f"{work.name}-")
    )
    tally.effects += len(effects)
    tally.doubled += [text for text, times in effects.items() if times > 1]
    tally.missing += sorted(work.done - effects.keys())
    tally.calls += work.codes
    for run, job in work.accepted.items():
        status = ended[run]["status"]
        tally.runs[status] += 1
        if status == "lost":
            tally.lost.append(f"{job} ({run})")
        elif status not in ("done", "failed", "cancelled"):
            tally.stuck.append(f"{job} ({run}): {status}")
        answer = str(ended[run].get("answer") or "")
        tally.uncertain += answer.count("not known whether")
        if status == "done" and "not known whether" not in answer and "error" not in answer:
            tally.missing += [text for way in ("far", "near") if (text := f"{job} run-{way}") not in effects]


@asynccontextmanager
async def open_stage(folder: Path, postgres: Any = None) -> AsyncGenerator[Stage]:
    stage = Stage(folder, postgres)
    try:
        await stage.open()
        yield stage
    finally:
        await stage.close()
