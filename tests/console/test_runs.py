"""The pages of runs in a real Chromium: what was done can be read, and stopped, while it goes on."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, get_args

import pytest
from playwright.async_api import Page, expect
from starlette.requests import Request

from console.browsing import Console, OpenConsole
from console.speaking import Speaker
from dragoman import Hub
from dragoman.console import runs
from dragoman.console.pages import Pages
from dragoman.console.waterfall import waterfall_of
from dragoman.run import Run
from dragoman.runs.timeline import MomentKind, Timeline, TimelineEntry
from dragoman.tool import Annotations

pytestmark = pytest.mark.anyio


def speaking(console: Console) -> Speaker:
    speaker = Speaker()
    speaker.install(console.hub)

    @console.hub.tool(annotations=Annotations(read_only=True))
    def look(what: str) -> str:
        """Looks something up."""
        return f"found <b>{what}</b>"

    @console.hub.tool(annotations=Annotations(destructive=True))
    def burn(what: str) -> str:
        """Burns something."""
        return f"{what} is ashes"

    assert look
    assert burn
    return speaker


async def post(console: Console, text: str) -> Run:
    return (await console.hub.messages.post(text)).run


def calling(tool: str, **arguments: Any) -> str:
    return f"call {tool} {json.dumps(arguments)}"


async def is_now(page: Page, status: str) -> None:
    await expect(page.locator("#run .chip").first).to_have_text(status)


async def test_the_list_is_filtered_and_refreshes_itself(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        page = await console.page("/runs")
        await expect(page.get_by_text("No agent has worked yet")).to_be_visible()
        await console.hub.ask("hello")
        await expect(page.get_by_role("link", name="hello")).to_be_visible()
        waiting = await post(console, calling("burn", what="papers"))
        await expect(page.locator("#runs")).to_contain_text("waiting")
        await console.picture(page, "runs")

        await page.get_by_label("Status").select_option("done")
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        await expect(page).to_have_url(f"{console.url}/runs?q=&status=done&agent=&thread=&sort=newest")
        await page.reload()
        await expect(page.locator("#runs tbody tr")).to_have_count(1)
        chat = page.get_by_label("Chat", exact=True)
        await chat.press_sequentially("burn")
        await expect(page.locator("#thread-known option")).to_have_count(1)
        await expect(page.locator("#thread-known option")).to_have_attribute("value", waiting.thread)
        await chat.fill(waiting.thread)
        await chat.press("Tab")
        await expect(page.get_by_text("Nothing fits")).to_be_visible()
        await page.get_by_role("link", name="Show all").click()
        await expect(page.locator("#runs tbody tr")).to_have_count(2)
        await page.get_by_role("searchbox", name="Search").fill("HELL")
        await expect(page.locator("#runs tbody tr")).to_have_count(1)


async def test_a_run_is_read_step_by_step(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        run = await console.hub.ask(calling("look", what="keys"))
        page = await console.page(f"/runs/{run.id}")
        await is_now(page, "done")
        line = page.locator(".runs-line")
        await expect(line).to_contain_text("@assistant begins")
        await expect(line).to_contain_text("functions offered")
        await expect(line).to_contain_text("wants look")
        call = line.locator(".runs-is-call")
        await expect(call).to_contain_text("done")
        await call.get_by_text("arguments").click()
        await expect(call.locator("pre").first).to_contain_text('"what": "keys"')
        await call.get_by_text("result", exact=True).click()
        await expect(call).to_contain_text("found <b>keys</b>")
        await console.picture(page, "run")
        await page.get_by_text("Prompts", exact=True).click()
        await expect(page.locator("#sent").get_by_label("Instructions")).to_contain_text(
            "You are the assistant"
        )
        await expect(page.locator("#sent")).to_contain_text("found <b>keys</b>")
        await page.get_by_text("Raw events").click()
        await expect(page.locator("#events")).to_contain_text("call.finished")
        await page.get_by_role("link", name="Open in chat").click()
        await expect(page).to_have_url(f"{console.url}/chat/{run.thread}")
        await page.goto(f"{console.url}/agents/assistant")
        figures = page.get_by_role("region", name="Metrics").locator(".tile")
        await expect(figures).to_have_count(4)
        await expect(figures.first).to_contain_text("last used")
        await expect(figures.last).to_contain_text("unknown")  # a price that nobody knows
        await page.goto(f"{console.url}/agents")
        await expect(page.locator(".figures").first).to_contain_text("unknown")


async def test_what_is_open_stays_open_while_a_run_goes_on(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = speaking(console)
        run = await post(console, "word by word")
        page = await console.page(f"/runs/{run.id}")
        await is_now(page, "running")
        await page.locator("summary", has_text="which").click()
        await expect(page.locator(".runs-more pre")).to_contain_text("look")
        speaker.say("all ", "is well")
        speaker.end()
        await is_now(page, "done")
        await expect(page.locator("#answer-title + .prose")).to_have_text("all is well")
        await expect(page.locator(".runs-more pre")).to_be_visible()
        await expect(page.get_by_role("button", name="Stop")).to_have_count(0)


async def test_a_run_that_waits_says_for_what_and_is_stopped(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        run = await post(console, calling("burn", what="papers"))
        page = await console.page(f"/runs/{run.id}")
        await is_now(page, "waiting")
        await expect(page.locator(".runs-is-approval")).to_contain_text("pending")
        await console.picture(page, "run_waiting")
        await page.get_by_role("button", name="Stop").click()
        await page.locator("#ask button[value=no]").click()
        await is_now(page, "waiting")
        await page.get_by_role("button", name="Stop").click()
        await page.locator("#ask button[value=yes]").click()
        await is_now(page, "cancelled")
        await expect(page.locator(".runs-line")).to_contain_text("burn cancelled")


async def test_runs_of_several_agents_are_nested(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        for name in ("one", "two"):
            await console.hub.agents.create(name)
        run = await console.hub.ask("@one @two hello")
        page = await console.page(f"/runs/{run.id}")
        await is_now(page, "done")
        await expect(page.locator(".runs-child")).to_have_count(2)
        await console.picture(page, "run_nested")
        await page.get_by_role("link", name="@two").first.click()
        await expect(page.get_by_role("link", name="Whole run")).to_be_visible()
        await expect(page.locator(".runs-line")).to_contain_text("@two begins")


async def test_nobody_reads_the_run_of_another(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker", multi_user=True) as console:
        speaking(console)
        key = await console.add_user("ada")
        run = await console.hub.ask("hello")
        console.forgive("404")
        page = await console.page(f"/runs/{run.id}", key=key)
        await expect(page.get_by_text("there is no run")).to_be_visible()
        await page.goto(f"{console.url}/runs")
        await expect(page.get_by_text("No agent has worked yet")).to_be_visible()


FULL: dict[str, Any] = {
    "request": "look", "text": "**so**", "reason": "wrong type", "tools": ["a", "b"], "added": ["b"],
    "removed": ["c"], "steps": [{"tool": "a", "reason": "first"}, "then b"], "tool": "a", "title": "A",
    "arguments": {"x": 1}, "preview": "found", "code": "timeout", "attempts": 2, "tokens_saved": 9,
    "duration_ms": 1500.0, "input_tokens": 7, "output_tokens": 3, "cost": 0.01, "question": "q_1",
    "approval": "app_1", "waited_ms": 900.0, "error": {"message": "no"}, "message": "half way",
}  # fmt: skip


@pytest.mark.parametrize("facts", [{}, FULL], ids=["bare", "full"])
@pytest.mark.parametrize("status", ["running", "done", "failed", "uncertain", "pending", "answered"])
def test_every_kind_of_moment_is_shown(facts: dict[str, Any], status: str) -> None:
    now = datetime.now(UTC)
    run = Run(id="run_1", workspace="w", user="u", thread="", root="run_1", agent="a", request="r")
    inner = Timeline(run=run, moments=())
    moments = tuple(
        TimelineEntry(
            kind=kind, time=now, title=f"{kind} <i>", details={**facts, "status": status}, runs=(inner,)
        )
        for kind in get_args(MomentKind)
    )
    app = SimpleNamespace(state=SimpleNamespace(hub=Hub()))
    request = Request({"type": "http", "path": "/", "headers": [], "query_string": b"", "app": app})
    frame = Pages().frame(
        request,
        "runs/run.html",
        run=run,
        timeline=(timeline := Timeline(run=run, moments=moments)),
        fall=waterfall_of(timeline),
        is_whole=False,
        is_own=True,
        usage=run.usage,
        case="",
        can_stop=False,
        can_keep=True,
        milliseconds=runs.milliseconds,
        since=runs.since,
        pretty=runs.pretty,
    )
    shown = frame.decode()
    assert shown.count('class="runs-moment ') == len(moments)
    assert "<i>" not in shown


async def test_a_run_is_drawn_as_bars_that_open_what_stands_behind_them(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        run = await post(console, calling("burn", what="papers"))
        page = await console.page(f"/runs/{run.id}")
        await is_now(page, "waiting")
        bars = page.locator(".fall-row")
        await expect(bars.filter(has_text="Approval").locator(".bar-wait")).to_be_visible()
        await expect(bars.filter(has_text="waiting")).to_have_count(1)
        await bars.filter(has_text="burn").click()
        step = page.locator("#step")
        await expect(step.get_by_label("Arguments")).to_contain_text('"what": "papers"')
        [asked] = await console.hub.approvals.list()
        await console.hub.approvals.answer(asked.approval.id, "once")
        await is_now(page, "done")
        await expect(page.locator(".figure", has_text="working")).to_have_text(re.compile(r"working[1-9]"))
        await expect(step.get_by_label("Arguments")).to_be_visible()
        await bars.first.click()
        await expect(step.get_by_text("Answer", exact=True)).to_be_visible()
        await step.get_by_text("Prompt", exact=True).first.click()
        await expect(step.get_by_label("Prompt")).to_contain_text("You are the assistant")
        copied = await page.get_by_role("button", name="Copy as test case").get_attribute("data-copy")
        assert 'expect.tools = ["burn"]' in (copied or "")

        await page.locator("summary", has_text="Rerun").click()
        await page.get_by_role("button", name="Rerun").last.click()
        await page.wait_for_url(lambda url: run.id not in url)
        await is_now(page, "waiting")
        await page.locator("summary", has_text="Compare").click()
        await page.get_by_label("With").select_option(run.id)
        await page.get_by_role("button", name="Compare").last.click()
        await expect(page.locator(".fall")).to_have_count(2)
        await expect(page.locator("tbody tr")).to_have_count(2)
