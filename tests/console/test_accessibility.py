"""axe on every page with content, light and dark: nothing of WCAG 2.1 A or AA is amiss."""

from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page

from conformance import node_tools
from console.browsing import NARROW, WIDE, OpenConsole
from console.furnished import SETTINGS, furnished

pytestmark = pytest.mark.anyio
TAGS = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"]


@pytest.fixture(scope="module")
def axe() -> str:
    tools = node_tools.find()
    if isinstance(tools, str):
        pytest.skip(tools)
    return (tools.folder / "node_modules" / "axe-core" / "axe.min.js").read_text()


async def findings(page: Page, axe: str) -> list[str]:
    """Evaluated by the debugger and not by the page, whose policy allows no such script."""
    await page.evaluate(axe)
    options = {"runOnly": {"type": "tag", "values": TAGS}, "resultTypes": ["violations"]}
    answer: Any = await page.evaluate("options => axe.run(document, options)", options)
    return [
        f"{one['id']}: {node['target'][0]} {node['failureSummary'][:200]} {node['html'][:150]}"
        for one in answer["violations"]
        for node in one["nodes"]
    ]


async def looked_at(page: Page, axe: str, name: str, size: tuple[int, int] = WIDE) -> list[str]:
    """Light and dark."""
    found: list[str] = []
    await page.set_viewport_size({"width": size[0], "height": size[1]})
    for scheme in ("light", "dark"):
        await page.emulate_media(color_scheme=scheme, reduced_motion="reduce")
        found += [f"{name} {scheme} {size[0]}: {one}" for one in await findings(page, axe)]
    return found


async def opened_fully(page: Page) -> None:
    """What is folded away counts too, and what is fetched by itself."""
    await page.wait_for_load_state(
        "networkidle" if "/log" not in page.url and "/chat" not in page.url else "load"
    )
    await page.evaluate("document.querySelectorAll('details:not(.drop)').forEach(one => { one.open = true })")


@pytest.mark.timeout(300)
async def test_no_page_keeps_anybody_out(open_console: OpenConsole, tmp_path: Path, axe: str) -> None:
    async with open_console(tmp_path / "home", **SETTINGS) as console:
        console.forgive("404")  # the page of faults is one of them
        async with furnished(console, tmp_path) as pages:
            found: list[str] = []
            context = await console.context()
            for name, path in pages.items():
                page = await context.new_page()
                await page.goto(console.url + path)
                await opened_fully(page)
                if name == "log":
                    await console.hub.call("plan_trip", {"city": "Atlantis"})
                    await page.wait_for_selector("#log-lines tr")
                found += await looked_at(page, axe, name)
                await page.close()
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
