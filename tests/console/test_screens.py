"""Every page at both widths, light and dark, as pictures in `build/screens` for a person to look at."""

from pathlib import Path

import pytest
from playwright.async_api import Page

from console.browsing import NARROW, WIDE, OpenConsole
from console.furnished import SETTINGS, furnished

pytestmark = pytest.mark.anyio
SCREENS = Path(__file__).parents[2] / "build" / "screens"
# Nothing may be wider than the page: what is wide scrolls inside.
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"


async def taken(page: Page, name: str) -> list[str]:
    wider: list[str] = []
    for width, height in (WIDE, NARROW):
        await page.set_viewport_size({"width": width, "height": height})
        if over := await page.evaluate(_WIDER):
            wider.append(f"{name} at {width}: {over} px too wide")
        for scheme in ("light", "dark"):
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.screenshot(path=SCREENS / f"{name}_{width}_{scheme}.png", full_page=True)
    return wider


async def test_every_page_is_pictured_and_none_is_too_wide(open_console: OpenConsole, tmp_path: Path) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    async with open_console(tmp_path / "home", **SETTINGS) as console:
        console.forgive("404")  # the page of faults is one of them
        async with furnished(console, tmp_path) as pages:
            wider: list[str] = []
            context = await console.context()
            for name, path in pages.items():
                page = await context.new_page()
                await page.goto(console.url + path)
                if name == "log":
                    await console.hub.call("plan_trip", {"city": "Atlantis"})
                    await page.wait_for_selector("#log-lines tr")
                elif name == "settings_installation":
                    await page.wait_for_selector("#models table")
                    await page.wait_for_selector("#rollout table")
                wider += await taken(page, name)
                await page.close()
            page = await console.page()
            await page.context.clear_cookies()
            await page.goto(console.url + "/sign-in")
            wider += await taken(page, "sign_in")
            assert not wider, wider
