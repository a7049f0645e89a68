"""Lists of many things: found, filtered, a page at a time, several at once; the search over everything."""

import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from console.browsing import OpenConsole
from dragoman.console.listing import A_PAGE, page_of
from dragoman.console.palette import Wanted
from servers.hubs import quick, state_is

pytestmark = pytest.mark.anyio
STDIO = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")
# What the page does not offer is refused to who asks all the same.
BULK = """async values => {
  const headers = {"X-CSRF-Token": document.body.dataset.csrf, "HX-Request": "true"};
  const body = new URLSearchParams(values);
  return (await fetch("/connectors/-/bulk", {method: "POST", headers, body})).text();
}"""


def test_pages_follow_each_other_without_gap_or_repeat_whatever_comes_in_between() -> None:
    names = [f"c{number:03}" for number in range(2 * A_PAGE + 7)]
    first = page_of(names, lambda name: (-float(len(name)), name))
    assert (len(first.shown), first.total, first.is_first) == (A_PAGE, 107, True)
    second = page_of(["a000", *names], lambda name: (-float(len(name)), name), first.next or "")
    third = page_of(names, lambda name: (-float(len(name)), name), second.next or "")
    assert [*first.shown, *second.shown, *third.shown] == names
    assert (third.next, third.is_first) == (None, False)
    for strange in ("x", "~", "nan", "~~", "1e999", "x~y"):
        assert page_of(names, lambda name: (0.0, name), strange).shown[0] == "c000"


def test_what_was_typed_is_marked_and_nothing_else_is_markup() -> None:
    wanted = Wanted("  GIT <b ")
    assert wanted.marked("a <b>git</b>") == ("a <mark>&lt;b</mark>&gt;<mark>git</mark>&lt;/b&gt;")
    assert wanted.fits("git", "<B>")
    assert not wanted.fits("git")
    assert sorted(["my git", "gitlab", "other"], key=Wanted("git").rank) == ["gitlab", "my git", "other"]


async def _open_palette(page: Page, text: str) -> None:
    await page.keyboard.press("Control+k")
    await expect(page.get_by_role("combobox", name="Search everything")).to_be_focused()
    await page.keyboard.type(text)


async def test_everything_is_found_and_done_from_the_keyboard(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        hub = console.hub
        await hub.connectors.add("works", **quick(command=sys.executable, args=[STDIO]))
        await hub.threads.create("Why does it work?")
        run = (await hub.messages.post("does all of it work")).run
        page = await console.page("/settings")
        results = page.get_by_role("listbox", name="Results")
        await _open_palette(page, "work")
        for name in (
            "works",
            "Reconnect works",
            "Turn off works",
            "works.add",
            "Why does it work?",
            "does all of it work",
        ):
            await expect(results.get_by_role("option").filter(has_text=name).first).to_be_visible()
        await expect(page.locator("#palette-kinds")).to_contain_text("Connectors 1")
        await expect(results.get_by_role("option", selected=True)).to_contain_text("works")
        await console.picture(page, "palette")
        await page.keyboard.press("Enter")
        await expect(page.locator("h1")).to_have_text("works")

        await _open_palette(page, "turn off works")
        await expect(results.get_by_role("option", selected=True)).to_have_text("Turn off works")
        await page.keyboard.press("Enter")
        note = page.locator("#notes")
        await expect(note).to_contain_text("works turned off.")
        await state_is(hub, "works", "disabled")
        await note.get_by_role("button", name="Undo").click()
        await expect(note).to_contain_text("works turned on.")
        assert (await hub.connectors.get("works")).connector.enabled

        await _open_palette(page, "zxqvj")
        await expect(results).to_contain_text("Nothing is called")
        await page.get_by_role("combobox").fill(run.request)
        await expect(results.get_by_role("option").filter(has_text=run.request)).to_have_count(2)
        await page.locator("#palette-kinds").get_by_text("Runs").click()
        await expect(results.get_by_role("option")).to_have_count(1)
        await page.keyboard.press("Escape")
        await expect(results).not_to_be_visible()

        await page.locator("h1").click()
        await page.keyboard.press("?")
        shortcuts = page.get_by_role("dialog", name="Shortcuts")
        await expect(shortcuts).to_be_visible()
        await shortcuts.get_by_role("checkbox").uncheck()
        await shortcuts.get_by_role("button", name="Close").click()
        await page.keyboard.press("?")
        await page.keyboard.press("g")
        await page.keyboard.press("t")
        await expect(shortcuts).not_to_be_visible()
        await expect(page.locator("h1")).to_have_text("works")
        await page.evaluate("localStorage.removeItem('shortcuts')")
        await page.keyboard.press("g")
        await page.keyboard.press("t")
        await expect(page.locator("h1")).to_have_text("Tools")
        await page.locator("h1").click()
        await page.keyboard.press("/")
        await expect(page.get_by_role("searchbox").first).to_be_focused()


async def test_many_connectors_are_found_filtered_and_changed_at_once(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        hub = console.hub
        await hub.connectors.add(
            "broken", **quick(command=sys.executable, args=["-c", "raise SystemExit(3)"])
        )
        for number in range(A_PAGE + 5):
            facts = quick(url=f"https://host-{number}.example/mcp")
            await hub.connectors.add(f"c{number:02}", **facts, connect=False, enabled=number < 3)
        page = await console.page("/connectors?state=failed")
        rows = page.locator("table.rows tbody tr")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("the server exited with code 3")
        await page.get_by_role("navigation", name="State").get_by_role("link", name="All 56").click()
        await expect(rows).to_have_count(A_PAGE)
        await page.get_by_role("link", name="Next").click()
        await expect(rows).to_have_count(6)
        await expect(rows.last).to_contain_text("c54")
        await page.goto(console.url + "/connectors")
        await page.get_by_role("searchbox", name="Search").fill("host-2.exa")
        await expect(rows).to_have_count(1)
        await expect(rows).to_contain_text("c02")
        assert "q=host-2.exa" in page.url
        await page.get_by_role("searchbox", name="Search").fill("c0")
        await expect(rows).to_have_count(10)
        await page.get_by_label("Choose c00").check()
        await page.get_by_label("Choose c02").click(modifiers=["Shift"])
        bar = page.get_by_role("toolbar")
        await expect(bar).to_contain_text("3 selected")
        async with page.expect_response(lambda reply: "q=c0" in reply.url):
            pass  # the list refreshes by itself, and what is chosen stays
        await expect(page.get_by_label("Choose c01")).to_be_checked()
        await console.picture(page, "connectors_chosen")
        await bar.get_by_role("button", name="Turn off").click()
        note = page.locator("#notes")
        await expect(note).to_contain_text("3 connectors turned off.")
        await expect(rows.filter(has_text="Off")).to_have_count(10)
        await note.get_by_role("button", name="Undo").click()
        await expect(rows.filter(has_text="Off")).to_have_count(7)
        assert (await hub.connectors.get("c01")).connector.enabled
        await bar.get_by_text("Policy…").click()
        await bar.get_by_role("button", name="Before every call").click()
        await expect(note).to_contain_text("asking for every call")
        policies = [
            (await hub.connectors.get(f"c0{one}")).connector.configuration.approval for one in range(4)
        ]
        assert policies == ["always", "always", "always", None]
        await page.get_by_label("Choose c01").uncheck()
        await bar.get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("Remove 2?")).to_be_visible()
        await page.locator("#ask").get_by_role("button", name="Remove").click()
        await expect(rows).to_have_count(8)
        await expect(bar).not_to_be_visible()


async def test_what_somebody_may_not_do_to_one_they_may_not_to_many(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        hub = console.hub
        await hub.connectors.add("hidden", **quick(url="https://a.example/mcp"), connect=False)
        await hub.connectors.add("shared", shared=True, **quick(url="https://b.example/mcp"), connect=False)
        page = await console.page("/connectors", key=await console.add_user("ada"))
        await expect(page.locator("table.rows tbody tr")).to_have_count(1)
        await expect(page.get_by_role("checkbox", name="Choose shared")).to_have_count(0)
        told = await page.evaluate(BULK, [["do", "remove"], ["slug", "shared"], ["slug", "hidden"]])
        assert "belongs to the whole workspace" in told
        assert "there is no connector &#39;hidden&#39;" in told
        assert {view.connector.slug for view in await hub.connectors.list()} >= {"hidden", "shared"}
        assert "nothing to do with connectors" in await page.evaluate(BULK, [["do", "x"], ["slug", "shared"]])


async def test_runs_and_agents_are_changed_at_once_and_the_trail_is_searched(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        hub = console.hub
        for name in ("alpha", "beta"):
            await hub.connectors.add(name, **quick(url=f"https://{name}.example/mcp"), connect=False)
        for name in ("one", "two"):
            await hub.runs.finished((await hub.messages.post(f"look at {name}")).run)
        note, bar = "#notes", "toolbar"
        page = await console.page("/runs")
        rows = page.locator("#runs tbody tr")
        await expect(page.locator("th[aria-sort]")).to_have_text("Began ↓")
        ordered = {
            sort: [one.id for one in await hub.runs.list(sort=sort)]
            for sort in ("newest", "longest", "costliest")
        }
        await page.get_by_label("Sort by").select_option("Sort: Longest")
        await expect(page.locator("th[aria-sort]")).to_have_text("Took ↓")
        assert [await one.get_attribute("id") for one in await rows.all()] == ordered["longest"]
        await page.get_by_role("link", name="Cost").click()
        await expect(page.get_by_label("Sort by")).to_have_value("costliest")
        assert [await one.get_attribute("id") for one in await rows.all()] == ordered["costliest"]
        await page.goto(f"{console.url}/runs?after={ordered['newest'][0]}")
        await expect(rows).to_have_count(1)
        await page.get_by_role("link", name="First").click()
        for name in ("one", "two"):
            await page.get_by_label(f"Choose look at {name}").check()
        await page.get_by_role(bar).get_by_role("button", name="Stop").click()
        await expect(page.locator(note)).to_contain_text("2 not: it has ended")
        await page.get_by_role(bar).get_by_role("button", name="Run again").click()
        await expect(page.locator(note)).to_contain_text("2 runs started again.")
        await expect(page.locator("#runs tbody tr")).to_have_count(4)
        await console.picture(page, "runs_chosen")
        await page.get_by_role(bar).get_by_role("button", name="Compare two").click()
        await expect(page.locator("h1")).to_have_text("Compare two runs")

        await page.goto(f"{console.url}/agents?sort=runs")
        await expect(page.locator("th[aria-sort]")).to_contain_text("Runs")
        await page.get_by_label("Choose all").check()
        await page.get_by_role(bar).get_by_role("button", name="Stop").click()
        await expect(page.locator(note)).to_contain_text("2 agents stopped.")
        assert {(await hub.agents.get(name)).status for name in ("alpha", "beta")} == {"stopped"}
        await page.locator(note).get_by_role("button", name="Undo").click()
        await expect(page.locator(note)).to_contain_text("2 agents started.")
        await console.picture(page, "agents_chosen")

        await page.goto(f"{console.url}/audit")
        await page.get_by_role("searchbox", name="Words").fill("ALPHA")
        await expect(page.locator("#entries tbody tr")).not_to_have_count(0)
        await expect(page.locator("#entries tbody tr").filter(has_not_text="alpha")).to_have_count(0)
        assert "q=ALPHA" in page.url
