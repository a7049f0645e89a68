"""What a person does and sees in a chat of the console."""

import re

from playwright.async_api import Locator, Page, expect


async def write(page: Page, text: str) -> None:
    """Sends a message; the first of a chat leads to its page."""
    await page.fill("#message", text)
    await page.press("#message", "Enter")
    await page.wait_for_url(re.compile(r"/chat/thr_"))


def last_turn(page: Page) -> Locator:
    return page.locator(".turn").last


async def is_live(page: Page) -> None:
    await expect(page.locator("#live")).to_have_text("live")


async def is_over(page: Page, state: str = "done") -> None:
    await expect(last_turn(page)).to_have_attribute("data-state", state)
    await expect(page.locator("#typing")).to_be_hidden()
    await expect(page.locator("#stop")).to_be_hidden()
