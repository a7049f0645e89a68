"""What comes back: answers by content type, failures in the service's own words, retries where safe."""

import asyncio
import base64
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web
from echo import Echo, document, open_echo, operation

from dragoman import Hub
from patience import patient
from servers.hubs import open_hub, quick

pytestmark = pytest.mark.anyio
PNG = b"\x89PNG\r\n\x1a\n\0\1"


@asynccontextmanager
async def open_shop(home: Path, **facts: Any) -> AsyncGenerator[tuple[Echo, Hub]]:
    """A service with `get`, `put` and `post` at /thing."""
    item = {method: operation(method) for method in ("get", "put", "post", "delete", "head")}
    async with open_echo() as echo, open_hub(home) as hub:
        echo.serve("/openapi.json", document({"/thing": item}))
        await hub.connectors.add("shop", kind="openapi", openapi=echo.url, **quick(**facts))
        echo.seen.clear()
        yield echo, hub


def answering(*statuses: int, headers: dict[str, str] | None = None) -> Callable[[web.Request], web.Response]:
    """One status after another; the last one for ever."""
    left = [*statuses]

    def answer(request: web.Request) -> web.Response:
        status = left.pop(0) if len(left) > 1 else left[0]
        return web.json_response({"message": f"said {status}"}, status=status, headers=headers)

    return answer


async def test_json_is_a_structure_and_its_text(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.serve_text("/thing", b'{"a": [1, null]}', "application/hal+json")
        output = await hub.call("mcp_shop_get")
    assert output.result == {"a": [1, None]}
    assert output.metadata.content_type == "application/json"


@pytest.mark.parametrize(
    ("body", "kind", "result"),
    [
        (b"plain words", "text/plain", "plain words"),
        (b"a,b\n1,2", "text/csv", "a,b\n1,2"),
        (b"<a/>", "application/xml", "<a/>"),
        (b"not { json", "application/json", "not { json"),
        (b"[1]", "application/octet-stream", [1]),
        (b"null", "application/json", None),
    ],
)
async def test_texts_are_told_as_they_are(body: bytes, kind: str, result: Any, tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.serve_text("/thing", body, kind)
        output = await hub.call("mcp_shop_get")
    assert output.ok
    assert output.result == result


async def test_a_picture_is_a_picture_and_other_bytes_are_a_resource(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.serve_text("/thing", PNG, "image/png")
        picture = await hub.call("mcp_shop_get")
        echo.serve_text("/thing", b"PK\0\1", "application/zip")
        archive = await hub.call("mcp_shop_get")
    assert dict(picture.content[0]) == {
        "type": "image",
        "mimeType": "image/png",
        "data": base64.b64encode(PNG).decode(),
    }
    resource = archive.content[0]["resource"]
    assert (resource["mimeType"], base64.b64decode(resource["blob"])) == ("application/zip", b"PK\0\1")


async def test_nothing_is_a_short_text(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.serve_text("/thing", b"", status=204)
        gone = await hub.call("mcp_shop_delete")
        head = await hub.call("mcp_shop_head")
    assert gone.result == "204 No Content, with no content"
    assert head.ok


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (
            {"title": "Out of stock", "detail": "None is left.", "type": "about:blank"},
            "Out of stock: None is left.",
        ),
        ({"detail": "no such thing"}, "no such thing"),
        ({"error": {"code": 7, "message": "deep"}}, '"message":"deep"'),
        ("bare words", "bare words"),
    ],
)
async def test_a_refusal_is_a_failure_with_the_services_words(body: Any, words: str, tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.serve("/thing", body, status=422)
        output = await hub.call("mcp_shop_post")
    assert output.error is not None
    assert output.error.code == "tool_failed"
    assert "422 Unprocessable" in output.error.message
    assert words in output.error.message
    assert len(echo.seen) == 1


async def test_401_needs_a_credential_and_shows_in_the_state_until_a_call_succeeds(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.answers["/thing"] = answering(401, 200)
        output = await hub.call("mcp_shop_get")
        state = (await hub.connectors.get("shop")).status.state
        again = await hub.call("mcp_shop_get")
        after = (await hub.connectors.get("shop")).status.state
    assert output.error is not None
    assert (output.error.code, state, again.ok, after) == ("needs_auth", "needs_auth", True, "connected")
    assert "said 401" in output.error.message


async def test_a_5xx_is_repeated_where_that_is_safe(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        for tool in ("get", "put"):
            echo.answers["/thing"] = answering(503, 502, 200)
            output = await hub.call(f"mcp_shop_{tool}")
            assert (output.ok, output.metadata.attempts) == (True, 3)


async def test_a_5xx_of_an_unsafe_operation_is_uncertain_and_never_repeated(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.answers["/thing"] = answering(500, 200)
        output = await hub.call("mcp_shop_post")
    assert output.error is not None
    assert (output.error.code, len(echo.calls("/thing"))) == ("uncertain", 1)
    assert "said 500" in output.error.message


async def test_a_5xx_that_stays_is_told_as_the_services_fault(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.answers["/thing"] = answering(500)
        output = await hub.call("mcp_shop_get")
    assert output.error is not None
    assert (output.error.code, output.error.retryable, len(echo.calls("/thing"))) == ("server_error", True, 3)


async def test_retry_after_is_kept_to_and_told_where_it_is_too_long(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub):
        echo.answers["/thing"] = answering(429, 200, headers={"Retry-After": "1"})
        started = asyncio.get_running_loop().time()
        output = await hub.call("mcp_shop_get")
        took = asyncio.get_running_loop().time() - started
        echo.answers["/thing"] = answering(429, headers={"Retry-After": "3600"})
        late = await hub.call("mcp_shop_get")
        unsafe = await hub.call("mcp_shop_post")
    assert output.ok
    assert took >= 0.95
    assert late.error is not None
    assert (late.error.code, late.error.retry_after) == ("rate_limited", 3600.0)
    assert unsafe.error is not None
    assert unsafe.error.code == "rate_limited"


async def test_a_deadline_ends_the_wait(tmp_path: Path) -> None:
    release = asyncio.Event()

    async def never(request: web.Request) -> web.StreamResponse:
        await release.wait()
        return web.Response()

    app = web.Application()
    app.router.add_route("*", "/slow", never)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        made = document(
            {"/slow": {"get": operation("get"), "post": operation("post")}},
            servers=[{"url": f"http://127.0.0.1:{runner.addresses[0][1]}"}],
        )
        async with open_echo() as echo, open_hub(tmp_path) as hub:
            echo.serve("/openapi.json", made)
            await hub.connectors.add("slow", kind="openapi", openapi=echo.url, **quick())
            read = await hub.call("mcp_slow_get", timeout=patient(0.2))
            write = await hub.call("mcp_slow_post", timeout=patient(0.2))
            release.set()
    finally:
        await runner.cleanup()
    assert read.error is not None
    assert write.error is not None
    assert (read.error.code, write.error.code) == ("timeout", "uncertain")


async def test_an_answer_beyond_the_limit_is_not_read(tmp_path: Path) -> None:
    async with open_shop(tmp_path, max_message_bytes=2048) as (echo, hub):
        echo.serve_text("/thing", b"x" * 10_000)
        output = await hub.call("mcp_shop_get")
    assert output.error is not None
    assert (output.error.code, len(echo.calls("/thing"))) == ("protocol_fault", 1)
    assert "2,048 bytes" in output.error.message


async def test_a_redirect_is_followed_on_the_same_host_only(tmp_path: Path) -> None:
    async with open_shop(tmp_path) as (echo, hub), open_echo() as other:

        def to(target: str, status: int = 302) -> Callable[[web.Request], web.Response]:
            return lambda request: web.Response(status=status, headers={"Location": target})

        echo.answers["/thing"] = to("/other?x=1")
        same = await hub.call("mcp_shop_get")
        echo.answers["/thing"] = to(f"{other.url}/steal")
        elsewhere = await hub.call("mcp_shop_get")
        echo.answers["/thing"] = to("/thing", 307)
        circle = await hub.call("mcp_shop_get")
    assert same.result["target"] == "/other?x=1"
    assert elsewhere.ok
    assert f"{other.url}/steal" in elsewhere.result
    assert other.seen == []
    assert circle.error is not None
    assert "circle" in circle.error.message
