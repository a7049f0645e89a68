"""Answers that no server should give: the fault is the server's, and a change may have happened."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.errors import DragomanError
from servers.hubs import open_hub, quick

pytestmark = [pytest.mark.anyio, pytest.mark.fault]
JSON = b"Content-Type: application/json\r\n"
STREAM = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Type: text/event-stream\r\n\r\n"
OK = {"content": [{"type": "text", "text": "ok"}]}


def whole(status: int, headers: bytes = JSON, body: bytes = b"") -> bytes:
    return b"HTTP/1.1 %d .\r\n%sContent-Length: %d\r\n\r\n%s" % (status, headers, len(body), body)


def replied(**facts: Any) -> bytes:
    return whole(200, body=json.dumps({"jsonrpc": "2.0", "id": "ID", **facts}).encode())


def asked_first(*messages: Any) -> bytes:
    """What the server wants of us, then the result."""
    last = {"jsonrpc": "2.0", "id": "ID", "result": OK}
    return STREAM + b"".join(b"data: " + json.dumps(one).encode() + b"\n\n" for one in (*messages, last))


# What each is for a tool that only reads, and for one that changes something.
ODD: dict[str, tuple[bytes, str, str]] = {
    "Retry-After in another script": (
        whole(429, "Retry-After: ²\r\n".encode()),
        "rate_limited",
        "rate_limited",
    ),
    "Retry-After without end": (
        whole(503, b"Retry-After: " + b"9" * 400 + b"\r\n"),
        "server_error",
        "uncertain",
    ),
    "Retry-After in the year 9999": (
        whole(503, b"Retry-After: Fri, 31 Dec 9999 23:59:59 -2359\r\n"),
        "server_error",
        "uncertain",
    ),
    "a redirect to no address": (whole(307, b"Location: http://[::x\r\n"), "unreachable", "unreachable"),
    "a redirect to no port": (
        whole(308, b"Location: http://127.0.0.1:99999999/\r\n"),
        "unreachable",
        "unreachable",
    ),
    "an error that is none": (replied(result=OK, error=None), "", ""),
    "an error of words": (replied(error="boom"), "tool_failed", "tool_failed"),
    "an error beside a result": (
        replied(result=OK, error={"code": 1, "message": "no"}),
        "tool_failed",
        "tool_failed",
    ),
    "a number of a million digits": (
        whole(
            200, body=b'{"jsonrpc": "2.0", "id": "ID", "result": {"structuredContent": %s}}' % (b"9" * 10**6)
        ),
        "protocol_fault",
        "uncertain",
    ),
    "input for nothing": (
        replied(result={"resultType": "input_required", "inputRequests": 5}),
        "protocol_fault",
        "uncertain",
    ),
    "a request that no answer can name": (
        asked_first(
            {"jsonrpc": "2.0", "id": [], "method": "ping"},
            {"jsonrpc": "2.0", "id": {}, "method": "elicitation/create", "params": 7},
            {"jsonrpc": "2.0", "id": None, "method": "ping"},
        ),
        "",
        "",
    ),
    "progress of anything": (
        asked_first(
            *(
                {
                    "jsonrpc": "2.0",
                    "method": "notifications/progress",
                    "params": {"progressToken": "ID", **odd},
                }
                for odd in ({"progress": "x"}, {"progress": {}, "total": []}, {"message": {"a": 1}}, {})
            )
        ),
        "",
        "",
    ),
}


def listed(params: dict[str, Any]) -> dict[str, Any]:
    schema = {"type": "object", "properties": {"what": {"type": "string"}}}
    look = {"name": "look", "inputSchema": schema, "annotations": {"readOnlyHint": True}}
    return {"tools": [look, {"name": "send", "inputSchema": schema}]}


async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while line := await reader.readline():
            headers = {}
            while field := (await reader.readline()).decode().strip():
                name, _, value = field.partition(":")
                headers[name.lower()] = value.strip()
            message = json.loads(await reader.readexactly(int(headers.get("content-length", 0))) or b"{}")
            method, params = message.get("method"), message.get("params") or {}
            if not line.startswith(b"POST"):
                said = whole(405, b"")
            elif "id" not in message or method is None:
                said = whole(202, b"")
            elif method == "initialize":
                facts = {"capabilities": {"tools": {}}, "serverInfo": {"name": "odd", "version": "1"}}
                said = replied(result={"protocolVersion": "2025-11-25", **facts})
            elif method == "tools/list":
                said = replied(result=listed(params) | json.loads(headers.get("x-more", "{}")))
            elif method == "tools/call":
                said = ODD[params["arguments"]["what"]][0]
            else:
                said = replied(error={"code": -32601, "message": "no such method"})
            head, _, body = said.partition(b"\r\n\r\n")
            whole_body = body.replace(b'"ID"', str(message.get("id")).encode())
            size = b"Content-Length: %d" % len(body), b"Content-Length: %d" % len(whole_body)
            writer.write(head.replace(*size) + b"\r\n\r\n" + whole_body)
            await writer.drain()
            if b"Connection: close" in head:
                break
    except (ConnectionError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


@asynccontextmanager
async def odd_server() -> AsyncGenerator[str]:
    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/mcp"


async def test_whatever_a_server_answers_is_its_fault_and_a_change_stays_uncertain(tmp_path: Path) -> None:
    async with odd_server() as url, open_hub(tmp_path) as hub:
        await hub.connectors.add("odd", url=url, **quick(retry={"tries": 1}))
        for what, (_, reading, writing) in ODD.items():
            for tool, code in (("look", reading), ("send", writing)):
                output = await hub.call(f"mcp_odd_{tool}", {"what": what})
                assert (output.error.code if output.error else "") == code, (what, output.error)
            assert (await hub.connectors.get("odd")).status.state == "connected", what


@pytest.mark.parametrize("cursor", [7, ["a"], {"a": 1}])
async def test_a_list_that_goes_on_nowhere_is_the_servers_fault(tmp_path: Path, cursor: Any) -> None:
    more = {"X-More": json.dumps({"nextCursor": cursor})}
    async with odd_server() as url, open_hub(tmp_path) as hub:
        await hub.connectors.add("odd", url=url, headers=more, connect=False)
        with pytest.raises(DragomanError, match="list of tools") as told:
            await hub.connectors.refresh("odd")
        assert told.value.code == "protocol_fault"
