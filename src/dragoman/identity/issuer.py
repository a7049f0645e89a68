"""The outside issuer of tokens: where its keys are (OIDC discovery) and which they are now (JWKS).

Keys once fetched are kept while the issuer is down. Knows no user. Who opens the session closes it.
"""

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING, Any, cast
from urllib.parse import urlsplit

from dragoman.errors import InvalidConfig, Unreachable
from dragoman.identity.groups import GroupTable
from dragoman.loading import LateModule
from dragoman.remote_data import parse_json, read_body
from dragoman.scope import LOCAL_WORKSPACE
from dragoman.telemetry.logs import get_logger

if TYPE_CHECKING:
    import aiohttp
    from joserfc import errors, jwk

    PublicKey = jwk.RSAKey | jwk.ECKey | jwk.OKPKey
else:
    aiohttp, errors, jwk = LateModule("aiohttp"), LateModule("joserfc.errors"), LateModule("joserfc.jwk")

# The kind of key that each accepted algorithm needs. No secret is ever shared with an issuer.
# Each with the class of its keys.
ALGORITHMS = {"RS256": "RSAKey", "PS256": "RSAKey", "ES256": "ECKey", "EdDSA": "OKPKey"}
_MOST_BYTES = 1024 * 1024
_MOST_KEYS = 100
_LOOPBACK = ("localhost", "127.0.0.1", "::1")

log = get_logger()


@dataclass(frozen=True, slots=True, kw_only=True)
class Issuer:
    """`url` is compared with what the issuer says of itself and in its tokens, to the letter.

    Its users belong to `workspace`, or to the one that their token names in `workspace_claim`; with `groups`
    only those of them come in whom the table names. As `client_id` we ask it to sign people in. Seconds: a
    key that is not known makes us ask again, but not within `patience`; known ones are checked each `age`.
    """

    url: str
    audience: str
    workspace: str = LOCAL_WORKSPACE
    workspace_claim: str | None = None
    groups: GroupTable | None = None
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    patience: float = 30.0
    age: float = 3600.0
    timeout: float = 5.0

    def check(self) -> None:
        if not is_safe(self.url):
            raise InvalidConfig(
                f"the issuer {self.url[:200]!r} is no https address",
                hint="set DRAGOMAN_OIDC_ISSUER to the address that its tokens have in 'iss'",
            )


class SigningKeys:
    def __init__(self, issuer: Issuer, session: "aiohttp.ClientSession") -> None:
        self._issuer = issuer
        self._session = session
        self._keys: tuple[PublicKey, ...] = ()
        self._asked_at = self._got_at = float("-inf")
        self._asking = asyncio.Lock()
        self.edition = 0

    async def find(self, key_id: str | None, algorithm: str) -> "PublicKey | None":
        """`Unreachable` while the issuer has told no key at all."""
        await self.refresh_when_old()
        if key := self._find(key_id, algorithm):
            return key
        await self._refresh(self._issuer.patience)
        return self._find(key_id, algorithm)

    async def refresh_when_old(self) -> None:
        """A key that the issuer has withdrawn is no longer accepted after `age`."""
        patience = self._issuer.patience
        if not self._keys:
            await self._refresh(min(1.0, patience))
        elif monotonic() - self._got_at >= self._issuer.age and not self._asking.locked():
            await self._refresh(patience)

    def _find(self, key_id: str | None, algorithm: str) -> "PublicKey | None":
        kind: type[PublicKey] = getattr(jwk, ALGORITHMS[algorithm])
        fitting = [
            key
            for key in self._keys
            if isinstance(key, kind)
            and key.get("use") in (None, "sig")
            and key.get("alg") in (None, algorithm)
            and (key_id is None or key.get("kid") == key_id)
        ]
        return fitting[0] if len(fitting) == 1 else None

    async def _refresh(self, patience: float) -> None:
        asked_at = self._asked_at
        async with self._asking:
            if self._asked_at != asked_at or monotonic() - asked_at < patience:
                if not self._keys:
                    raise self._silent()
                return  # somebody else has just asked
            self._asked_at = monotonic()
            try:
                keys = await self._fetch()
            except (aiohttp.ClientError, TimeoutError, ValueError, OSError) as error:
                log.warning("issuer.failed", issuer=self._issuer.url, error=str(error)[:300])
                if not self._keys:
                    raise self._silent() from None
                return
            if [key.as_dict() for key in keys] != [key.as_dict() for key in self._keys]:
                self.edition += 1
            self._keys, self._got_at = keys, monotonic()

    def _silent(self) -> Unreachable:
        return Unreachable(
            "the issuer of this token cannot be asked for its keys", hint="try again in a moment"
        )

    async def _fetch(self) -> "tuple[PublicKey, ...]":
        facts = await read_document(self._issuer, self._session)
        address = facts.get("jwks_uri")
        if not isinstance(address, str) or not is_safe(address):
            raise ValueError("the issuer's document has no safe jwks_uri")
        listed = (await ask(self._issuer, self._session, address)).get("keys")
        if not isinstance(listed, list):
            raise ValueError("the issuer's keys are no list")  # noqa: TRY004 - one kind for one fault
        found = [_imported(key) for key in cast("list[Any]", listed)[:_MOST_KEYS]]
        return tuple(key for key in found if key is not None)


async def read_document(issuer: Issuer, session: "aiohttp.ClientSession") -> dict[str, Any]:
    """What the issuer says of itself (OIDC discovery); `ValueError` when it speaks for another."""
    facts = await ask(issuer, session, issuer.url.rstrip("/") + "/.well-known/openid-configuration")
    if facts.get("issuer") != issuer.url:
        raise ValueError("the issuer's document names another issuer")
    return facts


async def ask(
    issuer: Issuer,
    session: "aiohttp.ClientSession",
    address: str,
    form: Mapping[str, str] | None = None,
    headers: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """An object from the issuer, limited in size and time; `form` is posted."""
    limit = aiohttp.ClientTimeout(total=issuer.timeout)
    method = "GET" if form is None else "POST"
    async with session.request(
        method, address, data=form, headers=headers, allow_redirects=False, timeout=limit
    ) as response:
        if response.status != 200:
            raise ValueError(f"the issuer answered with status {response.status}")
        facts = parse_json(await read_body(response, _MOST_BYTES))
    if not isinstance(facts, dict):
        raise ValueError("the issuer's answer is no object")  # noqa: TRY004 - one kind for one fault
    return cast("dict[str, Any]", facts)


def _imported(facts: Any) -> "PublicKey | None":
    """None for a key that is of no use here: a shared secret, an unknown kind, a broken one."""
    try:
        key = jwk.JWKRegistry.import_key(facts)
    except (errors.JoseError, ValueError, TypeError, KeyError, AttributeError):
        return None
    return key if isinstance(key, jwk.RSAKey | jwk.ECKey | jwk.OKPKey) else None


def is_safe(address: str) -> bool:
    """Encrypted on its way, or never on one."""
    try:
        parts = urlsplit(address)
        return bool(parts.hostname) and (
            parts.scheme == "https" or (parts.scheme == "http" and parts.hostname in _LOOPBACK)
        )
    except ValueError:
        return False
