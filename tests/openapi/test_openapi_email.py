"""The sample e-mail service as a real process, through the hub."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from mailboxes import Mailbox
from patience import deadline
from servers.hubs import open_hub, quick
from servers.samples import SERVERS

pytestmark = pytest.mark.anyio


@asynccontextmanager
async def open_service(mailbox: Path, port_file: Path) -> AsyncGenerator[str]:
    """The URL that it prints when it is ready."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, str(SERVERS / "email_service.py"), "--port", "0"),
        *("--port-file", str(port_file), "--mailbox", str(mailbox)),
        stdout=asyncio.subprocess.PIPE,
    )
    assert process.stdout is not None
    try:
        async with deadline(30):
            yield (await process.stdout.readline()).decode().strip()
    finally:
        process.terminate()
        async with deadline(10):
            await process.communicate()


async def test_the_sample_service_sends_and_reads(tmp_path: Path) -> None:
    mailbox, port_file = tmp_path / "mail.json", tmp_path / "port"
    async with open_service(mailbox, port_file) as url, open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("email", kind="openapi", openapi=url, **quick())
        tools = {tool.original_name: tool for tool in hub.tools.list("email")}
        sent = await hub.call("mcp_email_send-email", {"to": "ann@example.com", "subject": "Hello"})
        read = await hub.call("mcp_email_read-emails", {"unread_only": True, "limit": 2, "sender": ""})
        wrong = await hub.call("mcp_email_send-email", {"to": []})
        assert url == f"http://127.0.0.1:{int(port_file.read_text())}"
    assert set(tools) == {"send-email", "read-emails"}
    assert tools["read-emails"].definition.annotations.read_only is True
    assert set(tools["send-email"].definition.input_schema["properties"]) == {
        "to",
        "subject",
        "body",
        "cc",
        "bcc",
    }
    assert sent.result["to"] == ["ann@example.com"]
    assert (read.result["count"], read.result["more"]) == (2, True)
    assert wrong.error is not None
    assert "'to' needs at least one address" in wrong.error.message
    assert Mailbox(mailbox).list_sent()[0].subject == "Hello"
