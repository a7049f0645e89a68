"""What agents and their runs ask of a store: the second half of `protocols`.

Every question carries the workspace. A run is claimed by one process at a time, for as long as its
lease lasts; whoever finds a lease that is over takes the run on from its journal.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from dragoman.agent import Agent, AgentNumbers
from dragoman.run import Message, Question, Run, RunEvent, RunStatus, Step


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceptedRun:
    """A run and the message that it works on, as they were written together."""

    run: Run
    message: Message | None


@dataclass(frozen=True, slots=True, kw_only=True)
class RolloutSample:
    """One finished run as a rollout counts it. `thumb` is 1, -1, or 0 for nobody said."""

    run: str
    workspace: str
    user: str
    arm: str
    ok: bool
    milliseconds: float
    tokens: int
    cost: float
    thumb: int = 0
    at: datetime


class AgentRows(Protocol):
    async def list(self, workspace: str | None = None) -> Sequence[Agent]:
        """By name; all workspaces for the hub's own start only."""
        ...

    async def put(self, agent: Agent) -> None:
        """`Conflict` when another agent of the same owner has the name."""
        ...

    async def remove(self, workspace: str, agent_id: str) -> None:
        """Takes its numbers along."""
        ...

    async def numbers(self, workspace: str) -> Mapping[str, AgentNumbers]:
        """By agent id: what they did for this workspace."""
        ...

    async def add_numbers(self, workspace: str, agent_id: str, numbers: AgentNumbers) -> None:
        """Adds; `last_used` is the later of both. Several processes may add at once."""
        ...


class MessageRows(Protocol):
    async def add(self, message: Message) -> Message:
        """Gives it the next number of its thread."""
        ...

    async def list(
        self, workspace: str, user: str, thread: str, *, after: int = 0, limit: int = 1000, last: bool = False
    ) -> Sequence[Message]:
        """In order; with `last` the newest `limit` of them."""
        ...

    async def note(
        self, workspace: str, user: str, thread: str, number: int, details: Mapping[str, Any]
    ) -> bool:
        """Merges `details` into those of a message. False when there is no such message."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class AgentWorked:
    """What an agent did in a run that ended: added to its numbers."""

    workspace: str
    run: str
    agent: str
    numbers: AgentNumbers


@dataclass(frozen=True, slots=True)
class JournalBatch:
    """What is written together: one transaction.

    Steps get the next numbers of their runs in the order given. Events carry their numbers; one that is
    there already is left as it is. Runs are replaced whole, but for `cancel_asked`, `worker`, `lease_until`.
    """

    steps: Sequence[Step] = ()
    events: Sequence[RunEvent] = ()
    runs: Sequence[Run] = ()
    messages: Sequence[Message] = ()
    worked: Sequence[AgentWorked] = ()


@dataclass(frozen=True, slots=True)
class NewRun:
    """A run to be written, with its message and first events.

    With a `worker` that could begin at once: it holds the run `until` then, if it is its turn.
    """

    run: Run
    message: Message | None = None
    events: Sequence[RunEvent] = ()
    worker: str | None = None
    until: datetime | None = None


class RunRows(Protocol):
    async def accept(
        self,
        run: Run,
        message: Message | None = None,
        events: Sequence[RunEvent] = (),
        *,
        worker: str | None = None,
        until: datetime | None = None,
    ) -> AcceptedRun:
        """One `NewRun`, in a transaction of its own."""
        ...

    async def accept_all(self, new: Sequence[NewRun]) -> Sequence[AcceptedRun]:
        """Writes all of them or none; messages get their numbers, and runs the numbers of their messages."""
        ...

    async def find(self, workspace: str, run: str) -> Run | None: ...

    async def list(
        self,
        workspace: str,
        user: str | None = None,
        *,
        thread: str | None = None,
        agent: str | None = None,
        status: RunStatus | None = None,
        roots_only: bool = False,
        before: datetime | None = None,
        limit: int = 100,
    ) -> Sequence[Run]:
        """Newest first."""
        ...

    async def family(self, workspace: str, root: str) -> Sequence[Run]:
        """The root and all runs under it, oldest first."""
        ...

    async def child(self, workspace: str, parent: str, parent_call: str) -> Run | None:
        """The run that this call of the parent started."""
        ...

    async def write(self, batch: JournalBatch) -> Sequence[Message]:
        """One transaction. Returns the messages with their numbers."""
        ...

    async def write_held(self, batch: JournalBatch, worker: str) -> frozenset[str]:
        """The same of runs whose root the worker holds. Returns the others: nothing was written of them."""
        ...

    async def steps(self, workspace: str, run: str) -> Sequence[Step]:
        """In order."""
        ...

    async def events(
        self, workspace: str, root: str, *, after: int = 0, limit: int = 1000
    ) -> Sequence[RunEvent]:
        """In order."""
        ...

    async def last_event(self, workspace: str, root: str) -> int:
        """The highest number so far, 0 when there is none."""
        ...

    async def roots_after(self, workspace: str, user: str, thread: str, message: int) -> Sequence[Run]:
        """Root runs of a thread whose message has a higher number, in order."""
        ...

    async def claim(
        self, worker: str, until: datetime, now: datetime, *, dead: Sequence[str] = (), limit: int = 100
    ) -> Sequence[Run]:
        """Takes unfinished root runs that nobody holds: never claimed, lease over, or of a `dead` worker.

        Of each thread only the oldest unfinished one is taken; runs without a thread at once. Two processes
        never get the same. Oldest first.
        """
        ...

    async def claim_one(
        self, workspace: str, run: str, worker: str, until: datetime, now: datetime
    ) -> Run | None:
        """The same for one run: None when it is held, finished, or not yet its turn."""
        ...

    async def renew(
        self, worker: str, until: datetime, runs: Collection[str] | None = None
    ) -> frozenset[str]:
        """Lengthens the leases of the unfinished runs that the worker holds; returns their ids.

        With `runs`, of these alone.
        """
        ...

    async def workers(self) -> frozenset[str]:
        """Those who hold an unfinished run."""
        ...

    async def has_open(self) -> bool:
        """Whether any root run of any workspace is unfinished."""
        ...

    async def release(self, worker: str, runs: Collection[str] | None = None) -> None:
        """Gives back what the worker holds, or these of it: another may take it at once."""
        ...

    async def ask_cancel(self, workspace: str, run: str) -> bool:
        """Marks an unfinished root run; a queued one that nobody holds is cancelled at once.

        False when it has finished.
        """
        ...

    async def cancels(self, worker: str) -> frozenset[str]:
        """Ids of the worker's unfinished runs that somebody wants cancelled."""
        ...

    async def forget(self, before: datetime) -> int:
        """Deletes finished families of long ago with their journals and events; messages stay."""
        ...


class QuestionRows(Protocol):
    async def ask(self, question: Question) -> Question:
        """The question with the same run and key if there is one, else this one, written."""
        ...

    async def find(self, workspace: str, user: str, question: str) -> Question | None: ...

    async def list(
        self,
        workspace: str,
        user: str,
        *,
        thread: str | None = None,
        status: str | None = "pending",
        limit: int = 100,
    ) -> Sequence[Question]:
        """Newest first. One whose time is over is listed as it was last written."""
        ...

    async def answer(self, workspace: str, user: str, question: str, answer: Any, now: datetime) -> bool:
        """Only an open one, and in time."""
        ...

    async def answer_by(self, message: Message, question: str, now: datetime) -> Message | None:
        """The same with what a person writes in the thread: both are written, or neither."""
        ...

    async def settled(self, questions: Collection[str]) -> frozenset[str]:
        """Those of these ids that wait for nobody any more."""
        ...

    async def close(self, workspace: str, root: str, status: str) -> None:
        """Closes the open questions of a root run: it ended."""
        ...

    async def expire(self, now: datetime) -> None: ...


class RolloutRows(Protocol):
    async def state(self, name: str) -> Mapping[str, Any] | None: ...

    async def put_state(self, name: str, state: Mapping[str, Any]) -> None: ...

    async def add(self, sample: RolloutSample) -> None:
        """One that is known already is left as it is."""
        ...

    async def thumb(self, workspace: str, run: str, thumb: int) -> bool: ...

    async def samples(self, since: datetime) -> Sequence[RolloutSample]:
        """Oldest first; at most the last 10,000."""
        ...

    async def forget(self, before: datetime) -> None: ...
