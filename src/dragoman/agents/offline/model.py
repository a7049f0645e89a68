"""`OfflineModel`: pydantic-ai's model interface over plain matching. No language model, no network.

It reads the messages and the tools of the request, and nothing else; what it read of tools is shared by
all models of the process.
"""

import json
import re
from asyncio import to_thread
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from functools import lru_cache
from threading import Lock
from typing import Any
from uuid import uuid4

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelResponse, ModelResponseStreamEvent, TextPart, ToolCallPart
from pydantic_ai.models import Model, ModelRequestParameters, StreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.tools import ToolDefinition
from pydantic_ai.usage import RequestUsage

from dragoman.agents.offline import answers
from dragoman.agents.offline.decision import Call, Decider, Decision
from dragoman.agents.offline.outputs import in_form
from dragoman.agents.offline.tools import Reader
from dragoman.agents.offline.turn import read_turn
from dragoman.catalog.search.vectors import WordVectors
from dragoman.telemetry.logs import get_logger

NAME = "offline"
_WORD = re.compile(r"\s*\S+\s*")
_MOST_DELTAS = 400

Part = TextPart | ToolCallPart


class Mind:
    """The word vectors and what was read with them; made once, when the first request comes."""

    def __init__(self) -> None:
        self._decider: Decider | None = None
        self._lock = Lock()

    async def ready(self) -> Decider:
        return self._decider or await to_thread(self._load)

    def _load(self) -> Decider:
        with self._lock:
            self._decider = self._decider or Decider(Reader(WordVectors.load()))
            return self._decider


@lru_cache(maxsize=1)
def _shared() -> Mind:
    return Mind()


class OfflineModel(Model[Any]):
    def __init__(self, *, mind: Mind | None = None, settings: ModelSettings | None = None) -> None:
        profile = ModelProfile(
            supports_json_schema_output=True,
            supports_json_object_output=True,
            # Else pydantic-ai's own news, of tools that came meanwhile, would look like a person's words.
            supports_inline_system_prompts=True,
        )
        super().__init__(settings=settings, profile=profile)
        self._mind = mind or _shared()

    @property
    def model_name(self) -> str:
        return NAME

    @property
    def system(self) -> str:
        return NAME

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        parts = await self._parts(messages, parameters)
        return ModelResponse(parts=parts, model_name=NAME, usage=RequestUsage(), finish_reason=_finish(parts))

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        parts = await self._parts(messages, parameters)
        yield OfflineStream(model_request_parameters=parameters, parts=parts)

    async def _parts(
        self, messages: Sequence[ModelMessage], parameters: ModelRequestParameters
    ) -> list[Part]:
        decider = await self._mind.ready()
        instructions = "\n".join(
            part.content for part in self._get_instruction_parts(messages, parameters) or ()
        )
        turn = read_turn(messages, instructions)
        try:
            decision = decider.decide(turn, parameters.declared_function_tools, _today())
        except Exception as error:  # noqa: BLE001  # boundary: whatever a schema holds, the turn ends in words
            get_logger().warning("offline matching failed", cause=type(error).__name__)
            decision = Decision(text=answers.of_nothing((), (), turn.text))
        if decision.calls:
            return [_called(call) for call in decision.calls]
        return [_final(decision.text, parameters)]


@dataclass
class OfflineStream(StreamedResponse):
    """A response that is known already, told word by word."""

    parts: list[Part] = field(default_factory=list[Part])
    started: datetime = field(default_factory=lambda: datetime.now(UTC))

    async def _get_event_iterator(self) -> AsyncIterator[ModelResponseStreamEvent]:
        for place, part in enumerate(self.parts):
            if isinstance(part, TextPart):
                for piece in _pieces(part.content):
                    for event in self._parts_manager.handle_text_delta(vendor_part_id=place, content=piece):
                        yield event
            else:
                events = self._parts_manager.handle_tool_call_delta_events(
                    vendor_part_id=place,
                    tool_name=part.tool_name,
                    args=part.args,
                    tool_call_id=part.tool_call_id,
                )
                for event in events:
                    yield event
        self.finish_reason = _finish(self.parts)

    async def close_stream(self) -> None:
        """There is no connection to close."""

    @property
    def model_name(self) -> str:
        return NAME

    @property
    def provider_name(self) -> None:
        return None

    @property
    def provider_url(self) -> None:
        return None

    @property
    def timestamp(self) -> datetime:
        return self.started


def _called(call: Call) -> ToolCallPart:
    return ToolCallPart(call.tool, dict(call.arguments), tool_call_id=f"offline_{uuid4().hex[:16]}")


def _final(text: str, parameters: ModelRequestParameters) -> Part:
    """A text where one is allowed, else the text in the form that is asked for."""
    if parameters.output_mode in ("native", "prompted") and parameters.output_object is not None:
        return TextPart(json.dumps(in_form(parameters.output_object.json_schema, text)))
    if parameters.allow_text_output or not parameters.output_tools:
        return TextPart(text)
    tool: ToolDefinition = parameters.output_tools[0]
    return _called(Call(tool.name, in_form(tool.parameters_json_schema, text)))


def _finish(parts: Sequence[Part]) -> Any:
    return "tool_call" if any(isinstance(part, ToolCallPart) for part in parts) else "stop"


def _pieces(text: str) -> Iterator[str]:
    words = _WORD.findall(text) or [text]
    step = 1 + len(words) // _MOST_DELTAS
    for place in range(0, len(words), step):
        yield "".join(words[place : place + step])


def _today() -> date:
    return datetime.now().astimezone().date()
