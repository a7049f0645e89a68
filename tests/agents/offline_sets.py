"""The cases of `offline_cases.yaml`: tool sets as definitions, and what the model does with a request."""

from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Any

import yaml
from pydantic_ai.messages import (
    InstructionPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolCallPart,
    UserPromptPart,
)
from pydantic_ai.models import ModelRequestParameters
from pydantic_ai.tools import ToolDefinition

from dragoman.agents.offline import OfflineModel

ASK_PERSON = ToolDefinition(
    name="ask_person",
    description="Asks the person for values that are missing.",
    parameters_json_schema={
        "type": "object",
        "properties": {
            "question": {"type": "string"},
            "fields": {"type": "array", "items": {"type": "string"}},
        },
        "required": ["question"],
    },
)


@dataclass(frozen=True)
class Case:
    ask: str
    tools: list[ToolDefinition]
    instructions: str
    call: str | None
    arguments: dict[str, Any] | None
    missing: list[str] = field(default_factory=list[str])


@cache
def sets() -> dict[str, list[ToolDefinition]]:
    return {name: [_tool(entry) for entry in entries] for name, entries in _read()["sets"].items()}


def cases() -> list[Case]:
    document = _read()
    return [
        Case(
            ask=entry["ask"],
            tools=sets()[entry["set"]],
            instructions=document["instructions"].get(entry["set"], ""),
            call=None if entry.get("nothing") else entry["call"],
            arguments=entry.get("with"),
            missing=entry.get("missing", []),
        )
        for entry in document["cases"]
    ]


def cases_instructions(name: str) -> str:
    return _read()["instructions"].get(name, "")


async def respond(
    messages: str | list[ModelMessage], tools: list[ToolDefinition], instructions: str = ""
) -> ModelResponse:
    if isinstance(messages, str):
        messages = [ModelRequest(parts=[UserPromptPart(messages)])]
    parts = [InstructionPart(instructions)] if instructions else None
    parameters = ModelRequestParameters(function_tools=tools, instruction_parts=parts)
    return await OfflineModel().request(messages, None, parameters)


def calls_in(response: ModelResponse) -> list[tuple[str, dict[str, Any]]]:
    return [
        (part.tool_name, part.args_as_dict()) for part in response.parts if isinstance(part, ToolCallPart)
    ]


def text_in(response: ModelResponse) -> str:
    return "".join(part.content for part in response.parts if isinstance(part, TextPart))


def _tool(entry: dict[str, Any]) -> ToolDefinition:
    schema = {"type": "object", "properties": entry["properties"], "required": entry.get("required", [])}
    hints = {"readOnlyHint": entry.get("read_only"), "destructiveHint": entry.get("destructive")}
    said = {name: hint for name, hint in hints.items() if hint is not None}
    return ToolDefinition(
        name=entry["name"],
        description=entry["description"],
        parameters_json_schema=schema,
        metadata={"annotations": said} if said else None,
    )


@cache
def _read() -> dict[str, Any]:
    return yaml.safe_load((Path(__file__).parent / "offline_cases.yaml").read_text())
