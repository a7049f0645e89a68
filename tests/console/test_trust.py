"""Approvals, credentials and keys in a real Chromium: what is asked, kept, given and taken back."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from playwright.async_api import Page, expect

from console.browsing import Console, OpenConsole
from console.speaking import Speaker
from dragoman.run import Run
from dragoman.tool import Annotations
from oauth import journey
from servers.authorization_server import open_authorization_server, open_protected_server
from servers.hubs import quick, until

pytestmark = pytest.mark.anyio


def speaking(console: Console) -> list[str]:
    """What was burnt and moved, in that order."""
    Speaker().install(console.hub)
    done: list[str] = []

    @console.hub.tool(annotations=Annotations(destructive=True))
    def burn(what: str) -> str:
        """Burns something."""
        done.append(what)
        return f"{what} is ashes"

    @console.hub.tool
    def move(what: str) -> str:
        """Moves something."""
        done.append(what)
        return f"{what} is moved"

    assert burn
    assert move
    return done


async def post(console: Console, tool: str, **arguments: Any) -> Run:
    return (await console.hub.messages.post(f"call {tool} {json.dumps(arguments)}")).run


async def agree(page: Page) -> None:
    await page.locator("#ask button[value=yes]").click()


async def test_a_person_sees_the_exact_arguments_and_answers(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        done = speaking(console)
        await post(console, "burn", what="a\u202etxt <i>.exe")
        page = await console.page("/approvals")
        card = page.locator("article")
        await expect(card).to_contain_text("can destroy")
        await expect(card.get_by_label("Exact arguments")).to_contain_text("a\\u202etxt <i>.exe")
        await expect(card.locator("time[data-until]")).to_have_text("23 h 59 min")
        await expect(card.get_by_role("button", name="Allow always")).to_have_count(0)
        await console.picture(page, "approvals")
        await card.get_by_role("button", name="Deny").click()
        await expect(page.get_by_text("burn was denied.")).to_be_visible()

        await post(console, "move", what="chair")
        await expect(card).to_contain_text("chair")
        await card.get_by_role("button", name="Allow always").click()
        await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
        await until(lambda: done == ["chair"])

        await page.get_by_role("link", name="Answered").click()
        await expect(page.locator("tbody tr")).to_have_count(2)
        await console.picture(page, "approvals_answered")
        await page.get_by_label("Outcome").select_option("refused")
        await expect(page.locator("tbody tr")).to_have_count(1)
        await expect(page.locator("tbody")).to_contain_text("burn")

        await page.get_by_role("link", name="Allowed for longer").click()
        await expect(page.locator("tbody")).to_contain_text("everywhere")
        await console.picture(page, "approvals_allowed")
        await page.get_by_role("button", name="Take back").click()
        await agree(page)
        await expect(page.get_by_text("Nothing is allowed for longer")).to_be_visible()
        assert await console.hub.approvals.allowances() == []


async def test_an_answer_is_for_what_was_seen(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        done = speaking(console)
        await post(console, "move", what="chair")
        page = await console.page("/approvals")
        await page.locator("article input[name=hash]").evaluate("one => { one.value = 'of others' }")
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.get_by_role("alert")).to_contain_text("this is not what the page showed")
        assert done == []
        assert len(await console.hub.approvals.list()) == 1


async def test_questions_of_agents_are_answered(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker") as console:
        speaking(console)
        run = await post(console, "ask_person", question="Which *one*?")
        page = await console.page("/approvals")
        await expect(page.get_by_role("heading", name="@assistant asks")).to_be_visible()
        await expect(page.locator("article em")).to_have_text("one")
        answer = page.get_by_label("Your answer")
        await answer.fill("the red")
        async with page.expect_response("**/approvals"):  # the page refreshes itself meanwhile
            pass
        await expect(answer).to_have_value("the red")
        await console.picture(page, "approvals_question")
        await page.get_by_role("button", name="Answer").click()
        await expect(page.get_by_text("Nothing waits for you")).to_be_visible()
        finished = await console.hub.runs.finished(run)
        assert "the red" in (finished.answer or "")


async def test_a_key_without_the_scope_answers_nothing(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, model="speaker", multi_user=True) as console:
        done = speaking(console)
        key = await console.add_user("ada", scopes=("read", "call"))
        page = await console.page("/chat", key=key)
        await page.fill("#message", 'call move {"what": "chair"}')
        await page.press("#message", "Enter")
        await page.wait_for_url("**/chat/thr_*")
        await page.goto(f"{console.url}/approvals")
        await page.get_by_role("button", name="Allow once").click()
        await expect(page.get_by_role("alert")).to_contain_text("scope 'approve'")
        assert done == []


@asynccontextmanager
async def refusing_server() -> AsyncGenerator[str]:
    """Knows nobody: whoever brings a credential hears that it is wrong."""

    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=401)

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", refuse)
    runner = web.AppRunner(app)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}/mcp"
    finally:
        await runner.cleanup()


async def test_credentials_go_in_and_never_come_out(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console, refusing_server() as url:
        page = await console.page("/credentials")
        await expect(page.get_by_text("No connector wants anything of you")).to_be_visible()
        mine = quick(url=url, isolation="user", personal=["auth", "header:X-Org"], auth={"kind": "bearer"})
        await console.hub.connectors.add("crm", **mine)
        await console.hub.connectors.add(
            "calendar", **quick(url=url, isolation="user", auth={"kind": "oauth"})
        )
        crm = page.locator("#credential-crm")
        await expect(crm.locator(".chip")).to_have_text("missing")
        await crm.get_by_label("Token or key").fill("canary-one")
        await crm.get_by_label("X-Org").fill("canary-two")
        await crm.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved for crm, encrypted.")).to_be_visible()
        await expect(crm.locator(".chip")).not_to_have_text("missing")
        await expect(crm.get_by_label("Token or key")).to_have_value("")
        await console.picture(page, "credentials")
        await page.reload()
        assert "canary" not in await page.content()

        link = page.get_by_role("link", name="Authorise calendar")
        assert await link.get_attribute("target") == "_blank"
        await crm.get_by_role("button", name="Remove").click()
        await agree(page)
        await expect(crm.locator(".chip")).to_have_text("missing")
        (view,) = [one for one in await console.hub.credentials.list() if one.connector == "crm"]
        assert view.present == ()


async def test_an_account_is_authorised_in_a_tab_of_its_own(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with (
        open_console(tmp_path) as console,
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
    ):
        await console.hub.connectors.add("notes", **journey.quick(server))
        page = await console.page("/credentials")
        card = page.locator("#credential-notes")
        await expect(card.locator(".chip")).to_have_text("missing")
        async with page.expect_popup() as opened:
            await card.get_by_role("link", name="Authorise notes").click()
        tab = await opened.value
        await expect(tab.get_by_role("heading", name="Connect an account")).to_be_visible()
        await tab.get_by_role("button", name="Continue").click()
        await expect(tab.get_by_role("heading", name="Connected")).to_be_visible()
        await expect(card.locator(".chip")).to_have_text("ready")
        await expect(card.get_by_role("link", name="Authorise again")).to_be_visible()
        await expect(card).to_contain_text(issuer.origin)

        refused = await page.request.get(
            f"{console.url}/credentials/notes/authorize", headers={"Sec-Fetch-Site": "cross-site"}
        )
        assert refused.status == 403


async def test_the_operator_replaces_the_master_key(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/settings?tab=installation")
        await page.get_by_role("button", name="Replace it").click()
        await agree(page)
        await expect(page.get_by_text("secrets are sealed with the key")).to_be_visible()


async def test_a_key_is_shown_once_opens_a_session_and_is_revoked(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path) as console:
        context = await console.context(permissions=["clipboard-read", "clipboard-write"])
        page = await context.new_page()
        await page.goto(f"{console.url}/keys")
        await expect(page.get_by_text("No keys yet")).to_be_visible()
        await page.get_by_label("Name").fill("laptop")
        await page.get_by_label("Expires").fill("30d")
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("heading", name="laptop is ready")).to_be_visible()
        key = await page.locator("#made-key").inner_text()
        await page.get_by_role("button", name="Copy").click()
        assert await page.evaluate("navigator.clipboard.readText()") == key
        await console.picture(page, "keys")
        await page.reload()
        assert key not in await page.content()
        row = page.locator("tbody tr")
        await expect(row).to_contain_text("call, read")
        await expect(row).to_contain_text("expires")

        await row.get_by_role("link", name="Change laptop").click()
        await expect(page.get_by_role("checkbox", name="call")).to_be_checked()
        await page.get_by_role("checkbox", name="call").uncheck()
        await page.get_by_label("Only these capabilities").fill("mcp_email greet")
        await page.get_by_label("Expires").fill("")
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_text("Saved. It holds from the next request on.")).to_be_visible()
        (changed,) = await console.hub.people.keys()
        assert (changed.scopes, changed.expires_at) == ({"read"}, None)
        assert changed.capabilities == {"mcp_email", "greet"}
        await page.get_by_label("Only these capabilities").fill("")
        await page.get_by_role("checkbox", name="read").uncheck()
        await page.get_by_role("button", name="Save").click()
        await expect(page.get_by_role("checkbox", name="call")).to_be_checked()
        (changed,) = await console.hub.people.keys()
        assert (changed.scopes, changed.capabilities) == ({"read", "call"}, None)
        await page.get_by_role("link", name="All keys").click()

        other = await console.page("/keys", key=key)
        await other.get_by_label("Name").fill("another")
        await other.get_by_role("button", name="Create").click()
        await expect(other.get_by_role("alert")).to_contain_text("scope 'manage'")
        await page.get_by_role("button", name="Revoke laptop").click()
        await agree(page)
        await expect(page.get_by_text("laptop opens nothing any more.")).to_be_visible()
        await other.goto(f"{console.url}/keys")
        await expect(other.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_an_admin_looks_after_users(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        admin = await console.add_user("ada", role="admin")
        page = await console.page("/users", key=admin)
        users = page.get_by_role("region", name="Users")
        await page.get_by_label("New user").fill("bob")
        await page.get_by_role("button", name="Add", exact=True).click()
        await expect(users.locator("tr", has_text="bob")).to_contain_text("member")
        await users.get_by_text("More of bob").locator("..").click()
        await users.get_by_role("button", name="Make admin bob").click()
        await expect(users.locator("tr", has_text="bob")).to_contain_text("admin")
        await users.get_by_role("button", name="Invite bob").click()
        link = await page.locator("code.keys-key").inner_text()
        invited = await page.context.browser.new_page()  # type: ignore[union-attr]
        await invited.goto(link)
        await expect(invited.locator(".who-name")).to_contain_text("bob")
        await invited.context.clear_cookies()
        await invited.goto(link)
        await expect(invited.get_by_role("heading", name="Sign in")).to_be_visible()
        await invited.close()
        await page.goto(console.url + "/keys")
        await page.get_by_label("Name").fill("for-bob")
        await page.get_by_label("For", exact=True).select_option("bob")
        await page.get_by_role("button", name="Create").click()
        await expect(page.get_by_role("region", name="API keys")).to_contain_text("for-bob")
        await page.goto(console.url + "/users")
        await console.picture(page, "keys_of_users")
        await page.reload()  # a picture leaves styles on elements, which would count as ours
        await users.get_by_text("More of bob").locator("..").click()
        await users.get_by_role("button", name="Suspend bob").click()
        await agree(page)
        await expect(users.locator("tr", has_text="bob")).to_contain_text("suspended")
        await users.get_by_text("More of bob").locator("..").click()
        await users.get_by_role("button", name="Remove bob").click()
        await agree(page)
        await expect(users.locator("tr", has_text="bob")).to_have_count(0)

        member = await console.add_user("eve")
        page = await console.page("/keys", key=member)
        await expect(page.get_by_role("heading", name="New key")).to_be_visible()
        await expect(page.get_by_text("Users of the workspace")).to_have_count(0)
