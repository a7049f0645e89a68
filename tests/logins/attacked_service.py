"""A service with two people and the clients that they let in, for attacks; and servers of who attacks it.

`ann` may use the connector `mail`, `bob` all of them. Nothing here is changed by an attack that fails.
"""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from itertools import count
from pathlib import Path
from typing import Any

import aiohttp
from aiohttp import web
from joserfc.jwk import ECKey
from yarl import URL

from api.live import Live, Reply, open_service
from dragoman.people import ApiKey
from logins.client_flow import CALLBACK, Client, Person, asked, message_of, rpc
from servers.hubs import runtime_of
from servers.processes import stdio

WEB_CALLBACK = "https://app.example/cb"
_addresses = count(10)


@dataclass
class DocumentServer:
    """Client metadata documents by path; `asked` is what anybody wanted from it."""

    url: str
    documents: dict[str, Any] = field(default_factory=dict[str, Any])
    asked: list[str] = field(default_factory=list[str])
    ends: asyncio.Event = field(default_factory=asyncio.Event)

    async def answer(self, request: web.Request) -> web.StreamResponse:
        self.asked.append(request.path)
        document = self.documents.get(request.path)
        if document is None:
            return web.Response(status=404)
        if isinstance(document, str):
            return web.Response(status=302, headers={"Location": document})
        if isinstance(document, bytes):
            return web.Response(body=document, content_type="application/json")
        if document == {"slow": True}:
            await self.ends.wait()
        return web.json_response(document)


@asynccontextmanager
async def open_documents(host: str = "127.0.0.1") -> AsyncGenerator[DocumentServer]:
    served = DocumentServer("")
    app = web.Application()
    app.router.add_route("*", "/{path:.*}", served.answer)
    runner = web.AppRunner(app, shutdown_timeout=0)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, 0)
        await site.start()
        host, port, *_ = runner.addresses[0]
        served.url = f"http://{host}:{port}"
        yield served
    finally:
        served.ends.set()
        await runner.cleanup()


@dataclass
class Attacked:
    """`mail` is a login for `/mcp/mail`, `reader` one that only reads `mail`, `full` one for everything."""

    live: Live
    elsewhere: Live
    ann: Person
    bob: Person
    ann_key: str
    app: Client
    other_app: Client
    web_app: Client
    full: Client
    mail: Client
    reader: Client
    documents: DocumentServer
    inside: DocumentServer
    public: dict[str, Any]

    async def raw(self, method: str, path: str, *, at: str | None = None, **options: Any) -> Reply:
        """The path as it is written, without a credential of ours, following nothing."""
        url = URL((at or self.live.url) + path, encoded=True)
        async with (
            aiohttp.ClientSession(cookie_jar=aiohttp.DummyCookieJar()) as session,
            session.request(method, url, allow_redirects=False, **options) as response,
        ):
            return Reply(response.status, response.headers, await response.read())

    async def mcp(self, token: str, path: str = "/mcp", tool: str = "", **headers: str) -> Reply:
        """Asks for the tools, or calls one, with this word for a token."""
        method, facts = "tools/list", dict[str, Any]()
        if tool:
            method, facts = "tools/call", {"name": tool, "arguments": {"text": "stolen"}}
            headers = {"Mcp-Name": tool, **headers}
        headers = {
            "Authorization": f"Bearer {token}",
            "Accept": "application/json, text/event-stream",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": method,
            **headers,
        }
        return await self.raw("POST", path, json=rpc(method, **facts), headers=headers)

    async def opens(self, token: str, path: str = "/mcp", **headers: str) -> str | None:
        """What a token got there that it must not get."""
        reply = await self.mcp(token, path, **headers)
        return (
            None
            if reply.status in (400, 401, 403, 404, 405)
            else f"{path}: {reply.status} {reply.body[:200]!r}"
        )

    async def calls(self, client: Client, tool: str) -> str | None:
        """What a tool said that this client must not call."""
        reply = await self.mcp(client.tokens["access_token"], client.resource, tool)
        if reply.status != 200:
            return None
        said = message_of(reply)
        is_refused = "error" in said or (said["result"].get("isError") and "unknown" in str(said))
        return None if is_refused else f"{tool}: {said}"

    def fresh(self, client: Client | None = None, resource: str | None = None) -> Client:
        """The same program, with a verifier and tokens of its own."""
        known = client or self.app
        return Client(self.live, resource or known.resource, known.id)

    async def login(self, person: Person | None = None, **choice: Any) -> Client:
        return await self.fresh().log_in(person or self.bob, **choice)

    async def expire(self, key: ApiKey) -> None:
        """Its end has passed."""
        over = replace(key, expires_at=datetime.now(UTC) - timedelta(seconds=1))
        await runtime_of(self.live.hub).store.people.put_key(over)
        self.live.hub.authenticator.forget_all()

    async def register(self, **metadata: Any) -> Reply:
        """From an address of this machine that nobody registered from before."""
        connector = aiohttp.TCPConnector(local_addr=(f"127.0.1.{next(_addresses)}", 0))
        facts = {"client_name": "Test Client", "redirect_uris": [CALLBACK], **metadata}
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post(self.live.url + "/oauth/register", json=facts) as response,
        ):
            return Reply(response.status, response.headers, await response.read())


async def _person(live: Live, name: str, capabilities: list[str]) -> tuple[Person, str]:
    await live.hub.people.add_user(name, capabilities=capabilities)
    _, key = await live.hub.people.add_key(
        "console", user=name, scopes=("read", "call", "manage"), capabilities=capabilities
    )
    return await Person.signed_in(live, key), key


@asynccontextmanager
async def open_attacked(folder: Path) -> AsyncGenerator[Attacked]:
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        facts: dict[str, Any] = {"defer_tools": "never", "allowed_networks": ("127.0.0.1/32",)}
        live = await enter(open_service(folder / "one", multi_user=True, **facts))
        for slug in ("mail", "files"):
            await live.hub.connectors.add(slug, shared=True, approval="never", **stdio())
        elsewhere = await enter(open_service(folder / "two"))
        (ann, ann_key), (bob, _) = (
            await _person(live, "ann", ["mcp_mail"]),
            await _person(live, "bob", ["mcp_integration"]),
        )
        apps = [Client(live), Client(live), Client(live)]
        await apps[0].register()
        await apps[1].register(client_name="Other")
        await apps[2].register(client_name="Web", redirect_uris=[WEB_CALLBACK])
        (public,) = (await asked(live, "GET", "/oauth/jwks")).value["keys"]
        yield Attacked(
            live, elsewhere, ann, bob, ann_key, *apps,
            full=await replace(apps[0], tokens={}).log_in(bob),
            mail=await Client(live, "/mcp/mail", apps[0].id).log_in(bob),
            reader=await replace(apps[0], tokens={}).log_in(bob, use="chosen", connector="mail", do="read"),
            documents=await enter(open_documents()),
            inside=await enter(open_documents("127.0.0.2")),
            public=public,
        )  # fmt: skip


def own_key(public: Mapping[str, Any]) -> ECKey:
    """A key of who attacks, under the name of ours."""
    return ECKey.generate_key("P-256", {"kid": public["kid"]}, private=True)
