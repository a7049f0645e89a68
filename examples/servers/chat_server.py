"""A sample team chat as an MCP server over stdio, with its state in `DIR/chat.json`.

python chat_server.py --data DIR
"""

import argparse
import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

from mcp.server.mcpserver import MCPServer
from mcp_types import CallToolResult, ResourceLink, ToolAnnotations
from pydantic import Field

from answers import answered, said
from channels import Channel, Channels, Member, Message
from state import add_data_option

READS = ToolAnnotations(read_only_hint=True, open_world_hint=False)
POSTS = ToolAnnotations(
    read_only_hint=False, destructive_hint=False, idempotent_hint=False, open_world_hint=True
)

AnyChannel = Annotated[
    str | None, Field(description="a channel, such as alerts or #alerts; all of them if omitted")
]
Limit = Annotated[int, Field(ge=1, le=100, description="most messages to return")]


@dataclass(frozen=True)
class FoundChannels:
    channels: list[Channel]


@dataclass(frozen=True)
class Members:
    members: list[Member]


@dataclass(frozen=True)
class Messages:
    messages: list[Message]
    count: int
    more: bool


ManyMessages = Annotated[CallToolResult, Messages]


def build_server(channels: Channels) -> MCPServer:
    server = MCPServer(
        "sample-chat",
        version="1.0.0",
        instructions="The chat of a team: channels, what was written in them, and who is here.",
        log_level="WARNING",
    )
    _add_messages(server, channels)
    _add_places_and_people(server, channels)
    return server


def _add_messages(server: MCPServer, channels: Channels) -> None:
    @server.tool(title="Read messages", annotations=READS)
    def read_messages(
        channel: AnyChannel = None,
        limit: Limit = 10,
        sender: Annotated[str | None, Field(description="only from this person, such as oncall")] = None,
        since: Annotated[str | None, Field(description="written at this date or time, or later")] = None,
    ) -> ManyMessages:
        """Read the latest messages, newest first; every filter is optional."""
        with said():
            found = channels.find_messages(channel=channel, sender=sender, since=since)
        return shown(found, limit)

    @server.tool(title="Search messages", annotations=READS)
    def search_messages(
        query: Annotated[str, Field(min_length=1, description="words that all occur in the message")],
        channel: AnyChannel = None,
        limit: Limit = 10,
    ) -> ManyMessages:
        """Find messages by their words, newest first."""
        with said():
            found = channels.find_messages(channel=channel, sender=None, since=None, words=query)
        return shown(found, limit)

    @server.tool(title="Post a message", annotations=POSTS)
    def post_message(
        channel: Annotated[str, Field(description="a channel, such as general or #general")],
        text: Annotated[str, Field(min_length=1, max_length=4000, description="what to write")],
        reply_to: Annotated[str | None, Field(description="id of the message that this answers")] = None,
    ) -> Message:
        """Write a message into a channel, for everybody there to read."""
        with said():
            return channels.post(channel, text, reply_to)

    @server.resource("chat://{channel}/{number}", mime_type="application/json")
    def message_resource(channel: str, number: str) -> str:
        """One message, as JSON."""
        with said():
            return json.dumps(asdict(channels.get_message(channel, number)), ensure_ascii=False)

    _ = read_messages, search_messages, post_message, message_resource  # the server holds them


def _add_places_and_people(server: MCPServer, channels: Channels) -> None:
    @server.tool(title="List channels", annotations=READS)
    def list_channels(
        query: Annotated[str, Field(description="part of the name or topic; empty lists all")] = "",
    ) -> FoundChannels:
        """List channels with their topics and members."""
        return FoundChannels(channels.list_channels(query))

    @server.tool(title="Who is here", annotations=READS)
    def who_is_here(channel: AnyChannel = None) -> Members:
        """List people with their presence and status."""
        with said():
            return Members(channels.list_members(channel))

    _ = list_channels, who_is_here  # the server holds them


def shown(found: Sequence[Message], limit: int) -> CallToolResult:
    """The first of them."""
    first = list(found[:limit])
    links = [
        ResourceLink(uri=message.uri, name=f"#{message.channel} {message.id}", mime_type="application/json")
        for message in first
    ]
    contexts = [
        {
            "uri": message.uri,
            "title": f"{message.sender} in #{message.channel}",
            "excerpt": message.text[:200],
        }
        for message in first
    ]
    return answered(asdict(Messages(first, len(first), len(found) > limit)), links, contexts)


def main() -> None:
    parser = argparse.ArgumentParser(prog="chat_server.py", description="A sample team chat.")
    add_data_option(parser)
    directory: Path = parser.parse_args().data
    build_server(Channels(directory / "chat.json")).run("stdio")


if __name__ == "__main__":
    main()
