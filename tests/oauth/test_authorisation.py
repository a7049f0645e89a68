"""A person authorises: the whole way there and back, and everybody who tries to come back another way."""

import asyncio
from datetime import UTC, datetime, timedelta
from pathlib import Path
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest

from dragoman import Caller
from dragoman.errors import InvalidConfig, ProtocolFault
from oauth.journey import Browser, Page, open_browser, open_scene
from servers.authorization_server import open_authorization_server

pytestmark = pytest.mark.anyio


@pytest.mark.parametrize("path", ["", "/tenant/one"])
async def test_a_person_authorises_and_the_tools_are_there(
    tmp_path: Path, database_url: str, path: str
) -> None:
    async with open_scene(tmp_path, database_url, path) as scene:
        await scene.add()
        before = await scene.hub.connectors.get("notes")
        assert before.status.state == "needs_auth"
        assert before.status.hint == 'hub.credentials.authorize("notes")'
        refused = await scene.hub.call("mcp_notes_echo", {"text": "x"})
        assert refused.error
        page = await scene.authorise()
        assert page.status == 200
        assert "You can close this page" in page.text
        assert (await scene.hub.call("mcp_notes_echo", {"text": "hello"})).result == {"result": "hello"}
        (view,) = await scene.hub.credentials.list()
        assert (view.state, view.present, view.issuer) == ("ready", ("oauth",), scene.issuer.issuer)
        assert view.expires_at
        assert timedelta(minutes=58) < view.expires_at - datetime.now(UTC) <= timedelta(hours=1)
        asked = scene.issuer.asked[0]
        assert (asked["resource"], asked["code_challenge_method"]) == (scene.server.url, "S256")
        assert asked["scope"] == "use", "what the server's 401 asks for"
        assert asked["redirect_uri"] == f"{scene.live.url}/oauth/callback"


async def test_a_client_is_registered_once_for_all_users(tmp_path: Path, database_url: str) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        async with open_browser() as browser:
            links = [await scene.link() for _ in range(4)]
            await asyncio.gather(*(browser.press(link) for link in links))
        await scene.authorise()
        assert scene.issuer.counts["register"] == 1


async def test_a_client_that_was_given_is_used(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        scene.issuer.registers = False
        await scene.add()
        async with open_browser() as browser:
            page = await _pressed(browser, await scene.link())
            assert page.status == 422
            assert "--oauth-client-id" in page.text
        scene.issuer.clients["ours"] = {"redirect_uris": [f"{scene.live.url}/oauth/callback"]}
        await scene.hub.connectors.update("notes", auth={"kind": "oauth", "client_id": "ours"})
        assert (await scene.authorise()).status == 200
        assert scene.issuer.asked[-1]["client_id"] == "ours"


async def test_our_own_document_is_who_we_are_where_the_server_reads_it(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_scene(tmp_path, sqlite_url, public_url="https://tools.example.com/") as scene:
        scene.issuer.takes_documents = True
        await scene.add()
        link = await scene.link()
        assert link.startswith("https://tools.example.com/oauth/start?ticket=")
        async with open_browser() as browser:
            local = link.replace("https://tools.example.com", scene.live.url)
            leads_to = await browser.press(local)
        query = parse_qs(urlsplit(leads_to).query)
        assert query["client_id"] == ["https://tools.example.com/oauth/client.json"]
        assert query["redirect_uri"] == ["https://tools.example.com/oauth/callback"]
        document = await scene.live.ask("GET", "/oauth/client.json", Authorization="")
        assert document.value["client_id"] == query["client_id"][0]
        assert document.value["redirect_uris"] == query["redirect_uri"]
        assert scene.issuer.counts["register"] == 0


async def test_the_page_says_who_connects_what_and_runs_nothing(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        async with open_browser() as browser:
            page = await browser.get(await scene.link())
        for word in ("notes", "owner", "local", scene.issuer.issuer, scene.server.url):
            assert word in page.text
        assert "<script" not in page.text
        assert "default-src 'none'" in page.headers["Content-Security-Policy"]
        assert "frame-ancestors 'none'" in page.headers["Content-Security-Policy"]
        assert scene.issuer.counts["authorize"] == 0, "nothing happens before a click"


async def test_a_callback_is_good_once_and_only_with_its_state_and_cookie(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        async with open_browser() as browser, open_browser() as other:
            callback = await browser.back(await browser.press(await scene.link()))
            wrong = await browser.get(_changed(callback, state="made-up"))
            assert (wrong.status, "unknown" in wrong.text) == (400, True)
            stranger = await other.get(callback)
            assert (stranger.status, "did not begin" in stranger.text) == (400, True)
            burnt = await browser.get(callback)
            assert burnt.status == 400, "whoever comes first takes the state along"
            callback = await browser.back(await browser.press(await scene.link()))
            assert (await browser.get(callback)).status == 200
            assert (await browser.get(callback)).status == 400
        assert scene.issuer.counts["authorization_code"] == 1


async def test_a_flow_that_took_too_long_is_over(
    tmp_path: Path, database_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        async with open_browser() as browser:
            link = await scene.link()
            monkeypatch.setattr("dragoman.connections.oauth.flow._LASTS", timedelta(seconds=-1))
            callback = await browser.back(await browser.press(link))
            assert (await browser.get(callback)).status == 400
            stale = await browser.get(await scene.link())
            assert (stale.status, "expired" in stale.text) == (400, True)
        assert scene.issuer.counts["authorization_code"] == 0


async def test_an_answer_of_another_issuer_is_refused(tmp_path: Path, database_url: str) -> None:
    async with open_scene(tmp_path, database_url) as scene, open_authorization_server() as evil:
        await scene.add()
        async with open_browser() as browser:
            scene.issuer.says_iss = evil.issuer
            page = await browser.follow(await browser.press(await scene.link()))
            assert (page.status, "another issuer" in page.text) == (400, True)
            scene.issuer.says_iss = None
            callback = await browser.back(await browser.press(await scene.link()))
            silent = await browser.get(_changed(callback, iss=None))
            assert silent.status == 400, "it said that it always names itself"
            scene.issuer.sends_iss = False
            scene.issuer.says_iss = evil.issuer
            page = await browser.follow(await browser.press(await scene.link()))
            assert page.status == 400, "a name that comes unasked is compared too"
        assert scene.issuer.counts["authorization_code"] == evil.counts["authorization_code"] == 0


async def test_a_code_of_one_issuer_never_reaches_another(tmp_path: Path, sqlite_url: str) -> None:
    """Mix-up: between click and answer the server names another issuer."""
    async with open_scene(tmp_path, sqlite_url) as scene, open_authorization_server() as evil:
        await scene.add()
        async with open_browser() as browser:
            link = await scene.link()
            leads_to = await browser.press(link)
            scene.server.named_issuer = evil.issuer
            assert (await browser.follow(leads_to)).status == 200
            assert evil.counts["authorization_code"] == 0
            page = await _pressed(browser, link)
            assert (page.status, "another issuer" in page.text) == (400, True)


async def test_metadata_that_claims_to_be_another_is_refused(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        scene.server.speaks_for = "https://somewhere.example/mcp"
        with pytest.raises(ProtocolFault, match="speaks for"):
            await scene.hub.credentials.authorize("notes", address=scene.live.url)
        scene.server.speaks_for = None
        scene.server.named_issuer = scene.issuer.issuer + "/"
        with pytest.raises(ProtocolFault, match="issuer"):
            await scene.hub.credentials.authorize("notes", address=scene.live.url)
        scene.server.named_issuer = None
        scene.issuer.checks_pkce = False
        with pytest.raises(InvalidConfig, match="PKCE"):
            await scene.hub.credentials.authorize("notes", address=scene.live.url)


async def test_without_a_service_there_is_no_way_back(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        with pytest.raises(InvalidConfig) as caught:
            await scene.hub.credentials.authorize("notes")
        assert "dragoman serve" in (caught.value.command_hint or "")


async def test_one_users_authorisation_is_nobody_elses(tmp_path: Path, database_url: str) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add(shared=True)
        await scene.authorise()
        assert (await scene.hub.call("mcp_notes_echo", {"text": "x"})).ok
        other = Caller(user="ann")
        assert scene.hub.acting_for(other).tools.list() == []
        view = await scene.hub.acting_for(other).connectors.connect("notes")
        assert view.status.state == "needs_auth"
        output = await scene.hub.acting_for(other).call("mcp_notes_echo", {"text": "x"})
        assert output.error
        assert output.error.code in ("needs_auth", "not_found")


async def test_removing_the_authorisation_tells_the_issuer_and_the_state(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        await scene.authorise()
        await scene.hub.credentials.remove("notes")
        assert scene.issuer.counts["revoke"] == 1
        assert not scene.issuer.refresh
        assert (await scene.hub.credentials.get("notes")).state == "missing"
        assert (await scene.hub.connectors.get("notes")).status.state == "needs_auth"
        output = await scene.hub.call("mcp_notes_echo", {"text": "x"})
        assert output.error
        assert output.error.code == "needs_auth"


async def _pressed(browser: Browser, link: str) -> Page:
    """As `press`, when what comes is no redirect."""
    parts = urlsplit(link)
    form = {"ticket": parse_qs(parts.query)["ticket"][0]}
    url = f"{parts.scheme}://{parts.netloc}{parts.path}"
    async with browser.session.post(url, data=form, allow_redirects=False) as response:
        return Page(response.status, await response.text(), response.headers)


def _changed(url: str, **changes: str | None) -> str:
    parts = urlsplit(url)
    query = {name: values[0] for name, values in parse_qs(parts.query).items()} | changes
    given = {name: value for name, value in query.items() if value is not None}
    return f"{parts.scheme}://{parts.netloc}{parts.path}?{urlencode(given)}"
