"""What was said before, as a model reads it, trimmed to its window: the newest that fits.

An agent's own earlier runs come whole, with what their tools brought ("reply to the first one"); what others
said comes as text. Pure: given the messages and the journals.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    ToolAvailabilityDeltaPart,
    UserPromptPart,
)

from dragoman.agents.fences import fenced
from dragoman.agents.prices import window_of
from dragoman.run import Message
from dragoman.tokens import count_tokens

_LONGEST_TEXT = 20_000
_SHARE = 3  # of a window, one part of so many; tools, the request and the answer need the others


def budget_for(models: Sequence[str], most: int) -> int:
    """Tokens of history that every one of these models has room for; no more than `most`."""
    windows = [window for model in models if (window := window_of(model))]
    return min([most, *(window // _SHARE for window in windows)])


def history_of(
    messages: Sequence[Message], journals: Mapping[str, Sequence[ModelMessage]], agent: str, budget: int
) -> list[ModelMessage]:
    """Whole exchanges only, oldest first, no more than `budget` tokens together.

    `journals` are whole exchanges of the agent itself, by the id of the run, and of the root that the
    person's message names. One that is too long comes as the text that people saw of it.
    """
    chosen: list[list[ModelMessage]] = []
    told: set[int] = set()
    left = budget
    for message in reversed(messages):
        journal = journals.get(message.run or "", ())
        if journal and id(journal) in told:
            continue
        part = _without_news(journal)
        cost = size_of(part)
        if not part or cost > left:
            part = _of_text(message, agent)
            cost = size_of(part)
        else:
            told.add(id(journal))
        if cost > left:
            break
        left -= cost
        chosen.append(part)
    return [message for part in reversed(chosen) for message in part]


def size_of(part: Sequence[ModelMessage]) -> int:
    """In tokens."""
    if not part:
        return 0
    facts = ModelMessagesTypeAdapter.dump_python([*part], mode="json")
    # What a tool brought may hold half of a character, which no strict writer takes.
    return count_tokens(json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace"))


def _without_news(journal: Sequence[ModelMessage]) -> list[ModelMessage]:
    """Of tools that came while it worked: they may be gone by now, and who is there is told anew."""
    told: list[ModelMessage] = []
    for message in journal:
        if isinstance(message, ModelRequest):
            parts = [part for part in message.parts if not isinstance(part, ToolAvailabilityDeltaPart)]
            message = replace(message, parts=parts)
        if message.parts:
            told.append(message)
    return told


def _of_text(message: Message, agent: str) -> list[ModelMessage]:
    text = message.text[:_LONGEST_TEXT]
    if not text:
        return []
    if message.author == "system":  # what a model must not take up again by itself: it was not answered
        return [ModelResponse(parts=[TextPart(f"(Not answered: {text})")])]
    if message.author == "agent" and message.agent == agent:
        return [ModelResponse(parts=[TextPart(text)])]
    said = text if message.author == "person" else f"(@{message.agent} said:)\n{fenced(text)}"
    return [ModelRequest(parts=[UserPromptPart(said)])]
