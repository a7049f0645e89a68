"""Whatever goes wrong is an RFC 9457 problem, and tells no secret."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from live import open_service

from dragoman.api.problems import add_problems
from dragoman.errors import DragomanError, RateLimited
from dragoman.hub import BoundHub
from dragoman.web.problems import TABLE, problem
from servers.processes import stdio

pytestmark = pytest.mark.anyio
FIELDS = {"type", "title", "status", "detail", "code", "hint", "cause", "retryable"}
SECRET = "canary-4f1c9a7e"


def every(kind: type[DragomanError]) -> Iterator[type[DragomanError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


@pytest.mark.parametrize("kind", list(every(DragomanError)), ids=lambda kind: kind.code)
async def test_every_error_has_a_status_a_title_and_all_fields(kind: type[DragomanError]) -> None:
    assert kind.code in TABLE
    app = FastAPI()
    add_problems(app)

    @app.get("/")
    async def raise_it() -> None:
        raise kind("what happened", hint="what to do", cause="why")

    sent: list[Any] = []

    async def receive() -> Any:
        return {"type": "http.request"}

    async def send(message: Any) -> None:
        sent.append(message)

    scope: dict[str, Any] = {"type": "http", "method": "GET", "path": "/", "headers": [], "query_string": b""}
    await app(scope, receive, send)
    expected = problem(kind("what happened", hint="what to do", cause="why"))
    assert sent[0]["status"] == expected.status_code == TABLE[kind.code][0] >= 400
    assert sent[1]["body"] == expected.body
    assert b"what happened" in expected.body


def test_when_to_come_back_is_a_header() -> None:
    assert problem(RateLimited("slower", retry_after=2.2)).headers["Retry-After"] == "3"


async def test_bad_requests_are_problems_with_hints(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        expected = [
            ("GET", "/nothing", None, 404, "not_found"),
            ("GET", "/docs", None, 404, "not_found"),
            ("GET", "/api/call", None, 405, "wrong_method"),
            ("DELETE", "/api/tools", None, 405, "wrong_method"),
            ("GET", "/api/connectors/nobody", None, 404, "not_found"),
            ("GET", "/api/tools/nothing", None, 404, "not_found"),
            ("GET", "/api/tools?connector=nobody", None, 404, "not_found"),
            ("GET", "/api/results/result_x", None, 404, "not_found"),
            ("GET", "/api/calls?limit=0", None, 422, "invalid_request"),
            ("POST", "/api/connectors", b"{", 400, "bad_request"),
            ("POST", "/api/connectors", b"\xff", 400, "bad_request"),
            ("POST", "/api/connectors", {}, 422, "invalid_request"),
            ("POST", "/api/connectors", [], 422, "invalid_request"),
            ("POST", "/api/connectors", {"name": "a"}, 422, "invalid_config"),
            (
                "POST",
                "/api/connectors",
                {"name": "a", "command": "x", "url": "http://x"},
                422,
                "invalid_config",
            ),
            ("POST", "/api/connectors", {"name": "a", "command": "no-such-binary"}, 422, "invalid_config"),
            ("POST", "/api/connectors", {"name": "a", "url": "ftp://x"}, 422, "invalid_config"),
            ("POST", "/api/connectors", {"name": "Böse", "url": "http://x"}, 422, "invalid_name"),
            ("POST", "/api/connectors", {"name": "", "url": "http://x"}, 422, "invalid_name"),
            (
                "POST",
                "/api/connectors",
                {"name": "a", "url": "http://x", "caller": 1},
                422,
                "invalid_request",
            ),
            (
                "POST",
                "/api/connectors",
                {"name": "a", "url": "http://x", "secrets": []},
                422,
                "invalid_request",
            ),
            (
                "POST",
                "/api/connectors",
                {"name": "a", "url": "http://x", "idle_ttl": -1},
                422,
                "invalid_config",
            ),
            ("POST", "/api/call", b"{", 400, "bad_request"),
            ("POST", "/api/call", b"", 400, "bad_request"),
            ("POST", "/api/call", [], 422, "invalid_request"),
            ("POST", "/api/call", {}, 422, "invalid_request"),
            ("POST", "/api/call", {"tool": 1}, 422, "invalid_request"),
            ("POST", "/api/call", {"tool": "x", "arguments": []}, 422, "invalid_request"),
            ("POST", "/api/call", {"tool": "x", "timeout": "soon"}, 422, "invalid_request"),
            ("POST", "/api/call", {"tool": "x", "argments": {}}, 422, "invalid_request"),
            ("POST", "/api/tools/x/call", {"tool": "y"}, 422, "invalid_request"),
        ]
        for method, path, body, status, code in expected:
            reply = await live.ask(method, path, body)
            where = (method, path, body, reply.body)
            assert (reply.status, reply.value["code"]) == (status, code), where
            assert reply.headers["Content-Type"] == "application/problem+json", where
            assert set(reply.value) == FIELDS, where
            assert b"Traceback" not in reply.body
        assert [view.connector.slug for view in await live.hub.connectors.list()] == ["native"]


async def test_a_near_miss_is_told_what_was_meant(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await live.ask("POST", "/api/connectors", {"name": "weather", **stdio()})
        assert "'weather'" in (await live.ask("GET", "/api/connectors/wether")).value["hint"]
        assert "mcp_weather_echo" in (await live.ask("GET", "/api/tools/mcp_wether_echo")).value["hint"]
        reply = await live.ask("PATCH", "/api/connectors/weather", {"request_timout": 1})
        assert "request_timeout" in reply.value["detail"]
        reply = await live.ask("POST", "/api/connectors", {"name": "weather", **stdio()})
        assert (reply.status, reply.value["code"]) == (409, "conflict")


async def test_a_body_over_the_cap_is_refused_on_every_way(tmp_path: Path) -> None:
    async with open_service(tmp_path, max_body=100_000) as live:
        large = {"tool": "x", "arguments": {"text": "x" * 200_000}}
        for path in ("/api/call", "/api/tools/x/call", "/api/connectors"):
            reply = await live.ask("POST", path, large)
            assert (reply.status, reply.value["code"]) == (413, "too_large"), path


async def test_no_problem_repeats_a_secret(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        wrong: list[dict[str, Any]] = [
            {"name": "a", "bearer": {"token": SECRET}},
            {"name": "a", "url": "http://x", "bearer": SECRET, "api_key": SECRET},
            {"name": "a", "command": "no-such-binary", "env": {"API_TOKEN": SECRET}},
            {"name": "a", "url": "http://x", "headers": {"Authorization": [SECRET]}, "idle_ttl": SECRET},
        ]
        for body in wrong:
            reply = await live.ask("POST", "/api/connectors", body)
            assert reply.status == 422
            assert SECRET.encode() not in reply.body, reply.body
        sealed = {"name": "a", "url": f"http://user:{SECRET}@x", "connect": False}
        reply = await live.ask("POST", "/api/connectors", sealed)
        assert reply.status == 201
        assert SECRET.encode() not in reply.body, reply.body


async def test_a_fault_of_ours_is_a_problem_without_its_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_service(tmp_path) as live:

        async def broken(*arguments: Any, **facts: Any) -> Any:
            raise RuntimeError(SECRET)

        monkeypatch.setattr(BoundHub, "call", broken)
        monkeypatch.setattr(BoundHub, "calls", broken)
        for reply in (
            await live.ask("POST", "/api/call", {"tool": "x"}),
            await live.ask("GET", "/api/calls"),
        ):
            assert (reply.status, reply.value["code"]) == (500, "internal")
            assert SECRET.encode() not in reply.body
