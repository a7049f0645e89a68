"""Both eras of the protocol as the specifications word them, said by hand."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from doors import LEGACY, META, open_door, subscribed
from dragoman.mcp_endpoint.sessions import EndpointSessions
from dragoman.scope import Caller
from patience import deadline
from servers.hubs import spoil_store, until
from servers.processes import HttpProcess, stdio

pytestmark = pytest.mark.anyio
FREE: dict[str, Any] = {**stdio(), "approval": "never"}
HELLO = {"protocolVersion": LEGACY, "capabilities": {}, "clientInfo": {"name": "test", "version": "1"}}


def request(method: str, **facts: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": 1, "method": method, **facts}


# The 2025 era


async def test_a_session_is_opened_used_and_ended(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        session = await door.open()
        hello = session.opened.value["result"]
        assert hello["protocolVersion"] == LEGACY
        assert hello["serverInfo"]["name"] == "dragoman"
        assert hello["capabilities"]["tools"] == {"listChanged": True}
        assert (await session.tell("notifications/initialized")).status == 202
        assert (await session.ask("ping")).value["result"] == {}
        assert (await session.ask("logging/setLevel", {"level": "debug"})).value["result"] == {}
        assert (await session.ask("logging/setLevel", {"level": "loud"})).value["error"]["code"] == -32602
        assert (await session.ask("no/such")).value["error"]["code"] == -32601
        assert (await session.ask("tools/list", {"cursor": "x"})).value["error"]["code"] == -32602
        assert (await door.send("DELETE", "/mcp", **session.headers)).status == 200
        assert (await session.ask("ping")).status == 404


@pytest.mark.parametrize(
    ("asked", "answered"),
    [
        ("2024-11-05", "2024-11-05"),
        ("2025-06-18", "2025-06-18"),
        ("1999-01-01", LEGACY),
        ("2026-07-28", LEGACY),
    ],
)
async def test_the_version_of_a_session_is_agreed_on(tmp_path: Path, asked: str, answered: str) -> None:
    async with open_door(tmp_path) as door:
        reply = await door.send(
            "POST", "/mcp", request("initialize", params={**HELLO, "protocolVersion": asked})
        )
        assert reply.value["result"]["protocolVersion"] == answered


async def test_requests_outside_a_session_are_refused(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        assert (await door.send("POST", "/mcp", request("tools/list"))).status == 400
        assert (
            await door.send("POST", "/mcp", request("tools/list"), Mcp_Session_Id="made-up")
        ).status == 404
        assert (await door.send("GET", "/mcp")).status == 400
        assert (await door.send("DELETE", "/mcp")).status == 400
        assert (await door.send("PUT", "/mcp", b"{}")).status == 405


async def test_a_session_belongs_to_the_caller_and_the_address_that_opened_it(tmp_path: Path) -> None:
    callers = {"ada": Caller(user="ada"), "eve": Caller(user="eve")}
    async with open_door(tmp_path, callers=callers) as door:
        await door.hub.connectors.add("box", **FREE, shared=True)
        session = await door.open(x_test_caller="ada")
        assert (await session.ask("ping")).status == 200
        assert (await session.ask("ping", x_test_caller="eve")).status == 404
        stolen = {**session.headers, "x_test_caller": "eve"}
        assert (await door.send("GET", "/mcp", **stolen)).status == 404
        assert (await door.send("DELETE", "/mcp", **stolen)).status == 404
        assert (await door.send("POST", "/mcp/box", request("ping"), **session.headers)).status == 404
        assert (await session.ask("ping")).status == 200


async def test_sessions_are_few_and_idle_ones_go(tmp_path: Path) -> None:
    now = 0.0
    sessions = EndpointSessions(idle=100, most=3, most_per_user=2, clock=lambda: now)
    async with open_door(tmp_path, door={"sessions": sessions}) as door:
        first = await door.open()
        now = 1.0
        second = await door.open()
        now = 2.0
        third = await door.open()
        assert len(sessions) == 2
        assert (await first.ask("ping")).status == 404
        now = 90.0
        assert (await second.ask("ping")).status == 200
        now = 150.0
        assert (await third.ask("ping")).status == 404
        assert (await second.ask("ping")).status == 200


async def test_when_every_session_is_busy_a_new_one_is_refused(tmp_path: Path) -> None:
    async with open_door(tmp_path, door={"sessions": EndpointSessions(most_per_user=1)}) as door:
        session = await door.open()
        async with session.listening():
            assert (await door.send("POST", "/mcp", request("initialize", params=HELLO))).status == 503
            assert (await session.ask("ping")).status == 200


async def test_while_the_store_is_away_a_client_is_told_so_and_to_try_again(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        spoil_store(tmp_path)
        hello = await door.send("POST", "/mcp", request("initialize", params=HELLO))
        elsewhere = {"Mcp_Session_Id": "of-another-process", "MCP_Protocol_Version": LEGACY}
        ping = await door.send("POST", "/mcp", request("ping"), **elsewhere)
        for reply in (hello, ping):
            error = reply.value["error"]
            assert (reply.status, error["data"]) == (503, {"code": "store_unavailable", "retryable": True})
            assert "Internal" not in error["message"]


async def test_a_cancelled_call_of_a_session_ends(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        session = await door.open()
        call = {"name": "mcp_box_sleep", "arguments": {"seconds": 30}}
        calling = asyncio.ensure_future(session.ask("tools/call", call, request_id="long"))
        await until(lambda: bool(_links(door)))
        assert (await session.tell("notifications/cancelled", {"requestId": "long"})).status == 202
        async with deadline(5):
            assert (await calling).value["error"]["message"] == "Request cancelled"
        assert next(record.code for record in await door.hub.calls()) == "cancelled"
        # One that nobody knows harms nobody.
        assert (await session.tell("notifications/cancelled", {"requestId": "unknown"})).status == 202
        echo = {"name": "mcp_box_echo", "arguments": {"text": "hi"}}
        assert (await session.ask("tools/call", echo)).value["result"]["content"][0]["text"] == "hi"


def _links(door: Any) -> list[Any]:
    return [link for link in door.hub.links() if link.in_flight]


# The 2026 era


async def test_discovery_says_what_is_spoken_here(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        result = (await door.ask("server/discover")).value["result"]
        assert result["supportedVersions"] == ["2026-07-28"]
        assert result["resultType"] == "complete"
        assert result["capabilities"]["tools"] == {"listChanged": True}
        assert result["_meta"]["io.modelcontextprotocol/serverInfo"]["name"] == "dragoman"
        assert "Mcp-Session-Id" not in (await door.ask("server/discover")).headers


async def test_headers_must_agree_with_the_body(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        call = {"name": "mcp_box_echo", "arguments": {}}
        headers: list[dict[str, Any]] = [
            {"Mcp_Method": "tools/list"},
            {"Mcp_Name": "another"},
            {"MCP_Protocol_Version": "2025-11-25"},
            {"MCP_Protocol_Version": ""},
        ]
        for wrong in headers:
            reply = await door.ask("tools/call", call, **wrong)
            assert (reply.status, reply.value["error"]["code"]) == (400, -32020), wrong
        body = request(
            "tools/list", params={"_meta": {**META, "io.modelcontextprotocol/protocolVersion": "2030-01-01"}}
        )
        reply = await door.send(
            "POST", "/mcp", body, MCP_Protocol_Version="2030-01-01", Mcp_Method="tools/list"
        )
        assert (reply.status, reply.value["error"]["code"]) == (400, -32022)
        assert reply.value["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2030-01-01"}
        body = request("tools/list", params={})
        reply = await door.send(
            "POST", "/mcp", body, MCP_Protocol_Version="2026-07-28", Mcp_Method="tools/list"
        )
        assert (reply.status, reply.value["error"]["code"]) == (400, -32602)


@pytest.mark.parametrize("method", ["ping", "initialize", "logging/setLevel", "no/such"])
async def test_methods_that_this_era_does_not_have_are_not_found(tmp_path: Path, method: str) -> None:
    async with open_door(tmp_path) as door:
        reply = await door.ask(method)
        assert (reply.status, reply.value["error"]["code"]) == (404, -32601)


async def test_closing_the_request_cancels_the_call(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        call = {"name": "mcp_box_sleep", "arguments": {"seconds": 30}}
        calling = asyncio.ensure_future(door.ask("tools/call", call))
        await until(lambda: bool(_links(door)))
        calling.cancel()
        await until(lambda: not _links(door))
        assert next(record.code for record in await door.hub.calls()) == "cancelled"


async def test_a_notification_is_taken_and_an_answer_is_not(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        body = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
        assert (await door.send("POST", "/mcp", body, MCP_Protocol_Version="2026-07-28")).status == 202
        assert (await door.send("POST", "/mcp", body, MCP_Protocol_Version="2030-01-01")).status == 400
        body = {"jsonrpc": "2.0", "id": 1, "result": {}}
        assert (await door.send("POST", "/mcp", body, MCP_Protocol_Version="2026-07-28")).status == 400


# Bad input, whatever the era


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff\xfe", -32700),
        (b"[" * 5000, -32700),
        (b'{"jsonrpc":"2.0","id":1,"method":"x","params":' + b'{"a":' * 300 + b"1" + b"}" * 301, -32700),
        (b"[]", -32600),
        (b'[{"jsonrpc":"2.0","id":1,"method":"ping"}]', -32600),
        (b'"ping"', -32600),
        (b'{"id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"1.0","id":1,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1.5,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":true,"method":"ping"}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":7}', -32600),
        (b'{"jsonrpc":"2.0","id":1,"method":"ping","params":[1]}', -32600),
    ],
)
async def test_what_is_no_message_is_refused(tmp_path: Path, body: bytes, code: int) -> None:
    async with open_door(tmp_path) as door:
        for headers in ({}, {"MCP_Protocol_Version": "2026-07-28"}):
            reply = await door.send("POST", "/mcp", body, **headers)
            assert (reply.status, reply.value["error"]["code"]) == (400, code)


async def test_a_body_that_is_too_large_is_refused(tmp_path: Path) -> None:
    async with open_door(tmp_path, door={"max_body": 1000}) as door:
        assert (await door.send("POST", "/mcp", b" " * 1001)).status == 413
        session = await door.open()
        assert (await session.ask("ping")).status == 200


async def test_only_json_is_taken_and_given(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        assert (await door.send("POST", "/mcp", request("ping"), Content_Type="text/plain")).status == 415
        assert (await door.send("POST", "/mcp", request("ping"), Accept="text/html")).status == 406
        assert (await door.send("GET", "/mcp/a/b")).status == 404


async def test_who_is_not_let_in_by_the_guard_does_not_get_here(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        body = request("initialize", params=HELLO)
        assert (await door.send("POST", "/mcp", body, Authorization="Bearer wrong")).status == 401
        assert (await door.send("POST", "/mcp", body, Host="evil.example")).status in (400, 403, 421)
        assert (await door.send("POST", "/mcp", body, Origin="http://evil.example")).status == 403
        assert (await door.send("POST", "/mcp", body, Origin="http://localhost:1234")).status == 200


# News


async def test_clients_of_both_eras_hear_of_changed_tools_once(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        session = await door.open()
        async with session.listening() as old, subscribed(door, toolsListChanged=True) as new:
            await door.hub.connectors.add("box", **FREE)
            for news in (old, new):
                assert (await news.next())["method"] == "notifications/tools/list_changed"
            await door.hub.call("mcp_box_echo", {"text": "a call is no news"})
            assert await old.is_silent()
            assert await new.is_silent()
            await door.hub.connectors.remove("box")
            assert (await old.next())["method"] == "notifications/tools/list_changed"
            told = await new.next()
            assert told["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"] == "listen-1"


async def test_a_server_that_changes_its_own_list_is_heard_through_dragoman(tmp_path: Path) -> None:
    with HttpProcess(tmp_path) as server:
        async with open_door(tmp_path / "home") as door:
            await door.hub.connectors.add("box", url=server.url, approval="never")
            async with subscribed(door, "/mcp/box", toolsListChanged=True) as news:
                await until(lambda: server.state()["listeners"] + server.state()["streams"] > 0)
                await door.ask("tools/call", {"name": "add_tool", "arguments": {"name": "fresh"}}, "/mcp/box")
                assert (await news.next())["method"] == "notifications/tools/list_changed"
                listed = (await door.ask("tools/list", path="/mcp/box")).value["result"]["tools"]
                assert "fresh" in {tool["name"] for tool in listed}


async def test_news_of_others_are_not_told(tmp_path: Path) -> None:
    callers = {
        "ada": Caller(user="ada"),
        "eve": Caller(user="eve"),
        "few": Caller(user="few", grants=(frozenset({"mcp_a"}),)),
    }
    async with open_door(tmp_path, callers=callers) as door:
        eve = await door.open(x_test_caller="eve")
        few = await door.open(x_test_caller="few")
        async with eve.listening() as eves, few.listening() as fews:
            await door.hub.acting_for(callers["ada"]).connectors.add("box", **FREE)
            assert await eves.is_silent()
            await door.hub.connectors.add("shared", **FREE, shared=True)
            assert (await eves.next())["method"] == "notifications/tools/list_changed"
            assert await fews.is_silent(), "what it may not see is no news to it"


async def test_who_listens_late_hears_what_changed_since_its_last_list(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        session = await door.open()
        await session.ask("tools/list")
        await door.hub.connectors.add("box", **FREE)
        async with session.listening() as news:
            assert (await news.next())["method"] == "notifications/tools/list_changed"
        await session.ask("tools/list")
        async with session.listening() as news:
            assert await news.is_silent()


async def test_a_client_that_comes_back_takes_over_its_stream(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        session = await door.open()
        async with session.listening() as first, session.listening() as second:
            with pytest.raises(EOFError):
                await first.next()
            await door.hub.connectors.add("box", **FREE)
            assert (await second.next())["method"] == "notifications/tools/list_changed"


async def test_stopping_ends_the_streams_with_a_last_word(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        session = await door.open()
        async with session.listening() as old, subscribed(door, toolsListChanged=True) as new:
            door.endpoint.stop()
            assert (await new.next())["result"]["resultType"] == "complete"
            with pytest.raises(EOFError):
                await old.next()
