"""The tools in agents of pydantic-ai, and as tools of LangChain: pip install 'dragoman[agents,langchain]'."""

import asyncio

from pydantic_ai import Agent
from pydantic_ai.models.test import TestModel

from dragoman import Annotations, Hub
from dragoman.integrations.langchain import langchain_tools
from dragoman.integrations.pydantic_ai import HubToolset

hub = Hub()


@hub.tool(annotations=Annotations(read_only=True))
def weather(city: str) -> str:
    """The weather in a city."""
    return f"Sun in {city}"


async def main() -> None:
    async with hub:
        # `TestModel` needs no key: it calls every tool once. Name a model of yours in its place.
        agent = Agent(TestModel(), toolsets=[HubToolset(hub, only=["weather"])])
        print("pydantic-ai:", (await agent.run("How is the weather?")).output)

        [tool] = await langchain_tools(
            hub, only=["weather"]
        )  # for model.bind_tools, or an agent of LangGraph
        print("langchain:", await tool.ainvoke({"city": "Rome"}))


asyncio.run(main())
