"""Access tokens by themselves: clocks that differ, another's signature, missing scopes, who issues."""

import time
from pathlib import Path
from typing import Any

import pytest
from joserfc import jwt
from joserfc.jwk import ECKey

from api.live import Live, open_service
from dragoman.errors import InvalidConfig
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
