"""Whatever tools, servers, models and people write is shown as text, on every page, and does nothing."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Dialog, Page, expect

from console.browsing import Console, OpenConsole
from console.payloads import PAYLOADS, TEXT, TRACES, chunks
from console.speaking import Speaker
from discovery.registry_server import open_registry, server
from dragoman.console.places import PLACES
from dragoman.scope import Caller
from dragoman.tool import Annotations, RawResult, ToolDefinition
from servers.hubs import quick, until

pytestmark = pytest.mark.anyio
ALL = "\n".join(PAYLOADS)
ONE = "<img src=xss7 onerror=alert(1)>"


class Hostile:
    """A tool that lies in everything it says of itself, and says what it is told to, or fails with it."""

    def __init__(self, name: str, text: str, *, fails: bool = False) -> None:
        self.text = text
        self.fails = fails
        properties = {
            f"p{number}": {
                "type": "string",
                "title": payload[:200],
                "description": payload,
                "default": payload,
            }
            for number, payload in enumerate(PAYLOADS[::4])
        }
        properties |= {ONE: {"type": "string"}, "choice": {"enum": [*PAYLOADS[1::4]]}}
        self.definition = ToolDefinition(
            original_name=name,
            title=ONE,
            description=text,
            input_schema={"type": "object", "properties": properties, "description": text},
            annotations=Annotations(read_only=True),
        )

    async def call(self, arguments: Mapping[str, Any], caller: Caller) -> RawResult:
        content = [{"type": "text", "text": self.text}, {"type": "image", "data": ONE, "mimeType": ONE},
                   {"type": "resource_link", "uri": "javascript:alert('xss7')", "name": ONE}]  # fmt: skip
        return RawResult(
            content=tuple(content), structured={"said": self.text, ONE: [ONE]}, is_error=self.fails
        )


def guard(page: Page, console: Console) -> None:
    async def heard(dialog: Dialog) -> None:
        console.complaints.append(f"dialog: {dialog.message}")
        await dialog.dismiss()

    page.on("dialog", heard)


async def traces(page: Page) -> list[str]:
    found = [f"{page.url}: {one}" for one in await page.evaluate(TRACES)]
    if "49xss7" in await page.evaluate(TEXT):
        found.append(f"{page.url}: a template was filled in")
    return found


async def unshown(page: Page) -> list[str]:
    """Payloads that cannot be read on the page, letter by letter but for white space."""
    text = "".join((await page.evaluate(TEXT)).split())
    return [one for one in PAYLOADS if "".join(one.split()) not in text]


async def all_shown(page: Page) -> bool:
    return not await unshown(page)


async def furnish(console: Console, tmp_path: Path) -> list[str]:
    """Payloads in every place that somebody else can write to; the pages behind those of the menu."""
    hub = console.hub
    Speaker().install(hub)
    hub.add_tool(Hostile("liar", ALL))
    hub.add_tool(Hostile("failing", ALL, fails=True))
    script = f"import sys; sys.stderr.write({ALL!r}); sys.exit(1)"
    await hub.connectors.add(
        "hostile", **quick(command=sys.executable, args=["-c", script]), description=chunks(1900)[0],
        aliases=(ONE, "<xss7>"),
    )  # fmt: skip
    await hub.connectors.add("other", **quick(url="http://127.0.0.1:9/mcp?" + "<script>xss7"), connect=False)
    for number, chunk in enumerate(chunks(1900)):
        await hub.agents.create(f"bad-{number}", description=chunk, instructions=ALL)
    await hub.call("liar", {})
    await hub.call("failing", {})
    for payload in PAYLOADS[::10]:
        await hub.call(payload, {})
    posted = await hub.messages.post(ALL)
    await hub.runs.finished(posted.run)
    called = await hub.messages.post("call liar {}", thread=posted.run.thread)
    await hub.runs.finished(called.run)
    failed = await hub.messages.post("call failing {}")
    await hub.runs.finished(failed.run)
    return [
        f"/chat/{posted.run.thread}", *(f"/runs/{one.run.id}" for one in (posted, called, failed)),
        "/tools/liar", "/tools/failing", "/connectors/hostile", "/connectors/hostile/edit", "/agents/bad-0",
        "/agents/bad-1", "/log/calls", "/settings?tab=workspace", "/settings?tab=installation",
        "/approvals?tab=answered", "/tools?q=%3Cscript%3Ealert('xss7')%3C/script%3E",
        "/runs/%3Cimg%20src=xss7%20onerror=alert(1)%3E", "/sign-in?next=javascript:alert('xss7')",
        "/audit?action=%22%3E%3Cimg%20src=xss7%20onerror=alert(1)%3E&user=%3Cxss7%3E",
    ]  # fmt: skip


async def wait_for_people(console: Console) -> None:
    """An approval and a question with payloads in them, and people with such names."""
    hub = console.hub

    @hub.tool(annotations=Annotations(destructive=True))
    def burn(what: str) -> str:
        """Burns something."""
        return what

    assert burn
    await hub.messages.post(f"call burn {json.dumps({'what': ALL})}")
    await until(lambda: _count(console, 1))
    other = (await hub.threads.create(title=ONE)).thread.id
    await hub.messages.post(f"call ask_person {json.dumps({'question': ALL})}", thread=other)
    await until(lambda: _asked(console))
    for name in ("<xss7>", ONE, "{{7*7}}xss7", "\" onfocus=alert('xss7') x=\""):
        await console.live.ask("POST", "/api/users", {"name": name})
        await console.live.ask("POST", "/api/keys", {"name": name, "scopes": ["read"]})
        await console.live.ask("POST", "/api/workspaces", {"name": name})


async def _count(console: Console, number: int) -> bool:
    return len(await console.hub.approvals.list()) >= number


async def _asked(console: Console) -> bool:
    return bool(await console.hub.runs.questions())


@pytest.mark.parametrize(
    "payload",
    [ONE, "<p><script>alert('xss7')</script>", "<xss7></xss7>", "<p style=color:red>", "{{7*7}}xss7"],
)
async def test_what_is_not_escaped_leaves_traces(browser: Browser, payload: str) -> None:
    page = await browser.new_page(java_script_enabled=True, bypass_csp=True)
    page.on("dialog", lambda dialog: dialog.dismiss())
    await page.set_content(payload.replace("{{7*7}}", "49"))
    assert await traces(page)
    await page.close()


async def test_every_page_shows_payloads_as_text(open_console: OpenConsole, tmp_path: Path) -> None:
    assert len(PAYLOADS) > 100
    async with open_console(tmp_path, model="speaker", multi_user=True, defer_tools="never") as console:
        console.forgive("status of 404")
        behind = await furnish(console, tmp_path)
        await wait_for_people(console)
        context = await console.context()
        found: list[str] = []
        for path in (*(place.path for place in PLACES), *behind):
            page = await context.new_page()
            guard(page, console)
            await page.goto(console.url + path)
            await page.evaluate("document.querySelectorAll('details').forEach(one => { one.open = true })")
            found += await traces(page)
            if path in ("/tools/liar", "/agents/bad-0", behind[0]):
                found += [f"{path} does not show {one}" for one in await unshown(page)]
            await page.close()
        assert not found, "\n".join(found)


async def test_what_is_streamed_and_swapped_is_text_too(open_console: OpenConsole, tmp_path: Path) -> None:
    record = server(ONE, ALL[:1500], title=ONE, websiteUrl="javascript:alert('xss7')",
                    remotes=[{"type": "streamable-http", "url": "https://files.example/<xss7>"}])  # fmt: skip
    wanted = {
        "mcpServers": {name[:100]: {"command": name, "args": [name]} for name in PAYLOADS if "\n" not in name}
    }
    async with open_registry([record]) as registry, open_console(
        tmp_path, model="speaker", registry_url=registry.url
    ) as console:  # fmt: skip
        await furnish(console, tmp_path)
        page = await console.page("/chat")
        guard(page, console)
        found: list[str] = []
        await page.fill("#message", ALL)
        await page.press("#message", "Enter")
        await page.wait_for_url("**/chat/thr_*")
        await expect(page.locator(".turn-foot").last).to_contain_text("tokens")
        found += [*await traces(page), *await unshown(page)]
        await page.fill("#message", "call failing {}")
        await page.press("#message", "Enter")
        await expect(page.locator(".turn-foot").nth(1)).to_contain_text("tokens")
        found += await traces(page)

        await page.goto(console.url + "/log")
        await expect(page.locator("#log-state")).to_have_text("live")
        for payload in PAYLOADS:
            await console.hub.call(payload, {})
        # At least: a connector that tries to connect again is told of in between.
        await expect(page.locator("#log-lines tr").nth(2 * len(PAYLOADS) - 1)).to_be_attached()
        await until(lambda: all_shown(page), within=20)
        found += [*await traces(page), *await unshown(page)]

        await page.goto(console.url + "/tools/liar")
        await page.get_by_role("button", name="Call it").click()
        await expect(page.get_by_role("heading", name="Result")).to_be_visible()
        found += await traces(page)

        await page.goto(console.url + "/transfer")
        await page.get_by_label("or the text of one").fill(json.dumps(wanted))
        await page.get_by_role("button", name="Show what would happen").click()
        await expect(page.get_by_role("region", name="What would happen")).to_be_visible()
        found += await traces(page)
        await page.get_by_role("button", name="Search", exact=True).click()
        await page.locator(".transfer-offer").first.wait_for()
        found += await traces(page)
        await page.get_by_label("or the text of one").fill(ALL)
        await page.get_by_role("button", name="Show what would happen").click()
        await expect(page.get_by_text("cannot be used").first).to_be_visible()
        found += await traces(page)
        assert not found, "\n".join(found)
