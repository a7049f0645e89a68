"""One Chromium for all tests of this process; each test has its own hub and its own people.

async def test_a_page(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/tools")
        await expect(page.get_by_text("No tools yet")).to_be_visible()
"""

from collections.abc import AsyncGenerator
from functools import partial

import pytest
from playwright.async_api import Browser, async_playwright, expect

from console.browsing import CHROMIUM, FLAGS, OpenConsole, opened
from patience import patient


@pytest.fixture(scope="session")
async def browser(anyio_backend: str) -> AsyncGenerator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(
            f"{CHROMIUM} is missing: install Debian's package chromium-headless-shell to test the console"
        )
    expect.set_options(timeout=patient(10_000))
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(executable_path=CHROMIUM, args=[*FLAGS])
        yield browser
        await browser.close()


@pytest.fixture
def open_console(browser: Browser) -> OpenConsole:
    """`open_console(home, **settings)`: a hub with its console; see `console.browsing`."""
    return partial(opened, browser)
