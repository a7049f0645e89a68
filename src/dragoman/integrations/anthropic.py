"""Tools for Anthropic's client.

tools = AnthropicTools(hub)
answer = await client.messages.create(…, messages=messages, tools=await tools.definitions())
messages += [{"role": "assistant", "content": answer.content}, *await tools.run(answer)]
"""

import asyncio
from typing import TYPE_CHECKING

from dragoman.extras import require
from dragoman.integrations.model_tools import ModelTools, parameters

if TYPE_CHECKING:
    from anthropic.types import Message, MessageParam, ToolParam, ToolResultBlockParam, ToolUseBlock

require("anthropic")


class AnthropicTools(ModelTools):
    """The tools of a hub for `client.messages`."""

    async def definitions(self) -> "list[ToolParam]":
        """For `tools=`."""
        return [
            {"name": tool.name, "description": tool.model_description, "input_schema": parameters(tool)}
            for tool in await self.ready()
        ]

    async def run(self, message: "Message") -> "list[MessageParam]":
        """Makes the calls that the message asks for; what to append to `messages` after it.

        Empty where it asks for none, else one message with all results. A call that fails is answered with
        why, and what to do.
        """
        calls = [block for block in message.content if block.type == "tool_use"]
        results = await asyncio.gather(*map(self._answered, calls))
        return [{"role": "user", "content": results}] if results else []

    async def _answered(self, call: "ToolUseBlock") -> "ToolResultBlockParam":
        reply = await self.call(call.name, call.input)
        return {
            "type": "tool_result",
            "tool_use_id": call.id,
            "content": reply.text,
            "is_error": not reply.ok,
        }
