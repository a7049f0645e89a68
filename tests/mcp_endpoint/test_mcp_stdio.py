"""`dragoman stdio` as a real client starts it: a program with two pipes."""

import asyncio
import json
import os
import subprocess
import sys
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from doors import META, TOKEN, open_door
from dragoman.hub import clients_of
from patience import deadline, patient
from servers.hubs import open_hub
from servers.processes import stdio

pytestmark = [pytest.mark.anyio, pytest.mark.slow]
ERAS = pytest.mark.parametrize("mode", ["2026-07-28", "legacy"])
PROGRAM = "import typer; from dragoman.cli.stdio import stdio; typer.run(stdio)"
FREE: dict[str, Any] = {**stdio(), "approval": "never"}


def program(*words: str, **environment: str) -> StdioServerParameters:
    known = {name: value for name, value in os.environ.items() if not name.startswith("DRAGOMAN_")}
    return StdioServerParameters(
        command=sys.executable, args=["-c", PROGRAM, *words], env={**known, **environment}
    )


@ERAS
async def test_without_a_service_it_opens_the_home_by_itself(tmp_path: Path, mode: str) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("box", **FREE)
    async with Client(program(DRAGOMAN_HOME=str(tmp_path)), mode=mode) as client:
        assert "mcp_box_echo" in {tool.name for tool in (await client.list_tools()).tools}
        result: Any = await client.call_tool("mcp_box_echo", {"text": "caffè"})
        assert result.content[0].text == "caffè"
    words = ("--connector", "box")
    async with Client(program(*words, DRAGOMAN_HOME=str(tmp_path)), mode=mode) as client:
        assert "echo" in {tool.name for tool in (await client.list_tools()).tools}


@ERAS
async def test_it_speaks_to_the_running_service_and_hears_its_news(tmp_path: Path, mode: str) -> None:
    changed = asyncio.Event()

    async def heard(message: Any) -> None:
        if "ListChanged" in type(message).__name__:
            changed.set()

    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        server = program(
            "--view", "tools", DRAGOMAN_URL=door.url, DRAGOMAN_TOKEN=TOKEN, DRAGOMAN_HOME=str(tmp_path)
        )
        async with Client(server, mode=mode, message_handler=heard) as client:
            result: Any = await client.call_tool("mcp_box_echo", {"text": "hi"})
            assert result.content[0].text == "hi"
            if mode == "legacy":
                # Its standing stream opens by itself, and nobody tells when: what changed before is no news.
                async with deadline(30):
                    for number in count():
                        await door.hub.connectors.add(f"other{number}", **FREE)
                        with suppress(TimeoutError):
                            await asyncio.wait_for(changed.wait(), 1)
                            break


async def test_it_ends_with_its_input_and_prints_nothing_but_messages(tmp_path: Path) -> None:
    async with open_hub(tmp_path) as hub:
        await hub.connectors.add("box", **FREE)
    call = {"name": "mcp_box_echo", "arguments": {"text": "hi"}, "_meta": META}
    lines = [
        b"",
        b"no json",
        json.dumps({"jsonrpc": "2.0", "id": 7, "method": "tools/call", "params": call}).encode(),
        json.dumps({"jsonrpc": "2.0", "id": 8, "method": "no/such", "params": {"_meta": META}}).encode(),
    ]
    environment = {**os.environ, "DRAGOMAN_HOME": str(tmp_path), "DRAGOMAN_LOG_LEVEL": "info"}
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM],
        input=b"\n".join(lines),
        capture_output=True,
        timeout=patient(60),
        env=environment,
    )
    assert done.returncode == 0, done.stderr
    said = {message["id"]: message for message in map(json.loads, done.stdout.splitlines())}
    assert said[None]["error"]["code"] == -32700
    assert said[7]["result"]["content"][0]["text"] == "hi"
    assert said[8]["error"]["code"] == -32601
    assert len(said) == 3


async def test_a_session_that_the_service_forgot_is_opened_again(tmp_path: Path) -> None:
    async with open_door(tmp_path) as door:
        await door.hub.connectors.add("box", **FREE)
        server = program(DRAGOMAN_URL=door.url, DRAGOMAN_TOKEN=TOKEN, DRAGOMAN_HOME=str(tmp_path))
        async with Client(server, mode="legacy") as client:
            await client.call_tool("mcp_box_echo", {"text": "hi"})
            sessions = door.endpoint._sessions
            for session in [*sessions._sessions.values()]:
                await sessions.close(session, clients_of(door.hub))
            result: Any = await client.call_tool("mcp_box_echo", {"text": "again"})
            assert result.content[0].text == "again"


async def test_a_service_that_is_not_there_is_told_at_once(tmp_path: Path) -> None:
    environment = {
        **os.environ,
        "DRAGOMAN_HOME": str(tmp_path),
        "DRAGOMAN_URL": "http://127.0.0.1:9",
        "DRAGOMAN_TOKEN": "x",
    }
    done = await asyncio.to_thread(
        subprocess.run,
        [sys.executable, "-c", PROGRAM],
        input=b"",
        capture_output=True,
        timeout=patient(60),
        env=environment,
    )
    assert done.returncode == 1
    assert done.stdout == b""
    assert b"no service answers" in done.stderr
