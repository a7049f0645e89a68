"""Tools for LangChain and LangGraph: `model.bind_tools(await langchain_tools(hub))`."""

from collections.abc import Iterable
from typing import Any

from dragoman.extras import require
from dragoman.hub import BoundHub
from dragoman.integrations.model_tools import ModelTools, parameters
from dragoman.tool import OnElicitation, OnProgress, Tool

try:
    from langchain_core.tools import BaseTool, StructuredTool, ToolException
except ModuleNotFoundError:
    require("langchain")
    raise


async def langchain_tools(
    hub: BoundHub,
    *,
    only: Iterable[str] | None = None,
    agent: str = "program",
    timeout: float | None = None,
    on_progress: OnProgress | None = None,
    on_elicitation: OnElicitation | None = None,
) -> list[BaseTool]:
    """The tools of a hub that can be called now; what is given is as for `ModelTools`.

    They are async: `await tool.ainvoke(…)`. A call that fails becomes a `ToolMessage` with the status `error`
    that says why, and what to do.
    """
    tools = ModelTools(
        hub,
        only=only,
        agent=agent,
        timeout=timeout,
        on_progress=on_progress,
        on_elicitation=on_elicitation,
    )
    return [_langchain_tool(tools, tool) for tool in await tools.ready()]


def _langchain_tool(tools: ModelTools, tool: Tool) -> BaseTool:
    async def call(**arguments: Any) -> str:
        reply = await tools.call(tool.name, arguments)
        if reply.ok:
            return reply.text
        raise ToolException(reply.text)

    return StructuredTool(
        name=tool.name,
        description=tool.model_description,
        args_schema=parameters(tool),
        coroutine=call,
        handle_tool_error=True,
        metadata={"connector": tool.slug},
    )
