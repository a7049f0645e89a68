"""The test servers, held against the official client: a fault suite on wrong servers proves nothing."""

import asyncio
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters
from mcp.client.sse import sse_client
from mcp.client.subscriptions import ToolsListChanged

from patience import patient, until
from servers.processes import HttpProcess, journal, read_log, stdio

pytestmark = pytest.mark.anyio
ERAS = [
    ("2025", "legacy", "2025-11-25"),
    ("2025", "auto", "2025-11-25"),
    ("2026", "auto", "2026-07-28"),
    ("both", "auto", "2026-07-28"),
    ("both", "legacy", "2025-11-25"),
]


async def works(client: Client, version: str, file: Path) -> None:
    assert client.session.protocol_version == version
    assert {"echo", "send", "strict"} <= {tool.name for tool in (await client.list_tools()).tools}
    assert (await client.call_tool("echo", {"text": "héllo"})).content[0].text == "héllo"  # type: ignore[union-attr]
    assert (await client.call_tool("fail", {"text": "no"})).is_error
    await client.call_tool("send", {"text": "once"})
    assert journal(file) == ["once"]
    started = asyncio.get_running_loop().time()
    await asyncio.gather(*(client.call_tool("sleep", {"seconds": 0.3}) for _ in range(5)))
    assert asyncio.get_running_loop().time() - started < patient(1.2)


async def tells_of_a_new_tool(client: Client) -> None:
    async with client.listen(tools_list_changed=True) as changes:
        await client.call_tool("add_tool", {"name": "fresh"})
        assert await anext(changes) == ToolsListChanged()
    assert "fresh" in {tool.name for tool in (await client.list_tools()).tools}


@pytest.mark.parametrize(("era", "mode", "version"), ERAS)
async def test_the_stdio_server_satisfies_the_official_client(
    tmp_path: Path, era: str, mode: str, version: str
) -> None:
    file = tmp_path / "journal"
    parameters = StdioServerParameters(**stdio("--era", era, "--journal", str(file), "--page", "7"))
    async with Client(parameters, mode=mode) as client:
        first = await client.list_tools()
        assert len(first.tools) == 7
        assert first.next_cursor == "7"
    parameters = StdioServerParameters(**stdio("--era", era, "--journal", str(file)))
    async with Client(parameters, mode=mode) as client:
        await works(client, version, file)
        if version == "2026-07-28":
            await tells_of_a_new_tool(client)


@pytest.mark.parametrize("answers", [(), ("--sse",)])
@pytest.mark.parametrize(("era", "mode", "version"), ERAS)
async def test_the_http_server_satisfies_the_official_client(
    tmp_path: Path, era: str, mode: str, version: str, answers: tuple[str, ...]
) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--era", era, "--journal", str(file), *answers) as server:
        async with Client(server.url, mode=mode) as client:
            await works(client, version, file)
            assert server.state()["sessions"] == (version == "2025-11-25")
            if version == "2026-07-28":
                await tells_of_a_new_tool(client)


async def test_the_sse_server_satisfies_the_official_client(tmp_path: Path) -> None:
    file = tmp_path / "journal"
    with HttpProcess(tmp_path, "--journal", str(file), program="sse_server.py") as server:
        async with Client(sse_client(server.url), mode="legacy") as client:
            await works(client, "2025-11-25", file)


@pytest.mark.parametrize("era", ["2025", "2026"])
async def test_the_stdio_server_hears_a_cancellation(tmp_path: Path, era: str) -> None:
    log = tmp_path / "log"
    parameters = StdioServerParameters(**stdio("--era", era, "--log", str(log)))
    async with Client(parameters) as client:
        calling = asyncio.ensure_future(client.call_tool("sleep", {"seconds": 30}))
        await until(lambda: any(entry.get("tool") == "sleep" for entry in read_log(log)))
        calling.cancel()
        with pytest.raises(asyncio.CancelledError):
            await calling
        await client.call_tool("echo", {"text": "still here"})
        await until(lambda: "cancelled" in [entry["event"] for entry in read_log(log)])
