"""An issuer that signs people in: authorization code with PKCE, checked as a real one checks it."""

import html
from base64 import urlsafe_b64encode
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote, urlencode

from aiohttp import encode_basic_auth, web

from identity.issuer_server import IssuerServer

CLIENT = "dragoman-console"


class SignInServer(IssuerServer):
    """`changes` are made to the claims of the next ID tokens; `refuses` is the error that it sends back."""

    def __init__(self, secret: str | None = None) -> None:
        super().__init__()
        self.secret = secret
        self.key = self.make_key()
        self.publish(self.key)
        self.changes: dict[str, Any] = {}
        self.refuses: str | None = None
        self.codes: dict[str, dict[str, str]] = {}
        self.exchanged = 0

    async def discovery(self, request: web.Request) -> web.Response:
        if self.is_down:
            return web.Response(status=503)
        return web.json_response(
            {
                "issuer": self.url,
                "jwks_uri": f"{self.url}/jwks",
                "authorization_endpoint": f"{self.url}/authorize",
                "token_endpoint": f"{self.url}/token",
            }
        )

    async def authorize(self, request: web.Request) -> web.Response:
        """A page on which the person says who they are."""
        asked = dict(request.query)
        assert asked["response_type"] == "code"
        assert asked["client_id"] == CLIENT
        assert asked["code_challenge_method"] == "S256"
        assert "openid" in asked["scope"].split()
        code = token_urlsafe(12)
        self.codes[code] = asked
        answer = {"state": asked["state"], "iss": self.url}
        answer |= {"error": self.refuses} if self.refuses else {"code": code}
        back = html.escape(f"{asked['redirect_uri']}?{urlencode(answer)}")
        page = f"<!doctype html><link rel=icon href=data:,><title>Who?</title><a href='{back}'>I am Ada</a>"
        return web.Response(text=page, content_type="text/html")

    async def exchange(self, request: web.Request) -> web.Response:
        form = await request.post()
        asked = self.codes.pop(str(form["code"]), None)
        challenge = urlsafe_b64encode(sha256(str(form["code_verifier"]).encode()).digest()).rstrip(b"=")
        is_ours = (
            asked is not None
            and form["grant_type"] == "authorization_code"
            and form["client_id"] == CLIENT
            and form["redirect_uri"] == asked["redirect_uri"]
            and challenge.decode() == asked["code_challenge"]
            and self._knows(request)
        )
        if asked is None or not is_ours:
            return web.json_response({"error": "invalid_grant"}, status=400)
        self.exchanged += 1
        facts = {"aud": CLIENT, "nonce": asked["nonce"], "preferred_username": "ada", **self.changes}
        return web.json_response({"token_type": "Bearer", "id_token": self.token(self.key, **facts)})

    def _knows(self, request: web.Request) -> bool:
        if self.secret is None:
            return "Authorization" not in request.headers
        encoded = encode_basic_auth(CLIENT, quote(self.secret, safe=""))  # RFC 6749, 2.3.1
        return request.headers.get("Authorization") == encoded


@asynccontextmanager
async def open_sign_in(secret: str | None = None) -> AsyncGenerator[SignInServer]:
    server = SignInServer(secret)
    app = web.Application()
    app.router.add_get("/.well-known/openid-configuration", server.discovery)
    app.router.add_get("/jwks", server.jwks)
    app.router.add_get("/authorize", server.authorize)
    app.router.add_post("/token", server.exchange)
    runner = web.AppRunner(app, shutdown_timeout=0.1)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    server.url = f"http://127.0.0.1:{runner.addresses[0][1]}"
    try:
        yield server
    finally:
        await runner.cleanup()
