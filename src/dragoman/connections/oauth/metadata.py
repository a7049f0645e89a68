"""Who authorises for a server: protected-resource metadata (RFC 9728), then the authorisation server's own
(RFC 8414 or OpenID discovery). What they claim to be is compared with where they were found.
"""

import asyncio
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from pydantic import BaseModel, ConfigDict, ValidationError
from yarl import URL

from dragoman.connections.environment import expanded
from dragoman.connections.http_clients import Reach
from dragoman.connections.oauth.requests import Json, fetch_object
from dragoman.connections.openapi.service_document import proxy_for
from dragoman.connector import Configuration, Connector
from dragoman.errors import InvalidConfig, ProtocolFault
from dragoman.loading import LateModule, ready

if TYPE_CHECKING:
    import aiohttp
else:
    aiohttp = LateModule("aiohttp")


_SCOPE = re.compile(r"[\x21\x23-\x5b\x5d-\x7e]{1,200}")
_PARAMETER = re.compile(r'([A-Za-z_][A-Za-z0-9_-]*)\s*=\s*(?:"((?:[^"\\]|\\.)*)"|([^\s,"]+))')
_BEARER = re.compile(r"(?:^|,\s*|\s)Bearer(?:\s|$)", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Challenge:
    resource_metadata: str | None = None
    scopes: tuple[str, ...] = ()
    error: str | None = None


def challenge_of(headers: Iterable[str]) -> Challenge:
    """The Bearer challenge among the headers; an empty one where there is none."""
    for header in headers:
        if not (found := _BEARER.search(header[:8192])):
            continue
        words: dict[str, str] = {}
        for name, quoted, plain in _PARAMETER.findall(header[found.start() : 8192]):
            words.setdefault(name.lower(), re.sub(r"\\(.)", r"\1", quoted) if quoted else plain)
        return Challenge(
            words.get("resource_metadata"), tuple(words.get("scope", "").split()), words.get("error")
        )
    return Challenge()


def is_scope(word: str) -> bool:
    """As RFC 6749 allows them; a server could say anything."""
    return _SCOPE.fullmatch(word) is not None


_PROBE_LIMIT = 10.0
_RESOURCE = ".well-known/oauth-protected-resource"
_SERVER = ".well-known/oauth-authorization-server"
_OPENID = ".well-known/openid-configuration"
_PROBE: Json = {"jsonrpc": "2.0", "id": 1, "method": "ping"}


class AuthorizationServer(BaseModel):
    """What an authorisation server says of itself; unknown fields are ignored."""

    model_config = ConfigDict(frozen=True, extra="ignore", hide_input_in_errors=True)

    issuer: str
    token_endpoint: str
    authorization_endpoint: str | None = None
    registration_endpoint: str | None = None
    revocation_endpoint: str | None = None
    scopes_supported: tuple[str, ...] = ()
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] = ("client_secret_basic",)
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


@dataclass(frozen=True, slots=True)
class ResourceAuthorization:
    """Who authorises, for which resource, with which scopes. No `resource`: the server has no such notion."""

    issuer: AuthorizationServer
    resource: str | None
    scopes: tuple[str, ...]


def server_of(configuration: Configuration, environment: Mapping[str, str] | None) -> str:
    """The address that tokens are for, as it is compared and sent: no query, no fragment, no last slash."""
    address = configuration.url or configuration.server or configuration.openapi or ""
    try:
        url = URL(expanded(address, environment)).with_query(None).with_fragment(None)
    except ValueError:
        url = URL()
    if url.scheme not in ("http", "https") or not url.host:
        raise InvalidConfig("OAuth needs a server with an address", hint="set the connector's server")
    text = str(url)
    return text.rstrip("/") if url.path == "/" else text


async def discover(reach: Reach, connector: Connector) -> ResourceAuthorization:
    """`InvalidConfig` when nobody says who authorises, `ProtocolFault` when one is not who they claim."""
    configuration = connector.configuration
    server, auth = server_of(configuration, reach.environment), configuration.auth
    challenge = await _challenge(reach, connector, server)
    stated = await _resource_metadata(reach, server, challenge)
    place = auth.issuer or _first(stated.get("authorization_servers")) or str(URL(server).origin())
    issuer = await _issuer(reach, place, server)
    is_named = bool(stated) or configuration.kind == "mcp"
    resource = str(stated.get("resource") or server) if is_named else None
    scopes = auth.scopes or challenge.scopes or _words(stated.get("scopes_supported"))
    if scopes and not auth.scopes and "offline_access" in issuer.scopes_supported:
        scopes = tuple(dict.fromkeys((*scopes, "offline_access")))
    return ResourceAuthorization(issuer, resource, scopes)


async def _challenge(reach: Reach, connector: Connector, server: str) -> Challenge:
    """What the server itself says to somebody whom it does not know. Silence is no failure here."""
    is_posted = connector.kind == "mcp" and connector.configuration.wire == "http"
    facts: dict[str, Any] = {"json": _PROBE} if is_posted else {}
    accept = {"Accept": "application/json, text/event-stream"}
    await ready("aiohttp")
    try:
        async with (
            asyncio.timeout(_PROBE_LIMIT),
            reach.client.request(
                "POST" if is_posted else "GET",
                server,
                headers=accept,
                allow_redirects=False,
                proxy=proxy_for(server) if reach.is_trusted else None,
                **facts,
            ) as response,
        ):
            if response.status == 401:
                return challenge_of(response.headers.getall("WWW-Authenticate", []))
    except (aiohttp.ClientError, OSError, TimeoutError):
        pass
    return Challenge()


async def _resource_metadata(reach: Reach, server: str, challenge: Challenge) -> Json:
    url = URL(server)
    places = [str(url.origin() / _RESOURCE)]
    if url.path.strip("/"):
        places.insert(0, f"{url.origin()}/{_RESOURCE}{url.raw_path}")
    if challenge.resource_metadata:
        check_address(challenge.resource_metadata, server)
        places.insert(0, challenge.resource_metadata)
    for place in places:
        if (found := await fetch_object(reach, place)) is not None:
            stated = found.get("resource")
            if not isinstance(stated, str) or not is_resource_of(stated, server):
                raise ProtocolFault(
                    f"{place} speaks for {stated!s:.200}, not for {server}",
                    hint="nothing was sent there; ask who runs the server",
                )
            return found
    return {}


def is_resource_of(resource: str, server: str) -> bool:
    """Whether the resource is the server, or the whole of which the server is a part by its path."""
    try:
        stated, own = URL(resource), URL(server)
        is_same_origin = stated.origin() == own.origin()
    except ValueError:
        return False
    whole = stated.path.rstrip("/")
    return is_same_origin and not stated.query_string and f"{own.path.rstrip('/')}/".startswith(f"{whole}/")


async def _issuer(reach: Reach, place: str, server: str) -> AuthorizationServer:
    check_address(place, server)
    for address in issuer_places(place):
        if (found := await fetch_object(reach, address)) is None:
            continue
        try:
            issuer = AuthorizationServer.model_validate(found)
        except ValidationError:
            raise ProtocolFault(f"{address} is no metadata of an authorisation server") from None
        if issuer.issuer != place:
            raise ProtocolFault(
                f"{address} speaks for the issuer {issuer.issuer[:200]}, not for {place}",
                hint="nothing was sent there; if that issuer is meant, set it: --oauth-issuer",
            )
        for endpoint in (
            issuer.token_endpoint,
            issuer.authorization_endpoint,
            issuer.registration_endpoint,
            issuer.revocation_endpoint,
        ):
            if endpoint:
                check_address(endpoint, server)
        return issuer
    raise InvalidConfig(
        f"nobody says who authorises for {server} (looked at {', '.join(issuer_places(place))})",
        hint="does it offer OAuth at all? if you know the issuer, set it: --oauth-issuer",
    )


def issuer_places(issuer: str) -> tuple[str, ...]:
    """Where an issuer's metadata may be: inserted before its path, or after it."""
    url = URL(issuer)
    origin, path = url.origin(), url.raw_path.strip("/")
    if not path:
        return (f"{origin}/{_SERVER}", f"{origin}/{_OPENID}")
    return (f"{origin}/{_SERVER}/{path}", f"{origin}/{_OPENID}/{path}", f"{origin}/{path}/{_OPENID}")


def check_address(address: str, server: str) -> None:
    """Only https, or http where the person chose http for the server itself or stays on this machine."""
    try:
        url = URL(address)
        is_loopback = url.host in ("localhost", "127.0.0.1", "::1")
        is_good = bool(url.host) and not url.user and not url.fragment
    except ValueError:
        raise ProtocolFault(f"{address[:200]!r} is no address") from None
    is_allowed = url.scheme == "https" or (
        url.scheme == "http" and (is_loopback or URL(server).scheme == "http")
    )
    if not (is_good and is_allowed):
        raise ProtocolFault(f"{address[:200]} is no https address; tokens are not sent over it")


def _first(value: Any) -> str | None:
    return next(iter(_words(value)), None)


def _words(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list):
        return ()
    return tuple(one for one in cast("list[Any]", value) if isinstance(one, str))
