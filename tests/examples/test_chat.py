"""The sample team chat, by the road and by the SDK's own client."""

import os
import signal
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest
from mcp import Client, StdioServerParameters

from dragoman import Hub
from servers.hubs import open_hub, until
from servers.samples import SERVERS, sample, sample_program

pytestmark = pytest.mark.anyio


async def called(hub: Hub, tool: str, **arguments: Any) -> Any:
    output = await hub.call(f"mcp_chat_{tool}", arguments)
    assert output.ok, output.error
    return output.result


async def test_the_latest_message_of_a_person_is_the_bug_that_they_report(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("chat", **sample("chat", tmp_path))
        latest = await called(hub, "read_messages", sender="@oncall", limit=1)
        alerts = await called(hub, "read_messages", channel="#alerts")
        everything = await called(hub, "read_messages")
        found = await called(hub, "search_messages", query="xyne HTTP")
    assert latest["messages"][0]["text"].startswith("Bug in xyne 4.2.1")
    assert {message["channel"] for message in alerts["messages"]} == {"alerts"}
    times = [message["time"] for message in everything["messages"]]
    assert (everything["count"], times) == (10, sorted(times, reverse=True))
    assert found["messages"] == latest["messages"]


@pytest.mark.slow
async def test_what_is_posted_outlives_a_kill_and_a_restart(tmp_path: Path) -> None:
    data = tmp_path / "data"
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("chat", **sample_program("chat", data))
        posted = await called(hub, "post_message", channel="#alerts", text="I look at it.", reply_to="m9")
        [server] = [
            one for one in psutil.Process().children() if str(SERVERS / "chat_server.py") in one.cmdline()
        ]
        os.kill(server.pid, signal.SIGKILL)
        await until(lambda: not server.is_running() or server.status() == psutil.STATUS_ZOMBIE)
        after_kill = await called(hub, "read_messages", channel="alerts", limit=1)
        second = await called(hub, "post_message", channel="general", text="Solved.")
    async with open_hub(tmp_path / "home") as hub:
        after_restart = await called(hub, "read_messages", limit=2)
    assert (posted["sender"], posted["reply_to"]) == ("octocat", "m9")
    assert after_kill["messages"] == [posted]
    assert after_restart["messages"] == [second, posted]


async def test_channels_and_people_are_listed_and_unknown_ones_named(tmp_path: Path) -> None:
    async with open_hub(tmp_path / "home") as hub:
        await hub.connectors.add("chat", **sample("chat", tmp_path))
        channels = await called(hub, "list_channels")
        here = await called(hub, "who_is_here", channel="alerts")
        wrong = await hub.call("mcp_chat_post_message", {"channel": "#alert", "text": "Hello"})
        no_such = await hub.call(
            "mcp_chat_post_message", {"channel": "dev", "text": "Hello", "reply_to": "m9"}
        )
        definitions = {tool.original_name: tool.definition for tool in hub.tools.list("chat")}
        untouched = await called(hub, "read_messages", limit=100)
    assert [channel["name"] for channel in channels["channels"]] == ["alerts", "dev", "general", "random"]
    assert [member["name"] for member in here["members"]] == ["mira", "octocat", "oncall"]
    assert wrong.error is not None
    assert "there is #alerts, #dev" in wrong.error.message
    assert no_such.error is not None
    assert "no message 'm9' in #dev" in no_such.error.message
    assert untouched["count"] == 10
    changing = {name for name, one in definitions.items() if not one.annotations.read_only}
    assert changing == {"post_message"}
    assert all(one.output_schema and one.description for one in definitions.values())
    assert "required" not in definitions["read_messages"].input_schema


async def test_messages_come_with_links_that_can_be_read_and_contexts_to_cite(tmp_path: Path) -> None:
    arguments = [str(SERVERS / "chat_server.py")]
    environment = {"DRAGOMAN_SAMPLES_DATA": str(tmp_path)}
    server = StdioServerParameters(command=sys.executable, args=arguments, env=environment)
    async with Client(server) as client:
        found = await client.call_tool("read_messages", {"limit": 1, "channel": "alerts"})
        read = await client.read_resource("chat://alerts/m9")
    assert found.meta is not None
    assert [context["uri"] for context in found.meta["contexts"]] == ["chat://alerts/m9"]
    assert found.content[1].type == "resource_link"
    assert "KeyError" in str(read.contents[0])
