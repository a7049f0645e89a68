"""The suite's scenarios of authorisation for clients: a hub logs in to servers, with a person who agrees.

Each is a hub of its own in this process; what the suite starts is a stub that says where its server is.
"""

import asyncio
import json
import re
import sys
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from pydantic import SecretStr

from conformance import node_tools
from dragoman import Hub
from dragoman.connections.oauth.flow import AuthorizationCallback
from dragoman.errors import DragomanError, NeedsAuth
from dragoman.settings import Settings
from patience import deadline, patient

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.slow, pytest.mark.timeout(400)]
SCENARIOS = (
    *("metadata-default", "metadata-var1", "metadata-var2", "metadata-var3", "basic-cimd"),
    *("token-endpoint-auth-basic", "token-endpoint-auth-post", "token-endpoint-auth-none"),
    *("scope-from-www-authenticate", "scope-from-scopes-supported", "scope-omitted-when-undefined"),
    *("scope-step-up", "scope-retry-limit", "offline-access-scope", "offline-access-not-supported"),
    *("pre-registration", "resource-mismatch", "authorization-server-migration"),
    *("iss-supported", "iss-not-advertised", "iss-supported-missing", "iss-wrong-issuer"),
    *("iss-unexpected", "iss-normalized", "metadata-issuer-mismatch"),
    *("client-credentials-jwt", "client-credentials-basic"),
)
ADDRESS = "http://127.0.0.1:33419"
MOST_AUTHORISATIONS = 4


async def tried(home: Path, url: str, scenario: str, context: dict[str, Any]) -> bool:
    """Whether every tool of the server could be called."""
    # A document of ours has an address only where the service has one.
    facts: dict[str, Any] = {"public_url": "https://conformance-test.local"} if "cimd" in scenario else {}
    async with Hub(Settings(home=home, **facts)) as hub:
        view = await hub.connectors.add(
            "suite", url=url, approval="never", health_interval=0, **login(scenario, context)
        )
        needs_login = view.status.state == "needs_auth"
        for _ in range(MOST_AUTHORISATIONS):
            if needs_login:
                await authorised(hub)
                await hub.connectors.connect("suite")
            outputs = [await hub.call(tool.name, {}) for tool in hub.tools.list("suite")]
            codes = {one.error.code for one in outputs if one.error is not None}
            if outputs and not codes:
                return True
            needs_login = "needs_auth" in codes or (not outputs and await is_refused(hub))
        return False


async def is_refused(hub: Hub) -> bool:
    """Whether the server lists its tools only after another login."""
    try:
        await hub.connectors.refresh("suite")
    except NeedsAuth:
        return True
    return False


def login(scenario: str, context: dict[str, Any]) -> dict[str, Any]:
    auth: dict[str, Any] = {"kind": "oauth"}
    if "client_id" in context:
        auth["client_id"] = context["client_id"]
    if "client-credentials" in scenario:
        auth["flow"] = "client_credentials"
    secret = context.get("private_key_pem") or context.get("client_secret")
    return {"auth": auth, **({"oauth_client_secret": SecretStr(secret)} if secret else {})}


async def authorised(hub: Hub) -> None:
    """What a browser does, and a person who agrees."""
    link = await hub.credentials.authorize("suite", address=ADDRESS)
    begun = await hub.credentials.begin(parse_qs(urlsplit(link.url).query)["ticket"][0])
    async with aiohttp.ClientSession() as http, http.get(begun.url, allow_redirects=False) as reply:
        said = {name: one[0] for name, one in parse_qs(urlsplit(reply.headers["Location"]).query).items()}
    await hub.credentials.finish(
        AuthorizationCallback(
            state=said.get("state", ""),
            code=said.get("code"),
            issuer=said.get("iss"),
            error=said.get("error"),
            cookies={begun.cookie: begun.value},
        )
    )


async def test_logging_in_to_servers_conforms(tmp_path: Path) -> None:
    tools = node_tools.find()
    if isinstance(tools, str):
        pytest.skip(tools)
    count = iter(range(1_000))

    async def met(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        url, scenario, context = (await reader.readline()).decode().rstrip("\n").split("\0")
        try:
            is_good = await tried(tmp_path / str(next(count)), url, scenario, json.loads(context or "{}"))
        except DragomanError:
            is_good = False
        writer.write(b"0" if is_good else b"1")
        writer.close()

    stub = Path(__file__).parent / "client_stub.py"
    command = [*tools.program("conformance-2026", "dist", "index.js"), "client"]
    command += ["--command", f"{sys.executable} -S -E {stub}", "--spec-version", "2026-07-28", "--force"]
    command += ["--timeout", str(round(patient(60) * 1000)), "--scenario"]
    wrong: dict[str, str] = {}
    places = asyncio.Semaphore(3)

    async def run(scenario: str) -> None:
        async with places:
            process = await asyncio.create_subprocess_exec(
                *command,
                f"auth/{scenario}",
                stdout=asyncio.subprocess.PIPE,
                stderr=asyncio.subprocess.STDOUT,
                env={**tools.environment, "CONFORMANCE_SOCKET": str(tmp_path / "socket")},
                cwd=tmp_path,
            )
            said = (await process.communicate())[0].decode()
        if re.search(r"Passed: (\d+)/\1, 0 failed", said) is None:
            wrong[scenario] = said[said.find("Test Results") :]

    server = await asyncio.start_unix_server(met, tmp_path / "socket")
    async with server, deadline(300):
        await asyncio.gather(*map(run, SCENARIOS))
    assert not wrong, "\n".join(f"{name}: {said}" for name, said in wrong.items())
