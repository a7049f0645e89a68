"""Clients that other people wrote and published, through the MCP door."""

import asyncio
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conformance import node_tools
from doors import TOKEN, Door, open_door
from dragoman.tool import Annotations
from patience import deadline
from servers.processes import stdio

pytestmark = [pytest.mark.anyio, pytest.mark.real, pytest.mark.timeout(300)]


@pytest.fixture(scope="module")
def tools() -> node_tools.NodeTools:
    found = node_tools.find()
    if isinstance(found, str):
        pytest.skip(found)
    return found


async def furnished(door: Door) -> None:
    await door.hub.connectors.add("box", **stdio(), approval="never")

    def rows() -> list[int]:
        """A list."""
        return [1, 2]

    def forget(name: str) -> str:
        """Forgets it."""
        return f"{name} is forgotten"

    door.hub.add_tool(rows, annotations=Annotations(read_only=True))
    door.hub.add_tool(forget, annotations=Annotations(destructive=True))


async def run(tools: node_tools.NodeTools, *command: str) -> str:
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *command, stdout=pipe, stderr=pipe, env=tools.environment, cwd=tools.folder
    )
    try:
        async with deadline(60):
            out, err = await process.communicate()
    finally:
        if process.returncode is None:
            process.kill()
            await process.wait()
    assert process.returncode == 0, err.decode()[-2000:] + out.decode()[-2000:]
    return out.decode()


@pytest.mark.parametrize("kind", ["sdk", "client", "client-2026"])
async def test_the_clients_of_typescript_list_and_call(
    tools: node_tools.NodeTools, tmp_path: Path, kind: str
) -> None:
    # Node looks for packages beside the program.
    program = tools.folder / "client.mjs"
    shutil.copyfile(Path(__file__).with_name("client.mjs"), program)
    async with open_door(tmp_path) as door:
        await furnished(door)
        said = await run(tools, str(tools.node), str(program), kind, f"{door.url}/mcp", TOKEN)
    found: Any = json.loads(said)
    if kind != "sdk":
        assert found["version"] == ("2026-07-28" if kind == "client-2026" else "2025-11-25")
    assert {"mcp_box_echo", "rows"} <= set(found["names"])
    assert found["called"]["content"] == [{"type": "text", "text": "caffè"}]
    assert found["structured"]["structuredContent"] == {"result": [1, 2]}
    assert found["failed"]["isError"] is True
    assert '"name": "milk"' in found["asked"], "the person of the client was asked for approval"
    assert found["approved"]["content"] == [{"type": "text", "text": "milk is forgotten"}]


async def test_the_inspector_lists_and_calls(tools: node_tools.NodeTools, tmp_path: Path) -> None:
    program = tools.program("@modelcontextprotocol/inspector", "clients", "launcher", "build", "index.js")
    async with open_door(tmp_path) as door:
        await furnished(door)
        base = [*program, "--cli", f"{door.url}/mcp", "--transport", "http"]
        header = ["--header", f"Authorization: Bearer {TOKEN}"]
        listed: Any = json.loads(await run(tools, *base, "--method", "tools/list", *header))
        assert "mcp_box_echo" in {tool["name"] for tool in listed["tools"]}
        call = ["--method", "tools/call", "--tool-name", "mcp_box_echo", "--tool-arg", "text=hi"]
        called: Any = json.loads(await run(tools, *base, *call, *header))
        assert called["content"] == [{"type": "text", "text": "hi"}]
