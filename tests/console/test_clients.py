"""The consent of a person in a real browser: from a client's link to its tools, and out again."""

import re
from pathlib import Path

import pytest
from playwright.async_api import expect

from console.browsing import NARROW, OpenConsole
from logins.client_flow import CALLBACK, Client, asked
from servers.processes import stdio

pytestmark = pytest.mark.anyio


async def test_a_person_chooses_what_a_client_may_use_and_takes_it_back(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        for slug in ("mail", "files"):
            await console.hub.connectors.add(slug, **stdio())
        client = Client(console.live)
        await client.register(client_name="Claude <b>Code</b>")
        page = await console.page(f"/oauth/authorize?{client.query()}")
        await console.picture(page, "consent")
        heading = page.get_by_role("heading", name="Claude <b>Code</b> wants to use your tools")
        await expect(heading).to_be_visible()
        await page.get_by_role("button", name="Allow").click()
        await expect(page.get_by_text("Choose at least one connector")).to_be_visible()
        await page.get_by_placeholder("Search 2 connectors").fill("mai")
        await expect(page.get_by_text("files", exact=True)).to_be_hidden()
        await page.get_by_label("mail").check()
        await page.get_by_text("1 day").click()
        await expect(page.get_by_text("of 1 connector")).to_be_visible()
        assert await page.get_by_label("Read only").is_checked()

        # The client listens on its own computer; here nobody does, and the address is what counts.
        console.forgive("ERR_CONNECTION_REFUSED|left this machine|127.0.0.1:33418")
        async with page.expect_request(lambda request: request.url.startswith(CALLBACK)) as going:
            await page.get_by_role("button", name="Allow").click()
        code = (await going.value).url.partition("code=")[2].partition("&")[0]
        assert (await client.redeem(code)).status == 200
        names = await client.tools()
        assert "mcp_mail_echo" in names
        assert "mcp_mail_send" not in names

        clients = await console.page("/clients")
        row = clients.get_by_role("row").filter(has_text="Claude <b>Code</b>")
        await expect(row).to_contain_text("mail")
        await expect(row).to_contain_text("read only")
        await console.picture(clients, "clients")
        await clients.get_by_role("button", name="Replace it").click()
        await clients.locator("#ask").get_by_role("button", name="Replace").click()
        await expect(clients.get_by_text("signs from now on")).to_be_visible()
        made = (await asked(console.live, "GET", "/oauth/jwks")).value["keys"][0]["kid"]
        await expect(clients.get_by_text(f"The key {made} signs from now on")).to_be_visible()
        assert "mcp_mail_echo" in await client.tools(), "what was signed before is good until it ends"

        # On a narrow screen what can be done with a client is in reach.
        await clients.set_viewport_size({"width": NARROW[0], "height": NARROW[1]})
        for box in (await row.bounding_box(), await row.get_by_role("button", name="Revoke").bounding_box()):
            assert box is not None
            assert 0 <= box["x"] < box["x"] + box["width"] <= NARROW[0]
        await row.get_by_role("link", name="Limits of").click()
        await clients.get_by_label("Calls an hour").fill("100")
        await clients.get_by_role("button", name="Save").click()
        await expect(clients.get_by_role("row").filter(has_text="calls an hour")).to_contain_text("100")
        await clients.get_by_role("link", name="All clients").click()
        await expect(row).to_contain_text("100 calls an hour")
        await row.get_by_role("button", name="Revoke").click()
        await clients.locator("#ask").get_by_role("button", name="Revoke").click()
        await expect(row).to_contain_text("revoked")
        assert (await client.ask()).status == 401

        again = await console.page(
            f"/oauth/authorize?{client.query()}", viewport=dict(zip(("width", "height"), NARROW, strict=True))
        )
        await expect(again.get_by_label("mail")).to_be_checked()
        await expect(again.get_by_text(re.compile("^allowed .*(ago|now)$"))).to_be_visible()


async def test_who_is_not_signed_in_comes_back_to_the_request(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        client = Client(console.live)
        await client.register()
        await console.hub.people.add_user("ann")
        _, key = await console.hub.people.add_key("laptop", user="ann", scopes=("read", "call", "manage"))
        page = await console.page("/")
        await page.context.clear_cookies()
        await page.goto(f"{console.url}/oauth/authorize?{client.query()}")
        await page.get_by_label("Your API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Test Client wants to use your tools")).to_be_visible()
        await expect(page.get_by_text("ann", exact=True)).to_be_visible()
        await page.get_by_role("button", name="Not you?").click()
        await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()
