"""Who may come in."""

import os
import stat
from pathlib import Path

import pytest
from live import open_service

from dragoman.errors import KeyFault
from dragoman.web.service_token import get_or_make_token

pytestmark = pytest.mark.anyio

PATHS = ["/api/connectors", "/api/tools", "/api/calls", "/metrics", "/api/openapi.json", "/api/events", "/x"]


async def test_nothing_but_the_probes_answers_without_the_token(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        for path in PATHS:
            for wrong in ("", "Bearer ", "Bearer drg_wrong", "Basic abc", f"Token {live.token}", live.token):
                reply = await live.ask("GET", path, Authorization=wrong)
                assert (reply.status, reply.value["code"]) == (401, "unauthenticated")
                assert reply.headers["Content-Type"] == "application/problem+json"
                assert "WWW-Authenticate" in reply.headers
                assert "token" in reply.value["hint"]
        reply = await live.ask("POST", "/api/call", {"tool": "x"}, Authorization="Bearer wrong")
        assert reply.status == 401
        for path in ("/health", "/ready"):
            assert (await live.ask("GET", path, Authorization="")).status == 200


async def test_the_scheme_of_the_token_may_be_spelt_in_any_case(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        reply = await live.ask("GET", "/api/tools", Authorization=f"bEARER {live.token}")
        assert reply.status == 200


async def test_a_foreign_host_or_origin_is_refused_even_with_the_token(tmp_path: Path) -> None:
    async with open_service(tmp_path, allowed_hosts=("tools.example.com",)) as live:
        for host in (
            "evil.test",
            "evil.test:8765",
            "127.0.0.1.evil.test",
            "localhost@evil.test",
            "[::2]",
            "",
        ):
            reply = await live.ask("GET", "/api/tools", Host=host)
            assert (reply.status, reply.value["code"]) == (421, "wrong_host"), host
        for host in ("localhost", "LOCALHOST:1", "[::1]:9", "tools.example.com"):
            assert (await live.ask("GET", "/api/tools", Host=host)).status == 200, host
        for origin in ("http://evil.test", "null", "https://localhost.evil.test"):
            reply = await live.ask("GET", "/api/tools", Origin=origin)
            assert (reply.status, reply.value["code"]) == (403, "wrong_origin"), origin
        assert (await live.ask("GET", "/api/tools", Origin="http://localhost:3000")).status == 200
        assert (await live.ask("GET", "/health", Host="evil.test")).status == 421


def test_the_token_is_made_once_and_for_its_owner_only(tmp_path: Path) -> None:
    path = tmp_path / "home" / "token"
    token = get_or_make_token(path)
    assert token.startswith("drg_")
    assert len(token) > 40
    assert get_or_make_token(path) == token
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert os.listdir(path.parent) == ["token"]


def test_an_empty_token_file_is_no_open_door(tmp_path: Path) -> None:
    (tmp_path / "token").touch()
    with pytest.raises(KeyFault, match="empty"):
        get_or_make_token(tmp_path / "token")
