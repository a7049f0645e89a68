"""Tools for agents of pydantic-ai: `Agent(model, toolsets=[HubToolset(hub)])`."""

from typing import Any

from pydantic_core import SchemaValidator, core_schema

from dragoman.extras import require
from dragoman.integrations.model_tools import ModelTools, parameters

try:
    from pydantic_ai import RunContext
    from pydantic_ai.exceptions import ToolFailed
    from pydantic_ai.tools import ToolDefinition
    from pydantic_ai.toolsets import AbstractToolset, ToolsetTool
except ModuleNotFoundError:
    require("agents")
    raise

_ANYTHING = SchemaValidator(core_schema.dict_schema(core_schema.str_schema(), core_schema.any_schema()))
_RETRIES = 3  # arguments that are no JSON may be sent again so often


class HubToolset(ModelTools, AbstractToolset[Any]):
    """The tools of a hub for agents of pydantic-ai, read again before each request to the model.

    A call that fails is told to the model with why, and what to do; it costs no retry.
    """

    @property
    def id(self) -> str | None:
        return "dragoman"

    async def get_tools(self, ctx: RunContext[Any]) -> dict[str, ToolsetTool[Any]]:
        """What the model can call now."""
        return {
            tool.name: ToolsetTool(
                toolset=self,
                tool_def=ToolDefinition(
                    name=tool.name,
                    description=tool.model_description,
                    parameters_json_schema=parameters(tool),
                    metadata={"connector": tool.slug},
                ),
                max_retries=_RETRIES,
                args_validator=_ANYTHING,  # Dragoman checks them
            )
            for tool in await self.ready()
        }

    async def call_tool(
        self, name: str, tool_args: dict[str, Any], ctx: RunContext[Any], tool: ToolsetTool[Any]
    ) -> Any:
        """The result as the tool gave it."""
        reply = await self.call(name, tool_args)
        if reply.ok:
            return reply.result
        raise ToolFailed(reply.text)
