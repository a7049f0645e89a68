"""A hub with the raw test server behind `box`, and models that note what they are offered and told."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    ToolReturnPart,
    UserPromptPart,
)
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from dragoman import Hub
from dragoman.settings import Settings
from servers.hubs import quick
from servers.processes import stdio

Call = tuple[str, dict[str, Any]]


@dataclass
class Seen:
    """One request to the model."""

    request: str
    turn: int
    tools: list[str]
    instructions: str
    told: list[str]

    @property
    def is_child(self) -> bool:
        return "the agent of" in self.instructions


@dataclass
class Listening:
    """A model that does what `script` says: calls, or a text that ends the run."""

    script: Callable[[Seen], list[Call] | str]
    requests: list[Seen] = field(default_factory=list[Seen])

    @property
    def model(self) -> FunctionModel:
        async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
            seen = _seen(messages, info)
            self.requests.append(seen)
            said = self.script(seen)
            if isinstance(said, str):
                yield said
                return
            for place, (name, arguments) in enumerate(said):
                yield {place: DeltaToolCall(name, json.dumps(arguments), tool_call_id=f"c{seen.turn}{place}")}

        return FunctionModel(stream_function=answer)


def _seen(messages: list[ModelMessage], info: AgentInfo) -> Seen:
    request, turn, told = "", 0, list[str]()
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            for part in message.parts:
                if isinstance(part, UserPromptPart) and not str(part.content).startswith("<system>"):
                    request, turn, told = str(part.content), 0, []
                elif isinstance(part, ToolReturnPart):
                    told.append(json.dumps(_brought(part.content), default=str))
    tools = [tool.name for tool in info.function_tools]
    return Seen(request, turn, tools, info.instructions or "", told)


def _brought(content: Any) -> Any:
    """Without the name by which it can be cited."""
    if not isinstance(content, dict) or "source" not in content:
        return content
    bare = {name: value for name, value in content.items() if name != "source"}
    return bare["result"] if [*bare] == ["result"] else bare


def in_turn(*turns: list[Call] | str) -> Callable[[Seen], list[Call] | str]:
    """One entry per answer; the last stands for all that follow."""
    return lambda seen: turns[min(seen.turn, len(turns) - 1)]


@asynccontextmanager
async def open_exposed(
    home: Path, listening: Listening, database_url: str | None = None, **settings: Any
) -> AsyncGenerator[Hub]:
    async with Hub(
        Settings(home=home / "home", database_url=database_url, model="scripted", **settings)
    ) as hub:
        hub.models.register("scripted", listening.model)
        await hub.connectors.add("box", shared=True, **quick(**stdio("--journal", str(home / "journal"))))
        yield hub
