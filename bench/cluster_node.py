"""What a node of `cluster` does beside calls: timed calls and runs, words with the time they were said, and
how many statements it sends to PostgreSQL.
"""

import asyncio
import json
import time
from collections.abc import AsyncIterator
from typing import Any

from pydantic_ai.messages import ModelMessage, ModelResponse, UserPromptPart
from pydantic_ai.models.function import AgentInfo, DeltaToolCall, FunctionModel
from sqlalchemy import Engine, event

from cluster.call_nodes import node_did  # pyright: ignore
from dragoman import Hub

MODEL, PAUSE = "script", 0.03  # seconds between two words
_statements = 0


async def script(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
    """`words N`: N times what the clock of the machine says. `calls N`: N calls of a tool, then an answer."""
    asked, turn = "", 0
    for message in messages:
        if isinstance(message, ModelResponse):
            turn += 1
        else:
            for part in message.parts:
                if isinstance(part, UserPromptPart):
                    asked, turn = str(part.content), 0
    kind, count = (asked.split()[0], int(asked.split()[1])) if " " in asked else ("", 0)
    if kind == "calls" and turn < count:
        yield {0: DeltaToolCall("mcp_box_echo", json.dumps({"text": "x"}), tool_call_id=f"c{turn}")}
        return
    for _ in range(count if kind == "words" else 1):
        await asyncio.sleep(PAUSE if kind == "words" else 0)
        yield f"{time.monotonic()} "


async def did(hub: Hub, what: str, words: list[Any]) -> Any:
    match what:
        case "script":
            hub.models.register(MODEL, FunctionModel(stream_function=script, model_name=MODEL))
            event.listen(Engine, "before_cursor_execute", _count)
            return None
        case "statements":
            return _statements
        case "timed":
            tool, calls = words
            taken: list[float] = []
            for number in range(calls):
                began = time.perf_counter()
                assert (await hub.call(tool, {"text": str(number)})).ok
                taken.append(1000 * (time.perf_counter() - began))
            return taken
        case "runs":
            for _ in range(words[1]):
                run = await hub.ask(words[0])
                assert run.status == "done", run.error
            return None
        case "post":
            return (await hub.messages.post(words[0])).run.id
        case "worker":
            return (await hub.runs.get(words[0])).worker
        case "follow":
            return await _heard(hub, words[0])
        case _:
            return await node_did(hub, what, words)


async def _heard(hub: Hub, run: str) -> list[float]:
    """Milliseconds from when each word was said until it is heard here: one machine has one clock."""
    late: list[float] = []
    async for one in hub.runs.follow(run):
        if one.kind == "text":
            now = time.monotonic()
            late += [1000 * (now - float(word)) for word in str(one.data["delta"]).split()]
    return late


def _count(*_: Any) -> None:
    global _statements
    _statements += 1
