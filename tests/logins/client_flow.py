"""A client that logs in by OAuth, written from the RFCs: its steps one by one, so that each can be wrong."""

import json
from base64 import urlsafe_b64encode
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from secrets import token_urlsafe
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit

import aiohttp

from api.live import Live, Reply

CALLBACK = "http://127.0.0.1:33418/callback"
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": 1,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    },
}


def rpc(method: str, **params: Any) -> dict[str, Any]:
    """A request of the 2026 era, which needs no session."""
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    return {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": meta}}


async def asked(live: Live, method: str, path: str, **options: Any) -> Reply:
    """Without any credential, and without following where it leads."""
    async with (
        aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
        session.request(method, live.url + path, allow_redirects=False, **options) as response,
    ):
        return Reply(response.status, response.headers, await response.read())


@dataclass
class Person:
    """Somebody at a browser, signed in to the console."""

    live: Live
    cookie: str
    csrf: str = ""

    @classmethod
    async def signed_in(cls, live: Live, key: str | None = None) -> "Person":
        reply = await asked(live, "POST", "/sign-in", data={"key": key or live.token, "next": "/clients"})
        assert reply.status == 303, reply.body
        person = cls(live, reply.headers["Set-Cookie"].partition(";")[0])
        page = await asked(live, "GET", "/clients", headers={"Cookie": person.cookie})
        person.csrf = page.body.decode().partition('data-csrf="')[2].partition('"')[0]
        return person

    async def look(self, query: str) -> Reply:
        return await asked(self.live, "GET", f"/oauth/authorize?{query}", headers={"Cookie": self.cookie})

    async def answer(self, query: str, **choice: Any) -> Reply:
        headers = {"Cookie": self.cookie, "X-CSRF-Token": self.csrf}
        form = {"answer": "allow", "use": "all", "do": "write", "period": "day", **choice}
        return await asked(self.live, "POST", f"/oauth/authorize?{query}", headers=headers, data=form)


@dataclass
class Client:
    """`resource` is what its tokens are to be for."""

    live: Live
    resource: str = "/mcp"
    id: str = ""
    verifier: str = field(default_factory=lambda: token_urlsafe(48))
    tokens: dict[str, Any] = field(default_factory=dict[str, Any])

    async def register(self, **metadata: Any) -> Reply:
        facts = {"client_name": "Test Client", "redirect_uris": [CALLBACK], **metadata}
        reply = await asked(self.live, "POST", "/oauth/register", json=facts)
        if reply.status == 201:
            self.id = reply.value["client_id"]
        return reply

    def query(self, **changes: str | None) -> str:
        challenge = urlsafe_b64encode(sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()
        asked: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.id,
            "redirect_uri": CALLBACK,
            "code_challenge": challenge,
            "code_challenge_method": "S256",
            "state": "st/ate",
            "scope": "tools:read tools:write",
            "resource": self.live.url + self.resource,
            **changes,
        }
        return urlencode({name: value for name, value in asked.items() if value is not None})

    async def allowed(self, person: Person, **choice: Any) -> str:
        """The code with which the browser comes back."""
        reply = await person.answer(self.query(), **choice)
        assert reply.status == 303, reply.body
        return answer_of(reply)["code"]

    async def post(
        self, form: Mapping[str, str | None], path: str = "/oauth/token", at: Live | None = None
    ) -> Reply:
        sent = {name: value for name, value in {"client_id": self.id, **form}.items() if value is not None}
        return await asked(at or self.live, "POST", path, data=sent)

    async def redeem(self, code: str, at: Live | None = None, **changes: str | None) -> Reply:
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": CALLBACK,
            "code_verifier": self.verifier,
            "resource": self.live.url + self.resource,
            **changes,
        }
        return self._kept(await self.post(form, at=at))

    async def refresh(self, token: str | None = None, at: Live | None = None, **changes: str | None) -> Reply:
        form = {"grant_type": "refresh_token", "refresh_token": token or self.tokens["refresh_token"]}
        return self._kept(await self.post({**form, **changes}, at=at))

    async def log_in(self, person: Person, **choice: Any) -> "Client":
        """All of it."""
        if not self.id:
            await self.register()
        reply = await self.redeem(await self.allowed(person, **choice))
        assert reply.status == 200, reply.body
        return self

    async def ask(
        self, method: str = "tools/list", path: str | None = None, at: Live | None = None, **params: Any
    ) -> Reply:
        headers = {
            "Authorization": f"Bearer {self.tokens['access_token']}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **({"Mcp-Name": params["name"]} if "name" in params else {}),
        }
        return await asked(
            at or self.live, "POST", path or self.resource, json=rpc(method, **params), headers=headers
        )

    async def tools(self) -> list[str]:
        reply = await self.ask()
        assert reply.status == 200, reply.body
        return sorted(tool["name"] for tool in message_of(reply)["result"]["tools"])

    def _kept(self, reply: Reply) -> Reply:
        if reply.status == 200:
            self.tokens = reply.value
        return reply


def message_of(reply: Reply) -> Any:
    """JSON, or the last event of a stream."""
    text = reply.body.decode()
    if text.startswith("{"):
        return json.loads(text)
    return json.loads([line[5:] for line in text.splitlines() if line.startswith("data:")][-1])


def answer_of(reply: Reply) -> dict[str, str]:
    """What an answer to a client's request says in its address."""
    return {name: values[0] for name, values in parse_qs(urlsplit(reply.headers["Location"]).query).items()}
