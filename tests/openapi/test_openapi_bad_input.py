"""Whatever is given instead of a document: an error that names what was tried and what was found."""

import asyncio
import os
from pathlib import Path
from typing import Any

import orjson
import psutil
import pytest
from aiohttp import web
from echo import Echo, document, open_echo, operation

from dragoman import ConnectorView
from patience import patient
from servers.hubs import children, open_hub, quick, until

pytestmark = pytest.mark.anyio
PLACES = ("/openapi.json", "/", "/api/openapi.json", "/docs/openapi.json")


async def added(home: Path, location: str, **facts: Any) -> ConnectorView:
    async with open_hub(home) as hub:
        return await hub.connectors.add("shop", kind="openapi", openapi=location, **quick(**facts))


def everywhere(echo: Echo, text: str | bytes, kind: str = "text/plain", status: int = 200) -> None:
    for place in PLACES:
        echo.serve_text(place, text, kind, status)


@pytest.mark.parametrize("place", [*PLACES, "/v3/api-docs", "/spec.yaml"])
async def test_a_document_is_found_at_each_place(place: str, tmp_path: Path) -> None:
    async with open_echo() as echo:
        everywhere(echo, "nothing here", status=404)
        echo.serve(place, document({"/a": {"get": operation("a")}}))
        base = echo.url if place in PLACES else f"{echo.url}{place}"
        if place not in PLACES:
            echo.serve_text(f"{place}/openapi.json", "", status=404)
        view = await added(tmp_path, base)
    assert (view.status.state, view.tools) == ("connected", 1)


@pytest.mark.parametrize(
    ("text", "kind", "status", "state", "words"),
    [
        ("<!doctype html><html>", "text/html", 200, "error", "an HTML page"),
        ("", "application/json", 200, "error", "empty"),
        ('{"hello": "world"}', "application/json", 200, "error", "no OpenAPI document"),
        ("nothing", "text/plain", 404, "error", "404 text/plain"),
        ("who?", "text/plain", 401, "needs_auth", "wants a credential"),
        ("oops", "text/plain", 500, "error", "500 text/plain"),
    ],
)
async def test_the_error_says_where_it_looked_and_what_was_there(
    text: str, kind: str, status: int, state: str, words: str, tmp_path: Path
) -> None:
    async with open_echo() as echo:
        everywhere(echo, text, kind, status)
        view = await added(tmp_path, echo.url)
    cause = view.status.cause or ""
    assert (view.status.state, view.tools) == (state, 0)
    assert words in cause
    assert all(place in cause for place in PLACES[2:])
    assert view.status.hint


@pytest.mark.parametrize(
    ("made", "words"),
    [
        ({"openapi": "4.0.0", "paths": {}}, "openapi: 4.0.0"),
        ({"swagger": "1.2", "apis": []}, "swagger: 1.2"),
        ({"openapi": "3.0.0"}, "no `paths`"),
    ],
)
async def test_a_version_that_is_not_known_is_named(made: dict[str, Any], words: str, tmp_path: Path) -> None:
    async with open_echo() as echo:
        echo.serve("/openapi.json", made)
        view = await added(tmp_path, echo.url)
    assert view.status.state == "error"
    assert words in (view.status.cause or "")
    assert view.status.next_attempt is None  # nothing will change by itself


async def test_a_hundred_megabytes_are_not_read(tmp_path: Path) -> None:
    sent = 0

    async def endless(request: web.Request) -> web.StreamResponse:
        nonlocal sent
        response = web.StreamResponse()
        await response.prepare(request)
        try:
            for _ in range(100):
                await response.write(b" " * 1024 * 1024)
                sent += 1
        except ConnectionError:
            pass
        return response

    app = web.Application()
    app.router.add_get("/openapi.json", endless)
    runner = web.AppRunner(app, shutdown_timeout=1)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        view = await added(
            tmp_path, f"http://127.0.0.1:{runner.addresses[0][1]}/openapi.json", connect_timeout=patient(30)
        )
    finally:
        await runner.cleanup()
    assert "more than 33,554,432 bytes" in (view.status.cause or "")
    assert sent < 60


async def test_a_file_of_a_hundred_megabytes_is_not_read(tmp_path: Path) -> None:
    file = tmp_path / "large.json"
    with open(file, "wb") as sparse:
        os.truncate(sparse.fileno(), 100 * 1024 * 1024)
    view = await added(tmp_path, str(file))
    assert "more than 33,554,432 bytes" in (view.status.cause or "")


@pytest.mark.parametrize(
    ("location", "words"), [("missing.json", "there is no file"), (".", "cannot be read")]
)
async def test_a_file_that_cannot_be_read_is_named(location: str, words: str, tmp_path: Path) -> None:
    view = await added(tmp_path, str(tmp_path / location))
    assert words in (view.status.cause or "")


async def test_an_unreachable_service_is_tried_again(tmp_path: Path) -> None:
    view = await added(tmp_path, "http://127.0.0.1:9")
    assert view.status.state == "error"
    assert "no service answers at http://127.0.0.1:9" in (view.status.cause or "")
    assert view.status.next_attempt is not None


@pytest.mark.parametrize("location", ["http://", "http://user@h.test", "http://h:99999999", "https://[bad"])
async def test_an_address_that_is_none_is_refused(location: str, tmp_path: Path) -> None:
    view = await added(tmp_path, location)
    assert view.status.state == "error"
    assert "address" in (view.status.cause or "")


async def test_a_redirect_loop_and_a_redirect_elsewhere_are_named(tmp_path: Path) -> None:
    async with open_echo() as echo, open_echo() as other:
        echo.answers["/a.json"] = lambda request: web.Response(status=302, headers={"Location": "/b.json"})
        echo.answers["/b.json"] = lambda request: web.Response(status=302, headers={"Location": "/a.json"})
        echo.answers["/c.json"] = lambda request: web.Response(
            status=301, headers={"Location": f"{other.url}/openapi.json"}
        )
        circle = await added(tmp_path / "1", f"{echo.url}/a.json")
        elsewhere = await added(tmp_path / "2", f"{echo.url}/c.json")
    assert "redirects in a circle" in (circle.status.cause or "")
    assert f"redirects to {other.url}/openapi.json" in (elsewhere.status.cause or "")
    assert other.seen == []


async def test_a_document_that_never_ends_is_given_up(tmp_path: Path) -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()
        writer.close()

    server = await asyncio.start_server(silent, "127.0.0.1", 0)
    async with server:
        port = server.sockets[0].getsockname()[1]
        view = await added(tmp_path, f"http://127.0.0.1:{port}", connect_timeout=0.3)
    assert "did not come within 0.3 s" in (view.status.cause or "")


async def test_what_is_no_http_at_all_is_named(tmp_path: Path) -> None:
    async def other(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 smtp ready\r\n")
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(other, "127.0.0.1", 0)
    async with server:
        view = await added(tmp_path, f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}")
    assert "could not be read" in (view.status.cause or "")


async def test_skipped_operations_are_listed_and_the_others_live(tmp_path: Path) -> None:
    outside = {"content": {"application/json": {"schema": {"$ref": "http://evil.test/a.json"}}}}
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        made = document({"/a": {"get": operation("a")}, "/b": {"post": operation("b", requestBody=outside)}})
        echo.serve("/openapi.json", made)
        view = await hub.connectors.add("shop", kind="openapi", openapi=echo.url, **quick())
        output = await hub.call("mcp_shop_a")
    assert view.tools == 1
    assert [line.partition(":")[0] for line in view.skipped] == ["POST /b"]
    assert "evil.test" in view.skipped[0]
    assert output.ok


async def test_a_bad_version_of_a_document_keeps_the_tools_of_the_last_good_one(tmp_path: Path) -> None:
    async with open_echo() as echo, open_hub(tmp_path) as hub:
        echo.serve("/openapi.json", document({"/a": {"get": operation("a")}}))
        await hub.connectors.add("shop", kind="openapi", openapi=echo.url, **quick())
        everywhere(echo, "<html>maintenance</html>", "text/html")
        with pytest.raises(Exception, match="HTML"):
            await hub.connectors.refresh("shop")
        view = await hub.connectors.get("shop")
        output = await hub.call("mcp_shop_a")
    assert (view.tools, view.status.state) == (1, "error")
    assert output.ok


async def test_the_worker_process_ends_with_the_hub_and_a_killed_one_is_replaced(tmp_path: Path) -> None:
    before = children()
    async with open_hub(tmp_path) as hub:
        file = tmp_path / "api.json"
        file.write_bytes(orjson.dumps(document({"/a": {"get": operation("a")}})))
        await hub.connectors.add("one", kind="openapi", openapi=str(file), **quick())
        (worker,) = children() - before
        psutil.Process(worker).kill()
        await until(lambda: worker not in children())
        view = await hub.connectors.add("two", kind="openapi", openapi=str(file), **quick())
        assert view.tools == 1
    assert children() <= before
