"""One turn of a conversation, put together from what happened in its runs. Pure; made anew for every look.

A turn is what a person wrote and everything that was done about it. `number` is that of the last event in
it: whoever shows a turn goes on with the events after that number, and so misses and doubles nothing.
"""

import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal, cast

from dragoman.run import Run, RunEvent

State = Literal["queued", "running", "waiting", "done", "failed", "cancelled"]
_OVER = ("done", "failed", "cancelled")
_NOT_SHOWN = ("ask_person", "state_plan")  # functions whose effect is shown instead


@dataclass(slots=True)
class TextBlock:
    """What an agent said in one go. `is_final`: it is the answer."""

    turn: int
    text: str
    is_final: bool = False
    kind: str = "words"


@dataclass(slots=True)
class PlanBlock:
    steps: list[str]
    kind: str = "plan"


@dataclass(slots=True)
class AskBlock:
    """What waits for a person, or did. `facts` are looked up by who shows it; None: nobody knows any more."""

    kind: Literal["approval", "question"]
    id: str
    facts: Any = None


@dataclass(slots=True)
class CallBlock:
    run: str
    key: str
    tool: str
    title: str
    connector: str = ""
    arguments: str = ""
    status: str = "running"
    code: str = ""
    milliseconds: float | None = None
    result: str = ""
    progress: str = ""
    asks: list[AskBlock] = field(default_factory=list[AskBlock])
    works: "list[RunBlock]" = field(default_factory=lambda: list[RunBlock]())
    kind: str = "call"

    @property
    def has_open_ask(self) -> bool:
        return any(ask.facts is not None and ask.facts.status == "pending" for ask in self.asks)


@dataclass(slots=True)
class RunBlock:
    """One run of one agent: what it said and did, in order."""

    run: str
    agent: str
    request: str = ""
    state: State = "queued"
    pieces: list[TextBlock | PlanBlock | CallBlock | AskBlock] = field(
        default_factory=lambda: list[TextBlock | PlanBlock | CallBlock | AskBlock]()
    )
    answer: str = ""
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    usage: Mapping[str, Any] = field(default_factory=dict[str, Any])
    model: str = ""
    started: datetime | None = None
    milliseconds: float | None = None
    thumb: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in _OVER


@dataclass(slots=True)
class ChatTurn:
    """`works` are those that the message went to: one, or several that were mentioned."""

    root: str
    text: str
    number: int
    state: State
    works: list[RunBlock]
    usage: Mapping[str, Any]
    milliseconds: float | None
    created_at: datetime

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    @property
    def answer(self) -> str:
        return "\n\n".join(work.answer for work in self.works if work.answer)

    def everything(self) -> Iterable[RunBlock]:
        waiting = [*self.works]
        while waiting:
            work = waiting.pop(0)
            yield work
            waiting += [one for piece in work.pieces if isinstance(piece, CallBlock) for one in piece.works]

    def asks(self) -> Iterable[AskBlock]:
        for work in self.everything():
            for piece in work.pieces:
                if isinstance(piece, AskBlock):
                    yield piece
                elif isinstance(piece, CallBlock):
                    yield from piece.asks


def turn_of(root: Run, events: Iterable[RunEvent]) -> ChatTurn:
    """`events` are those of the root from its first on; what it does not know yet comes later."""
    told = _Telling(root)
    number = 0
    for event in events:
        told.hear(event)
        number = event.number
    top = told.works[root.id]
    # A message to several has a root that does nothing itself.
    works = told.addressed if "agents" in root.options else [top]
    return ChatTurn(
        root=root.id,
        text=root.request,
        number=number,
        state=top.state,
        works=works,
        usage=top.usage,
        milliseconds=top.milliseconds,
        created_at=root.created_at,
    )


class _Telling:
    def __init__(self, root: Run) -> None:
        self.works = {root.id: RunBlock(run=root.id, agent=root.agent, request=root.request)}
        self.addressed: list[RunBlock] = []
        self._calls: dict[tuple[str, str], CallBlock] = {}

    def hear(self, event: RunEvent) -> None:
        if event.kind in ("run.started", "run.resumed") and event.run not in self.works:
            self._begin(event)
        work = self.works.get(event.run)
        if work is None:
            return
        data = event.data
        match event.kind:
            case "run.started" | "run.resumed" | "run.continued":
                work.state = "running"
                work.started = work.started or event.time
            case "run.waiting":
                work.state = "waiting"
            case "run.finished":
                self._finish(work, event)
            case "text":
                _say(work, int(data.get("turn", 0)), str(data.get("delta", "")))
            case "text.discarded":
                void = int(data.get("turn", 0))
                work.pieces = [p for p in work.pieces if not (isinstance(p, TextBlock) and p.turn >= void)]
            case "plan.stated":
                work.pieces = [piece for piece in work.pieces if not isinstance(piece, PlanBlock)]
                work.pieces.append(PlanBlock([_step(step) for step in data.get("steps", ())]))
            case "call.started" | "call.progress" | "call.finished":
                self._hear_call(work, event)
            case "approval.requested":
                call = self._calls.get((event.run, str(data.get("call"))))
                asks = call.asks if call is not None else work.pieces
                asks.append(AskBlock("approval", str(data.get("approval"))))
            case "question.asked":
                work.pieces.append(AskBlock("question", str(data.get("question"))))
            case _:
                pass

    def _begin(self, event: RunEvent) -> None:
        """A run under another: it belongs to the call that started it, or to the message itself."""
        data = event.data
        work = RunBlock(run=event.run, agent=event.agent, request=str(data.get("request") or ""))
        self.works[event.run] = work
        call = self._calls.get((str(data.get("parent")), str(data.get("call"))))
        (call.works if call is not None else self.addressed).append(work)

    def _hear_call(self, work: RunBlock, event: RunEvent) -> None:
        data, key = event.data, str(event.data.get("call"))
        call = self._calls.get((event.run, key))
        if call is None:
            call = CallBlock(
                run=event.run,
                key=key,
                tool=str(data.get("tool") or ""),
                title=str(data.get("title") or data.get("tool") or ""),
                connector=str(data.get("connector") or ""),
            )
            self._calls[event.run, key] = call
            if not (call.tool in _NOT_SHOWN and data.get("kind") != "tool"):
                work.pieces.append(call)
        if event.kind == "call.started":
            call.arguments = pretty(data.get("arguments"))
            call.status = "running"
        elif event.kind == "call.progress":
            call.progress = _progress(data)
        else:
            call.status = "done" if data.get("ok") else "failed"
            call.code = str(data.get("code") or "")
            call.milliseconds = data.get("duration_ms")
            call.result = pretty(data.get("preview"))

    def _finish(self, work: RunBlock, event: RunEvent) -> None:
        data = event.data
        work.state = data.get("status", "done")
        work.answer = str(data.get("answer") or "")
        work.error = _table(data.get("error"))
        work.usage = _table(data.get("usage"))
        work.model = str(data.get("model") or "")
        if work.started is not None:
            work.milliseconds = (event.time - work.started).total_seconds() * 1000
        for piece in work.pieces:
            if isinstance(piece, CallBlock) and piece.status == "running":
                piece.status = "cancelled"
        if work.answer:
            _settle(work)


def _say(work: RunBlock, turn: int, delta: str) -> None:
    last = work.pieces[-1] if work.pieces else None
    if isinstance(last, TextBlock) and last.turn == turn:
        last.text += delta
    else:
        work.pieces.append(TextBlock(turn, delta))


def _settle(work: RunBlock) -> None:
    """What counts is the answer as it was kept, however it was streamed."""
    last = work.pieces[-1] if work.pieces else None
    if isinstance(last, TextBlock):
        last.text, last.is_final = work.answer, True
    else:
        work.pieces.append(TextBlock(0, work.answer, is_final=True))


def pretty(value: Any) -> str:
    """Arguments and results for people: code as it is, the rest as JSON in lines."""
    if value is None or value == {}:
        return ""
    if isinstance(value, str):
        return value
    table = _table(value)
    if [*table] == ["code"] and isinstance(table["code"], str):
        return table["code"]
    return json.dumps(value, ensure_ascii=False, indent=2)


def _progress(data: Mapping[str, Any]) -> str:
    done, total, message = data.get("progress"), data.get("total"), str(data.get("message") or "")
    part = (
        f"{done:g} of {total:g}" if isinstance(done, int | float) and isinstance(total, int | float) else ""
    )
    return " · ".join(word for word in (part, message) if word)


def _step(step: Any) -> str:
    table = _table(step)
    words = [str(table[name]) for name in ("tool", "reason") if table.get(name)]
    return ": ".join(words) or str(step)


def _table(value: Any) -> Mapping[str, Any]:
    return cast("Mapping[str, Any]", value) if isinstance(value, Mapping) else {}
