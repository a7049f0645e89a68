"""Chats as a person keeps them: found, renamed, pinned, branched, exported; and what a tool shows in one."""

import asyncio
import base64
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import pytest
from playwright.async_api import Route, expect

from console.browsing import OpenConsole
from console.chatting import is_live, is_over, last_turn, write
from console.speaking import Speaker
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition

pytestmark = pytest.mark.anyio
PIXEL = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


class Painter:
    """A tool that brings a picture, a sound, and a picture that is a program."""

    definition = ToolDefinition(
        original_name="paint", input_schema={"type": "object"}, annotations=Annotations(read_only=True)
    )

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        picture = base64.b64encode(PIXEL).decode()
        return RawResult(
            content=(
                {"type": "text", "text": "painted"},
                {"type": "image", "data": picture, "mimeType": "image/png"},
                {"type": "audio", "data": picture, "mimeType": "audio/wav"},
                {"type": "image", "data": picture, "mimeType": "image/svg+xml"},
            )
        )


async def test_a_picture_and_a_sound_of_a_tool_are_shown_in_the_chat(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker", defer_tools="never") as console:
        Speaker().install(console.hub)
        console.hub.add_tool(Painter())
        page = await console.page("/chat")
        await write(page, "call paint {}")
        await is_over(page)
        for _ in range(2):
            picture = last_turn(page).get_by_role("img", name="Picture from paint")
            await expect(picture).to_have_js_property("naturalWidth", 1)
            await expect(last_turn(page).locator("audio")).to_have_count(1)
            await expect(last_turn(page).locator("figure")).to_have_count(2)
            await page.reload()
        address = await last_turn(page).locator("img").get_attribute("src")
        answer = await page.request.get(console.url + (address or ""))
        assert (answer.headers["content-type"], await answer.body()) == ("image/png", PIXEL)
        assert "sandbox" in answer.headers["content-security-policy"]


async def test_chats_are_found_renamed_pinned_and_exported(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        Speaker().install(console.hub)
        for number in range(60):
            await console.hub.threads.create(f"Old chat {number:02}")
        run = await console.hub.ask("Where do herons nest?")
        page = await console.page(f"/chat/{run.thread}")
        await is_live(page)
        entries = page.locator("#thread-list .thread")
        await expect(entries.first).to_have_text("Where do herons nest?")
        await page.locator("#thread-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
        await expect(entries).to_have_count(61)  # more are fetched at the end of the list

        search = page.get_by_label("Search titles and messages")
        await search.fill("YOU SAID: where do herons")  # words of an answer
        await expect(entries).to_have_text(["Where do herons nest?"])
        await search.fill("old chat 07")
        await expect(entries).to_have_text(["Old chat 07"])
        await search.fill("100% of_nothing")
        await expect(page.locator("#thread-list p")).to_have_text("Nothing is found.")
        await search.fill("")
        await expect(entries.first).to_have_text("Where do herons nest?")
        await page.get_by_label("Sort chats").select_option("By title")
        await expect(page.locator("#thread-list h2")).to_have_text("All chats")
        await page.reload()  # a choice of this browser
        await expect(entries.first).to_have_text("Old chat 00")
        await page.locator("#thread-list").evaluate("list => list.scrollTo(0, list.scrollHeight)")
        await expect(entries.last).to_have_text("Where do herons nest?")
        await expect(entries).to_have_count(61)
        await page.get_by_label("Sort chats").select_option("Latest first")
        await expect(entries.first).to_have_text("Where do herons nest?")

        await page.get_by_label("Rename").click()
        await page.get_by_label("Title", exact=True).fill("Herons")
        await page.get_by_label("Title", exact=True).press("Enter")
        await expect(page.locator("#title")).to_have_text("Herons")
        await page.get_by_label("Pin", exact=True).click()
        await expect(page.locator("#thread-list h2").first).to_have_text("Pinned")
        await page.reload()
        await expect(entries.first).to_have_text("Herons")
        await expect(page.get_by_label("Pin", exact=True)).to_have_attribute("aria-pressed", "true")

        for kind, ending in (("Markdown", "md"), ("JSON", "json")):
            await page.locator("summary", has_text="Export").click()
            async with page.expect_download() as started:
                await page.get_by_role("link", name=kind, exact=True).click()
            download = await started.value
            assert download.suggested_filename == f"herons.{ending}"
            text = Path(await download.path()).read_text()
            assert "Where do herons nest?" in text
            if kind == "JSON":
                assert [one["author"] for one in json.loads(text)["messages"]] == ["person", "agent"]
            else:
                assert text.startswith("# Herons\n\n**You** · ")


async def test_several_chats_are_pinned_exported_and_deleted_at_once(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        for number in range(5):
            await console.hub.threads.create("Same title" if number < 2 else f"Chat {number}")
        page = await console.page("/chat")
        entries, bar = page.locator("#thread-list .thread"), page.get_by_role("toolbar", name="chosen chats")
        await expect(entries).to_have_count(5)
        await page.get_by_label("Select chats").click()
        await expect(bar.get_by_label("Delete the chosen")).to_be_disabled()
        for number in range(2):
            await page.get_by_role("checkbox", name="Same title").nth(number).click()
        await page.get_by_role("checkbox", name="Chat 3").press("Space")
        await expect(bar).to_contain_text("3 selected")
        assert page.url.endswith("/chat")
        async with page.expect_download() as started:
            await bar.get_by_label("Export the chosen").click()
        with ZipFile(await (await started.value).path()) as files:
            assert sorted(files.namelist()) == ["chat-3.md", "same-title-2.md", "same-title.md"]
            assert files.read("chat-3.md").startswith(b"# Chat 3")
        await bar.get_by_label("Pin the chosen").click()
        await expect(page.locator("#thread-list h2").first).to_have_text("Pinned")
        await expect(page.locator("#notes")).to_contain_text("3 chats pinned.")
        await expect(bar).to_be_hidden()
        assert [one.thread.pinned for one in await console.hub.threads.list()] == [True] * 3 + [False] * 2

        await page.get_by_label("Select chats").click()
        for entry in (0, 4):
            await entries.nth(entry).click()
        await bar.get_by_label("Delete the chosen").click()
        await expect(page.locator("#deleted")).to_contain_text("2 chats deleted")
        await expect(entries).to_have_count(3)
        await page.get_by_role("button", name="Undo").click()
        await expect(entries).to_have_count(5)


async def test_a_message_is_edited_retried_and_branched_off(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        Speaker().install(console.hub)
        page = await console.page("/chat")
        await write(page, "first")
        await is_over(page)
        await write(page, "second")
        await is_over(page)
        first_chat = page.url

        await page.locator(".turn").nth(1).get_by_label("Edit and send again").click()
        await page.get_by_label("The message in other words").fill("third")
        await page.locator(".said-edit").get_by_role("button", name="Send").click()
        await page.wait_for_url(lambda url: url != first_chat)
        await is_over(page)
        await expect(page.locator(".said")).to_have_text(["first", "third"])
        await expect(page.locator(".words")).to_have_text(["You said: first", "You said: third"])

        await page.goto(first_chat)
        await page.locator(".turn").first.get_by_role("button", name="Branch").click()
        await page.wait_for_url(lambda url: url != first_chat)
        await is_live(page)
        await expect(page.locator(".said")).to_have_text(["first"])

        await page.goto(first_chat)
        await expect(page.locator(".said")).to_have_text(["first", "second"])  # it is as it was
        await last_turn(page).get_by_label("Retry with another model").click()
        await last_turn(page).locator("[data-model=offline]").click()
        await expect(page.locator(".turn")).to_have_count(3)
        await is_over(page)
        await expect(last_turn(page).locator("h3")).to_contain_text("offline")


async def test_the_composer_says_whom_a_message_goes_to(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        Speaker().install(console.hub)
        await console.hub.agents.create("helper")
        page = await console.page("/chat")
        to = page.locator("#to > summary")
        await expect(to).to_have_accessible_name("To: assistant")
        await write(page, "@helper hello")
        await is_over(page)
        await expect(to).to_have_accessible_name("To: helper")  # who spoke last is written to next
        chosen = asyncio.Event()

        async def late(route: Route) -> None:
            answer = await route.fetch()
            await chosen.wait()
            await route.fulfill(response=answer)

        await page.route(
            "**/*", lambda route: late(route) if route.request.method == "POST" else route.fallback()
        )
        await write(page, "and again")
        await is_over(page)
        await expect(last_turn(page).locator("h3")).to_contain_text("helper")
        await to.click()
        await page.get_by_role("menuitemradio", name=re.compile("assistant")).click()
        await expect(to).to_have_accessible_name("To: assistant")
        async with page.expect_event("requestfinished", lambda request: request.method == "POST"):
            chosen.set()  # a message's answer comes after its run's: who was chosen meanwhile stays chosen
        await page.unroute_all()
        await write(page, "now you")
        await is_over(page)
        await expect(last_turn(page).locator("h3")).to_contain_text("assistant")
        await page.locator("#model > summary").click()
        await page.get_by_role("menuitemradio", name=re.compile("offline")).click()
        await write(page, "with another")
        await is_over(page)
        await expect(last_turn(page).locator("h3")).to_contain_text("offline")


async def test_what_is_sent_offline_is_kept_and_said_so(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        console.forgive("ERR_|Failed to load resource")
        Speaker().install(console.hub)
        page = await console.page("/chat")
        await write(page, "hello")
        await is_over(page)
        await page.context.set_offline(True)
        await page.fill("#message", "are you there?")
        await page.press("#message", "Enter")
        await expect(page.locator("#composer-note")).to_contain_text("Not sent: there is no connection")
        await expect(page.locator("#message")).to_have_value("are you there?")
        await page.context.set_offline(False)
        await is_live(page)
        await expect(page.locator("#composer-note")).to_be_hidden()
        await page.press("#message", "Enter")
        await is_over(page)
        await expect(page.locator(".said")).to_have_text(["hello", "are you there?"])


async def test_an_answer_of_a_megabyte_is_whole_after_a_reload(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaker = Speaker()
        speaker.install(console.hub)
        speaker.say("\n\n".join(f"Paragraph {number} " + "word " * 20 for number in range(8_500)))
        speaker.end()
        run = await console.hub.ask("word")
        page = await console.page(f"/chat/{run.thread}")
        await expect(page.locator(".words p").last).to_contain_text("Paragraph 8499 ")
        await expect(page.locator(".words p")).to_have_count(8_500)
