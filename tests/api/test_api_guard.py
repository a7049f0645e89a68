"""Who may come in."""

import asyncio
import os
import stat
from pathlib import Path

import pytest
from live import Live, open_service

from descriptors import no_descriptors
from dragoman.errors import KeyFault
from dragoman.server import _listening
from dragoman.settings import Settings
from dragoman.web import service_token
from dragoman.web.service_token import ServiceToken, get_or_make_token
from patience import deadline

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


def test_only_this_machine_reaches_a_service_that_was_told_nothing(tmp_path: Path) -> None:
    with _listening(Settings(home=tmp_path, port=0)) as listener:
        assert listener.getsockname()[0] == "127.0.0.1"


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


async def test_a_request_that_says_twice_who_or_where_it_is_gets_no_answer_to_either(tmp_path: Path) -> None:
    """A proxy may have checked the first, and we would take the last."""
    async with open_service(tmp_path) as live:
        ours, token = f"127.0.0.1:{live.url.rpartition(':')[2]}", f"Bearer {live.token}"
        once = [("Host", ours), ("Authorization", token)]
        assert (await raw(live, once))[:12] == b"HTTP/1.1 200"
        for twice in (
            ("Host", "evil.test"),
            ("Host", ours),
            ("Authorization", "Bearer drk_other"),
            ("Authorization", token),
        ):
            for headers in ([twice, *once], [*once, twice]):
                assert (await raw(live, headers))[:12] == b"HTTP/1.1 400", headers
        origins = [("Origin", "http://evil.test"), ("Origin", "http://localhost")]
        assert (await raw(live, [*once, *origins]))[:12] == b"HTTP/1.1 400"


async def test_a_body_whose_length_is_told_in_two_ways_is_refused(tmp_path: Path) -> None:
    """Two readers would cut the stream of requests at two places (request smuggling)."""
    async with open_service(tmp_path) as live:
        once = [("Host", "localhost"), ("Authorization", f"Bearer {live.token}")]
        once += [("Content-Type", "application/json")]
        told = b'5\r\n{"a":\r\n2\r\n1}\r\n0\r\n\r\n'
        for lengths in (
            [("Content-Length", "7"), ("Transfer-Encoding", "chunked")],
            [("Transfer-Encoding", "chunked"), ("Content-Length", "7")],
            [("Content-Length", "7"), ("Content-Length", "30")],
            [("Content-Length", "+7")],
            [("Content-Length", "7, 7")],
            [("Transfer-Encoding", "chunked, identity")],
            [("Transfer-Encoding", "xchunked")],
        ):
            said = await raw(live, [*once, *lengths], told, method="POST", path="/api/call")
            assert said[:12] == b"HTTP/1.1 400", (lengths, said)
            assert said.count(b"HTTP/1.1 ") == 1, (lengths, said)


async def raw(
    live: Live,
    headers: list[tuple[str, str]],
    body: bytes = b"",
    *,
    method: str = "GET",
    path: str = "/api/me",
) -> bytes:
    """Headers as they are given, in their order; all that comes back."""
    host, port = live.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    lines = [f"{method} {path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers)]
    writer.write("\r\n".join([*lines, "Connection: close", "", ""]).encode() + body)
    async with deadline(20):
        said = await reader.read()
    writer.close()
    return said


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


def test_a_token_is_known_without_a_free_descriptor_for_as_long_as_its_file_is_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service_token, "_LOOK_EVERY", 0.0)
    path = tmp_path / "token"
    token = get_or_make_token(path).encode()
    known = ServiceToken(Settings(home=tmp_path))
    with no_descriptors():
        assert known.is_token(token)
    path.write_text("drg_another")
    with no_descriptors():
        assert not known.is_token(token)
        assert not known.is_token(b"drg_another")
    assert known.is_token(b"drg_another")
    path.unlink()
    assert not known.is_token(b"drg_another")
