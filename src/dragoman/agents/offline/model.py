"""`OfflineModel`: pydantic-ai's model interface over plain matching. No language model, no network.

The only module here that knows pydantic-ai. It reads the messages and the tools of the request, and nothing
else; the word vectors are shared by all models of the process.
"""

import json
import re
from asyncio import to_thread
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import lru_cache
from threading import Lock
from typing import Any
from uuid import uuid4

from pydantic_ai import RunContext
from pydantic_ai import messages as wire
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.function import DeltaToolCall, FunctionModel, FunctionStreamedResponse
from pydantic_ai.profiles import ModelProfile
from pydantic_ai.settings import ModelSettings
from pydantic_ai.usage import RequestUsage

from dragoman.agents.fences import unfenced
from dragoman.agents.offline.decision import ASK, NONE, NOTE, SET_ONE, Decider, Decision, Done, Turn
from dragoman.catalog.search.vectors import WordVectors
from dragoman.telemetry.logs import get_logger

NAME = "offline"
_MOST_READ = 6_000
_MENTIONS = re.compile(r"^(?:\s*@[\w-]+[,:]?)+")  # whom it is for, not what is asked
_WORDS = re.compile(r"\s*(?:\S+\s*){1,8}")
_lock = Lock()
_decider = lru_cache(maxsize=1)(lambda: Decider(WordVectors.load()))


class OfflineModel(FunctionModel):
    """Answers by streams only, as runs ask."""

    def __init__(self, *, settings: ModelSettings | None = None) -> None:
        # Else pydantic-ai's own news, of tools that came meanwhile, would look like a person's words.
        profile = ModelProfile(supports_inline_system_prompts=True)
        super().__init__(stream_function=_told, model_name=NAME, settings=settings, profile=profile)
        self._system = NAME

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[wire.ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        _, parameters = self.prepare_request(model_settings, model_request_parameters)
        yield _FreeStream(parameters, _model_name=NAME, _iter=_told(messages, parameters))


class _FreeStream(FunctionStreamedResponse):
    """No tokens are spent on it."""

    @property
    def usage(self) -> RequestUsage:
        return RequestUsage()


async def _told(messages: Sequence[wire.ModelMessage], given: Any) -> AsyncIterator[Any]:
    decision = await to_thread(_decided, messages, given)
    if decision.tool:
        call_id = f"offline_{uuid4().hex[:16]}"
        yield {0: DeltaToolCall(decision.tool, json.dumps(dict(decision.arguments)), tool_call_id=call_id)}
    for words in _WORDS.findall(decision.text):
        yield words


def _decided(messages: Sequence[wire.ModelMessage], parameters: ModelRequestParameters) -> Decision:
    offered = {tool.name: tool for tool in parameters.declared_function_tools}
    with _lock:
        try:
            return _decider().decide(read_turn(messages), offered)
        except Exception as error:  # noqa: BLE001  # boundary: whatever a schema holds, the turn ends in words
            get_logger().warning("offline matching failed", cause=type(error).__name__)
            return Decision(text=f"The tools here could not be matched with this. {NOTE} {SET_ONE}")


def read_turn(messages: Sequence[wire.ModelMessage]) -> Turn:
    """What was asked last, and what was called since. Words that answer a choice take the place of both."""
    asked = [place for place, one in enumerate(messages) if _parts([one], wire.UserPromptPart)]
    last = max(asked, default=0)
    said = _parts(messages[last : last + 1], wire.UserPromptPart)
    prompt = unfenced("\n".join(str(part.content) for part in said))
    text, _, context = prompt.partition("\n\nContext:\n")
    done = _calls(messages[last:])
    for place, one in reversed([*enumerate(done)]):
        words = one.content if one.tool == ASK and one.outcome == "success" else None
        if isinstance(words, str) and words.strip().lower() != NONE:
            text, done = words, done[place + 1 :]
            break
    return Turn(
        text=_MENTIONS.sub("", text[:_MOST_READ]).strip(),
        unread=context or text[_MOST_READ:],
        done=done,
        earlier=_calls(messages[:last]),
        is_first=not any(NOTE in part.content for part in _parts(messages, wire.TextPart)),
    )


def _calls(messages: Sequence[wire.ModelMessage]) -> list[Done]:
    results = _parts(messages, wire.ToolReturnPart)
    return [Done(part.tool_name, part.content, part.outcome) for part in results]


def _parts(messages: Sequence[wire.ModelMessage], kind: type[Any]) -> list[Any]:
    return [part for message in messages for part in message.parts if isinstance(part, kind)]
