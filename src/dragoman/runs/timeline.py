"""What happened in a run, as a list that a person can follow: from its journal and its events. Pure.

Arguments and results appear as the previews that the events hold, so without secrets. Imported by the first
who wants one: reading a journal needs pydantic-ai.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal, cast

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from dragoman.run import Run, RunEvent, Step
from dragoman.runs.journal_record import usage_of

MomentKind = Literal[
    "started",
    "resumed",
    "offered",
    "model",
    "retry",
    "plan",
    "call",
    "question",
    "approval",
    "message",
    "note",
    "run",
    "finished",
]
_LONGEST = 2_000
_ENDS = {"done": "is done", "failed": "failed", "cancelled": "was stopped"}
Clean = Callable[[str], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class TimelineEntry:
    """One thing that happened. `title` says it in a line; `runs` are those that a call or mention started."""

    kind: MomentKind
    time: datetime
    title: str
    details: Mapping[str, Any] = field(default_factory=dict[str, Any])
    runs: tuple["Timeline", ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Timeline:
    run: Run
    moments: tuple[TimelineEntry, ...]


def timeline_of(
    run: Run,
    family: Sequence[Run],
    steps: Mapping[str, Sequence[Step]],
    events: Sequence[RunEvent],
    clean: Clean = str,
) -> Timeline:
    """`steps` by run: those of `run` and of all runs under it; `events` are those of the root.

    `clean` takes secrets out of what is read from the journal.
    """
    children = {
        one.id: timeline_of(one, family, steps, events, clean)
        for one in family
        if one.parent == run.id and one != run
    }
    own = [event for event in events if event.run == run.id]
    journal = steps.get(run.id, ())
    moments = [*_of_journal(run, journal, clean), *_Heard(run, journal, children).of(own)]
    return Timeline(run=run, moments=tuple(sorted(moments, key=lambda moment: moment.time)))


# The journal: what was offered, what the model was asked and said


def _of_journal(run: Run, steps: Iterable[Step], clean: Clean) -> list[TimelineEntry]:
    moments: list[TimelineEntry] = []
    offered: list[str] | None = None
    turn = 0
    for step in steps:
        if step.kind == "offered":
            moments.append(_offered(step, offered))
            offered = [*step.content]
        elif step.kind == "messages":
            for moment in _of_messages(run, step, turn, clean):
                turn += moment.kind == "model"
                moments.append(moment)
        elif step.kind == "note":
            moments.append(
                TimelineEntry(kind="note", time=step.time, title=step.key, details=_table(step.content))
            )
    return moments


def _offered(step: Step, before: list[str] | None) -> TimelineEntry:
    names: list[str] = [*step.content]
    details: dict[str, Any] = {"tools": names}
    title = f"{len(names)} functions offered"
    if before is not None:
        added, removed = sorted({*names} - {*before}), sorted({*before} - {*names})
        details |= {"added": added, "removed": removed}
        title += f": {len(added)} new, {len(removed)} gone"
    return TimelineEntry(kind="offered", time=step.time, title=title, details=details)


def _of_messages(run: Run, step: Step, turn: int, clean: Clean) -> Iterable[TimelineEntry]:
    asked: datetime | None = None
    for message in ModelMessagesTypeAdapter.validate_python(step.content):
        if isinstance(message, ModelRequest):
            asked = message.timestamp
            for part in message.parts:
                if isinstance(part, RetryFeedbackPart):
                    yield _retry(step, None, clean(str(part.content)))
                elif isinstance(part, ToolReturnPart) and part.outcome == "retried":
                    yield _retry(step, part.tool_name, clean(str(part.content)))
        else:
            turn += 1
            moment = _answered(run, step, message, turn, asked)
            yield replace(moment, details={**moment.details, "text": _short(clean(_text_of(message)))})


def _text_of(message: ModelResponse) -> str:
    return "".join(part.content for part in message.parts if isinstance(part, TextPart))


def _retry(step: Step, tool: str | None, reason: str) -> TimelineEntry:
    details = {"tool": tool, "reason": _short(reason)}
    title = f"has to call {tool} again" if tool else "has to answer again"
    return TimelineEntry(kind="retry", time=step.time, title=title, details=details)


def _answered(
    run: Run, step: Step, message: ModelResponse, turn: int, asked: datetime | None
) -> TimelineEntry:
    used = usage_of(message, run.model or "")
    calls = [part.tool_name for part in message.parts if isinstance(part, ToolCallPart)]
    model = message.model_name or run.model
    details = {
        "turn": turn,
        "model": model,
        "input_tokens": used.input_tokens,
        "output_tokens": used.output_tokens,
        "cost": used.cost,
        "duration_ms": _milliseconds(asked, step.time),
        "calls": calls,
    }
    wanted = f"wants {', '.join(dict.fromkeys(calls))}" if calls else "answers"
    return TimelineEntry(
        kind="model", time=step.time, title=f"{model or 'the model'} {wanted}", details=details
    )


# The events: what a person saw happen


class _Heard:
    """One run's events as moments: what began and what ended become one."""

    def __init__(self, run: Run, steps: Iterable[Step], children: Mapping[str, Timeline]) -> None:
        self._run = run
        self._children = children
        self._saved: dict[str, int] = {
            step.key: _table(step.content).get("tokens_saved", 0)
            for step in steps
            if step.kind == "call.finished"
        }
        self._moments: list[TimelineEntry] = []
        self._calls: dict[str, int] = {}
        self._asked: dict[str, int] = {}

    def of(self, events: Iterable[RunEvent]) -> list[TimelineEntry]:
        for event in events:
            self._hear(event)
        if self._run.is_finished:
            self._end_calls()
        for child in self._children.values():
            if child.run.parent_call not in self._calls:
                title = f"@{child.run.agent} works on it"
                self._moments.append(
                    TimelineEntry(kind="run", time=child.run.created_at, title=title, runs=(child,))
                )
        return self._moments

    def _hear(self, event: RunEvent) -> None:
        data = event.data
        match event.kind:
            case "run.started":
                self._add("started", event, f"{_who(self._run)} begins", {"request": data.get("request")})
            case "run.resumed":
                self._add("resumed", event, f"{_who(self._run)} goes on after an interruption", {})
            case "run.finished":
                self._finish(event)
            case "plan.stated":
                steps = [*data.get("steps", ())]
                self._add("plan", event, f"plans {len(steps)} steps", {"steps": steps})
            case "message.added":
                if data.get("author") == "agent" and data.get("text") != self._run.answer:
                    self._add("message", event, _short(str(data.get("text", ""))), dict(data))
            case "call.started" | "call.progress" | "call.finished":
                self._hear_call(event)
            case "question.asked" | "question.answered" | "approval.requested" | "approval.answered":
                self._hear_person(event)
            case _:
                pass

    def _hear_call(self, event: RunEvent) -> None:
        data, key = event.data, str(event.data.get("call"))
        if key not in self._calls:
            self._calls[key] = len(self._moments)
            children = tuple(one for one in self._children.values() if one.run.parent_call == key)
            facts: dict[str, Any] = {"call": key, "status": "running", "attempts": 0}
            self._moments.append(
                TimelineEntry(kind="call", time=event.time, title="", details=facts, runs=children)
            )
        at = self._calls[key]
        details = {**self._moments[at].details, **data}
        if event.kind == "call.started":
            details |= {"status": "running", "attempts": details["attempts"] + 1}
        elif event.kind == "call.finished":
            details["status"] = _status_of_call(data)
            details["tokens_saved"] = self._saved.get(key, 0)
        title = f"{details.get('tool')} {_outcome(details)}"
        self._moments[at] = replace(self._moments[at], title=title, details=details)

    def _end_calls(self) -> None:
        """What was under way when the run ended was cancelled with it."""
        for at in self._calls.values():
            moment = self._moments[at]
            if moment.details["status"] == "running":
                title = f"{moment.details.get('tool')} cancelled"
                details = {**moment.details, "status": "cancelled"}
                self._moments[at] = replace(moment, title=title, details=details)

    def _hear_person(self, event: RunEvent) -> None:
        data = dict(event.data)
        match event.kind:
            case "question.asked":
                self._asked[str(data.get("question"))] = len(self._moments)
                status = "unanswered" if self._run.is_finished else "pending"
                self._add("question", event, f"asks: {data.get('text')}", {**data, "status": status})
            case "approval.requested":
                self._asked[str(data.get("approval"))] = len(self._moments)
                status = "unanswered" if self._run.is_finished else "pending"
                self._add("approval", event, "waits for an approval", {**data, "status": status})
            case "question.answered":
                self._answered(str(data.get("question")), event)
            case _:
                self._answered(str(data.get("approval")), event)

    def _answered(self, asked: str, event: RunEvent) -> None:
        at = self._asked.pop(asked, None)
        if at is not None:
            moment = self._moments[at]
            waited = _milliseconds(moment.time, event.time)
            details = {**moment.details, "status": "answered", "waited_ms": waited}
            self._moments[at] = replace(moment, details=details)

    def _finish(self, event: RunEvent) -> None:
        facts = {name: event.data.get(name) for name in ("status", "answer", "error", "model", "usage")}
        facts["duration_ms"] = _milliseconds(self._run.started_at, event.time)
        error = _table(facts["error"])
        said = f": {error['message']}" if error.get("message") else ""
        end = _ENDS.get(str(facts["status"]), "ended")
        self._add("finished", event, f"{_who(self._run)} {end}{said}", facts)

    def _add(self, kind: MomentKind, event: RunEvent, title: str, details: dict[str, Any]) -> None:
        self._moments.append(TimelineEntry(kind=kind, time=event.time, title=title, details=details))


def _status_of_call(data: Mapping[str, Any]) -> str:
    if data.get("ok"):
        return "done"
    return "uncertain" if data.get("code") == "uncertain" else "failed"


def _outcome(details: Mapping[str, Any]) -> str:
    status = details["status"]
    if status == "running":
        return "is under way"
    took = f" in {details['duration_ms']:g} ms" if details.get("duration_ms") is not None else ""
    return f"{status}{took}" if status == "done" else f"{status}: {details.get('code')}{took}"


def _who(run: Run) -> str:
    return f"@{run.agent}" if run.agent else "the message"


def _milliseconds(begin: datetime | None, end: datetime) -> float | None:
    return None if begin is None else round((end - begin).total_seconds() * 1000, 1)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
