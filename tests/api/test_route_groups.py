"""Routes are loaded by groups: what is answered is what the whole REST door would answer."""

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.routing import iter_route_contexts
from starlette.types import ASGIApp, Message

from dragoman.api import Api
from dragoman.api.calls import FIELDS
from dragoman.api.operations_app import operations
from dragoman.api.requests import CallRequest
from dragoman.api.route_groups import PARTS, place_of
from dragoman.scope import LOCAL_CALLER
from dragoman.web.guard import CALLER, HUB
from servers.hubs import open_hub

METHODS = ("GET", "HEAD", "POST", "PUT", "PATCH", "DELETE")
NOWHERE = (
    "/",
    "/api",
    "/api/",
    "/api/nothing",
    "//api/tools",
    "/api//tools",
    "/tools",
    "/apitools",
    "/oauth",
)


class WholeApi(Api):
    """The slow way: every request is looked for among all routes."""

    async def _operations_at(self, path: str) -> ASGIApp:
        return operations()


def paths(app: FastAPI) -> Iterator[str]:
    for route in iter_route_contexts(app.routes):
        assert route.path
        yield route.path


def test_every_part_says_where_its_routes_are() -> None:
    document = "/api/openapi.json"  # every group has it
    for part in PARTS:
        found = {place_of(path) for path in paths(operations((part,))) if path != document}
        assert found == {*part.places}, part
        assert not [place for place in found if "{" in place]


async def asked(
    app: ASGIApp, method: str, path: str, query: bytes, **others: Any
) -> tuple[Any, int, list[Any], bytes]:
    """Which function answered, and what it said."""
    sent: list[Message] = []

    async def receive() -> Message:
        return {"type": "http.request", "body": b"[]", "more_body": False}

    async def send(message: Message) -> None:
        sent.append(message)

    scope: dict[str, Any] = {
        "type": "http",
        "method": method,
        "path": path,
        "raw_path": path.encode(),
        "query_string": query,
        "root_path": "",
        "headers": [(b"content-type", b"application/json")],
        "scheme": "http",
        "server": ("127.0.0.1", 80),
        CALLER: LOCAL_CALLER,
        **others,
    }
    await app(scope, receive, send)
    body = b"".join(message.get("body", b"") for message in sent[1:])
    if path == "/metrics":  # counts bytes of memory
        body, sent[0]["headers"] = b"", []
    return scope.get("endpoint"), sent[0]["status"], sent[0]["headers"], body


@pytest.mark.anyio
async def test_a_group_answers_as_the_whole_door_does(tmp_path: Path) -> None:
    """Every path by every method, with a parameter that operations of `/api` refuse: none is performed."""
    async with open_hub(tmp_path) as hub:
        groups, whole = Api(hub), WholeApi(hub)
        answered: set[Any] = set()
        for path in dict.fromkeys([*paths(operations()), *NOWHERE]):
            plain = re.sub(r"{[^}]*}", "x/y" if ":path}" in path else "x", path)
            for method in METHODS:
                found = await asked(groups, method, plain, b"nonsense=1")
                assert found == await asked(whole, method, plain, b"nonsense=1"), (method, path)
                answered.add(found[0])
        assert len(answered) > 150


@pytest.mark.anyio
async def test_the_probes_are_answered_as_they_are_described(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        for path in ("/health", "/ready"):
            quick = await asked(Api(hub), "GET", path, b"nonsense=1")
            described = await asked(operations(), "GET", path, b"nonsense=1", **{HUB: hub})
            assert quick[1:] == described[1:]
            assert quick[1] == 200


def test_a_call_is_described_with_the_fields_that_it_has() -> None:
    assert tuple(CallRequest.model_fields) == FIELDS
