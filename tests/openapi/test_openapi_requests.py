"""Every request case, down the whole road, against a service that tells back what arrived."""

from collections.abc import AsyncGenerator
from email.message import Message
from email.parser import BytesParser
from pathlib import Path
from typing import Any

import orjson
import pytest
from body_cases import BODIES
from cases import Case
from echo import Echo, document, open_echo, operation
from parameter_cases import HEADERS, PATHS, QUERIES
from swagger_cases import SWAGGER

from dragoman import Hub
from servers.hubs import QUICK, open_hub

pytestmark = pytest.mark.anyio
CASES = (*QUERIES, *PATHS, *HEADERS, *BODIES, *SWAGGER)
VERSIONS = {"2.0": "v20", "3.0": "v30", "3.1": "v31"}
PAIRS = [(case, version) for case in CASES for version in case.versions]


def written(case: Case) -> dict[str, Any]:
    facts = {**case.facts, **({"parameters": [*case.parameters]} if case.parameters else {})}
    if case.body:
        facts["requestBody"] = case.body
    item: dict[str, Any] = {case.method: operation(case.name, **facts)}
    return {**item, "parameters": [*case.shared]} if case.shared else item


def whole(version: str) -> dict[str, Any]:
    paths = {f"/{case.name}{case.path}": written(case) for case in CASES if version in case.versions}
    made = document(paths)
    if version == "2.0":
        del made["openapi"]
        return {"swagger": "2.0", "basePath": "/base", **made}
    return {**made, "openapi": f"{version}.0", "servers": [{"url": "/base"}]}


@pytest.fixture(scope="module")
async def shop(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[tuple[Echo, Hub]]:
    async with open_echo() as echo, open_hub(Path(tmp_path_factory.mktemp("home"))) as hub:
        for version, slug in VERSIONS.items():
            echo.serve(f"/{slug}/openapi.json", whole(version))
            view = await hub.connectors.add(slug, kind="openapi", openapi=f"{echo.url}/{slug}", **QUICK)
            assert (view.status.cause, view.skipped) == (None, ())
        yield echo, hub


def test_there_are_at_least_eighty_cases() -> None:
    assert len(CASES) >= 80
    assert len({(case.name, version) for case, version in PAIRS}) == len(PAIRS)


@pytest.mark.parametrize(("case", "version"), PAIRS, ids=[f"{v}-{case.name}" for case, v in PAIRS])
async def test_a_request_arrives_as_the_document_says(
    case: Case, version: str, shop: tuple[Echo, Hub]
) -> None:
    echo, hub = shop
    echo.seen.clear()
    output = await hub.call(f"mcp_{VERSIONS[version]}_{case.name}", case.arguments)
    if case.refused:
        assert output.error is not None
        assert (output.error.code, echo.seen) == (case.refused, [])
        return
    assert output.ok, output.error
    (seen,) = echo.seen
    assert (seen.method, seen.target) == (case.method.upper(), f"/base/{case.name}{case.target}")
    for name, value in case.headers.items():
        assert seen.header(name) == value
    assert output.result["target"] == seen.target
    if case.content is not None:
        assert arrived(seen.body, seen.header("Content-Type") or "", case.content) == case.content


def arrived(body: bytes, kind: str, like: Any) -> Any:
    """The body in the shape that the case speaks of it."""
    if isinstance(like, bytes):
        return body
    return parts(body, kind) if kind.startswith("multipart/") else orjson.loads(body)


def parts(body: bytes, kind: str) -> list[tuple[str | None, str | None, str | None, bytes]]:
    message = BytesParser().parsebytes(f"Content-Type: {kind}\r\n\r\n".encode() + body)
    found: list[tuple[str | None, str | None, str | None, bytes]] = []
    for part in message.get_payload():
        assert isinstance(part, Message)
        name = part.get_param("name", header="Content-Disposition")
        data = part.get_payload(decode=True)
        assert isinstance(data, bytes)
        found.append((str(name), part.get_filename(), part["Content-Type"], data))
    return found
