"""One service, one authorisation server, one MCP server that wants its tokens, and a browser."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import aiohttp

from api.live import Live, open_service
from dragoman import Hub
from dragoman.settings import Settings
from patience import patient
from servers.authorization_server import (
    AuthorizationServer,
    ProtectedServer,
    open_authorization_server,
    open_protected_server,
)

OAUTH: dict[str, Any] = {"auth": {"kind": "oauth"}}


@dataclass
class Scene:
    live: Live
    issuer: AuthorizationServer
    server: ProtectedServer

    @property
    def hub(self) -> Hub:
        return self.live.hub

    async def add(self, **facts: Any) -> None:
        await self.hub.connectors.add("notes", **quick(self.server, **facts))

    async def link(self) -> str:
        reply = await self.live.ask("POST", "/api/credentials/notes/authorize")
        assert reply.status == 200, reply.body
        return reply.value["url"]

    async def authorise(self) -> "Page":
        """The whole way of a browser, from the link to the last page."""
        async with open_browser() as browser:
            return await browser.follow(await browser.press(await self.link()))


def quick(server: ProtectedServer, **facts: Any) -> dict[str, Any]:
    times = {
        "connect_timeout": patient(20),
        "request_timeout": patient(20),
        "health_interval": 0,
        "retry": {"delay": 0.05},
    }
    return {"url": server.url, **OAUTH, **times, **facts}


@dataclass(frozen=True)
class Page:
    status: int
    text: str
    headers: Any


class Browser:
    """Keeps cookies, follows nothing by itself."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.session = session

    async def get(self, url: str) -> Page:
        async with self.session.get(url, allow_redirects=False) as response:
            return Page(response.status, await response.text(), response.headers)

    async def press(self, link: str) -> str:
        """Presses the button of the page behind a link; returns where that leads."""
        page = await self.get(link)
        assert page.status == 200, page.text
        parts = urlsplit(link)
        form = {"ticket": parse_qs(parts.query)["ticket"][0]}
        origin = f"{parts.scheme}://{parts.netloc}"
        async with self.session.post(
            f"{origin}{parts.path}", data=form, headers={"Origin": origin}, allow_redirects=False
        ) as response:
            assert response.status == 303, await response.text()
            return response.headers["Location"]

    async def back(self, authorization: str) -> str:
        """Lets the authorisation server approve; returns the callback that it redirects to."""
        page = await self.get(authorization)
        assert page.status == 302, page.text
        return page.headers["Location"]

    async def follow(self, authorization: str) -> Page:
        return await self.get(await self.back(authorization))


@asynccontextmanager
async def open_browser() -> AsyncGenerator[Browser]:
    # Cookies of an address without a name are kept too, as browsers do.
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as session:
        yield Browser(session)


@asynccontextmanager
async def open_scene(home: Path, database_url: str, path: str = "", **settings: Any) -> AsyncGenerator[Scene]:
    async with (
        open_authorization_server(path) as issuer,
        open_protected_server(issuer) as server,
        open_service(home, database_url=database_url, **settings) as live,
    ):
        yield Scene(live, issuer, server)


def settings_of(live: Live) -> Settings:
    return live.hub.settings
