"""Bundles in a real Chromium: made, their tools overridden, what is wrong said, taken out, removed."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from console.test_agents import agree
from servers.samples import sample

pytestmark = pytest.mark.anyio


async def test_a_bundle_is_made_and_its_tools_are_shown_as_a_person_wants(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path / "home", multi_user=True) as console:
        await console.hub.connectors.add("tracker", shared=True, **sample("tracker", tmp_path))
        page = await console.page("/bundles")
        await expect(page.get_by_text("No bundles yet")).to_be_visible()
        await page.get_by_label("Name").fill("support")
        await page.get_by_label("Tools").fill("nothing__list_issues")
        await page.get_by_role("button", name="Create").click()
        await expect(page.locator("#notes")).to_contain_text("no connector 'nothing'")
        await page.get_by_label("Tools").fill("tracker__list_issues, tracker__create_issue")
        await page.get_by_label("For").select_option("workspace")
        await page.get_by_role("button", name="Create").click()
        await page.get_by_role("link", name="support").click()

        await page.locator("summary", has_text="tracker.list_issues").click()
        form = page.get_by_role("form", name="Override of tracker__list_issues")
        await form.get_by_label("Name", exact=True).fill("look")
        await form.get_by_label("Use of limit").select_option("fixed")
        await form.get_by_label("Value of limit").fill("many")
        await form.get_by_role("button", name="Save").click()
        await expect(page.locator("#notes")).to_contain_text("not what the tool's schema asks for")
        await form.get_by_label("Value of limit").fill("2")
        await form.get_by_label("New name of repository").fill("project")
        await form.get_by_role("button", name="Save").click()
        await expect(page.locator("summary", has_text="look")).to_be_visible()
        tool = console.hub.in_bundle("support").tools.get("look")
        assert {*tool.definition.input_schema["properties"]} >= {"project"}
        assert "limit" not in tool.definition.input_schema["properties"]

        await page.get_by_label("Instructions").fill("Be kind.")
        await page.get_by_role("button", name="Save settings").click()
        await expect(page.locator("#notes")).to_contain_text("The settings are saved")
        assert console.hub.bundles.find("support").instructions == "Be kind."
        member = await console.page("/bundles/support", key=await console.add_user("bob"))
        await expect(member.locator("summary", has_text="look")).to_be_visible()
        await expect(member.get_by_role("button", name="Save")).to_have_count(0)

        await page.locator("summary", has_text="tracker.create_issue").click()
        await page.get_by_role("button", name="Take out tracker__create_issue").click()
        await agree(page)
        await expect(page.locator("details.card")).to_have_count(1)
        await page.locator("summary", has_text="look").click()
        await console.picture(page, "bundle")
        await page.get_by_role("button", name="Remove").click()
        await agree(page)
        await expect(page.get_by_text("No bundles yet")).to_be_visible()
