"""What goes wrong in a login is said in plain words to who can mend it, and nothing is half done."""

import time
from collections.abc import AsyncGenerator
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt

from api.live import Live, open_service
from dragoman.hub.client_logins import CODE_LASTS
from dragoman.identity.access_tokens import LEEWAY
from dragoman.store.clock import Clock
from identity.issuer_server import open_issuer
from logins.client_flow import INITIALIZE, Client, Person, answer_of, asked
from servers.hubs import runtime_of

pytestmark = pytest.mark.anyio


class Ahead(Clock):
    """What the store takes for the time, some seconds later."""

    def __init__(self, seconds: float) -> None:
        self._ahead = timedelta(seconds=seconds)

    def now(self) -> datetime:
        return super().now() + self._ahead


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def live(tmp_path_factory: pytest.TempPathFactory, anyio_backend: str) -> AsyncGenerator[Live]:
    async with open_service(tmp_path_factory.mktemp("service")) as live:
        yield live


async def registered(live: Live) -> Client:
    client = Client(live)
    await client.register()
    return client


async def test_an_unknown_client_is_told_of_to_the_person(live: Live) -> None:
    page = await (await Person.signed_in(live)).look(Client(live, id="dcr_gone").query())
    assert page.status == 422
    assert "is not known to Dragoman, or not any more" in page.body.decode()
    assert "connect again" in page.body.decode()


async def test_a_wrong_redirect_is_told_of_to_the_person_and_nobody_is_sent_there(live: Live) -> None:
    client = await registered(live)
    page = await (await Person.signed_in(live)).look(client.query(redirect_uri="https://evil.example/"))
    assert (page.status, "Location" in page.headers) == (422, False)
    assert "sent back to an address that it has not named before" in page.body.decode()


async def test_a_code_that_is_too_old_brings_nothing(live: Live) -> None:
    client, before = await registered(live), await live.hub.clients.list()
    code = await client.allowed(await Person.signed_in(live))
    doors, store = runtime_of(live.hub).door_clients, runtime_of(live.hub).store
    doors._store = replace(store, clock=Ahead(CODE_LASTS + 1))
    try:
        reply = await client.redeem(code)
    finally:
        doors._store = store
    assert (reply.status, reply.value["error"]) == (400, "invalid_grant")
    assert "codes are good for a minute" in reply.value["error_description"]
    assert (await client.redeem(code)).status == 400
    assert await live.hub.clients.list() == before, "nobody was let in"


async def test_a_revoked_refresh_token_says_to_log_in_again(live: Live) -> None:
    client = await (await registered(live)).log_in(await Person.signed_in(live))
    await client.post({"token": client.tokens["access_token"]}, "/oauth/revoke")
    reply = await client.refresh()
    assert (reply.status, reply.value["error"]) == (400, "invalid_grant")
    assert "log in again" in reply.value["error_description"]


@pytest.mark.parametrize(("late", "status"), [(LEEWAY - 5, 200), (LEEWAY + 5, 401)])
async def test_clocks_may_differ_by_a_minute(live: Live, late: int, status: int) -> None:
    client = await (await registered(live)).log_in(await Person.signed_in(live))
    tokens = live.hub.authenticator.access_tokens
    assert tokens is not None
    key, word = await tokens.signing.current(), client.tokens["access_token"]
    claims = await tokens.claims(word)
    assert claims is not None
    header = {"alg": "ES256", "typ": "at+jwt", "kid": key.kid}
    over = {**claims, "exp": int(time.time()) - late, "iat": int(time.time()) - late - 900}
    client.tokens["access_token"] = jwt.encode(header, over, key)
    assert (await client.ask()).status == status


async def test_an_issuer_that_is_down_is_named_and_lets_nobody_in(tmp_path: Path) -> None:
    async with open_issuer() as issuer:
        key = issuer.make_key()
        issuer.publish(key)
        url = issuer.url
        token = issuer.token(key)
    facts: dict[str, Any] = {
        "multi_user": True,
        "client_login": "issuer",
        "oidc_issuer": url,
        "oidc_audience": "dragoman",
    }
    async with open_service(tmp_path, **facts) as live:
        told = await asked(live, "GET", "/.well-known/oauth-protected-resource/mcp")
        assert told.value["authorization_servers"] == [url], "clients know whom to ask, once it is back"
        assert (await asked(live, "GET", "/.well-known/oauth-authorization-server")).status == 404
        bearer = {"Authorization": f"Bearer {token}"}
        reply = await asked(live, "POST", "/mcp", json=INITIALIZE, headers=bearer)
        assert (reply.status, reply.value["code"]) == (502, "unreachable")
        assert "the issuer" in reply.value["detail"]
        assert reply.value["hint"] == "try again in a moment"


async def test_a_login_that_a_person_leaves_leaves_nothing(live: Live) -> None:
    client, before = await registered(live), await live.hub.clients.list()
    person = await Person.signed_in(live)
    assert (await person.look(client.query())).status == 200
    back = answer_of(await person.answer(client.query(), answer="deny"))
    assert (back["error"], back["error_description"]) == ("access_denied", "the person said no")
    assert await live.hub.clients.list() == before
