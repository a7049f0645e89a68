"""The page of nodes: for who runs several processes, who lives and who holds what."""

import sys
from contextlib import AsyncExitStack
from pathlib import Path

import pytest
from playwright.async_api import expect

from cluster.nats_server import NatsServer
from cluster.nodes import KEY, open_hubs, patient_leases
from console.browsing import OpenConsole

STDIO = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")

pytestmark = [pytest.mark.anyio, pytest.mark.browser]


async def test_who_lives_and_holds_what_is_seen_and_moved(
    open_console: OpenConsole, tmp_path: Path, postgres_url: str
) -> None:
    async with AsyncExitStack() as stack:
        stack.enter_context(patient_leases())
        nats = await stack.enter_async_context(NatsServer(tmp_path / "nats"))
        shared = {"key": KEY, "database_url": postgres_url, "cluster_url": (nats.url,)}
        async with open_console(tmp_path / "home", **shared) as console:
            hub = console.hub
            await hub.connectors.add("reports", command=sys.executable, args=["-S", STDIO])
            page = await console.page("/")
            await page.get_by_role("link", name="Nodes").click()
            here = page.get_by_role("region").filter(has_text="answers you")
            await expect(here).to_contain_text("reports for owner")
            await expect(page.get_by_role("button", name="Move")).to_have_count(0)
            async with open_hubs(tmp_path, postgres_url, nats, 1) as (other,):
                name = (await other.cluster.status()).node
                there = page.get_by_role("region", name=name)
                await expect(there).to_contain_text("lives")
                await page.get_by_label("Move reports to").select_option(name)
                await page.get_by_role("button", name="Move").click()
                await expect(there).to_contain_text("reports for owner, chosen by hand")
                await console.picture(page, "nodes")
                await expect(there).not_to_contain_text("drains")
                await other.drain(0)
                await expect(there).to_contain_text("drains")
            await expect(there).to_have_count(0)


async def test_one_process_alone_has_no_page_of_nodes_in_its_menu(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/cluster")
        await expect(page.get_by_role("heading", name="One process alone")).to_be_visible()
        await expect(page.get_by_role("link", name="Nodes")).to_have_count(0)
