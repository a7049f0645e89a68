"""Three nodes behind a balancer: what somebody does goes on at whichever of them the next request meets."""

import asyncio
import re
import time
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from itertools import product
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from playwright.async_api import Browser, expect

from api.live import ServiceClient
from cluster.balanced_nodes import TOKEN, BalancedNodes, RoundRobinProxy, open_balanced
from conformance.suite import run
from console.chatting import is_live, is_over, last_turn, write
from console.conftest import browser as browser
from mcp_endpoint.doors import META, McpClient, subscribed
from oauth.journey import open_browser, quick
from patience import deadline, patient, until
from servers.authorization_server import (
    AuthorizationServer,
    ProtectedServer,
    open_authorization_server,
    open_protected_server,
)
from servers.library_server import open_library
from servers.processes import HttpProcess, stdio
from servers.scenarios import Reply, Turn
from servers.scripted_hubs import MODEL, calls, scripted
from web.ended_rights import (
    Someone,
    is_shut_out,
    mcp_streams,
    remove_user,
    remove_workspace,
    rest_streams,
    revoke,
    seconds_until_end,
    someone,
)

pytestmark = [pytest.mark.anyio, pytest.mark.timeout(240), pytest.mark.postgres, pytest.mark.slow]
ASKABLE = {"elicitation": {"form": {}}}
CAN_BE_ASKED = {**META, "io.modelcontextprotocol/clientCapabilities": ASKABLE}
ENDED_WITHIN = 2.0


@dataclass
class Nodes:
    """`speaks` is set when the model may go on with what it looks for."""

    balanced: BalancedNodes
    http: aiohttp.ClientSession
    box: str
    issuer: AuthorizationServer
    speaks: asyncio.Event = field(default_factory=asyncio.Event)
    protected: ProtectedServer | None = None

    @property
    def any(self) -> ServiceClient:
        """By way of the balancer."""
        return ServiceClient(self.balanced.proxy.url, self.http, TOKEN)

    @property
    def each(self) -> list[ServiceClient]:
        return [ServiceClient(url, self.http, TOKEN) for url in self.balanced.urls]

    async def add(self, name: str, **facts: Any) -> None:
        reply = await self.any.ask("POST", "/api/connectors", {"name": name, **facts})
        assert reply.status == 201, reply.body
        for node in self.each:
            await until(lambda node=node: _knows(node, name))

    async def echo(self, node: ServiceClient, connector: str) -> Any:
        return (await node.call(f"mcp_{connector}_echo", text="hi"))["result"]


async def _knows(node: ServiceClient, connector: str) -> bool:
    return (await node.ask("GET", f"/api/connectors/{connector}")).status == 200


@pytest.fixture(scope="module")
async def nodes(module_postgres_url: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[Nodes]:
    folder, database_url = tmp_path_factory.mktemp("nodes"), module_postgres_url
    speaks = asyncio.Event()

    async def script(turn: Turn) -> Reply:
        if "hold" in turn.user:
            return Reply(text="never", delay=3600)
        if "look" in turn.user and turn.fresh:
            await speaks.wait()
            return Reply(text="I have looked.")
        if "look" in turn.user:
            return calls(("mcp_plain_echo", {"text": "a chair"}))
        if "send" in turn.user and not turn.fresh:
            return calls(("mcp_plain_send", {"text": "a letter"}))
        return Reply(text="Here you are.")

    async with AsyncExitStack() as stack:
        asking = stack.enter_context(HttpProcess(folder, program="asking_server.py"))
        box = stack.enter_context(HttpProcess(folder, "--era", "2026"))
        issuer = await stack.enter_async_context(open_authorization_server())
        await stack.enter_async_context(scripted(script))
        balanced = await stack.enter_async_context(
            open_balanced(
                folder,
                database_url,
                MULTI_USER="true",
                ALLOWED_NETWORKS="127.0.0.0/8",
                MODEL=MODEL,
            )
        )
        http = await stack.enter_async_context(aiohttp.ClientSession())
        found = Nodes(balanced, http, box.url, issuer, speaks)
        found.protected = await stack.enter_async_context(open_protected_server(issuer))
        await found.add("plain", **stdio())
        await found.add("asking", url=asking.url, approval="never")
        yield found


async def test_a_person_in_two_tabs_on_two_nodes_sees_the_same(nodes: Nodes, browser: Browser) -> None:
    first, second, third = nodes.balanced.urls
    context = await browser.new_context()
    try:
        context.set_default_timeout(patient(10_000))
        here = await context.new_page()
        # The link of one node signs in at another, and a browser sends its cookie to every port.
        await here.goto(nodes.balanced.services[0].facts["console"].replace(first, second))
        await here.goto(f"{first}/chat")
        await write(here, "hello")
        await is_over(here)
        there, runs = await context.new_page(), await context.new_page()
        await there.goto(here.url.replace(first, second))
        await runs.goto(f"{third}/runs")
        await is_live(there)

        await write(here, "look for something")
        for page in (here, there):
            await expect(last_turn(page)).to_contain_text("look for something")
            await expect(last_turn(page).locator(".call")).to_have_attribute("data-state", "done")
            await expect(page.locator("#stop")).to_be_visible()
        row = runs.get_by_role("row").filter(has_text="look for something")
        await expect(row).to_contain_text("running")
        nodes.speaks.set()
        for page in (here, there):
            await is_over(page)
            await expect(last_turn(page)).to_contain_text("I have looked.")
        await expect(row).to_contain_text("done")

        await write(there, "send a letter")
        await last_turn(here).get_by_role("button", name="Allow once").click()
        for page in (here, there):
            await is_over(page)
            await expect(last_turn(page).locator(".approval")).to_contain_text("You allowed this once.")
        assert await here.locator("#talk").inner_text() == await there.locator("#talk").inner_text()
    finally:
        await context.close()


async def test_a_right_that_ends_at_one_node_ends_streams_and_calls_at_the_others(nodes: Nodes) -> None:
    first, *others = nodes.each
    for end in (revoke, remove_user, remove_workspace):
        async with deadline(60), AsyncExitStack() as stack:
            library = await stack.enter_async_context(open_library())
            who = await _at_work(nodes, end.__name__, library.url)
            streams = [
                stream
                for node in others
                for found in (await rest_streams(node, who, stack), await mcp_streams(node, who, stack))
                for stream in found.values()
            ]
            assert len(streams) >= 12
            began = time.monotonic()
            await end(first, who)
            for node in others:
                await until(lambda node=node, who=who: is_shut_out(node, who), ENDED_WITHIN)
            took = await seconds_until_end(streams, began)
            assert max(took) < patient(ENDED_WITHIN), (end.__name__, took)


async def _at_work(nodes: Nodes, name: str, library: str) -> Someone:
    """Whose message an agent works on, with a tool that takes its time."""
    first, *others = nodes.each
    who = await someone(first, name, library)
    facts = {"name": "box", "url": nodes.box, "approval": "never"}
    reply = await first.ask("POST", "/api/connectors", facts, **who.bearer)
    assert reply.status == 201, reply.body
    tool = "mcp_box_sleep"
    for node, known in product(others, (tool, "mcp_books_lend")):
        await until(lambda node=node, known=known: _has_tool(node, known, who))
    return replace(who, names={**who.names, "name": tool}, arguments={"seconds": 600})


async def _has_tool(node: ServiceClient, tool: str, who: Someone) -> bool:
    return (await node.ask("GET", f"/api/tools/{tool}", **who.bearer)).status == 200


@pytest.mark.real
async def test_scenarios_of_the_conformance_suite_pass_through_the_balancer(
    nodes: Nodes, tmp_path: Path
) -> None:
    """One of each era that takes several requests; `bench/cluster_doors.py` runs all of them."""
    with HttpProcess(tmp_path, program="everything_server.py") as server:
        await nodes.add("everything", url=server.url, approval="never")
        # The suite sends no key.
        bearer = {"Authorization": f"Bearer {TOKEN}"}
        async with RoundRobinProxy(nodes.balanced.urls, bearer) as proxy:
            url = f"{proxy.url}/mcp/everything"
            for package, scenario in (
                ("conformance-2025", "tools-call-elicitation"),
                ("conformance-2026", "input-required-result-basic-elicitation"),
            ):
                text = await run(package, url, "--scenario", scenario)
                assert re.search(r"Passed: (\d+)/\1, 0 failed", text), text
            assert set(proxy.requests) == set(nodes.balanced.urls)


async def test_an_authorisation_begins_at_one_node_and_comes_back_to_another(nodes: Nodes) -> None:
    assert nodes.protected is not None
    await nodes.add("notes", **quick(nodes.protected))
    proxy = nodes.balanced.proxy
    proxy.requests.clear()
    async with open_browser() as person:
        reply = await nodes.any.ask("POST", "/api/credentials/notes/authorize")
        assert reply.status == 200, reply.body
        back = await person.back(await person.press(reply.value["url"]))
        assert back.startswith(proxy.url)
        page = await person.get(back)
        assert (page.status, "You can close this page" in page.text) == (200, True), page.text
        assert (await person.get(back)).status == 400, "it is used already"
    # The link, the page behind it, its button, the way back twice.
    assert sorted(proxy.requests.values()) == [1, 2, 2]
    for node in nodes.each:
        await until(lambda node=node: _says_hi(nodes, node, "notes"))
    assert nodes.issuer.counts["authorization_code"] == 1


async def _says_hi(nodes: Nodes, node: ServiceClient, connector: str) -> bool:
    return await nodes.echo(node, connector) == {"result": "hi"}


# Last: a node is gone afterwards.


async def test_what_a_killed_node_had_begun_goes_on_at_another(nodes: Nodes) -> None:
    a, b, c = (McpClient(url, nodes.http, TOKEN) for url in nodes.balanced.urls)
    session = await c.open("/mcp/asking", ASKABLE)
    call = {"name": "introduce", "arguments": {}}
    asked = await _asked(c, _answered(call, await _asked(c, call), "Ada"))
    assert asked["inputRequests"]["question"]["params"]["message"].endswith("second name?"), asked
    async with (
        session.listening() as standing,
        subscribed(c, toolsListChanged=True) as subscription,
        open_browser() as person,
    ):
        link = (await nodes.each[2].ask("POST", "/sign-in/links")).value["path"]
        wish = await nodes.each[2].ask("POST", "/api/credentials/notes/authorize")
        back = await person.back(await person.press(wish.value["url"]))
        nodes.balanced.services[2].kill()
        for stream in (standing, subscription):
            with pytest.raises((EOFError, aiohttp.ClientPayloadError)):
                await stream.next()

        # Sessions of the 2025 era, and what is listened to in both.
        there = session.at(a)
        assert (await there.ask("ping")).status == 200
        async with there.listening() as standing, subscribed(b, toolsListChanged=True) as subscription:
            disabled = await nodes.each[1].ask("POST", "/api/tools/mcp_asking_count/disable")
            assert disabled.status == 200, disabled.body
            for stream in (standing, subscription):
                async with deadline(10):
                    while (await stream.next())["method"] != "notifications/tools/list_changed":
                        pass

        # A request that was asked back. What was answered before is not asked for again.
        async with deadline(30):
            done = await _asked(b, _answered(call, asked, "Lovelace"))
            assert done["content"][0]["text"] == "Ada Lovelace"

        # Links that sign in, and the way back from an authorisation.
        signed_in = await person.get(nodes.balanced.urls[0] + link)
        assert (signed_in.status, signed_in.headers["Location"]) == (303, "/")
        parts, other = urlsplit(back), urlsplit(nodes.balanced.urls[1])
        page = await person.get(parts._replace(netloc=other.netloc).geturl())
        assert "You can close this page" in page.text
    assert nodes.issuer.counts["authorization_code"] == 2
    await until(lambda: _says_hi(nodes, nodes.each[0], "notes"))


async def _asked(client: McpClient, params: Any) -> Any:
    value = (await client.ask("tools/call", params, "/mcp/asking", meta=CAN_BE_ASKED)).value
    return value.get("result") or value["error"]


def _answered(params: Any, asked: Any, name: str) -> Any:
    answer = {"action": "accept", "content": {"name": name}}
    responses = dict.fromkeys(asked["inputRequests"], answer)
    return {**params, "inputResponses": responses, "requestState": asked["requestState"]}
