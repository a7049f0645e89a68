"""Numbers over time in a browser: tiles, charts by pointer and keyboard, tables, CSV; and what waits."""

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest
from playwright.async_api import Response, expect

from console.browsing import OpenConsole
from dragoman.tool import Annotations
from servers.hubs import until

pytestmark = pytest.mark.anyio


async def test_charts_are_read_by_pointer_keyboard_table_and_as_csv(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:

        @console.hub.tool
        async def greet(name: str) -> str:
            """Greets."""
            if name == "nobody":
                raise ValueError("nobody is there")
            return name

        page = await console.page("/")
        await expect(page.locator(".tile", has_text="Calls")).to_contain_text("nothing before")
        for name in ("Ada", "Bob", "nobody"):
            await console.hub.call("greet", {"name": name})
        await page.goto(console.url + "/?range=1h")
        tiles = page.locator(".tile")
        await expect(tiles.nth(0)).to_contain_text("3")
        await expect(tiles.nth(1)).to_contain_text("33.3%")
        assert await tiles.nth(1).get_attribute("href") == "/log/calls?errors=yes"
        chart = page.locator("#chart-calls")
        await chart.locator(".marks").focus()
        await page.keyboard.press("End")
        await expect(chart.locator(".tip")).to_contain_text("errors1")
        await page.keyboard.press("ArrowLeft")
        await expect(chart.locator(".tip")).to_contain_text("errors0")
        await page.locator("h1").click()
        await expect(chart.locator(".tip")).to_be_hidden()
        box = await chart.locator(".marks").bounding_box()
        assert box is not None
        await page.mouse.move(box["x"] + box["width"] - 2, box["y"] + 20)
        await expect(chart.locator(".tip")).to_contain_text("ok2")
        await chart.get_by_label("Calls and errors as a table").click()
        await expect(chart.locator("tbody tr")).to_have_count(60)
        await expect(chart.locator("tbody tr").last).to_contain_text("2")

        await page.goto(console.url + "/charts?range=1h&split=tool")
        row = page.locator("tr", has=page.get_by_role("link", name="greet"))
        await expect(row).to_contain_text("33.3%")
        await page.get_by_label("Client", exact=True).select_option("mcp")
        await expect(page.locator(".tile").first).to_contain_text("0")
        async with page.expect_download() as download:
            await page.locator(".top-actions").get_by_role("link", name="CSV").click()
        lines = Path(await (await download.value).path()).read_text().splitlines()
        assert lines[0].startswith("start,tool,calls,errors,p50_ms")
        assert len(lines) == 61
        assert ",greet,3,1," in lines[-1]

        # The same numbers on the pages of who made them: a user's, and an agent's, which made none.
        owner = console.hub.caller.user
        for path, heading in ((f"/keys/users/{owner}", "3 calls, 0 runs"), ("/agents/assistant", "0 calls")):
            await page.goto(console.url + path)
            await expect(page.locator("h2", has_text=f"{heading}")).to_contain_text("last 24 hours")
            await page.get_by_role("navigation", name="Time range").get_by_text("7d").click()
            await expect(page.locator("h2", has_text=f"{heading}")).to_contain_text("last 7 days")
            # Who did nothing has a sentence and no empty charts.
            await expect(page.locator("#chart-calls")).to_have_count(int("3 calls" in heading))
            await expect(page.get_by_text("Nothing to draw yet")).to_have_count(int("3 calls" not in heading))

        page = await console.page("/charts", key=await console.add_user("eve"))
        await expect(page.get_by_text("Your own numbers")).to_be_visible()
        await expect(page.get_by_label("User", exact=True)).to_have_count(0)
        await expect(page.locator(".tile").first).to_contain_text("0")


async def test_what_waits_stands_in_the_menu_and_in_the_title(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console, asyncio.TaskGroup() as tasks:

        @console.hub.tool(annotations=Annotations(destructive=True))
        async def burn(what: str) -> str:
            """Burns it."""
            return what

        page = await console.page("/tools")
        await expect(page).to_have_title("Tools · Dragoman")
        agent = console.hub.acting_for(replace(console.hub.caller, way="agent", agent="mailer"))
        call = tasks.create_task(agent.call("burn", {"what": "letters"}))

        async def is_asked() -> bool:
            return bool(await console.hub.approvals.list())

        await until(is_asked)
        await page.reload()
        await expect(page).to_have_title("(1) Tools · Dragoman")
        await expect(page.locator("#side .badge")).to_have_text("1 waiting")
        [asked] = await console.hub.approvals.list()
        await console.hub.approvals.answer(asked.approval.id, "once")
        await call
        await page.reload()
        await expect(page.locator("#side .badge")).to_have_count(0)
        await expect(page).to_have_title("Tools · Dragoman")


async def test_every_file_of_a_page_has_an_address_that_may_be_kept_for_ever(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/settings")
        heard: list[Response] = []
        page.on("response", lambda one: heard.append(one))
        await page.goto(f"{console.url}/chat")
        await page.wait_for_load_state("networkidle")
        files = {one.url: one for one in heard if "/static/" in one.url}
        names = {url.rsplit("/", 1)[1].partition("?")[0] for url in files}
        assert names >= {"style.css", "chat.js", "chat_stream.js", "chat_code.js", "inter.woff2"}
        kept = {await one.header_value("cache-control") for one in files.values()}
        assert kept == {"public, max-age=31536000, immutable"}
        bare = f"{console.url}/static/chat.js"
        mark = (await page.request.get(bare)).headers["etag"]
        assert (await page.request.get(bare, headers={"if-none-match": mark})).status == 304
        for strange in ("..%2fapp.py", "vendor", "nothing.js"):
            assert (await page.request.get(f"{console.url}/static/{strange}")).status == 404
        await page.evaluate("document.fonts.ready")
        assert await page.evaluate("[...document.fonts].map(one => one.status)") == ["loaded"]
