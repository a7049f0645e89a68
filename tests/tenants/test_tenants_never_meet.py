"""Thousands of requests of many tenants, over every door, with each other's names and ids.

`cross_tenant.py` makes them; whatever comes back is searched for words that the asker may not see.
"""

import asyncio
from pathlib import Path
from typing import Any, cast

import pytest
from cross_tenant import CrossTenantRequests, Watch, find_planted, listening, look_at_rows
from planted_leaks import LEAKS
from population import Town, open_town
from visits import TOOLS

from dragoman.scope import Caller
from dragoman.web.encoding import encode

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(300), pytest.mark.slow]
SEED = 20261116


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
        seen += [await hub.acting_for(caller).resources.list(), await hub.acting_for(caller).prompts.list()]
        watch.look(tenant, "library", "lists", repr(seen))
        for name in TOOLS:
            output = await hub.acting_for(caller).call(name, {"text": "x"})
            watch.look(tenant, "library", name, encode(output))


async def test_twenty_tenants_and_thousands_of_requests_over_every_door_never_meet(
    database_url: str, tmp_path: Path
) -> None:
    """Fewer on PostgreSQL: the same rules in front of another engine, and three nodes ask it below."""
    count = 2000 if database_url.startswith("postgresql") else 5000
    async with open_town(tmp_path, SEED, workspaces=10, users=2, database_url=database_url) as town:
        watch = Watch(town)
        async with listening(town, watch):
            requests = await CrossTenantRequests.open(town, watch)
            assert await requests.make(count) == count
            await _use_library(town, watch)
            watch.own.clear()
            await asyncio.gather(*(town.furnish(tenant) for tenant in town.tenants))
            for tenant in town.tenants:
                await requests.look_at_own(tenant)
        await look_at_rows(town, watch)
        tokens = {headers.get("Authorization", "") for headers in town.upstream.headers}
        assert not [tenant.number for tenant in town.tenants if f"Bearer {tenant.key}" in tokens]
    assert not watch.leaks, "\n".join(watch.leaks)
    assert not watch.faults, "\n".join(watch.faults)
    for door in ("REST", "console", "events"):
        assert all(watch.own[door, tenant.number] for tenant in town.tenants), door
    # Some have lost their connectors on the way.
    assert sum(watch.own["MCP", tenant.number] > 0 for tenant in town.tenants) > 10
    assert all(asked > count * 0.06 for asked in watch.count("door").values())
    assert watch.count("whose")["another workspace's"] > count * 0.4
    assert watch.count("status")[200] > count * 0.1
    assert watch.count("status")[404] > count * 0.2


async def test_tenants_never_meet_at_three_nodes(postgres_url: str, tmp_path: Path) -> None:
    """A sample; `bench/tenants.py --nodes 3` asks twenty of them for longer."""
    async with open_town(tmp_path, SEED, 3, 2, nodes=3, database_url=postgres_url) as town:
        watch = Watch(town)
        async with listening(town, watch):
            requests = await CrossTenantRequests.open(town, watch)
            assert await requests.make(400) == 400
        await look_at_rows(town, watch)
    assert not watch.leaks, "\n".join(watch.leaks)
    assert not watch.faults, "\n".join(watch.faults)
    assert watch.events > 0
    assert watch.count("whose")["another workspace's"] > 100
    # What was made at one node is seen at each of them.
    assert all(any(watch.own[door, one.number] for door in ("REST", "MCP")) for one in town.tenants)


async def test_every_leak_that_is_planted_is_found(sqlite_url: str, tmp_path: Path) -> None:
    async with open_town(tmp_path, SEED, workspaces=3, users=2, database_url=sqlite_url) as town:
        clean = Watch(town)
        await (await CrossTenantRequests.open(town, clean)).make(200)
        assert clean.leaks == []
        found = await find_planted(town, LEAKS, most=10_000)
    assert len(found) >= 10
    assert [name for name, after in found.items() if after is None] == []
