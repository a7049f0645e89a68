"""Tools for OpenAI's client, and for whatever speaks like it: Chat Completions and Responses.

tools = ChatTools(hub)
answer = await client.chat.completions.create(…, messages=messages, tools=await tools.definitions())
message = answer.choices[0].message
messages += [message, *await tools.run(message)]
"""

import asyncio
from typing import TYPE_CHECKING

from dragoman.extras import require
from dragoman.integrations.model_tools import ModelTools, parameters

if TYPE_CHECKING:
    from openai.types.chat import (
        ChatCompletionFunctionToolParam,
        ChatCompletionMessage,
        ChatCompletionMessageFunctionToolCall,
        ChatCompletionToolMessageParam,
    )
    from openai.types.responses import FunctionToolParam, Response, ResponseFunctionToolCall
    from openai.types.responses.response_input_param import FunctionCallOutput

require("openai")


class ChatTools(ModelTools):
    """The tools of a hub for `client.chat.completions`."""

    async def definitions(self) -> "list[ChatCompletionFunctionToolParam]":
        """For `tools=`."""
        return [
            {
                "type": "function",
                "function": {
                    "name": tool.name,
                    "description": tool.model_description,
                    "parameters": parameters(tool),
                },
            }
            for tool in await self.ready()
        ]

    async def run(self, message: "ChatCompletionMessage") -> "list[ChatCompletionToolMessageParam]":
        """Makes the calls that the message asks for; what to append to `messages` after it.

        Empty where it asks for none. A call that fails is answered with why, and what to do.
        """
        calls = [call for call in message.tool_calls or () if call.type == "function"]
        return await asyncio.gather(*map(self._answered, calls))

    async def _answered(
        self, call: "ChatCompletionMessageFunctionToolCall"
    ) -> "ChatCompletionToolMessageParam":
        reply = await self.call(call.function.name, call.function.arguments)
        return {"role": "tool", "tool_call_id": call.id, "content": reply.text}


class ResponsesTools(ModelTools):
    """The tools of a hub for `client.responses`."""

    async def definitions(self) -> "list[FunctionToolParam]":
        """For `tools=`. Not strict: schemas of servers are seldom what that wants; Dragoman checks them."""
        return [
            {
                "type": "function",
                "name": tool.name,
                "description": tool.model_description,
                "parameters": parameters(tool),
                "strict": False,
            }
            for tool in await self.ready()
        ]

    async def run(self, response: "Response") -> "list[FunctionCallOutput]":
        """Makes the calls that the response asks for; the next `input`, with `previous_response_id`.

        Empty where it asks for none. A call that fails is answered with why, and what to do.
        """
        calls = [item for item in response.output if item.type == "function_call"]
        return await asyncio.gather(*map(self._answered, calls))

    async def _answered(self, call: "ResponseFunctionToolCall") -> "FunctionCallOutput":
        reply = await self.call(call.name, call.arguments)
        return {"type": "function_call_output", "call_id": call.call_id, "output": reply.text}
