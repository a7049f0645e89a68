"""The box of a program in a real browser: what it lacks is given by a button, what it keeps is cleared."""

import sys
from pathlib import Path

import pytest
from playwright.async_api import expect

from boxes.boxed import BY_ITSELF, PROGRAM, called, needs
from console.browsing import OpenConsole

pytestmark = pytest.mark.anyio


async def test_what_a_box_lacks_is_given_and_what_it_keeps_is_shown_and_cleared(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    needs("bubblewrap")
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").write_text("seen")
    async with open_console(tmp_path / "home", box_programs=BY_ITSELF) as console:
        page = await console.page("/connectors/new?by=command")
        command = f"{sys.executable} -S -E {PROGRAM} {tmp_path / 'one'} {tmp_path / 'two'}"
        await page.get_by_label("Name", exact=True).fill("files")
        await page.get_by_label("Command with its arguments").fill(command)
        await page.get_by_role("button", name="Test", exact=True).click()
        await page.locator("#outcome label").filter(has_text=str(tmp_path / "one")).click()
        await page.get_by_role("button", name="Save").click()

        live = page.locator("#live")
        await expect(live).to_contain_text(f"bubblewrap, network full, sees {tmp_path / 'one'}:ro")
        lacking = live.locator("form").filter(has_text=str(tmp_path / "two"))
        await lacking.get_by_role("button", name="Mount it read-only").click()
        await expect(live).to_contain_text(f"{tmp_path / 'two'}:ro")
        await expect(live.locator("form")).to_have_count(0)
        file = str(tmp_path / "two" / "file")
        assert (await called(console.hub, "look", "files", read=[file]))[file] == "seen"

        kept = str(Path((await called(console.hub, "look", "files"))["home"]) / "state")
        await called(console.hub, "look", "files", write={kept: "x" * 50_000})
        await page.goto(page.url.partition("?")[0] + "?tab=settings")
        box = page.locator("#box")
        await expect(box.get_by_role("region", name="Homes")).to_contain_text("kB")
        await box.get_by_role("button", name="Clear homes").click()
        await page.locator("#ask").get_by_role("button").filter(has_not_text="Cancel").click()
        await expect(box).to_contain_text("It has no home")
        assert not Path(kept).exists()
