"""Signing in and out: links, keys, the issuer elsewhere; and what a stranger's page cannot do."""

from base64 import b64encode
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp
import pytest
from playwright.async_api import Page, expect
from starlette.requests import Request
from starlette.responses import Response

from api.live import Live, open_service
from console.browsing import OpenConsole
from console.chatting import write
from dragoman.console.sessions import COOKIE
from servers.hubs import spoil_store
from servers.sign_in_server import CLIENT, SignInServer, open_sign_in

pytestmark = pytest.mark.anyio


async def asked(live: Live, method: str, path: str, **options: Any) -> tuple[int, Any, str]:
    """Without the token of the service, and without following where it leads."""
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.request(method, live.url + path, allow_redirects=False, **options) as response,
    ):
        return response.status, response.headers, await response.text()


async def cookie_of(live: Live, token: str | None = None) -> str:
    code = await live.doors.sessions.make_link(token or live.token, live.hub.caller)
    _, headers, _ = await asked(live, "GET", f"/sign-in?code={code}")
    return headers["Set-Cookie"].partition(";")[0]


async def signed_out(page: Page) -> None:
    await expect(page.get_by_role("heading", name="Sign in")).to_be_visible()


async def test_a_link_works_once_and_leads_nowhere_else(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        code = await live.doors.sign_in_code()
        status, headers, _ = await asked(live, "GET", f"/sign-in?code={code}&next=//evil.example/x")
        assert (status, headers["Location"]) == (303, "/")
        status, headers, text = await asked(live, "GET", f"/sign-in?code={code}")
        assert status == 401
        assert "Set-Cookie" not in headers
        assert "This link was used already" in text


async def test_a_link_of_one_process_works_once_at_another(tmp_path: Path, postgres_url: str) -> None:
    shared: dict[str, Any] = {
        "key": b64encode(b"k" * 32).decode(),
        "operator_token": ("drg_" + "t" * 40,),
        "database_url": postgres_url,
    }
    async with (
        open_service(tmp_path / "one", **shared) as one,
        open_service(tmp_path / "two", **shared) as two,
    ):
        link = f"/sign-in?code={await one.doors.sign_in_code()}"
        status, headers, _ = await asked(two, "GET", link)
        assert status == 303
        cookie = {"Cookie": headers["Set-Cookie"].partition(";")[0]}
        assert (await asked(one, "GET", "/connectors", headers=cookie))[0] == 200
        assert (await asked(one, "GET", link))[0] == 401


@pytest.mark.parametrize(
    "next",
    ["//evil.example", "https://evil.example", "/\\evil.example", "javascript:alert(1)", "\t//evil.example"],
)
async def test_signing_in_leads_to_a_page_of_ours(tmp_path: Path, next: str) -> None:
    async with open_service(tmp_path) as live:
        facts = {"key": live.token, "next": next}
        status, headers, _ = await asked(live, "POST", "/sign-in", data=facts)
        assert status == 303
        assert headers["Location"] in ("/", "/%5Cevil.example")


@pytest.mark.parametrize(("public_url", "is_secure"), [(None, False), ("https://dragoman.example", True)])
async def test_the_cookie_is_for_this_site_alone(
    tmp_path: Path, public_url: str | None, is_secure: bool
) -> None:
    async with open_service(tmp_path, public_url=public_url) as live:
        _, headers, _ = await asked(live, "GET", f"/sign-in?code={await live.doors.sign_in_code()}")
        name, *flags = headers["Set-Cookie"].split("; ")
        assert {"HttpOnly", "SameSite=lax", "Path=/", "Max-Age=43200"} <= set(flags)
        assert ("Secure" in flags) == is_secure
        assert live.token not in name
        assert headers["Cache-Control"] == "no-store"


async def test_a_wrong_key_opens_nothing_and_a_right_one_ends_with_its_revocation(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        key = await console.add_user("ada")
        context = await console.context()
        await context.clear_cookies()
        page = await context.new_page()
        console.forgive("401")
        await page.goto(console.url + "/runs?x=1")
        await signed_out(page)
        await page.get_by_label("Your API key").fill("drg_wrong")
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("alert")).to_have_text(
            "This key is wrong, has expired, or was revoked."
        )
        await page.get_by_label("Your API key").fill(key)
        await page.get_by_role("button", name="Sign in").click()
        await expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        assert key not in await page.content()
        (made,) = await console.hub.people.keys("ada")
        await console.hub.people.revoke_key(made.id)
        await signed_out(page)  # the page asks for news by itself
        await page.goto(console.url + "/connectors")
        await signed_out(page)


async def test_signing_out_ends_the_session(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_console(tmp_path) as console:
        page = await console.page("/connectors")
        await page.locator(".who > summary").click()
        await page.get_by_role("button", name="Sign out").click()
        await signed_out(page)
        assert await page.context.cookies() == []
        await page.goto(console.url + "/settings")
        await signed_out(page)


async def test_a_person_of_two_workspaces_switches_without_signing_out(
    open_console: OpenConsole, tmp_path: Path
) -> None:
    async with open_console(tmp_path, multi_user=True) as console:
        here = await console.add_user("ada")
        acme = (await console.live.ask("POST", "/api/workspaces", {"name": "acme"})).value["id"]
        facts = {"name": "ada.l", "role": "admin", "workspace": acme}
        await console.live.ask("POST", "/api/users", facts)
        facts = {"name": "there", "user": "ada.l", "workspace": acme, "scopes": ["read", "call", "manage"]}
        there = (await console.live.ask("POST", "/api/keys", facts)).value
        page = await console.page("/", key=here)
        account, brand = page.locator("details.who"), page.locator(".brand small")
        await account.locator("summary").click()
        await account.get_by_role("link", name="Another workspace").click()
        await page.get_by_label("Your API key").fill(there["key"])
        await page.get_by_role("button", name="Sign in").click()
        await expect(brand).to_have_text("acme")
        for name, who in (("local", "ada"), ("acme", "ada.l"), ("local", "ada")):
            await account.locator("summary").click()
            await console.picture(page, "switcher")
            await account.get_by_role("button", name=f"Switch to {name}").click()
            await expect(brand).to_have_text(name)
            await expect(account.locator("summary b")).to_have_text(who)
        await page.goto(f"{console.url}/chat")  # what it changes counts here
        await write(page, "hello")
        cookies = {one.get("name"): one.get("value") for one in await page.context.cookies()}
        copied = {"Cookie": f"{COOKIE}={cookies[COOKIE]}"}
        assert (await asked(console.live, "GET", "/", headers=copied))[0] == 200

        # A mark that nobody has leads to signing in, and so does a session whose key is gone.
        await console.live.ask("DELETE", f"/api/keys/{there['id']}?workspace={acme}")
        await page.goto(console.url)
        await account.locator("summary").click()
        await account.get_by_role("button", name="Switch to acme").click()
        await expect(page.get_by_role("heading", name="Sign in to another workspace")).to_be_visible()
        await page.goto(console.url)
        await expect(brand).to_have_text("local")
        await account.locator("summary").click()
        await account.get_by_role("button", name="Sign out of all").click()
        await signed_out(page)
        assert (await asked(console.live, "GET", "/", headers=copied))[0] == 303  # nor does a copy open it


async def test_a_change_needs_the_mark_of_the_session(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        cookie = await cookie_of(live)
        _, _, page = await asked(live, "GET", "/settings", headers={"Cookie": cookie})
        mark = page.partition('data-csrf="')[2].partition('"')[0]
        assert len(mark) > 20
        for headers, expected in [
            ({}, 403),
            ({"X-CSRF-Token": "wrong"}, 403),
            ({"X-CSRF-Token": "é"}, 403),
            ({"X-CSRF-Token": mark, "Origin": "https://evil.example"}, 403),
            ({"X-CSRF-Token": mark, "Origin": "null"}, 403),
            ({"X-CSRF-Token": mark, "Host": "evil.example"}, 421),
            ({"X-CSRF-Token": mark, "Origin": live.url}, 200),
        ]:
            data = {"auto_load": "yes"}
            status, _, text = await asked(
                live, "POST", "/settings/mine", data=data, headers={"Cookie": cookie, **headers}
            )
            assert (status, headers) == (expected, headers), text
        other = await cookie_of(live)
        status, _, _ = await asked(
            live, "POST", "/settings/mine", data={}, headers={"Cookie": other, "X-CSRF-Token": mark}
        )
        assert status == 403


async def test_a_stranger_gets_nothing_but_the_way_in(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        for path in ("/", "/chat", "/audit/export", "/transfer/export", "/log/calls", "/settings/models"):
            status, headers, _ = await asked(live, "GET", path)
            assert (status, headers["Location"]) == (303, f"/sign-in?next={path}")
        assert (await asked(live, "POST", "/transfer/export"))[0] == 401
        status, headers, _ = await asked(live, "GET", "/runs", headers={"HX-Request": "true"})
        assert (status, headers["HX-Redirect"]) == (401, "/sign-in?next=/runs")
        stream = {"Accept": "text/event-stream"}
        assert (await asked(live, "GET", "/log/events", headers=stream))[0] == 401
        for cookie in ("dragoman_session=x", "dragoman_session=eyJ0b2tlbiI6ICJ4In0="):
            assert (await asked(live, "GET", "/", headers={"Cookie": cookie}))[0] == 303
        assert (await asked(live, "POST", "/sign-in", data={"key": "x" * 100_000}))[0] == 413


async def test_a_key_that_only_reads_changes_nothing(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:
        await live.ask("POST", "/api/users", {"name": "eve", "role": "admin"})
        reply = await live.ask("POST", "/api/keys", {"name": "k", "user": "eve", "scopes": ["read"]})
        cookie = await cookie_of(live, reply.value["key"])
        _, _, page = await asked(live, "GET", "/settings", headers={"Cookie": cookie})
        mark = page.partition('data-csrf="')[2].partition('"')[0]
        for path in (
            "/connectors/new", "/connectors/new/test", "/tools/x/try", "/tools/x/settings", "/tools/x/switch",
            "/transfer/plan", "/transfer/apply", "/transfer/export", "/transfer/offers", "/settings/mine",
            "/settings/workspace", "/agents", "/keys", "/keys/users", "/chat",
            "/credentials/x", "/agents/-/rollout", "/approvals/x/answer", "/runs/x/cancel",
        ):  # fmt: skip
            status, _, text = await asked(
                live, "POST", path, headers={"Cookie": cookie, "X-CSRF-Token": mark}, data={"name": "x"}
            )
            assert (path, status) == (path, 403), text
            assert "his needs a key with the scope" in text
        reply = await live.ask("POST", "/api/keys", {"name": "w", "user": "eve", "scopes": ["call"]})
        status, _, _ = await asked(
            live, "GET", "/settings", headers={"Cookie": await cookie_of(live, reply.value["key"])}
        )
        assert status == 403


async def test_each_change_asks_for_its_own_scope(tmp_path: Path) -> None:
    asks = {
        "call": ("/tools/x/try", "/code", "/chat", "/chat/t", "/chat/runs/x/stop", "/runs/x/cancel"),
        "approve": (
            "/chat/approvals/x",
            "/chat/questions/x",
            "/approvals/x/answer",
            "/approvals/questions/x",
        ),
        "manage": (
            "/agents",
            "/chat/t/connectors",
            "/approvals/allowed/x/withdraw",
            "/keys",
            "/settings/mine",
        ),
        "admin": (
            "/keys/users",
            "/keys/users/x/limits",
            "/settings/workspace",
            "/settings/workspaces/x/remove",
        ),
    }
    async with open_service(tmp_path, multi_user=True) as live:
        await live.ask("POST", "/api/users", {"name": "eve", "role": "admin"})
        for scope, paths in asks.items():
            others = [one for one in ("read", *asks) if one != scope]
            reply = await live.ask("POST", "/api/keys", {"name": scope, "user": "eve", "scopes": others})
            cookie = await cookie_of(live, reply.value["key"])
            _, _, page = await asked(live, "GET", "/settings", headers={"Cookie": cookie})
            known = {"Cookie": cookie, "X-CSRF-Token": page.partition('data-csrf="')[2].partition('"')[0]}
            for path in paths:
                status, _, text = await asked(live, "POST", path, headers=known, data={"name": "x"})
                assert (path, status) == (path, 403), text
                assert f"his needs a key with the scope &#39;{scope}&#39;" in text
            status, _, _ = await asked(live, "DELETE", "/chat/t", headers=known)
            assert (status == 403) == (scope == "manage")


# The issuer elsewhere


def of(server: SignInServer) -> dict[str, Any]:
    return {"multi_user": True, "oidc_issuer": server.url, "oidc_client_id": CLIENT}


async def test_people_sign_in_at_the_issuer(open_console: OpenConsole, tmp_path: Path) -> None:
    async with open_sign_in("s&cret:x") as server, open_console(
        tmp_path, **of(server), oidc_client_secret="s&cret:x"
    ) as console:  # fmt: skip
        context = await console.context()
        await context.clear_cookies()
        page = await context.new_page()
        await page.goto(console.url + "/runs")
        await page.get_by_role("link", name=f"Sign in with {urlsplit(server.url).netloc}").click()
        await page.get_by_role("link", name="I am Ada").click()
        await expect(page.get_by_role("heading", name="Runs", exact=True)).to_be_visible()
        assert urlsplit(page.url).path == "/runs"
        assert {one.get("name") for one in await context.cookies()} == {"dragoman_session"}
        user = await console.hub.people.get_user("ada")
        assert user.role == "member"
        # Whoever is shut out is out at once, though the issuer would still know them.
        console.forgive("401")
        await console.hub.people.update_user("ada", is_active=False)
        await signed_out(page)


async def begun(live: Live) -> tuple[str, dict[str, str]]:
    """The cookie of a sign-in that has begun, and what the issuer was asked."""
    status, headers, _ = await asked(live, "GET", "/sign-in/oidc?next=/runs")
    assert status == 303
    cookie = headers["Set-Cookie"]
    assert {"HttpOnly", "SameSite=lax", "Path=/sign-in/oidc", "Max-Age=600"} <= set(cookie.split("; "))
    query = parse_qs(urlsplit(headers["Location"]).query)
    return cookie.partition(";")[0], {name: values[0] for name, values in query.items()}


async def came_back(
    live: Live, server: SignInServer, cookie: str, state: str, **more: str
) -> tuple[int, str]:
    code = next(iter(server.codes), "none")
    query = {"code": code, "state": state, **more}
    headers = {"Cookie": cookie} if cookie else {}
    status, headers, text = await asked(live, "GET", "/sign-in/oidc/done", params=query, headers=headers)
    assert ("dragoman_session" in str(headers.getall("Set-Cookie"))) == (status == 303)
    return status, text


async def test_only_the_browser_that_began_comes_in_and_once(tmp_path: Path) -> None:
    async with open_sign_in() as server, open_service(tmp_path, **of(server)) as live:
        cookie, query = await begun(live)
        await live.session.get(f"{server.url}/authorize", params=query)
        assert (await came_back(live, server, "", query["state"]))[0] == 401
        assert (await came_back(live, server, cookie, "another"))[0] == 401
        other, _ = await begun(live)
        assert (await came_back(live, server, other, query["state"]))[0] == 401
        assert (await came_back(live, server, cookie, query["state"], iss="https://evil.example"))[0] == 401
        status, text = await came_back(live, server, cookie, query["state"], error="access_denied")
        assert (status, "did not sign you in: access_denied" in text) == (401, True)
        assert server.exchanged == 0
        assert (await came_back(live, server, cookie, query["state"]))[0] == 303
        assert server.exchanged == 1
        assert (await came_back(live, server, cookie, query["state"]))[0] == 401  # the code is used


@pytest.mark.parametrize(
    "changes",
    [
        {"nonce": "of another"}, {"nonce": None}, {"aud": "somebody-else"}, {"iss": "https://evil.example"},
        {"exp": 1}, {"aud": [CLIENT, "other"], "azp": "other"}, {"sub": None},
    ],
)  # fmt: skip
async def test_an_id_token_that_is_not_for_us_opens_nothing(tmp_path: Path, changes: dict[str, Any]) -> None:
    async with open_sign_in() as server, open_service(tmp_path, **of(server)) as live:
        server.changes = changes
        cookie, query = await begun(live)
        await live.session.get(f"{server.url}/authorize", params=query)
        status, text = await came_back(live, server, cookie, query["state"])
        assert (status, "The issuer&#39;s answer opens nothing here." in text) == (401, True)


async def test_an_issuer_that_is_silent_or_refuses_is_told_of(tmp_path: Path) -> None:
    async with open_sign_in("right") as server, open_service(tmp_path, **of(server)) as live:
        cookie, query = await begun(live)
        await live.session.get(f"{server.url}/authorize", params=query)
        assert (await came_back(live, server, cookie, query["state"]))[0] == 401  # we do not know its secret
        server.is_down = True
        status, _, text = await asked(live, "GET", "/sign-in/oidc")
        assert (status, "cannot be reached" in text) == (502, True)


async def test_without_a_client_there_is_no_way_to_the_issuer(tmp_path: Path) -> None:
    async with open_service(tmp_path, multi_user=True) as live:
        assert (await asked(live, "GET", "/sign-in/oidc"))[0] == 404
        assert "/sign-in/oidc" not in (await asked(live, "GET", "/sign-in"))[2]


async def test_while_the_store_is_away_only_sessions_that_were_seen_open_go_on(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        used, ended, unknown = [(await cookie_of(live)).partition("=")[2] for _ in range(3)]
        sessions = live.doors.sessions
        assert await sessions.admission_of(used) is not None
        request = Request({"type": "http", "headers": [(b"cookie", f"{COOKIE}={ended}".encode())]})
        session = await sessions.find(request)
        assert session is not None
        await sessions.end(Response(), request, session)
        spoil_store(tmp_path)
        assert await sessions.admission_of(used) is not None
        assert await sessions.admission_of(ended) is None
        assert await sessions.admission_of(unknown) is None
