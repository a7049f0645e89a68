"""A newcomer's first hour in a real Chromium: from the link that signs in to a run that is read.

The server is a published one of npm.
"""

import re
import signal
from collections.abc import Sequence
from pathlib import Path

import psutil
from playwright.async_api import Browser, Page, expect

from console.browsing import WIDE
from patience import patient

NPM_CACHE = Path(__file__).parents[2] / ".cache" / "npm"
SERVER = "@modelcontextprotocol/server-filesystem"


async def spend_first_hour(browser: Browser, folder: Path, link: str, services: Sequence[int]) -> None:
    """`services` are the processes of which one starts the server."""
    NPM_CACHE.mkdir(parents=True, exist_ok=True)
    folder.mkdir()
    (folder / "draft.txt").write_text("Dear reader,")
    context = await browser.new_context(viewport={"width": WIDE[0], "height": WIDE[1]})
    context.set_default_timeout(patient(20_000))
    expect.set_options(timeout=patient(20_000))
    complaints: list[str] = []
    context.on("weberror", lambda error: complaints.append(str(error.error)))
    try:
        page = await context.new_page()
        await _signs_in(page, browser, link)
        await _adds_a_server(page, folder)
        await _tries_a_tool(page, folder)
        await _chats_and_approves(page, folder)
        await _sees_it_die_and_come_back(page, services)
        await _asks_again(page, folder)
        await _reads_the_run(page)
        assert not complaints, complaints
    finally:
        expect.set_options(timeout=patient(10_000))
        await context.close()


async def _signs_in(page: Page, browser: Browser, link: str) -> None:
    await page.goto(link)
    await expect(page.get_by_role("heading", name="First steps")).to_be_visible()
    stranger = await browser.new_page()
    await stranger.goto(link)
    await expect(stranger.get_by_text("This link was used already")).to_be_visible()
    await stranger.close()


async def _adds_a_server(page: Page, folder: Path) -> None:
    await page.get_by_role("link", name="Add a connector").click()
    await page.get_by_label("Name", exact=True).fill("files")
    await page.get_by_label("Command with its arguments").fill(f"npx -y {SERVER} {folder}")
    await page.get_by_label("Environment", exact=True).fill(f"npm_config_cache={NPM_CACHE}")
    await page.locator("summary", has_text="Box").click()
    await page.get_by_label("Paths that it sees").fill(f"{folder}:rw {NPM_CACHE}:rw")
    await page.get_by_role("button", name="Test", exact=True).click()
    await expect(page.locator("#outcome")).to_contain_text("It works: 14 tools", timeout=patient(60_000))
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator("h1")).to_have_text("files", timeout=patient(60_000))
    await expect(page.locator("#live .chip").first).to_have_text("connected")


async def _tries_a_tool(page: Page, folder: Path) -> None:
    await page.locator("#side").get_by_role("link", name="Tools").click()
    await page.get_by_label("What should the tool do?").fill("read a text file")
    await page.locator("#tool-rows").get_by_role("link", name="Read Text File").click()
    await page.get_by_label("path").fill(str(folder / "draft.txt"))
    await page.get_by_role("button", name="Call it").click()
    await expect(page.locator("#tried")).to_contain_text("Dear reader,")


async def _chats_and_approves(page: Page, folder: Path) -> None:
    await page.locator("#side").get_by_role("link", name="Chat").click()
    await _say(page, f"read the text file {folder / 'draft.txt'}")
    turn = page.locator(".turn").last
    await expect(turn).to_have_attribute("data-state", "done")
    await expect(turn.locator(".prose")).to_contain_text("Dear reader,")

    await _say(page, f"move the file {folder / 'draft.txt'} to {folder / 'letter.txt'}")
    form = page.locator(".turn").last.locator(".call-form").first
    await expect(form.locator("summary").first).to_contain_text("Move File")
    await form.get_by_label("source").fill(str(folder / "draft.txt"))
    await form.get_by_label("destination").fill(str(folder / "letter.txt"))
    await form.get_by_role("button", name="Call: Move File").click()
    approval = page.locator(".turn").last.locator(".approval")
    await expect(approval.get_by_label("Exact arguments")).to_contain_text("letter.txt")
    assert (folder / "draft.txt").exists(), "it was moved before anybody said yes"
    await approval.get_by_role("button", name="Allow once").click()
    await expect(page.locator(".turn").last).to_have_attribute("data-state", "done")
    assert (folder / "letter.txt").read_text() == "Dear reader,"


async def _sees_it_die_and_come_back(page: Page, services: Sequence[int]) -> None:
    await page.locator("#side").get_by_role("link", name="Connectors").click()
    await page.get_by_role("link", name="files", exact=True).click()
    process = page.locator("#live").get_by_text(re.compile(r"^process \d+$"))
    before = await process.inner_text()
    servers = [
        one
        for service in services
        for one in psutil.Process(service).children(recursive=True)
        if one.name() == "node" and "server-filesystem" in " ".join(one.cmdline())
    ]
    assert servers
    servers[-1].send_signal(signal.SIGKILL)
    await expect(process).not_to_have_text(before)
    await expect(page.locator("#live .chip").first).to_have_text("connected")


async def _asks_again(page: Page, folder: Path) -> None:
    """In the same chat, with the server that came back."""
    await page.locator("#side").get_by_role("link", name="Chat").click()
    await page.locator(".threads").get_by_role("link").first.click()
    await _say(page, f"read the text file {folder / 'letter.txt'}")
    await expect(page.locator(".turn").last).to_have_attribute("data-state", "done")
    await expect(page.locator(".turn").last.locator(".prose")).to_contain_text("Dear reader,")


async def _reads_the_run(page: Page) -> None:
    await page.locator("#side").get_by_role("link", name="Runs").click()
    await page.get_by_role("link", name=re.compile("^move the file")).click()
    moments = page.locator(".runs-moment")
    await expect(
        moments.filter(has_text="files.move_file", has_not_text="ask_person").filter(has_text="done")
    ).to_have_count(1)
    await expect(moments.filter(has_text="waits for an approval")).to_contain_text(re.compile(r"ok\s*after"))
    await expect(moments.last).to_contain_text("@assistant is done")


async def _say(page: Page, text: str) -> None:
    await page.fill("#message", text)
    await page.wait_for_load_state("load")
    await page.press("#message", "Enter")
    await expect(page).to_have_url(re.compile(r"/chat/thr_"))
    await expect(page.locator(".turn .said").last).to_have_text(text)
