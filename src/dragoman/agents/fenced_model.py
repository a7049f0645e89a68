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
from dragoman.agents.model_errors import split_next
from dragoman.agents.plan_offers import ASK_PERSON

# Whose protocol has a place to say that a call failed; others would get the text inside of JSON.
_WITH_ERRORS = ("anthropic", "bedrock", "google")


class FencedModel(WrapperModel):
    """Sends what tools answered in plain text between fences; JSON has its own, which nothing inside ends.

    What to do after a failure is Dragoman's own word and stands outside. Only what is sent is changed: the
    journal keeps what came. What a person answered stays as it is.
    """

    def _sent(self, messages: Sequence[ModelMessage]) -> list[ModelMessage]:
        return fenced_results(messages, self.wrapped.system.startswith(_WITH_ERRORS))

    async def request(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
    ) -> ModelResponse:
        return await super().request(self._sent(messages), model_settings, model_request_parameters)

    @asynccontextmanager
    async def request_stream(
        self,
        messages: list[ModelMessage],
        model_settings: ModelSettings | None,
        model_request_parameters: ModelRequestParameters,
        run_context: RunContext[Any] | None = None,
    ) -> AsyncGenerator[StreamedResponse]:
        fresh = self._sent(messages)
        stream = super().request_stream(fresh, model_settings, model_request_parameters, run_context)
        async with stream as response:
            yield response


def fenced_results(messages: Sequence[ModelMessage], takes_errors: bool = False) -> list[ModelMessage]:
    """`takes_errors`: that a call failed is told beside the text."""
    return [_fenced_request(one, takes_errors) if isinstance(one, ModelRequest) else one for one in messages]


def _fenced_request(message: ModelRequest, takes_errors: bool) -> ModelRequest:
    if not any(isinstance(part, ToolReturnPart) for part in message.parts):
        return message
    parts = [
        _fenced_part(part, takes_errors) if isinstance(part, ToolReturnPart) else part
        for part in message.parts
    ]
    is_same = all(new is old for new, old in zip(parts, message.parts, strict=True))
    return message if is_same else replace(message, parts=parts)


def _fenced_part(part: ToolReturnPart, takes_errors: bool) -> ToolReturnPart:
    content = part.content
    if not isinstance(content, str) or part.tool_name == ASK_PERSON:
        return part
    if part.outcome == "failed":
        came, step = split_next(content)
        text = "\n".join(filter(None, [fenced(came), step]))
        return replace(part, content=text, outcome="failed" if takes_errors else "success")
    return part if content[:1] in ("{", "[") else replace(part, content=fenced(content))
