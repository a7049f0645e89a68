"""Tokens as they are kept (sealed, with their absolute expiry) and as a token endpoint gives them."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

from pydantic import SecretStr

from dragoman.connections.http_clients import Reach
from dragoman.connections.oauth.clients import OAuthClient
from dragoman.connections.oauth.requests import Json, send_form
from dragoman.errors import ProtocolFault

_EARLY = 60.0
_LONGEST_LIFE = 10 * 365 * 86400.0
_SHORT_LIFE_SHARE = 0.2


class TokenRefused(Exception):
    """The authorisation server said no, in the words of RFC 6749."""

    def __init__(self, error: str, description: str) -> None:
        super().__init__(error)
        self.error = error
        self.description = description

    @property
    def said(self) -> str:
        return f"{self.error}: {self.description}" if self.description else self.error


@dataclass(frozen=True, slots=True, kw_only=True)
class OAuthTokens:
    """For one server, from one issuer, to one client. `expires_at` None: the issuer does not say.

    `wanted` are the scopes that the server has asked for since: the next authorisation asks for them, too.
    """

    access: SecretStr
    refresh: SecretStr | None
    scope: str | None
    server: str
    resource: str | None
    issuer: str
    client: OAuthClient
    token_endpoint: str
    revocation_endpoint: str | None
    obtained_at: datetime
    expires_at: datetime | None
    authorised_at: datetime
    wanted: tuple[str, ...] = ()

    @property
    def granted(self) -> frozenset[str]:
        return frozenset((self.scope or "").split())

    def asked_for(self, scopes: tuple[str, ...]) -> tuple[str, ...]:
        """Those, what was granted before, and what the server wants."""
        return tuple(dict.fromkeys((*scopes, *sorted(self.granted), *self.wanted))) if self.wanted else scopes

    def is_valid(self, now: datetime) -> bool:
        return self.expires_at is None or now < self.expires_at

    def is_due(self, now: datetime) -> bool:
        """Whether it is time to renew: a minute early, or the last fifth of a short life."""
        if self.expires_at is None:
            return False
        life = (self.expires_at - self.obtained_at).total_seconds()
        return now >= self.expires_at - timedelta(seconds=min(_EARLY, life * _SHORT_LIFE_SHARE))

    def sealed_form(self) -> SecretStr:
        """For the vault only."""
        table = {name: getattr(self, name) for name in self.__slots__}
        table["client"] = self.client.as_table()
        return SecretStr(json.dumps(table, default=_plain))

    @classmethod
    def opened(cls, value: SecretStr) -> "OAuthTokens":
        table: dict[str, Any] = json.loads(value.get_secret_value())
        table["client"] = OAuthClient.from_table(table["client"])
        for name in ("access", "refresh"):
            table[name] = SecretStr(table[name]) if table[name] else None
        table["wanted"] = tuple(table.get("wanted", ()))
        for name in ("obtained_at", "expires_at", "authorised_at"):
            table[name] = datetime.fromisoformat(table[name]) if table[name] else None
        return cls(**table)

    def renewed(self, answer: Json) -> "OAuthTokens":
        """With what a refresh gave; a server that does not rotate its refresh token leaves it out."""
        now = datetime.now(UTC)
        return replace(
            self,
            access=access_in(answer),
            refresh=secret_in(answer, "refresh_token") or self.refresh,
            scope=_text(answer, "scope") or self.scope,
            obtained_at=now,
            expires_at=expiry_in(answer, now),
        )


async def ask_tokens(reach: Reach, endpoint: str, form: Mapping[str, str], client: OAuthClient) -> Json:
    """`TokenRefused` for a no, `Unreachable` when nobody can tell."""
    signed = dict(form)
    headers = client.sign(signed)
    status, answer = await send_form(reach, endpoint, signed, headers)
    if status == 200 and "error" not in answer:
        kind = _text(answer, "token_type") or "bearer"
        if kind.lower() != "bearer":
            raise ProtocolFault(f"{endpoint} gives tokens of a kind that is not supported: {kind[:50]}")
        return answer
    error = _text(answer, "error") or f"status {status}"
    raise TokenRefused(error[:100], (_text(answer, "error_description") or "")[:300])


def access_in(answer: Json) -> SecretStr:
    if (found := secret_in(answer, "access_token")) is None:
        raise ProtocolFault("the authorisation server answered without an access token")
    if not found.get_secret_value().isascii() or not found.get_secret_value().isprintable():
        raise ProtocolFault("the authorisation server gave a token that is none")
    return found


def secret_in(answer: Json, name: str) -> SecretStr | None:
    found = _text(answer, name)
    return SecretStr(found) if found else None


def expiry_in(answer: Json, now: datetime) -> datetime | None:
    try:
        seconds = float(answer["expires_in"])
    except (KeyError, TypeError, ValueError):
        return None
    return now + timedelta(seconds=min(max(seconds, 0.0), _LONGEST_LIFE)) if seconds == seconds else None


def _text(answer: Json, name: str) -> str | None:
    value = answer.get(name)
    return value if isinstance(value, str) else None


def _plain(value: Any) -> str:
    return value.get_secret_value() if isinstance(value, SecretStr) else value.isoformat()
