"""One run, shown from its first event to its end; where a person is wanted, the one at the prompt is asked.

Ctrl-C stops the run; a second one leaves it as it is.
"""

import json
import time
from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal

from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.interrupts import Interrupts
from dragoman.cli.live_run import LiveRun
from dragoman.cli.prompts import Prompter
from dragoman.cli.transcript import Transcript
from dragoman.errors import Unreachable
from dragoman.run import FINISHED, RunEvent

Facts = Mapping[str, Any]
End = Literal["done", "failed", "cancelled", "waiting", "left"]
_PENDING = "pending"
_PATIENCE = 30.0  # seconds in which a service that went away may come back
_PAUSE = 0.25
_WAITS = ("run.waiting", "approval.requested", "question.asked", "call.finished")


@dataclass(frozen=True, slots=True)
class RunEnding:
    """`facts` are those of `run.finished`. `waiting`: a person must answer, and nobody is here to."""

    end: End
    facts: Facts | None = None
    seconds: float | None = None


class RunWatcher:
    """`asking` None: nobody here can answer; `waits` then says whether to stay until somebody did."""

    def __init__(
        self,
        door: Door,
        transcript: Transcript,
        interrupts: Interrupts,
        asking: Prompter | None = None,
        waits: bool = False,
    ) -> None:
        self._door = door
        self._transcript = transcript
        self._interrupts = interrupts
        self._asking = asking
        self._waits = waits

    def follow(self, run: str) -> RunEnding:
        live = LiveRun(self._transcript)
        after, is_stopping = 0, False
        while True:
            try:
                with closing(events_of(self._door, run, after)) as events:
                    while (event := self._next(events)) is not None:
                        ending = self._hear(event, live)
                        after = event.number
                        if ending is not None:
                            return self._ended(ending)
                return self._ended(self._found(run))
            except EOFError:
                return self._ended(RunEnding("left"))
            except KeyboardInterrupt:
                if is_stopping or not self._is_stopped(run):
                    return self._ended(RunEnding("left"))
                is_stopping = True

    def _next(self, events: Generator[RunEvent]) -> RunEvent | None:
        with self._interrupts.waiting():
            return next(events, None)

    def _hear(self, event: RunEvent, live: LiveRun) -> RunEnding | None:
        live.hear(event)
        match event.kind:
            case "approval.requested":
                self._ask_yes(event.data["approval"])
            case "question.asked":
                self._ask(event.data["question"])
            case "run.finished" if event.run == event.root:
                return RunEnding(event.data["status"], event.data, live.seconds)
            case _:
                pass
        is_alone = self._asking is None and not self._waits and event.kind in _WAITS
        # An event may be of the past: whether somebody is waited for now, the service says.
        if is_alone and live.tree.is_waiting and waited_for(self._door, event.root):
            return RunEnding("waiting")
        return None

    def _ask_yes(self, approval: str) -> None:
        if self._asking is None:
            return
        with self._interrupts.waiting():
            question = self._door.ask("GET", path_of("approvals", approval))
        if question["status"] != _PENDING:
            return
        with self._transcript.still(), self._interrupts.waiting():
            self._asking.approve(question)

    def _ask(self, question: str) -> None:
        if self._asking is None:
            return
        with self._interrupts.waiting():
            found = self._door.ask("GET", path_of("questions", question))
        if found["status"] != _PENDING:
            return
        with self._transcript.still(), self._interrupts.waiting():
            self._asking.answer(found)

    def _is_stopped(self, run: str) -> bool:
        """False when the person does not even wait for that."""
        self._transcript.line("[yellow]■[/] stopping … [dim](Ctrl-C again leaves it)[/]")
        try:
            with self._interrupts.waiting():
                self._door.ask("POST", path_of("runs", run, "cancel"))
        except Refused:
            pass  # it has just ended
        except KeyboardInterrupt:
            return False
        return True

    def _found(self, run: str) -> RunEnding:
        """The stream ended without the last event: the run itself says how it is."""
        found = self._door.ask("GET", path_of("runs", run))["family"][0]
        return RunEnding(found["status"], found)

    def _ended(self, ending: RunEnding) -> RunEnding:
        self._transcript.end_text()
        self._transcript.working("")
        return ending


def waited_for(door: Door, root: str) -> list[dict[str, Any]]:
    """What a run waits for: `{kind, id, text}` of each approval and question."""
    run = door.ask("GET", path_of("runs", root))
    ids = {one["id"] for one in run["family"]}
    thread, agents = run["run"]["thread"], {one["agent"] for one in run["family"]}
    waits: list[dict[str, Any]] = [
        {"kind": "question", "id": one["id"], "text": one["text"], "agent": one["agent"]}
        for one in door.ask("GET", path_of("questions"))["questions"]
        if one["run"] in ids
    ]
    for one in door.ask("GET", path_of("approvals"))["approvals"]:
        if one["thread"] == thread and one["agent"] in agents:
            facts = {"tool": one["tool"], "arguments": one["arguments"], "agent": one["agent"]}
            waits.append({"kind": "approval", "id": one["id"], **facts})
    return waits


def events_of(door: Door, run: str, after: int = 0) -> Generator[RunEvent]:
    """From a number on, until the root run has ended, also over a service that was away for a while.

    `Unreachable` when it does not come back.
    """
    lost_at: float | None = None
    while True:
        try:
            with door.follow(path_of("runs", run, "events"), after) as lines:
                for line in lines:
                    lost_at = None
                    if not line.startswith(b"data: "):
                        continue
                    event = _event_in(json.loads(line[6:]))
                    after = event.number
                    yield event
                    if event.kind == "run.finished" and event.run == event.root:
                        return
            if door.ask("GET", path_of("runs", run))["family"][0]["status"] in FINISHED:
                return
        except Unreachable as error:
            if lost_at is not None and time.monotonic() - lost_at > _PATIENCE:
                raise Unreachable(
                    error.message, hint=f"the run goes on when it is back: dragoman runs follow {run}"
                ) from None
        lost_at = lost_at or time.monotonic()
        time.sleep(_PAUSE)


def _event_in(facts: Facts) -> RunEvent:
    """As the REST door tells it; whose workspace it is goes without saying."""
    return RunEvent(
        workspace="",
        root=facts["root"],
        run=facts["run"],
        kind=facts["kind"],
        number=facts["number"],
        agent=facts["agent"],
        data=facts["data"],
        time=datetime.fromisoformat(facts["time"]),
    )
