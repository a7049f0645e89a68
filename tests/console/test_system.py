"""Audit, live log, import and export, settings in a real Chromium."""

import json
import re
import sys
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Page, expect
from sqlalchemy import create_engine, text

from console.browsing import Console, OpenConsole
from discovery.registry_server import open_registry, server
from dragoman.console.log import line_of
from dragoman.events import Event, EventKind
from patience import patient
from servers.samples import sample, sample_program

pytestmark = pytest.mark.anyio


def with_tools(console: Console) -> None:
    @console.hub.tool
    async def greet(name: str) -> str:
        """Says hello."""
        return f"hello {name}"

    @console.hub.tool
    async def fail() -> str:
        """Never works."""
        raise ValueError("no <b>way</b>")

    assert greet
    assert fail


async def agree(page: Page) -> None:
    await page.locator("#ask button[value=yes]").click()


async def test_entries_are_filtered_paged_and_verified(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        with_tools(console)
        for number in range(60):
            await console.hub.call("greet", {"name": str(number)})
        await console.hub.call("fail")
        page = await console.page("/audit")
        rows = page.locator("#entries tbody tr")
        await expect(rows).to_have_count(50)
        await expect(rows.first).to_contain_text("tool_failed")
        await console.picture(page, "audit")
        await page.get_by_role("link", name="Next").click()
        await expect(rows).to_have_count(11)
        await page.get_by_role("link", name="First").click()
        await page.get_by_label("Sort by").select_option("Oldest")
        await expect(rows.first).to_have_attribute("id", "entry-1")
        await page.get_by_role("link", name="Next").click()
        await expect(rows.last).to_contain_text("tool_failed")
        await page.get_by_label("Sort by").select_option("Newest")
        await expect(rows.first).to_contain_text("tool_failed")
        await page.get_by_label("Action").fill("connector.added")
        await expect(page.get_by_text("Nothing fits")).to_be_visible()
        await page.get_by_label("Action").fill("call")
        await expect(rows).to_have_count(50)
        await page.get_by_label("To (UTC)").fill("2020-01-01T00:00")
        await expect(page.get_by_text("Nothing fits")).to_be_visible()
        await page.get_by_label("To (UTC)").fill("")
        await page.get_by_label("User").select_option("owner")
        await expect(rows).to_have_count(50)
        await rows.first.get_by_text("details").click()
        await expect(rows.first.locator("pre")).to_contain_text("duration_ms")

        await page.get_by_role("button", name="Verify").click()
        await expect(page.locator("#verdict")).to_contain_text("The trail is whole. 61 entries checked")
        async with page.expect_download() as download:
            await page.get_by_role("link", name="Export", exact=True).click()
        exported = (await (await download.value).path()).read_text().splitlines()
        assert [json.loads(line)["number"] for line in exported] == list(range(1, 62))

        engine = create_engine(f"sqlite:///{tmp_path / 'dragoman.db'}")
        with engine.begin() as connection:
            connection.execute(text("update audit set subject = 'other' where number = 7"))
        engine.dispose()
        await page.get_by_role("button", name="Verify").click()
        await expect(page.locator("#verdict")).to_contain_text("The trail is broken")
        await expect(page.locator("#verdict")).to_contain_text("up to entry 6")


async def test_events_of_the_log_read_as_sentences() -> None:
    told: dict[str, tuple[EventKind, dict[str, str]]] = {
        "crm failed: gone": ("connector.state", {"state": "error", "cause": "gone"}),
        "crm needs a sign-in": ("connector.state", {"state": "needs_auth"}),
        "crm is connected": ("connector.state", {"state": "connected"}),
        "a person wrote in a chat": ("message.added", {"author": "person"}),
    }
    for sentence, (kind, data) in told.items():
        event = Event(kind=kind, workspace="local", user="owner", connector="crm", data=data)
        assert line_of(event)["text"] == sentence


async def test_events_are_shown_as_they_happen_and_wait_while_paused(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        with_tools(console)
        page = await console.page("/log")
        await expect(page.locator("#log-state")).to_have_text("live")
        await expect(page.get_by_text("Nothing has happened yet")).to_be_visible()
        rows = page.locator("#log-lines tr:visible")
        await console.hub.call("greet", {"name": "Ada"})
        await expect(rows).to_have_count(2)
        await expect(rows.first).to_contain_text("greet is done after")
        await console.hub.call("fail")
        await expect(rows.first).to_contain_text("fail failed: tool_failed")
        await console.picture(page, "log")
        await page.get_by_label("only what went wrong").check()
        await expect(rows).to_have_count(1)
        await page.get_by_label("only what went wrong").uncheck()
        await page.get_by_label("Contains").fill("greet")
        await expect(rows).to_have_count(2)
        await page.get_by_label("Contains").fill("")
        await page.get_by_label("About").select_option("connector")
        await expect(rows).to_have_count(0)
        await page.get_by_label("About").select_option("")

        await page.get_by_role("button", name="Pause").click()
        await console.hub.call("greet", {"name": "Bob"})
        await expect(page.get_by_text("2 more since")).to_be_visible()
        await expect(rows).to_have_count(4)
        await page.get_by_role("button", name="Resume").click()
        await expect(rows).to_have_count(6)
        await page.get_by_role("button", name="Clear").click()
        await expect(page.get_by_text("Nothing has happened yet")).to_be_visible()

        await page.get_by_role("link", name="Last calls", exact=True).click()
        calls = page.locator("#calls tbody tr")
        await expect(calls).to_have_count(3)
        await expect(calls.nth(1)).to_contain_text("no <b>way</b>")
        await page.get_by_label("only what went wrong").check()
        await expect(calls).to_have_count(1)
        await console.picture(page, "log_calls")


def tracker(tmp_path: Path) -> dict[str, Any]:
    facts = sample_program("tracker", tmp_path / "data")
    return {"command": facts["command"], "args": facts["args"], "env": {"TOKEN": "${input:token}"}}


async def test_a_file_is_planned_answered_applied_and_exported(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    wanted = {
        "inputs": [{"id": "token", "type": "promptString", "description": "A token", "password": True}],
        "servers": {"issues": tracker(tmp_path), "broken": {"command": "there-is-no-such-program"}},
    }
    file = tmp_path / "mcp.json"
    file.write_text(json.dumps(wanted))
    async with open_console(tmp_path / "home") as console:
        page = await console.page("/transfer")
        await page.get_by_role("button", name="Show what would happen").click()
        await expect(page.get_by_role("alert")).to_contain_text("there is nothing to import")
        await page.get_by_label("Files").set_input_files(file)
        await page.get_by_role("button", name="Show what would happen").click()
        plan = page.get_by_role("region", name="What would happen")
        await expect(plan).to_contain_text("needs an answer")
        await expect(plan).to_contain_text("it asks for token")
        await console.picture(page, "transfer_plan")
        assert [view for view in await console.hub.connectors.list() if view.connector.kind == "mcp"] == []
        await page.get_by_label("token").fill("s3cret-t0ken")
        await page.get_by_role("button", name="Import", exact=True).click()
        done = page.get_by_role("region", name="What happened")
        await expect(page.get_by_text("Imported: 1 of 2.")).to_be_visible(timeout=patient(30_000))
        await expect(done).to_contain_text("connected")
        await expect(done).to_contain_text("cannot be used")
        await console.picture(page, "transfer_done")

        async with page.expect_download() as download:
            await page.get_by_role("link", name="Download as mcpServers").click()
        plain = (await (await download.value).path()).read_text()
        assert "issues" in json.loads(plain)["mcpServers"]
        assert "s3cret-t0ken" not in plain
        await page.get_by_text("With secrets", exact=True).click()
        await page.get_by_role("button", name="Show with secrets").click()
        await agree(page)
        await expect(page.get_by_label("with secrets")).to_have_value(re.compile("s3cret-t0ken"))
        async with page.expect_download() as download:
            await page.get_by_role("button", name="Save as a file").click()
        assert "s3cret-t0ken" in (await (await download.value).path()).read_text()
        await page.get_by_role("button", name="Hide").click()
        assert "s3cret-t0ken" not in await page.content()


async def test_progress_is_told_while_servers_start(open_console: OpenConsole, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    slow = f"import pathlib, time\nwhile not pathlib.Path({str(gate)!r}).exists(): time.sleep(0.02)"
    wanted = {"mcpServers": {"slow": {"command": sys.executable, "args": ["-c", slow]}}}
    async with open_console(tmp_path / "home") as console:
        page = await console.page("/transfer")
        await page.get_by_label("or the text of one").fill(json.dumps(wanted))
        await page.get_by_role("button", name="Show what would happen").click()
        await page.get_by_role("button", name="Import 1 entry").click()
        await expect(page.get_by_text("0 of 1 entry: adding and connecting…")).to_be_visible()
        gate.touch()
        await expect(page.get_by_text("Imported: 1 of 1.")).to_be_visible(timeout=patient(30_000))


async def test_the_registry_is_searched_and_shows_the_exact_command(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    record = server(
        "io.example/<b>files",
        "Reads <script>files</script>",
        remotes=[{"type": "streamable-http", "url": "https://files.example/mcp"}],
    )
    async with (
        open_registry([record]) as registry,
        open_console(tmp_path, registry_url=registry.url) as console,
    ):
        page = await console.page("/transfer")
        await page.get_by_label("What should it do?").fill("files")
        await page.get_by_role("button", name="Search", exact=True).click()
        offer = page.locator(".transfer-offer")
        await expect(offer).to_contain_text("Reads <script>files</script>")
        await offer.get_by_role("button").click()
        await expect(offer.locator("pre")).to_have_text("https://files.example/mcp")
        await console.picture(page, "transfer_offer")


async def test_preferences_limits_and_theme_are_kept(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        await console.hub.connectors.add("issues", **sample("tracker", tmp_path / "data"))
        key = await console.add_user("ada", role="admin")
        page = await console.page("/settings", key=key)
        await page.get_by_label("only these").check()
        await page.get_by_role("spinbutton", name="Calls an hour").fill("50")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved. It holds from the next call on.")).to_be_visible()
        usage = page.locator("#usage")
        await expect(usage).to_contain_text("calls an hour")
        await expect(usage).to_contain_text("the user")
        await console.picture(page, "settings_mine")

        await page.get_by_role("link", name="Workspace", exact=True).click()
        await page.get_by_label("When agents ask for approval").select_option("always")
        await page.get_by_role("spinbutton", name="Calls an hour").fill("40")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved. It holds for everybody")).to_be_visible()
        await console.picture(page, "settings_workspace")
        assert (await console.hub.people.get_workspace("local")).approval == "always"

        await page.get_by_role("link", name="Mine", exact=True).click()
        await expect(page.locator("#usage")).to_contain_text("the workspace")
        await page.get_by_role("spinbutton", name="Calls an hour").evaluate(
            "one => { one.max = ''; one.value = 60 }"
        )
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("alert")).to_contain_text("calls_per_hour may be at most 40 here")
        await page.get_by_label("light", exact=True).check()
        await expect(page.locator("html")).to_have_attribute("data-theme", "light")
        await page.reload()
        await expect(page.locator("html")).to_have_attribute("data-theme", "light")
        await page.get_by_label("as the system").check()
        assert await page.locator("html").get_attribute("data-theme") is None


async def test_the_installation_tells_models_and_rollout(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, discovery="off") as console:
        page = await console.page("/settings?tab=installation")
        await expect(page.locator("#models")).to_contain_text("plain matching, no language model")
        await expect(page.get_by_text("No registry is asked at all.")).to_be_visible()
        await page.get_by_label("Share of users").fill("25")
        await page.get_by_role("button", name="Set", exact=True).click()
        await expect(page.get_by_text("Set, for every process at once.")).to_be_visible()
        await console.picture(page, "settings_installation")
        assert (await console.hub.rollout.status()).plan.share == 25
        await page.goto(console.url + "/transfer")
        await expect(page.get_by_text("Find a server")).to_have_count(0)


async def test_the_operator_makes_and_removes_workspaces(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        page = await console.page("/settings?tab=workspace")
        await page.get_by_label("Name of a new one").fill("acme")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(page.get_by_role("cell", name="acme", exact=True)).to_be_visible()
        await _peopled(page)
        await page.goto(console.url + "/settings?tab=retention")
        await page.get_by_label("Chats and runs").fill("90")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("90 days after the last message")).to_be_visible()
        assert (await console.hub.people.get_workspace("local")).keep_chats_days == 90
        await page.goto(console.url + "/settings?tab=workspace")
        await page.get_by_role("button", name="Remove acme").click()
        await agree(page)
        await expect(page.get_by_text("Removed, with its users")).to_be_visible()
        assert [one.id for one in await console.hub.people.workspaces()] == ["local"]


async def _peopled(page: Page) -> None:
    """Users, keys and limits of a workspace that is not the operator's own."""
    await page.locator("#side").get_by_role("link", name="Users").click()
    await page.get_by_role("navigation", name="Workspaces").get_by_role("link", name="acme").click()
    await page.get_by_label("New user").fill("zoe")
    await page.get_by_role("button", name="Add", exact=True).click()
    await page.get_by_role("link", name="zoe", exact=True).click()
    await expect(page.locator("header.top p").first).to_contain_text("member of acme")
    await page.get_by_label("Capabilities").fill("mcp_email greet")
    await page.get_by_label("Calls an hour").fill("50")
    await page.get_by_role("button", name="Save").click()
    await expect(page.get_by_text("Saved.")).to_be_visible()
    await page.reload()
    await expect(page.get_by_label("Capabilities")).to_have_value("greet mcp_email")
    await expect(page.get_by_label("Calls an hour")).to_have_value("50")
    await page.get_by_role("link", name="All users").click()
    await expect(page.get_by_role("region", name="Users")).to_contain_text("zoe")
    await page.locator("#side").get_by_role("link", name="API keys").click()
    await page.get_by_role("navigation", name="Workspaces").get_by_role("link", name="acme").click()
    await page.get_by_label("Name", exact=True).fill("of-zoe")
    await expect(page.get_by_label("For", exact=True).get_by_role("option")).to_have_text(["zoe"])
    await page.get_by_label("For", exact=True).select_option("zoe")
    await page.get_by_role("button", name="Create").click()
    await expect(page.get_by_role("region", name="API keys")).to_contain_text("of-zoe")


async def test_members_see_what_is_theirs_to_see(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        with_tools(console)
        await console.hub.call("greet", {"name": "x"})
        member = await console.add_user("bob")
        page = await console.page("/audit", key=member)
        await expect(page.get_by_text("Nothing was done yet")).to_be_visible()
        await expect(page.get_by_role("button", name="Verify")).to_have_count(0)
        await page.goto(console.url + "/settings")
        await expect(page.get_by_role("link", name="Workspace", exact=True)).to_have_count(0)
        console.forgive("404|403")
        await page.goto(console.url + "/settings?tab=workspace")
        await expect(page.get_by_text("there are no such settings")).to_be_visible()
        reader = await console.add_user("eve", role="admin", scopes=("read",))
        page = await console.page("/audit", key=reader)
        await expect(page.get_by_text("Nothing was done yet")).to_be_visible()
