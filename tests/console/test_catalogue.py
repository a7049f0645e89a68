"""Adding a connector from the catalogue, in a real Chromium: what would run is shown, needs are a form."""

import os
from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from dragoman.discovery import find_common, list_common
from servers.samples import sample_program

pytestmark = pytest.mark.anyio


async def test_a_tile_asks_for_what_its_server_needs_and_adds_it(
    open_console: OpenConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A runner that starts a server of ours instead of one from the network.
    program = sample_program("tracker", tmp_path)
    words = " ".join(f"'{word}'" for word in (program["command"], *program["args"]))
    runner = tmp_path / "bin" / "npx"
    runner.parent.mkdir()
    runner.write_text(f"#!/bin/sh\nexec {words}\n")
    runner.chmod(0o755)
    monkeypatch.setenv("PATH", f"{runner.parent}{os.pathsep}{os.environ['PATH']}")
    async with open_console(tmp_path / "home", discovery="off") as console:
        page = await console.page("/connectors/new")
        await console.picture(page, "catalogue")
        await page.get_by_role("button", name="Notion NOTION_TOKEN").click()
        await expect(page.get_by_label("Exactly what would run")).to_have_text(
            "npx -y @notionhq/notion-mcp-server"
        )
        await page.get_by_role("button", name="Add it").click()
        await expect(page.locator("#offer")).to_contain_text("NOTION_TOKEN is needed")
        await page.get_by_label("NOTION_TOKEN").fill("ntn-canary-7788")
        await console.picture(page, "catalogue_offer")
        await page.get_by_role("button", name="Add it").click()
        await page.wait_for_url("**/connectors/notion")
        assert "ntn-canary-7788" not in await page.content()
        connector = (await console.hub.connectors.get("notion")).connector
        assert connector.configuration.secrets == ("env:NOTION_TOKEN",)
        assert console.hub.tools.list("notion")


def test_every_common_server_can_be_added_and_says_where_it_comes_from() -> None:
    servers = [one for group in list_common().values() for one in group]
    assert len(servers) >= 20
    for one in servers:
        assert one.ways, one.refused
        assert not one.refused
        assert one.website.startswith("https://github.com/")
        assert find_common(one.name) == one
    assert len({one.slug for one in servers}) == len(servers)
