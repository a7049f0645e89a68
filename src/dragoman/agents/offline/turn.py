"""The messages of a request as one turn: what was asked last, what was called since, what came before.

The only module that reads pydantic-ai's messages. Decides nothing.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, cast

from pydantic_ai.messages import (
    BaseToolCallPart,
    ModelMessage,
    ModelRequest,
    ModelResponse,
    SystemPromptPart,
    TextContent,
    TextPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman.agents.offline.answers import ASKING, NOTE

_MOST_READ = 6_000


@dataclass(frozen=True, slots=True)
class Done:
    """One call of this turn, with its result where it has one."""

    tool: str
    arguments: Mapping[str, Any]
    content: Any = None
    outcome: str = "success"
    has_result: bool = False


@dataclass(frozen=True, slots=True)
class Turn:
    """`text` is cut to what is worth matching. `earlier` are results of former turns, the latest last."""

    text: str = ""
    instructions: str = ""
    done: tuple[Done, ...] = ()
    earlier: tuple[Done, ...] = ()
    has_note: bool = False
    before: str = ""
    """What was asked before, when the last answer was a question back and this turn is the reply."""


def read_turn(messages: Sequence[ModelMessage], instructions: str | None) -> Turn:
    last = _last_prompt(messages)
    text = _prompt_of(messages[last]) if last >= 0 else ""
    said = [_said(message) for message in messages[:last] if isinstance(message, ModelResponse)]
    prompts = [_prompt_of(message) for message in messages[:last]]
    before = next((prompt for prompt in reversed(prompts) if prompt), "")
    replies = bool(said) and ASKING in said[-1]
    # Those at the beginning: later ones are news of the loop itself, such as tools that came.
    system = [
        str(part.content)
        for message in messages[:1]
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, SystemPromptPart)
    ]
    return Turn(
        text=text[:_MOST_READ],
        instructions="\n".join([*system, instructions or ""]).strip(),
        done=tuple(_calls(messages[max(last, 0) :])),
        earlier=tuple(one for one in _calls(messages[: max(last, 0)]) if one.has_result),
        has_note=any(NOTE in one for one in said),
        before=before[:_MOST_READ] if replies else "",
    )


def _last_prompt(messages: Sequence[ModelMessage]) -> int:
    for place in range(len(messages) - 1, -1, -1):
        if isinstance(messages[place], ModelRequest) and any(
            isinstance(part, UserPromptPart) for part in messages[place].parts
        ):
            return place
    return -1


def _prompt_of(message: ModelMessage) -> str:
    if not isinstance(message, ModelRequest):
        return ""
    texts: list[str] = []
    for part in message.parts:
        if isinstance(part, UserPromptPart):
            content = part.content
            pieces = [content] if isinstance(content, str) else content
            for piece in pieces:
                if isinstance(piece, str | TextContent):
                    texts.append(piece if isinstance(piece, str) else piece.content)
    return "\n".join(texts).encode("utf-8", "replace").decode()


def _said(response: ModelResponse) -> str:
    return "\n".join(part.content for part in response.parts if isinstance(part, TextPart))


def _calls(messages: Sequence[ModelMessage]) -> list[Done]:
    """In the order of the calls; each with the result that carries its id."""
    results: dict[str, ToolReturnPart[Any]] = {
        part.tool_call_id: cast("ToolReturnPart[Any]", part)
        for message in messages
        if isinstance(message, ModelRequest)
        for part in message.parts
        if isinstance(part, ToolReturnPart)
    }
    found: list[Done] = []
    for message in messages:
        if not isinstance(message, ModelResponse):
            continue
        for part in message.parts:
            if isinstance(part, BaseToolCallPart):
                result = results.get(part.tool_call_id)
                arguments = _arguments(cast("Any", part).args)
                if result is None:
                    found.append(Done(part.tool_name, arguments))
                else:
                    found.append(Done(part.tool_name, arguments, result.content, result.outcome, True))
    return found


def _arguments(args: Any) -> dict[str, Any]:
    if isinstance(args, str):
        try:
            args = json.loads(args)
        except ValueError:
            return {}
    return cast("dict[str, Any]", args) if isinstance(args, dict) else {}
