"""Models that do what a test says, and hubs whose agents think with them."""

import json
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, ToolReturnPart, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from dragoman import Hub
from dragoman.settings import Settings
from servers.scenarios import unfenced

Said = str | tuple[str, dict[str, Any]]
"""Text, or a call: the tool's name and its arguments."""


def model_of(*turns: Said | Sequence[Said]) -> FunctionModel:
    """One entry per answer; several things in one as a list. After the last it says what it was told."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        turn, told = situation(messages)
        if turn >= len(turns):
            yield json.dumps(told)
            return
        entry = turns[turn]
        said: Sequence[Said] = entry if isinstance(entry, list) else [entry]  # type: ignore[assignment]
        for place, one in enumerate(said):
            if isinstance(one, str):
                yield one
            else:
                yield {place: DeltaToolCall(one[0], json.dumps(one[1]), tool_call_id=f"c{place}")}

    return FunctionModel(stream_function=answer)


def situation(messages: Sequence[ModelMessage]) -> tuple[int, list[str]]:
    """How many answers there are to the last message of a person, and what the tools told since."""
    turn, told = 0, list[str]()
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            if any(isinstance(part, UserPromptPart) for part in message.parts):
                turn, told = 0, []
            told += [result_of(part.content) for part in message.parts if isinstance(part, ToolReturnPart)]
    return turn, told


def result_of(content: Any) -> str:
    """What a tool brought, without the name by which it can be cited."""
    return unfenced(str(content["result"] if isinstance(content, dict) and "source" in content else content))


def by_request(**models: FunctionModel) -> FunctionModel:
    """The model whose name the last message of a person begins with."""

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        asked = ""
        for message in messages:
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    asked = str(part.content)
        stream: Callable[..., Any] | None = models[asked.split()[0]].stream_function
        assert stream is not None
        async for part in stream(messages, info):
            yield part

    return FunctionModel(stream_function=answer)


@asynccontextmanager
async def open_scripted(
    home: Path, model: FunctionModel, database: str | None = None, **settings: Any
) -> AsyncGenerator[Hub]:
    """Its assistant has the tools themselves, however many there are."""
    facts: dict[str, Any] = {"model": "scripted", "rollout_share": 0.0, **settings}
    async with Hub(Settings(home=home, database_url=database, **facts)) as hub:
        hub.models.register("scripted", model)
        yield hub
