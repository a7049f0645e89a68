"""A service at work in a folder, and all that can be done to it. For the suite and the bench.

A real `dragoman serve` with a server over HTTP (behind a relay that can cut and slow its connections) and one
over stdio, both of which write down each effect; a model over HTTP that has every run look, then send by each
of the two. Each fault heals what it did before it ends.
"""

import asyncio
import contextlib
import json
import os
import random
import resource
import select
import shutil
import signal
import socket
import subprocess
import sys
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp

from patience import patient
from servers.processes import HttpProcess, stdio
from servers.scenarios import Call, Reply, Turn
from servers.scripted_models import open_scripted_openai

SETTLED_WITHIN = 60.0
"""Seconds after the last fault within which every run has come to its end."""
REQUEST_TIMEOUT = 2.0
"""Seconds that a call waits for a server. Short: what is under test is what comes after a fault."""
TOKEN = "drg_" + "f" * 43  # the service's own file of it may be on a disk that is full
ANSWER_AFTER = 0.3
"""Most seconds from an effect to its answer: faults come in between."""
DISK = 192 * 1024 * 1024
_HERE = Path(__file__).parent


class NothingToHit(Exception):
    """What a fault is for is not there at this moment: the fault was not injected."""


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

    def cut(self) -> int:
        for writer in self._writers:
            writer.transport.abort()
        return len(self._writers)

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


class ServiceProcess:
    """One `dragoman serve`, by its process descriptor: a signal never hits another with the same id."""

    def __init__(self, pid: int) -> None:
        self.pid = pid
        self._descriptor: int | None = os.pidfd_open(pid)

    @property
    def is_alive(self) -> bool:
        return self._descriptor is not None and not select.select([self._descriptor], [], [], 0)[0]

    def signal(self, number: int) -> None:
        if self._descriptor is not None:
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(self._descriptor, number)

    async def gone(self, within: float) -> None:
        async with asyncio.timeout(patient(within)):
            while self.is_alive:
                await asyncio.sleep(0.005)
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None

    def child(self, program: str) -> int:
        """A process that it started, by a word of its command."""
        with contextlib.suppress(OSError):
            for thread in Path(f"/proc/{self.pid}/task").iterdir():
                for child in (thread / "children").read_text().split():
                    if program.encode() in Path(f"/proc/{child}/cmdline").read_bytes():
                        return int(child)
        raise NothingToHit(program)


class FaultyService:
    """`faults` are what can be done to it here, by name."""

    def __init__(self, folder: Path, postgres: Any = None) -> None:
        self.folder = folder
        self.home = folder / "home"
        self._postgres = postgres
        self._clock = folder / "clock"
        self._has_small_disk = False
        self._process: ServiceProcess | None = None
        self._forks: subprocess.Popen[str] | None = None
        self._stack = AsyncExitStack()
        self._starting = asyncio.Lock()
        self.is_up = asyncio.Event()
        self.ended_by_itself = 0
        self.complaints: list[str] = []
        with socket.create_server(("127.0.0.1", 0)) as free:
            self._port = free.getsockname()[1]
        self.far = HttpProcess(folder, *self._server_options("far"))
        self.relay = Relay(lambda: self.far.port)
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
        if shutil.which("cc"):
            self.faults["clock jumps"] = self.jump_clock
        if postgres is not None:
            self.faults["PostgreSQL restarted"] = self.restart_postgres

    def _server_options(self, name: str) -> tuple[str, ...]:
        journal = str(self.folder / f"{name}.journal")
        return ("--journal", journal, "--answer-after", str(ANSWER_AFTER))

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self._port}/api"

    @property
    def process(self) -> ServiceProcess:
        if self._process is None or not self._process.is_alive:
            raise NothingToHit("the service")
        return self._process

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None and self._process.is_alive else None

    async def open(self) -> None:
        self.home.mkdir(mode=0o700)
        self._has_small_disk = _mounted(self.home)
        if self._has_small_disk:
            self._stack.callback(subprocess.run, ["umount", "--lazy", str(self.home)], check=True)
        (self.home / "token").write_text(TOKEN)
        (self.home / "token").chmod(0o600)
        self._stack.enter_context(self.far)
        await self.relay.open(self._stack)
        model = await self._stack.enter_async_context(open_scripted_openai(script))
        self._forks = self._stack.enter_context(
            subprocess.Popen(
                [sys.executable, str(_HERE / "service_forks.py")],
                env=self._environment(model.base_url),
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                text=True,
            )
        )
        await self._start()
        self._stack.push_async_callback(self._end)
        await self._answers()
        await self._connect()

    def _environment(self, model: str) -> Mapping[str, str]:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        return {
            **inherited,
            **(self._movable_clock() if "clock jumps" in self.faults else {}),
            **({"DRAGOMAN_DATABASE_URL": self._postgres.get_uri()} if self._postgres else {}),
            "DRAGOMAN_HOME": str(self.home),
            "DRAGOMAN_BOX_PROGRAMS": "people",
            "DRAGOMAN_MODEL": "openai-chat:scripted",
            "OPENAI_API_KEY": "scripted",
            "OPENAI_BASE_URL": model,
        }

    def _movable_clock(self) -> Mapping[str, str]:
        # libfaketime makes the service twenty times slower, and looks at its file only once a second.
        library = self.folder / "clock.so"
        words = ["cc", "-O2", "-shared", "-fPIC", "-o", str(library), str(_HERE / "clock_preload.c"), "-ldl"]
        subprocess.run(words, check=True)
        self.move_clock(0)
        return {"LD_PRELOAD": str(library), "CLOCK_OFFSET_FILE": str(self._clock)}

    def move_clock(self, seconds: int) -> None:
        with self._clock.open("r+b" if self._clock.exists() else "xb") as file:
            file.write(seconds.to_bytes(8, sys.byteorder, signed=True))

    async def _connect(self) -> None:
        near = stdio(*self._server_options("near"))
        quick = {"approval": "never", "request_timeout": patient(REQUEST_TIMEOUT), "health_interval": 1}
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

    async def supervise(self) -> None:
        """Starts the service again when it ends by itself, as systemd or Kubernetes would."""
        while True:
            async with self._starting:
                if self._process is not None and not self._process.is_alive:
                    self.is_up.clear()
                    self.ended_by_itself += 1
                    await self._start()
            if not self.is_up.is_set():
                try:
                    await self._answers()
                except TimeoutError:
                    self.complaints.append(f"the service did not answer within {SETTLED_WITHIN:g} s")
                    self.process.signal(signal.SIGKILL)
            await asyncio.sleep(0.05)

    async def _start(self) -> None:
        forks = self._forks
        assert forks is not None
        assert forks.stdin is not None
        assert forks.stdout is not None
        order = {
            "words": ["serve", "--port", str(self._port)],
            "log": str(self.folder / "service.log"),
        }
        forks.stdin.write(f"{json.dumps(order)}\n")
        forks.stdin.flush()
        self._process = ServiceProcess(int(await asyncio.to_thread(forks.stdout.readline)))

    async def _answers(self) -> None:
        """Waits until the service answers, or has ended once more."""
        async with self.client() as client, asyncio.timeout(patient(SETTLED_WITHIN)):
            while self._process is not None and self._process.is_alive:
                with contextlib.suppress(aiohttp.ClientError, TimeoutError):
                    async with client.get(f"{self.url}/connectors") as response:
                        if response.status == 200:
                            self.is_up.set()
                            return
                await asyncio.sleep(0.02)

    async def _end(self) -> None:
        assert self._process is not None
        self._process.signal(signal.SIGTERM)
        try:
            await self._process.gone(15)
        finally:
            self._process.signal(signal.SIGKILL)

    # The faults.

    async def kill_far(self) -> None:
        await asyncio.to_thread(self.far.restart)

    async def kill_near(self) -> None:
        os.kill(self._near, signal.SIGKILL)

    async def kill_service(self) -> None:
        async with self._starting:
            process = self.process
            self.is_up.clear()
            process.signal(signal.SIGKILL)
            await process.gone(15)
            await self._start()
        # Now and then the next fault hits it while it starts.
        if random.random() < 0.8:
            await self.is_up.wait()

    async def stop_far(self) -> None:
        await _stopped(self.far.pid)

    async def stop_near(self) -> None:
        await _stopped(self._near)

    async def stop_service(self) -> None:
        await _stopped(self.process.pid)

    async def cut_connections(self) -> None:
        if not self.relay.cut():
            raise NothingToHit("connections")

    async def slow_connections(self) -> None:
        self.relay.delay = random.uniform(0.05, 0.5)
        await asyncio.sleep(0.5)
        self.relay.delay = 0.0

    async def fill_disk(self) -> None:
        seconds = random.uniform(0.3, 1.0)
        if self._has_small_disk:
            _resize(self.home, _used(self.home))
            await asyncio.sleep(seconds)
            _resize(self.home, DISK)
            return
        pid = self.process.pid
        before = resource.prlimit(pid, resource.RLIMIT_FSIZE, (0, resource.RLIM_INFINITY))
        await asyncio.sleep(seconds)
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_FSIZE, before)

    async def exhaust_descriptors(self) -> None:
        pid = self.process.pid
        _, hard = resource.prlimit(pid, resource.RLIMIT_NOFILE)
        before = resource.prlimit(pid, resource.RLIMIT_NOFILE, (len(os.listdir(f"/proc/{pid}/fd")), hard))
        await asyncio.sleep(random.uniform(0.3, 1.0))
        with contextlib.suppress(ProcessLookupError):
            resource.prlimit(pid, resource.RLIMIT_NOFILE, before)

    async def jump_clock(self) -> None:
        self.move_clock(random.choice((-1, 1)) * random.randint(1, 3600))
        await asyncio.sleep(random.uniform(0.3, 2.0))
        self.move_clock(0)

    async def restart_postgres(self) -> None:
        await asyncio.to_thread(_restart, self._postgres)

    @property
    def _near(self) -> int:
        return self.process.child("stdio_server.py")


async def _stopped(pid: int) -> None:
    # One in ten for longer than a call waits.
    long = patient(REQUEST_TIMEOUT) * 1.25
    seconds = long if random.random() < 0.1 else random.uniform(0.02, 0.6)
    os.kill(pid, signal.SIGSTOP)
    try:
        await asyncio.sleep(seconds)
    finally:
        with contextlib.suppress(ProcessLookupError):
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
    words = ["mount", "-t", "tmpfs", "-o", f"size={DISK},mode=0700", "tmpfs", str(home)]
    return subprocess.run(words, capture_output=True).returncode == 0


def _used(home: Path) -> int:
    facts = os.statvfs(home)
    return (facts.f_blocks - facts.f_bfree) * facts.f_frsize


def _resize(home: Path, size: int) -> None:
    """A file system as large as what is in it is full."""
    words = ["mount", "-o", f"remount,size={size}", str(home)]
    if subprocess.run(words, capture_output=True).returncode:
        raise NothingToHit("a disk that holds still")  # it grew in between


@asynccontextmanager
async def open_faulty_service(folder: Path, postgres: Any = None) -> AsyncGenerator[FaultyService]:
    service = FaultyService(folder, postgres)
    try:
        await service.open()
        yield service
    finally:
        await service.close()
