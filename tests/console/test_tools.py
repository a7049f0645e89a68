"""Tools in a real browser: found as one types, tried with a form, set, and accepted when they changed."""

import json
import sys
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Page, expect

from console.browsing import OpenConsole, keep_texts, kept_texts
from dragoman import Hub
from servers.everything_server import picture
from servers.hubs import quick

pytestmark = pytest.mark.anyio
STDIO = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")


@dataclass
class Person:
    name: str
    age: int | None = None


def plan_party(
    place: str,
    guests: list[Person],
    mood: Literal["quiet", "loud"] = "quiet",
    budget: float | None = None,
    host: Person | None = None,
    outside: bool = False,
    extra: dict[str, Any] | None = None,
) -> dict[str, Any]:
    """Plans a party with <b>guests</b> and all."""
    return {
        "place": place,
        "names": [guest.name for guest in guests],
        "mood": mood,
        "budget": budget,
        "host": host and host.name,
        "extra": extra,
    }


def draw() -> bytes:
    """One grey pixel."""
    return b64decode(picture())


async def _add_servers(hub: Hub) -> None:
    facts = quick(command=sys.executable, args=[STDIO], pin="block")
    await hub.connectors.add("faults", **facts)
    hub.add_tool(plan_party)
    hub.add_tool(draw)


async def _found(page: Page, text: str) -> None:
    await expect(page.locator("#found")).to_contain_text(text)


async def test_tools_are_found_as_one_types(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/tools")
        await expect(page.get_by_text("No tools yet")).to_be_visible()
        await _add_servers(console.hub)
        await page.reload()
        await _found(page, "36 of 36")
        search = page.get_by_label("What should the tool do?")
        await search.press_sequentially("plan a party", delay=20)
        await _found(page, "by words and by meaning (hybrid)")
        await expect(page.locator("#tool-rows tr").first).to_contain_text("plan_party")
        await expect(search).to_be_focused()
        await console.picture(page, "tools_found")
        await search.fill("(")
        await page.get_by_title("How words are looked for").click()
        await page.get_by_label("Strategy").select_option("regex")
        await expect(page.get_by_role("alert")).to_be_visible()
        await search.fill("_send$")
        await _found(page, "by pattern (regex)")
        await expect(page.locator("#tool-rows tr")).to_have_count(3)
        connector = page.get_by_label("Connector")
        await connector.press_sequentially("fau")
        await expect(page.locator("#connector-known option")).to_have_count(1)
        await connector.fill("faults")
        await connector.press("Tab")
        await _found(page, "3 of 34")
        await page.reload()
        await _found(page, "3 of 34")
        await search.fill("no such thing at all")
        await _found(page, "Nothing fits")

        await search.fill("")
        await _found(page, "34 of 34")
        asked: list[str] = []
        page.on("request", lambda request: asked.append(f"{request.method} {urlsplit(request.url).path}"))
        switch = page.get_by_role("switch", name="faults.echo is enabled")
        await switch.click()
        await expect(switch).to_have_attribute("aria-checked", "false")
        assert "GET /tools" not in asked  # a list that is older than the switch
        assert console.hub.tools.get("mcp_faults_echo").enabled is False
        await page.get_by_label("Choose all").check()
        await page.get_by_role("toolbar").get_by_role("button", name="Turn off").click()
        await expect(page.locator("#notes")).to_contain_text("34 tools turned off.")
        await page.locator("#notes").get_by_role("button", name="Undo").click()
        await expect(page.locator("#notes")).to_contain_text("33 tools turned on.")
        assert console.hub.tools.get("mcp_faults_echo").enabled is False
        await page.get_by_label("State").select_option("off")
        await _found(page, "1 of 1")


async def test_a_tool_is_tried_with_a_form_made_from_its_schema(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await _add_servers(console.hub)
        page = await console.page("/tools/plan_party")
        tried = page.locator("#tried")
        await expect(page.get_by_text("Plans a party with <b>guests</b> and all.")).to_be_visible()
        guests = page.get_by_role("group", name="guests")
        for number in (1, 2):
            await page.get_by_role("button", name="Add to guests").click()
            await expect(guests.get_by_label("name")).to_have_count(number)
        await guests.get_by_label("name").nth(0).fill("Ada <script>")
        await guests.get_by_label("name").nth(1).fill("Bob")
        await guests.get_by_label("age").nth(1).fill("x")
        await page.get_by_label("place").fill("Garden")
        await page.get_by_label("mood").select_option("loud")
        await page.get_by_label("budget").fill("12.5")
        await page.get_by_role("checkbox", name="give it").check()
        await page.get_by_role("group", name="host").get_by_label("name").fill("Eve")
        await page.get_by_label("extra").fill("{oops")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_text("Nothing was sent.")).to_be_visible()
        await expect(page.get_by_text("This is not valid JSON")).to_be_visible()
        await expect(page.get_by_text("Give a whole number.")).to_be_visible()
        await expect(tried).to_be_empty()
        await console.picture(page, "tools_form")

        await guests.get_by_label("age").nth(1).fill("7")
        await page.get_by_label("extra").fill('{"cake": [1]}')
        await page.get_by_role("button", name="Call it").click()
        await expect(tried).to_contain_text('"Ada <script>"')
        await expect(tried).to_contain_text('"budget": 12.5')
        await expect(tried).to_contain_text('"host": "Eve"')
        await console.picture(page, "tools_tried")

        await page.get_by_role("button", name="Remove guests 1").click()
        await expect(guests.get_by_label("name")).to_have_count(1)
        await expect(guests.get_by_label("name")).to_have_value("Bob")
        await page.get_by_role("button", name="As JSON").click()
        arguments = page.get_by_label("Arguments as JSON")
        given = json.loads(await arguments.input_value())
        assert given["guests"] == [{"name": "Bob", "age": 7}]
        assert (given["host"], given["extra"]) == ({"name": "Eve"}, {"cake": [1]})
        await arguments.fill('{"place": "Hall", "guests": []}')
        await page.get_by_role("button", name="As a form").click()
        await expect(page.get_by_label("place")).to_have_value("Hall")
        await page.get_by_role("button", name="Call it").click()
        await expect(tried).to_contain_text('"place": "Hall"')


async def test_pictures_texts_and_failures_are_shown_as_what_they_are(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await _add_servers(console.hub)
        page = await console.page("/tools/draw")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_role("img", name="Picture that the tool gave")).to_be_visible()
        assert await page.evaluate("document.querySelector('.picture img').naturalWidth") == 1

        await page.goto(console.url + "/tools/mcp_faults_echo")
        await page.get_by_label("text").fill("<img src=x onerror=alert(1)>")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_role("region", name="Text")).to_have_text("<img src=x onerror=alert(1)>")

        await page.goto(console.url + "/tools/mcp_faults_fail")
        await page.get_by_label("text").fill("no disk left")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#tried")).to_contain_text("no disk left")
        await expect(page.locator("#tried")).to_contain_text("tool_failed")
        await console.picture(page, "tools_failed")

        await page.goto(console.url + "/tools/mcp_faults_big")
        await page.get_by_label("bytes").fill("400000")
        await page.get_by_role("button", name="Call it").click()
        async with page.expect_download() as whole:
            await page.get_by_role("link", name="Download the whole result").click()
        text = (await (await whole.value).path()).read_text()
        assert len(text) >= 400_000


async def test_what_a_server_asks_is_answered_where_its_tool_is_tried(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    asking = str(Path(STDIO).with_name("asking_stdio.py"))
    async with open_console(tmp_path) as console:
        await _add_servers(console.hub)
        facts = quick(command=sys.executable, args=["-S", asking, "1"])
        await console.hub.connectors.add("old", **facts)
        page = await console.page("/tools/mcp_old_rename")
        tried = page.locator("#tried")
        await page.get_by_role("textbox", name="old").fill("bob")
        await page.get_by_role("button", name="Call it").click()
        await expect(tried).to_contain_text("The server of old asks")
        await expect(tried).to_contain_text("What is the new name of bob?")
        await tried.get_by_label("name").fill("Ada")
        await console.picture(page, "tools_asked")
        await tried.get_by_role("button", name="Answer").click()
        await expect(tried).to_contain_text("bob is Ada")
        await page.get_by_role("button", name="Call it").click()
        await tried.get_by_role("button", name="Decline").click()
        await expect(tried).to_contain_text("declined to answer")

        page = await console.page("/tools/mcp_old_visit")
        await page.get_by_role("button", name="Call it").click()
        link = page.locator("#tried").get_by_role("link", name="https://x.example/s")
        await expect(link).to_have_attribute("rel", "noopener noreferrer")
        other = await console.page("/approvals")
        await expect(other.get_by_role("heading", name="The server of old asks")).to_be_visible()
        await other.get_by_role("button", name="Done").click()
        await expect(page.locator("#tried")).to_contain_text("accept")

        page = await console.page("/tools/mcp_faults_steps")
        await page.get_by_role("textbox", name="count", exact=True).fill("3")
        await page.get_by_role("textbox", name="seconds", exact=True).fill("0.4")
        await keep_texts(page, "#tried")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#tried")).to_contain_text("3 steps")
        assert any("2 of 3" in text for text in await kept_texts(page))


async def test_a_changed_tool_is_accepted_and_settings_are_kept(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        hub = console.hub
        await _add_servers(hub)
        await hub.call("mcp_faults_change_tool", {"name": "echo"})
        await hub.connectors.refresh("faults")
        page = await console.page("/connectors/faults")
        await expect(page.get_by_role("region", name="Changed tools")).to_contain_text("1 tool changed")
        await page.get_by_role("link", name="Review echo").click()
        await expect(page.get_by_text("It changed since somebody looked at it")).to_be_visible()
        await expect(page.locator(".diff .plus").first).to_contain_text("changed 1 times")
        await console.picture(page, "tools_changed")
        await page.get_by_label("text").fill("hello")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#tried")).to_contain_text("tool_changed")
        await page.get_by_role("button", name="Accept version 2").click()
        await expect(page.get_by_text("It changed since somebody looked at it")).to_have_count(0)
        await expect(page.get_by_label("text")).to_have_value("hello")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_role("region", name="Text")).to_have_text("hello")

        settings = page.locator("#settings-said")
        await page.get_by_label("A call costs, in dollars").fill("a lot")
        await page.get_by_role("button", name="Save").click()
        await expect(settings).to_contain_text("what a call costs must be a number")
        await page.get_by_label("A call costs, in dollars").fill("0.25")
        await page.get_by_label("agents").uncheck()
        await page.get_by_label("Approval", exact=True).select_option("never")
        await page.get_by_role("button", name="Save").click()
        await expect(settings).to_contain_text("Saved.")
        tool = hub.tools.get("mcp_faults_echo")
        assert (tool.cost, tool.approval, tool.allowed_callers) == (0.25, "never", {"direct", "mcp"})
        await page.reload()
        await expect(page.get_by_label("agents")).not_to_be_checked()


async def test_code_is_run_and_its_faults_are_shown(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        await _add_servers(console.hub)
        page = await console.page("/code")
        await page.get_by_role("button", name="Run it").click()
        await expect(page.get_by_label("Result", exact=True)).not_to_have_text("0")
        code = page.get_by_label("Python that calls tools")
        await code.fill(
            "words = [await faults.echo(text=f'<b>{n}</b>') for n in range(3)]\nprint(words[0])\nlen(words)"
        )
        await page.get_by_role("button", name="Run it").click()
        await expect(page.get_by_label("Printed")).to_have_text("<b>0</b>")
        await expect(page.get_by_label("Result", exact=True)).to_have_text("3")
        await expect(page.locator("#ran .figure").first).to_contain_text("3")
        await console.picture(page, "code")
        await code.fill("a = 1\nnone_such(a)")
        await page.get_by_role("button", name="Run it").click()
        await expect(page.locator("#ran")).to_contain_text("It did not work")
        await expect(page.locator("#ran")).to_contain_text("in line 2")
