"""Connectors in a real browser: added by form, watched, mended, changed, removed."""

import json
import re
import sys
from pathlib import Path

import pytest
from playwright.async_api import Page, expect

from console.browsing import OpenConsole
from dragoman import Hub
from oauth.journey import quick as authorised_by
from servers.authorization_server import open_authorization_server, open_protected_server
from servers.hubs import listed, quick, state_is

pytestmark = pytest.mark.anyio
# What the page does not offer is refused to who asks all the same.
SWITCHED_OFF = """async address => {
  const headers = {"X-CSRF-Token": document.body.dataset.csrf, "HX-Request": "true"};
  const body = new URLSearchParams({enabled: "false"});
  return (await fetch(address, {method: "POST", headers, body})).text();
}"""
STDIO = str(Path(__file__).parents[1] / "servers" / "stdio_server.py")
COMMAND = f"{sys.executable} {STDIO}"


async def test_a_server_is_tested_added_watched_changed_and_removed(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/connectors")
        await expect(page.get_by_text("No connector yet")).to_be_visible()
        await console.picture(page, "connectors_empty")
        await page.get_by_role("link", name="Add the first").click()

        outcome = page.locator("#outcome")
        await page.get_by_label("Name", exact=True).fill("Faults!")
        await page.get_by_label("Command with its arguments").fill("no-such-program --x")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome).to_contain_text("'Faults!' cannot be the name of a connector")
        await page.get_by_label("Name", exact=True).fill("faults")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome).to_contain_text("no-such-program")
        await expect(page.get_by_label("Command with its arguments")).to_have_value("no-such-program --x")

        await page.get_by_label("Command with its arguments").fill(COMMAND)
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome).to_contain_text("It works: 34 tools")
        await expect(outcome).to_contain_text("Nothing is saved yet")
        assert await listed(console.hub) == []
        await console.picture(page, "connectors_tested")

        await page.get_by_role("button", name="Save").click()
        await expect(page.locator("h1")).to_have_text("faults")
        live = page.locator("#live")
        await expect(live).to_contain_text("connected")
        await expect(live.get_by_role("region", name="Connections")).to_contain_text("owner")
        await _breaks_and_mends(console.hub, page)
        await console.picture(page, "connectors_one")

        await page.get_by_role("link", name="Change").click()
        await page.get_by_label("What it is for").fill("For <b>tests</b>")
        await page.get_by_text("Limits", exact=True).click()
        await page.get_by_label("Calls a minute").fill("many")
        await page.get_by_role("button", name="Save the change").click()
        await expect(outcome).to_contain_text("Calls a minute must be a number, not 'many'")
        await page.get_by_label("Calls a minute").fill("600")
        await page.get_by_role("button", name="Save the change").click()
        await expect(page.get_by_text("For <b>tests</b>")).to_be_visible()
        chosen = page.locator("dl.facts").filter(has_text="Calls a minute")
        await expect(chosen).to_contain_text("600")
        await page.get_by_role("link", name="Change").click()
        await page.get_by_text("Limits", exact=True).click()
        await page.get_by_label("Calls a minute").fill("")
        await page.get_by_role("button", name="Save the change").click()
        await expect(page.get_by_text("Belongs to")).to_be_visible()
        await expect(page.get_by_text("Calls a minute")).to_have_count(0)

        await page.get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("Remove faults?")).to_be_visible()
        await page.get_by_role("button", name="Cancel").click()
        await expect(page.locator("h1")).to_have_text("faults")
        await page.get_by_role("button", name="Remove").click()
        await page.locator("#ask").get_by_role("button", name="Remove").click()
        await expect(page.get_by_text("No connector yet")).to_be_visible()


async def _breaks_and_mends(hub: Hub, page: Page) -> None:
    """What it prints appears by itself; its end is seen, and so is its return."""
    live = page.locator("#live")
    await hub.call("mcp_faults_stderr", {"text": "<i>low on disk</i>"})
    await expect(live.get_by_role("log")).to_contain_text("<i>low on disk</i>")
    await page.get_by_role("button", name="Disconnect").click()
    await expect(live.locator(".chip").first).to_have_text("idle")
    await page.get_by_role("button", name="Connect", exact=True).click()
    await expect(live.locator(".chip").first).to_have_text("connected")
    before = await live.get_by_text("process ").inner_text()
    await page.get_by_role("button", name="Reconnect").click()
    await expect(live.get_by_text("process ")).not_to_have_text(before)
    await page.get_by_role("button", name="Refresh tools").click()
    await expect(live).to_contain_text("0 added, 0 changed, 0 removed, 34 as before")
    await live.get_by_role("switch").click()
    await expect(live.locator(".chip").first).to_have_text("disabled")
    await live.get_by_role("switch").click()
    await expect(live.get_by_role("switch")).to_have_attribute("aria-checked", "true")


async def test_a_server_out_of_reach_says_why_and_when_it_is_tried_next(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        await console.hub.connectors.add("gone", **quick(url="http://127.0.0.1:9/mcp"))
        await console.hub.connectors.add("works", **quick(command=sys.executable, args=[STDIO]))
        for number in range(12):
            await console.hub.call("mcp_works_echo", {"text": "x" * number})
        page = await console.page("/connectors?view=cards")
        gone = page.get_by_role("region", name="gone")
        await expect(gone).to_contain_text("connection refused")
        await expect(gone).to_contain_text("Attempt")
        works = page.get_by_role("region", name="works")
        await expect(works.locator(".sparkline path")).to_have_count(2)
        await expect(works).to_contain_text("34")
        await console.picture(page, "connectors")

        await works.get_by_role("switch").click()
        await expect(works).to_contain_text("Off")
        await state_is(console.hub, "works", "disabled")
        await works.get_by_role("switch").focus()
        async with page.expect_response("**/connectors?view=cards"):
            pass
        await expect(works.get_by_role("switch")).to_be_focused()
        await page.goto(f"{console.url}/connectors/gone")
        latency = page.locator("#chart-latency")
        await expect(latency.locator("path.down")).to_have_count(1)
        await expect(latency).to_contain_text(re.compile(r"no connection since \d\d:\d\d"))
        await page.goto(f"{console.url}/connectors/works")
        await expect(latency.locator("path.down")).to_have_count(0)


async def test_pasted_servers_are_shown_before_they_are_added(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/connectors/new?by=paste")
        outcome = page.locator("#outcome")
        pasted = page.get_by_label("Your mcpServers")
        await pasted.fill("{ not json")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome).to_contain_text("cannot be used")
        servers = {
            "one_server": {"command": sys.executable, "args": [STDIO]},
            "two": {"url": "http://127.0.0.1:9/${input:path}"},
        }
        asked = [{"type": "promptString", "id": "path", "description": "which path"}]
        await pasted.fill(json.dumps({"mcpServers": servers, "inputs": asked}))
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome).to_contain_text("will be added")
        await expect(outcome).to_contain_text("needs an answer")
        await page.get_by_label("path", exact=True).fill("mcp")
        await page.get_by_role("button", name="Test", exact=True).click()
        await expect(outcome.get_by_text("will be added")).to_have_count(2)
        # It was really started: one works, the other says why not.
        await expect(outcome.locator("tr", has_text="one-server")).to_contain_text("34 tools")
        await expect(outcome.locator("tr", has_text="two")).to_contain_text("connection refused")
        await console.picture(page, "connectors_paste")
        assert await listed(console.hub) == []
        # While one is installed for the first time, the page says how far that is.
        gate = tmp_path / "installed"
        says = "echo 'Installed 3 of 7' >&2"
        waits = f"{says}; until [ -e {gate} ]; do sleep 0.1; done; exec {sys.executable} {STDIO}"
        slow = {"slow": {"command": "/bin/sh", "args": ["-c", waits], "sandbox": "none"}}
        await pasted.fill(json.dumps({"mcpServers": slow}))
        await page.get_by_role("button", name="Test", exact=True).click()
        starting = page.locator("[data-starting]")
        await expect(starting).to_contain_text(re.compile(r"\d s\s*slow Installed 3 of 7"))
        gate.touch()
        await expect(outcome.locator("tr", has_text="slow")).to_contain_text("34 tools")
        await expect(starting).to_be_empty()
        await pasted.fill(json.dumps({"mcpServers": servers, "inputs": asked}))
        await page.get_by_role("button", name="Test", exact=True).click()
        await page.get_by_label("path", exact=True).fill("mcp")
        await page.get_by_role("button", name="Save").click()
        await expect(outcome.get_by_text("added", exact=True)).to_have_count(2)
        await outcome.get_by_role("link", name="one-server").click()
        await expect(page.locator("#live")).to_contain_text("connected")


async def test_a_user_authorises_from_the_page_of_the_connector(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with (
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
        open_console(tmp_path) as console,
    ):
        await console.hub.connectors.add("mail", connect=False, **authorised_by(server))
        page = await console.page("/connectors/mail")
        await expect(page.get_by_text("You have not authorised it yet.")).to_be_visible()
        await console.picture(page, "connectors_authorise")
        await page.get_by_role("button", name="Authorise").click()
        await expect(page.get_by_role("heading", name="Connect an account")).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await expect(page.get_by_text("mail is connected.")).to_be_visible()
        await page.goto(console.url + "/connectors/mail")
        await expect(page.get_by_role("button", name="Authorise again")).to_be_visible()
        await expect(page.locator("#live")).to_contain_text("connected")


async def test_a_member_sees_what_is_shared_and_is_told_that_it_is_not_theirs_to_switch(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        await console.hub.connectors.add("own", **quick(command=sys.executable, args=[STDIO]))
        await console.hub.connectors.add("shared", shared=True, **quick(command=sys.executable, args=[STDIO]))
        page = await console.page("/connectors?view=cards", key=await console.add_user("ada"))
        await expect(page.get_by_role("region", name="shared")).to_be_visible()
        await expect(page.get_by_role("region", name="own")).to_have_count(0)
        await expect(page.get_by_role("switch")).to_have_count(0)
        console.forgive("status of 403")
        told = await page.evaluate(SWITCHED_OFF, "/connectors/shared/switch")
        assert "belongs to the whole workspace" in told
        assert (await console.hub.connectors.get("shared")).connector.enabled
        await page.goto(console.url + "/connectors/shared")
        await expect(page.get_by_text("Nobody now.")).to_be_visible()
        console.forgive("status of 404")
        await page.goto(console.url + "/connectors/own")
        await expect(page.get_by_role("heading", name="there is no connector")).to_be_visible()


async def test_a_connector_has_tabs_names_of_people_and_what_the_role_may_do(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        settings = quick(command=sys.executable, args=[STDIO], isolation="user")
        await console.hub.connectors.add("works", shared=True, **settings)
        key = await console.add_user("eve")
        eve = await console.hub.as_user("eve")
        assert (await eve.call("mcp_works_echo", {"text": "x"})).ok
        page = await console.page("/connectors/works", key=key)
        await expect(page.get_by_role("region", name="Connections")).to_contain_text("eve")
        await expect(page.locator("main")).not_to_contain_text("usr_")
        await expect(page.locator("h2", has_text="1 calls, last 24 hours")).to_be_visible()
        # What the state asks for is offered, and nothing else.
        await expect(page.get_by_role("button", name="Reconnect")).to_be_visible()
        await expect(page.get_by_role("button", name="Connect", exact=True)).not_to_be_visible()
        for gone in (page.get_by_role("link", name="Change"), page.get_by_role("button", name="Remove")):
            await expect(gone).to_have_count(0)
        await expect(page.get_by_role("switch")).to_have_count(0)
        await page.get_by_role("link", name="Tools 34").click()
        await expect(page.get_by_role("link", name="works.echo", exact=True)).to_be_visible()
        await page.get_by_role("navigation", name="works").get_by_role("link", name="Settings").click()
        await expect(page.get_by_text("Belongs to")).to_be_visible()
        await page.goto(console.url + "/connectors?view=cards")
        await expect(page.get_by_role("region", name="works")).to_be_visible()
        await expect(page.get_by_role("switch")).to_have_count(0)
        page = await console.page("/connectors/works")
        await expect(page.get_by_role("button", name="Remove")).to_be_visible()
