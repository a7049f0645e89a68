"""A small real authorisation server (OAuth 2.1) and an MCP server that wants its tokens, in the test's loop.

Tests steer them by attributes and read counters. Tokens are JWTs, so that the MCP server checks them alone.
"""

import asyncio
import json
import time
from base64 import b64decode, urlsafe_b64encode
from collections import Counter
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import unquote, urlencode

import uvicorn
from aiohttp import web
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import OctKey
from starlette.types import ASGIApp, Receive, Scope, Send

from servers.ports import listen, served
from servers.sdk_server import build


class AuthorizationServer:
    """Approves at once. `path` makes an issuer with a path."""

    def __init__(self, path: str = "") -> None:
        self.path = path
        self.origin = ""
        self.key = OctKey.generate_key(256)
        self.expires_in: float | None = 3600
        self.rotates = True
        self.sends_iss = True
        self.says_iss: str | None = None
        self.registers = True
        self.takes_documents = False
        self.checks_pkce = True
        self.token_delay = 0.0
        self.is_down = False
        self.counts: Counter[str] = Counter()
        self.clients: dict[str, dict[str, Any]] = {}
        self.codes: dict[str, dict[str, str]] = {}
        self.refresh: dict[str, dict[str, str]] = {}
        self.asked: list[dict[str, str]] = []
        self.given: list[str] = []
        self.revoked: set[str] = set()
        self.assertions: set[str] = set()

    @property
    def issuer(self) -> str:
        return f"{self.origin}{self.path}"

    def app(self) -> web.Application:
        app = web.Application()
        inserted = f"/.well-known/oauth-authorization-server{self.path}"
        app.router.add_get(inserted, self._metadata)
        app.router.add_post("/register", self._register)
        app.router.add_get("/authorize", self._authorize)
        app.router.add_post("/token", self._token)
        app.router.add_post("/revoke", self._revoke)
        return app

    def accepts(self, token: str, resource: str) -> bool:
        try:
            claims = jwt.decode(token, self.key).claims
        except (JoseError, ValueError):
            return False
        is_alive = claims["exp"] is None or claims["exp"] > time.time()
        return is_alive and claims["aud"] == resource and claims["jti"] not in self.revoked

    def scopes_of(self, token: str) -> set[str]:
        return set(jwt.decode(token, self.key).claims["scope"].split())

    def revoke_all(self) -> None:
        """Every token given so far is dead; what is refreshed is fresh."""
        self.revoked |= {jwt.decode(token, self.key).claims["jti"] for token in self.given}

    async def _metadata(self, request: web.Request) -> web.Response:
        self.counts["metadata"] += 1
        facts: dict[str, Any] = {
            "issuer": self.issuer,
            "authorization_endpoint": f"{self.origin}/authorize",
            "token_endpoint": f"{self.origin}/token",
            "revocation_endpoint": f"{self.origin}/revoke",
            "token_endpoint_auth_methods_supported": ["none", "client_secret_basic"],
            "authorization_response_iss_parameter_supported": self.sends_iss,
            "client_id_metadata_document_supported": self.takes_documents,
        }
        if self.checks_pkce:
            facts["code_challenge_methods_supported"] = ["S256"]
        if self.registers:
            facts["registration_endpoint"] = f"{self.origin}/register"
        return web.json_response(facts)

    async def _register(self, request: web.Request) -> web.Response:
        self.counts["register"] += 1
        asked = await request.json()
        name = f"client-{token_urlsafe(8)}"
        self.clients[name] = asked
        return web.json_response({**asked, "client_id": name}, status=201)

    async def _authorize(self, request: web.Request) -> web.Response:
        self.counts["authorize"] += 1
        query = dict(request.query)
        self.asked.append(query)
        client = self.clients.get(query["client_id"])
        is_document = self.takes_documents and query["client_id"].startswith("https://")
        if not is_document and (client is None or query["redirect_uri"] not in client["redirect_uris"]):
            return web.Response(status=400, text="unknown client or redirect")
        code = token_urlsafe(16)
        self.codes[code] = query
        back = {"code": code, "state": query["state"]}
        if self.sends_iss or self.says_iss:
            back["iss"] = self.says_iss or self.issuer
        raise web.HTTPFound(f"{query['redirect_uri']}?{urlencode(back)}")

    async def _token(self, request: web.Request) -> web.Response:
        form = {name: str(value) for name, value in (await request.post()).items()}
        grant = form.get("grant_type", "")
        self.counts[grant] += 1
        await asyncio.sleep(self.token_delay)
        if self.is_down:
            return web.Response(status=503)
        if grant == "authorization_code":
            return self._by_code(form)
        if grant == "refresh_token":
            return self._by_refresh(form)
        return self._by_client(request, form)

    def _by_code(self, form: dict[str, str]) -> web.Response:
        query = self.codes.pop(form["code"], None)
        digest = urlsafe_b64encode(sha256(form["code_verifier"].encode()).digest()).decode().rstrip("=")
        is_right = (
            query is not None
            and digest == query["code_challenge"]
            and form["redirect_uri"] == query["redirect_uri"]
            and form["client_id"] == query["client_id"]
            and form["resource"] == query["resource"]
        )
        if query is None or not is_right:
            return _no("invalid_grant")
        return self._give(form["resource"], form["client_id"], scope=query.get("scope", ""))

    def _by_refresh(self, form: dict[str, str]) -> web.Response:
        known = self.refresh.get(form["refresh_token"])
        if known is None or known["client"] != form.get("client_id"):
            return _no("invalid_grant")
        if self.rotates:
            del self.refresh[form["refresh_token"]]
        return self._give(known["resource"], known["client"], None if self.rotates else "", known["scope"])

    def _by_client(self, request: web.Request, form: dict[str, str]) -> web.Response:
        if "client_assertion" in form:
            return self._by_assertion(form)
        scheme, _, word = request.headers.get("Authorization", "").partition(" ")
        name, _, secret = b64decode(word).decode().partition(":") if scheme == "Basic" else ("", "", "")
        client = self.clients.get(unquote(name))
        if client is None or client.get("secret") != unquote(secret):
            return _no("invalid_client", 401)
        return self._give(form["resource"], name, "", form.get("scope", ""))

    def _by_assertion(self, form: dict[str, str]) -> web.Response:
        """RFC 7523: signed by the client's key, for this issuer, once."""
        name = form["client_id"]
        try:
            key = self.clients[name]["key"]
            claims = jwt.decode(form["client_assertion"], key, algorithms=["RS256", "ES256", "EdDSA"]).claims
        except (JoseError, ValueError, KeyError):
            return _no("invalid_client", 401)
        is_right = (
            form["client_assertion_type"] == "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
            and claims["iss"] == claims["sub"] == name
            and claims["aud"] == self.issuer
            and time.time() < claims["exp"] <= time.time() + 300
            and claims["jti"] not in self.assertions
        )
        self.assertions.add(claims["jti"])
        is_bare = "client_secret" not in form
        return (
            self._give(form["resource"], name, "", form.get("scope", ""))
            if is_right and is_bare
            else _no("invalid_client", 401)
        )

    def _give(self, resource: str, client: str, refresh: str | None = None, scope: str = "") -> web.Response:
        until = None if self.expires_in is None else time.time() + self.expires_in
        claims = {"iss": self.issuer, "aud": resource, "exp": until, "jti": token_urlsafe(8), "scope": scope}
        access = jwt.encode({"alg": "HS256"}, claims, self.key)
        self.given.append(access)
        answer: dict[str, Any] = {"access_token": access, "token_type": "Bearer"}
        if self.expires_in is not None:
            answer["expires_in"] = self.expires_in
        if refresh is None:
            answer["refresh_token"] = token_urlsafe(24)
            self.refresh[answer["refresh_token"]] = {"client": client, "resource": resource, "scope": scope}
        return web.json_response(answer)

    async def _revoke(self, request: web.Request) -> web.Response:
        self.counts["revoke"] += 1
        self.refresh.pop(str((await request.post()).get("token")), None)
        return web.Response()


class ProtectedServer:
    """The SDK's MCP server behind a check of tokens. `seen` holds the headers of every request.

    `for_calls` is a scope that calls of tools need beside a token.
    """

    def __init__(self, authorization: AuthorizationServer) -> None:
        self.authorization = authorization
        self.named_issuer: str | None = None
        self.origin = ""
        self.speaks_for: str | None = None
        self.accepts_nobody = False
        self.for_calls: str | None = None
        self.seen: list[dict[str, str]] = []
        self._app: ASGIApp = build().streamable_http_app(json_response=True)

    @property
    def url(self) -> str:
        return f"{self.origin}/mcp"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        if scope["path"] == "/.well-known/oauth-protected-resource/mcp":
            issuer = self.named_issuer or self.authorization.issuer
            facts = {"resource": self.speaks_for or self.url, "authorization_servers": [issuer]}
            await _answer(send, 200, json.dumps(facts).encode(), {"content-type": "application/json"})
            return
        headers = {name.decode().lower(): value.decode() for name, value in scope["headers"]}
        self.seen.append(headers)
        token = headers.get("authorization", "").removeprefix("Bearer ")
        if self.authorization.accepts(token, self.url) and not self.accepts_nobody:
            needed = (self.for_calls or "") if headers.get("mcp-method") == "tools/call" else ""
            if set(needed.split()) <= self.authorization.scopes_of(token):
                await self._app(scope, receive, send)
            else:
                said = f'Bearer error="insufficient_scope", scope="{needed}"'
                await _answer(send, 403, b"", {"www-authenticate": said})
            return
        place = f"{self.origin}/.well-known/oauth-protected-resource/mcp"
        await _answer(
            send, 401, b"", {"www-authenticate": f'Bearer resource_metadata="{place}", scope="use"'}
        )


async def _answer(send: Send, status: int, body: bytes, headers: dict[str, str]) -> None:
    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    raw.append((b"content-length", str(len(body)).encode()))
    await send({"type": "http.response.start", "status": status, "headers": raw})
    await send({"type": "http.response.body", "body": body})


def _no(error: str, status: int = 400) -> web.Response:
    return web.json_response({"error": error, "error_description": "said the test"}, status=status)


@asynccontextmanager
async def open_authorization_server(path: str = "") -> AsyncGenerator[AuthorizationServer]:
    server = AuthorizationServer(path)
    runner = web.AppRunner(server.app(), access_log=None, shutdown_timeout=0.1)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        server.origin = f"http://127.0.0.1:{runner.addresses[0][1]}"
        yield server
    finally:
        await runner.cleanup()


@asynccontextmanager
async def open_protected_server(authorization: AuthorizationServer) -> AsyncGenerator[ProtectedServer]:
    protected = ProtectedServer(authorization)
    listener = listen()
    protected.origin = f"http://127.0.0.1:{listener.getsockname()[1]}"
    config = uvicorn.Config(protected, lifespan="on", log_config=None, timeout_graceful_shutdown=1)
    async with served(uvicorn.Server(config), listener):
        yield protected
