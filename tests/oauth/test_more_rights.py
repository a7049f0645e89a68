"""A server that wants more than was authorised, and a client that proves itself with a key."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from joserfc.jwk import ECKey, OKPKey, RSAKey

from oauth.journey import open_scene, quick
from oauth.test_renewal import say
from servers.authorization_server import open_authorization_server, open_protected_server
from servers.hubs import open_hub

pytestmark = pytest.mark.anyio
KEYS = {
    "RSA": RSAKey.generate_key(2048, {"kid": "one"}),
    "P-256": ECKey.generate_key("P-256"),
    "Ed25519": OKPKey.generate_key("Ed25519"),
}


async def test_a_person_is_told_what_is_missing_and_the_next_authorisation_asks_for_it(
    tmp_path: Path, database_url: str
) -> None:
    async with open_scene(tmp_path, database_url) as scene:
        await scene.add()
        await scene.authorise()
        assert (await say(scene.hub)).ok
        scene.server.for_calls = "use files:write"
        refused = await say(scene.hub)
        assert refused.error
        assert refused.error.code == "needs_auth"
        assert refused.error.message.endswith("more than you have authorised: files:write")
        assert "authorize" in (refused.error.hint or "")
        await scene.authorise()
        assert scene.issuer.asked[-1]["scope"].split() == ["use", "files:write"]
        assert (await say(scene.hub)).ok


async def test_never_more_is_asked_for_than_the_connector_says(tmp_path: Path, sqlite_url: str) -> None:
    async with open_scene(tmp_path, sqlite_url) as scene:
        await scene.add(auth={"kind": "oauth", "scopes": ["use"]})
        await scene.authorise()
        scene.server.for_calls = "everything"
        refused = await say(scene.hub)
        assert refused.error
        assert refused.error.code == "forbidden"
        assert refused.error.message.endswith("the server wants the scope everything")
        assert 'connectors.update("notes"' in (refused.error.hint or "")
        await scene.authorise()
        assert scene.issuer.asked[-1]["scope"] == "use"


async def test_a_client_of_its_own_asks_for_more_at_once_and_not_for_ever(
    tmp_path: Path, sqlite_url: str
) -> None:
    async with (
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
        open_hub(tmp_path, database_url=sqlite_url) as hub,
    ):
        issuer.clients["robot"] = {"secret": "word"}
        auth = {"kind": "oauth", "flow": "client_credentials", "client_id": "robot"}
        await hub.connectors.add(
            "notes", **quick(server, auth=auth, oauth_client_secret="word", isolation="shared")
        )
        server.for_calls = "use files:write"
        assert all(one.ok for one in await asyncio.gather(*(say(hub) for _ in range(5))))
        assert issuer.counts["client_credentials"] == 2
        server.for_calls = 'use "quoted'
        assert (await say(hub)).error.code == "forbidden"
        server.for_calls = "never:given"
        assert not (await say(hub)).ok
        assert not (await say(hub)).ok
        assert issuer.counts["client_credentials"] == 2, "not within the pause after the last time"


@pytest.mark.parametrize(
    ("kind", "form"), [("RSA", "pem"), ("P-256", "pem"), ("Ed25519", "pem"), ("P-256", "jwk")]
)
async def test_a_client_proves_itself_with_its_private_key(
    tmp_path: Path, sqlite_url: str, kind: str, form: str
) -> None:
    key: Any = KEYS[kind]
    secret = key.as_pem(private=True).decode() if form == "pem" else json.dumps(key.as_dict(private=True))
    async with (
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
        open_hub(tmp_path, database_url=sqlite_url) as hub,
    ):
        issuer.clients["robot"] = {"key": key}
        auth = {"kind": "oauth", "flow": "client_credentials", "client_id": "robot"}
        await hub.connectors.add(
            "notes", **quick(server, auth=auth, oauth_client_secret=secret, isolation="shared")
        )
        assert (await say(hub)).ok
        issuer.revoke_all()
        assert (await say(hub)).ok
        assert len(issuer.assertions) == 2
        other = ECKey.generate_key("P-256")
        await hub.connectors.update("notes", oauth_client_secret=other.as_pem(private=True).decode())
        issuer.revoke_all()
        assert (await say(hub)).error.code == "needs_auth"


@pytest.mark.parametrize("secret", ["-----BEGIN PRIVATE KEY-----\nnone\n-----END", '{"kty": 1}'])
async def test_a_key_that_is_none_is_said_without_its_words(
    tmp_path: Path, sqlite_url: str, secret: str
) -> None:
    async with (
        open_authorization_server() as issuer,
        open_protected_server(issuer) as server,
        open_hub(tmp_path, database_url=sqlite_url) as hub,
    ):
        auth = {"kind": "oauth", "flow": "client_credentials", "client_id": "robot"}
        view = await hub.connectors.add(
            "notes", **quick(server, auth=auth, oauth_client_secret=secret, isolation="shared")
        )
        assert "no private key" in str(view.status)
        assert secret not in str(view.status)
        assert issuer.counts["client_credentials"] == 0
