"""What was said before, as a model reads it, trimmed to its window: the newest that fits.

An agent's own earlier runs come whole, with what their tools brought ("reply to the first one"); what others
said comes as text. What has no room is summed up (`runs/thread_history.py`), and what tools brought there is
named, so that it can be read again. Pure: given the messages and the journals.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from pydantic_ai.messages import (
    BinaryContent,
    ModelMessage,
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelRequestPart,
    ModelResponse,
    TextPart,
    ToolAvailabilityDeltaPart,
    UserPromptPart,
)

from dragoman.agents.fences import fenced
from dragoman.agents.plan_offers import READ_EARLIER
from dragoman.agents.prices import window_of
from dragoman.run import Message
from dragoman.tokens import count_tokens

_LONGEST_TEXT = 20_000
_IMAGE = 1_500  # tokens, about what providers count for a large one
_SHARE = 3  # of a window, one part of so many; tools, the request and the answer need the others


@dataclass(frozen=True, slots=True)
class EarlierResult:
    """What a tool brought to this agent in an earlier run of the thread.

    `handle` names it for `read_earlier`: the number of the message that the run answered, and of the call.
    """

    handle: str
    tool: str
    arguments: str
    preview: str

    def line(self) -> str:
        return f"- {self.handle}: {self.tool} {self.arguments} → {self.preview}"


@dataclass(frozen=True, slots=True)
class History:
    """What a model is told of before, and the messages that had no room: always the oldest.

    `names_results`: some are only named, and have to be read by their handles.
    """

    told: list[ModelMessage]
    cut: Sequence[Message] = ()
    names_results: bool = False


def budget_for(models: Sequence[str], most: int) -> int:
    """Tokens of history that every one of these models has room for; no more than `most`."""
    windows = [window for model in models if (window := window_of(model))]
    return min([most, *(window // _SHARE for window in windows)])


def history_of(
    messages: Sequence[Message],
    journals: Mapping[str, Sequence[ModelMessage]],
    agent: str,
    budget: int,
    results: Mapping[str, Sequence[EarlierResult]] = MappingProxyType({}),
) -> History:
    """Whole exchanges only, oldest first, no more than `budget` tokens together.

    `journals` are whole exchanges of the agent itself, by the id of the run, and of the root that the
    person's message names. One that is too long comes as the text that people saw of it, with the `results`
    of the same run by their handles.
    """
    chosen: list[list[ModelMessage]] = []
    told: set[int] = set()
    left = budget
    count = 0
    names_results = False
    for message in reversed(messages):
        journal = journals.get(message.run or "", ())
        if journal and id(journal) in told:
            count += 1
            continue
        part = _without_news(journal)
        cost = size_of(part)
        if not part or cost > left:
            part = _of_text(message, agent, results.get(message.run or "", ()))
            cost = size_of(part)
        else:
            told.add(id(journal))
        if cost > left:
            break
        left -= cost
        count += 1
        names_results |= bool(results.get(message.run or "")) and id(journal) not in told
        chosen.append(part)
    return History(
        told=[message for part in reversed(chosen) for message in part],
        cut=messages[: len(messages) - count],
        names_results=names_results,
    )


def size_of(part: Sequence[ModelMessage]) -> int:
    """In tokens."""
    if not part:
        return 0
    part, images = _without_images(part)
    facts = ModelMessagesTypeAdapter.dump_python([*part], mode="json")
    # What a tool brought may hold half of a character, which no strict writer takes.
    return count_tokens(json.dumps(facts, ensure_ascii=False).encode("utf-8", "replace")) + images * _IMAGE


def _without_images(part: Sequence[ModelMessage]) -> tuple[list[ModelMessage], int]:
    """And how many there were: their bytes are no tokens."""
    told: list[ModelMessage] = []
    images = 0
    for message in part:
        if isinstance(message, ModelRequest) and any(_is_mixed(one) for one in message.parts):
            parts = [_texts(one) if isinstance(one, UserPromptPart) else one for one in message.parts]
            images += sum(_images_in(one) for one in message.parts)
            message = replace(message, parts=parts)
        told.append(message)
    return told, images


def _is_mixed(part: ModelRequestPart) -> bool:
    return isinstance(part, UserPromptPart) and not isinstance(part.content, str)


def _texts(part: UserPromptPart) -> UserPromptPart:
    content = [part.content] if isinstance(part.content, str) else part.content
    return replace(part, content="\n".join(one for one in content if isinstance(one, str)))


def _images_in(part: ModelRequestPart) -> int:
    if not isinstance(part, UserPromptPart) or isinstance(part.content, str):
        return 0
    return sum(isinstance(one, BinaryContent) for one in part.content)


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


def _of_text(message: Message, agent: str, results: Sequence[EarlierResult]) -> list[ModelMessage]:
    text = message.text[:_LONGEST_TEXT]
    if not text:
        return []
    if message.author == "system":  # what a model must not take up again by itself: it was not answered
        return [ModelResponse(parts=[TextPart(f"(Not answered: {text})")])]
    if message.author == "agent" and message.agent == agent:
        answer = ModelResponse(parts=[TextPart(text)])
        return [ModelRequest(parts=[UserPromptPart(named(results))]), answer] if results else [answer]
    said = text if message.author == "person" else f"(@{message.agent} said:)\n{fenced(text)}"
    return [ModelRequest(parts=[UserPromptPart(said)])]


def named(results: Sequence[EarlierResult]) -> str:
    """Results that are not shown, as a model is told of them."""
    lines = "\n".join(result.line() for result in results)
    return f"(Results of before, which {READ_EARLIER} shows whole:)\n{fenced(lines)}"


def summed_up(first: int, last: int, text: str, results: Sequence[EarlierResult]) -> list[ModelMessage]:
    """A summary in place of the messages `first` to `last`."""
    said = f"(Messages {first} to {last} of this conversation, summed up:)\n{fenced(text)}"
    if results:
        said += f"\n{named(results)}"
    return [ModelRequest(parts=[UserPromptPart(said)])]


def left_out(first: int, last: int) -> list[ModelMessage]:
    said = f"(Messages {first} to {last} of this conversation had no room and are not shown.)"
    return [ModelRequest(parts=[UserPromptPart(said)])]
