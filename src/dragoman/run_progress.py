"""How far a run and those under it have come: the one fold over their events. Pure.

Console, command and timeline show what they like of it. Knows no screen, no store and no door.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from dragoman.names import dotted_name
from dragoman.run import FINISHED, RunEvent, RunStatus

MilestoneKind = Literal["started", "resumed", "message", "finished"]
CallStatus = Literal["running", "done", "failed", "uncertain", "cancelled"]
_MENTION = "mention:"  # how the call of a run begins that several were asked for by a person


@dataclass(slots=True)
class Milestone:
    """Of the run as a whole: it began, went on after an interruption, wrote into its thread, ended."""

    kind: MilestoneKind
    time: datetime
    facts: Mapping[str, Any]


@dataclass(slots=True)
class SpokenText:
    """What an agent said in one go."""

    turn: int
    text: str
    kind: Literal["text"] = "text"


@dataclass(slots=True)
class StatedPlan:
    time: datetime
    steps: list[Any]


@dataclass(slots=True)
class Notice:
    """What a person should know of how the run goes on: another model, a limit, an answer that was cut."""

    time: datetime
    text: str
    code: str = ""
    kind: Literal["notice"] = "notice"


@dataclass(slots=True)
class PersonAsked:
    """What a person was asked for. `is_open`: it is waited for now."""

    kind: Literal["approval", "question"]
    id: str
    time: datetime
    facts: Mapping[str, Any]
    is_open: bool = True
    answered_at: datetime | None = None


@dataclass(slots=True)
class CallProgress:
    """`facts` are what its events said, the latest counting: tool, title, arguments, ok, code, preview …

    `is_open`: it is under way now; after an interruption it comes again, under the same key.
    """

    run: str
    key: str
    time: datetime
    facts: dict[str, Any] = field(default_factory=dict[str, Any])
    status: CallStatus = "running"
    is_open: bool = False
    attempts: int = 0
    asks: list[PersonAsked] = field(default_factory=list[PersonAsked])
    children: "list[RunProgress]" = field(default_factory=lambda: list[RunProgress]())

    @property
    def tool(self) -> str:
        return str(self.facts.get("tool") or "")

    @property
    def title(self) -> str:
        return dotted_name(str(self.facts.get("title") or self.tool))


Piece = SpokenText | StatedPlan | Notice | PersonAsked | CallProgress


@dataclass(slots=True)
class RunProgress:
    """One run: `pieces` are what it said and did, in order; an approval stands with its call."""

    id: str
    agent: str = ""
    request: str = ""
    parent: str | None = None
    parent_call: str | None = None
    status: RunStatus = "queued"
    milestones: list[Milestone] = field(default_factory=list[Milestone])
    pieces: list[Piece] = field(default_factory=lambda: list[Piece]())
    answer: str = ""
    contexts: Sequence[Mapping[str, Any]] = ()
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None

    @property
    def is_active(self) -> bool:
        return self.status in ("running", "waiting")

    @property
    def is_mentioned(self) -> bool:
        """Whether a person wrote to it and to others in one message."""
        return (self.parent_call or "").startswith(_MENTION)

    @property
    def milliseconds(self) -> float | None:
        if self.started_at is None or self.finished_at is None:
            return None
        return (self.finished_at - self.started_at).total_seconds() * 1000

    def calls(self) -> Iterator[CallProgress]:
        return (piece for piece in self.pieces if isinstance(piece, CallProgress))

    def asks(self) -> Iterator[PersonAsked]:
        for piece in self.pieces:
            if isinstance(piece, PersonAsked):
                yield piece
            elif isinstance(piece, CallProgress):
                yield from piece.asks

    def cancel_calls(self) -> None:
        """What was under way when the run ended was cancelled with it."""
        for call in self.calls():
            if call.status == "running":
                call.status, call.is_open = "cancelled", False


class RunTree:
    """A root run and all runs under it. Hears every event of the root, in order."""

    def __init__(self, root: RunProgress | None = None) -> None:
        self.runs: dict[str, RunProgress] = {root.id: root} if root else {}
        self.addressed: list[RunProgress] = []
        """Runs that no call started: those that a message mentions."""
        self.number = 0
        self._calls: dict[tuple[str, str], CallProgress] = {}
        self._asks: dict[str, PersonAsked] = {}

    @classmethod
    def of(cls, events: Iterable[RunEvent], root: RunProgress | None = None) -> "RunTree":
        tree = cls(root)
        for event in events:
            tree.hear(event)
        return tree

    def hear(self, event: RunEvent) -> None:
        self.number = event.number
        run = self.runs.setdefault(event.run, RunProgress(event.run, event.agent))
        data = event.data
        match event.kind:
            case "run.started" | "run.resumed":
                self._begin(run, event)
            case "run.continued":
                run.status = "running"
            case "run.waiting":
                run.status = "waiting"
            case "run.finished":
                _finish(run, event)
            case "message.added":
                _reach(run, "message", event)
            case "text":
                _say(run, int(data.get("turn", 0)), str(data.get("delta", "")))
            case "text.discarded":
                void = int(data.get("turn", 0))
                run.pieces = [p for p in run.pieces if not (isinstance(p, SpokenText) and p.turn >= void)]
            case "plan.stated":
                run.pieces.append(StatedPlan(event.time, [*data.get("steps", ())]))
            case "notice":
                run.pieces.append(Notice(event.time, str(data.get("text", "")), str(data.get("code", ""))))
            case "call.started" | "call.progress" | "call.finished":
                self._hear_call(run, event)
            case "approval.requested" | "question.asked":
                self._ask(run, event)
            case "approval.answered" | "question.answered":
                if ask := self._asks.get(_asked_in(event)):
                    ask.is_open, ask.answered_at = False, ask.answered_at or event.time
            case "run.queued":
                pass

    def call(self, run: str, key: str) -> CallProgress | None:
        return self._calls.get((run, key))

    def depth(self, run: str) -> int:
        """0 for whom the person wrote to; a mention of several is nobody's work."""
        parent = self.runs.get(self.runs[run].parent or "")
        return self.depth(parent.id) + 1 if parent is not None and parent.agent else 0

    def active(self) -> list[RunProgress]:
        return [run for run in self.runs.values() if run.is_active]

    def active_children(self, run: RunProgress) -> list[RunProgress]:
        return [other for other in self.active() if other.parent == run.id]

    @property
    def is_waiting(self) -> bool:
        """Whether nothing goes on but waiting for a person."""
        active = self.active()
        waits = sum(ask.is_open for run in active for ask in run.asks())
        return waits > 0 and waits >= sum(map(self._own_calls, active))

    def _own_calls(self, run: RunProgress) -> int:
        """Calls under way that are no delegation; thinking counts as one."""
        children = self.active_children(run)
        delegations = {child.parent_call for child in children}
        own = sum(call.is_open and call.key not in delegations for call in run.calls())
        return own if own or children else 1

    def _begin(self, run: RunProgress, event: RunEvent) -> None:
        """A run under another belongs to the call that started it, or to the message itself."""
        data = event.data
        _reach(run, "started" if event.kind == "run.started" else "resumed", event)
        run.status, run.agent = "running", event.agent
        # After an interruption calls and what they need an approval for come again; questions stay.
        for one in (*run.calls(), *(ask for ask in run.asks() if ask.kind == "approval")):
            one.is_open = False
        if run.started_at is None:
            run.started_at = event.time
            run.request = run.request or str(data.get("request") or "")
            run.parent, run.parent_call = data.get("parent"), data.get("call")
            if run.parent is not None:
                call = self.call(run.parent, str(run.parent_call))
                (call.children if call is not None else self.addressed).append(run)

    def _hear_call(self, run: RunProgress, event: RunEvent) -> None:
        key = str(event.data.get("call"))
        call = self.call(run.id, key)
        if call is None:
            call = self._calls[run.id, key] = CallProgress(run.id, key, event.time)
            run.pieces.append(call)
        call.facts |= event.data
        if event.kind == "call.started":
            call.status, call.is_open, call.attempts = "running", True, call.attempts + 1
        elif event.kind == "call.finished":
            call.status, call.is_open = _status_of(event.data), False

    def _ask(self, run: RunProgress, event: RunEvent) -> None:
        known = self._asks.get(_asked_in(event))
        if known is not None:
            known.is_open = True
            return
        kind: Literal["approval", "question"] = "approval" if "approval" in event.data else "question"
        ask = PersonAsked(kind, _asked_in(event), event.time, event.data)
        self._asks[ask.id] = ask
        call = self.call(run.id, str(event.data.get("call"))) if kind == "approval" else None
        (call.asks if call is not None else run.pieces).append(ask)


def table_in(value: Any) -> Mapping[str, Any]:
    """What events hold is JSON: an object as it is, anything else as an empty one."""
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}


def _reach(run: RunProgress, kind: MilestoneKind, event: RunEvent) -> None:
    run.milestones.append(Milestone(kind, event.time, event.data))


def _finish(run: RunProgress, event: RunEvent) -> None:
    data = event.data
    _reach(run, "finished", event)
    status = data.get("status", "done")
    run.status = status if status in FINISHED else "done"
    run.answer = str(data.get("answer") or "")
    run.contexts = [table_in(one) for one in data.get("contexts") or ()]
    run.error = table_in(data.get("error"))
    run.usage = table_in(data.get("usage"))
    run.model = str(data.get("model") or "")
    run.finished_at = event.time
    run.cancel_calls()
    if run.answer:
        _settle(run)


def _say(run: RunProgress, turn: int, delta: str) -> None:
    last = run.pieces[-1] if run.pieces else None
    if isinstance(last, SpokenText) and last.turn == turn:
        last.text += delta
    else:
        run.pieces.append(SpokenText(turn, delta))


def _settle(run: RunProgress) -> None:
    """What counts is the answer as it was kept, however it was streamed: in one go, or in two."""
    pieces, notices, turn = [*run.pieces], list[Piece](), 0
    while pieces:
        last = pieces[-1]
        if isinstance(last, Notice):
            notices.insert(0, last)
        elif isinstance(last, SpokenText):
            turn = last.turn
        else:
            break
        pieces.pop()
    run.pieces = [*pieces, *notices, SpokenText(turn, run.answer)]


def _asked_in(event: RunEvent) -> str:
    return str(event.data.get("approval") or event.data.get("question"))


def _status_of(finished: Mapping[str, Any]) -> CallStatus:
    if finished.get("ok"):
        return "done"
    return "uncertain" if finished.get("code") == "uncertain" else "failed"
