"""Access tokens by themselves: clocks that differ, another's signature, missing scopes, who issues."""

import asyncio
import json
import time
from base64 import urlsafe_b64decode
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from api.live import Live, open_service
from cli.command_line import Command
from dragoman.errors import InvalidConfig
from dragoman.hub.oauth_clients import MOST_REGISTRATIONS
from dragoman.people import ApiKey, ConnectedClient
from dragoman.scope import LOCAL_USER, LOCAL_WORKSPACE
from dragoman.store import open_store
from logins.client_flow import INITIALIZE, Client, Person, asked
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio


async def forged(
    live: Live, client: Client, key: ECKey | None = None, header: Any = None, **claims: Any
) -> int:
    """The status for the client's token with other claims; signed by the service unless a key is given."""
    tokens = live.hub.authenticator.access_tokens
    assert tokens is not None
    signing = await tokens.signing.current()
    said = await tokens.claims(client.tokens["access_token"])
    top = {"alg": "ES256", "typ": "at+jwt", "kid": signing.kid, **(header or {})}
    token = jwt.encode(top, {**(said or {}), **claims}, key or signing)
    replaced = Client(live, id=client.id, tokens={"access_token": token})
    return (await replaced.ask()).status


async def test_clocks_may_differ_by_a_minute_and_no_more(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        assert await forged(live, client, exp=int(time.time()) - 30) == 200
        assert await forged(live, client, exp=int(time.time()) - 90) == 401


async def test_what_another_signed_opens_nothing(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live))
        other = ECKey.generate_key("P-256", {"kid": "drg-other"}, private=True)
        assert await forged(live, client) == 200
        assert await forged(live, client, other) == 401
        assert await forged(live, client, other, {"kid": "drg-other"}) == 401
        assert await forged(live, client, header={"typ": "JWT"}) == 401
        assert await forged(live, client, aud=f"{live.url}/mcp/mail") == 401
        assert await forged(live, client, client_id="dcr_other") == 401
        assert await forged(live, client, grant="cli_other") == 401


async def test_a_key_that_may_not_call_is_told_which_scope_it_lacks(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        _, key = await live.hub.people.add_key("reads", scopes=["read"])
        reply = await asked(live, "POST", "/mcp", json=INITIALIZE, headers={"Authorization": f"Bearer {key}"})
        assert reply.status == 403
        assert reply.headers["WWW-Authenticate"] == (
            'Bearer error="insufficient_scope",'
            f' resource_metadata="{live.url}/.well-known/oauth-protected-resource/mcp",'
            ' scope="tools:read tools:write"'
        )


async def test_with_an_outside_issuer_clients_are_sent_there(tmp_path: Path) -> None:
    issuer = "https://login.example/realms/acme"
    settings: dict[str, Any] = {"multi_user": True, "oidc_issuer": issuer, "oidc_audience": "dragoman"}
    async with open_service(tmp_path, client_login="issuer", **settings) as live:
        facts = (await asked(live, "GET", "/.well-known/oauth-protected-resource/mcp")).value
        assert facts["authorization_servers"] == [issuer]
        assert "scopes_supported" not in facts
        for path in ("/.well-known/oauth-authorization-server", "/oauth/jwks"):
            assert (await asked(live, "GET", path)).status == 404
        assert (await Client(live).register()).status == 404
        stranger = await asked(live, "POST", "/mcp", json=INITIALIZE)
        place = f"{live.url}/.well-known/oauth-protected-resource/mcp"
        assert stranger.headers["WWW-Authenticate"] == f'Bearer resource_metadata="{place}"'
    with pytest.raises(InvalidConfig, match="issuer that is not named"):
        async with open_hub(tmp_path / "none", client_login="issuer"):
            pass


async def test_connected_clients_are_listed_and_revoked_by_rest(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        client = await Client(live).log_in(await Person.signed_in(live), do="read")
        (one,) = (await live.ask("GET", "/api/clients")).value["clients"]
        assert (one["name"], one["client_id"], one["resource"]) == (
            "Test Client",
            client.id,
            f"{live.url}/mcp",
        )
        assert (one["connectors"], one["only_reads"]) == (None, True)
        assert (await live.ask("GET", f"/api/clients/{one['id']}")).value == one
        assert (await live.ask("DELETE", f"/api/clients/{one['id']}")).value["revoked_at"]
        assert (await client.ask()).status == 401
        assert (await live.ask("GET", "/api/clients/cli_none")).status == 404
        assert (await live.ask("PATCH", f"/api/keys/{one['id']}", {"scopes": ["read"]})).status == 409


async def test_a_new_signing_key_signs_in_every_process_and_ends_no_login(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    async with (
        open_service(tmp_path, database_url=url) as live,
        open_service(tmp_path, database_url=url) as other,
    ):
        client = await Client(live).log_in(await Person.signed_in(live))
        before = (await asked(other, "GET", "/oauth/jwks")).value["keys"]
        made = (await live.ask("POST", "/api/clients/rotate")).value["key"]
        after = (await asked(other, "GET", "/oauth/jwks")).value["keys"]
        assert [key["kid"] for key in after] == [made, *(key["kid"] for key in before)]
        assert (await client.ask()).status == 200, "what was signed before is good until it ends"
        assert (await client.refresh()).status == 200
        header = json.loads(urlsafe_b64decode(client.tokens["access_token"].partition(".")[0] + "=="))
        assert header["kid"] == made
        assert (await client.ask()).status == 200
        _, key = await live.hub.people.add_key("laptop", scopes=("read", "manage", "admin"))
        refused = await live.ask("POST", "/api/clients/rotate", None, Authorization=f"Bearer {key}")
        assert refused.status == 403


async def test_registrations_are_counted_over_all_processes(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path}/shared.db"
    async with (
        open_service(tmp_path, database_url=url) as live,
        open_service(tmp_path, database_url=url) as other,
    ):
        for number in range(MOST_REGISTRATIONS):
            assert (await Client(other if number % 2 else live).register()).status == 201
        for one in (live, other):
            refused = await Client(one).register()
            assert (refused.status, 0 < int(refused.headers["Retry-After"]) <= 60) == (429, True)


def test_the_command_lists_shows_limits_and_revokes_clients(dragoman: Command, home: Path) -> None:
    async def connect() -> None:
        key = ApiKey(
            id="cli_one",
            workspace=LOCAL_WORKSPACE,
            user=LOCAL_USER,
            name="Cursor",
            hash="0" * 64,
            hint="drr_",
            capabilities=frozenset({"mcp_mail", "read_only"}),
            way="mcp",
            client=ConnectedClient(id="dcr_one", audience="http://here/mcp", redirect="127.0.0.1:1"),
        )
        async with open_store(f"sqlite:///{home}/dragoman.db") as store:
            await store.people.put_key(key)

    assert "no client is connected" in dragoman("clients", "list").err
    asyncio.run(connect())
    listed = dragoman("clients", "list").out
    assert "Cursor" in listed
    assert "cli_one" in listed
    shown = dragoman("clients", "show", "cli_one").out
    assert "mail read only" in shown
    assert "http://here/mcp" in shown
    changed = dragoman("clients", "update", "cli_one", "--limit", "calls_per_hour=100", "--json")
    assert changed.value["limits"]["calls_per_hour"] == 100
    assert "calls_per_hour 100" in dragoman("clients", "show", "cli_one").out
    assert "through the client Cursor" in dragoman("usage", "show").out
    assert dragoman("clients", "rotate", "--json").value["key"].startswith("drg-")
    assert "revoked" in dragoman("clients", "revoke", "cli_one").out
    gone = dragoman("clients", "show", "cli_none")
    assert (gone.code, "clients list" in gone.err) == (1, True)
