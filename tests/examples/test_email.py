"""The sample e-mail server as real processes, through the SDK's own client, on every transport and era."""

import asyncio
import sys
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Literal

import pytest
from mcp import Client, StdioServerParameters

from mailboxes import Mailbox
from patience import deadline, until
from servers.samples import SERVERS, sample

pytestmark = pytest.mark.anyio
WAYS = ["stdio-legacy", "stdio-2026-07-28", "http-legacy", "http-2026-07-28"]
Mode = Literal["legacy", "2026-07-28"]


@asynccontextmanager
async def open_http_server(mailbox: Path, *more: str) -> AsyncGenerator[str]:
    """The URL that a real server prints when it is ready."""
    process = await asyncio.create_subprocess_exec(
        *(
            sys.executable,
            str(SERVERS / "email_server.py"),
            "--http",
            "--port",
            "0",
            "--mailbox",
            str(mailbox),
        ),
        *more,
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


@asynccontextmanager
async def open_client(way: str, mailbox: Path) -> AsyncGenerator[Client]:
    transport, _, era = way.partition("-")
    mode: Mode = "legacy" if era == "legacy" else "2026-07-28"
    if transport == "stdio":
        arguments = [str(SERVERS / "email_server.py"), "--mailbox", str(mailbox)]
        async with Client(StdioServerParameters(command=sys.executable, args=arguments), mode=mode) as client:
            yield client
    else:
        async with open_http_server(mailbox) as url, Client(url, mode=mode) as client:
            yield client


def client_of(folder: Path) -> Client:
    """For what is the same by every way: no process of its own."""
    return Client(sample("email", folder)["url"])


@pytest.mark.parametrize("way", WAYS)
async def test_both_tools_work_over_every_transport_and_era(way: str, tmp_path: Path) -> None:
    mailbox = tmp_path / "mail.json"
    async with open_client(way, mailbox) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
        sent = await client.call_tool("send-email", {"to": "ann@example.com", "subject": "Hello"})
        read = await client.call_tool("read-emails", {"unread_only": True, "limit": 2})
    assert set(tools) == {"send-email", "read-emails"}
    assert not sent.is_error
    assert sent.structured_content is not None
    assert sent.structured_content["to"] == ["ann@example.com"]
    assert read.structured_content is not None
    assert (read.structured_content["count"], read.structured_content["more"]) == (2, True)
    assert all(email["unread"] for email in read.structured_content["emails"])
    assert Mailbox(mailbox).list_sent()[0].subject == "Hello"


async def test_the_tools_say_what_they_take_and_what_they_are(tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        tools = {tool.name: tool for tool in (await client.list_tools()).tools}
    send, read = tools["send-email"], tools["read-emails"]
    assert set(send.input_schema["properties"]) == {"to", "subject", "body", "cc", "bcc"}
    assert send.input_schema["required"] == ["to"]
    assert send.input_schema["properties"]["to"]["anyOf"][0] == {"format": "email", "type": "string"}
    assert set(read.input_schema["properties"]) == {"limit", "sender", "subject_contains", "unread_only"}
    assert "required" not in read.input_schema
    assert send.output_schema is not None
    assert read.output_schema is not None
    assert send.annotations is not None
    assert read.annotations is not None
    hints = send.annotations
    assert (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint) == (False, False, False)
    assert read.annotations.read_only_hint is True


@pytest.mark.parametrize(
    ("arguments", "subjects"),
    [
        ({"limit": 1}, ["Re: Budget table"]),
        ({"sender": "Ken.Tanaka"}, ["Call with the Tokyo office"]),
        ({"subject_contains": "invoice"}, ["Invoice 2026-0311 is ready"]),
        ({"sender": "giulia", "unread_only": True}, ["Re: Budget table"]),
        ({"sender": "nobody"}, []),
    ],
)
async def test_reading_filters(arguments: dict[str, Any], subjects: list[str], tmp_path: Path) -> None:
    async with client_of(tmp_path) as client:
        found = await client.call_tool("read-emails", arguments)
    assert found.structured_content is not None
    assert [email["subject"] for email in found.structured_content["emails"]] == subjects


async def test_invalid_addresses_and_arguments_are_errors_and_nothing_is_sent(tmp_path: Path) -> None:
    wrong: list[dict[str, Any]] = [
        {"to": "nobody"},
        {"to": []},
        {"to": ["ann@example.com", "a b@example.com"]},
        {"to": "ann@example.com", "cc": "@example.com"},
        {"to": "ann@example.com\n"},
        {},
        {"to": 7},
    ]
    async with client_of(tmp_path) as client:
        answers = [await client.call_tool("send-email", arguments) for arguments in wrong]
        bad_limit = await client.call_tool("read-emails", {"limit": 0})
        fine = await client.call_tool(
            "send-email", {"to": ["a@example.com", "b@example.org"], "bcc": "c@d.example"}
        )
    assert all(answer.is_error for answer in answers)
    assert "'nobody' is not an e-mail address" in str(answers[0].content)
    assert bad_limit.is_error
    assert not fine.is_error
    assert len(Mailbox(tmp_path / "mailbox.json").list_sent()) == 1


async def test_the_port_is_written_to_a_file_for_those_who_wait(tmp_path: Path) -> None:
    port_file = tmp_path / "port"
    async with open_http_server(tmp_path / "mail.json", "--port-file", str(port_file)) as url:
        await until(port_file.exists, within=10)
        assert url == f"http://127.0.0.1:{int(port_file.read_text())}/mcp"


@pytest.mark.slow
async def test_two_servers_share_one_mailbox(tmp_path: Path) -> None:
    mailbox = tmp_path / "mail.json"
    async with open_client("http-2026-07-28", mailbox) as one, open_client("stdio-legacy", mailbox) as other:
        await one.call_tool("send-email", {"to": "you@example.com", "subject": "Across"})
        found = await other.call_tool("read-emails", {"subject_contains": "across"})
    assert found.structured_content is not None
    assert found.structured_content["count"] == 1
