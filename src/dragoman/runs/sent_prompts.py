"""What the models of one run were sent, for a person to read: instructions, functions, the conversation.

Read from the journal. Imported by the first that asks for it, as it needs pydantic-ai.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic_ai.messages import (
    ModelMessage,
    ModelResponse,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
    UserPromptPart,
)

from dragoman.agents.fenced_model import fenced_results
from dragoman.run import Run, Step
from dragoman.runs.journal_record import JournalRecord

Role = Literal["user", "model", "call", "result"]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentMessage:
    """`name` is the function of a call or of its result."""

    role: Role
    text: str
    name: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class SentPrompt:
    """What one run's model was sent. `instructions` has more than one text where it was interrupted.

    `earlier`: how many messages of the thread went before; they are in the thread.
    """

    run: Run
    instructions: Sequence[str]
    functions: Sequence[str]
    earlier: int
    messages: Sequence[SentMessage]


def prompts_of(
    runs: Sequence[Run], steps: Mapping[str, Sequence[Step]], clean: Callable[[str], str]
) -> list[SentPrompt]:
    """Of each run that asked a model, in their order. `clean` takes secrets out."""
    return [prompt for run in runs if (prompt := _prompt(run, steps[run.id], clean))]


def _prompt(run: Run, steps: Sequence[Step], clean: Callable[[str], str]) -> SentPrompt | None:
    sent: list[Mapping[str, Any]] = [step.content for step in steps if step.kind == "prompt"]
    record = JournalRecord.of(steps)
    if not sent and not record.messages:
        return None
    return SentPrompt(
        run=run,
        instructions=[clean(one["instructions"]) for one in sent],
        functions=[*dict.fromkeys(name for step in steps if step.kind == "offered" for name in step.content)],
        earlier=sent[-1]["earlier"] if sent else 0,
        messages=[*_messages(fenced_results(record.messages), clean)],
    )


def _messages(messages: Sequence[ModelMessage], clean: Callable[[str], str]) -> Iterator[SentMessage]:
    for message in messages:
        for part in message.parts:
            match part:
                case UserPromptPart():
                    yield SentMessage(role="user", text=clean(_text(part.content)))
                case TextPart() if isinstance(message, ModelResponse):
                    yield SentMessage(role="model", text=clean(part.content))
                case ToolCallPart():
                    yield SentMessage(role="call", name=part.tool_name, text=clean(part.args_as_json_str()))
                case ToolReturnPart():
                    yield SentMessage(role="result", name=part.tool_name, text=clean(_text(part.content)))
                case _:
                    pass


def _text(content: Any) -> str:
    return content if isinstance(content, str) else json.dumps(content, ensure_ascii=False, default=str)
