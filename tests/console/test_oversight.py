"""What admins see of others: what led to an approval, runs to read and no more, what each used."""

import json
import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import OpenConsole
from console.speaking import Speaker
from dragoman.tool import Annotations
from servers.hubs import quick, until
from servers.library_server import open_library

pytestmark = pytest.mark.anyio


async def test_an_admin_sees_what_led_to_an_approval_and_may_read_the_run(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker", multi_user=True) as console:
        Speaker().install(console.hub)

        @console.hub.tool(annotations=Annotations(destructive=True))
        def burn(what: str) -> str:
            """Burns something for good."""
            return f"{what} is ashes"

        assert burn
        ada, eve_key = await console.add_user("ada", role="admin"), await console.add_user("eve")
        eve = await console.hub.as_user("eve")
        posted = await eve.messages.post(f"call burn {json.dumps({'what': 'all the letters'})}")

        async def is_asked() -> bool:
            return bool(await eve.approvals.list())

        await until(is_asked, within=20)
        page = await console.page("/approvals", key=ada)
        card = page.locator(".approvals-card")
        await expect(card).to_contain_text("What led here")
        await expect(card.locator("blockquote")).to_contain_text('call burn {"what": "all the letters"}')
        await expect(card.locator(".figure", has_text="for")).to_contain_text("eve")
        await console.picture(page, "approvals_of_others")
        await card.get_by_role("link", name="read").click()
        await expect(page.locator("main")).to_contain_text("A run of eve: to read, and no more.")
        await expect(page.get_by_role("button", name="Stop")).to_have_count(0)
        await expect(page.get_by_text("Rerun")).to_have_count(0)
        admin = await console.hub.as_user("ada")
        assert [one.subject for one in await admin.audit.list(action="run.overseen")] == [posted.run.id]

        await page.goto(console.url + "/runs?user=*")
        await expect(page.get_by_role("region", name="Runs")).to_contain_text("eve")
        await page.goto(console.url + "/users")
        row = page.get_by_role("region", name="Users").locator("tr", has_text="eve")
        await expect(row.locator("time")).to_have_count(1)  # else: never
        await expect(page.locator("main")).not_to_contain_text("usr_")

        # Its figures are written when it ends: until then they are those of its steps.
        page = await console.page(f"/runs/{posted.run.id}", key=eve_key)
        figures = page.get_by_role("region", name="Figures")
        for label in ("model requests", "tool calls", "tokens in"):
            figure = figures.locator(".figure", has_text=label).locator("dd")
            await expect(figure).not_to_have_text("0")
        console.forgive("status of 404")
        for path in ("/runs?user=*", "/runs?user=ada"):
            await page.goto(console.url + path)
            await expect(page.get_by_role("heading", name="There is no user")).to_be_visible()
        # A key that was not made to look after others does not, whoever has it.
        reader = await console.add_user("cleo", role="admin", scopes=("read",))
        page = await console.page("/runs?user=*", key=reader)
        await expect(page.get_by_role("heading", name="There is no user")).to_be_visible()
        await page.goto(f"{console.url}/runs/{posted.run.id}")
        await expect(page.get_by_role("heading", name="There is no run")).to_be_visible()
        bearer = {"Authorization": f"Bearer {reader}"}
        listed = await page.request.get(f"{console.url}/api/runs?user=*", headers=bearer)
        assert (listed.status, (await listed.json())["code"]) == (404, "not_found")
        one = await page.request.get(f"{console.url}/api/runs/{posted.run.id}/timeline", headers=bearer)
        assert one.status == 404
        bearer = {"Authorization": f"Bearer {ada}"}
        one = await page.request.get(f"{console.url}/api/runs/{posted.run.id}/timeline", headers=bearer)
        assert one.status == 200

        other = await eve.messages.post("hello")
        page = await console.page(f"/runs/{other.run.id}", key=await console.add_user("bob"))
        await expect(page.get_by_role("heading", name="There is no run")).to_be_visible()


async def test_resources_and_prompts_of_a_server_are_read_in_its_tabs(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_library() as library, open_console(tmp_path) as console:
        await console.hub.connectors.add("books", **quick(url=library.url, transport="http"))
        page = await console.page("/connectors/books?tab=resources")
        offered, content = page.locator("#offered"), page.locator("#content")
        await offered.get_by_role("button", name="Read one").click()
        await expect(content.locator("pre")).to_have_text("one")
        await expect(content).to_contain_text("3 bytes")
        await expect(page.locator("#count-resources")).to_have_text(re.compile(r"[1-9]\d*"))
        await console.picture(page, "connector_resources")
        await page.get_by_role("navigation", name="books").get_by_role("link", name="Prompts").click()
        form = offered.locator("form").first
        await expect(form.get_by_role("textbox").first).to_be_visible()
        for field in await form.get_by_role("textbox").all():
            await field.fill("<b>bold</b>")
        await form.get_by_role("button", name="Show").click()
        await expect(content).to_contain_text("<b>bold</b>")
        await page.get_by_role("navigation", name="books").get_by_role("link", name="Logs").click()
        await expect(page.get_by_role("heading", name="Last calls of yours")).to_be_visible()
        tool = console.hub.tools.list("books")[0]
        await console.hub.tools.configure(tool.name, approval="always", cost=0.5)
        await page.get_by_role("navigation", name="books").get_by_role("link", name="Access").click()
        overrides = page.get_by_role("region", name="Overrides")
        await expect(overrides.locator("tr", has_text=tool.original_name)).to_contain_text(
            "always asks · $0.5 a call"
        )
        await expect(page.locator("main")).to_contain_text("you alone")
