"""Who a client says that it is: by a document at an address of its own, or by a registration."""

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from api.live import Live, open_service
from logins.client_flow import CALLBACK, Client, Person, asked

pytestmark = pytest.mark.anyio
HERE = ("127.0.0.0/8",)


@asynccontextmanager
async def publisher(**answers: web.Response) -> AsyncGenerator[tuple[str, list[str]]]:
    """The site of somebody who makes a client; by path what it answers, and which paths were asked for."""
    asked_for: list[str] = []

    async def answer(request: web.Request) -> web.Response:
        asked_for.append(request.path)
        if found := answers.get(request.path.strip("/")):
            return found
        facts = {"client_id": str(request.url), "client_name": "Documented", "redirect_uris": [CALLBACK]}
        return web.json_response(facts)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    runner = web.AppRunner(app)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield f"http://127.0.0.1:{runner.addresses[0][1]}", asked_for
    finally:
        await runner.cleanup()


async def shown(live: Live, person: Person, client_id: str) -> int:
    return (await person.look(Client(live, id=client_id).query())).status


async def test_a_client_is_known_by_the_document_at_its_address(tmp_path: Path) -> None:
    async with (
        open_service(tmp_path, allowed_networks=HERE) as live,
        publisher() as (site, asked_for),
    ):
        person, client = await Person.signed_in(live), Client(live, id=f"{site}/client.json")
        page = await person.look(client.query())
        assert page.status == 200
        assert "Documented wants to use your tools" in page.body.decode()
        assert "<b>127.0.0.1</b>" in page.body.decode()
        await client.log_in(person)
        assert (await client.ask()).status == 200
        assert asked_for == ["/client.json"], "it is read once, and not again for every step"
        (key,) = await live.hub.clients.list()
        assert key.client is not None
        assert (key.client.id, key.client.host) == (client.id, "127.0.0.1")


async def test_a_stranger_makes_us_read_nothing(tmp_path: Path) -> None:
    async with (
        open_service(tmp_path, allowed_networks=HERE) as live,
        publisher() as (site, asked_for),
    ):
        query = Client(live, id=f"{site}/client.json").query()
        assert (await asked(live, "GET", f"/oauth/authorize?{query}")).status == 303
        assert (await asked(live, "POST", f"/oauth/authorize?{query}")).status == 401
        assert asked_for == []


async def test_a_document_inside_the_network_is_not_read(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live, publisher() as (site, asked_for):
        person = await Person.signed_in(live)
        assert await shown(live, person, f"{site}/client.json") == 422
        assert asked_for == []


async def test_a_document_that_will_not_do_is_no_client(tmp_path: Path) -> None:
    def document(**facts: Any) -> web.Response:
        return web.json_response({"client_name": "x", "redirect_uris": [CALLBACK], **facts})

    huge = json.dumps({"client_id": "x", "padding": "x" * 10_000_000})
    async with (
        open_service(tmp_path, allowed_networks=HERE) as live,
        publisher(
            other=document(client_id="https://other.example/client.json"),
            none=document(),
            huge=web.Response(text=huge, content_type="application/json"),
            moved=web.Response(status=302, headers={"Location": "/client.json"}),
            text=web.Response(text="hello"),
            broken=web.Response(status=500),
        ) as (site, asked_for),
    ):
        person = await Person.signed_in(live)
        for path in ("other", "none", "huge", "moved", "text", "broken"):
            assert await shown(live, person, f"{site}/{path}") == 422, path
        assert "/client.json" not in asked_for, "a redirect is not followed"
        before = len(asked_for)
        for address in ("", "/", "/a/../client.json", "/client.json#x"):
            assert await shown(live, person, site + address) == 422, address
        assert await shown(live, person, site.replace("//", "//user@") + "/client.json") == 422
        assert await shown(live, person, "http://clients.example/client.json") == 422, "https is needed"
        assert len(asked_for) == before


async def test_no_client_registers_an_address_that_is_not_a_programs_own(tmp_path: Path) -> None:
    wrongs: tuple[Any, ...] = (
        "javascript:alert(1)",
        "JavaScript://x/%0aalert(1)",
        "data:text/html,x",
        "http://evil.example/callback",
        "https://user:word@evil.example/",
        "https://evil.example/#x",
        "https://evil.example\\@good.example/",
        "https:///callback",
        "//evil.example",
        "",
        7,
    )
    async with open_service(tmp_path) as live:
        for wrong in wrongs:
            reply = await Client(live).register(redirect_uris=[CALLBACK, wrong])
            assert (reply.status, reply.value["error"]) == (400, "invalid_redirect_uri"), wrong


async def test_registering_is_open_to_all_and_so_to_nobody_often(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        client = Client(live)
        reply = await client.register(redirect_uris=["cursor://anysphere.cursor-mcp/oauth/callback"])
        assert reply.status == 201
        assert reply.value["token_endpoint_auth_method"] == "none"
        assert "client_secret" not in reply.value
        assert (await client.register(grant_types=["client_credentials"])).status == 400
        assert (await asked(live, "POST", "/oauth/register", data=b"[1]")).status == 400
        assert (await asked(live, "POST", "/oauth/register", data=b"x" * 100_000)).status == 400
        statuses = [(await client.register()).status for _ in range(40)]
        assert {*statuses} == {201, 429}


async def test_a_name_is_shown_without_letters_that_deceive(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        person, client = await Person.signed_in(live), Client(live)
        await client.register(client_name="\u202eedoC  \x00Claude\n" + "x" * 200)
        page = (await person.look(client.query())).body.decode()
        assert "<h1>edoC Claudex" in page
        assert "x" * 100 not in page
        await client.register(client_name=None)
        assert "MCP client wants to use" in (await person.look(client.query())).body.decode()
