"""Messages, runs, timelines and questions as JSON. Who executes a run, and by what rights, is not told."""

from collections.abc import Iterable
from dataclasses import asdict
from datetime import datetime
from typing import TYPE_CHECKING, Any

from typing_extensions import TypedDict

from dragoman.agent import Exposure
from dragoman.run import Author, Message, Question, QuestionStatus, Run, RunEvent, RunEventKind, RunStatus

if TYPE_CHECKING:
    from dragoman.runs.timeline import Timeline, TimelineEntry

_IN_A_LIST = 1_000  # characters of a text where many are listed


class MessageShape(TypedDict):
    """`number` counts within the thread. `details`: status, thumb, which question it answers."""

    number: int
    thread: str
    author: Author
    agent: str | None
    text: str
    run: str | None
    details: dict[str, Any]
    created_at: str


class MessagesShape(TypedDict):
    messages: list[MessageShape]


class RunLimitsShape(TypedDict):
    requests: int | None
    calls: int | None
    tokens: int | None
    cost: float | None
    seconds: float | None


class RunUsageShape(TypedDict):
    requests: int
    calls: int
    input_tokens: int
    output_tokens: int
    cost: float
    tokens_saved: int


class RunShape(TypedDict):
    """`agent` is empty where a message went on to several. Usage and limits include the runs under it."""

    id: str
    thread: str | None
    agent: str
    status: RunStatus
    request: str
    answer: str | None
    error: dict[str, Any] | None
    root: str
    parent: str | None
    parent_call: str | None
    message: int | None
    model: str | None
    exposure: Exposure | None
    arm: str | None
    options: dict[str, Any]
    limits: RunLimitsShape
    usage: RunUsageShape
    cancel_asked: bool
    created_at: str
    started_at: str | None
    finished_at: str | None


class RunsShape(TypedDict):
    """`next_before` is what to give as `before` for older ones; null: there are no more."""

    runs: list[RunShape]
    next_before: str | None


class RunFamilyShape(TypedDict):
    """A run, and all runs of the one that a person started: the root first."""

    run: RunShape
    family: list[RunShape]


class AcceptedShape(TypedDict):
    """The run that works on the message; for the answer to a question, the run that asked."""

    run: RunShape
    message: MessageShape | None


class TimelineEntryShape(TypedDict):
    """`title` says it in a line. `runs` are the timelines of the runs that it started."""

    kind: str
    time: str
    title: str
    details: dict[str, Any]
    runs: list[dict[str, Any]]


class TimelineShape(TypedDict):
    run: RunShape
    steps: list[TimelineEntryShape]


class RunEventShape(TypedDict):
    """The data of one server-sent event. `number` counts within the root run."""

    number: int
    kind: RunEventKind
    run: str
    root: str
    agent: str
    time: str
    data: dict[str, Any]


class QuestionShape(TypedDict):
    """`fields` is a JSON schema where an object is wanted; else the answer is text."""

    id: str
    status: QuestionStatus
    thread: str | None
    run: str
    root: str
    agent: str
    text: str
    fields: dict[str, Any] | None
    answer: Any
    created_at: str
    expires_at: str
    answered_at: str | None


class QuestionsShape(TypedDict):
    questions: list[QuestionShape]


def message_view(message: Message) -> MessageShape:
    return {
        "number": message.number,
        "thread": message.thread,
        "author": message.author,
        "agent": message.agent,
        "text": message.text,
        "run": message.run,
        "details": dict(message.details),
        "created_at": message.created_at.isoformat(),
    }


def run_view(run: Run) -> RunShape:
    return {
        "id": run.id,
        "thread": run.thread or None,
        "agent": run.agent,
        "status": run.status,
        "request": run.request,
        "answer": run.answer,
        "error": dict(run.error) if run.error is not None else None,
        "root": run.root,
        "parent": run.parent,
        "parent_call": run.parent_call,
        "message": run.message,
        "model": run.model,
        "exposure": run.exposure,
        "arm": run.arm,
        "options": dict(run.options),
        "limits": RunLimitsShape(**asdict(run.limits)),
        "usage": RunUsageShape(**asdict(run.usage)),
        "cancel_asked": run.cancel_asked,
        "created_at": run.created_at.isoformat(),
        "started_at": _time(run.started_at),
        "finished_at": _time(run.finished_at),
    }


def runs_view(runs: Iterable[Run], limit: int) -> RunsShape:
    """Long texts are cut: each run has them in full."""
    views = [run_view(run) for run in runs]
    for view in views:
        view["request"] = _cut(view["request"])
        view["answer"] = None if view["answer"] is None else _cut(view["answer"])
        view["options"] = {
            name: value for name, value in view["options"].items() if name not in ("outcome", "context")
        }
    has_more = len(views) == limit
    # With Z and not +00:00: a plus sign in an address is a space.
    return {"runs": views, "next_before": _address_time(views[-1]["created_at"]) if has_more else None}


def timeline_view(timeline: "Timeline") -> TimelineShape:
    return {
        "run": run_view(timeline.run),
        "steps": [_moment_view(moment) for moment in timeline.moments],
    }


def event_view(event: RunEvent) -> RunEventShape:
    return {
        "number": event.number,
        "kind": event.kind,
        "run": event.run,
        "root": event.root,
        "agent": event.agent,
        "time": event.time.isoformat(),
        "data": dict(event.data),
    }


def question_view(question: Question) -> QuestionShape:
    return {
        "id": question.id,
        "status": question.status,
        "thread": question.thread or None,
        "run": question.run,
        "root": question.root,
        "agent": question.agent,
        "text": question.text,
        "fields": dict(question.fields) if question.fields is not None else None,
        "answer": question.answer,
        "created_at": question.created_at.isoformat(),
        "expires_at": question.expires_at.isoformat(),
        "answered_at": _time(question.answered_at),
    }


def _moment_view(moment: "TimelineEntry") -> TimelineEntryShape:
    return {
        "kind": moment.kind,
        "time": moment.time.isoformat(),
        "title": moment.title,
        "details": dict(moment.details),
        "runs": [dict(timeline_view(one)) for one in moment.runs],
    }


def _time(time: datetime | None) -> str | None:
    return time.isoformat() if time else None


def _address_time(time: str) -> str:
    return time.replace("+00:00", "Z")


def _cut(text: str) -> str:
    return text if len(text) <= _IN_A_LIST else text[:_IN_A_LIST] + "…"
