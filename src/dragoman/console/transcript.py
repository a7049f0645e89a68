"""One turn of a conversation, put together from what happened in its runs. Pure; made anew for every look.

A turn is what a person wrote and everything that was done about it. `number` is that of the last event in
it: whoever shows a turn goes on with the events after that number, and so misses and doubles nothing.
"""

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from dragoman.console.pages import spent
from dragoman.names import dotted_name
from dragoman.run import ATTACHMENTS, FINISHED, Message, Run, RunEvent, RunStatus, RunUsage
from dragoman.run_progress import (
    CallProgress,
    Notice,
    PersonAsked,
    RunProgress,
    RunTree,
    SpokenText,
    StatedPlan,
    table_in,
)

_NOT_SHOWN = ("ask_person", "state_plan")  # functions whose effect is shown instead


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
    arguments: str = ""
    status: str = "running"
    code: str = ""
    milliseconds: float | None = None
    result: str = ""
    progress: str = ""
    media: Sequence[Mapping[str, Any]] = ()
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
    state: RunStatus = "queued"
    pieces: list[SpokenText | PlanBlock | Notice | CallBlock | AskBlock] = field(
        default_factory=lambda: list[SpokenText | PlanBlock | Notice | CallBlock | AskBlock]()
    )
    answer: str = ""
    contexts: Sequence[Mapping[str, Any]] = ()
    error: Mapping[str, Any] = field(default_factory=dict[str, Any])
    thumb: int = 0
    model: str = ""
    started_at: datetime | None = None

    @property
    def is_over(self) -> bool:
        return self.state in FINISHED


@dataclass(slots=True)
class ChatTurn:
    """`works` are those that the message went to: one, or several that were mentioned.

    `can_keep`: it may be kept as a recipe. `is_copied`: it comes from the chat that this one branched off.
    """

    root: str
    text: str
    number: int
    state: RunStatus
    works: list[RunBlock]
    usage: Mapping[str, Any]
    milliseconds: float | None
    created_at: datetime
    files: Sequence[str] = ()
    can_keep: bool = False
    is_copied: bool = False

    @property
    def is_over(self) -> bool:
        return self.state in FINISHED

    @property
    def cost(self) -> str:
        told = spent(RunUsage(cost=self.usage.get("cost", 0), unpriced=self.usage.get("unpriced", 0)))
        return "cost unknown" if told == "unknown" else told

    @property
    def answer(self) -> str:
        return "\n\n".join(work.answer for work in self.works if work.answer)

    @property
    def ends_with_answer(self) -> bool:
        """Whether the last words on the page are the answer, which need not be there twice to be copied."""
        last = self.works[-1].pieces[-1:] if len(self.works) == 1 else []
        return any(isinstance(piece, SpokenText) and piece.text == self.answer for piece in last)

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
    top = RunProgress(root.id, root.agent, root.request)
    tree = RunTree.of(events, top)
    # A message to several has a root that does nothing itself; it fails where somebody was not reached.
    runs = [*tree.addressed, *([top] if top.error else [])] if "agents" in root.options else [top]
    return ChatTurn(
        root=root.id,
        text=root.request,
        number=tree.number,
        state=top.status,
        works=[_work(run) for run in runs],
        usage=top.usage,
        milliseconds=top.milliseconds,
        created_at=root.created_at,
        files=[str(one["name"]) for one in root.options.get(ATTACHMENTS, ())],
    )


def copied_turns(messages: Iterable[Message]) -> list[ChatTurn]:
    """Of messages that came from another chat: what was said, and not what was done about it."""
    turns: list[ChatTurn] = []
    for one in messages:
        if one.author == "person" or not turns:
            turns.append(_copied(one))
        if one.author == "agent":
            contexts = table_in(one.details.get("outcome")).get("contexts") or ()
            work = RunBlock(f"copied-{one.number}", one.agent or "", state="done", answer=one.text)
            work.pieces.append(SpokenText(0, one.text))
            work.contexts = [table_in(each) for each in contexts]
            turns[-1].works.append(work)
    return turns


def _copied(message: Message) -> ChatTurn:
    files = [str(table_in(one).get("name", "")) for one in message.details.get(ATTACHMENTS) or ()]
    return ChatTurn(
        root=f"copied-{message.number}",
        text=message.text if message.author == "person" else "",
        number=0,
        state="done",
        works=[],
        usage={},
        milliseconds=None,
        created_at=message.created_at,
        files=files,
        is_copied=True,
    )


def _work(run: RunProgress) -> RunBlock:
    last_plan = next((piece for piece in reversed(run.pieces) if isinstance(piece, StatedPlan)), None)
    work = RunBlock(
        run=run.id,
        agent=run.agent,
        request=run.request,
        state=run.status,
        answer=run.answer,
        contexts=run.contexts,
        error=run.error,
        model=run.model,
        started_at=run.started_at,
    )
    for piece in run.pieces:
        if isinstance(piece, SpokenText | Notice):
            work.pieces.append(piece)
        elif isinstance(piece, PersonAsked):
            work.pieces.append(AskBlock(piece.kind, piece.id))
        elif isinstance(piece, CallProgress):
            if not (piece.tool in _NOT_SHOWN and piece.facts.get("kind") != "tool"):
                work.pieces.append(_call(piece))
        elif piece is last_plan:
            work.pieces.append(PlanBlock([_step(step) for step in piece.steps]))
    return work


def _call(call: CallProgress) -> CallBlock:
    facts = call.facts
    return CallBlock(
        run=call.run,
        key=call.key,
        tool=call.tool,
        title=call.title,
        arguments=pretty(facts.get("arguments")),
        status="failed" if call.status == "uncertain" else call.status,
        code=str(facts.get("code") or ""),
        milliseconds=facts.get("duration_ms"),
        result=pretty(facts.get("preview")),
        progress=_progress(facts),
        media=[table_in(one) for one in facts.get("media") or ()],
        asks=[AskBlock(ask.kind, ask.id) for ask in call.asks],
        works=[_work(run) for run in call.children],
    )


def pretty(value: Any) -> str:
    """Arguments and results for people: code as it is, the rest as JSON in lines."""
    if value is None or value == {}:
        return ""
    if isinstance(value, str):
        return value
    table = table_in(value)
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
    table = table_in(step)
    words = [dotted_name(str(table[name])) for name in ("tool", "reason") if table.get(name)]
    return ": ".join(words) or str(step)
