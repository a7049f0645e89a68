from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole

pytestmark = pytest.mark.anyio


async def test_y(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        key = await console.add_user("ada")
        page = await console.page("/", key=key)
        await expect(page.locator("h1")).to_have_text("Overview")
