"""What the doors share is shared: the same status for the same fault, the same limit of a body."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import httpx2 as httpx
import pytest
from fastapi import FastAPI
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.types import ASGIApp, Receive, Scope, Send

from dragoman import Hub
from dragoman.api import Api
from dragoman.api.problems import add_problems
from dragoman.console.error_pages import of_error
from dragoman.console.pages import Pages
from dragoman.errors import CallerFault, DragomanError
from dragoman.mcp_endpoint import McpEndpoint
from dragoman.scope import LOCAL_CALLER
from dragoman.settings import Settings
from dragoman.web.guard import CALLER
from dragoman.web.problems import TABLE, status_of

pytestmark = pytest.mark.anyio


def every(kind: type[DragomanError]) -> Iterator[type[DragomanError]]:
    yield kind
    for below in kind.__subclasses__():
        yield from every(below)


def asking(app: ASGIApp) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=httpx.ASGITransport(app), base_url="http://127.0.0.1")


def let_in(door: ASGIApp) -> ASGIApp:
    """As behind the guard, for who runs the service."""

    async def app(scope: Scope, receive: Receive, send: Send) -> None:
        await door({**scope, CALLER: LOCAL_CALLER}, receive, send)

    return app


@pytest.mark.parametrize("kind", list(every(DragomanError)), ids=lambda kind: kind.code)
async def test_every_error_has_the_same_status_by_rest_and_on_a_page(kind: type[DragomanError]) -> None:
    async def fail(request: Request) -> None:
        raise kind("what happened", hint="what to do")

    rest, console = FastAPI(), Starlette()
    add_problems(rest)
    console.state.hub, console.state.pages = Hub(), Pages()
    console.add_exception_handler(DragomanError, of_error)  # type: ignore[arg-type]
    answers: list[httpx.Response] = []
    for app in (rest, console):
        app.add_route("/", fail)  # type: ignore[arg-type]
        async with asking(app) as client:
            answers.append(await client.get("/"))
    assert [answer.status_code for answer in answers] == [TABLE[kind.code][0]] * 2
    assert all("what to do" in answer.text for answer in answers)


def test_what_only_the_caller_can_mend_is_no_fault_of_a_server() -> None:
    assert status_of(CallerFault("this will not do")) == 400


async def test_a_body_over_the_limit_is_refused_with_the_same_status_and_words(tmp_path: Path) -> None:
    headers = {"content-type": "application/json"}

    async def chunks() -> AsyncIterator[bytes]:
        for _ in range(3):
            yield b"x" * 50

    async with Hub(Settings(home=tmp_path)) as hub:
        for door, path in (
            (Api(hub, max_body=100), "/api/call"),
            (Api(hub, max_body=100), "/api/connectors"),
            (McpEndpoint(hub, max_body=100), "/mcp"),
        ):
            async with asking(let_in(door)) as client:
                for content in (b"x" * 101, chunks()):
                    answer = await client.post(path, content=content, headers=headers)
                    assert answer.status_code == 413
                    assert "he body of a request may have at most 100 bytes" in answer.text
