"""Tokens in use: renewed once for everybody, rotated, revoked, kept over a restart, in nobody's way."""

import asyncio
import time
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman import Hub, Settings
from dragoman.connections.oauth.tokens import OAuthTokens
from dragoman.connections.pool import Connections
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE
from oauth.journey import open_scene, quick
from patience import patient, until
from servers.authorization_server import open_authorization_server, open_protected_server
from servers.hubs import open_hub, runtime_of, state_is

pytestmark = pytest.mark.anyio
HOLDER = (LOCAL_WORKSPACE, LOCAL_USER)


async def say(hub: Hub, text: str = "x") -> Any:
    return await hub.call("mcp_notes_echo", {"text": text})


async def age(hub: Hub, **changes: Any) -> None:
    """As if time had passed: the kept tokens get another expiry, and nobody remembers the old one."""
    connector = runtime_of(hub).registry.get("notes", hub.caller)
    tokens = await runtime_of(hub).authorizations.find(connector, HOLDER)
    assert tokens
    await hub.connectors.connect("notes")
    await runtime_of(hub).authorizations.replace(connector, HOLDER, replace(tokens, **changes))
    bearer = runtime_of(hub).authorizations.bearer(connector, f"user:{LOCAL_WORKSPACE}:{LOCAL_USER}")
    assert bearer
    servers = runtime_of(hub).servers
    assert isinstance(servers, Connections)
    link = servers._links[connector.id, f"user:{LOCAL_WORKSPACE}:{LOCAL_USER}"]
    assert link._session
    link._session.wire._bearer = bearer  # pyright: ignore[reportAttributeAccessIssue]


async def kept(hub: Hub) -> OAuthTokens:
    found = await runtime_of(hub).authorizations.find(
        runtime_of(hub).registry.get("notes", hub.caller), HOLDER
    )
    assert found
    return found


def soon() -> datetime:
    return datetime.now(UTC) + timedelta(seconds=30)


def past() -> datetime:
    return datetime.now(UTC) - timedelta(seconds=1)


async def test_many_calls_after_the_expiry_renew_once(tmp_path: Path, database_url: str) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        await scene.authorise()
        first = await kept(scene.hub)
        scene.issuer.token_delay = 0.2
        await age(scene.hub, expires_at=past())
        outputs = await asyncio.gather(*(say(scene.hub) for _ in range(20)))
        assert all(output.ok for output in outputs), outputs
        assert scene.issuer.counts["refresh_token"] == 1
        second = await kept(scene.hub)
        assert first.refresh
        assert second.refresh
        assert first.refresh != second.refresh, "the rotated one is kept"
        assert second.authorised_at == first.authorised_at
        await age(scene.hub, expires_at=past())
        assert (await say(scene.hub)).ok
        assert scene.issuer.counts["refresh_token"] == 2


async def test_calls_shortly_before_the_expiry_wait_for_nobody(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        await scene.authorise()
        scene.issuer.token_delay = patient(1)
        await age(scene.hub, obtained_at=past() - timedelta(hours=1), expires_at=soon())
        started = time.monotonic()
        outputs = await asyncio.gather(*(say(scene.hub) for _ in range(5)))
        assert time.monotonic() - started < patient(0.8)
        assert all(output.ok for output in outputs)
    assert scene.issuer.counts["refresh_token"] == 1, "and a hub that closes lets the renewal finish"


async def test_an_echo_is_quick_behind_a_slow_tool(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        await scene.authorise()
        assert (await say(scene.hub)).ok
        slow = asyncio.create_task(scene.hub.call("mcp_notes_sleep", {"seconds": patient(2)}))

        async def is_under_way() -> bool:
            return (await scene.hub.connectors.get("notes")).status.in_flight == 1

        await until(is_under_way)
        started = time.monotonic()
        assert (await say(scene.hub)).ok
        assert time.monotonic() - started < patient(1.0)
        assert not slow.done()
        assert (await slow).ok


async def test_a_revoked_token_is_renewed_and_a_revoked_authorisation_asks_the_person(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        await scene.authorise()
        scene.issuer.revoke_all()
        outputs = await asyncio.gather(*(say(scene.hub) for _ in range(5)))
        assert all(output.ok for output in outputs), outputs
        assert scene.issuer.counts["refresh_token"] == 1
        await age(scene.hub)  # forgets that a renewal was forced a moment ago
        scene.issuer.revoke_all()
        scene.issuer.refresh.clear()
        output = await say(scene.hub)
        assert output.error
        assert output.error.code == "needs_auth"
        assert output.error.hint == 'hub.credentials.authorize("notes")'
        view = await scene.hub.credentials.get("notes")
        assert (view.state, view.present) == ("missing", ()), "old tokens are dropped"
        await state_is(scene.hub, "notes", "needs_auth")
        asked = scene.issuer.counts["refresh_token"]
        await say(scene.hub)
        assert scene.issuer.counts["refresh_token"] == asked, "nobody asks again with a dead token"
        await scene.authorise()
        assert (await say(scene.hub)).ok


async def test_a_token_that_is_refused_again_after_a_renewal_is_not_renewed_for_ever(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        await scene.authorise()
        scene.server.accepts_nobody = True
        for _ in range(3):
            output = await say(scene.hub)
            assert output.error
            assert output.error.code == "needs_auth"
        assert scene.issuer.counts["refresh_token"] == 1


async def test_an_issuer_that_is_down_loses_nothing(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add(retry={"tries": 1})
        await scene.authorise()
        before = await kept(scene.hub)
        scene.issuer.is_down = True
        await age(scene.hub, obtained_at=past() - timedelta(hours=1), expires_at=soon())
        assert (await say(scene.hub)).ok, "the old token is still valid"
        await age(scene.hub, expires_at=past())
        output = await say(scene.hub)
        assert output.error
        assert output.error.code == "unreachable"
        assert (await kept(scene.hub)).refresh == before.refresh
        scene.issuer.is_down = False
        assert (await say(scene.hub)).ok


async def test_the_expiry_survives_a_restart(tmp_path: Path, database_url: str) -> None:
    async with open_scene(tmp_path / "one", database_url) as scene:
        await scene.add()
        await scene.authorise()
        assert (await say(scene.hub)).ok
        before = await kept(scene.hub)
        await age(scene.hub, expires_at=past())
        counts, settings = scene.issuer.counts, scene.hub.settings
        async with Hub(settings) as again:
            assert (await kept(again)).refresh == before.refresh
            assert (await say(again)).ok
            assert counts["refresh_token"] == 1, "the refresh token is used, the person is not asked"
            assert counts["authorize"] == 1


async def test_two_processes_renew_once(tmp_path: Path, postgres_url: str) -> None:
    async with open_scene(tmp_path / "one", postgres_url) as scene:
        await scene.add()
        await scene.authorise()
        key = (tmp_path / "one" / "key").read_bytes()
        (tmp_path / "two").mkdir()
        (tmp_path / "two" / "key").touch(0o600)
        (tmp_path / "two" / "key").write_bytes(key)
        async with Hub(Settings(home=tmp_path / "two", database_url=postgres_url)) as other:
            assert (await say(other)).ok
            await age(scene.hub, expires_at=past())
            await age(other, expires_at=past())
            scene.issuer.token_delay = 0.3
            outputs = await asyncio.gather(*(say(hub) for hub in (scene.hub, other) for _ in range(5)))
            assert all(output.ok for output in outputs), outputs
            assert scene.issuer.counts["refresh_token"] == 1
            assert (await kept(other)).refresh == (await kept(scene.hub)).refresh


async def test_a_caller_who_gives_up_loses_no_rotated_token(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add()
        await scene.authorise()
        await age(scene.hub, expires_at=past())
        scene.issuer.token_delay = patient(0.5)
        output = await scene.hub.call("mcp_notes_echo", {"text": "x"}, timeout=patient(0.2))
        assert not output.ok
        assert (await say(scene.hub)).ok
        assert scene.issuer.counts["refresh_token"] == 1


async def test_a_client_has_rights_of_its_own(tmp_path: Path, database_url: str) -> None:
    async with (
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
        open_hub(tmp_path, database_url=database_url) as hub,
    ):
        issuer.clients["robot"] = {"secret": "s3cret:/+ word"}
        auth = {"kind": "oauth", "flow": "client_credentials", "client_id": "robot"}
        view = await hub.connectors.add(
            "notes", **quick(server, auth=auth, oauth_client_secret="s3cret:/+ word", isolation="shared")
        )
        assert view.status.state == "connected", view.status
        outputs = await asyncio.gather(*(say(hub) for _ in range(5)))
        assert all(output.ok for output in outputs)
        assert issuer.counts["client_credentials"] == 1
        assert await hub.credentials.list() == [], "nothing is wanted of anybody"
        await hub.connectors.update("notes", oauth_client_secret="another secret")
        issuer.clients["robot"]["secret"] = "another secret"
        issuer.revoke_all()
        assert (await say(hub)).ok, "a new secret of the client is used for the next token"
        issuer.revoke_all()
        issuer.clients.clear()
        await hub.connectors.disable("notes")
        await hub.connectors.enable("notes")
        refused = await say(hub)
        assert refused.error
        assert refused.error.code == "needs_auth"
        assert "client_id" in (refused.error.hint or "")


async def test_tokens_for_one_address_are_not_shown_to_another(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene, open_protected_server(scene.issuer) as other:
        await scene.add()
        await scene.authorise()
        view = await scene.hub.connectors.update("notes", url=other.url)
        assert view.status.state == "needs_auth"
        assert all("authorization" not in headers for headers in other.seen)
