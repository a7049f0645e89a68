"""Recipes in a real Chromium: kept below an answer, then edited, shared and deleted on their page."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from console.chatting import is_over, write
from console.speaking import Speaker
from console.test_agents import agree
from servers.samples import sample

pytestmark = pytest.mark.anyio


async def test_an_answer_is_kept_as_a_recipe_and_the_recipe_edited_shared_and_deleted(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path / "home", model="speaker", multi_user=True) as console:
        Speaker().install(console.hub)
        await console.hub.connectors.add("tracker", shared=True, **sample("tracker", tmp_path))
        page = await console.page("/recipes")
        await expect(page.get_by_text("No recipes yet")).to_be_visible()
        await page.get_by_role("link", name="Switch them on").click()
        await page.get_by_label("Recipes").select_option("yes")
        await page.get_by_role("button", name="Save").first.click()
        await expect(page.locator("#notes")).to_contain_text("Saved")

        await page.goto(console.url + "/chat")
        await write(page, '@tracker call mcp_tracker_list_issues {"repository": "xyne", "limit": 2}')
        await is_over(page)
        await page.get_by_role("button", name="Keep as recipe").click()
        await page.get_by_role("link", name="Kept", exact=True).click()
        text = page.get_by_label("How it was done")
        await expect(text).to_have_value("1. mcp_tracker_list_issues(repository: string, limit: integer)")
        await expect(page.get_by_label("What was asked")).not_to_have_value("xyne")

        await text.fill("1. list them <b>all</b>")
        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("#notes")).to_contain_text("Saved")
        await page.get_by_label("How it was done").fill("1. for everybody")
        await page.get_by_role("button", name="Share").click()
        await agree(page)
        await expect(page.locator("form.recipe")).to_have_count(2)
        own, shared = (
            page.locator("form.recipe", has_text="only you"),
            page.locator("form.recipe", has_text="shared"),
        )
        await expect(own.get_by_label("How it was done")).to_have_value("1. list them <b>all</b>")
        await expect(shared.get_by_label("How it was done")).to_have_value("1. for everybody")
        await own.get_by_role("button", name="Delete").click()
        await agree(page)
        await expect(page.locator("form.recipe")).to_have_count(1)

        member = await console.page("/recipes", key=await console.add_user("bob"))
        await expect(member.get_by_label("How it was done")).to_have_value("1. for everybody")
        await expect(member.get_by_label("How it was done")).not_to_be_editable()
        await expect(member.get_by_role("button", name="Save")).to_have_count(0)
        await console.picture(page, "recipes")
