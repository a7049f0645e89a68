"""Workspaces, users and keys by REST, and what a key opens at the door."""

from pathlib import Path
from typing import Any

import pytest
from live import Live, Reply, open_service

from servers.hubs import QUICK
from servers.processes import stdio

pytestmark = pytest.mark.anyio
ALL = ["read", "call", "manage", "approve", "admin"]


async def made(live: Live, path: str, **facts: Any) -> Any:
    reply = await live.ask("POST", path, facts)
    assert reply.status == 201, reply.body
    return reply.value


async def asked(live: Live, key: str, method: str, path: str, body: Any = None) -> Reply:
    return await live.ask(method, path, body, Authorization=f"Bearer {key}")


async def test_a_team_is_set_up_and_taken_down(tmp_path: Path, database_url: str) -> None:
    async with open_service(tmp_path, database_url=database_url, multi_user=True) as live:
        acme = await made(live, "/api/workspaces", name="acme")
        ada = await made(live, "/api/users", name="ada", role="admin", workspace="acme")
        key = (await made(live, "/api/keys", name="k", user="ada", workspace="acme", scopes=ALL))["key"]

        me = (await asked(live, key, "GET", "/api/me")).value
        assert me["workspace"] == {"id": acme["id"], "name": "acme"}
        assert (me["user"]["id"], me["role"], me["scopes"]) == (ada["id"], "admin", sorted(ALL))
        changed = await asked(
            live, key, "PATCH", f"/api/workspaces/{acme['id']}", {"limits": {"calls_per_hour": 9}}
        )
        assert changed.value["limits"]["calls_per_hour"] == 9
        more = await asked(live, key, "PATCH", "/api/workspaces/acme", {"limits": {"cost_per_day": 1.5}})
        assert more.value["limits"]["calls_per_hour"] == 9
        bob = (await asked(live, key, "POST", "/api/users", {"name": "bob"})).value
        assert (bob["workspace"], bob["role"]) == (acme["id"], "member")
        limited = {"limits": {"tokens_per_day": 5}, "capabilities": ["mcp_x"]}
        assert (await asked(live, key, "PATCH", "/api/users/bob", limited)).value["capabilities"] == ["mcp_x"]
        assert len((await asked(live, key, "GET", "/api/users")).value["users"]) == 2
        assert (await asked(live, key, "DELETE", f"/api/users/{bob['id']}")).status == 204
        assert (await asked(live, key, "GET", f"/api/users/{bob['id']}")).status == 404
        assert (await live.ask("GET", "/api/users?workspace=acme")).value["users"][0]["name"] == "ada"
        assert (await live.ask("DELETE", "/api/workspaces/acme")).status == 204
        assert (await asked(live, key, "GET", "/api/me")).status == 401


async def test_a_key_is_told_once_and_its_hash_never(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        reply = await live.ask("POST", "/api/keys", {"name": "cursor", "way": "mcp", "expires_in": 3600})
        assert (reply.status, reply.headers["Cache-Control"]) == (201, "no-store")
        key = reply.value["key"]
        listed = await live.ask("GET", "/api/keys")
        assert [one["hint"] for one in listed.value["keys"]] == [key[:8]]
        assert key.encode() not in listed.body
        assert b"hash" not in listed.body
        assert (await asked(live, key, "GET", "/api/tools")).status == 200
        revoked = await live.ask("DELETE", f"/api/keys/{reply.value['id']}")
        assert revoked.value["revoked_at"]
        refused = await asked(live, key, "GET", "/api/tools")
        assert (refused.status, refused.value["code"]) == (401, "unauthenticated")
        assert "POST /api/keys" in refused.value["hint"]
        assert "WWW-Authenticate" in refused.headers


async def test_scopes_hold_at_the_door(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.ask("POST", "/api/connectors", {"name": "raw", **QUICK, **stdio()})
        call = {"tool": "mcp_raw_echo", "arguments": {"text": "hello"}}
        requests: dict[str, tuple[str, str, Any]] = {
            "read": ("GET", "/api/tools", None),
            "call": ("POST", "/api/call", call),
            "manage": ("POST", "/api/tools/raw__echo/enable", None),
            "approve": ("POST", "/api/approvals/none/answer", {"answer": "no"}),
            "admin": ("GET", "/api/users", None),
        }
        for has in ALL:
            key = (await made(live, "/api/keys", name=has, scopes=[has]))["key"]
            for needs, request in requests.items():
                reply = await asked(live, key, *request)
                if needs == has:
                    assert reply.status in (200, 404), (has, reply.body)
                else:
                    assert (reply.status, reply.value["code"]) == (403, "denied"), (has, needs)
                    assert needs in reply.value["hint"]
            assert (await asked(live, key, "GET", "/health")).status == 200
        key = (await made(live, "/api/keys", name="all", scopes=ALL))["key"]
        assert (await asked(live, key, "POST", "/elsewhere")).status == 403
        assert (await asked(live, key, "GET", "/metrics")).status == 404


async def test_a_key_cannot_make_a_greater_one_by_rest(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        small = (await made(live, "/api/keys", name="small", scopes=["read", "manage"]))["key"]
        reply = await asked(live, small, "POST", "/api/keys", {"name": "more", "scopes": ["admin"]})
        assert (reply.status, reply.value["code"]) == (403, "denied")
        # Of an admin, but without the scope: it acts as a member.
        ada = await made(live, "/api/users", name="ada")
        reply = await asked(
            live, small, "POST", "/api/keys", {"name": "x", "user": ada["id"], "scopes": ["read"]}
        )
        assert reply.status == 404
        assert (await asked(live, small, "GET", f"/api/keys?user={ada['id']}")).status == 404


async def test_without_the_guards_word_nobody_is_the_operator(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        for path in ("/oauth/callback", "/oauth/start", "/oauth/client.json"):
            assert (await live.ask("GET", path, Authorization="")).status != 401
        for path in ("/oauth", "/oauth/callback/", "/oauth/start/x", "/Health", "//health"):
            assert (await live.ask("GET", path, Authorization="")).status == 401


@pytest.mark.parametrize(
    ("path", "body"),
    [
        ("/api/users", {"name": ""}),
        ("/api/users", {"name": "x", "role": "operator"}),
        ("/api/users", {"name": "x", "surprise": 1}),
        ("/api/users", {"name": "x", "limits": {"calls_per_hour": -1}}),
        ("/api/users", {"name": "x", "limits": {"calls": 1}}),
        ("/api/users", {"name": "\u0000"}),
        ("/api/workspaces", {"name": "a\nb"}),
        ("/api/keys", {"name": "x", "scopes": ["root"]}),
        ("/api/keys", {"name": "x", "scopes": []}),
        ("/api/keys", {"name": "x", "expires_in": 0}),
        ("/api/keys", {"name": "x", "way": "code"}),
    ],
    ids=str,
)
async def test_wrong_wishes_are_refused(tmp_path: Path, path: str, body: Any) -> None:
    async with open_service(tmp_path) as live:
        reply = await live.ask("POST", path, body)
        assert reply.status == 422, reply.body


async def test_one_persons_token_still_opens_everything(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        me = (await live.ask("GET", "/api/me")).value
        assert (me["role"], me["user"]["id"], me["workspace"]["id"]) == ("operator", "owner", "local")
        assert (me["grants"], me["scopes"]) == ([], sorted(ALL))
        assert (await live.ask("GET", "/metrics")).status == 200
        assert (await live.ask("GET", "/api/workspaces")).value["workspaces"][0]["id"] == "local"
