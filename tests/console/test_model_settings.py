"""Settings, Models, in a real Chromium: a key is given, tested and taken away, and never seen again."""

from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from servers.scenarios import Reply, Turn
from servers.scripted_models import open_scripted_openai

pytestmark = pytest.mark.anyio
KEY = "sk-canary-console-77cc"


def ok(turn: Turn) -> Reply:
    return Reply(text="ok <b>there</b>")


async def test_from_the_amber_note_to_an_answer_without_a_restart(
    open_console: OpenConsole, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("OPENAI_API_KEY", "ANTHROPIC_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("OLLAMA_HOST", "127.0.0.1:1")
    async with open_scripted_openai(ok, key=KEY) as server, open_console(tmp_path, model=None) as console:
        page = await console.page("/chat")
        await page.get_by_role("link", name="Give a provider its key").click()
        await expect(page.locator("#default-title + .state")).to_have_text("no language model")
        await page.wait_for_selector("#models table")
        await console.picture(page, "models_none")
        await page.get_by_role("button", name="OpenAI-compatible").click()
        await page.get_by_label("Name", exact=True).fill("lab")
        await page.get_by_label("Address").fill(server.base_url)
        await page.get_by_label("API key").fill("sk-wrong-key-1234")
        await page.get_by_label("Model", exact=True).fill("qwen3")
        await console.picture(page, "models_form")
        await page.get_by_role("button", name="Save and test").click()
        await expect(page.locator("#notes .error")).to_contain_text("refused the key")
        await page.get_by_role("button", name="Change lab").click()
        await page.get_by_label("API key").fill(KEY)
        await page.get_by_role("button", name="Save and test").click()
        await expect(page.locator("#notes .good")).to_contain_text("ok <b>there</b>")
        await expect(page.locator("#default-title + .state")).to_have_text("lab:qwen3")
        await page.wait_for_selector("#models table")
        await console.picture(page, "models_set")
        assert KEY not in await page.content()
        await page.get_by_label("Model of this workspace").fill("lab:large")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator("#default-title + .state")).to_have_text("lab:large")
        await page.goto(f"{console.url}/chat")
        await expect(page.get_by_text("No language model is set")).to_have_count(0)
        await page.goto(f"{console.url}/settings?tab=models")
        await page.get_by_label("Model of this workspace").fill("")
        await page.get_by_role("button", name="Save", exact=True).click()
        await expect(page.locator("#default-title + .state")).to_have_text("lab:qwen3")
        await page.get_by_role("button", name="Remove lab").click()
        await page.locator("#ask button[value=yes]").click()
        await expect(page.locator("#default-title + .state")).to_have_text("no language model")


async def test_a_member_sees_no_models_to_set(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        console.forgive("404")
        member = await console.add_user("bob")
        page = await console.page("/settings", key=member)
        await expect(page.get_by_role("link", name="Models", exact=True)).to_have_count(0)
        await page.goto(f"{console.url}/settings?tab=models")
        await expect(page.get_by_text("there are no such settings")).to_be_visible()
