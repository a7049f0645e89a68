"""The whole life of a connector by REST, its tools, calls, results, events and numbers."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from live import Live, open_service

from dragoman import Hub
from dragoman.api import Api
from dragoman.settings import Settings
from dragoman.web.encoding import encode
from patience import deadline
from servers.hubs import QUICK, runtime_of, spoil_store, until
from servers.processes import stdio

pytestmark = pytest.mark.anyio
SECRET = "canary-4f1c9a7e"


async def added(live: Live, name: str = "raw", **facts: Any) -> Any:
    reply = await live.ask("POST", "/api/connectors", {"name": name, **QUICK, **stdio(), **facts})
    assert reply.status == 201, reply.body
    assert reply.headers["Location"] == f"/api/connectors/{name}"
    return reply.value


async def test_a_connector_lives_from_add_to_remove(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        connector = await added(live, description="for tests")
        assert (connector["status"]["state"], connector["catalog"]) == ("connected", "ready")
        assert connector["tools"] > 10
        listed = (await live.ask("GET", "/api/connectors")).value["connectors"]
        assert [one["slug"] for one in listed] == ["native", "raw"]
        one = "/api/connectors/raw"
        assert (await live.ask("POST", f"{one}/disconnect")).value["status"]["state"] == "disconnected"
        assert (await live.ask("POST", f"{one}/connect")).value["status"]["state"] == "connected"
        assert (await live.ask("POST", f"{one}/refresh")).value["added"] == []
        assert (await live.ask("POST", f"{one}/disable")).value["enabled"] is False
        assert (await live.call("mcp_raw_echo", text="x"))["error"]["code"] == "tool_disabled"
        assert (await live.ask("POST", f"{one}/connect")).status == 422
        assert (await live.ask("POST", f"{one}/enable")).value["enabled"] is True
        changed = (await live.ask("PATCH", one, {"request_timeout": 7, "description": "new"})).value
        assert (changed["configuration"]["request_timeout"], changed["description"]) == (7, "new")
        assert changed["configuration"]["args"] == stdio()["args"]
        assert (await live.call("mcp_raw_echo", text="x"))["result"] == "x"
        assert (await live.ask("DELETE", one)).status == 204
        assert (await live.ask("GET", one)).status == 404
        assert (await live.call("mcp_raw_echo", text="x"))["error"]["code"] == "not_found"


async def test_a_server_out_of_reach_is_kept_with_its_cause(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        reply = await live.ask("POST", "/api/connectors", {"name": "far", "url": "http://127.0.0.1:9/mcp"})
        assert reply.status == 201
        assert reply.value["status"]["cause"]
        assert (await live.ask("POST", "/api/connectors/far/refresh")).value["code"] == "unreachable"


async def test_tools_are_shown_switched_and_accepted(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live, pin="block")
        names = [tool["name"] for tool in (await live.ask("GET", "/api/tools?connector=raw")).value["tools"]]
        assert "mcp_raw_echo" in names
        tool = (await live.ask("GET", "/api/tools/raw__echo")).value
        assert (tool["name"], tool["alias"], tool["state"]) == ("mcp_raw_echo", "raw__echo", "ready")
        assert tool["input_schema"]["required"] == ["text"]
        assert (await live.ask("POST", "/api/tools/raw__echo/disable")).value["state"] == "disabled"
        assert (await live.call("mcp_raw_echo", text="x"))["error"]["code"] == "tool_disabled"
        assert (await live.ask("POST", "/api/tools/raw__echo/enable")).value["state"] == "ready"

        await live.call("mcp_raw_change_tool", name="echo")

        async def is_changed() -> bool:
            return (await live.ask("GET", "/api/tools/raw__echo")).value["state"] == "changed"

        await until(is_changed)
        tool = (await live.ask("GET", "/api/tools/raw__echo")).value
        assert "changed 1 times" in tool["versions"][-1]["diff"]
        assert (await live.call("mcp_raw_echo", text="x"))["error"]["code"] == "tool_changed"
        assert (await live.ask("POST", "/api/tools/raw__echo/accept")).value["state"] == "ready"
        assert (await live.call("mcp_raw_echo", text="x"))["ok"] is True


async def test_a_call_that_fails_is_an_answer(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live)
        assert (await live.call("raw__add", a=1, b=2.5))["result"] == {"sum": 3.5}
        assert (await live.call("raw__add", a="1", b=2))["error"]["code"] == "invalid_arguments"
        assert (await live.call("raw__strict", when="never"))["error"]["code"] == "invalid_arguments"
        assert (await live.call("raw__fail", text="no"))["error"]["code"] == "tool_failed"
        assert "raw__echo" in (await live.call("raw__ecko"))["error"]["hint"]
        reply = await live.ask("POST", "/api/tools/raw__echo/call", {"arguments": {"text": "é\u2028"}})
        assert reply.value["result"] == "é\u2028"
        late = {"tool": "raw__sleep", "arguments": {"seconds": 5}, "timeout": 0.2}
        assert (await live.ask("POST", "/api/call", late)).value["error"]["code"] == "timeout"
        large = await live.call("raw__echo", text="x" * 11_000_000)
        assert (large["ok"], large["error"]["code"]) == (False, "invalid_arguments")
        assert large["error"]["hint"]
        calls = (await live.ask("GET", "/api/calls?limit=3")).value["calls"]
        assert [call["tool"] for call in calls] == ["mcp_raw_echo", "mcp_raw_sleep", "mcp_raw_echo"]


def test_numbers_beyond_64_bits_and_lone_surrogates_can_be_written() -> None:
    assert json.loads(encode({"large": 2**70, "odd": "\ud800", 1: (2,)})) == {
        "large": 2**70,
        "odd": "\ud800",
        "1": [2],
    }


async def test_a_cut_result_is_read_whole_or_in_parts(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live, max_result_bytes=1024)
        output = await live.call("raw__big", bytes=5000)
        path = f"/api/results/{output['metadata']['handle']}"
        whole = await live.ask("GET", path)
        assert (whole.status, whole.body) == (200, b"x" * 5000)
        assert whole.headers["Content-Type"].startswith("text/plain")
        part = await live.ask("GET", f"{path}?offset=4990&limit=100")
        assert (part.status, part.body) == (206, b"x" * 10)
        assert part.headers["Content-Range"] == "bytes 4990-4999/5000"
        assert (await live.ask("GET", f"{path}?offset=5000")).value["code"] == "wrong_range"
        assert (await live.ask("GET", f"{path}?offset=-1")).value["code"] == "invalid_request"


async def test_events_are_streamed_with_ids(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live)
        headers = {"Authorization": f"Bearer {live.token}"}
        async with live.session.get(f"{live.url}/api/events", headers=headers) as stream:
            assert stream.headers["Content-Type"].startswith("text/event-stream")
            assert await stream.content.readline() == b": listening\n"
            await live.call("raw__echo", text="x")
            text = b""
            while b"call.finished" not in text or not text.endswith(b"\n\n"):
                text += await stream.content.readany()
            frames = [frame.split(b"\n") for frame in text.strip().split(b"\n\n")]
            assert [frame[0] for frame in frames] == [b"id: %d" % (n + 1) for n in range(len(frames))]
            last = json.loads(frames[-1][2].removeprefix(b"data: "))
            assert (last["kind"], last["data"]["ok"]) == ("call.finished", True)


async def test_an_idle_stream_is_kept_alive_and_ends_with_its_reader(tmp_path: Path) -> None:
    from dragoman.api.events import hub_frames
    from dragoman.web.server_sent_events import EventStream
    from dragoman.web.standing_streams import StandingStreams

    async with Hub(Settings(home=tmp_path)) as hub:
        sent: list[bytes] = []
        beats = asyncio.Event()
        gone = asyncio.Event()

        async def receive() -> Any:
            await gone.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            sent.append(message.get("body", b""))
            if sent.count(b": still here\n\n") == 3:
                beats.set()

        stream = EventStream(hub_frames(hub), StandingStreams(1), hub.caller, keep_alive=0.01)
        async with deadline(5), asyncio.TaskGroup() as tasks:
            tasks.create_task(stream({"type": "http"}, receive, send))
            await beats.wait()
            gone.set()
        assert not runtime_of(hub).events.has_listeners


async def test_metrics_are_in_the_format_of_prometheus(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live)
        await live.call("raw__echo", text="x")
        reply = await live.ask("GET", "/metrics")
        assert reply.headers["Content-Type"].startswith("text/plain; version=0.0.4")
        assert (
            b'dragoman_calls_total{connector="raw",outcome="succeeded",workspace="local"} 1.0' in reply.body
        )
        assert (
            b'dragoman_connector_state{connector="raw",state="connected",workspace="local"} 1.0' in reply.body
        )


async def test_ready_says_no_while_the_store_does_not_answer(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        assert (await live.ask("GET", "/ready")).value == {"status": "ready"}
        spoil_store(tmp_path)
        reply = await live.ask("GET", "/ready", Authorization="")
        assert (reply.status, reply.value["code"]) == (503, "store_unavailable")
        assert (await live.ask("GET", "/health")).status == 200


async def test_the_openapi_document_describes_every_path(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        document = (await live.ask("GET", "/api/openapi.json")).value
        assert {"/api/call", "/api/tools/{name}/call", "/api/connectors/{slug}/refresh"} <= set(
            document["paths"]
        )
        call = document["paths"]["/api/call"]["post"]
        assert call["requestBody"]["content"]["application/json"]["schema"]["required"] == ["tool"]
        assert call["responses"]["200"]["content"]["application/json"]["schema"]["$ref"].endswith(
            "OutputShape"
        )
        new = document["components"]["schemas"]["NewConnector"]
        assert {"name", "command", "url", "bearer", "retry", "auth"} <= set(new["properties"])
        assert "secrets" not in new["properties"]
        text = json.dumps(document)
        for reference in {part.split('"')[0] for part in text.split("#/components/schemas/")[1:]}:
            assert reference in document["components"]["schemas"], reference


async def test_a_secret_given_is_never_given_back(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        connector = await added(live, env={"API_TOKEN": SECRET, "PLAIN": SECRET}, secret=["env:PLAIN"])
        assert connector["secrets"] == ["env:API_TOKEN", "env:PLAIN"]
        far = {
            "name": "far",
            "url": "http://127.0.0.1:9/mcp",
            "bearer": SECRET,
            "headers": {"X-Api-Key": SECRET},
        }
        assert (await live.ask("POST", "/api/connectors", far)).value["secrets"] == [
            "auth",
            "header:X-Api-Key",
        ]
        await live.call("raw__stderr", text=f"my token is {SECRET}")
        await live.call("raw__fail", text=f"no, {SECRET}")
        for path in ("connectors", "connectors/raw", "connectors/far", "tools", "calls", "tools/raw__echo"):
            assert SECRET.encode() not in (await live.ask("GET", f"/api/{path}")).body, path
        assert SECRET.encode() not in (await live.ask("GET", "/metrics")).body
        changed = await live.ask("PATCH", "/api/connectors/raw", {"env": {"API_TOKEN": SECRET + "x"}})
        assert SECRET.encode() not in changed.body
        assert SECRET.encode() not in (tmp_path / "dragoman.db").read_bytes()


async def test_one_connection_carries_many_calls(tmp_path: Path) -> None:
    async with open_service(tmp_path) as live:
        await added(live)
        outputs = await asyncio.gather(*(live.call("raw__echo", text=f"t{n}") for n in range(200)))
        assert [output["result"] for output in outputs] == [f"t{n}" for n in range(200)]


async def test_the_door_does_not_close_a_hub_that_it_was_given(tmp_path: Path) -> None:
    async with Hub(Settings(home=tmp_path)) as hub:
        Api(hub).stop()
        assert (await hub.call("nothing")).ok is False
