"""Who an OAuth client says that it is: registered with us (RFC 7591), or by a document at its own address.

Knows nothing of people and tokens. A client has no secret: what proves that it is the same is PKCE, and where
the browser is sent back to.
"""

import re
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from secrets import token_urlsafe
from time import monotonic
from typing import Any, cast
from urllib.parse import SplitResult, urlsplit

from dragoman.connections.http_clients import HttpClients, Reach
from dragoman.connections.oauth.requests import fetch_object
from dragoman.errors import DragomanError, LimitReached
from dragoman.store.protocols import LoginStore
from dragoman.store.records import RegisteredClient

UNUSED_LASTS = timedelta(days=1)
"""How long a registration waits for somebody to allow it something."""
USED_LASTS = timedelta(days=180)
"""How long it is known after it was last used."""
LOOPBACK = frozenset({"localhost", "127.0.0.1", "::1"})
_MOST_UNUSED = 10_000
_MOST_REDIRECTS = 20
_LONGEST_URL = 2000
_LONGEST_NAME = 80
_LARGEST_DOCUMENT = 64 * 1024
_PATIENCE = 5.0
_FRESH = 600.0
_MOST_DOCUMENTS = 1000
A_MINUTE = 60.0
MOST_REGISTRATIONS = 30  # in a minute, from one address
_MOST_ADDRESSES = 1000
_SCHEME = re.compile(r"[a-z][a-z0-9+.-]*", re.ASCII)
_UNPRINTABLE = re.compile(
    r"[\x00-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff]"
)
# What a browser acts on by itself. Any other scheme is that of a program: `cursor:`, `vscode:`.
_NOT_OF_PROGRAMS = frozenset(
    {"about", "blob", "chrome", "chrome-extension", "content", "data", "edge", "file", "filesystem"}
    | {"ftp", "ftps", "http", "intent", "jar", "javascript", "mailto", "ms-appx", "resource", "sms"}
    | {"tel", "vbscript", "view-source", "ws", "wss"}
)


@dataclass(frozen=True, slots=True)
class AskingClient:
    """`host` is where its document lies; empty where it registered itself, and anybody can."""

    id: str
    name: str
    redirect_uris: tuple[str, ...]
    host: str = ""

    def accepts(self, redirect_uri: str) -> bool:
        """To the letter, but for the port of a program on this computer (RFC 8252), which it does not know
        beforehand.
        """
        if redirect_uri in self.redirect_uris:
            return True
        if not is_redirect_address(redirect_uri):
            return False
        return is_loopback(redirect_uri) and _without_port(redirect_uri) in [
            _without_port(known) for known in self.redirect_uris if is_loopback(known)
        ]


class OAuthRefusal(Exception):
    """What a client is told in OAuth's own words (RFC 6749 5.2, RFC 7591 3.2.2): no fault of ours."""

    def __init__(self, error: str, description: str, *, status: int = 400) -> None:
        super().__init__(description)
        self.error = error
        self.description = description
        self.status = status


class OAuthClients:
    def __init__(self, rows: LoginStore, clients: HttpClients) -> None:
        self._rows = rows
        self._reach = Reach(lambda: clients.guarded, None)
        self._registered: dict[str, deque[float]] = {}
        self._documents: dict[str, tuple[float, AskingClient | None]] = {}

    async def register(self, metadata: Any, now: datetime) -> RegisteredClient:
        """`OAuthRefusal` when it cannot be told who it is or where it comes back."""
        client_id = f"dcr_{token_urlsafe(24)}"
        if not isinstance(metadata, dict):
            raise OAuthRefusal("invalid_client_metadata", "send a JSON object")
        told = cast("dict[str, Any]", metadata)
        client = read_client(client_id, told)
        _check_flow(told)
        facts = {"client_name": client.name, "redirect_uris": [*client.redirect_uris]}
        row = RegisteredClient(id=client_id, metadata=facts, created_at=now, expires_at=now + UNUSED_LASTS)
        await self._rows.add_client(row, now, _MOST_UNUSED)
        return row

    def count(self, address: str) -> None:
        """Anybody may register, so nobody often: a flood does not get as far as the store."""
        now = monotonic()
        if len(self._registered) > _MOST_ADDRESSES:
            self._registered.clear()
        moments = self._registered.setdefault(address, deque())
        while moments and now - moments[0] > A_MINUTE:
            moments.popleft()
        if len(moments) >= MOST_REGISTRATIONS:
            wait = A_MINUTE - (now - moments[0])
            raise too_many_registrations(wait)
        moments.append(now)

    async def find(self, client_id: str, now: datetime) -> AskingClient | None:
        """None for one that nobody knows, or whose document will not do."""
        if len(client_id) > _LONGEST_URL:
            return None
        if not client_id.startswith(("https://", "http://")):
            row = await self._rows.find_client(client_id, now)
            return None if row is None else read_client(row.id, row.metadata)
        known = self._documents.get(client_id)
        if known is not None and monotonic() - known[0] < (_FRESH if known[1] else _PATIENCE):
            return known[1]
        found = await self._fetched(client_id)
        if len(self._documents) >= _MOST_DOCUMENTS:
            self._documents.clear()
        self._documents[client_id] = (monotonic(), found)
        return found

    async def keep(self, client_id: str, now: datetime) -> None:
        """Somebody uses it: it is known for longer."""
        await self._rows.keep_client(client_id, now + USED_LASTS)

    async def _fetched(self, client_id: str) -> AskingClient | None:
        if not _is_document_address(client_id):
            return None
        try:
            told = await fetch_object(self._reach, client_id, largest=_LARGEST_DOCUMENT, patience=_PATIENCE)
            if told is None or told.get("client_id") != client_id:
                return None
            _check_flow(told)
            return read_client(client_id, told, host=_parts(client_id).hostname or "")
        except (DragomanError, OAuthRefusal):
            return None


def too_many_registrations(wait: float) -> LimitReached:
    return LimitReached("too many clients register from this address", retry_after=wait)


def read_client(client_id: str, metadata: Mapping[str, Any], host: str = "") -> AskingClient:
    """`OAuthRefusal` says what is wrong with what it says of itself."""
    told: Any = metadata.get("redirect_uris")
    uris = cast("list[Any]", told) if isinstance(told, list) else []
    if not 0 < len(uris) <= _MOST_REDIRECTS:
        raise OAuthRefusal("invalid_redirect_uri", f"redirect_uris must be a list of 1 to {_MOST_REDIRECTS}")
    for uri in uris:
        if not isinstance(uri, str) or not is_redirect_address(uri):
            raise OAuthRefusal(
                "invalid_redirect_uri",
                "each redirect URI is https, http on this computer, or a scheme of the program's own,"
                " without a fragment or a password",
            )
    name: Any = metadata.get("client_name")
    return AskingClient(
        client_id, cleaned_name(name if isinstance(name, str) else "", host), tuple(uris), host
    )


def cleaned_name(name: str, host: str) -> str:
    """What people are shown: no letter that hides or turns others around."""
    shown = " ".join(_UNPRINTABLE.sub("", name).split())[:_LONGEST_NAME].strip()
    shown = "".join(letter for letter in shown if letter.isprintable())
    return shown or host or "MCP client"


def is_redirect_address(address: str) -> bool:
    parts = _parts(address)
    if parts.fragment or "#" in address or "@" in parts.netloc or not address.isascii():
        return False
    if len(address) > _LONGEST_URL or not address.isprintable() or " " in address or "\\" in address:
        return False
    if parts.scheme == "https":
        return bool(parts.hostname)
    if parts.scheme == "http":
        return is_loopback(address)
    return bool(_SCHEME.fullmatch(parts.scheme)) and parts.scheme not in _NOT_OF_PROGRAMS


def is_loopback(address: str) -> bool:
    parts = _parts(address)
    return parts.scheme == "http" and parts.hostname in LOOPBACK and "@" not in parts.netloc


def place_of(redirect_uri: str) -> str:
    """Where the browser goes, as a person reads it."""
    parts = _parts(redirect_uri)
    return parts.netloc if parts.scheme in ("http", "https") else f"{parts.scheme}:"


def _check_flow(metadata: Mapping[str, Any]) -> None:
    """Fields that are left out are what we do anyway."""
    grants: Any = metadata.get("grant_types") or ["authorization_code"]
    responses: Any = metadata.get("response_types") or ["code"]
    if not isinstance(grants, list) or "authorization_code" not in grants:
        raise OAuthRefusal("invalid_client_metadata", "grant_types must have authorization_code")
    if not isinstance(responses, list) or "code" not in responses:
        raise OAuthRefusal("invalid_client_metadata", "response_types must have code")
    if metadata.get("token_endpoint_auth_method") == "private_key_jwt":
        raise OAuthRefusal("invalid_client_metadata", "token_endpoint_auth_method must be none")


def _is_document_address(address: str) -> bool:
    """https, at a path of its own; http only on this computer, which the guard lets nobody reach unasked."""
    parts = _parts(address)
    is_good = not parts.fragment and "#" not in address and "@" not in parts.netloc and address.isascii()
    segments = parts.path.split("/")
    is_good = is_good and parts.path not in ("", "/") and not {".", ".."} & {*segments}
    return is_good and address.isprintable() and (parts.scheme == "https" or is_loopback(address))


def _without_port(address: str) -> tuple[str | None, str, str]:
    parts = _parts(address)
    return parts.hostname, parts.path, parts.query


def _parts(address: str) -> SplitResult:
    try:
        parts = urlsplit(address)
        _ = parts.port
    except ValueError:
        return SplitResult("", "", "", "", "")
    return parts
