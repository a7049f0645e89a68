"""A model that does what the person's words say, for conversations by REST. Asks nobody outside."""

import asyncio
import json
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from live import Live, open_service
from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel

from dragoman import Annotations

READ = Annotations(read_only=True)
Calls = list[tuple[str, dict[str, Any]]]


class Script:
    """`held` blocks the answer to a message with the word "hold" until it is set."""

    def __init__(self) -> None:
        self.held = asyncio.Event()
        self.asked = 0

    @property
    def model(self) -> FunctionModel:
        return FunctionModel(stream_function=self._stream, model_name="scripted")

    async def _stream(self, messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        self.asked += 1
        prompt, turn, results = _where(messages)
        if "break" in prompt:
            raise RuntimeError("the model fell over")
        if "hold" in prompt:
            await self.held.wait()
        calls = _calls(prompt, turn, {tool.name for tool in info.function_tools})
        if calls:
            yield "Let me see. "
            yield {
                number: DeltaToolCall(name=name, json_args=json.dumps(given), tool_call_id=f"c{turn}{number}")
                for number, (name, given) in enumerate(calls)
            }
            return
        for word in ["done: ", prompt[:40], f" {results}"]:
            yield word


def _where(messages: list[ModelMessage]) -> tuple[str, int, list[Any]]:
    """What the person wrote last, how often the model answered since, and what calls brought."""
    prompt, turn, results = "", 0, list[Any]()
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    prompt, turn, results = str(part.content), 0, []
                elif part.part_kind == "tool-return":
                    results.append(_brought(part.content))
    return prompt, turn, results


def _brought(content: Any) -> Any:
    """What a tool gave, without what it is cited by."""
    return content["result"] if isinstance(content, dict) and "source" in content else content


def _calls(prompt: str, turn: int, offered: set[str]) -> Calls:
    plans: dict[str, list[Calls]] = {
        "sum": [[("add", {"a": 1, "b": 2}), ("add", {"a": 5, "b": 2})], [("add", {"a": 3, "b": 7})]],
        "which": [[("ask_person", {"question": "Which colour?"})]],
        "keep": [[("keep", {"text": "a note", "token": "canary-77aa"})]],
        "whoami": [[("mcp_own_whoami", {})]],
        "hire": [[("manage", {"action": "create_agent", "arguments": {"name": "hired"}})]],
        "delegate": [[("ask_agent", {"agent": "helper", "request": "sum it"})]],
    }
    for word, steps in plans.items():
        if word in prompt and turn < len(steps):
            return [(name, given) for name, given in steps[turn] if name in offered]
    return []


@asynccontextmanager
async def open_conversations(home: Path, **settings: Any) -> AsyncGenerator[tuple[Live, Script]]:
    """A service whose model follows the script, with a tool that adds and one that a person must allow."""
    async with open_service(home, model="scripted", **settings) as live:
        script = Script()
        live.hub.models.register("scripted", script.model)
        live.hub.add_tool(add, annotations=READ)
        live.hub.add_tool(keep)
        yield live, script


def add(a: int, b: int) -> int:
    """Adds two numbers."""
    return a + b


def keep(text: str, token: str) -> str:
    """Keeps a note."""
    return f"kept {text}"
