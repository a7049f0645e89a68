"""Nodes as people run them behind a balancer: `dragoman serve` as processes, and a proxy that sends each
request to the next of them.
"""

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from itertools import count
from pathlib import Path
from types import TracebackType
from typing import Self

import aiohttp
from aiohttp import web
from multidict import CIMultiDict, CIMultiDictProxy

from cluster.nats_server import NatsServer
from cluster.nodes import KEY
from cluster.processes import ServiceProcess

TOKEN = "drg_" + "t" * 40
_OF_THE_CONNECTION = ("Connection", "Keep-Alive", "Transfer-Encoding")


class RoundRobinProxy:
    """Knows nothing of what it passes on: no session stays at a node. Answers pass as they are made.

    Who does not take a connection is left out for that request, as by balancers. `headers` are put into every
    request; `requests` counts how many went to which node.
    """

    def __init__(self, nodes: Sequence[str], headers: Mapping[str, str] | None = None) -> None:
        """`nodes` are their addresses."""
        self.requests: Counter[str] = Counter()
        self._nodes = nodes
        self._headers = headers or {}
        self._turn = count()

    async def __aenter__(self) -> Self:
        # A connection for each request: one that is kept may be closed by the node while it is taken again.
        self._client = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(force_close=True, limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
            auto_decompress=False,
            skip_auto_headers=("Accept", "Accept-Encoding", "Content-Type", "User-Agent"),
        )
        server = web.Server(self._pass_on, access_log=None)  # pyright: ignore[reportUnknownVariableType]
        self._runner = web.ServerRunner(server, handler_cancellation=True, shutdown_timeout=1)
        await self._runner.setup()
        await web.TCPSite(self._runner, "127.0.0.1", 0).start()
        self.url = f"http://127.0.0.1:{self._runner.addresses[0][1]}"
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._client.close()
        await self._runner.cleanup()

    async def _pass_on(self, request: web.BaseRequest) -> web.StreamResponse:
        body, first = await request.read(), next(self._turn)
        for turn in range(first, first + len(self._nodes)):
            node = self._nodes[turn % len(self._nodes)]
            asking = self._client.request(
                request.method,
                f"{node}{request.raw_path}",
                data=body or None,
                headers=_passed_on(request.headers, self._headers),
                allow_redirects=False,
            )
            try:
                answer = await asking
            except aiohttp.ClientConnectorError:
                continue
            self.requests[node] += 1
            async with answer:
                passed = web.StreamResponse(
                    status=answer.status, reason=answer.reason, headers=_passed_on(answer.headers)
                )
                with suppress(ConnectionResetError):  # the client has left
                    await passed.prepare(request)
                    async for part in answer.content.iter_any():
                        await passed.write(part)
                    await passed.write_eof()
                return passed
        return web.Response(status=502, text="no node takes a connection")


def _passed_on(headers: CIMultiDictProxy[str], added: Mapping[str, str] | None = None) -> CIMultiDict[str]:
    passed = CIMultiDict(headers)
    for name in _OF_THE_CONNECTION:
        passed.popall(name, None)
    passed.update(added or {})
    return passed


@dataclass(frozen=True)
class BalancedNodes:
    """`proxy` stands before all of them."""

    services: Sequence[ServiceProcess]
    proxy: RoundRobinProxy
    nats: NatsServer

    @property
    def urls(self) -> Sequence[str]:
        return [service.facts["url"] for service in self.services]

    def sign_in(self, number: int) -> str:
        """The link that a node printed, as the proxy's."""
        return self.services[number].facts["console"].replace(self.urls[number], self.proxy.url)


@asynccontextmanager
async def open_balanced(
    folder: Path,
    database_url: str,
    *,
    nodes: int = 3,
    **environment: str,
) -> AsyncGenerator[BalancedNodes]:
    """On one PostgreSQL and one NATS. `environment` is that of each, as `MODEL="offline"`."""
    async with AsyncExitStack() as stack:
        nats = await stack.enter_async_context(NatsServer(folder / "nats"))
        shared = {"KEY": KEY, "OPERATOR_TOKEN": TOKEN, "CLUSTER_URL": nats.url}
        shared |= {"ROLLOUT_SHARE": "0", **environment}  # assistants have the tools themselves
        settings = {f"DRAGOMAN_{name}": value for name, value in shared.items()}
        services = [
            ServiceProcess(folder / f"node{number}", database_url, environment=settings)
            for number in range(nodes)
        ]
        async with asyncio.TaskGroup() as starting:
            for service in services:
                starting.create_task(asyncio.to_thread(stack.enter_context, service))
        urls = [service.facts["url"] for service in services]
        proxy = await stack.enter_async_context(RoundRobinProxy(urls))
        yield BalancedNodes(services, proxy, nats)
