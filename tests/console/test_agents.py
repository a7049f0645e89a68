"""The page of agents in a real Chromium: make, give, stop, remove; by mouse and by keyboard."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect

from console.browsing import Console, OpenConsole
from patience import until
from servers.samples import sample

pytestmark = pytest.mark.anyio


async def agree(page: Page) -> None:
    await page.locator("#ask button[value=yes]").click()


async def is_set(console: Console, **settings: Any) -> bool:
    agent = await console.hub.agents.get("triager")
    return all(getattr(agent, name) == value for name, value in settings.items())


async def test_an_agent_from_its_making_to_its_end(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        for name in ("tracker", "email"):
            await console.hub.connectors.add(name, **sample(name, tmp_path))
        page = await console.page("/agents")
        await expect(page.get_by_text("No workers yet")).to_be_visible()
        await console.picture(page, "agents_empty")
        await page.get_by_role("link", name="New agent").click()
        await page.get_by_label("Name").fill("triager")
        await page.get_by_label("Description").fill("sorts <b>issues</b>")
        await page.get_by_label("tracker").check()
        await console.picture(page, "agents_new")
        await page.get_by_role("button", name="Create").click()

        await expect(page.locator("h1")).to_have_text("@triager")
        has = page.get_by_role("list", name="Connectors it has")
        await expect(has).to_contain_text("tracker")
        await page.get_by_role("button", name="Give email").press("Enter")
        await expect(has).to_contain_text("email")
        await page.get_by_role("button", name="Take tracker away").click()
        await expect(has).not_to_contain_text("tracker")

        await page.get_by_label("Instructions").fill("Look twice.")
        await page.get_by_label("Model").fill("nonsense")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("nonsense")
        await page.get_by_label("Model").fill("offline")
        await page.get_by_label("Capabilities", exact=True).fill("mcp_email")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved.")).to_be_visible()
        agent = await console.hub.agents.get("triager")
        assert (agent.instructions, agent.model) == ("Look twice.", "offline")
        assert agent.capabilities == {"mcp_email"}
        assert agent.connectors == ("email",)
        await console.picture(page, "agent")

        await page.get_by_label("Capabilities", exact=True).fill("none")
        await page.get_by_label("Instructions").fill("")
        await page.get_by_role("button", name="Save").click()
        await until(lambda: is_set(console, instructions="", capabilities=frozenset()))
        await page.get_by_label("Capabilities", exact=True).fill("")
        await page.get_by_role("button", name="Save").click()
        await until(lambda: is_set(console, capabilities=None))

        await page.get_by_role("button", name="Stop").click()
        await expect(page.locator("#agent .chip").first).to_have_text("stopped")
        await page.get_by_role("button", name="Start").click()
        await expect(page.locator("#agent .chip").first).to_have_text("active")
        await page.get_by_role("button", name="Remove").click()
        await agree(page)
        await expect(page.get_by_text("No workers yet")).to_be_visible()


async def test_connectors_are_given_by_drag_and_by_keyboard(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        for name in ("tracker", "email"):
            await console.hub.connectors.add(name, **sample(name, tmp_path))
        await console.hub.agents.create("new")  # also the name of a page
        page = await console.page("/agents")
        card = page.locator("article", has=page.get_by_role("link", name="new", exact=True))
        await page.drag_and_drop("[data-connector=tracker]", "[data-agent=new]")
        has = page.get_by_role("list", name="Connectors of new")
        await expect(has).to_contain_text("tracker")

        chooser = card.get_by_label("Connector for new")
        await chooser.focus()
        await chooser.press("ArrowDown")
        await page.keyboard.press("Tab")
        await page.keyboard.press("Enter")
        await expect(has).to_contain_text("email")
        await expect(page.get_by_text("new has email now.")).to_be_visible()
        await console.picture(page, "agents")
        await card.get_by_role("button", name="Take tracker from new").press("Enter")
        await expect(has).not_to_contain_text("tracker")
        assert (await console.hub.agents.get("new")).connectors == ("email",)
        await card.get_by_role("link", name="new", exact=True).click()
        await expect(page.locator("h1")).to_have_text("@new")


async def test_the_operator_sets_the_rollout_and_nobody_else_sees_it(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        key = await console.add_user("ada", role="admin")
        page = await console.page("/agents")
        rollout = page.locator("#rollout")
        await expect(rollout.locator(".chip").first).to_have_text("on for all")
        await rollout.get_by_label("Share of users").fill("25")
        await rollout.get_by_role("button", name="Set").click()
        await expect(rollout.locator(".chip").first).to_have_text("on")
        await expect(rollout.get_by_label("Share of users")).to_have_value("25")
        await expect(rollout).to_contain_text("the arm agents has 0 of the 20 runs")
        await rollout.get_by_role("button", name="Reset").click()
        await agree(page)
        await expect(rollout.locator(".chip").first).to_have_text("on for all")

        hers = await console.page("/agents", key=key)
        await expect(hers.get_by_text("No workers yet")).to_be_visible()
        await expect(hers.locator("#rollout")).to_have_count(0)


async def test_a_member_looks_at_what_is_everybodys_and_a_narrow_key_changes_nothing(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        await console.hub.agents.create("desk", shared=True)
        member = await console.add_user("ada")
        page = await console.page("/agents/desk", key=member)
        await expect(page.get_by_text("an admin changes it")).to_be_visible()
        await expect(page.get_by_role("button", name="Remove")).to_have_count(0)

        reader = await console.add_user("bob", scopes=("read",))
        page = await console.page("/agents/new", key=reader)
        await page.get_by_label("Name").fill("mine")
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("alert")).to_contain_text("this needs a key with the scope 'manage'")
