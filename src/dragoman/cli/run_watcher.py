"""One run, shown from its first event to its end; where a person is wanted, the one at the prompt is asked.

Ctrl-C stops the run; a second one leaves it as it is.
"""

from collections.abc import Generator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import Any, Literal

from dragoman.cli.door import Door, Refused, path_of
from dragoman.cli.interrupts import Interrupts
from dragoman.cli.prompts import Prompter
from dragoman.cli.run_events import Event, events_of
from dragoman.cli.run_transcript import RunTranscript
from dragoman.cli.transcript import Transcript

Facts = Mapping[str, Any]
End = Literal["done", "failed", "cancelled", "waiting", "left"]
_PENDING = "pending"
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
        story = RunTranscript(self._transcript)
        after, is_stopping = 0, False
        while True:
            try:
                with closing(events_of(self._door, run, after)) as events:
                    while (event := self._next(events)) is not None:
                        ending = self._hear(event, story)
                        after = event["number"]
                        if ending is not None:
                            return self._ended(ending)
                return self._ended(self._found(run))
            except EOFError:
                return self._ended(RunEnding("left"))
            except KeyboardInterrupt:
                if is_stopping or not self._is_stopped(run):
                    return self._ended(RunEnding("left"))
                is_stopping = True

    def _next(self, events: Generator[Event]) -> Event | None:
        with self._interrupts.waiting():
            return next(events, None)

    def _hear(self, event: Event, story: RunTranscript) -> RunEnding | None:
        story.hear(event)
        match event["kind"]:
            case "approval.requested":
                self._ask_yes(event["data"]["approval"])
            case "question.asked":
                self._ask(event["data"]["question"])
            case "run.finished" if event["run"] == event["root"]:
                return RunEnding(event["data"]["status"], event["data"], story.seconds)
            case _:
                pass
        is_alone = self._asking is None and not self._waits and event["kind"] in _WAITS
        # An event may be of the past: whether somebody is waited for now, the service says.
        if is_alone and story.at_work.is_waiting and waited_for(self._door, event["root"]):
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
