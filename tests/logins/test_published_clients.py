"""Clients that other people wrote log in by URL with their own code: the SDKs, fastmcp, mcp-remote.

What a person does at the browser is done over HTTP: sign in, look at the page, press Allow, follow where it
leads. What npm and PyPI have is fetched once, into `.cache`; a test skips where that cannot be done.
"""

import asyncio
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import httpx2
import pytest
from mcp import Client as SdkClient
from mcp.client.auth import AuthorizationCodeResult, OAuthClientProvider
from mcp.client.streamable_http import streamable_http_client
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata, OAuthToken
from pydantic import AnyUrl

from api.live import Live, open_service
from conformance import node_tools
from logins.client_flow import CALLBACK, Client, Person, answer_of
from patience import deadline, patient
from servers.ports import listen
from servers.processes import stdio

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(300)]
FASTMCP = "fastmcp==4.1.2"
_ADDRESS = re.compile(r"https?://\S+/oauth/authorize\?\S+")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[Live]:
    async with open_service(tmp_path_factory.mktemp("service"), defer_tools="never") as live:
        await live.hub.connectors.add("mail", approval="never", **stdio())
        yield live


@pytest.fixture(scope="module")
def tools() -> node_tools.NodeTools:
    found = node_tools.find()
    if isinstance(found, str):
        pytest.skip(found)
    return found


@pytest.fixture(scope="module")
def fastmcp() -> dict[str, str]:
    """The environment of a program that uses it: it brings its own SDK."""
    folder = node_tools.CACHE / FASTMCP.replace("==", "-")
    folder.mkdir(parents=True, exist_ok=True)
    with (node_tools.CACHE / "fastmcp.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (folder / "complete").exists():
            command = [sys.executable, "-m", "uv", "pip", "install", "-q", "--target", str(folder), FASTMCP]
            environment = {**os.environ, "UV_CACHE_DIR": str(node_tools.CACHE / "uv")}
            try:
                subprocess.run(command, env=environment, check=True, capture_output=True, timeout=240)
            except (OSError, subprocess.SubprocessError) as error:
                pytest.skip(f"fastmcp cannot be installed: {error}")
            (folder / "complete").touch()
    return {
        **os.environ,
        "PYTHONPATH": str(folder),
        "BROWSER": "/bin/echo",
        "FASTMCP_CHECK_FOR_UPDATES": "off",
    }


async def allowed(live: Live, address: str) -> str:
    """What a person does with the address that a client opens; where their browser is sent then."""
    person, query = await Person.signed_in(live), urlsplit(address).query
    page = await person.look(query)
    assert (page.status, "wants to use your tools" in page.body.decode()) == (200, True)
    return (await person.answer(query)).headers["Location"]


async def returned(live: Live, address: str) -> None:
    """The same, and the browser goes there: the client listens, or soon will."""
    there = await allowed(live, address)
    async with aiohttp.ClientSession() as session, asyncio.timeout(patient(20)):
        while True:
            with suppress(aiohttp.ClientConnectorError):
                async with session.get(there) as response:
                    assert response.status < 400, await response.text()
                    return
            await asyncio.sleep(0.1)


async def revoke_all(live: Live) -> None:
    for key in await live.hub.clients.list():
        await live.hub.clients.revoke(key.id)


@asynccontextmanager
async def started(
    command: Sequence[str], environment: Mapping[str, str], folder: Path | None = None
) -> AsyncGenerator[asyncio.subprocess.Process]:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdin=pipe, stdout=pipe, stderr=asyncio.subprocess.STDOUT, env=dict(environment), cwd=folder
    )
    try:
        async with deadline(60):
            yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def line_of(process: asyncio.subprocess.Process, wanted: str) -> str:
    """The next line in which this is found."""
    assert process.stdout
    seen: list[str] = []
    while line := (await process.stdout.readline()).decode():
        seen.append(line)
        if re.search(wanted, line):
            return line.strip()
    raise AssertionError("".join(seen)[-3000:])


async def tell(process: asyncio.subprocess.Process, text: str) -> None:
    assert process.stdin
    process.stdin.write(text.encode() + b"\n")
    await process.stdin.drain()


class Kept:
    """What the SDK of Python keeps of a login."""

    def __init__(self) -> None:
        self.tokens: OAuthToken | None = None
        self.client: OAuthClientInformationFull | None = None

    async def get_tokens(self) -> OAuthToken | None:
        return self.tokens

    async def set_tokens(self, tokens: OAuthToken) -> None:
        self.tokens = tokens

    async def get_client_info(self) -> OAuthClientInformationFull | None:
        return self.client

    async def set_client_info(self, client_info: OAuthClientInformationFull) -> None:
        self.client = client_info


@pytest.mark.parametrize(("path", "tool"), [("/mcp", "mcp_mail_echo"), ("/mcp/mail", "echo")])
async def test_the_sdk_of_python_logs_in_refreshes_and_logs_in_anew_when_it_was_revoked(
    live: Live, path: str, tool: str
) -> None:
    opened: list[str] = []

    async def open_browser(address: str) -> None:
        opened.append(address)

    async def come_back() -> AuthorizationCodeResult:
        person = await Person.signed_in(live)
        back = answer_of(await person.answer(urlsplit(opened[-1]).query))
        return AuthorizationCodeResult(code=back["code"], state=back["state"], iss=back["iss"])

    kept = Kept()
    facts = OAuthClientMetadata(client_name="Python", redirect_uris=[AnyUrl(CALLBACK)])
    provider = OAuthClientProvider(live.url + path, facts, kept, open_browser, come_back)
    async with (
        httpx2.AsyncClient(auth=provider, timeout=patient(30)) as http,
        SdkClient(streamable_http_client(live.url + path, http_client=http)) as client,
    ):
        assert tool in {one.name for one in (await client.list_tools()).tools}
        assert kept.tokens is not None
        first = kept.tokens.refresh_token
        provider.context.token_expiry_time = 1.0
        said = await client.call_tool(tool, {"text": "caffè"})
        assert "caffè" in str(said.content)
        assert kept.tokens.refresh_token != first
        assert len(opened) == 1
        await revoke_all(live)
        assert "again" in str((await client.call_tool(tool, {"text": "again"})).content)
        assert len(opened) == 2, "it was logged out: a person had to log in again"


@pytest.mark.parametrize("kind", ["sdk", "client", "client-2026"])
async def test_the_sdks_of_typescript_log_in_refresh_and_are_logged_out(
    live: Live, tools: node_tools.NodeTools, kind: str
) -> None:
    program = tools.folder / "login.mjs"  # Node looks for packages beside the program
    shutil.copyfile(Path(__file__).with_name("login.mjs"), program)
    command = [str(tools.node), str(program), kind, f"{live.url}/mcp"]
    async with started(command, tools.environment, tools.folder) as process:
        address = (await line_of(process, "^open ")).removeprefix("open ")
        await tell(process, await allowed(live, address))
        await line_of(process, "^revoke$")
        await revoke_all(live)
        await tell(process, "revoked")
        line = await line_of(process, r"^(open|\{)")
        if line.startswith("open"):  # it would have a person log in again
            await tell(process, "nobody is there")
            line = await line_of(process, r"^\{")
    found: Any = json.loads(line)
    assert "mcp_mail_echo" in found["names"]
    assert "caffè" in str(found["called"])
    assert "again" in str(found["again"])
    assert (found["isRefreshed"], found["isOut"]) == (True, True)
    assert found["scope"] == "tools:read tools:write"


async def test_fastmcp_logs_in_and_refreshes(live: Live, fastmcp: dict[str, str]) -> None:
    command = [sys.executable, str(Path(__file__).with_name("fastmcp_client.py")), f"{live.url}/mcp"]
    async with started(command, fastmcp) as process:
        await returned(live, await line_of(process, f"^{_ADDRESS.pattern}"))
        found: Any = json.loads(await line_of(process, r"^\{"))
    assert "mcp_mail_echo" in found["names"]
    assert found["texts"] == ["caffè", "again"]
    assert found["is_refreshed"]


async def test_mcp_remote_logs_in_and_serves_a_client_that_knows_no_login(
    live: Live, tools: node_tools.NodeTools, tmp_path: Path
) -> None:
    command = [*tools.program("mcp-remote", "dist", "proxy.js"), f"{live.url}/mcp", "--allow-http"]
    environment = {**tools.environment, "MCP_REMOTE_CONFIG_DIR": str(tmp_path), "BROWSER": "/bin/true"}
    async with started(command, environment, tools.folder) as process:
        found = _ADDRESS.search(await line_of(process, _ADDRESS.pattern))
        assert found
        await returned(live, found[0])
        facts = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "t", "version": "1"},
        }
        await tell(process, json.dumps({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": facts}))
        await line_of(process, r'^\{.*"id":\s*1\b')
        await tell(process, json.dumps({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        call = {"name": "mcp_mail_echo", "arguments": {"text": "caffè"}}
        await tell(process, json.dumps({"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call}))
        assert "caffè" in await line_of(process, r'^\{.*"id":\s*2\b')


async def test_the_inspector_says_that_a_person_must_log_in(live: Live, tools: node_tools.NodeTools) -> None:
    program = tools.program("@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
    command = [*program, "--cli", f"{live.url}/mcp", "--transport", "http", "--method", "tools/list"]
    async with started(command, tools.environment, tools.folder) as process:
        out, _ = await process.communicate()
    assert process.returncode != 0
    assert re.search(r"401|[Uu]nauthori[sz]ed|authoriz|OAuth|log in", out.decode()), out.decode()[-2000:]


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_the_conformance_suite_accepts_the_authorization_server(
    live: Live, tools: node_tools.NodeTools, revision: str
) -> None:
    with listen() as free:
        port = free.getsockname()[1]
    client = Client(live)
    await client.register(redirect_uris=[f"http://127.0.0.1:{port}/callback"])
    command = [
        *tools.program("conformance-2026", "dist", "index.js"),
        *("authorization", "--url", live.url, "--client-id", client.id, "--port", str(port)),
        *("--resource", f"{live.url}/mcp", "--spec-version", revision),
    ]
    async with started(command, tools.environment, tools.folder) as process:
        await returned(live, await line_of(process, f"^{_ADDRESS.pattern}"))
        out, _ = await process.communicate()
    said = out.decode()
    assert process.returncode == 0, said
    assert "2 passed, 0 failed" in said, said
