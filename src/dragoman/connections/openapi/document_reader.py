"""Where a document is and what is there: an address, a base address to look around, or a file.

Says where it looked and what it found. Follows no redirect to another host. Owns nothing: the client
belongs to the source.
"""

import asyncio
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from yarl import URL

from dragoman.connections.http_clients import Reach
from dragoman.connections.openapi.conversion import DocumentOrigin
from dragoman.connections.openapi.parsing import is_html
from dragoman.connections.wire_faults import plain
from dragoman.errors import (
    ConnectTimeout,
    DragomanError,
    InvalidConfig,
    NeedsAuth,
    RateLimited,
    ServerError,
    Unreachable,
)
from dragoman.loading import LateModule
from dragoman.remote_data import BodyTooLarge, read_body

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


LARGEST = 32 * 1024 * 1024
_PLACES = ("openapi.json", "", "api/openapi.json", "docs/openapi.json")
_MOST_REDIRECTS = 5
_LOOKS_RIGHT = re.compile(rb"""(?:^|[{,\s])["']?(?:openapi|swagger)["']?\s*:\s*["']?[0-9]""")
_ACCEPT = "application/json, application/yaml;q=0.9, text/yaml;q=0.9, */*;q=0.5"
_HINT = "give the address of the document itself, or a file"


@dataclass(frozen=True, slots=True)
class CacheValidators:
    """What lets the next look be short: the address that worked and its tags, or a file's stamp."""

    place: str
    etag: str | None = None
    modified: str | None = None
    stamp: tuple[int, int, int] | None = None


@dataclass(frozen=True, slots=True)
class ReadDocument:
    """A document as it came. `data` is None when it is the same as last time."""

    data: bytes | None
    origin: DocumentOrigin
    validators: CacheValidators


class DocumentReader:
    """Finds the document that `location` stands for."""

    def __init__(self, reach: Reach, location: str, proxy: str | None) -> None:
        self._client = reach.client
        self._may_read_files = reach.is_trusted
        self._location = location
        self._proxy = proxy

    async def read(
        self, known: CacheValidators | None, headers: Mapping[str, str], query: str
    ) -> ReadDocument:
        """Raises `InvalidConfig`, `NeedsAuth` or another fault that says what was found where."""
        if not is_address(self._location):
            if not self._may_read_files:
                raise InvalidConfig(
                    "only the operator may read a document from a file of this machine",
                    hint="give the address of the document",
                )
            return await asyncio.to_thread(_read_file, self._location, known)
        if known is not None:
            found = await self._look(URL(known.place, encoded=True), headers, query, known)
            if isinstance(found, ReadDocument):
                return found
        misses: list[_Miss] = []
        for place in candidates(self._location):
            found = await self._look(place, headers, query, None)
            if isinstance(found, ReadDocument):
                return found
            misses.append(found)
        raise _failure(self._location, misses)

    async def _look(
        self, place: URL, headers: Mapping[str, str], query: str, known: CacheValidators | None
    ) -> "ReadDocument | _Miss":
        asked = {"Accept": _ACCEPT, **headers}
        if known and known.etag:
            asked["If-None-Match"] = known.etag
        if known and known.modified:
            asked["If-Modified-Since"] = known.modified
        here, seen = place, {place}
        try:
            for _ in range(_MOST_REDIRECTS + 1):
                target = here.update_query(query) if query else here
                async with self._client.get(
                    target, headers=asked, allow_redirects=False, proxy=self._proxy
                ) as response:
                    if not 300 <= response.status < 400 or response.status == 304:
                        return await self._taken(place, here, response, known)
                    here = _next_place(here, response.headers.get("Location", ""))
                if here in seen:
                    break
                seen.add(here)
        except (aiohttp.ClientConnectorError, aiohttp.ConnectionTimeoutError) as error:
            raise Unreachable(
                f"no service answers at {place}: {plain(error)}",
                hint="is the service running? Dragoman goes on trying",
            ) from None
        except (aiohttp.ClientError, OSError) as error:
            raise Unreachable(
                f"{place} could not be read: {plain(error)}", hint="is it an HTTP service?"
            ) from None
        raise InvalidConfig(f"{place} redirects in a circle ({len(seen)} places)", hint=_HINT)

    async def _taken(
        self, place: URL, here: URL, response: "aiohttp.ClientResponse", known: CacheValidators | None
    ) -> "ReadDocument | _Miss":
        origin = DocumentOrigin(str(here.with_query(None)), self._base(here))  # the query may hold a key
        if response.status == 304 and known is not None:
            return ReadDocument(None, origin, known)
        kind = response.content_type
        if response.status != 200:
            return _Miss(str(place), response.status, f"{response.status} {kind}")
        try:
            data = await read_body(response, LARGEST)
        except BodyTooLarge:
            raise _too_large(str(place)) from None
        if is_html(data):
            return _Miss(str(place), 200, f"200 {kind}, an HTML page")
        if not data.strip():
            return _Miss(str(place), 200, f"200 {kind}, empty")
        if not _LOOKS_RIGHT.search(data):
            return _Miss(str(place), 200, f"200 {kind}, no OpenAPI document: {_excerpt(data)!r}")
        tag, modified = response.headers.get("ETag"), response.headers.get("Last-Modified")
        return ReadDocument(data, origin, CacheValidators(str(place), tag, modified))

    def _base(self, here: URL) -> str:
        """What a document without servers means: where we were sent, or else its own root."""
        is_base = is_address(self._location) and not _names_document(URL(self._location))
        if is_base and str(here) != self._location:
            base = str(URL(self._location).with_query(None))
            return base if base.endswith("/") else f"{base}/"
        return str(here.origin()) + "/"


@dataclass(frozen=True, slots=True)
class _Miss:
    place: str
    status: int
    found: str


def is_address(location: str) -> bool:
    return location.lower().startswith(("http://", "https://"))


def candidates(location: str) -> list[URL]:
    """Where to look, in this order. An address that names a document is the only one."""
    url = URL(location)
    if _names_document(url):
        return [url]
    base = url.path.rstrip("/")
    return [url.with_path(f"{base}/{place}") if place else url for place in _PLACES]


def _names_document(url: URL) -> bool:
    return url.path.lower().endswith((".json", ".yaml", ".yml")) or bool(url.query_string)


def _next_place(here: URL, location: str) -> URL:
    try:
        target = here.join(URL(location, encoded=True))
    except ValueError:
        raise InvalidConfig(
            f"{here} redirects to {location[:200]!r}, which is no address", hint=_HINT
        ) from None
    is_upgrade = target.host == here.host and (here.scheme, target.scheme) == ("http", "https")
    if target.origin() != here.origin() and not is_upgrade:
        raise InvalidConfig(
            f"{here} redirects to {target}, on another host", hint="use that address if it is meant"
        )
    return target


def _read_file(location: str, known: CacheValidators | None) -> ReadDocument:
    path = Path(location.removeprefix("file://")).expanduser()
    origin = DocumentOrigin()
    try:
        facts = path.stat()
        stamp = (facts.st_mtime_ns, facts.st_size, facts.st_ino)
        if known is not None and known.stamp == stamp:
            return ReadDocument(None, origin, known)
        if facts.st_size > LARGEST:
            raise _too_large(str(path))
        data = path.read_bytes()
    except FileNotFoundError:
        raise InvalidConfig(
            f"there is no file {location!r}",
            hint="an address begins with http:// or https://; a path is relative to where Dragoman runs",
        ) from None
    except (OSError, ValueError) as error:
        raise InvalidConfig(f"the file {location!r} cannot be read: {error!s:.200}", hint=_HINT) from None
    return ReadDocument(data, origin, CacheValidators(str(path), stamp=stamp))


def _too_large(place: str) -> InvalidConfig:
    return InvalidConfig(
        f"the document at {place} has more than {LARGEST:,} bytes; it was not read",
        hint="give a smaller document, with the operations that you need",
    )


def _failure(location: str, misses: list[_Miss]) -> DragomanError:
    """One error out of all places: what a person can mend comes first."""
    looked = "; ".join(f"{miss.place}: {miss.found}" for miss in misses)
    statuses = {miss.status for miss in misses}
    if statuses & {401, 403}:
        return NeedsAuth(
            f"the document of {location} wants a credential (looked at {looked})",
            hint="give the connector its token or key, or download the document and give the file",
        )
    if 429 in statuses:
        return RateLimited(f"{location} asks to wait (looked at {looked})")
    if any(status >= 500 for status in statuses):
        return ServerError(
            f"the service at {location} fails (looked at {looked})", hint="its log should say more"
        )
    return InvalidConfig(f"there is no OpenAPI document at {location} (looked at {looked})", hint=_HINT)


def address(text: str) -> URL:
    """The address of a service, or `InvalidConfig` for a text that is none."""
    try:
        url = URL(text)
        is_good = bool(url.host) and url.port is not None and url.scheme in ("http", "https")
    except ValueError:
        url, is_good = URL(), False
    if not is_good:
        raise InvalidConfig(
            f"{text[:200]!r} is no address of a service", hint="for example http://127.0.0.1:8000"
        )
    if url.user or url.password:
        raise InvalidConfig("the address must not hold a user or password", hint="use --bearer or a header")
    return url


def timed_out(location: str, seconds: float) -> ConnectTimeout:
    return ConnectTimeout(
        f"the document of {location} did not come within {seconds:g} s", hint="raise connect_timeout"
    )


def _excerpt(data: bytes) -> str:
    return " ".join(data[:300].decode("utf-8", "replace").split())[:80]
