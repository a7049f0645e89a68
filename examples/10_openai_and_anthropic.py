"""The tools in a program that talks to OpenAI's or Anthropic's models with their own clients.

pip install 'dragoman[openai,anthropic]'. Here a stand-in answers (`servers/scripted_model.py`); with a key of
yours, leave `api_key` and `base_url` out.
"""

import asyncio
import sys
from typing import Any

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI

from dragoman import Annotations, Hub
from dragoman.examples import examples
from dragoman.integrations.anthropic import AnthropicTools
from dragoman.integrations.openai import ChatTools

sys.path.append(str(examples() / "servers"))
from scripted_model import scripted_model

hub = Hub()
ASKED: list[Any] = [{"role": "user", "content": '{"city": "Rome"}'}]


@hub.tool(annotations=Annotations(read_only=True))
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun in {city}"


async def by_openai(client: AsyncOpenAI) -> str | None:
    tools, messages = ChatTools(hub, only=["weather"]), [*ASKED]
    while True:
        given = await tools.definitions()
        answer = await client.chat.completions.create(model="any", messages=messages, tools=given)
        message = answer.choices[0].message
        if not (results := await tools.run(message)):
            return message.content
        messages += [message, *results]


async def by_anthropic(client: AsyncAnthropic) -> str:
    tools, messages = AnthropicTools(hub, only=["weather"]), [*ASKED]
    while True:
        given = await tools.definitions()
        answer = await client.messages.create(model="any", max_tokens=500, messages=messages, tools=given)
        if not (results := await tools.run(answer)):
            return "".join(block.text for block in answer.content if block.type == "text")
        messages += [{"role": "assistant", "content": answer.content}, *results]


async def main(url: str) -> None:
    async with hub:
        print("openai:", await by_openai(AsyncOpenAI(api_key="k", base_url=f"{url}/v1")))
        print("anthropic:", await by_anthropic(AsyncAnthropic(api_key="k", base_url=url)))


with scripted_model() as address:
    asyncio.run(main(address))
