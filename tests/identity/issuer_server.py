"""A small issuer of tokens on loopback: discovery, keys that rotate, and everything it may do wrong."""

import asyncio
import base64
import hmac
import json
import time
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from joserfc import jwt
from joserfc.jwk import ECKey, OKPKey, RSAKey

Key = RSAKey | ECKey | OKPKey
AUDIENCE = "https://dragoman.test"
ALGORITHMS = ["RS256", "PS256", "ES256", "EdDSA", "RS512"]


class IssuerServer:
    """Counts what it is asked. `keys` are those it publishes; `is_down` answers everything with 503."""

    def __init__(self) -> None:
        self.url = ""
        self.said_issuer: str | None = None
        self.keys: list[Any] = []
        self.is_down = False
        self.asked = 0
        self.gate = asyncio.Event()
        self.gate.set()

    def make_key(self, kind: str = "RS256", kid: str = "one") -> Key:
        parameters: Any = {"kid": kid, "use": "sig"}
        if kind == "ES256":
            return ECKey.generate_key("P-256", parameters)
        if kind == "EdDSA":
            return OKPKey.generate_key("Ed25519", parameters)
        return RSAKey.generate_key(2048, parameters)

    def publish(self, *keys: Key) -> None:
        self.keys = [key.as_dict(private=False) for key in keys]

    def claims(self, **changes: Any) -> dict[str, Any]:
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "s-1", "iat": now, "exp": now + 300, **changes}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, key: Key, algorithm: str = "RS256", **changes: Any) -> str:
        header = {"alg": algorithm, "kid": key.kid}
        return jwt.encode(header, self.claims(**changes), key, algorithms=ALGORITHMS)

    async def discovery(self, request: web.Request) -> web.Response:
        self.asked += 1
        await self.gate.wait()
        if self.is_down:
            return web.Response(status=503)
        return web.json_response(
            {"issuer": self.said_issuer or self.url, "jwks_uri": f"{self.url}/jwks", "other": [1]}
        )

    async def jwks(self, request: web.Request) -> web.Response:
        return web.json_response({"keys": self.keys})


def unsigned(claims: dict[str, Any], header: dict[str, Any]) -> str:
    """A token as `none` makes it."""
    parts = [_encoded(json.dumps(part).encode()) for part in (header, claims)]
    return b".".join([*parts, b""]).decode()


def with_secret(claims: dict[str, Any], header: dict[str, Any], secret: bytes) -> str:
    """A token as HS256 makes it, whatever the secret is."""
    signed = unsigned(claims, header).rstrip(".")
    return f"{signed}.{_encoded(hmac.digest(secret, signed.encode(), 'sha256')).decode()}"


def _encoded(part: bytes) -> bytes:
    return base64.urlsafe_b64encode(part).rstrip(b"=")


@asynccontextmanager
async def open_issuer() -> AsyncGenerator[IssuerServer]:
    server = IssuerServer()
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", server.discovery)
    app.router.add_get("/jwks", server.jwks)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
