"""What was said before, as a model reads it, trimmed to its window: the newest that fits.

An agent's own earlier runs come whole, with what their tools brought ("reply to the first one"); what others
said comes as text. Pure: given the messages and the journals.
"""

from collections.abc import Mapping, Sequence

from pydantic_ai.messages import (
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    TextPart,
    UserPromptPart,
)

from dragoman.run import Message
from dragoman.tokens import count_tokens

_LONGEST_TEXT = 20_000


def history_of(
    messages: Sequence[Message], journals: Mapping[str, Sequence[ModelMessage]], agent: str, budget: int
) -> list[ModelMessage]:
    """Whole exchanges only, oldest first, no more than `budget` tokens together."""
    chosen: list[list[ModelMessage]] = []
    told: set[str] = set()
    left = budget
    for message in reversed(messages):
        if message.run is not None and message.run in told:
            continue
        part = _of_run(message, journals) or _of_text(message, agent)
        if not part:
            continue
        left -= count_tokens(ModelMessagesTypeAdapter.dump_json(part))
        if left < 0:
            break
        chosen.append(part)
        if message.run in journals and len(part) > 1:
            told.add(message.run or "")
    return [message for part in reversed(chosen) for message in part]


def _of_run(message: Message, journals: Mapping[str, Sequence[ModelMessage]]) -> list[ModelMessage]:
    journal = [*journals.get(message.run or "", ())]
    if len(journal) < 2 or not isinstance(journal[-1], ModelResponse) or journal[-1].tool_calls:
        return []  # it did not come to an end: a model takes no open call
    return journal


def _of_text(message: Message, agent: str) -> list[ModelMessage]:
    text = message.text[:_LONGEST_TEXT]
    if message.author == "system" or not text:
        return []
    if message.author == "agent" and message.agent == agent:
        return [ModelResponse(parts=[TextPart(text)])]
    said = text if message.author == "person" else f"(@{message.agent} said:) {text}"
    return [ModelRequest(parts=[UserPromptPart(said)])]
