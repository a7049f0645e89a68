"""A model for all: it asks the first tool that says whose token it has, and repeats what it was told."""

from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel


async def _repeat(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    prompt, results, turn = "", list[Any](), 0
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
            continue
        for part in message.parts:
            if isinstance(part, UserPromptPart):
                prompt, results, turn = str(part.content), [], 0
            elif part.part_kind == "tool-return":
                results.append(part.content)
    names = [tool.name for tool in info.function_tools]
    tool = next((name for name in names if name.endswith("_whoami")), None)
    if turn == 0 and "ask me" in prompt and "ask_person" in names:
        given = '{"question": "really?"}'
        yield {0: DeltaToolCall(name="ask_person", json_args=given, tool_call_id="a")}
    elif turn == 0 and tool is not None:
        yield {0: DeltaToolCall(name=tool, json_args="{}", tool_call_id="w")}
    else:
        yield f"{prompt} {results} {names}"


def make_model() -> FunctionModel:
    return FunctionModel(stream_function=_repeat, model_name="repeat")
