"""Threads, preferences and shared connectors by REST, for callers as a guard would let them in."""

import json
from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import pytest

from dragoman import Caller
from dragoman.api import Api
from dragoman.people import UserLimits
from dragoman.web.guard import CALLER
from servers.account_server import AccountServer, tool
from tiers.people import ADA, BOB, NORA, open_team

pytestmark = pytest.mark.anyio
Answer = tuple[int, Any]


class Door:
    """The REST door without a socket; who asks is given."""

    def __init__(self, api: Api, server: AccountServer) -> None:
        self._api = api
        self.server = server

    async def ask(self, caller: Caller, method: str, path: str, body: Any = None, query: Any = ()) -> Answer:
        sent: list[Any] = []

        async def receive() -> dict[str, Any]:
            return {"type": "http.request", "body": b"" if body is None else json.dumps(body).encode()}

        async def send(message: Any) -> None:
            sent.append(message)

        scope = {
            "type": "http",
            "http_version": "1.1",
            "method": method,
            "scheme": "http",
            "path": path,
            "raw_path": path.encode(),
            "query_string": urlencode(query).encode(),
            "root_path": "",
            "headers": [(b"host", b"127.0.0.1"), (b"content-type", b"application/json")],
            "client": ("127.0.0.1", 1),
            "server": ("127.0.0.1", 80),
            CALLER: caller,
        }
        await self._api(scope, receive, send)
        text = b"".join(message.get("body", b"") for message in sent[1:])
        return sent[0]["status"], json.loads(text) if text else None


@pytest.fixture
async def door(tmp_path: Path, sqlite_url: str) -> AsyncGenerator[Door]:
    limits = UserLimits(max_connectors_per_thread=2)
    async with (
        AccountServer(lambda _: [tool("read")]) as server,
        open_team(tmp_path, sqlite_url, limits=limits) as hub,
    ):
        await hub.acting_for(NORA).connectors.add("alpha", url=server.url, shared=True)
        await hub.acting_for(ADA).connectors.add("beta", url=server.url)
        await hub.acting_for(ADA).connectors.add("gamma", url=server.url)
        yield Door(Api(hub), server)


async def test_a_thread_from_its_creation_to_its_end(door: Door) -> None:
    status, thread = await door.ask(ADA, "POST", "/api/threads", {"title": "Rome"})
    assert (status, thread["connectors"], thread["active"], thread["limit"]) == (
        201,
        None,
        ["alpha", "beta"],
        2,
    )
    path = f"/api/threads/{thread['id']}"
    assert (await door.ask(ADA, "GET", "/api/threads"))[1] == {"threads": [thread], "next": None}
    assert (await door.ask(ADA, "GET", path)) == (200, thread)
    status, changed = await door.ask(ADA, "PUT", f"{path}/connectors", {"connectors": ["gamma"]})
    assert (status, changed["active"]) == (200, ["gamma"])
    status, changed = await door.ask(ADA, "POST", f"{path}/add", {"connectors": ["alpha"]})
    assert (status, changed["active"]) == (200, ["gamma", "alpha"])
    status, problem = await door.ask(ADA, "POST", f"{path}/add", {"connectors": ["beta"]})
    assert (status, problem["code"], bool(problem["hint"])) == (429, "limit_reached", True)
    status, changed = await door.ask(ADA, "POST", f"{path}/disable", {"connectors": ["gamma"]})
    assert (status, changed["active"]) == (200, ["alpha"])
    status, problem = await door.ask(ADA, "POST", f"{path}/add", {"connectors": ["gama"]})
    assert (status, problem["hint"]) == (404, "did you mean 'gamma'?")
    for method, where in (("GET", ""), ("DELETE", ""), ("GET", "/tools")):
        assert (await door.ask(BOB, method, path + where))[0] == 404
    assert await door.ask(ADA, "DELETE", path) == (204, None)
    assert (await door.ask(ADA, "GET", path))[0] == 404


async def test_calls_lists_and_search_honour_the_thread(door: Door) -> None:
    _, thread = await door.ask(ADA, "POST", "/api/threads", {"connectors": ["beta"]})
    call = {"tool": "mcp_alpha_read", "arguments": {}, "thread": thread["id"]}
    status, output = await door.ask(ADA, "POST", "/api/call", call)
    assert (status, output["error"]["code"]) == (200, "denied")
    assert output["error"]["hint"] == (f'POST /api/threads/{thread["id"]}/add {{"connectors": ["alpha"]}}')
    inside = {"thread": thread["id"]}
    _, tools = await door.ask(ADA, "GET", "/api/tools", query=inside)
    assert [one["name"] for one in tools["tools"]] == ["mcp_beta_read"]
    _, found = await door.ask(ADA, "GET", "/api/tools/search", query={"q": "read", **inside})
    assert ([hit["name"] for hit in found["hits"]], found["total"]) == (["mcp_beta_read"], 1)
    _, found = await door.ask(ADA, "GET", f"/api/threads/{thread['id']}/tools")
    assert [one["name"] for one in found["tools"]] == ["mcp_beta_read"]
    assert [one["text"] for one in found["missing"]] == [
        "1 tool hidden: alpha is not active in this thread",
        "1 tool hidden: gamma is not active in this thread",
    ]
    _, found = await door.ask(
        ADA, "GET", f"/api/threads/{thread['id']}/tools", query=[("tool", "beta__read"), ("max_tools", 5)]
    )
    assert ([one["name"] for one in found["tools"]], found["missing"]) == (["mcp_beta_read"], [])


async def test_a_user_reads_and_changes_preferences(door: Door) -> None:
    status, mine = await door.ask(ADA, "GET", "/api/preferences")
    assert (status, mine["connectors"], mine["above"]["max_connectors_per_thread"]) == (200, None, 2)
    changes: dict[str, Any] = {"connectors": ["beta"], "limits": {"max_connectors_per_thread": 1}}
    status, mine = await door.ask(ADA, "PATCH", "/api/preferences", changes)
    assert (status, mine["connectors"], mine["in_force"]["max_connectors_per_thread"]) == (200, ["beta"], 1)
    changes = {"connectors": None, "limits": {"max_connectors_per_thread": None}}
    status, mine = await door.ask(ADA, "PATCH", "/api/preferences", changes)
    assert (status, mine["connectors"], mine["in_force"]["max_connectors_per_thread"]) == (200, None, 2)
    for wrong in (
        {"limits": {"max_connectors_per_thread": 3}},
        {"limits": {"calls_per_hour": "many"}},
        {"limits": {"calls_per_hour": True}},
        {"colour": "green"},
    ):
        status, problem = await door.ask(ADA, "PATCH", "/api/preferences", wrong)
        assert (status, problem["hint"] is not None) == (422, True), wrong


async def test_only_an_admin_adds_for_all_and_each_list_says_whose_a_connector_is(door: Door) -> None:
    body = {"name": "wiki", "url": door.server.url, "shared": True}
    status, problem = await door.ask(ADA, "POST", "/api/connectors", body)
    assert (status, problem["code"]) == (403, "denied")
    status, added = await door.ask(NORA, "POST", "/api/connectors", body)
    assert (status, added["tier"], added["origin"]) == (201, "workspace", "people")
    assert (await door.ask(ADA, "DELETE", "/api/connectors/wiki"))[0] == 403
    status, problem = await door.ask(ADA, "POST", "/api/connectors", {**body, "shared": False})
    assert status == 409
    _, seen = await door.ask(ADA, "GET", "/api/connectors")
    tiers = {one["slug"]: one["tier"] for one in seen["connectors"]}
    assert tiers == {
        "alpha": "workspace",
        "beta": "user",
        "gamma": "user",
        "native": "app",
        "wiki": "workspace",
    }
    _, seen = await door.ask(BOB, "GET", "/api/connectors")
    assert [one["slug"] for one in seen["connectors"]] == ["alpha", "native", "wiki"]
