"""Every page with content: none is too wide, and axe finds nothing of WCAG 2.1 A or AA amiss, light and dark.

With TEST_PICTURES=1 each is also a picture in `build/screens`, at both widths, for a person to look at.
"""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from conformance import node_tools
from console.browsing import NARROW, PICTURES_WANTED, WIDE, OpenConsole
from console.furnished import SETTINGS, furnished

pytestmark = pytest.mark.anyio
SCREENS = Path(__file__).parents[2] / "build" / "screens"
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]
# The scheme changes colours alone, so that the other rules have nothing new to find in the second one.
OF_COLOURS = ["color-contrast", "link-in-text-block"]
# Nothing may be wider than the page: what is wide scrolls inside.
_WIDER = "document.documentElement.scrollWidth - document.documentElement.clientWidth"
# People read `email.send`; what they wrote themselves stays as it is. The page of a tool says its name, too.
_NAMES_OF_PROGRAMS = "[...document.body.innerText.matchAll(/(?<!call )mcp_[a-z][a-z0-9-]*_[\\w-]+/g)].join()"


@pytest.fixture(scope="module")
def axe() -> str:
    tools = node_tools.find()
    if isinstance(tools, str):
        pytest.skip(tools)
    return (tools.folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def looked_at(page: Page, axe: str, name: str, size: tuple[int, int] = WIDE) -> list[str]:
    """Light and dark."""
    # Evaluated by the debugger and not by the page, whose policy allows no such script.
    await page.evaluate(axe)
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    found: list[str] = []
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        every = scheme == "light"
        rules = {"type": "tag", "values": TAGS} if every else {"type": "rule", "values": OF_COLOURS}
        options = {"runOnly": rules, "resultTypes": ["violations"]}
        answer: Any = await page.evaluate("options => axe.run(document, options)", options)
        found += [
            f"{name} {scheme} {size[0]}: {one['id']}: {node['target'][0]} {node['failureSummary'][:200]} "
            f"{node['html'][:150]}"
            for one in answer["violations"]
            for node in one["nodes"]
        ]
    return found


async def too_wide(page: Page, name: str) -> list[str]:
    wider: list[str] = []
    for width, height in (WIDE, NARROW):
        await page.set_viewport_size({"width": width, "height": height})
        if over := await page.evaluate(_WIDER):
            wider.append(f"{name} at {width}: {over} px too wide")
        for scheme in ("light", "dark") if PICTURES_WANTED else ():
            await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
            await page.screenshot(path=SCREENS / f"{name}_{width}_{scheme}.png", full_page=True)
    return wider


async def opened_fully(page: Page) -> None:
    """What is folded away counts too, and what is fetched by itself."""
    await page.wait_for_load_state(
        "networkidle" if "/log" not in page.url and "/chat" not in page.url else "load"
    )
    await page.evaluate("document.querySelectorAll('details:not(.drop)').forEach(one => { one.open = true })")


@pytest.mark.timeout(300)
async def test_no_page_is_too_wide_or_keeps_anybody_out(
    open_console: OpenConsole, tmp_path: Path, axe: str
) -> None:
    SCREENS.mkdir(parents=True, exist_ok=True)
    async with open_console(tmp_path / "home", **SETTINGS) as console:
        console.forgive("404")  # the page of faults is one of them
        async with furnished(console, tmp_path) as pages:
            found: list[str] = []
            # One tab for all: what it has compiled it need not compile again.
            page = await console.page()
            for name, path in pages.items():
                await page.goto(console.url + path)
                if name == "log":
                    await console.hub.call("plan_trip", {"city": "Atlantis"})
                    await page.wait_for_selector("#log-lines tr")
                elif name == "chat":  # what is off, failed or was never connected is not offered
                    at_hand = await page.locator(".at-hand").inner_text()
                    assert at_hand == "At hand: chat, email, tasks, tracker · 3 not ready"
                    assert "broken" not in await page.locator(".ask-agents").inner_text()
                elif name == "settings_installation":
                    await page.wait_for_selector("#models table")
                    await page.wait_for_selector("#rollout table")
                found += await too_wide(page, name)
                if name != "tool" and (names := await page.evaluate(_NAMES_OF_PROGRAMS)):
                    found.append(f"{name} shows names that are for programs: {names}")
                await opened_fully(page)
                found += await looked_at(page, axe, name)
            await page.context.clear_cookies()
            await page.goto(console.url + "/sign-in")
            found += await too_wide(page, "sign_in")
            assert not found, "\n".join(found)


async def test_no_page_without_content_keeps_anybody_out(
    open_console: OpenConsole, tmp_path: Path, axe: str
) -> None:
    async with open_console(tmp_path) as console:
        found: list[str] = []
        page = await console.page()
        for path in ("/", "/chat", "/connectors", "/tools", "/agents", "/runs", "/approvals", "/credentials",
                     "/keys", "/clients", "/audit", "/log", "/log/calls"):  # fmt: skip
            await page.goto(console.url + path)
            found += await looked_at(page, axe, path, NARROW)
        await page.context.clear_cookies()
        await page.goto(console.url + "/sign-in")
        found += await looked_at(page, axe, "sign-in")
        assert not found, "\n".join(found)
