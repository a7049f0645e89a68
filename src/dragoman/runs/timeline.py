"""What happened in a run, as a list that a person can follow: from its journal and its events. Pure.

Arguments and results appear as the previews that the events hold, so without secrets. Imported by the first
who wants one: reading a journal needs pydantic-ai.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any, Literal

from pydantic_ai.messages import (
    ModelMessagesTypeAdapter,
    ModelRequest,
    ModelResponse,
    RetryFeedbackPart,
    TextPart,
    ToolCallPart,
    ToolReturnPart,
)

from dragoman.names import dotted_name
from dragoman.run import Run, RunEvent, Step
from dragoman.run_progress import (
    CallProgress,
    Milestone,
    Notice,
    PersonAsked,
    RunProgress,
    RunTree,
    StatedPlan,
    table_in,
)
from dragoman.runs.journal_record import SUMMARY, usage_of

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
    "notice",
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
    """A run, and all that happened in it in order."""

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
    tree = RunTree.of(events)

    def told(one: Run) -> Timeline:
        children = {child.id: told(child) for child in family if child.parent == one.id and child != one}
        journal, progress = steps.get(one.id, ()), tree.runs.get(one.id, RunProgress(one.id))
        moments = [
            *_of_journal(one, journal, clean),
            *_Seen(one, journal, children).moments(progress),
        ]
        return Timeline(run=one, moments=tuple(sorted(moments, key=lambda moment: moment.time)))

    return told(run)


# The journal: what was offered, what the model was asked and said


def _of_journal(run: Run, steps: Iterable[Step], clean: Clean) -> list[TimelineEntry]:
    moments: list[TimelineEntry] = []
    offered: list[str] | None = None
    turn = 0
    for step in steps:
        if step.kind == "offered":
            moments.append(_offered(step, offered, run.exposure))
            offered = [*step.content]
        elif step.kind == "messages":
            for moment in _of_messages(run, step, turn, clean):
                turn += moment.kind == "model"
                moments.append(moment)
        elif step.kind == "note" and step.key != SUMMARY:  # a message tells of it
            moments.append(
                TimelineEntry(kind="note", time=step.time, title=step.key, details=table_in(step.content))
            )
    return moments


_WAYS = {
    "direct": "all its tools at once",
    "search": "it searches for the tools it needs",
    "delegate": "it asks the agents of connectors",
    "code": "it writes programs that call tools",
}


def _offered(step: Step, before: list[str] | None, exposure: str | None) -> TimelineEntry:
    names: list[str] = [*step.content]
    details: dict[str, Any] = {"tools": names}
    title = f"{len(names)} functions offered"
    if before is None:
        title += f": {_WAYS[exposure]}" if exposure in _WAYS else ""
    else:
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
    title = f"has to call {dotted_name(tool)} again" if tool else "has to answer again"
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
        "unpriced": used.unpriced,
        "duration_ms": _milliseconds(asked, step.time),
        "calls": calls,
    }
    wanted = f"wants {', '.join(map(dotted_name, dict.fromkeys(calls)))}" if calls else "answers"
    return TimelineEntry(
        kind="model", time=step.time, title=f"{model or 'the model'} {wanted}", details=details
    )


# The events: what a person saw happen


class _Seen:
    """What one run did, as moments."""

    def __init__(self, run: Run, steps: Iterable[Step], children: Mapping[str, Timeline]) -> None:
        self._run = run
        self._children = children
        self._saved: dict[str, int] = {
            step.key: table_in(step.content).get("tokens_saved", 0)
            for step in steps
            if step.kind == "call.finished"
        }

    def moments(self, progress: RunProgress) -> list[TimelineEntry]:
        if self._run.is_finished:
            progress.cancel_calls()
        moments = [*self._life(progress), *self._pieces(progress)]
        known = {call.key for call in progress.calls()}
        for child in self._children.values():
            if child.run.parent_call not in known:
                title = f"@{child.run.agent} works on it"
                moments.append(
                    TimelineEntry(kind="run", time=child.run.created_at, title=title, runs=(child,))
                )
        return moments

    def _life(self, progress: RunProgress) -> Iterable[TimelineEntry]:
        who = _who(self._run)
        for one in progress.milestones:
            facts = one.facts
            match one.kind:
                case "started":
                    request = {"request": facts.get("request")}
                    yield TimelineEntry(kind="started", time=one.time, title=f"{who} begins", details=request)
                case "resumed":
                    title = f"{who} goes on after an interruption"
                    yield TimelineEntry(kind="resumed", time=one.time, title=title)
                case "message":
                    text = str(facts.get("text", ""))
                    summary = table_in(facts.get(SUMMARY))
                    if summary:
                        title = f"sums up messages {summary['from']} to {summary['to']}"
                        yield TimelineEntry(kind="message", time=one.time, title=title, details=dict(facts))
                    elif facts.get("author") == "agent" and text != self._run.answer:
                        yield TimelineEntry(
                            kind="message", time=one.time, title=_short(text), details=dict(facts)
                        )
                case "finished":
                    yield self._finished(one)

    def _finished(self, end: Milestone) -> TimelineEntry:
        facts = {name: end.facts.get(name) for name in ("status", "answer", "error", "model", "usage")}
        facts["duration_ms"] = _milliseconds(self._run.started_at, end.time)
        error = table_in(facts["error"])
        said = f": {error['message']}" if error.get("message") else ""
        how = _ENDS.get(str(facts["status"]), "ended")
        return TimelineEntry(
            kind="finished", time=end.time, title=f"{_who(self._run)} {how}{said}", details=facts
        )

    def _pieces(self, progress: RunProgress) -> Iterable[TimelineEntry]:
        for piece in progress.pieces:
            if isinstance(piece, StatedPlan):
                title = f"plans {len(piece.steps)} steps"
                yield TimelineEntry(kind="plan", time=piece.time, title=title, details={"steps": piece.steps})
            elif isinstance(piece, Notice):
                details = {"code": piece.code} if piece.code else {}
                yield TimelineEntry(kind="notice", time=piece.time, title=piece.text, details=details)
            elif isinstance(piece, CallProgress):
                yield self._call(piece)
        for ask in progress.asks():
            yield self._ask(ask)

    def _call(self, call: CallProgress) -> TimelineEntry:
        details = {**call.facts, "call": call.key, "status": call.status, "attempts": call.attempts}
        if call.status not in ("running", "cancelled"):
            details["tokens_saved"] = self._saved.get(call.key, 0)
        children = tuple(one for one in self._children.values() if one.run.parent_call == call.key)
        title = f"{dotted_name(call.tool)} {_outcome(details)}"
        return TimelineEntry(kind="call", time=call.time, title=title, details=details, runs=children)

    def _ask(self, ask: PersonAsked) -> TimelineEntry:
        title = f"asks: {ask.facts.get('text')}" if ask.kind == "question" else "waits for an approval"
        details: dict[str, Any] = dict(ask.facts)
        if ask.answered_at is not None:
            waited = _milliseconds(ask.time, ask.answered_at)
            details |= {"status": "answered", "waited_ms": waited}
        else:
            details["status"] = "unanswered" if self._run.is_finished else "pending"
        return TimelineEntry(kind=ask.kind, time=ask.time, title=title, details=details)


def _outcome(details: Mapping[str, Any]) -> str:
    status = details["status"]
    if status == "running":
        return "is under way"
    if status == "cancelled":
        return status
    took = f" in {details['duration_ms']:g} ms" if details.get("duration_ms") is not None else ""
    return f"{status}{took}" if status == "done" else f"{status}: {details.get('code')}{took}"


def _who(run: Run) -> str:
    return f"@{run.agent}" if run.agent else "the message"


def _milliseconds(begin: datetime | None, end: datetime) -> float | None:
    return None if begin is None else round((end - begin).total_seconds() * 1000, 1)


def _short(text: str) -> str:
    return text if len(text) <= _LONGEST else text[:_LONGEST] + "…"
