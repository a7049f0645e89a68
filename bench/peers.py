"""The two ends of a benchmark: servers as processes, and lean clients that call them or a hub's REST door.

Who opens a process here closes it: each is a context manager.
"""

import asyncio
import itertools
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncGenerator, Generator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import aiohttp
import orjson

from dragoman import Hub, Settings
from dragoman.telemetry.logs import configure_logging

SERVERS = Path(__file__).parents[1] / "tests" / "servers"
SDK_HTTP = Path(__file__).with_name("sdk_http_server.py")
SDK = SERVERS / "sdk_server.py"
RAW_STDIO = SERVERS / "stdio_server.py"
RAW_HTTP = SERVERS / "http_server.py"
TEXT = "the quick brown fox"
START_LIMIT = 60.0
_SERVE = """
import asyncio, sys
from pathlib import Path
from dragoman.server import serve
from dragoman.settings import Settings
from dragoman.telemetry.logs import configure_logging
configure_logging("error")
asyncio.run(serve(Settings(home=Path(sys.argv[1]), port=0)))
"""


def stdio(program: Path, *arguments: str) -> dict[str, Any]:
    """Command and args of a stdio server. The raw one needs no packages and starts in 30 ms."""
    flags = ["-S", "-E"] if program == RAW_STDIO else []
    return {"command": sys.executable, "args": [*flags, str(program), *arguments]}


class HttpServer:
    """A server with a port, which can be killed and started again on the same port."""

    def __init__(self, program: Path, *arguments: str) -> None:
        self._command = [sys.executable, str(program), *arguments]
        self._folder = tempfile.TemporaryDirectory(prefix="dragoman-bench-")
        self._process: subprocess.Popen[bytes] | None = None
        self.port = 0

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    def start(self) -> None:
        """Returns once it listens."""
        file = Path(self._folder.name, "port")
        file.unlink(missing_ok=True)
        command = [*self._command, "--port-file", str(file), "--port", str(self.port)]
        self._process = subprocess.Popen(command)
        self.port = int(_awaited(file, self._process))

    def kill(self) -> None:
        if self._process is not None:
            self._process.kill()
            self._process.wait()
            self._process = None

    def close(self) -> None:
        self.kill()
        self._folder.cleanup()


@contextmanager
def open_http(program: Path, *arguments: str) -> Generator[HttpServer]:
    server = HttpServer(program, *arguments)
    try:
        server.start()
        yield server
    finally:
        server.close()


@asynccontextmanager
async def open_hub(**settings: Any) -> AsyncGenerator[Hub]:
    configure_logging("error")
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as home:
        async with Hub(Settings(home=Path(home), **settings)) as hub:
            yield hub


async def add(hub: Hub, slug: str, **facts: Any) -> None:
    view = await hub.connectors.add(slug, **facts)
    assert view.status.state == "connected", (slug, view.status.cause, view.status.stderr)


async def echo(hub: Hub, slug: str) -> None:
    """One call down the whole road, with a look at what came back."""
    output = await hub.call(f"mcp_{slug}_echo", {"text": TEXT})
    # The SDK wraps what a tool returns as {"result": …}; the raw server does not.
    assert output.ok, output.error
    assert output.result in (TEXT, {"result": TEXT}), output.result


@dataclass(frozen=True, slots=True)
class Service:
    """A hub in a process of its own, behind its REST door."""

    pid: int
    url: str
    client: aiohttp.ClientSession

    async def ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else orjson.dumps(body)
        async with self.client.request(method, self.url + path, data=data) as response:
            answer = orjson.loads(await response.read())
            assert response.status < 400, answer
            return answer

    async def echo(self, slug: str) -> None:
        body = {"tool": f"mcp_{slug}_echo", "arguments": {"text": TEXT}}
        output = await self.ask("POST", "/api/call", body)
        assert output["ok"], output
        assert output["result"] in (TEXT, {"result": TEXT}), output

    async def settle(self) -> None:
        """The list of calls is read from the store: what was put off is written first."""
        await self.ask("GET", "/api/calls?limit=1")


@asynccontextmanager
async def open_service() -> AsyncGenerator[Service]:
    with tempfile.TemporaryDirectory(prefix="dragoman-bench-") as home:
        process = subprocess.Popen([sys.executable, "-c", _SERVE, home])
        try:
            address = json.loads(await asyncio.to_thread(_awaited, Path(home, "server.json"), process))
            token = Path(home, "token").read_text().strip()
            async with _lean_client(Authorization=f"Bearer {token}") as client:
                yield Service(process.pid, address["url"], client)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


class LeanMcp:
    """The direct raw call: one POST to an MCP server and its answer, with nothing on top."""

    def __init__(self, client: aiohttp.ClientSession, url: str, era: str) -> None:
        self._client = client
        self._url = url
        self._is_modern = era == "2026"
        self._ids = itertools.count(1)
        self._headers: dict[str, str] = {"Accept": "application/json, text/event-stream"}

    async def connect(self) -> None:
        if self._is_modern:
            self._headers |= {
                "MCP-Protocol-Version": "2026-07-28",
                "Mcp-Method": "tools/call",
                "Mcp-Name": "echo",
            }
            return
        facts = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": _CLIENT}
        await self._post({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": facts})
        self._headers["MCP-Protocol-Version"] = "2025-11-25"
        await self._post({"jsonrpc": "2.0", "method": "notifications/initialized"})

    async def echo(self) -> None:
        params: dict[str, Any] = {"name": "echo", "arguments": {"text": TEXT}}
        if self._is_modern:
            params["_meta"] = _META
        answer = await self._post(
            {"jsonrpc": "2.0", "id": next(self._ids), "method": "tools/call", "params": params}
        )
        assert answer["result"]["content"][0]["text"] == TEXT, answer

    async def _post(self, message: dict[str, Any]) -> Any:
        async with self._client.post(
            self._url, data=orjson.dumps(message), headers=self._headers
        ) as response:
            body = await response.read()
            assert response.status < 400, body
            if session := response.headers.get("Mcp-Session-Id"):
                self._headers["Mcp-Session-Id"] = session
            if response.content_type != "text/event-stream":
                return orjson.loads(body) if body else None
            return orjson.loads(body[body.index(b"data: {") + 6 :].partition(b"\n")[0])


_CLIENT = {"name": "bench", "version": "1"}
_META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": _CLIENT,
    "io.modelcontextprotocol/clientCapabilities": {},
}


@asynccontextmanager
async def open_lean(url: str, era: str) -> AsyncGenerator[LeanMcp]:
    async with _lean_client() as client:
        lean = LeanMcp(client, url, era)
        await lean.connect()
        yield lean


def _lean_client(**headers: str) -> aiohttp.ClientSession:
    return aiohttp.ClientSession(
        connector=aiohttp.TCPConnector(limit=0),
        cookie_jar=aiohttp.DummyCookieJar(),
        headers={"Content-Type": "application/json", **headers},
    )


def _awaited(file: Path, process: subprocess.Popen[bytes]) -> str:
    limit = time.monotonic() + START_LIMIT
    while not file.exists():
        if process.poll() is not None or time.monotonic() > limit:
            raise RuntimeError(f"a server did not start: {process.poll()}")
        time.sleep(0.01)
    return file.read_text()
