"""Hooks and followed servers in a real Chromium: set, moved, tried, removed; proposed, enabled, gone."""

from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from console.browsing import OpenConsole
from console.test_agents import agree
from discovery.registry_server import open_registry, wrapped
from discovery.test_followed_registry import ASKING, FOLLOWING, NOWHERE, TIME
from patience import until
from servers.samples import sample

pytestmark = pytest.mark.anyio


async def add(page: Page, where: str, rule: str) -> None:
    await page.get_by_label("Where").select_option(where)
    await page.get_by_label("Rule", exact=True).fill(rule)
    await page.get_by_role("button", name="Add", exact=True).click()


async def test_hooks_are_set_moved_tried_and_removed_by_who_may(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path / "home", multi_user=True, hooks=("size 900000",)) as console:
        hub = console.hub
        await hub.connectors.add("tracker", shared=True, **sample("tracker", tmp_path))
        await hub.bundles.create("support", ["tracker"], tier="workspace")
        page = await console.page("/hooks")
        await expect(page.get_by_text("size 900000")).to_be_visible()
        await add(page, "the workspace", "sercets")
        await expect(page.locator("#notes")).to_contain_text("there is no hook 'sercets' here")
        for rule in ("secrets", "personal_data card"):
            await add(page, "the workspace", rule)
            await expect(page.get_by_label("of the workspace").last).to_have_value(rule)
        await add(page, "the connector tracker", "urls *.example.com")
        await expect(page.get_by_role("heading", name="3 · The connector tracker")).to_be_visible()
        await add(page, "the bundle support", "injection")
        await expect(page.get_by_role("heading", name="4 · The bundle support")).to_be_visible()
        await page.get_by_role("button", name="Move up personal_data card").click()
        await expect(page.get_by_label("Rule 1 of the workspace")).to_have_value("personal_data card")
        await page.get_by_label("Rule 2 of the workspace").fill("secrets refuse")
        await page.get_by_role("button", name="Save rules of the workspace").click()
        await expect(page.get_by_role("button", name="Remove secrets refuse")).to_be_visible()
        assert (await hub.hooks.list()).workspace == ("personal_data card", "secrets refuse")
        assert (await hub.connectors.get("tracker")).connector.configuration.hooks == ("urls *.example.com",)

        await page.get_by_label("Rule to try").fill("secrets")
        await page.get_by_label("Text of a result").fill("<b>the password is Tamarind-311</b>")
        await page.get_by_role("button", name="Try").click()
        await expect(page.locator("#tried pre")).to_have_text("<b>the password is [hidden: secret]</b>")
        member = await console.page("/hooks", key=await console.add_user("bob"))
        await expect(member.get_by_text("personal_data card", exact=True)).to_be_visible()
        await expect(member.get_by_role("button", name="Remove")).to_have_count(0)
        await expect(member.get_by_label("Where")).to_have_count(0)

        await page.get_by_role("button", name="Remove injection").click()
        await agree(page)
        await expect(page.get_by_role("heading", name="The bundle support")).to_have_count(0)
        assert hub.bundles.find("support").hooks == ()
        await page.evaluate("scrollTo(0, 0)")
        await console.picture(page, "hooks")


async def test_followed_servers_are_shown_with_what_would_run_and_enabled_by_a_person(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with (
        open_registry([wrapped(one) for one in (TIME, ASKING, NOWHERE)]) as peer,
        open_console(tmp_path / "home", registry_url=peer.url, **FOLLOWING) as console,
    ):
        page = await console.page("/registry")
        await page.get_by_role("button", name="Ask the registry now").click()
        row = page.get_by_role("row", name="io.example/time")
        await expect(row).to_contain_text("uvx mcp-server-time==0.6.2")
        await expect(row).to_contain_text("proposed, disabled")
        await expect(page.get_by_role("row", name="io.example/search")).to_contain_text("SEARCH_KEY")
        peer.records = [wrapped(TIME)]
        await page.get_by_role("button", name="Ask the registry now").click()
        gone = page.get_by_role("row", name="io.example/nowhere")
        await expect(gone).to_contain_text("gone from the registry")
        await page.get_by_role("button", name="Enable io.example/time").click()
        await agree(page)
        await expect(row).to_contain_text("enabled")

        async def is_on() -> bool:
            return (await console.hub.connectors.get("time")).connector.enabled

        await until(is_on)
        await console.picture(page, "registry")
