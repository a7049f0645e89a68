"""Thousands of requests of many tenants, over every door, with each other's names and ids.

Whatever comes back is searched for marks that the asker may not see.
"""

import asyncio
import re
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager, suppress
from pathlib import Path
from typing import Any, cast

import pytest
from model import make_model
from population import Tenant, Town
from sqlalchemy import select
from upstream import open_upstream
from visits import TOOLS, Visits

from api.live import open_service
from dragoman.events import Event
from dragoman.people import Thread
from dragoman.scope import Caller
from dragoman.store import tables
from dragoman.store.threads import SqlThreads
from dragoman.web.encoding import encode
from patience import deadline

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.slow]

_MARK = re.compile(r"(?:private|common)mark\d+q[0-9a-f]+q")
SEED = 20261116


class Watch:
    """Looks at everything that a tenant was told."""

    def __init__(self) -> None:
        self.leaks: list[str] = []
        self.own: Counter[int] = Counter()
        self.statuses: Counter[int] = Counter()

    def look(self, tenant: Tenant, where: str, text: str | bytes) -> None:
        text = text.decode("utf-8", "replace") if isinstance(text, bytes) else text
        for mark in set(_MARK.findall(text)) - set(_MARK.findall(where)):  # what was asked may be repeated
            if tenant.may_see(mark):
                self.own[tenant.number] += 1
            else:
                self.leaks.append(f"{where}: {mark} seen by tenant {tenant.number} ({tenant.role})")


@asynccontextmanager
async def _town(home: Path, url: str, workspaces: int, users: int) -> AsyncGenerator[Town]:
    settings: dict[str, Any] = {
        "database_url": url,
        "multi_user": True,
        "allowed_networks": ("127.0.0.0/8",),
        "approval_wait": 0.05,
        "discovery": "off",
        "max_servers": 500,
        "model": "repeat",
    }
    async with open_upstream() as upstream, open_service(home, **settings) as live:
        live.hub.models.register("repeat", make_model())
        town = Town(live, upstream, SEED)
        await town.settle(workspaces, users)
        yield town


async def _visit(town: Town, watch: Watch, count: int) -> None:
    """By REST, eight at a time."""
    document = (await town.live.ask("GET", "/api/openapi.json")).value
    visits = Visits(town, document)
    plans = [(tenant, *visits.next(tenant)) for tenant in town.random.choices(town.tenants, k=count)]

    async def walk(part: list[tuple[Tenant, str, str, Any]]) -> None:
        for tenant, method, path, body in part:
            reply = await town.ask(tenant, method, path, body)
            watch.statuses[reply.status] += 1
            assert reply.status < 500 or reply.status in (502, 503, 504), (method, path, body, reply.body)
            watch.look(
                tenant, f"{method} {path} {body} → {reply.status}", str(reply.headers).encode() + reply.body
            )
            if method == "DELETE" and reply.status == 204:
                await town.furnish(tenant)

    async with deadline(200), asyncio.TaskGroup() as walkers:
        for start in range(8):
            walkers.create_task(walk(plans[start::8]))


async def _follow_runs(town: Town, watch: Watch) -> None:
    """By the streams of runs and threads: everybody's are tried, one's own are heard."""
    for tenant in town.tenants:
        heard = 0
        for kind in ("run", "thread"):
            others = town.random.choices(town.ids(kind), k=6)
            for one in dict.fromkeys([*tenant.ids[kind][-2:], *others]):
                run = (tenant.ids["run"] or ["run_0"])[0]
                path = f"/api/{kind}s/{one}/events" + ("" if kind == "run" else f"?after={run}:0")
                status, told = await _heard(town, tenant, path)
                assert status in (200, 404)
                watch.look(tenant, f"stream {path}", told)
                heard += tenant.private.encode() in told
        assert heard, tenant.number


async def _heard(town: Town, tenant: Tenant, path: str) -> tuple[int, bytes]:
    """What a stream tells at once."""
    headers = {"Authorization": f"Bearer {tenant.key}"}
    told = b""
    async with town.live.session.get(town.live.url + path, headers=headers) as response:
        with suppress(TimeoutError):
            async with deadline(0.25):
                async for part in response.content.iter_any():
                    told += part
        response.close()
        return response.status, told


async def _speak_mcp(town: Town, watch: Watch) -> None:
    """By the MCP door, in the stateless era."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "visitor", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    shown = 0
    for tenant in town.tenants:
        asks: list[tuple[str, dict[str, Any]]] = [
            ("tools/list", {}),
            *(("tools/call", {"name": name, "arguments": {}}) for name in TOOLS),
        ]
        for number, (method, params) in enumerate(asks):
            message = {"jsonrpc": "2.0", "id": number, "method": method, "params": {**params, "_meta": meta}}
            headers = {"Mcp-Method": method, "MCP-Protocol-Version": "2026-07-28"}
            headers |= {"Mcp-Name": params["name"]} if params else {}
            headers |= {
                "Accept": "application/json, text/event-stream",
                "Authorization": f"Bearer {tenant.key}",
            }
            reply = await town.live.ask("POST", "/mcp?view=tools", message, **headers)
            assert reply.status in (200, 400), reply.body  # 400: no such tool, as the protocol wants it
            watch.look(tenant, f"MCP {method} {params}", reply.body)
            shown += method == "tools/list" and tenant.private in reply.body.decode()
    assert shown > len(town.tenants) / 2  # some have lost their connectors on the way


async def _use_library(town: Town, watch: Watch) -> None:
    hub = town.live.hub
    for tenant in town.tenants:
        caller = Caller(tenant.workspace, tenant.user, role=cast("Any", tenant.role))
        found = await hub.acting_for(caller).tools.search("whoami of", limit=100)
        views = await hub.acting_for(caller).connectors.list()
        seen = [
            hub.acting_for(caller).tools.list(None),
            found.hits,
            views,
            await hub.acting_for(caller).calls(1000),
        ]
        seen += [
            await hub.acting_for(caller).runs.list(),
            await hub.acting_for(caller).agents.views(),
            await hub.acting_for(caller).runs.questions(),
        ]
        watch.look(tenant, "library: lists", repr(seen))
        for name in TOOLS:
            output = await hub.acting_for(caller).call(name, {"text": "x"})
            watch.look(tenant, f"library: {name}", encode(output))


@asynccontextmanager
async def _listening(town: Town, watch: Watch) -> AsyncGenerator[None]:
    """By the stream of events, all the while."""

    async def listen(tenant: Tenant) -> None:
        caller = Caller(tenant.workspace, tenant.user)
        async with aclosing(
            cast("AsyncGenerator[Event]", town.live.hub.acting_for(caller).events())
        ) as events:
            async for event in events:
                watch.look(tenant, f"event {event.kind}", encode(event))

    async with asyncio.TaskGroup() as listeners:
        tasks = [listeners.create_task(listen(tenant)) for tenant in town.tenants]
        try:
            yield
        finally:
            for task in tasks:
                task.cancel()


async def test_twenty_tenants_and_thousands_of_requests_over_every_door_never_meet(
    database_url: str, tmp_path: Path
) -> None:
    watch = Watch()
    async with _town(tmp_path, database_url, workspaces=10, users=2) as town:
        async with _listening(town, watch):
            await _visit(town, watch, 3000)
            await asyncio.gather(*(town.furnish(tenant) for tenant in town.tenants))
            await _follow_runs(town, watch)
            await _speak_mcp(town, watch)
            await _use_library(town, watch)
        tokens = {headers.get("Authorization", "") for headers in town.upstream.headers}
        assert not [tenant.number for tenant in town.tenants if f"Bearer {tenant.key}" in tokens]
    assert watch.leaks == []
    assert all(watch.own[tenant.number] > 20 for tenant in town.tenants)  # they did see their own
    assert watch.statuses[200] > 500
    assert watch.statuses[404] > 100


async def test_a_leak_that_is_planted_in_one_query_is_found(
    sqlite_url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def find_whoever_asks(self: SqlThreads, workspace: str, user: str, thread: str) -> Thread | None:
        query = select(tables.threads).where(tables.threads.c.id == thread)
        async with self._database.read() as connection:
            row = (await connection.execute(query)).mappings().first()
        return Thread(**row) if row else None

    monkeypatch.setattr(SqlThreads, "find", find_whoever_asks)
    watch = Watch()
    async with _town(tmp_path, sqlite_url, workspaces=4, users=2) as town:
        await _visit(town, watch, 1500)
    assert watch.leaks
