"""Files of a message as its model reads them: text as data between fences, images as they are.

The journal has only the words of the person; the files are put to them whenever a request is sent.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from pydantic_ai.messages import BinaryContent, ModelMessage, ModelRequest, UserContent, UserPromptPart

from dragoman.agents.fences import fenced
from dragoman.agents.models import OFFLINE
from dragoman.run import ATTACHMENTS, Run
from dragoman.store.records import KeptResult

if TYPE_CHECKING:
    from dragoman.runs.execution import RunExecution

FindKept = Callable[[str, str, str], Awaitable[KeptResult | None]]
"""Of a workspace and a user, by its handle."""


async def attached_to(run: Run, execution: "RunExecution") -> list[UserContent]:
    """What stands behind the words of `run` for the model of `execution`: nothing for the offline one.

    Of a file that is no longer kept only its name.
    """
    told: list[UserContent] = []
    if execution.run.model == OFFLINE:
        return told
    find = execution.parts.find_kept
    given: Sequence[Mapping[str, Any]] = run.options.get(ATTACHMENTS, ())
    for number, one in enumerate(given, 1):
        kept = await find(run.workspace, run.user, str(one["handle"]))
        if kept is None:
            told.append(f"Attached file {number} is no longer kept:\n{fenced(one['name'])}")
        elif kept.content_type.startswith("image/"):
            told.append(f"Attached image {number}:\n{fenced(one['name'])}")
            told.append(BinaryContent(kept.body, media_type=kept.content_type))
        else:
            text = f"{one['name']}\n\n{kept.body.decode('utf-8', 'replace')}"
            told.append(f"Attached file {number}:\n{fenced(text)}")
    return told


def with_attached(messages: Sequence[ModelMessage], attached: Sequence[UserContent]) -> list[ModelMessage]:
    """Behind the person's words, with which every exchange begins."""
    if not attached or not messages or not isinstance(first := messages[0], ModelRequest):
        return [*messages]
    parts = [
        replace(part, content=[_words(part), *attached]) if isinstance(part, UserPromptPart) else part
        for part in first.parts
    ]
    return [replace(first, parts=parts), *messages[1:]]


def without_attached(message: ModelRequest) -> ModelRequest:
    """As the journal keeps it."""
    parts = [
        replace(part, content=_words(part)) if isinstance(part, UserPromptPart) else part
        for part in message.parts
    ]
    return replace(message, parts=parts)


def _words(part: UserPromptPart) -> str:
    return part.content if isinstance(part.content, str) else str(part.content[0])
