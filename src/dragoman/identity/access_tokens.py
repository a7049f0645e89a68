"""Access tokens of our own: short-lived JWTs (RFC 9068) that every process can sign and verify.

A token names the key that a person gave a client; what it is good for is what that key says now, so that to
revoke the key is to end its tokens. Signing keys are in the store, sealed, and are replaced by and by.
"""

import asyncio
import json
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from functools import cached_property
from secrets import token_hex, token_urlsafe
from time import monotonic, time
from typing import TYPE_CHECKING, Any

from dragoman.errors import KeyFault
from dragoman.identity.authenticated import AuthenticatedCaller
from dragoman.identity.keys import ApiKeyVerifier, hash_of
from dragoman.loading import LateModule
from dragoman.people import ApiKey
from dragoman.scope import ANY_EXTRA, ANY_TOOL, READ_ONLY
from dragoman.store.clock import Clock
from dragoman.store.protocols import LoginStore
from dragoman.store.records import SealedSigningKey
from dragoman.telemetry.logs import get_logger
from dragoman.vault import Vault

if TYPE_CHECKING:
    from joserfc import errors, jwk, jws, jwt
else:
    errors, jwk, jws, jwt = (LateModule(f"joserfc.{name}") for name in ("errors", "jwk", "jws", "jwt"))

READ_SCOPE, WRITE_SCOPE = "tools:read", "tools:write"
SCOPES = (READ_SCOPE, WRITE_SCOPE)
LIFE = 900
"""Seconds that an access token is good for."""
LEEWAY = 60
"""Seconds by which the clocks of two processes may differ."""
ALGORITHM = "ES256"
ROTATE = timedelta(days=30)
_KEPT = ROTATE + timedelta(days=1)
_TYPE = "at+jwt"
_PLACE = ("signing key",)
_ASK_EVERY = 1.0
_LOOK_EVERY = 60.0
_LONGEST = 4096
_MOST = 10_000

log = get_logger()


class TokenKeys:
    """What signs: the newest key of the store. The ones before it verify until the last token is over."""

    def __init__(self, rows: LoginStore, vault: Vault, clock: Clock) -> None:
        self._rows = rows
        self._vault = vault
        self._clock = clock
        self._keys: dict[str, tuple[SealedSigningKey, jwk.ECKey]] = {}
        self._asked_at = float("-inf")
        self._making = asyncio.Lock()

    async def current(self) -> "jwk.ECKey":
        is_old = monotonic() - self._asked_at >= _LOOK_EVERY  # another process may have made a newer one
        if is_old or (key := self._fresh()) is None:
            async with self._making:
                await self._read()
                key = self._fresh() or await self._make()
        return key

    async def find(self, key_id: str) -> "jwk.ECKey | None":
        """Another process may have made it: a store is asked, but not by everybody who invents a name."""
        if key_id not in self._keys and monotonic() - self._asked_at >= _ASK_EVERY:
            await self._read()
        found = self._keys.get(key_id)
        return found[1] if found else None

    async def public(self) -> Sequence[dict[str, Any]]:
        """For who verifies elsewhere (RFC 7517)."""
        await self.current()
        await self._read()
        facts = {"use": "sig", "alg": ALGORITHM}
        return [{**key.as_dict(private=False), **facts} for _, key in self._keys.values()]

    async def rotate(self) -> str:
        """A new key signs from now on; its id."""
        async with self._making:
            return (await self._make()).kid or ""

    async def tidy(self) -> None:
        await self._rows.forget_signing_keys(self._clock.now() - _KEPT)

    def _fresh(self) -> "jwk.ECKey | None":
        for row, key in self._keys.values():
            if self._clock.now() - row.created_at < ROTATE:
                return key
        return None

    async def _read(self) -> None:
        self._asked_at = monotonic()
        keys: dict[str, tuple[SealedSigningKey, jwk.ECKey]] = {}
        oldest = self._clock.now() - _KEPT
        for row in await self._rows.signing_keys():
            if row.created_at < oldest:
                continue
            try:
                facts = json.loads(self._vault.open_bytes(row.sealed, *_PLACE, row.id))
            except KeyFault:  # sealed by a master key that is gone: what it signed is not accepted any more
                log.warning("signing_key.unreadable", key=row.id)
                continue
            keys[row.id] = (row, jwk.ECKey.import_key(facts))
        self._keys = keys

    async def _make(self) -> "jwk.ECKey":
        key_id = f"drg-{token_hex(8)}"
        key = jwk.ECKey.generate_key("P-256", {"kid": key_id}, private=True)
        sealed = self._vault.seal_bytes(json.dumps(key.as_dict(private=True)).encode(), *_PLACE, key_id)
        row = SealedSigningKey(id=key_id, sealed=sealed, created_at=self._clock.now())
        await self._rows.add_signing_key(row)
        self._keys = {key_id: (row, key), **self._keys}
        return key


@dataclass(slots=True)
class _Verified:
    """A token whose signature was good; `admission` is what `base`, the key's own, is with its scope."""

    key: str
    client: str
    audience: str
    expires: float
    only_reads: bool
    base: AuthenticatedCaller | None = None
    admission: AuthenticatedCaller | None = None


class AccessTokens:
    def __init__(self, keys: ApiKeyVerifier, signing: TokenKeys) -> None:
        self._keys = keys
        self.signing = signing
        self._verified: dict[str, _Verified] = {}

    @cached_property
    def _registry(self) -> "jws.JWSRegistry":
        return jws.JWSRegistry(algorithms=[ALGORITHM], strict_check_header=False)

    async def mint(self, key: ApiKey, issuer: str, scopes: Sequence[str]) -> str:
        """For what a person allowed a client."""
        assert key.client is not None
        now, signing = int(time()), await self.signing.current()
        claims = {
            "iss": issuer,
            "sub": key.user,
            "aud": key.client.audience,
            "client_id": key.client.id,
            "scope": " ".join(scopes),
            "iat": now,
            "exp": now + LIFE,
            "jti": token_urlsafe(12),
            "grant": key.id,
        }
        header = {"alg": ALGORITHM, "typ": _TYPE, "kid": signing.kid}
        return jwt.encode(header, claims, signing, registry=self._registry)

    async def find(self, token: str, *, is_under_way: bool = False) -> AuthenticatedCaller | None:
        """None for whatever reason it opens nothing. A request that is under way when its token is over may
        be finished: it ends with the key.
        """
        verified = await self._verify(token)
        if verified is None or (not is_under_way and verified.expires <= time()):
            return None
        found = await self._keys.find_by_id(verified.key)
        if found is None:
            return None
        key, base = found
        client = key.client
        if client is None or (client.id, client.audience) != (verified.client, verified.audience):
            return None
        if verified.base is not base or verified.admission is None:
            verified.base, verified.admission = base, _narrowed(base) if verified.only_reads else base
        return verified.admission

    async def claims(self, token: str) -> dict[str, Any] | None:
        """What a token of ours says, however old it is; None for one that is not ours."""
        if len(token) > _LONGEST or token.count(".") != 2:
            return None
        try:
            header = jws.extract_compact(token.encode(), registry=self._registry).headers()
            key_id = header.get("kid")
            if header.get("typ") != _TYPE or header.get("alg") != ALGORITHM or not isinstance(key_id, str):
                return None
            key = await self.signing.find(key_id)
            return None if key is None else jwt.decode(token, key, registry=self._registry).claims
        except (errors.JoseError, ValueError, TypeError, RecursionError):
            return None

    async def _verify(self, token: str) -> _Verified | None:
        digest = hash_of(token)
        if known := self._verified.get(digest):
            return known
        claims = await self.claims(token)
        if claims is None or not claims["aud"].startswith(f"{claims['iss']}/"):
            return None  # who gives tokens gives them for their own addresses
        verified = _Verified(
            claims["grant"],
            claims["client_id"],
            claims["aud"],
            claims["exp"] + LEEWAY,
            WRITE_SCOPE not in claims["scope"].split(),
        )
        if len(self._verified) >= _MOST:
            now = time()
            self._verified = {one: known for one, known in self._verified.items() if known.expires > now}
            while len(self._verified) >= _MOST:
                del self._verified[next(iter(self._verified))]
        self._verified[digest] = verified
        return verified


def _narrowed(admission: AuthenticatedCaller) -> AuthenticatedCaller:
    return replace(admission, caller=admission.caller.narrowed((ANY_TOOL, ANY_EXTRA, READ_ONLY)))
