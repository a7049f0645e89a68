"""A model to which what tools answered is sent as data: every other model is reached through it."""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

from pydantic_ai import RunContext
from pydantic_ai.messages import ModelMessage, ModelRequest, ModelResponse, ToolReturnPart
from pydantic_ai.models import ModelRequestParameters, StreamedResponse
from pydantic_ai.models.wrapper import WrapperModel
from pydantic_ai.settings import ModelSettings

from dragoman.agents.fences import fenced
from dragoman.agents.plan_offers import ASK_PERSON


class FencedModel(WrapperModel):
    """Sends what tools answered in plain text between fences; JSON has its own, which nothing inside ends.

    Only what is sent is changed: the journal keeps what came. What a person answered stays as it is.
    """

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return await super().request(_fenced_results(messages), model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        fresh = _fenced_results(messages)
        stream = super().request_stream(fresh, model_settings, model_request_parameters, run_context)
        async with stream as response:
            yield response


def _fenced_results(messages: Sequence[ModelMessage]) -> list[ModelMessage]:
    return [_fenced_request(one) if isinstance(one, ModelRequest) else one for one in messages]


def _fenced_request(message: ModelRequest) -> ModelRequest:
    parts = [_fenced_part(part) if isinstance(part, ToolReturnPart) else part for part in message.parts]
    return replace(message, parts=parts)


def _fenced_part(part: ToolReturnPart) -> ToolReturnPart:
    content = part.content
    if not isinstance(content, str) or part.tool_name == ASK_PERSON or content[:1] in ("{", "["):
        return part
    return replace(part, content=fenced(content))
