"""Whatever we ask over HTTP, its body is read within a limit, counted after decompression."""

import ast
from collections.abc import Awaitable, Callable
from pathlib import Path

import aiohttp
import psutil
import pytest

import dragoman
from dragoman.connections.http_clients import HttpClients, Reach
from dragoman.connections.oauth.requests import fetch_object, send_form
from dragoman.connections.openapi.document_reader import DocumentReader
from dragoman.connections.openapi.exchange import Exchange
from dragoman.connections.openapi.requests import ServiceRequest
from dragoman.discovery.registry import McpRegistry
from dragoman.errors import DragomanError
from dragoman.identity.issuer import Issuer, ask
from dragoman.remote_data import MAX_DEPTH, NestedTooDeep, parse_json, parse_lenient_json
from servers.processes import HttpProcess

pytestmark = pytest.mark.anyio
HERE = Path(__file__).parent
SOURCE = Path(dragoman.__file__).parent
MEGABYTE = 1024 * 1024
_WHOLE = {"read", "json", "text", "readline", "readany", "readchunk"}
_PIECES = {"content", "iter_any", "iter_chunked", "iter_chunks"}


def unlimited_reads(source: str) -> list[int]:
    """Lines that read a body of aiohttp's client by themselves."""
    found: list[int] = []
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Await(value=ast.Call(func=ast.Attribute(attr=name))) if name in _WHOLE:
                found.append(node.lineno)
            case ast.Attribute(attr=name) if name in _PIECES:
                found.append(node.lineno)
            case _:
                pass
    return found


def test_nobody_but_remote_data_reads_a_body() -> None:
    files = [path for path in SOURCE.rglob("*.py") if "aiohttp" in path.read_text()]
    assert len(files) > 8
    found = {str(path.relative_to(SOURCE)): unlimited_reads(path.read_text()) for path in files}
    found.pop("remote_data.py")
    assert {name: lines for name, lines in found.items() if lines} == {}


def test_the_walk_finds_each_way_to_read_a_body() -> None:
    for way in ("await r.read()", "await r.json()", "await r.text()", "r.content.iter_any()"):
        assert unlimited_reads(f"async def f(r): {way}"), way


async def _oauth(url: str, reach: Reach) -> object:
    return await fetch_object(reach, url)


async def _oauth_token(url: str, reach: Reach) -> object:
    return await send_form(reach, url, {"grant_type": "refresh_token"}, {})


async def _document(url: str, reach: Reach) -> object:
    return await DocumentReader(reach, f"{url}/openapi.json", None).read(None, {}, "")


async def _service(url: str, reach: Reach) -> object:
    return await Exchange(reach.client, MEGABYTE, None).send(url, ServiceRequest("GET", ""))


async def _registry(url: str, reach: Reach) -> object:
    return await McpRegistry(url).search("anything")


async def _issuer(url: str, reach: Reach) -> object:
    async with aiohttp.ClientSession() as session:
        return await ask(Issuer(url=url, audience="here"), session, url)


@pytest.mark.parametrize("way", [_oauth, _oauth_token, _document, _service, _registry, _issuer])
async def test_a_bomb_is_refused_on_every_path(
    tmp_path: Path, way: Callable[[str, Reach], Awaitable[object]]
) -> None:
    program = str(HERE / "hostile_server.py")
    with HttpProcess(tmp_path, "gzip-bomb", program=program) as server:
        async with HttpClients() as clients:
            before = psutil.Process().memory_info().rss
            with pytest.raises((DragomanError, ValueError)) as caught:
                await way(f"{server.origin}/bomb", Reach(lambda: clients.trusted, {}))
            assert "more than" in str(caught.value), caught.value
            assert psutil.Process().memory_info().rss - before < 120 * MEGABYTE


@pytest.mark.parametrize("parse", [parse_json, parse_lenient_json])
def test_nesting_is_limited_and_never_a_recursion_error(parse: Callable[[bytes], object]) -> None:
    for start, middle, end in ((b"[", b"", b"]"), (b'{"a":', b"1", b"}")):
        parse(start * MAX_DEPTH + middle + end * MAX_DEPTH)
        for depth in (MAX_DEPTH + 1, 1000, 1024):
            with pytest.raises(NestedTooDeep):
                parse(start * depth + middle + end * depth)
        with pytest.raises(ValueError, match=r"deep|depth"):
            parse(start * 100_000 + middle + end * 100_000)
