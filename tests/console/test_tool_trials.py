"""Trying a tool in a real Chromium: asked first, cancelled, a result as a tree, history, replay, copies."""

import asyncio
import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from dragoman.tool import Annotations
from patience import until
from servers.hubs import quick
from servers.processes import stdio

pytestmark = pytest.mark.anyio
HOSTILE = "<img src=x onerror=alert(1)>"


async def test_a_result_is_searched_replayed_compared_and_copied(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        hub = console.hub

        @hub.tool
        def survey(city: str) -> dict[str, Any]:
            """Looks around."""
            streets = [{"name": f"{city} street {number}", HOSTILE: number} for number in range(300)]
            return {"city": city, "streets": streets, "mayor": {"name": "Ada", "note": HOSTILE}}

        assert survey
        page = await console.page("/tools/survey", permissions=["clipboard-read", "clipboard-write"])
        call = page.get_by_role("button", name="Call it")
        await page.get_by_label("city").fill('It\'s "Rome"')
        await call.click()
        tree = page.get_by_role("region", name="Result as a tree")
        await expect(tree).to_be_visible()
        await expect(tree.get_by_text("street 299")).to_have_count(0)
        await page.get_by_label("Search the result").fill("street 299")
        await expect(tree.locator(".hit")).to_have_count(1)
        await expect(tree.locator(".hit")).to_be_visible()
        await page.get_by_label("Search the result").fill("onerror")
        await expect(page.get_by_text("301 found")).to_be_visible()
        await expect(page.locator("#tried img")).to_have_count(0)
        await page.get_by_label("Search the result").fill("")
        for name, holds in (("curl", "/api/call"), ("Python", "hub.call("), ("CLI", "dragoman call survey")):
            await page.locator("#tried").get_by_role("button", name=name).click()
            text = await page.evaluate("navigator.clipboard.readText()")
            assert holds in text
            if name == "CLI":
                assert json.loads(shlex.split(text)[-1]) == {"city": 'It\'s "Rome"'}
            if name == "curl":
                body = json.loads(shlex.split(text)[-1])
                assert body == {"tool": "survey", "arguments": {"city": 'It\'s "Rome"'}}
        await console.picture(page, "tool_tree")

        await page.get_by_label("city").fill("Oslo")
        await call.click()
        trials = page.locator(".trials li")
        await expect(trials).to_have_count(2)
        await trials.nth(1).get_by_role("button", name="Compare with latest").click()
        differ = page.get_by_role("region", name="What differs")
        await expect(differ.locator(".plus").first).to_have_text('+   "city": "Oslo",')
        await expect(differ.locator(".minus").first).to_contain_text("Rome")
        await page.reload()
        await trials.nth(1).get_by_role("button", name="Replay").click()
        await expect(page.get_by_label("city")).to_have_value('It\'s "Rome"')
        await call.click()
        await expect(trials).to_have_count(3)
        await page.locator("#history").scroll_into_view_if_needed()
        await console.picture(page, "tool_history")
        await page.get_by_role("button", name="Clear").click()
        await expect(page.locator("#history")).to_be_hidden()


async def test_what_destroys_is_asked_for_and_what_lasts_is_cancelled(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    burnt: list[str] = []
    ended: list[str] = []
    async with open_console(tmp_path) as console:
        hub = console.hub

        @hub.tool(annotations=Annotations(destructive=True, read_only=False))
        def burn(what: str) -> str:
            """Burns something for good."""
            burnt.append(what)
            return "ashes"

        @hub.tool
        async def wait() -> str:
            """Never ends by itself."""
            try:
                await asyncio.Event().wait()
            finally:
                ended.append("cancelled")
            return ""

        assert burn
        assert wait
        page = await console.page("/tools/burn")
        await page.get_by_label("what").fill("letters")
        call = page.locator("#try").get_by_role("button", name="Call it")
        await call.click()
        await expect(page.locator("#ask")).to_contain_text("It can destroy something.")
        await console.picture(page, "tool_sure")
        await page.locator("#ask").get_by_role("button", name="Cancel").click()
        assert not burnt
        await call.click()
        await page.locator("#ask").get_by_role("button", name="Call it").click()
        await expect(page.locator("#tried")).to_contain_text("ashes")
        assert burnt == ["letters"]

        await page.goto(f"{console.url}/tools/wait")
        await page.get_by_role("button", name="Call it").click()
        await page.get_by_role("button", name="Cancel", exact=True).click()
        await expect(page.locator("#tried")).to_contain_text("Cancelled.")
        await until(lambda: ended == ["cancelled"])
        await expect(page.locator("#try .busy")).to_be_hidden()


async def test_the_protocol_messages_of_a_call_are_shown_on_request(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("box", **quick(**stdio("--era", "2025")))
        page = await console.page("/tools/mcp_box_echo")
        await page.get_by_label("text").fill("hello there")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.locator("#tried")).to_contain_text("hello there")
        await expect(page.locator("#tried .messages")).to_have_count(0)
        await page.get_by_label("Show protocol messages").check()
        await page.get_by_role("button", name="Call it").click()
        messages = page.locator("#tried .messages li")
        await expect(messages).to_have_count(2)
        await expect(messages.nth(0)).to_contain_text('"method": "tools/call"')
        await expect(messages.nth(0)).to_contain_text('"text": "hello there"')
        await expect(messages.nth(1)).to_contain_text('"result"')
        await expect(page.get_by_label("Show protocol messages")).to_be_checked()
        await console.picture(page, "tool_messages")
