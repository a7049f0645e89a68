"""Services of one installation on one PostgreSQL and NATS, and clients that use whichever of them is ready.

Nodes are forked from a process that has imported what they need; of another version, from one of that
version. They can be told to stop, killed, and started with another clock or another way to the database.
"""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

import httpx2

from cluster.nodes import KEY
from patience import patient, until
from robustness.faulty_service import ServiceProcess
from servers.ports import listen

TOKEN = "drg_" + "n" * 43
AS_OPERATOR = {"Authorization": f"Bearer {TOKEN}"}
DRAIN_WAIT = 1.0
_LOOK_EVERY = 0.2  # seconds between two looks of the balancer at a node
_PROGRAM = Path(__file__).parents[1] / "robustness" / "service_forks.py"


class Forks:
    """What services are forked from. `python` is the interpreter of another version."""

    def __init__(self, log: Path, environment: Mapping[str, str], python: str = sys.executable) -> None:
        self._log = log
        self._environment = environment
        self._python = python

    def __enter__(self) -> Self:
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                [self._python, str(_PROGRAM)],
                env={**inherited, "DRAGOMAN_BOX_PROGRAMS": "people", **self._environment},
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
            )
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._process:
            self._process.kill()

    async def start(self, words: Sequence[str], log: Path, environment: Mapping[str, str]) -> ServiceProcess:
        stdin, stdout = _open(self._process.stdin), _open(self._process.stdout)
        order = {"words": words, "log": str(log), "environment": environment}
        stdin.write(f"{json.dumps(order)}\n")
        stdin.flush()
        answer = await asyncio.to_thread(stdout.readline)
        assert answer, self._log.read_text()
        return ServiceProcess(int(answer))


def _open(pipe: IO[str] | None) -> IO[str]:
    assert pipe is not None
    return pipe


class ServiceNode:
    """One `dragoman serve`, on the same port whenever it is started. `own` are settings that others lack."""

    def __init__(self, folder: Path, own: Mapping[str, str] | None = None) -> None:
        folder.mkdir(mode=0o700, parents=True)
        (folder / "token").write_text(TOKEN)
        (folder / "token").chmod(0o600)
        self.folder = folder
        self._environment = {
            "DRAGOMAN_HOME": str(folder),
            "DRAGOMAN_KEY": KEY,
            "DRAGOMAN_DRAIN_WAIT": str(patient(DRAIN_WAIT)),
            "DRAGOMAN_ROLLOUT_SHARE": "0",  # assistants have the tools themselves
            **(own or {}),
        }
        with listen() as free:
            self.port = int(free.getsockname()[1])
        self.process: ServiceProcess | None = None
        self.is_ready = False

    async def start(self, forks: Forks) -> None:
        words = ["serve", "--port", str(self.port)]
        self.process = await forks.start(words, self.log, self._environment)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    @property
    def log(self) -> Path:
        return self.folder / "log"

    async def stop(self) -> None:
        """As a deploy does."""
        assert self.process is not None
        self.process.signal(signal.SIGTERM)
        await self.process.gone(30)

    def kill(self) -> None:
        if self.process is not None:
            self.process.signal(signal.SIGKILL)


class Balancer(httpx2.AsyncBaseTransport):
    """Sends each request to the next node that is ready, as a balancer that asks for `/ready` does.

    Who cannot be reached at all is passed over; what was sent is never sent again.
    """

    def __init__(self, nodes: Sequence[ServiceNode]) -> None:
        self.nodes = nodes
        self._next = 0
        self._transport = httpx2.AsyncHTTPTransport()
        self._looking: list[asyncio.Task[None]] = []

    async def __aenter__(self) -> Self:
        await self._transport.__aenter__()
        self._looking = [asyncio.create_task(self._look(node)) for node in self.nodes]
        return self

    async def __aexit__(
        self,
        exc_type: type[BaseException] | None = None,
        exc_value: BaseException | None = None,
        traceback: TracebackType | None = None,
    ) -> None:
        for task in self._looking:
            task.cancel()
        await asyncio.wait(self._looking)
        await self._transport.__aexit__(exc_type, exc_value, traceback)

    async def _look(self, node: ServiceNode) -> None:
        async with httpx2.AsyncClient(timeout=patient(2)) as client:
            while True:
                status = 0
                with suppress(httpx2.HTTPError):
                    status = (await client.get(f"{node.url}/ready")).status_code
                node.is_ready = status == 200
                await asyncio.sleep(_LOOK_EVERY)

    async def all_ready(self) -> None:
        await until(lambda: all(node.is_ready for node in self.nodes), 60)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        for _ in range(3 * len(self.nodes)):
            node = self._chosen()
            request.url = request.url.copy_with(host="127.0.0.1", port=node.port)
            request.headers["Host"] = f"127.0.0.1:{node.port}"
            try:
                return await self._transport.handle_async_request(request)
            except httpx2.ConnectError:
                await asyncio.sleep(_LOOK_EVERY / 2)
        raise httpx2.ConnectError("no node can be reached", request=request)

    def _chosen(self) -> ServiceNode:
        """One that is ready; where none says so, any: it is asked all the same."""
        for ready in (True, False):
            for _ in self.nodes:
                self._next += 1
                node = self.nodes[self._next % len(self.nodes)]
                if node.is_ready or not ready:
                    return node
        raise AssertionError("there are no nodes")


def client(balancer: Balancer) -> httpx2.AsyncClient:
    """Of the whole installation; the operator's."""
    return httpx2.AsyncClient(
        transport=_Borrowed(balancer),
        base_url="http://127.0.0.1/",
        headers=AS_OPERATOR,
        timeout=patient(60),
    )


class _Borrowed(httpx2.AsyncBaseTransport):
    """A client closes what it is given; the balancer goes on."""

    def __init__(self, balancer: Balancer) -> None:
        self._balancer = balancer

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        return await self._balancer.handle_async_request(request)
