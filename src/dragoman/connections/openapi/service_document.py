"""The document of one service as it was last read, and how it is read again. Knows no calls and no state."""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import sha256
from urllib.request import getproxies, proxy_bypass

from yarl import URL

from dragoman.connections.environment import expanded
from dragoman.connections.http_clients import Reach
from dragoman.connections.openapi.converter import Converted, Converter
from dragoman.connections.openapi.document_reader import (
    CacheValidators,
    DocumentReader,
    ReadDocument,
    is_address,
    timed_out,
)
from dragoman.connections.openapi.request_credentials import ServiceCredentials
from dragoman.connections.source import Listing
from dragoman.connector import Configuration
from dragoman.telemetry.redaction import Redactor


@dataclass(frozen=True, slots=True)
class _Version:
    digest: bytes
    validators: CacheValidators
    origin: object
    converted: Converted


class ServiceDocument:
    """Reads one document again and again; what did not change is not converted again."""

    def __init__(
        self, configuration: Configuration, reach: Reach, converter: Converter, redactor: Redactor
    ) -> None:
        self._configuration = configuration
        self._converter = converter
        self._redactor = redactor
        self.location = expanded(configuration.openapi or "", reach.environment)
        self._reader = DocumentReader(
            reach, self.location, proxy_for(self.location) if reach.is_trusted else None
        )
        self._known: _Version | None = None

    @property
    def was_read(self) -> bool:
        return self._known is not None

    async def listing(self) -> Listing:
        """What the document offers, as it was last read."""
        assert self._known is not None
        converted = self._known.converted
        return Listing(
            tools=await converted.definitions(),
            instructions=converted.about.get("description") or None,
            server={name: value for name, value in converted.about.items() if name != "description"},
            skipped=converted.skipped,
        )

    async def read(self, credentials: ServiceCredentials) -> bool:
        """Whether it is another one than before. Raises what is wrong with it or with the way to it."""
        known = self._known
        headers, query = credentials.for_document()
        try:
            async with asyncio.timeout(self._configuration.connect_timeout):
                found = await self._reader.read(known.validators if known else None, headers, query)
        except TimeoutError:
            raise timed_out(self.location, self._configuration.connect_timeout) from None
        if known is not None and found.data is None:
            return False
        assert found.data is not None
        digest = await _digest(found.data)
        if known is not None and (digest, found.origin) == (known.digest, known.origin):
            self._known = _Version(digest, found.validators, found.origin, known.converted)
            return False
        clean = self._redactor.clean_bytes(found.data)
        self._known = _Version(digest, found.validators, found.origin, await self._converted(found, clean))
        return True

    async def _converted(self, found: ReadDocument, data: bytes) -> Converted:
        timeout = self._configuration.connect_timeout
        return await self._converter.convert(data, found.origin, self._configuration.select, timeout)


def proxy_for(url: str) -> str | None:
    """The proxy of the environment for this address."""
    target = URL(url) if is_address(url) else None
    if target is None or not target.host or proxy_bypass(target.host):
        return None
    proxies: Mapping[str, str] = getproxies()
    return proxies.get(target.scheme) or proxies.get("all")


async def _digest(data: bytes) -> bytes:
    """Hashing lets other threads run, and large documents take a while."""
    if len(data) < 1_000_000:
        return sha256(data).digest()
    return await asyncio.to_thread(lambda: sha256(data).digest())
