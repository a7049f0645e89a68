"""The API of an MCP registry: `GET /v0/servers` with search and pages, and one server by its name.

Opens a session per question and closes it. Every answer is limited in size and time.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from dragoman.discovery.inputs import entries, table
from dragoman.discovery.servers import RegistryServer, read_server
from dragoman.errors import (
    DragomanError,
    InvalidConfig,
    NotFound,
    ProtocolFault,
    RateLimited,
    ServerError,
    Timeout,
    Unreachable,
)
from dragoman.loading import LateModule, ready
from dragoman.names import did_you_mean
from dragoman.remote_data import BodyTooLarge, parse_json, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


MAX_ANSWER = 16 * 1024 * 1024
MAX_PAGES = 10
_HINT = "DRAGOMAN_REGISTRY_URL says which registry is asked"


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryPage:
    """Some offers, and the cursor of the next page. `skipped` tells of records that could not be read."""

    offers: tuple[RegistryServer, ...]
    next_cursor: str | None = None
    skipped: tuple[str, ...] = ()


class McpRegistry:
    def __init__(self, url: str, *, timeout: float = 15.0) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InvalidConfig("the registry's address must begin with http:// or https://", hint=_HINT)
        self._url = url.rstrip("/")
        self._timeout = timeout

    async def search(self, words: str = "", *, cursor: str | None = None, limit: int = 30) -> RegistryPage:
        """One page of the newest versions. Deleted servers are left out."""
        query = {"search": words, "cursor": cursor, "limit": str(limit), "version": "latest"}
        answer = await self._get("/v0/servers", {name: value for name, value in query.items() if value})
        if answer is None:
            raise ProtocolFault(f"{self._url} has no /v0/servers: it is no MCP registry", hint=_HINT)
        if not isinstance(answer.get("servers"), list):
            raise ProtocolFault(f"{self._url} did not answer with a list of servers", hint=_HINT)
        return _page(answer)

    async def get(self, name: str) -> RegistryServer:
        """The newest version of one server; `NotFound` with names that are near."""
        found = await self._get(f"/v0/servers/{quote(name, safe='')}/versions/latest", {})
        if found is not None and (offer := _find_offer(found)) and offer.name == name:
            return offer
        seen: list[str] = []
        cursor: str | None = None
        for _ in range(MAX_PAGES):
            page = await self.search(name, cursor=cursor, limit=100)
            for offer in page.offers:
                if offer.name == name:
                    return offer
            seen += [offer.name for offer in page.offers]
            cursor = page.next_cursor
            if cursor is None:
                break
        near = did_you_mean(name, seen) or (f"did you mean {seen[0]!r}?" if seen else None)
        raise NotFound(
            f"the registry has no server {name[:120]!r}",
            hint=near or "dragoman discover WORD shows what it has",
        )

    async def _get(self, path: str, query: Mapping[str, str]) -> dict[str, Any] | None:
        """The table that was answered; None when there is nothing at that path."""
        async with self._answered(path, query) as response:
            if response.status == 404:
                return None
            self._check(response)
            try:
                body = await read_body(response, MAX_ANSWER)
            except aiohttp.ClientError:
                raise Unreachable(f"the answer of {self._url} broke off", hint=_HINT) from None
            except BodyTooLarge:
                raise ProtocolFault(
                    f"{self._url} answered with more than {MAX_ANSWER // 1024 // 1024} MB", hint=_HINT
                ) from None
        return self._parsed(body)

    @asynccontextmanager
    async def _answered(
        self, path: str, query: Mapping[str, str]
    ) -> "AsyncGenerator[aiohttp.ClientResponse]":
        await ready("aiohttp")
        headers = {"Accept": "application/json", "User-Agent": "dragoman"}
        try:
            async with (
                asyncio.timeout(self._timeout),
                aiohttp.ClientSession(headers=headers, trust_env=True) as session,
                session.get(self._url + path, params=query, max_redirects=3) as response,
            ):
                yield response
        except TimeoutError:
            raise Timeout(
                f"the registry at {self._url} did not answer within {self._timeout:g} s", hint=_HINT
            ) from None
        except aiohttp.ClientError as error:
            raise Unreachable(
                f"the registry at {self._url} cannot be reached: {type(error).__name__}", hint=_HINT
            ) from None

    def _check(self, response: "aiohttp.ClientResponse") -> None:
        if response.status == 429:
            raise RateLimited(
                f"the registry at {self._url} wants fewer requests", hint="try again in a minute"
            )
        if response.status >= 500:
            raise ServerError(f"the registry at {self._url} failed with status {response.status}", hint=_HINT)
        if response.status >= 400:
            raise ProtocolFault(
                f"the registry at {self._url} refused with status {response.status}", hint=_HINT
            )

    def _parsed(self, body: bytes) -> dict[str, Any]:
        try:
            return table(parse_json(body))
        except ValueError:
            what = "a web page" if body.lstrip()[:1] == b"<" else "something that is no JSON"
            raise ProtocolFault(
                f"{self._url} answered with {what}: it is no MCP registry", hint=_HINT
            ) from None


def _page(answer: Mapping[str, Any]) -> RegistryPage:
    offers: dict[str, RegistryServer] = {}
    skipped: list[str] = []
    for number, record in enumerate(entries(answer["servers"]), 1):
        try:
            offer = read_server(table(record))
        except DragomanError as error:
            skipped.append(f"record {number}: {error.message}")
            continue
        if offer.status != "deleted" and offer.is_latest:
            offers[offer.name] = offer
    metadata = table(answer.get("metadata"))
    cursor = metadata.get("nextCursor") or metadata.get("next_cursor")
    return RegistryPage(
        offers=tuple(offers.values()), next_cursor=str(cursor) if cursor else None, skipped=tuple(skipped)
    )


def _find_offer(record: Mapping[str, Any]) -> RegistryServer | None:
    try:
        return read_server(record)
    except DragomanError:
        return None
