"""The official conformance suite against `/mcp/<slug>`, in front of a server that has everything.

All that a revision requires is run. What is left out stands in `NOT_OURS`, with the reason.
"""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from starlette.types import ASGIApp, Receive, Scope, Send

from conformance.suite import check, run
from dragoman.mcp_endpoint import McpEndpoint, client_tasks
from dragoman.scope import LOCAL_CALLER
from dragoman.web.guard import Guard
from mcp_endpoint.doors import TOKEN, is_token, serving
from servers.hubs import open_hub
from servers.processes import HttpProcess

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(400)]


class WithToken:
    """The suite sends no key: it is put in before the guard looks."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        scope["headers"] = [*scope["headers"], (b"authorization", f"Bearer {TOKEN}".encode())]
        await self._app(scope, receive, send)


@asynccontextmanager
async def open_gateway(folder: Path) -> AsyncGenerator[str]:
    with HttpProcess(folder, program="everything_server.py") as server:
        async with open_hub(folder / "home") as hub:
            view = await hub.connectors.add("everything", url=server.url, approval="never")
            assert view.status.state == "connected", view.status.cause
            endpoint = McpEndpoint(hub)
            async with serving(
                WithToken(Guard(endpoint, is_token=is_token, operator=LOCAL_CALLER)), endpoint
            ) as url:
                yield f"{url}/mcp/everything"


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
async def test_every_required_scenario_that_applies_to_a_gateway_passes(
    tmp_path: Path, revision: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The suite wants a task for what takes a second.
    monkeypatch.setattr(client_tasks, "AT_ONCE", 0.2)
    async with open_gateway(tmp_path) as url:
        text = await run("conformance-2026", url, "--requirements", revision)
    check(text, revision)


async def test_the_stable_release_of_the_suite_passes_as_well(tmp_path: Path) -> None:
    async with open_gateway(tmp_path) as url:
        text = await run("conformance-2025", url)
    check(text, "2025-11-25")
