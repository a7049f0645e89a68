"""The documentation in a real Chromium: search, light and dark, a small screen."""

import http.server
import threading
from collections.abc import Generator
from functools import partial
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest
from playwright.async_api import Browser, Page, async_playwright

from console.browsing import CHROMIUM, FLAGS, NARROW, WIDE
from patience import patient, until

pytestmark = pytest.mark.anyio


class Quiet(http.server.SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: Any) -> None:
        pass


@pytest.fixture
def address(site: Path) -> Generator[str]:
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), partial(Quiet, directory=str(site))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()


@pytest.mark.browser
@pytest.mark.skipif(not CHROMIUM.exists(), reason=f"there is no {CHROMIUM}")
async def test_a_reader_searches_in_the_dark_and_on_a_phone(address: str) -> None:
    complaints: list[str] = []
    async with async_playwright() as driver:
        browser = await driver.chromium.launch(executable_path=CHROMIUM, args=list(FLAGS))
        page = await opened(browser, complaints, WIDE, "light")
        await page.goto(f"{address}/index.html")
        light = await background(page)
        dialog = page.get_by_role("dialog", name="Search")

        async def is_open() -> bool:  # what is pressed before the page has its script is heard by nobody
            await page.keyboard.press("Control+k")
            return bool(await page.locator("dialog[open]").count())

        await until(is_open)
        await page.keyboard.type("limit_reached")
        first = dialog.get_by_role("option").first
        await first.wait_for()
        await first.click()
        await page.wait_for_url("**/reference/errors.html*")

        page = await opened(browser, complaints, NARROW, "dark")
        for place in ("index", "concepts", "guides/operating", "settings", "reference/commands"):
            await page.goto(f"{address}/{place}.html")
            width = await page.evaluate("document.documentElement.scrollWidth")
            assert width <= NARROW[0], f"{place} is {width} wide"
        assert sum(await background(page)) < sum(light) / 3
        await browser.close()
    assert complaints == []


async def opened(browser: Browser, complaints: list[str], size: tuple[int, int], scheme: Any) -> Page:
    page = await browser.new_page(viewport={"width": size[0], "height": size[1]}, color_scheme=scheme)
    page.set_default_timeout(patient(10_000))
    page.on("pageerror", lambda error: complaints.append(str(error)))
    page.on(
        "request",
        lambda request: (
            None
            if urlsplit(request.url).hostname in ("127.0.0.1", "", None)
            else complaints.append(f"outside: {request.url}")
        ),
    )
    return page


async def background(page: Page) -> list[int]:
    """Red, green and blue of the page."""
    text = await page.evaluate("getComputedStyle(document.body).backgroundColor")
    return [int(part) for part in text[text.index("(") + 1 : -1].split(",")[:3]]
