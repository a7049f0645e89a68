"""One agent of pydantic-ai serves all runs with less around their tools: a model is asked the same."""

import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from pydantic_ai import Agent
from pydantic_ai.messages import ModelMessage, ModelMessagesTypeAdapter
from pydantic_ai.models.function import AgentInfo, FunctionModel

from dragoman.runs import loop
from dragoman.runs.journaled_tools import JournaledTools
from dragoman.tool import Annotations
from runs.scripted import model_of, open_scripted

pytestmark = pytest.mark.anyio
_OF_THE_MOMENT = ("timestamp", "run_id", "conversation_id")
_SCRIPT = model_of(
    [("look", {"text": "a"}), ("look", {"text": "b"})],
    ("fails", {}),
    ("unknown", {}),
    ("state_plan", {"steps": [{"step": "look", "status": "done"}]}),
    "done",
)


async def _asked(home: Path) -> tuple[list[Any], list[Any]]:
    """What a model was asked in a thread of two runs, and what the thread's runs told."""
    requests: list[Any] = []

    async def answer(messages: list[ModelMessage], info: AgentInfo) -> AsyncIterator[Any]:
        tools = [(one.name, one.description, one.parameters_json_schema) for one in info.function_tools]
        sent = ModelMessagesTypeAdapter.dump_python(messages, mode="json")
        facts = (_lasting(info.instructions), info.model_settings, info.allow_text_output, info.output_tools)
        requests.append((_lasting(sent), tools, facts))
        assert _SCRIPT.stream_function is not None
        async for part in _SCRIPT.stream_function(messages, info):  # pyright: ignore[reportGeneralTypeIssues]
            yield part

    async with open_scripted(home, FunctionModel(stream_function=answer)) as hub:

        @hub.tool(annotations=Annotations(read_only=True))
        async def look(text: str) -> str:
            return f"saw {text}"

        @hub.tool(annotations=Annotations(read_only=True))
        async def fails() -> str:
            raise ValueError("no")

        first = await hub.ask("look twice")
        second = await hub.ask("and again", thread=first.thread)
        events = [event for run in (first, second) async for event in hub.runs.follow(run.id)]
        told = [(event.kind, event.data.get("call"), event.data.get("code")) for event in events]
        return requests, [first.answer, second.answer, *told]


def _lasting(sent: Any) -> Any:
    """Without what differs between two runs of the same."""
    if isinstance(sent, dict):
        return {name: _lasting(one) for name, one in sent.items() if name not in _OF_THE_MOMENT}
    if isinstance(sent, str):
        return re.sub(r"It is \w+, .*", "", sent)
    return [_lasting(one) for one in sent] if isinstance(sent, list) else sent


async def test_a_model_is_asked_as_by_an_ordinary_agent(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    lean = await _asked(tmp_path / "lean")
    ordinary = Agent(deps_type=JournaledTools, retries=2, toolsets=[loop.RunTools()])
    monkeypatch.setattr(loop, "AGENT", ordinary)
    assert await _asked(tmp_path / "ordinary") == lean
    assert len(lean[0]) == 10
